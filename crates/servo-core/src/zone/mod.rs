//! A time zone as partitions and cron see it: where local days start, which never happened, and when clocks change.

mod database;
mod offset_periods;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

pub use database::TimeZones;
pub(crate) use offset_periods::{CYCLE, OffsetPeriod, REPEATS};

use crate::civil::{civil_from_days, days_from_civil};

const DAY: i64 = 86_400;
/// 2040-01-01: transitions after it follow yearly rules, which do not move a zone across the date line.
const RULES_ONLY: i64 = 2_208_988_800;

/// The zones that were asked for, so that 10,000 assets read a zone once.
static KNOWN: Mutex<BTreeMap<String, Arc<Zone>>> = Mutex::new(BTreeMap::new());

/// A zone, and the local days it skipped.
#[derive(Debug)]
pub(crate) struct Zone {
    name: String,
    rules: TimeZone,
    /// Days since 1970-01-01 that did not exist, ascending: at most a few, by crossing the date line.
    skipped: Vec<i64>,
    /// Found when first asked for: most zones are only used for days.
    offset_periods: OnceLock<Vec<OffsetPeriod>>,
}

/// Which of two instants a repeated local time means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeated {
    First,
    Second,
}

/// The instants at which a clock shows a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Once(i64),
    Twice(i64, i64),
    Never,
}

impl Zone {
    /// The zone with this IANA name, spelled exactly; otherwise what to write instead.
    pub(crate) fn get(name: &str) -> Result<Arc<Self>, String> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.get(name) {
            return Ok(Arc::clone(zone));
        }
        let rules = TimeZones::in_use().rules(name)?;
        let skipped = skipped_days(&rules);
        let zone = Arc::new(Self { name: name.to_owned(), rules, skipped, offset_periods: OnceLock::new() });
        known.insert(name.to_owned(), Arc::clone(&zone));
        Ok(zone)
    }

    /// The IANA name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// When the local hour of a day starts. A time that does not exist is the first instant after the gap.
    pub(crate) fn instant(&self, day: i64, hour: i64, repeated: Repeated) -> i64 {
        self.instant_of(day * DAY + hour * 3_600, repeated)
    }

    /// When the clock shows a local time, in seconds since 1970-01-01; after the gap if it never does.
    pub(crate) fn instant_of(&self, local: i64, repeated: Repeated) -> i64 {
        match self.rules.to_ambiguous_timestamp(date_time(local)).offset() {
            AmbiguousOffset::Unambiguous { offset } => local - i64::from(offset.seconds()),
            AmbiguousOffset::Fold { before, after } => match repeated {
                Repeated::First => local - i64::from(before.seconds()),
                Repeated::Second => local - i64::from(after.seconds()),
            },
            AmbiguousOffset::Gap { before, after } => {
                // Counted with the new offset, the time is before the transition, which is the next one. (Not the one
                // before a time after it: `preceding` makes one up where the rules differ from the last listed one.)
                let next = self.rules.following(timestamp(local - i64::from(after.seconds()))).next();
                next.map_or(local - i64::from(before.seconds()), |next| next.timestamp().as_second())
            }
        }
    }

    /// The first instant of the local day.
    pub(crate) fn start_of_day(&self, day: i64) -> i64 {
        self.instant(day, 0, Repeated::First)
    }

    /// When the clock shows a time, given in seconds since 1970-01-01 by that clock.
    pub(crate) fn at_clock(&self, local: i64) -> Clock {
        let second = local.rem_euclid(DAY);
        let time =
            jiff::civil::time((second / 3_600) as i8, (second / 60 % 60) as i8, (second % 60) as i8, 0);
        let shown = date(local.div_euclid(DAY)).to_datetime(time);
        match self.rules.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => Clock::Once(local - i64::from(offset.seconds())),
            AmbiguousOffset::Fold { before, after } => {
                Clock::Twice(local - i64::from(before.seconds()), local - i64::from(after.seconds()))
            }
            AmbiguousOffset::Gap { .. } => Clock::Never,
        }
    }

    /// The day whose start is the last at or before the instant.
    ///
    /// That is the date on the clock, except where clocks were set back across midnight: then the day has begun and
    /// the minutes that repeat the evening before belong to it.
    pub(crate) fn day_at(&self, second: i64) -> i64 {
        let date = self.rules.to_datetime(timestamp(second)).date();
        let mut day = days_from_civil(crate::civil::Day {
            year: i64::from(date.year()),
            month: date.month().unsigned_abs().into(),
            day: date.day().unsigned_abs().into(),
        });
        while self.start_of_day(day) > second {
            day -= 1;
        }
        while self.start_of_day(day + 1) <= second {
            day += 1;
        }
        day
    }

    /// The times of one offset, ascending, until the rules of the zone have begun to repeat.
    pub(crate) fn offset_periods(&self) -> &[OffsetPeriod] {
        self.offset_periods.get_or_init(|| offset_periods::offset_periods(&self.rules))
    }

    /// Whether the day never happened here.
    pub(crate) fn skips(&self, day: i64) -> bool {
        self.skipped.binary_search(&day).is_ok()
    }

    /// Numbers the days that exist, without holes; a skipped day has the number of the day before.
    pub(crate) fn rank(&self, day: i64) -> i64 {
        day - self.skipped.partition_point(|skipped| *skipped <= day) as i64
    }

    /// The day with this number.
    pub(crate) fn day_of_rank(&self, rank: i64) -> i64 {
        self.skipped.iter().fold(rank, |day, skipped| if *skipped <= day { day + 1 } else { day })
    }
}

/// Whether there is a time zone with this IANA name; otherwise what to write instead.
pub fn check_timezone(name: &str) -> Result<(), String> {
    Zone::get(name).map(drop)
}

/// The days that lie whole inside a gap of the local clock.
fn skipped_days(rules: &TimeZone) -> Vec<i64> {
    let mut skipped = Vec::new();
    for transition in rules.following(Timestamp::MIN) {
        let at = transition.timestamp().as_second();
        if at >= RULES_ONLY {
            break;
        }
        let before = at + i64::from(rules.to_offset(timestamp(at - 1)).seconds());
        let after = at + i64::from(transition.offset().seconds());
        let first = before.div_euclid(DAY) + i64::from(before.rem_euclid(DAY) > 0);
        skipped.extend(first..after.div_euclid(DAY).max(first));
    }
    skipped
}

fn timestamp(second: i64) -> Timestamp {
    let within = second.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(within).expect("a clamped second is a timestamp")
}

fn date_time(local: i64) -> DateTime {
    let second = local.rem_euclid(DAY);
    date(local.div_euclid(DAY)).at((second / 3_600) as i8, (second / 60 % 60) as i8, (second % 60) as i8, 0)
}

/// The calendar date of a day since 1970-01-01, in the years 0 to 9999.
pub(crate) fn date(day: i64) -> jiff::civil::Date {
    let day = civil_from_days(day);
    jiff::civil::date(day.year as i16, day.month as i8, day.day as i8)
}
