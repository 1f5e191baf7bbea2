//! One error for every text that Servo refuses to read as a value.

/// How much of a refused text an error repeats; the rest is cut so that a message stays one line.
const SHOWN_CHARS: usize = 80;

/// A text is not a valid value: which kind of value, what was wrong, and at which character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} \"{}\" at character {at}: {problem}", .text.escape_debug())]
pub struct ParseError {
    /// The kind of value that was expected, in the user's words.
    pub what: &'static str,
    /// The refused text, cut to 80 characters.
    pub text: String,
    /// Index of the offending character, counted from 0 in characters, not bytes.
    pub at: usize,
    /// The problem there and, where it helps, the text to write instead.
    pub problem: String,
}

/// Why a part of a text is refused, before it is known which whole it belongs to: byte offset, problem.
pub(crate) type Refused = (usize, String);

impl ParseError {
    /// Completes a refusal with the whole text.
    pub(crate) fn refused(what: &'static str, text: &str, (byte, problem): Refused) -> Self {
        Self::at_byte(what, text, byte, problem)
    }

    /// Builds an error that points at byte `byte` of `text`; the position is converted to characters.
    pub(crate) fn at_byte(what: &'static str, text: &str, byte: usize, problem: impl Into<String>) -> Self {
        let at = text.char_indices().take_while(|(start, _)| *start < byte).count();
        Self { what, text: shorten(text), at, problem: problem.into() }
    }
}

/// The text, cut if it is long.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Describes an unexpected character of `text` at `byte`, or an unexpected end of the text.
pub(crate) fn unexpected(text: &str, byte: usize, expected: &str) -> String {
    match text.get(byte..).and_then(|rest| rest.chars().next()) {
        Some(found) => format!("found {found:?}, expected {expected}"),
        None => format!("it ends here, expected {expected}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_kind_the_text_and_the_character() {
        let error = ParseError::at_byte("asset key", "é.1", 3, "a name starts with a letter");
        assert_eq!(
            error.to_string(),
            "invalid asset key \"é.1\" at character 2: a name starts with a letter"
        );
    }

    #[test]
    fn long_texts_are_cut_and_control_characters_are_escaped() {
        let long = "x".repeat(200);
        assert_eq!(ParseError::at_byte("id", &long, 150, "bad").text.chars().count(), SHOWN_CHARS + 1);
        let shown = ParseError::at_byte("id", "a\nb", 1, "bad").to_string();
        assert!(shown.contains("a\\nb"), "{shown}");
    }
}
