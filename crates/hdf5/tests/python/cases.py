"""The data of the tests: NumPy arrays of several dtypes, shapes and contents."""

import numpy as np

COMPOUND = np.dtype([("id", "<i4"), ("name", "S5"), ("at", "<f8", (2,))])
DTYPES = ["i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", "<u8", "<f2", "<f4", ">f4", "<f8", ">f8", "S1", "S7", "?",
          "<c16", COMPOUND, ("<i4", (3,))]
SHAPES = {1: ((1000,), (300,)), 2: ((50, 41), (16, 12)), 3: ((13, 11, 10), (5, 7, 4)), 4: ((5, 6, 7, 4), (2, 5, 3, 4))}


def items(dtype, shape, seed=0):
    """Compressible items of any dtype without pointers."""
    dtype = np.dtype(dtype)
    shape = tuple(shape) + dtype.shape
    dtype = dtype.base
    random = np.random.default_rng(seed)
    if dtype.names:
        array = np.zeros(shape, dtype)
        for name in dtype.names:
            array[name] = items(dtype[name], shape, seed + 1)
        return array
    count = int(np.prod(shape))
    numbers = np.arange(count) // 3 + random.integers(0, 3, count)
    if dtype.kind == "S":
        return np.array([str(number)[: dtype.itemsize] for number in numbers], dtype).reshape(shape)
    if dtype.kind == "b":
        return (numbers % 2).astype(dtype).reshape(shape)
    if dtype.kind in "fc":
        numbers = numbers / 8 + 0.5
    return numbers.astype(dtype).reshape(shape)
