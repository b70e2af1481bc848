//! Shuffle: the first bytes of all items, then the second bytes of all items, and so on.
//!
//! The bytes after the last whole item are not moved.
//!
//! Each byte of the items forms a stream. Eight streams are merged in three steps. The first step
//! merges the first stream with the fifth, the second with the sixth, and so on. The second step
//! merges the four results in the same way, and the third step merges the last two results. Merging
//! or splitting two streams is a loop that compilers vectorize. An item is composed of pieces of 8,
//! 4, 2 and 1 bytes if its size is greater than eight or not a power of two.

/// The maximum size of a piece, in bytes, a power of two.
const PIECE: usize = 8;
/// The number of items processed at a time, so that intermediate results stay in the fastest cache.
const TILE: usize = 512;

/// The intermediate results.
pub(super) type Buffers = [[u8; PIECE * TILE]; 2];

pub(super) fn buffers() -> Buffers {
    [[0; PIECE * TILE]; 2]
}

pub(super) fn forward(src: &[u8], dest: &mut [u8], width: usize, buffers: &mut Buffers) {
    let items = src.len() / width;
    let whole = items * width;
    dest[whole..].copy_from_slice(&src[whole..]);
    let [mut streams, mut parted] = buffers.each_mut();
    for (tile, src) in src[..whole].chunks(TILE * width).enumerate() {
        let len = src.len() / width;
        for (at, piece) in pieces(width) {
            let start = at * items + tile * TILE;
            if piece == 1 {
                gather(src, width, at, piece, &mut dest[start..][..len]);
                continue;
            }
            let mut input: &[u8] = src;
            if piece != width {
                gather(src, width, at, piece, &mut streams[..piece * len]);
                input = &streams[..piece * len];
            }
            // `count` streams of pieces become twice that number, of pieces half as long.
            let (mut count, mut stretch) = (1, piece * len / 2);
            while 2 * count < piece {
                let (low, high) = parted[..piece * len].split_at_mut(piece * len / 2);
                for stream in 0..count {
                    part(
                        &input[stream * 2 * stretch..][..2 * stretch],
                        &mut low[stream * stretch..][..stretch],
                        &mut high[stream * stretch..][..stretch],
                    );
                }
                count *= 2;
                stretch /= 2;
                std::mem::swap(&mut streams, &mut parted);
                input = &streams[..piece * len];
            }
            let (low, high) = dest.split_at_mut((at + count) * items);
            for stream in 0..count {
                part(
                    &input[stream * 2 * len..][..2 * len],
                    &mut low[start + stream * items..][..len],
                    &mut high[tile * TILE + stream * items..][..len],
                );
            }
        }
    }
}

pub(super) fn backward(src: &[u8], dest: &mut [u8], width: usize, buffers: &mut Buffers) {
    let items = src.len() / width;
    let whole = items * width;
    dest[whole..].copy_from_slice(&src[whole..]);
    backward_part(src, items, 0, &mut dest[..whole], width, buffers);
}

/// Undoes shuffle of the items from the index `first` on that fill `dest`. `src` has `items` items.
pub(super) fn backward_part(
    src: &[u8],
    items: usize,
    first: usize,
    dest: &mut [u8],
    width: usize,
    buffers: &mut Buffers,
) {
    let [mut streams, mut merged] = buffers.each_mut();
    for (tile, dest) in dest.chunks_mut(TILE * width).enumerate() {
        let len = dest.len() / width;
        for (at, piece) in pieces(width) {
            let stream = |index: usize| &src[(at + index) * items + first + tile * TILE..][..len];
            if piece == 1 {
                scatter(stream(0), dest, width, at, piece);
                continue;
            }
            // `count` streams of pieces become half that number, of pieces twice as long.
            let (mut count, mut stretch) = (piece / 2, len);
            while count > 0 {
                let last = count == 1 && piece == width;
                let to = if last { &mut *dest } else { &mut merged[..piece * len] };
                for (index, to) in to.chunks_exact_mut(2 * stretch).enumerate() {
                    let input = |index: usize| match stretch == len {
                        true => stream(index),
                        false => &streams[index * stretch..][..stretch],
                    };
                    merge(input(index), input(index + count), to);
                }
                std::mem::swap(&mut streams, &mut merged);
                count /= 2;
                stretch *= 2;
            }
            if piece != width {
                scatter(&streams[..piece * len], dest, width, at, piece);
            }
        }
    }
}

/// Returns the pieces that an item is composed of, and their offsets in it.
fn pieces(width: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let left = width.checked_sub(at).filter(|left| *left > 0)?;
        let piece = if left >= PIECE { PIECE } else { 1 << left.ilog2() };
        at += piece;
        Some((at - piece, piece))
    })
}

/// Copies the pieces at offset `at` of all items to consecutive positions.
fn gather(items: &[u8], width: usize, at: usize, piece: usize, pieces: &mut [u8]) {
    match piece {
        8 => gather_sized::<8>(items, width, at, pieces),
        4 => gather_sized::<4>(items, width, at, pieces),
        2 => gather_sized::<2>(items, width, at, pieces),
        _ => gather_sized::<1>(items, width, at, pieces),
    }
}

fn gather_sized<const N: usize>(items: &[u8], width: usize, at: usize, pieces: &mut [u8]) {
    for (piece, item) in pieces.chunks_exact_mut(N).zip(items.chunks_exact(width)) {
        piece.copy_from_slice(&item[at..at + N]);
    }
}

/// Copies consecutive pieces to offset `at` of all items.
fn scatter(pieces: &[u8], items: &mut [u8], width: usize, at: usize, piece: usize) {
    match piece {
        8 => scatter_sized::<8>(pieces, items, width, at),
        4 => scatter_sized::<4>(pieces, items, width, at),
        2 => scatter_sized::<2>(pieces, items, width, at),
        _ => scatter_sized::<1>(pieces, items, width, at),
    }
}

fn scatter_sized<const N: usize>(pieces: &[u8], items: &mut [u8], width: usize, at: usize) {
    for (piece, item) in pieces.chunks_exact(N).zip(items.chunks_exact_mut(width)) {
        item[at..at + N].copy_from_slice(piece);
    }
}

/// Splits pairs of bytes into their first and their second bytes.
#[inline(never)]
fn part(pairs: &[u8], low: &mut [u8], high: &mut [u8]) {
    for ((pair, low), high) in pairs.chunks_exact(2).zip(low).zip(high) {
        // One number rather than two bytes: this form is vectorized.
        let pair = u16::from_le_bytes(pair.try_into().unwrap_or_default());
        *low = pair as u8;
        *high = (pair >> 8) as u8;
    }
}

/// Merges two streams of bytes into one of pairs.
#[inline(never)]
fn merge(low: &[u8], high: &[u8], pairs: &mut [u8]) {
    for ((pair, low), high) in pairs.chunks_exact_mut(2).zip(low).zip(high) {
        pair.copy_from_slice(&[*low, *high]);
    }
}
