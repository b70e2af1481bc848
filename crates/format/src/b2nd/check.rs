//! The check of the metalayer, and of its agreement with the frame.

use super::raw::{Number, Raw, Sizes};
use super::{Geometry, MAX_NDIM, Meta, raw, rules};
use crate::chunk::Header;
use crate::report::{Checker, Report, Rule};
use crate::{Dtype, Error, FormatError, Limits};

/// The metadata of the frame that describes the chunks of an array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The size of an item, in bytes.
    pub(crate) typesize: u32,
    /// The size of a chunk, in bytes; `None` if the frame does not state it or the sizes differ.
    pub(crate) chunksize: Option<u32>,
    /// The size of a block, in bytes; `None` is automatic.
    pub(crate) blocksize: Option<u32>,
    /// The number of chunks; `None` if it could not be read.
    pub(crate) nchunks: Option<u64>,
}

/// Checks the content of the metalayer. If the frame is known, also compares the metalayer with the
/// frame. Returns the layout of the items if it can be determined.
pub(crate) fn check(
    content: &[u8],
    frame: Option<&Frame>,
    limits: &Limits,
    checker: &mut Checker<'_>,
) -> Option<Geometry> {
    let before = checker.errors();
    let raw = Raw::read(content);
    check_fields(&raw, content, checker);
    let (frame, meta) = (frame?, to_meta(&raw)?);
    if let (Some(dtype), Some(raw::Dtype { at, text, marker: 0xdb, .. })) =
        (&meta.dtype, &raw.dtype)
    {
        check_dtype(dtype, (at + 6, text.len()), frame.typesize, limits, checker);
    }
    if checker.errors() > before {
        return None;
    }
    let geometry = match Geometry::new(&meta, frame.typesize, &UNLIMITED) {
        Ok(geometry) => geometry,
        Err(Error::Format(error)) => {
            let items = error.what == rules::ITEMS.what;
            let rule = if items { &rules::ITEMS } else { &rules::CHUNK_LEN };
            let len = (content.len() as u64).saturating_sub(error.offset);
            checker.found(rule, error.offset, len, error.expected, error.found);
            return None;
        }
        Err(error) => {
            checker.found(&rules::LIMIT, 3, 0, "a size that fits into memory", error);
            return None;
        }
    };
    check_frame(&geometry, frame, &raw, checker);
    match Geometry::new(&meta, frame.typesize, limits) {
        Err(error) if checker.errors() == before => {
            checker.found(&rules::LIMIT, 3, 0, "at most what the limits allow", error);
            None
        }
        limited => limited.ok(),
    }
}

/// Unlimited, because errors in the shapes are reported before limits are applied.
const UNLIMITED: Limits = Limits {
    memory: u64::MAX,
    metadata: None,
    total_bytes: u64::MAX,
    items: u64::MAX,
    dimensions: MAX_NDIM,
    chunks: u64::MAX,
    metalayers: 0,
    nesting: 0,
};

/// Checks the number of blocks of a chunk: the C library computes this number from the metalayer.
pub(crate) fn check_chunk(geometry: &Geometry, header: &Header, checker: &mut Checker<'_>) {
    if header.variable_blocks {
        let expected = "blocks of equal length, as in an array";
        return checker.found(&rules::CHUNK_BLOCKS, 30, 1, expected, "variable-length blocks");
    }
    let (expected, found) = (geometry.nblocks(), u64::from(header.nblocks()));
    if expected != found {
        let expected = format_args!("{expected} blocks of {} bytes", geometry.block_len());
        let found = format_args!("{found} of {}", header.block_len());
        checker.found(&rules::CHUNK_BLOCKS, 8, 4, expected, found);
    }
}

fn check_fields(raw: &Raw<'_>, content: &[u8], checker: &mut Checker<'_>) {
    let left = content.len().saturating_sub(raw.end);
    if let Some([array, version, ndim]) = raw.head {
        // The metalayers of Caterva have no dtype.
        let ends_early = raw.dtype.is_none() && raw.wanted.is_none();
        let count = if ends_early && raw.shapes.len() == 3 { 5 } else { 7 };
        marker(&rules::ARRAY, 0, 0x90 + count, array, checker);
        if version != 0 {
            checker.found(&rules::VERSION, 1, 1, 0, version);
        }
        if usize::from(ndim) > MAX_NDIM {
            checker.found(&rules::NDIM, 2, 1, format_args!("at most {MAX_NDIM}"), ndim);
        }
    }
    for (sizes, number) in raw.shapes.iter().zip([0xd3, 0xd2, 0xd2]) {
        check_markers(sizes, number, checker);
    }
    check_sizes(&raw.shapes, checker);
    if let Some(wanted) = raw.wanted {
        let (at, len) = (raw.end as u64, left as u64);
        checker.found(&rules::LENGTH, at, len, format_args!("{wanted} bytes"), left);
        return;
    }
    let Some(dtype) = &raw.dtype else {
        return;
    };
    let at = dtype.at as u64;
    if dtype.format != 0 {
        checker.found(&rules::DTYPE_FORMAT, at, 1, "0, the notation of NumPy", dtype.format);
    }
    marker(&rules::DTYPE_MARKER, at + 1, 0xdb, dtype.marker, checker);
    if let Err(error) = std::str::from_utf8(dtype.text) {
        checker.found(&rules::DTYPE, at + 6, dtype.text.len() as u64, "UTF-8", error);
    }
    if left > 0 && dtype.marker == 0xdb {
        let found = format_args!("{left} bytes more");
        checker.found(&rules::TRAILING, raw.end as u64, left as u64, "its end", found);
    }
}

fn marker(rule: &'static Rule, at: u64, expected: u8, found: u8, checker: &mut Checker<'_>) {
    if expected != found {
        let [expected, found] = [expected, found].map(|byte| format!("{byte:#04x}"));
        checker.found(rule, at, 1, expected, found);
    }
}

fn check_markers(sizes: &Sizes, number: u8, checker: &mut Checker<'_>) {
    let ndim = sizes.numbers.len();
    // `ndim` is at most 16.
    marker(&rules::SHAPE_MARKER, sizes.at as u64, 0x90 + ndim as u8, sizes.marker, checker);
    if ndim == MAX_NDIM && sizes.marker == 0xa0 {
        let (expected, found) =
            ("a marker that msgpack defines", "0xa0, as the C library writes it");
        checker.found(&rules::SIXTEEN, sizes.at as u64, 1, expected, found);
    }
    for (axis, each) in sizes.numbers.iter().enumerate() {
        marker(&rules::NUMBER_MARKER, sizes.marker_at(axis), number, each.marker, checker);
    }
}

/// Checks each axis separately.
fn check_sizes(shapes: &[Sizes], checker: &mut Checker<'_>) {
    let rules = [&rules::SHAPE, &rules::CHUNK_SHAPE, &rules::BLOCK_SHAPE];
    for (level, sizes) in shapes.iter().enumerate() {
        for (axis, number) in sizes.numbers.iter().enumerate() {
            let (at, len, found) = (sizes.marker_at(axis) + 1, sizes.width as u64, number.value);
            if found < 0 {
                checker.found(rules[level], at, len, "at least 0", found);
                continue;
            }
            let outer = level.checked_sub(1).and_then(|outer| shapes.get(outer));
            let Some(outer) = outer.map(|sizes| sizes.numbers[axis].value) else {
                continue;
            };
            let part = if level == 1 { "chunk" } else { "block" };
            if found == 0 && outer > 0 {
                let expected = format_args!("at least 1 on an axis of {outer} items, for a {part}");
                checker.found(rules[level], at, len, expected, found);
            } else if level == 2 && outer > 0 && found > outer {
                let expected = format_args!("at most {outer}, the size of a chunk");
                checker.found(&rules::BLOCK_OVER_CHUNK, at, len, expected, found);
            }
        }
    }
}

fn check_dtype(
    text: &str,
    (at, len): (usize, usize),
    typesize: u32,
    limits: &Limits,
    checker: &mut Checker<'_>,
) {
    let (at, len) = (at as u64, len as u64);
    let dtype = Dtype::parse_nested(text, limits.nesting.min(Dtype::MAX_BRACKETS)).ok();
    match dtype.filter(|dtype| !dtype.has_pointers()).map(|dtype| dtype.size() as u64) {
        None => {
            let found = format_args!("`{}`", text.escape_default());
            checker.found(&rules::DTYPE_UNKNOWN, at, len, "a dtype of NumPy", found);
        }
        Some(size) if size != u64::from(typesize) => {
            let expected = format_args!("{typesize}, the typesize");
            let found = format_args!("{size}, the item size of `{}`", text.escape_default());
            checker.found(&rules::ITEMSIZE, at, len, expected, found);
        }
        Some(_) => {}
    }
}

fn check_frame(geometry: &Geometry, frame: &Frame, raw: &Raw<'_>, checker: &mut Checker<'_>) {
    let place = |level: usize| {
        let sizes = raw.shapes.get(level)?;
        Some((sizes.at as u64, 1 + (sizes.numbers.len() * (1 + sizes.width)) as u64))
    };
    let mut found = |rule, level, expected: u64, what: &str, found: u64| {
        let (at, len) = place(level).unwrap_or_default();
        checker.found(rule, at, len, format_args!("{expected}, {what}"), found);
    };
    if let Some(nchunks) = frame.nchunks.filter(|&nchunks| nchunks != geometry.nchunks()) {
        found(&rules::NCHUNKS, 0, nchunks, "as the frame states", geometry.nchunks());
    }
    // The chunk size of an array without items has no meaning.
    if geometry.nchunks() == 0 {
        return;
    }
    let (chunk, block) = (geometry.chunk_len() as u64, geometry.block_len() as u64);
    if let Some(size) = frame.chunksize.map(u64::from).filter(|&size| size != chunk) {
        found(&rules::CHUNKSIZE, 1, size, "as the frame states", chunk);
    }
    if let Some(size) = frame.blocksize.map(u64::from).filter(|&size| size != block) {
        found(&rules::BLOCKSIZE, 2, size, "as the frame states", block);
    }
}

/// Returns the metalayer if it has no errors.
fn to_meta(raw: &Raw<'_>) -> Option<Meta> {
    let [shape, chunks, blocks] = raw.shapes.as_slice() else {
        return None;
    };
    let small = |sizes: &Sizes| {
        sizes.numbers.iter().map(|number| i32::try_from(number.value).ok()).collect::<Option<_>>()
    };
    let dtype = match &raw.dtype {
        Some(dtype) => Some(std::str::from_utf8(dtype.text).ok()?.to_owned()),
        None => None,
    };
    Some(Meta {
        shape: shape.numbers.iter().map(|number| number.value).collect(),
        chunks: small(chunks)?,
        blocks: small(blocks)?,
        dtype,
        dtype_format: raw.dtype.as_ref().map_or(0, |dtype| dtype.format),
    })
}

impl Meta {
    /// Parses the content of the metalayer. C: `b2nd_deserialize_meta`.
    ///
    /// Like the C library, this function ignores the version and the msgpack markers of arrays and
    /// numbers. These markers are not reliable: for 16 dimensions the C library writes the marker
    /// 0xa0, which means an empty string in msgpack.
    ///
    /// # Errors
    /// - `content` is truncated;
    /// - there are more than 16 dimensions;
    /// - a size is negative;
    /// - on one axis, the size of the array is above 0, and the chunk size is 0;
    /// - on one axis, the chunk size is above 0, and the block size is 0;
    /// - the dtype is not UTF-8 or has the wrong marker.
    pub fn parse(content: &[u8]) -> Result<Self, FormatError> {
        let mut report = Report::new();
        check(content, None, &Limits::default(), &mut Checker::new(&mut report));
        meta_of(content, report)
    }

    /// Checks the shapes, as [`parse`](Self::parse) does. The positions in errors are those in the
    /// serialized metalayer.
    pub(super) fn check(&self) -> Result<(), FormatError> {
        let ndim = self.ndim()?;
        let sizes = |at, width, values: Vec<i64>| {
            let numbers = values.into_iter().map(|value| Number { marker: 0, value }).collect();
            Sizes { at, marker: 0, width, numbers }
        };
        let wide = |sizes: &[i32]| sizes.iter().map(|&size| size.into()).collect();
        let shapes = [
            sizes(3, 8, self.shape.clone()),
            sizes(4 + 9 * ndim, 4, wide(&self.chunks)),
            sizes(5 + 14 * ndim, 4, wide(&self.blocks)),
        ];
        let mut report = Report::new();
        check_sizes(&shapes, &mut Checker::new(&mut report));
        report.first_error().map_or(Ok(()), |finding| Err(finding.into()))
    }
}

/// Reads the metalayer; fails if it has errors or does not fit the frame.
pub(crate) fn read(
    content: &[u8],
    frame: &Frame,
    limits: &Limits,
) -> Result<(Meta, Geometry), Error> {
    let mut report = Report::new();
    let geometry = check(content, Some(frame), limits, &mut Checker::new(&mut report));
    let meta = meta_of(content, report)?;
    let geometry = match geometry {
        Some(geometry) => geometry,
        // The array exceeds the limits.
        None => Geometry::new(&meta, frame.typesize, limits)?,
    };
    Ok((meta, geometry))
}

fn meta_of(content: &[u8], report: Report) -> Result<Meta, FormatError> {
    match report.first_error() {
        Some(finding) => Err(finding.into()),
        None => to_meta(&Raw::read(content))
            .ok_or_else(|| FormatError::of(&rules::LENGTH, 0, "shapes", "none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Part, Severity};

    fn meta() -> Meta {
        Meta {
            shape: vec![7, 9],
            chunks: vec![4, 4],
            blocks: vec![3, 2],
            dtype: Some("<i4".into()),
            dtype_format: 0,
        }
    }

    /// The metadata of the frame of that array.
    const FRAME: Frame =
        Frame { typesize: 4, chunksize: Some(96), blocksize: Some(24), nchunks: Some(6) };

    /// The ids, offsets and lengths of the findings, with the metalayer at byte 100.
    fn found(content: &[u8], frame: Frame) -> Vec<(&'static str, u64, u64)> {
        let mut report = Report::new();
        let mut checker = Checker::new(&mut report);
        let mut checker = checker.within(Part::Metalayer("b2nd".into()), 100);
        let geometry = check(content, Some(&frame), &Limits::default(), &mut checker);
        // If there is no geometry, a finding states the reason.
        assert!(geometry.is_some() || !report.findings.is_empty(), "{report:?}");
        let triple = |each: &crate::Finding| (each.rule.id, each.offset, each.len);
        report.findings.iter().map(triple).collect()
    }

    #[test]
    fn a_good_one_has_no_findings() {
        let mut bytes = meta().to_bytes().unwrap();
        assert_eq!(found(&bytes, FRAME), []);
        assert_eq!(
            found(&bytes, Frame { chunksize: None, blocksize: None, nchunks: None, ..FRAME }),
            []
        );
        // The metalayer as Caterva wrote it: without dtype format and dtype.
        bytes.truncate(bytes.len() - 9);
        bytes[0] = 0x95;
        assert_eq!(found(&bytes, FRAME), []);
        // No chunk determines the chunk size of an empty array.
        let empty = Meta { shape: vec![0, 9], ..meta() }.to_bytes().unwrap();
        let frame = Frame { nchunks: Some(0), chunksize: Some(0), blocksize: Some(1), ..FRAME };
        assert_eq!(found(&empty, frame), []);
    }

    #[test]
    fn every_field_set_wrong_is_found_and_placed() {
        let good = meta().to_bytes().unwrap();
        // The shapes are at 3, 22 and 33, the dtype format at 44, its marker at 45, its length at 46, its text at 50.
        for (at, value, expected) in [
            (0, 0x95, &[("b2nd.array", 100, 1)][..]),
            (1, 1, &[("b2nd.version", 101, 1)]),
            (2, 17, &[("b2nd.ndim", 102, 1)]),
            (3, 0x93, &[("b2nd.shape_marker", 103, 1)]),
            (4, 0xcf, &[("b2nd.number_marker", 104, 1)]),
            (5, 0x80, &[("b2nd.shape", 105, 8)]),
            (21, 0, &[("b2nd.nchunks", 103, 19)]),
            // The values exceed the limits, but the check reports that they are invalid.
            (6, 0x40, &[("b2nd.nchunks", 103, 19)]),
            (22, 0, &[("b2nd.shape_marker", 122, 1)]),
            (23, 0, &[("b2nd.number_marker", 123, 1)]),
            (24, 0x80, &[("b2nd.chunk_shape", 124, 4)]),
            (24, 0x70, &[("b2nd.chunk_len", 122, 31)]),
            (32, 0, &[("b2nd.chunk_shape", 129, 4)]),
            (32, 6, &[("b2nd.nchunks", 103, 19), ("b2nd.chunksize", 122, 11)]),
            (33, 0x91, &[("b2nd.shape_marker", 133, 1)]),
            (39, 0, &[("b2nd.number_marker", 139, 1)]),
            (40, 0xff, &[("b2nd.block_shape", 140, 4)]),
            (43, 0, &[("b2nd.block_shape", 140, 4)]),
            (43, 4, &[("b2nd.blocksize", 133, 11)]),
            (43, 1, &[("b2nd.blocksize", 133, 11)]),
            (
                38,
                5,
                &[
                    ("b2nd.block_over_chunk", 135, 4),
                    ("b2nd.chunksize", 122, 11),
                    ("b2nd.blocksize", 133, 11),
                ],
            ),
            (44, 1, &[("b2nd.dtype_format", 144, 1)]),
            (45, 0xd9, &[("b2nd.dtype_marker", 145, 1)]),
            (49, 4, &[("b2nd.length", 150, 3)]),
            // The dtype `<f` is `<f4`.
            (49, 2, &[("b2nd.trailing", 152, 1)]),
            (50, 0xff, &[("b2nd.dtype", 150, 3)]),
            (51, b'q', &[("b2nd.dtype_unknown", 150, 3)]),
            (52, b'8', &[("b2nd.itemsize", 150, 3)]),
        ] {
            let mut content = good.clone();
            content[at] = value;
            assert_eq!(found(&content, FRAME), expected, "byte {at} set to {value:#04x}");
        }
        for len in (0..good.len()).filter(|&len| len != 44) {
            let cut = found(&good[..len], FRAME);
            assert!(cut.iter().any(|each| each.0 == "b2nd.length"), "{len}: {cut:?}");
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_is_found() {
        let content = meta().to_bytes().unwrap();
        for (frame, id) in [
            (Frame { nchunks: Some(7), ..FRAME }, "b2nd.nchunks"),
            (Frame { chunksize: Some(95), ..FRAME }, "b2nd.chunksize"),
            (Frame { blocksize: Some(12), ..FRAME }, "b2nd.blocksize"),
            (Frame { typesize: 8, blocksize: None, chunksize: None, ..FRAME }, "b2nd.itemsize"),
        ] {
            let found = found(&content, frame);
            assert_eq!(found.iter().map(|each| each.0).collect::<Vec<_>>(), [id]);
        }
    }

    #[test]
    fn sixteen_dimensions_are_noted() {
        let ones = vec![1; MAX_NDIM];
        let meta = Meta { shape: vec![1; MAX_NDIM], chunks: ones.clone(), blocks: ones, ..meta() };
        let frame = Frame { chunksize: Some(4), blocksize: Some(4), nchunks: Some(1), ..FRAME };
        let found = found(&meta.to_bytes().unwrap(), frame);
        let expected =
            [3, 4 + 16 * 9, 5 + 16 * 14].map(|at| ("b2nd.sixteen_dimensions", 100 + at, 1));
        assert_eq!(found, expected);
        assert_eq!(rules::SIXTEEN.severity, Severity::Note);
    }

    #[test]
    fn what_goes_over_the_limits_is_told() {
        let content = meta().to_bytes().unwrap();
        for limits in [
            Limits { dimensions: 1, ..Limits::default() },
            Limits { items: 62, ..Limits::default() },
            Limits { chunks: 5, ..Limits::default() },
        ] {
            let mut report = Report::new();
            let checked = check(&content, Some(&FRAME), &limits, &mut Checker::new(&mut report));
            assert!(checked.is_none() && report.is_good());
            assert_eq!(report.findings[0].rule, &rules::LIMIT);
            assert!(matches!(read(&content, &FRAME, &limits), Err(Error::Limit { .. })));
        }
        assert!(read(&content, &FRAME, &Limits::default()).is_ok());
    }

    #[test]
    fn chunks_with_other_blocks_are_found() {
        let geometry = Geometry::new(&meta(), 4, &Limits::default()).unwrap();
        let mut head = [0u8; 32];
        head[..4].copy_from_slice(&[5, 1, 0b0010_0101, 4]);
        head[4] = 96;
        head[8] = 24;
        head[12] = 64;
        let ids = |head: &[u8]| {
            let header = Header::parse(head).unwrap();
            let mut report = Report::new();
            check_chunk(&geometry, &header, &mut Checker::new(&mut report));
            report.findings.iter().map(|each| (each.rule.id, each.offset)).collect::<Vec<_>>()
        };
        assert_eq!(ids(&head), []);
        head[8] = 48;
        assert_eq!(ids(&head), [("b2nd.chunk_blocks", 8)]);
        head[8] = 4;
        head[30] = 1;
        assert_eq!(ids(&head), [("b2nd.chunk_blocks", 30)]);
    }

    #[test]
    fn ids_are_those_of_this_module_and_appear_once() {
        let mut ids: Vec<_> = rules::RULES.iter().map(|rule| rule.id).collect();
        assert!(ids.iter().all(|id| id.starts_with("b2nd.")));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rules::RULES.len());
    }

    proptest::proptest! {
        #[test]
        fn a_changed_byte_is_no_reason_to_panic(at in 0usize..53, value in 0u8.., typesize in 0u32..) {
            let mut content = meta().to_bytes().unwrap();
            content[at] = value;
            found(&content, Frame { typesize, ..FRAME });
        }
    }

    #[test]
    fn a_dtype_of_the_maximum_nesting_is_known() {
        let levels = crate::dtype::MAX_NESTING;
        let nested =
            |levels| (0..levels).fold("'<i4'".to_owned(), |it, _| format!("[('f', {it})]"));
        for (levels, is_known) in [(levels, true), (levels + 1, false)] {
            let dtype = nested(levels);
            assert_eq!(Dtype::parse(&dtype).is_ok(), is_known);
            let found = found(&Meta { dtype: Some(dtype), ..meta() }.to_bytes().unwrap(), FRAME);
            assert_eq!(found.is_empty(), is_known, "{levels} levels: {found:?}");
        }
    }
}
