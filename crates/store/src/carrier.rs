//! Carriers: files of Python that describe a computation or a reference instead of holding data.

use std::fmt;

use crate::blosc2::{ErrorKind, Result, SChunk, Value};

use crate::without_secrets;

/// The kind of a [`Carrier`].
///
/// ```
/// use blosc2::NDArray;
/// use blosc2_store::{CarrierKind, Object};
///
/// // Whether an object is a computation of Python, without data.
/// fn is_computation(object: &Object) -> bool {
///     let Object::Carrier(carrier) = object else { return false };
///     matches!(carrier.kind(), CarrierKind::LazyExpr | CarrierKind::LazyUdf)
/// }
/// assert!(!is_computation(&Object::NDArray(NDArray::from_slice(&[1u8, 2], &[2])?)));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CarrierKind {
    /// An expression of other arrays. Python: `LazyExpr`.
    LazyExpr,
    /// A function of other arrays, with its source code. Python: `LazyUDF`.
    LazyUdf,
    /// A cache for an array that is stored elsewhere. It contains the chunks that were fetched. Python: `Proxy`.
    Proxy,
    /// A reference to an array at an address, with or without a cache of fetched chunks. Python: `RemoteArray`.
    RemoteArray,
    /// A reference to a store at an address. Python: `RemoteStore`.
    RemoteStore,
    /// A reference to an array on a server of [Caterva2](https://github.com/ironArray/Caterva2). Python: `C2Array`.
    C2Array,
    /// A kind that is unknown to this crate.
    Other,
}

impl CarrierKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LazyExpr => "lazyexpr",
            Self::LazyUdf => "lazyudf",
            Self::Proxy => "proxy",
            Self::RemoteArray => "remotearray",
            Self::RemoteStore => "remotestore",
            Self::C2Array => "c2array",
            Self::Other => "carrier",
        }
    }
}

/// A file or entry written by Python that holds no data: it describes a computation, or refers to data elsewhere.
///
/// This crate returns the description. It does not run code, and it opens the operands of an expression only in a call
/// of [`open_expression`](Self::open_expression). The items of the super-chunk are not data, except in the chunks that a
/// proxy or a remote array has fetched and stored.
///
/// ```
/// use blosc2_store::{CarrierKind, Object};
/// # use blosc2::{NDArray, OpenOptions, Value};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("sum.b2nd");
/// # let array = NDArray::builder().zeros::<f32>(&[3])?;
/// # let mut schunk = OpenOptions::new().write(true).open(array.schunk().to_cframe()?)?;
/// # let reference = Value::from([("kind", "urlpath".into()), ("urlpath", "a.b2nd".into())]);
/// # let operands = Value::from([("a", reference)]);
/// # let content = [("kind", "lazyexpr".into()), ("expression", "a + 1".into()), ("operands", operands)];
/// # schunk.vlmeta_mut().with_reserved().set_value("b2o", &Value::from(content))?;
/// # schunk.save(&path)?;
///
/// // Python: a = blosc2.open("a.b2nd"); blosc2.lazyexpr("a + 1").save("sum.b2nd")
/// let Object::Carrier(carrier) = Object::open(&path)? else { panic!("not a carrier") };
/// assert_eq!(carrier.kind(), CarrierKind::LazyExpr);
/// assert_eq!(carrier.to_string(), "a Python lazy expression, `a + 1`, of a: a.b2nd; its items hold no data");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Carrier {
    kind: CarrierKind,
    description: Value,
    schunk: Option<SChunk>,
}

impl Carrier {
    /// Returns the carrier in a super-chunk; `Err` with the super-chunk if its items are plain data.
    pub(crate) fn of(schunk: SChunk) -> Result<Result<Self, SChunk>> {
        let Some(name) = schunk.info().python_object else { return Ok(Err(schunk)) };
        // Older versions store the description in a metalayer of another name.
        let (fixed, variable) = match name {
            "LazyArray" => ("LazyArray", "_LazyArray"),
            name => (name, name),
        };
        let marker = schunk.meta().value(fixed)?;
        let description = match schunk.vlmeta().value(variable)? {
            Some(description) => description,
            None => marker.unwrap_or(Value::None),
        };
        let kind = match (name, description.get("kind").and_then(Value::as_str)) {
            ("proxy-source", _) => CarrierKind::Proxy,
            ("LazyArray", _) if description.get("UDF").and_then(Value::as_str).is_some() => {
                CarrierKind::LazyUdf
            }
            ("LazyArray", _) => CarrierKind::LazyExpr,
            (_, Some("lazyexpr")) => CarrierKind::LazyExpr,
            (_, Some("lazyudf")) => CarrierKind::LazyUdf,
            (_, Some("remote_array")) => CarrierKind::RemoteArray,
            (_, Some("c2array")) => CarrierKind::C2Array,
            _ => CarrierKind::Other,
        };
        Ok(Ok(Self { kind, description, schunk: Some(schunk) }))
    }

    /// A reference in a store: to an array on a Caterva2 server, or to an object in its registry.
    pub(crate) fn of_reference(description: Value) -> Self {
        let kind = match description.get("kind").and_then(Value::as_str) {
            None => CarrierKind::C2Array,
            Some("remote_store") => CarrierKind::RemoteStore,
            Some(_) => CarrierKind::Other,
        };
        Self { kind, description, schunk: None }
    }

    /// A directory that caches parts of a remote store.
    pub(crate) fn of_remote_store(description: Value) -> Self {
        Self { kind: CarrierKind::RemoteStore, description, schunk: None }
    }

    /// Returns the kind.
    pub fn kind(&self) -> CarrierKind {
        self.kind
    }

    /// Returns the expression, or the source code of the function. Returns `None` for a reference.
    pub fn expression(&self) -> Option<&str> {
        let parts = ["expression", "udf_source", "UDF"];
        parts.into_iter().find_map(|part| self.description.get(part)?.as_str())
    }

    /// Returns the operands of a computation: the name of each operand, and its path or address, which is `?` if
    /// unknown.
    pub fn operands(&self) -> Vec<(String, String)> {
        let Some(Value::Map(operands)) = self.description.get("operands") else { return vec![] };
        let named = operands.iter().map(|(name, place)| {
            (name.as_str().unwrap_or("?").to_owned(), place_of(place).unwrap_or("?".to_owned()))
        });
        named.collect()
    }

    /// Returns the path or address of the data. Returns `None` for a computation, or if the address is unknown.
    pub fn source(&self) -> Option<String> {
        place_of(&self.description).or_else(|| place_of(self.description.get("source")?))
    }

    /// Returns the complete description as it is stored in the file.
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// Converts the carrier into its super-chunk, for example for
    /// [`from_python_object`](blosc2::array::from_python_object). Returns `None` if
    /// the carrier is an entry of a store that is only a reference: such an entry has no super-chunk.
    pub fn into_schunk(self) -> Option<SChunk> {
        self.schunk
    }

    /// Returns the super-chunk. Returns `None` if the carrier is an entry of a store that is only a reference: such an
    /// entry has no super-chunk.
    pub fn schunk(&self) -> Option<&SChunk> {
        self.schunk.as_ref()
    }

    /// Whether it is a store that caches parts of a remote store.
    fn is_cached_store(&self) -> bool {
        let kind = self.description.get("kind").and_then(Value::as_str);
        self.kind == CarrierKind::RemoteStore && kind != Some("remote_store")
    }

    /// The error of reading it as data.
    pub(crate) fn refused(&self, doing: &str) -> crate::blosc2::Error {
        crate::blosc2::Error::new(ErrorKind::Unsupported, doing, format!("it is {self}"))
    }
}

/// The path or address in a reference.
fn place_of(place: &Value) -> Option<String> {
    if let Some(path) = place.as_str() {
        return Some(path.to_owned());
    }
    let text = |name| place.get(name).and_then(Value::as_str);
    let list = |name| place.get(name)?.as_list()?.first()?.as_str();
    let path = text("urlpath").or_else(|| text("path")).or_else(|| list("urlpath"));
    let path = path.or_else(|| text("local_abspath"))?;
    let path = match text("urlbase") {
        Some(base) => format!("{}/{path}", base.trim_end_matches('/')),
        None => path.to_owned(),
    };
    Some(match text("key") {
        Some(key) => format!("{path}:{key}"),
        None => path,
    })
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            CarrierKind::LazyExpr => "a Python lazy expression",
            CarrierKind::LazyUdf => "a Python lazy function",
            CarrierKind::Proxy => "the cache of a Python proxy",
            CarrierKind::RemoteArray => "a Python remote array",
            CarrierKind::RemoteStore if self.is_cached_store() => {
                "the cache of a Python remote store"
            }
            CarrierKind::RemoteStore => "a Python reference to a remote store",
            CarrierKind::C2Array => "a reference to an array on a Caterva2 server",
            CarrierKind::Other => "a reference to a Python object",
        })?;
        match (self.expression(), self.description.get("name").and_then(Value::as_str)) {
            (_, Some(name)) if self.kind == CarrierKind::LazyUdf => write!(f, ", `{name}`")?,
            // Only the first line of source code.
            (Some(text), _) => write!(f, ", `{}`", text.lines().next().unwrap_or_default())?,
            _ => {}
        }
        let operands = self.operands();
        if !operands.is_empty() {
            let operands =
                operands.iter().map(|(name, place)| format!("{name}: {}", without_secrets(place)));
            write!(f, ", of {}", operands.collect::<Vec<_>>().join(", "))?;
        }
        if let Some(source) = self.source() {
            write!(f, ", of {}", without_secrets(&source))?;
        }
        f.write_str(match self.kind {
            CarrierKind::Proxy => "; items not fetched yet hold no data",
            _ if self.is_cached_store() => "; it holds only the parts that were fetched",
            _ if self.schunk.is_none() => "; it holds no data",
            _ => "; its items hold no data",
        })
    }
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_references_are_not_shown() {
        let url = "https://me:pass@host.org/a.b2nd?token=1234";
        let reference = Value::from([("kind", "urlpath".into()), ("urlpath", url.into())]);
        let operands = Value::from([("a", reference.clone())]);
        let computation = [("expression", "a + 1".into()), ("operands", operands)];
        for description in [reference, computation.into()] {
            let carrier = Carrier::of_reference(description).to_string();
            assert!(carrier.contains("https://...@host.org/a.b2nd?..."), "{carrier}");
            assert!(!carrier.contains("pass") && !carrier.contains("1234"), "{carrier}");
        }
        let place =
            [("urlbase", "https://cat2.cloud/demo/".into()), ("path", "@public/a.b2nd".into())];
        let carrier = Carrier::of_reference(place.into()).to_string();
        assert!(carrier.contains(", of https://cat2.cloud/demo/@public/a.b2nd;"), "{carrier}");
    }
}
