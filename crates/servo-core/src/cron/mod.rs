//! Cron expressions: when they tick in a zone, counted without walking over the ticks in between.
//!
//! An expression has five fields, `minute hour day month weekday`, or six with the second first. A field is `*`, or a
//! list of values, ranges and steps: `0,30`, `9-17`, `*/5`, `1-10/2`, `5/15`. Months and weekdays have names, `JAN` and
//! `SUN`; Sunday is 0 and 7. `L` is the last day of the month; `?` is `*` for the day and the weekday. If the day or
//! the weekday begins with `*`, a date must fit both, so that `0 0 */2 * 1` ticks on Mondays with an odd date; if
//! neither does, either will do, as in Vixie cron and cronie. `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`,
//! `@yearly` and `@annually` are short for what they say.
//!
//! # When clocks change
//!
//! | expression | a time that clocks skip | a time that clocks show twice |
//! |---|---|---|
//! | interval: `*` or `*/n` in the minute or the hour | does not tick | ticks twice |
//! | fixed time: all others | ticks at the first instant after the gap | ticks the first time |
//!
//! So `*/15 * * * *` ticks every 15 minutes of real time, and `30 2 * * *` once for every date, even one that a zone
//! skipped as a whole. Several skipped times make one tick: an instant is a tick or it is not.
//!
//! ```
//! use servo_core::{Cron, Timestamp};
//!
//! let ticks = Cron::parse("30 2 * * *")?.in_zone("America/New_York")?;
//! let now: Timestamp = "2024-03-09T12:00:00Z".parse()?;
//! let next = ticks.next(now).unwrap();
//! assert_eq!(next.to_string(), "2024-03-10T07:00:00.000Z");
//! assert_eq!(ticks.tick(ticks.rank(next)), Some(next));
//!
//! let seconds = Cron::parse("* * * * * *")?.in_zone("UTC")?;
//! assert_eq!(seconds.rank(now) - seconds.rank(Timestamp::EPOCH), 1_709_985_600);
//! # Ok::<(), servo_core::ParseError>(())
//! ```

mod bits;
mod days;
mod field;
mod local;
mod ticks;
mod times;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::ParseError;
use crate::parse_error::Refused;
use crate::planted::{self, Mistake};
use crate::zone::Zone;
use days::Days;
use field::{DAY, Field, HOUR, MINUTE, MONTH, SECOND, WEEKDAY};
use local::LocalTicks;
use times::Times;

pub use ticks::Ticks;

/// Longer than a list of every value of every field.
const MAX_LENGTH: usize = 1_000;

/// Short names, and what they are short for.
const MACROS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A cron expression that ticks some time.
///
/// `Display` writes it with single spaces and upper-case names. Expressions are equal if that text is.
#[derive(Debug, Clone)]
pub struct Cron {
    text: Arc<str>,
    local: LocalTicks,
    clocks: Clocks,
}

/// How an expression reacts to a change of clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clocks {
    /// It follows real time.
    Interval,
    /// It follows the dates.
    FixedTime,
}

impl Cron {
    /// Reads an expression; what is wrong, where, and what may be there instead.
    ///
    /// ```
    /// use servo_core::Cron;
    /// assert_eq!(Cron::parse(" 0 6  * * mon-fri")?.to_string(), "0 6 * * MON-FRI");
    /// let error = Cron::parse("61 6 * * *").unwrap_err();
    /// assert_eq!(error.problem, "minute 61 is not between 0 and 59");
    /// # Ok::<(), servo_core::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        read(text).map_err(|refused| ParseError::refused("cron expression", text, refused))
    }

    /// The text that `Display` writes.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The ticks in the time zone with this IANA name.
    pub fn in_zone(&self, timezone: &str) -> Result<Ticks, ParseError> {
        let zone =
            Zone::get(timezone).map_err(|problem| ParseError::at_byte("time zone", timezone, 0, problem))?;
        Ok(Ticks::new(self.clone(), zone))
    }
}

impl FromStr for Cron {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

fn read(text: &str) -> Result<Cron, Refused> {
    if text.len() > MAX_LENGTH {
        return Err((MAX_LENGTH, format!("it is longer than {MAX_LENGTH} bytes")));
    }
    let fields = split(text);
    if let Some((start, name)) = fields.first().filter(|(_, word)| word.starts_with('@')) {
        return read_macro(text, *start, name, fields.get(1));
    }
    let read = |unit: &field::Unit, (start, word): (usize, &str)| unit.read(text, start, start + word.len());
    let (second, [minute, hour, day, month, weekday]) = match *fields.as_slice() {
        [second, a, b, c, d, e] => (read(&SECOND, second)?, [a, b, c, d, e]),
        [a, b, c, d, e] => (Field { values: 1, ..Field::default() }, [a, b, c, d, e]),
        ref other => {
            let at = other.get(6).map_or(text.len(), |(start, _)| *start);
            let expected = "expected 5, minute hour day month weekday, or 6 with the second first";
            return Err((at, format!("it has {} fields, {expected}", other.len())));
        }
    };
    let day_start = day.0;
    let (minute, hour) = (read(&MINUTE, minute)?, read(&HOUR, hour)?);
    let (day, month, weekday) = (read(&DAY, day)?, read(&MONTH, month)?, read(&WEEKDAY, weekday)?);
    let days = Days::new(day, month, weekday)
        .ok_or_else(|| (day_start, "it never ticks: none of its months has such a day".to_owned()))?;
    let times = Times { hours: hour.values, minutes: minute.values, seconds: second.values };
    let is_interval = minute.star || hour.star || planted::has(Mistake::DoubleTickAtEndOfDst);
    let clocks = if is_interval { Clocks::Interval } else { Clocks::FixedTime };
    let words: Vec<_> = fields.iter().map(|(_, word)| word.to_ascii_uppercase()).collect();
    Ok(Cron { text: words.join(" ").into(), local: LocalTicks { days, times }, clocks })
}

fn read_macro(text: &str, start: usize, name: &str, next: Option<&(usize, &str)>) -> Result<Cron, Refused> {
    if let Some((start, _)) = next {
        return Err((*start, format!("nothing may follow {name}")));
    }
    let Some((name, meaning)) = MACROS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
        let known: Vec<_> = MACROS.iter().map(|(known, _)| *known).collect();
        return Err((start, format!("{} is not one of {}", text.trim(), known.join(", "))));
    };
    Ok(Cron { text: (*name).into(), ..read(meaning)? })
}

/// The words of a text and where they start.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    let words = text.split(|letter: char| letter.is_ascii_whitespace()).map(|word| {
        let at = start;
        start += word.len() + 1;
        (at, word)
    });
    words.filter(|(_, word)| !word.is_empty()).collect()
}
