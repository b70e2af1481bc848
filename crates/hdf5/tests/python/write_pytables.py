"""Writes arrays and tables with PyTables, and the same data without a filter. Prints their number."""

import numpy as np
import tables

from cases import COMPOUND, SHAPES, items

file = tables.open_file("pytables.h5", "w")
cases, raw = file.create_group("/", "cases"), file.create_group("/", "raw")
count = 0


def add(name, data):
    global count
    count += 1
    if data.dtype.names:
        file.create_table(raw, name, data)
    else:
        file.create_array(raw, name, data)


for codec in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
    for shuffle in ["none", "shuffle", "bitshuffle"]:
        for fletcher32 in [False, True]:
            for level in [1, 5, 9]:
                filters = tables.Filters(
                    complevel=level, complib=f"blosc2:{codec}", fletcher32=fletcher32, shuffle=shuffle == "shuffle",
                    bitshuffle=shuffle == "bitshuffle")
                suffix = f"{codec}_{shuffle}_{fletcher32}_{level}"
                for ndim, (shape, chunks) in SHAPES.items():
                    data = items("<f8", shape, level)
                    file.create_carray(cases, f"carray{ndim}_{suffix}", obj=data, filters=filters, chunkshape=chunks)
                    add(f"carray{ndim}_{suffix}", data)
                data = items("<i4", (60, 21))
                earray = file.create_earray(
                    cases, f"earray_{suffix}", tables.Int32Atom(), (0, 21), filters=filters, chunkshape=(16, 10))
                for part in np.split(data, 3):
                    earray.append(part)
                add(f"earray_{suffix}", data)
                data = items(COMPOUND, (1000,))
                table = file.create_table(cases, f"table_{suffix}", data[:500], filters=filters, chunkshape=300)
                table.append(data[500:])
                add(f"table_{suffix}", data)

print(count)
file.close()
