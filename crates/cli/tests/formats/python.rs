//! pyarrow and zarr-python read the exported files, and the command reads theirs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Folder;

fn python() -> PathBuf {
    if let Some(given) = std::env::var_os("BLOSC2_TEST_PYTHON") {
        return given.into();
    }
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python-venv");
    let found = [venv.join("bin").join("python"), venv.join("Scripts").join("python.exe")];
    let found = found.into_iter().find(|path| path.exists());
    found.expect(
        "there is no Python for the tests: run `cargo xtask integrations`, which sets it up",
    )
}

fn run(folder: &Folder, source: &str, args: &[&str]) {
    let mut command = Command::new(python());
    command.args(["-I", "-c", source]).args(args).current_dir(folder.path("."));
    let output = command.output().expect("Python does not start");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const WRITE: &str = r#"
import datetime
import pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.parquet

n = 4_000
some = lambda step, values: [None if i % step == 0 else value for i, value in enumerate(values)]
table = pa.table({
    "i1": pa.array([i % 100 for i in range(n)], pa.int8()),
    "u8": pa.array([2**63 + i for i in range(n)], pa.uint64()),
    "f4": pa.array([i / 7 for i in range(n)], pa.float32()),
    "f8": pa.array(some(5, [i * 1.5 for i in range(n)])),
    "b": pa.array(some(7, [i % 2 == 0 for i in range(n)])),
    "s": pa.array(some(11, ["" if i % 13 == 0 else f'té,"{i}' for i in range(n)])),
    "d": pa.array(some(3, [["x", "y", "zz"][i % 3] for i in range(n)])).dictionary_encode(),
    "ts": pa.array(some(9, range(n)), pa.timestamp("s")),
    "tz": pa.array([i * 10**9 + 1 for i in range(n)], pa.timestamp("ns", "UTC")),
    "l": pa.array(some(10, [[None] * (i % 2) + list(range(i % 4)) for i in range(n)]), pa.list_(pa.int32())),
    "st": pa.array([{"x": i, "y": str(i)} for i in range(n)]),
    "bin": pa.array(some(4, [bytes([i % 256]) for i in range(n)])),
    "date": pa.array([datetime.date(2024, 1, 1 + i % 28) for i in range(n)]),
})
for codec in ["snappy", "gzip", "zstd", "lz4", "none"]:
    pa.parquet.write_table(table, f"{codec}.parquet", compression=codec)
pa.feather.write_feather(table, "lz4.feather", compression="lz4")
pa.feather.write_feather(table, "zstd.feather", compression="zstd")
with pa.OSFile("plain.arrows", "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
    stream.write_table(table)
plain = table.select(["i1", "u8", "f8", "b", "s", "ts", "date"])
pa.csv.write_csv(plain, "plain.csv")
"#;

const COMPARE: &str = r#"
import sys
import pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.parquet

source, path = sys.argv[1:]
if path.endswith(".parquet"):
    found = pa.parquet.read_table(path)
elif path.endswith(".csv"):
    found = pa.csv.read_csv(path, convert_options=pa.csv.ConvertOptions(column_types={"u8": pa.uint64()}, strings_can_be_null=True, quoted_strings_can_be_null=False))
elif path.endswith(".arrows"):
    found = pa.ipc.open_stream(path).read_all()
else:
    found = pa.feather.read_table(path)
expected = pa.parquet.read_table("none.parquet")
if source == "plain.csv":
    expected = expected.select(found.column_names)
assert found.column_names == expected.column_names, found.column_names
for name in expected.column_names:
    one, two = found[name].to_pylist(), expected[name].to_pylist()
    if name == "date":
        one = [value.date() if hasattr(value, "date") else value for value in one]
    if name in ("ts", "tz"):
        one, two = [found[name].cast(pa.timestamp("ns")).to_pylist(), expected[name].cast(pa.timestamp("ns")).to_pylist()]
    assert one == two, (path, name, [pair for pair in zip(one, two) if pair[0] != pair[1]][:3])
"#;

#[test]
#[ignore = "needs Python; cargo xtask integrations runs it"]
fn pyarrow_and_the_command_exchange_tables() {
    let folder = Folder::new();
    run(&folder, WRITE, &[]);
    let sources = [
        "snappy.parquet",
        "gzip.parquet",
        "zstd.parquet",
        "lz4.parquet",
        "none.parquet",
        "lz4.feather",
        "zstd.feather",
        "plain.arrows",
        "plain.csv",
    ];
    for source in sources {
        folder.good(&["import", source, "t.b2z", "--force"]);
        folder.good(&["check", "t.b2z"]);
        let outs: &[&str] = match source {
            "plain.csv" => &["out.csv", "out.parquet"],
            _ => &["out.parquet", "out.arrow", "out.arrows"],
        };
        for out in outs {
            folder.good(&["export", "t.b2z", out, "--force"]);
            run(&folder, COMPARE, &[source, out]);
        }
    }
}

const ZARR: &str = r#"
import sys, warnings
import blosc2, numcodecs, numpy as np, zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

warnings.simplefilter("ignore")
base = np.arange(7 * 5 * 6).reshape(7, 5, 6)
if sys.argv[1] == "write":
    count = 0

    def add(array, written, **options):
        global count
        made = zarr.create_array(f"{count}.zarr", shape=array.shape, dtype=array.dtype, **options)
        made[:written] = array[:written]
        # Rows that are not written have the fill value.
        np.save(f"{count}.npy", made[:])
        count += 1

    for dtype in ["b1", "i1", "<i2", ">i4", "u8", "<f2", "f4", ">f8", "c8", "c16"]:
        array = base.astype(dtype)
        for codecs in [None, [BloscCodec(typesize=4)], [GzipCodec()], [ZstdCodec(checksum=True), Crc32cCodec()]]:
            filters = [TransposeCodec(order=(2, 0, 1))] if count % 2 else None
            add(array, 3 if count % 3 else 7, chunks=(3, 5, 4), compressors=codecs, filters=filters, fill_value=1)
    for dtype in ["i4", ">f4", "S3", "<U4", "M8[ms]", [("a", "i2"), ("b", ">f8", (2,))]]:
        array = np.zeros(base.shape, dtype)
        if array.dtype.names:
            array["a"] = base
            array["b"] = base[..., None]
        else:
            array[...] = base.astype("i8").astype(dtype)
        for codec in [None, numcodecs.Blosc(), numcodecs.Zstd(), numcodecs.GZip(), numcodecs.Zlib()]:
            for order in "CF":
                fill = np.zeros((), dtype)[()]
                add(array, 7, chunks=(3, 2, 6), zarr_format=2, compressors=codec, order=order, fill_value=fill)
    open("count", "w").write(str(count))
else:
    for index in range(int(open("count").read())):
        expected = np.load(f"{index}.npy")
        found = blosc2.open(f"{index}.b2nd")[:]
        dtypes = [each.dtype.newbyteorder("=") for each in (found, expected)]
        assert np.array_equal(found, expected) and dtypes[0] == dtypes[1], (index, *dtypes)
        back = zarr.open_array(f"{index}.back.zarr", mode="r")
        assert np.array_equal(back[:], expected), (index, back.metadata)
"#;

#[test]
#[ignore = "needs Python; cargo xtask integrations runs it"]
fn zarr_and_the_command_exchange_arrays() {
    let folder = Folder::new();
    run(&folder, ZARR, &["write"]);
    let count: usize = std::fs::read_to_string(folder.path("count")).unwrap().parse().unwrap();
    for index in 0..count {
        let [from, array, back] =
            ["zarr", "b2nd", "back.zarr"].map(|ending| format!("{index}.{ending}"));
        folder.good(&["import", &from, &array]);
        folder.good(&["export", &array, &back]);
    }
    run(&folder, ZARR, &["read"]);
}
