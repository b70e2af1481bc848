//! Recovery of intact parts from a damaged frame.

mod directory;
#[cfg(test)]
mod tests;
mod walk;

pub use directory::salvage_directory;

use self::walk::{Known, Walk, Walked};
use super::checksums::{self, Checksums, checksum, of_metadata};
use super::header::{ChunkSize, METALAYERS_AT, TRAILER_END_LEN, VLMETALAYERS_AT};
use super::index;
use super::journal::Journal;
use super::metalayer::Metalayer;
use super::offset::{OFFSET_LEN, Offset};
use super::section::{self, Place};
use super::span::Span;
use super::{Header, Layout, MIN_HEADER_LEN};
use crate::chunk::{self, Chunk, Params, Special};
use crate::report::{Checker, Report};
use crate::{Error, Limit, Limits, ReadAt};

/// The intact parts of a damaged frame. They are sufficient to write a new frame.
///
/// ```
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{Order, Writer, salvage};
/// use blosc2_format::Limits;
///
/// let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), Params::default(), &[])?;
/// writer.push(&7u64.to_le_bytes().repeat(100))?;
/// let bytes = writer.finish()?.into_inner();
/// let salvaged = salvage(&bytes, &Limits::default())?;
/// assert_eq!((salvaged.order, salvaged.chunks.len()), (Order::Index, 1));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The header, if its fields are plausible. Its lengths can be wrong.
    pub header: Option<Header>,
    /// The compression parameters. They come from the first available source:
    ///
    /// 1. the header, if the chunks do not contradict it;
    /// 2. the first chunk. The level and the split mode then have their defaults, and a typesize
    ///    above 255 becomes 1;
    /// 3. the defaults.
    pub params: Params,
    /// The metalayers of the header; `None` if they cannot be determined.
    pub metalayers: Option<Vec<Metalayer>>,
    /// The metalayers of the trailer with intact contents. Each content is a compressed chunk, as
    /// stored. `None` if no valid trailer was found.
    pub vlmetalayers: Option<Vec<Metalayer>>,
    /// The chunks, in the order described by [`order`](Self::order).
    pub chunks: Vec<Piece>,
    /// The order of the chunks: the order of an index, or the order in the file.
    pub order: Order,
    /// Intact chunks that the index does not refer to, in the order of the file. These are replaced
    /// or deleted chunks, and chunks that were written after the index. Empty if no index was
    /// found.
    pub unnamed: Vec<IntactChunk>,
    /// The number of bytes that belong to no intact part. In a directory, this number includes
    /// bytes of the index file and of the chunk files.
    pub damaged: u64,
    /// Whether the frame had [checksums](super::checksum). [`vlmetalayers`](Self::vlmetalayers)
    /// does not contain the metalayer with the checksums.
    pub has_checksums: bool,
    /// Whether the header or the metalayers differ from their checksum.
    pub is_metadata_changed: bool,
    /// Whether the complete source was examined. `false` if the search stopped because too many
    /// bytes looked like chunks and were not chunks.
    pub is_complete: bool,
}

/// The order of salvaged chunks.
///
/// ```
/// use blosc2_format::chunk::Params;
/// use blosc2_format::directory::{INDEX, Memory};
/// use blosc2_format::frame::{Order, Writer, salvage_directory};
/// use blosc2_format::Limits;
///
/// let mut writer = Writer::new_directory(Memory::default(), Params::default(), &[])?;
/// writer.push(&[1; 800])?;
/// let mut files = writer.finish()?;
/// files.0.remove(INDEX);
/// assert_eq!(salvage_directory(&files, &Limits::default())?.order, Order::File);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The order of the chunks in the frame, because an index was found. A damaged chunk is a
    /// [`Piece::Lost`].
    Index,
    /// The order of the positions in the file, because no index was found. This order has several
    /// effects:
    ///
    /// - Deleted chunks, and old versions of updated chunks, are included: they cannot be
    ///   distinguished from current chunks.
    /// - Lost chunks have no entry. Special chunks that only the index records (zeros, NaN,
    ///   uninitialized) also have no entry.
    /// - Inserted chunks, and new versions of updated chunks, can be at the end.
    File,
}

/// The result of [`salvage`] for one chunk.
///
/// ```
/// use blosc2_format::frame::{IntactChunk, Piece};
///
/// let pieces = [Piece::Intact(IntactChunk { at: 97, len: 40, nbytes: 800 }), Piece::Lost];
/// let lost = pieces.iter().filter(|piece| **piece == Piece::Lost).count();
/// assert_eq!(lost, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Piece {
    /// The chunk is intact.
    Intact(IntactChunk),
    /// The chunk is special (constant), and only the index records it.
    Special {
        /// The value.
        special: Special,
        /// The decoded size, in bytes.
        nbytes: u32,
    },
    /// The chunk is damaged or missing, or it is special (constant) and its size is unknown.
    Lost,
}

/// The location and the sizes of an intact chunk.
///
/// ```
/// use blosc2_format::ReadAt;
/// use blosc2_format::frame::IntactChunk;
///
/// let source = b"...chunk...".as_slice();
/// let chunk = IntactChunk { at: 3, len: 5, nbytes: 800 };
/// assert_eq!(source.read_vec_at(chunk.at, chunk.len.into())?, b"chunk");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntactChunk {
    /// The position in bytes from the start of the source. In a directory, the file number of the
    /// chunk.
    pub at: u64,
    /// The stored size, in bytes.
    pub len: u32,
    /// The decoded size, in bytes.
    pub nbytes: u32,
}

/// Finds the intact parts of a damaged contiguous frame. The frame can be truncated or contain
/// wrong bytes.
///
/// If the writer of a frame was interrupted, the file can end with a [journal](super::journal),
/// which contains the bytes that the unfinished change has overwritten. This function does not
/// restore these bytes: the caller must first write them back.
///
/// The function decodes every chunk. If the codec or a filter is not supported, or if decoding
/// exceeds `limits`, it checks only the structure of the chunk.
///
/// The following chunks count as damaged:
///
/// - a chunk that violates a rule or cannot be decoded;
/// - a chunk whose stored size exceeds [`Limits::memory`];
/// - a chunk that differs from its checksum, if the frame has [checksums](super::checksum) and an
///   intact index.
///
/// Outdated checksums are ignored. Checksums are outdated if a program that does not update them
/// has changed the length of the frame or the number of chunks. Without checksums, a chunk with
/// changed bytes counts as intact if it can still be decoded. The run time is proportional to the
/// size of the data and of `source`.
///
/// The data of a damaged chunk can contain the bytes of another chunk. If the index is lost, the
/// function mistakes this inner chunk for a chunk of the frame.
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
/// - [`Error::Io`]: reading from `source` fails;
/// - [`Error::Limit`]: the index or the metalayers need more memory than [`Limits::metadata`], or the
///   index has more entries than [`Limits::chunks`].
pub fn salvage<R: ReadAt + ?Sized>(source: &R, limits: &Limits) -> Result<Salvaged, Error> {
    // The content of a journal was in the frame before the change.
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
            // Another index may have overwritten the chunk.
            Err(_) => Ok(again.whole(at)?.filter(|whole| !file.is_index_instead(whole))),
        }
    })?;
    let mut salvaged = file.finish(chunks, pieces, 0)?;
    salvaged.verify(source, limits, |chunk| Ok(source.read_vec_at(chunk.at, chunk.len.into())?))?;
    Ok(salvaged)
}

impl Salvaged {
    /// Removes the checksums from the metalayers, and compares all other parts with the checksums.
    /// Chunks that differ are lost. `source` contains the header, and `read` returns a chunk.
    fn verify<R: ReadAt + ?Sized>(
        &mut self,
        source: &R,
        limits: &Limits,
        mut read: impl FnMut(IntactChunk) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let Some(layers) = &mut self.vlmetalayers else { return Ok(()) };
        let Some(number) = checksums::position(layers) else { return Ok(()) };
        let layer = layers.remove(number);
        self.has_checksums = true;
        let header = self.header.as_ref();
        let head = match header.filter(|header| u64::from(header.header_len) <= limits.memory) {
            Some(header) => source.read_vec_at(0, header.header_len.into()).unwrap_or_default(),
            None => Vec::new(),
        };
        let layers = layers.iter().map(|each| (&each.name[..], &each.content[..]));
        let crc = of_metadata(&head, layers);
        let (count, frame_len) =
            (self.chunks.len() as u64, header.map_or(0, |header| header.frame_len));
        let known = (count, frame_len, crc);
        let sums = match Checksums::read(&layer, 0, known, limits) {
            Ok(sums) => sums,
            // Unreadable checksums do not prevent the recovery of the other parts.
            Err(Error::Limit { .. } | Error::Unsupported(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_whole = self.order == Order::Index && header.is_some();
        if is_whole && sums.is_outdated() || sums.chunks.len() as u64 != count {
            return Ok(());
        }
        self.is_metadata_changed = is_whole && sums.fault().is_some();
        if self.order == Order::File {
            return Ok(());
        }
        for (number, piece) in self.chunks.iter_mut().enumerate() {
            let found = match *piece {
                Piece::Intact(chunk) => checksum(Offset::At(0), &read(chunk)?),
                Piece::Special { special, .. } => checksum(Offset::Special(special), &[]),
                Piece::Lost => continue,
            };
            if sums.of_chunk(number as u64).is_some_and(|expected| expected != found) {
                *piece = Piece::Lost;
            }
        }
        Ok(())
    }
}

/// The file with header, index and trailer, and its intact parts.
struct File<'a, R: ?Sized> {
    source: &'a R,
    /// The number of bytes that can belong to the frame.
    size: u64,
    limits: &'a Limits,
    header: Option<Header>,
    metalayers: Option<Vec<Metalayer>>,
    known: Known<'a>,
    walked: Walked,
}

impl<'a, R: ReadAt + ?Sized> File<'a, R> {
    /// Examines the complete file. For a directory, `files` are the intact chunk files.
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
            // The last metalayer has another length than stated.
            end = None;
        }
        if let Some(end) = end {
            Limits::allow(
                Limit::Metadata,
                METALAYERS,
                end.saturating_mul(2),
                limits.metadata_of(size),
            )?;
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
            // The header may be wrong without violating a rule.
            known.typesize = None;
            if metalayers.is_none() {
                (known.start, known.base) = (first.min(size), None);
            }
            walked = Walk::new(source, size, limits).run(known)?;
        }
        let metalayers = metalayers.map(|(layers, _)| layers);
        Ok(Self { source, size, limits, header, metalayers, known, walked })
    }

    /// Returns the chunks in the order of an index, and that index. `find` finds the chunk at a
    /// position.
    fn pieces(
        &self,
        chunks: &[IntactChunk],
        mut find: impl FnMut(u64) -> Result<Option<IntactChunk>, Error>,
    ) -> Result<Option<(IntactChunk, Vec<Piece>)>, Error> {
        let Some(index) = self.choose(chunks)? else { return Ok(None) };
        let count = u64::from(index.nbytes) / OFFSET_LEN;
        let held = count.saturating_mul(size_of::<Piece>() as u64 + size_of::<u64>() as u64);
        let metadata = self.limits.decoded_metadata(self.size);
        Limits::allow(Limit::Metadata, "bytes in memory for the chunks", held, metadata)?;
        let mut pieces = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        let mut outcome = Ok(());
        self.offsets(index, |offset, times| {
            let piece = match offset {
                Offset::Special(special) => Piece::Special { special, nbytes: 0 },
                Offset::At(place) => match find(place) {
                    Ok(found) => found.map_or(Piece::Lost, Piece::Intact),
                    Err(error) => {
                        outcome = Err(error);
                        Piece::Lost
                    }
                },
            };
            pieces.extend((0..times).map(|_| piece));
        })?;
        outcome?;
        self.set_sizes(&mut pieces);
        Ok(Some((index, pieces)))
    }

    /// Returns the index that leads to the most chunks. Among equal candidates, prefers the index
    /// that the header refers to.
    fn choose(&self, chunks: &[IntactChunk]) -> Result<Option<IntactChunk>, Error> {
        let base = match self.known.files {
            Some(_) => 0,
            None => walk::base(&self.known, chunks),
        };
        let mut best = None;
        for &index in &self.walked.indexes {
            let count = u64::from(index.nbytes) / OFFSET_LEN;
            let (mut found, mut lost) = (0u64, 0u64);
            self.offsets(index, |offset, times| {
                let Offset::At(place) = offset else { return };
                let at = base.saturating_add(place);
                let is_found = chunks.binary_search_by_key(&at, |chunk| chunk.at).is_ok();
                *(if is_found { &mut found } else { &mut lost }) += times;
            })?;
            // The base of the offsets can be a guess. A guess is accepted only if it leads to all
            // chunks.
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

    /// Returns whether an index was found at the position of a chunk, and has another size than the
    /// chunk.
    fn is_index_instead(&self, whole: &IntactChunk) -> bool {
        let header = self.header.as_ref();
        let size = header.and_then(|header| header.chunksize.fixed());
        let is_index = self.walked.indexes.iter().any(|index| index.at == whole.at);
        is_index && size.is_some_and(|size| size != whole.nbytes)
    }

    /// Returns the number of chunks that the header states, if any.
    fn count(&self) -> Option<u64> {
        let header = self.header.as_ref()?;
        Some(header.nbytes.div_ceil(header.chunksize.fixed()?.into()))
    }

    /// Calls `each` with the offsets of an intact index, and the number of repetitions of each.
    fn offsets(&self, index: IntactChunk, mut each: impl FnMut(Offset, u64)) -> Result<(), Error> {
        let bytes = self.source.read_vec_at(index.at, index.len.into())?;
        let chunk = Chunk::new(&bytes, self.limits)?;
        index::decode(&chunk, |offset, times| {
            if let Some(offset) = Offset::of(offset) {
                each(offset, times);
            }
            true
        })
    }

    /// Sets the sizes of special chunks. Chunks of unknown size are lost.
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
            // All chunks of an array have the full size. In other frames the last chunk can be
            // shorter.
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

    /// Combines the results. `damaged` is the number of wrong bytes in other files.
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
            has_checksums: false,
            is_metadata_changed: false,
            is_complete: !self.walked.is_given_up,
        })
    }

    fn vlmetalayers(&self, trailer: Span) -> Result<Option<Vec<Metalayer>>, Error> {
        let metadata = self.limits.metadata_of(self.size);
        Limits::allow(Limit::Metadata, METALAYERS, trailer.len.saturating_mul(2), metadata)?;
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

const METALAYERS: &str = "bytes of metalayers";

/// Returns the metalayers of a section without errors.
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

/// Returns the compression parameters from the header, or from the first chunk and whether all
/// chunks have its typesize.
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
