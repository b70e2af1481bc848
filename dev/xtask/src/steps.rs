//! The steps of a command, each with the time that it took.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The steps that a command has run. At the end it prints a table of their times.
#[derive(Debug)]
pub(crate) struct Steps {
    command: &'static str,
    start: Instant,
    done: Vec<(String, Duration)>,
}

impl Steps {
    pub(crate) fn new(command: &'static str) -> Self {
        Self { command, start: Instant::now(), done: Vec::new() }
    }

    /// Runs one step. An error names the step.
    pub(crate) fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("{}: {name}", self.command);
        let start = Instant::now();
        let result = work()
            .with_context(|| format!("`cargo xtask {}` stopped at `{name}`", self.command))?;
        println!("{}: {name} took {:.1} s", self.command, start.elapsed().as_secs_f64());
        self.done.push((name.to_owned(), start.elapsed()));
        Ok(result)
    }

    /// Prints the table of the steps.
    pub(crate) fn finish(self) {
        for (name, time) in &self.done {
            println!("{}: {name:<32} {:>6.1} s", self.command, time.as_secs_f64());
        }
        let total = self.start.elapsed().as_secs_f64();
        println!("{}: {:<32} {total:>6.1} s", self.command, "everything passed");
    }
}
