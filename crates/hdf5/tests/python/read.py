"""Reads the datasets that Rust has written with hdf5plugin, PyTables or b2h5py, and compares them with the same data
without a filter. Prints the number of equal datasets."""

import sys

import b2h5py.blosc2
import h5py
import hdf5plugin
import numpy as np
import tables


class NoFastSlicing(Exception):
    pass


def slices(shape):
    yield tuple(slice(None) for _ in shape)
    yield tuple(slice(size // 3, size // 3 + 2) for size in shape)
    yield tuple(slice(size // 4, size - 1) for size in shape)


def check(name, found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype, f"{name}: {found.dtype} {expected.dtype}"
    assert found.tobytes() == expected.tobytes(), f"{name} differs"


def partial_reads_are_wrong(dataset):
    """C-Blosc2 reads parts of chunks with the filter delta wrong, also of files that hdf5plugin has written."""
    return dataset.id.get_create_plist().get_filter_by_id(hdf5plugin.Blosc2.filter_id)[1][5] == hdf5plugin.Blosc2.DELTA


def hdf5plugin_reads(path):
    with h5py.File(path) as file:
        for name, dataset in file["cases"].items():
            properties = dataset.id.get_create_plist()
            filters = [properties.get_filter(index) for index in range(properties.get_nfilters())]
            assert hdf5plugin.Blosc2.filter_id in [code for code, *_ in filters], name
            for index in range(dataset.id.get_num_chunks()):
                assert dataset.id.get_chunk_info(index).filter_mask == 0, f"{name} is not filtered"
            check(name, dataset[...], file["raw"][name][...])
            yield name


def b2h5py_reads(path):
    # An error, where b2h5py would let HDF5 read the dataset.
    b2h5py.blosc2._no_opt_error = NoFastSlicing
    with h5py.File(path) as file:
        for name, dataset in file["cases"].items():
            # b2h5py ignores other filters in the pipeline, and cannot read items that are arrays.
            if partial_reads_are_wrong(dataset) or dataset.dtype.subdtype or name.startswith("pipeline"):
                continue
            for each in slices(dataset.shape):
                check(name, b2h5py.B2Dataset(dataset)[each], file["raw"][name][each])
            yield name


def pytables_reads(path):
    with tables.open_file(path) as file, h5py.File(path) as other:
        for node in file.list_nodes("/cases"):
            dataset = other["cases"][node._v_name]
            # PyTables cannot read structures with several axes, even without a filter.
            if partial_reads_are_wrong(dataset) or dataset.dtype.names and dataset.ndim > 1:
                continue
            for each in slices(node.shape):
                found, expected = node[each if len(each) > 1 else each[0]], other["raw"][node.name][each]
                assert found.tobytes() == np.ascontiguousarray(expected, found.dtype).tobytes(), f"{node.name} {each}"
            yield node.name


def text(path):
    with h5py.File(path) as file:
        for name, dataset in file.items():
            assert [item.decode() for item in dataset] == [f"text {i}" * (i % 4) for i in range(500)], name
            yield name


print(len(list(globals()[sys.argv[1]](sys.argv[2]))))
