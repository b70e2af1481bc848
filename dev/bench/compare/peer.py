"""Libraries of Python for the comparison: python-blosc2, NumPy and HDF5.

Arguments: the library, the folder of the files, and the numbers of the plan (data.rs). It prints the hash of its data.
Then it reads one task per line from stdin (protocol.rs), and prints the seconds and the result, or an empty line if the
library has no such operation.
"""

import hashlib
import os
import sys
import time

import numpy as np

LIBRARY, FOLDER = sys.argv[1:3]
SIDE, CHUNK_ROWS, BLOCK_ROWS, APPEND_CHUNK, PIECE, DIVISOR = map(int, sys.argv[3:])
APPEND_BLOCK = APPEND_CHUNK // 32
THRESHOLD = np.float32(2.07)


class Lcg:
    """Knuth's linear congruential generator MMIX."""

    def __init__(self, seed):
        self.state = seed

    def below(self, end):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % end


def items():
    u = (np.arange(SIDE, dtype="f8") / SIDE)[:, None]
    v = (np.arange(SIDE, dtype="f8") / SIDE)[None, :]
    return ((u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v).astype("<f4")


def slices(key):
    """The slices that a workload reads."""
    seed, count, shape = {
        "slice_row": (42, 2000, (1, 64)),
        "slice_square": (42, 500, (32, 32)),
        "slice_rows": (42, 100, (1, SIDE)),
        "items": (42, 2000, (1, 1)),
    }.get(key, (5, 200, (1, 64)))
    lcg = Lcg(seed)
    starts = [[lcg.below(SIDE - size + 1) for size in shape] for _ in range(count // DIVISOR)]
    return [(i, i + shape[0], j, j + shape[1]) for i, j in starts]


def orthogonal(key):
    lcg = Lcg(7)
    rows, columns = (np.unique([lcg.below(SIDE) for _ in range(256 // DIVISOR)]) for _ in range(2))
    return (rows[:8] if key == "orthogonal_8" else rows), columns


def points():
    lcg = Lcg(9)
    return tuple(np.array([lcg.below(SIDE) for _ in range(1000 // DIVISOR)]) for _ in range(2))


def digest(arrays):
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(array))
    return sha.hexdigest()


def measure(task, call, result=lambda returned: digest([returned])):
    """The time of one call, and its result. What it returns is freed later, and this is not measured."""
    start = time.perf_counter()
    returned = call()
    seconds = time.perf_counter() - start
    return seconds, result(returned) if task.check else ""


def measure_each(task, arguments, call):
    """The time of a loop of calls, and the items of the first calls (protocol.rs)."""
    text = digest([call(*argument) for argument in arguments[:20]]) if task.check else ""
    done = 0
    start = time.perf_counter()
    for argument in arguments:
        call(*argument)
        done += 1
        if time.perf_counter() - start > 0.25:
            break
    return (time.perf_counter() - start) * len(arguments) / done, text


class Task:
    def __init__(self, line):
        self.key, size, self.codec, threads, check = line.split()
        self.size, self.threads, self.check = int(size), int(threads), check == "1"


class Blosc2:
    """python-blosc2."""

    def __init__(self, x):
        import blosc2

        self.blosc2, self.x, self.arrays = blosc2, x, {}
        self.target = np.empty_like(x)
        self.codecs = {codec.name.lower(): codec for codec in blosc2.Codec}
        # The items of the workloads in several sizes, and an array of them.
        self.source, self.sized = np.empty(0), None

    def params(self, task):
        blosc2 = self.blosc2
        cparams = blosc2.CParams(codec=self.codecs[task.codec], clevel=5, typesize=4, nthreads=task.threads)
        return {"cparams": cparams, "dparams": blosc2.DParams(nthreads=task.threads)}

    def create(self, items, task, **more):
        cut = {"chunks": (CHUNK_ROWS, SIDE), "blocks": (BLOCK_ROWS, SIDE)}
        return self.blosc2.asarray(items, **cut, **self.params(task), **more)

    def load(self, name):
        with open(os.path.join(FOLDER, name), "rb") as file:
            # Without the copy, the array uses the bytes after they are freed.
            return self.blosc2.ndarray_from_cframe(file.read(), copy=True)

    def array(self, task, name="a"):
        """An array with the codec of the task, set to its number of threads."""
        key = name, task.codec
        if key not in self.arrays:
            path = os.path.join(FOLDER, task.codec)
            if name == "a":
                self.arrays[key] = self.create(self.x, task)
            elif name == "file":
                self.arrays[key] = self.blosc2.open(path, mode="r")
            else:
                self.arrays[key] = self.load(f"{name}-{task.codec}")
        array = self.arrays[key]
        array.schunk.dparams = self.params(task)["dparams"]
        if name != "file":
            array.schunk.cparams = self.params(task)["cparams"]
        return array

    def run(self, task):
        self.blosc2.set_nthreads(task.threads)
        for group in self.reads, self.files, self.writes, self.appends, self.sizes:
            answer = group(task)
            if answer is not None:
                return answer

    def reads(self, task):
        key = task.key
        if key == "read_new":
            a = self.array(task)
            return measure(task, lambda: a[:])
        if key == "read_into":
            a, whole = self.array(task), ((0, 0), (SIDE, SIDE))
            return measure(task, lambda: a.get_slice_numpy(self.target, whole), lambda _: digest([self.target]))
        if key in ("slice_row", "slice_square", "slice_rows"):
            a = self.array(task)
            return measure_each(task, slices(key), lambda i, k, j, l: a[i:k, j:l])
        if key == "items":
            a = self.array(task)
            return measure_each(task, slices(key), lambda i, k, j, l: a[i, j])
        if key in ("orthogonal", "orthogonal_8"):
            a, (rows, columns) = self.array(task), orthogonal(key)
            return measure(task, lambda: a.oindex[rows, columns])
        if key == "points":
            a, (rows, columns) = self.array(task), points()
            return measure(task, lambda: a[rows, columns])

    def files(self, task):
        path, dparams = os.path.join(FOLDER, task.codec), self.params(task)["dparams"]
        if task.key == "read_file":
            file = self.array(task, "file")
            return measure(task, lambda: file[:])
        if task.key in ("open_slice", "map_slice"):
            how = {"mode": "r"} if task.key == "open_slice" else {"mmap_mode": "r"}

            def read(i, k, j, l):
                return self.blosc2.open(path, dparams=dparams, **how)[i:k, j:l]

            return measure_each(task, slices(task.key), read)
        if task.key in ("file_slice", "cached_slice"):
            file = self.array(task, "file")
            return measure_each(task, slices(task.key), lambda i, k, j, l: file[i:k, j:l])

    def writes(self, task):
        if task.key == "create":
            return measure(task, lambda: self.create(self.x, task), lambda array: digest([array[:]]))
        if task.key == "create_file":
            path = os.path.join(FOLDER, "created-by-python")
            create = lambda: self.create(self.x, task, urlpath=path, mode="w")
            return measure(task, create, lambda array: str(array.schunk.cbytes))
        if task.key == "write_chunk":
            a, rows = self.array(task), self.x[:CHUNK_ROWS]
            return measure(task, lambda: a.__setitem__((slice(0, CHUNK_ROWS), slice(None)), rows), lambda _: "")

    def appends(self, task):
        blosc2 = self.blosc2
        if task.key not in ("append_chunks", "append", "appender", "schunk_append"):
            return None
        count, step = (64, PIECE) if task.key in ("append", "appender") else (16, APPEND_CHUNK)
        flat = self.x.reshape(-1)
        pieces = [flat[k * step : (k + 1) * step] for k in range(count)]

        def append():
            array = blosc2.empty((0,), dtype="f4", chunks=(APPEND_CHUNK,), blocks=(APPEND_BLOCK,), **self.params(task))
            for piece in pieces:
                array.append(piece)
            return array

        def append_chunks():
            schunk = blosc2.SChunk(chunksize=4 * APPEND_CHUNK, **self.params(task))
            for piece in pieces:
                schunk.append_data(piece)
            return schunk

        if task.key == "schunk_append":
            return measure(task, append_chunks, lambda schunk: str(schunk.cbytes))
        return measure(task, append, lambda array: digest([array[:]]))

    def sizes(self, task):
        if task.key not in ("write_size", "read_size") or task.size > 2**30:
            return None
        if self.source.size != task.size // 4:
            self.source, self.sized = None, None
            self.source = np.resize(self.x.reshape(-1)[self.x.size // 2 :][: 2**18], task.size // 4)
        source = self.source
        chunk = min(source.size, 2**21)
        cut = {"chunks": (chunk,), "blocks": (min(chunk, 2**16),)}

        def create():
            return self.blosc2.asarray(source, **cut, **self.params(task))

        if task.key == "write_size":
            return measure(task, create, lambda array: str(array.size))
        if self.sized is None:
            self.sized = create()
        array = self.sized
        array.schunk.dparams = self.params(task)["dparams"]
        return measure(task, lambda: array[:])


class Compute(Blosc2):
    """The expressions of python-blosc2.

    In a process of their own: python-blosc2 4.14.1 deadlocks in a reduction with two threads after many other calls.
    """

    def run(self, task):
        self.blosc2.set_nthreads(task.threads)
        operations = {
            "sum": (lambda a: a.sum(), number),
            "mean_0": (lambda a: a.mean(axis=0), number),
            "mean_1": (lambda a: a.mean(axis=1), number),
            "var": (lambda a: a.var(), number),
            "min": (lambda a: a.min(), number),
            "max": (lambda a: a.max(), number),
            "argmin": (lambda a: a.argmin(), number),
            "argmax": (lambda a: a.argmax(), number),
            "any": (lambda a: (a > 1000).any(), number),
            "all": (lambda a: (a < 1000).all(), number),
            "count": (lambda a: (a > THRESHOLD).sum(), number),
            "sum_product": (lambda a: (a * self.array(task, "b") + 1).sum(), number),
            "create_expr": (
                lambda a: (a * 2 + 1).compute(cparams=self.params(task)["cparams"]),
                lambda array: digest([array[:]]),
            ),
            "select": (lambda a: a[a > THRESHOLD][:], lambda items: digest([items])),
            "select_spikes": (lambda a: a[a > 4][:], lambda items: digest([items])),
        }
        if task.key in operations:
            a = self.array(task, "spikes" if task.key == "select_spikes" else "a")
            self.array(task, "b")
            call, result = operations[task.key]
            return measure(task, lambda: call(a), result)


class NumPy:
    """Uncompressed arrays of NumPy, which uses one thread."""

    def __init__(self, x):
        self.x, self.target, self.operands = x, np.empty_like(x), {}

    def operand(self, name):
        if name not in self.operands:
            import blosc2

            self.operands[name] = blosc2.open(os.path.join(FOLDER, f"{name}-lz4"), mode="r")[:]
        return self.operands[name]

    def run(self, task):
        x = self.x
        if task.key == "read_new":
            return measure(task, lambda: x.copy())
        if task.key == "read_into":
            return measure(task, lambda: np.copyto(self.target, x), lambda _: digest([self.target]))
        operations = {
            "sum": (lambda: x.sum(), number),
            "mean_0": (lambda: x.mean(axis=0), number),
            "mean_1": (lambda: x.mean(axis=1), number),
            "var": (lambda: x.var(), number),
            "min": (lambda: x.min(), number),
            "max": (lambda: x.max(), number),
            "argmin": (lambda: x.argmin(), number),
            "argmax": (lambda: x.argmax(), number),
            "any": (lambda: (x > 1000).any(), number),
            "all": (lambda: (x < 1000).all(), number),
            "count": (lambda: np.count_nonzero(x > THRESHOLD), number),
            "sum_product": (lambda: (x * self.operand("b") + 1).sum(), number),
            "create_expr": (lambda: x * 2 + 1, lambda items: digest([items])),
            "select": (lambda: x[x > THRESHOLD], lambda items: digest([items])),
        }
        if task.key == "sum_product":
            self.operand("b")
        if task.key == "select_spikes":
            spikes = self.operand("spikes")
            return measure(task, lambda: spikes[spikes > 4])
        if task.key in operations:
            return measure(task, *operations[task.key])


class Hdf5:
    """h5py with the Blosc2 filter of hdf5plugin, which uses one thread."""

    def __init__(self, x):
        import h5py
        import hdf5plugin

        self.h5py, self.plugin, self.x, self.files = h5py, hdf5plugin, x, {}
        self.target = np.empty_like(x)

    def path(self, codec):
        return os.path.join(FOLDER, f"{codec}.h5")

    def create(self, codec, path):
        file = self.h5py.File(path, "w")
        filters = self.plugin.Blosc2(cname=codec, clevel=5, filters=self.plugin.Blosc2.SHUFFLE)
        file.create_dataset("a", data=self.x, chunks=(CHUNK_ROWS, SIDE), **filters)
        return file

    def dataset(self, task):
        if task.codec not in self.files:
            path = self.path(task.codec)
            self.create(task.codec, path).close()
            self.files[task.codec] = self.h5py.File(path, "r")
        return self.files[task.codec]["a"]

    def run(self, task):
        if task.threads > 1:
            return None
        if task.key == "read_file":
            a = self.dataset(task)
            return measure(task, lambda: a[:])
        if task.key in ("slice_row", "slice_square", "slice_rows", "file_slice"):
            a = self.dataset(task)
            return measure_each(task, slices(task.key), lambda i, k, j, l: a[i:k, j:l])
        if task.key == "open_slice":
            self.dataset(task)

            def read(i, k, j, l):
                with self.h5py.File(self.path(task.codec), "r") as file:
                    return file["a"][i:k, j:l]

            return measure_each(task, slices(task.key), read)


def number(value):
    """The sum of the items of a result, or the result."""
    return repr(float(np.sum(value, dtype="f8")))


def main():
    x = items()
    print(digest([x]), flush=True)
    library = {"blosc2": Blosc2, "compute": Compute, "numpy": NumPy, "hdf5": Hdf5}[LIBRARY](x)
    for line in sys.stdin:
        answer = library.run(Task(line))
        print("" if answer is None else f"{answer[0]} {answer[1]}", flush=True)


main()
