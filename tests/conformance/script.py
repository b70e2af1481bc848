"""Writes or reads the objects of the conformance matrix with python-blosc2.

Arguments: `write` or `read`, and a JSON file with a list of `[key, object, path]`. The bytes that objects refer to
are in the file `blob`. For each object one line is printed: a JSON list of its key, an error or null, and the facts
that were found. `object.rs` describes the objects and the facts.
"""

import ast
import dataclasses
import hashlib
import json
import os
import sys

import blosc2
import blosc2.schema as S
import msgpack
import numpy as np
from blosc2 import blosc2_ext
from blosc2.msgpack_utils import msgpack_packb, msgpack_unpackb

blosc2.set_nthreads(1)
for name in list(os.environ):
    if name.startswith(("BLOSC_", "BTUNE")):
        del os.environ[name]

DELTA = 3
ONE = dict(nthreads=1)
with open("blob", "rb") as file:
    BLOB = file.read()


def stored(place):
    return BLOB[place[0]:place[1]]


def value_of(place):
    return msgpack_unpackb(stored(place))


def digest(data):
    data = bytes(data)
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()[:16]}"


def digests(parts):
    every = [digest(part) for part in parts]
    return digest(",".join(every).encode()) if len(every) > 9 else ",".join(every)


def hashed(values):
    return digest(msgpack_packb(values))


def listed(numbers):
    return "[" + ", ".join(str(number) for number in numbers) + "]"


def quoted(texts):
    return "[" + ", ".join('"' + text + '"' for text in texts) + "]"


def dtype_of(text):
    return np.dtype(ast.literal_eval(text) if text[0] in "[({" else text)


def dtype_text(dtype):
    return str(dtype) if dtype.kind == "V" else dtype.str


def cparams_of(thing):
    given = dict(thing["params"])
    given["codec"] = blosc2.Codec(given["codec"])
    given["splitmode"] = blosc2.SplitMode(given["splitmode"])
    given["filters"] = [blosc2.Filter(code) for code in given["filters"]]
    return given


def layers_of(layers):
    return {name: value_of(place) for name, place in layers}


# Writing

def storage_of(thing, path):
    more = dict(contiguous=thing["place"] not in ("memory", "directory"), dparams=ONE, cparams=cparams_of(thing))
    if thing["place"] in ("file", "directory"):
        more["urlpath"] = path
    if thing["meta"]:
        more["meta"] = layers_of(thing["meta"])
    return more


def finish(thing, path, made, schunk):
    for name, value in layers_of(thing["vlmeta"]).items():
        schunk.vlmeta[name] = value
    if thing["place"] not in ("file", "directory"):
        with open(path, "wb") as out:
            if thing["place"] == "offset":
                out.write(b"\xab" * thing["before"])
            out.write(made.to_cframe())


def write_chunk(thing, path):
    part, cparams = thing["part"], cparams_of(thing)
    if "blocks" in part:
        chunk = blosc2_ext.vlcompress([stored(block) for block in part["blocks"]], **cparams)
    else:
        if thing["blosc1"]:
            os.environ["BLOSC_BLOSC1_COMPAT"] = "1"
        try:
            chunk = blosc2.compress2(stored(part["data"]), **cparams)
        finally:
            os.environ.pop("BLOSC_BLOSC1_COMPAT", None)
    with open(path, "wb") as out:
        out.write(chunk)


def write_parts(thing, path):
    chunksize = thing["chunksize"] or 1000 * thing["params"]["typesize"]
    schunk = blosc2.SChunk(chunksize=chunksize, **storage_of(thing, path))
    for part in thing["parts"]:
        if "blocks" in part:
            schunk.append_chunk(
                blosc2_ext.vlcompress([stored(block) for block in part["blocks"]], **cparams_of(thing)))
        else:
            schunk.append_data(stored(part["data"]))
    finish(thing, path, schunk, schunk)


def write_fill(thing, path):
    schunk = blosc2.SChunk(chunksize=thing["chunksize"], **storage_of(thing, path))
    value = stored(thing["value"])
    if thing["special"] == "VALUE":
        # An item as Python's function takes it.
        item = {1: "u1", 4: "<i4", 8: "<f8"}[len(value)]
        schunk.fill_special(thing["nitems"], blosc2.SpecialValue.VALUE, np.frombuffer(value, item)[0].item())
    else:
        schunk.fill_special(thing["nitems"], blosc2.SpecialValue[thing["special"]])
    finish(thing, path, schunk, schunk)


def items_of(thing):
    raw, dtype = stored(thing["items"]), dtype_of(thing["dtype"])
    return (np.frombuffer(raw, dtype) if raw else np.empty(0, dtype)).reshape(thing["shape"])


def write_array(thing, path):
    more = dict(storage_of(thing, path), chunks=thing["chunks"], blocks=thing["blocks"])
    dtype, shape = dtype_of(thing["dtype"]), thing["shape"]
    if "made" in thing:
        if thing["made"] == "full":
            # An item of bytes would be taken for its dtype.
            item = np.frombuffer(stored(thing["value"]), dtype).reshape(())
            array = blosc2.full(shape, item, dtype=dtype, **more)
        else:
            array = getattr(blosc2, thing["made"])(shape, dtype=dtype, **more)
    elif dtype.kind != "V":
        array = blosc2.asarray(items_of(thing), **more)
    else:
        # `asarray` gives bare bytes another dtype.
        array, data = blosc2.empty(shape, dtype=dtype, **more), items_of(thing)
        if data.size:
            array[...] = data
    finish(thing, path, array, array.schunk)


def write_npy(thing, path):
    np.save(path, items_of(thing))


def container_storage(thing, path):
    if thing["place"] == "frame":
        return dict(contiguous=True)
    return dict(urlpath=path, mode="w", contiguous=thing["place"] == "file")


def write_objects(thing, path):
    array = blosc2.ObjectArray(**container_storage(thing, path))
    array.extend(value_of(thing["content"]["values"]))
    finish(thing, path, array, array)


def write_batches(thing, path):
    more = container_storage(thing, path)
    if thing["content"]["per_block"] is not None:
        more["items_per_block"] = thing["content"]["per_block"]
    array = blosc2.BatchArray(**more)
    for batch in value_of(thing["content"]["values"]):
        array.append(batch)
    finish(thing, path, array, array)


def write_lists(thing, path):
    name = thing["content"]["item"]
    item = getattr(S, name)(nullable=True) if name == "int64" else getattr(S, name)()
    array = blosc2.ListArray(item_spec=item, nullable=True, **container_storage(thing, path))
    for row in value_of(thing["content"]["values"]):
        array.append(row)
    array.flush()
    finish(thing, path, array, array)


def write_tensor(thing, path):
    content = thing["content"]
    items = np.frombuffer(stored(content["items"]), content["dtype"]).reshape(content["shape"])
    blosc2.save_array(items, path, mode="w")


def nodes_of(thing):
    for key, kind, place in thing["content"]["nodes"]:
        if kind == "array":
            yield key, blosc2.asarray(np.frombuffer(stored(place), "<i4"))
        elif kind == "bytes":
            yield key, blosc2.SChunk(data=stored(place), cparams=dict(typesize=1))
        else:
            array = blosc2.ObjectArray()
            array.extend(value_of(place))
            yield key, array


def write_embed(thing, path):
    store = blosc2.EmbedStore(urlpath=path, mode="w")
    for key, node in nodes_of(thing):
        store[key] = node


def write_tree(thing, path):
    with blosc2.TreeStore(path, mode="w", threshold=0) as store:
        for key, node in nodes_of(thing):
            store[key] = node
        for group, name, place in thing["content"]["attributes"]:
            (store if group == "/" else store[group]).vlmeta[name] = value_of(place)


def write_dict(thing, path):
    with blosc2.DictStore(path, mode="w", threshold=0) as store:
        for key, node in nodes_of(thing):
            store[key] = node


def annotation(spec):
    if isinstance(spec, S.ListSpec):
        return list[spec.item_spec.python_type]
    return str if isinstance(spec, S.DictionarySpec) else spec.python_type


def write_table(thing, path):
    columns = thing["content"]["columns"]
    specs = [(name, eval(kind)) for name, kind, _ in columns]
    fields = [(name, annotation(spec), blosc2.field(spec, default=None)) for name, spec in specs]
    table = blosc2.CTable(dataclasses.make_dataclass("Row", fields), urlpath=path, mode="w", expected_size=1 << 12)
    values = {name: value_of(place) for name, _, place in columns}
    if values[columns[0][0]]:
        table.extend(values)
    if thing["content"]["deleted"]:
        table.delete(thing["content"]["deleted"])
    table.close()


# Reading

def read_chunk(thing, path):
    with open(path, "rb") as file:
        chunk = file.read()
    nbytes, _, blocksize = blosc2.get_cbuffer_sizes(chunk)
    facts = dict(nbytes=str(nbytes), blocksize=str(blocksize))
    if "blocks" in thing["part"]:
        blocks = blosc2_ext.vldecompress(chunk, nthreads=1)
        facts.update(data=digest(b"".join(blocks)), blocks=digests(blocks))
    elif thing["blosc1"]:
        facts.update(data=digest(blosc2.decompress(chunk)))
    else:
        facts.update(data=digest(blosc2.decompress2(chunk, nthreads=1)))
    return facts


def opened(thing, path):
    if thing["place"] in ("memory", "frame"):
        with open(path, "rb") as frame:
            frame = frame.read()
        take = blosc2.ndarray_from_cframe if thing["kind"] == "array" else blosc2.schunk_from_cframe
        return take(frame, True)
    offset = thing["before"] if thing["place"] == "offset" else 0
    return blosc2.open(path, mode="r", offset=offset, dparams=ONE)


def layer_fact(layers):
    return ", ".join(f"{name}={digest(msgpack_packb(value))}" for name, value in layers)


def read_schunk(thing, schunk, facts):
    chunks = [schunk.decompress_chunk(number) for number in range(schunk.nchunks)]
    found = schunk.cparams
    filters = [(f.value if hasattr(f, "value") else f, meta) for f, meta in zip(found.filters, found.filters_meta)]
    facts.update(
        nchunks=str(schunk.nchunks), chunks=digests(chunks), typesize=str(schunk.typesize),
        codec=str(getattr(found.codec, "value", found.codec)), level=str(found.clevel),
        dictionary=str(bool(found.use_dict)).lower(),
        filters=" ".join(f"{code}:{meta % 256}" for code, meta in filters if code),
        meta=layer_fact([(name, schunk.meta[name]) for name in schunk.meta if name != "b2nd"]),
        vlmeta=layer_fact(schunk.vlmeta.getall().items()),
    )
    facts["codec parameter"], facts["split mode"] = str(found.codec_meta), str(found.splitmode.value)
    if schunk.nchunks:
        special = next(schunk.iterchunks_info()).special.name
        names = dict(ZERO="Zeros", NAN="Nan", VALUE="Value", UNINIT="Uninit")
        facts["special"] = names.get(special, "none")


def read_parts(thing, path):
    facts = {}
    read_schunk(thing, opened(thing, path), facts)
    return facts


read_fill = read_parts


def whole(array):
    """All items, of whole chunks: of parts with delta, the library of Python returns others."""
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


def read_array(thing, path):
    array = opened(thing, path)
    has_delta = DELTA in thing["params"]["filters"]
    items = whole(array) if has_delta and array.size > 1 else array[...]
    facts = dict(
        shape=listed(array.shape), dtype=dtype_text(array.dtype), items=digest(np.ascontiguousarray(items).tobytes()))
    facts["chunk shape"], facts["block shape"] = listed(array.chunks), listed(array.blocks)
    if thing["box"] is not None and not has_delta:
        box = tuple(slice(start, stop) for start, stop in thing["box"])
        facts["box"] = digest(np.ascontiguousarray(array[box]).tobytes())
    read_schunk(thing, array.schunk, facts)
    return facts


def read_npy(thing, path):
    array = np.load(path)
    return dict(shape=listed(array.shape), dtype=dtype_text(array.dtype), items=digest(array.tobytes()))


def container(thing, path):
    if thing["place"] == "frame":
        with open(path, "rb") as frame:
            return blosc2.from_cframe(frame.read())
    return blosc2.open(path, mode="r")


def own(vlmeta):
    return layer_fact([(name, vlmeta[name]) for name in vlmeta if not name.startswith("_")])


def read_objects(thing, path):
    array = container(thing, path)
    assert type(array) is blosc2.ObjectArray, type(array)
    return dict(values=hashed(list(array)), vlmeta=own(array.vlmeta))


def read_batches(thing, path):
    array = container(thing, path)
    assert type(array) is blosc2.BatchArray, type(array)
    return {"values": hashed([batch[:] for batch in array]), "vlmeta": own(array.vlmeta),
            "items per block": str(array.items_per_block)}


def read_lists(thing, path):
    array = container(thing, path)
    assert type(array) is blosc2.ListArray, type(array)
    return {"values": hashed(array[:]), "vlmeta": own(array.vlmeta), "item type": array.meta["listarray"]["item"]["kind"]}


def read_tensor(thing, path):
    array = blosc2.load_array(path)
    return dict(shape=listed(array.shape), dtype=array.dtype.str, items=digest(array.tobytes()))


def node_fact(node):
    if isinstance(node, blosc2.NDArray):
        return f"array of {node.dtype.str} " + digest(node[...].tobytes())
    if isinstance(node, blosc2.ObjectArray):
        return "objects " + hashed(list(node))
    return "bytes " + digest(node[:])


def read_nodes(store, keys):
    facts = {key: node_fact(store[key]) for key in keys}
    return dict(facts, keys=quoted(sorted(keys)))


def read_embed(thing, path):
    store = blosc2.EmbedStore(path, mode="r")
    return read_nodes(store, list(store.keys()))


def read_tree(thing, path):
    store = blosc2.open(path, mode="r")
    assert type(store) is blosc2.TreeStore, type(store)
    leaves = [key for key in store.keys() if not isinstance(store[key], blosc2.TreeStore)]
    facts = read_nodes(store, leaves)
    for group in ["/"] + [key for key in store.keys() if key not in leaves]:
        vlmeta = (store if group == "/" else store[group]).vlmeta
        facts[f"attributes of {group}"] = layer_fact(vlmeta[:].items())
    return facts


def read_dict(thing, path):
    store = blosc2.open(path, mode="r")
    assert type(store) is blosc2.DictStore, type(store)
    return read_nodes(store, list(store.keys()))


def plain(value):
    if isinstance(value, np.datetime64):
        return int(value.astype("int64"))
    return value.item() if isinstance(value, np.generic) else value


def read_table(thing, path):
    with blosc2.CTable.open(path, mode="r") as table:
        facts = dict(columns=quoted(table.col_names))
        columns = table.schema_dict()["columns"]
        facts["types"] = quoted([each["kind"] + " or null" * each.get("nullable", False) for each in columns])
        for name in table.col_names:
            values, nulls = table[name][:], table[name].is_null()
            values = np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else values
            facts[name] = hashed([None if null else plain(value) for value, null in zip(values, nulls)])
    return facts


def main():
    verb, file = sys.argv[1:]
    with open(file) as work:
        work = json.load(work)
    for key, thing, path in work:
        error, facts = None, {}
        try:
            facts = globals()[f"{verb}_{thing['kind']}"](thing, path) or {}
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"[:500]
        print(json.dumps([key, error, facts]), flush=True)


main()
