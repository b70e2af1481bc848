//! C-Blosc2: the functions of the library that this crate compiles, called directly.

use std::collections::HashMap;
use std::ffi::CString;
use std::hint::black_box;
use std::path::Path;
use std::rc::Rc;
use std::{fs, ptr};

use blosc2::Codec;
use blosc2_sys as sys;

use crate::Shared;
use crate::data::{Plan, hash};
use crate::protocol::{Outcome, Peer, Task, once, read, read_each, read_into};

/// C-Blosc2, with the arrays that it reads.
pub(crate) struct C {
    shared: Rc<Shared>,
    /// The array with each codec: in memory, and an opened file.
    arrays: HashMap<String, [Array; 2]>,
    target: Vec<f32>,
}

impl C {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        let target = vec![0.0; shared.items.len()];
        Self { shared, arrays: HashMap::new(), target }
    }

    /// The arrays with the codec of the task, set to its number of threads.
    fn arrays(&mut self, task: &Task) -> &mut [Array; 2] {
        let shared = &self.shared;
        let arrays = self.arrays.entry(task.codec.clone()).or_insert_with(|| {
            let task = Task { threads: shared.cores(), ..task.clone() };
            let memory = Array::whole(&shared.plan, &shared.items, &task, None);
            [memory, Array::open(&shared.file(&task.codec))]
        });
        arrays.iter_mut().for_each(|array| array.set_threads(task));
        arrays
    }

    fn reads(&mut self, task: &Task) -> Option<Outcome> {
        let plan = self.shared.plan;
        let [a, file] = self.arrays(task);
        match &*task.key {
            "read_new" => read(task, || a.read_new(plan.bytes() as usize / 4)),
            "read_file" => read(task, || file.read_new(plan.bytes() as usize / 4)),
            "slice_row" | "slice_square" | "slice_rows" | "items" => a.slices(&plan, task),
            "file_slice" => file.slices(&plan, task),
            "orthogonal" | "orthogonal_8" => {
                let lists = plan.orthogonal(&task.key);
                read(task, || a.orthogonal(&lists))
            }
            "points" => {
                let at = |[row, column]: [u64; 2]| (row * plan.side + column) as i64;
                let points: Vec<i64> = plan.points().into_iter().map(at).collect();
                read(task, || a.points(&points))
            }
            _ => None,
        }
    }

    fn appends(&self, task: &Task) -> Option<Outcome> {
        let plan = &self.shared.plan;
        let (count, len) = plan.appends(&task.key);
        let pieces = || self.shared.items[..count * len].chunks_exact(len);
        if task.key == "schunk_append" {
            let append = || {
                let mut schunk = SChunk::new(task);
                pieces().for_each(|piece| schunk.append(piece));
                schunk
            };
            return once(task, append, |schunk| schunk.cbytes().to_string());
        }
        let append = || {
            let (chunk, block) = (plan.append_chunk, plan.append_block());
            let array = Array::new(&[0], &[chunk as u64], &[block as u64], &[], task, None);
            pieces().for_each(|piece| array.append(piece));
            array
        };
        once(task, append, |array| hash(&array.read_new(count * len)))
    }
}

impl Peer for C {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        let shared = Rc::clone(&self.shared);
        let (plan, items) = (&shared.plan, &shared.items[..]);
        match &*task.key {
            "create" => once(
                task,
                || Array::whole(plan, items, task, None),
                |array| hash(&array.read_new(items.len())),
            ),
            "create_file" => {
                let path = shared.file("created-by-c");
                let create = || {
                    let _ = fs::remove_file(&path);
                    Array::whole(plan, items, task, Some(&path))
                };
                once(task, create, |array| array.cbytes().to_string())
            }
            "write_chunk" => {
                let written = &items[..(plan.chunk_rows * plan.side) as usize];
                let [a, _] = self.arrays(task);
                once(task, || a.write([plan.chunk_rows, plan.side], written), |()| String::new())
            }
            "read_into" => {
                let mut target = std::mem::take(&mut self.target);
                let [a, _] = self.arrays(task);
                let outcome = read_into(task, &mut target, |target| a.read(target));
                self.target = target;
                outcome
            }
            "open_slice" => {
                let (shape, starts) = plan.slices(&task.key);
                let path = shared.file(&task.codec);
                read_each(task, &starts, |start| {
                    let mut array = Array::open(&path);
                    array.set_threads(task);
                    array.slice(start, shape)
                })
            }
            "append_chunks" | "append" | "appender" | "schunk_append" => self.appends(task),
            "compress" | "decompress" | "chunk_append" | "chunk_read" => chunks(task),
            "read_new" | "read_file" | "slice_row" | "slice_square" | "slice_rows" | "items"
            | "file_slice" | "orthogonal" | "orthogonal_8" | "points" => self.reads(task),
            _ => None,
        }
    }
}

/// Single chunks, and chunks of super-chunks in memory.
fn chunks(task: &Task) -> Option<Outcome> {
    let data = Plan::chunk_data(task.size);
    let mut schunk = SChunk::new(task);
    let mut call: Box<dyn FnMut()> = match &*task.key {
        "compress" => Box::new(|| drop(black_box(compress(&data, task)))),
        "decompress" => {
            let chunk = compress(&data, task);
            Box::new(move || drop(black_box(decompress(&chunk))))
        }
        "chunk_append" => Box::new(|| schunk.append(&data)),
        _ => {
            schunk.append(&data);
            let mut target = vec![0; data.len()];
            Box::new(move || schunk.read(0, black_box(&mut target)))
        }
    };
    let calls = || (0..Plan::chunk_calls(task.size)).for_each(|_| call());
    once(task, calls, |()| compress(&data, task).len().to_string())
}

/// The parameters that this crate passes to C for this task.
fn cparams(task: &Task) -> sys::blosc2_cparams {
    let mut cparams = sys::blosc2_cparams_defaults();
    let codec: Codec = task.codec.parse().expect("the codec is known");
    cparams.compcode = codec.code();
    cparams.clevel = 5;
    cparams.typesize = 4;
    cparams.splitmode = sys::BLOSC_AUTO_SPLIT;
    cparams.nthreads = task.threads as i16;
    cparams
}

fn dparams(task: &Task) -> sys::blosc2_dparams {
    let mut dparams = sys::blosc2_dparams_defaults();
    dparams.nthreads = task.threads as i16;
    dparams
}

fn compress(data: &[i32], task: &Task) -> Vec<u8> {
    let len = size_of_val(data);
    let room = len + sys::BLOSC2_MAX_OVERHEAD as usize;
    let mut chunk: Vec<u8> = Vec::with_capacity(room);
    // SAFETY: the lengths are those of the buffers, the parameters are valid, and the context is freed once. C has
    // written the returned number of bytes.
    unsafe {
        let context = sys::blosc2_create_cctx(cparams(task));
        let (from, to) = (data.as_ptr().cast(), chunk.as_mut_ptr().cast());
        let written = sys::blosc2_compress_ctx(context, from, len as i32, to, room as i32);
        sys::blosc2_free_ctx(context);
        assert!(written > 0, "C cannot compress a chunk: error {written}");
        chunk.set_len(written as usize);
    }
    chunk
}

fn decompress(chunk: &[u8]) -> Vec<i32> {
    let (mut nbytes, mut cbytes, mut blocksize) = (0, 0, 0);
    // SAFETY: C has written the chunk; the context is freed once. C has written the returned number of bytes.
    unsafe {
        let at = chunk.as_ptr().cast();
        sys::blosc2_cbuffer_sizes(at, &mut nbytes, &mut cbytes, &mut blocksize);
        let mut items: Vec<i32> = Vec::with_capacity(nbytes as usize / size_of::<i32>());
        let context = sys::blosc2_create_dctx(sys::blosc2_dparams_defaults());
        let to = items.as_mut_ptr().cast();
        let written = sys::blosc2_decompress_ctx(context, at, cbytes, to, nbytes);
        sys::blosc2_free_ctx(context);
        assert!(written == nbytes, "C cannot decompress a chunk: error {written}");
        items.set_len(nbytes as usize / size_of::<i32>());
        items
    }
}

/// A super-chunk in memory.
struct SChunk(*mut sys::blosc2_schunk);

impl SChunk {
    fn new(task: &Task) -> Self {
        let (mut cparams, mut dparams) = (cparams(task), dparams(task));
        let mut storage = sys::blosc2_storage_defaults();
        (storage.cparams, storage.dparams) = (&mut cparams, &mut dparams);
        // SAFETY: C copies what the storage points to.
        let schunk = unsafe { sys::blosc2_schunk_new(&mut storage) };
        assert!(!schunk.is_null(), "C cannot make a super-chunk");
        Self(schunk)
    }

    fn append<T>(&mut self, data: &[T]) {
        // SAFETY: the length is that of the data, which C only reads.
        let nchunks = unsafe {
            let len = size_of_val(data) as i32;
            sys::blosc2_schunk_append_buffer(self.0, data.as_ptr().cast(), len)
        };
        assert!(nchunks > 0, "C cannot append a chunk: error {nchunks}");
    }

    fn read(&mut self, index: i64, target: &mut [i32]) {
        let len = size_of_val(target) as i32;
        // SAFETY: the length is that of the target.
        let read = unsafe {
            sys::blosc2_schunk_decompress_chunk(self.0, index, target.as_mut_ptr().cast(), len)
        };
        assert!(read == len, "C cannot decompress chunk {index}: error {read}");
    }

    fn cbytes(&self) -> i64 {
        // SAFETY: the super-chunk exists.
        unsafe { (*self.0).cbytes }
    }
}

impl Drop for SChunk {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { sys::blosc2_schunk_free(self.0) };
    }
}

/// An array.
struct Array(*mut sys::b2nd_array_t);

impl Array {
    /// A new array with these items, in memory or in a file.
    fn new(
        shape: &[u64],
        chunks: &[u64],
        blocks: &[u64],
        items: &[f32],
        task: &Task,
        path: Option<&Path>,
    ) -> Self {
        let (mut cparams, mut dparams) = (cparams(task), dparams(task));
        let path = path.map(c_path);
        let mut storage = sys::blosc2_storage_defaults();
        (storage.cparams, storage.dparams) = (&mut cparams, &mut dparams);
        storage.contiguous = path.is_some();
        storage.urlpath = path.as_ref().map_or(ptr::null_mut(), |path| path.as_ptr().cast_mut());
        let narrow = |shape: &[u64]| shape.iter().map(|&size| size as i32).collect::<Vec<_>>();
        let (chunks, blocks, shape) = (narrow(chunks), narrow(blocks), signed(shape));
        let mut array = ptr::null_mut();
        // SAFETY: C copies the shapes, the dtype and what the storage points to; the shapes have one number per
        // dimension; the context is freed once.
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
            assert!(!context.is_null(), "C cannot make the context of an array");
            let len = size_of_val(items) as i64;
            let code = sys::b2nd_from_cbuffer(context, &mut array, items.as_ptr().cast(), len);
            assert!(code == 0, "C cannot make an array: error {code}");
            sys::b2nd_free_ctx(context);
        }
        Self(array)
    }

    fn whole(plan: &Plan, items: &[f32], task: &Task, path: Option<&Path>) -> Self {
        Self::new(&plan.shape(), &plan.chunks(), &plan.blocks(), items, task, path)
    }

    fn open(path: &Path) -> Self {
        let mut array = ptr::null_mut();
        // SAFETY: C copies the path.
        let code = unsafe { sys::b2nd_open(c_path(path).as_ptr(), &mut array) };
        assert!(code == 0, "C cannot open {}: error {code}", path.display());
        Self(array)
    }

    /// Replaces the contexts, as python-blosc2 does.
    fn set_threads(&mut self, task: &Task) {
        let (mut cparams, mut dparams) = (cparams(task), dparams(task));
        // SAFETY: the super-chunk owns its contexts and frees the new ones. The contexts keep a pointer to it.
        unsafe {
            let schunk = (*self.0).sc;
            (cparams.schunk, dparams.schunk) = (schunk.cast(), schunk.cast());
            cparams.blocksize = (*schunk).blocksize;
            sys::blosc2_free_ctx((*schunk).cctx);
            (*schunk).cctx = sys::blosc2_create_cctx(cparams);
            sys::blosc2_free_ctx((*schunk).dctx);
            (*schunk).dctx = sys::blosc2_create_dctx(dparams);
        }
    }

    fn read(&self, target: &mut [f32]) {
        let len = size_of_val(target) as i64;
        // SAFETY: the length is that of the target.
        let code = unsafe { sys::b2nd_to_cbuffer(self.0, target.as_mut_ptr().cast(), len) };
        assert!(code == 0, "C cannot read an array: error {code}");
    }

    /// Reads all items into memory that has not been used.
    fn read_new(&self, items: usize) -> Vec<f32> {
        fill(items, |target, len| {
            // SAFETY: the length is that of the target.
            unsafe { sys::b2nd_to_cbuffer(self.0, target.cast(), len) }
        })
    }

    fn slice(&self, start: &[u64; 2], shape: [u64; 2]) -> Vec<f32> {
        let stop = [0, 1].map(|axis| (start[axis] + shape[axis]) as i64);
        let (start, shape) = (start.map(|at| at as i64), shape.map(|len| len as i64));
        fill((shape[0] * shape[1]) as usize, |target, len| {
            let (start, stop, shape) = (start.as_ptr(), stop.as_ptr(), shape.as_ptr());
            // SAFETY: there are two dimensions; the length is that of the target, which C checks against the shape.
            unsafe { sys::b2nd_get_slice_cbuffer(self.0, start, stop, target.cast(), shape, len) }
        })
    }

    fn slices(&self, plan: &Plan, task: &Task) -> Option<Outcome> {
        let (shape, starts) = plan.slices(&task.key);
        read_each(task, &starts, |start| self.slice(start, shape))
    }

    fn orthogonal(&self, lists: &[Vec<u64>; 2]) -> Vec<f32> {
        let mut lists = [signed(&lists[0]), signed(&lists[1])];
        let mut lens = [lists[0].len() as i64, lists[1].len() as i64];
        let mut shape = lens;
        let [rows, columns] = &mut lists;
        let mut starts = [rows.as_mut_ptr(), columns.as_mut_ptr()];
        fill(rows.len() * columns.len(), |target, len| {
            let (starts, lens, shape) =
                (starts.as_mut_ptr(), lens.as_mut_ptr(), shape.as_mut_ptr());
            // SAFETY: there are two dimensions, and lists of these lengths; the length is that of the target.
            unsafe {
                let (array, target) = (self.0, target.cast());
                sys::b2nd_get_orthogonal_selection(array, starts, lens, target, shape, len)
            }
        })
    }

    /// Reads points by their indices in C order.
    fn points(&self, points: &[i64]) -> Vec<f32> {
        fill(points.len(), |target, len| {
            let (count, at) = (points.len() as i64, points.as_ptr());
            // SAFETY: the lengths are those of the points and the target.
            unsafe { sys::b2nd_get_sparse_cbuffer(self.0, count, at, target.cast(), len) }
        })
    }

    /// Writes a slice that starts at the first item.
    fn write(&mut self, shape: [u64; 2], items: &[f32]) {
        let (start, stop, len) = ([0; 2], shape.map(|len| len as i64), size_of_val(items) as i64);
        // SAFETY: there are two dimensions; the length is that of the items, which C only reads.
        let code = unsafe {
            let (from, shape, stop) = (items.as_ptr().cast(), stop.as_ptr(), stop.as_ptr());
            sys::b2nd_set_slice_cbuffer(from, shape, len, start.as_ptr(), stop, self.0)
        };
        assert!(code == 0, "C cannot write a slice: error {code}");
    }

    fn append(&self, items: &[f32]) {
        let len = size_of_val(items) as i64;
        // SAFETY: the length is that of the items, which C only reads.
        let code = unsafe { sys::b2nd_append(self.0, items.as_ptr().cast(), len, 0) };
        assert!(code == 0, "C cannot append to an array: error {code}");
    }

    fn cbytes(&self) -> i64 {
        // SAFETY: the array and its super-chunk exist.
        unsafe { (*(*self.0).sc).cbytes }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { sys::b2nd_free(self.0) };
    }
}

/// New memory with this many items, which `write` fills. It gets the address and the number of bytes.
fn fill(items: usize, write: impl FnOnce(*mut f32, i64) -> i32) -> Vec<f32> {
    let mut target: Vec<f32> = Vec::with_capacity(items);
    let code = write(target.as_mut_ptr(), (items * size_of::<f32>()) as i64);
    assert!(code == 0, "C cannot read an array: error {code}");
    // SAFETY: C has written all items.
    unsafe { target.set_len(items) };
    target
}

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().expect("the path is UTF-8")).expect("the path has no zero byte")
}

fn signed(numbers: &[u64]) -> Vec<i64> {
    numbers.iter().map(|&number| number as i64).collect()
}
