//! Many threads on one array, on one super-chunk, and side by side.

mod common;

use std::thread;

use blosc2::{CParams, Codec, DParams, Filter, NDArray, SChunk, Threads};

use common::{KINDS, Kind, Model, Rng, codecs, data, random_box};

const THREADS: u64 = 8;

fn read_boxes(array: &NDArray, model: &Model, rounds: usize) {
    thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for _ in 0..rounds {
                    let ranges = random_box(&model.shape, &mut rng);
                    let found = array.read_bytes(&ranges).unwrap();
                    assert!(found == model.read(&ranges), "thread {seed}: {ranges:?}");
                }
            });
        }
    });
}

#[test]
fn boxes_of_one_array_are_read_on_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    for (at, filters) in
        [&[Filter::Shuffle][..], &[Filter::Delta, Filter::Shuffle], &[]].into_iter().enumerate()
    {
        let model = Model::new(&[60, 50, 7], 4, Kind::Mixed, 1);
        let builder = NDArray::builder()
            .chunks(&[20, 30, 5])
            .blocks(&[7, 10, 5])
            .cparams(CParams::new().codec(Codec::Lz4).filters(filters));
        let memory = builder.clone().from_bytes(&model.bytes, &model.shape, "<u4", 4).unwrap();
        let path = folder.path().join(format!("{at}.b2nd"));
        let mut file =
            builder.file(&path).from_bytes(&model.bytes, &model.shape, "<u4", 4).unwrap();
        read_boxes(&memory, &model, 60);
        read_boxes(&file, &model, 60);
        // C's own threads below those.
        file.set_dparams(DParams::new().threads(Threads::new(2)));
        read_boxes(&file, &model, 30);
    }
}

#[test]
fn chunks_of_one_super_chunk_are_read_on_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chunks.b2frame");
    let chunks: Vec<Vec<u8>> =
        (0..40).map(|index| data(*Rng(index).pick(&KINDS), 30_000, index)).collect();
    let params = CParams::new().typesize(4);
    let mut file = SChunk::create::<u8>(&path, &params).unwrap();
    let mut memory = SChunk::in_memory::<u8>(&params).unwrap();
    for chunk in &chunks {
        file.append(&chunk[..]).unwrap();
        memory.append(&chunk[..]).unwrap();
    }
    let reopened = SChunk::open(&path).unwrap();
    for schunk in [&file, &memory, &reopened] {
        thread::scope(|scope| {
            for seed in 0..THREADS {
                let chunks = &chunks;
                scope.spawn(move || {
                    let mut rng = Rng(seed);
                    for _ in 0..150 {
                        let index = rng.below(40) as usize;
                        assert!(schunk.chunk::<u8>(index).unwrap() == chunks[index]);
                        assert_eq!((schunk.nchunks(), schunk.chunksize()), (40, 30_000));
                        assert!(schunk.meta().names().is_empty());
                    }
                });
            }
        });
    }
}

#[test]
fn compressing_side_by_side_with_threads_of_cs_own_gives_what_was_given() {
    thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for round in 0..40 {
                    let typesize = *rng.pick(&[1, 4, 16, 200]);
                    let source = data(*rng.pick(&KINDS), typesize * 500, round);
                    let params = CParams::new()
                        .codec(*rng.pick(&codecs()))
                        .typesize(typesize)
                        .level(3)
                        .blocksize(typesize * 32)
                        .threads(Threads::new(1 + rng.below(4) as usize));
                    let chunk = blosc2::compress(&source[..], &params).unwrap();
                    assert!(blosc2::decompress::<u8>(&chunk).unwrap() == source, "{params:?}");
                }
            });
        }
    });
}

#[test]
fn arrays_and_super_chunks_go_to_other_threads() {
    let array = NDArray::from_slice(&[1i32, 2, 3, 4], &[2, 2]).unwrap();
    let read = thread::spawn(move || array.read_all::<i32>().unwrap());
    assert_eq!(read.join().unwrap(), [1, 2, 3, 4]);

    let mut schunk = SChunk::in_memory::<i32>(&CParams::new()).unwrap();
    schunk.append(&[1i32, 2, 3, 4]).unwrap();
    let count = thread::spawn(move || schunk.append(&[5i32, 6, 7, 8]).unwrap());
    assert_eq!(count.join().unwrap(), 2);
}

#[test]
fn arrays_and_super_chunks_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<NDArray>();
    check::<SChunk>();
    check::<blosc2::Error>();
}
