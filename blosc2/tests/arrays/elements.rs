//! Items other than primitive numbers: bools, structures with padding, arrays, half and complex numbers.

use blosc2::dtype::{ByteOrder, ScalarDecoder};
use blosc2::elements::{FixedBytes, FixedStr};
use blosc2::user_defined::BoxError;
use blosc2::user_defined::ChunkBlock;
use blosc2::{CParams, Chunk, DParams, Decompressor, Dtype, Element, ErrorKind, RawItems};
use blosc2::{ChunkRef, NDArray, SChunk};
use half::f16;
use num_complex::Complex;

use crate::common::native;

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Padded {
    ok: bool,
    value: f64,
    inner: [Inner; 2],
    last: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Inner(u8, #[element(name = "it's")] u16);

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C, packed)]
struct Packed {
    r#type: bool,
    value: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C, packed(2))]
struct Half {
    first: u8,
    value: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C, align(8))]
struct Aligned(u8);

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(transparent)]
struct Metres([f32; 2]);

const ITEM: Padded = Padded { ok: true, value: 2.5, inner: [Inner(1, 2), Inner(3, 4)], last: 5 };

/// The offset of the second field. On some 32-bit processors, it is 4.
const VALUE: usize = align_of::<f64>();
const INNER: usize = VALUE + 8;

/// Items in memory that was full of other bytes.
fn dirty(count: usize) -> Vec<Padded> {
    let mut items: Vec<Padded> = Vec::with_capacity(count);
    for item in items.spare_capacity_mut() {
        let item = item.as_mut_ptr();
        // SAFETY: memory of one item; field by field, so that the padding stays as it is.
        unsafe {
            item.write_bytes(0xaa, 1);
            (*item).ok = ITEM.ok;
            (*item).value = ITEM.value;
            for (inner, Inner(first, second)) in (*item).inner.iter_mut().zip(ITEM.inner) {
                inner.0 = first;
                inner.1 = second;
            }
            (*item).last = ITEM.last;
        }
    }
    // SAFETY: all fields of as many items are written.
    unsafe { items.set_len(count) };
    items
}

/// The bytes of an item as they are stored.
fn stored() -> Vec<u8> {
    let mut bytes = vec![0; size_of::<Padded>()];
    bytes[0] = 1;
    bytes[VALUE..VALUE + 8].copy_from_slice(&2.5f64.to_ne_bytes());
    for (at, Inner(first, second)) in [INNER, INNER + 4].into_iter().zip(ITEM.inner) {
        bytes[at] = first;
        bytes[at + 2..at + 4].copy_from_slice(&second.to_ne_bytes());
    }
    bytes[INNER + 8] = 5;
    bytes
}

#[test]
fn dtypes_are_those_of_numpy() {
    let inner =
        "{'names': ['f0', \"it's\"], 'formats': ['u1', '<u2'], 'offsets': [0, 2], 'itemsize': 4}";
    let padded = format!(
        "{{'names': ['ok', 'value', 'inner', 'last'], 'formats': ['?', '<f8', ({inner}, (2,)), 'u1'], \
         'offsets': [0, {VALUE}, {INNER}, {}], 'itemsize': {}}}",
        INNER + 8,
        size_of::<Padded>()
    );
    let half = "{'names': ['first', 'value'], 'formats': ['u1', '<u8'], 'offsets': [0, 2], 'itemsize': 10}";
    let aligned = "{'names': ['f0'], 'formats': ['u1'], 'offsets': [0], 'itemsize': 8}";
    for (dtype, text) in [
        (u8::dtype(), "|u1"),
        (i16::dtype(), "<i2"),
        (u64::dtype(), "<u8"),
        (f32::dtype(), "<f4"),
        (bool::dtype(), "|b1"),
        (f16::dtype(), "<f2"),
        (Complex::<f32>::dtype(), "<c8"),
        (Complex::<f64>::dtype(), "<c16"),
        (<[f32; 3]>::dtype(), "('<f4', (3,))"),
        (<[[bool; 2]; 3]>::dtype(), "('?', (3, 2))"),
        (Packed::dtype(), "[('type', '?'), ('value', '<u4')]"),
        (Half::dtype(), half),
        (Aligned::dtype(), aligned),
        (Metres::dtype(), "('<f4', (2,))"),
        (<[Metres; 4]>::dtype(), "('<f4', (4, 2))"),
        (Inner::dtype(), inner),
        (Padded::dtype(), &padded),
    ] {
        assert_eq!(dtype.to_string(), native(text));
        assert_eq!(Dtype::parse(&native(text)).unwrap(), dtype);
        assert!(dtype.is_native());
    }
    assert_eq!((Padded::dtype().size(), Half::dtype().size()), (size_of::<Padded>(), 10));
}

#[test]
fn padding_is_stored_as_zeros() {
    let items = dirty(1000);
    let params = CParams::default();
    let expected = stored().repeat(1000);

    let chunk = blosc2::compress(&items, &params).unwrap();
    assert_eq!(blosc2::decompress::<u8>(&chunk).unwrap(), expected);
    assert_eq!(blosc2::decompress::<Padded>(&chunk).unwrap(), items);
    // Padding is also cleared in a chunk without compression.
    let plain = blosc2::compress(&items, &params.clone().level(0)).unwrap();
    assert!(!plain.contains(&0xaa));
    let mut blocks = blosc2::Compressor::new(&params).unwrap();
    let blocks = blocks.compress_blocks(&[&items[..3], &items[3..5]]).unwrap();
    assert_eq!(blocks.block(1).unwrap(), stored().repeat(2));
    let repeated = Chunk::repeat(&items[..1], 10, &params).unwrap();
    assert_eq!(repeated.decompress::<u8>().unwrap(), stored().repeat(10));

    let mut schunk = SChunk::in_memory::<Padded>(&params).unwrap();
    schunk.append(&items).unwrap();
    schunk.insert(0, &items).unwrap();
    schunk.replace(1, &items).unwrap();
    schunk.write(5, &items[..7]).unwrap();
    assert_eq!(schunk.read::<u8>(..).unwrap(), expected.repeat(2));
    assert_eq!(schunk.read::<Padded>(3..5).unwrap(), items[3..5]);
    assert_eq!(schunk.read::<Padded>(&[1999, 0]).unwrap(), items[..2]);
    assert_eq!(schunk.read::<Padded>(..).unwrap()[..1000], items);
    let mut into = dirty(1000);
    into[3].value = 0.0;
    schunk.decompress_chunk_into(0, &mut into).unwrap();
    assert_eq!(into, items);
}

#[test]
fn whatever_is_not_zero_is_true() {
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let expected: Vec<bool> = bytes.iter().map(|&byte| byte != 0).collect();
    let params = CParams::default();
    let chunk = blosc2::compress(&bytes, &params).unwrap();
    assert_eq!(blosc2::decompress::<bool>(&chunk).unwrap(), expected);
    assert_eq!(blosc2::decompress::<[bool; 5]>(&chunk).unwrap().as_flattened(), expected);
    let packed = blosc2::decompress::<Packed>(&chunk).unwrap();
    assert!(packed.iter().zip(expected.chunks(5)).all(|(item, bytes)| item.r#type == bytes[0]));

    let mut decompressor = Decompressor::new(&DParams::default()).unwrap();
    let chunk = ChunkRef::new(&chunk).unwrap();
    let mut into = vec![false; 10_000];
    decompressor.decompress_into(&chunk, &mut into).unwrap();
    assert_eq!(into, expected);
    decompressor.items_into(&chunk, 7, &mut into[..100]).unwrap();
    assert_eq!(into[..100], expected[7..107]);
    assert_eq!(decompressor.items::<bool>(&chunk, 7..107).unwrap(), expected[7..107]);

    let mut schunk = SChunk::in_memory::<bool>(&params).unwrap();
    schunk.append(&bytes).unwrap();
    assert_eq!(schunk.decompress_chunk::<bool>(0).unwrap(), expected);
    assert_eq!(schunk.read::<bool>(3..3000).unwrap(), expected[3..3000]);
    schunk.read_into(5..10_005, &mut into).unwrap_err();
    schunk.read_into(5..9005, &mut into[..9000]).unwrap();
    assert_eq!(into[..9000], expected[5..9005]);
    let mut few = [false; 3];
    schunk.read_into(&[255, 256, 257], &mut few).unwrap();
    assert_eq!(few, [true, false, true]);
}

#[test]
fn items_stay_valid_where_reading_fails() {
    let bytes = [7u8; 100_000];
    let params = CParams::new().blocksize(1000);
    let chunk = blosc2::compress(&bytes, &params).unwrap();
    let fails = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        block.output().fill(7);
        if block.index() > 50 { Err("that is enough".into()) } else { Ok(()) }
    };
    let mut decompressor = Decompressor::new(DParams::default().postfilter(fails)).unwrap();
    let mut items = vec![false; 100_000];
    let error = decompressor.decompress_into(&ChunkRef::new(&chunk).unwrap(), &mut items);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Callback);
    let written = items.iter().filter(|&&item| item).count();
    // A bool is 0 or 1; counting relies on it.
    let ones: usize = items.iter().map(|&item| usize::from(item)).sum();
    assert_eq!(written, ones);
    assert!(written > 0);
}

#[test]
fn views_of_blocks_are_of_valid_items() {
    let kind = |result: blosc2::Result<()>| result.map_err(|error| error.kind());
    let check = move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        let not = Err(ErrorKind::TypeMismatch);
        assert_eq!(kind(block.input_as::<bool>().map(drop)), not);
        assert_eq!(kind(block.output_as::<Padded>().map(drop)), not);
        assert!(block.input_as::<Aligned>().is_ok());
        block.output_as::<bool>()?.fill(true);
        assert!(block.output_as::<bool>()?.iter().all(|&item| item));
        block.output()[3] = 2;
        assert_eq!(kind(block.output_as::<bool>().map(drop)), not);
        block.output()[3] = 0;
        Ok(())
    };
    let mut compressor =
        blosc2::Compressor::new(CParams::new().blocksize(320).prefilter(check)).unwrap();
    let mut expected = [true; 320];
    expected[3] = false;
    let chunk = compressor.compress(&[2u8; 320]).unwrap();
    assert_eq!(chunk.decompress::<bool>().unwrap(), expected);
}

#[test]
fn numbers_of_other_crates_are_items() {
    let halves: Vec<f16> = (0..1000).map(|i| f16::from_f32(i as f32 / 8.0)).collect();
    let chunk = blosc2::compress(&halves, &CParams::default()).unwrap();
    assert_eq!(ChunkRef::new(&chunk).unwrap().typesize(), 2);
    assert_eq!(blosc2::decompress::<f16>(&chunk).unwrap(), halves);
    let complex: Vec<_> = (0..1000).map(|i| Complex::new(f64::from(i), -0.5)).collect();
    let chunk = blosc2::compress(&complex, &CParams::default()).unwrap();
    assert_eq!(ChunkRef::new(&chunk).unwrap().typesize(), 16);
    assert_eq!(blosc2::decompress::<[f64; 2]>(&chunk).unwrap()[3], [3.0, -0.5]);
    assert_eq!(blosc2::decompress::<Complex<f64>>(&chunk).unwrap(), complex);
    // C creates NaN chunks for items of 4 and 8 bytes only.
    let error = Chunk::nans::<f16>(10, &CParams::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn rows_come_one_after_the_other() {
    for (shape, chunks) in [
        (&[7, 3, 2][..], &[2, 2, 2][..]),
        (&[5], &[2]),
        (&[0, 3], &[2, 2]),
        (&[4, 0], &[2, 1]),
        (&[], &[]),
        (&[1, 1], &[1, 1]),
    ] {
        let len: u64 = shape.iter().product();
        let items: Vec<u32> = (0..len as u32).collect();
        let array = NDArray::builder().chunk_shape(chunks).from_slice(&items, shape).unwrap();
        let rows: Vec<Vec<u32>> = array.rows().collect::<blosc2::Result<_>>().unwrap();
        let row: u64 = shape.iter().skip(1).product();
        assert_eq!(rows.len() as u64, shape.first().copied().unwrap_or(1), "{shape:?}");
        assert!(rows.iter().all(|each| each.len() as u64 == row), "{shape:?}");
        assert_eq!(rows.concat(), items, "{shape:?}");
        assert_eq!(array.rows::<u32>().size_hint(), (rows.len(), Some(rows.len())), "{shape:?}");
    }
    let array = NDArray::from_slice(&[1u8; 6], [3, 2]).unwrap();
    let mut rows = array.rows::<u16>();
    assert_eq!(rows.next().unwrap().unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert!(rows.next().is_none());
}

#[test]
fn the_first_field_that_differs_is_named() {
    #[derive(Debug, Clone, Copy, PartialEq, Element)]
    #[repr(C)]
    struct Person {
        name: FixedStr<10>,
        city: FixedBytes<14>,
        born: i64,
    }
    #[derive(Debug, Clone, Copy, Element)]
    #[repr(C, packed)]
    struct PackedPerson {
        name: FixedStr<10>,
        city: FixedBytes<14>,
        born: i64,
    }
    #[derive(Debug, Clone, Copy, Element)]
    #[repr(C, packed)]
    struct Other {
        name: FixedStr<10>,
        city: FixedBytes<14>,
        died: i64,
    }
    let (name, city) = ("Ada".parse().unwrap(), "London".try_into().unwrap());
    let items = [PackedPerson { name, city, born: 1815 }; 3];
    let array = NDArray::from_slice(&items, &[3]).unwrap();
    let person = array.item::<PackedPerson>([1]).unwrap();
    assert_eq!({ person.name }, "Ada");
    assert_eq!({ person.city }, "London");
    let text = |error: blosc2::Error| {
        assert_eq!(error.kind(), ErrorKind::TypeMismatch);
        error.to_string()
    };
    let error = text(array.read::<Vec<Person>>(..).unwrap_err());
    let expected = "; field `born` is at byte 54, asked for at byte 56: a packed structure?";
    assert!(error.ends_with(expected) && error.contains(&native("[('name', '<U10')")), "{error}");
    let error = text(array.read::<Vec<Other>>(..).unwrap_err());
    assert!(error.ends_with("; there is no field `died`"), "{error}");
    // For scalars the message has no further detail: the two dtypes say it.
    let error = text(array.read::<Vec<u8>>(..).unwrap_err());
    assert!(!error.contains(';'), "{error}");
    // The message names the field, not the byte order, which can be converted.
    let dtype = PackedPerson::dtype().with_byte_order(ByteOrder::Big).to_string();
    let swapped =
        NDArray::builder().dtype(&dtype, 62).from_slice(RawItems(&[0; 62]), &[1]).unwrap();
    let error = text(swapped.read::<Vec<Person>>(..).unwrap_err());
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn scalars_are_decoded_in_both_byte_orders() {
    let decoder = |dtype: &str| ScalarDecoder::new(&Dtype::parse(dtype).unwrap());
    let check = |kind: &str, little: &[u8], is_equal: &dyn Fn(ScalarDecoder, &[u8]) -> bool| {
        let big: Vec<u8> = little.iter().rev().copied().collect();
        assert!(is_equal(decoder(&format!("<{kind}")), little), "<{kind} {little:?}");
        assert!(is_equal(decoder(&format!(">{kind}")), &big), ">{kind} {big:?}");
    };
    for bits in 0..=u16::MAX {
        let (bytes, number) = (bits.to_le_bytes(), f16::from_bits(bits).to_f64());
        check("f2", &bytes, &|decoder, item| {
            let decoded = decoder.float(item);
            decoded.to_bits() == number.to_bits() || decoded.is_nan() && number.is_nan()
        });
        check("i2", &bytes, &|decoder, item| decoder.int(item) == i128::from(bits as i16));
        check("u2", &bytes, &|decoder, item| decoder.int(item) == i128::from(bits));
    }
    check("u8", &[0xFF; 8], &|decoder, item| decoder.int(item) == i128::from(u64::MAX));
    check("i8", &[0xFF; 8], &|decoder, item| decoder.int(item) == -1);
    check("m8[s]", &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], &|decoder, item| {
        decoder.time(item) == -2
    });
    check("f4", &1.5f32.to_le_bytes(), &|decoder, item| decoder.float(item) == 1.5);
    check("f8", &1e300f64.to_le_bytes(), &|decoder, item| decoder.float(item) == 1e300);
    assert_eq!(decoder("|i1").int(&[0x80]), -128);
    assert_eq!(decoder("|b1").int(&[0x80]), 0x80);
    let parts = [3f64.to_be_bytes(), (-4f64).to_be_bytes()].concat();
    assert_eq!(decoder(">c16").complex(&parts), (3.0, -4.0));
    // The last character ends with zeros in little-endian byte order.
    let text = [[0, 0, 0, b'a'], [0, 0, 0, 0], [0, 0, 1, 0], [0; 4]].concat();
    assert!(decoder(">U4").chars(&text).eq([97, 0, 256]));
}
