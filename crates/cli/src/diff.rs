//! `blosc2 diff`: compares the data and the metadata of two files.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use blosc2::dtype::SwapPlan;
use blosc2::{Dtype, Special};
use blosc2_format::frame::SEARCH_INDEXES;
use serde_json::{Map, Value as Json, json};

use crate::file::{Content, NoStore, Node, Source};
use crate::info::{self, plain};
use crate::meta::{brief, brief_bytes, shorten};
use crate::npy::NpyItems;
use crate::rust::{self, RustItems};
use crate::stream::{self, Items};
use crate::{foreign, json, meta, printable, progress, stdin, text};

/// Metalayers that mark a super-chunk as an array: the current name and that of Caterva.
const ARRAY_METALAYERS: [&str; 2] = ["b2nd", "caterva"];

/// Compare two files: kind, shape, dtype, metalayers and items.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints `equal` (exit status 0), or the differences (exit status 1). Codecs, filters, chunk and block shapes, storage \
and format version are not compared.
Items are compared by their bytes: NaN equals NaN with the same bits, and -0.0 differs from 0.0. If dtypes differ in \
byte order only, values are compared. Items are not compared if the shapes differ, or if the dtypes differ in more than \
the byte order.

Examples:
  blosc2 diff old.b2nd new.b2nd
  blosc2 diff run.b2z speed.b2nd --key /first/speed --json")]
pub(crate) struct Args {
    /// File, directory (sparse frame), npy file or store (with --key); `-` is stdin.
    a: PathBuf,
    /// The file to compare with.
    b: PathBuf,
    #[command(flatten)]
    node: Node,
    /// Key of an entry in B. Default: the key of A, if B is a store.
    #[arg(long, value_name = "KEY")]
    other_key: Option<String>,
    /// Do not compare metalayers.
    #[arg(long)]
    no_meta: bool,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// The files differ, and the differences are printed.
#[derive(Debug)]
pub(crate) struct Different;

impl fmt::Display for Different {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the files differ")
    }
}

impl std::error::Error for Different {}

pub(crate) fn run(args: &Args) -> Result<()> {
    let a = Side::open(args.node.of(&args.a)?).map_err(|error| match error.is::<NoStore>() {
        true => anyhow!("{error}; --other-key is the key in the second file"),
        false => error,
    })?;
    let b = Side::open(args.node.of_other(&args.b, args.other_key.as_deref())?)?;
    let mut found = Vec::new();
    for what in ["kind", "shape", "dtype", "typesize", "nbytes"] {
        let fact = |side: &Side<'_>| match what {
            // The super-chunk of a tensor can have another typesize.
            "typesize" => side.items().typesize().into(),
            _ => side.facts[what].clone(),
        };
        let (of_a, of_b) = (&fact(&a), &fact(&b));
        // They follow from the shape and the dtype.
        let is_derived = match what {
            "typesize" => found.iter().any(|each: &Difference| each.json["what"] == "dtype"),
            "nbytes" => !(a.is_flat() && b.is_flat()),
            _ => false,
        };
        if !is_derived && of_a != of_b && !(what == "dtype" && a.has_dtype_of(&b)) {
            found.push(Difference::of_fact(what, of_a, of_b));
        }
    }
    if !args.no_meta {
        for what in ["meta", "vlmeta"] {
            compare_layers(what, &a, &b, args.json, &mut found)?;
        }
    }
    match comparison(&a, &b) {
        // A few bytes can be many zeros, which are not decompressed.
        Ok(_) if a.is_zeros()? && b.is_zeros()? => {}
        Ok(plans) => compare_items(&a, &b, &plans, &mut found)?,
        Err(reason) => found.push(Difference::not_compared(reason)),
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let differences: Vec<&Json> = found.iter().map(|each| &each.json).collect();
        let all = json!({
            "equal": found.is_empty(),
            "differences": differences,
            "a": a.facts,
            "b": b.facts,
        });
        writeln!(out, "{}", json::pretty(&all)?)?;
    } else if found.is_empty() {
        writeln!(out, "equal")?;
    }
    for Difference { json, text } in found.iter().filter(|_| !args.json) {
        writeln!(out, "{:<8} {text}", plain(&json["what"]))?;
    }
    out.flush()?;
    if found.is_empty() { Ok(()) } else { Err(Different.into()) }
}

/// One difference, for both kinds of output.
struct Difference {
    json: Json,
    text: String,
}

impl Difference {
    fn of_fact(what: &str, a: &Json, b: &Json) -> Self {
        let text = |fact: &Json| if fact.is_null() { "(none)".to_owned() } else { plain(fact) };
        Self {
            json: json!({ "what": what, "a": a, "b": b }),
            text: format!("{} != {}", text(a), text(b)),
        }
    }

    /// Different metalayers, or one that only one file has.
    fn of_layer(what: &str, name: &str, a: Option<&[u8]>, b: Option<&[u8]>, as_json: bool) -> Self {
        let (of_a, of_b) = match (a, b) {
            (Some(a), Some(b)) => {
                let [of_a, of_b] = texts(a, b, &brief);
                (Some(of_a), Some(of_b))
            }
            _ => (a.map(brief), b.map(brief)),
        };
        let text = |value: Option<String>| value.unwrap_or("(none)".to_owned());
        // Only JSON contains the values, which can be large.
        let fact = |content: Option<&[u8]>| content.filter(|_| as_json).map(meta::content);
        Self {
            json: json!({ "what": what, "name": name, "a": fact(a), "b": fact(b) }),
            text: format!("`{}`: {} != {}", printable(name), text(of_a), text(of_b)),
        }
    }

    fn not_compared(reason: &str) -> Self {
        Self {
            json: json!({ "what": "items", "not_compared": reason }),
            text: format!("not compared: {reason}"),
        }
    }
}

/// The texts of two different contents; if these are equal, the contents from the first different byte on.
fn texts(a: &[u8], b: &[u8], show: &dyn Fn(&[u8]) -> String) -> [String; 2] {
    let texts = [show(a), show(b)];
    if texts[0] != texts[1] {
        return texts;
    }
    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    [a, b].map(|content| format!("byte {at}: {}", brief_bytes(&content[at..])))
}

/// An open file.
struct Side<'a> {
    source: Source<'a>,
    data: Data<'a>,
    /// As `blosc2 info` prints them.
    facts: Map<String, Json>,
}

#[expect(clippy::large_enum_variant, reason = "there are two at a time")]
enum Data<'a> {
    C(Content),
    /// A file that C-Blosc2 does not open.
    Rust(RustItems<'a>),
    Npy(NpyItems<'a>),
}

impl<'a> Side<'a> {
    fn open(source: Source<'a>) -> Result<Self> {
        let path = stdin::named(source.path.display().to_string());
        if let Some(items) = NpyItems::open(source)? {
            let facts = json!({
                "path": path,
                "kind": "ndarray",
                "note": foreign::NPY,
                "shape": items.shape(),
                "chunks": items.shape(),
                "dtype": items.dtype(),
                "typesize": items.typesize(),
                "nbytes": null,
            });
            let facts = facts.as_object().cloned().unwrap_or_default();
            return Ok(Self { source, data: Data::Npy(items), facts });
        }
        let (data, facts) = match rust::needed(source) {
            Some(_) => {
                let file = rust::open_data(source)?;
                let facts = info::of_file(&file, None).to_json(&path);
                (Data::Rust(RustItems::new(source, file)?), facts)
            }
            None => {
                let content = Content::open_data(source)?;
                let facts = info::of_content(&content, source.object()).to_json(&path);
                (Data::C(content), facts)
            }
        };
        let mut side = Self { source, data, facts };
        let kind = match side.facts["kind"].as_str().unwrap_or_default() {
            // The version of the format is no difference.
            "early-frame" | "frame-version-1" | "packed" if side.is_flat() => Some("schunk"),
            "frame-version-1" => Some("ndarray"),
            _ => None,
        };
        if let Some(kind) = kind {
            side.facts.insert("kind".to_owned(), kind.into());
        }
        Ok(side)
    }

    /// Whether it is not an array.
    fn is_flat(&self) -> bool {
        self.items().is_flat()
    }

    fn items(&self) -> &dyn Items {
        match &self.data {
            Data::C(content) => content.items(),
            Data::Rust(items) => items,
            Data::Npy(items) => items,
        }
    }

    fn dtype_text(&self) -> Option<&str> {
        self.facts["dtype"].as_str()
    }

    /// The dtype, if it is valid and has the size of the items.
    fn dtype(&self) -> Option<Dtype> {
        let dtype = Dtype::parse(self.dtype_text()?).ok()?;
        (dtype.size() == self.items().typesize()).then_some(dtype)
    }

    /// Whether both dtypes are the same, possibly in different notations.
    fn has_dtype_of(&self, other: &Self) -> bool {
        match (self.dtype(), other.dtype()) {
            (Some(a), Some(b)) => a == b,
            _ => self.dtype_text() == other.dtype_text(),
        }
    }

    /// Whether all chunks are special chunks of zeros.
    fn is_zeros(&self) -> Result<bool> {
        let Data::C(content) = &self.data else { return Ok(false) };
        let schunk = content.schunk();
        for index in 0..schunk.nchunks() {
            if schunk.chunk_info(index)?.special != Some(Special::Zeros) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The names of the metalayers that are compared; `what` is `meta` or `vlmeta`.
    fn layer_names<'b>(&'b self, what: &'b str) -> impl Iterator<Item = &'b str> {
        let names = self.facts.get(what).and_then(Json::as_array).into_iter().flatten();
        let names = names.filter_map(Json::as_str);
        // Shape and dtype are compared, and chunk and block shapes are no difference. Search indexes describe the items,
        // and are not copied.
        names.filter(move |name| match what {
            "meta" => !ARRAY_METALAYERS.contains(name),
            _ => !SEARCH_INDEXES.contains(name),
        })
    }

    fn layer(&self, what: &str, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(match (&self.data, what) {
            (Data::Npy(_), _) => None,
            (Data::C(content), "meta") => content.schunk().meta().get(name)?,
            (Data::C(content), _) => content.schunk().vlmeta().get(name)?,
            (Data::Rust(items), "meta") => items.metalayer(name),
            (Data::Rust(items), _) => items.vlmetalayer(name)?,
        })
    }
}

/// Compares the metalayers of one kind; their order is no difference.
fn compare_layers(
    what: &str,
    a: &Side<'_>,
    b: &Side<'_>,
    as_json: bool,
    found: &mut Vec<Difference>,
) -> Result<()> {
    let names: BTreeSet<&str> = a.layer_names(what).chain(b.layer_names(what)).collect();
    for name in names {
        let (of_a, of_b) = (a.layer(what, name)?, b.layer(what, name)?);
        if of_a != of_b {
            let (of_a, of_b) = (of_a.as_deref(), of_b.as_deref());
            found.push(Difference::of_layer(what, name, of_a, of_b, as_json));
        }
    }
    Ok(())
}

/// The conversions of both items to the same byte order; or the reason why items cannot be compared.
fn comparison(a: &Side<'_>, b: &Side<'_>) -> Result<Option<[SwapPlan; 2]>, &'static str> {
    if a.is_flat() != b.is_flat() {
        return Err("one file is an array, and the other is not");
    }
    if !a.is_flat() && a.items().shape() != b.items().shape() {
        return Err("the shapes differ");
    }
    if a.items().typesize() != b.items().typesize() {
        return Err("the sizes of the items differ");
    }
    if a.is_flat() && a.facts["nbytes"] != b.facts["nbytes"] {
        return Err("the numbers of bytes differ");
    }
    if a.has_dtype_of(b) {
        return Ok(None);
    }
    let (Some(of_a), Some(of_b)) = (a.dtype(), b.dtype()) else {
        return Err("the dtypes differ");
    };
    if of_a.is_equivalent(&of_b) {
        return Ok(None);
    }
    match (of_a.swap_plan(), of_b.swap_plan()) {
        (Ok(plan_of_a), Ok(plan_of_b)) if of_a.to_native().is_equivalent(&of_b.to_native()) => {
            Ok(Some([plan_of_a, plan_of_b]))
        }
        _ => Err("the dtypes differ"),
    }
}

/// The first different item, in C order.
struct First {
    number: u64,
    items: [Vec<u8>; 2],
}

fn compare_items(
    a: &Side<'_>,
    b: &Side<'_>,
    plans: &Option<[SwapPlan; 2]>,
    found: &mut Vec<Difference>,
) -> Result<()> {
    let (items_a, items_b) = (a.items(), b.items());
    let size = items_a.typesize().max(1);
    let total = items_a.shape().into_iter().fold(1, u64::saturating_mul);
    let bar = progress::bar(total.saturating_mul(size as u64));
    let (mut done, mut different) = (0, 0);
    let mut first: Option<First> = None;
    stream::boxes(items_a, &mut |ranges| {
        let mut of_a = read(a, ranges)?;
        let mut of_b = read(b, ranges)?;
        if let Some([plan_of_a, plan_of_b]) = plans {
            plan_of_a.apply(&mut of_a);
            plan_of_b.apply(&mut of_b);
        }
        if of_a != of_b {
            let pairs = of_a.chunks(size).zip(of_b.chunks(size)).enumerate();
            for (k, (of_a, of_b)) in pairs.filter(|(_, (of_a, of_b))| of_a != of_b) {
                different += 1;
                first.get_or_insert_with(|| First {
                    number: done + k as u64,
                    items: [of_a.to_vec(), of_b.to_vec()],
                });
            }
        }
        done += (of_a.len() / size) as u64;
        bar.inc(of_a.len() as u64);
        Ok(())
    })?;
    if let Some(First { number, items }) = first {
        let index = index_of(number, &items_a.shape());
        let dtype = match plans {
            Some(_) => a.dtype().map(|dtype| dtype.to_native()),
            None => a.dtype(),
        };
        let dtype = dtype.map_or_else(|| text::unknown_dtype(size), Ok)?;
        let [of_a, of_b] = texts(&items[0], &items[1], &|item| shorten(&text::item(&dtype, item)));
        found.push(Difference {
            text: format!(
                "{different} of {total} differ, first at {}: {of_a} != {of_b}",
                Json::from(index.clone())
            ),
            json: json!({
                "what": "items",
                "different": different,
                "total": total,
                "first": index,
                "a": of_a,
                "b": of_b,
            }),
        });
    }
    let tails = [items_a.tail()?, items_b.tail()?];
    if tails[0] != tails[1] {
        let show = |tail: &[u8]| shorten(&format!("b\"{}\"", tail.escape_ascii()));
        let (of_a, of_b) = (show(&tails[0]), show(&tails[1]));
        found.push(Difference {
            text: format!("bytes after the last whole item: {of_a} != {of_b}"),
            json: json!({ "what": "tail", "a": of_a, "b": of_b }),
        });
    }
    Ok(())
}

fn read(side: &Side<'_>, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
    let items = side.items();
    let bytes = items.read(ranges)?;
    let lens = ranges.iter().map(|range| range.end - range.start);
    let expected = lens.fold(items.typesize() as u64, u64::saturating_mul);
    if bytes.len() as u64 != expected {
        let found = bytes.len();
        bail!(
            "{}",
            side.source.unread(&format!("expected {expected} bytes of items, found {found}"))
        );
    }
    Ok(bytes)
}

/// The index of an item on each axis.
fn index_of(mut number: u64, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (at, &side) in index.iter_mut().zip(shape).rev() {
        (*at, number) = (number % side.max(1), number / side.max(1));
    }
    index
}
