//! Suspect fields of the header: fields that would explain other findings.
//!
//! A wrong size causes a finding at another position: no index, no trailer, or chunks of another
//! length. In this case the check also adds a note about the size field.

use super::field::{self, Field};
use super::header::TRAILER_LEN_FROM_END;
use super::parts::Parts;
use super::{Layout, Offset, rules};
use crate::chunk::rules::BLOCKS;
use crate::report::{Checker, Finding, Part, Rule, Severity};

/// A position, a number of bytes, and the expected content.
type Suspect = (u64, u64, &'static str);

const fn suspect(field: Field, expected: &'static str) -> Suspect {
    (field.at as u64, field.len as u64, expected)
}

const HEADER_LEN: Suspect = suspect(field::HEADER_LEN, "a header that ends after its metalayers");
const FRAME_LEN: Suspect = suspect(field::FRAME_LEN, "a frame that ends with its trailer");
const METALAYERS: Suspect = suspect(field::METALAYERS, "the number of metalayers that follow");
/// From the first size field to the last one.
const SIZES: Suspect = suspect(
    Field { at: field::NBYTES.at, len: field::CHUNKSIZE.at + 4 - field::NBYTES.at },
    "sizes that lead to the index and fit the chunks",
);

/// Notes the fields that would explain the findings after the first `before` ones.
pub(super) fn note(
    before: usize,
    frame_len: u64,
    parts: Option<&Parts>,
    checker: &mut Checker<'_>,
) {
    let mut fields: Vec<(Part, Suspect)> = Vec::new();
    let mut differ: Vec<(Suspect, usize)> = Vec::new();
    for finding in checker.findings().get(before..).unwrap_or_default() {
        let Some(field) = field_of(finding, frame_len, parts) else { continue };
        // Some chunks can differ from the header of the frame. If all chunks differ, the header is
        // suspect.
        if let Part::Chunk(_) = finding.part {
            match differ.iter_mut().find(|(each, _)| *each == field.1) {
                Some((_, count)) => *count += 1,
                None => differ.push((field.1, 1)),
            }
        } else if !fields.contains(&field) {
            fields.push(field);
        }
    }
    let stored = parts.map_or(0, |parts| parts.outline.offsets.by_place().len());
    let all = differ.into_iter().filter(|(field, count)| *count == stored || *field == SIZES);
    fields.extend(all.map(|(field, _)| (Part::Header, field)));
    if let Some(index) = parts.and_then(|parts| parts.index) {
        // A warning or a note is about a readable chunk, for example one with a user-defined filter.
        // A chunk with a valid header is where the index says, whatever its blocks contain.
        let lost = |finding: &Finding| {
            is_error(finding)
                && matches!(finding.part, Part::Chunk(_))
                && finding.rule.id.starts_with("chunk.")
                && finding.rule.section != BLOCKS
        };
        if checker.findings().get(before..).unwrap_or_default().iter().any(lost) {
            let expected = "the positions of the chunks";
            fields.push((Part::Index, (index.at, index.len, expected)));
        }
    }
    for (part, (at, len, expected)) in fields {
        let (rule, found) = if expected == OF_CHUNKS {
            let found = "another value: the field is wrong, or a program (such as a tuner) compressed \
                         all chunks with other parameters";
            (&rules::PARAMS, found)
        } else {
            let found =
                "a value that contradicts other fields; this field or another field is wrong";
            (&rules::SUSPECT, found)
        };
        checker.within(part, 0).found(rule, at, len, expected, found);
    }
}

fn is_error(finding: &Finding) -> bool {
    finding.rule.severity == Severity::Error
}

fn field_of(finding: &Finding, frame_len: u64, parts: Option<&Parts>) -> Option<(Part, Suspect)> {
    let header = |field| Some((Part::Header, field));
    // A warning about a name does not mean that a size is wrong.
    let is_meta = is_error(finding) && finding.rule.id.starts_with("frame.meta");
    match (&finding.part, finding.rule) {
        (Part::Header, _) if is_meta => header(HEADER_LEN),
        (Part::Header, rule) if *rule == rules::MARKER && finding.offset > METALAYERS.0 => {
            header(METALAYERS)
        }
        (Part::Trailer, rule) if *rule == rules::TRAILER_MARKER => header(FRAME_LEN),
        (Part::Trailer, rule)
            if is_meta || *rule == rules::MARKER || *rule == rules::TRAILER_VERSION =>
        {
            let at = frame_len.saturating_sub(TRAILER_LEN_FROM_END as u64);
            Some((Part::Trailer, (at, 4, "the length of the trailer")))
        }
        (Part::Index, rule) if is_index(rule) => header(SIZES),
        (Part::Chunk(_), rule) if *rule == rules::CHUNK_NBYTES => header(SIZES),
        (Part::Chunk(_), rule) if *rule == rules::CHUNK_TYPESIZE => {
            header(suspect(field::TYPESIZE, "the typesize of the chunks"))
        }
        (Part::Chunk(number), rule) if *rule == rules::CHUNK_PARAMS => {
            let parts = parts?;
            let start =
                match (parts.outline.fields().layout, parts.outline.offsets.decoded(*number)?) {
                    (Layout::Contiguous, Offset::At(at)) => {
                        u64::from(parts.outline.fields().header_len) + at
                    }
                    _ => 0,
                };
            header(of_chunks(match finding.offset.checked_sub(start)? {
                // The codec and the split mode.
                2 => Field { len: 2, ..field::CODEC },
                8 => field::BLOCKSIZE,
                16 => field::FILTERS,
                23 => field::CODEC_META,
                24 => field::FILTERS_META,
                _ => return None,
            }))
        }
        _ => None,
    }
}

const OF_CHUNKS: &str = "what all chunks state";

/// Returns a parameter of compression, whose value the chunks state as well. Writers may change it.
fn of_chunks(field: Field) -> Suspect {
    suspect(field, OF_CHUNKS)
}

fn is_index(rule: &Rule) -> bool {
    [&rules::INDEX_CHUNK, &rules::INDEX_PLACE, &rules::INDEX_COUNT]
        .iter()
        .any(|each| **each == *rule)
}
