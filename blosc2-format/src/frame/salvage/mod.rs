//! What is whole in a frame that is damaged.

mod directory;
#[cfg(test)]
mod tests;
mod walk;

pub use directory::salvage_directory;

use self::walk::{Known, Walk, Walked};
use super::header::{ChunkSize, METALAYERS_AT, TRAILER_END_LEN, VLMETALAYERS_AT};
use super::index;
use super::journal::Journal;
use super::offset::{OFFSET_LEN, Offset};
use super::outline::Metalayer;
use super::section::{self, Place};
use super::span::Span;
use super::{Header, Layout, MIN_HEADER_LEN};
use crate::chunk::{self, Chunk, Params, Special};
use crate::report::{Checker, Report};
use crate::{Error, Limits, ReadAt};

/// What is whole in a frame that is damaged: enough to write it anew.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The header, where its fields make sense. Those that say how long something is may be wrong.
    pub header: Option<Header>,
    /// How chunks are compressed: what the header says where the chunks do not contradict it, otherwise
    /// what the first chunk says; its level is the default then, and a typesize over 255 is 1.
    pub params: Params,
    /// The metalayers in the header; `None` where they cannot be told.
    pub metalayers: Option<Vec<Metalayer>>,
    /// The metalayers in the trailer whose contents are whole: these are chunks. `None` where no trailer
    /// was found.
    pub vlmetalayers: Option<Vec<Metalayer>>,
    /// The chunks, in the order that [`order`](Self::order) says.
    pub chunks: Vec<Piece>,
    /// What the order of the chunks is.
    pub order: Order,
    /// Whole chunks that the index does not name, in the order of the file: those that were replaced or
    /// deleted, and those that were written after it. Empty without an index.
    pub unnamed: Vec<IntactChunk>,
    /// How many bytes belong to nothing that is whole; in a directory, of the index file and of chunk
    /// files.
    pub damaged: u64,
    /// Whether all was looked at. It was not where too much looks like a chunk and is none.
    pub is_complete: bool,
}

/// What the order of salvaged chunks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// That of the frame: an index was found. A chunk that is not whole is there as
    /// [`Piece::Lost`].
    Index,
    /// That of the places in the file, as no index was found. Chunks that were replaced or deleted
    /// cannot be told from the others, chunks that are lost or that are all the same value leave no
    /// gap, and chunks that were inserted or replaced may stand at the end.
    File,
}

/// What is left of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Piece {
    /// All of it.
    Intact(IntactChunk),
    /// It is not stored: all of its bytes are the same.
    Special {
        /// What they are.
        special: Special,
        /// How many there are.
        nbytes: u32,
    },
    /// Nothing, but there was a chunk.
    Lost,
}

/// A chunk that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntactChunk {
    /// Where it is: bytes from the start of the source; in a directory, the number of its file, which is
    /// all of it or begins with it.
    pub at: u64,
    /// Bytes as it is stored.
    pub len: u32,
    /// Bytes when decoded.
    pub nbytes: u32,
}

/// Finds what is whole in a contiguous frame that is damaged: cut short, or with bytes that are wrong.
///
/// A frame whose writer was stopped may have a [journal](super::journal) at its end: that is left out here,
/// and best taken back before.
///
/// Every chunk is decoded, unless its codec is not here or it goes over `limits`; then only its structure
/// has been looked at. There are no checksums: what was changed and can still be decoded counts as whole.
/// This takes time in proportion to the data and to the size of `source`. Where the
/// index is lost, a chunk that is stored inside the data of another chunk which is damaged is taken for
/// one of the frame's.
///
/// ```
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{Frame, Piece, Writer, salvage};
/// use blosc2_format::{Limits, ReadAt};
///
/// let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), Params::default(), &[])?;
/// for number in 0..3u64 {
///     writer.push(&number.to_le_bytes().repeat(100))?;
/// }
/// let mut bytes = writer.finish()?.into_inner();
/// bytes.truncate(bytes.len() - 50);
/// assert!(Frame::open(&bytes[..], &Limits::default()).is_err());
///
/// let salvaged = salvage(&bytes, &Limits::default())?;
/// let mut written = 0;
/// for piece in salvaged.chunks {
///     let Piece::Intact(chunk) = piece else { continue };
///     let chunk = bytes.read_vec_at(chunk.at, chunk.len.into())?;
///     written += chunk.len();
/// }
/// assert!(written > 0);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
///
/// # Errors
/// - [`Error::Io`] where `source` fails;
/// - [`Error::Limit`] where the index, or the metalayers, take more than [`Limits::metadata`].
pub fn salvage<R: ReadAt + ?Sized>(source: &R, limits: &Limits) -> Result<Salvaged, Error> {
    // What a journal holds was in the frame before.
    let size = match Journal::find(source)? {
        Some(journal) => journal.start,
        None => source.size()?,
    };
    let file = File::read(source, size, Layout::Contiguous, None, limits)?;
    let chunks = &file.walked.chunks;
    let base = walk::base(&file.known, chunks);
    let mut again = Walk::new(source, size, limits);
    let pieces = file.pieces(chunks, |place| {
        let at = base.saturating_add(place);
        match chunks.binary_search_by_key(&at, |chunk| chunk.at) {
            Ok(number) => Ok(Some(chunks[number])),
            // Another index may have been written over the chunk.
            Err(_) => Ok(again.whole(at)?.filter(|whole| !file.is_index_instead(whole))),
        }
    })?;
    file.finish(chunks, pieces, 0)
}

/// The file that has header, index and trailer, and what is whole in it.
struct File<'a, R: ?Sized> {
    source: &'a R,
    /// Bytes that may belong to the frame.
    size: u64,
    limits: &'a Limits,
    header: Option<Header>,
    metalayers: Option<Vec<Metalayer>>,
    known: Known<'a>,
    walked: Walked,
}

impl<'a, R: ReadAt + ?Sized> File<'a, R> {
    /// Looks at all of it. Where it is that of a directory, `files` are the chunk files that are whole.
    fn read(
        source: &'a R,
        size: u64,
        layout: Layout,
        files: Option<&'a [IntactChunk]>,
        limits: &'a Limits,
    ) -> Result<Self, Error> {
        let head = source.read_vec_at(0, size.min(MIN_HEADER_LEN as u64))?;
        let header = Header::parse(&head).ok().filter(|header| header.layout == layout);
        let mut walk = Walk::new(source, size, limits);
        let first = METALAYERS_AT as u64;
        let mut metalayers = None;
        let header_len = header.as_ref().map(|header| u64::from(header.header_len));
        let mut end = walk.section_end(first, 0)?;
        if let Some(header_len) = header_len.filter(|&len| end.is_some_and(|end| end != len))
            && walk.is_start(header_len)?
        {
            // The last metalayer has another length than it says.
            end = None;
        }
        if let Some(end) = end {
            Limits::allow(METALAYERS, end.saturating_mul(2), limits.metadata_of(size))?;
            let bytes = source.read_vec_at(0, end)?;
            let place = Place {
                at: METALAYERS_AT,
                index_from: METALAYERS_AT,
                max: section::MAX_METALAYERS,
            };
            metalayers = layers(&bytes, place).map(|layers| (layers, end));
        }
        let base = metalayers.as_ref().map(|(_, end)| *end).or(header_len);
        let mut known = Known {
            start: base.filter(|&base| base <= size).unwrap_or(first.min(size)),
            base,
            has_data: header.as_ref().is_some_and(|header| header.nbytes > 0),
            typesize: header.as_ref().map(|header| u8::try_from(header.typesize).unwrap_or(1)),
            index_at: match (&header, layout) {
                (_, Layout::Directory) => base,
                (Some(header), _) => base.and_then(|base| base.checked_add(header.cbytes)),
                (None, _) => None,
            },
            files,
        };
        let mut walked = walk.run(known)?;
        if walked.chunks.is_empty() && walked.damaged > 0 && header.is_some() {
            // Perhaps it is the header that is wrong, without breaking a rule.
            known.typesize = None;
            if metalayers.is_none() {
                (known.start, known.base) = (first.min(size), None);
            }
            walked = Walk::new(source, size, limits).run(known)?;
        }
        let metalayers = metalayers.map(|(layers, _)| layers);
        Ok(Self { source, size, limits, header, metalayers, known, walked })
    }

    /// The chunks as an index says, and that index; `find` looks for the chunk at a place.
    fn pieces(
        &self,
        chunks: &[IntactChunk],
        mut find: impl FnMut(u64) -> Result<Option<IntactChunk>, Error>,
    ) -> Result<Option<(IntactChunk, Vec<Piece>)>, Error> {
        let Some(index) = self.choose(chunks)? else { return Ok(None) };
        let count = u64::from(index.nbytes) / OFFSET_LEN;
        let held = count.saturating_mul(size_of::<Piece>() as u64 + size_of::<u64>() as u64);
        let metadata = self.limits.metadata_of(self.size);
        Limits::allow("bytes to hold for the chunks (see `Limits::metadata`)", held, metadata)?;
        let mut pieces = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        let mut outcome = Ok(());
        self.offsets(index, |offset| {
            pieces.push(match offset {
                Offset::Special(special) => Piece::Special { special, nbytes: 0 },
                Offset::At(place) => match find(place) {
                    Ok(found) => found.map_or(Piece::Lost, Piece::Intact),
                    Err(error) => {
                        outcome = Err(error);
                        Piece::Lost
                    }
                },
            });
        })?;
        outcome?;
        self.set_sizes(&mut pieces);
        Ok(Some((index, pieces)))
    }

    /// The index that leads to the most: that of the header, if it is there.
    fn choose(&self, chunks: &[IntactChunk]) -> Result<Option<IntactChunk>, Error> {
        let base = match self.known.files {
            Some(_) => 0,
            None => walk::base(&self.known, chunks),
        };
        let mut best = None;
        for &index in &self.walked.indexes {
            let count = u64::from(index.nbytes) / OFFSET_LEN;
            let (mut found, mut lost) = (0u64, 0u64);
            self.offsets(index, |offset| {
                let Offset::At(place) = offset else { return };
                let at = base.saturating_add(place);
                let is_found = chunks.binary_search_by_key(&at, |chunk| chunk.at).is_ok();
                *(if is_found { &mut found } else { &mut lost }) += 1;
            })?;
            // Where offsets count from may be a guess, which nothing may contradict.
            let is_guess = self.known.base.is_none() && lost > 0 && self.known.files.is_none();
            let is_headers = self.known.index_at == Some(index.at)
                && self.count().is_none_or(|expected| expected == count);
            if is_guess || (found == 0 && lost > 0 && !is_headers) {
                continue;
            }
            let rank = (is_headers, lost == 0, found, index.at);
            if best.is_none_or(|(best, _)| best < rank) {
                best = Some((rank, index));
            }
        }
        Ok(best.map(|(_, index)| index))
    }

    /// Whether an index was found where a chunk of another size is looked for.
    fn is_index_instead(&self, whole: &IntactChunk) -> bool {
        let header = self.header.as_ref();
        let size = header.and_then(|header| header.chunksize.fixed());
        let is_index = self.walked.indexes.iter().any(|index| index.at == whole.at);
        is_index && size.is_some_and(|size| size != whole.nbytes)
    }

    /// How many chunks the header says; `None` where it does not.
    fn count(&self) -> Option<u64> {
        let header = self.header.as_ref()?;
        Some(header.nbytes.div_ceil(header.chunksize.fixed()?.into()))
    }

    /// The offsets of an index that was found whole.
    fn offsets(&self, index: IntactChunk, mut each: impl FnMut(Offset)) -> Result<(), Error> {
        let bytes = self.source.read_vec_at(index.at, index.len.into())?;
        let chunk = Chunk::new(&bytes, self.limits)?;
        index::decode(&chunk, |offset| {
            Offset::of(offset).map(&mut each);
            true
        })
    }

    /// Gives special chunks their sizes. They are lost where these cannot be told.
    fn set_sizes(&self, pieces: &mut [Piece]) {
        let count = pieces.len();
        let (mut size, mut end) = (None, None);
        if self.count() == Some(count as u64) {
            let header = self.header.as_ref();
            size = header.and_then(|header| header.chunksize.fixed());
            let before = u64::from(size.unwrap_or(0)) * (count as u64).saturating_sub(1);
            end = header.and_then(|header| u32::try_from(header.nbytes - before).ok());
        } else if self.header.as_ref().is_none_or(|header| header.chunksize != ChunkSize::Variable)
        {
            let whole = |piece: &Piece| match piece {
                Piece::Intact(chunk) => Some(chunk.nbytes),
                _ => None,
            };
            let mut sizes = pieces[..count.saturating_sub(1)].iter().filter_map(whole);
            size = sizes.next().filter(|&size| sizes.all(|other| other == size));
            // The chunks of an array are all whole; another frame may have a shorter one at the end.
            let is_array = |layer: &Metalayer| {
                [crate::b2nd::NAME, crate::b2nd::OLD_NAME].contains(&layer.name.as_str())
            };
            let layers = self.metalayers.as_deref().unwrap_or_default();
            end = size.filter(|_| layers.iter().any(is_array));
        }
        for (number, piece) in pieces.iter_mut().enumerate() {
            if let Piece::Special { special, .. } = *piece {
                let nbytes = if number + 1 == count { end } else { size };
                *piece = nbytes.map_or(Piece::Lost, |nbytes| Piece::Special { special, nbytes });
            }
        }
    }

    /// Puts together what was found; `damaged` bytes are wrong in other files.
    fn finish(
        &self,
        chunks: &[IntactChunk],
        pieces: Option<(IntactChunk, Vec<Piece>)>,
        damaged: u64,
    ) -> Result<Salvaged, Error> {
        let index_end = pieces.as_ref().map_or(0, |(index, _)| index.at + u64::from(index.len));
        let trailers = &self.walked.trailers;
        let trailer = trailers.iter().find(|trailer| pieces.is_some() && trailer.at >= index_end);
        let vlmetalayers = match trailer.or(trailers.last()) {
            Some(trailer) => self.vlmetalayers(*trailer)?,
            None => None,
        };
        let (order, pieces, unnamed) = match pieces {
            Some((_, pieces)) => {
                let place = |piece: &Piece| match piece {
                    Piece::Intact(chunk) => Some(chunk.at),
                    _ => None,
                };
                let mut named: Vec<u64> = pieces.iter().filter_map(place).collect();
                named.sort_unstable();
                let is_unnamed = |chunk: &&IntactChunk| named.binary_search(&chunk.at).is_err();
                (Order::Index, pieces, chunks.iter().filter(is_unnamed).copied().collect())
            }
            None => {
                let pieces = chunks.iter().copied().map(Piece::Intact).collect();
                (Order::File, pieces, Vec::new())
            }
        };
        Ok(Salvaged {
            params: params(self.header.as_ref(), self.walked.first.as_ref()),
            header: self.header.clone(),
            metalayers: self.metalayers.clone(),
            vlmetalayers,
            chunks: pieces,
            order,
            unnamed,
            damaged: self.walked.damaged.saturating_add(damaged),
            is_complete: !self.walked.is_given_up,
        })
    }

    fn vlmetalayers(&self, trailer: Span) -> Result<Option<Vec<Metalayer>>, Error> {
        let metadata = self.limits.metadata_of(self.size);
        Limits::allow(METALAYERS, trailer.len.saturating_mul(2), metadata)?;
        let len = trailer.len - TRAILER_END_LEN as u64;
        let bytes = self.source.read_vec_at(trailer.at, len)?;
        let place = Place {
            at: VLMETALAYERS_AT,
            index_from: VLMETALAYERS_AT + 1,
            max: section::MAX_VLMETALAYERS,
        };
        let Some(mut layers) = layers(&bytes, place) else { return Ok(None) };
        layers.retain(|layer| walk::check(&layer.content, self.limits).0.is_good());
        Ok(Some(layers))
    }
}

const METALAYERS: &str = "bytes of metalayers (see `Limits::metadata`)";

/// The metalayers of a section that is wholly right.
fn layers(bytes: &[u8], place: Place) -> Option<Vec<Metalayer>> {
    let mut report = Report::brief();
    let found = section::read(bytes, place, &mut Checker::new(&mut report));
    let (entries, _) = found.filter(|_| report.is_good())?;
    let content = |at: usize, len| bytes.get(at..).and_then(|rest| rest.get(..len));
    let layer = |entry: section::Entry| {
        let content = content(entry.at, entry.len).unwrap_or_default().to_vec();
        Metalayer { name: entry.name, content }
    };
    Some(entries.into_iter().map(layer).collect())
}

/// How chunks are compressed, by the header or by the first chunk and whether all have its typesize.
fn params(header: Option<&Header>, first: Option<&(chunk::Header, bool)>) -> Params {
    let contradicted = |header: &&Header| {
        let typesize = u8::try_from(header.typesize).unwrap_or(1);
        first.is_some_and(|(first, is_same)| *is_same && first.typesize != typesize)
    };
    if let Some(header) = header.filter(|header| !contradicted(header)) {
        return Params { level: header.level.min(9), ..header.params() };
    }
    let Some((first, _)) = first else { return Params::default() };
    Params {
        codec: first.codec(),
        codec_meta: first.codec_meta,
        typesize: first.typesize.into(),
        blocksize: Some(first.blocksize).filter(|_| !first.variable_blocks),
        filters: first.filters,
        filters_meta: first.filters_meta,
        ..Params::default()
    }
}
