//! Daily, weekly and monthly partitions: runs of local days, named by their first date.

use std::sync::Arc;

use jiff::civil::Date;

use super::error::Reason;
use super::span::Checked;
use super::zone::{Zone, date};
use crate::civil::{Day, civil_from_days, days_from_civil};

/// 1970-01-05, the first Monday since the epoch.
const A_MONDAY: i64 = 4;

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// How many days belong together.
#[derive(Debug, Clone, Copy)]
pub(super) enum Grain {
    Day,
    /// Weeks from a day that is this many days after Monday.
    Week(i64),
    /// Months from this day of the month, 1 to 28.
    Month(u32),
}

/// Local days of a zone, grouped; counted from the first group that starts at or after the start of the span.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    grain: Grain,
    zone: Arc<Zone>,
    /// Number of the first group, in the numbering of [`Calendar::group`].
    first: i64,
}

impl Calendar {
    /// The groups, and the index of the last one; -1 if none starts in the span.
    pub(super) fn new(grain: Grain, span: &Checked) -> (Self, i64) {
        let mut calendar = Self { grain, zone: Arc::clone(&span.zone), first: 0 };
        let around = calendar.group(span.start.day);
        calendar.first = if calendar.first_day(around) < span.start.day { around + 1 } else { around };
        let last = calendar.group(span.end.day) - calendar.first;
        (calendar, last)
    }

    /// The recurrence in the user's words.
    pub(super) fn rhythm(&self) -> String {
        let zone = self.zone.name();
        match self.grain {
            Grain::Day => format!("daily in {zone}"),
            Grain::Week(after_monday) => {
                let weekday = WEEKDAYS[after_monday.rem_euclid(7) as usize];
                format!("weekly from {weekday} in {zone}")
            }
            Grain::Month(day) => format!("monthly from day {day} in {zone}"),
        }
    }

    pub(super) fn index_at(&self, second: i64) -> i64 {
        self.group(self.zone.day_at(second)) - self.first
    }

    pub(super) fn start(&self, index: i64) -> i64 {
        self.zone.start_of_day(self.first_day(self.first + index))
    }

    pub(super) fn date(&self, index: i64) -> Date {
        date(self.first_day(self.first + index))
    }

    /// The index of a group by its date; negative before the first.
    pub(super) fn index_of(&self, value: Date) -> Result<i64, Reason> {
        let day = days_from_civil(Day {
            year: i64::from(value.year()),
            month: value.month().unsigned_abs().into(),
            day: value.day().unsigned_abs().into(),
        });
        let group = self.group(day);
        let first_day = self.first_day(group);
        if first_day == day {
            Ok(group - self.first)
        } else if matches!(self.grain, Grain::Day) && self.zone.skips(day) {
            Err(Reason::SkippedDay { zone: self.zone.name().to_owned() })
        } else {
            Err(Reason::NotAStart { around: around(first_day) })
        }
    }

    /// The number of the group that a day is in.
    fn group(&self, day: i64) -> i64 {
        match self.grain {
            Grain::Day => self.zone.rank(day),
            Grain::Week(after_monday) => (day - A_MONDAY - after_monday).div_euclid(7),
            Grain::Month(first_day) => {
                let date = civil_from_days(day);
                date.year * 12 + i64::from(date.month) - 1 - i64::from(date.day < first_day)
            }
        }
    }

    /// The day that a group starts on.
    fn first_day(&self, group: i64) -> i64 {
        match self.grain {
            Grain::Day => self.zone.day_of_rank(group),
            Grain::Week(after_monday) => group * 7 + A_MONDAY + after_monday,
            Grain::Month(day) => {
                let month = group.rem_euclid(12) as u32 + 1;
                days_from_civil(Day { year: group.div_euclid(12), month, day })
            }
        }
    }
}

/// A date as text, even where the calendar of Servo ends.
fn around(day: i64) -> String {
    let Day { year, month, day } = civil_from_days(day);
    format!("{year:04}-{month:02}-{day:02}")
}
