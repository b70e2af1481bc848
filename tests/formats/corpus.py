"""Writes files of every kind that Python can, and beside them what is in them.

`manifest.json` gets an object for each: `file`; `chunks`, the file with the data of all chunks, one
after the other, and `lengths`, theirs; for arrays `data`, the file with the items; `meta` and
`vlmeta`, the metalayers that were asked for, packed.
"""

import itertools
import json

import blosc2
import msgpack
import numpy as np

F, C = blosc2.Filter, blosc2.Codec
manifest = []
rng = np.random.default_rng(5)


def packed(layers):
    return {key: msgpack.packb(value, use_bin_type=True).hex() for key, value in layers.items()}


def put(schunk, file, array=None, meta={}, vlmeta={}, **more):
    case = dict(file=file, chunks=file + ".chunks", lengths=[], meta=packed(meta), vlmeta=packed(vlmeta))
    with open(case["chunks"], "wb") as out:
        for index in range(schunk.nchunks):
            data = schunk.decompress_chunk(index)
            case["lengths"].append(len(data))
            out.write(data)
    if array is not None:
        case["data"] = file + ".data"
        with open(case["data"], "wb") as out:
            out.write(np.ascontiguousarray(array).tobytes())
    manifest.append(case | more)


def name(kind, end):
    return f"{len(manifest):04}_{kind}.{end}"


def values(dtype, shape):
    """Numbers that compress somewhat."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64))
    base = np.cumsum(rng.integers(0, 4, size))
    if dtype.kind in "iu":
        out = base.astype(np.int64).astype(dtype)
    elif dtype.kind == "f":
        out = (np.sqrt(base + 1.0) % 1000).astype(dtype)
    elif dtype.kind == "c":
        out = (np.sqrt(base + 1.0) - 1j * base).astype(dtype)
    elif dtype.kind == "b":
        out = base % 3 == 0
    elif dtype.kind in "SU":
        out = np.array([f"item {each}" for each in base], dtype=dtype)
    elif dtype.kind in "Mm":
        out = base.astype("<i8").view(dtype)
    else:
        raw = np.repeat(base.astype("u1"), dtype.itemsize)
        out = np.frombuffer(raw.tobytes(), dtype=dtype)
    return out.reshape(shape)


def array(kind, dtype, shape, chunks=None, blocks=None, contiguous=True, lossy=False, meta={}, vlmeta={},
          **cparams):
    file = name(kind, "b2nd")
    data = values(dtype, shape)
    more = dict(urlpath=file, contiguous=contiguous, chunks=chunks, blocks=blocks)
    if cparams:
        more["cparams"] = cparams
    if meta:
        more["meta"] = meta
    # Of plain bytes, asarray changes structured dtypes; a new array keeps them.
    if data.dtype.kind == "V":
        made = blosc2.empty(shape, dtype=data.dtype, **more)
        if 0 not in shape:
            made[...] = data
    else:
        made = blosc2.asarray(data, **more)
    for key, value in vlmeta.items():
        made.schunk.vlmeta[key] = value
    made = blosc2.open(file, mode="r")
    found = made[...]
    assert lossy or np.ascontiguousarray(found).tobytes() == data.tobytes(), file
    put(made.schunk, file, found, meta, vlmeta)


# Every dtype, in one file and in a directory.
dtypes = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16",
          ">i4", ">f8", "|S1", "|S10", "|S300", "<U1", "<U10", ">U3", "<M8[ns]", "<M8[D]", "<m8[us]", "|V5",
          [("a", "<i4"), ("b", "<f8")],
          [("p", [("x", "<f4"), ("y", "<f4", (3,))]), ("ok", "?")], [("name", "S290"), ("n", "<i2")]]
for at, dtype in enumerate(dtypes):
    array("dtype", dtype, (33, 27), (16, 20), (7, 20), contiguous=at % 3 != 0)

# Every shape.
ones = (2,) * 6 + (1,) * 9 + (3,)
shapes = [
    ((), None, None), ((0,), None, None), ((1,), None, None), ((100,), None, None),
    ((3, 0, 2), None, None), ((0, 4), (2, 4), (1, 2)), ((1, 1, 1), None, None),
    ((7, 11, 13), (4, 5, 13), (2, 3, 7)), ((8, 3), (12, 5), (5, 5)), ((150,), (64,), (16,)),
    ((9, 10, 11), (4, 10, 5), (2, 5, 5)), ((64, 64), (32, 32), (16, 16)),
    ((5, 6, 7, 8), (5, 4, 3, 8), (2, 2, 3, 4)), (ones, None, None),
    (ones, (1,) * 15 + (2,), (1,) * 16), ((2,) * 16, (1, 2) * 8, (1,) * 8 + (1, 2) * 4),
]
for (shape, chunks, blocks), dtype in itertools.product(shapes, ["u1", "<f8"]):
    array("shape", dtype, shape, chunks, blocks, contiguous=len(manifest) % 2 == 0)

# Every codec with every pipeline.
pipelines = [
    ([], []), ([F.NOFILTER], [0]), ([F.SHUFFLE], [0]), ([F.SHUFFLE], [2]), ([F.BITSHUFFLE], [0]),
    ([F.DELTA], [0]), ([F.DELTA, F.SHUFFLE], [0, 0]), ([F.DELTA, F.BITSHUFFLE], [0, 0]),
    ([F.SHUFFLE, F.BYTEDELTA], [0, None]), ([F.DELTA, F.SHUFFLE, F.BYTEDELTA], [0, 0, None]),
    ([F.BITSHUFFLE, F.SHUFFLE, F.BITSHUFFLE, F.SHUFFLE], [0] * 4),
    ([F.SHUFFLE, F.SHUFFLE, F.BYTEDELTA, F.BITSHUFFLE, F.SHUFFLE, F.BITSHUFFLE], [0, 2, None, 0, 3, 0]),
    ([F.TRUNC_PREC], [12]), ([F.TRUNC_PREC, F.SHUFFLE], [10, 0]), ([F.TRUNC_PREC, F.BITSHUFFLE], [3, 0]),
    ([F.INT_TRUNC], [5]), ([F.INT_TRUNC, F.SHUFFLE], [3, 0]),
]
for codec in [C.BLOSCLZ, C.LZ4, C.LZ4HC, C.ZLIB, C.ZSTD]:
    for filters, metas in pipelines:
        for dtype in ["u1", "<i4", "<f8"]:
            if F.TRUNC_PREC in filters and dtype != "<f8":
                continue
            if F.INT_TRUNC in filters and dtype == "<f8":
                continue
            size = np.dtype(dtype).itemsize
            contiguous = len(manifest) % 3 != 0
            lossy = len(filters) > 2 or filters[:1] in ([F.TRUNC_PREC], [F.INT_TRUNC])
            shape, chunks, blocks = shapes[[7, 9, 10][len(manifest) % 3]]
            array("codec", dtype, shape, chunks, blocks, contiguous, lossy, codec=codec, filters=filters,
                  filters_meta=[size if each is None else each for each in metas],
                  clevel=int(rng.integers(0, 10)), nthreads=int(rng.integers(1, 4)),
                  splitmode=blosc2.SplitMode(int(rng.integers(1, 5))))
    # Blocks that are cut by themselves, and much to compress.
    for clevel in (1, 5, 9):
        array("large", "<i4", (300, 400), (100, 400), None, codec=codec, clevel=clevel, nthreads=2)
        array("large", "<f4", (40_000,), codec=codec, clevel=clevel, nthreads=1,
              filters=[F.BITSHUFFLE], filters_meta=[0])

# Dictionaries: some chunks are large enough for one.
for codec in (C.ZSTD, C.LZ4, C.LZ4HC):
    for shape, chunks, blocks in [((300, 400), (100, 400), (10, 400)), ((20, 20), (7, 7), (3, 3))]:
        for contiguous in (True, False):
            array("dictionary", "<i4", shape, chunks, blocks, contiguous, codec=codec, use_dict=True,
                  nthreads=1, filters=[F.SHUFFLE], filters_meta=[0])

# The codecs and filters of arrays only.
for codec, meta, filters, metas, dtype in [
    (C.NDLZ, 4, [], [], "u1"), (C.NDLZ, 8, [], [], "u1"), (C.LZ4, 0, [F.NDCELL], [4], "<f8"),
    (C.LZ4, 0, [F.NDMEAN], [4], "<f4"),
]:
    array("plugin", dtype, (60, 50), (40, 32), (16, 16), lossy=True, codec=codec, codec_meta=meta,
          filters=filters, filters_meta=metas)

# Without data of their own.
kinds = {
    "zeros": lambda shape, **more: blosc2.zeros(shape, **more),
    "full": lambda shape, **more: blosc2.full(shape, 7, **more),
    "nans": lambda shape, **more: blosc2.nans(shape, **more),
    "empty": lambda shape, **more: blosc2.empty(shape, **more),
    "uninit": lambda shape, **more: blosc2.uninit(shape, **more),
}
for kind, make in kinds.items():
    for dtype in ["u1", "<f4", "<f8", "<c16"]:
        if kind == "nans" and dtype not in ("<f4", "<f8"):
            continue
        for shape, chunks, blocks in [((1000,), None, None), ((50, 40), (16, 40), (7, 9)), ((), None, None),
                                      ((5, 0), None, None)]:
            contiguous = len(manifest) % 2 == 0
            file = name(kind, "b2nd")
            made = make(shape, dtype=dtype, urlpath=file, contiguous=contiguous, chunks=chunks, blocks=blocks)
            if shape == (50, 40) and dtype != "<c16":
                # Some chunks get data of their own, which leaves a hole where they were.
                made[10:20, 5:30] = 3
            made = blosc2.open(file, mode="r")
            # What has no value is read as whatever was in memory; where a part was written, that was
            # stored.
            found = made[...]
            if kind == "uninit":
                found = None if 3 in found else np.full(shape, 0, dtype)
            put(made.schunk, file, found, undefined=kind == "uninit")

# Chunks that lie out of order or are gone; arrays that have grown and shrunk.
file = name("resized", "b2nd")
made = blosc2.asarray(values("<i4", (90, 20)), urlpath=file, chunks=(20, 20), blocks=(5, 20))
made.resize((110, 30))
made[100:, 5:] = 9
made.resize((50, 30))
made[0:30] = values("<i4", (30, 30))
put(made.schunk, file, made[...])

# Super-chunks.
meta = {"one": {"version": 1, "names": ["a", "b"]}, "two": b"\x00\x01bytes", "empty": None}
vlmeta = {"text": "a text", "number": 1.5, "list": [1, 2, 3], "long": "x" * 5000, "empty": ""}
array("meta", "<f4", (40, 50), (20, 30), (10, 10), meta=meta, vlmeta=vlmeta)
array("meta", "<f4", (40, 50), (20, 30), (10, 10), contiguous=False, meta=meta, vlmeta=vlmeta)
for contiguous in (True, False):
    for chunksize, lengths in [(4000, [4000] * 3), (4000, [4000, 4000, 1204]), (4000, [40]), (4000, []),
                               (4, [4] * 700), (400_000, [400_000, 300_000])]:
        for typesize in (1, 4):
            file = name("schunk", "b2frame")
            s = blosc2.SChunk(chunksize=chunksize, urlpath=file, contiguous=contiguous, meta=meta,
                              cparams=dict(typesize=typesize, nthreads=1))
            for at, length in enumerate(lengths):
                s.append_data((np.arange(length // 4, dtype="<i4") * (at + 1) + at).tobytes())
            for key, value in vlmeta.items():
                s.vlmeta[key] = value
            put(s, file, meta=meta, vlmeta=vlmeta)
    for special in (blosc2.SpecialValue.ZERO, blosc2.SpecialValue.NAN, blosc2.SpecialValue.UNINIT):
        file = name("special", "b2frame")
        s = blosc2.SChunk(chunksize=4000, urlpath=file, contiguous=contiguous, cparams=dict(typesize=4))
        s.fill_special(2300, special)
        put(s, file, undefined=special == blosc2.SpecialValue.UNINIT)
    file = name("special", "b2frame")
    s = blosc2.SChunk(chunksize=4000, urlpath=file, contiguous=contiguous, cparams=dict(typesize=4))
    s.fill_special(2300, blosc2.SpecialValue.VALUE, 7)
    put(s, file)
    # Updated, inserted and deleted chunks.
    file = name("edited", "b2frame")
    s = blosc2.SChunk(chunksize=4000, urlpath=file, contiguous=contiguous, cparams=dict(typesize=4))
    for at in range(6):
        s.append_data(values("<i4", 1000))
    s.update_data(2, np.zeros(1000, "<i4"), copy=True)
    s.insert_data(1, values("<i4", 1000), copy=True)
    s.delete_chunk(4)
    s.update_data(0, rng.integers(0, 2**31, 1000, "<i4"), copy=True)
    put(s, file)
    # Chunks of different lengths, with a dictionary each where it pays.
    file = name("variable", "b2frame")
    items = blosc2.ObjectArray(urlpath=file, contiguous=contiguous, mode="w")
    for item in ["text", 5, {"a": [1, 2.5, None]}, b"x" * 3000, "words " * 2000, list(range(5000)), ""]:
        items.append(item)
    put(items.schunk, file)
    # Blocks of different lengths.
    for codec in (C.ZSTD, C.LZ4, C.BLOSCLZ, C.ZLIB):
        for per_block in (1, 3, None):
            file = name("blocks", "b2b")
            batches = blosc2.BatchArray(urlpath=file, contiguous=contiguous, mode="w",
                                        items_per_block=per_block, cparams=dict(codec=codec))
            for at in range(4):
                batches.append([f"item {each} " * (each * 7 % 40) for each in range(at * 9 + 1)])
            batches.append([b"a" * 20_000, 1, [2] * 3000])
            put(batches.schunk, file)

# Packed tensors, stores of several frames, many small chunks.
file = name("tensor", "b2frame")
blosc2.save_tensor(values("<f4", (30, 40)), file)
put(blosc2.open(file), file)
file = name("embed", "b2e")
store = blosc2.EmbedStore(urlpath=file, mode="w")
store["/a"] = values("<i4", (10, 20))
store["/b/c"] = blosc2.zeros((100,))
put(store._store if hasattr(store, "_store") else blosc2.open(file), file)
array("many", "<i4", (5000,), (2,), (2,))

with open("manifest.json", "w") as out:
    json.dump(manifest, out)
print(len(manifest))
