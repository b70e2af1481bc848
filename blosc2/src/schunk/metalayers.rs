//! Metalayers: named pieces of bytes beside the chunks.

use std::borrow::Borrow;

use blosc2_format::chunk;
use blosc2_format::frame::{Metalayer, Outline, Stores};

use super::{Access, SChunk};
use crate::closures::ChunkPlace;
use crate::encoder::Encoder;
use crate::params::Purpose;
use crate::{CParams, Codec, Error, ErrorKind, Result};

/// Names that this library and Python give a meaning: whoever writes them makes a super-chunk say that it is
/// something else.
const RESERVED: [&str; 6] = ["b2nd", "caterva", "b2o", "LazyArray", "_LazyArray", "proxy-source"];

/// The metalayers of a super-chunk: named pieces of bytes, to be read. Made by [`SChunk::meta`] and
/// [`SChunk::vlmeta`].
#[derive(Debug, Clone, Copy)]
pub struct Metalayers<'a> {
    pub(super) schunk: &'a SChunk,
    variable: bool,
}

/// The metalayers of a super-chunk, to be changed. Made by [`SChunk::meta_mut`] and
/// [`SChunk::vlmeta_mut`].
#[derive(Debug)]
pub struct MetalayersMut<'a> {
    pub(super) schunk: &'a mut SChunk,
    variable: bool,
    reserved: bool,
    cparams: Option<CParams>,
}

impl SChunk {
    /// The fixed metalayers, whose lengths never change.
    pub fn meta(&self) -> Metalayers<'_> {
        Metalayers { schunk: self, variable: false }
    }

    /// The metalayers of variable length.
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

    /// The fixed metalayers, to be changed. In a contiguous frame new ones are added before the first chunk, or given at
    /// creation: [`OpenOptions::meta`](crate::OpenOptions::meta),
    /// [`NDArrayBuilder::meta`](crate::NDArrayBuilder::meta).
    pub fn meta_mut(&mut self) -> MetalayersMut<'_> {
        MetalayersMut { schunk: self, variable: false, reserved: false, cparams: None }
    }

    /// The metalayers of variable length, to be changed.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        MetalayersMut { schunk: self, variable: true, reserved: false, cparams: None }
    }
}

impl Metalayers<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.look(<[_]>::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        self.look(|layers| layers.iter().map(|layer| layer.name.clone()).collect())
    }

    /// Whether there is one of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.look(|layers| layers.iter().any(|layer| layer.name == name))
    }

    /// The content of one, `None` if there is none of this name.
    ///
    /// # Errors
    /// A content of variable length that cannot be decompressed, or that takes more memory than
    /// [`OpenOptions::max_read`](crate::OpenOptions::max_read).
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let find = |layers: &[Metalayer]| layers.iter().find(|each| each.name == name).cloned();
        self.look(find).map(|layer| self.decode(layer.content)).transpose()
    }

    /// All names and contents, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<(String, Vec<u8>)>> + '_ {
        let layers = self.look(<[_]>::to_vec);
        layers.into_iter().map(|layer| Ok((layer.name, self.decode(layer.content)?)))
    }

    /// Contents of variable length are stored as chunks.
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
    /// Lets the next calls change metalayers whose names are reserved too: `b2nd` and `caterva`, which say that
    /// the chunks are an array's, and those by which Python marks what is no plain data.
    ///
    /// What is written there is not checked.
    pub fn with_reserved(mut self) -> Self {
        self.reserved = true;
        self
    }

    /// Sets the compression parameters of the contents that the next calls write.
    ///
    /// Without them a content is compressed as Python does: Zstd, level 5, shuffle, items of 1 byte. Fixed metalayers
    /// are not compressed, and take none. The parameter `cparams` of C's `blosc2_vlmeta_add` and
    /// `blosc2_vlmeta_update`.
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

    /// Whether a metalayer of this name says what the super-chunk is, so that it is changed only
    /// [`with_reserved`](Self::with_reserved).
    pub fn is_reserved(name: &str) -> bool {
        RESERVED.contains(&name)
    }

    /// Adds a metalayer, or replaces the content of the one of this name.
    ///
    /// The bytes are stored as they are. Python takes the contents of metalayers for msgpack, and fails to read others;
    /// `set_value`, with the feature `msgpack`, writes what it reads.
    ///
    /// Fixed ones keep their length, and in a contiguous frame are added before the first chunk, or given at creation
    /// by [`OpenOptions::meta`](crate::OpenOptions::meta) or
    /// [`NDArrayBuilder::meta`](crate::NDArrayBuilder::meta). There are 16 of each kind at most, and names have 1 to 31
    /// bytes. C's `blosc2_meta_add`, `blosc2_meta_update`, `blosc2_vlmeta_add` and `blosc2_vlmeta_update`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a name, a length or a moment that does not do; a reserved name; compression
    ///   parameters out of range, or for a fixed metalayer;
    /// - [`ErrorKind::Unsupported`]: compression parameters with a codec or filter that this build does not have;
    /// - [`ErrorKind::ReadOnly`]: opened for reading or appending;
    /// - [`ErrorKind::Io`]: the file cannot be written.
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
                let detail = "fixed metalayers are not compressed: they take no parameters";
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

    /// Removes a metalayer; says whether there was one of this name.
    ///
    /// Fixed ones are removed before the first chunk only. C's `blosc2_vlmeta_delete`.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
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
                format!("the name `{name}` says what the super-chunk is; see `with_reserved`");
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

/// The chunk of a content, compressed as Python does where there are no parameters.
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
