"""Writes a small file of every kind that a version of Python blosc2 knows, and what is in each.

    cd tests/python_files
    pip install blosc2==4.14.1   # or 2.7.1, in a virtual environment
    python make.py

The files go to a folder named after the version, with `expected.json`: of arrays shape, dtype and the SHA-256 of
the items, of all else the values as msgpack. `tests/python/kept_files.rs` reads them.
"""

import hashlib
import json
import os
import shutil
import sys

import blosc2
import numpy as np

VERSION = blosc2.__version__
NEW = int(VERSION.split(".")[0]) >= 4
expected = {}


def packed(value):
    """A value as blosc2 writes it to a metalayer."""
    if NEW:
        from blosc2.msgpack_utils import msgpack_packb

        return msgpack_packb(value).hex()
    from msgpack import packb

    from blosc2.blosc2_ext import encode_tuple

    return packb(value, default=encode_tuple, strict_types=True, use_bin_type=True).hex()


def digest(items):
    return hashlib.sha256(items).hexdigest()


def metalayers(schunk):
    meta = {name: packed(schunk.meta[name]) for name in schunk.meta if name != "b2nd"}
    vlmeta = {name: packed(schunk.vlmeta[name]) for name in schunk.vlmeta}
    return {"meta": meta, "vlmeta": vlmeta}


def of_array(array, items=None):
    items = array[...] if items is None else items
    dtype = items.dtype
    return {
        "kind": "ndarray",
        "shape": array.shape,
        "chunks": array.chunks,
        "blocks": array.blocks,
        "dtype": dtype.str if dtype.kind != "V" else str(dtype),
        "sha256": digest(np.ascontiguousarray(items).tobytes()),
        "codec": array.schunk.cparams.codec.value if NEW else array.schunk.cparams["codec"].value,
        **metalayers(array.schunk),
    }


def of_schunk(schunk):
    return {"kind": "schunk", "sha256": digest(schunk[:]), **metalayers(schunk)}


def where(name):
    path = os.path.join(VERSION, name)
    return path


def numbers(dtype, shape):
    """Items that are all different, as far as the type allows for it."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    if dtype.names or dtype.kind == "V":
        raw = np.arange(count * dtype.itemsize, dtype="u4").astype("u1")
        return np.frombuffer(raw.tobytes(), dtype=dtype).reshape(shape)
    if dtype.kind in "SU":
        return np.array([f"é{i}" if dtype.kind == "U" else f"s{i}" for i in range(count)], dtype=dtype).reshape(shape)
    if dtype.kind == "b":
        return (np.arange(count) % 3 == 0).reshape(shape)
    if dtype.kind in "mM":
        return np.arange(count, dtype="i8").view(dtype.newbyteorder("=")).astype(dtype).reshape(shape)
    return (np.arange(count) % 251).astype(dtype).reshape(shape)


def save(name, data, **kwargs):
    array = blosc2.asarray(data, urlpath=where(name), mode="w", **kwargs)
    expected[name] = of_array(array, np.asarray(data))
    return array


def arrays():
    dtypes = ["?", "i1", "u1", "<i2", ">i4", "<u8", "<f2", "<f4", ">f8", "<c8", "<c16", "S7", "<U5", ">U3"]
    dtypes += ["M8[ns]", "m8[25s]"]
    for number, dtype in enumerate(dtypes):
        save(f"dtype_{number:02}.b2nd", numbers(dtype, (7, 11)), chunks=(4, 5), blocks=(2, 5))
    record = np.dtype([("a", "<i4"), ("b", "<f8", (2,)), ("c", [("x", "S3"), ("y", "?")])])
    save("record.b2nd", numbers(record, (30,)), chunks=(8,), blocks=(3,))
    padded = np.dtype([("a", "i1"), ("b", "<f8")], align=True)
    zeros = blosc2.zeros((5, 3), dtype=padded, urlpath=where("padded.b2nd"), mode="w")
    # 2.7 cannot read this dtype of its own.
    expected["padded.b2nd"] = of_array(zeros, np.zeros((5, 3), dtype=padded))

    data = numbers("<i4", (20, 30))
    codecs = [blosc2.Codec.BLOSCLZ, blosc2.Codec.LZ4, blosc2.Codec.LZ4HC, blosc2.Codec.ZLIB, blosc2.Codec.ZSTD]
    for codec in codecs:
        for level in (1, 9):
            cparams = {"codec": codec, "clevel": level}
            save(f"codec_{codec.value}_{level}.b2nd", data, chunks=(8, 30), blocks=(4, 7), cparams=cparams)
    filters = {
        "none": [blosc2.Filter.NOFILTER],
        "bitshuffle": [blosc2.Filter.BITSHUFFLE],
        "delta": [blosc2.Filter.DELTA, blosc2.Filter.SHUFFLE],
        "bytedelta": [blosc2.Filter.SHUFFLE, blosc2.Filter.BYTEDELTA],
    }
    for name, chain in filters.items():
        cparams = {"filters": chain, "filters_meta": [0, 4][: len(chain)] if name == "bytedelta" else [0] * len(chain)}
        save(f"filter_{name}.b2nd", data, chunks=(8, 30), blocks=(4, 7), cparams=cparams)
    cparams = {"filters": [blosc2.Filter.TRUNC_PREC, blosc2.Filter.SHUFFLE], "filters_meta": [10, 0]}
    exact = blosc2.asarray(
        numbers("<f4", (20, 30)) / 7, chunks=(8, 30), blocks=(4, 7), cparams=cparams,
        urlpath=where("filter_trunc_prec.b2nd"), mode="w",
    )
    expected["filter_trunc_prec.b2nd"] = of_array(exact)
    cparams = {"codec": blosc2.Codec.ZSTD, "clevel": 5, "use_dict": True}
    save("dictionary.b2nd", numbers("<i4", (200, 300)), chunks=(100, 300), blocks=(20, 300), cparams=cparams)

    for name, make in {"zeros": blosc2.zeros, "uninit": blosc2.uninit}.items():
        array = make((100, 1000), dtype="<f4", urlpath=where(f"{name}.b2nd"), mode="w")
        expected[f"{name}.b2nd"] = of_array(array, np.zeros((100, 1000), "<f4") if name == "uninit" else None)
    if NEW:
        array = blosc2.nans((100, 1000), dtype="<f8", urlpath=where("nans.b2nd"), mode="w")
        expected["nans.b2nd"] = of_array(array)
    array = blosc2.full((100, 10), fill_value=1.5, dtype="<f8", urlpath=where("full.b2nd"), mode="w")
    expected["full.b2nd"] = of_array(array)

    save("scalar.b2nd", np.array(7, dtype="<i8"))
    if NEW:
        # 2.7 wants blocks no larger than the array.
        save("empty.b2nd", np.zeros((0, 3), dtype="<i4"), chunks=(2, 3), blocks=(1, 3))
    save("one.b2nd", np.array([[[42]]], dtype="<u2"))
    save("automatic.b2nd", numbers("<f4", (300, 200)))
    save("directory.b2nd", numbers("<i2", (20, 30)), chunks=(8, 30), blocks=(4, 7), contiguous=False)
    meta = {"user": {"version": 1, "pair": (1, "x")}}
    array = save("metalayers.b2nd", numbers("<i2", (20, 30)), meta=meta)
    values = {
        "text": "é" * 40, "number": -(2**40), "float": 1.5, "nothing": None, "yes": True, "bytes": b"\x00ab",
        "list": [1, [2]], "tuple": (1, (2.5, "x")), "map": {"a": {"b": [1]}}, "long": list(range(1000)),
    }
    if NEW:
        record = np.zeros(2, dtype=[("a", "<i4"), ("b", "<f8", (2,))])
        # 2.7 does not read what is empty.
        values |= {"empty": [[], (), {}, "", b""]}
        values |= {"complex": 1 - 2j, "set": {3}, "array": numbers("<f4", (2, 3)), "record": record}
    for name, value in values.items():
        array.schunk.vlmeta[name] = value
    expected["metalayers.b2nd"] = of_array(array)


def super_chunks():
    data = numbers("<i4", (5000,)).tobytes()
    schunk = blosc2.SChunk(chunksize=4000, data=data, urlpath=where("chunks.b2frame"), mode="w", cparams={"typesize": 4})
    schunk.vlmeta["who"] = ("Python", VERSION)
    expected["chunks.b2frame"] = of_schunk(schunk)
    schunk = blosc2.SChunk(
        chunksize=4000, data=data, urlpath=where("chunks_directory"), contiguous=False, mode="w", cparams={"typesize": 4}
    )
    expected["chunks_directory"] = of_schunk(schunk)
    schunk = blosc2.SChunk(urlpath=where("no_chunks.b2frame"), mode="w")
    expected["no_chunks.b2frame"] = {"kind": "schunk", "sha256": digest(b""), **metalayers(schunk)}
    for name, data in {
        "tensor.bl2": numbers("<f4", (10, 20)),
        "tensor_record.bl2": numbers(np.dtype([("a", "<i4"), ("b", "<f8", (2,))], align=True), (10,)),
    }.items():
        blosc2.save_array(data, where(name), mode="w")
        dtype = data.dtype.str if data.dtype.kind != "V" else str(data.dtype)
        expected[name] = {"kind": "tensor", "shape": data.shape, "dtype": dtype, "sha256": digest(data.tobytes())}


def containers():
    import blosc2.schema as S

    values = [None, True, -5, 2**64 - 1, 1.5, "text", b"bytes", [1, [2]], (1, ()), {"k": 1j}, {7}, numbers("<i2", (3,))]
    array = blosc2.ObjectArray(urlpath=where("objects.b2frame"), mode="w")
    array.extend(values)
    expected["objects.b2frame"] = {"kind": "objectarray", "values": packed(values), **metalayers(array.schunk)}

    batches = [list(range(10)), ["a", None, {"b": 1}], [b"x" * 100]]
    array = blosc2.BatchArray(urlpath=where("batches.b2b"), mode="w", items_per_block=4)
    array.extend(batches)
    expected["batches.b2b"] = {"kind": "batcharray", "values": packed(batches), **metalayers(array.schunk)}

    rows = [[1, 2, 3], [], None, [4]] * 5
    for name, storage in {"lists.b2b": "batch", "lists_vl.b2frame": "vl"}.items():
        array = blosc2.ListArray(
            item_spec=S.int64(), nullable=True, storage=storage, batch_rows=8, urlpath=where(name), mode="w"
        )
        array.extend(rows)
        array.flush()
        expected[name] = {"kind": "listarray", "values": packed(rows), **metalayers(array.schunk)}

    store = blosc2.EmbedStore(urlpath=where("embedded.b2e"), mode="w")
    nodes = {
        "/array": blosc2.asarray(numbers("<i4", (100, 7))),
        "/group/chunks": blosc2.SChunk(data=b"abc" * 100),
        "/gone": blosc2.zeros(3),
    }
    for key, node in nodes.items():
        store[key] = node
    del store["/gone"], nodes["/gone"]
    expected["embedded.b2e"] = {"kind": "embedstore", "keys": {key: of_node(node) for key, node in nodes.items()}}

    objects = blosc2.ObjectArray()
    objects.extend(values)
    batch = blosc2.BatchArray(items_per_block=4)
    batch.extend(batches)
    nodes |= {"/group/deep/one": blosc2.asarray(np.array([1.5])), "/objects": objects, "/batches": batch}
    for name in ("tree.b2d", "tree.b2z"):
        with blosc2.TreeStore(where(name), mode="w") as store:
            for key, node in nodes.items():
                store[key] = node
            store.vlmeta["title"] = "a tree"
            store["/group"].vlmeta["pair"] = (1, 2.5)
        attributes = {"/": {"title": packed("a tree")}, "/group": {"pair": packed((1, 2.5))}}
        keys = {key: of_node(node) for key, node in nodes.items()}
        groups = ["/group", "/group/deep"]
        expected[name] = {"kind": "treestore", "keys": keys, "attributes": attributes, "groups": groups}
    for name, threshold in {"dict.b2d": 0, "dict.b2z": None}.items():
        with blosc2.DictStore(where(name), mode="w", threshold=threshold) as store:
            for key, node in nodes.items():
                store[key] = node
        expected[name] = {"kind": "dictstore", "keys": {key: of_node(node) for key, node in nodes.items()}}
    tables(S)


def of_node(node):
    if isinstance(node, blosc2.NDArray):
        return of_array(node)
    if isinstance(node, blosc2.SChunk):
        return of_schunk(node)
    if isinstance(node, blosc2.ObjectArray):
        return {"kind": "objectarray", "values": packed(list(node)), **metalayers(node.schunk)}
    return {"kind": "batcharray", "values": packed([batch[:] for batch in node]), **metalayers(node.schunk)}


def tables(S):
    from dataclasses import dataclass

    @dataclass
    class Row:
        number: int = blosc2.field(S.int64(ge=0), default=0)
        ratio: float = blosc2.field(S.float32(), default=0.0)
        yes: bool = blosc2.field(S.bool(), default=False)
        name: str = blosc2.field(S.string(max_length=8), default="")
        text: str = blosc2.field(S.vlstring(nullable=True), default="")
        kind: str = blosc2.field(S.dictionary(nullable=True), default="")
        long: str = blosc2.field(S.utf8(), default="")
        items: list[int] = blosc2.field(S.list(S.int64()), default=None)
        maybe: int = blosc2.field(S.int32(nullable=True), default=0)

    rows = [
        (i, i / 2, i % 2 == 0, f"n{i}", None if i == 3 else "é" * i, None if i == 4 else f"kind {i % 3}", f"ü{i}",
         list(range(i)), None if i == 5 else i)
        for i in range(10)
    ]
    names = ["number", "ratio", "yes", "name", "text", "kind", "long", "items", "maybe"]
    left = [row for row in rows if row[0] not in (2, 7)]
    for name in ("table.b2d", "table.b2z"):
        table = blosc2.CTable(Row, urlpath=where(name), mode="w")
        for row in rows:
            table.append(dict(zip(names, row)))
        table.delete([2, 7])
        table.close()
        columns = {column: packed([row[at] for row in left]) for at, column in enumerate(names)}
        expected[name] = {"kind": "ctable", "nrows": len(left), "columns": columns}


def carriers():
    folder = os.getcwd()
    os.chdir(VERSION)
    a = blosc2.asarray(np.arange(10.0), urlpath="operand_a.b2nd", mode="w")
    b = blosc2.asarray(np.arange(10.0), urlpath="operand_b.b2nd", mode="w")
    text = "a + 2 * b"
    blosc2.lazyexpr(text, operands={"a": a, "b": b}).save(urlpath="expression.b2nd", mode="w")
    operands = {"a": "operand_a.b2nd", "b": "operand_b.b2nd"}
    expected["expression.b2nd"] = {"kind": "lazyexpr", "expression": text, "operands": operands}

    @blosc2.dsl_kernel
    def twice(x, y):
        return 2 * x + y

    function = blosc2.lazyudf(twice, (a, b), dtype=np.float64)
    function.save(urlpath="function.b2nd", mode="w")
    operands = {"o0": "operand_a.b2nd", "o1": "operand_b.b2nd"}
    expected["function.b2nd"] = {"kind": "lazyudf", "operands": operands}
    proxy = blosc2.Proxy(a, urlpath="proxy.b2nd", mode="w")
    proxy.fetch(slice(0, 2))
    expected["proxy.b2nd"] = {"kind": "proxy", "source": "operand_a.b2nd"}
    os.chdir(folder)
    references()


def references():
    """What stands for data on servers, as the functions write it that would ask those first."""
    from blosc2.b2objects import make_b2object_carrier, write_b2object_payload

    remote = {"kind": "fsspec", "version": 1, "urlpath": "https://example.org/a.b2nd", "assume_immutable": True}
    payloads = {
        "remote.b2nd": {"kind": "remote_array", "version": 1, "source": remote, "cache_policy": "disk"},
        "c2array.b2nd": blosc2.Ref.c2array_ref("@public/a.b2nd", "https://example.org/").to_dict(),
    }
    sources = {"remote.b2nd": "https://example.org/a.b2nd", "c2array.b2nd": "https://example.org/@public/a.b2nd"}
    kinds = {"remote.b2nd": "remotearray", "c2array.b2nd": "c2array"}
    for name, payload in payloads.items():
        carrier = make_b2object_carrier(payload["kind"], (10,), np.float64, urlpath=where(name), mode="w")
        write_b2object_payload(carrier, payload)
        expected[name] = {"kind": kinds[name], "source": sources[name]}
    store = blosc2.EmbedStore(urlpath=where("embedded_reference.b2e"), mode="w")
    store._embed_map["/remote"] = {"urlbase": "https://example.org", "path": "@public/a.b2nd"}
    store._save_metadata()
    keys = {"/remote": {"kind": "c2array", "source": "https://example.org/@public/a.b2nd"}}
    expected["embedded_reference.b2e"] = {"kind": "embedstore", "keys": keys}
    with blosc2.TreeStore(where("tree_reference.b2z"), mode="w") as store:
        store["/a"] = blosc2.asarray(np.arange(3))
        keys = {"/a": of_array(store["/a"])}
        source = {"kind": "b2z", "version": 1, "urlpath": "https://example.org/a.b2z"}
        store._register_object("/far", kind="remote_store", version=1, layout="reference", source=source)
        keys["/far"] = {"kind": "remotestore", "source": "https://example.org/a.b2z"}
    expected["tree_reference.b2z"] = {"kind": "treestore", "keys": keys}


def refused():
    """What holds pointers, or Python's own serialisation."""
    blosc2.zeros(3, dtype=object, urlpath=where("pointers.b2nd"), mode="w")
    blosc2.save_array(np.empty(3, dtype=object), where("pointers.bl2"), mode="w")
    with open(where("pickle.chunk"), "wb") as file:
        file.write(blosc2.pack_array(np.arange(10)))
    for name in ("pointers.b2nd", "pointers.bl2"):
        expected[name] = {"refused": "Unsupported"}
    expected["pickle.chunk"] = {"refused": "InvalidData"}


def main():
    # The threads that a file was written with are in it.
    blosc2.set_nthreads(1)
    blosc2.cparams_dflts["nthreads"] = 1
    shutil.rmtree(VERSION, ignore_errors=True)
    os.mkdir(VERSION)
    arrays()
    super_chunks()
    if NEW:
        containers()
        carriers()
        refused()
    with open(os.path.join(VERSION, "expected.json"), "w") as file:
        text = json.dumps({"blosc2": VERSION, "numpy": np.__version__, "files": expected}, indent=1, default=list)
        file.write(text + "\n")
    print(VERSION, len(expected), "files", file=sys.stderr)


if __name__ == "__main__":
    main()
