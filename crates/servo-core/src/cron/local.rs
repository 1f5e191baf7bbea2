//! The ticks of an expression on a clock that never changes: its times on its days.

use super::days::Days;
use super::times::Times;

const DAY: i64 = 86_400;

/// Ticks in local seconds since 1970-01-01, numbered from the first in the year 0.
#[derive(Debug, Clone)]
pub(super) struct LocalTicks {
    pub(super) days: Days,
    pub(super) times: Times,
}

impl LocalTicks {
    /// How many there are up to a second, and on it.
    pub(super) fn through(&self, second: i64) -> i64 {
        let (day, second) = (second.div_euclid(DAY), second.rem_euclid(DAY));
        let count = self.days.before(day) * self.times.per_day();
        if self.days.contains(day) { count + self.times.before(second + 1) } else { count }
    }

    /// How many there are after one second, up to another and on it.
    pub(super) fn between(&self, after: i64, to: i64) -> i64 {
        let day = to.div_euclid(DAY);
        if after.div_euclid(DAY) != day {
            return self.through(to) - self.through(after);
        }
        // Clocks mostly change when nothing ticks, and this is asked of every change of a zone.
        let before = |second: i64| self.times.before(second.rem_euclid(DAY) + 1);
        let count = before(to) - before(after);
        if count != 0 && self.days.contains(day) { count } else { 0 }
    }

    /// The second of the tick with `n` ticks before it.
    pub(super) fn nth(&self, n: i64) -> i64 {
        let per_day = self.times.per_day();
        self.days.nth(n.div_euclid(per_day)) * DAY + self.times.nth(n.rem_euclid(per_day))
    }
}
