//! The end of a legacy frame, after its index.

use super::Layout;
use super::header::hex;
use super::parts::{Finder, Parts};
use super::rules::Rules;
use super::trailer::{self, HEAD_LEN, LEN_FROM_END, MIN_TRAILER_LEN, OLD_START, START, Trailer};
use crate::report::{Checker, Part};
use crate::{Error, Limit, Limits, ReadAt};

impl<R: ReadAt + ?Sized> Finder<'_, R> {
    /// Checks the end of the frame after the index: the trailer and the length.
    pub(super) fn end(&self, parts: &mut Parts, checker: &mut Checker<'_>) -> Result<(), Error> {
        let Self { source, size, limits, rules } = *self;
        let (layout, frame_len) = (parts.header.layout, parts.header.frame_len);
        let index_end = parts.index_end();
        let mut frame_end = index_end;
        if let Some((start, len)) = self.find_trailer(parts)? {
            Limits::allow(Limit::Memory, "bytes of the trailer", len, limits.memory)?;
            let bytes = source.read_vec_at(start, len)?;
            let starts: &[_] = match layout {
                Layout::Version1 => &[OLD_START, START],
                Layout::Early => &[OLD_START],
            };
            parts.trailer = trailer::check(&bytes, start, starts, rules, checker);
            frame_end = start + len;
            let gap = start - index_end;
            let mut checker = checker.within(Part::Gap, index_end);
            if gap > 0 && gap != len {
                checker.found(&rules.trailer_gap, 0, gap, format_args!("0 or {len} bytes"), gap);
            }
        } else if layout == Layout::Version1 {
            let mut checker = checker.within(Part::Trailer, index_end);
            checker.found(&rules.trailer, 0, size - index_end, "a trailer after the index", "none");
            return Ok(());
        }
        if frame_len != frame_end && frame_len <= size {
            // Writers that set the user metadata of a frame in a file did not update its length.
            let stale = matches!(&parts.trailer, Some(Trailer { start, len, .. })
                if *len > MIN_TRAILER_LEN && frame_len == start + MIN_TRAILER_LEN);
            let rule = if stale { &rules.stale_frame_len } else { &rules.frame_len };
            let last = if parts.trailer.is_some() { "trailer" } else { "index" };
            let expected = format_args!("{frame_end}, where the {last} ends");
            checker.within(Part::Header, 0).found(rule, 0x10, 8, expected, frame_len);
        }
        if frame_end < size {
            let mut checker = checker.within(Part::Gap, frame_end);
            let rest = size - frame_end;
            checker.found(&rules.rest, 0, rest, "none", format_args!("{rest} bytes"));
        }
        flag(parts, rules, checker);
        Ok(())
    }

    /// Returns the position and the length of the trailer.
    ///
    /// The trailer follows the index. Exception: in frames of version 1 that were written in one
    /// call, a gap with the length of the trailer is between them, because the writer reserved the
    /// space twice. Three fields determine the length of the trailer: two fields in the trailer,
    /// and the length of the frame. If one of them is wrong, the trailer can still be found.
    fn find_trailer(&self, parts: &Parts) -> Result<Option<(u64, u64)>, Error> {
        let Self { source, size, .. } = *self;
        let (frame_len, index_end) = (parts.header.frame_len, parts.index_end());
        let length_at = |end: u64| -> Result<u64, Error> {
            let mut len = [0; 4];
            source.read_exact_at(end - LEN_FROM_END, &mut len)?;
            Ok(u64::from(u32::from_be_bytes(len)))
        };
        let by_head = |at: u64| -> Result<Option<(u64, u64)>, Error> {
            let head = source.read_vec_at(at, size.saturating_sub(at).min(HEAD_LEN as u64))?;
            let len = trailer::len_of(&head).filter(|&len| len <= size.saturating_sub(at));
            Ok(len.map(|len| (at, len)))
        };
        let mut starts = vec![index_end];
        if parts.header.layout == Layout::Version1 {
            for end in [frame_len.min(size), size] {
                starts.push(index_end + end.saturating_sub(index_end) / 2);
            }
        }
        let mut heads = Vec::new();
        for start in starts {
            heads.extend(by_head(start)?);
        }
        for &(start, len) in &heads {
            if length_at(start + len)? == len {
                return Ok(Some((start, len)));
            }
        }
        if let Some(&head) =
            heads.iter().find(|(start, len)| [frame_len, size].contains(&(start + len)))
        {
            return Ok(Some(head));
        }
        for end in [frame_len, size] {
            let room = end.saturating_sub(index_end);
            if end <= size && room >= MIN_TRAILER_LEN {
                let len = length_at(end)?;
                let gap = room.saturating_sub(len);
                let may = gap == 0 || parts.header.layout == Layout::Version1;
                if may && (MIN_TRAILER_LEN..=room).contains(&len) {
                    return Ok(Some((end - len, len)));
                }
            }
        }
        Ok(None)
    }
}

/// Checks the flag at 0x3f, which states whether there are metalayers or, in frames with a trailer,
/// user metadata.
fn flag(parts: &Parts, rules: &'static Rules, checker: &mut Checker<'_>) {
    let mut checker = checker.within(Part::Header, 0);
    let flag = hex(&[parts.header.flag]);
    match &parts.trailer {
        None => {
            let has = !parts.metalayers.is_empty();
            if has != parts.header.is_flagged() {
                let count = parts.metalayers.len();
                let expected =
                    format_args!("{} for {count} metalayers", if has { "0xc3" } else { "0xc2" });
                checker.found(&rules.other_flag, 0x3f, 1, expected, flag);
            }
        }
        Some(trailer) => match (trailer.usermeta.1 > 0, parts.header.is_flagged()) {
            (false, true) => {
                let expected = "0xc2 without user metadata";
                checker.found(&rules.other_flag, 0x3f, 1, expected, flag);
            }
            // The flag was not updated if the user metadata was set later.
            (true, false) => {
                checker.found(&rules.stale_flag, 0x3f, 1, "0xc3 with user metadata", flag);
            }
            _ => {}
        },
    }
}
