//! The viewer: one open file and what is being read from it. Requests and answers are JSON.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use blosc2_format::file::{File, Kind};
use blosc2_format::read_at::Paged;
use blosc2_store::Object;
use serde_json::{Value, json};

use crate::chunks::{self, ChunkMap};
use crate::contents::{self, Contents, Entry};
use crate::data::{Data, Slice, limits};
use crate::picture::Picture;
use crate::plane::Plane;
use crate::plot::Plot;
use crate::rows::{ColumnStatistics, Rows, RowsExport};
use crate::scan::Scan;
use crate::source::Source;
use crate::{colour, facts, item, printable};

/// The maximum number of cells of a table that are returned at once.
const MAX_CELLS: u64 = 20_000;

/// The maximum number of decoded bytes that are read in advance.
const MAX_AHEAD: usize = 32 << 20;

/// An error as text.
pub type Result<T> = std::result::Result<T, String>;

/// The metalayers of arrays of values, of batches and of lists, and of tensors.
const VALUES: [&str; 3] = ["vlarray", "batcharray", "listarray"];
const TENSOR: &str = "__pack_tensor__";

/// Why no items are shown.
const NOTHING: &str = "choose an entry of the store";

/// An open file or store.
pub struct Viewer {
    /// The size of the file, in bytes.
    size: u64,
    /// The store, if the file is one.
    contents: Option<Contents>,
    /// The file, or the chosen entry of the store, if its items cannot be shown.
    other: Option<File<'static>>,
    /// What is shown as rows of text.
    rows: Option<Rows>,
    /// The shape of a tensor, whose items are shown as an array of one axis.
    shape: Option<Vec<u64>>,
    /// The items, or why there are none.
    data: Result<Data>,
    picture: Option<Picture>,
    plot: Option<Plot>,
    scan: Option<Scan>,
    map: Option<ChunkMap>,
    column: Option<ColumnStatistics>,
    export: Option<Export>,
}

/// What is being exported: a slice, with the axes that the exported array has, or rows.
enum Export {
    Slice(Slice, Vec<bool>),
    Rows(RowsExport),
}

impl Viewer {
    /// Opens the file in `source`.
    ///
    /// # Errors
    /// The file is not one of Blosc2, is damaged, or exceeds the limits of the page.
    pub fn open(source: Source) -> Result<Self> {
        let size = source.size().map_err(text)?;
        let mut viewer = Self {
            size,
            contents: None,
            other: None,
            rows: None,
            shape: None,
            data: Err(NOTHING.to_owned()),
            picture: None,
            plot: None,
            scan: None,
            map: None,
            column: None,
            export: None,
        };
        if Contents::is_archive(&source).map_err(text)? {
            viewer.contents = Contents::open(&source).map_err(text)?;
        } else {
            viewer.open_file(&source)?;
            let is_frame = viewer
                .file()
                .is_some_and(|file| file.info().kind == Kind::Frame && file.meta().is_none());
            // A damaged store still has facts, and can be checked.
            viewer.contents =
                if is_frame { Contents::open(&source).unwrap_or_default() } else { None };
        }
        Ok(viewer)
    }

    fn open_file(&mut self, source: &Source) -> Result<()> {
        let file = File::from_reader(source.clone(), &limits()).map_err(text)?;
        let has = |name: &str| file.info().metalayers.iter().any(|layer| layer.name == name);
        let is_tensor = file.info().vlmetalayers.iter().any(|name| name == TENSOR);
        (self.rows, self.shape) = (None, None);
        let mut known = None;
        if VALUES.into_iter().any(has) || is_tensor {
            match contents::open(source) {
                Ok(Object::Tensor(tensor)) => {
                    known = Some(tensor.dtype().clone());
                    self.shape = Some(tensor.shape().to_vec());
                }
                Ok(object) => self.rows = Rows::of(object).ok(),
                // Its facts are shown.
                Err(error) => {
                    (self.data, self.other) = (Err(text(error)), Some(file));
                    return Ok(());
                }
            }
        }
        (self.data, self.other) = match Data::new(file, known) {
            Ok(data) => (Ok(data), None),
            Err(refused) => (Err(text(refused.1)), Some(refused.0)),
        };
        Ok(())
    }

    /// Returns the file, or the chosen entry of the store; `None` for a table, and if no entry was chosen.
    fn file(&self) -> Option<&File<'static>> {
        self.data.as_ref().map_or(self.other.as_ref(), |data| Some(data.file()))
    }

    /// Chooses an entry of the store.
    ///
    /// # Errors
    /// There is no such entry, or it cannot be opened.
    pub fn choose(&mut self, key: &str) -> Result<()> {
        let contents = self.contents.as_ref().ok_or("the file is not a store")?;
        (self.picture, self.plot, self.map) = (None, None, None);
        (self.scan, self.column, self.export) = (None, None, None);
        match contents.entry(key).map_err(text)? {
            Entry::File(source) => {
                let source: Source = Arc::new(Paged::new(source).map_err(text)?);
                self.open_file(&source)
            }
            Entry::Rows(rows) => {
                (self.data, self.other) = (Err(NOTHING.to_owned()), None);
                (self.shape, self.rows) = (None, Some(*rows));
                Ok(())
            }
        }
    }

    /// Returns the facts about the file or the chosen entry, what can be shown of it, and the entries of the store.
    pub fn facts(&mut self) -> Value {
        let mut about = match (self.file(), &self.contents) {
            (Some(file), _) => facts::of_file(file),
            (None, Some(contents)) if self.rows.is_none() => {
                json!({ "kind": contents.kind(), "entries": contents.keys().len() })
            }
            (None, _) => json!({}),
        };
        if let Some(shape) = &self.shape {
            about["kind"] = "tensor".into();
            about["shape"] = shape.clone().into();
        }
        let rows =
            self.rows.as_ref().map(|rows| -> Result<_> { Ok((rows, rows.count().map_err(text)?)) });
        let shown = match (rows, &self.data) {
            (Some(Ok((rows, len))), _) => {
                about["kind"] = rows.kind().into();
                about["nrows"] = len.into();
                let columns = rows.columns();
                if let Some(table) = rows.table() {
                    about["columns"] = columns.as_array().map_or(0, Vec::len).into();
                    if let (Ok(nbytes), Ok(cbytes)) = (table.nbytes(), table.cbytes()) {
                        about["nbytes"] = nbytes.into();
                        about["cbytes"] = cbytes.into();
                        about["ratio"] = (nbytes as f64 / cbytes.max(1) as f64).into();
                    }
                }
                json!({ "shape": [len], "table": true, "numbers": [], "columns": columns })
            }
            (Some(Err(error)), _) => json!({ "reason": error }),
            (None, Ok(data)) => json!({
                "shape": data.geometry().shape(),
                "grid": data.geometry().chunk_grid(),
                "chunkShape": data.geometry().chunk_shape(),
                "chunkBytes": data.geometry().chunk_len(),
                "dtype": printable(&data.dtype().to_string()),
                "typesize": data.geometry().typesize(),
                "numbers": data.numbers().iter().map(|number| json!({
                    "name": printable(&number.name),
                    "dtype": printable(&number.dtype.to_string()),
                })).collect::<Vec<_>>(),
                "fields": data.dtype().fields().map(|fields| {
                    fields.iter().map(|field| printable(field.name())).collect::<Vec<_>>()
                }),
                "maps": colour::names().collect::<Vec<_>>(),
            }),
            (None, Err(error)) => json!({ "reason": error }),
        };
        json!({
            "facts": about,
            "size": self.size,
            "items": shown,
            "contents": self.contents.as_ref().map(Contents::keys),
            "internal": self.contents.as_ref().map(Contents::internal),
        })
    }

    /// Returns the metalayers as text.
    pub fn metalayers(&mut self) -> Value {
        let file = self.data.as_mut().map_or(self.other.as_mut(), |data| Some(data.file_mut()));
        file.map_or_else(|| json!({}), facts::metalayers)
    }

    /// Starts a picture. The request has the fields `at`, `axes` (rows, columns), `field`, `rows`, `cols` (ranges),
    /// `steps` (of rows, of columns).
    ///
    /// # Errors
    /// The request does not fit the items.
    pub fn picture(&mut self, request: &Value) -> Result<()> {
        let data = self.data.as_mut().map_err(|error| error.clone())?;
        let ranges = [range(&request["rows"])?, range(&request["cols"])?];
        let field = index(&request["field"])?;
        let steps: [u64; 2] =
            numbers(&request["steps"])?.try_into().map_err(|_| "expected two steps")?;
        self.picture =
            Some(Picture::new(data, plane(request)?, field, &ranges, steps).map_err(text)?);
        Ok(())
    }

    /// Reads the next block of the picture. Returns whether there are more.
    ///
    /// # Errors
    /// The block cannot be read. The next call continues with the next block.
    pub fn picture_step(&mut self) -> Result<bool> {
        let (Ok(data), Some(picture)) = (&mut self.data, &mut self.picture) else {
            return Ok(false);
        };
        picture.step(data).map_err(text)
    }

    /// Returns the place of the picture in the plane, and how much of it was read.
    pub fn picture_facts(&self) -> Value {
        let picture = self.picture.as_ref();
        picture.map_or(Value::Null, |picture| {
            let mut facts = picture.facts();
            facts["coarse"] = picture.is_coarse().into();
            facts
        })
    }

    /// Returns the statistics of the picture.
    pub fn picture_statistics(&self) -> Value {
        self.picture.as_ref().map_or(Value::Null, Picture::statistics)
    }

    /// Returns the pixels of the picture, with the colours of the request: `map`, `low`, `high`, `log`.
    pub fn picture_paint(&self, request: &Value) -> Vec<u8> {
        let Some(picture) = &self.picture else { return Vec::new() };
        let map = colour::map(request["map"].as_str().unwrap_or_default());
        let bound = |name: &str| request[name].as_f64().unwrap_or(f64::NAN);
        let log = request["log"].as_bool().unwrap_or(false);
        colour::paint(picture.values(), &map, bound("low"), bound("high"), log)
    }

    /// Starts a plot. The request has the fields `at`, `axes` (one axis), `field`, `range`, `width`.
    ///
    /// # Errors
    /// The request does not fit the items.
    pub fn plot(&mut self, request: &Value) -> Result<()> {
        let data = self.data.as_mut().map_err(|error| error.clone())?;
        let (field, width) = (index(&request["field"])?, index(&request["width"])?);
        let plot = Plot::new(data, plane(request)?, field, &range(&request["range"])?, width);
        self.plot = Some(plot.map_err(text)?);
        Ok(())
    }

    /// Reads the next block of the plot. Returns whether there are more.
    ///
    /// # Errors
    /// The block cannot be read. The next call continues with the next block.
    pub fn plot_step(&mut self) -> Result<bool> {
        let (Ok(data), Some(plot)) = (&mut self.data, &mut self.plot) else { return Ok(false) };
        plot.step(data).map_err(text)
    }

    /// Returns the range of the plot, and how much of it was read.
    pub fn plot_facts(&self) -> Value {
        self.plot.as_ref().map_or(Value::Null, |plot| {
            let mut facts = plot.facts();
            facts["coarse"] = plot.is_coarse().into();
            facts
        })
    }

    /// Returns the least and the greatest number of each column of the plot.
    pub fn plot_columns(&self) -> Vec<f64> {
        self.plot.as_ref().map(Plot::columns).unwrap_or_default()
    }

    /// Returns the statistics of the plot.
    pub fn plot_statistics(&self) -> Value {
        self.plot.as_ref().map_or(Value::Null, Plot::statistics)
    }

    /// Starts statistics of all items in `ranges` (a range for each axis), of the number `field`.
    ///
    /// # Errors
    /// There are no such items.
    pub fn scan(&mut self, request: &Value) -> Result<()> {
        let data = self.data.as_ref().map_err(|error| error.clone())?;
        let (field, ranges) = (index(&request["field"])?, ranges(&request["ranges"])?);
        self.scan = Some(Scan::new(data, field, &ranges).map_err(text)?);
        Ok(())
    }

    /// Reads the next block for the statistics. Returns whether there are more.
    ///
    /// # Errors
    /// The block cannot be read. The next call continues with the next block.
    pub fn scan_step(&mut self) -> Result<bool> {
        let (Ok(data), Some(scan)) = (&mut self.data, &mut self.scan) else { return Ok(false) };
        scan.step(data).map_err(text)
    }

    /// Returns the part that was read for the statistics, from 0 to 1.
    pub fn scan_progress(&self) -> f64 {
        self.scan.as_ref().map_or(1.0, Scan::progress)
    }

    /// Returns the statistics of all items.
    pub fn scan_statistics(&self) -> Value {
        self.scan.as_ref().map_or(Value::Null, Scan::statistics)
    }

    /// Tries to read the next `count` blocks of the `picture`, the `plot`, the `scan` or the `export`, or fewer if they are large.
    /// Errors are not returned: the step that needs the block returns them. A source that does not wait can so learn which
    /// bytes are needed. Does nothing for files whose blocks do not stay in memory.
    pub fn prepare(&mut self, what: &str, count: usize) {
        let Ok(data) = &mut self.data else { return };
        if data.file().info().kind != Kind::Frame {
            return;
        }
        let count = count.min(MAX_AHEAD / data.geometry().block_len().max(1)).max(1);
        let blocks = match (what, &self.export) {
            ("picture", _) => self.picture.as_ref().map(|picture| picture.next_blocks(data, count)),
            ("plot", _) => self.plot.as_ref().map(|plot| plot.next_blocks(data, count)),
            ("scan", _) => self.scan.as_ref().map(|scan| scan.next_blocks(data, count)),
            ("export", Some(Export::Slice(slice, _))) => Some(slice.next_blocks(data, count)),
            _ => None,
        };
        for (chunk, block) in blocks.unwrap_or_default() {
            drop(data.block(chunk, block, |_| ()));
        }
    }

    /// Returns the text of the item at these indices.
    ///
    /// # Errors
    /// There is no such item, or it cannot be read.
    pub fn value(&mut self, at: &Value) -> Result<String> {
        let data = self.data.as_mut().map_err(|error| error.clone())?;
        data.text(&numbers(at)?).map_err(text)
    }

    /// Returns the texts of the items in `ranges` (a range for each axis), in C order. For items with fields, each text is a
    /// list of those of the fields, if `fields` is set.
    ///
    /// # Errors
    /// There are no such items, or they cannot be read, or there are too many.
    pub fn cells(&mut self, request: &Value) -> Result<Value> {
        if let Some(rows) = &self.rows {
            return cells(rows, &ranges(&request["ranges"])?);
        }
        let data = self.data.as_mut().map_err(|error| error.clone())?;
        let ranges = ranges(&request["ranges"])?;
        let fields =
            data.dtype().fields().filter(|_| request["fields"] == json!(true)).map(<[_]>::to_vec);
        let sides = ranges.iter().map(|range| range.end.saturating_sub(range.start));
        let count = sides
            .fold(fields.as_ref().map_or(1, |fields| fields.len() as u64), u64::saturating_mul);
        if count > MAX_CELLS {
            return Err(format!("cannot show {count} cells at once, at most {MAX_CELLS}"));
        }
        let bytes = data.read(&ranges).map_err(text)?;
        let dtype = data.dtype();
        let items = bytes.chunks_exact(dtype.size().max(1));
        Ok(match fields {
            None => items.map(|bytes| Value::from(item::text(dtype, bytes))).collect(),
            Some(fields) => {
                let cell = |bytes: &[u8], field: &blosc2_format::dtype::Field| {
                    let part = bytes.get(field.offset()..field.offset() + field.dtype().size());
                    Value::from(item::text(field.dtype(), part.unwrap_or_default()))
                };
                items
                    .map(|bytes| fields.iter().map(|field| cell(bytes, field)).collect::<Value>())
                    .collect()
            }
        })
    }

    /// Starts statistics of a column of the table: `name`.
    ///
    /// # Errors
    /// There is no such column, or its values are not numbers.
    pub fn column(&mut self, request: &Value) -> Result<()> {
        let name = request["name"].as_str().unwrap_or_default();
        self.column = Some(ColumnStatistics::new(self.table()?, name).map_err(text)?);
        Ok(())
    }

    /// Reads the next rows of the column. Returns whether there are more.
    ///
    /// # Errors
    /// The rows cannot be read. The next call continues after them.
    pub fn column_step(&mut self) -> Result<bool> {
        let table = self.rows.as_ref().and_then(Rows::table);
        let (Some(table), Some(column)) = (table, &mut self.column) else { return Ok(false) };
        column.step(table).map_err(text)
    }

    /// Returns the part of the column that was read, from 0 to 1.
    pub fn column_progress(&self) -> f64 {
        self.column.as_ref().map_or(1.0, ColumnStatistics::progress)
    }

    /// Returns the statistics of the column.
    pub fn column_statistics(&self) -> Value {
        let table = self.rows.as_ref().and_then(Rows::table);
        table.zip(self.column.as_ref()).map_or(Value::Null, |(table, column)| column.to_json(table))
    }

    fn table(&self) -> Result<&blosc2_store::CTable> {
        let table = self.rows.as_ref().and_then(Rows::table);
        table.ok_or_else(|| "what is shown is not a table".to_owned())
    }

    /// Starts an export of the items in `ranges` (a range for each axis). `kept` states which axes the exported array has.
    /// Of a table, `column` is the name of the exported column; without it, all columns are exported.
    ///
    /// # Errors
    /// There are no such items, or there are too many.
    pub fn export(&mut self, request: &Value) -> Result<()> {
        let ranges = ranges(&request["ranges"])?;
        if self.rows.is_some() {
            let [rows] = &ranges[..] else { return Err("a table has one axis".to_owned()) };
            let column = request["column"].as_str();
            let export = RowsExport::new(self.table()?, rows.clone(), column).map_err(text)?;
            self.export = Some(Export::Rows(export));
            return Ok(());
        }
        let data = self.data.as_ref().map_err(|error| error.clone())?;
        let kept = request["kept"]
            .as_array()
            .map(|kept| kept.iter().map(|kept| kept == &json!(true)).collect());
        let kept: Vec<bool> = kept.unwrap_or_else(|| vec![true; ranges.len()]);
        self.export = Some(Export::Slice(Slice::new(data, &ranges).map_err(text)?, kept));
        Ok(())
    }

    /// Reads the next part of the export. Returns whether there are more.
    ///
    /// # Errors
    /// The part cannot be read.
    pub fn export_step(&mut self) -> Result<bool> {
        match (&mut self.export, &mut self.data, self.rows.as_ref().and_then(Rows::table)) {
            (Some(Export::Rows(rows)), _, Some(table)) => rows.step(table).map_err(text),
            (Some(Export::Slice(slice, _)), Ok(data), _) => slice.step(data).map_err(text),
            _ => Ok(false),
        }
    }

    /// Returns the part of the export that was read, from 0 to 1.
    pub fn export_progress(&self) -> f64 {
        match &self.export {
            Some(Export::Rows(rows)) => rows.progress(),
            Some(Export::Slice(slice, _)) => slice.progress(),
            None => 1.0,
        }
    }

    /// Returns the exported file in this format, `npy` or `csv`, and ends the export.
    ///
    /// # Errors
    /// There is no export, or NumPy's format has no notation for the dtype.
    pub fn export_file(&mut self, format: &str) -> Result<Vec<u8>> {
        match self.export.take().ok_or("no export was started")? {
            Export::Rows(rows) => Ok(rows.into_file()),
            Export::Slice(slice, kept) => {
                let dtype = self.data.as_ref().map_err(|error| error.clone())?.dtype();
                match format {
                    "csv" => Ok(slice.to_csv(dtype, &kept).into_bytes()),
                    _ => slice.to_npy(dtype, &kept).map_err(text),
                }
            }
        }
    }

    /// Starts the map of the chunks.
    ///
    /// # Errors
    /// The file has no items that can be shown.
    pub fn map(&mut self) -> Result<()> {
        self.map = Some(ChunkMap::new(self.data.as_ref().map_err(|error| error.clone())?));
        Ok(())
    }

    /// Reads more of the index. Returns whether there is more.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn map_step(&mut self) -> Result<bool> {
        let (Ok(data), Some(map)) = (&mut self.data, &mut self.map) else { return Ok(false) };
        map.step(data).map_err(text)
    }

    /// Returns the part of the index that was read, from 0 to 1.
    pub fn map_progress(&self) -> f64 {
        self.map.as_ref().map_or(1.0, ChunkMap::progress)
    }

    /// Returns the stored size of each chunk, in bytes.
    pub fn map_sizes(&mut self) -> Vec<f64> {
        let (Ok(data), Some(map)) = (&mut self.data, &self.map) else { return Vec::new() };
        map.sizes(data)
    }

    /// Returns the facts about a chunk.
    ///
    /// # Errors
    /// There is no such chunk, or its header cannot be read.
    pub fn chunk(&mut self, chunk: u64) -> Result<Value> {
        let data = self.data.as_mut().map_err(|error| error.clone())?;
        chunks::facts(data, chunk).map_err(text)
    }
}

impl fmt::Debug for Viewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Viewer").field("file", &self.file()).finish_non_exhaustive()
    }
}

/// Returns the texts of rows: a list for each row.
fn cells(rows: &Rows, ranges: &[Range<u64>]) -> Result<Value> {
    let [range] = ranges else { return Err("a table has one axis".to_owned()) };
    let len = rows.count().map_err(text)?;
    let range = range.start.min(len)..range.end.min(len);
    let columns = rows.table().map_or(1, |table| table.columns().len()) as u64;
    let count = (range.end - range.start).saturating_mul(columns);
    if count > MAX_CELLS {
        return Err(format!("cannot show {count} cells at once, at most {MAX_CELLS}"));
    }
    Ok(json!(rows.cells(range)))
}

/// Checks the file in `source`, and with `content` also decodes all blocks.
///
/// # Errors
/// Reading fails.
pub fn check(source: &Source, content: bool) -> Result<Value> {
    facts::check(source, content).map_err(text)
}

/// The text of an error, without control characters.
fn text(error: impl fmt::Display) -> String {
    printable(&error.to_string())
}

fn number(value: &Value) -> Result<u64> {
    value.as_u64().ok_or_else(|| format!("expected an index, found {value}"))
}

fn index(value: &Value) -> Result<usize> {
    usize::try_from(number(value)?).map_err(text)
}

fn numbers(value: &Value) -> Result<Vec<u64>> {
    let list =
        value.as_array().ok_or_else(|| format!("expected a list of indices, found {value}"))?;
    list.iter().map(number).collect()
}

fn range(value: &Value) -> Result<Range<u64>> {
    match numbers(value)?[..] {
        [start, end] if start <= end => Ok(start..end),
        _ => Err(format!("expected a range, found {value}")),
    }
}

fn ranges(value: &Value) -> Result<Vec<Range<u64>>> {
    let list =
        value.as_array().ok_or_else(|| format!("expected a list of ranges, found {value}"))?;
    list.iter().map(range).collect()
}

fn plane(request: &Value) -> Result<Plane> {
    let axes = numbers(&request["axes"])?;
    let axes = axes.into_iter().map(|axis| usize::try_from(axis).unwrap_or(usize::MAX)).collect();
    Ok(Plane { at: numbers(&request["at"])?, axes })
}
