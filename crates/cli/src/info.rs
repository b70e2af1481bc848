//! `blosc2 info`: prints the metadata of a file.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blosc2::super_chunk::ChunkInfo;
use blosc2::{Codec, Filter, SChunk, Special};
use blosc2_format::chunk::codec_name;
use blosc2_format::file::{File, Kind};
use blosc2_store::Object;
use serde_json::{Map, Value, json};

use crate::file::{Content, Node};
use crate::foreign::with_article;
use crate::limits::{LimitOptions, named};
use crate::stats::Statistics;
use crate::style::styled;
use crate::table::{self, Align};
use crate::{complain, evaluate, json, ls, printable, remote, rust, stats, style};

/// Print kind, shapes, compression, sizes and metalayers of files.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  blosc2 info a.b2nd --stats\n  blosc2 info runs.b2z --key /first/speed --json"
)]
pub(crate) struct Args {
    /// Files, directories (sparse frames) or stores; `-` is stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    node: Node,
    /// Print one JSON object instead of lines. For several files, print an array of objects.
    #[arg(long)]
    json: bool,
    /// Also list the chunks: place (offset in bytes from the end of the frame header; in a directory, number of the
    /// chunk file), sizes, ratio, and how the data is stored.
    #[arg(long)]
    chunks: bool,
    /// Also compute statistics of the items of an array: count, NaN count, min, max, mean, standard deviation, and a
    /// histogram of 16 bins. The items are read twice, because the bins depend on min and max.
    #[arg(long)]
    stats: bool,
    /// Also print the shape, dtype and size of the result of a Python expression. No items are computed.
    #[arg(long, conflicts_with_all = ["chunks", "stats"])]
    evaluate: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    if let [file] = &args.files[..] {
        let facts = AllFacts::read(args, file)?;
        match args.json {
            true => writeln!(out, "{}", json::pretty(&facts.into_json())?)?,
            false => facts.write(&mut out)?,
        }
        return Ok(out.flush()?);
    }
    let mut list = Vec::new();
    let mut failed = None;
    for file in &args.files {
        match AllFacts::read(args, file) {
            Ok(facts) if args.json => list.push(facts.into_json()),
            Ok(facts) => {
                if !list.is_empty() {
                    writeln!(out)?;
                }
                facts.write(&mut out)?;
                list.push(Map::new());
            }
            // The other files are still described. The last error is that of the command.
            Err(error) => {
                if let Some(before) = failed.replace(error) {
                    complain(&before.to_string());
                }
            }
        }
    }
    if args.json {
        writeln!(out, "{}", json::pretty(&list)?)?;
    }
    out.flush()?;
    failed.map_or(Ok(()), Err)
}

/// The facts that are numbers of bytes.
const SIZES: [&str; 5] = ["nbytes", "cbytes", "result_nbytes", "received", "cache_bytes"];

/// All that is printed of a file.
struct AllFacts {
    facts: Map<String, Value>,
    chunks: Option<Vec<ChunkFacts>>,
    stats: Option<Statistics>,
}

impl AllFacts {
    fn read(args: &Args, file: &Path) -> Result<Self> {
        let path = file.display().to_string();
        let before = remote::traffic();
        let source = args.node.of(file)?.without_root();
        let (mut facts, chunks, stats) = match rust::needed(source) {
            Some(kind) if args.chunks => {
                let kind = with_article(kind);
                bail!(
                    "cannot list chunks ({path}): this is {kind}; `check --map` lists their offsets"
                )
            }
            Some(kind) if args.stats => bail!(
                "cannot compute statistics ({path}): this is {}; `view` computes those of such files",
                with_article(kind)
            ),
            Some(kind) => {
                let facts = of_file(&rust::open(source)?, rust::ambiguity(source, kind));
                (facts.to_json(&path), None, None)
            }
            None => {
                let object = source.object();
                let store = match (source.group()?, &object) {
                    (Some((store, group)), _) => Some(ls::group_facts(&store, group, &path)?),
                    (None, object) => match ls::partial_facts(source, object, &path)? {
                        None => {
                            object.as_ref().map_or(Ok(None), |it| ls::store_facts(it, &path))?
                        }
                        facts => facts,
                    },
                };
                match store {
                    Some(_) if args.chunks || args.stats => {
                        let task = if args.chunks { "list chunks" } else { "compute statistics" };
                        bail!(
                            "cannot {task} ({path}): this is a store, a group or a table; --key selects an entry"
                        )
                    }
                    Some(facts) => (facts, None, None),
                    None => {
                        let content = match args.stats {
                            true => Content::open_data(source)?,
                            false => Content::open(source)?,
                        };
                        let list = || of_chunks(content.schunk(), source.limits);
                        let chunks = args.chunks.then(list).transpose()?;
                        let facts = of_content(&content, object).to_json(&path);
                        let stats = args.stats.then(|| stats::of(content, &path)).transpose()?;
                        (facts, chunks, stats)
                    }
                }
            }
        };
        if args.evaluate {
            let result = evaluate::open(source)?;
            facts.insert("result_shape".to_owned(), json!(result.shape()));
            facts.insert("result_dtype".to_owned(), json!(result.dtype().to_string()));
            let sizes = result.shape().iter().copied();
            let nbytes = sizes.fold(result.dtype().size() as u64, u64::saturating_mul);
            facts.insert("result_nbytes".to_owned(), json!(nbytes));
        }
        // For the first file, there is nothing before.
        let earlier = |at: usize| before.map_or(0, |before| before[at].1);
        if source.is_url()
            && let Some(traffic) = remote::traffic()
        {
            let own = traffic.into_iter().enumerate();
            facts.extend(own.map(|(at, (name, sum))| (name.to_owned(), json!(sum - earlier(at)))));
        }
        Ok(Self { facts, chunks, stats })
    }

    fn into_json(mut self) -> Map<String, Value> {
        if let Some(stats) = self.stats {
            self.facts.insert("stats".to_owned(), stats.to_json());
        }
        if let Some(chunks) = self.chunks {
            let chunks = chunks.iter().map(ChunkFacts::to_json).collect();
            self.facts.insert("chunk_list".to_owned(), chunks);
        }
        self.facts
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, value) in self.facts.iter().filter(|(_, value)| !value.is_null()) {
            let mut text = plain(value);
            if let Some(bytes) = value.as_u64().filter(|_| SIZES.contains(&name.as_str()))
                && bytes >= 1024
            {
                text += &format!(" ({})", table::size(bytes));
            }
            writeln!(out, "{} {text}", styled(style::NAME, format_args!("{name:<14}")))?;
        }
        if let Some(stats) = &self.stats {
            stats.write(out)?;
        }
        if let Some(chunks) = &self.chunks {
            let titles = ["chunk", "place", "nbytes", "cbytes", "ratio", "data"].map(str::to_owned);
            let rows = chunks.iter().enumerate().map(|(index, chunk)| chunk.cells(index));
            table::write(out, COLUMNS, std::iter::once(titles).chain(rows))?;
        }
        Ok(())
    }
}

/// The facts about one chunk.
struct ChunkFacts {
    /// Offset from the end of the header in bytes, or in a directory the number of the chunk file.
    place: Option<u64>,
    info: ChunkInfo,
}

/// Bytes of memory for the facts about one chunk and the cells of its line.
const CHUNK_FACTS: u64 = 400;

fn of_chunks(schunk: &SChunk, limits: LimitOptions) -> Result<Vec<ChunkFacts>> {
    // A few hundred bytes can declare very many chunks.
    let (count, max) = (schunk.nchunks() as u64, limits.for_list());
    let needed = count * CHUNK_FACTS;
    if needed > max {
        let path = schunk.path().map_or("in a store".into(), |path| path.display().to_string());
        bail!(
            "cannot list chunks ({path}): the list of {count} chunks takes {needed} bytes of memory, the limit is \
             {max}: raise it with --max-memory"
        );
    }
    let places = schunk.offsets()?.into_iter().enumerate();
    let facts =
        places.map(|(index, place)| Ok(ChunkFacts { place, info: schunk.chunk_info(index)? }));
    facts.collect()
}

/// Index, place, bytes, compressed bytes, ratio, how the data is stored.
const COLUMNS: [Align; 6] = {
    use Align::{Left, Right};
    [Right, Right, Right, Right, Right, Left]
};

impl ChunkFacts {
    /// The cells of the line of a chunk, as in `COLUMNS`.
    fn cells(&self, index: usize) -> [String; 6] {
        let ChunkFacts { place, info } = self;
        [
            index.to_string(),
            place.map_or("-".to_owned(), |place| place.to_string()),
            table::size(info.nbytes as u64),
            table::size(info.cbytes as u64),
            match info.cbytes {
                0 => "-".to_owned(),
                _ => format!("{:.2}", info.cratio()),
            },
            made_of(info).to_owned(),
        ]
    }

    fn to_json(&self) -> Value {
        let ChunkFacts { place, info } = self;
        json!({
            "place": place,
            "nbytes": info.nbytes,
            "cbytes": info.cbytes,
            "ratio": (info.cbytes > 0).then(|| info.cratio()),
            "blocksize": info.blocksize,
            "data": made_of(info),
        })
    }
}

/// How the data of a chunk is stored.
fn made_of(info: &ChunkInfo) -> &'static str {
    match info.special {
        Some(Special::Zeros) => "zeros",
        Some(Special::Nan) => "nan",
        Some(Special::Value) => "repeated",
        Some(Special::Uninit) => "uninit",
        None if info.is_stored => "stored",
        None => "compressed",
    }
}

/// The metadata of a file, from either reader.
pub(crate) struct Facts {
    kind: &'static str,
    note: Option<String>,
    shape: Option<Vec<u64>>,
    dtype: Option<String>,
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
    /// `None` if this is not determined.
    checksums: Option<bool>,
    contiguous: Option<bool>,
    version: Option<u8>,
}

struct Shapes {
    shape: Vec<u64>,
    chunks: Vec<u64>,
    blocks: Vec<u64>,
    dtype: Option<String>,
}

/// The facts about a file that C-Blosc2 opens. `object` is the container that its metadata names.
pub(crate) fn of_content(content: &Content, object: Result<Object>) -> Facts {
    let schunk = content.schunk();
    let info = schunk.info();
    let array = match content {
        Content::Array(array) => Some(Shapes {
            shape: array.shape().to_vec(),
            chunks: array.chunk_shape().to_vec(),
            blocks: array.block_shape().to_vec(),
            dtype: array.dtype_str().map(str::to_owned),
        }),
        Content::SChunk(_) | Content::Tensor(_) => None,
    };
    let plain = if array.is_some() { "ndarray" } else { "schunk" };
    let (kind, note) = match &object {
        Ok(object @ Object::Carrier(carrier)) => (object.kind(), Some(carrier.to_string())),
        Ok(object) => (object.kind(), None),
        Err(error) => (plain, Some(named(error))),
    };
    // Tensors and other containers have a shape, and some a dtype.
    let (shape, dtype) = object.ok().as_ref().map(ls::shape_of).unwrap_or_default();
    Facts {
        kind,
        note,
        shape: array.as_ref().map(|array| array.shape.clone()).or(shape),
        dtype: array.as_ref().and_then(|array| array.dtype.clone()).or(dtype),
        array,
        typesize: schunk.typesize() as u64,
        nbytes: content.nbytes(),
        cbytes: schunk.cbytes(),
        nchunks: schunk.nchunks() as u64,
        chunksize: schunk.chunksize() as u64,
        codec: info.cparams.codec,
        level: Some(info.cparams.level),
        filters: info.cparams.filters,
        meta: schunk.meta().names(),
        vlmeta: schunk.vlmeta().names(),
        checksums: info.contiguous.map(|_| info.has_checksums),
        contiguous: info.contiguous,
        version: info.format_version,
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
        // The enum is non-exhaustive.
        _ => "other",
    }
}

/// The facts about a file that `blosc2-format` reads.
pub(crate) fn of_file(file: &File<'_>, ambiguity: Option<&'static str>) -> Facts {
    let info = file.info();
    let array = file.meta().zip(file.geometry()).map(|(meta, geometry)| Shapes {
        shape: geometry.shape().to_vec(),
        chunks: geometry.chunk_shape().to_vec(),
        blocks: geometry.block_shape().to_vec(),
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
        note: ambiguity.map(str::to_owned),
        shape: array.as_ref().map(|array| array.shape.clone()),
        dtype: array.as_ref().and_then(|array| array.dtype.clone()),
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
        checksums: None,
        contiguous: match info.kind {
            Kind::Chunk => None,
            kind => Some(kind != Kind::Directory),
        },
        version: info.version,
    }
}

impl Facts {
    pub(crate) fn to_json(&self, path: &str) -> Map<String, Value> {
        let ratio = (self.cbytes > 0).then(|| self.nbytes as f64 / self.cbytes as f64);
        let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
        let array = self.array.as_ref();
        let facts = json!({
            "path": path,
            "kind": self.kind,
            "note": self.note,
            "shape": self.shape,
            "chunks": array.map(|array| &array.chunks),
            "blocks": array.map(|array| &array.blocks),
            "dtype": self.dtype,
            "typesize": self.typesize,
            "nbytes": self.nbytes,
            "cbytes": self.cbytes,
            "ratio": ratio,
            "nchunks": self.nchunks,
            "chunksize": self.chunksize,
            "codec": codec_text(self.codec),
            "clevel": self.level,
            "filters": filters,
            "meta": self.meta,
            "vlmeta": self.vlmeta,
            "checksums": self.checksums,
            "contiguous": self.contiguous,
            "format_version": self.version,
        });
        match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        }
    }
}

/// A value as text, without the quotes and brackets of JSON.
pub(crate) fn plain(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "-".to_owned(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(facts) => match (&facts.get("name"), &facts.get("kind")) {
            // A column of a table.
            (Some(name), Some(kind)) => format!("{} ({})", plain(name), plain(kind)),
            _ if facts.is_empty() => "-".to_owned(),
            _ => {
                let facts = facts.iter().map(|(name, value)| format!("{name}: {}", plain(value)));
                facts.collect::<Vec<_>>().join(", ")
            }
        },
        Value::Number(number) if number.is_f64() => {
            format!("{:.2}", number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    };
    // Names and dtypes come from the file and must not contain line breaks.
    printable(&text)
}

/// The name of a codec; for a plugin, its name in the registry of Blosc2 and its code.
fn codec_text(codec: Codec) -> String {
    let name = match codec {
        Codec::Other(code) => codec_name(code),
        _ => None,
    };
    name.map_or(codec.to_string(), |name| format!("{name}, {codec}"))
}
