//! Random numbers and data for tests, the same on every machine, and the byte order of this machine.

use std::path::Path;
#[cfg(unix)]
use std::process::{Command, Stdio};

pub mod mutants;

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the number of repeats of a test with random data. The long run repeats it `long` times; other runs repeat
/// it `BLOSC2_TEST_REPEATS` percent of that, 3 percent by default, and at least once.
pub fn repeats(long: usize) -> usize {
    let percent = std::env::var("BLOSC2_TEST_REPEATS").map_or(3, |percent| {
        percent.parse().expect("BLOSC2_TEST_REPEATS is a whole number, in percent")
    });
    (long * percent).div_ceil(100).max(1)
}

/// Returns a program with the default action of each signal, if `env` of this system can set it. Tests that run in the
/// background have ignored signals, which the programs of this project would ignore too.
#[cfg(unix)]
pub fn with_default_signals(program: &str) -> Command {
    const ENV: &str = "/usr/bin/env";
    const DEFAULT: &str = "--default-signal";
    let probe = Command::new(ENV).args([DEFAULT, "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return Command::new(program);
    }
    let mut command = Command::new(ENV);
    command.args([DEFAULT, program]);
    command
}

/// The character of the byte order of this machine in a dtype.
pub const NATIVE_ORDER: &str = if cfg!(target_endian = "little") { "<" } else { ">" };
/// The character of the other byte order in a dtype.
pub const OTHER_ORDER: &str = if cfg!(target_endian = "little") { ">" } else { "<" };

/// Converts a little-endian dtype, or a text that contains one, to native byte order.
pub fn native(dtype: &str) -> String {
    dtype.replace('<', NATIVE_ORDER)
}

/// Returns the bytes of a number in the other byte order, from those in native byte order or the reverse.
pub fn swapped<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}

/// A small random number generator with the same sequence on every machine (SplitMix64).
#[derive(Debug, Clone)]
pub struct Rng(
    /// The seed, then the state.
    pub u64,
);

impl Rng {
    /// Returns the next number.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, so that there is nothing to unwrap"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next() as u8).take(len).collect()
    }

    /// Returns `len` random bytes, which repeat after `period` bytes: the shorter the period, the better they compress.
    pub fn repeating(&mut self, len: usize, period: usize) -> Vec<u8> {
        let mut bytes = self.bytes(period.min(len));
        while bytes.len() < len {
            let more = bytes.len().min(len - bytes.len());
            bytes.extend_from_within(..more);
        }
        bytes
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns an index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns one of the choices.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}

/// The kind of test data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every byte is random: no codec compresses it.
    Random,
    /// Every byte is 0.
    Zeros,
    /// Every byte is 255.
    Ones,
    /// Runs of up to 300 equal bytes.
    Runs,
    /// 32-bit integers in steps of 3.
    Ramp,
    /// Sections of the other kinds.
    Mixed,
}

/// All kinds.
pub const KINDS: [Kind; 6] =
    [Kind::Random, Kind::Zeros, Kind::Ones, Kind::Runs, Kind::Ramp, Kind::Mixed];

/// Returns `len` bytes of this kind, which depend on the seed only.
pub fn data(kind: Kind, len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng(seed);
    match kind {
        Kind::Zeros => vec![0; len],
        Kind::Ones => vec![0xff; len],
        Kind::Random => rng.bytes(len),
        Kind::Runs => {
            let mut bytes = Vec::with_capacity(len);
            while bytes.len() < len {
                let run = (1 + rng.below(300) as usize).min(len - bytes.len());
                let byte = rng.below(4) as u8 * 60;
                bytes.resize(bytes.len() + run, byte);
            }
            bytes
        }
        Kind::Ramp => (0..len.div_ceil(4) as u32)
            .flat_map(|item| (item.wrapping_mul(3) + 1_000_000).to_le_bytes())
            .take(len)
            .collect(),
        Kind::Mixed => {
            let mut bytes = Vec::with_capacity(len);
            while bytes.len() < len {
                let kind = *rng.pick(&[Kind::Random, Kind::Zeros, Kind::Runs, Kind::Ramp]);
                let part = (1 + rng.below(5000) as usize).min(len - bytes.len());
                bytes.extend(data(kind, part, rng.next()));
            }
            bytes
        }
    }
}

/// Text whose lines are similar, as dictionaries need it.
pub fn records(len: usize) -> Vec<u8> {
    let mut rng = Rng(len as u64);
    let lines = (0..).flat_map(|line| {
        let (one, other) = (rng.below(1000), rng.below(50));
        format!(
            "{{\"id\":\"item-{line:05}\",\"price\":{one}.50,\"in_stock\":{},\"origins\":null,\
             \"labels\":null,\"quantity\":{other},\"text\":\"ITEM NUMBER {line}\"}}\n",
            other > 20
        )
        .into_bytes()
    });
    lines.take(len).collect()
}

/// Shuffles `source` byte by byte: the model of the filter.
pub fn model_shuffle(typesize: usize, source: &[u8]) -> Vec<u8> {
    let items = source.len() / typesize;
    let mut target = source.to_vec();
    for at in 0..items * typesize {
        target[at % typesize * items + at / typesize] = source[at];
    }
    target
}

/// Bitshuffles `source` bit by bit: the model of the filter.
pub fn model_bitshuffle(typesize: usize, source: &[u8]) -> Vec<u8> {
    let items = source.len() / typesize / 8 * 8;
    let bits = 8 * typesize;
    let mut target = source.to_vec();
    target[..items * typesize].fill(0);
    for at in (0..items * bits).filter(|at| source[at / 8] >> (at % 8) & 1 == 1) {
        let to = at % bits * items + at / bits;
        target[to / 8] |= 1 << (to % 8);
    }
    target
}
