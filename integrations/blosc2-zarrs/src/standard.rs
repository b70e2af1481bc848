//! Configurations in the standard form.

use std::sync::Arc;

use serde_json::{Map, Value};
use zarrs::array::codec::api::{CodecTraitsV2, CodecTraitsV3};
use zarrs::array::{ArrayMetadata, DataType};
use zarrs::metadata::v2::MetadataV2;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{ExtensionAliasesV2, ExtensionAliasesV3, PluginCreateError};

use crate::blosc_codec::NUMCODECS;
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
/// - [`PluginCreateError::Other`]: a field has a value that is not supported. The metadata are unchanged.
pub fn standardize(metadata: &mut ArrayMetadata) -> Result<(), PluginCreateError> {
    match metadata {
        ArrayMetadata::V2(array) => {
            let (mut filters, mut compressor) = (array.filters.clone(), array.compressor.clone());
            filters.iter_mut().flatten().chain(&mut compressor).try_for_each(standardize_v2)?;
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

fn standardize_v2(metadata: &mut MetadataV2) -> Result<(), PluginCreateError> {
    let id = metadata.id();
    let codec = if BloscCodec::matches_name_v2(id) {
        <BloscCodec as CodecTraitsV2>::create(metadata)?
    } else if Blosc2Codec::matches_name_v2(id) {
        <Blosc2Codec as CodecTraitsV2>::create(metadata)?
    } else {
        return Ok(());
    };
    let has_typesize = typesize(metadata.configuration())?.is_some();
    if let Some(fields) = codec.configuration_v2(&Default::default()) {
        let mut fields: Map<String, Value> = fields.into();
        fields.insert("id".into(), id.into());
        if !has_typesize {
            fields.remove("typesize");
        }
        *metadata = serde_json::from_value(fields.into()).map_err(Arc::new)?;
    }
    Ok(())
}

fn standardize_v3(metadata: &mut MetadataV3, item: Option<usize>) -> Result<(), PluginCreateError> {
    let name = metadata.name().to_owned();
    let mut fields: Map<String, Value> =
        metadata.configuration().cloned().unwrap_or_default().into();
    let is_blosc = BloscCodec::matches_name_v3(&name);
    if is_blosc || Blosc2Codec::matches_name_v3(&name) {
        if let (None, Some(item)) = (typesize(&fields)?, item) {
            fields.insert("typesize".into(), item.into());
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
