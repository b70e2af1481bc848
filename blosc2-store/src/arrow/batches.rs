//! Batches of items that are serialized with Arrow.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::concat::concat;
use blosc2::{ErrorKind, Result, SChunk};

use super::ipc;
use crate::BatchArray;
use crate::batch_array::{Format, Items, in_block};
use crate::tag::{ARROW, error};

const READ: &str = "read Arrow items from a batch array";

impl BatchArray {
    /// Creates an array in an empty super-chunk. Its items are serialized with Arrow, `items_per_block` items in each
    /// block. The array uses the storage and the compression parameters of the super-chunk. Python:
    /// `BatchArray(serializer="arrow")`.
    ///
    /// The first batch determines the type of all items. With `items_per_block` `None`, the number is computed from the
    /// first batch and the compression level, as for [`new_in`](Self::new_in).
    ///
    /// # Errors
    /// Fails with the errors of [`new_in`](Self::new_in).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_array::{ArrayRef, StringArray};
    /// use blosc2::OpenOptions;
    /// use blosc2_store::BatchArray;
    ///
    /// let mut array = BatchArray::new_arrow_in(OpenOptions::new().in_memory()?, None)?;
    /// let words: ArrayRef = Arc::new(StringArray::from(vec![Some("one"), None]));
    /// array.append_arrow(&words)?;
    /// assert_eq!(&array.arrow_batch(0)?, &words);
    /// assert_eq!(array.item(0)?, "one".into());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
    pub fn new_arrow_in(schunk: SChunk, items_per_block: Option<u64>) -> Result<Self> {
        Self::new_with(schunk, items_per_block, ARROW)
    }

    /// Returns the Arrow type of the items; `None` if they are serialized with msgpack, or before the first batch.
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
    pub fn arrow_type(&self) -> Option<&DataType> {
        match self.format() {
            Format::Arrow(field) => field.as_ref().map(|field| field.data_type()),
            Format::Msgpack => None,
        }
    }

    /// Reads the items of a batch as an Arrow array. The items of several blocks are copied into one array.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: `index` is not below the number of batches;
    /// - [`ErrorKind::TypeMismatch`]: the items are serialized with msgpack;
    /// - [`ErrorKind::InvalidData`]: a chunk is damaged, its content is not a valid Arrow array of the type of the
    ///   items, or the number of its items differs from the stored one; see [`recount`](Self::recount);
    /// - [`ErrorKind::Unsupported`]: the items are views of lists, unions or run-end encoded, their buffers are
    ///   compressed by Arrow, or they are stored in a byte order other than that of this machine;
    /// - [`ErrorKind::TooLarge`], [`ErrorKind::Io`]: as for [`batch`](Self::batch).
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
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

    /// Returns an iterator over the batches as Arrow record batches with one column, named `values`. The iterator reads
    /// each batch when it is reached, and continues with the next batch after an error.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`]: the items are serialized with msgpack.
    ///
    /// An error of a batch is an [`ArrowError::ExternalError`] with an error of [`arrow_batch`](Self::arrow_batch).
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
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
    /// - [`ErrorKind::TypeMismatch`]: the items have another type than those of the other batches, or the items of this
    ///   array are serialized with msgpack;
    /// - [`ErrorKind::InvalidArgument`]: `items` is empty;
    /// - the errors of [changing a container](crate#changing-a-container).
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
    pub fn append_arrow(&mut self, items: &dyn Array) -> Result<()> {
        self.append_items(Items::Arrow(&items.slice(0, items.len())))
    }
}
