//! Cuts the text of a selection into tokens that know where they stand.

use super::error::SyntaxError;
use super::pattern::{is_bare_char, is_escaped_char};

/// A piece of the text. Positions count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    /// As it was written; of a quoted text with its quotes.
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a glob, a number, a keyword or a bare value: the parser knows which.
    Word,
    Quoted,
    Plus,
    Colon,
    Equals,
    Comma,
    Ampersand,
    Bar,
    Bang,
    Open,
    Close,
    End,
}

impl Token<'_> {
    /// Whether nothing stands between this token and `next`.
    pub(super) fn touches(&self, next: &Self) -> bool {
        self.end == next.at && next.kind != Kind::End
    }

    /// How an error names it.
    pub(super) fn shown(&self) -> String {
        match self.kind {
            Kind::End => "the end".to_owned(),
            Kind::Quoted => shorten(self.text),
            Kind::Word
            | Kind::Plus
            | Kind::Colon
            | Kind::Equals
            | Kind::Comma
            | Kind::Ampersand
            | Kind::Bar
            | Kind::Bang
            | Kind::Open
            | Kind::Close => format!("\"{}\"", shorten(self.text)),
        }
    }
}

/// Long words are cut so that a message stays one line.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// All tokens of `text`; the last one is [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, SyntaxError> {
    let mut lexer = Lexer { text, byte: 0, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.take_while(char::is_whitespace);
        let token = lexer.token()?;
        tokens.push(token);
        if token.kind == Kind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    byte: usize,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn token(&mut self) -> Result<Token<'t>, SyntaxError> {
        let (byte, at) = (self.byte, self.at);
        let kind = match self.next() {
            None => Kind::End,
            Some('"') => self.quoted(at)?,
            Some('+') => Kind::Plus,
            Some(':') => Kind::Colon,
            Some('=') => Kind::Equals,
            Some(',') => Kind::Comma,
            Some('&') => Kind::Ampersand,
            Some('|') => Kind::Bar,
            Some('!') => Kind::Bang,
            Some('(') => Kind::Open,
            Some(')') => Kind::Close,
            Some(char) if is_bare_char(char) => {
                self.take_while(is_bare_char);
                Kind::Word
            }
            Some('\'') => {
                let problem = "found \"'\", expected '\"': values are put in double quotes".to_owned();
                return Err(self.refuse(at, 1, problem));
            }
            Some(char) => {
                let expected =
                    "a name, an attribute or an operator; put a value with other characters in quotes";
                let problem = format!("found {}, expected {expected}", shown_char(char));
                return Err(self.refuse(at, 1, problem));
            }
        };
        Ok(Token { kind, text: &self.text[byte..self.byte], at, end: self.at })
    }

    /// The rest of a quoted text whose opening quote stood at `opened`.
    fn quoted(&mut self, opened: usize) -> Result<Kind, SyntaxError> {
        loop {
            let at = self.at;
            match self.next() {
                Some('"') => return Ok(Kind::Quoted),
                Some('\\') => {
                    let expected = "\"\\\"\", \"\\\\\", \"\\*\" or \"\\?\"";
                    match self.next() {
                        Some(char) if is_escaped_char(char) => {}
                        Some(char) => {
                            let found = char.escape_debug();
                            let problem = format!("found \"\\{found}\", expected {expected}");
                            return Err(self.refuse(at, 2, problem));
                        }
                        None => {
                            let problem = format!("found \"\\\" at the end, expected {expected}");
                            return Err(self.refuse(at, 1, problem));
                        }
                    }
                }
                Some(char) if char.is_control() => {
                    let problem = format!(
                        "found {} in a quoted value, expected no control characters",
                        shown_char(char)
                    );
                    return Err(self.refuse(at, 1, problem));
                }
                Some(_) => {}
                None => {
                    let problem =
                        format!("found the end, expected '\"' to close the one at character {opened}");
                    return Err(self.refuse(at, 0, problem));
                }
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.byte += char.len_utf8();
        self.at += 1;
        Some(char)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.byte..].chars().next()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.next();
        }
    }

    fn refuse(&self, at: usize, len: usize, problem: String) -> SyntaxError {
        SyntaxError { text: self.text.to_owned(), at, len, problem }
    }
}

fn shown_char(char: char) -> String {
    format!("\"{}\"", char.escape_debug())
}
