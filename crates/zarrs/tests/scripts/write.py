"""Writes arrays with every combination of codec, shuffle and type, their items as raw bytes, and a list of them."""

import json

import numcodecs
from common import *
from zarr.codecs import BloscCodec
from zarr.codecs.numcodecs import Blosc as Numcodecs

COMPRESSORS = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
SHUFFLES = ["noshuffle", "shuffle", "bitshuffle"]
DTYPES = ["u1", "<i2", "<u4", "<i8", "<f4", "<f8", "<c8", "<c16"]

store = zarr.storage.LocalStore("theirs")
names = []


def codec(kind, version, compressor, shuffle, typesize, blocksize=None):
    """A codec; without a typesize, Python takes it from the data type if it can."""
    if kind == "blosc2":
        parameters = {"level": 5, "compressor": compressor, "shuffle": shuffle}
        parameters |= {} if typesize is None else {"typesize": typesize}
        parameters |= {} if blocksize is None else {"blocksize": blocksize}
        if version == 2:
            return imagecodecs.numcodecs.Blosc2(**parameters)
        return Blosc2(tuple(parameters.items()))
    blocksize = blocksize or 0
    if version == 2:
        code = SHUFFLES.index(shuffle)
        return numcodecs.Blosc(compressor, 5, code, blocksize, typesize=typesize)
    return BloscCodec(
        cname=compressor, clevel=5, shuffle=shuffle, typesize=typesize, blocksize=blocksize
    )


def write(group, items, chunks, version, compressor, **more):
    name = f"{group}-{len(names)}"
    array = zarr.create_array(
        store, name=name, shape=items.shape, chunks=chunks, dtype=items.dtype, zarr_format=version,
        compressors=compressor, filters=None, **more
    )
    if items.size > 0:
        array[...] = items
    with open(f"{name}.raw", "wb") as raw:
        raw.write(items.tobytes())
    names.append(name)


def items(shape, dtype):
    count = int(np.prod(shape))
    values = np.arange(count) * 37 % 1009 + 1
    return values.astype(dtype).reshape(shape)


random = np.random.default_rng(1)
large = (np.arange(120_000) + random.integers(0, 300, 120_000)).astype("<f4").reshape(120, 1000)
for version in [2, 3]:
    for kind in ["blosc", "blosc2"]:
        for compressor in COMPRESSORS:
            for shuffle in SHUFFLES:
                for dtype in DTYPES:
                    typesize = np.dtype(dtype).itemsize if kind == "blosc2" else None
                    each = codec(kind, version, compressor, shuffle, typesize)
                    write("dtype", items((20, 13), dtype), (16, 10), version, each)
                for typesize in range(1, 17):
                    each = codec(kind, version, compressor, shuffle, typesize)
                    write("typesize", items(3000, "u1"), 2000, version, each)
                each = codec(kind, version, compressor, shuffle, 4, 16384)
                write("large", large, (120, 1000), version, each)
                if version == 3 and kind == "blosc":
                    # The codec of numcodecs, which has another name and another configuration.
                    each = Numcodecs(cname=compressor, clevel=5, shuffle=SHUFFLES.index(shuffle))
                    write("numcodecs", items((20, 13), "<i4"), (16, 10), version, each)
        each = codec(kind, version, "lz4", "shuffle", 4)
        for shape, chunks in [
            ((), ()), ((0,), (5,)), ((1,), (1,)), ((3, 0, 4), (2, 2, 2)), ((5, 6, 7, 8), (2, 3, 7, 5))
        ]:
            write("shape", items(shape, "<i4"), chunks, version, each)
        # imagecodecs encodes no chunks in Fortran order, and Zarr V3 has a codec for it.
        if version == 2 and kind == "blosc":
            write("order", items((40, 30), "<i4"), (16, 10), version, each, order="F")
        if version == 3:
            shards = {"shards": (60, 1000)}
            write("shard", large, (20, 500), version, each, **shards)

# The metadata of other writers, which Python refuses: each edit replaces or removes (`...`) fields.
EDITS = [
    {"nthreads": 1},
    {"nthreads": 1, "shuffle": 2},
    {"typesize": None},
    {"typesize": 0},
    {"typesize": ...},
    {"shuffle": 0},
    {"shuffle": 1, "typesize": ...},
    {"shuffle": 2},
    {"shuffle": -1},
    {"shuffle": "bitshuffle"},
    {"shuffle": None, "typesize": None},
    {"shuffle": ..., "typesize": ...},
    {"blocksize": None},
    {"blocksize": ...},
    {"cname": "LZ4", "clevel": 5.0},
    {"clevel": ..., "unknown": {"a": [1]}},
]
for version in [2, 3]:
    for dtype in ["u1", "<i4", "<f8"]:
        for shards in [None, (32, 20)] if version == 3 else [None]:
            for edit in EDITS:
                each = codec("blosc", version, "lz4", "shuffle", np.dtype(dtype).itemsize)
                write("other", items((40, 27), dtype), (16, 10), version, each, shards=shards)
                path = f"theirs/{names[-1]}/{'zarr.json' if version == 3 else '.zarray'}"
                with open(path) as file:
                    metadata = json.load(file)
                if version == 2:
                    fields = metadata["compressor"]
                else:
                    codecs = metadata["codecs"][0]["configuration"]["codecs"] if shards else metadata["codecs"]
                    fields = codecs[1]["configuration"]
                for key, value in edit.items():
                    fields.pop(key, None)
                    if value is not ...:
                        fields[key] = value
                with open(path, "w") as file:
                    json.dump(metadata, file)

with open("names.json", "w") as file:
    json.dump(names, file)
