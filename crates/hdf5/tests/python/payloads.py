"""Converts between HDF5 files and the chunks of their datasets.

`payloads.py read FILE PAYLOADS` writes the first chunk of each dataset with the filter, and its items.
`payloads.py write PAYLOADS` writes chunks to a file, reads it with hdf5plugin and compares the items.

A chunk is stored as the number of integers, `cd_values`, the length of the payload, the payload, the length of the
items in bytes, and the items. All numbers have 4 bytes. Prints the number of chunks.
"""

import struct
import sys

import h5py
import hdf5plugin
import numpy as np

FILTER = hdf5plugin.Blosc2.filter_id
count = 0


def put(to, part):
    to.write(struct.pack("<I", len(part)) + part)


def take(source):
    return source.read(struct.unpack("<I", source.read(4))[0])


def read(path, payloads):
    global count
    with h5py.File(path) as file, open(payloads, "wb") as to:
        for name, dataset in file["cases"].items():
            properties = dataset.id.get_create_plist()
            if properties.get_nfilters() > 1:
                continue
            mask, payload = dataset.id.read_direct_chunk((0,) * dataset.ndim)
            if mask:
                continue
            items = file["raw"][name][tuple(slice(size) for size in dataset.chunks)]
            _, _, values, _ = properties.get_filter(0)
            put(to, struct.pack(f"<{len(values)}I", *values))
            put(to, payload)
            put(to, items.tobytes())
            count += 1


def write(payloads):
    global count
    with open(payloads, "rb") as source, h5py.File("payloads.h5", "w") as file:
        while values := take(source):
            values = struct.unpack(f"<{len(values) // 4}I", values)
            payload, items = take(source), take(source)
            typesize, chunksize = values[2:4]
            shape = values[8:] or (chunksize // typesize,)
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_chunk(shape)
            properties.set_filter(FILTER, 0, values[:7])
            datatype, space = h5py.h5t.py_create(np.dtype(f"V{typesize}")), h5py.h5s.create_simple(shape)
            dataset = h5py.Dataset(h5py.h5d.create(file.id, str(count).encode(), datatype, space, properties))
            assert dataset.id.get_create_plist().get_filter(0)[2] == values, values
            dataset.id.write_direct_chunk((0,) * dataset.ndim, payload)
            assert dataset[...].tobytes() == items, values
            count += 1


{"read": read, "write": write}[sys.argv[1]](*sys.argv[2:])
print(count)
