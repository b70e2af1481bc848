"""Writes arrays with the package `blosc2`, and what NumPy prints of a selection of each.

Arguments: seed, number of random cases; with the seed 0 some others follow. Each line of stdout is a case in JSON: the
file, the arguments of `blosc2 cat --text`, and the expected output.
"""

import json
import random
import sys
import unicodedata

import blosc2
import numpy as np

seed, count = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(seed)
random.seed(seed)

SHAPES = [
    (), (1,), (0,), (7,), (30,), (1000,), (1001,), (3000,), (2, 3), (0, 3), (3, 0, 2), (7, 9), (1, 1, 1, 2),
    (40, 40), (6, 400), (400, 6), (7, 7, 30), (2, 3, 500), (3, 2, 4, 5), (11, 10, 9, 2), (2,) * 16, (1,) * 16,
]  # fmt: skip
SCALARS = [
    "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "U1", "U5", "S1", "S5",
    "M8[Y]", "M8[M]", "M8[W]", "M8[D]", "M8[h]", "M8[m]", "M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "M8[ps]", "M8[fs]",
    "M8[as]", "M8[25s]", "M8[7D]", "m8[D]", "m8[s]", "m8[3us]", "m8", "V1", "V3",
]  # fmt: skip
TEXTS = ["", "a", "it's", '"', "'\"", "\\", "\n\t\r", "\x7f", "\u00e9", "e\u0301", "\u65e5", "\U0001f600", "\u200b",
         "\u00a0", "\ud800", "\x00z", "0", "b c"]  # fmt: skip


def floats(dtype, size):
    """Numbers of different sizes, with special values."""
    info = np.finfo(dtype)
    kind = random.randrange(10)
    with np.errstate(all="ignore"):
        if kind == 0:
            values = rng.integers(-100, 100, size).astype(dtype)
        elif kind == 1:
            values = (rng.integers(-1000, 1000, size) / 8).astype(dtype)
        elif kind == 2:
            values = rng.random(size).astype(dtype)
        elif kind == 3:
            values = (rng.random(size) * 10.0 ** rng.integers(-5, 9)).astype(dtype)
        elif kind == 4:
            values = rng.integers(0, 256, (size, dtype.itemsize), dtype="u1").view(dtype).reshape(size)
        elif kind == 5:
            values = (rng.random(size) * 10.0 ** rng.uniform(-3, 3, size)).astype(dtype)
        elif kind == 6:
            values = np.round(rng.random(size) * 100, random.randrange(6)).astype(dtype)
        elif kind == 7:
            values = np.exp2(rng.integers(info.minexp - 20, info.maxexp, size)).astype(dtype)
        elif kind == 8:
            values = (rng.integers(0, 1 << 24, size) / 4).astype(dtype)
        else:
            values = np.full(size, rng.random(), dtype)
        if random.random() < 0.3 and size:
            special = [0.0, -0.0, np.nan, np.inf, -np.inf, info.max, info.tiny, info.smallest_subnormal, 1e8, 1e6, 1e3,
                       1e-4, 1e-5, 99999999.5, 0.1, 1e300, 1e-300, 1 / 3, 2.0625, 1048576.25]  # fmt: skip
            for place in rng.integers(0, size, random.choice([1, 3, size])):
                values[place] = np.array(random.choice(special)).astype(dtype)
    return values


def items(dtype, size):
    """An array of one axis."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return items(base, size * int(np.prod(shape))).reshape((size, *shape))
    if dtype.names is not None:
        values = np.zeros(size, dtype)
        for name in dtype.names:
            values[name] = items(dtype[name], size)
        return values
    if dtype.kind == "f":
        return floats(dtype.newbyteorder("="), size)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        values = np.zeros(size, dtype.newbyteorder("="))
        values.real, values.imag = floats(part, size), floats(part, size)
        return values
    if dtype.kind in "US":
        texts = [random.choice(TEXTS) + random.choice(TEXTS) for _ in range(size)]
        if dtype.kind == "S":
            return np.array([text.encode("utf-8", "surrogatepass") for text in texts], dtype)
        return np.array(texts, dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(dtype)
    raw = rng.integers(0, 256, (size, dtype.itemsize), dtype="u1")
    native = dtype.newbyteorder("=")
    if dtype.kind == "V":
        return raw.view(native).reshape(size)
    if dtype.kind in "Mm":
        # NumPy overflows with larger numbers.
        limit = random.choice([10, 10**5, 10**10, 10**17])
        values = rng.integers(-limit, limit, size).view(f"{dtype.kind}8[{np.datetime_data(dtype)[0]}]")
        values = values.view("i8").view(native)
        if random.random() < 0.3 and size:
            values[rng.integers(0, size, random.choice([1, size]))] = "NaT"
        return values
    kind = random.randrange(4)
    info = np.iinfo(native)
    if kind == 0:
        return raw.view(native).reshape(size)
    if kind == 1:
        return rng.integers(max(info.min, -10), 10, size).astype(native)
    if kind == 2:
        return np.array(random.choices([info.min, info.max, 0, 1], k=size), native)
    return np.array([random.choice([0, info.max // random.randrange(1, 1000)]) for _ in range(size)], native)


def scalar():
    kind = random.choice(SCALARS)
    # NumPy does not recognize NaT in `>m8` without a unit.
    return "<m8" if kind == "m8" else random.choice("<>") + kind


def structure(depth):
    fields = []
    for number in range(random.randrange(1, 4)):
        kind = structure(depth - 1) if depth and random.random() < 0.2 else scalar()
        shape = random.choice([(), (), (2,), (2, 3), (1,)])
        if random.random() < 0.01:
            shape = (1200,)
        fields.append((f"f{number}", kind, shape))
    return fields


def selection(shape):
    """A slice as text and as an index of NumPy."""
    texts, index = [], []
    for size in shape[: random.randrange(len(shape) + 1)]:
        kind = random.randrange(4)
        if kind == 0 and size:
            number = random.randrange(-size, size)
            texts.append(str(number))
            index.append(number)
        else:
            parts = [random.choice([None, random.randrange(-size - 2, size + 3)]) for _ in range(2)]
            step = random.choice([None, 1, 2, -1, -3, 5])
            texts.append(":".join("" if part is None else str(part) for part in [*parts, step]))
            index.append(slice(*parts, step))
    return ",".join(texts), tuple(index)


def random_case():
    """An array, the arguments that select a part of it, and this part."""
    shape = random.choice(SHAPES)
    dtype = np.dtype(structure(2) if random.random() < 0.25 else scalar())
    array = items(dtype, int(np.prod(shape))).astype(dtype).reshape(shape)
    arguments, index = [], ()
    if random.random() < 0.6 and shape:
        text, index = selection(shape)
        arguments = [f"--slice={text}"] if text else []
    if random.random() < 0.1 and array[index].size < 5000:
        arguments.append("--all")
    return array, arguments, index


def as_item(values):
    """A structure that is not in an array, and so prints each of its values as a scalar."""
    item = np.zeros((), [("values", values.dtype, values.shape)])
    item["values"] = values
    return item, ["--all"], ()


def special_cases():
    """All numbers of two bytes, many others, and all characters that this Python knows."""
    yield as_item(np.arange(65536, dtype="<u2").view("<f2"))
    for dtype in ["<f4", "<f8"]:
        size = int(dtype[-1])
        yield as_item(rng.integers(0, 256, (20_000, size), dtype="u1").view(dtype).ravel())
        info = np.finfo(dtype)
        yield as_item(np.exp2(np.arange(info.minexp - info.nmant, info.maxexp, dtype=dtype)))
        quotients = rng.integers(0, 1 << 24, 10_000) / np.exp2(rng.integers(0, 30, 10_000))
        yield as_item(quotients.astype(dtype))
    codes = [code for code in range(1, 0x110000) if unicodedata.category(chr(code)) != "Cn"]
    # NumPy takes a time that is quadratic in the length of the text.
    for start in range(0, len(codes), 10_000):
        yield np.array(codes[start : start + 10_000], "<u4").view("<U1"), ["--all"], ()


cases = [random_case() for _ in range(count)]
for number, (array, arguments, index) in enumerate([*cases, *(special_cases() if seed == 0 else [])]):
    name = f"{number}.b2nd"
    # A dtype such as `V3` is stored as a structure with one field.
    array = array.view(blosc2.asarray(array, urlpath=name, mode="w").dtype)[index]
    if isinstance(array, np.ndarray) and array.shape == ():
        # The item: a 0-d array of bytes prints as `np.bytes_(...)`.
        array = array[()]
    np.set_printoptions(threshold=sys.maxsize if "--all" in arguments else 1000)
    text = str(array)
    if isinstance(array, np.str_):
        # Control characters must not reach the terminal.
        text = "".join("\ufffd" if unicodedata.category(each) in ["Cc", "Cs"] else each for each in text)
    print(json.dumps([name, arguments, text]))
