//! Reads and sums of an array of 256 MiB from servers on the loopback interface, compared with a local file.
//!
//! `cargo bench -p blosc2-object-store --bench servers` prints medians of alternating rounds.

#[path = "../tests/all/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "not all of it is needed here")]
mod server;
#[path = "../tests/all/servers.rs"]
#[allow(dead_code, unreachable_pub, reason = "not all of it is needed here")]
mod servers;

use std::time::{Duration, Instant};

use blosc2::{AxisSelection, CParams, Codec, DParams, NDArray, Threads};
use blosc2_object_store::Remote;

use server::{Faults, Server, bytes};
use servers::{Nginx, write};

const ROUNDS: usize = 9;
const SIDE: u64 = 8192;

fn main() {
    // Smooth in both directions, as in BENCHMARKS.md.
    let item = |[row, column]: [u64; 2]| {
        let (u, v) = (row as f64 / SIDE as f64, column as f64 / SIDE as f64);
        ((u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v) as f32
    };
    for (name, codec) in [("Zstandard", Codec::Zstd), ("LZ4", Codec::Lz4)] {
        let builder = NDArray::builder().chunk_shape([128, SIDE]).block_shape([8, SIDE]);
        let builder = builder.cparams(CParams::new().codec(codec).threads(Threads::new(2)));
        let array = builder.from_fn([SIDE, SIDE], item).unwrap();
        let frame = array.schunk().to_cframe().unwrap();
        println!("{name}: 256 MiB in {} MiB, 64 chunks", frame.len() >> 20);
        compare(&frame);
        count(frame);
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

/// Full reads from nginx and from a file, into the same memory.
fn compare(frame: &[u8]) {
    let nginx = Nginx::start();
    write(&nginx.files(), "a.b2nd", frame);
    let local = NDArray::open(nginx.files().join("a.b2nd")).unwrap();
    let mut target = vec![0f32; (SIDE * SIDE) as usize];
    for threads in [1, 2] {
        let (mut file, mut http, mut transfer) = (Vec::new(), Vec::new(), Vec::new());
        let dparams = DParams::new().threads(Threads::new(threads));
        for _ in 0..ROUNDS {
            let mut read = |array: NDArray, times: &mut Vec<Duration>| {
                let mut array = array;
                array.set_dparams(dparams.clone());
                let start = Instant::now();
                array.read_into(.., &mut target[..]).unwrap();
                times.push(start.elapsed());
            };
            read(NDArray::open(nginx.files().join("a.b2nd")).unwrap(), &mut file);
            let (remote, path) = Remote::from_url(&nginx.url("a.b2nd"), [("", ""); 0]).unwrap();
            let remote = remote.cache(0);
            read(remote.array(&path).unwrap(), &mut http);
            let object = remote.object(&path).unwrap();
            let start = Instant::now();
            blosc2::storage::ReadAt::read_vec_at(&object, 0, frame.len() as u64).unwrap();
            transfer.push(start.elapsed());
        }
        let (file, http) = (median(file), median(http));
        println!(
            "  full read, {threads} threads: file {file:.1} ms, nginx {http:.1} ms ({:.2} of the speed); \
             the transfer alone {:.1} ms",
            file / http,
            median(transfer)
        );
    }
    drop(local);
}

/// Requests, and times with a delay of 20 ms for each request.
fn count(frame: Vec<u8>) {
    let server = Server::start();
    server.put("a.b2nd", frame);
    let open = || {
        let (remote, path) = Remote::from_url(&server.url("a.b2nd"), [("", ""); 0]).unwrap();
        server.taken();
        remote.array(path).unwrap()
    };
    let array = open();
    let report = |what: &str, time: Duration| {
        let (log, most) = server.taken();
        println!(
            "  {what}: {} requests, {} KiB, at most {most} at the same time, {:.1} ms",
            log.len(),
            bytes(&log) >> 10,
            time.as_secs_f64() * 1000.0
        );
    };
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    report("open", Duration::ZERO);
    let time = timed(&|| drop(array.read::<Vec<f32>>((5000, 100..164)).unwrap()));
    report("1 x 64 items", time);
    for delay in [0, 20] {
        let array = open();
        server.taken();
        server.set(Faults { delay: Duration::from_millis(delay), ..Faults::default() });
        let rows: Vec<u64> = (0..64).map(|at| at / 2 * 256 + at % 2 * 64 + 3).collect();
        let selection = (AxisSelection::from(rows), 10..20);
        let time = timed(&|| drop(array.read::<Vec<f32>>(selection.clone()).unwrap()));
        report(&format!("64 boxes in 32 chunks, delay {delay} ms"), time);
        let time = timed(&|| drop(array.read::<Vec<f32>>(..).unwrap()));
        report(&format!("full read, delay {delay} ms"), time);
        let (mut reads, mut sums) = (Vec::new(), Vec::new());
        let mut target = vec![0f32; (SIDE * SIDE) as usize];
        for _ in 0..ROUNDS {
            let start = Instant::now();
            array.read_into(.., &mut target[..]).unwrap();
            reads.push(start.elapsed());
            let start = Instant::now();
            array.lazy::<f32>().sum().unwrap();
            sums.push(start.elapsed());
        }
        let (read, sum) = (median(reads), median(sums));
        println!(
            "  sum, delay {delay} ms: {sum:.1} ms; full read into existing memory: {read:.1} ms ({:.2} of the time)",
            sum / read
        );
        server.set(Faults::default());
    }
}
