//! [`Timestamp`] as text: RFC 3339 in UTC with milliseconds.

use std::fmt;
use std::str::FromStr;

use crate::civil;
use crate::parse_error::{ParseError, Refused, unexpected};
use crate::serde_text::deserialize_from_text;
use crate::time::Timestamp;

const LEN: usize = "2025-01-15T10:30:00.123Z".len();

impl Timestamp {
    fn write_text(self, buffer: &mut [u8; LEN]) -> &str {
        let millis = self.as_millis();
        civil::write_date_time(buffer, millis.div_euclid(1_000));
        buffer[19] = b'.';
        civil::write_digits(&mut buffer[20..23], millis.rem_euclid(1_000) as u64);
        buffer[23] = b'Z';
        std::str::from_utf8(buffer).expect("a timestamp is written in ASCII")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.write_text(&mut [0; LEN]))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

impl FromStr for Timestamp {
    type Err = ParseError;

    /// Reads `YYYY-MM-DDTHH:MM:SS[.fraction]Z`; a fraction of up to 9 digits is cut to milliseconds.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(text).map_err(|refused| ParseError::refused("timestamp", text, refused))
    }
}

fn read(text: &str) -> Result<Timestamp, Refused> {
    let date = civil::read_date(text, 0)?;
    let second = civil::read_time(text, 10)?;
    let (millis, end) = read_fraction(text)?;
    match text.as_bytes().get(end) {
        Some(b'Z') if text.len() == end + 1 => {}
        Some(b'Z') => return Err((end + 1, "found text after the \"Z\"".to_owned())),
        Some(b'+' | b'-') => {
            return Err((
                end,
                "a numeric offset is not accepted: convert to UTC and end with \"Z\"".to_owned(),
            ));
        }
        Some(_) | None => return Err((end, unexpected(text, end, "\"Z\""))),
    }
    let seconds = civil::days_from_civil(date) * 86_400 + second;
    Ok(Timestamp::from_millis(seconds * 1_000 + millis))
}

/// Milliseconds of the fraction after the seconds, and where it ends.
fn read_fraction(text: &str) -> Result<(i64, usize), Refused> {
    let bytes = text.as_bytes();
    if bytes.get(19) != Some(&b'.') {
        return Ok((0, 19));
    }
    let digits = bytes[20..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Err((20, unexpected(text, 20, "a digit after \".\"")));
    }
    if digits > 9 {
        return Err((29, "a fraction has at most 9 digits".to_owned()));
    }
    let millis = (0..3).fold(0, |value, i| {
        let digit = if i < digits { bytes[20 + i] - b'0' } else { 0 };
        value * 10 + i64::from(digit)
    });
    Ok((millis, 20 + digits))
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.write_text(&mut [0; LEN]))
    }
}

deserialize_from_text!(Timestamp, "a timestamp such as 2025-01-15T10:30:00.123Z", str::parse::<Timestamp>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_have_known_texts() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_709_210_096_007, "2024-02-29T12:34:56.007Z"),
            (Timestamp::MIN.as_millis(), "0000-01-01T00:00:00.000Z"),
            (Timestamp::MAX.as_millis(), "9999-12-31T23:59:59.999Z"),
        ] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(time.to_string(), text);
            assert_eq!(text.parse::<Timestamp>().unwrap(), time);
            assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Timestamp>(&format!("\"{text}\"")).unwrap(), time);
        }
    }

    #[test]
    fn fractions_are_optional_and_cut_to_milliseconds() {
        for (text, millis) in [
            ("1970-01-01T00:00:01Z", 1_000),
            ("1970-01-01T00:00:00.5Z", 500),
            ("1970-01-01T00:00:00.123999999Z", 123),
        ] {
            assert_eq!(text.parse::<Timestamp>().unwrap().as_millis(), millis);
        }
    }

    #[test]
    fn other_forms_are_refused_at_the_character_that_is_wrong() {
        for (text, at, says) in [
            ("", 0, "ends here"),
            ("2025-01-15 10:30:00Z", 10, "expected \"T\""),
            ("2025-13-15T10:30:00Z", 0, "month 13"),
            ("2025-02-29T10:30:00Z", 0, "day 29"),
            ("2025-01-15T24:00:00Z", 10, "hour 24"),
            ("2025-01-15T23:59:60Z", 10, "second 60"),
            ("2025-01-15T10:30:00+02:00", 19, "numeric offset"),
            ("2025-01-15T10:30:00.1-00:00", 21, "numeric offset"),
            ("2025-01-15T10:30:00", 19, "expected \"Z\""),
            ("2025-01-15T10:30:00z", 19, "expected \"Z\""),
            ("2025-01-15T10:30:00.Z", 20, "a digit"),
            ("2025-01-15T10:30:00.1234567890Z", 29, "at most 9"),
            ("2025-01-15T10:30:00Zé", 20, "after the \"Z\""),
            ("２025-01-15T10:30:00Z", 0, "a digit"),
        ] {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.problem.contains(says), "{error}");
        }
    }
}
