//! Initialization of the C library, once per process.

use std::sync::OnceLock;

use blosc2_sys as sys;

use crate::{Result, closures, fork, installed};

/// Initializes the C library. Every function that calls the library calls this first.
///
/// The library is never shut down: C does not count its users, and other threads may be inside.
pub(crate) fn init() -> Result<()> {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        // SAFETY: both fill global tables without a lock, the second at its first call (blosc2.c, blosc2_init,
        // blosc2_list_compressors). This closure runs once in the process, and no other call into C is made before
        // it returns.
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

/// Shuffles a byte: the kernels are chosen at the first call, by unsynchronized stores with which other threads
/// would race (shuffle.c, init_shuffle_implementation).
fn choose_shuffle() {
    let (source, mut target) = ([0u8; 1], [0u8; 1]);
    // SAFETY: C reads one byte and writes one (shuffle.c, blosc2_shuffle), in separate memory. No other thread calls C
    // before this returns, as it is a part of `init`.
    unsafe { sys::blosc2_shuffle(1, 1, source.as_ptr().cast(), target.as_mut_ptr().cast()) };
}

/// Compresses and decompresses a little data with zlib: libdeflate chooses its kernels at the first call, by
/// unsynchronized stores with which other threads would race.
fn choose_kernels() {
    let source: [u8; 256] = std::array::from_fn(|at| at as u8 / 2);
    let (mut chunk, mut target) = ([0u8; 512], [0u8; 256]);
    let params = sys::blosc2_cparams {
        compcode: sys::BLOSC_ZLIB as u8,
        typesize: 1,
        ..sys::blosc2_cparams_defaults()
    };
    // SAFETY: the lengths are those of the buffers, and the parameters are valid; C copies them (blosc2.c,
    // blosc2_create_cctx, blosc2_create_dctx). The contexts are freed once, after their last use. Without zlib the first
    // call fails, and the second finds no chunk.
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
