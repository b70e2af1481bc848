//! Arrays of the C library against `blosc2-format`: both place and pad all items in the same way, and read what the
//! other writes.

use std::io::Cursor;
use std::ptr::{self, NonNull};

use blosc2::{NDArray, RawItems};
use blosc2_format::b2nd::{Geometry, Meta, NAME};
use blosc2_format::file::{self, File};
use blosc2_format::frame::{Metalayer, Writer};
use blosc2_format::{Finding, Limits, Options, Severity, chunk};
use blosc2_sys as sys;
use proptest::prelude::*;

use crate::common::{Kind, Model, assert_same, repeats};

/// An array that the C library keeps in memory.
struct CArray(NonNull<sys::b2nd_array_t>);

impl CArray {
    /// Creates an array from items in C order, or without items.
    fn new(meta: &Meta, typesize: usize, bytes: Option<&[u8]>) -> Self {
        blosc2::Codec::Zstd.is_available(); // starts the library
        // SAFETY: the parameters live as long as the context, which copies them; the shapes have
        // `ndim` numbers, and `bytes` has the given length.
        unsafe {
            let mut cparams = sys::blosc2_cparams_defaults();
            cparams.typesize = typesize as i32;
            let mut storage = sys::blosc2_storage { contiguous: true, ..std::mem::zeroed() };
            storage.cparams = &mut cparams;
            let context = sys::b2nd_create_ctx(
                &storage,
                meta.shape.len() as i8,
                meta.shape.as_ptr(),
                meta.chunks.as_ptr(),
                meta.blocks.as_ptr(),
                ptr::null(),
                0,
                ptr::null(),
                0,
            );
            assert!(!context.is_null());
            let mut array = ptr::null_mut();
            let code = match bytes {
                Some(bytes) => sys::b2nd_from_cbuffer(
                    context,
                    &mut array,
                    bytes.as_ptr().cast(),
                    bytes.len() as i64,
                ),
                None => sys::b2nd_zeros(context, &mut array),
            };
            sys::b2nd_free_ctx(context);
            assert_eq!(code, 0, "{meta:?}");
            Self(NonNull::new(array).unwrap())
        }
    }

    fn schunk(&self) -> *mut sys::blosc2_schunk {
        // SAFETY: the array is live.
        unsafe { self.0.as_ref().sc }
    }

    fn nchunks(&self) -> i64 {
        // SAFETY: the super-chunk of a live array is live.
        unsafe { (*self.schunk()).nchunks }
    }

    /// Decompresses a chunk.
    fn chunk(&self, number: i64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: `bytes` has room for `len` bytes.
        let found = unsafe {
            let to = bytes.as_mut_ptr().cast();
            sys::blosc2_schunk_decompress_chunk(self.schunk(), number, to, len as i32)
        };
        assert_eq!(found, len as i32, "chunk {number}");
        bytes
    }

    /// Replaces a chunk with a compressed one.
    fn replace(&self, number: i64, chunk: &[u8]) {
        // SAFETY: the chunk is whole; C copies it.
        let nchunks = unsafe {
            let from = chunk.as_ptr().cast_mut();
            sys::blosc2_schunk_update_chunk(self.schunk(), number, from, true)
        };
        assert_eq!(nchunks, self.nchunks(), "chunk {number}");
    }

    /// All items in C order.
    fn items(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: `bytes` has room for `len` bytes.
        let code =
            unsafe { sys::b2nd_to_cbuffer(self.0.as_ptr(), bytes.as_mut_ptr().cast(), len as i64) };
        assert_eq!(code, 0);
        bytes
    }
}

impl Drop for CArray {
    fn drop(&mut self) {
        // SAFETY: the array is freed once.
        unsafe { sys::b2nd_free(self.0.as_ptr()) };
    }
}

/// Writes an array as a contiguous frame, without C.
fn write(meta: &Meta, geometry: &Geometry, items: &[u8], codec: u8) -> Vec<u8> {
    let params = chunk::Params {
        codec,
        typesize: geometry.typesize() as u32,
        blocksize: Some(geometry.block_len() as u32).filter(|&len| len > 0),
        ..chunk::Params::default()
    };
    let metalayer = Metalayer { name: NAME.to_owned(), content: meta.to_bytes().unwrap() };
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[metalayer]).unwrap();
    let mut cut = vec![0; geometry.chunk_len()];
    for number in 0..geometry.nchunks() {
        geometry.cut(number, items, &mut cut).unwrap();
        writer.push(&cut).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Shape, chunk shape, block shape.
type Shapes = (Vec<i64>, Vec<i32>, Vec<i32>);

fn shapes() -> impl Strategy<Value = Shapes> {
    let axis = |most: i64| {
        (0..=most, 1..=most as i32 + 3, 1..=most as i32 + 3)
            .prop_map(|(size, chunk, block)| (size, chunk, block.min(chunk)))
    };
    let deepest =
        prop::collection::vec((1i64..=2, 1i32..=2, Just(1i32)), 16).prop_map(|mut axes| {
            axes.iter_mut().skip(8).for_each(|axis| *axis = (1, 1, 1));
            axes
        });
    let axes = prop_oneof![
        4 => prop::collection::vec(axis(30), 0..=2),
        4 => prop::collection::vec(axis(7), 3..=5),
        1 => deepest,
    ];
    axes.prop_map(|axes| {
        let shape = axes.iter().map(|axis| axis.0).collect();
        let chunks = axes.iter().map(|axis| axis.1).collect();
        (shape, chunks, axes.iter().map(|axis| axis.2).collect())
    })
}

fn agree((shape, chunks, blocks): Shapes, typesize: usize, kind: Kind, seed: u64) {
    let what = format!("{shape:?} {chunks:?} {blocks:?} of {typesize} bytes");
    let sizes: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
    let model = Model::new(&sizes, typesize, kind, seed);
    let dtype = Some(format!("|V{typesize}"));
    let meta = Meta { shape, chunks, blocks, dtype, dtype_format: 0 };
    let geometry = Geometry::new(&meta, typesize as u32, &Limits::default()).unwrap();
    let whole: Vec<_> = sizes.iter().map(|&size| 0..size).collect();

    let written = CArray::new(&meta, typesize, Some(&model.bytes));
    let filled = CArray::new(&meta, typesize, None);
    assert_eq!(written.nchunks() as u64, geometry.nchunks(), "{what}");
    let mut assembled = vec![0; model.bytes.len()];
    let params = blosc2::CParams::new().typesize(typesize).blocksize(geometry.block_len());
    for number in 0..geometry.nchunks() {
        let mut cut = vec![0xee; geometry.chunk_len()];
        geometry.cut(number, &model.bytes, &mut cut).unwrap();
        let chunk = written.chunk(number as i64, cut.len());
        assert_same(&cut, &chunk, &format!("chunk {number} of {what}"));
        geometry.assemble(number, &chunk, &whole, &mut assembled).unwrap();
        filled.replace(number as i64, &blosc2::compress(&cut, &params).unwrap());
    }
    assert_same(&assembled, &model.bytes, &format!("chunks by C, of {what}"));
    let found = filled.items(model.bytes.len());
    assert_same(&found, &model.bytes, &format!("chunks cut here, of {what}"));

    // A complete file written by this crate.
    let codec = [0, 1, 4, 5][(seed % 4) as usize];
    let bytes = write(&meta, &geometry, &model.bytes, codec);
    let (_, report) =
        file::check(&bytes, &Options { content: true, ..Options::default() }).unwrap();
    assert_eq!(report.findings.iter().find(|each| !is_note(each)), None, "{what}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.b2nd");
    std::fs::write(&path, &bytes).unwrap();
    let array = NDArray::open(&path).unwrap();
    assert_eq!(
        (array.shape(), array.dtype_str()),
        (sizes.as_slice(), meta.dtype.as_deref()),
        "{what}"
    );
    let found = array.read::<RawItems>(&whole).unwrap().0;
    assert_same(&found, &model.bytes, &format!("file written here, of {what}"));
    let found = File::open(&path, &Limits::default()).unwrap().read_box(&whole).unwrap();
    assert_same(&found, &model.bytes, &format!("file read here, of {what}"));
}

fn is_note(finding: &Finding) -> bool {
    finding.rule.severity == Severity::Note
}

#[test]
fn every_class_of_shapes() {
    for (shape, chunks, blocks) in [
        (&[][..], &[][..], &[][..]),
        (&[1], &[1], &[1]),
        (&[0], &[4], &[2]),
        (&[0, 5], &[0, 5], &[0, 5]),
        (&[5, 0, 3], &[2, 1, 3], &[1, 1, 2]),
        (&[12, 8], &[4, 8], &[2, 4]),
        (&[13, 9], &[5, 4], &[3, 3]),
        (&[3], &[10], &[4]),
        (&[1; 16], &[1; 16], &[1; 16]),
        (&[2; 8], &[2; 8], &[1; 8]),
    ] {
        for typesize in [1, 4, 7, 255, 256, 300] {
            agree((shape.to_vec(), chunks.to_vec(), blocks.to_vec()), typesize, Kind::Mixed, 7);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: repeats(300) as u32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_shapes(
        shapes in shapes(),
        typesize in prop_oneof![
            prop::sample::select(vec![1usize, 2, 4, 8, 16]),
            1usize..=40,
        ],
        kind in prop::sample::select(crate::common::KINDS.to_vec()),
        seed in any::<u64>(),
    ) {
        agree(shapes, typesize, kind, seed);
    }
}
