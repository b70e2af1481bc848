//! Keys of stores, paths such as `/group/array`, and the names of their files. No other module converts one to the
//! other, or decides which names are reserved.

use crate::tag::shortened;

/// The file with the embedded store of small entries, which every store has.
pub(crate) const INDEX: &str = "embed.b2e";
/// The lock file of a store in a directory: that of the frame [`INDEX`], which Python locks too.
pub(crate) const LOCK: &str = "embed.b2e.b2lock";
/// The directory for temporary files inside a store whose parent directory cannot contain them.
pub(crate) const WORK: &str = "embed.b2e.b2work";
/// The file extensions of arrays, super-chunks and batch arrays.
pub(crate) const ENDINGS: [&str; 3] = ["b2nd", "b2f", "b2b"];
/// The key below a group that holds its attributes.
pub(crate) const ATTRIBUTES: &str = "/__vlmeta__";
/// The key of the description of a table, below the key of the table.
pub(crate) const META: &str = "/_meta";

/// Maximum bytes and parts of a key.
const MAX_LEN: usize = 4096;
pub(crate) const MAX_PARTS: usize = 256;

/// The name of the file of a key, with `/` as the separator.
pub(crate) fn to_name(key: &str, ending: &str) -> String {
    format!("{}.{ending}", key.strip_prefix('/').unwrap_or(key))
}

/// The key and the extension of a file, if its name is that of a key. Python: `os.path.splitext`, by which the dots at
/// the start of the last part do not start an extension.
pub(crate) fn of_name(name: &str) -> Option<(String, &str)> {
    if name == INDEX || is_internal(name) {
        return None;
    }
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let shown = name[last..].trim_start_matches('.');
    let (stem, ending) = match shown.rfind('.') {
        Some(dot) => {
            let dot = name.len() - shown.len() + dot;
            (&name[..dot], &name[dot + 1..])
        }
        None => (name, ""),
    };
    Some((format!("/{stem}"), ending)).filter(|(key, _)| is_path(key))
}

/// Whether a file in the directory of a store is not part of its content: the lock, or a temporary file. Neither can be
/// the file of a key, because the files of keys have an extension of [`ENDINGS`].
pub(crate) fn is_internal(name: &str) -> bool {
    let is_of_key = || ENDINGS.iter().any(|ending| name.ends_with(&format!(".{ending}")));
    let is_below = |rest: &str| rest.starts_with('/');
    name == LOCK || name.strip_prefix(WORK).is_some_and(is_below) && !is_of_key()
}

/// Checks that a key starts with `/`, that no part is empty or special to a file system, and that its file has this key
/// in Python too. The error describes the fault.
pub(crate) fn check(key: &str) -> Result<(), String> {
    let shown = shortened(key);
    if !key.starts_with('/') {
        return Err(format!("the key `{shown}` does not start with `/`"));
    }
    if !is_path(key) {
        return Err(format!(
            "the key `{shown}` has an empty part, a part `.` or `..`, a NUL, more than {MAX_LEN} bytes or more than {MAX_PARTS} parts"
        ));
    }
    if let Some(bad) = key.chars().find(|char| matches!(char, '\\' | ':') || char.is_control()) {
        return Err(format!(
            "the key `{shown}` contains the character {bad:?}, which is not allowed"
        ));
    }
    if key.rsplit('/').next().is_some_and(|last| last.chars().all(|char| char == '.')) {
        return Err(format!(
            "the last part of the key `{shown}` consists of dots: its file would have another key"
        ));
    }
    Ok(())
}

/// Checks that a store of files can have this key. The error describes the fault.
pub(crate) fn check_file(key: &str) -> Result<(), String> {
    check(key)?;
    let mut parts = key[1..].split('/');
    let is_reserved = match (parts.next(), parts.next_back()) {
        (Some(INDEX | LOCK | WORK), Some(_)) => true,
        (first, last) => last.or(first) == Some(&ATTRIBUTES[1..]),
    };
    if is_reserved { Err(format!("the key `{key}` is reserved")) } else { Ok(()) }
}

/// Whether a name in a file is a valid key.
pub(crate) fn is_path(key: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    let parts = key.strip_prefix('/').filter(|_| key.len() <= MAX_LEN).map(|key| key.split('/'));
    parts.is_some_and(|mut parts| parts.clone().count() <= MAX_PARTS && parts.all(is_name))
}

/// The group of a key: `/` for keys at the top level.
pub(crate) fn parent(key: &str) -> &str {
    match key.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// The groups above a key, from the innermost to the top level, without the root.
pub(crate) fn above(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| Some(parent(key)).filter(|above| *above != "/")).skip(1)
}

/// All groups above keys, each once, without the root. The keys have to be sorted; the groups are not.
pub(crate) fn groups<'a>(keys: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let mut last = "";
    keys.into_iter().flat_map(move |key| {
        // The keys below a group are consecutive, so that a group is new if the last key is not below it.
        let common = last.bytes().zip(key.bytes()).take_while(|(a, b)| a == b).count();
        last = key;
        let slashes = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
        slashes.map(|(at, _)| at).filter(move |&at| at > 0 && at >= common).map(|at| &key[..at])
    })
}

pub(crate) fn is_below(key: &str, group: &str) -> bool {
    let group = if group == "/" { "" } else { group };
    key.strip_prefix(group).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn groups_are_those_above_each_key() {
        let parts = ["a", "a-", "a0", "b"];
        let mut keys: Vec<String> = Vec::new();
        for one in parts {
            keys.push(format!("/{one}"));
            for two in parts {
                keys.push(format!("/{one}/{two}"));
                keys.push(format!("/{two}/{one}/{two}"));
            }
        }
        keys.sort_unstable();
        // With all keys, and with a part of them.
        for step in 1..7 {
            let keys = || keys.iter().step_by(step).map(String::as_str);
            let found: Vec<&str> = groups(keys()).collect();
            let expected: BTreeSet<&str> = keys().flat_map(above).collect();
            assert_eq!(found.len(), expected.len());
            assert_eq!(BTreeSet::from_iter(found), expected);
        }
    }

    #[test]
    fn names_and_keys() {
        for (name, key, ending) in [
            ("a.b2nd", "/a", "b2nd"),
            ("a.b/c", "/a.b/c", ""),
            ("a.b/c.d.b2f", "/a.b/c.d", "b2f"),
            ("....b2nd", "/....b2nd", ""),
            ("x/.b2nd", "/x/.b2nd", ""),
            (".a.b2nd", "/.a", "b2nd"),
            (".blosc2-data/a.b2nd", "/.blosc2-data/a", "b2nd"),
            ("embed.b2nd", "/embed", "b2nd"),
            ("embed.b2e.b2work/a.b2nd", "/embed.b2e.b2work/a", "b2nd"),
            ("x/embed.b2e", "/x/embed", "b2e"),
        ] {
            assert_eq!(of_name(name), Some((key.to_owned(), ending)), "{name}");
        }
        for name in [INDEX, LOCK, "embed.b2e.b2work/new", "embed.b2e.b2work/x/new", "../a", "a//b"]
        {
            assert_eq!(of_name(name), None, "{name}");
        }
        for key in
            ["/a", "/a.b/c", "/.a", "/a.", "/embed", "/.../x", "/x/__vlmeta__/y", "/embed.b2e"]
        {
            check_file(key).unwrap();
            for ending in ENDINGS {
                assert_eq!(of_name(&to_name(key, ending)), Some((key.to_owned(), ending)));
            }
        }
        for key in ["/...", "/a/...", "/__vlmeta__", "/a/__vlmeta__", "/embed.b2e/x"] {
            check_file(key).unwrap_err();
        }
    }
}
