//! The C library as a reader of super-chunks.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{self, NonNull};

use blosc2_sys as sys;

use super::simple::{Layer, Model};
use crate::common::assert_same;

/// A super-chunk that C has opened.
pub(crate) struct CSchunk(NonNull<sys::blosc2_schunk>);

impl CSchunk {
    /// A file or a directory.
    pub(crate) fn open(path: &Path) -> Self {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the path ends in a NUL byte; the library was started, as the file was made with it.
        let schunk = unsafe { sys::blosc2_schunk_open(path.as_ptr()) };
        Self(NonNull::new(schunk).expect("C does not open it"))
    }

    /// A copy of a frame in memory.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (from, len) = (bytes.as_ptr().cast_mut(), bytes.len() as i64);
        // SAFETY: C copies `len` bytes.
        let schunk = unsafe { sys::blosc2_schunk_from_buffer(from, len, true) };
        Self(NonNull::new(schunk).expect("C does not take it"))
    }

    fn fields(&self) -> &sys::blosc2_schunk {
        // SAFETY: the super-chunk is live.
        unsafe { self.0.as_ref() }
    }

    /// Compares all of it.
    pub(crate) fn compare(&self, model: &Model) {
        let fields = self.fields();
        assert_eq!(fields.nchunks, model.chunks.len() as i64, "C: chunks");
        assert_eq!(fields.typesize, model.typesize as i32, "C: typesize");
        assert_eq!(fields.nbytes, model.nbytes() as i64, "C: bytes");
        if let Some(size) = model.chunksize {
            assert_eq!(fields.chunksize, size as i32, "C: chunk size");
        }
        for (index, chunk) in model.chunks.iter().enumerate() {
            // Zeros, which C leaves where nothing was ever written.
            let mut found = vec![0; chunk.data.len()];
            let (to, len) = (found.as_mut_ptr().cast(), found.len() as i32);
            // SAFETY: `to` has room for `len` bytes.
            let code = unsafe {
                sys::blosc2_schunk_decompress_chunk(self.0.as_ptr(), index as i64, to, len)
            };
            assert_eq!(code, len, "C: chunk {index}");
            assert_same(&found, &chunk.data, &format!("C: chunk {index}"));
        }
        assert_eq!(self.meta(), model.meta, "C: metalayers");
        assert_eq!(self.vlmeta(), model.vlmeta, "C: metalayers of variable length");
    }

    fn meta(&self) -> Vec<Layer> {
        let fields = self.fields();
        let layers = &fields.metalayers[..usize::from(fields.nmetalayers)];
        let layer = |&layer: &*mut sys::blosc2_metalayer| {
            // SAFETY: each of the `nmetalayers` entries has a name and `content_len` bytes of content.
            unsafe {
                let (content, len) = ((*layer).content, (*layer).content_len as usize);
                Layer { name: name(layer), content: copy(content, len) }
            }
        };
        layers.iter().map(layer).collect()
    }

    fn vlmeta(&self) -> Vec<Layer> {
        let fields = self.fields();
        let layers = &fields.vlmetalayers[..fields.nvlmetalayers as usize];
        let layer = |&layer: &*mut sys::blosc2_metalayer| {
            let (mut content, mut len) = (ptr::null_mut(), 0);
            // SAFETY: all `nvlmetalayers` entries are there; C allocates a copy of the content, which is freed.
            unsafe {
                let schunk = self.0.as_ptr();
                let code = sys::blosc2_vlmeta_get(schunk, (*layer).name, &mut content, &mut len);
                assert!(code >= 0, "C: a metalayer: {code}");
                let found = copy(content, len as usize);
                libc::free(content.cast());
                Layer { name: name(layer), content: found }
            }
        };
        layers.iter().map(layer).collect()
    }
}

/// # Safety
/// The metalayer is a live one.
unsafe fn name(layer: *const sys::blosc2_metalayer) -> String {
    // SAFETY: the caller's; a live one has a name.
    unsafe { CStr::from_ptr((*layer).name).to_str().unwrap().to_owned() }
}

/// # Safety
/// There are `len` bytes, if that is not 0.
unsafe fn copy(from: *const u8, len: usize) -> Vec<u8> {
    // SAFETY: the caller's.
    if len == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(from, len).to_vec() } }
}

impl Drop for CSchunk {
    fn drop(&mut self) {
        // SAFETY: the super-chunk is live, and freed once.
        unsafe { sys::blosc2_schunk_free(self.0.as_ptr()) };
    }
}
