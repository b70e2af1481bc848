//! What the two codecs have in common: the traits of `zarrs`.

/// Implements the traits of a codec that has the field `coder` and the method `to_configuration`.
macro_rules! impl_codec {
    ($codec:ident) => {
        const _: () = {
            use std::any::Any;
            use std::sync::Arc;

            #[cfg(feature = "async")]
            use zarrs::array::codec::api::AsyncBytesPartialDecoderTraits;
            use zarrs::array::codec::api::{
                ArrayBytesRaw, BytesPartialDecoderTraits, BytesRepresentation,
                BytesToBytesCodecTraits, CodecError, CodecMetadataOptions, CodecOptions,
                CodecTraits, PartialDecoderCapability, PartialEncoderCapability,
                RecommendedConcurrency,
            };
            use zarrs::metadata::Configuration;
            use zarrs::plugin::ZarrVersion;

            use crate::partial::PartialDecoder;

            impl CodecTraits for $codec {
                fn as_any(&self) -> &dyn Any {
                    self
                }

                fn configuration(
                    &self,
                    version: ZarrVersion,
                    _options: &CodecMetadataOptions,
                ) -> Option<Configuration> {
                    Some(self.to_configuration(version))
                }

                fn partial_decoder_capability(&self) -> PartialDecoderCapability {
                    PartialDecoderCapability { partial_read: true, partial_decode: true }
                }

                fn partial_encoder_capability(&self) -> PartialEncoderCapability {
                    PartialEncoderCapability { partial_encode: false }
                }
            }

            #[cfg_attr(all(feature = "async", not(target_arch = "wasm32")), async_trait::async_trait)]
            #[cfg_attr(all(feature = "async", target_arch = "wasm32"), async_trait::async_trait(?Send))]
            impl BytesToBytesCodecTraits for $codec {
                fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
                    self
                }

                fn recommended_concurrency(
                    &self,
                    _decoded: &BytesRepresentation,
                ) -> Result<RecommendedConcurrency, CodecError> {
                    Ok(RecommendedConcurrency::new_maximum(self.coder.threads))
                }

                fn encoded_representation(
                    &self,
                    decoded: &BytesRepresentation,
                ) -> BytesRepresentation {
                    // Data that cannot be compressed is stored after the header.
                    let header = self.coder.header_len as u64;
                    decoded.size().map_or(BytesRepresentation::UnboundedSize, |size| {
                        BytesRepresentation::BoundedSize(size.saturating_add(header))
                    })
                }

                fn encode<'a>(
                    &self,
                    data: ArrayBytesRaw<'a>,
                    _options: &CodecOptions,
                ) -> Result<ArrayBytesRaw<'a>, CodecError> {
                    Ok(self.coder.encode(&data)?.into())
                }

                fn decode<'a>(
                    &self,
                    bytes: ArrayBytesRaw<'a>,
                    decoded: &BytesRepresentation,
                    _options: &CodecOptions,
                ) -> Result<ArrayBytesRaw<'a>, CodecError> {
                    Ok(self.coder.decode(&bytes, decoded)?.into())
                }

                fn partial_decoder(
                    self: Arc<Self>,
                    input: Arc<dyn BytesPartialDecoderTraits>,
                    decoded: &BytesRepresentation,
                    _options: &CodecOptions,
                ) -> Result<Arc<dyn BytesPartialDecoderTraits>, CodecError> {
                    Ok(Arc::new(PartialDecoder::new(input, self.coder.clone(), *decoded)))
                }

                #[cfg(feature = "async")]
                async fn async_partial_decoder(
                    self: Arc<Self>,
                    input: Arc<dyn AsyncBytesPartialDecoderTraits>,
                    decoded: &BytesRepresentation,
                    _options: &CodecOptions,
                ) -> Result<Arc<dyn AsyncBytesPartialDecoderTraits>, CodecError> {
                    Ok(Arc::new(PartialDecoder::new(input, self.coder.clone(), *decoded)))
                }
            }
        };
    };
}

pub(crate) use impl_codec;
