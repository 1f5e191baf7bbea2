//! From when to when partitions exist, as declared.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::Collector;
use super::zone::Zone;
use crate::ParseError;
use crate::civil;
use crate::parse_error::{Refused, unexpected};

/// The last day a partition may start on, so that every window ends inside the calendar: 9998-12-31.
pub(super) const LAST_DAY: i64 = 2_932_896 - 365;

/// Start, end and zone of time partitions. Dates are `YYYY-MM-DD`; of hourly partitions `YYYY-MM-DDTHH:00`, of
/// cron partitions `YYYY-MM-DDTHH:MM`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Local time of the zone at which the first partition starts, or before it starts.
    pub start: String,
    /// The last local time at which a partition may start; open if absent.
    #[serde(default)]
    pub end: Option<String>,
    /// How many partitions exist beyond the last that has closed; negative to hold some back.
    #[serde(default)]
    pub end_offset: i32,
    /// IANA name of the time zone.
    #[serde(default = "utc")]
    pub timezone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

impl Span {
    /// From `start` on, without end, in UTC.
    pub fn new(start: impl Into<String>) -> Self {
        Self { start: start.into(), end: None, end_offset: 0, timezone: utc() }
    }

    /// With the last start `end`.
    #[must_use]
    pub fn until(mut self, end: impl Into<String>) -> Self {
        self.end = Some(end.into());
        self
    }

    /// In the time zone with this IANA name.
    #[must_use]
    pub fn in_zone(mut self, timezone: impl Into<String>) -> Self {
        self.timezone = timezone.into();
        self
    }

    /// With `end_offset`.
    #[must_use]
    pub fn offset(mut self, end_offset: i32) -> Self {
        self.end_offset = end_offset;
        self
    }

    /// Reads zone, start and end; `None` if any was a problem.
    pub(super) fn check(&self, unit: Unit, problems: &mut Collector) -> Option<Checked> {
        let zone = Zone::get(&self.timezone).map_err(|message| problems.add("timezone", message)).ok();
        let start = unit.read(&self.start).map_err(|error| problems.add("start", error.to_string())).ok();
        let end = match &self.end {
            None => Some(Local { day: LAST_DAY, hour: 23, minute: 59 }),
            Some(text) => unit.read(text).map_err(|error| problems.add("end", error.to_string())).ok(),
        };
        let (start, end) = (start?, end?);
        if start > end {
            let end = self.end.as_deref().unwrap_or("9998-12-31");
            problems.add("end", format!("{end} is before the start, {}", self.start));
            return None;
        }
        Some(Checked { zone: zone?, start, end })
    }
}

/// A span whose texts were read.
pub(super) struct Checked {
    pub(super) zone: Arc<Zone>,
    pub(super) start: Local,
    pub(super) end: Local,
}

/// A local time: days since 1970-01-01, hour and minute (0 where only days or hours count).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Local {
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
}

/// How precise the start and end of a span are.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Day,
    Hour,
    Minute,
}

impl Unit {
    fn read(self, text: &str) -> Result<Local, ParseError> {
        let (what, read) = match self {
            Self::Day => ("date", read_day(text, 10).map(|day| Local { day, hour: 0, minute: 0 })),
            Self::Hour => ("hour", read_hour(text)),
            Self::Minute => ("minute", read_minute(text)),
        };
        read.map_err(|refused| ParseError::refused(what, text, refused))
    }
}

fn read_day(text: &str, len: usize) -> Result<i64, Refused> {
    let day = civil::read_date(text, 0)?;
    if text.len() > len {
        return Err((len, unexpected(text, len, "the end of the value")));
    }
    // A year from the ends of what keys can say, so that no zone moves an instant or a window out of it.
    if !(2..=9998).contains(&day.year) {
        return Err((0, format!("year {} is not between 2 and 9998", day.year)));
    }
    Ok(civil::days_from_civil(day))
}

fn read_hour(text: &str) -> Result<Local, Refused> {
    let (day, hour) = read_day_and_hour(text)?;
    for (at, wanted) in [(13, b':'), (14, b'0'), (15, b'0')] {
        civil::expect(text, at, wanted, "\":00\" after the hour")?;
    }
    Ok(Local { day, hour, minute: 0 })
}

fn read_minute(text: &str) -> Result<Local, Refused> {
    let (day, hour) = read_day_and_hour(text)?;
    civil::expect(text, 13, b':', "\":\" after the hour")?;
    let minute = civil::read_digits(text, 14, 2)?;
    if minute > 59 {
        return Err((14, format!("minute {minute} is not between 0 and 59")));
    }
    Ok(Local { day, hour, minute: i64::from(minute) })
}

fn read_day_and_hour(text: &str) -> Result<(i64, i64), Refused> {
    let day = read_day(text, 16)?;
    civil::expect(text, 10, b'T', "\"T\" and the hour, as in 2025-01-15T00:00")?;
    let hour = civil::read_digits(text, 11, 2)?;
    if hour > 23 {
        return Err((11, format!("hour {hour} is not between 0 and 23")));
    }
    Ok((day, i64::from(hour)))
}
