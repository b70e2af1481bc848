//! Configurations in the standard form.

use std::sync::Arc;

use blosc2::Dtype;
use serde_json::{Map, Value};
use zarrs::array::codec::api::{CodecTraitsV2, CodecTraitsV3};
use zarrs::array::{ArrayMetadata, DataType};
use zarrs::metadata::v2::MetadataV2;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{ExtensionAliasesV2, ExtensionAliasesV3, PluginCreateError};

use crate::blosc_codec::{AUTO, NUMCODECS};
use crate::fields::Fields;
use crate::{Blosc2Codec, BloscCodec};

/// Rewrites the configurations of the codecs `blosc` and `imagecodecs_blosc2` in the metadata of an array in their
/// standard form, also inside `sharding_indexed`. The names of the codecs are not changed.
///
/// `zarrs` stores the metadata with which an array was opened unchanged. If another writer has stored these metadata
/// (see [other writers](crate#metadata-of-other-writers)), call this function before you store them: zarr-python
/// refuses them.
///
/// Also call this function to open arrays of Zarr V2 of such writers if the feature `blosc` of `zarrs` is enabled: the
/// codec of `zarrs` refuses their metadata, and [`register`](crate::register) has no effect on `blosc` in Zarr V2.
///
/// In Zarr V3, a missing typesize becomes the size of an item of the array. In Zarr V2, where the typesize is optional
/// and older versions of numcodecs do not know it, a missing typesize remains missing.
///
/// The shuffle -1 (`autoshuffle`) of the codec `blosc` becomes the shuffle that numcodecs uses: `bitshuffle` for items of
/// 1 byte, and `shuffle` for larger items. The size of an item is the typesize, or the size of an item of the array. If
/// both are unknown, the shuffle remains -1 in Zarr V2, and is an error in Zarr V3, which has no such shuffle. In Zarr
/// V2, the size is unknown for variable-length items and after a filter, which can change the size.
///
/// ```
/// use std::sync::Arc;
///
/// use zarrs::array::{Array, ArrayMetadata};
/// use zarrs::storage::store::MemoryStore;
///
/// // The metadata of an array that Fiji has written.
/// let mut metadata: ArrayMetadata = serde_json::from_str(
///     r#"{
///         "zarr_format": 2, "shape": [100], "chunks": [50], "dtype": "<u2", "fill_value": 0, "order": "C",
///         "filters": null,
///         "compressor": {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0, "nthreads": 1}
///     }"#,
/// )?;
/// blosc2_zarrs::standardize(&mut metadata)?;
/// assert!(!metadata.to_string().contains("nthreads"));
/// let array = Array::new_with_metadata(Arc::new(MemoryStore::new()), "/a", metadata)?;
/// assert_eq!(array.retrieve_array_subset::<Vec<u16>>(&[0..2])?, [0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - [`PluginCreateError::Other`]: a field has a value that is not supported, or the shuffle depends on an unknown size.
///   The metadata are unchanged.
pub fn standardize(metadata: &mut ArrayMetadata) -> Result<(), PluginCreateError> {
    match metadata {
        ArrayMetadata::V2(array) => {
            let (mut filters, mut compressor) = (array.filters.clone(), array.compressor.clone());
            let mut item = item_of_v2(&serde_json::to_value(&array.dtype).map_err(Arc::new)?);
            for codec in filters.iter_mut().flatten().chain(&mut compressor) {
                // Only the first codec encodes items of the array.
                standardize_v2(codec, item.take())?;
            }
            (array.filters, array.compressor) = (filters, compressor);
        }
        ArrayMetadata::V3(array) => {
            let data_type = DataType::from_metadata(&array.data_type).ok();
            let item = data_type.and_then(|data_type| data_type.fixed_size());
            let mut codecs = array.codecs.clone();
            codecs.iter_mut().try_for_each(|codec| standardize_v3(codec, item))?;
            array.codecs = codecs;
        }
    }
    Ok(())
}

/// Returns the size of an item of a data type of Zarr V2; `None` if it is unknown or variable.
fn item_of_v2(dtype: &Value) -> Option<usize> {
    match dtype {
        Value::String(text) => {
            let dtype = Dtype::parse(text).ok().filter(|dtype| !dtype.has_pointers())?;
            Some(dtype.size())
        }
        // A structured data type: the name, the data type and optionally the shape of each field.
        Value::Array(fields) => fields.iter().try_fold(0usize, |sum, field| {
            let sides = field.get(2).and_then(Value::as_array).into_iter().flatten();
            let len = sides.map(|side| usize::try_from(side.as_u64()?).ok());
            let len = len.chain([item_of_v2(field.get(1)?)]);
            let size = len.reduce(|a, b| a?.checked_mul(b?))??;
            sum.checked_add(size)
        }),
        _ => None,
    }
}

fn standardize_v2(metadata: &mut MetadataV2, item: Option<usize>) -> Result<(), PluginCreateError> {
    let id = metadata.id().to_owned();
    let is_blosc = BloscCodec::matches_name_v2(&id);
    if !is_blosc && !Blosc2Codec::matches_name_v2(&id) {
        return Ok(());
    }
    let mut found = metadata.clone();
    let stated = typesize(metadata.configuration())?;
    let is_auto = is_blosc && BloscCodec::is_auto(metadata.configuration())?;
    if is_auto && let (None, Some(item)) = (stated, item) {
        let mut fields: Map<String, Value> = found.configuration().clone().into();
        fields.insert("typesize".into(), item.into());
        found = with_fields(&id, fields)?;
    }
    let codec = match is_blosc {
        true => <BloscCodec as CodecTraitsV2>::create(&found)?,
        false => <Blosc2Codec as CodecTraitsV2>::create(&found)?,
    };
    if let Some(fields) = codec.configuration_v2(&Default::default()) {
        let mut fields: Map<String, Value> = fields.into();
        if stated.is_none() {
            fields.remove("typesize");
        }
        if is_auto && stated.or(item).is_none() {
            fields.insert("shuffle".into(), AUTO.into());
        }
        *metadata = with_fields(&id, fields)?;
    }
    Ok(())
}

fn with_fields(id: &str, mut fields: Map<String, Value>) -> Result<MetadataV2, PluginCreateError> {
    fields.insert("id".into(), id.into());
    Ok(serde_json::from_value(fields.into()).map_err(Arc::new)?)
}

fn standardize_v3(metadata: &mut MetadataV3, item: Option<usize>) -> Result<(), PluginCreateError> {
    let name = metadata.name().to_owned();
    let mut fields: Map<String, Value> =
        metadata.configuration().cloned().unwrap_or_default().into();
    let is_blosc = BloscCodec::matches_name_v3(&name);
    if is_blosc || Blosc2Codec::matches_name_v3(&name) {
        match (typesize(&fields)?, item) {
            (Some(_), _) => {}
            (None, Some(item)) => drop(fields.insert("typesize".into(), item.into())),
            // The codec of numcodecs encodes bytes.
            (None, None) => {
                if name != NUMCODECS && is_blosc && BloscCodec::is_auto(&fields.clone().into())? {
                    let detail = "codec blosc: its shuffle autoshuffle (-1) depends on the size of an item: expected a \
                                  typesize or items of a fixed size, found neither";
                    return Err(detail.to_owned().into());
                }
            }
        }
        let found = MetadataV3::new_with_configuration(name.clone(), fields.clone());
        let codec = match is_blosc {
            true => <BloscCodec as CodecTraitsV3>::create(&found)?,
            false => <Blosc2Codec as CodecTraitsV3>::create(&found)?,
        };
        let standard = match &name[..] {
            // The codec of numcodecs has the configuration of Zarr V2.
            NUMCODECS => codec.configuration_v2(&Default::default()),
            _ => codec.configuration_v3(&Default::default()),
        };
        fields = standard.map_or(fields, Into::into);
    } else {
        // `sharding_indexed` has codecs in its configuration.
        let mut has_codecs = false;
        for key in ["codecs", "index_codecs"] {
            for codec in fields.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Ok(mut inner) = serde_json::from_value(codec.clone()) {
                    // The items of an index have 8 bytes.
                    let item = if key == "codecs" { item } else { Some(8) };
                    standardize_v3(&mut inner, item)?;
                    *codec = serde_json::to_value(&inner).map_err(Arc::new)?;
                    has_codecs = true;
                }
            }
        }
        if !has_codecs {
            return Ok(());
        }
    }
    *metadata = MetadataV3::new_with_configuration(name, fields)
        .with_must_understand(metadata.must_understand());
    Ok(())
}

/// Returns the typesize of a configuration, if the configuration states it.
fn typesize(fields: &Map<String, Value>) -> Result<Option<usize>, PluginCreateError> {
    Fields { codec: "blosc", fields }.size("typesize")
}
