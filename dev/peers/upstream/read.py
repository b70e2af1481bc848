"""Reads the copies of `record.py` with Python, and prints what it reads as lines of JSON.

    read.py FOLDER

Each line has `file`; `frame`, what a frame contains: its chunks, metalayers and items; and `object`, what a container
of Python contains. Data is represented by its hash. `error` is there instead of content that Python refuses.
"""

import hashlib
import json
import multiprocessing
import os
import struct
import sys

import blosc2
import numpy as np
from blosc2 import blosc2_ext

# The rows of a table and the items of an array of objects that are compared.
ROWS = 2000
# The names of the copies that are complete.
SUFFIXES = ("b2d", "b2frame", "b2z", "frame")
# Metalayers that identify containers other than arrays.
CONTAINERS = {"b2embed", "batcharray", "listarray", "vlarray"}


def hashed(data):
    return hashlib.sha256(data).hexdigest()[:32]


def frame(schunk, array):
    chunks, lengths = [], []
    for info in schunk.iterchunks_info():
        data = schunk.decompress_chunk(info.nchunk)
        lengths.append(len(data))
        # The values of an uninitialized chunk are arbitrary.
        chunks.append(None if info.special == blosc2.SpecialValue.UNINIT else hashed(data))
    names = blosc2_ext.meta_keys(schunk)
    layers = schunk.vlmeta
    result = {
        "typesize": schunk.typesize,
        "nbytes": schunk.nbytes,
        "lengths": lengths,
        "chunks": chunks,
        "codec": schunk.cparams.codec.value if hasattr(schunk.cparams.codec, "value") else schunk.cparams.codec,
        "filters": [getattr(each, "value", each) for each in schunk.cparams.filters],
        "filters_meta": list(schunk.cparams.filters_meta),
        "meta": {name: hashed(blosc2_ext.meta__getitem__(schunk, name)) for name in names},
        "vlmeta": {name: hashed(blosc2_ext.vlmeta.get_vlmeta(layers, name)) for name in layers},
    }
    if array is not None:
        result["shape"] = list(array.shape)
        result["blocks"] = [list(array.chunks), list(array.blocks)]
        result["itemsize"] = array.dtype.itemsize
        if None not in chunks:
            result["items"] = attempt(lambda: hashed(np.ascontiguousarray(array[...]).tobytes()))
    return result


def read_frame(path):
    """What a frame contains, whatever object its metalayers describe."""
    if os.path.isdir(path):
        opened = blosc2_ext.open(path, mode="r", offset=0)
        schunk = getattr(opened, "schunk", opened)
        array = opened if isinstance(opened, blosc2.NDArray) else None
    else:
        data = open(path, "rb").read()
        schunk = blosc2.schunk_from_cframe(data, copy=True)
        array = None
        if {"b2nd", "caterva"} & set(blosc2_ext.meta_keys(schunk)):
            array = blosc2.ndarray_from_cframe(data, copy=True)
    return frame(schunk, array)


def encoded(value):
    """A value as JSON, to the bit."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return encoded(value.tolist())
        return ["array", value.dtype.str, list(value.shape), value.tobytes().hex()]
    if isinstance(value, np.datetime64):
        return int(value.astype("int64"))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return ["float", struct.pack("<d", value).hex()]
    if isinstance(value, complex):
        return ["complex", struct.pack("<dd", value.real, value.imag).hex()]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, dict):
        return ["map", [[encoded(key), encoded(each)] for key, each in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [encoded(each) for each in value]]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (set, frozenset)):
        return ["set", sorted((encoded(each) for each in value), key=json.dumps)]
    if isinstance(value, blosc2.SChunk) or isinstance(getattr(value, "schunk", None), blosc2.SChunk):
        return ["frame"]
    raise TypeError(f"a {type(value).__name__}")


def table(opened):
    columns = []
    rows = int(np.count_nonzero(opened._valid_rows[:]))
    for name in opened.col_names:
        column = {"name": name}
        columns.append(column)
        if name in opened.computed_columns:
            column["computed"] = True
            continue
        try:
            values = opened[name][:ROWS]
        except Exception as error:
            column["error"] = repr(error)
            continue
        if len(values) != min(rows, ROWS):
            # A test has damaged the column, and Python reads a part of it.
            column["error"] = f"{len(values)} of {rows} values"
            continue
        nulls = [bool(null) for null in opened[name].is_null()[:ROWS]]
        values = list(np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else values)
        kind = opened.column_schema(name).spec.to_metadata_dict()["kind"]
        if kind == "bool":
            values = [bool(value) for value in values]
        column["kind"] = kind
        column["values"] = [
            None if null or value is None else encoded(value) for null, value in zip(nulls, values, strict=True)
        ]
    result = {"kind": "table", "nrows": rows, "columns": columns}
    if len(opened) != rows:
        # A stored number of rows that is out of date: Python contradicts itself.
        result["contradiction"] = {"error": f"{len(opened)} rows, of which {rows} are valid"}
    return result


def container(opened):
    """What a container contains."""
    if isinstance(opened, blosc2.CTable):
        return table(opened)
    if isinstance(opened, (blosc2.ObjectArray, blosc2.BatchArray, blosc2.ListArray)):
        values = []
        for index in range(min(len(opened), ROWS)):
            value = opened[index]
            if isinstance(opened, blosc2.BatchArray):
                value = list(value)
            values.append(encoded(value))
        return {"kind": type(opened).__name__, "len": len(opened), "values": values}
    if isinstance(opened, (blosc2.DictStore, blosc2.EmbedStore)):
        entries = {}
        for key in sorted(opened.keys()):
            try:
                value = opened[key]
                if isinstance(value, blosc2.NDArray):
                    entries[key] = frame(value.schunk, value)
                elif isinstance(value, blosc2.SChunk):
                    entries[key] = frame(value, None)
                elif isinstance(value, (blosc2.CTable, blosc2.ObjectArray, blosc2.BatchArray, blosc2.ListArray)):
                    entries[key] = container(value)
                else:
                    entries[key] = {"kind": type(value).__name__}
            except Exception as error:
                entries[key] = {"error": repr(error)}
        kind = "embed" if isinstance(opened, blosc2.EmbedStore) else "store"
        return {"kind": kind, "entries": entries}
    return {"kind": type(opened).__name__}


def attempt(work, *args):
    try:
        return work(*args)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def read_container(path):
    if path.endswith(".b2frame"):
        data = open(path, "rb").read()
        if "b2embed" in blosc2_ext.meta_keys(blosc2.schunk_from_cframe(data, copy=True)):
            try:
                return container(blosc2.ctable_from_cframe(data))
            except (KeyError, ValueError):
                pass  # A store, not a table.
        return container(blosc2.from_cframe(data))
    return container(blosc2.open(path, mode="r"))


def line(path):
    """The line about one copy."""
    result = {"file": os.path.basename(path)}
    suffix = path.rpartition(".")[2]
    if suffix in ("b2frame", "frame"):
        result["frame"] = attempt(read_frame, path)
        if CONTAINERS & set(result["frame"].get("meta", ())) and suffix == "b2frame":
            result["object"] = attempt(read_container, path)
    else:
        result["object"] = attempt(read_container, path)
    return json.dumps(result)


def main(folder):
    names = sorted(name for name in os.listdir(folder) if name.rpartition(".")[2] in SUFFIXES)
    with multiprocessing.Pool(initializer=blosc2.set_nthreads, initargs=(1,)) as pool:
        for text in pool.imap(line, (os.path.join(folder, name) for name in names), 16):
            print(text)


if __name__ == "__main__":
    main(sys.argv[1])
