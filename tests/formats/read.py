"""Reads the files that `written.json` lists, and prints a line for each that holds something else.

Of each: `file`; `chunks`, the file with the data of all chunks, one after the other, and `lengths`,
theirs; for arrays `data`, the file with the items, `shape` and `dtype`; `meta` and `vlmeta`, the
metalayers, which hold bytes; `undefined`, whether the chunks have no values; `delta`, whether they
were compressed with that filter.
"""

import json
import sys

import blosc2
import numpy as np

wrong = 0


def expect(what, found, expected):
    global wrong
    if found != expected:
        wrong += 1
        print(f"{case['file']}: {what}: {str(found)[:200]}, expected {str(expected)[:200]}; {case['what']}")


for case in json.load(open("written.json")):
    try:
        made = blosc2.open(case["file"], mode="r", dparams=dict(nthreads=1))
        schunk = getattr(made, "schunk", made)
        chunks = open(case["chunks"], "rb").read()
        expect("chunks", schunk.nchunks, len(case["lengths"]))
        at = 0
        for index, length in enumerate(case["lengths"]):
            found = schunk.decompress_chunk(index)
            if case["undefined"]:
                expect(f"length of chunk {index}", len(found), length)
            else:
                expect(f"chunk {index}", found, chunks[at:at + length])
            at += length
        expect("typesize", schunk.typesize, case["typesize"])
        for layers, expected in ((schunk.meta, case["meta"]), (schunk.vlmeta, case["vlmeta"])):
            for name, content in expected.items():
                expect(name, layers[name], bytes.fromhex(content))
        if "data" in case:
            expect("shape", list(made.shape), case["shape"])
            expect("dtype", made.dtype, np.dtype(case["dtype"]))
            # It decodes blocks of a chunk that is not read as a whole without what delta needs.
            if not case["delta"]:
                expect("items", made[...].tobytes(), open(case["data"], "rb").read())
    except Exception as error:
        wrong += 1
        print(f"{case['file']}: {error!r}; {case['what']}")
sys.exit(1 if wrong else 0)
