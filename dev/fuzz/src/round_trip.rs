//! Round trips with parameters and data that the input describes.

use arbitrary::{Arbitrary, Result, Unstructured};
use blosc2::{
    AxisSelection, CParams, Check, ChunkRef, Codec, Compressor, DParams, Decompressor, Filter,
    NDArray, RawItems, SChunk, SplitMode, Threads,
};
use blosc2_format::Limits;
use blosc2_format::chunk::{self, Chunk, Encoder};

use crate::check::good_content;

/// Compresses a buffer, and fills an array, as the input says; what is read is the same.
pub fn round_trip(input: &[u8]) {
    let input = &mut Unstructured::new(input);
    // It fails only if the input is too short.
    let _: Result<()> = match input.ratio(1, 2) {
        Ok(true) => buffer(input),
        Ok(false) => array(input),
        Err(error) => Err(error),
    };
}

/// Data: runs and copies of the bytes of the input.
fn data(input: &mut Unstructured<'_>, len: usize) -> Result<Vec<u8>> {
    let mut data = Vec::with_capacity(len);
    while data.len() < len {
        let left = len - data.len();
        match input.int_in_range(0..=3)? {
            0 => {
                let byte = u8::arbitrary(input)?;
                data.resize(data.len() + input.int_in_range(1..=300)?.min(left), byte);
            }
            1 => {
                let count = input.int_in_range(1..=64)?.min(left).min(input.len());
                data.extend(input.bytes(count)?);
            }
            2 => {
                let start = u32::arbitrary(input)?;
                let count = input.int_in_range(1..=300)?.min(left);
                let numbers =
                    (0..).flat_map(|at: u32| start.wrapping_add(at.wrapping_mul(3)).to_le_bytes());
                data.extend(numbers.take(count));
            }
            _ => {
                let back = input.int_in_range(0..=data.len())?;
                let from = data.len() - back;
                let count = back.min(left).min(2000);
                data.extend_from_within(from..from + count);
            }
        }
        if input.is_empty() {
            data.resize(len, 0x5a);
        }
    }
    Ok(data)
}

fn params(input: &mut Unstructured<'_>, typesize: usize) -> Result<(CParams, Vec<Filter>)> {
    let codecs = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];
    let codec = *input.choose(&codecs)?;
    let mut filters = Vec::new();
    for position in 0..input.int_in_range(0..=6)? {
        filters.push(match input.int_in_range(0..=5)? {
            0 => Filter::Shuffle,
            1 => Filter::ShuffleBytes(input.int_in_range(1..=255)?),
            2 => Filter::Bitshuffle,
            3 if position == 0 => Filter::Delta,
            4 if typesize <= 255 => Filter::Bytedelta(0),
            _ => Filter::Bytedelta(input.int_in_range(1..=255)?),
        });
    }
    let splits = [SplitMode::Always, SplitMode::Never, SplitMode::Auto, SplitMode::ForwardCompat];
    let mut params = CParams::new()
        .codec(codec)
        .level(input.int_in_range(0..=9)?)
        .typesize(typesize)
        .filters(&filters)
        .split(*input.choose(&splits)?)
        .threads(Threads::ONE);
    if bool::arbitrary(input)? {
        params = params.blocksize(input.int_in_range(1..=5000)?.max(typesize));
    }
    if matches!(codec, Codec::Zstd | Codec::Lz4 | Codec::Lz4Hc) && input.ratio(1, 4)? {
        params = params.dictionary(true);
    }
    Ok((params, filters))
}

fn typesize(input: &mut Unstructured<'_>) -> Result<usize> {
    match input.int_in_range(0..=4)? {
        0 => Ok(*input.choose(&[1, 2, 4, 8, 16])?),
        1 => input.int_in_range(1..=300),
        _ => Ok(*input.choose(&[1, 2, 4, 8, 3, 7, 12, 255, 256, 1000])?),
    }
}

/// A buffer: compressed by C and in Rust, decompressed by both, whole and in parts.
fn buffer(input: &mut Unstructured<'_>) -> Result<()> {
    let typesize = typesize(input)?;
    let (params, filters) = params(input, typesize)?;
    let mut len = match input.int_in_range(0..=3)? {
        0 => input.int_in_range(0..=64)?,
        1 => input.int_in_range(0..=20)? * typesize,
        _ => input.int_in_range(0..=20_000)?,
    };
    if filters.first() == Some(&Filter::Delta) {
        len -= len % typesize;
    }
    let (start, stop) = (input.int_in_range(0..=len)?, input.int_in_range(0..=len)?);
    let source = data(input, len)?;
    let bytes = match blosc2::compress(&source, &params) {
        Ok(bytes) => bytes,
        Err(error) => panic!("{params:?}, {len} bytes: {error}"),
    };
    assert!(bytes.len() <= source.len() + 32, "{params:?}: {} of {len}", bytes.len());
    let chunk = ChunkRef::validated(&bytes[..], Check::Content)
        .unwrap_or_else(|error| panic!("{params:?}: {error}"));
    let mut decompressor =
        Decompressor::new(DParams::new().threads(Threads::ONE)).expect("a decompressor");
    let found = decompressor.decompress::<u8>(&chunk).expect("C compressed it");
    assert!(found == source, "{params:?}: C returns other data");
    let range = start.min(stop)..start.max(stop);
    let part = decompressor.items::<u8>(&chunk, range.clone()).expect("C compressed it");
    assert!(part == source[range.clone()], "{params:?}: C returns other data at {range:?}");
    let rust = Chunk::new(&bytes, &Limits::default()).and_then(|chunk| chunk.decode());
    assert!(rust.expect("C compressed it") == source, "{params:?}: Rust decodes other data");
    in_rust(input, &filters, typesize, &source)
}

/// Encodes in Rust, and decodes by both.
fn in_rust(
    input: &mut Unstructured<'_>,
    filters: &[Filter],
    typesize: usize,
    source: &[u8],
) -> Result<()> {
    let mut params = chunk::Params { typesize: typesize as u32, ..Default::default() };
    params.codec = *input.choose(&[0, 1, 2, 4, 5])?;
    params.level = input.int_in_range(0..=9)?;
    if bool::arbitrary(input)? {
        params.blocksize = Some(input.int_in_range(typesize as u32..=(typesize as u32).max(5000))?);
    }
    let first = 6 - filters.len();
    for (at, filter) in filters.iter().enumerate() {
        params.filters[first + at] = filter.code();
        params.filters_meta[first + at] = match filter {
            // C knows the item size of a chunk in a super-chunk only.
            Filter::Bytedelta(0) => typesize as u8,
            filter => filter.meta(),
        };
    }
    let shown = format!("{params:?}, {} bytes", source.len());
    let Ok(mut encoder) = Encoder::new(params) else { return Ok(()) };
    let Ok(bytes) = encoder.encode(source) else { return Ok(()) };
    let rust = Chunk::new(&bytes, &Limits::default()).and_then(|chunk| chunk.decode());
    let rust = rust.unwrap_or_else(|error| panic!("{shown}: Rust does not decode: {error}"));
    assert!(rust == source, "{shown}: Rust decodes other data");
    let c = blosc2::decompress::<u8>(&bytes);
    let c = c.unwrap_or_else(|error| panic!("{shown}: C does not decompress: {error}"));
    assert!(c == source, "{shown}: C decompresses to other data");
    let blocks: Vec<&[u8]> = source.chunks(1 + source.len() / 5).collect();
    if let Ok(chunk) = Compressor::new(CParams::new().typesize(typesize))
        .and_then(|mut compressor| compressor.compress_blocks(&blocks))
    {
        let rust =
            Chunk::new(chunk.as_bytes(), &Limits::default()).and_then(|chunk| chunk.decode());
        assert!(rust.expect("C compressed it") == source, "variable-length blocks differ");
    }
    Ok(())
}

/// An array: written by regions, read by regions, saved, and opened again.
fn array(input: &mut Unstructured<'_>) -> Result<()> {
    let ndim = input.int_in_range(0..=4)?;
    let typesize = *input.choose(&[1usize, 2, 4, 8, 5, 12])?;
    let mut shape = Vec::new();
    let (mut chunks, mut blocks) = (Vec::new(), Vec::new());
    for _ in 0..ndim {
        shape.push(input.int_in_range(0..=[200u64, 200, 40, 12, 6][ndim])?);
        let chunk = input.int_in_range(1..=20u64)?;
        chunks.push(chunk);
        blocks.push(input.int_in_range(1..=chunk)?);
    }
    let dtype = format!("|V{typesize}");
    let (params, _) = params(input, typesize)?;
    let mut params = params;
    params.blocksize = None;
    let builder = NDArray::builder().cparams(&params).chunk_shape(&chunks).block_shape(&blocks);
    let builder = if bool::arbitrary(input)? { builder.target(Vec::new()) } else { builder };
    let mut array = match builder
        .dtype(&dtype, vec![0; typesize].len())
        .full(RawItems(&vec![0; typesize]), &shape)
    {
        Ok(array) => array,
        Err(error) => panic!("{shape:?}, {chunks:?}, {blocks:?}, {params:?}: {error}"),
    };
    let count: u64 = shape.iter().product();
    let mut model = vec![0; count as usize * typesize];
    for _ in 0..input.int_in_range(0..=4)? {
        let region = region(input, &shape)?;
        let positions = positions(&region, &shape);
        let new = data(input, positions.len() * typesize)?;
        let selection: Vec<AxisSelection> =
            region.iter().map(|&(start, stop)| (start as i64..stop as i64).into()).collect();
        array.write(selection, RawItems(&new)).expect("a region inside the array");
        for (at, position) in positions.into_iter().enumerate() {
            model[position * typesize..][..typesize]
                .copy_from_slice(&new[at * typesize..][..typesize]);
        }
    }
    let shown = format!("{shape:?}, {chunks:?}, {blocks:?}, {typesize}, {params:?}");
    assert!(array.read::<RawItems>(..).expect("it was written").0 == model, "{shown}");
    let frame = array.schunk().to_cframe().expect("a frame in memory");
    assert!(
        good_content(&frame).is_none_or(|content| content.array.as_ref() == Some(&model)),
        "{shown}: Rust reads other items"
    );
    let again = NDArray::from_schunk(SChunk::open(frame).expect("it was written here"));
    let again = again.expect("it was written here");
    let region = region(input, &shape)?;
    let selection: Vec<AxisSelection> =
        region.iter().map(|&(start, stop)| (start as i64..stop as i64).into()).collect();
    let found = again.read::<RawItems>(selection).expect("a region inside the array").0;
    let expected: Vec<u8> = positions(&region, &shape)
        .into_iter()
        .flat_map(|at| model[at * typesize..][..typesize].iter().copied())
        .collect();
    assert!(found == expected, "{shown}: {region:?}");
    Ok(())
}

/// A start and a stop for each axis.
fn region(input: &mut Unstructured<'_>, shape: &[u64]) -> Result<Vec<(u64, u64)>> {
    shape
        .iter()
        .map(|&size| {
            let (one, other) = (input.int_in_range(0..=size)?, input.int_in_range(0..=size)?);
            Ok((one.min(other), one.max(other)))
        })
        .collect()
}

/// The positions of the items of a region, in the order of the region.
fn positions(region: &[(u64, u64)], shape: &[u64]) -> Vec<usize> {
    let mut found = vec![0];
    for (&(start, stop), &size) in region.iter().zip(shape) {
        found = found
            .iter()
            .flat_map(|&outer| (start..stop).map(move |at| outer * size as usize + at as usize))
            .collect();
    }
    found
}
