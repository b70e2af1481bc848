//! The crate `blusc`: single chunks of Blosc2, in Rust.
//!
//! It has no arrays. The whole array is read and written as its chunks, with the block size that `blusc` chooses. With
//! Zstandard it stores these chunks uncompressed, so that is not measured.

#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../common.rs"]
mod common;
#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../../../../benches/compare/data.rs"]
mod data;
#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../../../../benches/compare/protocol.rs"]
mod protocol;

use std::collections::HashMap;

use crate::common::{Input, hash_bytes, serve};
use crate::data::{Plan, bytes};
use crate::protocol::{Outcome, Peer, Task, once};
use blusc::{
    BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_SHUFFLE, BLOSC2_CPARAMS_DEFAULTS, BLOSC2_DPARAMS_DEFAULTS,
    BLOSC2_MAX_OVERHEAD,
};

fn main() {
    serve(|input| Library { input, arrays: HashMap::new() });
}

struct Library {
    input: Input,
    /// The chunks of the array with each codec.
    arrays: HashMap<String, Vec<Vec<u8>>>,
}

fn compress(data: &[u8], task: &Task) -> Vec<u8> {
    let mut cparams = BLOSC2_CPARAMS_DEFAULTS;
    cparams.compcode = if task.codec == "lz4" { BLOSC_LZ4 } else { BLOSC_BLOSCLZ };
    cparams.clevel = 5;
    cparams.typesize = 4;
    cparams.filters[5] = BLOSC_SHUFFLE;
    let context = blusc::blosc2_create_cctx(cparams);
    let mut chunk = vec![0; data.len() + BLOSC2_MAX_OVERHEAD];
    let len = blusc::blosc2_compress_ctx(&context, data, &mut chunk);
    assert!((1..data.len() as i32).contains(&len), "the chunk is not compressed: {len} bytes");
    chunk.truncate(len as usize);
    chunk
}

fn decompress_into(chunk: &[u8], target: &mut [u8]) {
    let context = blusc::blosc2_create_dctx(BLOSC2_DPARAMS_DEFAULTS);
    let len = blusc::blosc2_decompress_ctx(&context, chunk, target);
    assert!(len == target.len() as i32, "no data: {len}");
}

impl Peer for Library {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        if task.threads > 1 || !["blosclz", "lz4"].contains(&&*task.codec) {
            return None;
        }
        let plan = self.input.plan;
        let data = bytes(&self.input.items);
        let chunk_len = (plan.chunk_rows * plan.side * 4) as usize;
        let compress_all =
            || data.chunks(chunk_len).map(|data| compress(data, task)).collect::<Vec<_>>();
        match &*task.key {
            "create" => once(task, compress_all, |_| String::new()),
            "read_new" => {
                let chunks = self.arrays.entry(task.codec.clone()).or_insert_with(compress_all);
                let read = || {
                    let mut target = vec![0; data.len()];
                    let targets = target.chunks_mut(chunk_len);
                    chunks.iter().zip(targets).for_each(|(chunk, to)| decompress_into(chunk, to));
                    target
                };
                once(task, read, |bytes| hash_bytes(bytes))
            }
            "compress" | "decompress" => {
                let data = Plan::chunk_data(task.size);
                let data: Vec<u8> = data.iter().flat_map(|item| item.to_le_bytes()).collect();
                let chunk = compress(&data, task);
                let decompress = || {
                    let mut target = vec![0; data.len()];
                    decompress_into(&chunk, &mut target);
                    target
                };
                assert!(decompress() == data, "other data");
                let call = || match &*task.key {
                    "compress" => compress(&data, task),
                    _ => decompress(),
                };
                let calls = || (0..Plan::chunk_calls(task.size)).for_each(|_| drop(call()));
                once(task, calls, |()| String::new())
            }
            _ => None,
        }
    }
}
