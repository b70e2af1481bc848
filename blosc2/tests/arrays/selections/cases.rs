//! Random arrays in every storage, and random selections of their items.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use blosc2::storage::{ReadAt, Storage};
use blosc2::{
    AxisSelection, CParams, DParams, Filter, NDArray, NDArrayBuilder, OpenOptions, RawItems,
    Special, SplitMode, Target, Threads,
};
use blosc2_format::read_at::DEFAULT_REQUEST_COST;
use blosc2_format::{Options, Report, Severity, directory, frame};
use tempfile::TempDir;

use super::model::{Item, Layout, Model, items, raw};
use crate::common::{Rng, assert_same, codecs, dictionary_codecs, lossless};

/// The most items of an array, and the most bytes, padding of its chunks included.
const MOST_ITEMS: u64 = 60_000;
const MOST_BYTES: u64 = 600_000;

/// The shapes of an array, its chunks and its blocks.
#[derive(Debug)]
struct Shapes {
    shape: Vec<u64>,
    chunks: Vec<u64>,
    blocks: Vec<u64>,
}

impl Shapes {
    fn random(typesize: usize, rng: &mut Rng) -> Self {
        let ndim = match rng.below(100) {
            0..5 => 0,
            5..80 => 1 + rng.below(4) as usize,
            80..98 => 5 + rng.below(4) as usize,
            _ => 16,
        };
        // Most arrays are small, so that there can be many; some are large enough for parallel reads of a chunk.
        let (most, bytes) = match rng.below(40) {
            0 => (*rng.pick(&[3000, 10_000, MOST_ITEMS]), MOST_BYTES / 2),
            _ => (*rng.pick(&[30, 200, 200, 600]), MOST_BYTES / 8),
        };
        let most = most.min(bytes / typesize as u64);
        let mut shape: Vec<u64> = (0..ndim).map(|_| rng.below(41)).collect();
        if rng.below(20) != 0 {
            shape.iter_mut().for_each(|size| *size = (*size).max(1));
        }
        // An axis of no items counts as one place.
        let places =
            |shape: &[u64]| product(&shape.iter().map(|&size| size.max(1)).collect::<Vec<_>>());
        while places(&shape) > most {
            let axis = rng.below(ndim as u64) as usize;
            shape[axis] -= shape[axis] / 2;
        }
        loop {
            let shapes = Self::cut(&shape, rng);
            if shapes.is_small(typesize) {
                return shapes;
            }
        }
    }

    /// Chooses random chunk and block shapes, which may or may not divide the shape.
    fn cut(shape: &[u64], rng: &mut Rng) -> Self {
        let ndim = shape.len() as u64;
        let single = rng.below(10) == 0;
        let parts = shape.iter().map(|&size| {
            let chunk = match rng.below(8) {
                0 => 1,
                1 if size > 0 => size,
                2 if size == 0 => 0,
                3 if rng.below(ndim) == 0 => size + 1 + rng.below(4),
                4 => size.div_ceil(2).max(1),
                _ => 1 + rng.below(size.max(1)),
            };
            let block = match rng.below(5) {
                _ if single || chunk == 0 => chunk.min(1),
                0 => chunk,
                1 => 1,
                _ => 1 + rng.below(chunk),
            };
            (chunk, block)
        });
        let (chunks, blocks) = parts.unzip();
        Self { shape: shape.to_vec(), chunks, blocks }
    }

    /// Whether the chunks, blocks and bytes of padding are within the limits.
    fn is_small(&self, typesize: usize) -> bool {
        let count = |of: &[u64], by: &[u64]| {
            let each = of.iter().zip(by).map(|(of, by)| of.div_ceil((*by).max(1)));
            product(&each.collect::<Vec<_>>())
        };
        let (nchunks, nblocks) =
            (count(&self.shape, &self.chunks), count(&self.chunks, &self.blocks));
        let stored = product(&[nchunks, nblocks, product(&self.blocks), typesize as u64]);
        nchunks <= 60 && nblocks <= 600 && stored <= MOST_BYTES
    }
}

fn threads(rng: &mut Rng) -> Threads {
    // Starting threads takes longer than the rest.
    Threads::new(*rng.pick(&[1, 1, 1, 4]))
}

fn product(sizes: &[u64]) -> u64 {
    sizes.iter().fold(1, |all, &size| all.saturating_mul(size))
}

fn params(typesize: usize, rng: &mut Rng) -> CParams {
    let mut filters: Vec<Filter> = Vec::new();
    for position in 0..rng.below(4) {
        filters.push(lossless(typesize, position == 0, rng));
    }
    let dictionary = rng.below(10) == 0;
    let codec = if dictionary { *rng.pick(&dictionary_codecs()) } else { *rng.pick(&codecs()) };
    CParams::new()
        .codec(codec)
        .level(*rng.pick(if dictionary { &[1, 5, 9] } else { &[0, 1, 1, 1, 3, 5, 9] }))
        .dictionary(dictionary)
        .filters(&filters)
        .split(*rng.pick(&[SplitMode::Always, SplitMode::Never, SplitMode::Auto]))
        .threads(threads(rng))
}

/// A custom storage backend that outlives the array and counts the bytes read.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    inner: Arc<Mutex<(Vec<u8>, u64)>>,
    request_cost: u64,
}

impl Default for Shared {
    fn default() -> Self {
        Self { inner: Arc::default(), request_cost: DEFAULT_REQUEST_COST }
    }
}

impl Shared {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.inner.lock().unwrap().0.clone()
    }

    /// The number of bytes read since the last call.
    pub(crate) fn fetched(&self) -> u64 {
        std::mem::take(&mut self.inner.lock().unwrap().1)
    }
}

impl ReadAt for Shared {
    fn size(&self) -> io::Result<u64> {
        self.inner.lock().unwrap().0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        inner.1 += buffer.len() as u64;
        inner.0.read_exact_at(offset, buffer)
    }

    fn request_cost(&self) -> u64 {
        self.request_cost
    }
}

impl Storage for Shared {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.lock().unwrap().0.write_all_at(offset, bytes)
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.inner.lock().unwrap().0.set_size(len)
    }
}

/// The storage of an array, and how to reopen it.
#[derive(Debug, Clone)]
enum Place {
    Memory,
    Buffer,
    File(PathBuf),
    Directory(PathBuf),
    Shared(Shared),
}

impl Place {
    /// The folder has to outlive the array.
    fn random(rng: &mut Rng) -> (Self, Option<TempDir>) {
        let folder = || {
            let folder = tempfile::tempdir().unwrap();
            (folder.path().join("array"), Some(folder))
        };
        match rng.below(20) {
            0..8 => (Self::Memory, None),
            8..13 => (Self::Buffer, None),
            13..18 => {
                // The last two fetch parts of chunks, or whole chunks, of many chunks at once.
                let request_cost = *rng.pick(&[DEFAULT_REQUEST_COST, 4097, 1 << 20]);
                (Self::Shared(Shared { request_cost, ..Shared::default() }), None)
            }
            18 => {
                let (path, folder) = folder();
                (Self::File(path), folder)
            }
            _ => {
                let (path, folder) = folder();
                (Self::Directory(path), folder)
            }
        }
    }

    fn builder(&self) -> NDArrayBuilder {
        match self {
            Self::Memory => NDArray::builder(),
            Self::Buffer => NDArray::builder().target(Vec::new()),
            Self::File(path) => NDArray::builder().target(path),
            Self::Directory(path) => NDArray::builder().target(Target::from(path).directory(true)),
            Self::Shared(storage) => NDArray::builder().target(Target::storage(storage.clone())),
        }
    }

    fn reopen(&self, array: NDArray) -> NDArray {
        match self {
            Self::Memory => NDArray::open_rw(array.schunk().to_cframe().unwrap()),
            Self::Buffer => NDArray::open_rw(array.into_schunk().into_cframe().unwrap()),
            Self::File(path) | Self::Directory(path) => {
                drop(array);
                NDArray::open_rw(path)
            }
            Self::Shared(storage) => {
                drop(array);
                let schunk = OpenOptions::new().write(true).open(Target::storage(storage.clone()));
                NDArray::from_schunk(schunk.unwrap())
            }
        }
        .unwrap()
    }

    /// Asserts that `blosc2-format` has no findings about the stored array.
    fn check(&self, array: &NDArray) {
        let options = Options { content: true, ..Options::default() };
        let report = match self {
            Self::Memory | Self::Buffer => {
                frame::check(&array.schunk().to_cframe().unwrap()[..], &options)
            }
            Self::File(path) => frame::check(&File::open(path).unwrap(), &options),
            Self::Directory(path) => directory::check(&directory::Disk(path.clone()), &options),
            Self::Shared(storage) => frame::check(&storage.bytes()[..], &options),
        };
        nothing_wrong(&report.unwrap());
    }
}

fn nothing_wrong(report: &Report) {
    // Notes about gaps after changes, and about chunks that differ from the header.
    let allowed = [
        "frame.gap",
        "frame.deleted",
        "frame.chunk.params",
        "frame.dictionary",
        "b2nd.sixteen_dimensions",
    ];
    let wrong = report.findings.iter().filter(|finding| {
        finding.rule.severity > Severity::Note || !allowed.contains(&finding.rule.id)
    });
    let wrong: Vec<String> =
        wrong.map(|finding| format!("{}: {finding}", finding.rule.id)).collect();
    assert!(wrong.is_empty() && report.is_complete(), "{wrong:#?}");
}

/// An array, and its model.
pub(crate) struct Case<'l, T> {
    pub(crate) rng: Rng,
    pub(crate) array: NDArray,
    pub(crate) model: Model<T>,
    /// Whether the array has uninitialized items.
    pub(crate) unwritten: bool,
    place: Place,
    log: &'l mut Vec<String>,
    /// The folder that the array may be in.
    _folder: Option<TempDir>,
}

impl<'l, T: Item> Case<'l, T> {
    /// Creates an array in a random way.
    pub(crate) fn random(mut own: Rng, log: &'l mut Vec<String>) -> Self {
        let rng = &mut own;
        let typesize = size_of::<T>();
        let Shapes { shape, chunks, blocks } = Shapes::random(typesize, rng);
        let ((place, folder), params) = (Place::random(rng), params(typesize, rng));
        let reading = DParams::new().threads(threads(rng));
        log.push(format!(
            "{shape:?} items of {typesize} bytes, chunks {chunks:?}, blocks {blocks:?}, {place:?}, \
             {params:?}, {reading:?}"
        ));
        let mut builder =
            place.builder().cparams(params).options(OpenOptions::new().dparams(reading));
        // An automatic chunk is not larger than the array.
        let fits = blocks.iter().zip(&shape).all(|(block, size)| block <= size);
        if rng.below(15) != 0 || !fits {
            builder = builder.chunk_shape(&chunks);
        }
        if rng.below(15) != 0 {
            builder = builder.block_shape(&blocks);
        }
        let sizes: Vec<usize> = shape.iter().map(|&size| size as usize).collect();
        let len = sizes.iter().product();
        let mut items: Vec<T> = items(len, rng);
        let mut unwritten = false;
        let array = match rng.below(10) {
            0 => {
                log.push("of an iterator".to_owned());
                builder.from_iter(items.iter().copied(), &shape)
            }
            1 => {
                log.push("by a function".to_owned());
                let model = Model::new(&sizes, items.clone());
                builder.from_fn(&shape, |index| {
                    let index: Vec<usize> = index.iter().map(|&at| at as usize).collect();
                    model.items[model.numbers[&index[..]]]
                })
            }
            2 => {
                let special = rng.below(4);
                let item = match special {
                    0 | 1 => T::ZERO,
                    2 => T::NAN.unwrap_or(T::ZERO),
                    _ => T::of(rng.next()),
                };
                log.push(format!("special {special}, {item:?}"));
                items.fill(item);
                unwritten = special == 1;
                match special {
                    1 => builder.dtype(T::dtype(), size_of::<T>()).special(Special::Uninit, &shape),
                    2 if T::NAN.is_some() => {
                        builder.dtype(T::dtype(), size_of::<T>()).special(Special::Nan, &shape)
                    }
                    3 => builder.full(item, &shape),
                    _ => builder.zeros::<T>(&shape),
                }
            }
            3 | 4 => {
                let layout = Layout::random(&sizes, rng);
                log.push(format!("of {layout:?}"));
                builder.copy(layout.view(&layout.with(&items)))
            }
            _ => builder.from_slice(&items, &shape),
        };
        let mut array = array.unwrap();
        let cache = *rng.pick(&[0, 0, 1, 5000, 1 << 20]);
        log.push(format!("a cache of {cache} bytes"));
        array.set_dparams(array.info().dparams.cache(cache));
        let model = Model::new(&sizes, items);
        let mut case = Self { rng: own, array, model, unwritten, place, log, _folder: folder };
        case.compare();
        case
    }

    pub(crate) fn log(&mut self, what: impl Into<String>) {
        self.log.push(what.into());
    }

    /// Asserts that the whole array equals the model.
    pub(crate) fn compare(&mut self) {
        let found = self.array.read::<RawItems>(..).unwrap().0;
        assert_same(&found, raw(&self.model.items), "all of it");
    }

    /// Asserts that the reopened array equals the model, and that the stored bytes are valid.
    pub(crate) fn finish(mut self) {
        self.compare();
        self.place.check(&self.array);
        self.log("reopened");
        self.array = self.place.reopen(self.array);
        let shape: Vec<u64> = self.model.shape().iter().map(|&size| size as u64).collect();
        assert_eq!(self.array.shape(), shape);
        let found = self.array.read::<Vec<T>>(..).unwrap();
        assert_same(raw(&found), raw(&self.model.items), "all of it");
    }
}

/// A random slice of an axis, forwards or backwards.
pub(crate) fn slice(size: usize, rng: &mut Rng) -> AxisSelection {
    let (one, other) = (rng.below(size as u64 + 1), rng.below(size as u64 + 1));
    let (start, end) = (one.min(other).cast_signed(), one.max(other).cast_signed());
    let size = size.cast_signed() as i64;
    let step = *rng.pick(&[1, 1, 1, -1, 2, 3, -2, -3, 7, -7, 100, i64::MIN, i64::MAX]);
    let from_end = |at: i64, rng: &mut Rng| match rng.below(5) {
        0 if at < size => at - size,
        _ => at,
    };
    let end = if end == size && rng.below(2) == 0 { None } else { Some(from_end(end, rng)) };
    match rng.below(6) {
        0 => AxisSelection::ALL,
        1 => AxisSelection::Slice { start: 0, end: None, step },
        _ => AxisSelection::Slice { start: from_end(start, rng), end, step },
    }
}

/// A random range of an axis, sometimes empty.
fn range(size: usize, rng: &mut Rng) -> AxisSelection {
    let (one, other) = (rng.below(size as u64 + 1), rng.below(size as u64 + 1));
    AxisSelection::from(if rng.below(4) == 0 {
        0..size as u64
    } else {
        one.min(other)..one.max(other)
    })
}

/// Random indices of an axis in any order, with duplicates.
pub(crate) fn list(size: usize, rng: &mut Rng) -> Vec<u64> {
    let size = size as u64;
    let len = if size == 0 { 0 } else { rng.below(size + 2) };
    let start = if size == 0 { 0 } else { rng.below(size) };
    match rng.below(4) {
        // Neighbours, which can be joined to runs.
        0 => (start..size.min(start + len)).collect(),
        1 => (start..size.min(start + len)).rev().collect(),
        2 => (0..len).map(|at| (start + at / 2) % size).collect(),
        _ => (0..len).map(|_| rng.below(size)).collect(),
    }
}

/// The kinds of selections in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// Boxes; slices; single items.
    Slices,
    /// Lists of items too.
    Lists,
}

/// A random selection of one of the kinds.
pub(crate) fn selection(shape: &[usize], kinds: Kinds, rng: &mut Rng) -> Vec<AxisSelection> {
    let ndim = shape.len() as u64;
    let boxed = kinds == Kinds::Slices && rng.below(3) == 0;
    let mut selection: Vec<AxisSelection> = Vec::new();
    for &size in shape {
        selection.push(match rng.below(6) {
            _ if boxed => range(size, rng),
            0 if size > 0 => {
                let at = rng.below(size as u64).cast_signed();
                AxisSelection::Index(if rng.below(4) == 0 { at - size as i64 } else { at })
            }
            1..4 if kinds == Kinds::Lists && rng.below(ndim) < 4 => {
                if rng.below(4) == 0 {
                    AxisSelection::Mask((0..size).map(|_| rng.below(2) == 0).collect())
                } else {
                    let negative = rng.below(3) == 0;
                    let back = if negative { size as i64 } else { 0 };
                    let list = list(size, rng).into_iter().map(u64::cast_signed);
                    AxisSelection::Indices(list.map(|at| at - back).collect())
                }
            }
            _ => slice(size, rng),
        });
    }
    if rng.below(6) == 0 {
        selection.truncate(rng.below(ndim + 1) as usize);
    }
    if rng.below(8) == 0 {
        selection.insert(rng.below(selection.len() as u64 + 1) as usize, AxisSelection::NewAxis);
    }
    selection
}
