//! Prints the public API of a crate, one item per line. `cargo xtask api` calls it with the crate's description: the
//! file that rustdoc writes as JSON.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use public_api::rustdoc_types::FORMAT_VERSION;

fn main() -> Result<()> {
    let description = env::args_os().nth(1).map(PathBuf::from);
    print!("{}", listing(&description.context("the path of a description is missing")?)?);
    Ok(())
}

fn listing(description: &Path) -> Result<String> {
    let text = fs::read_to_string(description)
        .with_context(|| format!("rustdoc did not write {}", description.display()))?;
    let format = format_version(&text)?;
    if format != FORMAT_VERSION {
        bail!(
            "this rustdoc describes crates in format {format}, and the crate `public-api` reads \
             format {FORMAT_VERSION}: run the command with the toolchain that dev/xtask/src/api.rs \
             names, or let dev/xtask/public-api/Cargo.toml name the version of `public-api` that \
             depends on `rustdoc-types` 0.{format}, change TOOLCHAIN in dev/xtask/src/api.rs, run \
             `cargo xtask api`, and commit what it changes"
        );
    }
    let api = public_api::Builder::from_rustdoc_json(description)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    Ok(api.to_string())
}

/// The format version of a description, the only field that every version has.
fn format_version(description: &str) -> Result<u32> {
    // Inside a string it has backslashes before its quotation marks.
    let (_, number) = description
        .rsplit_once("\"format_version\":")
        .context("the description does not name its format")?;
    let number = number.trim_start();
    let end = number.find(|char: char| !char.is_ascii_digit()).unwrap_or(number.len());
    number[..end].parse().context("the description names no number as its format")
}

#[cfg(test)]
mod tests {
    use super::format_version;

    #[test]
    fn format_is_read_of_any_description() {
        let text = r#"{"docs":"has \"format_version\":9","format_version":57}"#;
        assert_eq!(format_version(text).unwrap(), 57);
        assert_eq!(format_version("{\"format_version\": 60,\n\"root\":0}").unwrap(), 60);
        assert!(format_version("{}").is_err());
        assert!(format_version(r#"{"format_version":"new"}"#).is_err());
    }
}
