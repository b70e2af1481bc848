//! Special chunks, which hold no data: zeros, NaN, a repeated value, or uninitialized items.

use std::borrow::Borrow;

use blosc2_format::chunk::Special;
use blosc2_format::dtype::Kind;
use blosc2_sys as sys;

use crate::chunk::init::init;
use crate::codec::params::Purpose;
use crate::item::element::{Element, bytes_of};
use crate::limits::MAX_CHUNK_LEN;
use crate::{CParams, Chunk, Error, ErrorKind, Reason, Result};

const DOING: &str = "create a special chunk";

impl Chunk {
    /// Creates a special chunk of `len` zeros. The chunk has 32 bytes. C: `blosc2_chunk_zeros`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a parameter is out of range; the number of bytes is not a multiple of the
    ///   typesize in `params`; or the parameters request chunks of Blosc1;
    /// - [`ErrorKind::Unsupported`]: this build lacks the codec, which determines the automatic block size;
    /// - [`ErrorKind::TooLarge`]: the items have more than [`MAX_CHUNK_LEN`] bytes in total.
    pub fn zeros<T: Element>(len: usize, params: impl Borrow<CParams>) -> Result<Self> {
        without_value::<T>(Special::Zeros, len, params.borrow())
    }

    /// Creates a special chunk of `len` uninitialized items, which read as zeros. The chunk has 32 bytes. C:
    /// `blosc2_chunk_uninit`.
    ///
    /// # Errors
    /// Fails with the errors of [`zeros`](Self::zeros).
    pub fn uninit<T: Element>(len: usize, params: impl Borrow<CParams>) -> Result<Self> {
        without_value::<T>(Special::Uninit, len, params.borrow())
    }

    /// Creates a special chunk of `len` NaNs. `T` is `f32` or `f64`. C: `blosc2_chunk_nans`.
    ///
    /// On little-endian platforms, the chunk has 32 bytes. The items of [`Special::Nan`](crate::Special::Nan) are always
    /// little-endian. On big-endian platforms, the method therefore returns a chunk that [repeats](Self::repeat) NaN in
    /// native byte order.
    ///
    /// # Errors
    /// Fails with the errors of [`zeros`](Self::zeros), and with:
    /// - [`ErrorKind::InvalidArgument`]: `T` is not a float of 4 or 8 bytes, or `params` sets a typesize that differs
    ///   from the size of `T`.
    pub fn nans<T: Element>(len: usize, params: impl Borrow<CParams>) -> Result<Self> {
        let params = params.borrow();
        let size = size_of::<T>();
        let typesize = params.typesize.unwrap_or(size);
        let dtype = T::dtype();
        if dtype.kind() != Some(Kind::Float) || !matches!(size, 4 | 8) || typesize != size {
            let detail =
                format!("NaN needs items of f4 or f8, got {dtype} with a typesize of {typesize}");
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        // The items of a special chunk of NaN are little-endian.
        if cfg!(target_endian = "big") {
            return match size {
                4 => Self::repeat(&[f32::NAN], len, params),
                _ => Self::repeat(&[f64::NAN], len, params),
            };
        }
        without_value::<T>(Special::Nan, len, params)
    }

    /// Creates a special chunk that repeats one item `count` times. The size of the chunk is 32 bytes plus the
    /// size of the item. C: `blosc2_chunk_repeatval`.
    ///
    /// The repeated item is the entire slice `item`: one value, or several values that form one larger item. If `count`
    /// is 0, the result is an empty chunk of zeros, because C cannot read a chunk that repeats a value zero times.
    ///
    /// # Errors
    /// Fails with the errors of [`zeros`](Self::zeros), and with:
    /// - [`ErrorKind::InvalidArgument`]: `params` sets a typesize that differs from the size of the item.
    ///
    /// ```
    /// use blosc2::{CParams, Chunk};
    ///
    /// let chunk = Chunk::repeat(&[1.5f32], 1000, &CParams::default())?;
    /// assert_eq!(chunk.cbytes(), 36);
    /// assert_eq!(chunk.decompress::<f32>()?, [1.5; 1000]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn repeat<T: Element>(
        item: &[T],
        count: usize,
        params: impl Borrow<CParams>,
    ) -> Result<Self> {
        let params = params.borrow();
        let item = bytes_of(item);
        if params.typesize.is_some_and(|typesize| typesize != item.len()) {
            let typesize = params.typesize.unwrap_or(0);
            let detail = format!("the typesize is {typesize}, the item has {} bytes", item.len());
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        if count == 0 {
            // C would write the value, but it cannot read a chunk that repeats a value zero times.
            return make(item.len(), Some(0), 0, params, |c, nbytes, target, room| {
                // SAFETY: `make` guarantees the conditions. C writes only the header, for which there is room
                // (blosc2.c, blosc2_chunk_zeros).
                unsafe { sys::blosc2_chunk_zeros(c, nbytes, target.cast(), room) }
            });
        }
        make(
            item.len(),
            count.checked_mul(item.len()),
            item.len(),
            params,
            |c, nbytes, target, room| {
                // SAFETY: C reads an item of the typesize, which is the length of `item`: `make` receives this length.
                // C writes a header and the item (blosc2.c, blosc2_chunk_repeatval). `make` guarantees the other
                // conditions.
                unsafe {
                    sys::blosc2_chunk_repeatval(
                        c,
                        nbytes,
                        target.cast(),
                        room,
                        item.as_ptr().cast(),
                    )
                }
            },
        )
    }
}

/// Creates a chunk of zeros, of NaNs, or of uninitialized items (for any other `special`).
fn without_value<T: Element>(special: Special, len: usize, params: &CParams) -> Result<Chunk> {
    make(size_of::<T>(), len.checked_mul(size_of::<T>()), 0, params, |c, nbytes, target, room| {
        let target = target.cast();
        // SAFETY: `make` guarantees the conditions. C writes only the header, for which there is room (blosc2.c,
        // blosc2_chunk_zeros, blosc2_chunk_nans, blosc2_chunk_uninit).
        unsafe {
            match special {
                Special::Zeros => sys::blosc2_chunk_zeros(c, nbytes, target, room),
                Special::Nan => sys::blosc2_chunk_nans(c, nbytes, target, room),
                _ => sys::blosc2_chunk_uninit(c, nbytes, target, room),
            }
        }
    })
}

/// Calls `in_c`, which lets C write a chunk: a header and `extra` bytes. This function ensures that the parameters are
/// valid, that the library is initialized, and that the target has the length that `in_c` receives.
fn make(
    size: usize,
    nbytes: Option<usize>,
    extra: usize,
    params: &CParams,
    in_c: impl FnOnce(sys::blosc2_cparams, i32, *mut u8, i32) -> std::ffi::c_int,
) -> Result<Chunk> {
    init()?;
    let too_large = |_| {
        let detail = format!("a chunk holds at most {MAX_CHUNK_LEN} bytes");
        Error::new(ErrorKind::TooLarge, DOING, detail)
    };
    let nbytes = nbytes.filter(|&len| len <= MAX_CHUNK_LEN).ok_or(()).map_err(too_large)?;
    if params.blosc1 {
        let detail = "Blosc1 has no special chunks";
        return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
    }
    // Codec and level determine the size of the blocks; filters do not matter.
    let resolved = params.clone().filters(&[]).resolve(size, Purpose::Chunk)?;
    let typesize = resolved.typesize();
    if !nbytes.is_multiple_of(typesize) {
        let detail =
            format!("{nbytes} bytes are not a multiple of the typesize of {typesize} bytes");
        return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
    }
    let mut chunk = vec![0; sys::BLOSC2_MAX_OVERHEAD as usize + extra];
    let (len, room) = (
        i32::try_from(nbytes).map_err(|_| too_large(()))?,
        i32::try_from(chunk.len()).map_err(|_| too_large(()))?,
    );
    // One thread: nothing is compressed.
    let c = sys::blosc2_cparams { nthreads: 1, ..resolved.to_c() };
    let written = in_c(c, len, chunk.as_mut_ptr(), room);
    if written != room {
        return Err(Reason::from_code(written).doing(DOING));
    }
    // C copies its structure of the header with the lengths in native byte order (blosc2.c, blosc2_chunk_zeros). In a
    // chunk, the lengths are little-endian.
    if cfg!(target_endian = "big") && chunk[12..16] == room.to_be_bytes() {
        chunk[4..16].chunks_exact_mut(4).for_each(<[u8]>::reverse);
    }
    Chunk::written(chunk, DOING)
}
