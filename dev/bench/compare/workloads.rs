//! The workloads: what is measured, and which speed is required.

use crate::data::Plan;

/// The codecs of most workloads.
const BOTH: &[&str] = &["lz4", "zstd"];
/// All codecs that this crate, Python and C have with the default features.
pub(crate) const ALL: &[&str] = &["blosclz", "lz4", "lz4hc", "zlib", "zstd"];
const ONE_TWO: &[usize] = &[1, 2];

/// A workload.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    /// Its key in tasks.
    pub(crate) key: &'static str,
    /// Its name in the report. In several sizes, the size follows.
    pub(crate) name: String,
    pub(crate) group: Group,
    /// The size in tasks, for workloads that exist in several sizes.
    pub(crate) size: usize,
    pub(crate) codecs: &'static [&'static str],
    pub(crate) threads: Vec<usize>,
    /// The calls in one run. Times are for one call.
    pub(crate) calls: usize,
    /// The uncompressed bytes that one call reads or writes.
    pub(crate) bytes: u64,
    /// How results of different libraries are compared.
    pub(crate) results: Results,
    pub(crate) least: Vec<Least>,
}

/// The tables of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Read,
    Slices,
    Files,
    Write,
    Compute,
    Chunks,
    Sizes,
}

/// How results are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// They are equal.
    Equal,
    /// They are sums of `f32` items, which NumPy rounds after each addition.
    Rounded,
}

/// A required speed: the time of another library divided by ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Least {
    /// The name of the other library.
    pub(crate) peer: &'static str,
    /// Required with this codec only, if it is set.
    codec: Option<&'static str>,
    /// With one thread, and with two.
    ratios: [f64; 2],
}

impl Workload {
    fn new(group: Group, key: &'static str, name: &str, calls: usize, bytes: u64) -> Self {
        Self {
            key,
            name: name.to_owned(),
            group,
            size: 0,
            codecs: BOTH,
            threads: ONE_TWO.to_vec(),
            calls,
            bytes,
            results: Results::Equal,
            least: Vec::new(),
        }
    }

    /// Requires these ratios with each codec.
    fn least(mut self, peer: &'static str, ratios: [f64; 2]) -> Self {
        self.least.push(Least { peer, codec: None, ratios });
        self
    }

    /// Requires these ratios with one codec.
    fn least_with(mut self, codec: &'static str, peer: &'static str, ratios: [f64; 2]) -> Self {
        self.least.push(Least { peer, codec: Some(codec), ratios });
        self
    }

    fn codecs(self, codecs: &'static [&'static str]) -> Self {
        Self { codecs, ..self }
    }

    fn threads(self, threads: &[usize]) -> Self {
        Self { threads: threads.to_vec(), ..self }
    }

    fn size(self, size: usize) -> Self {
        let name = format!("{}, {}", self.name, bytes(size as u64));
        Self { size, name, ..self }
    }

    fn rounded(self) -> Self {
        Self { results: Results::Rounded, ..self }
    }

    /// The required ratios with this codec and this number of threads.
    pub(crate) fn required(&self, codec: &str, threads: usize) -> Vec<(&'static str, f64)> {
        let holds = |least: &&Least| least.codec.is_none_or(|only| only == codec);
        let ratio = |least: &Least| Some((least.peer, *least.ratios.get(threads - 1)?));
        self.least.iter().filter(holds).filter_map(ratio).collect()
    }
}

/// All workloads, on a machine with this number of cores.
pub(crate) fn all(plan: &Plan, cores: usize, memory: u64) -> Vec<Workload> {
    let whole = plan.bytes();
    let more = more_threads(cores);
    let mut list = Vec::new();

    let new = |key, name| Workload::new(Group::Read, key, name, 1, whole);
    list.push(
        new("read_new", "read the array into new memory")
            .least_with("lz4", "python", [1.4, 2.8])
            .least_with("zstd", "python", [1.2, 2.2]),
    );
    list.push(
        new("read_into", "read the array into existing memory")
            .codecs(ALL)
            .threads(&more)
            .least_with("lz4", "memcpy", [0.6, 1.0])
            .least_with("lz4", "c", [1.4, 1.6])
            .least_with("zstd", "c", [1.2, 1.25]),
    );
    list.push(new("read_file", "read the array from a file").least("python", [1.2, 2.2]));

    let new = |key, name| {
        let (shape, starts) = plan.slices(key);
        Workload::new(Group::Slices, key, name, starts.len(), shape[0] * shape[1] * 4)
            .least("python", [1.1, 1.8])
    };
    // With BloscLZ, LZ4 and Zstandard, blocks are split. Only the needed part of a block is decompressed.
    let part = |workload: Workload| {
        let workload = workload.codecs(&["blosclz", "lz4", "zstd"]);
        let fast = |workload: Workload, codec| workload.least_with(codec, "c", [2.0; 2]);
        fast(fast(workload, "blosclz"), "lz4").least_with("zstd", "c", [1.2; 2])
    };
    list.push(part(new("slice_row", "read a slice of 1 x 64 items")));
    list.push(new("slice_square", "read a slice of 32 x 32 items").least("c", [0.95; 2]));
    list.push(new("slice_rows", "read a row").least("c", [0.95; 2]));
    list.push(part(new("items", "read an item")));
    let new = |key, name: &str, items: usize| {
        Workload::new(Group::Slices, key, name, 1, items as u64 * 4).least("python", [1.1, 1.8])
    };
    for key in ["orthogonal", "orthogonal_8"] {
        let [rows, columns] = plan.orthogonal(key).map(|list| list.len());
        let name = format!("read {rows} rows x {columns} columns (orthogonal indexing)");
        list.push(new(key, &name, rows * columns).least("c", [1.0; 2]));
    }
    let points = plan.points().len();
    list.push(part(new("points", &format!("read {points} points"), points)));

    let new = |key, name| {
        let (shape, starts) = plan.slices(key);
        Workload::new(Group::Files, key, name, starts.len(), shape[0] * shape[1] * 4)
    };
    list.push(new("open_slice", "open a file, read 1 x 64 items").least("python", [1.5; 2]));
    list.push(new("map_slice", "map a file, read 1 x 64 items").least("python", [1.5; 2]));
    list.push(new("file_slice", "read 1 x 64 items of an open file").least("python", [1.0; 2]));
    list.push(
        new("cached_slice", "the same again, with our cache of decoded blocks")
            .least("python", [5.0; 2]),
    );

    let new =
        |key, name| Workload::new(Group::Write, key, name, 1, whole).least("python", [1.0; 2]);
    list.push(
        new("create", "create an array in memory")
            .threads(&more)
            .least_with("lz4", "c", [1.0, 1.6])
            .least_with("zstd", "c", [1.0, 1.0]),
    );
    list.push(new("create_file", "create an array in a file"));
    let row = plan.chunk_rows * plan.side * 4;
    list.push(Workload::new(Group::Write, "write_chunk", "overwrite one chunk", 1, row));
    let new = |key, name: &str| {
        let (count, len) = plan.appends(key);
        let name = format!("append {count} x {len} items{name}");
        Workload::new(Group::Write, key, &name, 1, (count * len * 4) as u64)
    };
    list.push(new("append_chunks", ", whole chunks").least("python", [1.0; 2]));
    list.push(new("append", "").least("python", [1.0; 2]));
    list.push(new("appender", " (Appender)").least("python", [10.0; 2]).least("c", [10.0; 2]));
    list.push(new("schunk_append", " to a super-chunk").least("python", [1.0; 2]));

    let new = |key, name| Workload::new(Group::Compute, key, name, 1, whole).threads(&[2]);
    // `read` is the required ratio to a full read into existing memory.
    let reduce = |key, name, read| {
        new(key, name).least("python", [0.0, 1.0]).least_with("lz4", "read", [0.0, read])
    };
    list.extend([
        reduce("sum", "sum", 0.8).rounded(),
        reduce("mean_0", "mean over axis 0", 0.7).rounded(),
        reduce("mean_1", "mean over axis 1", 0.7).rounded(),
        reduce("var", "variance", 0.7).rounded(),
        reduce("min", "minimum", 0.8),
        reduce("max", "maximum", 0.8),
        reduce("argmin", "index of the minimum", 0.8),
        reduce("argmax", "index of the maximum", 0.8),
        reduce("any", "any item > 1000", 0.8),
        reduce("all", "all items < 1000", 0.8),
        reduce("count", "count the items > 2.07", 0.8),
        reduce("describe", "describe: count, sum, mean, variance, minimum, maximum", 0.45),
        reduce("histogram", "describe with a histogram of 100 bins", 0.3),
        new("sum_product", "sum of a * b + 1").rounded().least("python", [0.0, 2.0]),
        new("create_expr", "create an array of a * 2 + 1"),
        new("select", "select 1 % of the items, in one region").least("read", [0.0, 1.0 / 1.5]),
        new("select_spikes", "select 1 % of the items, scattered"),
    ]);

    for size in [4 << 10, 1 << 20] {
        for (key, name) in [
            ("compress", "compress a chunk"),
            ("decompress", "decompress a chunk"),
            ("chunk_append", "append a chunk to a super-chunk"),
            ("chunk_read", "decompress a chunk of a super-chunk"),
        ] {
            let calls = Plan::chunk_calls(size);
            list.push(
                Workload::new(Group::Chunks, key, name, calls, size as u64)
                    .size(size)
                    .codecs(&["blosclz", "lz4", "zstd"])
                    .threads(&[1])
                    .least("c", [0.95; 2]),
            );
        }
    }

    for size in sizes(plan).filter(|&size| 3 * size as u64 <= memory) {
        for (key, name) in [("read_size", "read"), ("write_size", "write")] {
            let workload = Workload::new(Group::Sizes, key, name, 1, size as u64);
            list.push(workload.size(size).codecs(&["lz4"]));
        }
    }
    list
}

/// From 4 KiB to 4 GiB, in steps of 4.
fn sizes(plan: &Plan) -> impl Iterator<Item = usize> + use<> {
    let most = if plan.divisor == 1 { 4 << 30 } else { 1 << 20 };
    std::iter::successors(Some(4 << 10), |size| Some(size * 4))
        .take_while(move |&size| size <= most)
}

/// One, two, and the powers of two up to the number of cores.
fn more_threads(cores: usize) -> Vec<usize> {
    let mut threads: Vec<usize> =
        (0..).map(|power| 1 << power).take_while(|&count| count <= cores.max(2)).collect();
    if cores > 2 && !cores.is_power_of_two() {
        threads.push(cores);
    }
    threads
}

/// A number of bytes with its unit.
pub(crate) fn bytes(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..0x400 => (1, "bytes"),
        0x400..0x10_0000 => (1 << 10, "KiB"),
        0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    format!("{} {name}", bytes / unit)
}
