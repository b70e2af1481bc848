//! The parts of a legacy frame.

use super::header::Header;
use super::metalayers;
use super::rules::Rules;
use super::trailer::Trailer;
use super::{Layout, VERSION1_HEADER_LEN, recognise};
use crate::chunk::EXTENDED_HEADER_LEN;
use crate::frame::Metalayer;
use crate::legacy::spans::Span;
use crate::report::{Checker, Part, Report};
use crate::{Error, Limit, Limits, ReadAt};

/// The number of bytes that are searched for the end of the metalayers if the length of the header
/// is wrong.
const SEARCH_LEN: u64 = 1 << 20;

/// The positions of the parts of a frame.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) header: Header,
    pub(super) header_len: u64,
    pub(super) metalayers: Vec<Metalayer>,
    /// The positions of the chunks, from the end of the header.
    pub(super) offsets: Vec<u64>,
    /// The position and the length of the chunk of offsets; 0 if there is none.
    pub(super) index: (u64, u64),
    pub(super) trailer: Option<Trailer>,
    /// Whether the offsets are stored uncompressed, so that each has its own position.
    pub(super) index_is_stored: bool,
}

impl Parts {
    /// Returns the number of bytes between the header and the index.
    pub(super) fn data_len(&self) -> u64 {
        self.index.0 - self.header_len
    }

    /// Returns the spans of all parts except the chunks.
    pub(super) fn spans(&self) -> Vec<Span> {
        let header_len = self.header_len;
        let layers = self.metalayers.iter();
        let layers = layers.map(|layer| (&layer.name, 5 + layer.content.len() as u64));
        let mut at = header_len - layers.clone().map(|(_, len)| len).sum::<u64>().min(header_len);
        let mut spans = vec![Span::new(Part::Header, 0, at)];
        for (name, len) in layers {
            spans.push(Span::new(Part::Metalayer(name.clone()), at, len));
            at += len;
        }
        spans.push(Span::new(Part::Index, self.index.0, self.index.1));
        if let Some(trailer) = &self.trailer {
            let usermeta = trailer.usermeta.0 + trailer.usermeta.1;
            let head = trailer.usermeta.0 - trailer.start;
            spans.push(Span::new(Part::Trailer, trailer.start, head));
            spans.push(Span::new(Part::Trailer, usermeta, trailer.start + trailer.len - usermeta));
        }
        spans.extend(self.usermeta_span());
        spans
    }

    pub(super) fn usermeta_span(&self) -> Option<Span> {
        let (at, len) = self.trailer.as_ref()?.usermeta;
        (len > 0).then(|| Span::new(Part::VlMetalayer("usermeta".to_owned()), at, len))
    }

    pub(super) fn index_end(&self) -> u64 {
        self.index.0 + self.index.1
    }

    /// Returns the position and the size of the offset of a chunk in the frame.
    pub(super) fn offset_at(&self, number: usize) -> (u64, u64) {
        if self.index_is_stored {
            (self.index.0 + EXTENDED_HEADER_LEN as u64 + 8 * number as u64, 8)
        } else {
            self.index
        }
    }
}

/// Checks everything except the chunks, or returns `None` if the parts cannot be found.
pub(super) fn structure<R: ReadAt + ?Sized>(
    source: &R,
    limits: &Limits,
    checker: &mut Checker<'_>,
) -> Result<Option<Parts>, Error> {
    let size = source.size()?;
    let (layout, head) = start(source)?;
    let rules = Rules::of(layout);
    let finder = Finder { source, size, limits, rules };
    let mut header_checker = checker.within(Part::Header, 0);
    let Ok(header) = Header::parse(layout, &head) else {
        let fixed = layout.fixed_len();
        header_checker.found(&rules.length, 0, size, format_args!("at least {fixed} bytes"), size);
        return Ok(None);
    };
    header.check(&head, size, &mut header_checker);
    let found = finder.metalayers(&header, checker)?;
    let Some((metalayers, header_len)) = found else { return Ok(None) };
    let index = (header_len, 0);
    let (offsets, trailer) = (Vec::new(), None);
    let mut parts =
        Parts { header, header_len, metalayers, offsets, index, trailer, index_is_stored: false };
    let has_data = parts.header.cbytes != 0 || parts.header.nbytes != 0;
    if has_data && !finder.index(&mut parts, checker)? {
        return Ok(None);
    }
    finder.end(&mut parts, checker)?;
    Ok(Some(parts))
}

/// Returns the layout (early if unknown), and the bytes that can contain the fixed header.
pub(super) fn start<R: ReadAt + ?Sized>(source: &R) -> Result<(Layout, Vec<u8>), Error> {
    let len = source.size()?.min(VERSION1_HEADER_LEN as u64);
    let head = source.read_vec_at(0, len)?;
    Ok((recognise(&head).unwrap_or(Layout::Early), head))
}

/// The context of the search for the parts.
pub(super) struct Finder<'a, R: ?Sized> {
    pub(super) source: &'a R,
    pub(super) size: u64,
    pub(super) limits: &'a Limits,
    pub(super) rules: &'static Rules,
}

impl<R: ReadAt + ?Sized> Finder<'_, R> {
    /// Returns the metalayers and the end of the header, or `None` if they cannot be determined.
    fn metalayers(
        &self,
        header: &Header,
        checker: &mut Checker<'_>,
    ) -> Result<Option<(Vec<Metalayer>, u64)>, Error> {
        let Self { size, limits, rules, .. } = *self;
        let fixed = header.layout.fixed_len() as u64;
        let header_len = u64::try_from(header.header_len).ok();
        let Some(header_len) = header_len.filter(|len| (fixed..=size).contains(len)) else {
            return Ok(None);
        };
        if !header.has_metalayers() {
            return Ok((header_len == fixed).then(|| (Vec::new(), fixed)));
        }
        let checker = &mut checker.within(Part::Header, 0);
        let mut end = header_len;
        let mut section = self.section(fixed, end)?;
        if !is_good_section(&section, fixed, rules, limits) {
            // The length of the header may be wrong.
            let more = self.section(fixed, size.min(header_len + SEARCH_LEN))?;
            if is_good_section(&more, fixed, rules, limits) {
                (section, end) = (more, size);
            }
        }
        let Some((layers, len)) = metalayers::check(&section, fixed, rules, limits, checker)?
        else {
            return Ok(None);
        };
        if fixed + len != header_len {
            let expected = format_args!("{}, where the metalayers end", fixed + len);
            checker.found(&rules.header_len, 0x0b, 4, expected, header_len);
        }
        let header_len = if end == header_len { header_len } else { fixed + len };
        Ok(Some((layers, header_len)))
    }

    fn section(&self, from: u64, to: u64) -> Result<Vec<u8>, Error> {
        let len =
            Limits::allow(Limit::Memory, "bytes of metalayers", to - from, self.limits.memory)?;
        Ok(self.source.read_vec_at(from, len)?)
    }
}

fn is_good_section(section: &[u8], start: u64, rules: &'static Rules, limits: &Limits) -> bool {
    let mut report = Report::new();
    let found = metalayers::check(section, start, rules, limits, &mut Checker::new(&mut report));
    matches!(found, Ok(Some(_))) && report.is_good()
}
