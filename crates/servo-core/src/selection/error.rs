//! Errors of refused selections.

use std::fmt;

use crate::ParseError;

/// How many characters of a long selection are shown around the fault.
const SHOWN_BEFORE: usize = 50;
const SHOWN_AFTER: usize = 30;

/// A text is not a selection: what was found, what was expected, and at which character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selection at character {at}: {problem}")]
pub struct SyntaxError {
    /// The whole refused text.
    pub text: String,
    /// Index of the first offending character, counted from 0 in characters, not bytes.
    pub at: usize,
    /// How many characters are at fault; 0 where the text ends too early.
    pub len: usize,
    /// The unexpected text and the expected one.
    pub problem: String,
}

impl SyntaxError {
    /// Two lines for a terminal: the text, or the part of it around the fault, and carets with the problem.
    ///
    /// ```
    /// let error = servo_core::selection::Selection::parse("raw.flights and )").unwrap_err();
    /// assert!(error.caret().starts_with("raw.flights and )\n                ^ found \")\", expected "));
    /// ```
    pub fn caret(&self) -> String {
        let skipped = self.at.saturating_sub(SHOWN_BEFORE);
        let end = self.at + SHOWN_AFTER.max(self.len.min(SHOWN_BEFORE));
        let total = self.text.chars().count();
        let (before, after) = (if skipped > 0 { "…" } else { "" }, if end < total { "…" } else { "" });
        // A tab or a line break would move the carets away from what they point at.
        let visible = |char: char| if char.is_control() { ' ' } else { char };
        let shown: String = self.text.chars().skip(skipped).take(end - skipped).map(visible).collect();
        let indent = " ".repeat(before.chars().count() + self.at - skipped);
        let carets = "^".repeat(self.len.clamp(1, end - self.at));
        format!("{before}{shown}{after}\n{indent}{carets} {}", self.problem)
    }
}

impl From<SyntaxError> for ParseError {
    fn from(error: SyntaxError) -> Self {
        let byte = error.text.char_indices().nth(error.at).map_or(error.text.len(), |(byte, _)| byte);
        Self::at_byte("selection", &error.text, byte, error.problem)
    }
}

/// Names or globs of a selection match no asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluateError {
    /// The first of them, in the order of the text, each once; never empty.
    pub unmatched: Vec<Unmatched>,
    /// How many more there are.
    pub more: usize,
}

/// One name or glob that matches no asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The name or glob, in its canonical text.
    pub name: String,
    /// Whether it lacks the namespace that every asset has.
    pub lacks_namespace: bool,
    /// Names and globs like it that match something, the nearest first.
    pub near_misses: Vec<String>,
}

impl std::error::Error for EvaluateError {}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, unmatched) in self.unmatched.iter().enumerate() {
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{unmatched}")?;
        }
        if self.more > 0 {
            write!(f, "; and {} more that match nothing", self.more)?;
        }
        Ok(())
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lacks_namespace {
            write!(f, "{} has no namespace", self.name)?;
        } else {
            write!(f, "no asset matches {}", self.name)?;
        }
        match self.near_misses.as_slice() {
            [] if self.lacks_namespace => {
                write!(f, ": write namespace.{0}, or *.{0} for every namespace", self.name)
            }
            [] if self.name == "*" => f.write_str(
                ": there is none; declare one with @servo.asset in a module that servo.toml names",
            ),
            [] => f.write_str(": see the names with \"servo asset list\""),
            [only] => write!(f, ": did you mean {only}?"),
            [first @ .., last] => write!(f, ": did you mean {} or {last}?", first.join(", ")),
        }
    }
}
