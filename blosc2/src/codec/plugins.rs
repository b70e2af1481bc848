//! Plugin codecs. Only the program can request the load of a plugin; data cannot.

#[cfg(feature = "dynamic-plugins")]
use std::ffi::c_void;
#[cfg(feature = "dynamic-plugins")]
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
#[cfg(feature = "dynamic-plugins")]
use std::{ptr::NonNull, sync::Arc};

use blosc2_sys as sys;
use parking_lot::Mutex;

/// The codes of codecs that C-Blosc2 does not implement. Upstream's C-Blosc2 runs Python to find the libraries of these
/// codecs.
const BY_NAME: RangeInclusive<u8> = sys::BLOSC_CODEC_OPENHTJ2K as u8..=sys::BLOSC_CODEC_HTJ2K as u8;

/// The codes whose plugin is loaded.
static LOADED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Whether there can be a plugin for the codec with this code.
pub(super) fn may_be_loaded(code: u8) -> bool {
    BY_NAME.contains(&code)
}

/// Whether the plugin for the codec with this code is loaded.
pub(super) fn is_loaded(code: u8) -> bool {
    LOADED.lock().contains(&code)
}

/// Loads the plugin for a codec.
///
/// # Safety
/// The library that C finds follows the plugin interface of C-Blosc2 and is sound.
#[cfg(feature = "dynamic-plugins")]
pub(super) unsafe fn load(code: u8, codec: &str) -> crate::Result<()> {
    let failed = |detail: String| {
        let doing = "load the plugin of a codec";
        Err(crate::Error::new(crate::ErrorKind::Unsupported, doing, detail))
    };
    if !may_be_loaded(code) {
        return failed(format!("C-Blosc2 has no plugins for {codec}"));
    }
    let mut loaded = LOADED.lock();
    // SAFETY: the caller vouches for the library. The lock prevents other loads, and nothing uses the codec before this
    // list contains it.
    match unsafe { sys::load_codec(code) } {
        0.. => {
            loaded.push(code);
            Ok(())
        }
        rc => failed(format!("C-Blosc2 did not find the plugin for {codec} (code {rc})")),
    }
}

/// Parameters for the plugin of a codec, in the structure that the plugin expects.
///
/// [`Codec::plugin_params`](crate::Codec::plugin_params) creates the parameters, and
/// [`CParams::plugin_params`](crate::CParams::plugin_params) accepts them. Clones share the structure. Compressors,
/// super-chunks and arrays that use the parameters contain clones. The structure is dropped with the last clone.
///
/// ```no_run
/// # #[cfg(feature = "dynamic-plugins")] {
/// use blosc2::user_defined::PluginParams;
/// use blosc2::{CParams, Codec};
///
/// /// The parameters, as the C header of the plugin declares them.
/// #[repr(C)]
/// struct Quality {
///     layers: i32,
/// }
///
/// let codec = Codec::from_code(38);
/// // SAFETY: the installed plugin is sound, and takes this structure.
/// let params: PluginParams = unsafe {
///     codec.load_plugin()?;
///     codec.plugin_params(Quality { layers: 3 })
/// };
/// let params = CParams::new().codec(codec).filters(&[]).plugin_params(params);
/// # }
/// # Ok::<(), blosc2::Error>(())
/// ```
#[cfg(feature = "dynamic-plugins")]
#[derive(Debug, Clone)]
pub struct PluginParams {
    /// The code of the codec that uses the parameters.
    code: u8,
    params: Arc<Owned>,
}

/// A structure that only the plugin reads.
#[cfg(feature = "dynamic-plugins")]
#[derive(Debug)]
struct Owned {
    start: NonNull<c_void>,
    /// Drops the structure at `start`.
    drop: unsafe fn(NonNull<c_void>),
}

// SAFETY: the type that `PluginParams::new` receives may be used and dropped on other threads.
#[cfg(feature = "dynamic-plugins")]
unsafe impl Send for Owned {}
// SAFETY: this crate does not access the structure. The caller of `new` has promised that the plugin may use it on
// several threads.
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
    /// Creates parameters for the codec with this code.
    ///
    /// # Safety
    /// If the codec with this code has a plugin, the plugin accepts a pointer to a `T` as its parameters, and may
    /// receive the same pointer on several threads at once.
    pub(super) unsafe fn new<T: Send + Sync + 'static>(code: u8, params: T) -> Self {
        /// Drops a boxed `T`.
        ///
        /// # Safety
        /// `start` comes from a boxed `T`, which is not used after this call.
        unsafe fn drop_box<T>(start: NonNull<c_void>) {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(start.cast::<T>().as_ptr()) });
        }
        let start = NonNull::from(Box::leak(Box::new(params))).cast();
        Self { code, params: Arc::new(Owned { start, drop: drop_box::<T> }) }
    }

    /// The code of the codec that uses the parameters.
    pub(super) fn code(&self) -> u8 {
        self.code
    }

    /// The structure, which lives as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut c_void {
        self.params.start.as_ptr()
    }
}

/// Compares by identity: two values are equal if one is a clone of the other. Only the plugin knows the content.
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
