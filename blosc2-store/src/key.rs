//! Keys of stores: paths such as `/group/array`.

/// Checks that a key starts with `/` and that no part is empty or special to a file system. The error describes the
/// fault.
pub(crate) fn check(key: &str) -> Result<(), String> {
    if !key.starts_with('/') {
        return Err(format!("the key `{key}` does not start with `/`"));
    }
    if !is_path(key) {
        return Err(format!(
            "the key `{key}` has an empty part, a part `.` or `..`, a NUL, more than {MAX_LEN} bytes or more than {MAX_PARTS} parts"
        ));
    }
    if let Some(bad) = key.chars().find(|char| matches!(char, '\\' | ':') || char.is_control()) {
        return Err(format!(
            "the key `{key}` contains the character {bad:?}, which is not allowed"
        ));
    }
    Ok(())
}

/// Maximum bytes and parts of a key.
const MAX_LEN: usize = 4096;
const MAX_PARTS: usize = 256;

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

/// Whether a key is below a group.
pub(crate) fn is_below(key: &str, group: &str) -> bool {
    let group = if group == "/" { "" } else { group };
    key.strip_prefix(group).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}
