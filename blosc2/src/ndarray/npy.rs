//! NumPy's `.npy` files.

use std::io::Write;
use std::ops::Range;

use blosc2_format::ReadAt;
use blosc2_format::npy::Header;

use super::boxes::{BoxReader, Readings};
use super::ranges::{each_part, sides_of, whole};
use super::transfer::RawItems;
use super::{NDArray, NDArrayBuilder, NDArrayView, NUMPY_FORMAT};
use crate::{Doing, Error, ErrorKind, Result};

const READ: &str = "read an npy file";
const WRITE: &str = "write an npy file";

/// The maximum number of bytes that [`write`] reads at once, unless one item is larger.
const PIECE: u64 = 64 << 20;

/// Creates an array from a `.npy` file of NumPy, in C or Fortran order. Python: `blosc2.asarray(numpy.load(path,
/// mmap_mode="r"))`.
///
/// `source` is a file, a slice of bytes, or another source with random access. The file is read chunk by chunk, so the
/// array can be larger than memory. To convert a part, read the file to a temporary array, and
/// [`copy`](NDArrayBuilder::copy) a view of it. `builder` determines the chunk shape, the place and the parameters of the array; its
/// dtype is ignored.
///
/// ```
/// use std::fs::File;
///
/// use blosc2::{NDArray, npy};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("table.npy");
/// # npy::write(&NDArray::from_slice(&[1i32, 2, 3, 4], [2, 2])?, File::create(&path)?)?;
/// let array = npy::read(File::open(&path)?, NDArray::builder())?;
/// assert_eq!(array.read::<Vec<i32>>(..)?, [1, 2, 3, 4]);
///
/// let mut bytes = Vec::new();
/// npy::write(array.view().slice(1)?, &mut bytes)?; // the second row; `&array` writes all
/// assert_eq!(npy::read(bytes, NDArray::builder())?.read::<Vec<i32>>(..)?, [3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails with the [errors of creation](NDArrayBuilder#errors-of-creation), and with
/// - [`ErrorKind::InvalidData`]: the file is not an `.npy` file, has an invalid header, or has fewer or more bytes of
///   items than the shape and the dtype need;
/// - [`ErrorKind::Unsupported`]: the version of the format is unknown, the items are pointers to Python objects, or an
///   item has no bytes;
/// - [`ErrorKind::TooLarge`]: the header has more than 1 MiB;
/// - [`ErrorKind::Io`]: reading fails.
#[doc(alias("npy", "from_npy", "load"))]
pub fn read(source: impl ReadAt + Sync, builder: NDArrayBuilder) -> Result<NDArray> {
    let header = Header::read_at(&source).doing(READ)?;
    let (layout, start) = (header.0.layout(), header.1);
    let dtype = header.0.dtype;
    if dtype.has_pointers() {
        let detail = format!("its items `{dtype}` are pointers to Python objects, not data");
        return Err(Error::new(ErrorKind::Unsupported, READ, detail));
    }
    if layout.typesize == 0 {
        let detail = format!("its items `{dtype}` have 0 bytes");
        return Err(Error::new(ErrorKind::Unsupported, READ, detail));
    }
    let size = source.size().map_err(|error| Error::of_io(READ, error))?;
    let found = size.saturating_sub(start);
    if layout.nbytes() != Some(found) {
        let (shape, typesize) = (&layout.shape, layout.typesize);
        let detail = format!(
            "expected items of {typesize} bytes in the shape {shape:?}, found {found} bytes"
        );
        return Err(Error::new(ErrorKind::InvalidData, READ, detail));
    }
    let fill = |_: &[BoxReader<'_>], ranges: &[Range<u64>], bytes: &mut [u8]| {
        let from = |at: u64, part: &mut [u8]| source.read_exact_at(start + at, part);
        let read = layout.read_box(ranges, bytes, &from);
        read.map_err(|error| Error::of_io(READ, error))
    };
    let dtype = dtype.to_string();
    let (builder, item) = (builder.dtype_format(NUMPY_FORMAT), (&*dtype, layout.typesize));
    builder.create_from(&layout.shape, item, Readings::default(), |_, new| {
        new.by_boxes(Vec::new(), &fill)
    })
}

/// Writes an array or a view as a `.npy` file of NumPy, in C order. Python: `numpy.save(path, array[:])`.
///
/// The items are read and written in pieces of at most 64 MiB. `out` is written in order from its current position; a
/// [`BufWriter`](std::io::BufWriter) is not needed. For an example, see [`read`].
///
/// # Errors
/// Fails with the [errors of reads](NDArray#errors-of-reads), and with
/// - [`ErrorKind::Unsupported`]: the array has no dtype that NumPy reads, or the items are pointers to Python objects;
/// - [`ErrorKind::Io`]: writing fails.
#[doc(alias("to_npy", "save"))]
pub fn write<'a>(items: impl Into<NDArrayView<'a>>, mut out: impl Write) -> Result<()> {
    let view = items.into();
    let typesize = view.part().len;
    let fits = |dtype: &&crate::Dtype| dtype.size() == typesize && !dtype.has_pointers();
    let Some(dtype) = view.dtype().filter(fits) else {
        let detail =
            format!("the items of {typesize} bytes have no dtype that an npy file can have");
        return Err(Error::new(ErrorKind::Unsupported, WRITE, detail));
    };
    let header = Header::new(dtype.clone(), view.shape());
    let header = header.to_bytes().doing(WRITE)?;
    out.write_all(&header).map_err(|error| Error::of_io(WRITE, error))?;
    // A handle can limit reads to fewer bytes.
    let piece = view.array.schunk.max_read().unwrap_or(PIECE).min(PIECE);
    let sides = sides_of(&view.shape(), piece / typesize.max(1) as u64);
    each_part(&whole(&view.shape()), &sides, &mut |ranges| {
        let items = view.read::<RawItems>(ranges)?;
        out.write_all(&items.0).map_err(|error| Error::of_io(WRITE, error))
    })
}
