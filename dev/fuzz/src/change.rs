//! Changes of untrusted frames in memory.

use blosc2::super_chunk::VariableBlocks;
use blosc2::{CParams, Codec, NDArray, RawItems, SChunk, Special};

use crate::check::good_content;
use crate::walk::{open, walk};
use crate::{folder, options};

/// The largest frame that is checked after the changes, in bytes.
const LARGEST: usize = 1 << 20;

/// Opens a frame or a folder for writing, and changes it. A frame without faults has none after the changes either.
///
/// The first byte is the number of changes. Each has 4 bytes: what it does, and three numbers. The rest is the frame.
pub fn change(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let Some((changes, frame)) = rest.split_at_checked(usize::from(count % 16) * 4) else { return };
    let Ok(schunk) = open(frame, true) else { return };
    // Only small frames are changed: one byte of a change can stand for millions of items.
    let is_small = schunk.typesize() <= 1000 && schunk.chunksize() <= 1 << 18;
    if !is_small || schunk.nchunks() > 1000 || schunk.nbytes() > 1 << 20 {
        return;
    }
    let was_good = folder::unpack(frame).is_none() && good_content(frame).is_some();
    let schunk = if schunk.info().is_array {
        match NDArray::from_schunk(schunk) {
            Ok(mut array) => {
                for change in changes.as_chunks::<4>().0 {
                    change_array(&mut array, *change);
                }
                array.into_schunk()
            }
            Err(_) => return,
        }
    } else {
        let mut schunk = schunk;
        for change in changes.as_chunks::<4>().0 {
            change_schunk(&mut schunk, *change);
        }
        schunk
    };
    walk(&schunk);
    if was_good && schunk.nbytes() <= LARGEST as u64 {
        let frame = schunk.to_cframe().expect("it has no fault, and fits into memory");
        let (_, report) =
            blosc2_format::file::check(&frame, &options()).expect("memory can be read");
        assert!(report.is_good(), "the changes make faults: {:?}", report.findings);
    }
}

/// Numbers that depend on the change.
fn data(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ seed).collect()
}

/// A number of whole items, in bytes.
fn length(schunk: &SChunk, number: u8) -> usize {
    let size = schunk.typesize().max(1);
    match schunk.chunksize() {
        0 => usize::from(number) * size,
        chunksize => (chunksize / (1 + usize::from(number % 4))).div_ceil(size) * size,
    }
}

fn change_schunk(schunk: &mut SChunk, [what, a, b, c]: [u8; 4]) {
    let count = schunk.nchunks();
    let number = usize::from(a) % (count + 1);
    let bytes = data(length(schunk, b), c);
    let blocks = [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]];
    let name = format!("layer{}", a % 3);
    // Each may be refused.
    let _: Result<(), blosc2::Error> = match what % 14 {
        0 => schunk.append(&bytes),
        1 => schunk.insert(number, &bytes),
        2 => schunk.replace(number, &bytes),
        3 if c > 250 => schunk.remove(number..),
        3 => schunk.remove(number),
        4 => schunk.append(VariableBlocks(&blocks)),
        5 => schunk.replace(number, VariableBlocks(&blocks)),
        6 => {
            let order: Vec<usize> = (0..count).map(|at| (at + number) % count).collect();
            schunk.reorder(&order)
        }
        7 => schunk.vlmeta_mut().set(&name, &data(usize::from(b), c)),
        8 => schunk.vlmeta_mut().remove(&name).map(drop),
        9 => schunk.meta_mut().set(&name, &data(usize::from(b % 8), c)),
        10 => schunk.write(u64::from(a) * u64::from(b), &bytes),
        11 => {
            let codec = [Codec::BloscLz, Codec::Lz4, Codec::Zstd, Codec::Zlib][usize::from(a % 4)];
            let cparams = CParams::new().typesize(schunk.typesize()).codec(codec).level(b % 10);
            schunk.set_cparams(&cparams)
        }
        12 => schunk.transaction(|schunk| {
            schunk.append(&bytes)?;
            schunk.remove(0)
        }),
        _ => {
            let special = [Special::Zeros, Special::Nan, Special::Uninit][usize::from(a % 3)];
            schunk.fill(special, u64::from(b) * 10, length(schunk, c))
        }
    };
}

fn change_array(array: &mut NDArray, [what, a, b, c]: [u8; 4]) {
    /// The largest array that a change makes, in items.
    const MOST: u64 = 1 << 16;
    let shape = array.shape().to_vec();
    let typesize = array.typesize();
    let axis = usize::from(a) % shape.len().max(1);
    let rest: u64 =
        shape.iter().enumerate().map(|(at, &size)| if at == axis { 1 } else { size }).product();
    let rows = u64::from(b % 4);
    let item = data(typesize, c);
    if array.len() > MOST || rest > MOST {
        return;
    }
    let _: Result<(), blosc2::Error> = match what % 8 {
        0 => array.write(.., RawItems(&item)),
        1 => array.append(axis, RawItems(&data((rest * rows) as usize * typesize, c))),
        2 => {
            let at = i64::from(c) % (shape.get(axis).copied().unwrap_or(0) as i64 + 1);
            array.insert(axis, at, RawItems(&data((rest * rows) as usize * typesize, c)))
        }
        3 => {
            let mut new = shape;
            if let Some(size) = new.get_mut(axis) {
                *size = u64::from(b) % 40;
            }
            match new.iter().product::<u64>() <= MOST {
                true => array.resize(&new),
                false => Ok(()),
            }
        }
        4 => array.delete(axis, i64::from(b)),
        5 => {
            let selection: Vec<_> =
                shape.iter().map(|&size| (size / 2) as i64..size as i64).collect();
            let count: u64 = shape.iter().map(|size| size - size / 2).product();
            array.write(selection, RawItems(&data(count as usize * typesize, c)))
        }
        6 => array.vlmeta_mut().set(&format!("layer{}", a % 3), &data(usize::from(b), c)),
        _ => array.transaction(|array| {
            array.write(.., RawItems(&item))?;
            array.append(axis, RawItems(&data((rest * rows) as usize * typesize, c)))
        }),
    };
}
