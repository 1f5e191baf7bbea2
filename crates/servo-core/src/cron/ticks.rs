//! The ticks of an expression in a zone, numbered.
//!
//! On a clock that never changes, ticks are counted by arithmetic ([`LocalTicks`](super::local::LocalTicks)). A zone is
//! a row of such clocks, one for each period of time with one offset. Within a period, the number of ticks so far is
//! the number on its clock and a correction: what all changes until then have skipped, repeated or merged. The
//! corrections are known for every change until the rules of the zone have run through one cycle of the calendar; later
//! times are brought back into that cycle.
//!
//! A fixed time ticks when clocks first show it or a later time. So its clock is the latest time that was shown
//! so far: it stands still while times are repeated, and jumps over a gap, where all ticks that it jumps over are one.

use std::ops::Range;
use std::sync::Arc;

use super::{Clocks, Cron};
use crate::Timestamp;
use crate::zone::{CYCLE, OffsetPeriod, REPEATS, Zone};

const MILLIS: i64 = 1_000;
/// More than any local time is from UTC, in seconds: those of jiff are within 26 hours.
const APART: i64 = 2 * 86_400;

/// The ticks of a [`Cron`] in a time zone.
///
/// Ticks are numbered by their rank: how many come before them since the year 0, an anchor that is the same for every
/// expression and zone. All questions are answered in time that does not depend on how many ticks there are.
#[derive(Debug, Clone)]
pub struct Ticks {
    cron: Cron,
    zone: Arc<Zone>,
    /// For each period of the zone, what to add to the number on its clock; empty if that is always 0.
    corrections: Arc<[i32]>,
    /// The least and the greatest of the corrections.
    bounds: (i64, i64),
    /// How many ticks there are before the rules repeat.
    before_repeats: i64,
    /// How many ticks there are in one cycle of the rules.
    per_cycle: i64,
    /// The ranks of the ticks in the years 0 to 9999.
    ranks: Range<i64>,
}

impl Ticks {
    pub(crate) fn new(cron: Cron, zone: Arc<Zone>) -> Self {
        let corrections = corrections(&cron, zone.offset_periods());
        let least = corrections.iter().min().map_or(0, |least| i64::from(*least));
        let most = corrections.iter().max().map_or(0, |most| i64::from(*most));
        let bounds = (least, most);
        let mut ticks =
            Self { cron, zone, corrections, bounds, before_repeats: 0, per_cycle: 0, ranks: 0..0 };
        ticks.before_repeats = ticks.through_near(REPEATS - 1);
        ticks.per_cycle = ticks.through_near(REPEATS + CYCLE - 1) - ticks.before_repeats;
        ticks.ranks = ticks.rank(Timestamp::MIN)..ticks.through(Timestamp::MAX.as_millis() / MILLIS);
        ticks
    }

    /// The expression.
    pub fn cron(&self) -> &Cron {
        &self.cron
    }

    /// The IANA name of the zone.
    pub fn timezone(&self) -> &str {
        self.zone.name()
    }

    /// The first tick after a time, unless it is after the year 9999.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.tick(self.through(after.as_millis().div_euclid(MILLIS)))
    }

    /// The last tick before a time or at it, unless it is before the year 0.
    pub fn previous(&self, at: Timestamp) -> Option<Timestamp> {
        self.tick(self.through(at.as_millis().div_euclid(MILLIS)) - 1)
    }

    /// The number of ticks before a time. [`Ticks::tick`] finds a tick by this rank.
    pub fn rank(&self, at: Timestamp) -> i64 {
        // Ticks are at whole seconds: those before a fraction are those up to its second.
        self.through((at.as_millis() - 1).div_euclid(MILLIS))
    }

    /// The tick of a rank, unless it is outside the years 0 to 9999.
    pub fn tick(&self, rank: i64) -> Option<Timestamp> {
        self.ranks.contains(&rank).then(|| Timestamp::from_millis(self.second(rank) * MILLIS))
    }

    /// How many ticks there are up to a second since 1970-01-01 UTC, and on it.
    pub(crate) fn through(&self, second: i64) -> i64 {
        let cycles = (second - REPEATS).div_euclid(CYCLE).max(0);
        self.through_near(second - cycles * CYCLE) + cycles * self.per_cycle
    }

    /// The second of the tick of a rank that there is.
    fn second(&self, rank: i64) -> i64 {
        let later = rank - self.before_repeats;
        if later < 0 {
            return self.second_near(rank);
        }
        let cycles = later / self.per_cycle;
        self.second_near(rank - cycles * self.per_cycle) + cycles * CYCLE
    }

    /// [`Ticks::through`], until the end of the first cycle.
    fn through_near(&self, second: i64) -> i64 {
        let offset_periods = self.zone.offset_periods();
        let next = offset_periods.partition_point(|period| period.start <= second);
        self.through_in(next - 1, second)
    }

    /// [`Ticks::second`], until the end of the first cycle.
    fn second_near(&self, rank: i64) -> i64 {
        let offset_periods = self.zone.offset_periods();
        // Corrections are small, so that the tick can only be in a few periods.
        let earliest = self.cron.local.nth(rank - self.bounds.1) - APART;
        let latest = self.cron.local.nth(rank - self.bounds.0) + APART;
        let mut low = offset_periods.partition_point(|period| period.start <= earliest) - 1;
        let mut high = offset_periods.partition_point(|period| period.start <= latest);
        // Those up to `low` start with no more than `rank` ticks before them; the tick is in the last of them.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.through_in(middle - 1, offset_periods[middle].start - 1) <= rank {
                low = middle;
            } else {
                high = middle;
            }
        }
        let period = &offset_periods[low];
        let local = self.cron.local.nth(rank - self.correction(low));
        // A tick that was skipped is earlier on this clock than the clock ever was.
        (local - period.offset).max(period.start)
    }

    /// How many ticks there are up to a second of a period.
    fn through_in(&self, period: usize, second: i64) -> i64 {
        let OffsetPeriod { offset, reached, .. } = self.zone.offset_periods()[period];
        let local = match self.cron.clocks {
            Clocks::Interval => second + offset,
            Clocks::FixedTime => reached.max(second + offset),
        };
        self.cron.local.through(local) + self.correction(period)
    }

    fn correction(&self, period: usize) -> i64 {
        self.corrections.get(period).map_or(0, |correction| i64::from(*correction))
    }
}

/// The correction to the tick number for each period; empty if all corrections are 0.
fn corrections(cron: &Cron, offset_periods: &[OffsetPeriod]) -> Arc<[i32]> {
    let mut correction = 0;
    let mut corrections = vec![0];
    for pair in offset_periods.windows(2) {
        let (before, OffsetPeriod { start, offset, reached }) = (pair[0], pair[1]);
        correction += match cron.clocks {
            // Skipped ticks are on the new clock only, repeated ones were on the old one too.
            Clocks::Interval => cron.local.between(start - 1 + offset, start - 1 + before.offset),
            // What was jumped over and the tick on the first second are one.
            Clocks::FixedTime if start + offset > reached => {
                1 - cron.local.between(reached, start + offset).max(1)
            }
            Clocks::FixedTime => 0,
        };
        // A thousand changes of at most a day's seconds each.
        corrections.push(correction as i32);
    }
    if corrections.iter().all(|correction| *correction == 0) {
        corrections.clear();
    }
    corrections.into()
}
