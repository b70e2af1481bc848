"""The codec `imagecodecs_blosc2` for both versions of Zarr."""

import dataclasses
import warnings

import imagecodecs
import imagecodecs.numcodecs
import numpy as np
import zarr
from zarr.abc.codec import BytesBytesCodec
from zarr.registry import register_codec

warnings.simplefilter("ignore")
imagecodecs.numcodecs.register_codecs("imagecodecs_blosc2")


# imagecodecs 2026.3.6 registers its codec for Zarr V2 only.
@dataclasses.dataclass(frozen=True)
class Blosc2(BytesBytesCodec):
    is_fixed_size = False

    configuration: tuple = ()

    @classmethod
    def from_dict(cls, data):
        return cls(tuple(data.get("configuration", {}).items()))

    def to_dict(self):
        return {"name": "imagecodecs_blosc2", "configuration": dict(self.configuration)}

    async def _decode_single(self, chunk, spec):
        decoded = imagecodecs.blosc2_decode(chunk.as_numpy_array())
        return spec.prototype.buffer.from_bytes(decoded)

    async def _encode_single(self, chunk, spec):
        encoded = imagecodecs.blosc2_encode(chunk.as_numpy_array(), **dict(self.configuration))
        return spec.prototype.buffer.from_bytes(encoded)

    def compute_encoded_size(self, length, spec):
        raise NotImplementedError


register_codec("imagecodecs_blosc2", Blosc2)
