//! Data and parameters for the tests.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;

use blosc2::{CParams, Codec, Filter};
use blosc2_zarrs::{Blosc2Codec, BloscCodec};
use zarrs::array::codec::api::{BytesToBytesCodecTraits, CodecOptions};
use zarrs::array::{Array, ArrayBuilder, ArrayBytes};
use zarrs::storage::ReadableWritableListableStorage;

pub(crate) const CODECS: [Codec; 5] =
    [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];
pub(crate) const FILTERS: [&[Filter]; 3] = [&[], &[Filter::Shuffle], &[Filter::Bitshuffle]];

/// Which of the two codecs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Blosc,
    Blosc2,
}

pub(crate) const KINDS: [Kind; 2] = [Kind::Blosc, Kind::Blosc2];

impl Kind {
    pub(crate) fn codec(self, params: CParams) -> Arc<dyn BytesToBytesCodecTraits> {
        match self {
            Self::Blosc => Arc::new(BloscCodec::new(params).unwrap()),
            Self::Blosc2 => Arc::new(Blosc2Codec::new(params).unwrap()),
        }
    }

    pub(crate) fn header_len(self) -> usize {
        match self {
            Self::Blosc => 16,
            Self::Blosc2 => 32,
        }
    }
}

pub(crate) fn options() -> CodecOptions {
    CodecOptions::default()
}

pub(crate) fn params(codec: Codec, filters: &[Filter], typesize: usize) -> CParams {
    CParams::new().codec(codec).filters(filters).typesize(typesize)
}

/// Data that is compressed to about half: pieces of random and of equal bytes in turns.
pub(crate) fn data(len: usize) -> Vec<u8> {
    let mut rng = blosc2_testing::Rng(len as u64);
    let mut byte = |at: usize| match at / 500 % 2 {
        0 => rng.next() as u8,
        _ => (at >> 12) as u8,
    };
    (0..len).map(&mut byte).collect()
}

/// An array of one chunk of `u8` with all of these data.
pub(crate) fn bytes_array(
    store: ReadableWritableListableStorage,
    codec: Arc<dyn BytesToBytesCodecTraits>,
    data: &[u8],
) -> Array<dyn zarrs::storage::ReadableWritableListableStorageTraits> {
    let len = data.len() as u64;
    let array = ArrayBuilder::new(vec![len], vec![len], zarrs::array::data_type::uint8(), 255u8)
        .bytes_to_bytes_codecs(vec![codec])
        .build(store, "/bytes")
        .unwrap();
    array.store_metadata().unwrap();
    array.store_chunk(&[0], data.to_vec()).unwrap();
    array
}

/// All items of an array, in the byte order of this machine.
pub(crate) fn all<S: ?Sized + zarrs::storage::ReadableStorageTraits + 'static>(
    array: &Array<S>,
) -> Vec<u8> {
    let items: ArrayBytes<'static> = array.retrieve_array_subset(&array.subset_all()).unwrap();
    items.into_fixed().unwrap().into_owned()
}
