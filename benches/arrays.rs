//! Arrays: reading, writing and appending, compared with C's functions for arrays on the same library, data, chunks
//! and blocks. `cargo xtask bench arrays` runs it.
//!
//! C and this crate are measured alternately. The table shows for each case the medians over the rounds, the speed of
//! this crate relative to C, and the required minimum. Cases of one thread are timed by its CPU time, so other programs
//! have little effect; cases of two threads are timed by the clock.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use std::{fs, process, ptr};

use blosc2::{CParams, Codec, DParams, NDArray, NDArrayBuilder, Threads};
use blosc2_sys as sys;
use blosc2_testing::Rng;
use serde_json::{Value, json};

/// The array: 256 MiB of items.
const SHAPE: [u64; 2] = [8192, 8192];
const CHUNKS: [u64; 2] = [256, 8192];
const BLOCKS: [u64; 2] = [4, 8192];
/// The appended array: its chunk and block shapes, the items of an append, and the number of appends.
const APPEND_CHUNKS: [u64; 1] = [1 << 20];
const APPEND_BLOCKS: [u64; 1] = [1 << 15];
const APPENDED: usize = 10_000;
const APPENDS: usize = 64;

/// Rounds of the cases on the whole array, and of the others.
const ROUNDS: usize = 7;
const MORE_ROUNDS: usize = 25;

fn main() {
    // Starts the library, as the crate does.
    assert!(Codec::Zstd.is_available());
    let items = items();
    println!("one call                  codec  threads      C, ms   ours, ms    C / ours  least");
    let mut report = Vec::new();
    for codec in [Codec::Lz4, Codec::Zstd] {
        for threads in [1, 2] {
            let mut bench = Bench { codec, threads, items: &items, report: &mut report };
            bench.writing();
            let (c, ours) = (bench.c_array(&SHAPE, &items), bench.array(&SHAPE, &items));
            bench.reading(&c, &ours);
            bench.boxes(&c, &ours);
            bench.product(&c, &ours);
            bench.points(&c, &ours);
            bench.appends();
        }
    }
    write_report(&report);
}

/// Smooth in both directions.
fn items() -> Vec<f32> {
    let at = |index: u64| index as f64 / SHAPE[0] as f64;
    let item = |row: u64, column: u64| {
        let (u, v) = (at(row), at(column));
        ((u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v) as f32
    };
    (0..SHAPE[0]).flat_map(|row| (0..SHAPE[1]).map(move |column| item(row, column))).collect()
}

/// The cases for a codec and a number of threads.
struct Bench<'a> {
    codec: Codec,
    threads: usize,
    items: &'a [f32],
    report: &'a mut Vec<Value>,
}

impl Bench<'_> {
    /// The whole array, in memory.
    fn writing(&mut self) {
        let least = if self.codec == Codec::Lz4 { [1.0, 1.6] } else { [1.0, 1.0] };
        let (this, items) = (&*self, self.items);
        let mut c = || drop(black_box(this.c_array(&SHAPE, items)));
        let mut ours = || drop(black_box(this.array(&SHAPE, items)));
        let times = this.measure(ROUNDS, 1, &mut c, &mut ours);
        self.show("write the whole", least, times);
    }

    /// The whole array, into the caller's memory.
    fn reading(&mut self, c: &CArray, ours: &NDArray) {
        let least = if self.codec == Codec::Lz4 { [1.4, 1.6] } else { [1.2, 1.25] };
        let (mut c_target, mut target) = (vec![0.0; self.items.len()], vec![0.0; self.items.len()]);
        let times = self.measure(ROUNDS, 1, &mut || c.read(black_box(&mut c_target)), &mut || {
            ours.read_into(.., black_box(&mut target)).unwrap()
        });
        assert!(target == self.items && c_target == self.items, "other items");
        self.show("read the whole", least, times);
    }

    /// Boxes at random places.
    fn boxes(&mut self, c: &CArray, ours: &NDArray) {
        for (sides, count) in [([1, 64], 2000), ([32, 32], 500), ([1, 8192], 100)] {
            let mut rng = Rng(42);
            let corner = |_| [0, 1].map(|axis: usize| rng.below(SHAPE[axis] - sides[axis] + 1));
            let boxes: Vec<[u64; 2]> = (0..count).map(corner).collect();
            let end = |start: &[u64; 2]| [start[0] + sides[0], start[1] + sides[1]];
            let read = |start: &[u64; 2], target: &mut [f32]| {
                let end = end(start);
                ours.read_into([start[0]..end[0], start[1]..end[1]], target).unwrap();
            };
            let len = (sides[0] * sides[1]) as usize;
            let (mut c_target, mut target) = (vec![0.0; len], vec![0.0; len]);
            for start in &boxes {
                c.read_box(start, &end(start), &mut c_target);
                read(start, &mut target);
                assert!(target == c_target, "other items in the box at {start:?}");
            }
            let times = self.measure(
                MORE_ROUNDS,
                count,
                &mut || {
                    for start in &boxes {
                        c.read_box(start, &end(start), black_box(&mut c_target));
                    }
                },
                &mut || {
                    for start in &boxes {
                        read(start, black_box(&mut target));
                    }
                },
            );
            self.show(&format!("read a box {sides:?}"), [0.95; 2], times);
        }
    }

    /// Some columns of some rows.
    fn product(&mut self, c: &CArray, ours: &NDArray) {
        let mut rng = Rng(7);
        let lists = SHAPE.map(|size| {
            let mut list: Vec<u64> = (0..256).map(|_| rng.below(size)).collect();
            list.sort_unstable();
            list.dedup();
            list
        });
        let len = lists[0].len() * lists[1].len();
        let (mut c_target, mut target) = (vec![0.0; len], vec![0.0; len]);
        let times = self.measure(
            MORE_ROUNDS,
            1,
            &mut || c.read_product(&lists, black_box(&mut c_target)),
            &mut || ours.read_into(&lists, black_box(&mut target)).unwrap(),
        );
        assert!(target == c_target, "other items");
        let what = format!("read {} x {}", lists[0].len(), lists[1].len());
        self.show(&what, [1.0, 1.4], times);
    }

    /// Single items.
    fn points(&mut self, c: &CArray, ours: &NDArray) {
        let mut rng = Rng(9);
        let [rows, columns] =
            SHAPE.map(|size| (0..1000).map(|_| rng.below(size)).collect::<Vec<_>>());
        let points: Vec<[u64; 2]> = rows.into_iter().zip(columns).map(<[u64; 2]>::from).collect();
        let c_points: Vec<i64> =
            points.iter().map(|[row, column]| (row * SHAPE[1] + column) as i64).collect();
        let (mut c_target, mut target) = (vec![0.0; points.len()], vec![0.0; points.len()]);
        let times = self.measure(
            MORE_ROUNDS,
            1,
            &mut || c.read_points(&c_points, black_box(&mut c_target)),
            &mut || ours.read_points_into(&points, black_box(&mut target)).unwrap(),
        );
        assert!(target == c_target, "other items");
        self.show(&format!("read {} points", points.len()), [1.2; 2], times);
    }

    /// Many appends to a new array.
    fn appends(&mut self) {
        let (this, items) = (&*self, &self.items[..APPENDED * APPENDS]);
        let c = || {
            let mut array = this.c_array(&[0], &[]);
            items.chunks_exact(APPENDED).for_each(|items| array.append(items));
            array
        };
        let ours = || {
            let mut array = this.array(&[0], &[]);
            let mut appender = array.appender(0).unwrap();
            items.chunks_exact(APPENDED).for_each(|items| appender.append(items).unwrap());
            appender.flush().unwrap();
            drop(appender);
            array
        };
        let mut target = vec![0.0; items.len()];
        c().read(&mut target);
        assert!(target == items && ours().read_all::<f32>().unwrap() == items, "other items");
        let times = this
            .measure(MORE_ROUNDS, 1, &mut || drop(black_box(c())), &mut || drop(black_box(ours())));
        self.show(&format!("append {APPENDS} x {APPENDED}"), [10.0; 2], times);
    }

    /// The chunk shape and the block shape of an array with `ndim` dimensions.
    fn cut(ndim: usize) -> (&'static [u64], &'static [u64]) {
        if ndim == 1 { (&APPEND_CHUNKS, &APPEND_BLOCKS) } else { (&CHUNKS, &BLOCKS) }
    }

    fn builder(&self, ndim: usize) -> NDArrayBuilder {
        let (chunks, blocks) = Self::cut(ndim);
        let threads = Threads::new(self.threads);
        NDArray::builder()
            .chunks(chunks)
            .blocks(blocks)
            .cparams(CParams::new().codec(self.codec).threads(threads))
            .dparams(DParams::new().threads(threads))
    }

    fn array(&self, shape: &[u64], items: &[f32]) -> NDArray {
        self.builder(shape.len()).from_slice(items, shape).unwrap()
    }

    fn c_array(&self, shape: &[u64], items: &[f32]) -> CArray {
        let (chunks, blocks) = Self::cut(shape.len());
        let mut cparams = sys::blosc2_cparams_defaults();
        cparams.compcode = self.codec.code();
        cparams.typesize = size_of::<f32>() as i32;
        cparams.splitmode = sys::BLOSC_AUTO_SPLIT;
        cparams.nthreads = self.threads as i16;
        let mut dparams = sys::blosc2_dparams_defaults();
        dparams.nthreads = self.threads as i16;
        let mut storage = sys::blosc2_storage_defaults();
        (storage.cparams, storage.dparams) = (&mut cparams, &mut dparams);
        let sizes = |shape: &[u64]| shape.iter().map(|&size| size as i32).collect::<Vec<_>>();
        let (chunks, blocks, shape) = (sizes(chunks), sizes(blocks), signed(shape));
        let mut array = ptr::null_mut();
        // SAFETY: C copies the shapes, the dtype and what the storage points to; the shapes have as many
        // numbers as there are dimensions; the context is freed once.
        unsafe {
            let context = sys::b2nd_create_ctx(
                &storage,
                shape.len() as i8,
                shape.as_ptr(),
                chunks.as_ptr(),
                blocks.as_ptr(),
                c"<f4".as_ptr(),
                0,
                ptr::null(),
                0,
            );
            assert!(!context.is_null(), "a context");
            let len = size_of_val(items) as i64;
            let code = sys::b2nd_from_cbuffer(context, &mut array, items.as_ptr().cast(), len);
            assert!(code == 0, "an array: {code}");
            sys::b2nd_free_ctx(context);
        }
        CArray(array)
    }

    /// The time in ms that each side takes for one of `calls` calls, for each round.
    fn measure(
        &self,
        rounds: usize,
        calls: usize,
        c: &mut dyn FnMut(),
        ours: &mut dyn FnMut(),
    ) -> Vec<[f64; 2]> {
        let start = Instant::now();
        let now = || match self.threads {
            1 => worked(),
            _ => None,
        };
        let now = || now().unwrap_or_else(|| start.elapsed().as_secs_f64());
        let round = |round: usize| {
            let mut both = [0.0; 2];
            // The order alternates.
            for which in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                let start = now();
                if which == 0 {
                    c()
                } else {
                    ours()
                }
                both[which] = (now() - start) * 1e3 / calls as f64;
            }
            both
        };
        // The first round is a warm-up.
        (0..=rounds).map(round).skip(1).collect()
    }

    /// Prints a line and adds it to the report.
    fn show(&mut self, what: &str, least: [f64; 2], times: Vec<[f64; 2]>) {
        let median_of = |value: fn(&[f64; 2]) -> f64| median(times.iter().map(value).collect());
        let (c, ours) = (median_of(|both| both[0]), median_of(|both| both[1]));
        let ratio = median_of(|both| both[0] / both[1]);
        let (codec, threads, least) =
            (self.codec.to_string(), self.threads, least[self.threads - 1]);
        let verdict = if ratio < least { "  below" } else { "" };
        println!(
            "{what:24}  {codec:>5}  {threads:7}  {c:9.4}  {ours:9.4}  {ratio:10.3}  {least:5.2}{verdict}"
        );
        self.report.push(json!({
            "call": what, "codec": codec, "threads": threads,
            "c_ms": c, "ours_ms": ours, "ratio": ratio, "least": least,
        }));
    }
}

/// The CPU time of this thread in seconds, if the system reports it.
#[cfg(unix)]
fn worked() -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    (code == 0).then(|| time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(not(unix))]
fn worked() -> Option<f64> {
    None
}

/// A C array in memory.
struct CArray(*mut sys::b2nd_array_t);

impl CArray {
    fn read(&self, target: &mut [f32]) {
        let len = size_of_val(target) as i64;
        // SAFETY: the length is that of the target.
        let code = unsafe { sys::b2nd_to_cbuffer(self.0, target.as_mut_ptr().cast(), len) };
        assert!(code == 0, "C reads the array: {code}");
    }

    fn read_box(&self, start: &[u64; 2], end: &[u64; 2], target: &mut [f32]) {
        let len = size_of_val(target) as i64;
        let (start, end) = (start.map(|at| at as i64), end.map(|at| at as i64));
        let shape = [end[0] - start[0], end[1] - start[1]];
        // SAFETY: there are two dimensions; the length is that of the target, which C checks against the shape.
        let code = unsafe {
            let (start, end, to) = (start.as_ptr(), end.as_ptr(), target.as_mut_ptr());
            sys::b2nd_get_slice_cbuffer(self.0, start, end, to.cast(), shape.as_ptr(), len)
        };
        assert!(code == 0, "C reads a box: {code}");
    }

    fn read_product(&self, lists: &[Vec<u64>; 2], target: &mut [f32]) {
        let len = size_of_val(target) as i64;
        let mut lists = [signed(&lists[0]), signed(&lists[1])];
        let mut lens = [lists[0].len() as i64, lists[1].len() as i64];
        let mut shape = lens;
        let [rows, columns] = &mut lists;
        let mut starts = [rows.as_mut_ptr(), columns.as_mut_ptr()];
        // SAFETY: there are two dimensions, and lists of these lengths; the length is that of the target.
        let code = unsafe {
            let (to, lens) = (target.as_mut_ptr().cast(), lens.as_mut_ptr());
            let (starts, shape) = (starts.as_mut_ptr(), shape.as_mut_ptr());
            sys::b2nd_get_orthogonal_selection(self.0, starts, lens, to, shape, len)
        };
        assert!(code == 0, "C reads rows and columns: {code}");
    }

    /// Reads points by their indices in C order.
    fn read_points(&self, points: &[i64], target: &mut [f32]) {
        let (count, len) = (points.len() as i64, size_of_val(target) as i64);
        // SAFETY: the lengths are those of the points and the target.
        let code = unsafe {
            let to = target.as_mut_ptr().cast();
            sys::b2nd_get_sparse_cbuffer(self.0, count, points.as_ptr(), to, len)
        };
        assert!(code == 0, "C reads points: {code}");
    }

    fn append(&mut self, items: &[f32]) {
        let len = size_of_val(items) as i64;
        // SAFETY: the length is that of the items, which C only reads.
        let code = unsafe { sys::b2nd_append(self.0, items.as_ptr().cast(), len, 0) };
        assert!(code == 0, "C appends: {code}");
    }
}

impl Drop for CArray {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { sys::b2nd_free(self.0) };
    }
}

fn signed(numbers: &[u64]) -> Vec<i64> {
    numbers.iter().map(|&number| number as i64).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn write_report(cases: &[Value]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let report = json!({ "arrays": cases });
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("arrays.json"), format!("{report:#}\n")));
    if let Err(error) = written {
        eprintln!("cannot write the report: {error}");
        process::exit(1);
    }
    println!("written to target/bench/arrays.json");
}
