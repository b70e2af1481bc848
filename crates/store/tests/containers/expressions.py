"""Writes expressions with python-blosc2, and the results that NumPy computes for them."""

import json
import os
import re
import sys
import warnings

import blosc2
import numpy as np

warnings.filterwarnings("ignore")
SEED, EXPRESSIONS = int(sys.argv[1]), 300
rng = np.random.default_rng(SEED)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
SHAPES = [(4, 3, 7), (4, 1, 7), (3, 7), (3, 1), (7,), (1,)]

operands = {}
for dtype in map(np.dtype, DTYPES):
    for shape in SHAPES:
        if dtype == bool:
            items = rng.random(shape) > 0.5
        elif dtype.kind in "iu":
            items = rng.integers(0 if dtype.kind == "u" else -12, 13, shape).astype(dtype)
            if items.size > 4:
                items.flat[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        else:
            items = (rng.standard_normal(shape) * 4).astype(dtype)
            if items.size > 4:
                items.flat[:4] = 0, np.nan, np.inf, -2
        name = f"{dtype.kind}{dtype.itemsize}_{'_'.join(map(str, shape))}"
        chunks = [int(rng.integers(1, size + 1)) for size in shape]
        blocks = [int(rng.integers(1, size + 1)) for size in chunks]
        array = blosc2.asarray(items, urlpath=f"{name}.b2nd", chunks=chunks, blocks=blocks)
        operands[name] = (items, array)
names = list(operands)


def clip(x, low, high):
    return np.minimum(np.maximum(x, low), high)


def reciprocal(x):
    # Python's Blosc2 divides, also integers.
    return np.reciprocal(x if x.dtype.kind == "f" else x.astype("f8"))


space = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
space |= {"clip": clip, "reciprocal": reciprocal}
space |= {name: items for name, (items, _) in operands.items()}


def pick(options):
    return options[int(rng.integers(len(options)))]


def leaf():
    if rng.random() < 0.2:
        return pick(["2", "1", "3", "0.5", "1.5", "-1", "7"])
    return pick(names)


def exact(depth):
    """An expression of operations whose results NumPy and IEEE 754 define bit by bit, except the signs of zeros."""
    if depth == 0:
        # Python computes operations of two numbers, before NumPy.
        return pick(names)
    one, other = exact(depth - 1), pick([leaf(), exact(int(rng.integers(depth)))])
    kind = int(rng.integers(10))
    if kind < 4:
        return f"({one} {pick(['+', '-', '*', '/', '//', '%'])} {other})"
    if kind == 4:
        return f"({one} {pick(['<', '<=', '>', '>=', '==', '!='])} {other})"
    if kind == 5:
        return f"({one} {pick(['&', '|', '^', '<<', '>>'])} {other})"
    if kind == 6:
        return f"where({one} > {other}, {one}, {pick([other, '0', '1.5'])})"
    if kind == 7:
        functions = ["abs", "floor", "ceil", "trunc", "sqrt", "square", "isnan", "isinf", "isfinite", "negative",
                     "sign", "round", "signbit", "reciprocal"]
        return f"{pick(functions)}({one})"
    if kind == 8:
        functions = ["minimum", "maximum", "add", "subtract", "multiply", "divide", "floor_divide", "remainder",
                     "equal", "less", "copysign", "nextafter"]
        return f"{pick(functions)}({one}, {other})"
    return pick([f"(-{one})", f"(~({one} > {other}))", f"clip({one}, -1, 2)", f"({one} ** 2)",
                 f"(({one} > 1) & ({other} < 2))"])


def axes(text, method):
    ndim = eval(text, space).ndim
    options = []
    if ndim and rng.random() < 0.7:
        count = int(rng.integers(1, ndim + 1))
        chosen = [int(axis) for axis in rng.permutation(ndim)[:count]]
        chosen = [axis - ndim if rng.random() < 0.3 else axis for axis in chosen]
        options.append(f"axis={chosen[0] if count == 1 else tuple(chosen)}")
    if rng.random() < 0.4:
        options.append("keepdims=True")
    if method:
        return f"{text}.{method}({', '.join(options)})"
    return options


REAL = ["sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "exp",
        "expm1", "log", "log1p", "log2", "log10"]


def ulps(expected, count):
    """The distance to which functions of the standard libraries can differ."""
    return np.spacing(np.abs(expected)) * count


def generate(number):
    """An expression and the largest difference of its results; None if they are equal bit by bit."""
    if number < 180:
        return exact(int(rng.integers(1, 4))), lambda expected: None
    if number < 230:
        # NumPy documents errors of up to 4 units in the last place for its vectorized functions, and the C library has
        # up to 1.
        operand = exact(int(rng.integers(2)))
        pairs = [f"arctan2({operand}, {leaf()})", f"hypot({operand}, {leaf()})", f"({operand} ** 3.5)"]
        text = pick([f"{REAL[number % len(REAL)]}({operand})"] * 4 + pairs)
        return text, lambda expected: ulps(expected, 5)
    operand = pick([name for name in names if name.count("_") > 1])
    if number >= 290:
        # A reduction inside of an expression.
        axis = int(rng.integers(operand.count("_")))
        return f"({operand} > {pick(['min', 'max'])}({operand}, axis={axis}, keepdims=True))", lambda expected: None
    inner = pick([operand, f"({operand} + 1)", f"({operand} > 1)", f"minimum({operand}, 2)"])
    if number < 265:
        method = pick(["sum", "prod", "min", "max", "any", "all", "mean"])
    else:
        method = pick(["sum", "mean", "std", "var", "sum"])
        inner = pick([name for name in names if name.startswith("f") and name.count("_") > 1])
    options = axes(inner, None)
    text = f"{method}({', '.join([inner, *options])})" if rng.random() < 0.7 else f"{inner}.{method}({', '.join(options)})"
    if inner[0] == "(" and text[0] == "(":
        text = f"{method}({', '.join([inner, *options])})"
    items = eval(inner, space)
    def within(expected):
        if expected.dtype.kind != "f" or method in ("min", "max"):
            return None
        # Any order of summation or multiplication has at most this error; see Higham, Accuracy and Stability, 4.2.
        eps, n = np.finfo(expected.dtype).eps, items.size + 3
        magnitude = np.abs(np.where(np.isfinite(items), items, 0).astype("f8"))
        scale = magnitude.sum() if method == "sum" else magnitude.max()
        if method in ("prod", "std", "var"):
            scale = np.abs(expected.astype("f8"))
        return np.broadcast_to(2 * n * eps * scale, expected.shape)

    return text, within


cases, data = [], b""
attempts = 0
while len(cases) < EXPRESSIONS:
    attempts += 1
    assert attempts < 20 * EXPRESSIONS, "too many expressions are refused"
    text, within = generate(len(cases))
    used = sorted(name for name in names if name in text)
    try:
        expected = np.asarray(eval(text, space))
        expression = blosc2.lazyexpr(text, {name: operands[name][1] for name in used})
        file = f"e{len(cases)}.b2nd"
        expression.save(urlpath=file, mode="w")
        stated = blosc2.blosc2_ext.open(file, "r", 0)
    except Exception:
        continue
    # NumPy defines the results. In some cases Python's Blosc2 states another dtype.
    if not used or stated.dtype != expected.dtype or stated.shape != expected.shape:
        continue
    bound = within(expected)
    expected = np.ascontiguousarray(expected)
    case = {"text": text, "dtype": expected.dtype.str, "shape": list(stated.shape), "file": file}
    case["expected"] = len(data), len(data) + expected.nbytes
    data += expected.tobytes()
    if bound is not None:
        bound = np.where(np.isfinite(bound), bound, 0).astype("f8")
        case["within"] = [float(item) for item in bound.ravel()]
    cases.append(case)

# Arrays of several tiles, without items, with a single item, and of another byte order.
wide = rng.integers(-100, 100, (300, 1000)).astype("i4")
reals = rng.standard_normal((300, 1000)).astype("f4")
reals[::50, ::7] = np.nan
special = {
    "w": wide, "f": rng.standard_normal((300, 1000)), "n": reals, "row": wide[0], "col": wide[:, :1],
    "s": np.array(7, "i2"), "e": np.zeros((0, 7), "f4"), "z": np.zeros((3, 0), "i2"),
    "b": wide[:, :3].astype(">i4"), "g": rng.standard_normal((300, 3)).astype(">f8"),
}
for name, items in special.items():
    blosc2.asarray(items, urlpath=f"{name}.b2nd", mode="w")
texts = [
    "w + row * col", "where(w > row, w, col)", "w - max(w, axis=0)", "w - sum(w, axis=1, keepdims=True)",
    "sum(w, axis=0)", "sum(w, axis=1)", "sum(w)", "sum(w > row, axis=0) * row", "prod(w, axis=0)", "min(f, axis=1)",
    "max(f)", "max(n, axis=0)", "min(n)", "argmin(w, axis=0)", "argmax(w, axis=1)", "argmax(w)", "argmin(f)",
    "argmax(n, axis=1)", "argmin(n)", "argmax(w > 50, axis=0)", "count_nonzero(w)", "count_nonzero(w, axis=0)",
    "count_nonzero(n, axis=1)", "any(w > 98, axis=0)", "all(w > -100, axis=1)", "all(w)", "(f > min(f, axis=0)) & (w > 0)",
    "s + w", "sum(s, axis=0)", "argmax(s, axis=-1)", "s * 2", "e + 1", "sum(e, axis=0)", "sum(e)", "prod(e, axis=0)",
    "any(e, axis=1)", "sum(z, axis=1)", "b + col", "sum(b, axis=0)", "g > b", "std(f, axis=0, ddof=1)", "var(g, ddof=3 - 1)",
]
for text in texts:
    expected = np.asarray(eval(text, space | special), order="C")
    used = [name for name in special if name in re.findall(r"\w+", text)]
    case = {"text": text, "operands": used, "dtype": expected.dtype.str, "shape": list(expected.shape)}
    case["expected"] = len(data), len(data) + expected.nbytes
    data += expected.tobytes()
    if "ddof" in text:
        # Any order of summation has at most this error, as above.
        bound = 2 * np.finfo("f8").eps * wide.size * np.abs(expected)
        case["within"] = [float(item) for item in bound.ravel()]
    cases.append(case)
json.dump(cases, open("cases.json", "w"))
open("expected.bin", "wb").write(data)
print(attempts, "attempts", file=sys.stderr)

# What needs code, or operations that are not supported.
x, y = (operands[name][1] for name in ("f8_4_3_7", "f8_3_7"))
m, n = (operands[name][1] for name in ("f8_3_7", "f8_7"))
texts = ["matmul(x, y)", "x[0] + y", "cumulative_sum(x, axis=0)", "cumulative_prod(x, axis=0)", "x.T", "x + 1j",
         "x.sum(axis=0, dtype='f4')", "x.real + y", "tensordot(x, y, axes=1)", "outer(x, y)", "permute_dims(x, (0, 1))",
         "expand_dims(x, 0)", "squeeze(x)", "concat((x, y))", "stack((x, y))", "transpose(x)", "x.slice((0,))",
         "imag(x)", "x[1:2]", "zeros((3, 7)) + x", "ones((3, 7)) * x", "arange(7) + x", "linspace(0, 1, 7) + x", "diagonal(x)",
         "reshape(x, (21,))", "x.reshape((21,))", "full((3, 7), 2) + x", "eye(7) + y", "vecdot(x, y)", "x[:, 0]",
         "broadcast_to(x, (3, 7))", "x.astype('f4')", "lower(x)", "contains(x, 'a')", "matrix_transpose(x)"]
others = []
for text in texts:
    try:
        used = {name: value for name, value in (("x", m), ("y", n)) if name in text}
        if text in ("eye(7) + y", "x.T"):
            used = {"y": n} if "y" in text else {"x": m}
        blosc2.lazyexpr(text, used).save(urlpath=f"o{len(others)}.b2nd", mode="w")
        blosc2.blosc2_ext.open(f"o{len(others)}.b2nd", "r", 0)
    except Exception:
        continue
    others.append({"file": f"o{len(others)}.b2nd", "text": text})
kernels = len(others)
lines = ["a + b", "a * b", "sin(a) + b", "a - b", "a / (b + 2)", "where(a > b, a, b)", "exp(a) * b", "a ** 2 + b", "(a > b) * a"]
number = 0
while len(others) < 50:
    line = lines[number % len(lines)]
    source = f"import blosc2\n@blosc2.dsl_kernel\ndef kernel{number}(a, b):\n    c = {line}\n    return c + {number}\n"
    open(f"kernel{number}.py", "w").write(source)
    sys.path.insert(0, os.getcwd())
    kernel = getattr(__import__(f"kernel{number}"), f"kernel{number}")
    file = f"o{len(others)}.b2nd"
    blosc2.lazyudf(kernel, (m, m), dtype=np.dtype("f8"), shape=(3, 7)).save(urlpath=file, mode="w")
    others.append({"file": file, "text": f"kernel{number}"})
    number += 1
print(kernels, "expressions,", number, "kernels", file=sys.stderr)
json.dump(others, open("others.json", "w"))
