//! The periods of time in which a zone keeps one offset from UTC.
//!
//! Zones change their mind until some year and follow a yearly rule from then on. Such a rule repeats with the
//! calendar, every 400 years, which are whole weeks. So the periods of one such cycle stand for all later ones.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// 400 years in seconds: dates and weekdays repeat.
pub(crate) const CYCLE: i64 = 146_097 * 86_400;
/// 2100-01-01: from here on, every zone follows its yearly rule (Morocco, the last, lists its changes until 2087).
pub(crate) const REPEATS: i64 = 4_102_444_800;
/// Before everything, and far enough from the ends of the integers to add to.
const EVER: i64 = i64::MIN / 4;

/// A period of time with one offset; it ends where the next starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffsetPeriod {
    /// Its first second, since 1970-01-01 UTC.
    pub(crate) start: i64,
    /// Offset from UTC to local time, in seconds.
    pub(crate) offset: i64,
    /// The latest local second that clocks had shown before it. What is not later than this is repeated, and what
    /// lies between this and the first local second of the period was skipped.
    pub(crate) reached: i64,
}

/// The periods from the beginning of time to the end of the first cycle.
pub(super) fn offset_periods(rules: &TimeZone) -> Vec<OffsetPeriod> {
    let offset = i64::from(rules.to_offset(Timestamp::MIN).seconds());
    let mut current = OffsetPeriod { start: EVER, offset, reached: EVER };
    let mut found = vec![current];
    for transition in rules.following(Timestamp::MIN) {
        let start = transition.timestamp().as_second();
        let offset = i64::from(transition.offset().seconds());
        if start >= REPEATS + CYCLE {
            break;
        }
        // Some only change a name.
        if offset != current.offset {
            let reached = current.reached.max(start - 1 + current.offset);
            current = OffsetPeriod { start, offset, reached };
            found.push(current);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;

    #[test]
    fn the_rules_of_every_zone_repeat_every_400_years() {
        let database = TimeZoneDatabase::bundled();
        let mut changing = 0;
        for name in database.available() {
            let Ok(rules) = database.get(name.as_str()) else { continue };
            let of_cycle = |cycle: i64| {
                let start = REPEATS + cycle * CYCLE;
                let from = Timestamp::from_second(start - 1).unwrap();
                let transitions = rules.following(from).map(move |transition| {
                    (transition.timestamp().as_second() - start, transition.offset().seconds())
                });
                transitions.take_while(|(second, _)| *second < CYCLE).collect::<Vec<_>>()
            };
            let first = of_cycle(0);
            changing += usize::from(!first.is_empty());
            for cycle in [1, 7, 18] {
                assert_eq!(first, of_cycle(cycle), "{}", name.as_str());
            }
        }
        assert!(changing > 100, "{changing}");
    }
}
