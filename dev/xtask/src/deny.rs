//! `cargo xtask deny`: the licenses, the sources and the security advisories of all dependencies.

use std::process::Command;

use anyhow::Result;

use crate::run;

/// The workspaces with published crates.
const WORKSPACES: [&str; 3] = [".", "crates/datafusion", "dev/integrations"];

/// Runs cargo-deny with the rules of `dev/deny.toml`, and installs it if it is missing.
pub(crate) fn deny(no_advisories: bool) -> Result<()> {
    if run::read(Command::new("cargo-deny").arg("--version")).is_err() {
        run::run(&mut run::cargo(["install", "--locked", "cargo-deny"]))?;
    }
    let mut checks = vec!["bans", "licenses", "sources"];
    if !no_advisories {
        checks.push("advisories");
    }
    let config = run::root().join("dev/deny.toml");
    for workspace in WORKSPACES {
        let mut command = run::cargo(["deny", "--workspace", "--all-features", "--config"]);
        command.arg(&config).arg("check").args(&checks);
        run::run(command.current_dir(run::root().join(workspace)))?;
    }
    Ok(())
}
