//! The short form of partition keys, which people see.

use std::fmt::{self, Write as _};

use crate::partition_key::PartitionKey;
use crate::partition_value::{PartitionValue, time_text};

/// A lone date stands by itself; everything else is `dim=value`, comma-separated.
pub(crate) fn write(key: &PartitionKey, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut dims = key.iter().peekable();
    if let (Some((_, PartitionValue::Date(date))), None) = (dims.next(), dims.peek()) {
        return write!(f, "{date}");
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
    let has_punctuation = text.contains(|c: char| {
        c.is_control() || c.is_whitespace() || matches!(c, ',' | '=' | '"' | '\\' | '[' | ']')
    });
    let looks_canonical = text.starts_with(['s', 'i', 'b', 'd', 't', 'n']) && text[1..].starts_with(':');
    looks_like_a_number_or_time
        || looks_canonical
        || has_punctuation
        || matches!(text, "" | "true" | "false" | "null")
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

    fn short(dim: &str, value: PartitionValue) -> String {
        PartitionKey::single(dim, value).unwrap().to_string()
    }

    #[test]
    fn a_lone_date_needs_no_dimension() {
        assert_eq!(PartitionKey::parse("day=d:2025-01-15").unwrap().to_string(), "2025-01-15");
        assert_eq!(PartitionKey::parse("a=d:2025-01-15,b=i:7").unwrap().to_string(), "a=2025-01-15,b=7");
    }

    #[test]
    fn strings_that_could_be_misread_are_quoted() {
        for (text, shown) in [
            ("us-east", "k=us-east"),
            ("côte d'or", "k=\"côte d'or\""),
            ("", "k=\"\""),
            ("007", "k=\"007\""),
            ("2025-01-15", "k=\"2025-01-15\""),
            ("2nd", "k=2nd"),
            ("s:YQ", "k=\"s:YQ\""),
            ("x:YQ", "k=x:YQ"),
            ("true", "k=\"true\""),
            ("null", "k=\"null\""),
            ("a,b=c", "k=\"a,b=c\""),
            ("say \"hi\"\n", "k=\"say \\\"hi\\\"\\n\""),
        ] {
            assert_eq!(short("k", PartitionValue::Str(text.to_owned())), shown);
        }
    }

    #[test]
    fn times_drop_a_fraction_of_zero() {
        assert_eq!(short("at", PartitionValue::Time(0)), "at=1970-01-01T00:00:00Z");
        assert_eq!(short("at", PartitionValue::Time(-1)), "at=1969-12-31T23:59:59.999999Z");
        assert_eq!(short("at", PartitionValue::Null), "at=null");
    }
}
