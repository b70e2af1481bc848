"""Reads the arrays that Rust has written, and compares their items with the raw bytes."""

import json

from common import *

with open("names.json") as file:
    names = json.load(file)
store = zarr.storage.LocalStore("ours")
for name in names:
    array = zarr.open_array(store, path=name, mode="r")
    with open(f"{name}.raw", "rb") as raw:
        expected = raw.read()
    assert np.ascontiguousarray(array[...]).tobytes() == expected, f"{name}: {array.metadata}"
print(len(names))
