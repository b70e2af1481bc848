//! Files of all codecs, filters, dtypes and storages, which one platform writes and another one reads.
//!
//! `cargo xtask platforms` sets `BLOSC2_TEST_EXCHANGE` to a folder, and `BLOSC2_TEST_PLATFORM` to the name of this
//! platform. The test then writes its files to the folder of this name, and reads those of all platforms. Without the
//! variables, it reads its own files only.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use blosc2::elements::{DateTime64, FixedStr, Nanoseconds};
use blosc2::{
    CParams, Codec, Element, Filter, NDArray, OpenOptions, RawItems, SChunk, SChunkReader,
    SChunkWriter, Target,
};
use blosc2_store::{EmbedStore, ObjectArray, TreeStore};
use blosc2_testing::{Kind, data, records};
use half::f16;
use num_complex::Complex;

const CODECS: [Codec; 5] = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];
/// The size of the data of a super-chunk in bytes: two full chunks and a part.
const LEN: usize = 48_000;
const CHUNKSIZE: usize = 19_200;
/// The shape of the arrays. Cells of 4 by 4 items do not cross the edges of chunks.
const SIDE: usize = 40;
const ITEMS: usize = SIDE * SIDE;

/// The files of a platform, which are written before they are read if `writes` is set.
struct Files<'a> {
    folder: &'a Path,
    writes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Reading {
    celsius: f64,
    sensor: u32,
    flags: u16,
    name: [u8; 2],
}

impl Files<'_> {
    fn bytes(&self, name: &str, params: &CParams, expected: &[u8], directory: bool) {
        let path = self.folder.join(name);
        if self.writes {
            let options = OpenOptions::new().create_new(true).cparams(params);
            let target = Target::from(&path).directory(directory);
            let mut schunk = options.meta("meta", b"fixed size").open(target).unwrap();
            SChunkWriter::new(&mut schunk, CHUNKSIZE).unwrap().write_all(expected).unwrap();
            schunk.vlmeta_mut().set("vlmeta", b"variable size").unwrap();
        }
        let schunk = SChunk::open(&path).unwrap();
        let mut found = Vec::new();
        SChunkReader::new(&schunk).read_to_end(&mut found).unwrap();
        assert_same(&path, &found, expected);
        assert_eq!(schunk.meta().get("meta").unwrap().unwrap(), b"fixed size");
        assert_eq!(schunk.vlmeta().get("vlmeta").unwrap().unwrap(), b"variable size");
    }

    /// An array in the byte order of its writer.
    fn items<T: Element + PartialEq>(
        &self,
        name: &str,
        params: CParams,
        item: impl Fn(usize) -> T,
    ) {
        let items: Vec<T> = (0..ITEMS).map(item).collect();
        let path = self.folder.join(name);
        if self.writes {
            let builder =
                NDArray::builder().cparams(params).chunk_shape([20, 20]).block_shape([8, 8]);
            builder.target(&path).from_slice(&items, [SIDE, SIDE]).unwrap();
        }
        self.array(&path, &items);
    }

    fn array<T: Element + PartialEq>(&self, path: &Path, items: &[T]) {
        let mut array = NDArray::open(path).unwrap();
        array.set_dparams(array.info().dparams.convert_byte_order(true));
        assert_same(path, &array.read::<Vec<T>>(..).unwrap(), items);
    }

    /// An array in a fixed byte order.
    fn order(&self, name: &str, dtype: &str, bytes: &[u8], directory: bool) {
        let path = self.folder.join(name);
        if self.writes {
            let builder = NDArray::builder().chunk_shape([20, 20]).block_shape([8, 8]);
            let builder = builder.target(Target::from(&path).directory(directory));
            builder.dtype(dtype, 8).from_slice(RawItems(bytes), [SIDE, SIDE]).unwrap();
        }
        let array = NDArray::open(&path).unwrap();
        assert_eq!(array.dtype_str(), Some(dtype));
        assert_same(&path, &array.read::<RawItems>(..).unwrap().0, bytes);
    }

    fn all(&self) {
        self.super_chunks();
        self.dtypes();
        self.lossy();
        self.orders();
        self.containers();
    }

    fn super_chunks(&self) {
        let filters: [(&str, &[Filter]); 6] = [
            ("none", &[]),
            ("shuffle", &[Filter::Shuffle]),
            ("bitshuffle", &[Filter::Bitshuffle]),
            ("delta", &[Filter::Delta, Filter::Shuffle]),
            ("bytedelta", &[Filter::Shuffle, Filter::Bytedelta(0)]),
            ("three", &[Filter::Delta, Filter::ShuffleBytes(3), Filter::Bitshuffle]),
        ];
        for codec in CODECS {
            for (filter, filters) in filters {
                for typesize in [1, 2, 4, 8, 12] {
                    let params = CParams::new().codec(codec).filters(filters);
                    let params = params.typesize(typesize).blocksize(4800);
                    let name = format!("{codec}-{filter}-{typesize}");
                    for (suffix, kind) in [("ramp", Kind::Ramp), ("mixed", Kind::Mixed)] {
                        let bytes = data(kind, LEN, typesize as u64);
                        let directory = typesize == 8 && kind == Kind::Ramp;
                        self.bytes(&format!("{name}-{suffix}.b2frame"), &params, &bytes, directory);
                    }
                }
            }
        }
        for codec in [Codec::Lz4, Codec::Lz4Hc, Codec::Zstd] {
            let params = CParams::new().codec(codec).dictionary(true).filters(&[]).blocksize(4800);
            self.bytes(&format!("{codec}-dictionary.b2frame"), &params, &records(LEN), false);
        }
    }

    fn dtypes(&self) {
        let params = CParams::new;
        self.items("bool.b2nd", params(), |at| at % 3 == 0);
        self.items("i8.b2nd", params(), |at| at as i8);
        self.items("u8.b2nd", params(), |at| at as u8);
        self.items("i16.b2nd", params(), |at| at as i16 - 700);
        self.items("u16.b2nd", params(), |at| at as u16 * 37);
        self.items("i32.b2nd", params(), |at| at as i32 * -70_001);
        self.items("u32.b2nd", params(), |at| at as u32 * 70_001);
        self.items("i64.b2nd", params(), |at| at as i64 * -70_001_000_007);
        self.items("u64.b2nd", params(), |at| at as u64 * 70_001_000_007);
        self.items("f16.b2nd", params(), |at| f16::from_f32(at as f32));
        self.items("f32.b2nd", params(), |at| at as f32 / 7.0);
        self.items("f64.b2nd", params(), |at| at as f64 / 7.0);
        self.items("complex64.b2nd", params(), |at| Complex::new(at as f32, -0.5));
        self.items("complex128.b2nd", params(), |at| Complex::new(at as f64, -0.5));
        self.items("text.b2nd", params(), |at| FixedStr::<5>::new(&format!("é{at}")).unwrap());
        self.items("time.b2nd", params(), |at| {
            DateTime64::<Nanoseconds>::new(at as i64 * 1_000_003)
        });
        self.items("struct.b2nd", params(), |at| Reading {
            celsius: at as f64 / 3.0,
            sensor: at as u32,
            flags: at as u16 ^ 0x8001,
            name: *b"ab",
        });
        // C's NDLZ stores numbers in the byte order of the platform.
        let array = NDArray::open(self.folder.join("i16.b2nd")).unwrap();
        if array.dtype_str() == Some(i16::dtype().to_string().as_str()) {
            for meta in [4, 8] {
                let params = params().codec(Codec::Ndlz).codec_meta(meta).filters(&[]);
                self.items(&format!("ndlz{meta}.b2nd"), params, |at| (at / 50) as u8);
            }
        }
        let params = params().filters(&[Filter::Ndcell(4), Filter::Shuffle]);
        self.items("ndcell.b2nd", params, |at| at as u32);

        let make = || NDArray::builder().chunk_shape([20, 20]).block_shape([8, 8]);
        let (zeros, full) = (self.folder.join("zeros.b2nd"), self.folder.join("full.b2nd"));
        let nans = self.folder.join("nans.b2nd");
        if self.writes {
            make().target(&zeros).zeros::<u32>([SIDE, SIDE]).unwrap();
            make().target(&full).full(1.25f64, [SIDE, SIDE]).unwrap();
            make().target(&nans).full(f64::NAN, [SIDE, SIDE]).unwrap();
        }
        self.array(&zeros, &[0u32; ITEMS]);
        self.array(&full, &[1.25f64; ITEMS]);
        let mut array = NDArray::open(&nans).unwrap();
        array.set_dparams(array.info().dparams.convert_byte_order(true));
        let found = array.read::<Vec<f64>>(..).unwrap();
        assert!(found.iter().all(|item| item.is_nan()), "{}: {:?}", nans.display(), &found[..3]);
    }

    /// Lossy filters, of items that they do not change: they know the byte order of the items.
    fn lossy(&self) {
        let with = |filter| CParams::new().filters(&[filter, Filter::Shuffle]);
        self.items("trunc-f32.b2nd", with(Filter::TruncPrec(12)), |at| at as f32);
        self.items("trunc-f64.b2nd", with(Filter::TruncPrec(-20)), |at| at as f64);
        self.items("int-trunc-i16.b2nd", with(Filter::IntTrunc(-4)), |at| (at as i16) << 4);
        self.items("int-trunc-i32.b2nd", with(Filter::IntTrunc(-8)), |at| (at as i32) << 8);
        self.items("int-trunc-i64.b2nd", with(Filter::IntTrunc(-40)), |at| (at as i64) << 40);
        let cell = |at: usize| (at / SIDE / 4 * 10 + at % SIDE / 4) as f64;
        self.items("ndmean-f32.b2nd", with(Filter::Ndmean(4)), |at| cell(at) as f32);
        self.items("ndmean-f64.b2nd", with(Filter::Ndmean(4)), cell);
    }

    fn orders(&self) {
        let numbers = |big: bool| -> Vec<u8> {
            let bytes = |at: usize| match big {
                true => (at as f64 / 3.0).to_be_bytes(),
                false => (at as f64 / 3.0).to_le_bytes(),
            };
            (0..ITEMS).flat_map(bytes).collect()
        };
        for (name, directory) in [("file", false), ("directory", true)] {
            self.order(&format!("little-{name}.b2nd"), "<f8", &numbers(false), directory);
            self.order(&format!("big-{name}.b2nd"), ">f8", &numbers(true), directory);
        }
        for name in ["little-file.b2nd", "big-file.b2nd", "little-directory.b2nd"] {
            let items: Vec<f64> = (0..ITEMS).map(|at| at as f64 / 3.0).collect();
            self.array(&self.folder.join(name), &items);
        }
    }

    fn containers(&self) {
        let schunk = || {
            let mut schunk = SChunk::in_memory::<u8>(CParams::new()).unwrap();
            schunk.append(&data(Kind::Ramp, 5000, 0)).unwrap();
            schunk
        };
        let check = |path: &Path, found: &SChunk| {
            assert_same(path, &found.read::<u8>(..).unwrap(), &data(Kind::Ramp, 5000, 0));
        };

        let path = self.folder.join("objects.b2frame");
        if self.writes {
            let mut array = ObjectArray::create(&path).unwrap();
            array.append(&("text", 1.5, -70_000, [true, false])).unwrap();
            array.append(&u64::MAX).unwrap();
        }
        let array = ObjectArray::open(&path).unwrap();
        let values: Vec<_> = array.iter().map(|value| value.unwrap().to_string()).collect();
        assert_eq!(values, ["['text', 1.5, -70000, [True, False]]", "18446744073709551615"]);

        let path = self.folder.join("embed.b2e");
        if self.writes {
            EmbedStore::create(&path).unwrap().insert("/node", &schunk()).unwrap();
        }
        check(&path, &EmbedStore::open(&path).unwrap().frame("/node").unwrap());

        for name in ["tree.b2d", "tree.b2z"] {
            let path = self.folder.join(name);
            if self.writes {
                let mut store = TreeStore::create(&path).unwrap();
                store.insert("/group/node", &schunk()).unwrap();
                store.set_attribute("/group", "unit", "m/s").unwrap();
                store.finish().unwrap();
            }
            let store = TreeStore::open(&path).unwrap();
            check(&path, &store.schunk("/group/node").unwrap());
        }
    }
}

fn assert_same<T: PartialEq>(path: &Path, found: &[T], expected: &[T]) {
    // Not `assert_eq`, which would print all items.
    assert!(found == expected, "{}: other items than were written", path.display());
}

#[test]
fn files_of_all_platforms_are_read() {
    let given = |name| env::var_os(name).map(PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let folder = given("BLOSC2_TEST_EXCHANGE").unwrap_or(temporary.path().to_owned());
    let own = folder.join(given("BLOSC2_TEST_PLATFORM").unwrap_or("own".into()));
    if !own.exists() {
        fs::create_dir_all(&own).unwrap();
        Files { folder: &own, writes: true }.all();
    }
    for entry in fs::read_dir(&folder).unwrap() {
        Files { folder: &entry.unwrap().path(), writes: false }.all();
    }
}
