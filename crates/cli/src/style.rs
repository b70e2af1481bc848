//! Colours of the output, which only a terminal gets: `anstream` removes them elsewhere, and if `NO_COLOR` is set.

use anstyle::{AnsiColor, Style};

pub(crate) const NAME: Style = Style::new().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(crate) const NOTE: Style = AnsiColor::Cyan.on_default();

/// A text between the codes of a style.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
