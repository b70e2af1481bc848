//! The C library in use: version, codecs, instruction set.

use std::ffi::{CStr, c_char};
use std::ptr;

use blosc2_sys as sys;

use crate::chunk::init::init;
use crate::closures::Library;
use crate::{Codec, closures};

/// Returns the version of the C library in use, such as `3.3.2`. C: `blosc2_get_version_string`.
///
/// ```
/// assert!(blosc2::library::c_version().starts_with("3."));
/// ```
#[doc(alias = "blosc2_get_version_string")]
pub fn c_version() -> &'static str {
    // SAFETY: the function returns a constant string that ends in a NUL byte, and needs no initialization (blosc2.c,
    // blosc2_get_version_string).
    let version = unsafe { CStr::from_ptr(sys::blosc2_get_version_string()) };
    version.to_str().unwrap_or("unknown")
}

/// Returns the codecs that this program can use, ordered by code: compiled-in codecs, registered codecs, and codecs
/// from loaded plugins. C: `blosc2_list_compressors`, which lists at most BloscLZ, LZ4, LZ4HC, zlib and Zstandard.
/// Python: `compressor_list`.
///
/// ```
/// use blosc2::Codec;
///
/// let codecs = blosc2::library::codecs();
/// assert!(codecs.starts_with(&[Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc]));
/// ```
#[doc(alias("blosc2_list_compressors", "compressor_list"))]
pub fn codecs() -> Vec<Codec> {
    (0..=u8::MAX).map(Codec::from_code).filter(|codec| codec.is_available()).collect()
}

/// Returns the instruction set that shuffle and bitshuffle use on this processor: `avx512`, `avx2`, `sse2`, `neon`,
/// `altivec` or `generic`.
///
/// With `avx512`, shuffle uses AVX2; with `neon`, bitshuffle uses generic code. Returns `None` with an installed
/// C-Blosc2 library (feature `system`), because an installed library does not report the instruction set.
///
/// ```
/// println!("shuffled with {}", blosc2::library::instruction_set().unwrap_or("unknown instructions"));
/// ```
pub fn instruction_set() -> Option<&'static str> {
    init().ok()?;
    // SAFETY: `init` has made the first call, `blosc2_shuffle`: the instruction set is chosen (init.rs).
    unsafe { sys::kernels() }?.to_str().ok()
}

impl Codec {
    /// Returns the library that implements this codec, with its version. C: `blosc2_get_complib_info`. Python:
    /// `clib_info`.
    ///
    /// Returns `None` for a codec that this build lacks. Also returns `None` for plugins, NDLZ and ZFP, whose versions
    /// C-Blosc2 does not report. For a user-defined codec, returns
    /// [`UserCodec::library`](crate::user_defined::UserCodec::library).
    ///
    /// ```
    /// use blosc2::Codec;
    ///
    /// let library = Codec::Lz4Hc.library().unwrap();
    /// assert_eq!(library.name, "LZ4");
    /// assert!(library.version.starts_with("1."));
    /// assert_eq!(Codec::Other(200).library(), None);
    /// ```
    pub fn library(self) -> Option<Library> {
        // `Other` may hold a code that has a name.
        let codec = Self::from_code(self.code());
        if closures::is_user_code(codec.code()) {
            return closures::codec_library(codec.code());
        }
        let original =
            matches!(codec, Self::BloscLz | Self::Lz4 | Self::Lz4Hc | Self::Zlib | Self::Zstd);
        if !original || !codec.is_available() {
            return None;
        }
        let mut key = ptr::null();
        let (mut name, mut version) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the codec is available, so the library is initialized, and `key` becomes a constant string that ends
        // in a NUL byte. For these codecs, C does not use the registered codecs. It returns two strings that it has
        // allocated (blosc2.c, blosc2_compcode_to_compname, blosc2_get_complib_info).
        unsafe {
            sys::blosc2_compcode_to_compname(codec.code().into(), &mut key);
            sys::blosc2_get_complib_info(key, &mut name, &mut version);
        }
        let (name, version) = (take(name), take(version));
        Some(Library { name: name?, version: version? })
    }
}

/// Copies and frees a string that C has allocated with strdup. Returns `None` for null: C could not allocate the
/// string.
fn take(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the string is not null, ends in a NUL byte, comes from malloc, and nothing else refers to it.
    unsafe {
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Some(owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::installed;

    #[test]
    fn codecs_are_those_that_can_be_used() {
        let codecs = codecs();
        assert!(codecs.is_sorted_by_key(|codec| codec.code()));
        for code in 0..=255 {
            let codec = Codec::from_code(code);
            assert_eq!(codecs.contains(&codec), codec.is_available(), "{codec}");
        }
        assert_eq!(codecs.contains(&Codec::Zstd), cfg!(feature = "zstd") || installed::IN_USE);
    }

    #[test]
    fn libraries_of_the_codecs_in_this_build() {
        let names = [
            (Codec::BloscLz, "BloscLZ"),
            (Codec::Lz4, "LZ4"),
            (Codec::Lz4Hc, "LZ4"),
            (Codec::Zlib, "Zlib"),
            (Codec::Zstd, "Zstd"),
            (Codec::Other(Codec::Lz4.code()), "LZ4"),
        ];
        for (codec, name) in names {
            let library = codec.library();
            assert_eq!(library.is_some(), codec.is_available(), "{codec}");
            if let Some(library) = library {
                assert_eq!(library.name, name);
                assert!(library.version.contains(|digit: char| digit.is_ascii_digit()), "{codec}");
            }
        }
        // Codecs without a version, and without a name.
        for codec in [Codec::Ndlz, Codec::ZfpRate, Codec::Other(3), Codec::Other(36)] {
            assert_eq!(codec.library(), None, "{codec}");
        }
        assert_eq!(Codec::Lz4.library(), Codec::Lz4Hc.library());
    }

    #[test]
    fn the_instruction_set_is_one_of_this_processor() {
        let found = instruction_set();
        assert_eq!(found.is_none(), installed::IN_USE);
        #[cfg(target_arch = "x86_64")]
        assert!(found.is_none_or(|name| ["avx512", "avx2", "sse2"].contains(&name)), "{found:?}");
        #[cfg(target_arch = "aarch64")]
        assert!(found.is_none_or(|name| name == "neon"), "{found:?}");
    }
}
