//! The facts about a file, with the words of `blosc2 info`.

use blosc2_format::file::{self, File, Info, Kind};
use blosc2_format::value;
use blosc2_format::{Options, ReadAt, Report};
use blosc2_store::blosc2::storage::ReadOnly;
use blosc2_store::blosc2::{ErrorKind, OpenOptions, Target};
use blosc2_store::check::{self, CheckedStore, StoreCheck};
use blosc2_store::{EmbedStore, Members};
use serde_json::{Value, json};

use crate::contents::{self, Contents};
use crate::data::limits;
use crate::printable;
use crate::source::Source;

/// The maximum number of characters of the text of a metalayer.
const MAX_TEXT: usize = 100_000;
/// The maximum number of bytes that are shown of a metalayer which is not a value of msgpack.
const MAX_BYTES: usize = 256;
/// The maximum number of metalayers that are shown.
const MAX_LAYERS: usize = 1000;

/// The codes and names of codecs.
const CODECS: [(u8, &str); 9] = [
    (0, "blosclz"),
    (1, "lz4"),
    (2, "lz4hc"),
    (4, "zlib"),
    (5, "zstd"),
    (32, "ndlz"),
    (33, "zfp_acc"),
    (34, "zfp_prec"),
    (35, "zfp_rate"),
];

/// The codes and names of filters.
const FILTERS: [(u8, &str); 8] = [
    (1, "shuffle"),
    (2, "bitshuffle"),
    (3, "delta"),
    (4, "trunc_prec"),
    (32, "ndcell"),
    (33, "ndmean"),
    (35, "bytedelta"),
    (36, "int_trunc"),
];

fn named(names: &[(u8, &'static str)], code: u8, what: &str) -> String {
    let name = names.iter().find(|(known, _)| *known == code);
    name.map_or_else(|| format!("{what} {code}"), |(_, name)| (*name).to_owned())
}

/// Returns the name of a codec.
pub fn codec(code: u8) -> String {
    named(&CODECS, code, "codec")
}

/// Returns the names of the filters, with their parameters.
pub fn filters(codes: &[u8], metas: &[u8]) -> Vec<String> {
    let slots = codes.iter().zip(metas).filter(|(code, _)| **code != 0);
    let name = |(&code, &meta): (&u8, &u8)| {
        let name = named(&FILTERS, code, "filter");
        match (code, meta) {
            // The number of bits can be negative.
            (4 | 36, bits) => format!("{name}:{}", bits as i8),
            (_, 0) => name,
            (_, meta) => format!("{name}:{meta}"),
        }
    };
    slots.map(name).collect()
}

/// Returns the facts about a file.
pub fn of_file(file: &File<'_>) -> Value {
    let info = file.info();
    let array = file.geometry();
    let nbytes = match array {
        Some(geometry) => geometry.len().saturating_mul(geometry.typesize() as u64),
        None => info.nbytes,
    };
    let ratio = (info.cbytes > 0).then(|| nbytes as f64 / info.cbytes as f64);
    json!({
        "kind": kind(info, array.is_some()),
        "shape": array.map(|geometry| geometry.shape()),
        "chunks": array.map(|geometry| geometry.chunk_shape()),
        "blocks": array.map(|geometry| geometry.block_shape()),
        "dtype": file.meta().and_then(|meta| meta.dtype.as_deref()).map(printable),
        "typesize": info.typesize,
        "nbytes": nbytes,
        "cbytes": info.cbytes,
        "ratio": ratio,
        "nchunks": info.nchunks,
        "chunksize": info.chunksize.unwrap_or(0),
        "codec": codec(info.codec),
        "clevel": info.level,
        "filters": filters(&info.filters, &info.filters_meta),
        "meta": info.metalayers.iter().map(|layer| printable(&layer.name)).collect::<Vec<_>>(),
        "vlmeta": info.vlmetalayers.iter().map(|name| printable(name)).collect::<Vec<_>>(),
        "checksums": file.has_checksums(),
        "contiguous": match info.kind {
            Kind::Chunk => None,
            kind => Some(kind != Kind::Directory),
        },
        "format_version": info.version,
    })
}

fn kind(info: &Info, is_array: bool) -> &'static str {
    match info.kind {
        Kind::Frame | Kind::Directory if is_array => "ndarray",
        Kind::Frame | Kind::Directory => "schunk",
        Kind::Chunk => "chunk",
        Kind::EarlyFrame => "early-frame",
        Kind::FrameVersion1 => "frame-version-1",
        Kind::Packed => "packed",
        // The enum is non-exhaustive.
        _ => "other",
    }
}

/// Returns the metalayers of a file as text: the fixed-length and the variable-length ones.
pub fn metalayers(file: &mut File<'_>) -> Value {
    let fixed = file.info().metalayers.iter().take(MAX_LAYERS);
    let fixed: Vec<Value> = fixed.map(|layer| layer_of(&layer.name, Ok(&layer.content))).collect();
    let names: Vec<String> = file.info().vlmetalayers.iter().take(MAX_LAYERS).cloned().collect();
    let variable = names.iter().map(|name| {
        let content = file.vlmetalayer(name).map(Option::unwrap_or_default);
        layer_of(name, content.as_deref().map_err(ToString::to_string))
    });
    let variable: Vec<Value> = variable.collect();
    json!({ "meta": fixed, "vlmeta": variable })
}

fn layer_of(name: &str, content: Result<&[u8], String>) -> Value {
    match content {
        Ok(bytes) => json!({ "name": printable(name), "bytes": bytes.len(), "text": text(bytes) }),
        Err(error) => json!({ "name": printable(name), "error": error }),
    }
}

/// The text of the content of a metalayer: a value of msgpack, or bytes.
fn text(bytes: &[u8]) -> String {
    let text = match value::Value::from_msgpack_within(bytes, 64 << 20) {
        Ok(value) => value.to_string(),
        Err(_) => {
            let shown = &bytes[..bytes.len().min(MAX_BYTES)];
            let more = if bytes.len() > MAX_BYTES { "..." } else { "" };
            format!("b'{}'{more}", shown.escape_ascii())
        }
    };
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Checks the file or the store in `source`, and with `content` also decodes all blocks.
///
/// # Errors
/// Reading fails.
pub fn check(source: &Source, content: bool) -> Result<Value, blosc2_store::blosc2::Error> {
    let options = Options { content, limits: limits(), ..Options::default() };
    let store = || StoreCheck::new(&options).max_read(Some(options.limits.memory));
    if Contents::is_archive(source)? {
        let members = Members::open_source(source.clone());
        let checked = store().files(members, || contents::open(source))?;
        return Ok(store_json(checked, content));
    }
    let io = |error: blosc2_format::Error| {
        blosc2_store::blosc2::Error::new(ErrorKind::Io, "check the file", error.to_string())
    };
    let (kind, mut report) = file::check(source, &options).map_err(io)?;
    if kind == Some(Kind::Frame) && report.is_good() {
        let open = OpenOptions::new().limits(options.limits).max_read(options.limits.memory);
        match open.open(Target::storage(ReadOnly::new(source.clone()))) {
            Ok(schunk) if EmbedStore::is_in(&schunk) => {
                let size = source.size().unwrap_or_default();
                return Ok(store_json(store().embedded(schunk, report, size), content));
            }
            Ok(_) => {}
            Err(error) => report.add(check::failure(&error)),
        }
    }
    Ok(report_json(kind.map(|kind| kind.to_string()), &report, content))
}

fn store_json(checked: CheckedStore, content: bool) -> Value {
    let mut facts = report_json(Some(checked.form.to_string()), &checked.report, content);
    let members = checked.members.iter().map(|member| {
        let [errors, warnings, notes] = member.counts;
        json!({
            "file": printable(&member.file),
            "kind": member.kind.map(|kind| kind.to_string()),
            "errors": errors,
            "warnings": warnings,
            "notes": notes,
        })
    });
    facts["members"] = members.collect();
    facts
}

fn report_json(kind: Option<String>, report: &Report, content: bool) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "severity": finding.rule.severity.to_string(),
            "rule": finding.rule.id,
            "what": finding.rule.what,
            "file": finding.file.as_deref().map(printable),
            "part": printable(&finding.part.to_string()),
            "chunk": match finding.part {
                blosc2_format::Part::Chunk(number) => Some(number),
                _ => None,
            },
            "offset": finding.offset,
            "len": finding.len,
            "expected": printable(&finding.expected),
            "found": printable(&finding.found),
        })
    });
    json!({
        "kind": kind,
        "good": report.is_good(),
        "complete": report.is_complete(),
        "content": content,
        "omitted": report.omitted,
        "unverified": report.unverified,
        "findings": findings.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_and_filters_have_the_names_of_the_command() {
        assert_eq!(
            (codec(5), codec(0), codec(77)),
            ("zstd".to_owned(), "blosclz".to_owned(), "codec 77".to_owned())
        );
        let names = filters(&[0, 1, 4, 35, 1, 99], &[0, 0, 0xf8, 4, 2, 0]);
        assert_eq!(names, ["shuffle", "trunc_prec:-8", "bytedelta:4", "shuffle:2", "filter 99"]);
    }
}
