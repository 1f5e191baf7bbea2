//! The short form of partition keys, which people see.

use std::fmt::{self, Write as _};

use crate::partition_key::PartitionKey;
use crate::partition_value::{PartitionValue, time_text};

/// A lone value stands by itself; several are `dim=value`, comma-separated.
pub(crate) fn write(key: &PartitionKey, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut dims = key.iter().peekable();
    if let (Some((_, value)), None) = (dims.next(), dims.peek()) {
        return write_lone(&value, f);
    }
    for (position, (dim, value)) in key.iter().enumerate() {
        if position > 0 {
            f.write_char(',')?;
        }
        write!(f, "{dim}=")?;
        write_value(&value, f)?;
    }
    Ok(())
}

/// The short form of a value, as it stands in the short form of a key.
impl fmt::Display for PartitionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(self, f)
    }
}

/// The value of the only dimension. Its kind is known wherever it is read, so that a text may look like a number.
fn write_lone(value: &PartitionValue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        PartitionValue::Str(text)
            if text.is_empty() || has_punctuation(text) || looks_canonical(text) || text.contains("..") =>
        {
            write_quoted(text, f)
        }
        PartitionValue::Str(text) => f.write_str(text),
        PartitionValue::Int(_)
        | PartitionValue::Bool(_)
        | PartitionValue::Date(_)
        | PartitionValue::Time(_)
        | PartitionValue::Null => write_value(value, f),
    }
}

fn write_value(value: &PartitionValue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        PartitionValue::Str(text) if is_ambiguous(text) => write_quoted(text, f),
        PartitionValue::Str(text) => f.write_str(text),
        PartitionValue::Int(number) => write!(f, "{number}"),
        PartitionValue::Bool(truth) => write!(f, "{truth}"),
        PartitionValue::Date(date) => write!(f, "{date}"),
        PartitionValue::Time(micros) => {
            let mut buffer = [0; 27];
            let text = time_text(*micros, &mut buffer).map_err(|_| fmt::Error)?;
            match text.strip_suffix(".000000Z") {
                Some(whole_seconds) => write!(f, "{whole_seconds}Z"),
                None => f.write_str(text),
            }
        }
        PartitionValue::Null => f.write_str("null"),
    }
}

/// Whether a reader could take the bare string for another value, or for punctuation of the key.
fn is_ambiguous(text: &str) -> bool {
    let looks_like_a_number_or_time =
        text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(|c| "0123456789+-:.TZ".contains(c));
    looks_like_a_number_or_time
        || looks_canonical(text)
        || has_punctuation(text)
        || matches!(text, "" | "true" | "false" | "null")
}

fn has_punctuation(text: &str) -> bool {
    text.contains(|c: char| {
        c.is_control() || c.is_whitespace() || matches!(c, ',' | '=' | '"' | '\\' | '[' | ']')
    })
}

fn looks_canonical(text: &str) -> bool {
    text.starts_with(['s', 'i', 'b', 'd', 't', 'n']) && text[1..].starts_with(':')
}

fn write_quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(value: PartitionValue) -> String {
        PartitionKey::single("k", value).unwrap().to_string()
    }

    #[test]
    fn a_lone_value_needs_no_dimension() {
        assert_eq!(PartitionKey::parse("day=d:2025-01-15").unwrap().to_string(), "2025-01-15");
        assert_eq!(PartitionKey::parse("partition=s:ZXU").unwrap().to_string(), "eu");
        assert_eq!(PartitionKey::parse("a=d:2025-01-15,b=i:7").unwrap().to_string(), "a=2025-01-15,b=7");
    }

    #[test]
    fn strings_that_could_be_misread_are_quoted() {
        for (text, alone, beside) in [
            ("us-east", "us-east", "us-east"),
            ("côte d'or", "\"côte d'or\"", "\"côte d'or\""),
            ("", "\"\"", "\"\""),
            ("007", "007", "\"007\""),
            ("2025-01-15", "2025-01-15", "\"2025-01-15\""),
            ("2nd", "2nd", "2nd"),
            ("a..b", "\"a..b\"", "a..b"),
            ("s:YQ", "\"s:YQ\"", "\"s:YQ\""),
            ("x:YQ", "x:YQ", "x:YQ"),
            ("true", "true", "\"true\""),
            ("null", "null", "\"null\""),
            ("a,b=c", "\"a,b=c\"", "\"a,b=c\""),
            ("say \"hi\"\n", "\"say \\\"hi\\\"\\n\"", "\"say \\\"hi\\\"\\n\""),
        ] {
            let value = PartitionValue::Str(text.to_owned());
            assert_eq!(value.to_string(), beside);
            assert_eq!(short(value), alone);
        }
    }

    #[test]
    fn times_drop_a_fraction_of_zero() {
        assert_eq!(short(PartitionValue::Time(0)), "1970-01-01T00:00:00Z");
        assert_eq!(short(PartitionValue::Time(-1)), "1969-12-31T23:59:59.999999Z");
        assert_eq!(short(PartitionValue::Null), "null");
    }
}
