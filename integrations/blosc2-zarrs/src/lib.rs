//! The Zarr codecs `blosc` and `imagecodecs_blosc2` for [`zarrs`].
#![forbid(unsafe_code)]

mod blosc2_codec;
mod blosc_codec;
mod codec;
mod coder;
mod partial;

use std::sync::Once;

use zarrs::array::codec::api::{
    CodecRuntimePluginV2, CodecRuntimePluginV3, CodecTraitsV2, CodecTraitsV3, register_codec_v2,
    register_codec_v3,
};
use zarrs::plugin::{ExtensionAliasesV2, ExtensionAliasesV3};

pub use crate::blosc_codec::BloscCodec;
pub use crate::blosc2_codec::Blosc2Codec;

/// Registers both codecs at run time.
pub fn register() {
    fn both<
        C: CodecTraitsV2 + CodecTraitsV3 + ExtensionAliasesV2 + ExtensionAliasesV3 + 'static,
    >() {
        let plugin = CodecRuntimePluginV3::new(C::matches_name_v3, <C as CodecTraitsV3>::create);
        register_codec_v3(plugin);
        let plugin = CodecRuntimePluginV2::new(C::matches_name_v2, <C as CodecTraitsV2>::create);
        register_codec_v2(plugin);
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        both::<BloscCodec>();
        both::<Blosc2Codec>();
    });
}
