//! Progress on the terminal. Nothing is drawn when stderr is none, or for little data.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Less than this is done before anybody could read a bar.
const WORTH_A_BAR: u64 = 64 << 20;

/// A bar for so many bytes.
pub(crate) fn bar(bytes: u64) -> ProgressBar {
    if bytes < WORTH_A_BAR {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style).with_finish(ProgressFinish::AndClear)
}

/// A bar for so many bytes that go to stdout: none when that is the terminal itself.
pub(crate) fn bar_beside_stdout(bytes: u64) -> ProgressBar {
    if stdout().is_terminal() { ProgressBar::hidden() } else { bar(bytes) }
}

/// A spinner for work on so many bytes that does not say how far it is.
pub(crate) fn spinner(bytes: u64, message: &'static str) -> ProgressBar {
    if bytes < WORTH_A_BAR {
        return ProgressBar::hidden();
    }
    let spinner =
        ProgressBar::new_spinner().with_message(message).with_finish(ProgressFinish::AndClear);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
