//! Random sequences of changes of an array's shape, in every storage, against a plain model.
//!
//! After each change the array equals the model. A change that must fail leaves the array unchanged. After each
//! sequence `blosc2-format` has no findings. After some sequences Python reads the same array.

use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::common::{Rng, codecs, repeats, run_python};
use blosc2::{
    Appender, CParams, Codec, DParams, ErrorKind, Filter, Limits, NDArray, OpenOptions, Selection,
    Target, Threads,
};
use blosc2_format::{Options, Severity, directory, frame};
use serde_json::{Value, json};

/// The number of sequences in a long run; see `repeats`.
const CASES: usize = 1000;
/// The number of these sequences that Python reads.
const IN_PYTHON: u64 = 100;
const CHANGES: u64 = 8;

/// The model: the shape and the items of an array.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    shape: Vec<u64>,
    items: Vec<u16>,
}

impl Model {
    fn new(shape: &[u64], mut item: impl FnMut(&[u64]) -> u16) -> Self {
        let count: u64 = shape.iter().product();
        let items = (0..count).map(|number| item(&index(number, shape))).collect();
        Self { shape: shape.to_vec(), items }
    }

    fn random(shape: &[u64], rng: &mut Rng) -> Self {
        let span = [1, 3, 60000][rng.below(3) as usize];
        Self::new(shape, |_| rng.below(span) as u16)
    }

    fn get(&self, index: &[u64]) -> Option<u16> {
        let inside = index.iter().zip(&self.shape).all(|(at, size)| at < size);
        let number = index.iter().zip(&self.shape).fold(0, |all, (at, size)| all * size + at);
        inside.then(|| self.items[number as usize])
    }

    fn resized(&self, shape: &[u64]) -> Self {
        Self::new(shape, |index| self.get(index).unwrap_or(0))
    }

    fn resized_at(&self, shape: &[u64], start: &[u64]) -> Self {
        Self::new(shape, |index| {
            let old = index.iter().enumerate().map(|(axis, &at)| {
                let (before, now) = (self.shape[axis], shape[axis]);
                match at < start[axis] {
                    true => Some(at),
                    false if at < start[axis] + now.saturating_sub(before) => None,
                    false => Some(at + before - now),
                }
            });
            old.collect::<Option<Vec<u64>>>().map_or(0, |old| self.get(&old).unwrap())
        })
    }

    fn inserted(&self, axis: usize, at: u64, new: &Self) -> Self {
        let (mut shape, count) = (self.shape.clone(), new.shape[axis]);
        shape[axis] += count;
        Self::new(&shape, |index| {
            let mut index = index.to_vec();
            if (at..at + count).contains(&index[axis]) {
                index[axis] -= at;
                return new.get(&index).unwrap();
            }
            index[axis] -= if index[axis] < at { 0 } else { count };
            self.get(&index).unwrap()
        })
    }

    fn deleted(&self, axis: usize, range: &Range<u64>) -> Self {
        let mut shape = self.shape.clone();
        shape[axis] -= range.end - range.start;
        Self::new(&shape, |index| {
            let mut index = index.to_vec();
            index[axis] += if index[axis] < range.start { 0 } else { range.end - range.start };
            self.get(&index).unwrap()
        })
    }

    fn written(&self, ranges: &[Range<u64>], new: &Self) -> Self {
        Self::new(&self.shape, |index| {
            if index.iter().zip(ranges).all(|(at, range)| range.contains(at)) {
                let inner: Vec<u64> =
                    index.iter().zip(ranges).map(|(at, range)| at - range.start).collect();
                return new.get(&inner).unwrap();
            }
            self.get(index).unwrap()
        })
    }
}

fn index(mut number: u64, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (at, size) in index.iter_mut().zip(shape).rev() {
        *at = number % size;
        number /= size;
    }
    index
}

/// The storage of the array of a sequence.
#[derive(Debug, Clone)]
enum Place {
    Memory,
    Buffer,
    File(PathBuf),
    Directory(PathBuf),
}

struct Sequence {
    array: NDArray,
    model: Model,
    place: Place,
    cparams: CParams,
    dparams: DParams,
    log: String,
}

impl Sequence {
    fn start(rng: &mut Rng, folder: &Path) -> Self {
        let ndim = [1, 1, 2, 2, 3, 4][rng.below(6) as usize];
        let most = [0, 60, 14, 8, 5][ndim];
        let shape: Vec<u64> = (0..ndim).map(|_| rng.below(most)).collect();
        let chunks: Vec<u64> = (0..ndim).map(|_| 1 + rng.below(most)).collect();
        let blocks: Vec<u64> = chunks.iter().map(|&chunk| 1 + rng.below(chunk)).collect();
        let filters: [&[Filter]; 4] =
            [&[Filter::Shuffle], &[], &[Filter::Bitshuffle], &[Filter::Delta, Filter::Shuffle]];
        let threads = Threads::new([1, 4][rng.below(2) as usize]);
        let codecs: Vec<Codec> = codecs();
        let cparams = CParams::new()
            .codec(*rng.pick(&codecs))
            .level([0, 1, 5][rng.below(3) as usize])
            .filters(filters[rng.below(4) as usize])
            .threads(threads);
        let dparams = DParams::new().threads(threads);
        let builder = NDArray::builder().chunk_shape(&chunks).block_shape(&blocks);
        let builder =
            builder.cparams(cparams.clone()).options(OpenOptions::new().dparams(dparams.clone()));
        let path = folder.join("array.b2nd");
        let (place, builder) = match rng.below(4) {
            0 => (Place::Memory, builder),
            1 => (Place::Buffer, builder.target(Vec::new())),
            2 => (Place::File(path.clone()), builder.target(path)),
            _ => {
                (Place::Directory(path.clone()), builder.target(Target::from(path).directory(true)))
            }
        };
        let (array, model) = match rng.below(4) {
            0 => (builder.zeros::<u16>(&shape), Model::new(&shape, |_| 0)),
            1 => (builder.full(7u16, &shape), Model::new(&shape, |_| 7)),
            _ => {
                let model = Model::random(&shape, rng);
                (builder.from_slice(&model.items, &shape), model)
            }
        };
        let mut array = array.unwrap();
        array.set_dparams(array.info().dparams.cache([0, 1000, 1 << 20][rng.below(3) as usize]));
        let log = format!("{shape:?} in chunks of {chunks:?}, blocks of {blocks:?}, {place:?}");
        Self { array, model, place, cparams, dparams, log }
    }

    fn run(&mut self, rng: &mut Rng) {
        self.compare();
        for _ in 0..CHANGES {
            self.change(rng);
            self.compare();
        }
    }

    fn change(&mut self, rng: &mut Rng) {
        let ndim = self.model.shape.len();
        let axis = rng.below(ndim as u64) as usize;
        let size = self.model.shape[axis];
        let side = self.array.chunk_shape()[axis];
        let longer = |count: u64, model: &Model| {
            let mut shape = model.shape.clone();
            shape[axis] = count;
            shape
        };
        // Whole chunks now and then.
        let count = |rng: &mut Rng| if rng.below(3) == 0 { side } else { rng.below(6) };
        match rng.below(10) {
            0 => {
                let shape: Vec<u64> = self
                    .model
                    .shape
                    .iter()
                    .map(|&size| (size + rng.below(9)).saturating_sub(4))
                    .collect();
                self.note(format_args!("resize to {shape:?}"));
                self.array.resize(&shape).unwrap();
                self.model = self.model.resized(&shape);
            }
            1 => {
                let new = Model::random(&longer(count(rng), &self.model), rng);
                self.note(format_args!("append {:?} along {axis}", new.shape));
                self.array.append(axis, &new.items).unwrap();
                self.put(axis, size, &new);
            }
            2 => {
                let at = if rng.below(3) == 0 { size / side * side } else { rng.below(size + 1) };
                let new = Model::random(&longer(count(rng), &self.model), rng);
                self.note(format_args!("insert {:?} at {at} along {axis}", new.shape));
                self.array.insert(axis, at, &new.items).unwrap();
                self.put(axis, at, &new);
            }
            3 => {
                let start = rng.below(size + 1);
                let range = match rng.below(3) {
                    0 => (start / side * side)..(start / side * side + side).min(size),
                    _ => start..start + rng.below(size - start + 1),
                };
                self.note(format_args!("delete {range:?} along {axis}"));
                self.array.delete(axis, range.clone()).unwrap();
                self.model = self.model.deleted(axis, &range);
            }
            4 => {
                let ranges: Vec<Range<u64>> = self
                    .model
                    .shape
                    .iter()
                    .map(|&size| {
                        let start = rng.below(size + 1);
                        start..start + rng.below(size - start + 1)
                    })
                    .collect();
                let shape: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
                let new = Model::random(&shape, rng);
                self.note(format_args!("write {ranges:?}"));
                self.array.write(&ranges, &new.items).unwrap();
                self.model = self.model.written(&ranges, &new);
            }
            5 => {
                let pieces: Vec<Model> = (0..1 + rng.below(6))
                    .map(|_| Model::random(&longer(count(rng), &self.model), rng))
                    .collect();
                self.note(format_args!("append {} pieces along {axis}", pieces.len()));
                let mut appender = Appender::new(&mut self.array, axis).unwrap();
                let mut there = self.model.shape[axis];
                for piece in &pieces {
                    appender.append(&piece.items).unwrap();
                    there += piece.shape[axis];
                    // If another axis has no items, appending no items adds nothing.
                    let all = appender.array().shape()[axis] + appender.pending();
                    assert!(all == there || piece.items.is_empty());
                    there = all;
                    if rng.below(4) == 0 {
                        appender.flush().unwrap();
                        assert_eq!(appender.pending(), 0);
                    }
                }
                drop(appender);
                for piece in &pieces {
                    self.put(axis, self.model.shape[axis], piece);
                }
            }
            6 => self.reopen(),
            7 => {
                let new = Model::random(&longer(count(rng), &self.model), rng);
                self.note(format_args!("append an array {:?} along {axis}", new.shape));
                let mut builder =
                    NDArray::builder().cparams(CParams::new().codec(*rng.pick(&codecs())));
                if rng.below(4) > 0 {
                    builder = builder
                        .chunk_shape(self.array.chunk_shape())
                        .block_shape(self.array.block_shape());
                }
                let other = builder.from_slice(&new.items, &new.shape).unwrap();
                self.array.append(axis, &other).unwrap();
                // Unlike items alone, its shape has the growth of an array without items.
                self.model = self.model.inserted(axis, size, &new);
            }
            8 => {
                let (mut shape, mut start) = (Vec::new(), Vec::new());
                for (&size, &side) in self.model.shape.iter().zip(self.array.chunk_shape()) {
                    // Whole chunks, or any.
                    let unit = if rng.below(2) == 0 { side } else { 1 };
                    let at = rng.below(size / unit + 1) * unit;
                    let new = match rng.below(3) {
                        0 => size,
                        1 => size + rng.below(3) * unit,
                        _ => size - rng.below((size - at) / unit + 1) * unit,
                    };
                    shape.push(new);
                    start.push(at.min(new));
                }
                self.note(format_args!("resize to {shape:?} at {start:?}"));
                self.array.resize_at(&shape, &start).unwrap();
                self.model = self.model.resized_at(&shape, &start);
            }
            _ => self.refused(axis, size),
        }
    }

    /// Inserts the items of the model.
    fn put(&mut self, axis: usize, at: u64, new: &Model) {
        if !new.items.is_empty() {
            self.model = self.model.inserted(axis, at, new);
        }
    }

    fn refused(&mut self, axis: usize, size: u64) {
        self.note(format_args!("what is refused, along {axis}"));
        let (array, ndim) = (&mut self.array, self.model.shape.len());
        let kind = |result: blosc2::Result<()>, expected| {
            let error = result.expect_err("it must fail");
            assert_eq!(error.kind(), expected, "{error}");
        };
        kind(array.append(ndim, &[1u16]), ErrorKind::InvalidArgument);
        kind(array.append(axis, &[1u8]), ErrorKind::TypeMismatch);
        kind(array.insert(axis, size + 1, &[0u16; 0]), ErrorKind::OutOfBounds);
        kind(array.delete(axis, 0..size + 1), ErrorKind::OutOfBounds);
        kind(array.resize(vec![1; ndim + 1]), ErrorKind::InvalidArgument);
        kind(array.resize(vec![1u64 << 63; ndim]), ErrorKind::TooLarge);
        let others: u64 = self
            .model
            .shape
            .iter()
            .enumerate()
            .filter(|&(at, _)| at != axis)
            .map(|(_, size)| size)
            .product();
        if others != 1 {
            let odd = vec![1u16; others as usize + 1];
            kind(array.append(axis, &odd), ErrorKind::InvalidArgument);
        }
    }

    fn reopen(&mut self) {
        self.note(format_args!("reopen"));
        let old = match &self.place {
            Place::Memory | Place::Buffer => {
                let bytes = self.array.schunk().to_cframe().unwrap();
                std::mem::replace(&mut self.array, NDArray::open_rw(bytes).unwrap())
            }
            Place::File(path) | Place::Directory(path) => {
                let other = NDArray::from_slice(&[0u8], [1]).unwrap();
                drop(std::mem::replace(&mut self.array, other));
                std::mem::replace(&mut self.array, NDArray::open_rw(path).unwrap())
            }
        };
        drop(old);
        self.array.set_cparams(&self.cparams).unwrap();
        self.array.set_dparams(self.dparams.clone());
    }

    fn note(&mut self, what: std::fmt::Arguments<'_>) {
        write!(self.log, "\n  {what}").unwrap();
    }

    fn compare(&self) {
        assert_eq!(self.array.shape(), self.model.shape, "{}", self.log);
        let items = self.array.read::<Vec<u16>>(..);
        let items = items.unwrap_or_else(|error| panic!("{error}\n{}", self.log));
        assert!(items == self.model.items, "{items:?}\n{:?}\n{}", self.model, self.log);
    }

    /// Asserts that the stored array has no findings except gaps.
    fn check(&self) {
        let options = Options { content: true, ..Options::default() };
        let report = match &self.place {
            Place::Memory | Place::Buffer => {
                frame::check(&self.array.schunk().to_cframe().unwrap()[..], &options)
            }
            Place::File(path) => frame::check(&fs::read(path).unwrap()[..], &options),
            Place::Directory(path) => directory::check(&directory::Disk(path.clone()), &options),
        };
        let report = report.unwrap();
        let worst = report.findings.iter().find(|finding| finding.rule.severity != Severity::Note);
        assert!(report.is_good() && worst.is_none(), "{:?}\n{}", report.findings, self.log);
    }
}

#[test]
fn any_sequence_of_shapes_holds_what_the_model_does() {
    let cases = repeats(CASES) as u64;
    let work = |half: u64| {
        for seed in (0..cases).filter(|seed| seed % 2 == half) {
            let (mut rng, folder) = (Rng(seed), tempfile::tempdir().unwrap());
            let mut sequence = Sequence::start(&mut rng, folder.path());
            sequence.log.insert_str(0, &format!("sequence {seed}: "));
            sequence.run(&mut rng);
            sequence.check();
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        work(0);
        other.join().unwrap();
    });
}

/// Independently of the size of the other axes.
#[test]
fn arrays_without_items_take_no_memory() {
    let builder = || NDArray::builder().chunk_shape([1, 1]).block_shape([1, 1]);
    let mut array = builder().zeros::<u8>(&[0, 1u64 << 45]).unwrap();
    assert!(array.read::<Vec<u8>>(..).unwrap().is_empty());
    array.write(.., &[0u8; 0]).unwrap();
    array.resize([1u64 << 44, 0]).unwrap();
    array.append(0, &[0u8; 0]).unwrap();
    assert_eq!(array.shape(), [1 << 44, 0]);
    let none = builder().from_iter([0u8; 0], [1u64 << 40, 0]).unwrap();
    assert!(none.read::<Vec<u8>>(Selection::points(&[[0u64, 0]; 0])).unwrap().is_empty());
    let wide = NDArray::builder().zeros::<u8>(&[0, (1u64 << 32) + 5]).unwrap();
    assert_eq!(wide.chunk_shape(), [1, 8 << 20]);
}

/// Items for an older shape are not written as if they fitted.
#[test]
fn items_for_a_shape_that_others_have_changed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.b2nd");
    let builder = NDArray::builder().chunk_shape([20, 50]).block_shape([2, 5]).target(&path);
    drop(builder.from_slice(&[1u8; 9], [3, 3]).unwrap());
    let open = || {
        let options = blosc2::OpenOptions::new().write(true).locking(true);
        NDArray::from_schunk(options.open(&path).unwrap()).unwrap()
    };
    let (mut one, mut other) = (open(), open());
    other.resize([3, 4]).unwrap();
    let error = one.append(0, &[2u8; 12]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let mut appender = Appender::new(&mut one, 0).unwrap();
    appender.append(&[3u8; 4]).unwrap();
    other.resize([3, 40]).unwrap();
    for _ in 0..2 {
        assert!(appender.flush().is_err());
        assert_eq!(appender.pending(), 1, "what is collected stays");
    }
    drop(appender);
    one.refresh().unwrap();
    assert_eq!(one.shape(), [3, 40]);
}

/// One thread reads several handles, or one handle several times, while another writes.
#[test]
fn arrays_are_joined_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joined.b2nd");
    let builder = NDArray::builder().chunk_shape([20]).block_shape([5]).target(&path);
    let mut writer = builder.from_slice(&[5u16; 100], [100]).unwrap();
    let (one, other) = (NDArray::open(&path).unwrap(), NDArray::open(&path).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..100u16 {
                writer.write([u64::from(round)], round).unwrap();
            }
        });
        for _ in 0..30 {
            let joined = NDArray::builder().concatenate([&one, &other, &one], 0).unwrap();
            assert_eq!(joined.shape(), [300]);
        }
    });
    let options = blosc2::OpenOptions::new().locking(true);
    let locked = NDArray::from_schunk(options.open(&path).unwrap()).unwrap();
    let rows = vec![locked.view().expand_dims(0).unwrap(); 70];
    let joined = NDArray::builder().concatenate(rows, 0).unwrap();
    assert_eq!(joined.read::<Vec<u16>>(&[69..70, 99..100]).unwrap(), [99]);
}

/// Other programs that enlarge the array again read zeros there.
#[test]
fn items_that_go_are_not_left_in_the_padding() {
    for axis in 0..2 {
        let builder = NDArray::builder().chunk_shape([6, 6]).block_shape([4, 3]);
        let mut array = builder.from_slice(&[0xabu8; 100], [10, 10]).unwrap();
        let mut shape = [10, 10];
        shape[axis] = 7;
        array.resize(shape).unwrap();
        array.delete(axis, 5..7).unwrap();
        let there = array
            .schunk()
            .iter_chunks::<u8>()
            .map(|chunk| chunk.unwrap().into_iter().filter(|&byte| byte != 0).count());
        assert_eq!(there.sum::<usize>(), 50, "axis {axis}");
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_the_same_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for seed in 0..IN_PYTHON {
        let (mut rng, work) = (Rng(seed), tempfile::tempdir().unwrap());
        let mut sequence = Sequence::start(&mut rng, work.path());
        sequence.run(&mut rng);
        let name = format!("{seed}.b2nd");
        let path = folder.path().join(&name);
        match &sequence.place {
            Place::Memory | Place::Buffer => sequence.array.save(&path).unwrap(),
            Place::File(from) | Place::Directory(from) => fs::rename(from, &path).unwrap(),
        }
        let Model { shape, items } = &sequence.model;
        cases.push(json!({ "file": name, "shape": shape, "items": items }));
    }
    fs::write(folder.path().join("cases.json"), Value::from(cases).to_string()).unwrap();
    let script = r#"
import json
import blosc2
import numpy as np

for case in json.load(open("cases.json")):
    array = blosc2.open(case["file"])
    expected = np.array(case["items"], dtype="<u2").reshape(case["shape"])
    assert array.dtype == expected.dtype and array.shape == expected.shape, case["file"]
    assert np.array_equal(array[:], expected), case["file"]
print("all are equal")
"#;
    assert_eq!(run_python(script, folder.path(), &[]).trim(), "all are equal");
}

/// An array has at most as many chunks as a reader with the same limits allows.
#[test]
fn the_number_of_chunks_is_that_of_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let max = Limits::default().chunks;
    let more = Limits { chunks: max + 1, ..Limits::default() };
    let builder =
        |name: &str| NDArray::builder().chunk_shape([1]).block_shape([1]).target(path(name));
    let error = builder("a").zeros::<u8>([max + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let mut array = builder("a").zeros::<u8>([max]).unwrap();
    assert_eq!(array.resize([max + 1]).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(array.append(0, &[1u8]).unwrap_err().kind(), ErrorKind::TooLarge);
    drop(array);
    assert_eq!(NDArray::open(path("a")).unwrap().shape(), [max]);
    // With higher limits, more chunks are written and read, also by a copy.
    let array =
        builder("b").options(OpenOptions::new().limits(more)).zeros::<u8>([max + 1]).unwrap();
    assert_eq!(NDArray::open(path("b")).unwrap_err().kind(), ErrorKind::TooLarge);
    let options = OpenOptions::new().limits(more);
    let opened = NDArray::from_schunk(options.open(path("b")).unwrap()).unwrap();
    assert_eq!(opened.shape(), array.shape());
    opened.save(path("c")).unwrap();
    assert_eq!(options.open(path("c")).unwrap().nchunks() as u64, max + 1);
    // A dtype that readers would not know.
    let long = format!("[('{}', '<i4')]", "x".repeat(1 << 20));
    let made = NDArray::builder().dtype(&long, 4).special(blosc2::Special::Zeros, &[3u64][..]);
    assert_eq!(made.unwrap_err().kind(), ErrorKind::TooLarge);
}
