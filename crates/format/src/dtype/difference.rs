//! The difference of two dtypes, for messages.

use std::collections::HashMap;

use super::{Dtype, Field};

impl Dtype {
    /// Returns a description of the first difference between this type and the requested type
    /// `asked`. Examples are a missing field, or a field with another type or offset. Returns
    /// `None` if the types [are equivalent](Self::is_equivalent).
    ///
    /// ```
    /// use blosc2_format::dtype::{Dtype, Field};
    ///
    /// let stored = Dtype::parse("[('ok', '?'), ('born', '<i8')]")?;
    /// let fields = [Field::new("ok", 0, Dtype::parse("?")?), Field::new("born", 8, Dtype::parse("<i8")?)];
    /// let difference = stored.difference(&Dtype::structure(16, fields)?).unwrap();
    /// assert_eq!(difference, "field `born` is at byte 1, asked for at byte 8: a packed structure?");
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    pub fn difference(&self, asked: &Self) -> Option<String> {
        let differ = !self.is_equivalent(asked);
        differ.then(|| between(&self.without_padding(), &asked.without_padding(), ""))
    }
}

/// Describes the difference of two types without padding. `path` contains the names of the
/// enclosing fields, each followed by a dot.
fn between(found: &Dtype, asked: &Dtype, path: &str) -> String {
    let what = match path.strip_suffix('.') {
        Some(name) => format!("field `{name}` is"),
        None => "the items are".to_owned(),
    };
    if let (Some((item, shape)), Some((asked, asked_shape))) = (found.subarray(), asked.subarray())
        && shape == asked_shape
    {
        return between(item, asked, path);
    }
    let (Some(fields), Some(others)) = (found.fields(), asked.fields()) else {
        return format!("{what} `{found}`, asked for as `{asked}`");
    };
    let (there, wanted) = (by_name(fields), by_name(others));
    if let Some(missing) = others.iter().find(|other| !there.contains_key(other.name())) {
        return format!("there is no field `{path}{}`", missing.name());
    }
    let mut ends = (0, 0);
    for field in fields {
        let name = field.name();
        let Some(other) = wanted.get(name) else {
            return format!("field `{path}{name}` is not asked for");
        };
        if field.dtype != other.dtype {
            return between(&field.dtype, &other.dtype, &format!("{path}{name}."));
        }
        if field.offset != other.offset {
            let hint = match (field.offset == ends.0, other.offset == ends.1) {
                (true, false) => ": a packed structure?",
                (false, true) => ": a structure with padding?",
                _ => "",
            };
            let (at, asked) = (field.offset, other.offset);
            return format!(
                "field `{path}{name}` is at byte {at}, asked for at byte {asked}{hint}"
            );
        }
        ends = (field.offset + field.dtype.size, other.offset + other.dtype.size);
    }
    if found.size != asked.size {
        return format!("{what} {} bytes long, asked for as {}", found.size, asked.size);
    }
    let order = |fields: &[Field]| {
        let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name())).collect();
        names.join(", ")
    };
    format!("{what} in the order {}, asked for as {}", order(fields), order(others))
}

fn by_name(fields: &[Field]) -> HashMap<&str, &Field> {
    fields.iter().map(|field| (field.name(), field)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(found: &str, asked: &str) -> Option<String> {
        Dtype::parse(found).unwrap().difference(&Dtype::parse(asked).unwrap())
    }

    #[test]
    fn first_difference_is_named() {
        let packed = "[('ok', '?'), ('born', '<i8')]";
        let aligned =
            "{'names': ['ok', 'born'], 'formats': ['?', '<i8'], 'offsets': [0, 8], 'itemsize': 16}";
        let of = |found, asked| difference(found, asked).unwrap();
        let at = "field `born` is at byte 1, asked for at byte 8: a packed structure?";
        assert_eq!(of(packed, aligned), at);
        let at = "field `born` is at byte 8, asked for at byte 1: a structure with padding?";
        assert_eq!(of(aligned, packed), at);
        assert_eq!(difference(packed, packed), None);
        assert_eq!(difference("[('ok', '?'), ('f1', 'V7'), ('born', '<i8')]", aligned), None);
        // The cause, not the offsets that follow from it.
        let other = "[('ok', '<i2'), ('born', '<i8')]";
        assert_eq!(of(other, packed), "field `ok` is `<i2`, asked for as `|b1`");
        let more = "[('ok', '?'), ('id', '<u4'), ('born', '<i8')]";
        assert_eq!(of(packed, more), "there is no field `id`");
        assert_eq!(of(more, packed), "field `id` is not asked for");
        let (inner, deep) = ("[('at', [('x', '<f4')], (2,))]", "[('at', [('x', '<f8')], (2,))]");
        assert_eq!(of(inner, deep), "field `at.x` is `<f4`, asked for as `<f8`");
        assert_eq!(of("<f4", "<f8"), "the items are `<f4`, asked for as `<f8`");
        let long = "{'names': ['a'], 'formats': ['?'], 'offsets': [0], 'itemsize': 4}";
        assert_eq!(of(long, "[('a', '?')]"), "the items are 4 bytes long, asked for as 1");
        let turned =
            "{'names': ['b', 'a'], 'formats': ['?', '?'], 'offsets': [1, 0], 'itemsize': 2}";
        let order = "the items are in the order `b`, `a`, asked for as `a`, `b`";
        assert_eq!(of(turned, "[('a', '?'), ('b', '?')]"), order);
    }
}
