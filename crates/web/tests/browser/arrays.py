"""Writes files with Python, and NumPy's arrays with the same items: `arrays.json` lists them.

The page has to export each of them as Python reads it. An entry of the list has the file, the key of an entry or the name
of a column if the file has several arrays, and the file with the expected array.
"""

import dataclasses
import json
import sys
from pathlib import Path

import blosc2
import numpy as np

ROOT = Path(__file__).absolute().parents[4]
folder = Path(sys.argv[1]).absolute() / "arrays"
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(53)
listed = []


def expect(file, array, **more):
    npy = f"{len(listed)}.npy"
    np.save(folder / npy, array)
    listed.append({"file": str(file), "npy": str(folder / npy), **more})


def write(name, array, **params):
    path = folder / f"{name}.b2nd"
    blosc2.asarray(array, urlpath=str(path), mode="w", **params)
    expect(path, blosc2.open(str(path), mode="r")[()])


def items(dtype, count):
    """Items of any dtype: bytes that are valid for each of them."""
    if dtype.fields:
        made = np.zeros(count, dtype=dtype)
        for field in dtype.names:
            base = dtype[field].base
            made[field] = items(base, made[field].size).reshape(made[field].shape)
        return made
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(dtype)
    if dtype.kind == "U":
        return np.array([chr(97 + k % 26) * (k % (dtype.itemsize // 4 + 1)) + "é"[: k % 2] for k in range(count)]).astype(dtype)
    if dtype.kind == "f":
        made = rng.normal(size=count).astype(dtype)
        made[count // 2 :: 97] = np.nan
        return made
    if dtype.kind == "c":
        return (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(dtype)
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype=dtype)


# The dtypes of the conformance table.
DTYPES = """|b1 |i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 >i2 >u2 >i4 >u4 >i8 >u8 <f2 <f4 <f8 <f16 >f2 >f4 >f8 <c8 >c8 <c16 >c16 <c32
    |S1 |S10 |S255 |S256 <U1 <U10 >U3 <U70 <M8[ns] >M8[us] <M8[D] <M8[25s] <M8 <m8[ms] <m8 |V1 |V5 |V300""".split()
STRUCTURES = [
    [("a", "<i4"), ("b", "<f8")],
    [("a", ">i4"), ("c", "S3"), ("d", "<U2")],
    [(("Title A", "a"), "<i4"), ("größe", "u1")],
    [("when", "<M8[ns]"), ("z", "<c16"), ("raw", "V7")],
    [("name", "S290"), ("n", "<i2")],
    [("p", [("x", "<f4"), ("y", "<f4", (3,))]), ("ok", "?")],
]
for k, dtype in enumerate(map(np.dtype, DTYPES + STRUCTURES)):
    write(f"dtype-{k}", items(dtype, 11 * 7).reshape(11, 7), chunks=(4, 5), blocks=(2, 3))

# Zero to eight dimensions; edges of shapes, chunks and blocks.
for ndim in range(9):
    for k, dtype in enumerate(("<f4", ">i2", "|S3")):
        shape = tuple([5, 3, 4, 2, 3, 2, 3, 2][:ndim])
        array = items(np.dtype(dtype), int(np.prod(shape))).reshape(shape)
        chunks = tuple(max(1, side - k) for side in shape)
        blocks = tuple(max(1, side // 2) for side in chunks)
        write(f"ndim-{ndim}-{k}", array, **({"chunks": chunks, "blocks": blocks} if ndim else {}))
for name, shape, chunks, blocks in [
    ("one", (1,), (1,), (1,)), ("odd", (101, 53), (37, 11), (9, 4)), ("flat", (1, 1000), (1, 300), (1, 128)),
    ("whole", (40, 30), (40, 30), (40, 30)), ("empty", (0,), None, None), ("empty-2", (4, 0), None, None),
]:
    array = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    write(f"shape-{name}", array, **({"chunks": chunks, "blocks": blocks} if chunks else {}))

# Codecs, levels and filters.
F = blosc2.Filter
PIPELINES = [[], [F.SHUFFLE], [F.BITSHUFFLE], [F.DELTA], [F.DELTA, F.SHUFFLE], [F.DELTA, F.BITSHUFFLE], [F.BYTEDELTA],
             [F.SHUFFLE, F.BYTEDELTA], [F.TRUNC_PREC, F.SHUFFLE]]
smooth = np.cumsum(rng.normal(size=1200)).astype("f4").reshape(40, 30)
for codec in (blosc2.Codec.BLOSCLZ, blosc2.Codec.LZ4, blosc2.Codec.LZ4HC, blosc2.Codec.ZLIB, blosc2.Codec.ZSTD):
    for k, filters in enumerate(PIPELINES):
        metas = [{F.TRUNC_PREC: 10, F.BYTEDELTA: 4}.get(each, 0) for each in filters]
        cparams = {"codec": codec, "filters": filters, "filters_meta": metas, "clevel": 1 + k}
        write(f"codec-{codec.name}-{k}", smooth, chunks=(16, 30), blocks=(8, 7), cparams=cparams)
    write(f"codec-{codec.name}-stored", smooth, chunks=(16, 30), blocks=(8, 7), cparams={"codec": codec, "clevel": 0})
for codec in (blosc2.Codec.LZ4, blosc2.Codec.ZSTD):
    text = np.tile(np.frombuffer(b"The same words again and again. ", "u1"), 3750).reshape(300, 400)
    cparams = {"codec": codec, "use_dict": True, "filters": [], "filters_meta": []}
    write(f"dictionary-{codec.name}", text, chunks=(200, 400), blocks=(10, 400), cparams=cparams)

# Special chunks.
for name, make in [("zeros", lambda path: blosc2.zeros((50, 60), dtype="f8", chunks=(20, 20), blocks=(7, 9), urlpath=path)),
                   ("nans", lambda path: blosc2.nans((50, 60), dtype="f4", chunks=(20, 20), blocks=(7, 9), urlpath=path)),
                   ("full", lambda path: blosc2.full((50, 60), 7.5, dtype="f8", chunks=(20, 20), blocks=(7, 9), urlpath=path)),
                   ("full-bytes", lambda path: blosc2.full((9,), b"abc", dtype="S3", urlpath=path))]:
    path = folder / f"special-{name}.b2nd"
    make(str(path))
    expect(path, blosc2.open(str(path), mode="r")[()])
array = blosc2.zeros((50, 60), dtype="i8", chunks=(20, 20), blocks=(7, 9), urlpath=str(folder / "special-mixed.b2nd"))
array[20:40, 10:30] = np.arange(400).reshape(20, 20)
expect(folder / "special-mixed.b2nd", array[()])

# Stores of both kinds.
with blosc2.TreeStore(str(folder / "tree.b2z"), mode="w") as store:
    for key in ("/a", "/group/b", "/group/deep/c", "/group/deep/d"):
        store[key] = items(np.dtype("<f4"), 60).reshape(5, 12)
with blosc2.TreeStore(str(folder / "tree.b2z"), mode="r") as store:
    for key in ("/a", "/group/b", "/group/deep/c", "/group/deep/d"):
        expect(folder / "tree.b2z", store[key][()], entry=key)
embed = blosc2.EmbedStore(urlpath=str(folder / "embed.b2e"), mode="w")
for key in ("/a", "/b/c", "/b/d"):
    embed[key] = items(np.dtype("<u2"), 40).reshape(8, 5)
    expect(folder / "embed.b2e", embed[key][()], entry=key)

# Columns of a table, with null values and deleted rows.
S = blosc2


@dataclasses.dataclass
class Row:
    i1: int = S.field(S.int8(), default=0)
    i2: int = S.field(S.int16(), default=0)
    i4: int = S.field(S.int32(), default=0)
    i8: int = S.field(S.int64(), default=0)
    u1: int = S.field(S.uint8(), default=0)
    u2: int = S.field(S.uint16(), default=0)
    u4: int = S.field(S.uint32(), default=0)
    u8: int = S.field(S.uint64(), default=0)
    f4: float = S.field(S.float32(), default=0.0)
    f8: float = S.field(S.float64(nullable=True), default=0.0)
    c8: complex = S.field(S.complex64(), default=0)
    c16: complex = S.field(S.complex128(), default=0)
    b: bool = S.field(S.bool(), default=False)
    s: str = S.field(S.string(max_length=5), default="")
    y: bytes = S.field(S.bytes(max_length=4), default=b"")
    t_s: int = S.field(S.timestamp(unit="s"), default=0)
    t_ms: int = S.field(S.timestamp(unit="ms"), default=0)
    t_us: int = S.field(S.timestamp(unit="us"), default=0)
    t_ns: int = S.field(S.timestamp(unit="ns"), default=0)


def row(k):
    time = [np.datetime64("2020-01-01", unit) + np.timedelta64(k, unit) for unit in ("s", "ms", "us", "ns")]
    return (k % 128, -k, k * 1000, k << 40, k % 256, k, k * 7, k << 50, k / 3, k / 7, k + 1j, k - 2j, k % 3 == 0, f"é{k}",
            b"%d" % k, *time)


for name, deletes in (("table", False), ("table-deleted", True)):
    path = folder / f"{name}.b2z"
    table = blosc2.CTable(Row, new_data=[row(k) for k in range(3000)], urlpath=str(path), mode="w")
    if deletes:
        table.delete(list(range(5, 2500, 3)))
    table.close()
    table = blosc2.open(str(path), mode="r")
    for column in Row.__dataclass_fields__:
        expect(path, np.asarray(table[column][:]), column=column)

# Single chunks, and super-chunks: items are unsigned integers of their size.
for typesize in (1, 2, 4, 8):
    array = np.arange(5000, dtype=f"<u{typesize}")
    for codec in (blosc2.Codec.BLOSCLZ, blosc2.Codec.ZSTD):
        path = folder / f"chunk-{typesize}-{codec.name}.b2chunk"
        path.write_bytes(blosc2.compress2(array.tobytes(), typesize=typesize, codec=codec))
        expect(path, array)
    path = folder / f"schunk-{typesize}.b2frame"
    blosc2.SChunk(chunksize=1600, data=array.tobytes(), urlpath=str(path), mode="w", cparams={"typesize": typesize})
    expect(path, array)

python = len(listed)

# The files of Python in the repository, also those of an older version.
for version in ("2.7.1", "4.14.1"):
    for path in sorted((ROOT / "tests/python_files" / version).glob("*.b2nd")):
        try:
            array = blosc2.open(str(path), mode="r")
        except (blosc2.exceptions.UnsafeDeserializationError, ValueError):
            # Computations and references have no items.
            continue
        # Uninitialized items have no values.
        if path.stem != "uninit" and path.is_file() and isinstance(array, blosc2.NDArray) and array.dtype != object:
            expect(path, array[()])
            python += 1

# Files of old versions of C-Blosc2, which Python does not read.
golden = ROOT / "crates/format/tests/golden/files"
for line in (golden / "LIST").read_text().splitlines():
    name, *contents = line.split(" ")
    contents = dict(each.split("=") for each in contents)
    size = next((int(part[2:]) for part in name.split(".b")[0].split("_") if part[:2] == "ts"), None)
    # Files with one size of chunks and a size of items. Lizard is a discontinued codec, and these files have a format of
    # Zstandard before its first version.
    if name.startswith(("early-frame/", "packed/", "old-frames/beta.")) and size in (1, 2, 4, 8) and "raw" in contents \
            and not any(part in name for part in ("QUIRK", "NEGATIVE", "lizard", "/a3_zstd", "append", "short_last", "last_bigger", "_n0")):
        raw = (golden / "raw" / contents["raw"]).read_bytes()
        expect(golden / name, np.frombuffer(raw, f"<u{size}"))

(folder / "arrays.json").write_text(json.dumps({"python": python, "arrays": listed}))
print(f"{python} arrays of Python, {len(listed) - python} of old versions")
