"""Makes arrays and reductions of them, and computes the expected results with NumPy.

Arguments: the number of reductions, the seed. Writes two files to the current folder: `data` has frames and expected
results as bytes, `cases.json` has a line of JSON for each array, which refers to `data` by offsets and lengths.
"""

import json
import math
import random
import sys
import warnings

import blosc2
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")

CASES_OF_AN_ARRAY = 4
DTYPES = ["|b1", "|i1", "|u1"]
DTYPES += [order + kind for kind in "i2 i4 i8 u2 u4 u8 f2 f4 f8 c8 c16".split() for order in "<>"]
OPERATIONS = "sum prod mean var std min max argmin argmax any all count_nonzero".split()
# The bits of the mantissa with the leading one, the exponent of the lowest bit of all, the largest exponent.
FORMATS = {"f2": (11, -24, 15), "f4": (24, -149, 127), "f8": (53, -1074, 1023)}

rng = random.Random(int(sys.argv[2]))
numbers = np.random.default_rng(int(sys.argv[2]))


# Arrays.


def random_shape():
    kind = rng.randrange(20)
    if kind == 0:
        return ()
    if kind == 1:
        return (1,) * rng.randint(1, 6)
    if kind == 2:
        shape = [rng.randint(0, 4) for _ in range(rng.randint(1, 6))]
        shape[rng.randrange(len(shape))] = 0
        return tuple(shape)
    if kind < 7:
        return (rng.choice([rng.randint(1, 40), rng.randint(1, 2500)]),)
    if kind < 12:
        # Reductions treat rows and short rows differently.
        return rng.choice([(rng.randint(1, 90), rng.randint(1, 30)), (rng.randint(1, 9), rng.randint(1, 300))])
    ndim = rng.randint(3, 6)
    most = {3: 13, 4: 7, 5: 5, 6: 4}[ndim]
    return tuple(rng.randint(1, most) for _ in range(ndim))


def random_chunks(shape):
    """Chunk and block shapes, with at most about 60 chunks."""
    chunks = [rng.choice([size, rng.randint(1, max(size, 1))]) for size in shape]
    while math.prod(-(-size // chunk) for size, chunk in zip(shape, chunks) if chunk) > 60:
        axis = rng.randrange(len(shape))
        chunks[axis] = min(2 * chunks[axis], shape[axis])
    blocks = [rng.choice([chunk, rng.randint(min(chunk, 1), chunk)]) for chunk in chunks]
    return [max(chunk, 1) for chunk in chunks], [max(block, 1) for block in blocks]


def random_reals(dtype, shape, operation):
    """Floating-point numbers of a dtype."""
    bits, lowest, highest = FORMATS[dtype.str[1:]]
    kind = rng.randrange(9)
    if operation == "prod" and rng.randrange(3):
        kind = 9
    if kind < 2:
        items = numbers.standard_normal(shape) * 100
    elif kind == 2:
        items = numbers.integers(-3, 4, shape).astype("f8")
    elif kind == 3:
        items = np.where(numbers.integers(0, 2, shape), 0.0, -0.0)
    elif kind < 7:
        # All magnitudes, or a few tens of binades. The mantissas have many bits or few.
        span = highest - lowest if kind == 4 else rng.randint(1, 90)
        start = lowest if kind == 4 else rng.randint(lowest, max(highest - span, lowest))
        exponents = numbers.integers(start, start + span, shape)
        mantissas = numbers.uniform(-1, 1, shape)
        if rng.randrange(2):
            mantissas = np.sign(mantissas) * (1 + numbers.integers(0, 4, shape) / 4)
        items = np.ldexp(mantissas, exponents)
        if rng.randrange(2) and items.ndim:
            # Most items cancel out.
            flat = items.reshape(-1)
            half = len(flat) // 2
            flat[half : 2 * half] = -flat[:half]
            numbers.shuffle(flat)
    elif kind < 9:
        items = numbers.integers(-5, 6, shape) / 2
    else:
        # The products of these are near 1, or near the smallest numbers.
        items = numbers.uniform(0.7, 1.4, shape) * numbers.choice([1, 1, 1, -1], shape)
        if rng.randrange(2) and items.ndim and items.size:
            start = bits - rng.choice([rng.randint(0, bits), rng.randint(0, 4)])
            items.reshape(-1)[0] = math.ldexp(rng.uniform(1, 2), lowest + start)
    items = np.asarray(items).astype(dtype)
    if rng.randrange(3) == 0:
        some = rng.choice([[np.nan], [np.inf], [-np.inf], [-0.0, 0.0], [np.inf, -np.inf], [np.nan, np.inf, -0.0]])
        chosen = numbers.random(shape) < rng.choice([0.002, 0.05, 0.5])
        items = np.where(chosen, numbers.choice(some, shape), items).astype(dtype)
    return items


def random_items(dtype, shape, operation):
    kind, size = dtype.kind, dtype.itemsize
    if kind == "b":
        return numbers.random(shape) < rng.choice([0.0, 0.01, 0.5, 0.99, 1.0])
    if kind in "iu":
        if rng.randrange(3) == 0:
            return numbers.integers(0 if kind == "u" else -3, 4, shape).astype(dtype)
        info = np.iinfo(dtype)
        items = numbers.integers(info.min, info.max, shape, dtype.newbyteorder("=").type, endpoint=True)
        if rng.randrange(3) == 0:
            items = np.where(numbers.integers(0, 2, shape), info.max, info.min)
        return np.asarray(items).astype(dtype)
    if kind == "f":
        return random_reals(dtype, shape, operation)
    if operation == "prod":
        # Near 1, so that no part of the product overflows; see `complex_product`.
        angles = numbers.uniform(0, 7, shape)
        return np.asarray(numbers.uniform(0.98, 1.02, shape) * np.exp(1j * angles)).astype(dtype)
    part = np.dtype(f"{dtype.byteorder}f{size // 2}")
    items = np.empty(shape, dtype)
    items.real = random_reals(part, shape, operation)
    items.imag = random_reals(part, shape, operation)
    return items


def random_box(shape):
    box = []
    for size in shape:
        start = rng.randint(0, size)
        box.append(slice(start, rng.randint(start, size)))
    return tuple(box)


def random_array(dtype, operation):
    """A compressed array, and the same items in NumPy."""
    shape = random_shape()
    chunks, blocks = random_chunks(shape)
    cut = dict(chunks=chunks, blocks=blocks) if shape else {}
    items = random_items(dtype, shape, operation)
    kind = rng.randrange(3)
    if kind == 0 or items.size == 0 or not shape:
        array = blosc2.asarray(items, **cut)
    else:
        # Some chunks are written to; the others store a repeated item.
        if dtype.kind in "fc" and rng.randrange(4) == 0 and operation != "prod":
            value = np.nan
        else:
            value = rng.choice([items.reshape(-1)[0], 0])
        if dtype.str == "<f8" and value != value:
            array = blosc2.nans(shape, dtype=dtype, **cut)
        elif value == 0:
            array = blosc2.zeros(shape, dtype=dtype, **cut)
            value = 0
        else:
            array = blosc2.full(shape, np.array(value, dtype)[()], dtype=dtype, **cut)
        model = np.full(shape, value, dtype)
        for _ in range(rng.randint(0, 3)):
            box = random_box(shape)
            if items[box].size:
                array[box] = np.ascontiguousarray(items[box])
                model[box] = items[box]
        items = model
    assert array.dtype == dtype and array.shape == shape
    stored = np.asarray(array[()] if shape else array[...])
    assert np.array_equal(stored, items, equal_nan=dtype.kind in "fc"), (dtype, shape, cut)
    return array, items


# Exact results.


def rounded(numerator, exponent, denominator, format):
    """The number `numerator * 2**exponent / denominator`, rounded once to a format, to nearest even."""
    bits, lowest, highest = FORMATS[format]
    sign = -1.0 if numerator < 0 else 1.0
    rest = abs(numerator)
    if rest == 0:
        return 0.0
    # The quotient has at least one bit more than the result.
    shift = bits + 2 - (rest.bit_length() - denominator.bit_length())
    if shift >= 0:
        quotient, remainder = divmod(rest << shift, denominator)
    else:
        quotient, remainder = divmod(rest, denominator << -shift)
    exponent -= shift
    unit = max(exponent + quotient.bit_length() - bits, lowest)
    dropped = unit - exponent
    tail = quotient & ((1 << dropped) - 1)
    quotient >>= dropped
    half = 1 << (dropped - 1)
    if tail > half or tail == half and (remainder or quotient & 1):
        quotient += 1
    if quotient.bit_length() + unit > highest + 1:
        return sign * math.inf
    return sign * math.ldexp(quotient, unit)


class Exact:
    """Items as integers times one power of two, and what is not finite."""

    def __init__(self, row):
        self.count = len(row)
        if row.dtype.kind in "biu":
            self.exponent, self.items, self.special = 0, [int(item) for item in row.tolist()], None
            return
        row = row.astype("f8")
        finite = np.isfinite(row)
        self.special = None if finite.all() else float(np.sum(row[~finite]))
        fractions, exponents = np.frexp(row[finite])
        mantissas = np.ldexp(fractions, 53).astype("i8").tolist()
        exponents = np.where(fractions == 0, 2000, exponents - 53).tolist()
        self.exponent = min(exponents, default=0)
        self.items = [number << (at - self.exponent) for number, at in zip(mantissas, exponents) if number]

    def sum(self, format, divisor=1):
        if self.special is not None:
            return self.special
        return rounded(sum(self.items), self.exponent, divisor, format) if divisor else math.nan

    def spread(self):
        """The number of items times the sum of squares, minus the square of the sum."""
        return self.count * sum(item * item for item in self.items) - sum(self.items) ** 2

    def product(self, row, format):
        row = row.astype("f8")
        sign = -1.0 if np.signbit(row).sum() & 1 else 1.0
        if np.isnan(row).any() or np.isinf(row).any() and (row == 0).any():
            return math.nan
        if np.isinf(row).any():
            return sign * math.inf
        if (row == 0).any():
            return sign * 0.0
        fractions, exponents = np.frexp(row)
        mantissas = np.abs(np.ldexp(fractions, 53)).astype("i8").tolist()
        total = int(exponents.sum()) - 53 * len(row)
        return sign * rounded(multiplied(mantissas), total, 1, format)


def multiplied(numbers):
    """The product of integers; fast because the factors have similar lengths."""
    if len(numbers) < 8:
        return math.prod(numbers)
    half = len(numbers) // 2
    return multiplied(numbers[:half]) * multiplied(numbers[half:])


def variance(parts, count, ddof, format):
    """The sum of the variances of the parts: one, or the real and the imaginary one."""
    if count == 0 or any(part.special is not None for part in parts):
        return math.nan
    lowest = min(part.exponent for part in parts)
    spread = sum(part.spread() << 2 * (part.exponent - lowest) for part in parts)
    divisor = count * max(count - ddof, 0)
    if divisor == 0:
        return math.inf if spread else math.nan
    return rounded(spread, 2 * lowest, divisor, format)


def parts_of(row):
    return [row.real, row.imag] if row.dtype.kind == "c" else [row]


def part_format(dtype):
    """The format of means: that of floating-point items or of their parts, otherwise f8."""
    if dtype.kind in "biu":
        return "f8"
    return f"f{dtype.itemsize // (2 if dtype.kind == 'c' else 1)}"


def exact_row(operation, row, ddof):
    format = part_format(row.dtype)
    parts = [Exact(part) for part in parts_of(row)]
    if operation == "sum":
        found = [part.sum(format) for part in parts]
    elif operation == "mean":
        found = [part.sum(format, len(row)) for part in parts]
    elif operation == "var":
        return variance(parts, len(row), ddof, format)
    elif operation == "std":
        # The square root of the variance, which is rounded to f8.
        return math.sqrt(variance(parts, len(row), ddof, "f8"))
    else:
        return parts[0].product(row, format)
    return found[0] if len(found) == 1 else complex(*found)


def check_anchor(operation, wide, row, ddof, exact, format):
    """Checks that the result of NumPy in f8 is within the error bound of a summation in any order."""
    size = np.abs(row.astype("c16"))
    if not len(row) or not size.max() < 1e140:
        return
    count, eps = len(row), 2.0**-53
    if operation in ("sum", "mean"):
        within = (count + 2) * eps * size.sum() / (1 if operation == "sum" else count)
    elif operation in ("var", "std"):
        if count <= ddof:
            return
        # The rounding of the sum of squares, and the errors of the mean and of the items in f8, in each distance.
        spread = abs(wide) ** (2 if operation == "std" else 1)
        error = (count + 4) * eps
        apart = error * size.sum() / count
        squares = spread * (count - ddof)
        within = 2 * error * spread + (2 * apart * math.sqrt(count * squares) + count * apart**2) / (count - ddof)
        if operation == "std":
            within = min(math.sqrt(within), within / wide if wide else math.inf)
    else:
        return
    # The rounding of the exact result.
    bits, lowest, highest = FORMATS[format]
    within += abs(wide) * 2.0**-bits + math.ldexp(1, lowest)
    largest = math.ldexp(2 - 2.0 ** (1 - bits), highest)
    assert abs(wide) >= largest or abs(wide - exact) <= within, (operation, wide, exact, within, row)


def tolerance(operation, row, ddof, exact, format):
    """How far a result may be from the exact one, by the documentation of `LazyExpr`; None if sums may overflow."""
    parts = [np.abs(part.astype("f8")) for part in parts_of(row)]
    if not len(row) or not all(np.isfinite(part).all() for part in parts):
        return 0.0
    bits, lowest, _ = FORMATS[format]
    largest = max(part.max() for part in parts)
    rounding = max(abs(exact.real), abs(exact.imag)) * 2.0 ** (2 - bits) + math.ldexp(1, lowest)
    if not math.isfinite(rounding):
        # The exact result is not finite.
        return 0.0 if largest < 1e150 else None
    if operation in ("sum", "mean"):
        if largest * len(row) >= 1e308:
            return None
        error = max(part.sum() for part in parts) * 2.0 ** (-64 if format == "f8" else -46)
        return rounding + error / (1 if operation == "sum" else len(row))
    if largest >= 1e150:
        # The squares overflow.
        return None
    variance = exact if operation == "var" else exact * exact
    # Squares may underflow.
    error = variance * 2.0**-36 + 2.0**-1060
    if operation == "std":
        error = min(math.sqrt(error), error / exact if exact else math.inf)
    return rounding + error


def signed_zeros(operation, rows, found):
    """The sign of a zero: of zeros of both signs `min` is the negative one, and `max` the positive one."""
    if rows.dtype.kind == "c":
        # Of the items that are equal to the result, the one with the smallest or largest signs.
        pick = min if operation == "min" else max
        for at, row in enumerate(rows):
            equal = row[row == found[at]].tolist()
            if equal:
                key = lambda item: (math.copysign(1, item.real), math.copysign(1, item.imag))
                found[at] = pick(equal, key=key)
        return found
    negative = operation == "min"
    has = ((rows == 0) & (np.signbit(rows) == negative)).any(axis=1)
    return np.where((found == 0) & has, -0.0 if negative else 0.0, found).astype(found.dtype)


def complex_product(rows):
    """Products in c16, and how far others may be away.

    A product of `n` factors in f8 has, in any order, a relative error of about sqrt(5) * n * 2**-53. The other result
    has one of this size, too, and is rounded to the dtype.
    """
    found = np.prod(rows.astype("c16"), axis=1)
    relative = 5 * rows.shape[1] * 2.0**-53 + np.finfo(rows.dtype).eps
    return found.astype(rows.dtype.newbyteorder("<")), (np.abs(found) * relative).tolist()


def expected_of(operation, items, axes, keepdims, ddof):
    """The shape and the bytes of the result, the tolerances or None; None if an error is expected.

    A tolerance is that of one result, or None if any result is possible.
    """
    ndim = items.ndim
    reduced = list(range(ndim)) if axes is None else sorted(axis % ndim for axis in axes)
    kept = [axis for axis in range(ndim) if axis not in reduced]
    shape = [1 if axis in reduced else items.shape[axis] for axis in range(ndim) if keepdims or axis in kept]
    count = math.prod(items.shape[axis] for axis in reduced)
    # The items of each result, in C order.
    rows = items.transpose(kept + reduced).reshape(math.prod(shape), count)
    dtype, within = items.dtype, None
    if operation in ("min", "max", "argmin", "argmax") and count == 0:
        if len(rows):
            try:
                getattr(np, operation)(items)
            except ValueError:
                return None
            raise AssertionError("NumPy has to fail")
        # No result, therefore no error.
        found = np.zeros(0, dtype.newbyteorder("<") if operation in ("min", "max") else "<u8")
    elif operation in ("any", "all", "count_nonzero"):
        found = np.asarray(getattr(np, operation)(rows, axis=1))
        again = np.asarray(getattr(np, operation)(items, axis=tuple(reduced))).reshape(-1)
        assert np.array_equal(found, again)
        found = found.astype("<u8" if operation == "count_nonzero" else "|b1")
    elif operation in ("argmin", "argmax"):
        found = getattr(np, operation)(rows, axis=1).astype("<u8")
    elif operation in ("min", "max"):
        found = getattr(np, operation)(rows, axis=1).astype(dtype.newbyteorder("<"))
        if dtype.kind in "fc":
            is_nan = np.isnan(found)
            found = signed_zeros(operation, rows, found)
            found[is_nan] = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    elif operation in ("sum", "prod") and dtype.kind in "biu":
        found = getattr(np, operation)(rows, axis=1)
        found = found.astype("<u8" if dtype.kind == "u" else "<i8")
    elif operation == "prod" and dtype.kind == "c":
        found, within = complex_product(rows)
    else:
        format = part_format(dtype)
        is_complex = dtype.kind == "c" and operation in ("sum", "mean")
        exact = [exact_row(operation, row, ddof) for row in rows]
        found = np.array(exact, "c16" if is_complex else "f8")
        wide = rows.astype("c16" if dtype.kind == "c" else "f8")
        options = dict(ddof=ddof) if operation in ("var", "std") else {}
        wide = np.atleast_1d(getattr(np, operation)(wide, axis=1, **options))
        for row, by_numpy, one in zip(rows, wide, found):
            check_anchor(operation, by_numpy, row, ddof, one, format)
        if operation in ("var", "std") or operation != "prod" and dtype.kind in "fc":
            within = [tolerance(operation, row, ddof, one, format) for row, one in zip(rows, exact)]
        found = found.astype(f"<c{2 * int(format[1])}" if is_complex else "<" + format)
        # One NaN for all, without a sign.
        if is_complex:
            found.real[np.isnan(found.real)] = np.nan
            found.imag[np.isnan(found.imag)] = np.nan
        else:
            found[np.isnan(found)] = np.nan
    return shape, found.tobytes(), within


# Cases.


def random_view(items):
    """The slices along the axes and the order of axes of a view, and its items."""
    if items.ndim == 0 or rng.randrange(2):
        return None, None, items
    slices = []
    for axis, size in enumerate(items.shape):
        start = rng.choice([0, rng.randint(0, size // 2)])
        stop = rng.choice([size, rng.randint(start, size)])
        step = rng.choice([1, 1, 1, -1, 2, -2, 3, 7])
        slices.append((start, stop, step))
        before = (slice(None),) * axis
        items = items[before + (slice(start, stop),)][before + (slice(None, None, step),)]
    order = None
    if rng.randrange(3) == 0:
        order = rng.sample(range(items.ndim), items.ndim)
        items = items.transpose(order)
    return slices, order, items


def random_axes(ndim):
    if ndim == 0 or rng.randrange(3) == 0:
        return None
    axes = rng.sample(range(ndim), rng.choice([1, 1, 1, rng.randint(0, ndim)]))
    return [axis - ndim if rng.randrange(3) == 0 else axis for axis in axes]


def main():
    left = int(sys.argv[1])
    with open("data", "wb") as data, open("cases.json", "w") as lines:

        def put(content):
            start = data.tell()
            data.write(content)
            return start, len(content)

        while left > 0:
            dtype = np.dtype(rng.choice(DTYPES))
            first = rng.choice(OPERATIONS)
            array, items = random_array(dtype, first)
            cases = []
            while left > 0 and len(cases) < CASES_OF_AN_ARRAY:
                # Products of other items would overflow in parts.
                operation = first if dtype.kind == "c" and "prod" in (first,) else rng.choice(OPERATIONS)
                if operation == "prod" and first != "prod" and dtype.kind == "c":
                    continue
                if not cases:
                    operation = first
                slices, order, seen = random_view(items)
                axes = random_axes(seen.ndim)
                keepdims = axes is not None and rng.randrange(3) == 0
                ddof = rng.choice([0, 0, 1, 2])
                expected = expected_of(operation, seen, axes, keepdims, ddof)
                case = dict(operation=operation, axes=axes, keepdims=keepdims, ddof=ddof)
                case.update(slices=slices, order=order, fails=expected is None)
                if expected is not None:
                    case.update(shape=expected[0], expected=put(expected[1]), within=expected[2])
                    case.update(part=int(part_format(seen.dtype)[1]))
                cases.append(case)
                left -= 1
            chunks, blocks = random_chunks(items.shape)
            line = dict(dtype=dtype.str[1:], shape=items.shape, frame=put(array.to_cframe()), cases=cases)
            line.update(chunks=array.chunks, blocks=array.blocks, other_chunks=chunks, other_blocks=blocks)
            lines.write(json.dumps(line) + "\n")


main()
