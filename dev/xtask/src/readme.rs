//! `cargo xtask readme`: what the documents tell new users to run works.
//!
//! The lines run in a new package outside the repository, as a user would run them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{run, vendor};

/// Documents with lines that add crates to a package. The first one also contains a program.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "blosc2/guide/quick_start.md",
    "crates/object-store/README.md",
    "crates/datafusion/README.md",
    "crates/zarrs/README.md",
    "crates/hdf5/README.md",
    "crates/pco/README.md",
];

/// Runs the lines of each document. Compiles and runs the program of the first one.
pub(crate) fn readme() -> Result<()> {
    vendor::vendor(false)?;
    for document in DOCUMENTS {
        let text = fs::read_to_string(run::root().join(document))?;
        let lines = blocks(&text, "sh");
        let [in_clone, in_package, ..] = lines[..] else {
            anyhow::bail!("{document} has no lines for the clone and for the package");
        };
        ensure!(
            in_clone.contains("cargo xtask vendor") && in_package.contains("cargo add"),
            "{document}: the first lines do not fetch the sources and add the crate"
        );
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("src"))?;
        fs::write(folder.path().join("src").join("main.rs"), "fn main() {}\n")?;
        fs::write(
            folder.path().join("Cargo.toml"),
            "[package]\nname = \"temperatures\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        )?;
        let script = format!("{in_clone}\ncd \"$0\"\n{in_package}");
        let mut shell = Command::new("sh");
        shell.args(["-euc", &script]).arg(folder.path()).current_dir(run::root());
        run::run(&mut shell).with_context(|| format!("the lines of {document} fail"))?;
        if document == DOCUMENTS[0] {
            let program = *blocks(&text, "rust").first().context("the README has no program")?;
            fs::write(folder.path().join("src").join("main.rs"), program)?;
            // The directory of the workspace, so that compiled dependencies are reused.
            let mut cargo = run::cargo(["run", "--quiet"]);
            cargo.current_dir(folder.path()).env("CARGO_TARGET_DIR", run::root().join("target"));
            run::run(&mut cargo).context("the first program of the README fails")?;
            ensure!(folder.path().join("temperatures.b2nd").is_file(), "it wrote no file");
        } else {
            let mut cargo = run::cargo(["metadata", "--format-version", "1"]);
            run::read(cargo.current_dir(folder.path()))
                .with_context(|| format!("cargo cannot resolve the crates of {document}"))?;
        }
        println!("readme: the lines of {document} work in an empty package");
    }
    Ok(())
}

/// The contents of the fenced blocks in this language, in their order.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_are_those_of_the_language() {
        let text = "a\n```sh\none\n```\n```rust\nlet x;\n```\n```sh\ntwo\nthree\n```\n";
        assert_eq!(blocks(text, "sh"), ["one\n", "two\nthree\n"]);
        assert_eq!(blocks(text, "rust"), ["let x;\n"]);
        assert!(blocks("```toml\n```", "sh").is_empty());
    }
}
