//! The words and punctuation of a key: names, values, quotes, commas and dots.

use std::iter::Peekable;
use std::str::CharIndices;

/// A value as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) quoted: bool,
}

/// A value, and its dimension if one was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) dim: Option<String>,
    pub(super) word: Word,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name and `=`.
    Dim(String),
    Word(Word),
    Comma,
    /// `..`, where ranges are read.
    Dots,
}

/// The entries of a key.
pub(super) fn key(text: &str) -> Result<Vec<Entry>, String> {
    entries(&tokens(text, false)?)
}

/// The entries of the tokens of a key: `[dim=]value` with commas between.
pub(super) fn entries(tokens: &[Token]) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for entry in tokens.split(|token| *token == Token::Comma) {
        match entry {
            [Token::Word(word)] => entries.push(Entry { dim: None, word: word.clone() }),
            [Token::Dim(dim), Token::Word(word)] => {
                entries.push(Entry { dim: Some(dim.clone()), word: word.clone() });
            }
            [] => return Err("a value is missing".to_owned()),
            [Token::Dim(dim)] => return Err(format!("{dim}= has no value")),
            _ => return Err("a value with punctuation needs quotes around the whole of it".to_owned()),
        }
    }
    Ok(entries)
}

/// Splits a text; `..` is a token of its own only where ranges are read.
pub(super) fn tokens(text: &str, ranges: bool) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        if first == ',' {
            tokens.push(Token::Comma);
            rest = &rest[1..];
        } else if ranges && rest.starts_with("..") {
            tokens.push(Token::Dots);
            rest = &rest[2..];
        } else if first == '"' {
            let (word, end) = quoted(rest)?;
            tokens.push(Token::Word(Word { text: word, quoted: true }));
            rest = &rest[end..];
        } else {
            let stop = |(at, c): (usize, char)| {
                matches!(c, ',' | '=' | '"') || ranges && rest[at..].starts_with("..")
            };
            let end = rest.char_indices().find(|next| stop(*next)).map_or(rest.len(), |(at, _)| at);
            let word = rest[..end].trim().to_owned();
            rest = &rest[end..];
            if let Some(after) = rest.strip_prefix('=') {
                tokens.push(Token::Dim(word));
                rest = after;
            } else {
                tokens.push(Token::Word(Word { text: word, quoted: false }));
            }
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

/// The value of a quoted text, and where it ends.
fn quoted(text: &str) -> Result<(String, usize), String> {
    let mut word = String::new();
    let mut chars = text.char_indices().peekable();
    chars.next();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((word, at + 1)),
            '\\' => word.push(escaped(&mut chars)?),
            c => word.push(c),
        }
    }
    Err("a quote is not closed".to_owned())
}

fn escaped(chars: &mut Peekable<CharIndices<'_>>) -> Result<char, String> {
    match chars.next() {
        Some((_, c @ ('"' | '\\'))) => Ok(c),
        Some((_, 'n')) => Ok('\n'),
        Some((_, 'r')) => Ok('\r'),
        Some((_, 't')) => Ok('\t'),
        Some((_, 'u')) => {
            let mut digits = String::new();
            while let Some((_, c)) = chars.next_if(|(_, c)| *c == '{' || c.is_ascii_hexdigit()) {
                digits.push(c);
            }
            let closed = chars.next_if(|(_, c)| *c == '}').is_some();
            let code = digits.strip_prefix('{').filter(|_| closed);
            let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            code.and_then(char::from_u32).ok_or_else(|| "\\u is followed by {hexadecimal digits}".to_owned())
        }
        Some((_, c)) => Err(format!("\\{c} is none of \\\" \\\\ \\n \\r \\t \\u{{…}}")),
        None => Err("a quote is not closed".to_owned()),
    }
}
