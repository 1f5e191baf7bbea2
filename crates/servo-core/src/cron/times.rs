//! The times of day at which an expression ticks: every combination of its hours, minutes and seconds, numbered as the
//! digits of a number.

use super::bits::{below, has, len, nth};

/// Hours, minutes and seconds, as sets of bits that are not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) hours: u64,
    pub(super) minutes: u64,
    pub(super) seconds: u64,
}

impl Times {
    /// How many there are in a day.
    pub(super) fn per_day(&self) -> i64 {
        len(self.hours) * self.per_hour()
    }

    /// The number of times before a second of the day.
    pub(super) fn before(&self, second: i64) -> i64 {
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let mut count = below(self.hours, hour) * self.per_hour();
        if has(self.hours, hour) {
            count += below(self.minutes, minute) * len(self.seconds);
            if has(self.minutes, minute) {
                count += below(self.seconds, second);
            }
        }
        count
    }

    /// The second of the day with `n` times before it; `n` is below the number per day.
    pub(super) fn nth(&self, n: i64) -> i64 {
        let (hour, n) = (nth(self.hours, n / self.per_hour()), n % self.per_hour());
        let minute = nth(self.minutes, n / len(self.seconds));
        hour * 3_600 + minute * 60 + nth(self.seconds, n % len(self.seconds))
    }

    fn per_hour(&self) -> i64 {
        len(self.minutes) * len(self.seconds)
    }
}
