//! Colours, on a terminal and unless disabled.

use std::io::IsTerminal;

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Good,
    Bad,
    Warn,
    Busy,
    Dim,
    Bold,
}

/// Applies colours if enabled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    pub(crate) fn for_stderr() -> Self {
        Self(std::io::stderr().is_terminal() && wanted())
    }

    pub(crate) fn for_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && wanted())
    }

    /// The text in its style.
    pub(crate) fn with(self, style: Style, text: &str) -> String {
        if !self.0 || text.is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Good => "32",
            Style::Bad => "31",
            Style::Warn => "33",
            Style::Busy => "36",
            Style::Dim => "2",
            Style::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
