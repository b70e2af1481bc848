//! `blosc2 ls`: lists the entries of a store.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use blosc2::{ErrorKind, NDArray, SChunk, Value as Pythons};
use blosc2_store::{EmbedStore, Object, TreeStore};
use serde_json::{Map, Value, json};

use crate::file::{Node, Source};
use crate::table::{self, Align};
use crate::{complain, json, limits, printable};

/// List the keys of a Python store (groups with a trailing `/`), or the columns of a table.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  blosc2 ls runs.b2z --long\n  blosc2 ls runs.b2d --key /first")]
pub(crate) struct Args {
    /// Store or table: a directory (`.b2d`), a zip file (`.b2z`) or an embedded store (`.b2e`).
    file: PathBuf,
    #[command(flatten)]
    node: Node,
    /// Also open each entry and print kind, shape, dtype and sizes.
    #[arg(short, long)]
    long: bool,
    /// Print one JSON array instead of lines.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let source = args.node.of(&args.file)?.without_root();
    let entries = match source.group()? {
        Some((store, group)) => of_tree(&store, group, args.long),
        None => of_source(source, args.long)?,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let entries: Vec<Value> = entries.iter().map(Entry::to_json).collect();
        writeln!(out, "{}", json::pretty(&entries)?)?;
        return Ok(out.flush()?);
    }
    table::write(&mut out, COLUMNS, entries.iter().map(Entry::cells))?;
    Ok(out.flush()?)
}

/// A line of the list.
struct Entry {
    name: String,
    facts: Option<Facts>,
}

/// The facts about one entry.
#[derive(Default)]
struct Facts {
    kind: String,
    shape: Option<Vec<u64>>,
    dtype: Option<String>,
    nbytes: Option<u64>,
    cbytes: Option<u64>,
    note: Option<String>,
}

/// Name, kind, shape, dtype, bytes, stored bytes, note.
const COLUMNS: [Align; 7] = {
    use Align::{Left, Right};
    [Left, Left, Left, Left, Right, Right, Left]
};

impl Entry {
    /// The cells of the line, as in `COLUMNS`.
    fn cells(&self) -> [String; 7] {
        let nothing = Facts::default();
        let facts = self.facts.as_ref().unwrap_or(&nothing);
        let Facts { kind, shape, dtype, nbytes, cbytes, note } = facts;
        let cells = [
            self.name.clone(),
            kind.clone(),
            shape.as_ref().map(|shape| format!("{shape:?}")).unwrap_or_default(),
            dtype.clone().unwrap_or_default(),
            nbytes.map(table::size).unwrap_or_default(),
            cbytes.map(|bytes| format!("{} stored", table::size(bytes))).unwrap_or_default(),
            note.clone().unwrap_or_default(),
        ];
        cells.map(|cell| printable(&cell))
    }

    fn to_json(&self) -> Value {
        let mut object = Map::from_iter([("key".to_owned(), json!(self.name))]);
        if let Some(facts) = &self.facts {
            object.insert("kind".to_owned(), json!(facts.kind));
            object.insert("shape".to_owned(), json!(facts.shape));
            object.insert("dtype".to_owned(), json!(facts.dtype));
            object.insert("nbytes".to_owned(), json!(facts.nbytes));
            object.insert("cbytes".to_owned(), json!(facts.cbytes));
            object.insert("note".to_owned(), json!(facts.note));
        }
        Value::Object(object)
    }
}

/// The entries of a file or of an entry of a store.
fn of_source(source: Source<'_>, long: bool) -> Result<Vec<Entry>> {
    let object = source.object();
    let path = source.path.display();
    let why = match &object {
        Ok(Object::Carrier(carrier)) => carrier.to_string(),
        Ok(_) => "it is neither a store nor a table; `info` describes it".to_owned(),
        Err(error) => error.to_string(),
    };
    if let Some(entries) = object.as_ref().ok().and_then(|object| of_object(object, long)) {
        return Ok(entries);
    }
    // The parts of a table or of a remote store that cannot be read as such.
    if let Some(entries) = source.plain_store().and_then(|store| of_object(&store, long)) {
        complain(&format!("warning ({path}): only the stored parts are listed: {why}"));
        return Ok(entries);
    }
    match object {
        Ok(_) => bail!("cannot list ({path}): {why}"),
        Err(error) => Err(error),
    }
}

/// The entries of an object; `None` if it is neither a store nor a table.
fn of_object(object: &Object, long: bool) -> Option<Vec<Entry>> {
    match object {
        Object::TreeStore(store) => Some(of_tree(store, "/", long)),
        Object::EmbedStore(store) => {
            let mut budget = Budget::of(Some(store));
            let entry = |key: &str| {
                let facts = long.then(|| budget.facts(key, || store.get(key)));
                Entry { name: key.to_owned(), facts }
            };
            Some(store.keys().map(entry).collect())
        }
        Object::CTable(table) => {
            let columns = table.columns().iter().map(|column| {
                let kind = column.kind().to_string();
                let note = column.is_nullable().then(|| "nullable".to_owned());
                let facts = long.then(|| Facts { kind, note, ..Facts::default() });
                Entry { name: column.name().to_owned(), facts }
            });
            Some(columns.collect())
        }
        _ => None,
    }
}

/// The entries below a group.
fn of_tree(store: &TreeStore, group: &str, long: bool) -> Vec<Entry> {
    let above = if group == "/" { "/".to_owned() } else { format!("{group}/") };
    let mut entries: Vec<Entry> = store
        .groups()
        .filter(|each| each.starts_with(&above))
        .map(|each| {
            let facts = long.then(|| Facts {
                kind: "group".to_owned(),
                note: attributes_note(store, each),
                ..Facts::default()
            });
            Entry { name: format!("{each}/"), facts }
        })
        .collect();
    let keys = store.keys().filter(|key| key.starts_with(&above));
    let mut budget = Budget::of(long.then(|| store.embedded_store()));
    entries.extend(keys.map(|key| {
        let facts = long.then(|| budget.facts(key, || store.get(key)));
        Entry { name: key.to_owned(), facts }
    }));
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

/// The bytes of embedded frames that are still read: a few bytes can contain very many of them.
struct Budget {
    left: u64,
    /// The length of each embedded frame.
    lengths: HashMap<String, u64>,
}

impl Budget {
    fn of(store: Option<&EmbedStore>) -> Self {
        let cbytes = store.map_or(0, |store| store.schunk().cbytes());
        let frames = store.into_iter().flat_map(EmbedStore::frame_ranges);
        let frames = frames
            .filter_map(|(key, range)| Some((key.to_owned(), range.map(|it| it.end - it.start)?)));
        Self { left: cbytes.saturating_mul(256).max(1 << 30), lengths: frames.collect() }
    }

    /// The facts about an entry, unless its frame exceeds the budget.
    fn facts(&mut self, key: &str, open: impl FnOnce() -> blosc2::Result<Object>) -> Facts {
        let length = self.lengths.get(key).copied().unwrap_or(0);
        match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                facts(open())
            }
            None => Facts {
                kind: "unread".to_owned(),
                note: Some(format!("its frame of {length} bytes exceeds the limit of the list")),
                ..Facts::default()
            },
        }
    }
}

fn attributes_note(store: &TreeStore, group: &str) -> Option<String> {
    let attributes = match store.attributes(group) {
        Ok(attributes) => attributes,
        Err(error) => return Some(limits::named(&error)),
    };
    let names: Vec<String> = attributes.into_iter().map(|(name, _)| name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn facts(object: blosc2::Result<Object>) -> Facts {
    let object = match object {
        Ok(object) => object,
        Err(error) => {
            let kind = unread_kind(&error).to_owned();
            let note = Some(limits::named(&error));
            return Facts { kind, note, ..Facts::default() };
        }
    };
    let (shape, dtype) = shape_of(&object);
    let schunk = object.schunk();
    Facts {
        kind: object.kind().to_owned(),
        nbytes: schunk.map(|schunk| nbytes_of(schunk, &object)),
        cbytes: schunk.map(SChunk::cbytes),
        note: match &object {
            Object::Carrier(carrier) => Some(carrier.to_string()),
            _ => None,
        },
        shape,
        dtype,
    }
}

/// The kind of an object that cannot be opened.
fn unread_kind(error: &blosc2::Error) -> &'static str {
    match error.kind() {
        ErrorKind::Unsupported => "unsupported",
        _ => "broken",
    }
}

/// Bytes of all items, without the padding of the chunks of an array.
fn nbytes_of(schunk: &SChunk, object: &Object) -> u64 {
    match object {
        Object::NDArray(array) => array.len().saturating_mul(array.typesize() as u64),
        _ => schunk.nbytes(),
    }
}

/// The shape and the dtype of an object, if it has them.
pub(crate) fn shape_of(object: &Object) -> (Option<Vec<u64>>, Option<String>) {
    let of_array =
        |array: &NDArray| (Some(array.shape().to_vec()), array.dtype_str().map(str::to_owned));
    match object {
        Object::NDArray(array) => of_array(array),
        Object::Tensor(tensor) => (Some(tensor.shape().to_vec()), Some(tensor.dtype().to_string())),
        Object::ObjectArray(array) => (Some(vec![array.len() as u64]), None),
        Object::BatchArray(array) => (array.nitems().ok().map(|len| vec![len]), None),
        Object::ListArray(array) => (Some(vec![array.len()]), None),
        Object::CTable(table) => (Some(vec![table.nrows(), table.columns().len() as u64]), None),
        _ => (None, None),
    }
}

fn attributes(attributes: Vec<(String, Pythons)>) -> Result<Map<String, Value>> {
    let values = attributes.into_iter();
    values.map(|(name, value)| Ok((name, serde_json::to_value(&value)?))).collect()
}

/// The facts about a group.
pub(crate) fn group_facts(
    store: &TreeStore,
    group: &str,
    path: &str,
) -> Result<Map<String, Value>> {
    let above = format!("{group}/");
    let facts = [
        ("path", json!(path)),
        ("kind", json!("group")),
        ("keys", store.keys().filter(|key| key.starts_with(&above)).collect()),
        ("groups", store.groups().filter(|each| each.starts_with(&above)).collect()),
        ("attributes", attributes(store.attributes(group)?)?.into()),
    ];
    Ok(facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect())
}

/// The facts about a store or a table; `None` for other objects.
pub(crate) fn store_facts(object: &Object, path: &str) -> Result<Option<Map<String, Value>>> {
    let facts = match object {
        Object::TreeStore(store) => json!({
            "path": path,
            "kind": object.kind(),
            "form": if store.is_archive() { "zip" } else { "folder" },
            "keys": store.keys().collect::<Vec<_>>(),
            "groups": store.groups().collect::<Vec<_>>(),
            "attributes": attributes(store.attributes("/")?)?,
        }),
        Object::EmbedStore(store) => json!({
            "path": path,
            "kind": object.kind(),
            "form": "file",
            "keys": store.keys().collect::<Vec<_>>(),
            "nbytes": store.schunk().nbytes(),
            "cbytes": store.schunk().cbytes(),
        }),
        Object::CTable(table) => {
            let columns = table.columns().iter().map(|column| {
                json!({
                    "name": column.name(),
                    "kind": column.kind().to_string(),
                    "nullable": column.is_nullable(),
                })
            });
            json!({
                "path": path,
                "kind": object.kind(),
                "nrows": table.nrows(),
                "columns": columns.collect::<Vec<_>>(),
                "attributes": attributes(table.attributes()?)?,
            })
        }
        Object::Carrier(carrier) if carrier.schunk().is_none() => json!({
            "path": path,
            "kind": object.kind(),
            "note": carrier.to_string(),
        }),
        _ => return Ok(None),
    };
    Ok(facts.as_object().cloned())
}

/// The facts about a store whose parts can be read, but not the object that they form; `None` if the error is another
/// one. `object` is that object, or the error of opening it.
pub(crate) fn partial_facts(
    source: Source<'_>,
    object: &Result<Object>,
    path: &str,
) -> Result<Option<Map<String, Value>>> {
    let (kind, note) = match object {
        Ok(object @ Object::Carrier(carrier)) if carrier.schunk().is_none() => {
            (object.kind(), carrier.to_string())
        }
        Ok(_) => return Ok(None),
        Err(error) => match error.downcast_ref::<blosc2::Error>() {
            Some(error) if error.kind() != ErrorKind::NotFound => {
                (unread_kind(error), error.to_string())
            }
            _ => return Ok(None),
        },
    };
    let mut facts = match source.plain_store() {
        Some(store) => store_facts(&store, path)?.unwrap_or_default(),
        // An entry of a store that is not a super-chunk either.
        None if source.key.is_some() && source.open().is_err() => {
            Map::from_iter([("path".to_owned(), json!(path))])
        }
        None => return Ok(None),
    };
    facts.insert("kind".to_owned(), json!(kind));
    facts.insert("note".to_owned(), json!(limits::named(note)));
    Ok(Some(facts))
}
