//! Batch arrays: a batch of items in each chunk.

#[cfg(feature = "c")]
mod change;

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::blosc2::super_chunk::{Metalayers, Revision};
use crate::blosc2::{Error, ErrorKind, Result, SChunk, Target, Value};
#[cfg(feature = "arrow")]
use arrow_array::Array;
#[cfg(feature = "arrow")]
use arrow_schema::Field;

#[cfg(feature = "arrow")]
use crate::arrow::{ipc, values};
#[cfg(feature = "arrow")]
use crate::limits::max_read_of;
use crate::limits::{decode, max_values_memory};
use crate::tag::{ARROW, error, tag, what};

#[cfg(feature = "c")]
pub(crate) use change::{Batches, Items};

const NAME: &str = "batcharray";
/// The variable-length metalayer with the number of items of each batch.
const LENGTHS: &str = "_batch_array_metadata";
const BATCH_LENGTHS: &str = "batch_lengths";
#[cfg(feature = "arrow")]
const ARROW_SCHEMA: &str = "arrow_schema";
const ITEMS_PER_BLOCK: &str = "items_per_block";
const OPEN: &str = "open a batch array";
const MAKE: &str = "create a batch array";
const READ: &str = "read from a batch array";
const WRITE: &str = "write to a batch array";
/// Maximum bytes of all batches that are counted without a request, in total and for each stored byte: a small file can
/// hold any number of bytes.
const MAX_COUNTED: u64 = 256 << 20;
const MAX_COUNTED_RATIO: u64 = 256;
/// Bytes that represent the work for a batch, besides its own. Less than what the ratio allows for the smallest batch.
const BATCH_COST: u64 = 8 << 10;

/// An array of items of any type and size, which are stored in batches. Each batch is a chunk with variable-length
/// blocks. Python: `BatchArray`.
///
/// One call writes one batch, which has at least one item. Each block of a batch has
/// [`items_per_block`](Self::items_per_block) items; the last block may have fewer. Reading an item decompresses its
/// block. Small blocks make random access faster; large blocks compress better.
///
/// A batch array is a super-chunk with the metalayer `batcharray`, in a contiguous file, a directory or in memory. The
/// variable-length metalayer `_batch_array_metadata` stores the number of items of each batch. If these numbers are
/// missing or invalid, for example because a writer was interrupted, methods that need the numbers count the items.
///
/// By default, items are serialized with msgpack. The feature `arrow` adds arrays whose items are serialized with
/// Arrow: `new_arrow_in` creates such an array, `append_arrow` writes an Arrow array as a batch, and `arrow_batch`
/// reads a batch as an Arrow array. On such an array, the other methods convert between [`Value`]s and Arrow.
///
/// ```
/// use blosc2_store::BatchArray;
///
/// let mut array = BatchArray::in_memory()?;
/// array.append(&["one", "two"])?;
/// array.append(&[3.5, 4.5, 5.5])?;
/// assert_eq!(array.batch(1)?, [3.5.into(), 4.5.into(), 5.5.into()]);
/// assert_eq!(array.item(2)?, 3.5.into());
/// assert_eq!((array.len(), array.nitems()?), (2, 5));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct BatchArray {
    schunk: SChunk,
    known: Known,
    /// The revision of the super-chunk for which `known` is right.
    revision: Mutex<Revision>,
}

/// The known facts about the batches.
#[derive(Debug, Clone)]
struct Known {
    /// `None` before the first batch, or if the file does not state it.
    items_per_block: Option<u64>,
    /// The index of the first item of each batch, and the end of the last batch.
    starts: OnceLock<Vec<u64>>,
    format: Format,
}

/// How items are serialized.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    Msgpack,
    /// With Arrow, as a column of this field, which is not known before the first batch.
    #[cfg(feature = "arrow")]
    Arrow(Option<Field>),
}

impl BatchArray {
    /// Opens a file or a directory for reading.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open(target)?)
    }

    /// Opens the array in a super-chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the metalayer `batcharray` is missing or invalid;
    /// - [`ErrorKind::Unsupported`]: the items are serialized with Arrow, and this build does not have the feature
    ///   `arrow`; or the format version of the array is newer than this crate supports.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        let revision = schunk.revision()?.into();
        let known = Known::read(&schunk)?;
        Ok(Self { schunk, known, revision })
    }

    /// Checks that no other handle or program has changed the batches since their lengths were read.
    fn check_current(&self) -> Result<()> {
        let now = self.schunk.revision()?;
        let mut revision = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        if *revision == now {
            return Ok(());
        }
        let found = Known::read(&self.schunk)?;
        if let (Some(_), None) = (self.known.starts.get(), found.starts.get()) {
            let lengths = count(&self.schunk, &found.format, max_counted(&self.schunk))?;
            found.starts.get_or_init(|| starts_of(&self.schunk, &lengths).unwrap_or_default());
        }
        let is_known = |known: &Known| (known.items_per_block, known.starts.get().cloned());
        if is_known(&found) == is_known(&self.known) {
            *revision = now;
            return Ok(());
        }
        let detail = "another handle or program has changed its batches since this handle read their lengths: call \
            `refresh` to read them again";
        Err(error(&self.schunk, ErrorKind::Busy, READ, detail))
    }

    /// Returns the super-chunk.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Converts the array into its super-chunk.
    pub fn into_schunk(self) -> SChunk {
        self.schunk
    }

    /// Returns the variable-length metalayers: the metalayers of the user, and `_batch_array_metadata`.
    pub fn vlmeta(&self) -> Metalayers<'_> {
        self.schunk.vlmeta()
    }

    /// Returns the number of batches.
    pub fn len(&self) -> usize {
        self.schunk.nchunks()
    }

    /// Returns whether the array has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items per block. Returns `None` in two cases: the number was not given and the array has
    /// no batch yet; or the file does not contain the number.
    pub fn items_per_block(&self) -> Option<u64> {
        self.known.items_per_block
    }

    /// Returns the number of items in all batches. If the stored numbers are missing or invalid, this method reads all
    /// batches.
    ///
    /// # Errors
    /// - [`ErrorKind::TooLarge`]: the stored numbers are missing or invalid, and the decompressed batches take more
    ///   than 256 MiB and more than 256 times their compressed size; call [`recount`](Self::recount);
    /// - [`ErrorKind::Busy`]: another handle or program has changed the batches; call [`refresh`](Self::refresh);
    /// - the errors of [reading values](crate#reading-values).
    pub fn nitems(&self) -> Result<u64> {
        self.check_current()?;
        self.known_nitems()
    }

    /// The number of items in all batches that this handle has read last.
    pub(crate) fn known_nitems(&self) -> Result<u64> {
        Ok(self.starts()?.last().copied().unwrap_or(0))
    }

    /// Returns the number of items in a batch. If the stored numbers are missing or invalid, this method reads all
    /// batches.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is not below the number of batches;
    /// - the errors of [`nitems`](Self::nitems).
    pub fn batch_len(&self, index: usize) -> Result<u64> {
        self.check_current()?;
        self.known_len(index)
    }

    fn known_len(&self, index: usize) -> Result<u64> {
        match self.starts()?.get(index..).unwrap_or_default() {
            [start, end, ..] => Ok(end - start),
            _ => Err(no_batch(&self.schunk, READ, index)),
        }
    }

    /// Reads the items of a batch.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is not below the number of batches;
    /// - [`ErrorKind::InvalidData`]: the number of items in the batch differs from the stored number; see
    ///   [`recount`](Self::recount);
    /// - [`ErrorKind::Busy`]: another handle or program has changed the batches; call [`refresh`](Self::refresh);
    /// - the errors of [reading values](crate#reading-values).
    pub fn batch(&self, index: usize) -> Result<Vec<Value>> {
        self.check_current()?;
        let items = batch(&self.schunk, &self.known.format, index)?;
        self.check_len(index, items.len() as u64)?;
        Ok(items)
    }

    /// Checks the number of items of a batch that was read.
    pub(crate) fn check_len(&self, index: usize, len: u64) -> Result<()> {
        match self.known.starts.get().and_then(|starts| starts.get(index..)) {
            Some([start, end, ..]) => check_len(&self.schunk, index, len, end - start),
            _ => Ok(()),
        }
    }

    /// Returns a double-ended iterator over all batches. Each step of the iterator reads one batch.
    pub fn batches(
        &self,
    ) -> impl DoubleEndedIterator<Item = Result<Vec<Value>>> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.batch(index))
    }

    /// Reads an item. `index` counts the items of all batches. Python: `array.items[index]`.
    ///
    /// Each call decompresses one block, or the complete batch if [`items_per_block`](Self::items_per_block) is `None`.
    /// If the stored numbers of items are missing or invalid, the call first reads all batches. To read many items, use
    /// [`items`](Self::items) or [`batch`](Self::batch).
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is not below the number of items;
    /// - [`ErrorKind::InvalidData`]: the number of items in the batch differs from the stored number; see
    ///   [`recount`](Self::recount);
    /// - the errors of [`nitems`](Self::nitems).
    pub fn item(&self, index: u64) -> Result<Value> {
        self.check_current()?;
        let (first, items) = self.around(index)?;
        let item = usize::try_from(index - first).ok();
        item.and_then(|item| items.into_iter().nth(item)).ok_or_else(|| {
            let detail = format!("item {index} is missing in its batch");
            error(&self.schunk, ErrorKind::InvalidData, READ, detail)
        })
    }

    /// Returns an iterator over all items. The iterator reads batch by batch. After an error, the iterator continues
    /// with the next batch.
    pub fn items(&self) -> impl Iterator<Item = Result<Value>> + '_ {
        self.batches().flat_map(|batch| match batch {
            Ok(items) => items.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }

    /// The batch of an item, and the index of the item in it.
    pub(crate) fn locate(&self, index: u64) -> Result<(usize, u64)> {
        let starts = self.starts()?;
        // The last batch that starts at or before the item; the end of the last batch is not a start.
        let after = starts.partition_point(|&start| start <= index);
        match starts[..after].last() {
            Some(start) if after < starts.len() => Ok((after - 1, index - start)),
            _ => {
                let nitems = starts.last().copied().unwrap_or(0);
                let detail = format!("there are {nitems} items, asked for {index}");
                Err(error(&self.schunk, ErrorKind::OutOfBounds, READ, detail))
            }
        }
    }

    /// The items that are best read together with an item, and about how many bytes they take: those of its batch, or of
    /// its block if the batch has more than `most` bytes.
    pub(crate) fn unit_of(&self, index: u64, most: u64) -> Result<(Range<u64>, u64)> {
        let (batch, inner) = self.locate(index)?;
        let (start, len) = (index - inner, self.known_len(batch)?);
        let nbytes = self.schunk.chunk_info(batch)?.nbytes as u64;
        match self.known.items_per_block.filter(|_| nbytes > most) {
            Some(per_block) => {
                let before = inner - inner % per_block;
                let count = per_block.min(len - before);
                // The sizes of the blocks are not known.
                let share = nbytes as f64 * count as f64 / len as f64;
                Ok((start + before..start + before + count, share as u64))
            }
            None => Ok((start..start + len, nbytes)),
        }
    }

    /// The items of the block of an item, and the index of the first of them.
    pub(crate) fn around(&self, index: u64) -> Result<(u64, Vec<Value>)> {
        let (batch, inner) = self.locate(index)?;
        let start = index - inner;
        let Some(per_block) = self.known.items_per_block else {
            return Ok((start, self.batch(batch)?));
        };
        let block = inner / per_block;
        let before = block * per_block;
        let expected = (self.known_len(batch)? - before).min(per_block);
        let place = usize::try_from(block).unwrap_or(usize::MAX);
        let found = match self.schunk.block(batch, place) {
            Ok(bytes) => {
                let mut left = max_values_memory(&self.schunk, batch, bytes.len())?;
                self.known.format.decode(&self.schunk, (batch, place), &bytes, &mut left)?
            }
            // The batch exists, so the block is missing.
            Err(error) if error.kind() == ErrorKind::OutOfBounds => Vec::new(),
            Err(error) => return Err(error),
        };
        if found.len() as u64 != expected {
            let found = found.len();
            let detail =
                format!("block {block} of batch {batch} has {found} items, expected {expected}");
            return Err(error(&self.schunk, ErrorKind::InvalidData, READ, detail));
        }
        Ok((start + before, found))
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn format(&self) -> &Format {
        &self.known.format
    }

    /// The index of the first item of each batch; counted if it is not known.
    fn starts(&self) -> Result<&[u64]> {
        if let Some(starts) = self.known.starts.get() {
            return Ok(starts);
        }
        let lengths = count(&self.schunk, &self.known.format, max_counted(&self.schunk))?;
        let starts = starts_of(&self.schunk, &lengths)?;
        Ok(self.known.starts.get_or_init(|| starts))
    }
}

impl Known {
    fn read(schunk: &SChunk) -> Result<Self> {
        let meta = tag(schunk, NAME, OPEN)?;
        let items_per_block = meta.get(ITEMS_PER_BLOCK).filter(|number| **number != Value::None);
        let items_per_block = items_per_block.map(|number| {
            number.as_u64().filter(|number| *number > 0).ok_or_else(|| {
                let found = what(number);
                let detail =
                    format!("its number of items per block is {found}, expected at least 1");
                error(schunk, ErrorKind::InvalidData, OPEN, detail)
            })
        });
        let items_per_block = items_per_block.transpose()?;
        let lengths = kept_lengths(schunk)?;
        let starts = lengths.and_then(|lengths| starts_of(schunk, &lengths).ok());
        let starts = starts.map(OnceLock::from).unwrap_or_default();
        let format = match meta.get("serializer") {
            Some(serializer) if serializer.as_str() == Some(ARROW) => arrow_format(schunk, &meta)?,
            _ => Format::Msgpack,
        };
        Ok(Self { items_per_block, starts, format })
    }
}

/// The items of a batch, without comparing the stored length.
fn batch(schunk: &SChunk, format: &Format, index: usize) -> Result<Vec<Value>> {
    if index >= schunk.nchunks() {
        return Err(no_batch(schunk, READ, index));
    }
    let blocks = schunk.blocks(index)?;
    let mut left = max_values_memory(schunk, index, blocks.as_bytes().len())?;
    let mut items = Vec::new();
    for (block, bytes) in blocks.iter().enumerate() {
        items.append(&mut format.decode(schunk, (index, block), bytes, &mut left)?);
    }
    Ok(items)
}

impl Format {
    /// The items of a block. Values of msgpack may take `left` bytes of memory.
    fn decode(
        &self,
        schunk: &SChunk,
        (batch, block): (usize, usize),
        bytes: &[u8],
        left: &mut u64,
    ) -> Result<Vec<Value>> {
        match self {
            Self::Msgpack => {
                let place = || format!("block {block} of batch {batch}");
                let value = decode(schunk, bytes, *left, place)?;
                *left = left.saturating_sub(Value::MEMORY * value.count());
                match value {
                    Value::List(items) => Ok(items),
                    _ => Err(no_list(schunk, batch, block)),
                }
            }
            #[cfg(feature = "arrow")]
            Self::Arrow(field) => {
                // A few bytes can represent any number of nulls, or be repeated.
                let mut left = max_read_of(schunk, bytes.len() as u64);
                let items = ipc::block_array(bytes.to_vec(), field.as_ref()).and_then(|array| {
                    let column = ipc::column(array.data_type());
                    values::values_of(field.as_ref().unwrap_or(&column), &array, &mut left)
                });
                items.map_err(|(kind, detail)| in_block(schunk, batch, block, kind, &detail))
            }
        }
    }
}

fn no_list(schunk: &SChunk, batch: usize, block: usize) -> Error {
    let detail = format!("block {block} of batch {batch} is not a list");
    error(schunk, ErrorKind::InvalidData, READ, detail)
}

/// Counts the items of each batch, in batches of up to `left` bytes in total.
fn count(schunk: &SChunk, format: &Format, mut left: u64) -> Result<Vec<u64>> {
    let lengths = (0..schunk.nchunks()).map(|index| {
        let cost = schunk.chunk_info(index)?.nbytes as u64 + BATCH_COST;
        left = left.checked_sub(cost).ok_or_else(|| {
            let detail = "its metadata lacks valid numbers of items, and its batches are too large to count them: \
                call BatchArray::recount";
            error(schunk, ErrorKind::TooLarge, READ, detail)
        })?;
        let blocks = schunk.blocks(index)?;
        let lengths = blocks.iter().enumerate().map(|(block, bytes)| match format {
            Format::Msgpack => list_len(schunk, index, block, bytes),
            #[cfg(feature = "arrow")]
            Format::Arrow(_) => ipc::block_len(bytes)
                .map_err(|(kind, detail)| in_block(schunk, index, block, kind, &detail)),
        });
        lengths.sum()
    });
    lengths.collect()
}

/// The maximum number of bytes that are counted without a request.
fn max_counted(schunk: &SChunk) -> u64 {
    schunk.cbytes().saturating_mul(MAX_COUNTED_RATIO).max(MAX_COUNTED)
}

/// The number of items of a block, without decoding them. Reading the block compares it with the items.
fn list_len(schunk: &SChunk, batch: usize, block: usize, mut bytes: &[u8]) -> Result<u64> {
    let len = rmp::decode::read_array_len(&mut bytes).ok().map(u64::from);
    // Each item takes at least one byte.
    len.filter(|&len| len <= bytes.len() as u64).ok_or_else(|| no_list(schunk, batch, block))
}

/// The stored number of items of each batch; `None` if it does not match the batches.
fn kept_lengths(schunk: &SChunk) -> Result<Option<Vec<u64>>> {
    let lengths = match schunk.vlmeta().value(LENGTHS)? {
        None => Some(Vec::new()),
        Some(kept) => kept.get(BATCH_LENGTHS).and_then(Value::as_list).and_then(|lengths| {
            lengths.iter().map(|len| len.as_u64().filter(|&len| len > 0)).collect()
        }),
    };
    Ok(lengths.filter(|lengths| lengths.len() == schunk.nchunks()))
}

#[cfg(feature = "arrow")]
fn arrow_format(schunk: &SChunk, meta: &Value) -> Result<Format> {
    let field = match meta.get(ARROW_SCHEMA) {
        None | Some(Value::None) => None,
        Some(Value::Bytes(bytes)) => {
            let field = ipc::parse_schema(bytes).map_err(|(kind, detail)| {
                error(schunk, kind, OPEN, format!("its Arrow schema is invalid: {detail}"))
            });
            Some(field?)
        }
        Some(other) => {
            let detail = format!("its Arrow schema is {}, expected bytes", what(other));
            return Err(error(schunk, ErrorKind::InvalidData, OPEN, detail));
        }
    };
    Ok(Format::Arrow(field))
}

/// Arrays whose items are serialized with Arrow are refused before.
#[cfg(not(feature = "arrow"))]
fn arrow_format(schunk: &SChunk, _: &Value) -> Result<Format> {
    Err(error(schunk, ErrorKind::Unsupported, OPEN, "its items are serialized with Arrow"))
}

#[cfg(feature = "arrow")]
pub(crate) fn in_block(
    schunk: &SChunk,
    batch: usize,
    block: usize,
    kind: ErrorKind,
    detail: &str,
) -> Error {
    error(schunk, kind, READ, format!("block {block} of batch {batch}: {detail}"))
}

/// The index of the first item of each batch of these lengths, and the end of the last batch.
fn starts_of(schunk: &SChunk, lengths: &[u64]) -> Result<Vec<u64>> {
    let mut end = Some(0u64);
    let ends = lengths.iter().map(|&len| {
        end = end.and_then(|end| end.checked_add(len));
        end
    });
    let starts: Option<Vec<u64>> = std::iter::once(Some(0)).chain(ends).collect();
    starts.ok_or_else(|| {
        error(schunk, ErrorKind::InvalidData, READ, "there are more than 2^64 - 1 items")
    })
}

fn check_len(schunk: &SChunk, index: usize, found: u64, kept: u64) -> Result<()> {
    if found == kept {
        return Ok(());
    }
    let detail = format!("batch {index} has {found} items, its metadata specifies {kept}");
    Err(error(schunk, ErrorKind::InvalidData, READ, detail))
}

fn no_batch(schunk: &SChunk, doing: &str, index: usize) -> Error {
    let nbatches = schunk.nchunks();
    let detail = format!("there are {nbatches} batches, asked for {index}");
    error(schunk, ErrorKind::OutOfBounds, doing, detail)
}
