//! The interface of the formats to the reader of files, and the metadata of each format.

use std::ops::Range;

use super::Kind;
use crate::chunk::{self, Chunk, Decoder, MAX_FILTERS, Special};
use crate::directory::Folder;
use crate::frame::{BlockReader, Metalayer, Offset};
use crate::packed::{Ancillary, Packed};
use crate::{Error, FormatError, Limit, Limits, ReadAt, early, frame};

/// The metadata of a file of any kind.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::{Encoder, Params};
/// use blosc2_format::file::{File, Kind};
///
/// let bytes = Encoder::new(Params { typesize: 4, ..Params::default() })?.encode(&[7; 4000])?;
/// let file = File::from_reader(&bytes, &Limits::default())?;
/// let info = file.info();
/// assert_eq!((info.kind, info.nchunks, info.nbytes, info.typesize), (Kind::Chunk, 1, 4000, 4));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The kind of the file.
    pub kind: Kind,
    /// The version of the chunk format or of the frame format. `None` if files of this kind store
    /// no version.
    pub version: Option<u8>,
    /// The size of an item, in bytes.
    pub typesize: u32,
    /// The total decompressed size of all chunks, in bytes.
    pub nbytes: u64,
    /// The total stored size of all chunks, in bytes. In a contiguous frame, the value includes the
    /// gaps between the header and the index.
    pub cbytes: u64,
    /// The number of chunks; 1 for a [single chunk](Kind::Chunk).
    pub nchunks: u64,
    /// The decompressed size of a chunk, in bytes. The last chunk can be shorter. `None` if the
    /// sizes differ, or if there are no chunks and the file states no chunk size.
    pub chunksize: Option<u32>,
    /// The size of a block, in bytes; `None` if the file does not state one size for all chunks.
    pub blocksize: Option<u32>,
    /// The code of the codec: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 4 zlib, 5 Zstandard, ...
    pub codec: u8,
    /// The parameter of the codec.
    pub codec_meta: u8,
    /// The compression level; `None` for a [single chunk](Kind::Chunk), which does not store it.
    pub level: Option<u8>,
    /// The codes of the filters, in the order in which they were applied (see
    /// [`Params::filters`](crate::chunk::Params::filters)); 0 is an empty slot.
    pub filters: [u8; MAX_FILTERS],
    /// The parameters of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// The metalayers in the header.
    pub metalayers: Vec<Metalayer>,
    /// The names of the variable-length metalayers. A legacy frame has at most one, its [user
    /// metadata](crate::early::Frame::usermeta), with the name `usermeta`. In [packed
    /// super-chunks](crate::packed), the ancillary chunks `codec`, `metadata` and `userdata` count
    /// as variable-length metalayers.
    pub vlmetalayers: Vec<String>,
}

/// The interface that each format implements for the reader of files.
pub(super) trait Source {
    fn chunk_nbytes(&self, number: u64) -> Result<u64, Error>;
    fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error>;
    fn vlmetalayer(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error>;
    fn limits(&self) -> &Limits;

    /// Calls `each` for ranges of a decoded chunk, like [`File::read_ranges`](super::File::read_ranges), if parts of
    /// chunks can be read. Returns whether they can.
    fn read_ranges(
        &mut self,
        _number: u64,
        _ranges: &[Range<usize>],
        _each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<bool, Error> {
        Ok(false)
    }

    fn is_cached(&mut self, _number: u64, _range: &Range<usize>) -> bool {
        false
    }

    fn set_cache(&mut self, _nbytes: u64) {}

    /// Returns the position of a chunk in the source, if the chunks are in one file with an index.
    fn chunk_place(&self, _number: u64) -> Result<Option<Place>, Error> {
        Ok(None)
    }

    /// Returns the end of the chunks in the source, if the chunks are in one file with an index.
    fn chunks_end(&self) -> Option<u64> {
        None
    }

    fn chunk_header(&self, _number: u64) -> Result<Option<chunk::Header>, Error> {
        Ok(None)
    }

    fn has_checksums(&self) -> Option<bool> {
        None
    }

    fn require_checksums(&self) -> Result<(), Error> {
        let found = "a kind of file that has none";
        Err(FormatError::of(&frame::rules::CHECKSUMS_MISSING, 0, "required checksums", found)
            .into())
    }
}

/// The place of a chunk in a file: see [`File::chunk_place`](super::File::chunk_place).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The position of the chunk in the file.
    At(u64),
    /// The chunk is not stored: the index states its value.
    Index(Special),
}

type Opened<'a> = Result<(Info, Box<dyn Source + Send + 'a>), Error>;

/// The name of the only variable-length metalayer of legacy frames.
const USERMETA: &str = "usermeta";

/// A single chunk, in memory.
struct BareChunk {
    bytes: Vec<u8>,
    limits: Limits,
    decoder: Decoder,
}

pub(super) fn chunk<'a>(source: impl ReadAt + Send + 'a, limits: &Limits) -> Opened<'a> {
    let size = Limits::allow(Limit::Memory, "bytes of a chunk", source.size()?, limits.memory)?;
    let bytes = source.read_vec_at(0, size)?;
    let header = Chunk::new(&bytes, limits)?.header().clone();
    let info = Info {
        kind: Kind::Chunk,
        version: Some(header.version),
        typesize: header.typesize.into(),
        nbytes: header.nbytes.into(),
        cbytes: header.cbytes.into(),
        nchunks: 1,
        chunksize: Some(header.nbytes),
        blocksize: (!header.variable_blocks).then(|| header.block_len()),
        codec: header.codec(),
        codec_meta: header.codec_meta,
        level: None,
        filters: header.filters,
        filters_meta: header.filters_meta,
        metalayers: Vec::new(),
        vlmetalayers: Vec::new(),
    };
    Ok((info, Box::new(BareChunk { bytes, limits: *limits, decoder: Decoder::default() })))
}

impl BareChunk {
    fn check(&self, number: u64) -> Result<(), Error> {
        match number {
            0 => Ok(()),
            _ => Err(Error::Argument(format!(
                "no chunk at index {number}: the file is a single chunk"
            ))),
        }
    }
}

impl Source for BareChunk {
    fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        self.check(number)?;
        Ok(chunk::Header::parse(&self.bytes)?.nbytes.into())
    }

    fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        self.check(number)?;
        self.decoder.decode_vec(&Chunk::new(&self.bytes, &self.limits)?, data)
    }

    fn vlmetalayer(&mut self, _name: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }
}

pub(super) fn frame<'a>(source: impl ReadAt + Send + 'a, limits: &Limits) -> Opened<'a> {
    opened(Kind::Frame, frame::Frame::open(source, limits)?)
}

pub(super) fn directory<F>(folder: F, limits: &Limits) -> Opened<'static>
where
    F: Folder<File: Send> + 'static,
{
    opened(Kind::Directory, frame::Frame::open_directory(folder, limits)?)
}

fn opened<'a>(kind: Kind, frame: frame::Frame<impl ReadAt + Send + 'a>) -> Opened<'a> {
    let names = frame.vlmetalayers().map(str::to_owned).collect();
    let info = frame_info(kind, frame.header(), frame.metalayers(), names, frame.nchunks());
    Ok((info, Box::new(BlockReader::new(frame))))
}

fn frame_info(
    kind: Kind,
    header: &frame::Header,
    metalayers: &[Metalayer],
    vlmetalayers: Vec<String>,
    nchunks: u64,
) -> Info {
    Info {
        kind,
        version: Some(header.version),
        typesize: header.typesize,
        nbytes: header.nbytes,
        cbytes: header.cbytes,
        nchunks,
        chunksize: header.chunksize.fixed(),
        blocksize: Some(header.blocksize).filter(|&size| size > 0),
        codec: header.codec,
        codec_meta: header.codec_meta,
        level: Some(header.level),
        filters: header.filters,
        filters_meta: header.filters_meta,
        metalayers: metalayers.to_vec(),
        vlmetalayers,
    }
}

impl<R: ReadAt> Source for BlockReader<R> {
    fn require_checksums(&self) -> Result<(), Error> {
        self.frame().require_checksums()
    }

    fn has_checksums(&self) -> Option<bool> {
        Some(self.frame().has_checksums())
    }

    fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        self.frame().chunk_nbytes(number)
    }

    fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        self.frame_mut().decode_chunk(number, data)
    }

    fn vlmetalayer(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.frame().vlmetalayer(name)
    }

    fn limits(&self) -> &Limits {
        self.frame().limits()
    }

    fn read_ranges(
        &mut self,
        number: u64,
        ranges: &[Range<usize>],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<bool, Error> {
        Self::read_ranges(self, number, ranges, each).map(|()| true)
    }

    fn is_cached(&mut self, number: u64, range: &Range<usize>) -> bool {
        Self::is_cached(self, number, range)
    }

    fn set_cache(&mut self, nbytes: u64) {
        Self::set_cache(self, nbytes);
    }

    fn chunk_place(&self, number: u64) -> Result<Option<Place>, Error> {
        let offset = self.frame().offset(number)?;
        Ok(self.frame().header_end().map(|header| match offset {
            Offset::At(place) => Place::At(header.saturating_add(place)),
            Offset::Special(special) => Place::Index(special),
        }))
    }

    fn chunks_end(&self) -> Option<u64> {
        self.frame().chunks_end()
    }

    fn chunk_header(&self, number: u64) -> Result<Option<chunk::Header>, Error> {
        self.frame().chunk_header(number).map(Some)
    }
}

pub(super) fn early<'a>(source: impl ReadAt + Send + 'a, limits: &Limits) -> Opened<'a> {
    let frame = early::Frame::open(source, limits)?;
    let (kind, version) = match frame.layout() {
        early::Layout::Early => (Kind::EarlyFrame, None),
        early::Layout::Version1 => (Kind::FrameVersion1, Some(1)),
    };
    let usermeta = frame.usermeta_chunk()?.map(|_| USERMETA.to_owned());
    let info = Info {
        kind,
        version,
        typesize: frame.typesize(),
        nbytes: frame.nbytes(),
        cbytes: frame.cbytes(),
        nchunks: frame.nchunks(),
        chunksize: Some(frame.chunksize()).filter(|&size| size > 0),
        blocksize: None,
        codec: frame.codec(),
        codec_meta: 0,
        level: Some(frame.level()),
        filters: frame.filters(),
        filters_meta: frame.filters_meta(),
        metalayers: frame.metalayers().to_vec(),
        vlmetalayers: usermeta.into_iter().collect(),
    };
    Ok((info, Box::new(frame)))
}

impl<R: ReadAt> Source for early::Frame<R> {
    fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        early::Frame::chunk_nbytes(self, number)
    }

    fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        early::Frame::decode_chunk(self, number, data)
    }

    fn vlmetalayer(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        if name == USERMETA { self.usermeta() } else { Ok(None) }
    }

    fn limits(&self) -> &Limits {
        early::Frame::limits(self)
    }
}

/// The ancillary chunks with the content of users. The filters chunk is not among them.
const USER_CHUNKS: [Ancillary; 3] = [Ancillary::Codec, Ancillary::Metadata, Ancillary::Userdata];

pub(super) fn packed<'a>(source: impl ReadAt + Send + 'a, limits: &Limits) -> Opened<'a> {
    let packed = Packed::open(source, limits)?;
    let mut names = Vec::new();
    for kind in USER_CHUNKS {
        if packed.ancillary_chunk(kind)?.is_some() {
            names.push(kind.name().to_owned());
        }
    }
    let mut sizes = Vec::new();
    for number in 0..packed.nchunks() {
        sizes.push(packed.chunk_nbytes(number)?);
    }
    let info = Info {
        kind: Kind::Packed,
        version: None,
        typesize: packed.typesize(),
        nbytes: packed.nbytes(),
        cbytes: packed.cbytes(),
        nchunks: packed.nchunks(),
        chunksize: common_size(&sizes),
        blocksize: None,
        codec: packed.codec(),
        codec_meta: 0,
        level: Some(packed.level()),
        filters: packed.filters(),
        filters_meta: [0; MAX_FILTERS],
        metalayers: Vec::new(),
        vlmetalayers: names,
    };
    Ok((info, Box::new(packed)))
}

/// Returns the size that all chunks have in common; the last one can be shorter.
fn common_size(sizes: &[u64]) -> Option<u32> {
    let (last, others) = sizes.split_last()?;
    let size = *others.first().unwrap_or(last);
    let equal = others.iter().all(|&each| each == size) && *last <= size;
    u32::try_from(size).ok().filter(|_| equal)
}

impl<R: ReadAt> Source for Packed<R> {
    fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        Packed::chunk_nbytes(self, number)
    }

    fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        Packed::decode_chunk(self, number, data)
    }

    fn vlmetalayer(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match USER_CHUNKS.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => self.ancillary(kind),
            None => Ok(None),
        }
    }

    fn limits(&self) -> &Limits {
        Packed::limits(self)
    }
}
