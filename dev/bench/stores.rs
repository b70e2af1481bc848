//! A zip file of a thousand arrays: the time to list it and to read one of them, compared with the list of the zip
//! library and with the same array in a separate file. `cargo xtask bench stores` runs it.

use std::fs::File;
use std::hint::black_box;
use std::time::Instant;

use blosc2::NDArray;
use blosc2_store::TreeStore;

const NODES: usize = 1000;
const ROUNDS: usize = 41;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.b2z");
    let alone = folder.path().join("alone.b2nd");
    let items: Vec<i32> =
        (0..10_000i32).map(|item| item.wrapping_mul(-1_640_531_535) >> 12).collect();
    let array = NDArray::from_slice(&items, [100, 100]).unwrap();
    array.save(&alone).unwrap();
    let mut store = TreeStore::create(&path).unwrap();
    for node in 0..NODES {
        store.insert(&format!("/group{}/node{node}", node % 10), array.schunk()).unwrap();
    }
    store.finish().unwrap();
    let len = std::fs::metadata(&path).unwrap().len();
    println!("{NODES} arrays of {} items in {len} bytes\n", items.len());

    let store = TreeStore::open(&path).unwrap();
    let key = "/group7/node507";
    let [zip, list] = medians(
        || zip::ZipArchive::new(File::open(&path).unwrap()).unwrap().len(),
        || TreeStore::open(&path).unwrap().keys().count(),
    );
    let [file, node] = medians(
        || NDArray::open(&alone).unwrap().read::<Vec<i32>>([0..100, 0..100]).unwrap().len(),
        || store.array(key).unwrap().read::<Vec<i32>>([0..100, 0..100]).unwrap().len(),
    );
    println!("                      of reference, ms  ours, ms  ours / reference");
    for (what, reference, ours) in
        [("list, zip library", zip, list), ("read one, own file", file, node)]
    {
        println!("{what:<22} {reference:>15.3} {ours:>9.3} {:>17.2}", ours / reference);
    }
}

/// The medians of both times in ms, measured alternately.
fn medians(reference: impl Fn() -> usize, ours: impl Fn() -> usize) -> [f64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        // The order alternates, and the first round is a warm-up.
        for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let start = Instant::now();
            black_box(if which == 0 { reference() } else { ours() });
            if round > 0 {
                times[which].push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}
