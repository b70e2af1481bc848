//! Legacy packed super-chunks of C-Blosc2 2.0.0-a2 to 2.0.0-a4. No other current reader opens these
//! files.
//!
//! A packed super-chunk consists of a header of 96 bytes, up to four [ancillary chunks](Ancillary),
//! the data chunks, and a table with their positions. Numbers are in little-endian byte order.
//! There is no magic number: [`recognise`] checks whether the lengths in the header agree with each
//! other and with the file.
//!
//! ```
//! use blosc2_format::Limits;
//! use blosc2_format::packed::{Packed, Params, Writer, stored_chunk};
//!
//! let mut writer = Writer::new(Params::default())?;
//! writer.push_chunk(&stored_chunk(4, &[7; 400])?)?;
//! let mut packed = Packed::open(writer.finish(), &Limits::default())?;
//! assert_eq!((packed.nchunks(), packed.nbytes(), packed.typesize()), (1, 400, 4));
//! let mut data = Vec::new();
//! packed.decode_chunk(0, &mut data)?;
//! assert_eq!(data, [7; 400]);
//! # Ok::<(), blosc2_format::Error>(())
//! ```
//!
//! # Delta
//! If the first filter is delta, a compressed data chunk contains the difference between the data
//! and a reference, byte by byte. The ancillary chunk [`Ancillary::Filters`] contains the
//! reference. The file does not state whether an uncompressed chunk contains a difference or the
//! data itself; see [`StoredDelta`]. [`Packed::decode_chunk`] adds the reference and returns the
//! data.

mod check;
mod header;
mod read;
mod rules;
mod write;

pub use check::check;
pub use header::{Ancillary, HEADER_LEN, Header};
pub use read::Packed;
pub use write::{IndexPlace, Params, Writer, stored_chunk};

pub(crate) use rules::RULES;

/// The kind of a packed super-chunk, as [`recognise`] returns it.
///
/// ```
/// use blosc2_format::packed::{Kind, Params, Writer, recognise, stored_chunk};
///
/// let mut writer = Writer::new(Params::default())?;
/// writer.push_chunk(&stored_chunk(4, &[7; 400])?)?;
/// let bytes = writer.finish();
/// assert_eq!(recognise(&bytes, bytes.len() as u64), Some(Kind::Packed));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A packed super-chunk.
    Packed,
    /// The output of C-Blosc2 2.0.0-a5, which has a header of 120 bytes with other fields. C-Blosc2
    /// 2.0.0-a5 and this crate cannot read this output.
    Alpha5,
}

/// Whether uncompressed chunks contain the difference between their data and the reference, like
/// compressed chunks.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::packed::{Packed, Params, StoredDelta, Writer};
///
/// let bytes = Writer::new(Params::default())?.finish();
/// let packed = Packed::open(bytes, &Limits::default())?.with_stored_delta(StoredDelta::Present);
/// assert_eq!(packed.stored_delta(), StoredDelta::Present);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredDelta {
    /// Uncompressed chunks contain the data itself. C-Blosc2 2.0.0-a2 to 2.0.0-a4 wrote such chunks
    /// when they packed a super-chunk.
    Absent,
    /// Uncompressed chunks contain the difference. Two writers wrote such chunks:
    ///
    /// - the development versions that wrote the table of positions [before the
    ///   data](IndexPlace::BeforeData);
    /// - C-Blosc2 2.0.0-a2 to 2.0.0-a4, when they appended to a packed super-chunk.
    Present,
}

/// Returns the kind of the packed super-chunk in a file, or `None` if the file contains no packed
/// super-chunk. `start` contains the first bytes of the file; 96 bytes are sufficient. `size` is
/// the size of the file, in bytes.
pub fn recognise(start: &[u8], size: u64) -> Option<Kind> {
    let header = Header::parse(start).ok()?;
    if header.version != 0 || header.flags != [0; 3] {
        return None;
    }
    let nchunks = u64::try_from(header.nchunks).ok()?;
    let index_len = nchunks.checked_mul(8)?;
    let position = u64::try_from(header.index).ok()?;
    let whole = u64::try_from(header.cbytes).is_ok_and(|cbytes| cbytes == size);
    let inside = position >= HEADER_LEN as u64
        && position.checked_add(index_len).is_some_and(|end| end <= size);
    if !inside || !(whole || header.nbytes > 0 && nchunks <= size / 16) {
        return None;
    }
    Some(if header.is_alpha5() { Kind::Alpha5 } else { Kind::Packed })
}
