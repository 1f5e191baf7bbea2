//! A JSON reader that writes canonical JSON as it goes.
//!
//! A general parser would turn `1.0`, `1e3` and too large integers into floats before they could be refused, and
//! would keep one of two duplicate keys; so this one looks at the text itself.

use std::borrow::Cow;

use super::MAX_DEPTH;
use super::error::{Error, Problem};
use super::object::Object;
use super::text::write_string;

/// Appends the canonical form of the document `json_text`, which stands at `depth` levels of nesting already.
pub(crate) fn canonicalize(json_text: &str, depth: usize, out: &mut String) -> Result<(), Error> {
    let mut reader = Reader { text: json_text, at: 0, depth };
    reader.value(out)?;
    reader.skip_whitespace();
    match reader.peek() {
        None => Ok(()),
        Some(_) => Err(reader.syntax("found text after the end of the document")),
    }
}

struct Reader<'t> {
    text: &'t str,
    /// Byte offset of what is read next.
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn syntax(&self, problem: &str) -> Error {
        let at = self.text.char_indices().take_while(|(start, _)| *start < self.at).count();
        Error::new(Problem::Syntax { at, problem: problem.to_owned() })
    }

    fn value(&mut self, out: &mut String) -> Result<(), Error> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'{') => self.nested(out, Self::object),
            Some(b'[') => self.nested(out, Self::array),
            Some(b'"') => {
                let text = self.string()?;
                write_string(out, &text);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            Some(_) => self.word(out),
            None => Err(self.syntax("the document ends where a value is expected")),
        }
    }

    fn nested(
        &mut self,
        out: &mut String,
        read: fn(&mut Self, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::new(Problem::Depth));
        }
        self.depth += 1;
        self.at += 1;
        read(self, out)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, out: &mut String) -> Result<(), Error> {
        let mut object = Object::open(out);
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return object.close(out);
        }
        loop {
            self.skip_whitespace();
            if self.peek() != Some(b'"') {
                return Err(self.syntax("expected a key in double quotes"));
            }
            let key = self.string()?;
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.syntax("expected \":\" after the key"));
            }
            self.at += 1;
            object.member(out, key, |out| self.value(out))?;
            if self.ends_after_member(b'}', "expected \",\" or \"}\" after the member")? {
                return object.close(out);
            }
        }
    }

    fn array(&mut self, out: &mut String) -> Result<(), Error> {
        out.push('[');
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.at += 1;
            out.push(']');
            return Ok(());
        }
        for index in 0.. {
            if index > 0 {
                out.push(',');
            }
            self.value(out).map_err(|error| error.under_index(index))?;
            if self.ends_after_member(b']', "expected \",\" or \"]\" after the element")? {
                break;
            }
        }
        out.push(']');
        Ok(())
    }

    /// Steps over the comma or the closing bracket; true if it was the bracket.
    fn ends_after_member(&mut self, bracket: u8, problem: &str) -> Result<bool, Error> {
        self.skip_whitespace();
        let next = self.peek();
        if next == Some(bracket) || next == Some(b',') {
            self.at += 1;
            Ok(next == Some(bracket))
        } else {
            Err(self.syntax(problem))
        }
    }

    fn word(&mut self, out: &mut String) -> Result<(), Error> {
        let rest = &self.text[self.at..];
        let word = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        match word {
            "true" | "false" | "null" => {
                out.push_str(word);
                self.at += word.len();
                Ok(())
            }
            "NaN" | "Infinity" => Err(Error::new(Problem::Float(word.to_owned()))),
            _ => Err(self.syntax("expected a value: an object, array, string, integer, true, false or null")),
        }
    }

    fn number(&mut self, out: &mut String) -> Result<(), Error> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let number = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let digits = number.strip_prefix('-').unwrap_or(number);
        if digits == "Infinity" || number == "-0" {
            return Err(Error::new(Problem::Float(number.to_owned())));
        }
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_float = digits.starts_with(|c: char| c.is_ascii_digit())
                && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
            return Err(if is_float {
                Error::new(Problem::Float(number.to_owned()))
            } else {
                self.syntax("expected a number: decimal digits, perhaps after \"-\"")
            });
        }
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(self.syntax("a number has no leading zeros"));
        }
        if number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Err(Error::new(Problem::IntegerRange(number.to_owned())));
        }
        out.push_str(number);
        self.at += number.len();
        Ok(())
    }

    /// Reads a string; borrows it from the document unless something in it is escaped.
    fn string(&mut self) -> Result<Cow<'t, str>, Error> {
        self.at += 1;
        let mut start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let tail = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(match unescaped {
                        Some(text) => Cow::Owned(text + tail),
                        None => Cow::Borrowed(tail),
                    });
                }
                Some(b'\\') => {
                    let text = unescaped.get_or_insert_default();
                    text.push_str(&self.text[start..self.at]);
                    text.push(self.escape()?);
                    start = self.at;
                }
                Some(0x00..0x20) => {
                    return Err(self.syntax("a control character in a string must be escaped"));
                }
                Some(_) => self.at += 1,
                None => return Err(self.syntax("the document ends inside a string")),
            }
        }
    }

    /// Reads one escape, which starts with the backslash that is next.
    fn escape(&mut self) -> Result<char, Error> {
        let code = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match code {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            Some(_) | None => {
                return Err(
                    self.syntax("unknown escape: use \\\", \\\\, \\/, \\b, \\f, \\n, \\r, \\t or \\uXXXX")
                );
            }
        };
        self.at += 2;
        Ok(plain)
    }

    /// Reads `\uXXXX`, or the two of them that make one character outside the basic plane.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let first = self.code_unit(self.at)?;
        let (code, len) = match first {
            0xd800..0xdc00 => {
                let second = self.code_unit(self.at + 6).unwrap_or(0);
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(self.syntax("a high surrogate must be followed by a low one"));
                }
                (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
            }
            _ => (first, 6),
        };
        let Some(character) = char::from_u32(code) else {
            return Err(self.syntax("a low surrogate must follow a high one"));
        };
        self.at += len;
        Ok(character)
    }

    fn code_unit(&self, at: usize) -> Result<u32, Error> {
        let digits = self.text.get(at..at + 6).and_then(|escape| escape.strip_prefix("\\u"));
        digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.syntax("expected four hexadecimal digits after \\u"))
    }
}
