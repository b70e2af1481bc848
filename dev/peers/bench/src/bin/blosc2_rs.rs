//! The crate `blosc2` of crates.io, version 0.2: other bindings of C-Blosc2.

#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../common.rs"]
mod common;
#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../../../../bench/compare/data.rs"]
mod data;
#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../../../../bench/compare/protocol.rs"]
mod protocol;

use std::collections::HashMap;
use std::hint::black_box;
use std::mem::MaybeUninit;

use crate::common::{Input, serve};
use crate::data::{Plan, hash};
use crate::protocol::{Outcome, Peer, Task, once, read, read_each};
use blosc2::chunk::{Decoder, Encoder};
use blosc2::nd::{Ndarray, NdarrayParams};
use blosc2::{CParams, CompressAlgo, DParams};

fn main() {
    serve(|input| {
        let target = vec![0.0; input.items.len()];
        Library { input, target, arrays: HashMap::new() }
    });
}

struct Library {
    input: Input,
    target: Vec<f32>,
    /// The array with each codec and number of threads: in memory, and an opened file.
    arrays: HashMap<(String, usize), [Ndarray; 2]>,
}

fn cparams(task: &Task) -> CParams {
    let mut cparams = CParams::default();
    let codec = match &*task.codec {
        "lz4" => CompressAlgo::Lz4,
        "lz4hc" => CompressAlgo::Lz4hc,
        "zlib" => CompressAlgo::Zlib,
        "zstd" => CompressAlgo::Zstd,
        _ => CompressAlgo::Blosclz,
    };
    cparams.compressor(codec).clevel(5).nthreads(task.threads);
    cparams.typesize(4).expect("4 is a size");
    cparams
}

fn dparams(task: &Task) -> DParams {
    let mut dparams = DParams::default();
    dparams.nthreads(task.threads);
    dparams
}

impl Library {
    fn create(&self, task: &Task) -> Ndarray {
        let plan = &self.input.plan;
        let [shape, chunks, blocks] = [plan.shape(), plan.chunks(), plan.blocks()]
            .map(|shape| shape.map(|size| size as usize));
        let mut params = NdarrayParams::default();
        params.cparams(cparams(task)).dparams(dparams(task));
        params.chunkshape(Some(&chunks)).blockshape(Some(&blocks));
        Ndarray::from_items(&self.input.items, &shape, &params).expect("an array")
    }

    fn arrays(&mut self, task: &Task) -> &[Ndarray; 2] {
        let key = (task.codec.clone(), task.threads);
        if !self.arrays.contains_key(&key) {
            let arrays = [self.create(task), self.open(task)];
            self.arrays.insert(key.clone(), arrays);
        }
        &self.arrays[&key]
    }

    fn open(&self, task: &Task) -> Ndarray {
        Ndarray::open(&self.input.folder.join(&task.codec)).expect("an array")
    }
}

impl Peer for Library {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        let plan = self.input.plan;
        let slice = |array: &Ndarray| {
            let (shape, starts) = plan.slices(&task.key);
            read_each(task, &starts, |start| {
                let ranges =
                    [0, 1].map(|axis| start[axis] as usize..(start[axis] + shape[axis]) as usize);
                array.slice_items::<f32>(&ranges).expect("a slice")
            })
        };
        match &*task.key {
            "create" => once(
                task,
                || self.create(task),
                |array| hash(&array.to_items::<f32>().expect("items")),
            ),
            "read_new" => {
                let [a, _] = self.arrays(task);
                read(task, || a.to_items::<f32>().expect("items"))
            }
            "read_into" if ["lz4", "zstd"].contains(&&*task.codec) => {
                let mut target = std::mem::take(&mut self.target);
                let [a, _] = self.arrays(task);
                let len = size_of_val(&target[..]);
                // SAFETY: the memory is that of the target, and only initialized bytes are written to it.
                let bytes: &mut [MaybeUninit<u8>] =
                    unsafe { std::slice::from_raw_parts_mut(target.as_mut_ptr().cast(), len) };
                let mut outcome =
                    once(task, || a.to_items_bytes_into(bytes).expect("items"), |_| String::new())?;
                if task.check {
                    outcome.result = hash(&target);
                }
                self.target = target;
                Some(outcome)
            }
            // The threads of an opened file cannot be set.
            "read_file" if task.threads == 1 => {
                let [_, file] = self.arrays(task);
                read(task, || file.to_items::<f32>().expect("items"))
            }
            "slice_row" | "slice_square" | "slice_rows" => slice(&self.arrays(task)[0]),
            "file_slice" if task.threads == 1 => slice(&self.arrays(task)[1]),
            "open_slice" if task.threads == 1 => {
                let (shape, starts) = plan.slices(&task.key);
                read_each(task, &starts, |start| {
                    let ranges = [0, 1]
                        .map(|axis| start[axis] as usize..(start[axis] + shape[axis]) as usize);
                    self.open(task).slice_items::<f32>(&ranges).expect("a slice")
                })
            }
            "items" => {
                let [a, _] = self.arrays(task);
                read_each(task, &plan.slices("items").1, |index| {
                    [a.get::<f32>(&index.map(|at| at as usize)).expect("an item")]
                })
            }
            "compress" | "decompress" => {
                let data = Plan::chunk_data(task.size);
                // SAFETY: each byte of an `i32` is initialized, and the length is that of the data.
                let bytes: &[u8] =
                    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), task.size) };
                let compress = || {
                    let mut encoder = Encoder::new(cparams(task)).expect("an encoder");
                    encoder.compress(bytes).expect("a chunk").into_bytes().into_vec()
                };
                let chunk = compress();
                let decompress = || {
                    let mut decoder = Decoder::new(dparams(task)).expect("a decoder");
                    decoder.decompress(&chunk).expect("data")
                };
                let call = || match &*task.key {
                    "compress" => compress(),
                    _ => decompress(),
                };
                assert!(decompress() == bytes, "other data");
                let calls =
                    || (0..Plan::chunk_calls(task.size)).for_each(|_| drop(black_box(call())));
                once(task, calls, |()| String::new())
            }
            _ => None,
        }
    }
}
