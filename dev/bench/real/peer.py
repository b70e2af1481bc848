"""Libraries of Python for `cargo xtask bench real`: HDF5, zarr-python, and for columns Vortex and Lance.

Arguments: the folder of the sets, the name of a set, a folder for files, and the file with the parts to read. It prints
one record in JSON for each setting, as measure.rs does.
"""

import json
import os
import shutil
import subprocess
import sys
import time

if hasattr(os, "sched_setaffinity"):
    # One core: the number of threads of Vortex and Lance cannot be set.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import h5py
import hdf5plugin
import lance
import numpy as np
import pyarrow as pa
import vortex
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

SETS, NAME, WORK, PLACES = sys.argv[1:5]
RUNS, ENOUGH, LONG, PARTS = 3, 0.06, 0.3, 0.06
CHECKED = 20


def shortest(call, after=lambda _: None):
    """The shortest time of several calls."""
    start, times = time.perf_counter(), []
    while len(times) < RUNS or time.perf_counter() - start < ENOUGH:
        now = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - now)
        after(result)
        del result
        if times[0] > LONG:
            break
    return min(times)


def mean(parts, read, expected):
    """The mean time of a read, after a check of the first ones."""
    for part in parts[:CHECKED]:
        if read(part).tobytes() != expected[part].tobytes():
            sys.exit(f"other items at {part} of {NAME}")
    start, count = time.perf_counter(), 0
    for part in parts:
        read(part)
        count += 1
        if time.perf_counter() - start > PARTS:
            break
    return (time.perf_counter() - start) / count


def status(key):
    """A value of this process in bytes."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))


def peak(library, case):
    """The peak memory above the memory before, in a process of its own. None where the system does not tell it."""
    if not sys.platform.startswith("linux"):
        return None
    command = [sys.executable, "-I", __file__, SETS, NAME, WORK, PLACES, "--peak", library.name, library.setting, case]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_of(call):
    """Prints the peak memory of a call above the memory before."""
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")
    before = status("VmRSS")
    result = call()
    most = status("VmHWM")
    print(max(0, most - before))
    del result


class Hdf5:
    name = "HDF5"

    def __init__(self, setting, filters):
        self.setting, self.filters = setting, filters
        self.is_default = setting == "gzip 4 shuffle"

    def write(self, items, chunks, path):
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=items, chunks=chunks, **self.filters)

    def open(self, path):
        file = h5py.File(path, "r")
        return lambda part, a=file["a"]: a[part], file.close


class ZarrPython:
    name = "zarr-python"

    def __init__(self, setting, codecs):
        self.setting, self.codecs = setting, codecs
        self.is_default = codecs == "auto"

    def write(self, items, chunks, path):
        array = zarr.create_array(path, shape=items.shape, chunks=chunks, dtype=items.dtype, compressors=self.codecs)
        array[...] = items

    def open(self, path):
        array = zarr.open_array(path, mode="r")
        return lambda part: array[part], lambda: None


class Rows:
    """Rows of columns that were read. As the other libraries, it makes items of them only to compare them."""

    def __init__(self, columns, dtype):
        self.columns, self.dtype = columns, dtype

    def tobytes(self):
        columns = [column.to_numpy(zero_copy_only=False) for column in self.columns]
        if self.dtype.fields is None:
            return b"".join(column.astype(self.dtype).tobytes() for column in columns)
        items = np.empty(len(columns[0]), self.dtype)
        for name, column in zip(self.dtype.names, columns, strict=True):
            items[name] = column
        return items.tobytes()


class Columns:
    """A format of columns: a table, which has one column for each row of the array, or one array or its fields."""

    def __init__(self, setting, about, dtype):
        self.setting, self.is_table, self.dtype = setting, about["is_table"], dtype
        self.is_default = setting == "default"

    def write(self, items, _, path):
        if items.dtype.fields is not None:
            columns = {name: np.ascontiguousarray(items[name]) for name in items.dtype.names}
        else:
            columns = {f"c{k}": column for k, column in enumerate(items if self.is_table else [items])}
        # Arrow has no array of texts of a fixed length from NumPy.
        array = lambda column: pa.array(column.tolist(), pa.binary()) if column.dtype.kind == "S" else pa.array(column)
        self.store(pa.table({name: array(column) for name, column in columns.items()}), path)

    def open(self, path):
        source = self.source(path)

        def read(part):
            if part is Ellipsis:
                return Rows(self.columns(source, None, None), self.dtype)
            name = [f"c{part[0].start}"] if self.is_table else None
            return Rows(self.columns(source, name, part[-1]), self.dtype)

        return read, lambda: None


class Vortex(Columns):
    name = "Vortex"

    def store(self, table, path):
        options = vortex.io.VortexWriteOptions
        (options.compact() if self.setting == "compact" else options.default()).write(table, path)

    def source(self, path):
        return vortex.open(path)

    def columns(self, file, names, rows):
        indices = None if rows is None else vortex.array(pa.array(np.arange(rows.start, rows.stop, dtype="u8")))
        return file.scan(names, indices=indices).to_arrow().read_all().columns


class Lance(Columns):
    name = "Lance"

    def store(self, table, path):
        metadata = {b"lance-encoding:compression": b"zstd"} if self.setting == "zstd" else None
        fields = [field.with_metadata(metadata) for field in table.schema]
        lance.write_dataset(table.cast(pa.schema(fields)), path)

    def source(self, path):
        return lance.dataset(path)

    def columns(self, dataset, names, rows):
        if rows is None:
            return dataset.to_table(names).columns
        return dataset.take(range(rows.start, rows.stop), names).columns


def libraries(dtype, about):
    shuffle = hdf5plugin.Blosc2.SHUFFLE
    bits = hdf5plugin.Blosc2.BITSHUFFLE
    yield Hdf5("gzip 4 shuffle", {"compression": "gzip", "compression_opts": 4, "shuffle": True})
    yield Hdf5("gzip 1 shuffle", {"compression": "gzip", "compression_opts": 1, "shuffle": True})
    yield Hdf5("gzip 9 shuffle", {"compression": "gzip", "compression_opts": 9, "shuffle": True})
    for codec, level, filters, name in (
        ("lz4", 5, shuffle, "shuffle"),
        ("zstd", 5, shuffle, "shuffle"),
        ("zstd", 5, bits, "bitshuffle"),
        ("zstd", 9, shuffle, "shuffle"),
    ):
        yield Hdf5(f"Blosc2 {codec} {level} {name}", hdf5plugin.Blosc2(cname=codec, clevel=level, filters=filters))
    if dtype.fields is None:
        yield ZarrPython("zstd 0 (default)", "auto")
        yield ZarrPython("zstd 9", ZstdCodec(level=9))
        yield ZarrPython("Blosc zstd 5 shuffle", BloscCodec(cname="zstd", clevel=5, shuffle="shuffle"))
    if about["is_table"] or len(about["shape"]) == 1:
        for library, setting in ((Vortex, "default"), (Vortex, "compact"), (Lance, "default"), (Lance, "zstd")):
            yield library(setting, about, dtype)


def remove(name):
    if os.path.isdir(name):
        shutil.rmtree(name)
    elif os.path.exists(name):
        os.remove(name)


def read_all(library, path):
    read, close = library.open(path)
    result = read(Ellipsis)
    close()
    return result


def measure(library, items, chunks, places):
    path, kept = os.path.join(WORK, "python"), os.path.join(WORK, "python-kept")

    def keep(_):
        remove(kept)
        os.rename(path, kept)

    remove(path)
    write_s = shortest(lambda: library.write(items, chunks, path), keep)

    everything = lambda: read_all(library, kept)
    if everything().tobytes() != items.tobytes():
        sys.exit(f"{library.name} changes {NAME}")
    tiles, rows = (
        [tuple(slice(*ends) for ends in part) for part in places[name]] for name in ("tiles", "rows")
    )
    read, close = library.open(kept)
    tile_s, row_s = mean(tiles, read, items), mean(rows, read, items)
    close()

    def first(part):
        read, close = library.open(kept)
        result = read(part)
        close()
        return result

    size = os.path.getsize(kept)
    if os.path.isdir(kept):
        size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(kept) for name in names)
    record = {
        "set": NAME, "library": library.name, "setting": library.setting, "default": library.is_default,
        "nbytes": items.nbytes, "bytes": size, "write_s": write_s, "read_1_s": shortest(everything),
        "read_2_s": None, "tile_s": tile_s, "row_s": row_s, "open_s": mean(rows[:1] * 50, first, items),
    }  # fmt: skip
    if library.is_default:
        record["peak_read"] = peak(library, "read")
        record["peak_write"] = peak(library, "write")
    remove(kept)
    return record


def main():
    with open(os.path.join(SETS, "sets.json"), encoding="utf-8") as file:
        about = next(one for one in json.load(file) if one["name"] == NAME)
    with open(PLACES, encoding="utf-8") as file:
        places = json.load(file)
    items = np.load(os.path.join(SETS, NAME + ".npy"))
    # One thread, as the other libraries.
    zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
    if "--peak" in sys.argv:
        name, setting, case = sys.argv[-3:]
        library = next(it for it in libraries(items.dtype, about) if (it.name, it.setting) == (name, setting))
        if case == "read":
            # The file that the process of the other measurements has written.
            return peak_of(lambda: read_all(library, os.path.join(WORK, "python-kept")))
        path = os.path.join(WORK, "python-peak")
        peak_of(lambda: library.write(items, tuple(about["chunks"]), path))
        return remove(path)
    for library in libraries(items.dtype, about):
        print(json.dumps(measure(library, items, tuple(about["chunks"]), places)), flush=True)


main()
