//! The crate `blusc`: single chunks of Blosc2, in Rust.
//!
//! It has no arrays. Chunks that it stores uncompressed are not measured: most chunks of the array are such chunks.

#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../common.rs"]
mod common;
#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../../../../bench/compare/data.rs"]
mod data;
#[allow(dead_code, reason = "each program uses a part of it")]
#[path = "../../../../bench/compare/protocol.rs"]
mod protocol;

use std::hint::black_box;

use crate::common::serve;
use crate::data::Plan;
use crate::protocol::{Outcome, Peer, Task, once};
use blusc::{
    BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_SHUFFLE, BLOSC_ZSTD, BLOSC2_CPARAMS_DEFAULTS,
    BLOSC2_DPARAMS_DEFAULTS, BLOSC2_MAX_OVERHEAD,
};

fn main() {
    serve(|_| Library);
}

struct Library;

impl Peer for Library {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        if !["compress", "decompress"].contains(&&*task.key) {
            return None;
        }
        let data = Plan::chunk_data(task.size);
        let data: Vec<u8> = data.iter().flat_map(|item| item.to_le_bytes()).collect();
        let chunk = compress(&data, task);
        if chunk.len() >= data.len() {
            return None;
        }
        assert!(decompress(&chunk, data.len()) == data, "other data");
        let call = || match &*task.key {
            "compress" => compress(&data, task),
            _ => decompress(&chunk, data.len()),
        };
        let calls = 0..Plan::chunk_calls(task.size);
        once(task, || calls.for_each(|_| drop(black_box(call()))), |()| String::new())
    }
}

fn compress(data: &[u8], task: &Task) -> Vec<u8> {
    let mut cparams = BLOSC2_CPARAMS_DEFAULTS;
    cparams.compcode = match &*task.codec {
        "blosclz" => BLOSC_BLOSCLZ,
        "lz4" => BLOSC_LZ4,
        _ => BLOSC_ZSTD,
    };
    cparams.clevel = 5;
    cparams.typesize = 4;
    cparams.filters[5] = BLOSC_SHUFFLE;
    let context = blusc::blosc2_create_cctx(cparams);
    let mut chunk = vec![0; data.len() + BLOSC2_MAX_OVERHEAD];
    let len = blusc::blosc2_compress_ctx(&context, data, &mut chunk);
    assert!(len > 0, "blusc cannot compress a chunk: error {len}");
    chunk.truncate(len as usize);
    chunk
}

fn decompress(chunk: &[u8], len: usize) -> Vec<u8> {
    let context = blusc::blosc2_create_dctx(BLOSC2_DPARAMS_DEFAULTS);
    let mut target = vec![0; len];
    let written = blusc::blosc2_decompress_ctx(&context, chunk, &mut target);
    assert!(written == len as i32, "blusc cannot decompress a chunk: error {written}");
    target
}
