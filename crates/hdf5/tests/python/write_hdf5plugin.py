"""Writes datasets with the filter of hdf5plugin, and the same data without a filter. Prints their number."""

import blosc2
import h5py
import hdf5plugin
import numpy as np

from cases import DTYPES, SHAPES, items

CODECS = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
FILTER = hdf5plugin.Blosc2.filter_id
file = h5py.File("hdf5plugin.h5", "w")
cases, raw = file.create_group("cases"), file.create_group("raw")


def add(name, data, dtype=None, **keywords):
    dtype = data.dtype if dtype is None else dtype
    shape = data.shape[: data.ndim - len(np.dtype(dtype).shape)]
    cases.create_dataset(name, shape, dtype, **keywords)[...] = data
    raw.create_dataset(name, shape, dtype)[...] = data


# Truncation of precision (4) fails in hdf5plugin, so that chunks are stored without the filter.
for codec in CODECS:
    for filters in range(5):
        for level in [0, 1, 5, 9]:
            options = hdf5plugin.Blosc2(cname=codec, clevel=level, filters=filters)
            data = items("<f8", (50, 41), level)
            add(f"{codec}_{filters}_{level}", data, chunks=(16, 12), **options)

for number, dtype in enumerate(DTYPES):
    for ndim, (shape, chunks) in SHAPES.items():
        for fletcher32 in [False, True]:
            codec = CODECS[(number + ndim) % 5]
            options = hdf5plugin.Blosc2(cname=codec, filters=1 + number % 2)
            name = f"dtype{number}_{ndim}d_{fletcher32}"
            add(name, items(dtype, shape, number), dtype, chunks=chunks, fletcher32=fletcher32, **options)

random = np.random.default_rng(1)
contents = {
    "zeros": np.zeros((64, 64)),
    "nan": np.full((64, 64), np.nan),
    "value": np.full((64, 64), 1.25),
    "random": random.integers(0, 2**63, (64, 64)),
    "large": items("<i4", (700, 900)),
    "long_items": items("S300", (100,)),
}
for name, data in contents.items():
    for codec in CODECS:
        chunks = (600, 512) if name == "large" else (40,) * data.ndim
        add(f"{name}_{codec}", data, chunks=chunks, **hdf5plugin.Blosc2(cname=codec))

# Filters before and after Blosc2; None is Blosc2.
for name, filters in {
    "fletcher_before": [(3, ()), None],
    "shuffle_before": [(2, ()), None],
    "deflate_before": [(1, (6,)), None],
    "fletcher_around": [(3, ()), None, (3, ())],
    "deflate_after": [None, (1, (6,))],
    "shuffle_deflate_after": [None, (2, ()), (1, (6,)), (3, ())],
    "twice_fletcher_before": [(3, ()), (3, ()), None],
}.items():
    for ndim, (shape, chunks) in SHAPES.items():
        data = items("<i4", shape)
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk(chunks)
        for each in filters:
            code, values = each or (FILTER, (0, 0, 0, 0, 5, 1, 1))
            properties.set_filter(code, h5py.h5z.FLAG_MANDATORY, values)
        space = h5py.h5s.create_simple(shape)
        h5py.h5d.create(cases.id, f"{name}_{ndim}d".encode(), h5py.h5t.NATIVE_INT32, space, properties)
        cases[f"{name}_{ndim}d"][...] = data
        raw[f"{name}_{ndim}d"] = data

# A filter that makes chunks shorter before Blosc2.
data = items("<i4", (50, 41))
cases.create_dataset("scaleoffset", data=data, chunks=(16, 12), scaleoffset=0, **hdf5plugin.Blosc2())
raw["scaleoffset"] = data

# Arrays that another program has compressed, with several chunks of Blosc2 in a chunk of HDF5.
for ndim, inner, blocks in [(2, (7, 40), (3, 9)), (2, (20, 40), (20, 40)), (1, (33,), (8,))]:
    data = items("<i4", (20, 40)[:ndim])
    name = f"direct_{ndim}d_{inner[0]}"
    dataset = cases.create_dataset(name, data.shape, data.dtype, chunks=data.shape, **hdf5plugin.Blosc2())
    array = blosc2.asarray(data, chunks=inner, blocks=blocks)
    dataset.id.write_direct_chunk((0,) * ndim, array.to_cframe())
    raw[name] = data

# hdf5plugin writes this, but cannot read it: the frame declares items of 1 byte.
file.create_dataset("broken", data=items("S300", (50, 41)), chunks=(16, 12), **hdf5plugin.Blosc2())

print(len(cases))
file.close()
