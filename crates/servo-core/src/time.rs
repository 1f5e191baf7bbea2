//! Points in time and lengths of time, in whole milliseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::parse_error::ParseError;

/// A length of time in milliseconds, never negative; serialized as that integer.
///
/// ```
/// use servo_core::Millis;
/// assert_eq!(Millis::from_secs(90).to_string(), "1m30s");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Millis = Millis(0);

    /// A number of milliseconds.
    pub const fn new(millis: u64) -> Self {
        Self(millis)
    }

    /// A number of seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// A number of minutes.
    pub const fn from_minutes(minutes: u64) -> Self {
        Self(minutes.saturating_mul(60_000))
    }

    /// A number of hours.
    pub const fn from_hours(hours: u64) -> Self {
        Self(hours.saturating_mul(3_600_000))
    }

    /// The number of milliseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or the longest representable length.
    #[must_use]
    pub const fn saturating_add(self, other: Millis) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The length `factor` times, or the longest representable length.
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// For people: `250ms`, `1m30s`, `7d`; zero is `0ms`.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0ms");
        }
        let mut rest = self.0;
        for (size, unit) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")] {
            let count = rest / size;
            rest %= size;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

/// Reads what [`Display`](fmt::Display) writes, with each unit at most once and in any order: `90s`, `1m30s`, `7d`.
impl FromStr for Millis {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = |at: usize, problem: &str| Err(ParseError::at_byte("length of time", text, at, problem));
        if text.is_empty() {
            return refuse(0, "it is empty; write 30s, 5m, 1h30m or 7d");
        }
        let (mut total, mut at, mut used) = (0u64, 0, Vec::new());
        while at < text.len() {
            let rest = &text[at..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return refuse(at, "expected a whole number; write 30s, 5m, 1h30m or 7d");
            }
            let letters = rest.bytes().skip(digits).take_while(u8::is_ascii_alphabetic).count();
            let unit = &rest[digits..digits + letters];
            let size: u64 = match unit {
                "d" => 86_400_000,
                "h" => 3_600_000,
                "m" => 60_000,
                "s" => 1_000,
                "ms" => 1,
                _ => return refuse(at + digits, "expected a unit: d, h, m, s or ms"),
            };
            if used.contains(&size) {
                return refuse(at + digits, "the same unit is there twice");
            }
            used.push(size);
            let length = rest[..digits].parse::<u64>().ok().and_then(|count| count.checked_mul(size));
            match length.and_then(|length| total.checked_add(length)) {
                Some(sum) => total = sum,
                None => return refuse(at, "it is too long"),
            }
            at += digits + letters;
        }
        Ok(Self(total))
    }
}

/// A point in time: whole milliseconds since 1970-01-01T00:00:00Z, within the years 0000 to 9999.
///
/// Values outside those years are clamped to the nearest end, so every value has exactly one text and every
/// text one value. The text is RFC 3339 in UTC, always with three digits of fraction.
///
/// ```
/// use servo_core::Timestamp;
/// let at: Timestamp = "2025-01-15T10:30:00.123Z".parse()?;
/// assert_eq!(at.as_millis(), 1_736_937_000_123);
/// assert_eq!(at.to_string(), "2025-01-15T10:30:00.123Z");
/// # Ok::<(), servo_core::ParseError>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00.000Z.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// 0000-01-01T00:00:00.000Z, the earliest representable time.
    pub const MIN: Timestamp = Timestamp(-62_167_219_200_000);
    /// 9999-12-31T23:59:59.999Z, the latest representable time.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);

    /// The time `millis` milliseconds after the epoch, clamped to [`Timestamp::MIN`] and [`Timestamp::MAX`].
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The time `length` later, or [`Timestamp::MAX`].
    #[must_use]
    pub const fn saturating_add(self, length: Millis) -> Self {
        Self::from_millis(self.0.saturating_add_unsigned(length.0))
    }

    /// The time `length` earlier, or [`Timestamp::MIN`].
    #[must_use]
    pub const fn saturating_sub(self, length: Millis) -> Self {
        Self::from_millis(self.0.saturating_sub_unsigned(length.0))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Timestamp) -> Millis {
        if self.0 <= earlier.0 { Millis::ZERO } else { Millis(self.0.abs_diff(earlier.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_like_people_write_them() {
        for (millis, text) in [
            (0, "0ms"),
            (250, "250ms"),
            (1_000, "1s"),
            (90_000, "1m30s"),
            (3_600_001, "1h1ms"),
            (7 * 86_400_000, "7d"),
        ] {
            assert_eq!(Millis::new(millis).to_string(), text);
            assert_eq!(text.parse(), Ok(Millis::new(millis)));
        }
    }

    #[test]
    fn texts_that_are_no_length_are_refused_with_the_place() {
        for (text, at) in
            [("", 0), ("5", 1), ("s", 0), ("-5s", 0), ("5s3", 3), ("1h1h", 3), ("5 s", 1), ("5é", 1)]
        {
            assert_eq!(text.parse::<Millis>().unwrap_err().at, at, "{text}");
        }
        assert!("99999999999999999999d".parse::<Millis>().is_err());
        assert!("18446744073709551615d".parse::<Millis>().is_err());
    }

    #[test]
    fn arithmetic_stops_at_the_ends_of_the_calendar() {
        assert_eq!(Timestamp::EPOCH.saturating_add(Millis::new(u64::MAX)), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.saturating_sub(Millis::new(u64::MAX)), Timestamp::MIN);
        assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
        assert_eq!(Millis::from_hours(u64::MAX).saturating_add(Millis::new(1)), Millis::new(u64::MAX));
    }

    #[test]
    fn time_since_a_later_moment_is_zero() {
        let noon = Timestamp::from_millis(1_000);
        assert_eq!(Timestamp::EPOCH.since(noon), Millis::ZERO);
        assert_eq!(noon.since(Timestamp::EPOCH), Millis::from_secs(1));
        assert_eq!(Timestamp::MAX.since(Timestamp::MIN).get(), 315_569_519_999_999);
    }
}
