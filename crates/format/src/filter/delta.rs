//! Delta: each item of a block is combined with another item by exclusive or.
//!
//! In the first block of the chunk, the other item is the previous item, and the first item is not
//! changed. In all other blocks, the other item is the item at the same position in the first
//! block. Items have 1, 2, 4 or 8 bytes. Any other typesize counts as 8 if it is a multiple of 8,
//! otherwise as 1. The bytes after the last complete item are not changed.

pub(super) fn forward(src: &[u8], dest: &mut [u8], typesize: usize, reference: Option<&[u8]>) {
    let width = width(typesize);
    dest.copy_from_slice(src);
    let whole = src.len() - src.len() % width;
    let (changed, other) = match reference {
        Some(reference) => (&mut dest[..whole], reference),
        None => (&mut dest[width.min(whole)..whole], src),
    };
    for (byte, other) in changed.iter_mut().zip(other) {
        *byte ^= other;
    }
}

pub(super) fn backward(data: &mut [u8], typesize: usize, reference: Option<&[u8]>) {
    let width = width(typesize);
    let whole = data.len() - data.len() % width;
    match reference {
        Some(reference) => {
            for (byte, other) in data[..whole].iter_mut().zip(reference) {
                *byte ^= other;
            }
        }
        None => accumulate(&mut data[..whole], width),
    }
}

/// Combines each item with the result of the previous item. Processes words that contain several
/// whole items.
fn accumulate(data: &mut [u8], width: usize) {
    let in_words = data.len() - data.len() % 8;
    let mut last = 0;
    for word in data[..in_words].chunks_exact_mut(8) {
        let mut items = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let mut shift = 8 * width;
        while shift < 64 {
            items ^= items << shift;
            shift *= 2;
        }
        items ^= last;
        word.copy_from_slice(&items.to_le_bytes());
        // The last item, repeated to fill a word.
        last = items >> (64 - 8 * width);
        let mut shift = 8 * width;
        while shift < 64 {
            last |= last << shift;
            shift *= 2;
        }
    }
    for index in in_words.max(width)..data.len() {
        data[index] ^= data[index - width];
    }
}

fn width(typesize: usize) -> usize {
    match typesize {
        1 | 2 | 4 | 8 => typesize,
        _ if typesize.is_multiple_of(8) => 8,
        _ => 1,
    }
}
