//! One value of a partition dimension, and its canonical text `tag:value`.

use std::fmt::Write as _;

use data_encoding::{BASE64URL_NOPAD, DecodeKind};
use jiff::civil::Date;

use crate::civil;
use crate::parse_error::{ParseError, Refused, unexpected};
use crate::serde_text::deserialize_from_text;

const WHAT: &str = "partition value";
const MICROS: i64 = 1_000_000;
/// 0001-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z: the years that Rust, Python and SQL agree on.
const MIN_TIME: i64 = -62_135_596_800 * MICROS;
const MAX_TIME: i64 = 253_402_300_799 * MICROS + 999_999;
/// Length of `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
const TIME_LEN: usize = 27;

/// A value along one dimension of a partition key. There are no floats: they have no one text.
///
/// Serialized as its canonical text, such as `"d:2025-01-15"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartitionValue {
    /// Any text; canonical `s:` and base64url without padding.
    Str(String),
    /// A whole number; canonical `i:` and decimal digits.
    Int(i64),
    /// Canonical `b:true` or `b:false`.
    Bool(bool),
    /// A day in the years 0001 to 9999; canonical `d:YYYY-MM-DD`.
    Date(Date),
    /// Microseconds since the epoch, in the years 0001 to 9999; canonical `t:YYYY-MM-DDTHH:MM:SS.ffffffZ`.
    Time(i64),
    /// No value; canonical `n:`.
    Null,
}

impl PartitionValue {
    /// The canonical text `tag:value`; refused if a date or time is outside the years 0001 to 9999.
    pub fn canonical(&self) -> Result<String, ParseError> {
        let mut text = String::new();
        self.write_canonical(&mut text)?;
        Ok(text)
    }

    /// Reads the canonical text `tag:value`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        read_value(text, 0, text.len()).map_err(|refused| ParseError::refused(WHAT, text, refused))
    }

    pub(crate) fn write_canonical(&self, out: &mut String) -> Result<(), ParseError> {
        match self {
            Self::Str(text) => {
                out.push_str("s:");
                BASE64URL_NOPAD.encode_append(text.as_bytes(), out);
            }
            Self::Int(number) => write_infallible(out, format_args!("i:{number}")),
            Self::Bool(truth) => write_infallible(out, format_args!("b:{truth}")),
            Self::Date(date) => {
                if date.year() < 1 {
                    return Err(out_of_range(&date.to_string()));
                }
                write_infallible(out, format_args!("d:{date}"));
            }
            Self::Time(micros) => {
                out.push_str("t:");
                out.push_str(time_text(*micros, &mut [0; TIME_LEN])?);
            }
            Self::Null => out.push_str("n:"),
        }
        Ok(())
    }
}

fn write_infallible(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String cannot fail");
}

fn out_of_range(shown: &str) -> ParseError {
    ParseError::at_byte(WHAT, shown, 0, "dates and times are in the years 0001 to 9999")
}

/// Writes `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
pub(crate) fn time_text(micros: i64, buffer: &mut [u8; TIME_LEN]) -> Result<&str, ParseError> {
    if !(MIN_TIME..=MAX_TIME).contains(&micros) {
        return Err(out_of_range(&micros.to_string()));
    }
    civil::write_date_time(buffer, micros.div_euclid(MICROS));
    buffer[19] = b'.';
    civil::write_digits(&mut buffer[20..26], micros.rem_euclid(MICROS) as u64);
    buffer[26] = b'Z';
    Ok(std::str::from_utf8(buffer).expect("a time is written in ASCII"))
}

/// Reads `tag:value` in bytes `start..end` of `text`; positions in refusals are those of `text`.
pub(crate) fn read_value(text: &str, start: usize, end: usize) -> Result<PartitionValue, Refused> {
    let text = &text[..end];
    let tag = text[start..].chars().next();
    let value = start + 2;
    if text.as_bytes().get(start + 1) != Some(&b':') || !tag.is_some_and(|tag| tag.is_ascii()) {
        // A two-byte character can hide the colon's place, so the tag is looked at first.
        let at = if matches!(tag, Some('s' | 'i' | 'b' | 'd' | 't' | 'n')) { start + 1 } else { start };
        let expected = if at == start { "a tag: s, i, b, d, t or n" } else { "\":\" after the tag" };
        return Err((at, unexpected(text, at, expected)));
    }
    match text.as_bytes()[start] {
        b's' => read_str(text, value).map(PartitionValue::Str),
        b'i' => read_int(text, value).map(PartitionValue::Int),
        b'b' => match &text[value..] {
            "true" => Ok(PartitionValue::Bool(true)),
            "false" => Ok(PartitionValue::Bool(false)),
            _ => Err((value, unexpected(text, value, "true or false"))),
        },
        b'd' => read_date(text, value).map(PartitionValue::Date),
        b't' => read_time(text, value).map(PartitionValue::Time),
        b'n' if text.len() == value => Ok(PartitionValue::Null),
        b'n' => Err((value, "null has no value: write n: and nothing after it".to_owned())),
        _ => Err((start, unexpected(text, start, "a tag: s, i, b, d, t or n"))),
    }
}

fn read_str(text: &str, start: usize) -> Result<String, Refused> {
    let encoded = &text.as_bytes()[start..];
    let bytes = BASE64URL_NOPAD.decode(encoded).map_err(|error| {
        let at = start + error.position;
        match error.kind {
            DecodeKind::Symbol => (at, unexpected(text, at, "base64url: A-Z, a-z, 0-9, \"-\" or \"_\"")),
            DecodeKind::Length => (text.len(), "base64url of this length is incomplete".to_owned()),
            DecodeKind::Trailing | DecodeKind::Padding => {
                (at, "the last character has bits that are not part of the text".to_owned())
            }
        }
    })?;
    String::from_utf8(bytes).map_err(|_| (start, "the bytes of the string are not UTF-8".to_owned()))
}

fn read_int(text: &str, start: usize) -> Result<i64, Refused> {
    let value = &text[start..];
    let digits = value.strip_prefix('-').unwrap_or(value);
    let first_digit = text.len() - digits.len();
    if let Some(at) = digits.bytes().position(|byte| !byte.is_ascii_digit()) {
        return Err((first_digit + at, unexpected(text, first_digit + at, "a decimal digit")));
    }
    if digits.is_empty() {
        return Err((first_digit, unexpected(text, first_digit, "a decimal digit")));
    }
    if value == "-0" {
        return Err((start, "zero has no sign: write 0".to_owned()));
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err((first_digit, "a number has no leading zeros".to_owned()));
    }
    value.parse().map_err(|_| (start, format!("the number is not between {} and {}", i64::MIN, i64::MAX)))
}

fn read_date(text: &str, start: usize) -> Result<Date, Refused> {
    let day = read_day(text, start)?;
    end_of_text(text, start + 10)?;
    // A day that passed the calendar check fits the smaller types of jiff.
    let date = Date::new(day.year as i16, day.month as i8, day.day as i8);
    date.map_err(|error| (start, error.to_string()))
}

fn read_time(text: &str, start: usize) -> Result<i64, Refused> {
    let day = read_day(text, start)?;
    let second = civil::read_time(text, start + 10).map_err(|(at, problem)| {
        // Calendar errors point at the value, shape errors at the character.
        (if at == start + 10 && text.as_bytes().get(at) == Some(&b'T') { start } else { at }, problem)
    })?;
    civil::expect(text, start + 19, b'.', "\".\" and 6 digits of microseconds")?;
    let micros = civil::read_digits(text, start + 20, 6)?;
    civil::expect(text, start + 26, b'Z', "\"Z\"")?;
    end_of_text(text, start + TIME_LEN)?;
    Ok((civil::days_from_civil(day) * 86_400 + second) * MICROS + i64::from(micros))
}

fn read_day(text: &str, start: usize) -> Result<civil::Day, Refused> {
    let day = civil::read_date(text, start)?;
    if day.year == 0 { Err((start, "year 0 is not between 1 and 9999".to_owned())) } else { Ok(day) }
}

fn end_of_text(text: &str, end: usize) -> Result<(), Refused> {
    if text.len() > end { Err((end, unexpected(text, end, "the end of the value"))) } else { Ok(()) }
}

impl serde::Serialize for PartitionValue {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.canonical().map_err(serde::ser::Error::custom)?)
    }
}

deserialize_from_text!(PartitionValue, "a partition value such as d:2025-01-15", PartitionValue::parse);
