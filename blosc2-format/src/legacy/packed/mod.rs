//! The packed super-chunk of 2.0.0-a2 to a4, which no other reader opens today.
//!
//! A super-chunk in one run of bytes: a header of 96 bytes, up to four ancillary chunks, the data
//! chunks, and a block of their positions. Numbers are little endian. There is no magic number:
//! [`recognise`] goes by lengths that have to agree.
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
//! Where the first filter is delta, a decoded chunk is the difference to a reference, which the
//! filters chunk holds. The file does not tell whether that goes for chunks that are stored as they
//! are, see [`StoredDelta`].

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

/// What the first bytes of a file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A packed super-chunk.
    Packed,
    /// What 2.0.0-a5 wrote for one, and could not read itself: a header of 120 bytes with other
    /// fields. Nothing here reads it.
    Alpha5,
}

/// Whether chunks that are stored as they are hold the difference to the reference too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredDelta {
    /// They hold the data itself: so wrote a2 to a4 when they packed a super-chunk.
    Absent,
    /// They hold the difference: so wrote the versions that put the block of positions before the
    /// data, and a2 to a4 when they appended to a packed super-chunk.
    Present,
}

/// What a file of `size` bytes with these first bytes may be; `None` where it is no packed
/// super-chunk. 96 bytes suffice.
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
