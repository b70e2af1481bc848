//! Progress bars on stderr. Nothing is drawn if stderr is not a terminal, or below 64 MiB of data.

use std::convert::Infallible;
use std::io::{self, IsTerminal, stdout};
use std::time::Duration;

use blosc2_format::ReadAt;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Bytes below which no bar is drawn: the work is done too soon.
const WORTH_A_BAR: u64 = 64 << 20;

/// A bar for `bytes` bytes.
pub(crate) fn bar(bytes: u64) -> ProgressBar {
    if bytes < WORTH_A_BAR {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style).with_finish(ProgressFinish::AndClear)
}

/// A bar for `bytes` bytes written to stdout: hidden if stdout is a terminal.
pub(crate) fn bar_beside_stdout(bytes: u64) -> ProgressBar {
    if stdout().is_terminal() { ProgressBar::hidden() } else { bar(bytes) }
}

/// Rows below which no bar is drawn.
const ROWS_WORTH_A_BAR: u64 = 1 << 20;

/// A bar for `rows` rows of a table.
pub(crate) fn rows(rows: u64) -> ProgressBar {
    if rows < ROWS_WORTH_A_BAR {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{wide_bar} {human_pos}/{human_len} rows {per_sec} {eta} left",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(rows).with_style(style).with_finish(ProgressFinish::AndClear)
}

/// A bar for `rows` rows written to stdout: hidden if stdout is a terminal.
pub(crate) fn rows_beside_stdout(count: u64) -> ProgressBar {
    if stdout().is_terminal() { ProgressBar::hidden() } else { rows(count) }
}

/// A bar for `bytes` bytes of work that is reported in chunks. The closure is the argument of the methods `progress` of
/// `blosc2`.
pub(crate) fn of_chunks(
    bytes: u64,
) -> impl Fn(u64, u64) -> Result<(), Infallible> + Send + Sync + 'static {
    let bar = bar(bytes);
    move |done, total| {
        bar.set_position((bytes as f64 * (done as f64 / total as f64)) as u64);
        Ok(())
    }
}

/// A spinner for work on `bytes` bytes that does not report its progress.
pub(crate) fn spinner(bytes: u64, message: &'static str) -> ProgressBar {
    if bytes < WORTH_A_BAR {
        return ProgressBar::hidden();
    }
    let spinner =
        ProgressBar::new_spinner().with_message(message).with_finish(ProgressFinish::AndClear);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

/// A source that advances a progress bar as bytes are read.
pub(crate) struct Watched<R> {
    pub(crate) source: R,
    pub(crate) bar: ProgressBar,
}

impl<R: ReadAt> ReadAt for Watched<R> {
    fn size(&self) -> io::Result<u64> {
        self.source.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bar.inc(buffer.len() as u64);
        self.source.read_exact_at(offset, buffer)
    }
}

/// A file that advances a progress bar as bytes are read.
#[cfg(feature = "arrow")]
pub(crate) struct Counted {
    file: std::fs::File,
    bar: ProgressBar,
}

#[cfg(feature = "arrow")]
impl Counted {
    pub(crate) fn new(file: std::fs::File, bar: ProgressBar) -> Self {
        Self { file, bar }
    }
}

#[cfg(feature = "arrow")]
impl io::Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(buffer)?;
        self.bar.inc(len as u64);
        Ok(len)
    }
}

#[cfg(feature = "arrow")]
impl io::Seek for Counted {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let position = self.file.seek(to)?;
        self.bar.set_position(position);
        Ok(position)
    }
}
