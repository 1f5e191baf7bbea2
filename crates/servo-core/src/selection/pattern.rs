//! A glob: text in which `*` stands for any characters and `?` for one.

use std::fmt::{self, Write as _};

/// Text to compare with, character by character; `*` and `?` are globs unless they were escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Exactly(char),
    AnyOne,
    AnyMany,
}

impl Pattern {
    /// Reads a text without escapes: every `*` and `?` is a glob.
    pub(super) fn bare(text: &str) -> Self {
        Self::from_pieces(text.chars().map(Piece::of))
    }

    /// Reads what stands between quotes, where a backslash takes the next character as it is.
    pub(super) fn quoted(inner: &str) -> Self {
        let mut chars = inner.chars();
        Self::from_pieces(std::iter::from_fn(|| match chars.next()? {
            '\\' => chars.next().map(Piece::Exactly),
            plain => Some(Piece::of(plain)),
        }))
    }

    /// `**` means what `*` means, so only one is kept: equal globs have equal texts.
    fn from_pieces(pieces: impl Iterator<Item = Piece>) -> Self {
        let mut pieces: Vec<_> = pieces.collect();
        pieces.dedup_by(|next, kept| *next == Piece::AnyMany && *kept == Piece::AnyMany);
        Self { pieces }
    }

    /// The text, if there is no glob in it.
    pub fn literal(&self) -> Option<String> {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Exactly(char) => Some(*char),
                Piece::AnyOne | Piece::AnyMany => None,
            })
            .collect()
    }

    /// Whether it is `*`, which matches every text.
    pub fn is_everything(&self) -> bool {
        self.pieces == [Piece::AnyMany]
    }

    /// Whether the whole of `text` fits. A mismatch goes back to the last `*` only, so the time is at most the
    /// product of both lengths.
    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut at = 0;
        let mut last_many = None;
        loop {
            let piece = self.pieces.get(at).copied();
            if piece == Some(Piece::AnyMany) {
                at += 1;
                last_many = Some((at, rest.clone()));
                continue;
            }
            let mut ahead = rest.clone();
            match (piece, ahead.next()) {
                (None, None) => return true,
                (Some(piece), Some(char)) if piece.accepts(char) => {
                    at += 1;
                    rest = ahead;
                }
                (_, _) => {
                    let Some((after_many, from)) = &mut last_many else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    at = *after_many;
                    rest = from.clone();
                }
            }
        }
    }

    fn is_bare(&self) -> bool {
        !self.pieces.is_empty()
            && self.pieces.iter().all(|piece| match piece {
                Piece::Exactly('*' | '?') => false,
                Piece::Exactly(char) => is_bare_char(*char),
                Piece::AnyOne | Piece::AnyMany => true,
            })
    }
}

impl Piece {
    fn of(char: char) -> Self {
        match char {
            '*' => Self::AnyMany,
            '?' => Self::AnyOne,
            plain => Self::Exactly(plain),
        }
    }

    fn accepts(self, char: char) -> bool {
        match self {
            Self::Exactly(expected) => expected == char,
            Self::AnyOne | Self::AnyMany => true,
        }
    }
}

/// Whether a character needs no quotes around it.
pub(super) fn is_bare_char(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | '*' | '?' | '@')
}

/// Whether a character is written with a backslash inside quotes to be taken as it is.
pub(super) fn is_escaped_char(char: char) -> bool {
    matches!(char, '"' | '\\' | '*' | '?')
}

/// The shortest text that reads back as the pattern, in quotes where it needs them.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.is_bare() { "" } else { "\"" };
        f.write_str(quote)?;
        for piece in &self.pieces {
            match piece {
                Piece::AnyMany => f.write_char('*')?,
                Piece::AnyOne => f.write_char('?')?,
                Piece::Exactly(char) => {
                    if is_escaped_char(*char) {
                        f.write_char('\\')?;
                    }
                    f.write_char(*char)?;
                }
            }
        }
        f.write_str(quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_texts() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("?", "", false),
            ("?", "é", true),
            ("?", "ab", false),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "banana", true),
            ("*an*na", "banana", true),
            ("*nan", "banana", false),
            ("b?n*?", "banana", true),
            ("fl?ghts", "flights", true),
            ("fl?ghts", "flghts", false),
            ("Flights", "flights", false),
        ] {
            assert_eq!(Pattern::bare(pattern).matches(text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = Pattern::bare(&"*a".repeat(100));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(5_000))));
    }

    #[test]
    fn quotes_and_escapes_are_written_only_where_they_are_needed() {
        for (inner, shown) in [
            ("ops", "ops"),
            ("ops team", "\"ops team\""),
            ("", "\"\""),
            ("a**b", "a*b"),
            ("a\\*b", "\"a\\*b\""),
            ("\\\"\\\\", "\"\\\"\\\\\""),
        ] {
            assert_eq!(Pattern::quoted(inner).to_string(), shown);
        }
    }
}
