//! Metalayers: named pieces of bytes beside the chunks.

use std::ffi::{CStr, CString};
use std::ptr;

use blosc2_sys as sys;

use crate::schunk::{Raw, SChunk};
use crate::{Error, ErrorKind, Result};

/// The metalayers of a super-chunk: named pieces of bytes. Made by [`SChunk::meta`] and
/// [`SChunk::vlmeta`].
#[derive(Debug, Clone, Copy)]
pub struct Metalayers<'a> {
    schunk: &'a SChunk,
    variable: bool,
}

impl Metalayers<'_> {
    /// The names, in the order of the file. Bytes that are not UTF-8 are replaced.
    pub fn names(&self) -> Vec<String> {
        let raw = self.schunk.lock();
        self.layers(&raw).map(|layer| name_of(layer).to_string_lossy().into_owned()).collect()
    }

    /// The content of one, `None` if there is none of this name.
    ///
    /// # Errors
    /// A content of variable length that cannot be decompressed.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let stored = {
            let raw = self.schunk.lock();
            let found =
                self.layers(&raw).find(|layer| name_of(layer).to_bytes() == name.as_bytes());
            found.map(content_of)
        };
        stored.map(|stored| self.decode(stored)).transpose()
    }

    /// All names and contents.
    fn raw(&self) -> Result<Vec<(CString, Vec<u8>)>> {
        let stored: Vec<_> = {
            let raw = self.schunk.lock();
            self.layers(&raw).map(|layer| (name_of(layer).to_owned(), content_of(layer))).collect()
        };
        stored.into_iter().map(|(name, stored)| Ok((name, self.decode(stored)?))).collect()
    }

    /// Contents of variable length are stored as chunks.
    fn decode(&self, stored: Vec<u8>) -> Result<Vec<u8>> {
        if !self.variable || stored.is_empty() {
            return Ok(stored);
        }
        crate::decompress(&stored).map_err(|error| self.schunk.at(error))
    }

    fn layers<'r>(&self, raw: &'r Raw) -> impl Iterator<Item = &'r sys::blosc2_metalayer> {
        let fields = raw.fields();
        let (pointers, count) = match self.variable {
            false => (&fields.metalayers[..], i32::from(fields.nmetalayers)),
            true => (&fields.vlmetalayers[..], i32::from(fields.nvlmetalayers)),
        };
        let count = usize::try_from(count).unwrap_or(0);
        pointers.iter().take(count).filter_map(|&layer| {
            // SAFETY: the first `count` entries of a live super-chunk point to its metalayers or are
            // null, and they stay while it is locked.
            unsafe { layer.as_ref() }
        })
    }
}

impl SChunk {
    /// The fixed metalayers.
    pub fn meta(&self) -> Metalayers<'_> {
        Metalayers { schunk: self, variable: false }
    }

    /// The metalayers of variable length.
    pub fn vlmeta(&self) -> Metalayers<'_> {
        Metalayers { schunk: self, variable: true }
    }

    pub(crate) fn copy_metalayers_to(&self, target: &mut Self, except: &[&str]) -> Result<()> {
        for (name, content) in self.meta().raw()? {
            if !except.iter().any(|each| each.as_bytes() == name.to_bytes()) {
                target.add_meta(&name, &content)?;
            }
        }
        Ok(())
    }

    pub(crate) fn copy_vlmetalayers_to(&self, target: &mut Self) -> Result<()> {
        for (name, content) in self.vlmeta().raw()? {
            let (raw, len) = (target.raw_mut().as_ptr(), metalayer_len(&content)?);
            check_name(&name)?;
            // SAFETY: the name has at most 31 bytes and a NUL, the content `len` bytes; C copies
            // both (schunk.c, blosc2_vlmeta_add). C counts the layers of a frame itself.
            let code = unsafe {
                let content = content.as_ptr().cast_mut();
                sys::blosc2_vlmeta_add(raw, name.as_ptr(), content, len, ptr::null_mut())
            };
            if code < 0 {
                return Err(Error::from_code("add a metalayer", code));
            }
        }
        Ok(())
    }

    /// Adds a fixed metalayer; only before the first chunk.
    pub(crate) fn add_meta(&mut self, name: &CStr, content: &[u8]) -> Result<()> {
        let doing = "add a metalayer";
        check_name(name)?;
        let len = metalayer_len(content)?;
        if i32::from(self.raw_mut().fields().nmetalayers) >= sys::BLOSC2_MAX_METALAYERS {
            let detail = format!("there can be {}", sys::BLOSC2_MAX_METALAYERS);
            return Err(self.error(ErrorKind::TooLarge, doing, detail));
        }
        let raw = self.raw_mut().as_ptr();
        // SAFETY: the name has at most 31 bytes and a NUL, there is room for one layer more, and C
        // copies name and content (schunk.c, blosc2_meta_add).
        let code =
            unsafe { sys::blosc2_meta_add(raw, name.as_ptr(), content.as_ptr().cast_mut(), len) };
        if code < 0 { Err(self.at(Error::from_code(doing, code))) } else { Ok(()) }
    }
}

fn name_of(layer: &sys::blosc2_metalayer) -> &CStr {
    if layer.name.is_null() {
        return c"";
    }
    // SAFETY: names end in a NUL byte (schunk.c, blosc2_meta_add; frame.c, get_meta_from_header and
    // get_vlmeta_from_trailer) and live as long as their layer.
    unsafe { CStr::from_ptr(layer.name) }
}

fn content_of(layer: &sys::blosc2_metalayer) -> Vec<u8> {
    match (layer.content.is_null(), usize::try_from(layer.content_len)) {
        // SAFETY: the content of a live layer has as many bytes.
        (false, Ok(len)) => unsafe { std::slice::from_raw_parts(layer.content, len) }.to_vec(),
        _ => Vec::new(),
    }
}

fn check_name(name: &CStr) -> Result<()> {
    let (len, limit) = (name.to_bytes().len(), sys::BLOSC2_METALAYER_NAME_MAXLEN as usize);
    if len <= limit {
        return Ok(());
    }
    let detail = format!("its name has at most {limit} bytes, got {len}");
    Err(Error::new(ErrorKind::InvalidArgument, "add a metalayer", detail))
}

fn metalayer_len(content: &[u8]) -> Result<i32> {
    i32::try_from(content.len()).map_err(|_| {
        Error::new(ErrorKind::TooLarge, "add a metalayer", "its content is over 2 GiB")
    })
}
