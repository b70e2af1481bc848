//! The registration of the filter with libhdf5, and the functions that libhdf5 calls.

use std::any::Any;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use blosc2::limits::{MAX_CHUNK_LEN, MAX_NDIM};
use blosc2::{Error, ErrorKind, Result};
use hdf5_metno::globals::{H5E_CALLBACK, H5E_ERR_CLS, H5E_PLINE};
use hdf5_metno::sync::sync;
use hdf5_metno_sys::h5::{H5allocate_memory, H5free_memory, herr_t, hsize_t};
use hdf5_metno_sys::h5d::H5Dget_create_plist;
use hdf5_metno_sys::h5e::{H5E_DEFAULT, H5Epush2};
use hdf5_metno_sys::h5f::{H5F_OBJ_ALL, H5F_OBJ_DATASET, H5Fget_obj_count, H5Fget_obj_ids};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5Pclose, H5Pget_chunk, H5Pget_filter_by_id2, H5Pget_filter2, H5Pget_nfilters, H5Pmodify_filter,
};
use hdf5_metno_sys::h5t::{H5T_ARRAY, H5Tclose, H5Tget_class, H5Tget_size, H5Tget_super};
use hdf5_metno_sys::h5z::{
    H5Z_CLASS_T_VERS, H5Z_FILTER_FLETCHER32, H5Z_FILTER_SHUFFLE, H5Z_FLAG_REVERSE, H5Z_class2_t,
    H5Zregister,
};

use crate::payload::{decode_to, encode, no_memory, too_long, too_short};
use crate::{FILTER_ID, FilterParams};

/// The maximum number of axes of a dataset. C: `H5S_MAX_RANK`.
const MAX_RANK: usize = 32;

/// Registers the filter with libhdf5. Afterwards, libhdf5 uses this crate for all datasets of this process that have
/// the Blosc2 filter.
///
/// This function can be called at any time, several times and from several threads. It locks the global lock of
/// `hdf5-metno`. If another implementation of the filter exists, such as a plugin that libhdf5 has loaded, this
/// function replaces it. libhdf5 compresses and decompresses one chunk at a time, on the thread that reads or writes
/// the dataset.
///
/// When a dataset is created, the filter sets the sizes of items and chunks in `cd_values` if they are missing. If the
/// compression parameters are not supported, creating the dataset fails.
///
/// A chunk that contains less or more data than a chunk of the dataset is an error, unless the pipeline of an open
/// dataset with the same `cd_values` contains a filter before Blosc2 that can change the length, such as Deflate.
///
/// If a chunk cannot be decompressed, reading the chunk fails, and the error stack of HDF5 contains the message of this
/// crate. If a chunk cannot be compressed, the result depends on the dataset: with an optional filter, HDF5 stores the
/// chunk without the filter; with a mandatory filter, writing the chunk fails. `hdf5-metno` creates datasets with
/// optional filters.
///
/// The documentation of the [crate](crate) has an example.
///
/// # Errors
/// - [`ErrorKind::Library`]: libhdf5 rejects the filter.
pub fn register() -> Result<()> {
    let class = H5Z_class2_t {
        version: H5Z_CLASS_T_VERS as c_int,
        id: FILTER_ID,
        encoder_present: 1,
        decoder_present: 1,
        name: c"blosc2".as_ptr(),
        can_apply: None,
        set_local: Some(set_local),
        filter: Some(filter),
    };
    // SAFETY: `sync` has initialized the library and holds its lock. H5Zregister reads a structure of the version that
    // it starts with, and copies it; it keeps the pointer to the name, which is static.
    let status = sync(|| unsafe { H5Zregister((&raw const class).cast()) });
    if status < 0 {
        let detail = "H5Zregister failed";
        return Err(Error::new(ErrorKind::Library, "register the Blosc2 filter with HDF5", detail));
    }
    Ok(())
}

/// The function that HDF5 calls when a dataset is created: completes the parameters in the property list.
extern "C" fn set_local(properties: hid_t, datatype: hid_t, _: hid_t) -> herr_t {
    match guarded(|| complete(properties, datatype)) {
        Some(()) => 1,
        None => -1,
    }
}

fn complete(properties: hid_t, datatype: hid_t) -> Result<()> {
    let failed = |name: &str| {
        let doing = "set the parameters of the Blosc2 filter of HDF5";
        Error::new(ErrorKind::Library, doing, format!("{name} failed"))
    };
    let mut flags: c_uint = 0;
    let mut values: [c_uint; 8 + MAX_NDIM] = [0; 8 + MAX_NDIM];
    let mut count = values.len();
    // SAFETY: HDF5 allows calls of the library in this function (`H5Z_set_local_func_t` in the documentation of
    // H5Zregister). It passes valid identifiers, or -1 for the heap of a group, which the first call refuses.
    // H5Pget_filter_by_id writes at most `count` values, and the number of all of them to `count`. It accepts null for
    // the name, whose length is 0, and for the configuration of the filter.
    let status = unsafe {
        let (name, config) = (ptr::null_mut(), ptr::null_mut());
        let values = values.as_mut_ptr();
        H5Pget_filter_by_id2(properties, FILTER_ID, &mut flags, &mut count, values, 0, name, config)
    };
    if status < 0 {
        return Err(failed("H5Pget_filter_by_id"));
    }
    let mut shape: [hsize_t; MAX_RANK] = [0; MAX_RANK];
    // SAFETY: as above; H5Pget_chunk writes at most `MAX_RANK` sizes.
    let rank = unsafe { H5Pget_chunk(properties, MAX_RANK as c_int, shape.as_mut_ptr()) };
    let shape = usize::try_from(rank).ok().and_then(|rank| shape.get(..rank));
    let shape = shape.ok_or_else(|| failed("H5Pget_chunk"))?;
    // Sizes of chunks are below 2^32.
    let shape: Vec<usize> = shape.iter().map(|&side| side as usize).collect();
    // SAFETY: as above; the type that H5Tget_super returns is closed once.
    let (size, item_size) = unsafe {
        let size = H5Tget_size(datatype);
        let mut item_size = size;
        if H5Tget_class(datatype) == H5T_ARRAY {
            let item = H5Tget_super(datatype);
            item_size = H5Tget_size(item);
            H5Tclose(item);
        }
        (size, item_size)
    };
    let mut params = FilterParams::new(size, &shape)?;
    if params.chunksize as usize > MAX_CHUNK_LEN {
        let detail = format!("a chunk has at most {MAX_CHUNK_LEN} bytes, got {}", params.chunksize);
        let doing = "set the parameters of the Blosc2 filter of HDF5";
        return Err(Error::new(ErrorKind::TooLarge, doing, detail));
    }
    // At most the size of the array.
    params.typesize = item_size as u32;
    params.set_compression(values.get(..count).unwrap_or(&values))?;
    let values = params.cd_values()?;
    // SAFETY: as above; H5Pmodify_filter copies the values.
    let status =
        unsafe { H5Pmodify_filter(properties, FILTER_ID, flags, values.len(), values.as_ptr()) };
    if status < 0 { Err(failed("H5Pmodify_filter")) } else { Ok(()) }
}

/// The function that HDF5 calls for each chunk. It replaces the buffer by the result, and returns the length of the
/// result. If it fails, it returns 0 and the buffer is unchanged.
///
/// # Safety
/// HDF5 guarantees, in the documentation of `H5Zregister` and of `H5Z_func_t` in `H5Zpublic.h`: `cd_values` points to
/// `cd_nelmts` integers; `*buf` points to memory with at least `nbytes` valid bytes, which the function may free with
/// H5free_memory and replace by memory of H5allocate_memory; `buf_size` points to the size of that memory; nothing else
/// uses them during the call. It is assumed that HDF5 initializes these bytes: it fills new chunks before it writes to
/// them, unless the fill time is `NEVER` and a chunk is written in part.
unsafe extern "C" fn filter(
    flags: c_uint,
    cd_nelmts: usize,
    cd_values: *const c_uint,
    nbytes: usize,
    buf_size: *mut usize,
    buf: *mut *mut c_void,
) -> usize {
    let result = guarded(|| {
        // SAFETY: the guarantee of the caller.
        let (values, input) =
            unsafe { (slice_of(cd_values, cd_nelmts), slice_of((*buf).cast::<u8>(), nbytes)) };
        transform(flags & H5Z_FLAG_REVERSE != 0, values, input)
    });
    let Some(result) = result else { return 0 };
    let (memory, len, size) = result.into_parts();
    // SAFETY: the guarantee of the caller. The old memory is replaced, so that it is freed once; the new one comes from
    // H5allocate_memory, and belongs to HDF5 from here on.
    unsafe {
        H5free_memory(*buf);
        *buf = memory;
        *buf_size = size;
    }
    len
}

/// Returns the values that a pointer of C refers to.
///
/// # Safety
/// `start` points to `len` initialized values, which do not change while the result lives. It may be anything, such as
/// null, if `len` is 0.
unsafe fn slice_of<'a, T>(start: *const T, len: usize) -> &'a [T] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the guarantee of the caller.
    unsafe { slice::from_raw_parts(start, len) }
}

fn transform(decompress: bool, values: &[u32], input: &[u8]) -> Result<Buffer> {
    let params = FilterParams::from_cd_values(values)?;
    let chunksize = params.chunksize as usize;
    if chunksize == 0 {
        // HDF5 reads as many bytes as a chunk has, whatever the filter returns.
        let detail = "the parameters do not contain the size of a chunk (HDF5 does not set it for variable-length items): \
             pass those of `FilterParams::new`";
        return Err(Error::new(ErrorKind::Unsupported, "filter a chunk of HDF5", detail));
    }
    if decompress {
        // HDF5 does not tell the length. It is the size of the chunk, unless other filters were applied before this
        // one: checksums add some bytes, and so do compressors to data that they cannot compress.
        let limit = chunksize.saturating_add(chunksize / 64 + 1024);
        return decode_to(input, &params, limit, |len| {
            if len < chunksize && !follows_filter_that(Changes::Shortens, values) {
                return Err(too_short(len, &params));
            }
            if len > chunksize && !follows_filter_that(Changes::Lengthens, values) {
                return Err(too_long(len as u64, chunksize));
            }
            // HDF5 may read the whole chunk, even if the payload contains less.
            Buffer::new(len, len.max(chunksize))
        });
    }
    let payload = encode(input, &params)?;
    let mut buffer = Buffer::new(payload.len(), payload.len())?;
    buffer.as_mut().copy_from_slice(&payload);
    Ok(buffer)
}

/// What a filter before Blosc2 can do with the length of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changes {
    Shortens,
    Lengthens,
}

/// Returns whether an open dataset has these `cd_values` of Blosc2, and a filter before Blosc2 that can change the length
/// of chunks in this way.
///
/// HDF5 does not pass the pipeline to a filter, and the `cd_values` do not describe it. Without such a filter, HDF5 would
/// read the bytes that a chunk with too little data lacks as zeros, and would ignore additional bytes.
fn follows_filter_that(changes: Changes, values: &[u32]) -> bool {
    let all = H5F_OBJ_ALL as hid_t;
    // SAFETY: HDF5 holds its lock on this thread while it runs a filter, and its functions can be called again on this
    // thread. H5Fget_obj_ids writes at most `ids.len()` identifiers. They are valid, because no dataset is closed here.
    unsafe {
        let count = H5Fget_obj_count(all, H5F_OBJ_DATASET);
        let mut ids: Vec<hid_t> = vec![-1; usize::try_from(count).unwrap_or(0)];
        let count = H5Fget_obj_ids(all, H5F_OBJ_DATASET, ids.len(), ids.as_mut_ptr());
        ids.truncate(usize::try_from(count).unwrap_or(0));
        ids.into_iter().any(|dataset| {
            let properties = H5Dget_create_plist(dataset);
            if properties < 0 {
                return false;
            }
            let found = pipeline_follows(properties, changes, values);
            H5Pclose(properties);
            found
        })
    }
}

/// Returns whether a pipeline has Blosc2 with these `cd_values` after a filter that can change the length of chunks in
/// this way.
///
/// # Safety
/// `properties` are valid properties of a dataset.
unsafe fn pipeline_follows(properties: hid_t, changes: Changes, values: &[u32]) -> bool {
    let mut has_changed = false;
    // SAFETY: the guarantee of the caller. Layouts without filters have 0 filters, and errors are negative.
    let count = unsafe { H5Pget_nfilters(properties) };
    for index in 0..c_uint::try_from(count).unwrap_or(0) {
        let mut found = vec![0; values.len()];
        let mut len = found.len();
        let (mut flags, name, config) = (0, ptr::null_mut(), ptr::null_mut());
        // SAFETY: as in `complete`.
        let filter = unsafe {
            let found = found.as_mut_ptr();
            H5Pget_filter2(properties, index, &mut flags, &mut len, found, 0, name, config)
        };
        match filter {
            FILTER_ID if has_changed && len == values.len() && found == values => return true,
            H5Z_FILTER_SHUFFLE => {}
            // It adds a checksum.
            H5Z_FILTER_FLETCHER32 if changes == Changes::Shortens => {}
            // Others compress, and can add bytes to data that they cannot compress.
            _ => has_changed = true,
        }
    }
    false
}

/// Memory of the allocator of HDF5.
struct Buffer {
    memory: ptr::NonNull<c_void>,
    len: usize,
    size: usize,
}

impl Buffer {
    /// Allocates `size` zeroed bytes. The first `len` are used. `size` is at least 1.
    fn new(len: usize, size: usize) -> Result<Self> {
        // SAFETY: H5allocate_memory takes any size, and returns null if it fails or the size is 0.
        let memory = unsafe { H5allocate_memory(size, 1) };
        let memory = ptr::NonNull::new(memory);
        Ok(Self {
            memory: memory.ok_or_else(|| no_memory(size, "H5allocate_memory failed"))?,
            len,
            size,
        })
    }

    /// Returns the memory, which the caller frees, the length of its used part, and its size.
    fn into_parts(self) -> (*mut c_void, usize, usize) {
        let this = std::mem::ManuallyDrop::new(self);
        (this.memory.as_ptr(), this.len, this.size)
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory has `size` bytes, at least `len`; they were zeroed and belong to this value.
        unsafe { slice::from_raw_parts_mut(self.memory.as_ptr().cast(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the memory comes from H5allocate_memory, and is freed once: `into_parts` does not drop.
        unsafe { H5free_memory(self.memory.as_ptr()) };
    }
}

/// Runs `work`. Its error or panic is added to the error stack of HDF5: a panic cannot continue in C.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Option<T> {
    let message = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("the Blosc2 filter panicked: {}", panic_message(&*panic)),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let (file, line) = (c"blosc2-hdf5", line!());
    let (class, major, minor) = (*H5E_ERR_CLS, *H5E_PLINE, *H5E_CALLBACK);
    // SAFETY: all strings are terminated and live during the call, which copies them; the format takes one string.
    unsafe {
        let (file, text) = (file.as_ptr(), message.as_ptr());
        let (function, format) = (FUNCTION.as_ptr(), FORMAT.as_ptr());
        H5Epush2(H5E_DEFAULT, file, function, line, class, major, minor, format, text);
    }
    None
}

const FUNCTION: &CStr = c"blosc2_hdf5";
const FORMAT: &CStr = c"%s";

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
