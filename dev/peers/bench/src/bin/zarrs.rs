//! The crate `zarrs`: Zarr V3 with the codec Blosc (Blosc 1), on the same chunks, in memory and in files.

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
use std::sync::Arc;

use crate::common::{Input, serve};
use crate::data::hash;
use crate::protocol::{Outcome, Peer, Task, once, read, read_each};
use rayon::{ThreadPool, ThreadPoolBuilder};
use zarrs::array::codec::{BloscCodec, BloscCodecConfiguration};
use zarrs::array::{Array, ArrayBuilder, ArraySubset, CodecOptions, data_type};
use zarrs::filesystem::FilesystemStore;
use zarrs::storage::ReadableWritableListableStorage;
use zarrs::storage::store::MemoryStore;

type Store = ReadableWritableListableStorage;
type ZarrArray = Array<dyn zarrs::storage::ReadableWritableListableStorageTraits>;

fn main() {
    serve(|input| Library { input, arrays: HashMap::new(), pools: HashMap::new() });
}

struct Library {
    input: Input,
    /// The array with each codec: in memory, and in files.
    arrays: HashMap<String, [ZarrArray; 2]>,
    /// The threads of `zarrs` are those of rayon.
    pools: HashMap<usize, ThreadPool>,
}

fn options(task: &Task) -> CodecOptions {
    CodecOptions::default().with_concurrent_target(task.threads)
}

impl Library {
    fn create(&self, store: Store, task: &Task) -> ZarrArray {
        let plan = &self.input.plan;
        let blosc = format!(
            r#"{{"cname": "{}", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": {}}}"#,
            task.codec,
            plan.block_rows * plan.side * 4
        );
        let blosc: BloscCodecConfiguration = serde_json::from_str(&blosc).expect("a codec");
        let blosc = BloscCodec::new_with_configuration(&blosc).expect("a codec");
        let array = ArrayBuilder::new(
            plan.shape().to_vec(),
            plan.chunks().to_vec(),
            data_type::float32(),
            0.0f32,
        )
        .bytes_to_bytes_codecs(vec![Arc::new(blosc)])
        .build(store, "/a")
        .expect("an array");
        array.store_metadata().expect("metadata");
        let all = array.subset_all();
        array.store_array_subset_opt(&all, &self.input.items[..], &options(task)).expect("items");
        array
    }

    fn arrays(&mut self, task: &Task) -> &[ZarrArray; 2] {
        if !self.arrays.contains_key(&task.codec) {
            let folder = self.input.folder.join(format!("zarr-{}", task.codec));
            let files = Arc::new(FilesystemStore::new(folder).expect("a folder"));
            let arrays =
                [self.create(Arc::new(MemoryStore::new()), task), self.create(files, task)];
            self.arrays.insert(task.codec.clone(), arrays);
        }
        &self.arrays[&task.codec]
    }

    fn work(&mut self, task: &Task) -> Option<Outcome> {
        let plan = self.input.plan;
        let options = options(task);
        let all = |array: &ZarrArray| -> Vec<f32> {
            array.retrieve_array_subset_opt(&array.subset_all(), &options).expect("items")
        };
        let slice = |array: &ZarrArray| {
            let (shape, starts) = plan.slices(&task.key);
            read_each(task, &starts, |start| -> Vec<f32> {
                let ranges = [0, 1].map(|axis| start[axis]..start[axis] + shape[axis]);
                let subset = ArraySubset::new_with_ranges(&ranges);
                array.retrieve_array_subset_opt(&subset, &options).expect("a slice")
            })
        };
        match &*task.key {
            "create" => once(
                task,
                || self.create(Arc::new(MemoryStore::new()), task),
                |array| hash(&all(array)),
            ),
            "read_new" => {
                let [memory, _] = self.arrays(task);
                read(task, || all(memory))
            }
            "read_file" => {
                let [_, files] = self.arrays(task);
                read(task, || all(files))
            }
            "slice_row" | "slice_square" | "slice_rows" | "items" => slice(&self.arrays(task)[0]),
            "file_slice" => slice(&self.arrays(task)[1]),
            _ => None,
        }
    }
}

impl Peer for Library {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        let new = || ThreadPoolBuilder::new().num_threads(task.threads).build().expect("threads");
        let pool = self.pools.remove(&task.threads).unwrap_or_else(new);
        let outcome = pool.install(|| self.work(task));
        self.pools.insert(task.threads, pool);
        outcome
    }
}
