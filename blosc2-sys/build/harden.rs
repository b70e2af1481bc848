//! The patches that make upstream's sources safe to call, applied to a copy of them.
//!
//! `build/patches` holds them, in the order of their names. Each opens with its reason and with what
//! upstream calls it where it has been reported. When upstream changes the lines that a patch was
//! written for, the build stops here, so that none can get lost.

use std::fs;
use std::path::{Path, PathBuf};

use diffy::patch_set::{ParseOptions, PatchSet};

use crate::{fail, var};

/// Copies what the build needs to `target`, with the patches when `hardened`.
pub(crate) fn copy_sources(source: &Path, target: &Path, hardened: bool) {
    for dir in ["include", "blosc", "plugins"] {
        copy_tree(&source.join(dir), &target.join(dir));
    }
    if hardened {
        let patches = PathBuf::from(var("CARGO_MANIFEST_DIR")).join("build").join("patches");
        let mut paths = entries(&patches);
        paths.sort();
        for path in paths {
            apply(&path, target);
        }
    }
}

/// Applies one patch, which may change several files.
fn apply(path: &Path, target: &Path) {
    let text = read(path);
    let stop = |what: String| -> ! {
        fail(&format!("the patch {} does not fit these sources: {what}\n\n{text}", path.display()))
    };
    let mut files = 0;
    for part in PatchSet::parse(&text, ParseOptions::unidiff()) {
        let part = part.unwrap_or_else(|error| stop(error.to_string()));
        let operation = part.operation().strip_prefix(1);
        let (diffy::patch_set::FileOperation::Modify { modified, .. }, Some(change)) =
            (operation, part.patch().as_text())
        else {
            stop("it does more than to change files".to_owned());
        };
        let file = target.join(modified.as_ref());
        let patched = diffy::apply(&read(&file), change)
            .unwrap_or_else(|error| stop(format!("{modified}: {error}")));
        write(&file, &patched);
        files += 1;
    }
    if files == 0 {
        stop("it holds no change".to_owned());
    }
}

fn copy_tree(source: &Path, target: &Path) {
    for path in entries(source) {
        let copy = target.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_tree(&path, &copy);
        } else if path.extension().is_some_and(|suffix| suffix == "c" || suffix == "h") {
            write(&copy, &read(&path));
        }
    }
}

/// What a folder holds.
fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", folder.display())))
}

/// A text, its lines ending as on Unix.
fn read(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", path.display())))
        .replace("\r\n", "\n")
}

fn write(path: &Path, content: &str) {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, content))
        .unwrap_or_else(|error| fail(&format!("cannot write {}: {error}", path.display())));
}
