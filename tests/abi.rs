//! The bindings of blosc2-sys agree with the C headers: layouts, types, constants, functions, inline functions
//! and static constants.
//!
//! `build.rs` writes the tables, one side in C and one in Rust, from the bindings themselves.
//! `blosc2/API-COVERAGE.md` has a row for each of the functions.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Once;
use std::{fs, ptr, slice};

use blosc2_sys::*;

// Each file in the folder of the tests would be a separate program.
#[path = "abi/coverage.rs"]
mod coverage;

/// The Rust side of the tables.
mod tables {
    use std::ffi::CStr;
    use std::mem::offset_of;

    include!(concat!(env!("OUT_DIR"), "/abi.rs"));

    fn number(value: usize) -> i64 {
        i64::try_from(value).unwrap()
    }

    fn field_size<S, F>(_: impl Fn(&S) -> *const F) -> i64 {
        number(size_of::<F>())
    }
}

/// A row of the C side of a table. The last row has no name.
#[repr(C)]
struct Row<T> {
    name: *const c_char,
    value: T,
}

unsafe extern "C" {
    fn abi_layouts() -> *const Row<i64>;
    fn abi_constants() -> *const Row<i64>;
    fn abi_strings() -> *const Row<*const c_char>;
    fn abi_types() -> *const Row<*const c_char>;
    fn abi_functions() -> *const Row<*const ()>;

    fn abi_cparams_defaults() -> *const blosc2_cparams;
    fn abi_dparams_defaults() -> *const blosc2_dparams;
    fn abi_storage_defaults() -> *const blosc2_storage;
    fn abi_io_defaults() -> *const blosc2_io;
    fn abi_stdio_params_defaults() -> *const blosc2_stdio_params;
    fn abi_stdio_mmap_defaults() -> *const blosc2_stdio_mmap;

    fn abi_meta_exists(schunk: *mut blosc2_schunk, name: *const c_char) -> c_int;
    fn abi_meta_get(
        schunk: *mut blosc2_schunk,
        name: *const c_char,
        content: *mut *mut u8,
        len: *mut i32,
    ) -> c_int;
    fn abi_deserialize_meta(
        smeta: *const u8,
        len: i32,
        ndim: *mut i8,
        shape: *mut i64,
        chunkshape: *mut i32,
        blockshape: *mut i32,
        dtype: *mut *mut c_char,
        format: *mut i8,
    ) -> c_int;

    fn free(memory: *mut c_void);
}

#[test]
fn structures_have_the_sizes_alignments_and_offsets_of_c() {
    // SAFETY: the table is build.rs's.
    assert_same(&tables::layouts(), &unsafe { rows(abi_layouts()) });
}

#[test]
fn fields_aliases_and_functions_have_the_types_of_c() {
    // SAFETY: the table is build.rs's, and its values are strings.
    assert_same(&tables::types(), &unsafe { text_rows(abi_types()) });
}

#[test]
fn integer_constants_have_the_values_of_c() {
    // SAFETY: the table is build.rs's.
    assert_same(&tables::constants(), &unsafe { rows(abi_constants()) });
}

#[test]
fn string_constants_have_the_values_of_c() {
    // SAFETY: the table is build.rs's, and its values are strings.
    assert_same(&tables::strings(), &unsafe { text_rows(abi_strings()) });
}

#[test]
fn functions_are_those_that_c_links() {
    // SAFETY: the table is build.rs's.
    assert_same(&tables::functions(), &unsafe { rows(abi_functions()) });
}

#[test]
fn every_exported_function_of_the_headers_is_declared() {
    let mut exported = BTreeSet::new();
    for header in ["blosc2.h", "b2nd.h", "blosc2/blosc2-stdio.h"] {
        let path = Path::new(env!("BLOSC2_INCLUDE")).join(header);
        let text = without_comments(&fs::read_to_string(path).unwrap());
        // A name stands before the first parenthesis of its declaration.
        exported.extend(text.split("BLOSC_EXPORT").skip(1).map(|declaration| {
            let before = declaration.split('(').next().unwrap();
            before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned()
        }));
    }
    let declared: BTreeSet<String> =
        tables::functions().into_iter().map(|(name, _)| name.to_owned()).collect();
    let missing: Vec<_> = exported.difference(&declared).collect();
    let surplus: Vec<_> = declared.difference(&exported).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "only in the headers: {missing:?}; only in the bindings: {surplus:?}"
    );
    assert_eq!(declared.len(), 164);
}

#[test]
fn defaults_are_those_of_c() {
    // The debug output holds every field, and no padding.
    // SAFETY: the functions return C's static constants, or copies of them.
    unsafe {
        let cparams = blosc2_cparams_defaults();
        assert_fields(&cparams, &*abi_cparams_defaults());
        assert_fields(&cparams, &blosc2_get_blosc2_cparams_defaults());

        let dparams = blosc2_dparams_defaults();
        assert_fields(&dparams, &*abi_dparams_defaults());
        assert_fields(&dparams, &blosc2_get_blosc2_dparams_defaults());

        let storage = blosc2_storage_defaults();
        assert_fields(&storage, &*abi_storage_defaults());
        assert_fields(&storage, &blosc2_get_blosc2_storage_defaults());

        let stdio = blosc2_stdio_params_defaults();
        assert_fields(&stdio, &*abi_stdio_params_defaults());
    }

    // Strings are compared by content, then made the same pointer.
    // SAFETY: as above; the strings are C's and Rust's literals.
    unsafe {
        let io = blosc2_io_defaults();
        for mut c in [*abi_io_defaults(), blosc2_get_blosc2_io_defaults()] {
            assert_eq!(CStr::from_ptr(io.name), CStr::from_ptr(c.name));
            c.name = io.name;
            assert_fields(&io, &c);
        }

        let mmap = blosc2_stdio_mmap_defaults();
        for mut c in [*abi_stdio_mmap_defaults(), blosc2_get_blosc2_stdio_mmap_defaults()] {
            assert_eq!(CStr::from_ptr(mmap.mode), CStr::from_ptr(c.mode));
            c.mode = mmap.mode;
            assert_fields(&mmap, &c);
        }
    }
}

#[test]
fn metalayers_are_found_and_copied_as_by_c() {
    let longest = "x".repeat(31);
    let schunk = Schunk::new(&[("first", b"content"), ("empty", b""), (&longest, b"\0\x01")]);

    let mut found = 0;
    for name in ["first", "empty", &longest, "missing", "firs", "", &"x".repeat(32)] {
        let text = CString::new(name).unwrap();
        // SAFETY: the super-chunk lives, and the name ends in a NUL byte.
        let (rust, c) = unsafe {
            (blosc2_meta_exists(schunk.0, text.as_ptr()), abi_meta_exists(schunk.0, text.as_ptr()))
        };
        assert_eq!(rust, c, "blosc2_meta_exists of {name:?}");
        assert_eq!(schunk.get(Side::Rust, &text), schunk.get(Side::C, &text), "{name:?}");
        found += usize::from(rust >= 0);
    }
    assert_eq!(found, 3);
}

#[test]
fn bad_arguments_and_bad_lengths_are_refused_as_by_c() {
    let schunk = Schunk::new(&[("first", b"content")]);
    let name = c"first".as_ptr();
    // SAFETY: all four functions test for null; the super-chunk and the metalayer are live.
    unsafe {
        let null = ptr::null_mut();
        assert_eq!(blosc2_meta_exists(null, name), abi_meta_exists(null, name));

        let (mut content, mut len) = (ptr::null_mut(), 0);
        let (content, len) = (&raw mut content, &raw mut len);
        for (schunk, name, content, len) in [
            (null, name, content, len),
            (schunk.0, ptr::null(), content, len),
            (schunk.0, name, ptr::null_mut(), len),
            (schunk.0, name, content, ptr::null_mut()),
        ] {
            let rust = blosc2_meta_get(schunk, name, content, len);
            assert_eq!(rust, BLOSC2_ERROR_INVALID_PARAM);
            assert_eq!(rust, abi_meta_get(schunk, name, content, len));
        }

        (*(*schunk.0).metalayers[0]).content_len = -1;
    }
    let rust = schunk.get(Side::Rust, c"first");
    assert_eq!(rust.0, BLOSC2_ERROR_DATA);
    assert_eq!(rust, schunk.get(Side::C, c"first"));
}

#[test]
fn array_metalayers_are_read_as_by_c() {
    let mut bytes = ptr::null_mut();
    // SAFETY: the three shapes have `ndim` items; C allocates `bytes`.
    let meta = unsafe {
        let (shape, chunks, blocks) = ([700, 1 << 40, 3], [70, 80, 3], [7, 8, 2]);
        let (shape, chunks, blocks) = (shape.as_ptr(), chunks.as_ptr(), blocks.as_ptr());
        let len = b2nd_serialize_meta(3, shape, chunks, blocks, c"<f8".as_ptr(), 0, &mut bytes);
        let meta = slice::from_raw_parts(bytes, usize::try_from(len).unwrap()).to_vec();
        free(bytes.cast());
        meta
    };
    let schunk = Schunk::new(&[("b2nd", &meta)]);
    let meta = schunk.get(Side::Rust, c"b2nd").1.unwrap();

    // Both versions refuse or read each truncation alike.
    for len in 0..=meta.len() {
        let rust = deserialize(Side::Rust, &meta[..len]);
        let c = deserialize(Side::C, &meta[..len]);
        assert_eq!(rust, c, "the first {len} bytes");
    }
    let (code, ndim, shape, .., dtype, _) = deserialize(Side::Rust, &meta);
    assert_eq!(usize::try_from(code), Ok(meta.len()));
    assert_eq!((ndim, &shape[..3]), (3, &[700, 1 << 40, 3][..]));
    assert_eq!(dtype.as_deref(), Some(c"<f8"));
}

/// Which of two versions of a function is called.
#[derive(Clone, Copy)]
enum Side {
    C,
    Rust,
}

/// A super-chunk in memory.
struct Schunk(*mut blosc2_schunk);

impl Schunk {
    fn new(metalayers: &[(&str, &[u8])]) -> Self {
        static INIT: Once = Once::new();
        // SAFETY: the library is set up once. C copies the storage, the names and the contents.
        unsafe {
            INIT.call_once(|| blosc2_init());
            let schunk = Self(blosc2_schunk_new(&mut blosc2_storage_defaults()));
            assert!(!schunk.0.is_null());
            for (name, content) in metalayers {
                let (name, mut content) = (CString::new(*name).unwrap(), content.to_vec());
                let len = i32::try_from(content.len()).unwrap();
                assert!(blosc2_meta_add(schunk.0, name.as_ptr(), content.as_mut_ptr(), len) >= 0);
            }
            schunk
        }
    }

    /// Calls one of the two `blosc2_meta_get`: the code, the content unless null, and its length.
    fn get(&self, side: Side, name: &CStr) -> (c_int, Option<Vec<u8>>, i32) {
        let (mut content, mut len) = (ptr::null_mut(), -7);
        // SAFETY: the super-chunk lives; the content that comes back is `len` bytes of malloc's.
        unsafe {
            let code = match side {
                Side::C => abi_meta_get(self.0, name.as_ptr(), &mut content, &mut len),
                Side::Rust => blosc2_meta_get(self.0, name.as_ptr(), &mut content, &mut len),
            };
            let copy = (!content.is_null())
                .then(|| slice::from_raw_parts(content, usize::try_from(len).unwrap()).to_vec());
            free(content.cast());
            (code, copy, len)
        }
    }
}

impl Drop for Schunk {
    fn drop(&mut self) {
        // SAFETY: the super-chunk lives until here.
        unsafe { blosc2_schunk_free(self.0) };
    }
}

type ArrayMeta = (c_int, i8, [i64; DIMS], [i32; DIMS], [i32; DIMS], Option<CString>, i8);

const DIMS: usize = 16;

/// All outputs of `b2nd_deserialize_meta_inline`.
fn deserialize(side: Side, meta: &[u8]) -> ArrayMeta {
    let len = i32::try_from(meta.len()).unwrap();
    let (mut ndim, mut dtype, mut format) = (-7, ptr::null_mut(), -7);
    let (mut shape, mut chunks, mut blocks) = ([-7; DIMS], [-7; DIMS], [-7; DIMS]);
    let (shape_, chunks_, blocks_) = (shape.as_mut_ptr(), chunks.as_mut_ptr(), blocks.as_mut_ptr());
    let (ndim_, dtype_, format_) = (&raw mut ndim, &raw mut dtype, &raw mut format);
    let meta = meta.as_ptr();
    // SAFETY: `meta` holds `len` bytes, and the shapes have room for every dimension.
    let code = unsafe {
        match side {
            Side::C => {
                abi_deserialize_meta(meta, len, ndim_, shape_, chunks_, blocks_, dtype_, format_)
            }
            Side::Rust => b2nd_deserialize_meta_inline(
                meta, len, ndim_, shape_, chunks_, blocks_, dtype_, format_,
            ),
        }
    };
    // SAFETY: the dtype that comes back is null or a string of malloc's.
    let text = unsafe {
        let text = dtype.as_ref().map(|dtype| CStr::from_ptr(dtype).to_owned());
        free(dtype.cast());
        text
    };
    (code, ndim, shape, chunks, blocks, text, format)
}

/// # Safety
/// The table has to end with a row without a name, and to live as long as the program.
unsafe fn rows<T: Copy>(mut row: *const Row<T>) -> Vec<(&'static str, T)> {
    let mut rows = Vec::new();
    // SAFETY: no row after the last is read, and names are strings.
    unsafe {
        while !(*row).name.is_null() {
            rows.push((CStr::from_ptr((*row).name).to_str().unwrap(), (*row).value));
            row = row.add(1);
        }
    }
    rows
}

/// # Safety
/// The same as for [`rows`], and the values have to be strings.
unsafe fn text_rows(table: *const Row<*const c_char>) -> Vec<(&'static str, &'static CStr)> {
    // SAFETY: the caller gives the same guarantees.
    unsafe { rows(table).into_iter().map(|(name, text)| (name, CStr::from_ptr(text))).collect() }
}

/// Compares two tables and reports all differences.
fn assert_same<T: PartialEq + Debug>(rust: &[(&str, T)], c: &[(&str, T)]) {
    assert!(!rust.is_empty());
    assert_eq!(rust.len(), c.len());
    let different: Vec<String> = rust
        .iter()
        .zip(c)
        .filter(|(rust, c)| rust != c)
        .map(|(rust, c)| format!("{}: {:?} in Rust, {:?} in C", rust.0, rust.1, c.1))
        .collect();
    assert!(different.is_empty(), "\n{}\n", different.join("\n"));
}

fn assert_fields<T: Debug>(rust: &T, c: &T) {
    assert_eq!(format!("{rust:#?}"), format!("{c:#?}"));
}

fn without_comments(text: &str) -> String {
    let mut code = String::new();
    for part in text.split("*/") {
        code.push_str(part.split("/*").next().unwrap());
    }
    code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}
