//! Arrays for the tests.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use blosc2::{CParams, Codec, NDArray};

/// The items of an array of this shape: smooth along both axes, with noise.
pub(crate) fn items(shape: [u64; 2]) -> Vec<f32> {
    let mut state = 1u32;
    let at = |row: u64, column: u64| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (row as f32 * 0.01).sin() + column as f32 * 0.001 + (state >> 20) as f32 * 1e-6
    };
    let mut at = at;
    (0..shape[0])
        .flat_map(|row| (0..shape[1]).map(move |column| (row, column)))
        .map(|(row, column)| at(row, column))
        .collect()
}

/// An array as a contiguous frame, with its items.
pub(crate) fn array(shape: [u64; 2], chunks: [u64; 2], blocks: [u64; 2]) -> (Vec<u8>, Vec<f32>) {
    let items = items(shape);
    let params = CParams::new().codec(Codec::Zstd).level(1);
    let builder = NDArray::builder().chunk_shape(chunks).block_shape(blocks).cparams(params);
    let bytes = builder.from_slice(&items, shape).unwrap().schunk().to_cframe().unwrap();
    (bytes, items)
}

/// Runs a test that fails if it takes longer than a minute.
pub(crate) fn within_a_minute(test: impl FnOnce() + Send + 'static) {
    within_minutes(1, test);
}

/// Runs a test that fails if it takes longer.
pub(crate) fn within_minutes(minutes: u64, test: impl FnOnce() + Send + 'static) {
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        send.send(()).unwrap();
    });
    match receive.recv_timeout(Duration::from_secs(60 * minutes)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it takes longer than {minutes} min"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}
