//! A time zone as partitions see it: where local days start, and which never happened.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use crate::civil::{civil_from_days, days_from_civil};

const DAY: i64 = 86_400;
/// 2040-01-01: transitions after it follow yearly rules, which do not move a zone across the date line.
const RULES_ONLY: i64 = 2_208_988_800;

/// The zones that were asked for; a memo of a pure function, so that 10,000 assets read a zone once.
static KNOWN: Mutex<BTreeMap<String, Arc<Zone>>> = Mutex::new(BTreeMap::new());
/// The database is compiled in: the machine's own could give another key for the same definition.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A zone, and the local days it skipped.
#[derive(Debug)]
pub(super) struct Zone {
    name: String,
    rules: TimeZone,
    /// Days since 1970-01-01 that did not exist, ascending: at most a few, by crossing the date line.
    skipped: Vec<i64>,
}

/// Which of two instants a repeated local time means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeated {
    First,
    Second,
}

impl Zone {
    /// The zone with this IANA name, spelled exactly; otherwise what to write instead.
    pub(super) fn get(name: &str) -> Result<Arc<Self>, String> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.get(name) {
            return Ok(Arc::clone(zone));
        }
        let rules = DATABASE.get(name).ok().filter(|zone| !zone.is_unknown());
        let rules = rules.ok_or_else(|| {
            format!("{name:?} is not a time zone of the IANA database, such as \"Europe/Amsterdam\"")
        })?;
        match rules.iana_name() {
            Some(exact) if exact != name => {
                return Err(format!("{name:?} is not a time zone; did you mean {exact:?}?"));
            }
            Some(_) | None => {}
        }
        let skipped = skipped_days(&rules);
        let zone = Arc::new(Self { name: name.to_owned(), rules, skipped });
        known.insert(name.to_owned(), Arc::clone(&zone));
        Ok(zone)
    }

    /// The IANA name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// When the local hour of a day starts. A time that does not exist is the first instant after the gap.
    pub(super) fn instant(&self, day: i64, hour: i64, repeated: Repeated) -> i64 {
        let local = day * DAY + hour * 3_600;
        match self.rules.to_ambiguous_timestamp(date_time(day, hour)).offset() {
            AmbiguousOffset::Unambiguous { offset } => local - i64::from(offset.seconds()),
            AmbiguousOffset::Fold { before, after } => match repeated {
                Repeated::First => local - i64::from(before.seconds()),
                Repeated::Second => local - i64::from(after.seconds()),
            },
            AmbiguousOffset::Gap { before, .. } => {
                // Counted with the old offset, the time is at or after the transition, and the nearest one.
                let beyond = local - i64::from(before.seconds());
                let transition = self.rules.preceding(timestamp(beyond + 1)).next();
                transition.map_or(beyond, |transition| transition.timestamp().as_second())
            }
        }
    }

    /// The first instant of the local day.
    pub(super) fn start_of_day(&self, day: i64) -> i64 {
        self.instant(day, 0, Repeated::First)
    }

    /// The day whose start is the last at or before the instant.
    ///
    /// That is the date on the clock, except where clocks were set back across midnight: then the day has begun and
    /// the minutes that repeat the evening before belong to it.
    pub(super) fn day_at(&self, second: i64) -> i64 {
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

    /// Whether the day never happened here.
    pub(super) fn skips(&self, day: i64) -> bool {
        self.skipped.binary_search(&day).is_ok()
    }

    /// Numbers the days that exist, without holes; a skipped day has the number of the day before.
    pub(super) fn rank(&self, day: i64) -> i64 {
        day - self.skipped.partition_point(|skipped| *skipped <= day) as i64
    }

    /// The day with this number.
    pub(super) fn day_of_rank(&self, rank: i64) -> i64 {
        self.skipped.iter().fold(rank, |day, skipped| if *skipped <= day { day + 1 } else { day })
    }
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

fn date_time(day: i64, hour: i64) -> DateTime {
    date(day).at(hour as i8, 0, 0, 0)
}

/// The calendar date of a day since 1970-01-01, in the years 0 to 9999.
pub(super) fn date(day: i64) -> jiff::civil::Date {
    let day = civil_from_days(day);
    jiff::civil::date(day.year as i16, day.month as i8, day.day as i8)
}
