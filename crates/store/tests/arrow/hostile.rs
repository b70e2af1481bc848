//! Damaged blocks of batches that are serialized with Arrow.

use arrow_array::{Array, ArrayRef};
use blosc2::super_chunk::VariableBlocks;
use blosc2::{CParams, ErrorKind, OpenOptions, SChunk, Target};
use blosc2_store::BatchArray;
use blosc2_testing::{Rng, repeats};

use crate::batches::arrays;

/// Changes some bytes of a block, most of them in the headers, which consist of numbers of four bytes.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    const NUMBERS: [u32; 14] =
        [0, 1, 2, 4, 8, 16, 31, 64, 255, 65536, 1 << 28, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    for _ in 0..=rng.below(3) {
        let len = bytes.len();
        let at = rng.index(len);
        match rng.below(8) {
            0 | 1 => bytes[at] = rng.next() as u8,
            2 => bytes[at] ^= 1 << rng.below(8),
            3 => bytes[at] = bytes[at].wrapping_add(1 + 254 * rng.below(2) as u8),
            4 if rng.below(4) == 0 => bytes.truncate(at.max(1)),
            _ => {
                let at = at / 4 * 4;
                let number = rng.pick(&NUMBERS).to_le_bytes();
                let end = (at + 4).min(len);
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
        }
    }
}

/// A batch of these items, without the number of items, and without compression.
fn of(array: &ArrayRef) -> SChunk {
    let options = OpenOptions::new().cparams(&CParams::default().level(0));
    let mut batches =
        BatchArray::new_arrow_in(options.open(Target::memory()).unwrap(), None).unwrap();
    batches.append_arrow(array).unwrap();
    let mut schunk = batches.into_schunk();
    schunk.vlmeta_mut().remove("_batch_array_metadata").unwrap();
    schunk
}

#[test]
fn damaged_blocks_are_errors() {
    let mut rng = Rng(0xa440);
    let arrays = arrays();
    let mut schunks: Vec<Option<SChunk>> =
        arrays.iter().map(|(array, _)| Some(of(array))).collect();
    let blocks: Vec<Vec<u8>> =
        schunks.iter().flatten().map(|schunk| schunk.block(0, 0).unwrap()).collect();
    let (mut good, mut bad) = (0, 0);
    for number in 0..repeats(100_000) {
        let which = number % arrays.len();
        let (array, _) = &arrays[which];
        let mut schunk = schunks[which].take().unwrap();
        let mut block = blocks[which].clone();
        mutate(&mut block, &mut rng);
        schunk.replace(0, VariableBlocks(&[&block])).unwrap();
        let batches = BatchArray::from_schunk(schunk).unwrap();
        let read = batches.arrow_batch(0);
        match &read {
            Ok(found) => {
                good += 1;
                found.to_data().validate_full().unwrap();
                assert_eq!((found.data_type(), found.len()), (array.data_type(), array.len()));
            }
            Err(error) => {
                bad += 1;
                let kinds = [ErrorKind::InvalidData, ErrorKind::Unsupported];
                assert!(kinds.contains(&error.kind()), "{error}");
            }
        }
        if let Ok(values) = batches.batch(0) {
            assert!(read.is_ok() && values.len() == array.len());
        }
        // The numbers of items are not stored: they are counted.
        if let Ok(nitems) = batches.nitems() {
            assert!(read.is_err() || nitems == array.len() as u64);
            let _ = batches.item(0);
        }
        schunks[which] = Some(batches.into_schunk());
    }
    println!("{good} of {} mutants were read", good + bad);
    assert!(good > bad / 20 && bad > good / 20, "{good} good ones, {bad} bad ones");
}

#[test]
fn damaged_schemas_are_errors() {
    let mut rng = Rng(0xa441);
    let arrays = arrays();
    for number in 0..repeats(20_000) {
        let (array, _) = &arrays[number % arrays.len()];
        let mut schunk = of(array);
        let mut tag = schunk.meta().value("batcharray").unwrap().unwrap();
        let blosc2::Value::Map(pairs) = &mut tag else { panic!("a map") };
        for (name, value) in pairs {
            if name.as_str() == Some("arrow_schema") {
                let blosc2::Value::Bytes(bytes) = value else { panic!("bytes") };
                mutate(bytes, &mut rng);
            }
        }
        schunk.meta_mut().remove("batcharray").unwrap();
        schunk.meta_mut().set_value("batcharray", &tag).unwrap();
        if let Ok(batches) = BatchArray::from_schunk(schunk) {
            let _ = batches.batch(0);
            let _ = batches.arrow_batch(0);
        }
    }
}
