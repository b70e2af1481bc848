//! Arrays of the C library as it is compiled here. The arrays of this crate are compared with them.

use std::ffi::CString;
use std::ops::Range;
use std::path::Path;
use std::ptr::{self, NonNull};

use blosc2_sys as sys;

use crate::common::C_READS_FRAMES;

/// An array that the C library has opened.
#[derive(Debug)]
pub(crate) struct CArray(NonNull<sys::b2nd_array_t>);

/// A number for each axis, with room for the maximum number of dimensions.
type Numbers = [i64; sys::B2ND_MAX_DIM as usize];

fn numbers(of: impl IntoIterator<Item = u64>) -> Numbers {
    let mut numbers = [0; sys::B2ND_MAX_DIM as usize];
    for (to, from) in numbers.iter_mut().zip(of) {
        *to = from.try_into().unwrap();
    }
    numbers
}

fn len_of(bytes: &[u8]) -> i64 {
    bytes.len().try_into().unwrap()
}

fn start_of(ranges: &[Range<u64>]) -> Numbers {
    numbers(ranges.iter().map(|range| range.start))
}

fn end_of(ranges: &[Range<u64>]) -> Numbers {
    numbers(ranges.iter().map(|range| range.end))
}

fn shape_of(ranges: &[Range<u64>]) -> Numbers {
    numbers(ranges.iter().map(|range| range.end - range.start))
}

impl CArray {
    /// Opens an array; `None` if C cannot read frames on this processor.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        Self::open_at(path, 0)
    }

    /// Opens an array inside a larger file.
    pub(crate) fn open_at(path: &Path, offset: u64) -> Option<Self> {
        if !C_READS_FRAMES {
            return None;
        }
        assert!(blosc2::Codec::Lz4.is_available()); // starts the library
        let text = CString::new(path.to_str().unwrap()).unwrap();
        let mut array = ptr::null_mut();
        // SAFETY: the path is a string that outlives the call.
        let code = unsafe { sys::b2nd_open_offset(text.as_ptr(), &mut array, offset as i64) };
        assert_eq!(code, 0, "{path:?} at {offset}");
        Some(Self(NonNull::new(array).unwrap()))
    }

    fn get(&self) -> &sys::b2nd_array_t {
        // SAFETY: the array is live, and nothing changes it while this is borrowed.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn shape(&self) -> Vec<u64> {
        let ndim = usize::try_from(self.get().ndim).unwrap();
        self.get().shape[..ndim].iter().map(|&size| size.try_into().unwrap()).collect()
    }

    fn typesize(&self) -> usize {
        // SAFETY: the super-chunk of a live array is live.
        unsafe { (*self.get().sc).typesize }.try_into().unwrap()
    }

    fn zeros(&self, items: u64) -> Vec<u8> {
        vec![0; usize::try_from(items).unwrap() * self.typesize()]
    }

    /// All items in C order.
    pub(crate) fn read_all(&self) -> Vec<u8> {
        let mut bytes = self.zeros(self.shape().iter().product());
        let (to, len) = (bytes.as_mut_ptr().cast(), len_of(&bytes));
        // SAFETY: `to` has room for `len` bytes.
        let code = unsafe { sys::b2nd_to_cbuffer(self.0.as_ptr(), to, len) };
        assert_eq!(code, 0);
        bytes
    }

    pub(crate) fn read(&self, ranges: &[Range<u64>]) -> Vec<u8> {
        let mut bytes = self.zeros(ranges.iter().map(|range| range.end - range.start).product());
        let (start, end, shape) = (start_of(ranges), end_of(ranges), shape_of(ranges));
        let (to, len) = (bytes.as_mut_ptr().cast(), len_of(&bytes));
        // SAFETY: there is room for the box, and the bounds and the shape have a number for each axis.
        let code = unsafe {
            let (start, end, shape) = (start.as_ptr(), end.as_ptr(), shape.as_ptr());
            sys::b2nd_get_slice_cbuffer(self.0.as_ptr(), start, end, to, shape, len)
        };
        assert_eq!(code, 0, "{ranges:?}");
        bytes
    }

    /// Reads single items by their indices in C order.
    pub(crate) fn read_points(&self, points: &[i64]) -> Vec<u8> {
        let mut bytes = self.zeros(points.len() as u64);
        let (to, len) = (bytes.as_mut_ptr().cast(), len_of(&bytes));
        // SAFETY: `to` has room for `len` bytes, one item for each point, and there are `count` points.
        let code = unsafe {
            let count = points.len().try_into().unwrap();
            sys::b2nd_get_sparse_cbuffer(self.0.as_ptr(), count, points.as_ptr(), to, len)
        };
        assert_eq!(code, 0, "{points:?}");
        bytes
    }

    pub(crate) fn read_orthogonal(&self, lists: &[Vec<u64>]) -> Vec<u8> {
        let mut bytes = self.zeros(lists.iter().map(|list| list.len() as u64).product());
        let (to, len) = (bytes.as_mut_ptr(), len_of(&bytes));
        orthogonal(lists, |lists, sizes, shape| {
            // SAFETY: there is room for the product of the lists, and each list is as long as its number in `sizes`.
            unsafe {
                let array = self.0.as_ptr();
                sys::b2nd_get_orthogonal_selection(array, lists, sizes, to.cast(), shape, len)
            }
        });
        bytes
    }

    pub(crate) fn write_orthogonal(&mut self, lists: &[Vec<u64>], bytes: &[u8]) {
        let (from, len) = (bytes.as_ptr(), len_of(bytes));
        orthogonal(lists, |lists, sizes, shape| {
            // SAFETY: `from` has `len` bytes, and each list is as long as its number in `sizes`.
            unsafe {
                let array = self.0.as_ptr();
                sys::b2nd_set_orthogonal_selection(array, lists, sizes, from.cast(), shape, len)
            }
        });
    }

    pub(crate) fn write(&mut self, ranges: &[Range<u64>], bytes: &[u8]) {
        let (start, end, shape) = (start_of(ranges), end_of(ranges), shape_of(ranges));
        let (from, len) = (bytes.as_ptr().cast(), len_of(bytes));
        // SAFETY: `from` has `len` bytes, and `start`, `end` and `shape` have a number for each axis.
        let code = unsafe {
            let (start, end, shape) = (start.as_ptr(), end.as_ptr(), shape.as_ptr());
            sys::b2nd_set_slice_cbuffer(from, shape, len, start, end, self.0.as_ptr())
        };
        assert_eq!(code, 0, "{ranges:?}");
    }

    pub(crate) fn append(&mut self, axis: usize, bytes: &[u8]) {
        let (from, len) = (bytes.as_ptr().cast(), len_of(bytes));
        // SAFETY: `from` has `len` bytes.
        let code = unsafe { sys::b2nd_append(self.0.as_ptr(), from, len, axis as i8) };
        assert_eq!(code, 0, "along {axis}");
    }

    pub(crate) fn insert(&mut self, axis: usize, at: u64, bytes: &[u8]) {
        let (from, len, at) = (bytes.as_ptr().cast(), len_of(bytes), at.try_into().unwrap());
        // SAFETY: `from` has `len` bytes.
        let code = unsafe { sys::b2nd_insert(self.0.as_ptr(), from, len, axis as i8, at) };
        assert_eq!(code, 0, "along {axis}");
    }

    pub(crate) fn delete(&mut self, axis: usize, range: Range<u64>) {
        let (start, len) = (range.start as i64, (range.end - range.start) as i64);
        // SAFETY: the array is live.
        let code = unsafe { sys::b2nd_delete(self.0.as_ptr(), axis as i8, start, len) };
        assert_eq!(code, 0, "along {axis}: {range:?}");
    }

    /// Adds the items of another array, without a copy of this one.
    pub(crate) fn concatenate(&mut self, axis: usize, other: &Self) {
        let mut both = ptr::null_mut();
        // SAFETY: both arrays are live; without a copy C does not use the context and returns this array.
        let code = unsafe {
            let (context, own) = (ptr::null_mut(), self.0.as_ptr());
            sys::b2nd_concatenate(context, own, other.0.as_ptr(), axis as i8, false, &mut both)
        };
        assert_eq!((code, both), (0, self.0.as_ptr()), "along {axis}");
    }

    /// The shape padded to whole chunks, and the chunk shape padded to whole blocks.
    pub(crate) fn padded_shapes(&self) -> [Vec<u64>; 2] {
        let (array, ndim) = (self.get(), self.shape().len());
        let shape = array.extshape[..ndim].iter().map(|&size| size as u64).collect();
        [shape, array.extchunkshape[..ndim].iter().map(|&size| size as u64).collect()]
    }

    /// The format of the text of the dtype.
    pub(crate) fn dtype_format(&self) -> i8 {
        self.get().dtype_format
    }

    /// Resizes each axis at its end, or at the positions in `start`.
    pub(crate) fn resize(&mut self, shape: &[u64], start: Option<&[u64]>) {
        let shape = numbers(shape.iter().copied());
        let start = start.map(|start| numbers(start.iter().copied()));
        let start = start.as_ref().map_or(ptr::null(), |start| start.as_ptr());
        // SAFETY: the shape and the positions have a number for each axis.
        let code = unsafe { sys::b2nd_resize(self.0.as_ptr(), shape.as_ptr(), start) };
        assert_eq!(code, 0, "{shape:?}");
    }
}

/// Calls `call` with the lists in the form that C takes.
fn orthogonal(
    lists: &[Vec<u64>],
    call: impl FnOnce(*mut *mut i64, *mut i64, *mut i64) -> core::ffi::c_int,
) {
    let mut lists: Vec<Vec<i64>> =
        lists.iter().map(|list| list.iter().map(|&at| at as i64).collect()).collect();
    let mut sizes: Vec<i64> = lists.iter().map(|list| list.len() as i64).collect();
    let mut shape = sizes.clone();
    let mut lists: Vec<*mut i64> = lists.iter_mut().map(|list| list.as_mut_ptr()).collect();
    assert_eq!(call(lists.as_mut_ptr(), sizes.as_mut_ptr(), shape.as_mut_ptr()), 0);
}

impl Drop for CArray {
    fn drop(&mut self) {
        // SAFETY: the array is freed once.
        unsafe { sys::b2nd_free(self.0.as_ptr()) };
    }
}
