//! Blocks of Arrow-serialized batches: streams in Arrow's IPC format, with one record batch of one column.
//!
//! `arrow-ipc` validates the content of arrays, but panics in the following cases, which are therefore checked before:
//! - a schema has an invalid type;
//! - a buffer is not in the body of its message, or has a part of an item at its end;
//! - a mask of null items is too short;
//! - a message states the number of buffers of a view that does not exist.

use std::collections::HashMap;
use std::sync::Arc;

use crate::blosc2::ErrorKind;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{
    Field as FieldHeader, FieldNode, Int, MessageHeader, RecordBatch as BatchHeader,
    Schema as SchemaHeader, TimeUnit, Type, root_as_message,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::tag::{Fault, invalid_data as invalid};

/// The name of the only column, as in Python.
const COLUMN: &str = "values";
/// What precedes the length of the header of a message, since version 0.15 of Arrow.
const CONTINUATION: [u8; 4] = [0xff; 4];
const END: usize = 8;
/// The maximum length of an array for which no bytes are stored, such as an array of nulls.
pub(crate) const MAX_EMPTY: usize = 1 << 20;

/// Returns the field of the column of a batch array with items of this type.
pub(crate) fn column(data_type: &DataType) -> Field {
    Field::new(COLUMN, data_type.clone(), true)
}

pub(crate) fn schema_bytes(field: &Field) -> Result<Vec<u8>, String> {
    let schema = Schema::new(vec![field.clone()]);
    let writer = StreamWriter::try_new(Vec::new(), &schema);
    let mut bytes = writer.and_then(StreamWriter::into_inner).map_err(text)?;
    bytes.truncate(bytes.len().saturating_sub(END));
    // Readers limit the nesting of types.
    parse_schema(&bytes).map_err(|(_, detail)| detail)?;
    Ok(bytes)
}

/// Parses a serialized schema, which must have one column.
pub(crate) fn parse_schema(bytes: &[u8]) -> Result<Field, Fault> {
    let mut messages = Messages { bytes: Buffer::from(bytes), at: 0 };
    let Some((header, _)) = messages.next()? else {
        return Err(invalid("its Arrow schema is empty"));
    };
    Ok(schema_of(&header)?.field(0).clone())
}

pub(crate) fn block_bytes(field: &Field, array: ArrayRef) -> Result<Vec<u8>, String> {
    let schema = Arc::new(Schema::new(vec![field.clone()]));
    let batch = RecordBatch::try_new(schema.clone(), vec![array]).map_err(text)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).map_err(text)?;
    writer.write(&batch).map_err(text)?;
    let bytes = Buffer::from_vec(writer.into_inner().map_err(text)?);
    check_lengths(bytes.clone()).map_err(|(_, detail)| detail)?;
    bytes.into_vec().map_err(|_| "a block that is still in use".to_owned())
}

/// Checks the schema and the lengths in the headers of a new block as [`block_array`] does.
fn check_lengths(bytes: Buffer) -> Result<(), Fault> {
    let limit = most_items(bytes.len());
    let mut messages = Messages { bytes, at: 0 };
    while let Some((header, _)) = messages.next()? {
        let message = root_as_message(&header).map_err(invalid)?;
        if message.header_type() == MessageHeader::Schema {
            schema_of(&header)?;
        }
        let dictionary = message.header_as_dictionary_batch().and_then(|batch| batch.data());
        if let Some(batch) = message.header_as_record_batch().or(dictionary) {
            check_nodes(&batch, limit)?;
        }
    }
    Ok(())
}

/// The maximum number of items of a block of this length.
fn most_items(nbytes: usize) -> usize {
    nbytes.saturating_mul(8).max(MAX_EMPTY)
}

/// Decodes a block. `field` is that of the schema of the batch array, if it has one: blocks of early versions of Python
/// have none.
pub(crate) fn block_array(bytes: Vec<u8>, field: Option<&Field>) -> Result<ArrayRef, Fault> {
    let mut messages = Messages { bytes: Buffer::from_vec(bytes), at: 0 };
    let limit = most_items(messages.bytes.len());
    let mut schema = field.map(|field| Arc::new(Schema::new(vec![field.clone()])));
    let mut dictionaries = HashMap::new();
    while let Some((header, body)) = messages.next()? {
        let message = root_as_message(&header).map_err(invalid)?;
        let version = message.version();
        match message.header_type() {
            MessageHeader::Schema => schema = Some(schema_of(&header)?),
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch();
                let dictionary = dictionary.ok_or_else(|| invalid("a message has no content"))?;
                let schema = needed(&schema)?;
                #[expect(deprecated, reason = "nothing else leads from a dictionary to its type")]
                let fields = schema.fields_with_dict_id(dictionary.id());
                let values = fields.first().and_then(|field| match field.data_type() {
                    DataType::Dictionary(_, values) => Some(&**values),
                    _ => None,
                });
                let values = values.ok_or_else(|| invalid("a dictionary without a column"))?;
                let data = dictionary.data().ok_or_else(|| invalid("an empty dictionary"))?;
                check(&data, values, body.len(), limit)?;
                read_dictionary(&body, dictionary, schema, &mut dictionaries, &version)
                    .map_err(invalid)?;
            }
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch();
                let batch = batch.ok_or_else(|| invalid("a message has no content"))?;
                let schema = needed(&schema)?.clone();
                check(&batch, schema.field(0).data_type(), body.len(), limit)?;
                let batch = read_record_batch(&body, batch, schema, &dictionaries, None, &version)
                    .map_err(invalid)?;
                let array = batch.column(0).clone();
                return match field {
                    Some(field) if field.data_type() != array.data_type() => {
                        let (found, expected) = (array.data_type(), field.data_type());
                        Err(invalid(format!("items of the type {found}, expected {expected}")))
                    }
                    _ => Ok(array),
                };
            }
            other => return Err(invalid(format!("an unexpected message {other:?}"))),
        }
    }
    Err(invalid("no record batch"))
}

/// The number of items of a block, without decoding them. Decoding the block compares it with the items.
pub(crate) fn block_len(bytes: &[u8]) -> Result<u64, Fault> {
    let mut messages = Messages { bytes: Buffer::from(bytes), at: 0 };
    while let Some((header, _)) = messages.next()? {
        let message = root_as_message(&header).map_err(invalid)?;
        if let Some(batch) = message.header_as_record_batch() {
            let len = u64::try_from(batch.length());
            return len.map_err(|_| invalid("a batch of negative length"));
        }
    }
    Err(invalid("no record batch"))
}

#[derive(Debug)]
struct Messages {
    bytes: Buffer,
    at: usize,
}

impl Messages {
    /// The header and the body of the next message.
    fn next(&mut self) -> Result<Option<(Buffer, Buffer)>, Fault> {
        let Some(mut len) = self.number()? else { return Ok(None) };
        if len == CONTINUATION {
            len = self.number()?.ok_or_else(|| invalid("a message without a length"))?;
        }
        let len = u32::from_le_bytes(len);
        if len == 0 {
            return Ok(None);
        }
        let header = self.part(len.into())?;
        let message = root_as_message(&header).map_err(invalid)?;
        let len = u64::try_from(message.bodyLength());
        let len = len.map_err(|_| invalid("a message with a body of negative length"))?;
        let body = self.part(len)?;
        Ok(Some((header, body)))
    }

    fn number(&mut self) -> Result<Option<[u8; 4]>, Fault> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let part = self.part(4)?;
        Ok(part.as_slice().try_into().ok())
    }

    fn part(&mut self, len: u64) -> Result<Buffer, Fault> {
        let left = self.bytes.len() - self.at;
        let len = usize::try_from(len).ok().filter(|len| *len <= left);
        let len = len.ok_or_else(|| invalid("a message that ends after its block"))?;
        self.at += len;
        Ok(self.bytes.slice_with_length(self.at - len, len))
    }
}

/// The schema in the header of a message, which must have one column.
fn schema_of(header: &Buffer) -> Result<SchemaRef, Fault> {
    let message = root_as_message(header).map_err(invalid)?;
    let schema = message.header_as_schema().ok_or_else(|| invalid("a message without a schema"))?;
    if !schema.endianness().equals_to_target_endianness() {
        let detail = "Arrow data in a byte order other than that of this machine";
        return Err((ErrorKind::Unsupported, detail.to_owned()));
    }
    check_schema(&schema)?;
    let schema = fb_to_schema(schema);
    match schema.fields().len() {
        1 => Ok(Arc::new(schema)),
        len => Err(invalid(format!("a schema with {len} columns, expected one"))),
    }
}

/// Checks that the types in the header of a schema are complete, and that their arrays can be read.
fn check_schema(schema: &SchemaHeader<'_>) -> Result<(), Fault> {
    let fields = schema.fields().ok_or_else(|| invalid("a schema without columns"))?;
    fields.iter().try_for_each(|field| {
        if cfg!(target_endian = "big") && field.type_type() == Type::Decimal {
            let detail = "decimal numbers of Arrow in big-endian byte order";
            return Err((ErrorKind::Unsupported, detail.to_owned()));
        }
        check_field(&field)
    })
}

/// Checks that the type in the header of a field is complete, and that its arrays can be read.
fn check_field(field: &FieldHeader<'_>) -> Result<(), Fault> {
    let is_integer = |int: Int<'_>| [8, 16, 32, 64].contains(&int.bitWidth());
    let kind = field.type_type();
    let name = kind.variant_name().unwrap_or("of an unknown type");
    let children = || field.children().into_iter().flatten();
    let checked = |is_valid: Option<bool>| match is_valid {
        Some(true) => children().try_for_each(|child| check_field(&child)),
        _ => Err(invalid(format!("an invalid Arrow type {name}"))),
    };
    let unsupported = || {
        let detail = format!("items of the Arrow type {name} are not supported");
        Err((ErrorKind::Unsupported, detail))
    };
    if let Some(dictionary) = field.dictionary() {
        let is_valid = dictionary.indexType().map(is_integer);
        if is_valid != Some(true) {
            return Err(invalid("a dictionary with an invalid type of indices"));
        }
        const NESTED: [Type; 5] =
            [Type::List, Type::LargeList, Type::FixedSizeList, Type::Struct_, Type::Map];
        if NESTED.contains(&kind) {
            return unsupported();
        }
    }
    let has_one = || children().count() == 1;
    let is_pair = |entries: FieldHeader<'_>| {
        entries.type_type() == Type::Struct_
            && entries.dictionary().is_none()
            && entries.children().is_some_and(|fields| fields.len() == 2)
    };
    checked(match kind {
        Type::Null | Type::Bool | Type::Struct_ => Some(true),
        Type::Binary | Type::LargeBinary | Type::BinaryView => Some(true),
        Type::Utf8 | Type::LargeUtf8 | Type::Utf8View => Some(true),
        Type::Int => field.type_as_int().map(is_integer),
        Type::FixedSizeBinary => field.type_as_fixed_size_binary().map(|it| it.byteWidth() >= 0),
        Type::FloatingPoint => {
            field.type_as_floating_point().map(|it| it.precision().variant_name().is_some())
        }
        Type::Date => field.type_as_date().map(|it| it.unit().variant_name().is_some()),
        Type::Time => field.type_as_time().map(|it| match it.bitWidth() {
            32 => [TimeUnit::SECOND, TimeUnit::MILLISECOND].contains(&it.unit()),
            64 => [TimeUnit::MICROSECOND, TimeUnit::NANOSECOND].contains(&it.unit()),
            _ => false,
        }),
        Type::Timestamp => field.type_as_timestamp().map(|it| it.unit().variant_name().is_some()),
        Type::Interval => field.type_as_interval().map(|it| it.unit().variant_name().is_some()),
        Type::Duration => field.type_as_duration().map(|it| it.unit().variant_name().is_some()),
        Type::Decimal => field.type_as_decimal().map(|it| {
            let digits = match it.bitWidth() {
                32 => 9,
                64 => 18,
                128 => 38,
                256 => 76,
                _ => 0,
            };
            (1..=digits).contains(&it.precision())
                && it.scale().unsigned_abs() <= it.precision().unsigned_abs()
        }),
        Type::List | Type::LargeList => Some(has_one()),
        Type::FixedSizeList => {
            field.type_as_fixed_size_list().map(|it| it.listSize() >= 0 && has_one())
        }
        Type::Map => field.type_as_map().map(|_| has_one() && children().all(is_pair)),
        _ => return unsupported(),
    })
}

fn needed(schema: &Option<SchemaRef>) -> Result<&SchemaRef, Fault> {
    schema.as_ref().ok_or_else(|| invalid("a batch without a schema"))
}

/// Checks the lengths in the header of a batch with a column of this type: they limit the memory for decoding it.
fn check(
    batch: &BatchHeader<'_>,
    data_type: &DataType,
    body: usize,
    limit: usize,
) -> Result<(), Fault> {
    if batch.compression().is_some() {
        let detail =
            "Arrow data with compressed buffers: expected them to be compressed as a chunk";
        return Err((ErrorKind::Unsupported, detail.to_owned()));
    }
    check_nodes(batch, limit)?;
    let mut sizes = Vec::new();
    let mut views = batch.variadicBufferCounts().into_iter().flatten();
    let buffers = batch.buffers().into_iter().flatten();
    let max = batch.buffers().map_or(0, |buffers| buffers.len());
    let mut nodes = batch.nodes().into_iter().flatten();
    item_sizes(data_type, &mut nodes, &mut views, max, &mut sizes)?;
    if views.next().is_some() {
        return Err(invalid("more numbers of buffers than views"));
    }
    // A missing or superfluous buffer is found when the batch is decoded.
    for (buffer, (size, least)) in buffers.zip(sizes.into_iter().chain(std::iter::repeat((1, 0)))) {
        let end = buffer.offset().checked_add(buffer.length());
        let fits = buffer.offset() >= 0 && buffer.length() >= 0;
        if !fits || !end.is_some_and(|end| within(end, body)) {
            return Err(invalid("a buffer that ends after its message"));
        }
        let len = buffer.length();
        if len < least {
            let detail = format!("a mask of null items of {len} bytes, expected {least} bytes");
            return Err(invalid(detail));
        }
        if len % size != 0 {
            return Err(invalid(format!(
                "a buffer of {len} bytes, expected items of {size} bytes"
            )));
        }
    }
    Ok(())
}

fn within(len: i64, limit: usize) -> bool {
    usize::try_from(len).is_ok_and(|len| len <= limit)
}

/// Checks the numbers of items in the header of a batch.
fn check_nodes(batch: &BatchHeader<'_>, limit: usize) -> Result<(), Fault> {
    let nodes = batch.nodes().into_iter().flatten();
    let fit = nodes.map(|node| {
        within(node.length(), limit)
            && usize::try_from(node.length()).is_ok_and(|len| within(node.null_count(), len))
    });
    if fit.chain([within(batch.length(), limit)]).all(|fits| fits) {
        return Ok(());
    }
    let detail = format!(
        "a batch with more items than its bytes can describe: expected at most {limit} items per block"
    );
    Err(invalid(detail))
}

/// Appends, for each buffer of an array of this type, the size of an item and the minimum length of the buffer. The size
/// is 1 if the buffer can have any length. `nodes` are the numbers of items of the array and the arrays in it, and `views`
/// the numbers of buffers of arrays of views, of up to `max` buffers.
fn item_sizes(
    data_type: &DataType,
    nodes: &mut dyn Iterator<Item = &FieldNode>,
    views: &mut dyn Iterator<Item = i64>,
    max: usize,
    sizes: &mut Vec<(i64, i64)>,
) -> Result<(), Fault> {
    let node = nodes.next();
    if *data_type == DataType::Null {
        return Ok(());
    }
    // The mask of items that are not null, which is empty if no item is null.
    let with_nulls = node.filter(|node| node.null_count() > 0);
    sizes.push((1, with_nulls.map_or(0, |node| (node.length() as u64).div_ceil(8) as i64)));
    match data_type {
        DataType::Utf8 | DataType::Binary => sizes.extend([(4, 0), (1, 0)]),
        DataType::LargeUtf8 | DataType::LargeBinary => sizes.extend([(8, 0), (1, 0)]),
        DataType::Utf8View | DataType::BinaryView => {
            let count = views.next().and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|&count| count <= max);
            let count = count.ok_or_else(|| invalid("views with an invalid number of buffers"))?;
            sizes.push((16, 0));
            sizes.resize(sizes.len() + count, (1, 0));
        }
        DataType::List(item) | DataType::Map(item, _) => {
            sizes.push((4, 0));
            item_sizes(item.data_type(), nodes, views, max, sizes)?;
        }
        DataType::LargeList(item) => {
            sizes.push((8, 0));
            item_sizes(item.data_type(), nodes, views, max, sizes)?;
        }
        DataType::FixedSizeList(item, _) => {
            item_sizes(item.data_type(), nodes, views, max, sizes)?;
        }
        DataType::Struct(fields) => {
            for field in fields {
                item_sizes(field.data_type(), nodes, views, max, sizes)?;
            }
        }
        DataType::Dictionary(keys, _) => {
            sizes.push((keys.primitive_width().unwrap_or(1) as i64, 0));
        }
        _ => sizes.push((1, 0)),
    }
    Ok(())
}

fn text(error: ArrowError) -> String {
    error.to_string()
}
