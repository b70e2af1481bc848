//! The fields of a configuration. Other writers store other forms of the same values, and additional fields. Decoding
//! needs no field, because the header of each chunk contains the parameters.

use std::fmt::Display;

use blosc2::Codec;
use serde_json::{Map, Value};
use zarrs::plugin::PluginCreateError;

/// The names and codes of the compressors. Each codec of this crate supports them.
pub(crate) const CODECS: [(&str, i64, Codec); 5] = [
    ("blosclz", 0, Codec::BloscLz),
    ("lz4", 1, Codec::Lz4),
    ("lz4hc", 2, Codec::Lz4Hc),
    ("zlib", 4, Codec::Zlib),
    ("zstd", 5, Codec::Zstd),
];

/// The fields of the configuration of a codec.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) codec: &'static str,
    pub(crate) fields: &'a Map<String, Value>,
}

impl Fields<'_> {
    /// Returns a compression level from 0 to 9.
    pub(crate) fn level(&self, names: &[&str]) -> Result<Option<u8>, PluginCreateError> {
        let Some((name, value)) = self.get(names) else { return Ok(None) };
        match integer(value).and_then(|level| u8::try_from(level).ok()) {
            Some(level @ 0..=9) => Ok(Some(level)),
            _ => Err(self.unexpected(name, "an integer from 0 to 9", value)),
        }
    }

    /// Returns a size in bytes. A size of 0 or less means that the size is unknown or automatic.
    pub(crate) fn size(&self, name: &str) -> Result<Option<usize>, PluginCreateError> {
        let Some((name, value)) = self.get(&[name]) else { return Ok(None) };
        let size = integer(value).ok_or_else(|| self.unexpected(name, "an integer", value))?;
        Ok(usize::try_from(size).ok().filter(|&size| size > 0))
    }

    /// Returns a value that the field states as a name, in upper or lower case, or as a code.
    pub(crate) fn choice<T: Copy>(
        &self,
        names: &[&str],
        known: &[(&str, i64, T)],
    ) -> Result<Option<T>, PluginCreateError> {
        let Some((name, value)) = self.get(names) else { return Ok(None) };
        let found = known.iter().find(|(each, code, _)| {
            let is_name = value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(each));
            is_name || integer(value) == Some(*code)
        });
        found.map(|entry| Some(entry.2)).ok_or_else(|| {
            let known: Vec<String> =
                known.iter().map(|(each, code, _)| format!("{each} ({code})")).collect();
            self.unexpected(name, known.join(", "), value)
        })
    }

    /// Returns the first of these fields that is neither missing nor null.
    fn get<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &Value)> {
        let found = |name: &&'n str| self.fields.get(*name).map(|value| (*name, value));
        names.iter().filter_map(found).find(|(_, value)| !value.is_null())
    }

    fn unexpected(&self, name: &str, expected: impl Display, found: &Value) -> PluginCreateError {
        format!("codec {}: expected {name} to be {expected}, found {found}", self.codec).into()
    }
}

/// Returns an integer that is stored as a number or as text.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            // The conversion saturates.
            number.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
