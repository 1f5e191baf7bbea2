//! Why a value has no canonical text, and where in the value.

use std::fmt;

use super::MAX_DEPTH;
use super::text::write_string;

/// A value has no canonical text. The message names the JSON path of the culprit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Steps from the culprit up to the root: an error collects them on its way out, so success pays nothing.
    steps: Vec<String>,
    problem: Problem,
}

/// The kinds of problem a value can have, without its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A float, or an integer written like one.
    #[error(
        "{0} is a float, which canonical JSON refuses: use integer milliseconds, micro-units or parts per million"
    )]
    Float(String),
    /// An integer outside of what an `i64` or a `u64` holds.
    #[error("integer {0} is not between -9223372036854775808 and 18446744073709551615: send it as a string")]
    IntegerRange(String),
    /// The same key twice in one object.
    #[error("key {0:?} is given twice: keep one")]
    DuplicateKey(String),
    /// A map key that is not a string, nor an integer or boolean that can be written as one.
    #[error("{0} cannot be an object key: use a string")]
    Key(&'static str),
    /// Too many nested arrays and objects.
    #[error("nested deeper than {MAX_DEPTH} levels: flatten the value")]
    Depth,
    /// Text that is not JSON.
    #[error("not JSON at character {at}: {problem}")]
    Syntax {
        /// Index of the offending character, from 0.
        at: usize,
        /// The problem at that place.
        problem: String,
    },
    /// A type refused to serialize itself.
    #[error("{0}")]
    Custom(String),
}

impl Error {
    pub(crate) fn new(problem: Problem) -> Self {
        Self { steps: Vec::new(), problem }
    }

    /// The path of the culprit, such as `$.a[3].b`.
    pub fn path(&self) -> String {
        let mut path = "$".to_owned();
        path.extend(self.steps.iter().rev().map(String::as_str));
        path
    }

    /// The problem at that place.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Records that the culprit is inside the value of `key`.
    pub(crate) fn under_key(mut self, key: &str) -> Self {
        let plain = !key.is_empty()
            && !key.starts_with(|c: char| c.is_ascii_digit())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        self.steps.push(if plain {
            format!(".{key}")
        } else {
            let mut step = "[".to_owned();
            write_string(&mut step, key);
            step.push(']');
            step
        });
        self
    }

    /// Records that the culprit is inside element `index`.
    pub(crate) fn under_index(mut self, index: usize) -> Self {
        self.steps.push(format!("[{index}]"));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no canonical JSON: at {}: {}", self.path(), self.problem)
    }
}

impl std::error::Error for Error {}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Problem::Custom(message.to_string()))
    }
}
