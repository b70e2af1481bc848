"""Writes the files that the browser tests open, and NumPy's arrays with the same items."""

import dataclasses
import sys
import zipfile
from pathlib import Path

import blosc2
import numpy as np

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(1)


def write(name, array, **params):
    path = folder / f"{name}.b2nd"
    blosc2.asarray(array, urlpath=str(path), mode="w", **params)
    # As Python reads it: the dtype `V7` is stored as a structure.
    stored = blosc2.open(str(path), mode="r")[()]
    assert stored.tobytes() == array.tobytes(), name
    np.save(folder / f"{name}.npy", stored)


# A picture whose pixels are known, with NaN.
y, x = np.mgrid[0:300, 0:500]
picture = (np.sin(x / 40) * np.cos(y / 30) * 100).astype("f4")
picture[100:120, 200:240] = np.nan
write("picture", picture, chunks=(128, 200), blocks=(32, 50))

volume = (np.arange(20 * 60 * 80).reshape(20, 60, 80) % 10007).astype("i4")
write("volume", volume, chunks=(7, 25, 33), blocks=(3, 10, 11))

wave = np.cumsum(rng.normal(size=2_000_000)).astype("f8")
wave[1_234_567] = 5000.0
write("wave", wave, chunks=(300_000,), blocks=(20_000,))

record = np.dtype([("id", "<u4"), ("speed", "<f8"), ("place", "<f4", (2,)), ("ok", "?"), ("name", "S8")])
table = np.zeros(1_000_000, dtype=record)
table["id"] = np.arange(len(table))
table["speed"] = np.round(np.sin(np.arange(len(table)) / 1000), 4)
table["place"][:, 1] = 0.5
table["ok"] = table["id"] % 3 == 0
table["name"] = [b"n%d" % (k % 1000) for k in range(len(table))]
write("table", table)

# 64 blocks of 64 KiB that no codec compresses well.
noise = rng.normal(size=(1024, 1024)).astype("f4")
write("blocks", noise, chunks=(512, 512), blocks=(128, 128))

data = (np.arange(200_000) // 3).astype("i4")
write("codec-zstd-shuffle", data, chunks=(70_000,), blocks=(8_000,),
      cparams={"codec": blosc2.Codec.ZSTD, "filters": [blosc2.Filter.SHUFFLE], "filters_meta": [0], "clevel": 5})
write("zeros", np.zeros((300, 400), dtype="f4"), chunks=(100, 100), blocks=(50, 50))
write("scalar", np.array(3.25))
write("empty", np.zeros((0, 5)))

# A super-chunk, with metadata.
schunk = blosc2.SChunk(chunksize=40_000, data=data.tobytes(), urlpath=str(folder / "schunk.b2frame"), mode="w",
                       cparams={"typesize": 4}, meta={"origin": {"station": 7, "names": ["a", "b"]}})
schunk.vlmeta["note"] = "<b>not bold</b>"
data.astype("<u4").tofile(folder / "schunk.raw")

# Stores and a table.
with blosc2.TreeStore(str(folder / "store.b2z"), mode="w") as store:
    store["/first/speed"] = np.arange(600, dtype="f4").reshape(20, 30)
    store["/first/place"] = np.arange(50, dtype="i8")
    store["/second"] = np.linspace(0, 1, 1000)
embed = blosc2.EmbedStore(urlpath=str(folder / "embed.b2e"), mode="w")
embed["/a"] = np.arange(100, dtype="u2").reshape(10, 10)
embed["/b/c"] = np.linspace(0, 1, 11)


@dataclasses.dataclass
class Row:
    id: int = blosc2.field(blosc2.int64(), default=0)
    speed: float = blosc2.field(blosc2.float64(), default=0.0)
    name: str = blosc2.field(blosc2.string(max_length=8), default="")


blosc2.CTable(Row, new_data=[(k, k / 2, f"n{k}") for k in range(5000)], urlpath=str(folder / "table.b2z"),
              mode="w").close()

@dataclasses.dataclass
class Kinds:
    id: int = blosc2.field(blosc2.int32(), default=0)
    speed: float = blosc2.field(blosc2.float64(nullable=True, null_storage="mask"), default=0.0)
    when: int = blosc2.field(blosc2.timestamp(unit="us"), default=0)
    big: int = blosc2.field(blosc2.int64(), default=0)
    name: str = blosc2.field(blosc2.utf8(), default="")
    flag: bool = blosc2.field(blosc2.bool(), default=False)


start = np.datetime64("2020-01-01T00:00:00", "us")
rows = [(k, None if k % 7 == 0 else float("nan") if k % 11 == 0 else k + 0.5, start + np.timedelta64(k, "s"), 2**53 + 1 + k,
         f'a, "{k}"', k % 2 == 0) for k in range(3000)]
blosc2.CTable(Kinds, new_data=rows, urlpath=str(folder / "kinds.b2z"), mode="w").close()

# Arrays of values, of batches and of lists, and a tensor.
objects = blosc2.ObjectArray(urlpath=str(folder / "objects.b2frame"), mode="w")
for value in ({"a": 1}, [1, "two", None], "text"):
    objects.append(value)
batches = blosc2.BatchArray(urlpath=str(folder / "batches.b2frame"), mode="w")
for first in range(0, 500, 100):
    batches.append(list(range(first, first + 100)))
lists = blosc2.ListArray(item_spec=blosc2.int64(), nullable=True, urlpath=str(folder / "lists.b2frame"), mode="w")
for row in range(40):
    lists.append(None if row == 1 else [row, row + 1])
lists.flush()
blosc2.save_tensor(np.arange(12, dtype="f8").reshape(3, 4) / 2, str(folder / "tensor.b2frame"), mode="w")

# Damaged files: a changed byte in a chunk, and a frame that ends early.
good = bytearray((folder / "codec-zstd-shuffle.b2nd").read_bytes())
for at in range(len(good) // 2, len(good) // 2 + 40):
    good[at] ^= 0x5A
(folder / "damaged.b2nd").write_bytes(good)
path = folder / "damaged.b2z"
with blosc2.TreeStore(str(path), mode="w") as store:
    store["/first/speed"] = data
    store["/second"] = np.arange(50)
store = bytearray(path.read_bytes())
with zipfile.ZipFile(path) as members:
    member = members.getinfo("first/speed.b2nd")
at = member.header_offset + 30 + len(member.filename)
# The length of the header, after which the first chunk begins.
at += int.from_bytes(store[at + 11 : at + 15], "big")
store[at : at + 40] = bytes(byte ^ 0x5A for byte in store[at : at + 40])
path.write_bytes(store)
(folder / "cut.b2nd").write_bytes(good[: len(good) // 3])
(folder / "notes.txt").write_text("This is not a Blosc2 file.\n" * 20)
