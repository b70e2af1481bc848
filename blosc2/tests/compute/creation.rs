//! Rules for all methods that create an array from another array.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use blosc2::compute::{InMemory, zip};
use blosc2::storage::{ReadAt, ReadOnly};
use blosc2::{
    AxisSelection, CParams, Error, ErrorKind, NDArray, NDArrayBuilder, NDArrayView, OpenOptions,
    RawItems, SaveOptions, Target,
};
use blosc2_testing::Rng;
use parking_lot::Mutex;

/// Creates an array from a row of 64 items or from a table of 8 rows and 8 columns. The items are below 8.
pub(crate) type Create =
    fn(NDArrayBuilder, NDArrayView<'_>, NDArrayView<'_>) -> blosc2::Result<NDArray>;

pub(crate) const METHODS: [(&str, Create); 18] = [
    ("argsort", |builder, row, _| builder.argsort::<i64>(row)),
    ("broadcast_to", |builder, row, _| builder.broadcast_to(row, (3, 64))),
    ("cast", |builder, _, table| builder.cast::<f32>(table)),
    ("concatenate", |builder, row, _| builder.concatenate([row.clone(), row], 0)),
    ("copy", |builder, row, _| builder.copy(row)),
    ("cumulative_prod", |builder, _, table| builder.cumulative_prod::<i64>(table, 0)),
    ("cumulative_sum", |builder, _, table| builder.cumulative_sum::<i64>(table, 1)),
    ("diff", |builder, _, table| builder.diff::<i64>(table, 1, 0)),
    ("map", |builder, _, table| builder.map(table, |item: i64| item.wrapping_mul(3))),
    ("matmul", |builder, _, table| builder.matmul::<i64>(table.clone(), table)),
    ("reshape", |builder, row, _| builder.reshape(row, (4, 16))),
    ("sort", |builder, row, _| builder.sort::<i64>(row)),
    ("take_along_axis", |builder, _, table| {
        let indices = NDArray::builder().from_fn([8, 8], |[row, _]| row as i64)?;
        builder.take_along_axis(table, &indices, 0)
    }),
    ("take_along_axis", |builder, _, table| {
        let items = NDArray::builder().zeros::<u8>((8, 8))?;
        builder.take_along_axis(&items, table, 0)
    }),
    ("tensordot", |builder, _, table| builder.tensordot::<i64>(table.clone(), table, (&[1], &[0]))),
    ("unique", |builder, row, _| builder.unique::<i64>(row)),
    ("unique_counts", |builder, row, _| {
        builder.unique_counts::<i64>(row, NDArray::builder()).map(|(items, _)| items)
    }),
    ("unique_counts", |builder, row, _| {
        NDArray::builder().unique_counts::<i64>(row, builder).map(|(_, counts)| counts)
    }),
];

/// Methods of other types that create an array from arrays.
const OTHERS: [(&str, Create); 5] = [
    ("LazyExpr::create", |builder, row, table| {
        let sums = zip((row.slice(..8)?, table)).map(|(one, two): (i64, i64)| one + two);
        sums.create(builder)
    }),
    ("LazyExpr::builder", |builder, row, table| {
        let sums = zip((row.slice(..8)?, table)).map(|(one, two): (i64, i64)| one + two);
        sums.axes(0).builder(builder).sum()
    }),
    // Results of more than 4 MiB are not collected in memory.
    ("LazyExpr::builder", |builder, row, _| {
        let zeros = InMemory::new(&[0i64; 9000], [9000, 1, 1]);
        let items = zip((row, zeros)).map(|(one, two): (i64, i64)| one + two);
        items.axes(1).builder(builder).max()
    }),
    ("NDArrayBuilder::from_chunk_fn", |builder, _, table| {
        let fill = |ranges: &[_], bytes: &mut [u8]| table.read_into(ranges, RawItems(bytes));
        builder.dtype("<i8", 8).from_chunk_fn([8, 8], fill)
    }),
    ("NDArrayBuilder::from_slice", |builder, row, _| builder.from_slice(row, 64)),
];

/// All methods that have an array or a view as source are in the list.
#[test]
fn the_list_of_methods_is_complete() {
    let api = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("api.txt")).unwrap();
    let methods = api.lines().filter_map(|line| {
        let (name, signature) =
            line.strip_prefix("pub fn blosc2::NDArrayBuilder::")?.split_once(['<', '('])?;
        signature.contains("blosc2::NDArrayView<").then_some(name)
    });
    let expected: BTreeSet<&str> = methods.chain(["copy"]).collect();
    assert_eq!(METHODS.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), expected);
}

/// The parameters of an array whose chunks are stored without compression.
fn builder(chunks: &[u64]) -> NDArrayBuilder {
    NDArray::builder().cparams(CParams::new().level(0)).chunk_shape(chunks)
}

/// A row and a table, in frames.
fn frames() -> [Vec<u8>; 2] {
    let item = |[at]: [u64; 1]| (at * 7919 % 61 % 8) as i64;
    let row = builder(&[8]).target(Vec::new()).from_fn([64], item).unwrap();
    let table = builder(&[2, 4]).target(Vec::new()).reshape(&row, (8, 8)).unwrap();
    [row, table].map(|array| array.into_schunk().into_cframe().unwrap())
}

/// A frame whose chunks in the middle cannot be read when the flag is set.
#[derive(Debug)]
struct Failing(Vec<u8>, Arc<AtomicBool>);

impl ReadAt for Failing {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let len = self.0.len() as u64;
        let is_inside = offset < len * 3 / 4 && offset + buffer.len() as u64 > len / 2;
        match is_inside && self.1.load(Ordering::Relaxed) {
            true => Err(io::Error::other("told to fail")),
            false => self.0.read_exact_at(offset, buffer),
        }
    }
}

/// Returns arrays whose chunks in the middle cannot be read.
fn failing() -> [NDArray; 2] {
    let fails = Arc::new(AtomicBool::new(false));
    let open = |frame| {
        let storage = ReadOnly::new(Failing(frame, Arc::clone(&fails)));
        NDArray::open(Target::storage(storage)).unwrap()
    };
    let arrays = frames().map(open);
    fails.store(true, Ordering::Relaxed);
    arrays
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// If the source cannot be read, no array and no temporary file appears, and an existing array is not replaced.
#[test]
fn a_failed_read_leaves_no_array() {
    let [row, table] = failing();
    for (name, create) in METHODS {
        for is_directory in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let target = Target::from(folder.path().join("array")).directory(is_directory);
            // Small parts: some of them are written before the failure.
            let builder = NDArray::builder().max_memory(64).target(target);
            let error = create(builder, row.view(), table.view()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{name}: {error}");
            assert_eq!(names(folder.path()), [""; 0], "{name}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array");
        let builder = || NDArray::builder().target(&path);
        builder().arange(0u8, 9, 1).unwrap();
        let options = OpenOptions::new().replace(true);
        let error = create(builder().options(&options), row.view(), table.view()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{name}: {error}");
        let kept: Vec<u8> = NDArray::open(&path).unwrap().read(..).unwrap();
        assert_eq!((kept.len(), names(folder.path()).len()), (9, 1), "{name}");
    }
}

/// Returns the shape and the items of an array.
fn content(array: &NDArray) -> (Vec<u64>, Vec<u8>) {
    (array.shape().to_vec(), array.read::<RawItems>(..).unwrap().0)
}

/// A row and a table in files, which are opened for reading.
struct Files {
    folder: tempfile::TempDir,
    options: OpenOptions,
}

impl Files {
    fn new(is_locking: bool) -> Self {
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
            options: OpenOptions::new().locking(is_locking),
        };
        files
            .paths()
            .iter()
            .zip(frames())
            .for_each(|(path, frame)| fs::write(path, frame).unwrap());
        files
    }

    fn paths(&self) -> [PathBuf; 2] {
        ["row", "table"].map(|name| self.folder.path().join(name))
    }

    fn open(&self) -> [NDArray; 2] {
        self.paths().map(|path| NDArray::open_with(path, &self.options).unwrap())
    }

    /// A builder that replaces one of the files.
    fn replacing(&self, number: usize) -> NDArrayBuilder {
        let options = self.options.clone().replace(true);
        // Small parts: several of them are read and written.
        NDArray::builder().max_memory(64).options(options).target(&self.paths()[number])
    }
}

/// The target can be the file of a source, also with locking: the sources are released before they are replaced.
#[test]
fn a_source_is_replaced_by_the_new_array() {
    for (name, create) in METHODS.into_iter().chain(OTHERS) {
        // One of the two files is the source, except for operations on both.
        for (is_locking, number) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            let files = Files::new(is_locking);
            let [row, table] = files.open();
            let expected = create(NDArray::builder(), row.view(), table.view()).unwrap();
            let created = create(files.replacing(number), row.view(), table.view());
            let created = created.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(content(&created), content(&expected), "{name}");
            let opened = NDArray::open_with(&files.paths()[number], &files.options).unwrap();
            assert_eq!(content(&opened), content(&expected), "{name}");
            assert_eq!(opened.dtype_str(), expected.dtype_str(), "{name}");
            let locks = if is_locking { 2 } else { 0 };
            assert_eq!(names(files.folder.path()).len(), 2 + locks, "{name}");
        }
    }
}

/// Two handles of one file are two sources.
#[test]
fn a_source_with_two_handles_is_replaced() {
    type CreateOfTwo = fn(NDArrayBuilder, &NDArray, &NDArray) -> blosc2::Result<NDArray>;
    let methods: [CreateOfTwo; 5] = [
        |builder, one, two| builder.concatenate([one, two], 1),
        |builder, one, two| builder.matmul::<i64>(one, two),
        |builder, one, two| builder.tensordot::<i64>(one, two, (&[0], &[1])),
        |builder, one, two| builder.take_along_axis(one, two, 0),
        |builder, one, two| zip((one, two)).map(|(a, b): (i64, i64)| a * b).create(builder),
    ];
    for create in methods {
        let files = Files::new(true);
        let ([_, one], [_, two]) = (files.open(), files.open());
        let expected = create(NDArray::builder(), &one, &two).unwrap();
        let created = create(files.replacing(1), &one, &two).unwrap();
        assert_eq!(content(&created), content(&expected));
    }
}

/// The two arrays of `unique_counts` replace two handles of the source, and an array is saved to its own file.
#[test]
fn all_files_of_an_operation_are_replaced() {
    let files = Files::new(true);
    let [row, table] = files.open();
    let expected = NDArray::builder().unique_counts::<i64>(&row, NDArray::builder()).unwrap();
    let created = files.replacing(0).unique_counts::<i64>(&row, files.replacing(1)).unwrap();
    assert_eq!(content(&created.0), content(&expected.0));
    assert_eq!(content(&created.1), content(&expected.1));
    drop((created, table));
    for options in [SaveOptions::new(), SaveOptions::new().cparams(CParams::new().level(9))] {
        let [row, _] = files.open();
        options.replace(true).save(&row, &files.paths()[0]).unwrap();
        assert_eq!(content(&files.open()[0]), content(&expected.0));
    }
}

/// If a source cannot be read, its file is not replaced.
#[test]
fn a_failed_read_leaves_the_source() {
    for (name, create) in METHODS.into_iter().chain(OTHERS) {
        for (is_locking, number) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            let files = Files::new(is_locking);
            let paths = files.paths();
            // The headers of chunks in the middle are invalid.
            let damaged = paths.each_ref().map(|path| {
                let mut frame = fs::read(path).unwrap();
                let middle = frame.len() / 2;
                frame[middle..middle + 150].fill(0xff);
                fs::write(path, &frame).unwrap();
                frame
            });
            let [row, table] = files.open();
            let before = names(files.folder.path()).len();
            let error = create(files.replacing(number), row.view(), table.view()).unwrap_err();
            // The closure of `from_chunk_fn` returns the error.
            let is_closure = name.ends_with("from_chunk_fn");
            let kind = if is_closure { ErrorKind::Callback } else { ErrorKind::InvalidData };
            assert_eq!(error.kind(), kind, "{name}: {error}");
            assert_eq!(paths.each_ref().map(|path| fs::read(path).unwrap()), damaged, "{name}");
            assert_eq!(names(files.folder.path()).len(), before, "{name}");
        }
    }
}

/// Progress is reported for each chunk. The sources are held: another handle cannot change them between two chunks.
#[test]
fn the_sources_do_not_change_during_a_creation() {
    let check = |(name, create): (&str, Create)| {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["row", "table"].map(|name| folder.path().join(name));
        paths.iter().zip(frames()).for_each(|(path, frame)| fs::write(path, frame).unwrap());
        let writers = paths.each_ref().map(|path| {
            NDArray::from_schunk(OpenOptions::new().write(true).open(path).unwrap()).unwrap()
        });
        let [row, table] = paths.each_ref().map(|path| NDArray::open(path).unwrap());
        let (writers, reports) = (Mutex::new(writers), Arc::new(Mutex::new(Vec::new())));
        let reported = Arc::clone(&reports);
        let report = move |done: u64, total: u64| {
            let mut writers = writers.lock();
            let writes = writers.iter_mut().map(|writer| writer.write(.., 0i64));
            let refused = writes.filter(|result| {
                result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy)
            });
            reported.lock().push((done, total, refused.count()));
            Ok::<(), Error>(())
        };
        let created = create(NDArray::builder().progress(report), row.view(), table.view());
        let count = created.unwrap().schunk().nchunks() as u64;
        // One of the two sources is used.
        let expected: Vec<_> = (1..=count).map(|done| (done, count, 1)).collect();
        assert_eq!(*reports.lock(), expected, "{name}");
    };
    // Each refused write waits for 0.7 s.
    thread::scope(|scope| {
        METHODS.into_iter().for_each(|method| drop(scope.spawn(move || check(method))));
    });
}

/// Errors of the builder are found before the source is read.
#[test]
fn wrong_settings_are_found_before_a_sort() {
    let [row, table] = failing();
    let sorts = METHODS.iter().filter(|(name, _)| name.contains("sort") || name.contains("unique"));
    for (name, create) in sorts {
        let wrong =
            |builder: NDArrayBuilder| create(builder, row.view(), table.view()).unwrap_err().kind();
        let builder = NDArray::builder;
        assert_eq!(wrong(builder().chunk_shape((3, 3))), ErrorKind::InvalidArgument, "{name}");
        assert_eq!(wrong(builder().chunk_shape(4).block_shape(5)), ErrorKind::InvalidArgument);
        assert_eq!(wrong(builder().dtype("<f4", 4)), ErrorKind::TypeMismatch, "{name}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array");
        builder().target(&path).arange(0u8, 9, 1).unwrap();
        assert_eq!(wrong(builder().target(&path)), ErrorKind::AlreadyExists, "{name}");
        assert_eq!(wrong(builder()), ErrorKind::Io, "{name}");
    }
}

/// If one of the two arrays of `unique_counts` cannot be created, the other one is not created either.
#[test]
fn unique_counts_creates_both_arrays_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let builder = |name: &str| NDArray::builder().target(folder.path().join(name));
    let array = builder("exists").arange(0i64, 9, 1).unwrap();
    let fails = |items: NDArrayBuilder, counts: NDArrayBuilder, kind| {
        let error = items.unique_counts::<i64>(&array, counts).unwrap_err();
        assert_eq!((error.kind(), names(folder.path()).len()), (kind, 1));
    };
    // A closure that fails for the last chunk.
    let stopped = |name| {
        let report = |done, total| if done < total { Ok(()) } else { Err("stopped") };
        builder(name).chunk_shape(2).progress(report)
    };
    fails(builder("new"), builder("exists"), ErrorKind::AlreadyExists);
    fails(builder("exists"), builder("new"), ErrorKind::AlreadyExists);
    fails(builder("items"), stopped("counts"), ErrorKind::Callback);
    fails(stopped("items"), builder("counts"), ErrorKind::Callback);
    fails(builder("same"), builder("same"), ErrorKind::InvalidArgument);
    builder("items").unique_counts::<i64>(&array, builder("counts")).unwrap();
    assert_eq!(names(folder.path()).len(), 3);
}

/// New arrays have the same items with any chunks and any memory: neighboring chunks are computed together if they need the
/// same blocks, as far as the memory allows.
#[test]
fn arrays_are_equal_with_any_chunks_and_memory() {
    for seed in 0..blosc2_testing::repeats(2000) as u64 {
        let rng = &mut Rng(seed + 1);
        let mut sizes = |most: [u64; 3]| most.map(|size| rng.below(size) + 1);
        let shape = sizes([9, 11, 13]);
        let chunks = sizes(shape);
        let (blocks, new) = (sizes(chunks), sizes([14, 14, 14]));
        let source = NDArray::builder().chunk_shape(chunks).block_shape(blocks);
        let source = source.from_fn(shape, |[i, j, k]| (i * 1000 + j * 50 + k) as u32).unwrap();
        let order = *rng.pick(&[[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0]]);
        let step = *rng.pick(&[1, 2, -1]);
        let view = source.view().slice((.., AxisSelection::strided(.., step))).unwrap();
        let view = view.permute(&order).unwrap();
        let items: Vec<u32> = view.read(..).unwrap();
        let shape = <[u64; 3]>::try_from(view.shape()).unwrap();
        let memory = *rng.pick(&[0, 100, 1000, 4000, 1 << 20]);
        let what =
            format!("seed {seed}, {shape:?}, {order:?}, {chunks:?}, {blocks:?}, {new:?}, {memory}");
        let builder = || NDArray::builder().max_memory(memory);
        let equal = |found: blosc2::Result<NDArray>, expected: &[u32], name: &str| {
            assert_eq!(found.unwrap().read::<Vec<u32>>(..).unwrap(), expected, "{name}, {what}");
        };
        let cut = |shape: [u64; 3]| {
            let chunks = [0, 1, 2].map(|axis: usize| new[axis].min(shape[axis].max(1)));
            builder().chunk_shape(chunks)
        };
        let at = |[i, j, k]: [u64; 3]| items[((i * shape[1] + j) * shape[2] + k) as usize];
        let all = |shape: [u64; 3], item: &dyn Fn([u64; 3]) -> u32| -> Vec<u32> {
            let rows = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| (i, j)));
            rows.flat_map(|(i, j)| (0..shape[2]).map(move |k| item([i, j, k]))).collect()
        };

        equal(cut(shape).copy(view.clone()), &items, "copy");
        let wide: Vec<u64> = cut(shape).cast::<u64>(view.clone()).unwrap().read(..).unwrap();
        assert!(
            wide.iter().eq(items.iter().map(|item| u64::from(*item)).collect::<Vec<_>>().iter())
        );
        let double: Vec<u32> = items.iter().map(|item| item * 2).collect();
        equal(cut(shape).map(view.clone(), |item: u32| item * 2), &double, "map");
        let other = cut(shape).copy(view.clone()).unwrap();
        let sums = zip((view.clone(), &other)).map(|(one, two): (u32, u32)| one + two);
        equal(sums.create(builder().chunk_shape(new.map(|_| 4))), &double, "zip");
        let row = view.slice((0..1, ..)).unwrap();
        let sums = zip((&other, row.clone())).map(|(one, row): (u32, u32)| one + row);
        let expected = all(shape, &|[i, j, k]| at([i, j, k]) + at([0, j, k]));
        equal(sums.create(cut(shape)), &expected, "zip with a row");
        let expected = all(shape, &|[_, j, k]| at([0, j, k]));
        equal(cut(shape).broadcast_to(row, shape), &expected, "broadcast_to");

        for axis in 0..3 {
            let mut longer = shape;
            longer[axis] *= 2;
            let expected = all(longer, &|mut index| {
                index[axis] %= shape[axis];
                at(index)
            });
            let joined = cut(longer).concatenate([view.clone(), other.view()], axis);
            equal(joined, &expected, "concatenate");
            let mut shorter = shape;
            shorter[axis] -= 1;
            let expected = all(shorter, &|index| {
                let mut next = index;
                next[axis] += 1;
                at(next).wrapping_sub(at(index))
            });
            equal(cut(shorter).diff::<u32>(view.clone(), 1, axis), &expected, "diff");
            let reverse = |index: [u64; 3]| -1 - index[axis] as i64;
            let indices = NDArray::builder().from_fn(shape, reverse).unwrap();
            let expected = all(shape, &|mut index| {
                index[axis] = shape[axis] - 1 - index[axis];
                at(index)
            });
            let taken = cut(shape).take_along_axis(view.clone(), &indices, axis);
            equal(taken, &expected, "take_along_axis");
        }

        let [i, j, k] = shape;
        for shape in
            [vec![i * j * k], vec![j, i * k], vec![i * j, k], vec![k, i, j], vec![j, 1, k, i]]
        {
            let chunks: Vec<u64> = shape
                .iter()
                .zip(new.into_iter().cycle())
                .map(|(size, new)| new.min(*size))
                .collect();
            let reshaped = builder().chunk_shape(chunks).reshape(view.clone(), &shape);
            equal(reshaped, &items, "reshape");
        }
    }
}
