//! Arrays in memory, written and read with the codecs.
#![allow(clippy::single_range_in_vec_init, reason = "a subset has one range for each dimension")]

mod common;

use std::sync::Arc;

use blosc2::{CParams, ChunkRef, Codec, Filter, SplitMode};
use blosc2_testing::Rng;
use blosc2_zarrs::BloscCodec;
use common::{CODECS, FILTERS, KINDS, Kind, all, bytes_array, data, options, params};
use zarrs::array::codec::api::{
    BytesPartialDecoderTraits, BytesRepresentation, BytesToBytesCodecTraits, CodecError,
};
use zarrs::array::{Array, ArrayBuilder, ArraySubset, data_type};
use zarrs::storage::byte_range::ByteRange;
use zarrs::storage::storage_adapter::performance_metrics::PerformanceMetricsStorageAdapter;
use zarrs::storage::store::MemoryStore;

#[test]
fn chunks_have_the_format_and_the_data() {
    let mut combinations = 0;
    for kind in KINDS {
        for codec in CODECS {
            for filters in FILTERS {
                for typesize in 1..=16 {
                    let what = format!("{kind:?} {codec} {filters:?} {typesize}");
                    // Not always a whole number of items.
                    let mut data = data(40_000 + typesize % 3);
                    // Every codec compresses this part, whatever the filter does.
                    data[..20_000].fill(3);
                    let coder = kind.codec(params(codec, filters, typesize));
                    let encoded = coder.encode((&data).into(), &options()).unwrap();
                    assert!(encoded.len() < data.len(), "{what}");

                    let chunk = ChunkRef::new(&encoded).unwrap();
                    assert_eq!(chunk.is_blosc1(), kind == Kind::Blosc, "{what}");
                    assert_eq!(chunk.format_version() == 2, kind == Kind::Blosc, "{what}");
                    assert_eq!((chunk.typesize(), chunk.nbytes()), (typesize, data.len()));
                    let format = if codec == Codec::Lz4Hc { Codec::Lz4 } else { codec };
                    assert_eq!(chunk.codec(), format, "{what}");
                    assert_eq!(chunk.filters(), filters, "{what}");

                    let size = BytesRepresentation::FixedSize(data.len() as u64);
                    let decoded = coder.decode(encoded, &size, &options()).unwrap();
                    assert!(decoded == data, "{what}");
                    combinations += 1;
                }
            }
        }
    }
    assert_eq!(combinations, 2 * 5 * 3 * 16);
}

#[test]
fn arrays_of_any_shape_are_read_as_written() {
    let shapes: [(&[u64], &[u64]); 7] = [
        (&[], &[]),
        (&[0], &[5]),
        (&[1], &[1]),
        (&[1000], &[300]),
        (&[37, 23], &[16, 10]),
        (&[3, 0, 4], &[2, 2, 2]),
        (&[5, 6, 7, 8], &[2, 3, 7, 5]),
    ];
    for kind in KINDS {
        for (shape, chunks) in shapes {
            let codec = kind.codec(params(Codec::Lz4, &[Filter::Shuffle], 4));
            let array = ArrayBuilder::new(shape, chunks, data_type::float32(), -1.0f32)
                .bytes_to_bytes_codecs(vec![codec])
                .build(Arc::new(MemoryStore::new()), "/a")
                .unwrap();
            let len: u64 = shape.iter().product();
            let items: Vec<f32> = (0..len).map(|i| (i as f32).sqrt()).collect();
            array.store_array_subset(&array.subset_all(), &items).unwrap();
            let found: Vec<f32> = array.retrieve_array_subset(&array.subset_all()).unwrap();
            assert_eq!(found, items, "{kind:?} {shape:?}");
        }
    }
}

#[test]
fn variable_length_items_are_read_as_written() {
    for kind in KINDS {
        let array = ArrayBuilder::new(vec![1000], vec![300], data_type::string(), "")
            .bytes_to_bytes_codecs(vec![kind.codec(params(Codec::Zstd, &[], 1))])
            .build(Arc::new(MemoryStore::new()), "/a")
            .unwrap();
        let items: Vec<String> = (0..1000).map(|i| "ab".repeat(i % 50)).collect();
        array.store_array_subset(&array.subset_all(), &items).unwrap();
        let found: Vec<String> = array.retrieve_array_subset(&[290..310]).unwrap();
        assert_eq!(found, items[290..310], "{kind:?}");
    }
}

/// Partial decoders of chunks that are divided into blocks in several ways return the same as the whole data.
#[test]
fn parts_are_those_of_the_whole() {
    let mut rng = Rng(1);
    let data = data(300_001);
    let size = BytesRepresentation::FixedSize(data.len() as u64);
    for case in 0..200 {
        let kind = *rng.pick(&KINDS);
        let filters = *rng.pick(&[FILTERS[0], FILTERS[1], FILTERS[2], &[Filter::Delta]]);
        let filters = if kind == Kind::Blosc { *rng.pick(&FILTERS) } else { filters };
        let typesize = if filters == [Filter::Delta] { 1 } else { 1 + rng.index(16) };
        let mut params = params(*rng.pick(&CODECS), filters, typesize).level(*rng.pick(&[0, 1, 5]));
        params.blocksize = *rng.pick(&[None, Some(1000), Some(4096), Some(30_001)]);
        let coder = kind.codec(params.clone());
        let encoded = coder.encode((&data).into(), &options()).unwrap().into_owned();
        let decoder = coder.clone().partial_decoder(Arc::new(encoded), &size, &options()).unwrap();
        for count in [1, 1, 2, 7, 40] {
            let most = *rng.pick(&[1, 10, 5000, 100_000]);
            let regions: Vec<ByteRange> = (0..count)
                .map(|_| {
                    let start = rng.index(data.len() + 1);
                    let len = rng.index(most + 1).min(data.len() - start);
                    match rng.below(8) {
                        0 => ByteRange::Suffix(len as u64),
                        1 if most == 100_000 => ByteRange::FromStart(start as u64, None),
                        _ => ByteRange::FromStart(start as u64, Some(len as u64)),
                    }
                })
                .collect();
            let found = decoder
                .partial_decode_many(Box::new(regions.iter().copied()), &options())
                .unwrap()
                .unwrap();
            assert_eq!(found.len(), regions.len());
            for (found, region) in found.iter().zip(&regions) {
                let expected = &data[region.to_range_usize(data.len() as u64)];
                assert!(**found == *expected, "case {case}: {params:?} {region}");
            }
        }
    }
}

/// No writer produces this, but readers accept it.
#[test]
fn blocks_need_not_hold_whole_items() {
    let data = data(200_050);
    let size = BytesRepresentation::FixedSize(data.len() as u64);
    for kind in KINDS {
        let params = params(Codec::Lz4, &[], 1).blocksize(1000).split(SplitMode::Never);
        let coder = kind.codec(params);
        let mut encoded = coder.encode((&data).into(), &options()).unwrap().into_owned();
        encoded[3] = 7; // The typesize.
        let decoder = coder.partial_decoder(Arc::new(encoded), &size, &options()).unwrap();
        for range in [1000..1001, 1999..2000, 5005..5006, 199_999..200_000, 200_001..200_005] {
            let found = decoder.partial_decode(ByteRange::new(range.clone()), &options());
            let expected = &data[range.start as usize..range.end as usize];
            assert_eq!(found.unwrap().unwrap(), expected, "{kind:?} {range:?}");
        }
    }
}

#[test]
fn parts_outside_the_data_are_errors() {
    for kind in KINDS {
        for len in [1000, 300_000] {
            let data = data(len);
            let coder = kind.codec(params(Codec::Lz4, &[], 4));
            let encoded = coder.encode((&data).into(), &options()).unwrap().into_owned();
            let len = len as u64;
            let size = BytesRepresentation::FixedSize(len);
            let decoder = coder.partial_decoder(Arc::new(encoded), &size, &options()).unwrap();
            for region in [
                ByteRange::FromStart(len, Some(1)),
                ByteRange::FromStart(len + 1, None),
                ByteRange::FromStart(u64::MAX, Some(u64::MAX)),
                ByteRange::FromStart(1, Some(u64::MAX)),
                ByteRange::Suffix(len + 1),
            ] {
                let found = decoder.partial_decode(region, &options());
                assert!(
                    matches!(found, Err(CodecError::InvalidByteRangeError(_))),
                    "{region:?}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_missing_chunk_has_no_parts() {
    let store = Arc::new(MemoryStore::new());
    for kind in KINDS {
        let array = ArrayBuilder::new(vec![100_000], vec![100_000], data_type::uint8(), 7u8)
            .bytes_to_bytes_codecs(vec![kind.codec(CParams::new())])
            .build(store.clone(), "/a")
            .unwrap();
        let found: Vec<u8> = array.retrieve_array_subset(&[10..13]).unwrap();
        assert_eq!(found, [7, 7, 7]);
    }
}

/// What a read of a subset reads from the store.
#[derive(Debug, PartialEq)]
struct Cost {
    requests: usize,
    bytes: usize,
}

fn cost(kind: Kind, params: CParams, data: &[u8], subset: std::ops::Range<u64>) -> Cost {
    let store = Arc::new(PerformanceMetricsStorageAdapter::new(Arc::new(MemoryStore::new())));
    let array = bytes_array(store.clone(), kind.codec(params), data);
    store.reset();
    let found: Vec<u8> = array.retrieve_array_subset(&std::slice::from_ref(&subset)).unwrap();
    assert!(found == data[subset.start as usize..subset.end as usize]);
    Cost { requests: store.reads(), bytes: store.bytes_read() }
}

#[test]
fn a_subset_needs_its_blocks_only() {
    const LEN: usize = 1 << 20;
    let data = data(LEN);
    for kind in KINDS {
        let head = kind.header_len();
        let blocks = params(Codec::Lz4, &[], 1).blocksize(16_384);
        // The header; the 64 entries of the table; the block, compressed to about half.
        let small = cost(kind, blocks.clone(), &data, 500_000..500_100);
        assert_eq!(small.requests, 3, "{kind:?}");
        let rest = small.bytes - head - 4 * 64;
        assert!((8_000..17_000).contains(&rest), "{kind:?}: {rest}");
        // Two blocks.
        let two = cost(kind, blocks.clone(), &data, 16_384 * 30 - 1..16_384 * 30 + 1);
        assert_eq!(two.requests, 3, "{kind:?}");
        assert!((16_000..34_000).contains(&two.bytes), "{kind:?}: {two:?}");
        // Most of the data: everything by one request.
        let most = cost(kind, blocks.clone(), &data, 0..900_000);
        assert_eq!(most.requests, 1, "{kind:?}");
        // Stored data: the header, and the bytes themselves.
        let stored = cost(kind, blocks.clone().level(0), &data, 500_000..500_100);
        assert_eq!(stored, Cost { requests: 2, bytes: head + 100 }, "{kind:?}");
    }
    // The first block too, to which the others refer.
    let delta = params(Codec::Lz4, &[Filter::Delta], 1).blocksize(16_384);
    let delta = cost(Kind::Blosc2, delta, &data, 500_000..500_100);
    assert!(delta.requests == 4 && delta.bytes < 40_000, "{delta:?}");
    // A chunk of zeros is its header.
    let zeros = cost(Kind::Blosc2, CParams::new(), &vec![0; LEN], 9..500);
    assert_eq!(zeros, Cost { requests: 1, bytes: 32 });
}

#[test]
fn what_is_between_the_blocks_is_not_read() {
    let data = data(1 << 20);
    for kind in KINDS {
        let store = Arc::new(PerformanceMetricsStorageAdapter::new(Arc::new(MemoryStore::new())));
        let (shape, codec) = (vec![2, 1 << 19], params(Codec::Lz4, &[], 1).blocksize(16_384));
        let array = ArrayBuilder::new(shape.clone(), shape, data_type::uint8(), 255u8)
            .bytes_to_bytes_codecs(vec![kind.codec(codec)])
            .build(store.clone(), "/a")
            .unwrap();
        array.store_chunk(&[0, 0], data.clone()).unwrap();
        store.reset();
        // A block in each of the rows.
        let found: Vec<u8> = array.retrieve_array_subset(&[0..2, 40_000..40_010]).unwrap();
        assert_eq!(found, [&data[40_000..40_010], &data[(1 << 19) + 40_000..][..10]].concat());
        let bytes = store.bytes_read();
        assert!((16_000..35_000).contains(&bytes), "{kind:?}: {bytes} bytes");
    }
}

#[test]
fn parts_of_the_chunks_in_shards_are_read() {
    // The array is opened by the names of its codecs.
    blosc2_zarrs::register();
    for kind in KINDS {
        let store = Arc::new(PerformanceMetricsStorageAdapter::new(Arc::new(MemoryStore::new())));
        let codec = kind.codec(params(Codec::Lz4, &[Filter::Shuffle], 4).blocksize(16_384));
        // Shards of 4 chunks of 400 KB.
        let array = ArrayBuilder::new(vec![2000, 500], vec![800, 500], data_type::int32(), -1i32)
            .subchunk_shape(vec![200, 500])
            .bytes_to_bytes_codecs(vec![codec])
            .build(store.clone(), "/a")
            .unwrap();
        let bytes = data(2000 * 500 * 4);
        let items: Vec<i32> =
            bytes.as_chunks::<4>().0.iter().map(|item| i32::from_le_bytes(*item)).collect();
        array.store_array_subset(&array.subset_all(), &items).unwrap();
        array.store_metadata().unwrap();

        let read = Array::open(store.clone(), "/a").unwrap();
        assert!(all(&read) == bytes.as_slice(), "{kind:?}");
        store.reset();
        let subset = ArraySubset::new_with_ranges(&[1100..1102, 20..30]);
        let found: Vec<i32> = read.retrieve_array_subset(&subset).unwrap();
        let expected = (1100..1102).flat_map(|row| items[row * 500 + 20..][..10].to_vec());
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert!(store.bytes_read() < 30_000, "{kind:?}: {} bytes", store.bytes_read());
    }
}

#[test]
fn many_threads_use_one_codec() {
    for kind in KINDS {
        let coder = kind.codec(params(Codec::Lz4, &[Filter::Shuffle], 4).threads(2));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let coder = &coder;
                scope.spawn(move || {
                    for len in (1000..200_000).step_by(20_000 + thread) {
                        let data = data(len);
                        let encoded = coder.encode((&data).into(), &options()).unwrap();
                        let size = BytesRepresentation::FixedSize(len as u64);
                        assert!(coder.decode(encoded, &size, &options()).unwrap() == data);
                    }
                });
            }
        });
    }
}

#[test]
fn empty_data_is_a_chunk_too() {
    for kind in KINDS {
        let coder = kind.codec(CParams::new());
        let encoded = coder.encode(Vec::new().into(), &options()).unwrap();
        assert_eq!(encoded.len(), kind.header_len());
        let size = BytesRepresentation::FixedSize(0);
        assert_eq!(coder.decode(encoded, &size, &options()).unwrap().len(), 0);
    }
}

#[test]
fn sizes_that_c_blosc_accepts_are_accepted() {
    let data = data(100_000);
    for (typesize, blocksize) in [(300, 0), (8, 3), (4, usize::MAX), (255, 100)] {
        let mut params = params(Codec::Lz4, &[Filter::Shuffle], typesize);
        params.blocksize = Some(blocksize);
        let coder = BloscCodec::new(params).unwrap();
        let encoded = coder.encode((&data).into(), &options()).unwrap();
        let expected = if typesize > 255 { 1 } else { typesize };
        assert_eq!(ChunkRef::new(&encoded).unwrap().typesize(), expected);
        let size = BytesRepresentation::FixedSize(data.len() as u64);
        assert!(coder.decode(encoded, &size, &options()).unwrap() == data);
    }
}

#[test]
fn the_bound_of_the_encoded_size_holds() {
    let random = Rng(3).bytes(5000);
    for kind in KINDS {
        let coder = kind.codec(CParams::new());
        let encoded = coder.encode((&random).into(), &options()).unwrap();
        let size = BytesRepresentation::FixedSize(5000);
        let bound = coder.encoded_representation(&size);
        assert_eq!(bound, BytesRepresentation::BoundedSize(encoded.len() as u64));
        let unbounded = BytesRepresentation::UnboundedSize;
        assert_eq!(coder.encoded_representation(&unbounded), unbounded);
    }
}

/// A source without partial decoding is read once.
#[test]
fn a_source_without_parts_is_read_whole() {
    struct Whole(Vec<u8>, std::sync::Mutex<usize>);

    impl BytesPartialDecoderTraits for Whole {
        fn exists(&self) -> Result<bool, zarrs::storage::StorageError> {
            Ok(true)
        }

        fn size_held(&self) -> usize {
            0
        }

        fn partial_decode_many(
            &self,
            regions: zarrs::storage::byte_range::ByteRangeIterator,
            options: &zarrs::array::codec::api::CodecOptions,
        ) -> Result<
            Option<Vec<zarrs::array::ArrayBytesRaw<'_>>>,
            zarrs::array::codec::api::CodecError,
        > {
            *self.1.lock().unwrap() += 1;
            self.0.partial_decode_many(regions, options)
        }

        fn supports_partial_decode(&self) -> bool {
            false
        }
    }

    let data = data(300_000);
    let coder = Kind::Blosc2.codec(params(Codec::Lz4, &[], 4).blocksize(4096));
    let encoded = coder.encode((&data).into(), &options()).unwrap().into_owned();
    let source = Arc::new(Whole(encoded, Default::default()));
    let size = BytesRepresentation::FixedSize(data.len() as u64);
    let decoder = coder.partial_decoder(source.clone(), &size, &options()).unwrap();
    let found = decoder.partial_decode(ByteRange::FromStart(9, Some(5)), &options()).unwrap();
    assert_eq!(found.unwrap(), &data[9..14]);
    assert_eq!(*source.1.lock().unwrap(), 1);
}

#[cfg(feature = "async")]
#[test]
fn the_asynchronous_api_reads_parts() {
    let data = data(300_000);
    let size = BytesRepresentation::FixedSize(data.len() as u64);
    for kind in KINDS {
        let coder = kind.codec(params(Codec::Lz4, &[Filter::Shuffle], 4).blocksize(4096));
        let encoded = coder.encode((&data).into(), &options()).unwrap().into_owned();
        futures::executor::block_on(async {
            let decoder =
                coder.async_partial_decoder(Arc::new(encoded), &size, &options()).await.unwrap();
            let regions = [ByteRange::FromStart(9, Some(5)), ByteRange::Suffix(7)];
            let found = decoder
                .partial_decode_many(Box::new(regions.into_iter()), &options())
                .await
                .unwrap()
                .unwrap();
            assert_eq!(found, [&data[9..14], &data[299_993..]]);
        });
    }
}
