//! The Python scripts that write and read the cases.

/// A script with what all of them need before it.
pub(crate) fn with(script: &str) -> String {
    format!("{COMMON}{script}")
}

const COMMON: &str = r#"
import ast, json, os, sys
import blosc2
import numpy as np

blosc2.set_nthreads(1)

def dtype_of(text):
    return np.dtype(ast.literal_eval(text) if text[0] in "[({" else text)

def dtype_text(dtype):
    return str(dtype) if dtype.kind == "V" else dtype.str

def values(layers):
    # Complex numbers are sums.
    return {name: eval(text) for name, text in layers}

def cparams_of(case):
    """The filters are in the last places, as they are by default."""
    given = dict(case["cparams"])
    empty = [0] * (6 - len(given["filters"]))
    given["codec"] = blosc2.Codec(given["codec"])
    given["splitmode"] = blosc2.SplitMode(given["splitmode"])
    given["filters"] = [blosc2.Filter(code) for code in empty + given["filters"]]
    given["filters_meta"] = empty + given["filters_meta"]
    return given

def raw_of(case, items):
    start, end = case["items"]
    return items[start:end]

def data_of(case, items):
    raw, dtype = raw_of(case, items), dtype_of(case["dtype"])
    return (np.frombuffer(raw, dtype) if raw else np.empty(0, dtype)).reshape(case["shape"])

def is_file(case):
    return case["place"] in ("file", "directory")

def given_to(case):
    """What the constructors of arrays and super-chunks take alike."""
    more = {}
    if case["cparams"] is not None:
        more["cparams"] = cparams_of(case)
    # Of large items that are apart in memory, Python makes a frame with a typesize of 1, which it does not read either.
    apart = case["place"] == "directory" or case["place"] == "cframe" and case["typesize"] <= 255
    more["contiguous"] = not apart
    if is_file(case):
        more["urlpath"] = case["name"]
    if case["meta"]:
        more["meta"] = values(case["meta"])
    return more

def make_array(case, items, more):
    more = dict(more, chunks=case["chunks"], blocks=case["blocks"], dparams=dict(nthreads=1))
    shape, dtype, made = case["shape"], dtype_of(case["dtype"]), case["made"]
    if made != "items":
        make = getattr(blosc2, made)
        if made == "full":
            # An item of bytes would be taken for its dtype.
            item = np.frombuffer(raw_of(case, items)[:dtype.itemsize], dtype).reshape(())
            return make(shape, item, dtype=dtype, **more)
        return make(shape, dtype=dtype, **more)
    data = data_of(case, items)
    if dtype.kind != "V":
        return blosc2.asarray(data, **more)
    # `asarray` gives bare bytes another dtype.
    array = blosc2.empty(shape, dtype=dtype, **more)
    if data.size:
        array[...] = data
    return array

def make_schunk(case, items, more):
    more = dict(more, dparams=dict(nthreads=1))
    more["cparams"] = dict(more.get("cparams", {}), typesize=case["typesize"])
    schunk = blosc2.SChunk(chunksize=case["chunksize"], **more)
    raw, made = raw_of(case, items), case["made"]
    if made == "items":
        for start in range(0, len(raw), case["chunksize"]):
            schunk.append_data(raw[start:start + case["chunksize"]])
    else:
        kind = dict(zeros="ZERO", nans="NAN", uninit="UNINIT")[made]
        schunk.fill_special(case["nitems"], blosc2.SpecialValue[kind])
    return schunk

def make(case, items):
    more = given_to(case)
    if case["kind"] == "array":
        made = make_array(case, items, more)
        schunk = made.schunk
    else:
        made = schunk = make_schunk(case, items, more)
    for name, value in values(case["vlmeta"]).items():
        schunk.vlmeta[name] = value
    if not is_file(case):
        with open(case["name"], "wb") as out:
            out.write(made.to_cframe())
    return made

def equal(found, data):
    """Equal as bytes; and, where NumPy can compare the items, equal to it."""
    if found.shape != data.shape or found.dtype != data.dtype or found.tobytes() != data.tobytes():
        return False
    # Not every sixteen bytes are a number.
    if data.dtype.kind == "V" or data.dtype.char in "gG":
        return True
    return np.array_equal(found, data, equal_nan=data.dtype.kind in "fcmM")

SPECIAL = dict(items="NOT_SPECIAL", zeros="ZERO", empty="ZERO", nans="NAN", uninit="UNINIT", full="VALUE")

def whole(array):
    """All items, of whole chunks: of parts with delta, the library of Python gives others."""
    data = np.empty(array.shape, array.dtype)
    per_chunk = [-(-chunk // block) for chunk, block in zip(array.chunks, array.blocks)]
    order = [axis for pair in zip(range(array.ndim), range(array.ndim, 2 * array.ndim)) for axis in pair]
    for info in array.iterchunks_info():
        chunk = np.frombuffer(array.schunk.decompress_chunk(info.nchunk), array.dtype)
        chunk = chunk.reshape(per_chunk + list(array.blocks)).transpose(order)
        chunk = chunk.reshape([count * block for count, block in zip(per_chunk, array.blocks)])
        starts = [at * size for at, size in zip(info.coords, array.chunks)]
        box = tuple(slice(start, start + size) for start, size in zip(starts, array.chunks))
        part = data[box]
        part[...] = chunk[tuple(slice(size) for size in part.shape)]
    return data

DELTA = 3

def look(case, items, made):
    """Fails where what was opened is not the case."""
    schunk = made
    if case["kind"] == "array":
        schunk = made.schunk
        for key in ["shape", "chunks", "blocks"]:
            assert getattr(made, key) == tuple(case[key]), (key, getattr(made, key))
        assert made.dtype == dtype_of(case["dtype"]), made.dtype
        if case["made"] != "uninit":
            has_delta = case["cparams"] is not None and DELTA in case["cparams"]["filters"]
            found = whole(made) if has_delta and made.size > 1 else made[...]
            assert equal(found, data_of(case, items)), "the items differ"
    elif case["made"] != "uninit":
        raw = raw_of(case, items)
        chunks = [schunk.decompress_chunk(number) for number in range(schunk.nchunks)]
        assert b"".join(chunks) == raw, "the bytes differ"
        size = case["chunksize"]
        assert all(len(chunk) == size for chunk in chunks[:-1]), [len(chunk) for chunk in chunks]
        assert not raw or schunk[:] == raw, "the bytes of all differ"
    if case["made"] != "items" and schunk.nchunks:
        special = next(schunk.iterchunks_info()).special.name
        assert special == SPECIAL[case["made"]], special
    assert schunk.typesize == case["typesize"], schunk.typesize
    if case["cparams"] is not None:
        given, found = cparams_of(case), schunk.cparams
        for key in ["codec", "clevel", "splitmode", "use_dict", "filters", "filters_meta"]:
            assert getattr(found, key) == given[key], (key, getattr(found, key), given[key])
    meta = values(case["meta"])
    assert {name: schunk.meta[name] for name in meta} == meta, "meta"
    assert len(schunk.meta) == len(meta) + (case["kind"] == "array"), "names of meta"
    vlmeta = values(case["vlmeta"])
    assert repr(schunk.vlmeta.getall()) == repr(vlmeta), ("vlmeta", schunk.vlmeta.getall(), vlmeta)

def opened(case, mode="r"):
    if is_file(case):
        return blosc2.open(case["name"], mode=mode)
    with open(case["name"], "rb") as frame:
        frame = frame.read()
    return (blosc2.ndarray_from_cframe if case["kind"] == "array" else blosc2.schunk_from_cframe)(frame, True)

with open("items", "rb") as items:
    items = items.read()
with open("cases.json") as cases:
    cases = json.load(cases)
"#;

/// Writes all cases, and prints their parameters.
pub(crate) const WRITE: &str = r#"
found = []
for case in cases:
    try:
        made = make(case, items)
    except Exception as error:
        raise Exception(case) from error
    if case["kind"] == "array":
        found.append(dict(dtype=dtype_text(made.dtype), chunks=made.chunks, blocks=made.blocks))
    else:
        found.append({})
caches = [blosc2.cpu_info[f"{level}_cache_size"] for level in ("l1_data", "l2", "l3")]
print(json.dumps(dict(found=found, caches=caches), default=int))
"#;

/// Reads all cases, and prints those that differ from the expected content.
pub(crate) const READ: &str = r#"
right = 0
for case in cases:
    try:
        look(case, items, opened(case))
        right += 1
    except Exception as error:
        print("WRONG", type(error).__name__, str(error)[:1000], case)
print(right, "are as they should be")
"#;
