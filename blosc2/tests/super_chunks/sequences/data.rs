//! Data and chunks, described by a few numbers, so that a sequence can be printed.

use blosc2::{CParams, Chunk, Codec, Compressor, Filter, SplitMode};

use super::simple::Piece;
use crate::common::{KINDS, Kind, Rng, codecs, data};

/// Bytes, and as what they are handed over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    pub(crate) kind: Kind,
    pub(crate) len: usize,
    pub(crate) seed: u64,
    pub(crate) form: Form,
}

/// The type of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Bytes,
    /// Numbers of the typesize.
    Items,
    /// Numbers of two bytes, which no super-chunk here has.
    Wrong,
}

impl Data {
    /// Of `len` bytes.
    pub(crate) fn of(len: usize, typesize: usize, rng: &mut Rng) -> Self {
        let fits = [4, 8].contains(&typesize) && len.is_multiple_of(typesize);
        let form = match rng.below(40) {
            0 if len >= 2 => Form::Wrong,
            number if fits && number < 25 => Form::Items,
            _ => Form::Bytes,
        };
        let len = if form == Form::Wrong { len / 2 * 2 } else { len };
        Self { kind: *rng.pick(&KINDS), len, seed: rng.next() % 1000, form }
    }

    /// Of `len` bytes, as such.
    pub(crate) fn plain(len: usize, rng: &mut Rng) -> Self {
        Self { kind: *rng.pick(&KINDS), len, seed: rng.next() % 1000, form: Form::Bytes }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        data(self.kind, self.len, self.seed)
    }

    /// Bytes of an item of the slice.
    pub(crate) fn width(&self, typesize: usize) -> usize {
        if self.form == Form::Items { typesize } else { 1 }
    }
}

/// Calls something with the data as a slice of its form.
macro_rules! as_items {
    ($data:expr, $typesize:expr, $items:ident => $call:expr) => {{
        let bytes = $data.bytes();
        match ($data.form, $typesize) {
            (Form::Items, 4) => {
                let $items = &to_items(&bytes, u32::from_ne_bytes)[..];
                $call
            }
            (Form::Items, 8) => {
                let $items = &to_items(&bytes, f64::from_ne_bytes)[..];
                $call
            }
            (Form::Wrong, _) => {
                let $items = &to_items(&bytes, i16::from_ne_bytes)[..];
                $call
            }
            _ => {
                let $items = &bytes[..];
                $call
            }
        }
    }};
}
pub(crate) use as_items;

/// Numbers of bytes.
pub(crate) fn to_items<T, const N: usize>(bytes: &[u8], make: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().copied().map(make).collect()
}

/// A chunk that is made before it is given to the super-chunk.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) made: Made,
    pub(crate) items: usize,
    pub(crate) seed: u64,
    pub(crate) params: CParams,
}

/// What it is made as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    Compressed,
    Zeros,
    Uninit,
    Nan,
    Repeated,
    Blocks,
    Blosc1,
    /// Of items of two bytes.
    OtherType,
    Empty,
}

impl Ready {
    pub(crate) fn random(items: usize, variable_blocks: bool, rng: &mut Rng) -> Self {
        let made = match rng.below(20) {
            0 => Made::Blosc1,
            1 => Made::OtherType,
            2 => Made::Empty,
            3 => Made::Uninit,
            4..7 => Made::Zeros,
            7..9 => Made::Nan,
            9..12 => Made::Repeated,
            _ if variable_blocks => Made::Blocks,
            19 => Made::Blocks,
            _ => Made::Compressed,
        };
        Self { made, items, seed: rng.next() % 1000, params: params(1, rng) }
    }

    /// Its data; `None` where it is no chunk for a super-chunk of this typesize.
    pub(crate) fn piece(&self, typesize: usize) -> Option<Piece> {
        let len = self.items * typesize;
        let data = match self.made {
            Made::Blosc1 | Made::OtherType | Made::Empty => return None,
            Made::Zeros | Made::Uninit => vec![0; len],
            Made::Nan if typesize == 4 => f32::NAN.to_ne_bytes().repeat(self.items),
            Made::Nan if typesize == 8 => f64::NAN.to_ne_bytes().repeat(self.items),
            Made::Nan => return None,
            Made::Repeated => self.bytes(typesize)[..typesize].repeat(self.items),
            Made::Compressed | Made::Blocks => self.bytes(typesize),
        };
        let blocks = (self.made == Made::Blocks).then(|| self.blocks(data.len()));
        Some(Piece { data, blocks, undefined: self.made == Made::Uninit })
    }

    pub(crate) fn chunk(&self, typesize: usize) -> Chunk {
        let params = self.params.clone().typesize(typesize);
        let bytes = self.bytes(typesize);
        let len = bytes.len();
        let other = CParams::new().codec(Codec::Lz4);
        match self.made {
            Made::Compressed => Compressor::new(&params).unwrap().compress(&bytes),
            Made::Zeros => Chunk::zeros::<u8>(len, &params),
            Made::Uninit => Chunk::uninit::<u8>(len, &params),
            Made::Nan if typesize == 8 => Chunk::nans::<f64>(self.items, &params),
            Made::Nan => Chunk::nans::<f32>(self.items, &other),
            Made::Repeated => Chunk::repeat(&bytes[..typesize], self.items, &params),
            Made::Blocks => {
                let mut rest = &bytes[..];
                let lens = self.blocks(len);
                let blocks: Vec<&[u8]> =
                    lens.iter().map(|&len| rest.split_off(..len).unwrap()).collect();
                Compressor::new(&params).unwrap().compress_blocks(&blocks)
            }
            Made::Blosc1 => {
                let params = other.typesize(typesize.min(255)).blosc1(true);
                Compressor::new(&params).unwrap().compress(&bytes)
            }
            Made::OtherType => {
                Compressor::new(&other.typesize(2)).unwrap().compress(&bytes[..len / 2 * 2])
            }
            Made::Empty => Compressor::new(&params).unwrap().compress::<u8>(&[]),
        }
        .unwrap()
    }

    fn bytes(&self, typesize: usize) -> Vec<u8> {
        let kind = KINDS[self.seed as usize % KINDS.len()];
        data(kind, self.items * typesize, self.seed)
    }

    fn blocks(&self, len: usize) -> Vec<usize> {
        cut(len, &mut Rng(self.seed))
    }
}

/// Lengths of blocks, together `len`.
pub(crate) fn cut(mut len: usize, rng: &mut Rng) -> Vec<usize> {
    let mut lens = Vec::new();
    while len > 0 {
        let next = 1 + rng.below(len as u64) as usize;
        lens.push(next);
        len -= next;
    }
    lens
}

/// Any parameters that lose nothing, for items of this size; quick ones, as there are many of them.
pub(crate) fn params(typesize: usize, rng: &mut Rng) -> CParams {
    let codec = *rng.pick(&codecs());
    let most = if matches!(codec, Codec::Zstd | Codec::Lz4Hc | Codec::Zlib) { 4 } else { 10 };
    let filters: &[Filter] = match rng.below(5) {
        0 => &[],
        1 => &[Filter::Bitshuffle],
        2 => &[Filter::Shuffle, Filter::Bitshuffle],
        _ => &[Filter::Shuffle],
    };
    let splits = [SplitMode::Always, SplitMode::Never, SplitMode::Auto, SplitMode::ForwardCompat];
    let mut params = CParams::new()
        .codec(codec)
        .level(rng.below(most) as u8)
        .filters(filters)
        .split(*rng.pick(&splits));
    if rng.below(3) == 0 {
        params = params.blocksize(typesize.max(16) * (1 + rng.below(8) as usize));
    }
    if rng.below(12) == 0 && matches!(codec, Codec::Zstd | Codec::Lz4) {
        params = params.dictionary(true);
    }
    params
}
