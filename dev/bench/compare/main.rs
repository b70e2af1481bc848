//! This crate, compared with other libraries: `cargo xtask bench` runs it. BENCHMARKS.md describes the method.
//!
//! Environment variables, all optional: `BLOSC2_TEST_PYTHON`, the Python with the packages that peer.py imports, and
//! `BLOSC2_BENCH_PEERS`, the folder with the programs of `dev/peers/bench`. Libraries without them are not measured.

mod c;
mod child;
mod data;
mod machine;
mod measure;
mod memcpy;
mod ours;
mod peak;
mod protocol;
mod report;
mod workloads;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Instant;
use std::{env, fs, thread};

use blosc2_testing::Rng;
use tempfile::TempDir;

use crate::child::Process;
use crate::data::{Plan, hash};
use crate::measure::{Extent, Library, Measured};
use crate::ours::{OurRead, Ours};
use crate::workloads::Group;

/// The hash of the items of [`Plan::FULL`].
const HASH: &str = "fa28e624533dc1da8206418af526256e784eece42acefb61fb4250e9dc2553b8";

/// What the libraries in this process share.
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) items: Vec<f32>,
    folder: TempDir,
    repeated: RefCell<Rc<Vec<f32>>>,
}

impl Shared {
    fn new(plan: Plan, folder: &Path) -> Self {
        let items = plan.items();
        let folder = tempfile::tempdir_in(folder).expect("a folder for files");
        Self { plan, items, folder, repeated: RefCell::default() }
    }

    /// The path of a file of the comparison.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn cores(&self) -> usize {
        cores()
    }

    /// The second operand of expressions, and the array with spikes at one of 100 items.
    pub(crate) fn operands(&self) -> [Vec<f32>; 2] {
        let mut rng = Rng(42);
        let mut spike = |item: &f32| if rng.below(100) == 0 { item + 8.0 } else { *item };
        [self.plan.other_items(), self.items.iter().map(&mut spike).collect()]
    }

    /// This number of items: 1 MiB from the middle of the array, repeated. So arrays of all sizes compress equally.
    pub(crate) fn repeated(&self, len: usize) -> Rc<Vec<f32>> {
        let mut repeated = self.repeated.borrow_mut();
        if repeated.len() != len {
            let half = self.items.len() / 2;
            let piece = &self.items[half..half + half.min(1 << 18)];
            // The old ones are freed first.
            *repeated = Rc::default();
            *repeated = Rc::new(piece.iter().copied().cycle().take(len).collect());
        }
        Rc::clone(&repeated)
    }
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The arguments of the program.
#[derive(Debug, Default)]
struct Args {
    /// Only workloads whose names contain this.
    only: String,
    /// Small data, and each workload once.
    quick: bool,
}

impl Args {
    fn parse(mut args: impl Iterator<Item = String>) -> Self {
        let mut parsed = Self::default();
        while let Some(arg) = args.next() {
            match &*arg {
                "--only" => parsed.only = args.next().expect("--only has a value"),
                "--quick" => parsed.quick = true,
                // From cargo.
                "--bench" => {}
                _ => panic!("the argument {arg} is unknown"),
            }
        }
        parsed
    }
}

fn main() {
    if peak::is_child() {
        return;
    }
    let args = Args::parse(env::args().skip(1));
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let target = if args.quick { target.join("quick") } else { target };
    fs::create_dir_all(&target).expect("a folder for the report");
    let machine = machine::facts();
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    let shared = Rc::new(Shared::new(plan, &target));
    let mut libraries = libraries(&shared);
    let extent = if args.quick { Extent::Once } else { Extent::Full };
    report::print_head(&libraries);
    let start = Instant::now();
    let mut all: Vec<Measured> = Vec::new();
    for workload in workloads::all(&plan, cores(), machine::available_memory()) {
        if !workload.name.contains(&args.only) {
            continue;
        }
        for codec in workload.codecs {
            for &threads in &workload.threads {
                let measured = measure::measure(&workload, codec, threads, &mut libraries, extent);
                report::print(&measured);
                all.push(measured);
            }
        }
    }
    drop(libraries);
    let peaks =
        if "peak memory".contains(&args.only) { peak::measure(&shared) } else { Vec::new() };
    report::write(&target, &machine, &all, &peaks);
    println!("measured in {:.0} s", start.elapsed().as_secs_f64());
}

/// The libraries: this crate first. Starts the processes of the others, and compares their data with ours.
fn libraries(shared: &Rc<Shared>) -> Vec<Library> {
    let python = env::var_os("BLOSC2_TEST_PYTHON");
    let peers = env::var_os("BLOSC2_BENCH_PEERS").map(PathBuf::from);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("dev/bench/compare/peer.py");
    let mut processes = Vec::new();
    let mut start = |name, only, command: Option<Command>| match command {
        Some(mut command) => {
            command.arg(shared.folder.path()).args(shared.plan.to_args());
            processes.push((name, only, Process::start(name, &mut command)));
        }
        None => println!("{name} is not measured: see `cargo xtask bench`"),
    };
    for (name, only, library) in [
        ("python", None, "blosc2"),
        ("python", Some(Group::Compute), "compute"),
        ("numpy", None, "numpy"),
        ("hdf5", None, "hdf5"),
    ] {
        let command = python.as_ref().map(|python| {
            let mut command = Command::new(python);
            command.arg("-I").arg(&script).arg(library);
            command
        });
        start(name, only, command);
    }
    for name in ["blosc2_rs", "pure_rs", "blusc", "zarrs"] {
        let program = peers.as_ref().map(|folder| folder.join(name));
        start(name, None, program.filter(|program| program.exists()).map(Command::new));
    }

    let ours_hash = hash(&shared.items);
    let is_full = shared.plan.side == Plan::FULL.side;
    assert!(!is_full || ours_hash == HASH, "the data has another hash: {ours_hash}");
    let ours = Rc::new(RefCell::new(Ours::new(Rc::clone(shared))));
    let read = OurRead(Rc::clone(&ours));
    let mut libraries = vec![
        Library::new("ours", None, ours),
        Library::new("c", None, c::C::new(Rc::clone(shared))),
        Library::new("memcpy", None, memcpy::Memcpy::new(Rc::clone(shared))),
        Library::new("read", Some(Group::Compute), read),
    ];
    for (name, only, mut process) in processes {
        let theirs = process.line();
        assert!(
            theirs == ours_hash,
            "{name} has other data: the hash is {theirs}, not {ours_hash}"
        );
        libraries.push(Library::new(name, only, process));
    }
    libraries
}
