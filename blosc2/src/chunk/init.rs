//! Initialization of the C library, once per process.

use std::sync::OnceLock;

use blosc2_sys as sys;

use crate::chunk::fork;
use crate::codec::installed;
use crate::{Result, closures};

/// Initializes the C library. Every function that calls the library calls this function first.
///
/// The library is never shut down: C does not count its users, and other threads may be using it.
pub(crate) fn init() -> Result<()> {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        // SAFETY: both functions fill global tables without a lock (blosc2.c, blosc2_init, blosc2_list_compressors);
        // the second function does this only in its first call. This closure runs once in the process, and no other
        // call into C is made before it returns.
        unsafe {
            sys::blosc2_init();
            sys::blosc2_list_compressors();
        }
        closures::announce();
        choose_shuffle();
        choose_kernels();
        fork::watch();
    });
    installed::check_environment()
}

/// Shuffles a byte. The first call of shuffle chooses the kernels by unsynchronized stores (shuffle.c,
/// init_shuffle_implementation): other threads would race with these stores.
fn choose_shuffle() {
    let (source, mut target) = ([0u8; 1], [0u8; 1]);
    // SAFETY: C reads one byte and writes one byte (shuffle.c, blosc2_shuffle), in separate memory. No other thread
    // calls C before this function returns, because it is a part of `init`.
    unsafe { sys::blosc2_shuffle(1, 1, source.as_ptr().cast(), target.as_mut_ptr().cast()) };
}

/// Compresses and decompresses 256 bytes with zlib. The first call of libdeflate chooses its kernels by unsynchronized
/// stores: other threads would race with these stores.
fn choose_kernels() {
    let source: [u8; 256] = std::array::from_fn(|at| at as u8 / 2);
    let (mut chunk, mut target) = ([0u8; 512], [0u8; 256]);
    let params = sys::blosc2_cparams {
        compcode: sys::BLOSC_ZLIB as u8,
        typesize: 1,
        ..sys::blosc2_cparams_defaults()
    };
    // SAFETY: the lengths are the lengths of the buffers, and the parameters are valid; C copies the parameters
    // (blosc2.c, blosc2_create_cctx, blosc2_create_dctx). The contexts are freed once, after their last use. Without
    // zlib, the compression fails, and the decompression finds no chunk.
    unsafe {
        let context = sys::blosc2_create_cctx(params);
        if !context.is_null() {
            let (from, to) = (source.as_ptr().cast(), chunk.as_mut_ptr().cast());
            sys::blosc2_compress_ctx(context, from, 256, to, 512);
            sys::blosc2_free_ctx(context);
        }
        let context = sys::blosc2_create_dctx(sys::blosc2_dparams_defaults());
        if !context.is_null() {
            let (from, to) = (chunk.as_ptr().cast(), target.as_mut_ptr().cast());
            sys::blosc2_decompress_ctx(context, from, 512, to, 256);
            sys::blosc2_free_ctx(context);
        }
    }
}
