//! The interface of the module to the worker.
//!
//! The worker provides two functions: `blosc2Read(handle, offset, bytes)` fills `bytes` from the file with this handle and
//! throws a text if it cannot; `blosc2Panic(text)` receives the message of a panic, after which the module is unusable.

use std::io;
use std::sync::Arc;

use blosc2_format::ReadAt;
use blosc2_format::read_at::Paged;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::source::Source;
use crate::viewer;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = blosc2Read, catch)]
    fn read(handle: u32, offset: f64, bytes: &mut [u8]) -> Result<(), JsValue>;

    #[wasm_bindgen(js_name = blosc2Panic)]
    fn panicked(text: &str);
}

/// A file that the worker reads.
#[derive(Debug)]
struct FileOfWorker {
    handle: u32,
    size: u64,
}

impl ReadAt for FileOfWorker {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        read(self.handle, offset as f64, buffer).map_err(|error| {
            io::Error::other(error.as_string().unwrap_or_else(|| "reading fails".to_owned()))
        })
    }

    /// Asks for all ranges, also after an error: the worker can collect what is missing.
    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let mut outcome = Ok(());
        for (offset, buffer) in ranges {
            outcome = outcome.and(self.read_exact_at(*offset, buffer));
        }
        outcome
    }
}

/// An open file: see [`crate::viewer::Viewer`].
#[wasm_bindgen]
#[derive(Debug)]
pub struct Viewer(viewer::Viewer);

type Outcome<T> = Result<T, JsValue>;

fn failed(text: String) -> JsValue {
    JsValue::from_str(&text)
}

fn parsed(request: &str) -> Outcome<Value> {
    serde_json::from_str(request).map_err(|error| failed(error.to_string()))
}

fn source(handle: u32, size: f64) -> Outcome<Source> {
    let source = Paged::new(FileOfWorker { handle, size: size as u64 });
    Ok(Arc::new(source.map_err(|error| failed(error.to_string()))?))
}

/// Checks the file with this handle and this size, and with `content` also decodes all blocks.
#[wasm_bindgen]
pub fn check(handle: u32, size: f64, content: bool) -> Outcome<String> {
    Ok(viewer::check(&source(handle, size)?, content).map_err(failed)?.to_string())
}

/// Reports panics to the worker.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| panicked(&panic.to_string())));
}

#[wasm_bindgen]
impl Viewer {
    /// Opens the file with this handle and this size.
    pub fn open(handle: u32, size: f64) -> Outcome<Viewer> {
        Ok(Self(viewer::Viewer::open(source(handle, size)?).map_err(failed)?))
    }

    /// Chooses an entry of the store.
    pub fn choose(&mut self, key: &str) -> Outcome<()> {
        self.0.choose(key).map_err(failed)
    }

    /// Returns the facts.
    pub fn facts(&mut self) -> String {
        self.0.facts().to_string()
    }

    /// Returns the metalayers as text.
    pub fn metalayers(&mut self) -> String {
        self.0.metalayers().to_string()
    }

    /// Starts a picture.
    pub fn picture(&mut self, request: &str) -> Outcome<()> {
        self.0.picture(&parsed(request)?).map_err(failed)
    }

    /// Reads a block of the picture.
    pub fn picture_step(&mut self) -> Outcome<bool> {
        self.0.picture_step().map_err(failed)
    }

    /// Returns the place of the picture.
    pub fn picture_facts(&self) -> String {
        self.0.picture_facts().to_string()
    }

    /// Returns the statistics of the picture.
    pub fn picture_statistics(&self) -> String {
        self.0.picture_statistics().to_string()
    }

    /// Returns the pixels of the picture.
    pub fn picture_paint(&self, request: &str) -> Outcome<Vec<u8>> {
        Ok(self.0.picture_paint(&parsed(request)?))
    }

    /// Starts a plot.
    pub fn plot(&mut self, request: &str) -> Outcome<()> {
        self.0.plot(&parsed(request)?).map_err(failed)
    }

    /// Reads a block of the plot.
    pub fn plot_step(&mut self) -> Outcome<bool> {
        self.0.plot_step().map_err(failed)
    }

    /// Returns the range of the plot.
    pub fn plot_facts(&self) -> String {
        self.0.plot_facts().to_string()
    }

    /// Returns the columns of the plot.
    pub fn plot_columns(&self) -> Vec<f64> {
        self.0.plot_columns()
    }

    /// Returns the statistics of the plot.
    pub fn plot_statistics(&self) -> String {
        self.0.plot_statistics().to_string()
    }

    /// Starts statistics of all items of a slice.
    pub fn scan(&mut self, request: &str) -> Outcome<()> {
        self.0.scan(&parsed(request)?).map_err(failed)
    }

    /// Reads a block for the statistics.
    pub fn scan_step(&mut self) -> Outcome<bool> {
        self.0.scan_step().map_err(failed)
    }

    /// Returns the part that was read for the statistics.
    pub fn scan_progress(&self) -> f64 {
        self.0.scan_progress()
    }

    /// Returns the statistics of all items.
    pub fn scan_statistics(&self) -> String {
        self.0.scan_statistics().to_string()
    }

    /// Tries to read the next blocks of the picture, the plot, the statistics or the export.
    pub fn prepare(&mut self, what: &str, count: usize) {
        self.0.prepare(what, count);
    }

    /// Returns the text of an item.
    pub fn value(&mut self, at: &str) -> Outcome<String> {
        self.0.value(&parsed(at)?).map_err(failed)
    }

    /// Returns the texts of items.
    pub fn cells(&mut self, request: &str) -> Outcome<String> {
        Ok(self.0.cells(&parsed(request)?).map_err(failed)?.to_string())
    }

    /// Starts statistics of a column of a table.
    pub fn column(&mut self, request: &str) -> Outcome<()> {
        self.0.column(&parsed(request)?).map_err(failed)
    }

    /// Reads more rows of the column.
    pub fn column_step(&mut self) -> Outcome<bool> {
        self.0.column_step().map_err(failed)
    }

    /// Returns the part of the column that was read.
    pub fn column_progress(&self) -> f64 {
        self.0.column_progress()
    }

    /// Returns the statistics of the column.
    pub fn column_statistics(&self) -> String {
        self.0.column_statistics().to_string()
    }

    /// Starts an export.
    pub fn export(&mut self, request: &str) -> Outcome<()> {
        self.0.export(&parsed(request)?).map_err(failed)
    }

    /// Reads a part of the export.
    pub fn export_step(&mut self) -> Outcome<bool> {
        self.0.export_step().map_err(failed)
    }

    /// Returns the part of the export that was read.
    pub fn export_progress(&self) -> f64 {
        self.0.export_progress()
    }

    /// Returns the exported file.
    pub fn export_file(&mut self, format: &str) -> Outcome<Vec<u8>> {
        self.0.export_file(format).map_err(failed)
    }

    /// Starts the map of the chunks.
    pub fn map(&mut self) -> Outcome<()> {
        self.0.map().map_err(failed)
    }

    /// Reads more of the index.
    pub fn map_step(&mut self) -> Outcome<bool> {
        self.0.map_step().map_err(failed)
    }

    /// Returns the part of the index that was read.
    pub fn map_progress(&self) -> f64 {
        self.0.map_progress()
    }

    /// Returns the stored sizes of the chunks.
    pub fn map_sizes(&mut self) -> Vec<f64> {
        self.0.map_sizes()
    }

    /// Returns the facts about a chunk.
    pub fn chunk(&mut self, chunk: f64) -> Outcome<String> {
        Ok(self.0.chunk(chunk as u64).map_err(failed)?.to_string())
    }
}

/// Returns the colours of a map: red, green, blue, opacity for each.
#[wasm_bindgen]
pub fn colours(name: &str) -> Vec<u8> {
    crate::colour::map(name).concat()
}
