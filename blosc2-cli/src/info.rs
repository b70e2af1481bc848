//! `blosc2 info`: what a file says about itself.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use blosc2::{Codec, Filter};
use blosc2_format::file::{File, Kind};
use serde_json::{Map, Value, json};

use crate::file::{Content, carrier};
use crate::rust;

/// Tell kind, shapes, compression, sizes and metalayers of a file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or directory of chunks.
    file: PathBuf,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let path = args.file.display().to_string();
    let facts = match rust::needed(&args.file) {
        Some(kind) => of_file(&rust::open(&args.file)?, rust::ambiguity(&args.file, kind)),
        None => of_content(&Content::open(&args.file)?),
    };
    let facts = facts.to_json(&path);
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", Value::Object(facts))?;
    } else {
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_null()) {
            writeln!(out, "{name:<14} {}", plain(value))?;
        }
    }
    Ok(out.flush()?)
}

/// What a file says of itself, whoever has read it.
struct Facts {
    kind: &'static str,
    note: Option<&'static str>,
    array: Option<Shapes>,
    typesize: u64,
    nbytes: u64,
    cbytes: u64,
    nchunks: u64,
    chunksize: u64,
    codec: Codec,
    level: Option<u8>,
    filters: Vec<Filter>,
    meta: Vec<String>,
    vlmeta: Vec<String>,
    contiguous: Option<bool>,
    version: Option<u8>,
}

struct Shapes {
    shape: Vec<u64>,
    chunks: Vec<u64>,
    blocks: Vec<u64>,
    dtype: Option<String>,
}

/// As C-Blosc2 reads it.
fn of_content(content: &Content) -> Facts {
    let schunk = content.schunk();
    let params = schunk.cparams();
    let array = match content {
        Content::Array(array) => Some(Shapes {
            shape: array.shape().to_vec(),
            chunks: array.chunks().to_vec(),
            blocks: array.blocks().to_vec(),
            dtype: array.dtype().map(str::to_owned),
        }),
        Content::SChunk(_) => None,
    };
    let format = schunk.file_format();
    Facts {
        kind: if array.is_some() { "ndarray" } else { "schunk" },
        note: content.note(),
        array,
        typesize: schunk.typesize() as u64,
        nbytes: content.nbytes(),
        cbytes: schunk.cbytes(),
        nchunks: schunk.nchunks() as u64,
        chunksize: schunk.chunksize() as u64,
        codec: params.codec,
        level: Some(params.level),
        filters: params.filters,
        meta: schunk.meta().names(),
        vlmeta: schunk.vlmeta().names(),
        contiguous: format.map(|format| format.contiguous),
        version: format.map(|format| format.version),
    }
}

/// The name of a kind of file in JSON.
pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Chunk => "chunk",
        Kind::Frame => "frame",
        Kind::Directory => "directory",
        Kind::EarlyFrame => "early-frame",
        Kind::FrameVersion1 => "frame-version-1",
        Kind::Packed => "packed",
        // The enumeration may grow.
        _ => "other",
    }
}

/// As `blosc2-format` reads it.
fn of_file(file: &File<'_>, ambiguity: Option<&'static str>) -> Facts {
    let info = file.info();
    let array = file.meta().zip(file.geometry()).map(|(meta, geometry)| Shapes {
        shape: geometry.shape().to_vec(),
        chunks: geometry.chunks().to_vec(),
        blocks: geometry.blocks().to_vec(),
        dtype: meta.dtype.clone(),
    });
    let params = rust::params(info);
    let meta: Vec<String> = info.metalayers.iter().map(|each| each.name.clone()).collect();
    Facts {
        kind: match info.kind {
            Kind::Frame | Kind::Directory if array.is_some() => "ndarray",
            Kind::Frame | Kind::Directory => "schunk",
            kind => kind_name(kind),
        },
        note: carrier(&meta).or(ambiguity),
        array,
        typesize: info.typesize.into(),
        nbytes: rust::nbytes(file),
        cbytes: info.cbytes,
        nchunks: info.nchunks,
        chunksize: info.chunksize.unwrap_or(0).into(),
        codec: params.codec,
        level: info.level,
        filters: params.filters,
        meta,
        vlmeta: info.vlmetalayers.clone(),
        contiguous: match info.kind {
            Kind::Chunk => None,
            kind => Some(kind != Kind::Directory),
        },
        version: info.version,
    }
}

impl Facts {
    fn to_json(&self, path: &str) -> Map<String, Value> {
        let ratio = (self.cbytes > 0).then(|| self.nbytes as f64 / self.cbytes as f64);
        let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
        let array = self.array.as_ref();
        let facts = json!({
            "path": path,
            "kind": self.kind,
            "note": self.note,
            "shape": array.map(|array| &array.shape),
            "chunks": array.map(|array| &array.chunks),
            "blocks": array.map(|array| &array.blocks),
            "dtype": array.and_then(|array| array.dtype.as_ref()),
            "typesize": self.typesize,
            "nbytes": self.nbytes,
            "cbytes": self.cbytes,
            "ratio": ratio,
            "nchunks": self.nchunks,
            "chunksize": self.chunksize,
            "codec": self.codec.to_string(),
            "clevel": self.level,
            "filters": filters,
            "meta": self.meta,
            "vlmeta": self.vlmeta,
            "contiguous": self.contiguous,
            "format_version": self.version,
        });
        match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        }
    }
}

/// A value without JSON's quotes and brackets.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "-".to_owned(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Number(number) if number.is_f64() => {
            format!("{:.2}", number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    };
    // Names and dtypes come from the file; they stay on their line.
    printable(&text)
}

/// Text without anything that would move the cursor.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { '\u{fffd}' } else { each }).collect()
}
