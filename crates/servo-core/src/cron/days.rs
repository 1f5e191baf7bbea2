//! The days on which an expression ticks.
//!
//! If the day or the weekday begins with `*`, a day counts if both fit; if neither does, it counts if either fits.
//! Dates and weekdays repeat every 400 years, so a table of those years numbers the days of all.

use std::sync::Arc;

use super::bits::{below, has, len, nth};
use super::field::Field;
use crate::civil::{Day, civil_from_days, days_from_civil, days_in_month};

const CYCLE_YEARS: i64 = 400;
/// 1970-01-01 was a Thursday, with Sunday as 0.
const WEEKDAY_OF_EPOCH: i64 = 4;

/// The days of an expression, numbered from the first in the year 0.
#[derive(Debug, Clone)]
pub(super) struct Days {
    rule: Rule,
    /// How many there are before each year of the cycle, and at the end how many in all of it.
    before_year: Arc<[i64]>,
}

/// Which days of a month fit.
#[derive(Debug, Clone, Copy)]
struct Rule {
    months: u64,
    /// Days of the month, and whether its last is one.
    days: u64,
    last: bool,
    /// Days of the week, Sunday is bit 0.
    weekdays: u64,
    /// Whether the day of the month and the day of the week must both fit, or one of them.
    both: bool,
}

impl Days {
    /// The days that the fields select; `None` if there are none.
    pub(super) fn new(day: Field, month: Field, weekday: Field) -> Option<Self> {
        let rule = Rule {
            months: month.values,
            days: day.values,
            last: day.last,
            weekdays: weekday.values,
            both: day.begins_with_star || weekday.begins_with_star,
        };
        // Years are alike if they start on the same weekday and are leap years or not.
        let mut of_kind = [[None; 7]; 2];
        let mut before_year = vec![0];
        let mut total = 0;
        for year in 0..CYCLE_YEARS {
            let leap = usize::from(days_in_month(year, 2) == 29);
            let kind = &mut of_kind[leap][first_weekday(year) as usize];
            total += *kind.get_or_insert_with(|| rule.months_of(year).map(len).sum::<i64>());
            before_year.push(total);
        }
        (total > 0).then(|| Self { rule, before_year: before_year.into() })
    }

    /// Whether a day, counted from 1970-01-01, fits.
    pub(super) fn contains(&self, day: i64) -> bool {
        let date = civil_from_days(day);
        let weekday = (day - i64::from(date.day) + 1 + WEEKDAY_OF_EPOCH).rem_euclid(7);
        let month = self.rule.month(weekday, date.month, days_in_month(date.year, date.month));
        has(month, date.day.into())
    }

    /// How many fit before a day.
    pub(super) fn before(&self, day: i64) -> i64 {
        let date = civil_from_days(day);
        let mut count = date.year.div_euclid(CYCLE_YEARS) * self.per_cycle();
        count += self.before_year[date.year.rem_euclid(CYCLE_YEARS) as usize];
        let mut months = self.rule.months_of(date.year);
        count += months.by_ref().take(date.month as usize - 1).map(len).sum::<i64>();
        count + months.next().map_or(0, |month| below(month, date.day.into()))
    }

    /// The day with `n` days before it.
    pub(super) fn nth(&self, n: i64) -> i64 {
        let (cycle, mut n) = (n.div_euclid(self.per_cycle()), n.rem_euclid(self.per_cycle()));
        let year = self.before_year.partition_point(|before| *before <= n) as i64 - 1;
        n -= self.before_year[year as usize];
        let year = cycle * CYCLE_YEARS + year;
        for (month, days) in (1..).zip(self.rule.months_of(year)) {
            if n < len(days) {
                return days_from_civil(Day { year, month, day: nth(days, n) as u32 });
            }
            n -= len(days);
        }
        unreachable!("a year has as many days as its table says")
    }

    fn per_cycle(&self) -> i64 {
        self.before_year[CYCLE_YEARS as usize]
    }
}

impl Rule {
    /// The days that fit in each month of a year: bit n is day n.
    fn months_of(self, year: i64) -> impl Iterator<Item = u64> {
        let mut weekday = first_weekday(year);
        (1..=12).map(move |month| {
            let length = days_in_month(year, month);
            let days = self.month(weekday, month, length);
            weekday = (weekday + i64::from(length)) % 7;
            days
        })
    }

    /// The days that fit in a month that starts on a weekday.
    fn month(self, first_weekday: i64, month: u32, length: u32) -> u64 {
        if !has(self.months, month.into()) {
            return 0;
        }
        // Turned so that bit 0 is the weekday of the first, and repeated for five weeks.
        let week = (self.weekdays >> first_weekday | self.weekdays << (7 - first_weekday)) & 0x7f;
        let weeks = week * (1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28);
        let (by_day, by_weekday) = (self.days | u64::from(self.last) << length, weeks << 1);
        let fitting = if self.both { by_day & by_weekday } else { by_day | by_weekday };
        fitting & ((2 << length) - 2)
    }
}

/// The weekday of January 1st.
fn first_weekday(year: i64) -> i64 {
    (days_from_civil(Day { year, month: 1, day: 1 }) + WEEKDAY_OF_EPOCH).rem_euclid(7)
}
