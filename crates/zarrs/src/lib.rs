#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod blosc2_codec;
mod blosc_codec;
mod codec;
mod coder;
mod fields;
mod partial;
mod standard;

use std::sync::Once;

use zarrs::array::codec::api::{
    CodecRuntimePluginV2, CodecRuntimePluginV3, CodecTraitsV2, CodecTraitsV3, register_codec_v2,
    register_codec_v3,
};
use zarrs::plugin::{ExtensionAliasesV2, ExtensionAliasesV3};

pub use crate::blosc_codec::BloscCodec;
pub use crate::blosc2_codec::Blosc2Codec;
pub use crate::standard::standardize;

/// Registers both codecs in the run-time registry of `zarrs`. This registry has precedence over the codecs that `zarrs`
/// finds without registration, because they are linked into the program. Further calls have no effect.
///
/// Call this function if the feature `blosc` of `zarrs` is enabled: see [Registration](crate#registration).
///
/// ```
/// use blosc2_zarrs::BloscCodec;
/// use zarrs::array::codec::api::Codec;
/// use zarrs::metadata::v3::MetadataV3;
///
/// blosc2_zarrs::register();
/// let metadata = r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "blocksize": 0}}"#;
/// let Codec::BytesToBytes(codec) = Codec::from_metadata(&MetadataV3::try_from(metadata)?)? else { panic!() };
/// assert!(codec.as_any().is::<BloscCodec>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn register() {
    fn both<C>()
    where
        C: CodecTraitsV2 + CodecTraitsV3 + ExtensionAliasesV2 + ExtensionAliasesV3 + 'static,
    {
        let create = <C as CodecTraitsV3>::create;
        register_codec_v3(CodecRuntimePluginV3::new(C::matches_name_v3, create));
        let create = <C as CodecTraitsV2>::create;
        register_codec_v2(CodecRuntimePluginV2::new(C::matches_name_v2, create));
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        both::<BloscCodec>();
        both::<Blosc2Codec>();
    });
}
