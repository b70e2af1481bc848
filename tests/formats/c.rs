//! The C library as a reader and a writer of files.

use std::ffi::CString;
use std::path::Path;
use std::ptr;

use blosc2::{NDArray, RawItems, SChunk};
use blosc2_sys as sys;

use crate::content::Content;

/// Reads a file with the C library.
pub(crate) fn read(path: &Path) -> blosc2::Result<Content> {
    let schunk = SChunk::open(path)?;
    let layers = |layers: blosc2::super_chunk::Metalayers<'_>| {
        let content = |name: String| layers.get(&name).map(|got| (name, got.unwrap_or_default()));
        layers.names().into_iter().map(content).collect::<blosc2::Result<Vec<_>>>()
    };
    let (meta, vlmeta) = (layers(schunk.meta())?, layers(schunk.vlmeta())?);
    let chunks = schunk.iter_chunks().collect::<blosc2::Result<_>>()?;
    let is_array = meta.iter().any(|(name, _)| name == "b2nd" || name == "caterva");
    let array = if is_array {
        let array = NDArray::open(path)?;
        Some(array.read::<RawItems>(..)?.0)
    } else {
        None
    };
    Ok(Content { chunks, array, meta, vlmeta })
}

/// The C library's parameters, one thread.
pub(crate) fn params(codec: u8, typesize: usize, filters: &[(u8, u8)]) -> sys::blosc2_cparams {
    let mut params = sys::blosc2_cparams_defaults();
    params.compcode = codec;
    params.typesize = typesize as i32;
    params.filters = [0; 6];
    for (at, (filter, meta)) in filters.iter().rev().enumerate() {
        params.filters[5 - at] = *filter;
        params.filters_meta[5 - at] = *meta;
    }
    params
}

/// A super-chunk in a file that the C library writes.
pub(crate) struct Writer {
    schunk: *mut sys::blosc2_schunk,
}

impl Writer {
    /// Creates a contiguous file or a directory with these metalayers.
    pub(crate) fn create(
        path: &Path,
        contiguous: bool,
        params: sys::blosc2_cparams,
        meta: &[(&str, Vec<u8>)],
    ) -> Self {
        let mut cparams = params;
        let mut dparams = sys::blosc2_dparams_defaults();
        let path = CString::new(path.to_str().unwrap()).unwrap();
        let mut storage = sys::blosc2_storage {
            contiguous,
            urlpath: path.as_ptr().cast_mut(),
            cparams: &mut cparams,
            dparams: &mut dparams,
            io: ptr::null_mut(),
        };
        assert!(!blosc2::library::c_version().is_empty() && blosc2::Codec::BloscLz.is_available());
        // SAFETY: C copies what the storage points to.
        let schunk = unsafe { sys::blosc2_schunk_new(&mut storage) };
        assert!(!schunk.is_null(), "{path:?}");
        for (name, content) in meta {
            let name = CString::new(*name).unwrap();
            let (from, len) = (content.as_ptr().cast_mut(), content.len() as i32);
            // SAFETY: the super-chunk is live, and C copies name and content.
            let code = unsafe { sys::blosc2_meta_add(schunk, name.as_ptr(), from, len) };
            assert!(code >= 0, "{code}");
        }
        Self { schunk }
    }

    /// Compresses and appends data.
    pub(crate) fn append(&mut self, data: &[u8]) {
        // SAFETY: the length is that of the data, which C only reads.
        let code = unsafe {
            sys::blosc2_schunk_append_buffer(self.schunk, data.as_ptr().cast(), data.len() as i32)
        };
        assert!(code > 0, "{code}");
    }

    /// Adds a metalayer of variable length.
    pub(crate) fn vlmeta(&mut self, name: &str, content: &[u8]) {
        let name = CString::new(name).unwrap();
        let (from, len) = (content.as_ptr().cast_mut(), content.len() as i32);
        let mut params = sys::blosc2_cparams_defaults();
        params.typesize = 1;
        // SAFETY: C copies name and content, and reads the parameters during the call.
        let code =
            unsafe { sys::blosc2_vlmeta_add(self.schunk, name.as_ptr(), from, len, &mut params) };
        assert!(code >= 0, "{code}");
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: it is freed once; what is in the file stays there.
        unsafe { sys::blosc2_schunk_free(self.schunk) };
    }
}
