//! Arrays from and to NumPy's `.npy` files.

use std::io;

use blosc2::storage::ReadAt;
use blosc2::{Error, ErrorKind, NDArray, NDArrayBuilder, OpenOptions, RawItems, SChunk, npy};
use blosc2_format::Dtype;
use blosc2_format::npy::Header;

use crate::common::run_python;

fn builder() -> NDArrayBuilder {
    NDArray::builder().chunk_shape([3, 2, 5]).block_shape([2, 2, 2])
}

/// The items of every dtype that differ from each other in every byte.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn arrays_are_written_and_read_equal() {
    let dtypes = [
        "<f8",
        ">f8",
        "<i2",
        ">u4",
        "|u1",
        "|b1",
        "<c16",
        "|S5",
        "<U3",
        "|V7",
        "<M8[ms]",
        ">m8[D]",
        "[('a', '<i4'), ('b', '>f8', (2,))]",
    ];
    for dtype in dtypes {
        let typesize = Dtype::parse(dtype).unwrap().size();
        for shape in [&[][..], &[0], &[1], &[7, 5, 9], &[4, 0, 3], &[1, 1, 1, 1, 2, 1]] {
            let len: u64 = shape.iter().product();
            let items = bytes(len as usize * typesize);
            let array = NDArray::builder().dtype(dtype, typesize);
            let array = array.from_slice(RawItems(&items), shape).unwrap();
            let mut file = Vec::new();
            npy::write(&array, &mut file).unwrap();
            let header = Header::read(&mut &file[..]).unwrap();
            assert_eq!((header.dtype.to_string(), &header.shape[..]), (dtype.to_owned(), shape));
            assert_eq!(file[file.len() - items.len()..], items);
            let read = npy::read(file, NDArray::builder()).unwrap();
            assert_eq!((read.dtype_str(), read.shape()), (Some(dtype), shape));
            assert_eq!(read.read::<RawItems>(..).unwrap().0, items);
        }
    }
}

#[test]
fn fortran_order_is_read() {
    let header =
        Header { dtype: Dtype::parse("<u2").unwrap(), shape: vec![7, 5, 9], fortran_order: true };
    let mut file = header.to_bytes().unwrap();
    for k in 0..9u16 {
        for j in 0..5 {
            for i in 0..7 {
                file.extend((i * 100 + j * 10 + k).to_le_bytes());
            }
        }
    }
    let array = npy::read(&file[..], builder()).unwrap();
    for (i, j, k) in [(0, 0, 0), (6, 4, 8), (3, 1, 7)] {
        let RawItems(item) = array.read([i, j, k]).unwrap();
        assert_eq!(item, (i as u16 * 100 + j as u16 * 10 + k as u16).to_le_bytes());
    }
}

#[test]
fn views_are_written() {
    let array = builder().from_fn([7, 5, 9], |[i, j, k]| i * 100 + j * 10 + k).unwrap();
    let view = array.view().slice((.., 2, 3..6)).unwrap().transpose();
    let mut file = Vec::new();
    npy::write(view.clone(), &mut file).unwrap();
    let read = npy::read(file, NDArray::builder()).unwrap();
    assert_eq!(read.shape(), [3, 7]);
    assert_eq!(read.read::<Vec<u64>>(..).unwrap(), view.read::<Vec<u64>>(..).unwrap());

    let dtype = "[('a', '<i4'), ('b', '<f4', (2,))]";
    let array = NDArray::builder().dtype(dtype, 12);
    let array = array.from_slice(RawItems(&bytes(36)), 3).unwrap();
    let mut file = Vec::new();
    npy::write(array.field("b").unwrap(), &mut file).unwrap();
    // As in NumPy, the axes of the sub-array are the last ones.
    let read = npy::read(file, NDArray::builder()).unwrap();
    assert_eq!((read.dtype_str(), read.shape()), (Some("<f4"), &[3, 2][..]));
    let expected: Vec<u8> = bytes(36).chunks(12).flat_map(|item| item[4..].to_vec()).collect();
    assert_eq!(read.read::<RawItems>(..).unwrap().0, expected);
}

/// A handle with a limit reads smaller pieces.
#[test]
fn pieces_keep_the_limit_of_the_handle() {
    let array = builder().from_fn([70, 5, 9], |[i, j, k]| i * 100 + j * 10 + k).unwrap();
    let mut expected = Vec::new();
    npy::write(&array, &mut expected).unwrap();
    let bytes = array.schunk().to_cframe().unwrap();
    for limit in [20_000, 2_000, 600] {
        let limited = OpenOptions::new().max_read(limit).open(bytes.clone()).unwrap();
        let limited = NDArray::from_schunk(limited).unwrap();
        assert_eq!(limited.read::<Vec<u64>>(..).unwrap_err().kind(), ErrorKind::TooLarge);
        let mut found = Vec::new();
        npy::write(&limited, &mut found).unwrap();
        assert!(found == expected, "{limit}");
    }
    let limited = OpenOptions::new().max_read(1).open(bytes).unwrap();
    let error = npy::write(&NDArray::from_schunk(limited).unwrap(), io::sink()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn bad_files_are_refused() {
    let kind = |bytes: Vec<u8>| {
        npy::read(bytes, NDArray::builder()).map(drop).map_err(|error| error.kind())
    };
    let mut file = Vec::new();
    npy::write(&NDArray::from_slice(&[1u32, 2, 3, 4], [2, 2]).unwrap(), &mut file).unwrap();
    assert_eq!(kind(file.clone()), Ok(()));
    for cut in 0..file.len() {
        assert_eq!(kind(file[..cut].to_vec()), Err(ErrorKind::InvalidData), "{cut}");
    }
    let longer = [&file[..], &[0]].concat();
    assert_eq!(kind(longer.clone()), Err(ErrorKind::InvalidData));
    let error = npy::read(longer, NDArray::builder()).unwrap_err().to_string();
    assert!(
        error.contains("expected items of 4 bytes in the shape [2, 2], found 17 bytes"),
        "{error}"
    );
    let mut version = file;
    version[6] = 9;
    assert_eq!(kind(version), Err(ErrorKind::Unsupported));
    let header =
        |dtype, shape| Header { dtype: Dtype::parse(dtype).unwrap(), shape, fortran_order: false };
    for (dtype, shape, expected) in [
        ("|O", vec![1], ErrorKind::Unsupported),
        ("|S0", vec![1], ErrorKind::Unsupported),
        ("<f8", vec![1 << 40, 1 << 40], ErrorKind::InvalidData),
        ("<f8", vec![u64::MAX], ErrorKind::InvalidData),
    ] {
        let mut bytes = header(dtype, shape).to_bytes().unwrap();
        bytes.extend([0; 8]);
        assert_eq!(kind(bytes), Err(expected), "{dtype}");
    }
    // An error of the source, also after the header.
    struct Broken(Vec<u8>);
    impl ReadAt for Broken {
        fn size(&self) -> io::Result<u64> {
            ReadAt::size(&self.0)
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            match offset < 128 {
                true => self.0.read_exact_at(offset, buffer),
                false => Err(io::Error::other("a bad sector")),
            }
        }
    }
    let mut bytes = header("<f8", vec![1]).to_bytes().unwrap();
    bytes.extend([0; 8]);
    let error: Error = npy::read(Broken(bytes), NDArray::builder()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("a bad sector"), "{error}");

    // Without a dtype of NumPy.
    let other = NDArray::builder().dtype_format(1).dtype("rgb24", 3);
    let other = other.from_slice(RawItems(&[0; 6]), 2).unwrap();
    let error = npy::write(&other, io::sink()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    drop(SChunk::open(other.schunk().to_cframe().unwrap()).unwrap());
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn numpy_reads_and_writes_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    run_python(
        r#"
import numpy
for name, dtype in enumerate(["<f8", ">i2", "|S3", "<U2", "<M8[s]", "<c8", [("a", "<i4"), ("é", ">f8", (2,))]]):
    for order in "CF":
        items = numpy.arange(105).reshape(3, 5, 7)
        array = numpy.zeros((3, 5, 7), dtype, order)
        if isinstance(dtype, list): array["a"] = items
        else: array[...] = items.astype(dtype) if dtype[1] != "M" else items.astype("<M8[s]")
        numpy.save(f"{name}{order}.npy", array)
"#,
        folder.path(),
        &[],
    );
    for name in 0..7 {
        for order in ["C", "F"] {
            let file = std::fs::File::open(path(&format!("{name}{order}.npy"))).unwrap();
            let array = npy::read(file, builder()).unwrap();
            let out = std::fs::File::create(path(&format!("{name}{order}.ours.npy"))).unwrap();
            npy::write(&array, out).unwrap();
        }
    }
    run_python(
        r#"
import numpy
for name in range(7):
    for order in "CF":
        theirs, ours = numpy.load(f"{name}{order}.npy"), numpy.load(f"{name}{order}.ours.npy")
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (name, order)
        assert ours.tobytes() == theirs.tobytes(), (name, order)
    assert open(f"{name}C.npy", "rb").read() == open(f"{name}C.ours.npy", "rb").read(), name
"#,
        folder.path(),
        &[],
    );
}

#[test]
fn arrays_without_items_are_written_at_once() {
    for shape in [&[1 << 46, 0][..], &[1 << 62, 0], &[0, 1 << 62]] {
        let array = NDArray::builder().zeros::<u8>(shape).unwrap();
        let mut file = Vec::new();
        npy::write(&array, &mut file).unwrap();
        assert_eq!(Header::read(&mut &file[..]).unwrap().shape, shape);
    }
}

/// An error of the writer is no limit of the handle.
#[test]
fn errors_of_the_writer_are_returned() {
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                2 => Err(io::Error::other(Error::new(ErrorKind::TooLarge, "write", "a full disk"))),
                _ => Ok(bytes.len()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let array = builder().from_fn([70, 5, 9], |[i, j, k]| i * 100 + j * 10 + k).unwrap();
    let error = npy::write(&array, Full(0)).unwrap_err();
    assert!(error.to_string().contains("a full disk"), "{error}");
}
