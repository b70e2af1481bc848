//! One buffer, compressed to a chunk and decompressed in every way.

use std::ops::Range;

use blosc2::{
    CParams, Check, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
    SplitMode, Threads,
};
use blosc2_format::Limits;
use blosc2_format::chunk::Chunk;

use super::{KINDS, Kind, Rng, assert_same, codecs, data, lossless};

/// One way to compress one buffer.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) params: CParams,
    pub(crate) typesize: usize,
    pub(crate) len: usize,
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    /// Bytes by which the source is misaligned.
    pub(crate) shift: usize,
    /// Threads to decompress with.
    pub(crate) threads: usize,
}

impl Case {
    pub(crate) fn new(params: CParams, kind: Kind, len: usize, seed: u64) -> Self {
        let typesize = params.typesize.unwrap_or(1);
        Self { params, typesize, len, kind, seed, shift: 0, threads: 1 }
    }

    /// A random case.
    pub(crate) fn random(seed: u64) -> Self {
        let rng = &mut Rng(seed);
        let typesize = match rng.below(10) {
            0..=4 => *rng.pick(&[1, 2, 4, 8, 16]),
            5..=7 => 1 + rng.below(300) as usize,
            8 => *rng.pick(&[254, 255, 256, 257]),
            _ => *rng.pick(&[1000, 70_000]),
        };
        let mut filters = Vec::new();
        for position in 0..rng.below(7) {
            filters.push(lossless(typesize, position == 0, rng));
        }
        let mut len = match rng.below(100) {
            0..20 => rng.below(40) as usize,
            20..35 => typesize * rng.below(3) as usize,
            35..50 => typesize * rng.below(20) as usize + rng.below(typesize as u64) as usize,
            50..70 => rng.below(3000) as usize,
            70..99 => rng.below(60_000) as usize,
            _ => rng.below(5 << 20) as usize,
        };
        if filters.first() == Some(&Filter::Delta) {
            len -= len % typesize;
        }
        let codec = *rng.pick(&codecs());
        let mut params = CParams::new()
            .codec(codec)
            .level(rng.below(10) as u8)
            .typesize(typesize)
            .filters(&filters)
            .split(*rng.pick(&[
                SplitMode::Always,
                SplitMode::Never,
                SplitMode::Auto,
                SplitMode::ForwardCompat,
            ]))
            .threads(Threads::new(*rng.pick(&[1, 1, 1, 2, 5])));
        if rng.below(2) == 0 {
            let size = *rng.pick(&[1, 16, 128, 1000, 4096, 5000, 65_536, 1 << 20]);
            // Many tiny blocks are tested with short data only.
            let least = if len > 100_000 { 1000 } else { 1 };
            params = params.blocksize(size.max(typesize).max(least));
        }
        let has_dictionaries = matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Lz4Hc);
        let knows_blosc1 = matches!(filters[..], [] | [Filter::Shuffle | Filter::Bitshuffle]);
        match rng.below(8) {
            0 | 1 if has_dictionaries => params = params.dictionary(true),
            0..5 if knows_blosc1 && typesize <= 255 => params = params.blosc1(true),
            _ => {}
        }
        let shift = *rng.pick(&[0, 0, 1, 3, 5]);
        let threads = *rng.pick(&[1, 1, 1, 2, 5]);
        Self { params, typesize, len, kind: *rng.pick(&KINDS), seed, shift, threads }
    }

    /// Compresses and decompresses, and checks that all ways return the same bytes.
    pub(crate) fn check(&self) {
        let all = data(self.kind, self.shift + self.len, self.seed);
        // C could write to its source: this is compared with it afterwards.
        let before = all.clone();
        let source = &all[self.shift..];

        let bytes = match blosc2::compress(source, &self.params) {
            Ok(bytes) => bytes,
            Err(error) => panic!("{self:?}: {error}"),
        };
        assert!(all == before, "{self:?}: the source was written to");
        let header_len = if self.params.blosc1 { 16 } else { 32 };
        assert!(bytes.len() <= source.len() + header_len, "{self:?}: {} bytes", bytes.len());
        let chunk = ChunkRef::validated(&bytes[..], Check::Content)
            .unwrap_or_else(|error| panic!("{self:?}: {error}"));
        assert_eq!((chunk.nbytes(), chunk.cbytes()), (source.len(), bytes.len()), "{self:?}");
        let typesize = if self.typesize > 255 { 1 } else { self.typesize };
        assert_eq!((chunk.typesize(), chunk.is_blosc1()), (typesize, self.params.blosc1));

        let mut decompressor =
            Decompressor::new(&DParams::new().threads(Threads::new(self.threads))).unwrap();
        let found = decompressor
            .decompress::<u8>(&chunk)
            .unwrap_or_else(|error| panic!("{self:?}: {error}"));
        assert_same(&found, source, &format!("{self:?}"));
        let rust = Chunk::new(&bytes, &Limits::default()).and_then(|chunk| chunk.decode());
        let rust = rust.unwrap_or_else(|error| panic!("{self:?}: in Rust: {error}"));
        assert_same(&rust, source, &format!("{self:?}: in Rust"));

        self.check_parts(&chunk, &mut decompressor, source);
        if self.params.threads == Threads::ONE {
            self.check_room(&bytes, source);
        }

        // Any bytes may follow a chunk.
        let mut longer = bytes.clone();
        longer.extend([0xaa; 40]);
        assert!(blosc2::decompress::<u8>(&longer).unwrap() == found, "{self:?}: with more bytes");
        // A chunk without its last byte is no chunk.
        let error = blosc2::decompress::<u8>(&bytes[..bytes.len() - 1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{self:?}: {error}");
    }

    /// Ranges and blocks.
    fn check_parts(&self, chunk: &ChunkRef<'_>, decompressor: &mut Decompressor, source: &[u8]) {
        let rng = &mut Rng(self.seed ^ 0x5eed);
        for round in 0..4 {
            let range = random_range(source.len(), self.typesize, round, rng);
            let found = decompressor.items::<u8>(chunk, range.clone());
            let found = found.unwrap_or_else(|error| panic!("{self:?}: {range:?}: {error}"));
            assert_same(&found, &source[range.clone()], &format!("{self:?}: {range:?}"));
        }
        let wanted: Vec<bool> = (0..chunk.nblocks()).map(|_| rng.below(3) == 0).collect();
        let mut target = vec![0xee; source.len()];
        decompressor
            .decompress_masked(chunk, &wanted, &mut target)
            .unwrap_or_else(|error| panic!("{self:?}: some blocks: {error}"));
        let mut expected = vec![0xee; source.len()];
        for (block, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let range = chunk.block_range(block).unwrap().unwrap();
            expected[range.clone()].copy_from_slice(&source[range]);
        }
        assert_same(&target, &expected, &format!("{self:?}: some blocks"));
    }

    /// Checks targets of exactly the length of the chunk, and shorter ones.
    fn check_room(&self, bytes: &[u8], source: &[u8]) {
        let mut compressor = Compressor::new(&self.params).unwrap();
        let mut target = vec![0; source.len() + 100];
        let len = compressor.compress_into(source, &mut target).unwrap();
        assert_same(&target[..len], bytes, &format!("{self:?}: compressed again"));
        assert!(target[source.len() + 32..].iter().all(|&byte| byte == 0), "{self:?}: behind it");
        // A shorter target may lead to a different chunk or to an error.
        for room in [bytes.len(), bytes.len() - 1, bytes.len() / 2] {
            let (place, rest) = target.split_at_mut(room);
            rest.fill(0x77);
            match compressor.compress_into(source, place) {
                Ok(len) => {
                    let found = blosc2::decompress::<u8>(&place[..len]);
                    let found = found.unwrap_or_else(|error| panic!("{self:?}: {room}: {error}"));
                    assert_same(&found, source, &format!("{self:?}: room for {room}"));
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::BufferTooSmall, "{self:?}: {error}");
                }
            }
            assert!(rest.iter().all(|&byte| byte == 0x77), "{self:?}: behind {room} bytes");
        }
    }
}

/// A range of bytes: of whole items or not, up to the end or not.
fn random_range(len: usize, typesize: usize, round: u64, rng: &mut Rng) -> Range<usize> {
    let mut at = || rng.below(len as u64 + 1) as usize;
    let (mut start, mut stop) = (at(), at());
    if start > stop {
        (start, stop) = (stop, start);
    }
    match round {
        0 => start / typesize * typesize..stop / typesize * typesize,
        1 => start..len,
        2 => start..stop.min(start + 3 * typesize),
        _ => start..stop,
    }
}
