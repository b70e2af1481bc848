//! Metalayers: named byte strings, stored next to the chunks.

use std::borrow::Borrow;

use blosc2_format::chunk;
use blosc2_format::frame::{Metalayer, Outline, Stores};

use super::{Access, SChunk};
use crate::closures::ChunkPlace;
use crate::encoder::Encoder;
use crate::params::Purpose;
use crate::{CParams, Codec, Error, ErrorKind, Result};

/// Reserved names: a metalayer with such a name defines the kind of object that is stored in the super-chunk.
const RESERVED: [&str; 6] = ["b2nd", "caterva", "b2o", "LazyArray", "_LazyArray", "proxy-source"];

/// Read access to the metalayers of a super-chunk, which are named byte strings. Created by [`SChunk::meta`] and
/// [`SChunk::vlmeta`]. Python: `SChunk.meta`, `SChunk.vlmeta`.
///
/// ```
/// use blosc2::{CParams, SChunk};
///
/// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
/// schunk.vlmeta_mut().set("author", b"me")?;
/// let vlmeta = schunk.vlmeta();
/// assert!(vlmeta.contains("author"));
/// for entry in vlmeta.iter() {
///     let (name, content) = entry?;
///     println!("{name}: {} bytes", content.len());
/// }
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Metalayers<'a> {
    pub(super) schunk: &'a SChunk,
    variable: bool,
}

/// Write access to the metalayers of a super-chunk. Created by [`SChunk::meta_mut`] and [`SChunk::vlmeta_mut`]. Python:
/// `SChunk.meta`, `SChunk.vlmeta`.
///
/// ```
/// use blosc2::{CParams, SChunk};
///
/// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
/// let mut vlmeta = schunk.vlmeta_mut();
/// vlmeta.set("author", b"me")?;
/// vlmeta.set("author", b"somebody else")?;
/// assert!(vlmeta.remove("author")?);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct MetalayersMut<'a> {
    pub(super) schunk: &'a mut SChunk,
    variable: bool,
    reserved: bool,
    cparams: Option<CParams>,
}

impl SChunk {
    /// Returns read access to the fixed-length metalayers. Python: `SChunk.meta`.
    pub fn meta(&self) -> Metalayers<'_> {
        Metalayers { schunk: self, variable: false }
    }

    /// Returns read access to the variable-length metalayers. Python: `SChunk.vlmeta`.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// schunk.vlmeta_mut().set("units", "kelvin")?;
    /// assert_eq!(schunk.vlmeta().get("units")?.as_deref(), Some(&b"kelvin"[..]));
    /// assert_eq!(schunk.vlmeta().names(), ["units"]);
    /// schunk.vlmeta_mut().remove("units")?;
    /// assert!(schunk.vlmeta().is_empty());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn vlmeta(&self) -> Metalayers<'_> {
        Metalayers { schunk: self, variable: true }
    }

    /// Returns write access to the fixed-length metalayers.
    ///
    /// A contiguous frame accepts new fixed-length metalayers only before its first chunk.
    /// [`OpenOptions::meta`](crate::OpenOptions::meta) and [`NDArrayBuilder::meta`](crate::NDArrayBuilder::meta) add
    /// them at creation.
    pub fn meta_mut(&mut self) -> MetalayersMut<'_> {
        MetalayersMut { schunk: self, variable: false, reserved: false, cparams: None }
    }

    /// Returns write access to the variable-length metalayers.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        MetalayersMut { schunk: self, variable: true, reserved: false, cparams: None }
    }
}

impl Metalayers<'_> {
    /// Returns the number of metalayers.
    pub fn len(&self) -> usize {
        self.look(<[_]>::len)
    }

    /// Returns whether there are no metalayers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names, in stored order.
    pub fn names(&self) -> Vec<String> {
        self.look(|layers| layers.iter().map(|layer| layer.name.clone()).collect())
    }

    /// Returns whether there is a metalayer with this name. C: `blosc2_meta_exists`, `blosc2_vlmeta_exists`.
    pub fn contains(&self, name: &str) -> bool {
        self.look(|layers| layers.iter().any(|layer| layer.name == name))
    }

    /// Returns the content of the metalayer `name`, or `None` if there is no such metalayer. C: `blosc2_meta_get`,
    /// `blosc2_vlmeta_get`. Python: `SChunk.meta[name]`, `SChunk.vlmeta[name]`, which decode the content as msgpack.
    ///
    /// # Errors
    /// For a variable-length metalayer (a fixed-length one causes no error):
    /// - [`ErrorKind::InvalidData`]: the content cannot be decompressed;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter;
    /// - [`ErrorKind::TooLarge`]: the content takes more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let find = |layers: &[Metalayer]| layers.iter().find(|each| each.name == name).cloned();
        self.look(find).map(|layer| self.decode(layer.content)).transpose()
    }

    /// Returns an iterator over the names and contents, in stored order. Each content may fail with the errors of
    /// [`get`](Self::get).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<(String, Vec<u8>)>> + '_ {
        let layers = self.look(<[_]>::to_vec);
        layers.into_iter().map(|layer| Ok((layer.name, self.decode(layer.content)?)))
    }

    /// Decompresses a variable-length content, which is stored as a chunk.
    fn decode(&self, stored: Vec<u8>) -> Result<Vec<u8>> {
        let doing = "read a metalayer";
        if !self.variable || stored.is_empty() {
            return Ok(stored);
        }
        let header =
            chunk::Header::parse(&stored).map_err(|error| Error::from_format(doing, error));
        let header = header.map_err(|error| self.schunk.at(error))?;
        self.schunk.allow_metadata(doing, &header)?;
        crate::decompress(&stored).map_err(|error| self.schunk.at(error))
    }

    fn look<R>(&self, work: impl FnOnce(&[Metalayer]) -> R) -> R {
        let state = self.schunk.look();
        work(layers(&state.outline, self.variable))
    }
}

impl MetalayersMut<'_> {
    /// Returns write access that can also change metalayers with reserved names: `b2nd` and `caterva`, which define the
    /// shape of an array, and the names with which Python marks other objects stored as super-chunks (see
    /// [`SChunk::python_object`]).
    ///
    /// The content is not checked.
    pub fn with_reserved(mut self) -> Self {
        self.reserved = true;
        self
    }

    /// Returns write access that compresses contents with these parameters. C: the parameter `cparams` of
    /// `blosc2_vlmeta_add` and `blosc2_vlmeta_update`.
    ///
    /// By default, the contents of variable-length metalayers are compressed as in Python: Zstandard, level 5, shuffle,
    /// typesize 1. A build without Zstandard uses BloscLZ. Fixed-length metalayers are not compressed and accept no
    /// parameters.
    ///
    /// ```
    /// use blosc2::{CParams, Codec, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// let counts: Vec<u8> = (0..10_000u32).flat_map(u32::to_le_bytes).collect();
    /// let params = CParams::new().codec(Codec::Lz4).level(9).typesize(4);
    /// schunk.vlmeta_mut().with_cparams(&params).set("counts", &counts)?;
    /// assert_eq!(schunk.vlmeta().get("counts")?, Some(counts));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias("blosc2_vlmeta_add", "blosc2_vlmeta_update"))]
    pub fn with_cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.cparams = Some(params.borrow().clone());
        self
    }

    /// Returns whether the name is reserved. Only [`with_reserved`](Self::with_reserved) allows changes of metalayers
    /// with such names.
    pub fn is_reserved(name: &str) -> bool {
        RESERVED.contains(&name)
    }

    /// Adds the metalayer `name`, or replaces its content. C: `blosc2_meta_add`, `blosc2_meta_update`,
    /// `blosc2_vlmeta_add`, `blosc2_vlmeta_update`. Python: `SChunk.meta[name] = value`, `SChunk.vlmeta[name] = value`,
    /// which encode the value as msgpack.
    ///
    /// The content is stored unchanged. Python decodes the contents of metalayers as msgpack, and fails on other bytes;
    /// `set_value`, with the feature `msgpack`, writes msgpack.
    ///
    /// Fixed-length metalayers keep their length. A contiguous frame accepts new ones only before its first chunk;
    /// [`OpenOptions::meta`](crate::OpenOptions::meta) and [`NDArrayBuilder::meta`](crate::NDArrayBuilder::meta) add
    /// them at creation. A metalayer can be added if there are fewer than
    /// [`MAX_METALAYERS`](crate::limits::MAX_METALAYERS) of its kind. Names have 1 to 31 bytes, and no NUL byte.
    ///
    /// # Errors
    /// Fails with the [errors of changes](SChunk#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`]: the name is reserved or invalid; the length of a fixed-length metalayer would
    ///   change, or one would be added after the first chunk of a contiguous frame; compression parameters are invalid,
    ///   or set for a fixed-length metalayer; or there are too many metalayers, or they have 2 GiB or more in
    ///   total;
    /// - [`ErrorKind::TooLarge`]: the content of a variable-length metalayer has more than
    ///   [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter of the compression parameters.
    pub fn set(&mut self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.set_bytes(name, content.as_ref())
    }

    fn set_bytes(&mut self, name: &str, content: &[u8]) -> Result<()> {
        let doing = "set a metalayer";
        self.check(doing, name)?;
        let content = match (self.variable, &self.cparams) {
            (true, params) => encode(content, params.as_ref())?,
            (false, None) => content.to_vec(),
            (false, Some(_)) => {
                let detail = "fixed-length metalayers are not compressed and accept no parameters";
                return Err(self.schunk.error(ErrorKind::InvalidArgument, doing, detail));
            }
        };
        let variable = self.variable;
        self.change(doing, |outline| {
            if variable {
                outline.set_vlmetalayer_chunk(name, &content)
            } else if outline.metalayers().iter().any(|each| each.name == name) {
                outline.update_metalayer(name, &content)
            } else {
                outline.add_metalayer(name, &content)
            }
        })
    }

    /// Removes the metalayer `name`. Returns whether it existed. C: `blosc2_vlmeta_delete`. Python:
    /// `del SChunk.vlmeta[name]`.
    ///
    /// In a contiguous frame, fixed-length metalayers can only be removed before the first chunk.
    ///
    /// # Errors
    /// Fails with the [errors of changes](SChunk#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`]: the name is reserved; or the metalayer is a fixed-length one of a contiguous
    ///   frame that has chunks.
    pub fn remove(&mut self, name: &str) -> Result<bool> {
        let doing = "remove a metalayer";
        self.check(doing, name)?;
        let variable = self.variable;
        let mut found = false;
        self.change(doing, |outline| {
            found = layers(outline, variable).iter().any(|each| each.name == name);
            match (found, variable) {
                (false, _) => Ok(()),
                (true, true) => outline.remove_vlmetalayer(name),
                (true, false) => outline.remove_metalayer(name),
            }
        })?;
        Ok(found)
    }

    fn check(&self, doing: &str, name: &str) -> Result<()> {
        self.schunk.check_change(doing, Access::Write)?;
        if !self.reserved && Self::is_reserved(name) {
            let detail =
                format!("the name `{name}` is reserved; `with_reserved` allows changes of it");
            return Err(self.schunk.error(ErrorKind::InvalidArgument, doing, detail));
        }
        Ok(())
    }

    fn change(
        &mut self,
        doing: &str,
        work: impl FnOnce(&mut Outline) -> std::result::Result<(), blosc2_format::Error>,
    ) -> Result<()> {
        self.schunk.change(doing, |state, _| {
            work(&mut state.outline).map_err(|error| Error::from_frame(doing, error))?;
            Ok(Stores::new())
        })?;
        if self.reserved {
            self.schunk.forget();
        }
        Ok(())
    }
}

fn layers(outline: &Outline, variable: bool) -> &[Metalayer] {
    if variable { outline.vlmetalayers() } else { outline.metalayers() }
}

/// Compresses a content to a chunk, with the parameters of Python if `params` is `None`.
fn encode(content: &[u8], params: Option<&CParams>) -> Result<Vec<u8>> {
    let codec = if Codec::Zstd.is_available() { Codec::Zstd } else { Codec::BloscLz };
    let resolved = match params {
        Some(params) => params.resolve(1, Purpose::Frame)?,
        None => CParams::new().codec(codec).resolve(1, Purpose::Frame)?,
    };
    let mut chunk = Vec::new();
    Encoder::new(resolved)?.compress_to(content, ChunkPlace::default(), &mut chunk)?;
    Ok(chunk)
}
