//! Hourly partitions: 3,600 seconds each, counted from the start.
//!
//! Hours are instants, so that clocks set forward lose none and clocks set back double none. Where clocks move by half
//! an hour (Lord Howe), local hours start at half past for half of the year.

use super::error::Reason;
use super::span::Checked;
use super::zone::Repeated;
use crate::PartitionValue;

const HOUR: i64 = 3_600;
const MICROS: i64 = 1_000_000;

/// Hours from a first instant on.
#[derive(Debug, Clone)]
pub(super) struct Hours {
    first: i64,
}

impl Hours {
    /// The hours, and the index of the last.
    pub(super) fn new(span: &Checked) -> (Self, i64) {
        let first = span.zone.instant(span.start.day, span.start.hour, Repeated::First);
        let hours = Self { first };
        let last = hours.index_at(span.zone.instant(span.end.day, span.end.hour, Repeated::Second));
        (hours, last)
    }

    pub(super) fn index_at(&self, second: i64) -> i64 {
        (second - self.first).div_euclid(HOUR)
    }

    pub(super) fn start(&self, index: i64) -> i64 {
        self.first + index * HOUR
    }

    pub(super) fn value(&self, index: i64) -> PartitionValue {
        PartitionValue::Time(self.start(index) * MICROS)
    }

    /// The index of an hour by its value; negative before the first.
    pub(super) fn index_of(&self, micros: i64) -> Result<i64, Reason> {
        let index = self.index_at(micros.div_euclid(MICROS));
        if self.start(index) * MICROS == micros {
            return Ok(index);
        }
        let around = self.value(index).to_string();
        Err(Reason::NotAStart { around })
    }
}
