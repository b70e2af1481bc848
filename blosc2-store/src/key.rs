//! The keys of stores: paths of names.

/// Sees that a key starts with `/` and has no parts that are empty or mean something to a file system. The error
/// says what is wrong.
pub(crate) fn check(key: &str) -> Result<(), String> {
    if !key.starts_with('/') {
        return Err(format!("the key `{key}` does not start with `/`"));
    }
    if !is_path(key) {
        return Err(format!(
            "the key `{key}` has a part that is empty or made of dots, or over {MAX_LEN} bytes or {MAX_PARTS} parts"
        ));
    }
    if let Some(bad) = key.chars().find(|char| matches!(char, '\\' | ':') || char.is_control()) {
        return Err(format!("the key `{key}` has a character {bad:?}"));
    }
    Ok(())
}

/// The most bytes of a key, and the most parts.
const MAX_LEN: usize = 4096;
const MAX_PARTS: usize = 256;

/// Whether something in a file is a path of names: other things are no keys.
pub(crate) fn is_path(key: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    let parts = key.strip_prefix('/').filter(|_| key.len() <= MAX_LEN).map(|key| key.split('/'));
    parts.is_some_and(|mut parts| parts.clone().count() <= MAX_PARTS && parts.all(is_name))
}

/// The group that a key is in: `/` for those at the top.
pub(crate) fn parent(key: &str) -> &str {
    match key.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// The groups that a key is in, from the inmost to those at the top; the root is not among them.
pub(crate) fn above(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| Some(parent(key)).filter(|above| *above != "/")).skip(1)
}

/// Whether a key is below a group.
pub(crate) fn is_below(key: &str, group: &str) -> bool {
    let group = if group == "/" { "" } else { group };
    key.strip_prefix(group).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}
