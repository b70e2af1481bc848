//! Legacy frames of C-Blosc2 versions before 2.0.0-rc.1. No other current reader opens these
//! frames.
//!
//! There are two layouts. [`recognise`] detects the layout from the first bytes of a frame:
//! - [`Layout::Early`]: a fixed header of 64 bytes, written by C-Blosc2 2.0.0-beta.1 and by
//!   development versions shortly before and after 2.0.0-beta.1;
//! - [`Layout::Version1`]: a fixed header of 82 bytes, written by C-Blosc2 2.0.0-beta.2 to
//!   2.0.0-beta.5.
//!
//! [`Frame`] reads legacy frames. [`check`](fn@check) reports their errors. [`Writer`] writes
//! legacy frames in the same way as those versions of C-Blosc2.
//!
//! ```
//! use blosc2_format::early::{Frame, Layout, Params, WriteMode, Writer, stored_chunk};
//! use blosc2_format::Limits;
//!
//! let params = Params { layout: Layout::Early, typesize: 4, ..Params::default() };
//! let mut writer = Writer::new(params)?;
//! writer.add_metalayer("axis", b"time")?;
//! writer.push_chunk(&stored_chunk(4, &[7; 400])?)?;
//! let bytes = writer.finish()?;
//!
//! let mut frame = Frame::open(&bytes, &Limits::default())?;
//! assert_eq!((frame.layout(), frame.nchunks(), frame.nbytes()), (Layout::Early, 1, 400));
//! let mut data = Vec::new();
//! frame.decode_chunk(0, &mut data)?;
//! assert_eq!(data, [7; 400]);
//! # Ok::<(), blosc2_format::Error>(())
//! ```

mod check;
mod end;
mod frame;
mod header;
mod index;
mod metalayers;
mod parts;
mod rules;
mod trailer;
mod write;

pub use check::check;
pub use frame::Frame;
pub use header::{EARLY_HEADER_LEN, Header, VERSION1_HEADER_LEN};
pub use write::{Params, WriteMode, Writer, stored_chunk};

pub(crate) use rules::RULES;

/// The layout of a legacy frame.
///
/// ```
/// use blosc2_format::early::{Layout, Params, Writer, recognise};
///
/// let bytes = Writer::new(Params { layout: Layout::Early, ..Params::default() })?.finish()?;
/// assert_eq!(recognise(&bytes), Some(Layout::Early));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// A fixed header of 64 bytes, written by C-Blosc2 2.0.0-beta.1 and by development versions
    /// shortly before and after 2.0.0-beta.1.
    Early,
    /// A fixed header of 82 bytes, written by C-Blosc2 2.0.0-beta.2 to 2.0.0-beta.5.
    Version1,
}

/// The minimum number of matching bytes of the magic name.
const ENOUGH_MAGIC: usize = 5;

/// Returns the layout of the frame that starts with the bytes `start`, or `None` if the bytes are
/// not the start of a legacy frame.
///
/// 65 bytes are sufficient. Three properties indicate the layout: the number of elements, the
/// version, and the markers of the fields. The majority decides, so that one wrong byte does not
/// change the result.
pub fn recognise(start: &[u8]) -> Option<Layout> {
    let magic = start.get(2..10)?.iter().zip(header::MAGIC);
    if magic.filter(|(found, wanted)| found == wanted).count() < ENOUGH_MAGIC {
        return None;
    }
    let by_elements = match start.first()? {
        0x9b | 0x9c => Some(Layout::Early),
        0x9d => Some(Layout::Version1),
        _ => None,
    };
    let by_version = match start.get(0x19).map(|flags| flags & 0x0f) {
        Some(4) => Some(Layout::Early),
        Some(1) => Some(Layout::Version1),
        _ => None,
    };
    // The current layout has another marker at 0x39. There are filters at 0x40 only in version 1.
    let by_markers = match (start.get(0x39), start.get(0x40)) {
        (Some(0xd1), Some(0xd8)) => Some(Layout::Version1),
        (Some(0xd1), _) => Some(Layout::Early),
        _ => None,
    };
    if by_elements == by_version || by_elements == by_markers {
        by_elements
    } else if by_version == by_markers {
        by_version
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_told_apart_despite_a_wrong_byte() {
        let early = Header::new(Layout::Early).to_bytes();
        let version1 = Header::new(Layout::Version1).to_bytes();
        for (bytes, layout) in [(early, Layout::Early), (version1, Layout::Version1)] {
            assert_eq!(recognise(&bytes), Some(layout));
            for at in [0, 0x19, 0x39] {
                let mut wrong = bytes.clone();
                wrong[at] ^= 0x0f;
                assert_eq!(recognise(&wrong), Some(layout), "byte {at:#x}");
            }
            let mut wrong = bytes.clone();
            wrong[3] ^= 1;
            assert_eq!(recognise(&wrong), Some(layout));
            wrong[4..8].fill(0);
            assert_eq!(recognise(&wrong), None);
            assert_eq!(recognise(&bytes[..9]), None);
        }
        assert_eq!(recognise(b""), None);
        // The start of a current frame: another number of elements, version and third marker.
        let mut current = Header::new(Layout::Version1).to_bytes();
        current[0] = 0x9e;
        current[0x19] = 0x12;
        current[0x39] = 0xd2;
        assert_eq!(recognise(&current), None);
    }
}
