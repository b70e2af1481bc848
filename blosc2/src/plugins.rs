//! Codecs from plugins: loaded when the program asks for one, never because data does.

use std::ops::RangeInclusive;

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
