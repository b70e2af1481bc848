//! Many threads on one array, on one super-chunk, and side by side.

use std::env;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blosc2::{
    CParams, Codec, DParams, Filter, NDArray, OpenOptions, RawItems, SChunk, Selection, Threads,
};

use crate::common::{KINDS, Kind, Model, Rng, codecs, data, native, random_box};

const THREADS: u64 = 8;

/// Runs `work` on `count` threads at once, each with its own number.
fn on_threads(count: u64, work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count).map(|at| scope.spawn(move || work(at))).collect();
        // Joined explicitly: the thread sanitizer sees this, but not the implicit join of the scope.
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

fn read_boxes(array: &NDArray, model: &Model, rounds: usize) {
    on_threads(THREADS, |seed| {
        let mut rng = Rng(seed);
        for _ in 0..rounds {
            let ranges = random_box(&model.shape, &mut rng);
            let found = array.read::<RawItems>(&ranges).unwrap().0;
            assert!(found == model.read(&ranges), "thread {seed}: {ranges:?}");
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
            .chunk_shape([20, 30, 5])
            .block_shape([7, 10, 5])
            .cparams(CParams::new().codec(Codec::Lz4).filters(filters));
        let memory = builder
            .clone()
            .dtype(&native("<u4"), 4)
            .from_slice(RawItems(&model.bytes), &model.shape)
            .unwrap();
        let path = folder.path().join(format!("{at}.b2nd"));
        let mut file = builder
            .target(&path)
            .dtype(&native("<u4"), 4)
            .from_slice(RawItems(&model.bytes), &model.shape)
            .unwrap();
        read_boxes(&memory, &model, 60);
        read_boxes(&file, &model, 60);
        // Blocks that one thread has decoded are there for the others.
        file.set_dparams(file.info().dparams.cache(40 << 10));
        read_boxes(&file, &model, 30);
    }
}

#[test]
fn one_read_or_write_works_on_several_threads() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::new(&[400, 500], 4, Kind::Mixed, 3);
    let threads = Threads::new(4);
    let builder = NDArray::builder()
        .chunk_shape([90, 500])
        .block_shape([20, 250])
        .cparams(CParams::new().codec(Codec::Lz4).threads(threads))
        .options(OpenOptions::new().dparams(DParams::new().threads(threads)));
    let file = builder.clone().target(folder.path().join("threads.b2nd"));
    for builder in [builder, file] {
        let mut array = builder
            .dtype(&native("<u4"), 4)
            .from_slice(RawItems(&model.bytes), &model.shape)
            .unwrap();
        assert!(array.read::<RawItems>(..).unwrap().0 == model.bytes);
        // Threads of the reads below those of the program.
        on_threads(2, |seed| {
            let mut rng = Rng(seed);
            for _ in 0..20 {
                let ranges = random_box(&model.shape, &mut rng);
                assert!(array.read::<RawItems>(&ranges).unwrap().0 == model.read(&ranges));
                let points: Vec<[u64; 2]> =
                    (0..500).map(|_| [rng.below(400), rng.below(500)]).collect();
                let found = array.read::<Vec<u32>>(Selection::points(&points)).unwrap();
                for (point, found) in points.iter().zip(found) {
                    let at = (point[0] * 500 + point[1]) as usize * 4;
                    assert_eq!(found.to_ne_bytes(), model.bytes[at..at + 4]);
                }
            }
        });
        array.write(&[0..400, 10..490], 7u32).unwrap();
        array.append(0, &[8u32; 200 * 500]).unwrap();
        let rows = array.read::<Vec<u32>>(&[0..600, 9..11]).unwrap();
        assert!(
            rows.chunks(2).enumerate().all(|(row, pair)| pair[1] == if row < 400 { 7 } else { 8 })
        );
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
        on_threads(THREADS, |seed| {
            let mut rng = Rng(seed);
            for _ in 0..150 {
                let index = rng.below(40) as usize;
                assert!(schunk.decompress_chunk::<u8>(index).unwrap() == chunks[index]);
                assert_eq!((schunk.nchunks(), schunk.chunksize()), (40, 30_000));
                assert!(schunk.meta().names().is_empty());
            }
        });
    }
}

#[test]
fn random_ranges_of_one_file_are_read_on_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranges.b2frame");
    let items: Vec<u32> = (0..200_000u32).map(|item| item.wrapping_mul(77) >> 5).collect();
    let params = CParams::new().codec(Codec::Lz4).blocksize(4096);
    let mut schunk = SChunk::create::<u32>(&path, &params).unwrap();
    for chunk in items.chunks(9_000) {
        schunk.append(chunk).unwrap();
    }
    drop(schunk);
    let whole = OpenOptions::new().open(&path).unwrap();
    let locked = OpenOptions::new().locking(true).open(&path).unwrap();
    for schunk in [&whole, &locked] {
        on_threads(THREADS, |seed| {
            let mut rng = Rng(seed);
            for round in 0..200 {
                let len = *rng.pick(&[1, 100, 5_000, 30_000]);
                let start = rng.below(items.len() as u64 - len);
                let range = start as usize..(start + len) as usize;
                let found = schunk.read::<u32>(start..start + len).unwrap();
                assert!(found == items[range.clone()], "thread {seed}, round {round}: {range:?}");
            }
        });
    }
}

/// The duration of the longest test: short by default, or as `cargo xtask sanitize` sets it.
fn duration() -> Duration {
    let seconds = env::var("BLOSC2_TEST_SECONDS").map(|text| text.parse().unwrap());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// Arrays and super-chunks to read, with their expected data.
struct Shelf {
    arrays: Vec<(NDArray, Model)>,
    schunks: Vec<(SChunk, Vec<Vec<u8>>)>,
}

impl Shelf {
    /// An array and a super-chunk, each in memory and in a file, with these sizes of items and blocks.
    fn new(folder: &Path, seed: u64, typesize: usize, block: u64, threads: usize) -> Self {
        let mut rng = Rng(seed);
        let filters = [&[Filter::Shuffle][..], &[Filter::Bitshuffle], &[Filter::Delta], &[]]
            [seed as usize % 4];
        let params = CParams::new().codec(*rng.pick(&codecs())).level(3).filters(filters);
        let model = Model::new(&[40, 33, 5], typesize, *rng.pick(&KINDS), seed);
        let builder = NDArray::builder()
            .chunk_shape([16, 20, 5])
            .block_shape([block, 2 * block, 3])
            .cparams(params.clone());
        let dtype = format!("|V{typesize}");
        let path = folder.join(format!("{seed}.b2nd"));
        let shape = &model.shape;
        let arrays = [builder.clone(), builder.target(&path)].map(|each| {
            each.dtype(&dtype, typesize).from_slice(RawItems(&model.bytes), shape).unwrap()
        });

        let chunks: Vec<Vec<u8>> =
            (0..12).map(|at| data(*rng.pick(&KINDS), 300 * typesize, seed + at)).collect();
        let params = params.typesize(typesize).blocksize(block as usize * typesize * 8);
        let path = folder.join(format!("{seed}.b2frame"));
        let mut schunks = [
            SChunk::in_memory::<u8>(&params).unwrap(),
            SChunk::create::<u8>(&path, &params).unwrap(),
        ];
        for schunk in &mut schunks {
            schunk.set_dparams(DParams::new().threads(Threads::new(threads)));
            for chunk in &chunks {
                schunk.append(&chunk[..]).unwrap();
            }
        }
        let arrays = arrays.into_iter().map(|mut array| {
            array.set_dparams(DParams::new().threads(Threads::new(threads)));
            (array, model.clone())
        });
        let schunks = schunks.into_iter().map(|schunk| (schunk, chunks.clone()));
        Self { arrays: arrays.collect(), schunks: schunks.collect() }
    }

    /// Reads random parts of all of them, and compares.
    fn read(&self, rng: &mut Rng) {
        for (array, model) in &self.arrays {
            let ranges = random_box(&model.shape, rng);
            let found = array.read::<RawItems>(&ranges).unwrap().0;
            assert!(found == model.read(&ranges), "{ranges:?} of {array:?}");
        }
        for (schunk, chunks) in &self.schunks {
            let index = rng.below(chunks.len() as u64) as usize;
            assert!(
                schunk.decompress_chunk::<u8>(index).unwrap() == chunks[index],
                "{index} of {schunk:?}"
            );
        }
    }
}

#[test]
fn readers_of_one_thing_and_of_others_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shelf::new(folder.path(), 1, 4, 5, 1);
    let others: Vec<Shelf> = [(2, 1, 3, 1), (3, 16, 8, 2), (4, 200, 4, 1), (5, 300, 2, 4)]
        .map(|(seed, typesize, block, threads)| {
            Shelf::new(folder.path(), seed, typesize, block, threads)
        })
        .into_iter()
        .collect();
    let (rounds, end) = (AtomicUsize::new(0), Instant::now() + duration());
    // Eight threads on the first shelf, and one on each of the others.
    on_threads(THREADS + others.len() as u64, |at| {
        let shelf = at.checked_sub(THREADS).map_or(&shared, |at| &others[at as usize]);
        let mut rng = Rng(at);
        while Instant::now() < end {
            shelf.read(&mut rng);
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    });
    let rounds = rounds.into_inner();
    assert!(rounds > 2 * THREADS as usize, "only {rounds} rounds");
}

#[test]
fn compressing_side_by_side_with_threads_of_cs_own_gives_what_was_given() {
    on_threads(THREADS, |seed| {
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

#[test]
fn arrays_and_super_chunks_go_to_other_threads() {
    let array = NDArray::from_slice(&[1i32, 2, 3, 4], [2, 2]).unwrap();
    let read = thread::spawn(move || array.read::<Vec<i32>>(..).unwrap());
    assert_eq!(read.join().unwrap(), [1, 2, 3, 4]);

    let mut schunk = SChunk::in_memory::<i32>(&CParams::new()).unwrap();
    schunk.append(&[1i32, 2, 3, 4]).unwrap();
    let changed = thread::spawn(move || schunk.append(&[5i32, 6, 7, 8]).map(|()| schunk));
    assert_eq!(changed.join().unwrap().unwrap().nchunks(), 2);
}

#[test]
fn arrays_and_super_chunks_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<NDArray>();
    check::<SChunk>();
    check::<blosc2::Error>();
}
