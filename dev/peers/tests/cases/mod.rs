//! The cases that all peers are tested with: data and parameters.

// Each test file uses a part of this.
#![allow(dead_code)]

use blosc2::{CParams, Codec, Filter, SplitMode};
use blosc2_format::Limits;
use blosc2_format::chunk::{Chunk, Header};

pub(crate) use blosc2_testing::{Kind, Rng, data};

pub(crate) const CODECS: [Codec; 5] =
    [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];

pub(crate) const SPLITS: [SplitMode; 4] =
    [SplitMode::Always, SplitMode::Never, SplitMode::Auto, SplitMode::ForwardCompat];

/// One buffer, and one way to compress it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) codec: Codec,
    pub(crate) level: u8,
    pub(crate) typesize: usize,
    pub(crate) split: SplitMode,
    pub(crate) filters: Vec<Filter>,
    pub(crate) blocksize: Option<usize>,
    pub(crate) dictionary: bool,
    /// Whether the chunks of `blosc2` get the header of Blosc 1.
    pub(crate) blosc1: bool,
    pub(crate) kind: Kind,
    pub(crate) len: usize,
    pub(crate) seed: u64,
}

impl Case {
    /// The buffer.
    pub(crate) fn data(&self) -> Vec<u8> {
        data(self.kind, self.len, self.seed)
    }

    /// The parameters for `blosc2`.
    pub(crate) fn params(&self) -> CParams {
        let params = CParams::new()
            .codec(self.codec)
            .level(self.level)
            .typesize(self.typesize)
            .split(self.split)
            .filters(&self.filters)
            .dictionary(self.dictionary)
            .blosc1(self.blosc1);
        match self.blocksize {
            Some(size) => params.blocksize(size),
            None => params,
        }
    }

    /// The codes and the parameters of the filters, as a header has them.
    pub(crate) fn pipeline(&self) -> ([u8; 6], [u8; 6]) {
        let (mut codes, mut metas) = ([0; 6], [0; 6]);
        let first = 6 - self.filters.len();
        for (slot, filter) in self.filters.iter().enumerate() {
            codes[first + slot] = filter.code();
            metas[first + slot] = match filter {
                Filter::Bytedelta(0) => self.typesize as u8,
                filter => filter.meta(),
            };
        }
        (codes, metas)
    }

    /// Whether these are the bytes of the buffer, or the result of its lossy filter.
    ///
    /// If compression gains nothing, a chunk stores the original buffer. Whether it gains anything depends on the
    /// implementation.
    fn is_right(&self, found: &[u8]) -> bool {
        let data = self.data();
        let cleared = match (self.filters.first(), self.typesize) {
            (Some(Filter::TruncPrec(kept)), 4) => 23 - *kept,
            (Some(Filter::TruncPrec(kept)), _) => 52 - *kept,
            (Some(Filter::IntTrunc(bits)), _) => -*bits,
            _ => return found == data,
        };
        let mask = (u64::MAX << cleared).to_le_bytes();
        let keep = |(at, byte): (usize, &u8)| byte & mask[at % self.typesize];
        found == data || found.iter().copied().eq(data.iter().enumerate().map(keep))
    }
}

/// Lets a peer compress, and reads its chunks with `blosc2` and with `blosc2-format`.
pub(crate) fn its_chunks_are_read(
    cases: &[Case],
    mut compress: impl FnMut(&Case, &[u8]) -> Result<Vec<u8>, String>,
) {
    let mut wrong = Vec::new();
    for case in cases {
        let chunk = match compress(case, &case.data()) {
            Ok(chunk) => chunk,
            Err(error) => {
                wrong.push(format!("it does not compress {case:?}: {error}"));
                continue;
            }
        };
        let ours = blosc2::decompress::<u8>(&chunk).map_err(|error| error.to_string());
        for (reader, read) in [("blosc2", ours), ("blosc2-format", decode(&chunk, case.typesize))] {
            match read {
                Ok(found) if case.is_right(&found) => {}
                Ok(_) => wrong.push(format!("{reader} reads something else: {case:?}")),
                Err(error) => wrong.push(format!("{reader} refuses {case:?}: {error}")),
            }
        }
    }
    none(&wrong, cases);
}

/// Compresses with `blosc2` and lets a peer read the chunks. It has to refuse the chunks that it does not support.
pub(crate) fn it_reads_ours(
    cases: &[Case],
    is_unknown: impl Fn(&Header) -> bool,
    mut decompress: impl FnMut(&[u8]) -> Result<Vec<u8>, String>,
) {
    let mut wrong = Vec::new();
    for case in cases {
        let chunk = match blosc2::compress(&case.data()[..], &case.params()) {
            Ok(chunk) => chunk,
            Err(error) => panic!("{case:?}: {error}"),
        };
        let is_unknown = is_unknown(&Header::parse(&chunk).unwrap());
        match decompress(&chunk) {
            Ok(_) if is_unknown => wrong.push(format!("it reads {case:?} after all")),
            Err(_) if is_unknown => {}
            Ok(found) if case.is_right(&found) => {}
            Ok(_) => wrong.push(format!("it reads something else: {case:?}")),
            Err(error) => wrong.push(format!("it refuses {case:?}: {error}")),
        }
    }
    none(&wrong, cases);
}

#[track_caller]
fn none(wrong: &[String], cases: &[Case]) {
    assert!(cases.len() >= 100, "only {} cases", cases.len());
    let first = &wrong[..wrong.len().min(20)];
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), first.join("\n"));
}

/// `count` cases for each combination of a codec, a typesize, a pipeline that suits it, and a split mode, with random
/// levels, lengths and data.
pub(crate) fn cases(
    pipelines: &[&[Filter]],
    typesizes: &[usize],
    splits: &[SplitMode],
    count: usize,
) -> Vec<Case> {
    let mut rng = Rng(2);
    let mut cases = Vec::new();
    for codec in CODECS {
        for filters in pipelines {
            for &typesize in typesizes.iter().filter(|&&typesize| suits(filters, typesize)) {
                for &split in splits {
                    for _ in 0..count {
                        let lengths = [0, 1, 7, 31, 32, 33, 100, 999, 5000, 20_003, 70_000];
                        let mut len = *rng.pick(&lengths);
                        let whole = |each: &Filter| {
                            matches!(
                                each,
                                Filter::Delta | Filter::TruncPrec(_) | Filter::IntTrunc(_)
                            )
                        };
                        if filters.iter().any(whole) {
                            len -= len % typesize;
                        }
                        let has_dictionaries =
                            matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Lz4Hc);
                        cases.push(Case {
                            codec,
                            level: *rng.pick(&[0, 1, 3, 5, 6, 9]),
                            typesize,
                            split,
                            filters: filters.to_vec(),
                            blocksize: (rng.below(3) == 0)
                                .then(|| *rng.pick(&[typesize, 512, 4096, 30_000]))
                                .filter(|&size| size >= typesize),
                            dictionary: has_dictionaries && rng.below(6) == 0,
                            blosc1: false,
                            kind: *rng.pick(&blosc2_testing::KINDS),
                            len,
                            seed: cases.len() as u64,
                        });
                    }
                }
            }
        }
    }
    cases
}

/// Cases whose chunks Blosc 1 can read, with one of its filters or none.
pub(crate) fn blosc1_cases() -> Vec<Case> {
    const PIPELINES: [&[Filter]; 3] = [&[], &[Filter::Shuffle], &[Filter::Bitshuffle]];
    const TYPESIZES: [usize; 8] = [1, 2, 3, 4, 8, 16, 33, 255];
    let mut cases = cases(&PIPELINES, &TYPESIZES, &SPLITS, 2);
    for case in &mut cases {
        (case.blosc1, case.dictionary) = (true, false);
    }
    cases
}

/// Whether items of this size can go through the filters.
fn suits(filters: &[Filter], typesize: usize) -> bool {
    filters.iter().all(|filter| match filter {
        Filter::TruncPrec(_) => matches!(typesize, 4 | 8),
        Filter::IntTrunc(_) => matches!(typesize, 1 | 2 | 4 | 8),
        Filter::Bytedelta(_) => typesize < 256,
        _ => true,
    })
}

/// Decodes a chunk with the formats in Rust.
pub(crate) fn decode(chunk: &[u8], typesize: usize) -> Result<Vec<u8>, String> {
    let chunk = Chunk::new(chunk, &Limits::default()).map_err(|error| error.to_string())?;
    chunk.with_typesize(typesize).decode().map_err(|error| error.to_string())
}
