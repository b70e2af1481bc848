//! The writer of legacy frames.

use super::Layout;
use super::header::Header;
use super::metalayers;
use super::trailer::{self, OLD_START, START};
use crate::Error;
use crate::chunk::{self, Encoder, Form, SplitMode};
use crate::frame::Metalayer;
use crate::legacy::chunks::{MAX_BLOCKSIZE, stored_sizes, whole_chunk};

const SHUFFLE: u8 = 1;
/// The minimum size of data that the old library compressed.
const MIN_COMPRESSED: usize = 128;

/// How the old version of C-Blosc2 wrote the frame: all chunks in one call, or chunk by chunk.
///
/// The mode determines the chunk size in the header, the bytes before the trailer, and the flag for
/// user metadata.
///
/// ```
/// use blosc2_format::early::{Params, WriteMode, Writer, stored_chunk};
///
/// let mut writer = Writer::new(Params { mode: WriteMode::Appended, ..Params::default() })?;
/// writer.push_chunk(&stored_chunk(1, &[7; 400])?)?;
/// assert!(writer.finish()?.len() > 400);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WriteMode {
    /// C-Blosc2 wrote all chunks in one call. The chunk size in the header is 0 if the sizes of the
    /// chunks differ, even if only the last chunk is shorter. A [`Layout::Version1`] frame with
    /// chunks has a gap before the trailer.
    #[default]
    Whole,
    /// C-Blosc2 appended the chunks to the frame. The chunk size in the header is the size of the
    /// first chunk, if all sizes are equal or only the last chunk is shorter. Otherwise the chunk
    /// size is 0. The flag for user metadata is never set.
    Appended,
}

/// The parameters of a legacy frame: the fields of its header, and the details that depend on the
/// version of the writer.
///
/// The default is the frame of C-Blosc2 2.0.0-beta.5 with BloscLZ at level 5 and shuffle, for items
/// of one byte.
///
/// ```
/// use blosc2_format::early::{Layout, Params, Writer};
///
/// let params = Params { layout: Layout::Early, typesize: 4, level: 9, ..Params::default() };
/// assert!(Writer::new(params).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The layout.
    pub layout: Layout,
    /// How the old version of C-Blosc2 wrote the frame.
    pub mode: WriteMode,
    /// Whether to write a trailer in [`Layout::Early`]. Only the last development versions with
    /// this layout wrote a trailer. [`Layout::Version1`] always has a trailer.
    pub trailer: bool,
    /// Whether the trailer of [`Layout::Version1`] starts with 0x94, as in C-Blosc2 2.0.0-beta.3
    /// and later versions. Earlier versions wrote 0x0d.
    pub trailer_marker: bool,
    /// Whether [`Layout::Early`] always has a section of metalayers. The first versions with this
    /// layout wrote this section even without metalayers.
    pub empty_metalayers: bool,
    /// The version of the chunk format: 4, or 3 for the first writers of [`Layout::Early`].
    pub chunk_version: u8,
    /// Byte 0x1a. Its meaning depends on the version of the writer. 0 in [`Layout::Version1`].
    pub filter_flags: u8,
    /// The code of the codec, from 0 to 6; see [`Frame::codec`](super::Frame::codec).
    pub codec: u8,
    /// The compression level, from 0 to 9.
    pub level: u8,
    /// The size of an item, in bytes.
    pub typesize: u32,
    /// The numbers of threads of the writer for compression and decompression.
    pub threads: [i16; 2],
    /// The codes of the filters in order (see
    /// [`chunk::Params::filters`](crate::chunk::Params::filters)): at most six filters, or five if
    /// `chunk_version` is 3. The header of [`Layout::Early`] does not contain the filters.
    pub filters: Vec<u8>,
    /// The parameters of the filters. Missing parameters are 0.
    pub filters_meta: Vec<u8>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            layout: Layout::Version1,
            mode: WriteMode::Whole,
            trailer: true,
            trailer_marker: true,
            empty_metalayers: false,
            chunk_version: 4,
            filter_flags: 0,
            codec: 0,
            level: 5,
            typesize: 1,
            threads: [1, 1],
            filters: vec![1],
            filters_meta: Vec::new(),
        }
    }
}

/// Writes a legacy frame, chunk by chunk.
///
/// ```
/// use blosc2_format::early::{Params, Writer, stored_chunk};
///
/// let mut writer = Writer::new(Params::default())?;
/// writer.add_metalayer("axis", b"time")?;
/// writer.push_chunk(&stored_chunk(1, &[7; 400])?)?;
/// assert!(writer.finish()?.len() > 400);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    params: Params,
    metalayers: Vec<Metalayer>,
    data: Vec<u8>,
    offsets: Vec<u64>,
    sizes: Vec<u32>,
    usermeta: Vec<u8>,
    encoder: Option<Encoder>,
}

impl Writer {
    /// Creates the writer of an empty frame.
    ///
    /// # Errors
    /// [`Error::Argument`]: the layout cannot represent a parameter.
    pub fn new(params: Params) -> Result<Self, Error> {
        let argument = |why: String| Err(Error::Argument(why));
        if params.codec > 6 || params.level > 9 {
            let Params { codec, level, .. } = params;
            return argument(format!("codec {codec} at level {level}: expected at most 6 and 9"));
        }
        let oldest = if params.layout == Layout::Early { 3 } else { 4 };
        if !(oldest..=4).contains(&params.chunk_version) {
            let version = params.chunk_version;
            return argument(format!("chunk version {version}: expected {oldest} to 4"));
        }
        let most = last_filter(params.chunk_version) + 1;
        if params.filters.len() > most || params.filters.iter().any(|&code| code > 4) {
            return argument(format!(
                "filters {:?}: expected at most {most} codes of 0 to 4",
                params.filters
            ));
        }
        if params.filters_meta.len() > params.filters.len() {
            return argument("more parameters than filters".into());
        }
        if i32::try_from(params.typesize).map_or(true, |typesize| typesize < 1) {
            return argument(format!("typesize {}: expected 1 to {}", params.typesize, i32::MAX));
        }
        Ok(Self {
            params,
            metalayers: Vec::new(),
            data: Vec::new(),
            offsets: Vec::new(),
            sizes: Vec::new(),
            usermeta: Vec::new(),
            encoder: None,
        })
    }

    /// Adds a metalayer.
    ///
    /// # Errors
    /// [`Error::Argument`]: the name is not 1 to 31 bytes long, or there is already a metalayer
    /// with this name.
    pub fn add_metalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let known = self.metalayers.iter().any(|other| other.name == name);
        if known || name.is_empty() || name.len() > metalayers::MAX_NAME_LEN {
            let why = format!("metalayer name `{name}`: expected an unused name of 1 to 31 bytes");
            return Err(Error::Argument(why));
        }
        self.metalayers.push(Metalayer { name: name.to_owned(), content: content.to_vec() });
        Ok(())
    }

    /// Compresses `data` with the parameters of the frame, and appends it as a chunk.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the data is too long for a chunk, or the filters do not support it;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn push(&mut self, data: &[u8]) -> Result<(), Error> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => {
                let form = form(self.params.chunk_version);
                none.insert(Encoder::with_form(chunk_params(&self.params), form)?)
            }
        };
        let chunk = encoder.encode(data)?;
        self.push_chunk(&chunk)
    }

    /// Appends a compressed chunk.
    ///
    /// # Errors
    /// [`Error::Format`]: `chunk` does not start with a chunk, or its length differs from the size
    /// in its header.
    pub fn push_chunk(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let header = whole_chunk(chunk)?;
        self.offsets.push(self.data.len() as u64);
        self.sizes.push(header.nbytes);
        self.data.extend(chunk);
        Ok(())
    }

    /// Sets the chunk with the [user metadata](super::Frame::usermeta).
    ///
    /// # Errors
    /// - [`Error::Format`]: `chunk` does not start with a chunk, or its length differs from the
    ///   size in its header;
    /// - [`Error::Argument`]: the frame has no trailer.
    pub fn set_usermeta_chunk(&mut self, chunk: &[u8]) -> Result<(), Error> {
        if !self.has_trailer() {
            return Err(Error::Argument("user metadata in a frame without a trailer".into()));
        }
        whole_chunk(chunk)?;
        self.usermeta = chunk.to_vec();
        Ok(())
    }

    /// Returns the frame.
    ///
    /// # Errors
    /// [`Error::Argument`]: the metalayers or the offsets need more than 2 GiB.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        let Params { layout, mode, typesize, threads, .. } = self.params;
        let mut header = Header::new(layout);
        let has_section = match layout {
            Layout::Early => self.params.empty_metalayers || !self.metalayers.is_empty(),
            Layout::Version1 => true,
        };
        if layout == Layout::Early && has_section {
            header.elements = 0x9c;
        }
        let section = match has_section {
            true => metalayers::to_bytes(&self.metalayers, layout.fixed_len())?,
            false => Vec::new(),
        };
        let index = if self.offsets.is_empty() {
            Vec::new()
        } else {
            index_chunk(self.params.chunk_version, &self.offsets)?
        };
        let trailer = if self.has_trailer() {
            let new = layout == Layout::Version1 && self.params.trailer_marker;
            trailer::to_bytes(if new { START } else { OLD_START }, &self.usermeta)
        } else {
            Vec::new()
        };
        let doubled =
            layout == Layout::Version1 && mode == WriteMode::Whole && !self.offsets.is_empty();
        let gap = if doubled { trailer.len() } else { 0 };

        let too_long = || Error::Argument("the header has more than 2 GiB".into());
        let header_len = layout.fixed_len() + section.len();
        header.header_len = i32::try_from(header_len).map_err(|_| too_long())?;
        let frame_len = header_len + self.data.len() + index.len() + gap + trailer.len();
        header.frame_len = frame_len as u64;
        header.filter_flags = self.params.filter_flags;
        header.codec_flags = self.params.level << 4 | self.params.codec;
        header.nbytes = self.sizes.iter().map(|&size| i64::from(size)).sum();
        header.cbytes = self.data.len() as i64;
        header.typesize = typesize as i32;
        header.chunksize = self.chunksize() as i32;
        header.threads = threads;
        header.set_flag(match self.has_trailer() {
            true => !self.usermeta.is_empty() && mode == WriteMode::Whole,
            false => !self.metalayers.is_empty(),
        });
        if layout == Layout::Version1 {
            header.nfilters = self.params.filters.len() as u8;
            let fill = |slots: &mut [u8; 8], values: &[u8]| {
                slots.iter_mut().zip(values).for_each(|(slot, &value)| *slot = value);
            };
            fill(&mut header.filters, &self.params.filters);
            fill(&mut header.filters_meta, &self.params.filters_meta);
        }
        let mut frame = header.to_bytes();
        frame.reserve_exact(frame_len - frame.len());
        frame.extend(section);
        frame.extend(self.data);
        frame.extend(index);
        frame.resize(frame.len() + gap, 0);
        frame.extend(trailer);
        Ok(frame)
    }

    fn has_trailer(&self) -> bool {
        self.params.layout == Layout::Version1 || self.params.trailer
    }

    fn chunksize(&self) -> u32 {
        let Some((&first, others)) = self.sizes.split_first() else { return 0 };
        let (last, middle) = others.split_last().unwrap_or((&first, &[]));
        let equal = middle.iter().all(|&size| size == first);
        match self.params.mode {
            WriteMode::Whole if equal && *last == first => first,
            WriteMode::Appended if equal && *last <= first => first,
            _ => 0,
        }
    }
}

/// Returns an uncompressed chunk with `data`, in version 4 of the chunk format. The versions of
/// C-Blosc2 that wrote legacy frames also wrote such chunks, with BloscLZ and shuffle at level 0.
///
/// # Errors
/// [`Error::Argument`]: `typesize` is 0, or the data is empty or longer than a chunk can be.
pub fn stored_chunk(typesize: u8, data: &[u8]) -> Result<Vec<u8>, Error> {
    stored(4, typesize, data)
}

fn stored(version: u8, typesize: u8, data: &[u8]) -> Result<Vec<u8>, Error> {
    let sizes = stored_sizes(typesize, data, chunk::EXTENDED_HEADER_LEN)?;
    let unsplit = !is_split(typesize, data.len().min(MAX_BLOCKSIZE));
    let mut chunk = vec![version, 1, 0b111 | u8::from(unsplit) << 4, typesize];
    chunk.extend(sizes);
    let mut slots = [0; chunk::EXTENDED_HEADER_LEN - chunk::MIN_HEADER_LEN];
    slots[last_filter(version)] = SHUFFLE;
    chunk.extend(slots);
    chunk.extend(data);
    Ok(chunk)
}

/// Returns the chunk of the offsets.
fn index_chunk(version: u8, offsets: &[u64]) -> Result<Vec<u8>, Error> {
    let data: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    if data.len() < MIN_COMPRESSED {
        return stored(version, 8, &data);
    }
    let mut filters = [0; chunk::MAX_FILTERS];
    filters[last_filter(version)] = SHUFFLE;
    let split = is_split(8, data.len().min(MAX_BLOCKSIZE));
    let split = if split { SplitMode::Always } else { SplitMode::Never };
    let default = chunk::Params::default();
    let params = chunk::Params { codec: 0, level: 5, typesize: 8, filters, split, ..default };
    Encoder::with_form(params, form(version))?.encode(&data)
}

/// Returns the parameters of the chunks of the frame.
fn chunk_params(params: &Params) -> chunk::Params {
    let (mut filters, mut filters_meta) = ([0; chunk::MAX_FILTERS], [0; chunk::MAX_FILTERS]);
    let first = last_filter(params.chunk_version) + 1 - params.filters.len();
    for (slot, &filter) in params.filters.iter().enumerate() {
        filters[first + slot] = filter;
        filters_meta[first + slot] = params.filters_meta.get(slot).copied().unwrap_or_default();
    }
    let Params { codec, level, typesize, .. } = *params;
    let typesize = if typesize < 256 { typesize } else { 1 };
    let default = chunk::Params::default();
    chunk::Params { codec, level, typesize, filters, filters_meta, ..default }
}

/// Returns the form of chunks of this version.
fn form(version: u8) -> Form {
    Form { version, extended: true, runs: false }
}

/// Returns whether BloscLZ split blocks into one stream for each byte of the items.
fn is_split(typesize: u8, blocksize: usize) -> bool {
    (1..=16).contains(&typesize) && blocksize / usize::from(typesize) >= 128
}

/// Returns the slot of a single filter: the last one. Version 3 had five slots.
fn last_filter(version: u8) -> usize {
    if version == 3 { 4 } else { 5 }
}
