//! Python's containers: the model, and `blosc2-store` as a writer and a reader.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use blosc2::{CParams, NDArray, OpenOptions, RawItems, SChunk, Target, Value};
use blosc2_store::{
    BatchArray, CTable, EmbedStore, ItemKind, ItemType, ListArray, Object as Stored, ObjectArray,
    Tensor, TreeStore,
};
use serde_json::{Value as Json, json};

use crate::object::{Facts, Layer, Object, Place, digest, found_layers, layer_facts, list, stored};
use crate::wrapper::layers;

/// What a key of a store holds.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// Items of `i4`, in one dimension.
    Array(Vec<i32>),
    /// A super-chunk of bytes.
    Bytes(Vec<u8>),
    Objects(Vec<Value>),
}

/// A column of a table: its name, the expression of Python for its type, and its values.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) values: Vec<Value>,
}

#[derive(Debug, Clone)]
pub(crate) enum Container {
    Objects(Vec<Value>),
    Batches {
        batches: Vec<Vec<Value>>,
        per_block: Option<u64>,
    },
    /// The name of the item type, and rows, which may be null.
    Lists {
        item: &'static str,
        rows: Vec<Value>,
    },
    Tensor {
        dtype: &'static str,
        shape: Vec<u64>,
        items: Vec<u8>,
    },
    Embed(Vec<(String, Node)>),
    Tree {
        nodes: Vec<(String, Node)>,
        attributes: Vec<(String, Layer)>,
        archive: bool,
    },
    Dict {
        nodes: Vec<(String, Node)>,
        archive: bool,
    },
    Table {
        columns: Vec<Column>,
        deleted: Vec<usize>,
        archive: bool,
    },
}

impl Container {
    /// The name for Python.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Objects(_) => "objects",
            Self::Batches { .. } => "batches",
            Self::Lists { .. } => "lists",
            Self::Tensor { .. } => "tensor",
            Self::Embed(_) => "embed",
            Self::Tree { .. } => "tree",
            Self::Dict { .. } => "dict",
            Self::Table { .. } => "table",
        }
    }

    /// The ending of the file, by which Python distinguishes some containers.
    pub(crate) fn ending(&self) -> &'static str {
        match self {
            Self::Objects(_) | Self::Lists { .. } => "b2frame",
            Self::Batches { .. } => "b2b",
            Self::Tensor { .. } => "bl2",
            Self::Embed(_) => "b2e",
            Self::Tree { archive, .. }
            | Self::Dict { archive, .. }
            | Self::Table { archive, .. } => {
                if *archive {
                    "b2z"
                } else {
                    "b2d"
                }
            }
        }
    }

    /// Whether it is one super-chunk, whose variable-length metalayers are compared.
    pub(crate) fn has_metalayers(&self) -> bool {
        matches!(self, Self::Objects(_) | Self::Batches { .. } | Self::Lists { .. })
    }

    pub(crate) fn to_json(&self, blob: &mut Vec<u8>) -> Json {
        let value = |value: &Value, blob: &mut Vec<u8>| stored(&value.to_msgpack().unwrap(), blob);
        let all = |values: &[Value], blob: &mut Vec<u8>| value(&values.to_vec().into(), blob);
        let nodes = |nodes: &[(String, Node)], blob: &mut Vec<u8>| -> Vec<Json> {
            let node = |(key, node): &(String, Node)| match node {
                Node::Array(items) => {
                    let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
                    json!([key, "array", stored(&bytes, blob)])
                }
                Node::Bytes(bytes) => json!([key, "bytes", stored(bytes, blob)]),
                Node::Objects(values) => json!([key, "objects", all(values, blob)]),
            };
            nodes.iter().map(node).collect()
        };
        match self {
            Self::Objects(values) => json!({ "values": all(values, blob) }),
            Self::Batches { batches, per_block } => {
                let batches: Vec<Value> = batches.iter().cloned().map(Value::from).collect();
                json!({ "values": all(&batches, blob), "per_block": per_block })
            }
            Self::Lists { item, rows } => json!({ "item": item, "values": all(rows, blob) }),
            Self::Tensor { dtype, shape, items } => {
                json!({ "dtype": dtype, "shape": shape, "items": stored(items, blob) })
            }
            Self::Embed(all) => json!({ "nodes": nodes(all, blob) }),
            Self::Tree { nodes: all, attributes, .. } => {
                let attribute = |(group, (name, attribute)): &(String, Layer)| {
                    json!([group, name, value(attribute, blob)])
                };
                let attributes: Vec<Json> = attributes.iter().map(attribute).collect();
                json!({ "nodes": nodes(all, blob), "attributes": attributes })
            }
            Self::Dict { nodes: all, .. } => json!({ "nodes": nodes(all, blob) }),
            Self::Table { columns, deleted, .. } => {
                let column =
                    |column: &Column| json!([column.name, column.kind, all(&column.values, blob)]);
                let columns: Vec<Json> = columns.iter().map(column).collect();
                json!({ "columns": columns, "deleted": deleted })
            }
        }
    }

    /// The facts that a reader has to find, without those of the metalayers.
    pub(crate) fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        let mut set = |name: &str, text: String| drop(facts.insert(name.into(), text));
        match self {
            Self::Objects(values) => set("values", hashed(values)),
            Self::Batches { batches, per_block } => {
                let batches: Vec<Value> = batches.iter().cloned().map(Value::from).collect();
                set("values", hashed(&batches));
                if let Some(per_block) = per_block {
                    set("items per block", per_block.to_string());
                }
            }
            Self::Lists { item, rows } => {
                set("item type", (*item).to_owned());
                set("values", hashed(rows));
            }
            Self::Tensor { dtype, shape, items } => {
                set("dtype", (*dtype).to_owned());
                set("shape", list(shape));
                set("items", digest(items));
            }
            Self::Embed(nodes) | Self::Dict { nodes, .. } | Self::Tree { nodes, .. } => {
                let mut keys: Vec<&str> = nodes.iter().map(|(key, _)| &**key).collect();
                keys.sort_unstable();
                set("keys", list(&keys));
                for (key, node) in nodes {
                    set(key, node.fact());
                }
                if let Self::Tree { attributes, .. } = self {
                    for (group, _) in attributes {
                        let own = attributes.iter().filter(|each| each.0 == *group);
                        let own: Vec<Layer> = own.map(|(_, layer)| layer.clone()).collect();
                        layer_facts(&format!("attributes of {group}"), &own, &mut facts);
                    }
                }
            }
            Self::Table { columns, deleted, .. } => {
                let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
                set("columns", list(&names));
                let types: Vec<String> = columns.iter().map(Column::type_name).collect();
                set("types", list(&types));
                for column in columns {
                    let rows = column.values.iter().enumerate();
                    let rows = rows.filter(|(row, _)| !deleted.contains(row));
                    let values: Vec<Value> = rows.map(|(_, value)| value.clone()).collect();
                    set(column.name, hashed(&values));
                }
            }
        }
        facts
    }

    /// Writes it with `blosc2-store`.
    pub(crate) fn write(&self, object: &Object, path: &Path) -> Result<()> {
        match self {
            Self::Objects(values) => {
                let schunk = create(object, path, &ObjectArray::default_cparams())?;
                let mut array = ObjectArray::new_in(schunk)?;
                for value in values {
                    array.append(value)?;
                }
                finish(array.into_schunk(), object, path)
            }
            Self::Batches { batches, per_block } => {
                let schunk = create(object, path, &CParams::default())?;
                let mut array = BatchArray::new_in(schunk, *per_block)?;
                for batch in batches {
                    array.append(batch)?;
                }
                finish(array.into_schunk(), object, path)
            }
            Self::Lists { item, rows } => {
                let item = ItemKind::List(Box::new(item_type(item)?));
                let schunk = create(object, path, &CParams::default())?;
                let mut array = ListArray::new_in(schunk, ItemType::from(item).nullable())?;
                for row in rows {
                    array.append(row.as_list())?;
                }
                finish(array.into_schunk()?, object, path)
            }
            Self::Tensor { dtype, shape, items } => {
                let item = |item: &[u8]| <[u8; 4]>::try_from(item).unwrap();
                match *dtype {
                    "<i4" => {
                        let items: Vec<i32> =
                            items.chunks(4).map(|four| i32::from_le_bytes(item(four))).collect();
                        Tensor::from_slice(&items, shape)?.save(path)?;
                    }
                    "<f4" => {
                        let items: Vec<f32> =
                            items.chunks(4).map(|four| f32::from_le_bytes(item(four))).collect();
                        Tensor::from_slice(&items, shape)?.save(path)?;
                    }
                    "|u1" => Tensor::from_slice(items, shape)?.save(path)?,
                    other => bail!("a tensor of {other}"),
                }
                Ok(())
            }
            Self::Embed(nodes) => {
                let mut store = EmbedStore::create(path)?;
                for (key, node) in nodes {
                    store.insert(key, &node.schunk()?)?;
                }
                Ok(())
            }
            Self::Tree { nodes, attributes, .. } => {
                let mut store = TreeStore::create(path)?;
                for (key, node) in nodes {
                    store.insert(key, &node.schunk()?)?;
                }
                for (group, (name, value)) in attributes {
                    store.set_attribute(group, name, value)?;
                }
                Ok(store.finish()?)
            }
            Self::Dict { .. } | Self::Table { .. } => bail!("`blosc2-store` does not write it"),
        }
    }

    /// Reads with `blosc2-store`.
    pub(crate) fn read(&self, object: &Object, path: &Path) -> Result<Facts> {
        let mut facts = Facts::new();
        let mut set = |name: &str, text: String| drop(facts.insert(name.into(), text));
        let opened = match object.place {
            Place::Frame => Stored::from_schunk(SChunk::open(fs::read(path)?)?)?,
            _ => Stored::open(path)?,
        };
        let schunk = match opened {
            Stored::ObjectArray(array) => {
                let values: Vec<Value> = array.iter().collect::<Result<_, _>>()?;
                set("values", hashed(&values));
                array.into_schunk()
            }
            Stored::BatchArray(array) => {
                let mut batches = Vec::new();
                for batch in array.batches() {
                    batches.push(Value::from(batch?));
                }
                set("values", hashed(&batches));
                let per_block = array.items_per_block().context("no items per block")?;
                set("items per block", per_block.to_string());
                array.into_schunk()
            }
            Stored::ListArray(array) => {
                let mut rows = Vec::new();
                for row in array.iter() {
                    rows.push(row?.map_or(Value::None, Value::List));
                }
                set("item type", array.item_type().kind().name().to_owned());
                set("values", hashed(&rows));
                array.into_schunk()?
            }
            Stored::Tensor(tensor) => {
                set("dtype", tensor.dtype().to_string());
                set("shape", list(tensor.shape()));
                set("items", digest(&tensor.read_bytes()?));
                return Ok(facts);
            }
            Stored::EmbedStore(store) => {
                let mut keys: Vec<&str> = store.keys().collect();
                keys.sort_unstable();
                set("keys", list(&keys));
                for key in keys {
                    set(key, node_fact(store.get(key)?)?);
                }
                return Ok(facts);
            }
            Stored::TreeStore(store) => {
                ensure!(store.is_dict() == matches!(self, Self::Dict { .. }), "the other store");
                let mut keys: Vec<&str> = store.keys().collect();
                keys.sort_unstable();
                set("keys", list(&keys));
                for key in keys {
                    set(key, node_fact(store.get(key)?)?);
                }
                for group in ["/"].into_iter().chain(store.groups()) {
                    let attributes = store.attributes(group)?;
                    layer_facts(&format!("attributes of {group}"), &attributes, &mut facts);
                }
                return Ok(facts);
            }
            Stored::CTable(table) => {
                table_facts(&table, &mut facts)?;
                return Ok(facts);
            }
            other => bail!("it is a {}", other.kind()),
        };
        found_layers("vlmeta", own(layers(schunk.vlmeta())?), &mut facts);
        Ok(facts)
    }
}

/// The metalayers that the container does not use itself.
fn own(layers: Vec<(String, Vec<u8>)>) -> impl Iterator<Item = (String, Vec<u8>)> {
    layers.into_iter().filter(|(name, _)| !name.starts_with('_'))
}

fn table_facts(table: &CTable, facts: &mut Facts) -> Result<()> {
    let names: Vec<&str> = table.columns().iter().map(|column| column.name()).collect();
    facts.insert("columns".into(), list(&names));
    let types = table.columns().iter().map(|column| {
        let kind = column.kind().to_string();
        // Without the maximum length, or the type of the items of a list.
        let name = kind.split('[').next().unwrap_or_default();
        if column.is_nullable() { format!("{name} or null") } else { name.to_owned() }
    });
    facts.insert("types".into(), list(&types.collect::<Vec<String>>()));
    for name in names {
        facts.insert(name.into(), hashed(&table.values(name, ..)?));
    }
    Ok(())
}

impl Column {
    fn type_name(&self) -> String {
        let name = self.kind.trim_start_matches("S.").split('(').next().unwrap_or_default();
        let is_nullable = self.kind.contains("nullable=True");
        if is_nullable { format!("{name} or null") } else { name.to_owned() }
    }
}

impl Node {
    fn schunk(&self) -> Result<SChunk> {
        Ok(match self {
            Self::Array(items) => NDArray::from_slice(items, items.len())?.into_schunk(),
            Self::Bytes(bytes) => {
                let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
                schunk.append(bytes)?;
                schunk
            }
            Self::Objects(values) => {
                let mut array = ObjectArray::in_memory()?;
                for value in values {
                    array.append(value)?;
                }
                array.into_schunk()
            }
        })
    }

    fn fact(&self) -> String {
        match self {
            Self::Array(items) => {
                let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
                format!("array of <i4 {}", digest(&bytes))
            }
            Self::Bytes(bytes) => format!("bytes {}", digest(bytes)),
            Self::Objects(values) => format!("objects {}", hashed(values)),
        }
    }
}

fn node_fact(node: Stored) -> Result<String> {
    Ok(match node {
        Stored::NDArray(array) => {
            let dtype = array.dtype_str().context("no dtype")?;
            format!("array of {dtype} {}", digest(&array.read::<RawItems>(..)?.0))
        }
        Stored::SChunk(schunk) => format!("bytes {}", digest(&schunk.read::<u8>(..)?)),
        Stored::ObjectArray(array) => {
            let values: Vec<Value> = array.iter().collect::<Result<_, _>>()?;
            format!("objects {}", hashed(&values))
        }
        other => bail!("a node is a {}", other.kind()),
    })
}

/// The hash of values as msgpack.
fn hashed(values: &[Value]) -> String {
    digest(&Value::from(values.to_vec()).to_msgpack().unwrap())
}

fn item_type(name: &str) -> Result<ItemType> {
    Ok(match name {
        "int32" => ItemKind::Int32.into(),
        "int64" => ItemType::from(ItemKind::Int64).nullable(),
        "float64" => ItemKind::Float64.into(),
        "bool" => ItemKind::Bool.into(),
        "vlstring" => ItemKind::VlString.into(),
        "bytes" => ItemKind::Bytes { max_length: 32 }.into(),
        other => bail!("items of type {other}"),
    })
}

fn create(object: &Object, path: &Path, params: &CParams) -> Result<SChunk> {
    let target = match object.place {
        Place::Frame => Target::memory(),
        place => Target::from(path).directory(place == Place::Directory),
    };
    Ok(OpenOptions::new().create_new(true).cparams(params).open(target)?)
}

fn finish(mut schunk: SChunk, object: &Object, path: &Path) -> Result<()> {
    for (name, value) in &object.vlmeta {
        schunk.vlmeta_mut().set_value(name, value)?;
    }
    if object.place == Place::Frame {
        fs::write(path, schunk.to_cframe()?)?;
    }
    Ok(())
}
