//! This crate.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use blosc2::compute::{Reduced, zip};
use blosc2::storage::MappedFile;
use blosc2::{
    Appender, CParams, Codec, DParams, NDArray, NDArrayBuilder, OpenOptions, SChunk, Selection,
    Target,
};

use crate::Shared;
use crate::data::{Plan, hash};
use crate::protocol::{Outcome, Peer, Task, once, read, read_each, read_into};

/// This crate, with the arrays that it reads.
pub(crate) struct Ours {
    shared: Rc<Shared>,
    /// The arrays with each codec.
    arrays: HashMap<String, Arrays>,
    /// The last array of the workload `read_size`.
    sized: Option<(usize, NDArray)>,
    /// The memory that arrays are read into.
    target: Vec<f32>,
}

/// The arrays with one codec.
struct Arrays {
    /// In memory.
    a: NDArray,
    /// The second operand of expressions, and the array with spikes.
    operands: Option<[NDArray; 2]>,
    path: PathBuf,
    /// The opened file, without and with a cache of decoded blocks.
    file: NDArray,
    cached: NDArray,
}

impl Ours {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        let target = vec![0.0; shared.items.len()];
        Self { shared, arrays: HashMap::new(), sized: None, target }
    }

    /// The arrays with the codec of the task, set to its number of threads. Also makes the file of the array.
    fn arrays(&mut self, task: &Task) -> &mut Arrays {
        let shared = &self.shared;
        let arrays = self.arrays.entry(task.codec.clone()).or_insert_with(|| {
            let a = array(shared, &shared.items, task);
            let path = shared.file(&task.codec);
            a.save(&path).unwrap();
            let file = NDArray::open(&path).unwrap();
            let mut cached = NDArray::open(&path).unwrap();
            cached.set_dparams(cached.info().dparams.cache(shared.plan.bytes() as usize));
            Arrays { a, operands: None, path, file, cached }
        });
        for array in [&mut arrays.a, &mut arrays.file, &mut arrays.cached] {
            array.set_dparams(dparams(task));
        }
        arrays.a.set_cparams(cparams(task)).unwrap();
        arrays
    }

    /// The operands of expressions, in files too.
    fn operands(&mut self, task: &Task) -> &Arrays {
        let shared = Rc::clone(&self.shared);
        let arrays = self.arrays(task);
        let operands = arrays.operands.get_or_insert_with(|| {
            let operands = shared.operands().map(|items| array(&shared, &items, task));
            for (name, operand) in ["b", "spikes"].iter().zip(&operands) {
                operand.save(shared.file(&format!("{name}-{}", task.codec))).unwrap();
            }
            operands
        });
        operands.iter_mut().for_each(|operand| operand.set_dparams(dparams(task)));
        arrays
    }

    fn reads(&mut self, task: &Task) -> Option<Outcome> {
        let plan = self.shared.plan;
        let Arrays { a, file, cached, .. } = self.arrays(task);
        let slice = |array: &NDArray| {
            let (shape, starts) = plan.slices(&task.key);
            read_each(task, &starts, |start| array.read::<Vec<f32>>(ranges(start, shape)).unwrap())
        };
        match &*task.key {
            "read_new" => read(task, || a.read::<Vec<f32>>(..).unwrap()),
            "read_file" => read(task, || file.read::<Vec<f32>>(..).unwrap()),
            "slice_row" | "slice_square" | "slice_rows" => slice(a),
            "file_slice" => slice(file),
            "cached_slice" => slice(cached),
            "items" => {
                read_each(task, &plan.slices("items").1, |index| [a.item::<f32>(index).unwrap()])
            }
            "orthogonal" | "orthogonal_8" => {
                let lists = plan.orthogonal(&task.key);
                read(task, || a.read::<Vec<f32>>(&lists).unwrap())
            }
            "points" => {
                let points = plan.points();
                read(task, || a.read::<Vec<f32>>(Selection::points(&points)).unwrap())
            }
            _ => None,
        }
    }

    fn opens(&mut self, task: &Task) -> Option<Outcome> {
        let (shape, starts) = self.shared.plan.slices(&task.key);
        let path = self.arrays(task).path.clone();
        let options = OpenOptions::new().dparams(dparams(task));
        read_each(task, &starts, |start| {
            let array = if task.key == "map_slice" {
                // SAFETY: no program changes the file during the comparison.
                let map = unsafe { MappedFile::open(&path) }.unwrap();
                NDArray::open_with(Target::storage(map), &options).unwrap()
            } else {
                NDArray::open_with(&path, &options).unwrap()
            };
            array.read::<Vec<f32>>(ranges(start, shape)).unwrap()
        })
    }

    fn writes(&mut self, task: &Task) -> Option<Outcome> {
        let shared = Rc::clone(&self.shared);
        let (plan, items) = (&shared.plan, &shared.items[..]);
        let builder = || builder(plan, task);
        match &*task.key {
            "create" => once(task, || builder().from_slice(items, plan.shape()).unwrap(), all),
            "create_file" => {
                let builder = || {
                    builder()
                        .target(shared.file("created"))
                        .options(OpenOptions::new().replace(true))
                };
                let create = || builder().from_slice(items, plan.shape()).unwrap();
                once(task, create, |array| array.schunk().cbytes().to_string())
            }
            "write_chunk" => {
                let written = &items[..(plan.chunk_rows * plan.side) as usize];
                let a = &mut self.arrays(task).a;
                once(
                    task,
                    || a.write((0..plan.chunk_rows, ..), written).unwrap(),
                    |()| String::new(),
                )
            }
            _ => None,
        }
    }

    fn appends(&self, task: &Task) -> Option<Outcome> {
        let plan = &self.shared.plan;
        let (count, len) = plan.appends(&task.key);
        let pieces = || self.shared.items[..count * len].chunks_exact(len);
        let empty =
            || flat(plan.append_chunk, plan.append_block(), task).zeros::<f32>([0]).unwrap();
        match &*task.key {
            "appender" => {
                let append = || {
                    let mut appender = Appender::new(empty(), 0).unwrap();
                    pieces().for_each(|piece| appender.append(piece).unwrap());
                    appender.finish().unwrap()
                };
                once(task, append, all)
            }
            "schunk_append" => {
                let append = || {
                    let mut schunk = SChunk::in_memory::<f32>(cparams(task)).unwrap();
                    pieces().for_each(|piece| {
                        schunk.append(piece).unwrap();
                    });
                    schunk
                };
                once(task, append, |schunk| schunk.cbytes().to_string())
            }
            _ => {
                let append = || {
                    let mut array = empty();
                    pieces().for_each(|piece| array.append(0, piece).unwrap());
                    array
                };
                once(task, append, all)
            }
        }
    }

    fn sizes(&mut self, task: &Task) -> Option<Outcome> {
        let source = self.shared.repeated(task.size / 4);
        let create = || {
            let (chunk, block) = Plan::size_shapes(source.len());
            let array = flat(chunk, block, task);
            array.from_slice(&source[..], [source.len() as u64]).unwrap()
        };
        if task.key == "write_size" {
            self.sized = None;
            return once(task, create, |array| array.len().to_string());
        }
        let (_, array) = match self.sized.take() {
            Some((size, array)) if size == task.size => self.sized.insert((size, array)),
            _ => self.sized.insert((task.size, create())),
        };
        array.set_dparams(dparams(task));
        read(task, || array.read::<Vec<f32>>(..).unwrap())
    }

    fn compute(&mut self, task: &Task) -> Option<Outcome> {
        let plan = self.shared.plan;
        let Arrays { a, operands, .. } = self.operands(task);
        let [b, spikes] = operands.as_ref()?;
        let e = || a.lazy::<f32>();
        let number = |number: &f32| f64::from(*number).to_string();
        let flag = |flag: &bool| u8::from(*flag).to_string();
        let total = |means: &Reduced<f32>| {
            means.items().iter().map(|&item| f64::from(item)).sum::<f64>().to_string()
        };
        match &*task.key {
            "sum" => once(task, || e().sum().unwrap(), number),
            "mean_0" => once(task, || e().axes(0).mean().unwrap(), total),
            "mean_1" => once(task, || e().axes(1).mean().unwrap(), total),
            "var" => once(task, || e().var(0).unwrap(), number),
            "min" => once(task, || e().min().unwrap(), number),
            "max" => once(task, || e().max().unwrap(), number),
            "argmin" => once(task, || e().argmin().unwrap(), |index| index.to_string()),
            "argmax" => once(task, || e().argmax().unwrap(), |index| index.to_string()),
            // No item decides early.
            "any" => once(task, || e().map(|x| x > 1000.0).any().unwrap(), flag),
            "all" => once(task, || e().map(|x| x < 1000.0).all().unwrap(), flag),
            "count" => {
                let count = || e().map(|x| x > Plan::THRESHOLD).count_nonzero().unwrap();
                once(task, count, |count| count.to_string())
            }
            "describe" => once(task, || e().describe(&[]).unwrap(), |_| String::new()),
            "histogram" => {
                let edges: Vec<f64> = (0..=100).map(|edge| f64::from(edge) * 0.0225).collect();
                once(task, || e().describe(&edges).unwrap(), |_| String::new())
            }
            "sum_product" => {
                let sum = || zip((a, b)).map(|(x, y): (f32, f32)| x * y + 1.0).sum().unwrap();
                once(task, sum, number)
            }
            "create_expr" => {
                let create = || e().map(|x| x * 2.0 + 1.0).create(builder(&plan, task)).unwrap();
                once(task, create, all)
            }
            "select" => read(task, || e().select(|x| x > Plan::THRESHOLD).items().unwrap()),
            "select_spikes" => {
                read(task, || spikes.lazy::<f32>().select(|x| x > 4.0).items().unwrap())
            }
            _ => None,
        }
    }
}

/// The baseline of computations: a read of the whole array into existing memory.
pub(crate) struct OurRead(pub(crate) Rc<RefCell<Ours>>);

impl Peer for OurRead {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        let task = Task { key: "read_into".to_owned(), check: false, ..task.clone() };
        self.0.borrow_mut().run(&task)
    }
}

impl Peer for Rc<RefCell<Ours>> {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        self.borrow_mut().run(task)
    }
}

impl Peer for Ours {
    fn run(&mut self, task: &Task) -> Option<Outcome> {
        match &*task.key {
            "read_into" => {
                let mut target = std::mem::take(&mut self.target);
                let a = &self.arrays(task).a;
                let outcome = read_into(task, &mut target, |to| a.read_into(.., to).unwrap());
                self.target = target;
                outcome
            }
            "open_slice" | "map_slice" => self.opens(task),
            "create" | "create_file" | "write_chunk" => self.writes(task),
            "append_chunks" | "append" | "appender" | "schunk_append" => self.appends(task),
            "write_size" | "read_size" => self.sizes(task),
            "compress" | "decompress" | "chunk_append" | "chunk_read" => chunks(task),
            _ => self.reads(task).or_else(|| self.compute(task)),
        }
    }
}

/// Single chunks, and chunks of super-chunks in memory.
fn chunks(task: &Task) -> Option<Outcome> {
    let data = Plan::chunk_data(task.size);
    let params = cparams(task);
    let mut schunk = SChunk::in_memory::<i32>(&params).unwrap();
    let mut call: Box<dyn FnMut()> = match &*task.key {
        "compress" => Box::new(|| drop(black_box(blosc2::compress(&data, &params).unwrap()))),
        "decompress" => {
            let chunk = blosc2::compress(&data, &params).unwrap();
            Box::new(move || drop(black_box(blosc2::decompress::<i32>(&chunk).unwrap())))
        }
        "chunk_append" => Box::new(|| {
            schunk.append(&data).unwrap();
        }),
        _ => {
            schunk.append(&data).unwrap();
            let mut target = vec![0; data.len()];
            Box::new(move || schunk.decompress_chunk_into(0, black_box(&mut target)).unwrap())
        }
    };
    let calls = || (0..Plan::chunk_calls(task.size)).for_each(|_| call());
    once(task, calls, |()| blosc2::compress(&data, &params).unwrap().len().to_string())
}

fn codec(task: &Task) -> Codec {
    task.codec.parse().expect("the codec is known")
}

fn cparams(task: &Task) -> CParams {
    CParams::new().codec(codec(task)).level(5).threads(task.threads)
}

fn dparams(task: &Task) -> DParams {
    DParams::new().threads(task.threads)
}

/// The hash of all items.
fn all(array: &NDArray) -> String {
    hash(&array.read::<Vec<f32>>(..).unwrap())
}

/// An array with the shapes of the plan, compressed with all cores.
fn array(shared: &Shared, items: &[f32], task: &Task) -> NDArray {
    let task = Task { threads: shared.cores(), ..task.clone() };
    builder(&shared.plan, &task).from_slice(items, shared.plan.shape()).unwrap()
}

fn builder(plan: &Plan, task: &Task) -> NDArrayBuilder {
    let builder = NDArray::builder().chunk_shape(plan.chunks()).block_shape(plan.blocks());
    builder.cparams(cparams(task)).options(OpenOptions::new().dparams(dparams(task)))
}

/// For arrays with one dimension.
fn flat(chunk: usize, block: usize, task: &Task) -> NDArrayBuilder {
    let builder = NDArray::builder().chunk_shape([chunk as u64]).block_shape([block as u64]);
    builder.cparams(cparams(task)).options(OpenOptions::new().dparams(dparams(task)))
}

fn ranges(start: &[u64; 2], shape: [u64; 2]) -> [Range<u64>; 2] {
    [0, 1].map(|axis| start[axis]..start[axis] + shape[axis])
}
