//! The crate `blosc2-pure-rs`: Blosc2 in Rust.

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

use crate::common::{Input, hash_bytes, items, serve};
use crate::data::{Plan, bytes};
use crate::protocol::{Outcome, Peer, Task, once, read_each};
use blosc2_pure_rs::b2nd::{B2ndArray, B2ndMeta};
use blosc2_pure_rs::{CParams, DParams, compress, constants};

fn main() {
    serve(|input| Library { input, arrays: HashMap::new() });
}

struct Library {
    input: Input,
    /// The array with each codec and number of threads.
    arrays: HashMap<(String, usize), B2ndArray>,
}

fn cparams(task: &Task) -> CParams {
    let compcode = match &*task.codec {
        "blosclz" => 0,
        "lz4" => constants::BLOSC_LZ4,
        _ => constants::BLOSC_ZSTD,
    };
    let nthreads = task.threads as i16;
    CParams { compcode, clevel: 5, typesize: 4, nthreads, ..CParams::default() }
}

fn dparams(task: &Task) -> DParams {
    DParams { nthreads: task.threads as i16, ..DParams::default() }
}

impl Library {
    fn create(&self, task: &Task) -> B2ndArray {
        let plan = &self.input.plan;
        let narrow = |shape: [u64; 2]| shape.map(|size| size as i32).to_vec();
        let shape = plan.shape().map(|size| size as i64).to_vec();
        let (chunks, blocks) = (narrow(plan.chunks()), narrow(plan.blocks()));
        let meta = B2ndMeta::new(shape, chunks, blocks, "<f4", 0).expect("the shapes are valid");
        let data = bytes(&self.input.items);
        B2ndArray::from_dense_buffer(meta, data, cparams(task), dparams(task)).expect("an array")
    }

    fn array(&mut self, task: &Task) -> &B2ndArray {
        let key = (task.codec.clone(), task.threads);
        if !self.arrays.contains_key(&key) {
            let array = self.create(task);
            self.arrays.insert(key.clone(), array);
        }
        &self.arrays[&key]
    }
}

impl Peer for Library {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        if !["blosclz", "lz4", "zstd"].contains(&&*task.codec) {
            return None;
        }
        let plan = self.input.plan;
        match &*task.key {
            "create" => once(
                task,
                || self.create(task),
                |array| hash_bytes(&array.to_dense_buffer().expect("items")),
            ),
            "read_new" => {
                let a = self.array(task);
                once(task, || a.to_dense_buffer().expect("items"), |bytes| hash_bytes(bytes))
            }
            "slice_row" | "slice_square" | "slice_rows" | "items" => {
                let (shape, starts) = plan.slices(&task.key);
                let a = self.array(task);
                read_each(task, &starts, |start| {
                    let stop = [0, 1].map(|axis| (start[axis] + shape[axis]) as i64);
                    let start = start.map(|at| at as i64);
                    items(&a.get_slice(&start, &stop).expect("a slice"))
                })
            }
            "orthogonal" | "orthogonal_8" => {
                let signed = |list: Vec<u64>| list.into_iter().map(|at| at as i64).collect();
                let lists = plan.orthogonal(&task.key).map(signed);
                let a = self.array(task);
                once(
                    task,
                    || a.select_orthogonal(&lists).expect("items"),
                    |bytes| hash_bytes(bytes),
                )
            }
            "compress" | "decompress" => {
                let data = Plan::chunk_data(task.size);
                let data: Vec<u8> = data.iter().flat_map(|item| item.to_le_bytes()).collect();
                let compress = || compress::compress(&data, &cparams(task)).expect("a chunk");
                let chunk = compress();
                let decompress = || compress::decompress(&chunk).expect("data");
                assert!(decompress() == data, "other data");
                let call = || match &*task.key {
                    "compress" => compress(),
                    _ => decompress(),
                };
                let calls =
                    || (0..Plan::chunk_calls(task.size)).for_each(|_| drop(black_box(call())));
                once(task, calls, |()| String::new())
            }
            _ => None,
        }
    }
}
