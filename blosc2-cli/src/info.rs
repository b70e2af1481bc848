//! `blosc2 info`: what a file says about itself.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::file::Content;

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
    let facts = facts(&Content::open(&args.file)?, &args.file.display().to_string());
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

fn facts(content: &Content, path: &str) -> Map<String, Value> {
    let schunk = content.schunk();
    let params = schunk.cparams();
    let (nbytes, cbytes) = (content.nbytes(), schunk.cbytes());
    let ratio = (cbytes > 0).then(|| nbytes as f64 / cbytes as f64);
    let array = match content {
        Content::Array(array) => Some(array),
        Content::SChunk(_) => None,
    };
    let format = schunk.file_format();
    let filters: Vec<String> = params.filters.iter().map(ToString::to_string).collect();
    let facts = json!({
        "path": path,
        "kind": if array.is_some() { "ndarray" } else { "schunk" },
        "note": content.note(),
        "shape": array.map(|array| array.shape()),
        "chunks": array.map(|array| array.chunks()),
        "blocks": array.map(|array| array.blocks()),
        "dtype": array.and_then(|array| array.dtype()),
        "typesize": schunk.typesize(),
        "nbytes": nbytes,
        "cbytes": cbytes,
        "ratio": ratio,
        "nchunks": schunk.nchunks(),
        "chunksize": schunk.chunksize(),
        "codec": params.codec.to_string(),
        "clevel": params.level,
        "filters": filters,
        "meta": schunk.meta().names(),
        "vlmeta": schunk.vlmeta().names(),
        "contiguous": format.map(|format| format.contiguous),
        "format_version": format.map(|format| format.version),
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
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
    text.chars().map(|each| if each.is_control() { '\u{fffd}' } else { each }).collect()
}
