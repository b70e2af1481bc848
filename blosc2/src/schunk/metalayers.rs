//! Checksums, and metalayers: named byte strings, stored next to the chunks.

use std::borrow::Borrow;

use blosc2_format::frame::{Metalayer, Outline, Stores};
use blosc2_format::{Limits, chunk};

use super::store::State;
use super::{Access, SChunk};
use crate::chunk::encoder::Encoder;
use crate::closures::ChunkPlace;
use crate::codec::params::Purpose;
use crate::{CParams, Codec, Doing, ErrorKind, Reason, Result};

const SET_CHECKSUMS: &str = "set checksums";

/// Reserved names. A metalayer with a reserved name defines the kind of object that the super-chunk stores.
const RESERVED: [&str; 6] = ["b2nd", "caterva", "b2o", "LazyArray", "_LazyArray", "proxy-source"];

/// Read access to the metalayers of a super-chunk. Python: `SChunk.meta`, `SChunk.vlmeta`.
///
/// Metalayers are named byte strings. [`SChunk::meta`] returns the *fixed-length* metalayers: their content cannot
/// change its length, and is stored uncompressed in the header of the frame. [`SChunk::vlmeta`] returns the
/// *variable-length* metalayers: their content can change its length, and is stored compressed in the trailer of the
/// frame.
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

/// Write access to the metalayers (named byte strings) of a super-chunk. Python: `SChunk.meta`, `SChunk.vlmeta`.
///
/// Created by [`SChunk::meta_mut`] for fixed-length metalayers and by [`SChunk::vlmeta_mut`] for variable-length
/// metalayers; see [`Metalayers`].
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

/// The content of a metalayer to be set.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    /// The memory of the values that a reader decodes; 0 if the content is bytes.
    pub(super) memory: u64,
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
    /// [`OpenOptions::meta`](crate::OpenOptions::meta) adds
    /// them at creation.
    pub fn meta_mut(&mut self) -> MetalayersMut<'_> {
        MetalayersMut { schunk: self, variable: false, reserved: false, cparams: None }
    }

    /// Returns write access to the variable-length metalayers.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        MetalayersMut { schunk: self, variable: true, reserved: false, cparams: None }
    }

    /// If `on` is `true`, computes and stores [checksums](crate::OpenOptions::checksums) of all chunks, the header and
    /// the metalayers. If `on` is `false`, removes the checksums.
    ///
    /// To compute the checksums, the method reads all compressed chunks, without decompression. It does not compare
    /// the chunks with existing checksums. Therefore the method accepts the changes of programs that do not support
    /// checksums, such as Python. If such a program has changed the metadata, the frame has to be opened with
    /// [`verify_checksums(false)`](crate::OpenOptions::verify_checksums).
    ///
    /// ```
    /// use blosc2::{CParams, OpenOptions, SChunk};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.b2frame");
    /// let mut schunk = SChunk::create::<u8>(&path, CParams::new().level(0))?;
    /// schunk.append(&[1u8; 1000])?;
    /// schunk.set_checksums(true)?;
    /// drop(schunk);
    ///
    /// let mut bytes = std::fs::read(&path)?;
    /// bytes[500] ^= 1; // in the data of the chunk
    /// let damaged = SChunk::open(bytes.clone())?;
    /// assert!(damaged.decompress_chunk::<u8>(0).is_err());
    ///
    /// let mut accepted = OpenOptions::new().write(true).open(bytes)?;
    /// accepted.set_checksums(true)?;
    /// assert_eq!(accepted.decompress_chunk::<u8>(0)?.len(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading) and the [errors of changes](Self#errors-of-changes),
    /// and with
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): there are already
    ///   [`MAX_METALAYERS`](crate::limits::MAX_METALAYERS) variable-length metalayers, and the checksums need one more.
    pub fn set_checksums(&mut self, on: bool) -> Result<()> {
        self.check_change(Access::Write).doing(SET_CHECKSUMS)?;
        self.change_metadata(|state, _| {
            let sums = if on { Some(state.checksums()?) } else { None };
            state.outline.set_checksums(sums).doing(SET_CHECKSUMS)?;
            Ok(Stores::new())
        })
        .doing(SET_CHECKSUMS)
    }
}

impl Metalayers<'_> {
    /// Returns the number of metalayers.
    pub fn len(&self) -> usize {
        self.with_layers(<[_]>::len)
    }

    /// Returns whether there are no metalayers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names, in the order in which they are stored.
    pub fn names(&self) -> Vec<String> {
        self.with_layers(|layers| layers.iter().map(|layer| layer.name.clone()).collect())
    }

    /// Returns whether there is a metalayer with this name. C: `blosc2_meta_exists`, `blosc2_vlmeta_exists`.
    pub fn contains(&self, name: &str) -> bool {
        self.with_layers(|layers| layers.iter().any(|layer| layer.name == name))
    }

    /// Returns the content of the metalayer `name`, or `None` if there is no such metalayer. C: `blosc2_meta_get`,
    /// `blosc2_vlmeta_get`. Python: `SChunk.meta[name]`, `SChunk.vlmeta[name]`, which decode the content as msgpack.
    ///
    /// # Errors
    /// Errors are possible only for variable-length metalayers:
    /// - [`ErrorKind::InvalidData`]: the content cannot be decompressed;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter;
    /// - [`ErrorKind::TooLarge`]: the content takes more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let find = |layers: &[Metalayer]| layers.iter().find(|each| each.name == name).cloned();
        self.with_layers(find).map(|layer| self.decode(layer.content, 0)).transpose()
    }

    /// Returns an iterator over the names and contents, in the order in which they are stored. Each item is a `Result`.
    /// Its error is one of the errors of [`get`](Self::get).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<(String, Vec<u8>)>> + '_ {
        let layers = self.with_layers(<[_]>::to_vec);
        let mut before = 0;
        layers.into_iter().map(move |layer| {
            let content = self.decode(layer.content, before)?;
            before += content.len() as u64;
            Ok((layer.name, content))
        })
    }

    /// Decompresses the content of a variable-length metalayer. The content is stored as a chunk. `before` is the
    /// number of bytes that were already decompressed.
    fn decode(&self, stored: Vec<u8>, before: u64) -> Result<Vec<u8>> {
        let doing = "read a metalayer";
        if !self.variable || stored.is_empty() {
            return Ok(stored);
        }
        let header = chunk::Header::parse(&stored).doing(doing);
        let header = header.map_err(|error| self.schunk.at(error))?;
        self.schunk.allow_metadata(&header, before).doing(doing)?;
        crate::decompress(&stored).map_err(|error| self.schunk.at(error))
    }

    fn with_layers<R>(&self, work: impl FnOnce(&[Metalayer]) -> R) -> R {
        let state = self.schunk.last_state();
        work(layers(&state.outline, self.variable))
    }
}

impl MetalayersMut<'_> {
    /// Returns write access that also allows changes of metalayers with reserved names.
    ///
    /// The reserved names are:
    /// - `b2nd` and `caterva`: their contents define the shape of an array;
    /// - `b2o`, `LazyArray`, `_LazyArray` and `proxy-source`: Python marks super-chunks that store other objects with
    ///   these names; see [`SChunkInfo::python_object`](crate::super_chunk::SChunkInfo::python_object).
    ///
    /// The new content of these metalayers is not checked.
    pub fn with_reserved(mut self) -> Self {
        self.reserved = true;
        self
    }

    /// Returns write access that compresses the contents of variable-length metalayers with these parameters. C: the
    /// parameter `cparams` of `blosc2_vlmeta_add` and `blosc2_vlmeta_update`.
    ///
    /// The default parameters are those of Python: Zstandard, compression level 5, shuffle, typesize 1. A build without
    /// Zstandard uses BloscLZ. Fixed-length metalayers are not compressed: for them, [`set`](Self::set) fails if
    /// parameters are set.
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

    /// Returns whether the name is reserved. Changes of metalayers with reserved names require
    /// [`with_reserved`](Self::with_reserved).
    pub fn is_reserved(name: &str) -> bool {
        RESERVED.contains(&name)
    }

    /// Adds the metalayer `name`, or replaces its content. C: `blosc2_meta_add`, `blosc2_meta_update`,
    /// `blosc2_vlmeta_add`, `blosc2_vlmeta_update`. Python: `SChunk.meta[name] = value`, `SChunk.vlmeta[name] = value`,
    /// which encode the value as msgpack.
    ///
    /// The content is stored unchanged. Python decodes the content of a metalayer as msgpack, and fails if the content
    /// is not msgpack. The method `set_value` (feature `msgpack`) writes msgpack.
    ///
    /// These rules apply:
    /// - A new content of a fixed-length metalayer must have the length of the old content.
    /// - A contiguous frame accepts new fixed-length metalayers only before its first chunk.
    ///   [`OpenOptions::meta`](crate::OpenOptions::meta) adds
    ///   them at creation.
    /// - A super-chunk has up to [`MAX_METALAYERS`](crate::limits::MAX_METALAYERS) metalayers of each kind.
    /// - A name has 1 to 31 bytes and contains no NUL byte.
    ///
    /// # Errors
    /// Fails with the [errors of changes](SChunk#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`], in these cases:
    ///   - the name is reserved or invalid;
    ///   - the length of a fixed-length metalayer would change;
    ///   - a fixed-length metalayer would be added after the first chunk of a contiguous frame;
    ///   - the compression parameters are invalid, or set for a fixed-length metalayer;
    ///   - there are too many metalayers, or their total size would be 2 GiB or more;
    /// - [`ErrorKind::TooLarge`]: the content of a variable-length metalayer has more than
    ///   [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes; or the variable-length metalayers would be so large and
    ///   so compressible that the default limits would not allow to read them (see
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read)): the memory for decoding them would exceed 256 times
    ///   their compressed size by more than 1 GiB;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter of the compression parameters.
    pub fn set(&mut self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.set_bytes(name, content.as_ref(), 0)
    }

    /// Sets the content of a metalayer; see [`set`](Self::set).
    pub(super) fn set_content(&mut self, name: &str, content: &Content) -> Result<()> {
        self.set_bytes(name, &content.bytes, content.memory)
    }

    /// Sets the content of a metalayer, which a reader decodes to values of `memory` bytes.
    fn set_bytes(&mut self, name: &str, content: &[u8], memory: u64) -> Result<()> {
        let doing = "set a metalayer";
        self.check(name).doing(doing)?;
        let content = match (self.variable, &self.cparams) {
            (true, params) => {
                let chunk = encode(content, params.as_ref())?;
                let max = Limits::default().decoded_metadata(chunk.len() as u64);
                let max = max.max(self.schunk.max_read().unwrap_or(0));
                if memory > max {
                    let stored = chunk.len();
                    let detail = format!(
                        "metalayer `{name}`: its values take {memory} bytes of memory, but by default a reader allows \
                         {max} bytes for {stored} compressed bytes"
                    );
                    return Err(self.schunk.error(ErrorKind::TooLarge, detail).doing(doing));
                }
                chunk
            }
            (false, None) => content.to_vec(),
            (false, Some(_)) => {
                let detail = "fixed-length metalayers are not compressed and accept no parameters";
                return Err(self.schunk.error(ErrorKind::InvalidArgument, detail).doing(doing));
            }
        };
        let variable = self.variable;
        self.change(name, |outline| {
            if variable {
                outline.set_vlmetalayer_chunk(name, &content)
            } else if outline.metalayers().iter().any(|each| each.name == name) {
                outline.update_metalayer(name, &content)
            } else {
                outline.add_metalayer(name, &content)
            }
        })
        .doing(doing)
    }

    /// Removes the metalayer `name`. Returns whether the metalayer existed. C: `blosc2_vlmeta_delete`. Python: `del
    /// SChunk.vlmeta[name]`.
    ///
    /// In a contiguous frame, a fixed-length metalayer can be removed only before the first chunk is added.
    ///
    /// # Errors
    /// Fails with the [errors of changes](SChunk#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`]: the name is reserved; or the metalayer has a fixed length, and the super-chunk
    ///   is a contiguous frame with chunks.
    pub fn remove(&mut self, name: &str) -> Result<bool> {
        let doing = "remove a metalayer";
        self.check(name).doing(doing)?;
        let variable = self.variable;
        let mut found = false;
        self.change(name, |outline| {
            found = layers(outline, variable).iter().any(|each| each.name == name);
            match (found, variable) {
                (false, _) => Ok(()),
                (true, true) => outline.remove_vlmetalayer(name),
                (true, false) => outline.remove_metalayer(name),
            }
        })
        .doing(doing)?;
        Ok(found)
    }

    fn check(&self, name: &str) -> Result<(), Reason> {
        self.schunk.check_change(Access::Write)?;
        if !self.reserved && Self::is_reserved(name) {
            let detail =
                format!("the name `{name}` is reserved; `with_reserved` allows changes of it");
            return Err(self.schunk.error(ErrorKind::InvalidArgument, detail));
        }
        Ok(())
    }

    fn change(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Outline) -> std::result::Result<(), blosc2_format::Error>,
    ) -> Result<(), Reason> {
        let work = |state: &mut State, _: &mut Vec<u64>| {
            work(&mut state.outline)?;
            Ok(Stores::new())
        };
        // A metalayer with a reserved name can change the meaning of the items.
        match Self::is_reserved(name) {
            true => self.schunk.change(work)?,
            false => self.schunk.change_metadata(work)?,
        }
        if self.reserved {
            self.schunk.forget();
        }
        Ok(())
    }
}

fn layers(outline: &Outline, variable: bool) -> &[Metalayer] {
    if variable { outline.vlmetalayers() } else { outline.metalayers() }
}

/// Compresses the content of a metalayer to a chunk, with the parameters of Python if `params` is `None`.
pub(super) fn encode(content: &[u8], params: Option<&CParams>) -> Result<Vec<u8>> {
    let codec = if Codec::Zstd.is_available() { Codec::Zstd } else { Codec::BloscLz };
    let resolved = match params {
        Some(params) => params.without_closure().resolve(1, Purpose::Frame)?,
        None => CParams::new().codec(codec).resolve(1, Purpose::Frame)?,
    };
    let mut chunk = Vec::new();
    Encoder::new(resolved)?.compress_to(content, ChunkPlace::default(), &mut chunk)?;
    Ok(chunk)
}
