//! Files that are read by `blosc2-format`, without C-Blosc2.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blosc2::{CParams, Codec, Filter};
use blosc2_format::file::{self, File, Info, Kind};
use blosc2_format::{Limits, Options};

use crate::complain;
use crate::file::carrier;
use crate::stream::{Chunks, Items};

/// What a file is, when C-Blosc2 does not open files of that kind.
pub(crate) fn needed(path: &Path) -> Option<Kind> {
    // Where nothing can be read, C-Blosc2's wrapper says it.
    let kind = file::recognise_path(path).ok().flatten()?;
    (kind == Kind::Chunk || kind.is_old()).then_some(kind)
}

/// What a file is, for the middle of a sentence.
pub(crate) fn with_article(kind: Kind) -> String {
    let name = kind.to_string();
    let article = if name.starts_with('e') { "an" } else { "a" };
    format!("{article} {name}")
}

/// Opens a file of any kind.
pub(crate) fn open(path: &Path) -> Result<File<'static>> {
    let failed = |error| anyhow!("cannot open ({}): {error}", path.display());
    File::open(path, &Limits::default()).map_err(failed)
}

/// What cannot be told from a file, though its data depends on it.
pub(crate) fn ambiguity(path: &Path, kind: Kind) -> Option<&'static str> {
    if kind != Kind::Packed {
        return None;
    }
    let (_, report) = file::check_path(path, &Options::default()).ok()?;
    let ambiguous = report.findings.iter().any(|each| each.rule.id == "packed.delta_ambiguous");
    ambiguous.then_some(
        "whether chunks that are stored as they are hold data or differences cannot be told; the \
         likelier one is taken, and `check` shows where",
    )
}

/// Opens a file whose items are data, and warns where that is ambiguous.
pub(crate) fn open_data(path: &Path) -> Result<File<'static>> {
    let file = open(path)?;
    let names: Vec<_> = file.info().metalayers.iter().map(|each| each.name.clone()).collect();
    match carrier(&names) {
        Some(note) => bail!("cannot read items ({}): this is {note}", path.display()),
        None => {
            if let Some(note) = ambiguity(path, file.info().kind) {
                complain(&format!("warning ({}): {note}", path.display()));
            }
            Ok(file)
        }
    }
}

/// How a file is compressed, as far as it says.
pub(crate) fn params(info: &Info) -> CParams {
    let filters = info.filters.iter().zip(info.filters_meta);
    let filters: Vec<_> =
        filters.filter_map(|(&code, meta)| Filter::from_code(code, meta)).collect();
    let params = CParams::new().codec(Codec::from_code(info.codec)).codec_meta(info.codec_meta);
    let params = match info.level {
        Some(level) => params.level(level),
        None => params,
    };
    params.filters(&filters).typesize(info.typesize as usize)
}

/// Bytes of all items, without the padding of an array's chunks.
pub(crate) fn nbytes(file: &File<'_>) -> u64 {
    match file.geometry() {
        Some(geometry) => geometry.len().saturating_mul(geometry.typesize() as u64),
        None => file.info().nbytes,
    }
}

/// A file whose parts are read through a shared reference.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    path: &'a Path,
    file: RefCell<File<'static>>,
}

impl<'a> Shared<'a> {
    pub(crate) fn new(path: &'a Path, file: File<'static>) -> Self {
        Self { path, file: RefCell::new(file) }
    }

    fn failed(&self, error: blosc2_format::Error) -> anyhow::Error {
        anyhow!("cannot read ({}): {error}", self.path.display())
    }
}

impl Chunks for Shared<'_> {
    fn typesize(&self) -> usize {
        self.file.borrow().info().typesize as usize
    }

    fn nbytes(&self) -> u64 {
        self.file.borrow().info().nbytes
    }

    fn nchunks(&self) -> usize {
        self.file.borrow().info().nchunks as usize
    }

    fn chunksize(&self) -> usize {
        self.file.borrow().info().chunksize.unwrap_or(0) as usize
    }

    fn chunk_len(&self, index: usize) -> Result<u64> {
        self.file.borrow_mut().chunk_nbytes(index as u64).map_err(|error| self.failed(error))
    }

    fn chunk(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        let mut data = Vec::new();
        let decoded = self.file.borrow_mut().decode_chunk(index as u64, &mut data);
        decoded.map_err(|error| anyhow!("{}, chunk {index}", self.failed(error)))?;
        Ok(data.into())
    }
}

/// The items of an array.
#[derive(Debug)]
pub(crate) struct RustItems<'a> {
    shared: &'a Shared<'a>,
    shape: Vec<u64>,
    chunks: Vec<u64>,
}

impl<'a> RustItems<'a> {
    /// `None` where the file holds no array.
    pub(crate) fn new(shared: &'a Shared<'a>) -> Option<Self> {
        let file = shared.file.borrow();
        let geometry = file.geometry()?;
        let chunks = geometry.chunks().iter().map(|&size| size.max(1)).collect();
        Some(Self { shared, shape: geometry.shape().to_vec(), chunks })
    }
}

impl Items for RustItems<'_> {
    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn chunks(&self) -> &[u64] {
        &self.chunks
    }

    fn typesize(&self) -> usize {
        self.shared.typesize()
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let read = self.shared.file.borrow_mut().read_box(ranges);
        read.map_err(|error| self.shared.failed(error))
    }
}
