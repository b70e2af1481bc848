//! The array that all programs of the comparison use, and the selections that they read from it.
//!
//! `peer.py` computes the same. The comparison checks that the data and every result are equal.

use sha2::{Digest, Sha256};

/// The shapes of the compared arrays, and how much each workload reads or writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The number of rows, and of columns.
    pub(crate) side: u64,
    pub(crate) chunk_rows: u64,
    pub(crate) block_rows: u64,
    /// The items of a chunk of the arrays that workloads append to.
    pub(crate) append_chunk: usize,
    /// The items of an append that does not end at a chunk boundary.
    pub(crate) piece: usize,
    /// Each number of selections is divided by this.
    pub(crate) divisor: usize,
}

impl Plan {
    /// The comparison: 256 MiB of `f32` in chunks of 8 MiB and blocks of 256 KiB.
    pub(crate) const FULL: Self = Self {
        side: 8192,
        chunk_rows: 256,
        block_rows: 8,
        append_chunk: 1 << 20,
        piece: 10_000,
        divisor: 1,
    };

    /// A check that the comparison works: 1 MiB.
    pub(crate) const QUICK: Self = Self {
        side: 512,
        chunk_rows: 64,
        block_rows: 8,
        append_chunk: 1 << 14,
        piece: 1000,
        divisor: 20,
    };

    pub(crate) fn shape(&self) -> [u64; 2] {
        [self.side; 2]
    }

    pub(crate) fn chunks(&self) -> [u64; 2] {
        [self.chunk_rows, self.side]
    }

    pub(crate) fn blocks(&self) -> [u64; 2] {
        [self.block_rows, self.side]
    }

    /// The items of a block of the arrays that workloads append to.
    pub(crate) fn append_block(&self) -> usize {
        self.append_chunk / 32
    }

    /// The bytes of the whole array.
    pub(crate) fn bytes(&self) -> u64 {
        self.side * self.side * 4
    }

    /// The numbers in the order in which the child processes receive them as arguments.
    pub(crate) fn to_args(self) -> [String; 6] {
        let Self { side, chunk_rows, block_rows, append_chunk, piece, divisor } = self;
        let sizes = [append_chunk, piece, divisor].map(|size| size as u64);
        let [append_chunk, piece, divisor] = sizes;
        [side, chunk_rows, block_rows, append_chunk, piece, divisor].map(|size| size.to_string())
    }

    /// The plan from the first arguments of a child process.
    #[allow(dead_code, reason = "the programs of dev/peers/bench use it")]
    pub(crate) fn from_args(mut args: impl Iterator<Item = String>) -> Self {
        let mut next = || -> u64 {
            args.next().and_then(|arg| arg.parse().ok()).expect("the arguments are the plan")
        };
        Self {
            side: next(),
            chunk_rows: next(),
            block_rows: next(),
            append_chunk: next() as usize,
            piece: next() as usize,
            divisor: next() as usize,
        }
    }

    /// The shape of the slices that this workload reads, and their first items.
    pub(crate) fn slices(&self, key: &str) -> ([u64; 2], Vec<[u64; 2]>) {
        let (seed, count, shape) = match key {
            "slice_row" => (42, 2000, [1, 64]),
            "slice_square" => (42, 500, [32, 32]),
            "slice_rows" => (42, 100, [1, self.side]),
            "items" => (42, 2000, [1, 1]),
            _ => (5, 200, [1, 64]),
        };
        let mut lcg = Lcg(seed);
        let mut start = || shape.map(|len| lcg.below(self.side - len + 1));
        (shape, (0..count / self.divisor).map(|_| start()).collect())
    }

    /// The number of appends of this workload, and the items of each.
    pub(crate) fn appends(&self, key: &str) -> (usize, usize) {
        match key {
            "append_chunks" | "schunk_append" => (16, self.append_chunk),
            _ => (64, self.piece),
        }
    }

    /// The rows and the columns of orthogonal indexing: sorted and without duplicates.
    pub(crate) fn orthogonal(&self, key: &str) -> [Vec<u64>; 2] {
        let mut lcg = Lcg(7);
        let mut lists = [(); 2].map(|()| {
            let mut list: Vec<u64> =
                (0..256 / self.divisor).map(|_| lcg.below(self.side)).collect();
            list.sort_unstable();
            list.dedup();
            list
        });
        if key == "orthogonal_8" {
            lists[0].truncate(8);
        }
        lists
    }

    /// The points of point selection.
    pub(crate) fn points(&self) -> Vec<[u64; 2]> {
        let mut lcg = Lcg(9);
        let [rows, columns] = [(); 2].map(|()| -> Vec<u64> {
            (0..1000 / self.divisor).map(|_| lcg.below(self.side)).collect()
        });
        rows.into_iter().zip(columns).map(<[u64; 2]>::from).collect()
    }

    /// The items of a chunk and of a block of an array with one dimension and this many items.
    pub(crate) fn size_shapes(len: usize) -> (usize, usize) {
        let chunk = len.min(1 << 21);
        (chunk, chunk.min(1 << 16))
    }

    /// The items of a single chunk with this many bytes.
    pub(crate) fn chunk_data(bytes: usize) -> Vec<i32> {
        (0..bytes as i32 / 4).map(|at| (at / 3) ^ (at % 17)).collect()
    }

    /// How often a chunk with this many bytes is compressed or decompressed in one run.
    pub(crate) fn chunk_calls(bytes: usize) -> usize {
        (4 << 20) / bytes
    }

    /// The array: smooth in both directions.
    pub(crate) fn items(&self) -> Vec<f32> {
        self.surface(|u, v| (u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v)
    }

    /// The item that one of 100 items exceeds.
    pub(crate) const THRESHOLD: f32 = 2.07;

    /// The second operand of expressions.
    pub(crate) fn other_items(&self) -> Vec<f32> {
        self.surface(|u, v| u * (1.0 - v) + v * v)
    }

    fn surface(&self, item: fn(f64, f64) -> f64) -> Vec<f32> {
        let at = |index: u64| index as f64 / self.side as f64;
        let row = |row| (0..self.side).map(move |column| item(at(row), at(column)) as f32);
        (0..self.side).flat_map(row).collect()
    }
}

/// Knuth's linear congruential generator MMIX: the same selections in every language.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}

/// The SHA-256 of the bytes of items, in hexadecimal digits.
#[derive(Debug, Default)]
pub(crate) struct Hash(Sha256);

impl Hash {
    pub(crate) fn add(&mut self, items: &[f32]) {
        self.0.update(bytes(items));
    }

    #[allow(dead_code, reason = "the programs of dev/peers/bench use it")]
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The bytes of items, as they are in memory.
pub(crate) fn bytes(items: &[f32]) -> &[u8] {
    // SAFETY: all bytes of an `f32` are initialized; the length is that of the slice.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// The hash of these items.
pub(crate) fn hash(items: &[f32]) -> String {
    let mut hash = Hash::default();
    hash.add(items);
    hash.finish()
}
