//! Ids that are generated elsewhere and passed in: ULIDs, one type per kind of thing.
//!
//! Nothing here draws a random number or reads a clock: an id is built from parts that the caller supplies, or is
//! the successor of another id.

use std::fmt;
use std::str::FromStr;

use ulid::Ulid;

use crate::parse_error::{ParseError, unexpected};
use crate::serde_text::deserialize_from_text;

const LEN: usize = 26;
/// The part of a ULID that is not time.
const ENTROPY: u128 = (1 << 80) - 1;
/// The latest time that a ULID can hold, in the year 10889.
const LAST_MILLI: u64 = (1 << 48) - 1;
/// The largest first digit: 26 digits are 130 bits, a ULID has 128.
const LAST_FIRST_DIGIT: u8 = 7;

macro_rules! ulid_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Ulid);

        impl $name {
            /// The id whose bits are all zero; it names nothing.
            pub const NIL: Self = Self(Ulid(0));

            /// The id for time `ms` (milliseconds since the epoch) and the low 80 bits of `entropy`.
            pub const fn from_parts(ms: u64, entropy: u128) -> Self {
                let ms = if ms > LAST_MILLI { LAST_MILLI } else { ms };
                Self(Ulid((ms as u128) << 80 | (entropy & ENTROPY)))
            }

            /// The id that follows this one in order; none after the last.
            pub const fn next(self) -> Option<Self> {
                match self.0.0.checked_add(1) {
                    Some(value) => Some(Self(Ulid(value))),
                    None => None,
                }
            }

            /// The 128 bits of the id; ids order like these numbers and like their texts.
            pub const fn to_u128(self) -> u128 {
                self.0.0
            }

            /// The id with these 128 bits.
            pub const fn from_u128(value: u128) -> Self {
                Self(Ulid(value))
            }

            /// The time in the id, in milliseconds since the epoch.
            pub const fn timestamp_ms(self) -> u64 {
                self.0.timestamp_ms()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.0.array_to_str(&mut [0; LEN]))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                parse_ulid($what, text).map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.array_to_str(&mut [0; LEN]))
            }
        }

        deserialize_from_text!($name, "a ULID: 26 characters of upper-case Crockford base32", str::parse::<$name>);
    };
}

ulid_type!(
    /// Names one event of the log.
    ///
    /// ```
    /// use servo_core::EventId;
    /// let first = EventId::from_parts(1_736_937_000_123, 7);
    /// assert_eq!(first.to_string(), "01JHMR6K5V0000000000000007");
    /// assert!(first.next().is_some_and(|second| second > first));
    /// ```
    EventId,
    "event id"
);
ulid_type!(
    /// Names one plan of a run.
    PlanId,
    "plan id"
);
ulid_type!(
    /// Names one attempt at a task; results of any other attempt are stale (INV-8).
    AttemptId,
    "attempt id"
);
ulid_type!(
    /// Names one materialization: the committed output of an attempt.
    MaterializationId,
    "materialization id"
);
ulid_type!(
    /// Names one write to a store, so that a writer whose answer was lost can recognize its own object.
    PutId,
    "put id"
);

ulid_type!(
    /// Names one schedule, whatever it is called.
    ScheduleId,
    "schedule id"
);
ulid_type!(
    /// Names one sensor, whatever it is called.
    SensorId,
    "sensor id"
);
ulid_type!(
    /// Names one backfill.
    BackfillId,
    "backfill id"
);
ulid_type!(
    /// Names one evaluation of the function of a schedule or a sensor.
    EvaluationId,
    "evaluation id"
);
ulid_type!(
    /// Names one notification rule, whatever it is called.
    RuleId,
    "notification rule id"
);

/// Accepts only the output of `Display`, so that text and id are one to one: upper case, no look-alike letters.
fn parse_ulid(what: &'static str, text: &str) -> Result<Ulid, ParseError> {
    match text.as_bytes().try_into().ok().and_then(ulid_value) {
        Some(value) => Ok(Ulid(value)),
        None => Err(ulid_problem(what, text)),
    }
}

/// Tables have many ids: their digits are read twelve and twelve side by side, and looked at once.
fn ulid_value(digits: &[u8; LEN]) -> Option<u128> {
    let value = |at: usize| CROCKFORD[usize::from(digits[at])];
    let (first, second) = (value(0), value(1));
    let (mut seen, mut high, mut low) = (first | second, 0u64, 0u64);
    for at in 2..14 {
        let (upper, lower) = (value(at), value(at + 12));
        seen |= upper | lower;
        high = high << 5 | u64::from(upper);
        low = low << 5 | u64::from(lower);
    }
    let top = u128::from(first) << 5 | u128::from(second);
    (seen < NO_DIGIT && first <= LAST_FIRST_DIGIT)
        .then(|| top << 120 | u128::from(high) << 60 | u128::from(low))
}

/// Says where a text is not a ULID, and why.
fn ulid_problem(what: &'static str, text: &str) -> ParseError {
    let refuse = |at, problem| ParseError::at_byte(what, text, at, problem);
    for at in 0..LEN {
        match text.as_bytes().get(at).map(|digit| (*digit, CROCKFORD[usize::from(*digit)])) {
            Some((_, digit)) if at == 0 && digit != NO_DIGIT && digit > LAST_FIRST_DIGIT => {
                return refuse(
                    at,
                    format!("the first character is at most {LAST_FIRST_DIGIT}, or it overflows 128 bits"),
                );
            }
            Some((b'a'..=b'z', _)) => return refuse(at, "letters are upper case".to_owned()),
            Some((_, NO_DIGIT)) => {
                return refuse(
                    at,
                    unexpected(text, at, "a digit or an upper-case letter other than I, L, O, U"),
                );
            }
            Some(_) => {}
            None => return refuse(at, format!("has {at} characters, expected {LEN}")),
        }
    }
    refuse(LEN, format!("has {} characters, expected {LEN}", text.chars().count()))
}

/// Stands for a byte that is no digit: none of the five bits of one.
const NO_DIGIT: u8 = 0b10_0000;

/// The value of each byte as a digit of a ULID.
const CROCKFORD: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let digits = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let mut value = 0;
    while value < digits.len() {
        values[digits[value] as usize] = value as u8;
        value += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_are_one_to_one_and_order_alike() {
        let ids = [
            EventId::NIL,
            EventId::from_parts(0, u128::MAX),
            EventId::from_parts(1, 0),
            EventId::from_parts(1_736_937_000_123, 0x0123_4567_89ab_cdef_0123),
            EventId::from_u128(u128::MAX),
        ];
        for pair in ids.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].to_string() < pair[1].to_string());
        }
        for id in ids {
            assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
            assert_eq!(serde_json::from_str::<EventId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
        }
    }

    #[test]
    fn the_successor_carries_into_the_time_and_ends_at_the_last_id() {
        let last_of_milli = PutId::from_parts(4, u128::MAX);
        assert_eq!(last_of_milli.next(), Some(PutId::from_parts(5, 0)));
        assert_eq!(last_of_milli.timestamp_ms(), 4);
        assert_eq!(PutId::from_u128(u128::MAX).next(), None);
        assert_eq!(PutId::from_parts(u64::MAX, 0).timestamp_ms(), LAST_MILLI);
    }

    #[test]
    fn every_byte_at_every_place_is_read_or_refused() {
        let text = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
        for at in 0..LEN {
            for byte in (0..128u8).map(char::from) {
                let mut changed = text.to_owned();
                changed.replace_range(at..=at, byte.encode_utf8(&mut [0; 4]));
                let read = changed.parse::<EventId>().map(|id| id.to_string());
                let is_digit = byte.is_ascii_digit() || byte.is_ascii_uppercase() && !"ILOU".contains(byte);
                let fits = at > 0 || ('0'..='7').contains(&byte);
                assert_eq!(read.ok(), (is_digit && fits).then_some(changed), "{byte:?} at {at}");
            }
        }
    }

    #[test]
    fn debug_shows_the_text() {
        assert_eq!(format!("{:?}", PlanId::NIL), "PlanId(00000000000000000000000000)");
    }
}
