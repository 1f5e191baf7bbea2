//! Colours, on a terminal and unless disabled.

use std::borrow::Cow;
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

/// A text of user code as a terminal may show it: what would move the cursor, change colours or write to the clipboard
/// is written out. Tabs and line ends stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_control = |character: char| character.is_control() && !matches!(character, '\t' | '\n');
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            control if is_control(control) => shown.extend(control.escape_default()),
            other => shown.push(other),
        }
    }
    Cow::Owned(shown)
}

fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(harmless("a\tb\nä"), "a\tb\nä");
        assert_eq!(harmless("\u{1b}]0;title\u{7}\u{9b}31m\r"), "\\u{1b}]0;title\\u{7}\\u{9b}31m\\r");
    }
}
