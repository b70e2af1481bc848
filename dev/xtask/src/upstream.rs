//! `cargo xtask upstream`: the test suites of C-Blosc2 and of python-blosc2 as judges of this project.
//!
//! The C programs run on the patched library of `blosc2-sys`. The tests of Python run on its own library, and every file
//! and cframe that they make is then read by this project and compared with what Python reads. The results are written
//! to `docs/reports/UPSTREAM.md`.

mod c;
mod python;

use std::fs;

use anyhow::{Context, Result};

use crate::run;
use crate::steps::Steps;
use crate::vendor;

/// A suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The programs of C-Blosc2: tests, examples and some benches
    C,
    /// The tests of python-blosc2, and the files that they make
    Python,
}

/// Runs the suites, or one of them, and writes their results to the report. `again`: only compares the files that the
/// tests of Python made last time.
pub(crate) fn upstream(only: Option<Part>, again: bool) -> Result<()> {
    let mut steps = Steps::new("upstream");
    steps.step("sources", || vendor::vendor(false))?;
    if only.is_none_or(|only| only == Part::C) {
        write("c", &steps.step("c", c::programs)?)?;
    }
    if only.is_none_or(|only| only == Part::Python) {
        write("python", &steps.step("python", || python::suite(again))?)?;
    }
    steps.finish();
    Ok(())
}

/// Prints the results of a suite, and replaces them in the report.
fn write(name: &str, results: &str) -> Result<()> {
    println!("{results}");
    let path = run::root().join("docs/reports/UPSTREAM.md");
    let text = fs::read_to_string(&path).context("UPSTREAM.md cannot be read")?;
    let text = replaced(&text, name, results)
        .with_context(|| format!("UPSTREAM.md needs the markers of the results of `{name}`"))?;
    fs::write(&path, text).context("UPSTREAM.md cannot be written")
}

/// The report with other results of a suite.
fn replaced(text: &str, name: &str, results: &str) -> Option<String> {
    let begin = format!("<!-- written by cargo xtask upstream {name} -->\n");
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}{begin}{}\n<!-- end -->{after}", results.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_the_results_of_one_suite_are_replaced() {
        let text = |c: &str, python: &str| {
            format!(
                "before\n<!-- written by cargo xtask upstream c -->\n{c}\n<!-- end -->\nbetween\n\
                 <!-- written by cargo xtask upstream python -->\n{python}\n<!-- end -->\nafter\n"
            )
        };
        assert_eq!(replaced(&text("1", "2"), "c", "3\n"), Some(text("3", "2")));
        assert_eq!(replaced(&text("1", "2"), "python", "3\n4"), Some(text("1", "3\n4")));
        assert_eq!(replaced(&text("1", "2"), "java", "3"), None);
    }
}
