//! Libraries in other processes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::protocol::{Outcome, Peer, Task};

/// A process that waits for tasks.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the program. It computes its data while others start.
    pub(crate) fn start(name: &'static str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let input = child.stdin.take().expect("stdin is a pipe");
        let output = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Self { name, child, input, output }
    }

    /// The next line that the program prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        if !read.is_ok_and(|len| len > 0) {
            panic!("{} ended; its message is above", self.name);
        }
        line.trim_end().to_owned()
    }
}

impl Peer for Process {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        let sent = writeln!(self.input, "{task}").and_then(|()| self.input.flush());
        sent.unwrap_or_else(|error| panic!("{} reads no tasks: {error}", self.name));
        Outcome::parse(&self.line())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It waits for a task, or this program failed while it works.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
