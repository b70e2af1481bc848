//! The C library as the second model: it reads the same bytes and makes the same writes.

use std::ptr;

use blosc2::RawItems;
use blosc2_sys as sys;

use super::cases::{Case, list};
use super::model::{Item, items, raw, select};
use crate::common::{C_READS_FRAMES, Rng, assert_same};

/// Reads and writes with C and with this crate.
pub(crate) fn check<T: Item>(case: &mut Case<'_, T>) {
    if !C_READS_FRAMES {
        return;
    }
    let c = CArray::of(&case.array.schunk().to_cframe().unwrap());
    for _ in 0..4 {
        let shape = case.model.shape();
        // For uninitialized single items, C returns the content of its memory.
        let ways = if case.unwritten { 4 } else { 5 };
        let way = case.rng.below(if shape.is_empty() { 2 } else { ways });
        if way == 4 {
            points(case, &c);
            continue;
        }
        let lists: Vec<Vec<u64>> = match way {
            0 | 1 => shape.iter().map(|&size| range(size, &mut case.rng)).collect(),
            _ => shape.iter().map(|&size| list(size, &mut case.rng)).collect(),
        };
        case.log(format!("by C, way {way}: {lists:?}"));
        let selection: Vec<_> = lists.iter().map(|list| list.clone().into()).collect();
        let numbers = select(&case.model.numbers.view(), &selection);
        let mut found = vec![0; numbers.len() * size_of::<T>()];
        let sizes: Vec<i64> = lists.iter().map(|list| list.len() as i64).collect();
        if way.is_multiple_of(2) {
            if way == 0 {
                let (start, stop) = ends(&lists);
                c.read_box(&start, &stop, &mut found, &sizes);
            } else {
                c.read_lists(&lists, &mut found, &sizes);
            }
            assert_same(
                &found,
                &case.array.read::<RawItems>(&selection).unwrap().0,
                "what both read",
            );
            assert_same(&found, raw(&case.model.get(numbers)), "what C reads");
            continue;
        }
        let items: Vec<T> = items(numbers.len(), &mut case.rng);
        if way == 1 {
            let (start, stop) = ends(&lists);
            c.write_box(&start, &stop, raw(&items), &sizes);
        } else {
            c.write_lists(&lists, raw(&items), &sizes);
        }
        case.array.write(&selection, &items).unwrap();
        case.model.put(numbers, &items);
        case.compare();
        let mut all = vec![0; size_of_val(&case.model.items[..])];
        c.read_all(&mut all);
        assert_same(&all, raw(&case.model.items), "what C has written");
    }
}

fn points<T: Item>(case: &mut Case<'_, T>, c: &CArray) {
    let all = case.model.items.len() as u64;
    let count = if all == 0 { 0 } else { case.rng.below(20) };
    let numbers: Vec<i64> = (0..count).map(|_| case.rng.below(all).cast_signed()).collect();
    case.log(format!("points by C: {numbers:?}"));
    let mut found = vec![0; numbers.len() * size_of::<T>()];
    c.read_points(&numbers, &mut found);
    let expected = case.model.get(numbers.iter().map(|&number| number as usize));
    assert_same(&found, raw(&expected), "the points that C reads");
}

/// Consecutive indices along an axis.
fn range(size: usize, rng: &mut Rng) -> Vec<u64> {
    let (one, other) = (rng.below(size as u64 + 1), rng.below(size as u64 + 1));
    (one.min(other)..one.max(other)).collect()
}

/// The box of the ranges, which may be empty.
fn ends(ranges: &[Vec<u64>]) -> (Vec<i64>, Vec<i64>) {
    let end = |range: &Vec<u64>| match (range.first(), range.last()) {
        (Some(first), Some(last)) => (first.cast_signed(), last.cast_signed() + 1),
        _ => (0, 0),
    };
    ranges.iter().map(end).unzip()
}

/// An array that C has opened from a copy of the bytes.
struct CArray(*mut sys::b2nd_array_t);

impl CArray {
    fn of(bytes: &[u8]) -> Self {
        let mut array = ptr::null_mut();
        let (from, len) = (bytes.as_ptr().cast_mut(), bytes.len() as i64);
        // SAFETY: C copies `len` bytes; the library was started, as the array was made with it.
        let code = unsafe { sys::b2nd_from_cframe(from, len, true, &mut array) };
        assert!(code >= 0 && !array.is_null(), "C does not take it: {code}");
        Self(array)
    }

    fn read_all(&self, items: &mut [u8]) {
        let (to, len) = (items.as_mut_ptr().cast(), items.len() as i64);
        // SAFETY: the array is live, and `to` has room for `len` bytes.
        let code = unsafe { sys::b2nd_to_cbuffer(self.0, to, len) };
        assert!(code >= 0, "C reads nothing: {code}");
    }

    fn read_box(&self, start: &[i64], stop: &[i64], items: &mut [u8], shape: &[i64]) {
        let (to, len) = (items.as_mut_ptr().cast(), items.len() as i64);
        // SAFETY: the shapes have a number for each axis, and `to` has room for `len` bytes.
        let code = unsafe {
            let (start, stop, shape) = (start.as_ptr(), stop.as_ptr(), shape.as_ptr());
            sys::b2nd_get_slice_cbuffer(self.0, start, stop, to, shape, len)
        };
        assert!(code >= 0, "C reads no box: {code}");
    }

    fn write_box(&self, start: &[i64], stop: &[i64], items: &[u8], shape: &[i64]) {
        let (from, len) = (items.as_ptr().cast(), items.len() as i64);
        // SAFETY: the shapes have a number for each axis, and `from` has `len` bytes.
        let code = unsafe {
            let (start, stop, shape) = (start.as_ptr(), stop.as_ptr(), shape.as_ptr());
            sys::b2nd_set_slice_cbuffer(from, shape, len, start, stop, self.0)
        };
        assert!(code >= 0, "C writes no box: {code}");
    }

    fn read_lists(&self, lists: &[Vec<u64>], items: &mut [u8], shape: &[i64]) {
        let (to, len) = (items.as_mut_ptr().cast(), items.len() as i64);
        let (mut lists, mut sizes) = (pointers(lists), shape.to_vec());
        // SAFETY: each axis has a list of the size in `sizes`, and C only reads the lists; `to` has room for `len`
        // bytes.
        let code = unsafe {
            let (lists, sizes, shape) = (lists.as_mut_ptr(), sizes.as_mut_ptr(), shape.as_ptr());
            sys::b2nd_get_orthogonal_selection(self.0, lists, sizes, to, shape.cast_mut(), len)
        };
        assert!(code >= 0, "C reads no lists: {code}");
    }

    fn write_lists(&self, lists: &[Vec<u64>], items: &[u8], shape: &[i64]) {
        let (from, len) = (items.as_ptr().cast(), items.len() as i64);
        let (mut lists, mut sizes) = (pointers(lists), shape.to_vec());
        // SAFETY: each axis has a list of the size in `sizes`, and C only reads the lists; `from` has `len` bytes.
        let code = unsafe {
            let (lists, sizes, shape) = (lists.as_mut_ptr(), sizes.as_mut_ptr(), shape.as_ptr());
            sys::b2nd_set_orthogonal_selection(self.0, lists, sizes, from, shape.cast_mut(), len)
        };
        assert!(code >= 0, "C writes no lists: {code}");
    }

    fn read_points(&self, numbers: &[i64], items: &mut [u8]) {
        let (to, len) = (items.as_mut_ptr().cast(), items.len() as i64);
        let (from, count) = (numbers.as_ptr(), numbers.len() as i64);
        // SAFETY: `from` has `count` numbers, and `to` has room for `len` bytes.
        let code = unsafe { sys::b2nd_get_sparse_cbuffer(self.0, count, from, to, len) };
        assert!(code >= 0, "C reads no points: {code}");
    }
}

/// C takes the lists as signed numbers through mutable pointers.
fn pointers(lists: &[Vec<u64>]) -> Vec<*mut i64> {
    lists.iter().map(|list| list.as_ptr().cast_mut().cast()).collect()
}

impl Drop for CArray {
    fn drop(&mut self) {
        // SAFETY: the array is live, and freed once.
        unsafe { sys::b2nd_free(self.0) };
    }
}
