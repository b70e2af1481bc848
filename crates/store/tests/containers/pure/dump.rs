// Describes the content of a container, line by line. Included once for each engine: `store` is the crate.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use store::blosc2::{Error, NDArray, RawItems, SChunk};
use store::{CTable, EmbedStore, Object, TreeStore};

type Result<T> = std::result::Result<T, Error>;

/// Rows and items that are read at once, at most.
const MOST: u64 = 3000;

/// The description of the container at a path.
pub(crate) fn of_path(path: &Path) -> Vec<String> {
    let mut lines = Lines::default();
    lines.object("", Object::open(path));
    if let (Ok(Object::Carrier(carrier)), Some(folder)) = (Object::open(path), path.parent()) {
        let items = carrier.open_expression(folder).and_then(|expression| {
            let all: Vec<_> = expression.shape().iter().map(|size| 0..*size).collect();
            Ok((expression.dtype().clone(), expression.read(&all)?))
        });
        lines.result("", "expression", items);
    }
    lines.0
}

/// The description of the container in a source.
pub(crate) fn of_bytes(bytes: Vec<u8>) -> Vec<String> {
    let mut lines = Lines::default();
    lines.object("", Object::open_source(bytes));
    lines.0
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn add(&mut self, at: &str, what: &str, found: impl Debug) {
        self.0.push(format!("{at} {what}: {found:?}"));
    }

    /// Adds a result; of an error, only its kind, because the messages of the engines differ.
    fn result<T: Debug>(&mut self, at: &str, what: &str, found: Result<T>) {
        match found {
            Ok(found) => self.add(at, what, found),
            Err(error) => self.add(at, what, error.kind()),
        }
    }

    /// Adds the length and a hash of bytes: their text would be long.
    fn bytes(&mut self, at: &str, what: &str, found: Result<Vec<u8>>) {
        let hash = |bytes: Vec<u8>| (bytes.len(), BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes));
        self.result(at, what, found.map(hash));
    }

    fn object(&mut self, at: &str, object: Result<Object>) {
        let object = match object {
            Ok(object) => object,
            Err(error) => return self.add(at, "error", error.kind()),
        };
        self.add(at, "kind", object.kind());
        if let Some(schunk) = object.schunk() {
            self.schunk(at, schunk);
        }
        match object {
            Object::NDArray(array) => self.array(at, &array),
            Object::SChunk(_) => {}
            Object::Tensor(tensor) => {
                self.add(at, "tensor", (tensor.kind(), tensor.shape(), tensor.dtype()));
                self.bytes(at, "items", tensor.read_bytes());
            }
            Object::ObjectArray(array) => {
                let values: Vec<_> = array.iter().map(kind).collect();
                self.add(at, "values", values);
                self.result(at, "outside", array.get(array.len()));
            }
            Object::BatchArray(array) => {
                self.result(at, "number of items", array.nitems());
                self.add(at, "per block", array.items_per_block());
                self.add(at, "batches", array.batches().map(kind).collect::<Vec<_>>());
                for index in (0..array.nitems().unwrap_or(0)).step_by(7) {
                    self.result(at, "item", array.item(index));
                }
            }
            Object::ListArray(array) => {
                self.add(at, "type", (array.list_type().metadata(), array.is_nullable()));
                self.add(at, "rows", array.iter().map(kind).collect::<Vec<_>>());
                for row in (0..array.len() + 2).step_by(7) {
                    self.result(at, "row", array.get(row));
                }
            }
            Object::EmbedStore(store) => self.embedded(at, &store),
            Object::TreeStore(store) => self.tree(at, &store),
            Object::CTable(table) => self.table(at, &table),
            Object::Carrier(carrier) => {
                self.add(at, "carrier", (carrier.to_string(), carrier.description()));
            }
            _ => unreachable!("a new kind of container"),
        }
    }

    fn schunk(&mut self, at: &str, schunk: &SChunk) {
        let info = schunk.info();
        let sizes = (info.typesize, info.chunksize, info.nbytes, info.cbytes, info.nchunks);
        self.add(at, "sizes", (sizes, info.is_array, info.python_object));
        for (what, layers) in [("meta", schunk.meta()), ("vlmeta", schunk.vlmeta())] {
            for name in layers.names() {
                self.result(at, what, layers.get(&name).map(|content| (name.clone(), content)));
                self.result(at, "value", layers.value(&name));
            }
        }
        for index in 0..schunk.nchunks().min(100) + 1 {
            let info = schunk.chunk_info(index);
            let info = info.map(|info| (info.nbytes, info.cbytes, info.special));
            self.result(at, "chunk", info);
            self.result(at, "block", schunk.block(index, 0));
            self.result(at, "block", schunk.block(index, 1));
            self.result(at, "block", schunk.block(index, 1 << 20));
            self.bytes(at, "data", schunk.decompress_chunk::<u8>(index));
        }
        let len = schunk.nbytes();
        let (third, half) = (len / 3, len / 2);
        for range in [0..len.min(100), third..half.min(third + MOST), len - len.min(9)..len, 5..len + 1] {
            self.result(at, "bytes", schunk.read::<u8>(range));
        }
    }

    fn array(&mut self, at: &str, array: &NDArray) {
        self.add(at, "shapes", (array.shape(), array.chunk_shape(), array.block_shape()));
        self.add(at, "dtype", (array.dtype(), array.dtype_str(), array.typesize()));
        if array.len() * array.typesize() as u64 <= 4 << 20 {
            self.bytes(at, "items", array.read::<RawItems>(..).map(|items| items.0));
        }
        self.result(at, "i4", array.read::<Vec<i32>>(..));
        self.result(at, "f8", array.read::<Vec<f64>>(..));
        self.result(at, "bool", array.read::<Vec<bool>>(..));
        let parts = |len: u64| [0..len.min(1), len / 3..(len / 2 + 1).min(len), len - len.min(2)..len];
        match *array.shape() {
            [len] => {
                for rows in parts(len) {
                    self.bytes(at, "part", array.read::<RawItems>([rows]).map(|items| items.0));
                }
            }
            [rows, columns, ..] => {
                for rows in parts(rows) {
                    for columns in parts(columns) {
                        let part = array.read::<RawItems>([rows.clone(), columns]);
                        self.bytes(at, "part", part.map(|items| items.0));
                    }
                }
            }
            [] => {}
        }
    }

    fn embedded(&mut self, at: &str, store: &EmbedStore) {
        for (key, range) in store.frame_ranges() {
            self.add(at, "frame", (key, range));
            self.object(&format!("{at}{key}"), store.get(key));
        }
        self.object(&format!("{at}/missing"), store.get("missing"));
    }

    fn tree(&mut self, at: &str, store: &TreeStore) {
        self.add(at, "tree", (store.is_dict(), store.is_archive(), store.len()));
        self.add(at, "groups", store.groups().collect::<Vec<_>>());
        for group in std::iter::once("/").chain(store.groups()) {
            self.result(at, "children", store.children(group));
            self.result(at, "attributes", store.attributes(group));
        }
        for key in store.keys() {
            self.object(&format!("{at}{key}"), store.get(key));
        }
        self.object(&format!("{at}/missing"), store.get("/missing"));
    }

    fn table(&mut self, at: &str, table: &CTable) {
        let rows = table.nrows();
        self.add(at, "rows", (rows, table.row_chunks().collect::<Vec<_>>()));
        self.result(at, "attributes", table.attributes());
        for column in table.columns() {
            let (name, at) = (column.name(), format!("{at}.{}", column.name()));
            let at = at.as_str();
            self.add(at, "column", (column.kind(), column.is_nullable(), column.is_stale()));
            self.add(at, "type", column.spec().metadata());
            match table.array(name) {
                Ok(array) => self.array(at, &array),
                Err(error) => self.add(at, "array", error.kind()),
            }
            let picked = [rows / 2, rows.saturating_sub(1), 0, rows / 3];
            self.result(at, "picked", table.values(name, picked));
            self.result(at, "outside", table.values(name, rows..rows + 1));
            let mask: Vec<bool> = (0..rows).map(|row| row % 97 == 3).collect();
            self.result(at, "masked", table.values(name, &mask[..]));
            for start in (0..rows.min(10 * MOST)).step_by(MOST as usize) {
                let part = start..rows.min(start + MOST);
                self.result(at, "values", table.values(name, part.clone()));
                self.result(at, "evaluated", table.evaluated_values(name, part.clone()));
                self.result(at, "nulls", table.nulls(name, part.clone()));
                self.result(at, "texts", table.texts(name, part.clone()));
                self.result(at, "f8", table.read::<f64>(name, part.clone()));
                self.result(at, "i4", table.read::<i32>(name, part.clone()));
                self.result(at, "bool", table.read::<bool>(name, part));
            }
            self.result(at, "found", table.find_in(name, 10i64..20));
            let summary = table.summary(name).map(|summary| {
                summary.map(|summary| {
                    let segments = summary.segments().map(|each| {
                        let bounds = each.bounds().map(|(least, most)| (least.clone(), most.clone()));
                        (each.rows(), each.places(), bounds, each.has_nan(), each.is_null())
                    });
                    (summary.segment_len(), segments.collect::<Vec<_>>())
                })
            });
            self.result(at, "summary", summary);
        }
        self.result(at, "valid rows", table.valid_rows(..).map(|rows| rows.len()));
    }
}

/// A result with only the kind of its error.
fn kind<T>(result: Result<T>) -> std::result::Result<T, String> {
    result.map_err(|error| format!("{:?}", error.kind()))
}
