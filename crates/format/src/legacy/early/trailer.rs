//! The trailer of a legacy frame: the user metadata, its length, and space for a fingerprint.

use super::header::hex;
use super::rules::Rules;
use crate::report::{Checker, Part};

/// The size of a trailer without user metadata, in bytes.
pub(crate) const MIN_TRAILER_LEN: u64 = 30;
/// The number of bytes before the user metadata.
pub(crate) const HEAD_LEN: usize = 7;
/// The number of bytes after the user metadata: the length and the fingerprint, with their markers.
const TAIL_LEN: usize = 23;
/// The position of the length, from the end.
pub(crate) const LEN_FROM_END: u64 = 22;
/// The first bytes of trailers from writers before beta.3, which wrote a wrong array marker.
pub(crate) const OLD_START: [u8; 3] = [0x0d, 0x00, 0xc6];
/// The first bytes of trailers since beta.3.
pub(crate) const START: [u8; 3] = [0x94, 0x01, 0xc6];

/// The position of a trailer, and its user metadata: a chunk, or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) usermeta: (u64, u64),
}

/// Returns the length that the first bytes of a trailer state, or `None` if they are not a trailer.
pub(crate) fn len_of(head: &[u8]) -> Option<u64> {
    let len = head.strip_prefix(&OLD_START).or_else(|| head.strip_prefix(&START))?.first_chunk()?;
    Some(u64::from(u32::from_be_bytes(*len)) + MIN_TRAILER_LEN)
}

/// Checks the trailer `bytes` at `start` of the frame.
pub(crate) fn check(
    bytes: &[u8],
    start: u64,
    starts: &[[u8; 3]],
    rules: &'static Rules,
    checker: &mut Checker<'_>,
) -> Option<Trailer> {
    let len = bytes.len() as u64;
    let mut checker = checker.within(Part::Trailer, start);
    let head = bytes.first_chunk::<HEAD_LEN>();
    let tail = bytes.get(HEAD_LEN..).and_then(|rest| rest.last_chunk::<TAIL_LEN>());
    let (Some(head), Some(tail)) = (head, tail) else {
        checker.found(&rules.trailer, 0, len, "at least 30 bytes", len);
        return None;
    };
    let [first, second, third, usermeta_len @ ..] = *head;
    if !starts.contains(&[first, second, third]) {
        let expected: Vec<_> =
            starts.iter().map(|start| start.map(|b| format!("{b:02x}")).concat()).collect();
        let found = format!("{first:02x}{second:02x}{third:02x}");
        checker.found(&rules.trailer, 0, 3, expected.join(" or "), found);
    }
    let usermeta_len = u64::from(u32::from_be_bytes(usermeta_len));
    let room = len.saturating_sub(MIN_TRAILER_LEN);
    if usermeta_len != room {
        let expected = format_args!("{room} bytes of user metadata");
        checker.found(&rules.trailer, 3, 4, expected, usermeta_len);
    }
    let tail_at = len - tail.len() as u64;
    for (at, marker) in [(0, 0xce), (5, 0xd8), (6, 0x00)] {
        let found = tail[at];
        if found != marker {
            checker.found(&rules.trailer, tail_at + at as u64, 1, hex(&[marker]), hex(&[found]));
        }
    }
    let given = u32::from_be_bytes([tail[1], tail[2], tail[3], tail[4]]);
    if u64::from(given) != len {
        checker.found(&rules.trailer_len, tail_at + 1, 4, len, given);
    }
    if tail[7..].iter().any(|&byte| byte != 0) {
        let found = tail[7..].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        checker.found(&rules.fingerprint, tail_at + 7, 16, "zeros", found);
    }
    let usermeta = (start + HEAD_LEN as u64, usermeta_len.min(room));
    Some(Trailer { start, len, usermeta })
}

/// Returns a trailer with these first bytes and the user metadata as a chunk.
pub(crate) fn to_bytes(start: [u8; 3], usermeta: &[u8]) -> Vec<u8> {
    let len = (usermeta.len() as u64 + MIN_TRAILER_LEN) as u32;
    let mut bytes = start.to_vec();
    bytes.extend((usermeta.len() as u32).to_be_bytes());
    bytes.extend(usermeta);
    bytes.push(0xce);
    bytes.extend(len.to_be_bytes());
    bytes.extend([0xd8, 0x00]);
    bytes.extend([0; 16]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::early::Layout;
    use crate::report::Report;

    fn checked(bytes: &[u8]) -> (Option<Trailer>, Report) {
        let mut report = Report::new();
        let rules = Rules::of(Layout::Version1);
        let trailer = check(bytes, 100, &[START], rules, &mut Checker::new(&mut report));
        (trailer, report)
    }

    #[test]
    fn a_trailer_survives_writing_and_reading() {
        for usermeta in [&b""[..], b"something"] {
            let bytes = to_bytes(START, usermeta);
            let (trailer, report) = checked(&bytes);
            assert_eq!(report, Report::new());
            let len = 30 + usermeta.len() as u64;
            let usermeta = (107, usermeta.len() as u64);
            assert_eq!(trailer, Some(Trailer { start: 100, len, usermeta }));
            assert_eq!(len_of(&bytes), Some(len));
        }
        assert_eq!(len_of(&[0x93; 10]), None);
    }

    #[test]
    fn each_wrong_byte_is_found() {
        let bytes = to_bytes(START, b"user");
        for at in (0..bytes.len()).filter(|at| !(7..11).contains(at)) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(checked(&wrong).1.findings.len(), 1, "byte {at}");
        }
        assert_eq!(checked(&bytes[..29]).0, None);
    }
}
