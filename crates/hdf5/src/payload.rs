//! One filtered chunk of HDF5: a frame in memory.

use blosc2::{Error, ErrorKind, Limits, NDArray, OpenOptions, RawItems, Result, SChunk};

use crate::FilterParams;

const DECODE: &str = "decode a chunk of the Blosc2 filter of HDF5";
const ENCODE: &str = "encode a chunk for the Blosc2 filter of HDF5";

/// Decompresses the bytes of one HDF5 chunk that the filter has compressed.
///
/// `payload` contains the stored bytes of the chunk. If filters follow Blosc2 in the pipeline, undo them first; for
/// example, verify and remove a Fletcher32 checksum.
///
/// HDF5 stores a filter mask with each chunk (`filter_mask` of `ChunkInfo` in `hdf5-metno`; the first result of
/// `read_direct_chunk` in h5py). Bit `n` of the mask belongs to filter `n` of the pipeline; the first filter is 0. If the
/// bit of Blosc2 is set, the writer has stored this chunk without Blosc2, and the payload is the uncompressed chunk. Do
/// not call this function for such a chunk.
///
/// `params` are needed only to check the chunk. The result has at least [`FilterParams::chunksize`] bytes. If the
/// payload is an array and [`FilterParams::chunk_shape`] is not empty, the array must have this shape, and its size must
/// be the chunk size. If a filter before Blosc2 in the pipeline can make chunks shorter, use [`decode_shorter`].
///
/// `limit` is the maximum length of the result in bytes. Pass the size of an uncompressed chunk of the dataset, plus
/// the number of bytes that filters before Blosc2 in the pipeline may add (4 for Fletcher32).
///
/// Returns the items of the complete chunk in C order, also for a chunk at the edge of the dataset: HDF5 stores complete
/// chunks only. A payload that contains only the items inside the dataset is an error. The payload is then a valid
/// frame, which [`SChunk::open`](blosc2::SChunk::open) or
/// [`NDArray::open`](blosc2::NDArray::open) reads. If the frame has several chunks, the result contains
/// the data of all of them.
///
/// The payload can be untrusted input: in addition to the result, this function allocates at most about 64 MiB or
/// `limit` bytes, whichever is larger.
///
/// ```
/// use blosc2_hdf5::{FilterParams, decode, encode};
///
/// let params = FilterParams::new(2, &[3, 4])?;
/// let chunk: Vec<u8> = (0..12u16).flat_map(u16::to_le_bytes).collect();
/// let payload = encode(&chunk, &params)?;
/// assert_eq!(decode(&payload, &params, chunk.len())?, chunk);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Errors
/// - [`ErrorKind::InvalidData`]: the payload is not a frame, is damaged, is empty, contains less data than a chunk, or
///   is an array whose shape or size differs from `params`;
/// - [`ErrorKind::TooLarge`]: the result is longer than `limit`, or opening the frame or decompression needs too much
///   memory;
/// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter;
/// - [`ErrorKind::OutOfMemory`]: there is not enough memory.
pub fn decode(payload: &[u8], params: &FilterParams, limit: usize) -> Result<Vec<u8>> {
    decode_to(payload, params, limit, |len| {
        if len < params.chunksize as usize { Err(too_short(len, params)) } else { zeroed(len) }
    })
}

/// Decompresses a chunk like [`decode`], but the result can be shorter than [`FilterParams::chunksize`]. It is not
/// empty.
///
/// Use this function only if a filter before Blosc2 in the pipeline can make chunks shorter, such as Deflate, n-bit or
/// scale-offset. A damaged payload with too little data is then an error of that filter.
///
/// # Errors
/// The errors of [`decode`], except for a result that is shorter than a chunk.
pub fn decode_shorter(payload: &[u8], params: &FilterParams, limit: usize) -> Result<Vec<u8>> {
    decode_to(payload, params, limit, zeroed)
}

fn zeroed(len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|error| no_memory(len, error))?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// The error for a payload with more data than a chunk.
pub(crate) fn too_long(len: u64, limit: usize) -> Error {
    let detail = format!("the chunk has {len} bytes, expected at most {limit}");
    Error::new(ErrorKind::TooLarge, DECODE, detail)
}

/// The error for a payload with less data than a chunk.
pub(crate) fn too_short(len: usize, params: &FilterParams) -> Error {
    let detail = format!(
        "expected at least the {} bytes of a chunk, got a frame with {len} bytes; HDF5 stores complete chunks, also at \
         the edge of a dataset",
        params.chunksize
    );
    Error::new(ErrorKind::InvalidData, DECODE, detail)
}

/// Decompresses a chunk to memory that `allocate` returns for a length of at most `limit`.
pub(crate) fn decode_to<B: AsMut<[u8]>>(
    payload: &[u8],
    params: &FilterParams,
    limit: usize,
    allocate: impl FnOnce(usize) -> Result<B>,
) -> Result<B> {
    if payload.get(2..).is_none_or(|rest| !rest.starts_with(b"b2frame\0")) {
        let detail = format!(
            "expected a frame of Blosc2, got {} bytes without its header; if the filter mask of the chunk excludes \
             Blosc2, these bytes are the uncompressed chunk",
            payload.len()
        );
        return Err(Error::new(ErrorKind::InvalidData, DECODE, detail));
    }
    let bytes = limit as u64;
    let limits = Limits { metadata: Some(bytes.max(MIN_METADATA)), ..Limits::default() };
    OpenOptions::new().limits(limits).max_read(bytes).with_borrowed(payload, |schunk| {
        let allocate = |len: u64| {
            let fits = usize::try_from(len).ok().filter(|&len| len <= limit);
            let fits = fits.ok_or_else(|| too_long(len, limit))?;
            match fits {
                0 => Err(Error::new(ErrorKind::InvalidData, DECODE, "the chunk is empty")),
                len => allocate(len),
            }
        };
        match schunk.info().is_array {
            true => decode_array(&NDArray::from_schunk(schunk)?, params, allocate),
            false => decode_chunks(&schunk, allocate),
        }
    })
}

/// The memory for the metadata of a frame that a payload may use in any case.
const MIN_METADATA: u64 = 1 << 20;

fn decode_array<B: AsMut<[u8]>>(
    array: &NDArray,
    params: &FilterParams,
    allocate: impl FnOnce(u64) -> Result<B>,
) -> Result<B> {
    if !params.chunk_shape.is_empty() {
        let shape: Vec<u64> = params.chunk_shape.iter().copied().map(u64::from).collect();
        let expected = (&shape[..], u64::from(params.chunksize));
        let found = (array.shape(), array.info().nbytes);
        if expected != found {
            let (shape, bytes) = expected;
            let (found_shape, found_bytes) = found;
            let mut detail = format!(
                "expected an array of shape {shape:?} with {bytes} bytes, \
                 got {found_shape:?} with {found_bytes} bytes"
            );
            if found_shape.len() == shape.len()
                && found_shape.iter().zip(shape).all(|(a, b)| a <= b)
            {
                detail += "; HDF5 stores complete chunks, also at the edge of a dataset";
            }
            return Err(Error::new(ErrorKind::InvalidData, DECODE, detail));
        }
    }
    let mut target = allocate(array.info().nbytes)?;
    array.read_into(.., RawItems(target.as_mut()))?;
    Ok(target)
}

/// Decompresses all chunks of a frame. The filter writes frames with one chunk; other writers store several.
fn decode_chunks<B: AsMut<[u8]>>(
    schunk: &SChunk,
    allocate: impl FnOnce(u64) -> Result<B>,
) -> Result<B> {
    let mut target = allocate(schunk.nbytes())?;
    let all = target.as_mut().len();
    let mut rest = target.as_mut();
    let count = schunk.nchunks();
    let differs = |found: String| {
        let detail = format!("the frame states {all} bytes in {count} chunks, found {found}");
        Error::new(ErrorKind::InvalidData, DECODE, detail)
    };
    if count > all {
        return Err(differs("empty chunks".to_owned()));
    }
    for index in 0..count {
        let len = schunk.chunk_info(index)?.nbytes;
        let (part, after) =
            rest.split_at_mut_checked(len).ok_or_else(|| differs("more".to_owned()))?;
        schunk.decompress_chunk_into(index, part)?;
        rest = after;
    }
    if !rest.is_empty() {
        return Err(differs(format!("{} bytes less", rest.len())));
    }
    Ok(target)
}

/// Compresses one HDF5 chunk, like the filter.
///
/// `chunk` contains the items of the complete chunk in C order, also for a chunk at the edge of the dataset. If filters
/// precede Blosc2 in the pipeline, apply them first.
///
/// If `chunk` has the length that [`FilterParams::chunk_shape`] and [`FilterParams::typesize`] require, the chunk is
/// stored as an array, so that readers can read a part of the chunk. Otherwise, the chunk is stored without a shape.
///
/// If the data cannot be compressed, the result is a few hundred bytes longer than `chunk`.
///
/// [`decode`](crate::decode) has an example.
///
/// # Errors
/// - the errors of [`FilterParams::cd_values`];
/// - [`ErrorKind::InvalidArgument`]: `chunk` is empty;
/// - [`ErrorKind::TooLarge`]: the chunk exceeds [`MAX_CHUNK_LEN`](blosc2::limits::MAX_CHUNK_LEN) bytes;
/// - [`ErrorKind::OutOfMemory`]: there is not enough memory.
pub fn encode(chunk: &[u8], params: &FilterParams) -> Result<Vec<u8>> {
    let cparams = params.cparams()?;
    if chunk.is_empty() {
        let detail = "expected at least 1 byte, got an empty chunk";
        return Err(Error::new(ErrorKind::InvalidArgument, ENCODE, detail));
    }
    let typesize = params.typesize.max(1) as usize;
    let shape: Vec<u64> = params.chunk_shape.iter().copied().map(u64::from).collect();
    let nbytes = shape.iter().try_fold(typesize as u64, |size, &side| size.checked_mul(side));
    if !shape.is_empty() && nbytes == Some(chunk.len() as u64) {
        let mut builder =
            NDArray::builder().chunk_shape(&shape).cparams(cparams).target(Vec::new());
        if let Some(blocksize) = params.blocksize {
            builder =
                builder.block_shape(block_shape(&shape, u64::from(blocksize) / typesize as u64));
        }
        // HDF5 stores the type of the items; of this one, readers use the size only.
        let array = builder
            .dtype(&format!("|V{typesize}"), typesize)
            .from_slice(RawItems(chunk), &shape)?;
        return array.into_schunk().into_cframe();
    }
    let mut schunk = OpenOptions::new().cparams(cparams).create_new(true).open(Vec::new())?;
    schunk.append(chunk)?;
    schunk.into_cframe()
}

/// Returns the shape of a block of at most `items` items, or of the smallest block if that has more.
///
/// Like hdf5plugin, it starts with 2 items on each axis, and doubles the axes in turn, the last axis first.
fn block_shape(chunk: &[u64], items: u64) -> Vec<u64> {
    let mut block: Vec<u64> = chunk.iter().map(|&side| side.min(2)).collect();
    loop {
        let before = block.clone();
        for axis in (0..chunk.len()).rev() {
            let (old, new) = (block[axis], chunk[axis].min(block[axis] * 2));
            let rest: u64 = block.iter().product::<u64>() / old;
            if rest * new <= items {
                block[axis] = new;
            }
        }
        if block == before {
            return block;
        }
    }
}

pub(crate) fn no_memory(len: usize, error: impl ToString) -> Error {
    let detail = format!("no memory for {len} bytes: {}", error.to_string());
    Error::new(ErrorKind::OutOfMemory, DECODE, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_their_size() {
        assert_eq!(block_shape(&[100, 50], 1000), [16, 50]);
        assert_eq!(block_shape(&[100, 50], 1 << 20), [100, 50]);
        assert_eq!(block_shape(&[100, 1, 3], 0), [2, 1, 2]);
        assert_eq!(block_shape(&[7, 5], 9), [2, 4]);
    }
}
