//! `cargo xtask links`: the links of the documents lead to files and sections of this repository, and not to pages of
//! packages that are not published or that belong to another project.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::run;

/// Checks all tracked Markdown and Rust files.
pub(crate) fn links() -> Result<()> {
    let root = run::root();
    let listing =
        Command::new("git").args(["ls-files", "*.md", "*.rs"]).current_dir(&root).output()?;
    let listing = String::from_utf8(listing.stdout)?;
    let files: Vec<&str> =
        listing.lines().filter(|file| *file != "dev/xtask/src/links.rs").collect();
    let mut texts = Vec::new();
    for file in &files {
        texts.push(fs::read_to_string(root.join(file))?);
    }
    // Documents that are part of the documentation of a crate, in addition to the guide, whose paths a macro forms. Links
    // to files do not work there.
    let included: HashSet<PathBuf> = files
        .iter()
        .zip(&texts)
        .filter(|(file, _)| file.ends_with(".rs"))
        .flat_map(|(file, text)| {
            let folder = Path::new(file).parent().unwrap_or(Path::new(""));
            text.split("include_str!(\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .map(|path| normal(&folder.join(path)))
        })
        .collect();

    let (mut count, mut faults) = (0, Vec::new());
    for (file, text) in files.iter().zip(&texts) {
        for (line, target) in targets(text) {
            count += 1;
            let fault = if target.contains("://") {
                leads_to_unpublished(target)
                    .then(|| "leads to a package that is not published".into())
            } else if file.ends_with(".md")
                && !included.contains(Path::new(file))
                && !file.starts_with("blosc2/guide/")
            {
                missing(&root, Path::new(file), target)
            } else {
                let is_file = target.contains(".md") || target.starts_with("../");
                is_file.then(|| {
                    "leads to a file, which the documentation of a crate does not have".into()
                })
            };
            faults.extend(fault.map(|fault: String| format!("{file}:{line}: `{target}` {fault}")));
        }
    }
    for fault in &faults {
        println!("{fault}");
    }
    ensure!(faults.is_empty(), "links: {} of {count} links are wrong", faults.len());
    println!("links: {count} links are correct");
    Ok(())
}

/// The targets of inline links, with the numbers of their lines.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        line.split("](").skip(1).filter_map(move |rest| Some((index + 1, rest.split(')').next()?)))
    })
}

/// Whether this is the page of a package of this project, or of one with a similar name.
fn leads_to_unpublished(url: &str) -> bool {
    ["docs.rs/", "crates.io/crates/"].iter().any(|host| {
        let name = url.split(host).nth(1).unwrap_or_default();
        name.trim_start_matches('c').starts_with("blosc2")
    })
}

/// What is wrong with a relative link of a document: the file or the section does not exist.
fn missing(root: &Path, document: &Path, target: &str) -> Option<String> {
    let (path, section) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => document.to_path_buf(),
        _ => normal(&document.parent().unwrap_or(Path::new("")).join(path)),
    };
    // The folder of the C sources is empty in a new clone.
    if !root.join(&file).exists() && !file.starts_with("c-blosc2") {
        return Some(format!("leads to {}, which does not exist", file.display()));
    }
    if section.is_empty() {
        return None;
    }
    let text = fs::read_to_string(root.join(&file)).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let has_section =
        headings.map(|line| anchor(line.trim_start_matches('#'))).any(|name| name == section);
    (!has_section).then(|| format!("leads to a section that {} does not have", file.display()))
}

/// The anchor of a heading, as Git hosts form it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::CurDir => {}
            part => result.push(part),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{anchor, leads_to_unpublished, missing, normal, targets};
    use std::path::Path;

    #[test]
    fn targets_are_found() {
        let text = "a [b](c.md) [d](e#f)\n[g][h] `x`(y)\n[![i](j)](k)";
        assert_eq!(
            targets(text).collect::<Vec<_>>(),
            [(1, "c.md"), (1, "e#f"), (3, "j"), (3, "k")]
        );
    }

    #[test]
    fn pages_of_other_packages_are_recognized() {
        for name in ["docs.rs/blosc2/latest", "docs.rs/cblosc2", "crates.io/crates/blosc2-cli"] {
            assert!(leads_to_unpublished(&format!("https://{name}")), "{name}");
        }
        assert!(!leads_to_unpublished("https://docs.rs/zarrs"));
        assert!(!leads_to_unpublished("https://github.com/Blosc/c-blosc2"));
    }

    #[test]
    fn files_and_sections_have_to_exist() {
        let root = crate::run::root();
        let document = Path::new("blosc2/SAFETY.md");
        assert_eq!(missing(&root, document, "../README.md#try-it"), None);
        assert!(missing(&root, document, "../README.md#nothing").is_some());
        assert!(missing(&root, document, "nothing.md").is_some());
    }

    #[test]
    fn anchors_are_those_of_git_hosts() {
        assert_eq!(anchor(" Chunks, super-chunks & `files`"), "chunks-super-chunks--files");
        assert_eq!(normal(Path::new("a/../b/./c")), Path::new("b/c"));
    }
}
