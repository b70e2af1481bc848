//! A sign of life on stderr while a query runs for more than a second, if stderr is a terminal.

use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The number of rows so far, and the time.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Starts it. If `is_shown` is false, nothing is drawn.
    pub(crate) fn start(is_shown: bool) -> Self {
        let style = ProgressStyle::with_template("{spinner} {human_pos} rows, {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::hidden().with_style(style);
        if is_shown {
            let bar = bar.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_secs(1));
                if !bar.is_finished() {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(Duration::from_millis(100));
                }
            });
        }
        Self(bar)
    }

    pub(crate) fn add(&self, rows: usize) {
        self.0.inc(rows as u64);
    }

    /// Removes it from the terminal.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
