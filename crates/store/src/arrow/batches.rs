//! Batches of items that are serialized with Arrow.

use std::sync::Arc;

use crate::blosc2::{ErrorKind, Result, SChunk};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::concat::concat;

use super::ipc;
use crate::BatchArray;
use crate::batch_array::{Format, Items, in_block};
use crate::tag::{ARROW, error};

const READ: &str = "read Arrow items from a batch array";

impl BatchArray {
    /// Creates an array in an empty super-chunk. Its items are serialized with Arrow; each block contains
    /// `items_per_block` items. The array uses the storage and the compression parameters of the super-chunk. Python:
    /// `BatchArray(serializer="arrow")`.
    ///
    /// The first batch determines the type of all items. If `items_per_block` is `None`, the number of items in each
    /// block is computed from the first batch and the compression level: see the table at [`new_in`](Self::new_in).
    ///
    /// # Errors
    /// Fails with the errors of [`new_in`](Self::new_in).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_array::{ArrayRef, StringArray};
    /// use blosc2::{OpenOptions, Target};
    /// use blosc2_store::BatchArray;
    ///
    /// let mut array = BatchArray::new_arrow_in(OpenOptions::new().open(Target::memory())?, None)?;
    /// let words: ArrayRef = Arc::new(StringArray::from(vec![Some("one"), None]));
    /// array.append_arrow(&words)?;
    /// assert_eq!(&array.arrow_batch(0)?, &words);
    /// assert_eq!(array.item(0)?, "one".into());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn new_arrow_in(schunk: SChunk, items_per_block: Option<u64>) -> Result<Self> {
        Self::new_with(schunk, items_per_block, ARROW)
    }

    /// Returns the Arrow type of the items. Returns `None` if the items are serialized with msgpack, or if the array
    /// has no batch yet.
    pub fn arrow_type(&self) -> Option<&DataType> {
        match self.format() {
            Format::Arrow(field) => field.as_ref().map(|field| field.data_type()),
            Format::Msgpack => None,
        }
    }

    /// Reads the items of a batch as an Arrow array. If the batch has several blocks, their items are copied into one
    /// array.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is not below the number of batches;
    /// - [`ErrorKind::TypeMismatch`]: the items are serialized with msgpack;
    /// - [`ErrorKind::InvalidData`], in one of these cases:
    ///   - the chunk is damaged;
    ///   - the content of the chunk is not a valid Arrow array of the type of the items;
    ///   - the number of items in the chunk differs from the stored number; see [`recount`](Self::recount);
    /// - [`ErrorKind::Unsupported`], in one of these cases:
    ///   - the Arrow type of the items is a list view, a union or run-end encoded;
    ///   - the buffers of the items are compressed by Arrow;
    ///   - the items are not stored in native byte order;
    /// - [`ErrorKind::TooLarge`]: the result needs more memory than
    ///   [`OpenOptions::max_read`](blosc2::OpenOptions::max_read) allows;
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn arrow_batch(&self, index: usize) -> Result<ArrayRef> {
        let schunk = self.schunk();
        let Format::Arrow(field) = self.format() else {
            let detail = "its items are serialized with msgpack";
            return Err(error(schunk, ErrorKind::TypeMismatch, READ, detail));
        };
        if index >= self.len() {
            let detail = format!("there are {} batches, asked for {index}", self.len());
            return Err(error(schunk, ErrorKind::OutOfBounds, READ, detail));
        }
        let blocks = schunk.blocks(index)?;
        let arrays = blocks.iter().enumerate().map(|(block, bytes)| {
            ipc::block_array(bytes.to_vec(), field.as_ref())
                .map_err(|(kind, detail)| in_block(schunk, index, block, kind, &detail))
        });
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let array = match &arrays[..] {
            [array] => array.clone(),
            arrays => {
                let arrays: Vec<&dyn Array> = arrays.iter().map(|array| &**array).collect();
                concat(&arrays)
                    .map_err(|fault| error(schunk, ErrorKind::InvalidData, READ, fault))?
            }
        };
        self.check_len(index, array.len() as u64)?;
        Ok(array)
    }

    /// Returns an iterator over the batches as Arrow record batches with one column, named `values`. Each step of the
    /// iterator reads one batch. After an error, the iterator continues with the next batch.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`]: the items are serialized with msgpack.
    ///
    /// If a batch cannot be read, the iterator returns an [`ArrowError::ExternalError`] that contains the error of
    /// [`arrow_batch`](Self::arrow_batch).
    pub fn arrow_batches(&self) -> Result<impl RecordBatchReader + '_> {
        if let Format::Msgpack = self.format() {
            let detail = "its items are serialized with msgpack";
            return Err(error(self.schunk(), ErrorKind::TypeMismatch, READ, detail));
        }
        let data_type = self.arrow_type().unwrap_or(&DataType::Null);
        let schema = Arc::new(Schema::new(vec![ipc::column(data_type)]));
        let of = schema.clone();
        let batches = (0..self.len()).map(move |index| {
            let array = self.arrow_batch(index);
            let array = array.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            RecordBatch::try_new(of.clone(), vec![array])
        });
        Ok(RecordBatchIterator::new(batches, schema))
    }

    /// Appends an Arrow array as a batch.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the type of the items differs from the type of the other batches, or the items of
    ///   this array are serialized with msgpack;
    /// - [`ErrorKind::InvalidArgument`]: `items` is empty;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn append_arrow(&mut self, items: &dyn Array) -> Result<()> {
        self.append_items(Items::Arrow(&items.slice(0, items.len())))
    }
}
