//! Codecs from plugins: loaded when the program asks for one, never because data does.

#[cfg(feature = "dynamic-plugins")]
use std::ffi::c_void;
#[cfg(feature = "dynamic-plugins")]
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
#[cfg(feature = "dynamic-plugins")]
use std::{ptr::NonNull, sync::Arc};

use blosc2_sys as sys;
use parking_lot::Mutex;

/// Codes that C-Blosc2 knows by name only, and for which upstream loads a library by running Python.
const BY_NAME: RangeInclusive<u8> = sys::BLOSC_CODEC_OPENHTJ2K as u8..=sys::BLOSC_CODEC_HTJ2K as u8;

/// Those that are loaded.
static LOADED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Whether there may be a plugin for the codec of this code.
pub(crate) fn may_be_loaded(code: u8) -> bool {
    BY_NAME.contains(&code)
}

/// Whether the plugin for the codec of this code is loaded.
pub(crate) fn is_loaded(code: u8) -> bool {
    LOADED.lock().contains(&code)
}

/// Loads the plugin for a codec.
///
/// # Safety
/// The library that is found follows the interface of C-Blosc2's plugins, and is sound.
#[cfg(feature = "dynamic-plugins")]
pub(crate) unsafe fn load(code: u8, codec: &str) -> crate::Result<()> {
    let failed = |detail: String| {
        let doing = "load the plugin of a codec";
        Err(crate::Error::new(crate::ErrorKind::Unsupported, doing, detail))
    };
    if !may_be_loaded(code) {
        return failed(format!("{codec} is not one that C-Blosc2 has plugins for"));
    }
    let mut loaded = LOADED.lock();
    // SAFETY: the caller vouches for the library. The lock keeps other loads out, and nothing uses
    // the codec before it is in this list.
    match unsafe { sys::load_codec(code) } {
        0.. => {
            loaded.push(code);
            Ok(())
        }
        rc => failed(format!("C-Blosc2 finds no plugin for {codec} (code {rc})")),
    }
}

/// Parameters for the codec of a plugin, in a structure of the plugin's. Made by
/// [`Codec::plugin_params`](crate::Codec::plugin_params) for [`CParams::plugin_params`](crate::CParams::plugin_params).
///
/// Clones share the structure. It is dropped with the last of them, and of the compressors, super-chunks and arrays that
/// use it.
#[cfg(feature = "dynamic-plugins")]
#[derive(Debug, Clone)]
pub struct PluginParams {
    /// The codec that they are for.
    code: u8,
    params: Arc<Owned>,
}

/// A structure that nobody but the plugin looks at.
#[cfg(feature = "dynamic-plugins")]
#[derive(Debug)]
struct Owned {
    start: NonNull<c_void>,
    /// Drops it.
    drop: unsafe fn(NonNull<c_void>),
}

// SAFETY: `PluginParams::new` takes a type that may be used and dropped on other threads.
#[cfg(feature = "dynamic-plugins")]
unsafe impl Send for Owned {}
// SAFETY: as above; here nothing reads or writes it, and of the plugin the caller of `new` has promised it.
#[cfg(feature = "dynamic-plugins")]
unsafe impl Sync for Owned {}

#[cfg(feature = "dynamic-plugins")]
impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the function is that for the type at `start`, which is dropped once.
        unsafe { (self.drop)(self.start) };
    }
}

#[cfg(feature = "dynamic-plugins")]
impl PluginParams {
    /// Parameters for the codec of this code.
    ///
    /// # Safety
    /// The codec of this code has no plugin, or one that takes a pointer to a `T` for its parameters, and may be given the
    /// same one on several threads at once.
    pub(crate) unsafe fn new<T: Send + Sync + 'static>(code: u8, params: T) -> Self {
        /// Drops a boxed `T`.
        ///
        /// # Safety
        /// `start` is that of a boxed `T`, which is not used any more.
        unsafe fn drop_box<T>(start: NonNull<c_void>) {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(start.cast::<T>().as_ptr()) });
        }
        let start = NonNull::from(Box::leak(Box::new(params))).cast();
        Self { code, params: Arc::new(Owned { start, drop: drop_box::<T> }) }
    }

    /// The code of the codec that they are for.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// The structure, which lives as long as this.
    pub(crate) fn as_ptr(&self) -> *mut c_void {
        self.params.start.as_ptr()
    }
}

/// Whether they are clones of each other: what is in them is the plugin's.
#[cfg(feature = "dynamic-plugins")]
impl PartialEq for PluginParams {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.params, &other.params)
    }
}

#[cfg(feature = "dynamic-plugins")]
impl Eq for PluginParams {}

#[cfg(feature = "dynamic-plugins")]
impl Hash for PluginParams {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ptr().hash(state);
    }
}
