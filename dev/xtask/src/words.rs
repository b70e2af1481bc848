//! `cargo xtask words`: no wording in docs, messages and comments that the project's vocabulary replaces, and no hidden
//! items.
//!
//! Several authors write the documentation. The list keeps their wording uniform and easy to understand.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::run;

/// Wording, and what to write instead.
const REPLACED: [(&str, &str); 23] = [
    ("#[doc(hidden)]", "a private item, a private supertrait, or a documented item"),
    ("all the same", "still, nevertheless"),
    ("anew", "again, re-read, recompress"),
    ("blocks of different lengths", "variable-length blocks"),
    ("brought up to date", "converted"),
    ("chunks of different lengths", "variable-length chunks"),
    ("for ever", "forever; deadlocks"),
    ("from strangers", "untrusted input"),
    ("gives back", "returns"),
    ("is told", "receives; is set to"),
    ("lists for each dimension", "orthogonal indexing"),
    ("nothing is written yet", "uninitialized"),
    ("of before", "legacy; older than"),
    ("of one's own", "user-defined; custom"),
    ("of the program's own", "user-defined; custom"),
    ("of which", "two sentences"),
    ("on the device", "on disk"),
    ("put right", "corrected"),
    ("sees that", "checks; ensures"),
    ("so many", "`n`; up to `limit`"),
    ("so much", "`n` bytes"),
    ("taken back", "rolled back"),
    ("to the device", "to disk"),
];

/// This list, and text that others wrote.
const SKIPPED: [&str; 2] = ["dev/xtask/src/words.rs", "tests/python_files/"];

/// Checks all source files, patches and documents of the repository.
pub(crate) fn words() -> Result<()> {
    let root = run::root();
    let files = run::read(
        Command::new("git")
            .args(["ls-files", "*.rs", "*.md", "*.c", "*.h", "*.patch"])
            .current_dir(&root),
    )?;
    let files =
        files.lines().filter(|file| !SKIPPED.iter().any(|skipped| file.starts_with(skipped)));
    let (mut count, mut found) = (0, 0);
    for file in files {
        count += 1;
        for (index, line) in fs::read_to_string(root.join(file))?.lines().enumerate() {
            let lower = line.to_lowercase();
            for (wording, instead) in REPLACED.iter().filter(|(wording, _)| holds(&lower, wording))
            {
                found += 1;
                println!("{file}:{}: `{wording}`, write: {instead}", index + 1);
            }
        }
    }
    ensure!(
        found == 0,
        "words: {found} places in {count} files; see the list in dev/xtask/src/words.rs"
    );
    println!("words: none of {} in {count} files", REPLACED.len());
    Ok(())
}

/// Whether the line contains these whole words.
fn holds(line: &str, wording: &str) -> bool {
    let is_inside = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    line.match_indices(wording).any(|(at, _)| {
        let bytes = line.as_bytes();
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !is_inside(before) && !is_inside(bytes.get(at + wording.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn whole_words_are_found() {
        assert!(holds("/// made anew.", "anew") && holds("anew", "anew"));
        assert!(!holds("a canewood", "anew") && !holds("renew it", "anew"));
    }
}
