//! Blocks of numbers in pcodec's wrapped format, without its outer file: the version, the metadata, and one page.
//!
//! The number of numbers is not stored. It follows from the size of the block.

use std::io;

use blosc2::user_defined::BoxError;
use pco::data_types::NumberType;
use pco::errors::ErrorKind;
use pco::metadata::DeltaEncoding;
use pco::wrapped::{FileCompressor, FileDecompressor};
use pco::{ChunkConfig, FULL_BATCH_N, PagingSpec};

use crate::number::{Bytes, NumberFormat};

/// The numbers that pcodec accepts at once.
const MOST: usize = 1 << 24;
/// The numbers that are decompressed at once: a multiple of pcodec's batch.
const BATCH: usize = 4 * FULL_BATCH_N;
/// The major version of pcodec's format. The minor version is in the next byte.
const MAJOR: u8 = 4;
/// The mode of pcodec whose metadata contain a dictionary. The number of its entries follows in 25 bits.
const DICTIONARY: u32 = 4;
const DICTIONARY_BITS: u32 = 25;
/// The smallest window of the delta encoding with references to earlier numbers.
const LEAST_WINDOW: usize = 16;

/// `None`: the block does not get smaller, or pcodec does not compress it.
pub(crate) fn compress(
    format: NumberFormat,
    input: &[u8],
    output: &mut [u8],
    level: u8,
) -> Result<Option<usize>, BoxError> {
    let count = input.len() / format.size();
    if !input.len().is_multiple_of(format.size()) || count == 0 || count > MOST {
        return Ok(None);
    }
    pco::match_number_enum!(format.kind, NumberType<T> => {
        compress_as::<T>(input, output, level, format.is_big_endian)
    })
}

fn compress_as<T: Bytes>(
    input: &[u8],
    output: &mut [u8],
    level: u8,
    is_big_endian: bool,
) -> Result<Option<usize>, BoxError> {
    let numbers = T::from_bytes(input, is_big_endian);
    let config = ChunkConfig::default()
        .with_compression_level(level.into())
        .with_paging_spec(PagingSpec::Exact(vec![numbers.len()]))
        .with_enable_8_bit(true);
    let room = output.len();
    let file = FileCompressor::default();
    let mut chunk = file.chunk_compressor(&numbers, &config)?;
    let written = file
        .write_header(output)
        .and_then(|rest| chunk.write_meta(rest))
        .and_then(|rest| chunk.write_page(0, rest));
    match written {
        Ok(rest) => Ok(Some(room - rest.len())),
        // The output is full.
        Err(error) if error.kind == ErrorKind::Io(io::ErrorKind::WriteZero) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn decompress(
    format: NumberFormat,
    input: &[u8],
    output: &mut [u8],
) -> Result<(), BoxError> {
    let size = format.size();
    if !output.len().is_multiple_of(size) {
        let len = output.len();
        return Err(
            format!("a block of {len} bytes does not consist of numbers of {size} bytes").into()
        );
    }
    check_dictionary(size, input)?;
    pco::match_number_enum!(format.kind, NumberType<T> => {
        decompress_as::<T>(input, output, format.is_big_endian)
    })
}

fn decompress_as<T: Bytes>(
    input: &[u8],
    output: &mut [u8],
    is_big_endian: bool,
) -> Result<(), BoxError> {
    let count = output.len() / size_of::<T>();
    let (file, rest) = FileDecompressor::new(input)?;
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest)?;
    // Pcodec allocates the window.
    if let DeltaEncoding::Lookback { config, .. } = &chunk.meta().delta_encoding {
        let most = count.next_power_of_two().max(LEAST_WINDOW);
        let window = 1u64 << config.window_n_log;
        if window > most as u64 {
            return Err(format!("a window of {window} numbers, expected at most {most}").into());
        }
    }
    let mut page = chunk.page_decompressor(rest, count)?;
    let mut numbers = [T::default(); BATCH];
    for part in output.chunks_mut(BATCH * size_of::<T>()) {
        let expected = part.len() / size_of::<T>();
        let found = page.read(&mut numbers)?.n_processed;
        if found != expected {
            return Err(format!("expected {expected} numbers, found {found}").into());
        }
        T::to_bytes(&numbers[..found], part, is_big_endian);
    }
    match page.into_src() {
        [] => Ok(()),
        rest => Err(format!("{} bytes after the numbers", rest.len()).into()),
    }
}

/// Checks that the input is long enough for its dictionary, whose entries have this size: pcodec allocates the
/// dictionary before it reads the entries.
fn check_dictionary(size: usize, input: &[u8]) -> Result<(), BoxError> {
    let &[major, _, a, b, c, d, ..] = input else {
        return Err(format!("{} bytes are too short", input.len()).into());
    };
    if major != MAJOR {
        return Err(format!("version {major} of pcodec's format, expected {MAJOR}").into());
    }
    let word = u32::from_le_bytes([a, b, c, d]);
    let entries = word >> 4 & ((1 << DICTIONARY_BITS) - 1);
    if word & 0xf == DICTIONARY && entries as usize > input.len() / size {
        let len = input.len();
        return Err(format!("a dictionary of {entries} numbers in {len} bytes").into());
    }
    Ok(())
}
