//! Reductions, compared with a read of the whole array into existing memory: both are measured alternately in one run.
//! `cargo xtask bench reductions` runs it; an argument selects the reductions whose names contain it.
//!
//! A ratio is the time of the read divided by that of the reduction, of the shortest times and of the medians.

use std::env;
use std::hint::black_box;
use std::time::{Duration, Instant};

use blosc2::{CParams, Codec, DParams, Element, NDArray, Threads};

const SIDE: u64 = 8192;
const ROUNDS: usize = 15;
const THREADS: usize = 2;

/// The array of `cargo xtask bench`: smooth in both directions.
fn array<T: Element>(item: impl Fn(f64) -> T + Sync) -> NDArray {
    let threads = Threads::new(THREADS);
    let at = |index: u64| index as f64 / SIDE as f64;
    let item = |[row, column]: [u64; 2]| {
        let (u, v) = (at(row), at(column));
        item((u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v)
    };
    NDArray::builder()
        .chunks([256, SIDE])
        .blocks([8, SIDE])
        .cparams(CParams::new().codec(Codec::Lz4).level(5).threads(threads))
        .dparams(DParams::new().threads(threads))
        .from_fn([SIDE, SIDE], item)
        .unwrap()
}

fn time(call: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    call();
    start.elapsed()
}

/// Measures the calls, and prints a line for each.
fn measure<T: Element + Default>(
    array: &NDArray,
    dtype: &str,
    calls: &mut [(&str, Box<dyn FnMut() + '_>)],
) {
    let wanted = env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let mut items = vec![T::default(); (SIDE * SIDE) as usize];
    for (name, call) in calls {
        if !format!("{dtype} {name}").contains(&wanted) {
            continue;
        }
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            times[0].push(time(&mut || array.read_into(.., black_box(&mut items)).unwrap()));
            times[1].push(time(call));
        }
        times.iter_mut().for_each(|times| times.sort_unstable());
        let [read, own] = &times;
        let ratio = |at: usize| read[at].as_secs_f64() / own[at].as_secs_f64();
        let ms = own[0].as_secs_f64() * 1e3;
        println!("{dtype:4} {name:18} {ms:8.2} ms {:6.2} {:6.2}", ratio(0), ratio(ROUNDS / 2));
    }
}

macro_rules! call {
    ($call:expr) => {
        Box::new(|| _ = black_box($call.unwrap()))
    };
}

macro_rules! reductions {
    ($type:ty, $name:literal, $item:expr) => {{
        let array = array::<$type>($item);
        let e = || array.lazy::<$type>();
        let edges: Vec<f64> = (0..=100).map(|edge| f64::from(edge) * 0.0225).collect();
        measure::<$type>(
            &array,
            $name,
            &mut [
                ("sum", call!(e().sum())),
                ("mean over axis 0", call!(e().axes(0).mean())),
                ("mean over axis 1", call!(e().axes(1).mean())),
                ("variance", call!(e().var(0))),
                ("variance, axis 0", call!(e().axes(0).var(0))),
                ("variance, axis 1", call!(e().axes(1).var(0))),
                ("min", call!(e().min())),
                ("max", call!(e().max())),
                ("min, axis 0", call!(e().axes(0).min())),
                ("argmin", call!(e().argmin())),
                ("argmax", call!(e().argmax())),
                ("argmax, axis 0", call!(e().axes(0).argmax())),
                // No item ends the evaluation early.
                ("any", call!(e().axes(1).any())),
                ("all", call!(e().axes(1).all())),
                ("count_nonzero", call!(e().count_nonzero())),
                ("describe", call!(e().describe(&[]))),
                ("histogram", call!(e().describe(&edges))),
            ],
        );
    }};
}

fn main() {
    println!("dtype reduction       shortest    ratio of shortest, of medians");
    reductions!(f32, "f32", |item| item as f32);
    reductions!(f64, "f64", |item| item);
    reductions!(i32, "i32", |item| (item * 1e6) as i32);
    reductions!(u8, "u8", |item| (item * 100.0) as u8);
}
