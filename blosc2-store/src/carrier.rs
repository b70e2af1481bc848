//! Files of Python's that stand for something else than their items.

use std::fmt;

use blosc2::{ErrorKind, Result, SChunk, Value};

/// What a [`Carrier`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CarrierKind {
    /// An expression of other arrays.
    LazyExpr,
    /// A function of other arrays, with its source code.
    LazyUdf,
    /// The cache of an array that lies elsewhere, of which some chunks may be here.
    Proxy,
    /// An array behind an address.
    RemoteArray,
    /// A store behind an address.
    RemoteStore,
    /// An array on a Caterva2 server.
    C2Array,
    /// Something that this version does not know.
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

/// A file of Python's that stands for something else than its items: a computation, or data elsewhere.
///
/// It is described, never followed, and nothing of it is ever run. Its own items are zeros, or the part that a
/// proxy has fetched already.
///
/// ```
/// use blosc2::{CParams, NDArray, OpenOptions, SChunk, Value};
/// use blosc2_store::{CarrierKind, Object};
///
/// // As Python's `blosc2.lazyexpr("a + 1").save()` writes it.
/// let array = NDArray::builder().zeros::<f32>(&[3])?;
/// let mut schunk = SChunk::from_cframe(array.to_cframe()?)?;
/// # let mut schunk = OpenOptions::new().write(true).from_cframe(array.to_cframe()?)?;
/// # let reference = Value::from([("kind", "urlpath".into()), ("urlpath", "a.b2nd".into())]);
/// # let operands = Value::from([("a", reference)]);
/// # let content = [("kind", "lazyexpr".into()), ("expression", "a + 1".into()), ("operands", operands)];
/// # schunk.vlmeta_mut().with_reserved().set_value("b2o", &Value::from(content))?;
/// let Object::Carrier(carrier) = Object::from_schunk(schunk)? else { panic!("it has a `b2o`") };
/// assert_eq!(carrier.kind(), CarrierKind::LazyExpr);
/// assert_eq!(carrier.to_string(), "a lazy expression of Python's, `a + 1`, of a: a.b2nd; its items hold no data");
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct Carrier {
    kind: CarrierKind,
    description: Value,
    schunk: Option<SChunk>,
}

impl Carrier {
    /// What a super-chunk carries; the super-chunk again where its items are plain data.
    pub(crate) fn of(schunk: SChunk) -> Result<Result<Self, SChunk>> {
        let Some(name) = schunk.python_object() else { return Ok(Err(schunk)) };
        // The older description is in a metalayer of another name.
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

    /// A reference as stores keep it: to an array on a Caterva2 server, or to something that they list as an object.
    pub(crate) fn of_reference(description: Value) -> Self {
        let kind = match description.get("kind").and_then(Value::as_str) {
            None => CarrierKind::C2Array,
            Some("remote_store") => CarrierKind::RemoteStore,
            Some(_) => CarrierKind::Other,
        };
        Self { kind, description, schunk: None }
    }

    /// A folder that keeps parts of a remote store.
    pub(crate) fn of_remote_store(description: Value) -> Self {
        Self { kind: CarrierKind::RemoteStore, description, schunk: None }
    }

    /// What it stands for.
    pub fn kind(&self) -> CarrierKind {
        self.kind
    }

    /// The expression, or the source code of the function.
    pub fn expression(&self) -> Option<&str> {
        let parts = ["expression", "udf_source", "UDF"];
        parts.into_iter().find_map(|part| self.description.get(part)?.as_str())
    }

    /// The names of what it is computed from, and where that lies.
    pub fn operands(&self) -> Vec<(String, String)> {
        let Some(Value::Map(operands)) = self.description.get("operands") else { return vec![] };
        let named = operands.iter().map(|(name, place)| {
            (name.as_str().unwrap_or("?").to_owned(), place_of(place).unwrap_or("?".to_owned()))
        });
        named.collect()
    }

    /// The path or address of the data, for what is no computation.
    pub fn source(&self) -> Option<String> {
        place_of(&self.description).or_else(|| place_of(self.description.get("source")?))
    }

    /// All that the file says of it.
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// The file itself, for [`NDArray::from_python_object`](blosc2::NDArray::from_python_object); `None` where a store holds
    /// no more than a reference.
    pub fn into_schunk(self) -> Option<SChunk> {
        self.schunk
    }

    /// The file itself.
    pub fn schunk(&self) -> Option<&SChunk> {
        self.schunk.as_ref()
    }

    /// Why it is not read as data.
    pub(crate) fn refused(&self, doing: &str) -> blosc2::Error {
        blosc2::Error::new(ErrorKind::Unsupported, doing, format!("it is {self}"))
    }
}

/// Where something referred to lies.
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
            CarrierKind::LazyExpr => "a lazy expression of Python's",
            CarrierKind::LazyUdf => "a lazy function of Python's",
            CarrierKind::Proxy => "the cache of a proxy of Python's",
            CarrierKind::RemoteArray => "a remote array of Python's",
            CarrierKind::RemoteStore => "a reference of Python's to a remote store",
            CarrierKind::C2Array => "a reference to an array on a Caterva2 server",
            CarrierKind::Other => "a reference to an object of Python's",
        })?;
        match (self.expression(), self.description.get("name").and_then(Value::as_str)) {
            (_, Some(name)) if self.kind == CarrierKind::LazyUdf => write!(f, ", `{name}`")?,
            // Of source code the first line.
            (Some(text), _) => write!(f, ", `{}`", text.lines().next().unwrap_or_default())?,
            _ => {}
        }
        let operands = self.operands();
        if !operands.is_empty() {
            let operands = operands.iter().map(|(name, place)| format!("{name}: {place}"));
            write!(f, ", of {}", operands.collect::<Vec<_>>().join(", "))?;
        }
        if let Some(source) = self.source() {
            write!(f, ", of {source}")?;
        }
        f.write_str(match self.kind {
            CarrierKind::Proxy => "; items not fetched yet hold no data",
            _ if self.schunk.is_none() => "; there is no data here",
            _ => "; its items hold no data",
        })
    }
}
