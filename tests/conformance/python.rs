//! Python as a writer and a reader: some processes, each with a list of objects.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value as Json;

use crate::common::{VARIABLES, python};
use crate::object::{Facts, SIDES};
use crate::{Outcome, Written};

const SCRIPT: &str = include_str!("script.py");

/// The processes at the same time.
const PROCESSES: usize = 2;

/// The version of the package.
pub(crate) fn version() -> Result<String> {
    let code = "import blosc2; print(blosc2.__version__, blosc2.blosclib_version.split()[0])";
    let output = Command::new(python()).args(["-I", "-c", code]).output()?;
    ensure!(output.status.success(), "Python does not import blosc2");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Writes or reads objects. Each piece of work is a JSON list of a key, an object and a path.
pub(crate) fn run(
    verb: &str,
    work: Vec<Json>,
    folder: &Path,
) -> Result<Vec<(Written, Outcome<Facts>)>> {
    let script = folder.join("script.py");
    fs::write(&script, SCRIPT)?;
    let mut parts = vec![VecDeque::new(); PROCESSES];
    for (index, piece) in work.into_iter().enumerate() {
        parts[index % PROCESSES].push_back(piece);
    }
    thread::scope(|scope| {
        let parts: Vec<_> = parts
            .into_iter()
            .enumerate()
            .map(|(part, work)| {
                let file = folder.join(format!("{verb}{part}.json"));
                let script = &script;
                scope.spawn(move || process(script, verb, &file, work))
            })
            .collect();
        let mut all = Vec::new();
        for part in parts {
            all.extend(part.join().expect("the thread does not panic")?);
        }
        Ok(all)
    })
}

/// Runs the script on a list. If it dies, the piece of work at that time has failed, and another process continues.
fn process(
    script: &Path,
    verb: &str,
    file: &Path,
    mut work: VecDeque<Json>,
) -> Result<Vec<(Written, Outcome<Facts>)>> {
    let mut done = Vec::new();
    let mut deaths = 0;
    while !work.is_empty() {
        fs::write(file, serde_json::to_vec(&work)?)?;
        let mut command = Command::new(python());
        command.arg("-I").arg(script).arg(verb).arg(file);
        command.current_dir(file.parent().context("the file is in a folder")?);
        // Python's library reads these variables.
        for (name, _) in VARIABLES {
            command.env_remove(name);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().context("Python does not start")?;
        let lines = BufReader::new(child.stdout.take().context("the output is a pipe")?).lines();
        for line in lines {
            let line = line?;
            // C prints some errors to the same output.
            let Ok(answer) = serde_json::from_str::<Json>(&line) else { continue };
            let piece = work.pop_front().context("an answer to no question")?;
            ensure!(answer[0] == piece[0], "an answer to another question: {line}");
            done.push((key(&piece[0])?, outcome(&answer)?));
        }
        let status = child.wait()?;
        if let Some(piece) = work.pop_front() {
            done.push((key(&piece[0])?, Err(format!("Python ended: {status}"))));
            deaths += 1;
        }
        if deaths > 50 {
            bail!("Python has ended {deaths} times");
        }
    }
    Ok(done)
}

fn key(key: &Json) -> Result<Written> {
    let number = |at: usize| key[at].as_u64().map(|number| number as usize).context("a number");
    Ok((number(0)?, SIDES[number(1)?]))
}

fn outcome(answer: &Json) -> Result<Outcome<Facts>> {
    Ok(match answer[1].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(serde_json::from_value(answer[2].clone())?),
    })
}
