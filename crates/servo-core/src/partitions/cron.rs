//! Cron partitions: from each tick of an expression to the next.
//!
//! [`cron`](crate::cron) decides what a tick is when clocks change. The first partition starts with the first
//! tick at or after the start of the span, and the last with the last tick whose window still ends inside the calendar.

use std::sync::Arc;

use super::error::Reason;
use super::span::{Checked, Local};
use super::zone::Repeated;
use crate::cron::Ticks;
use crate::{Cron, PartitionValue, Timestamp};

const MICROS: i64 = 1_000_000;

/// Ticks from a first one on.
#[derive(Debug, Clone)]
pub(super) struct Ticking {
    ticks: Ticks,
    /// The rank of the first.
    first: i64,
}

impl Ticking {
    /// The ticks, and the index of the last one whose window has ended by `horizon`; negative if there is none.
    pub(super) fn new(cron: Cron, span: &Checked, horizon: i64) -> (Self, i64) {
        let ticks = Ticks::new(cron, Arc::clone(&span.zone));
        let instant = |local: Local, repeated| {
            span.zone.instant_of(local.day * 86_400 + local.hour * 3_600 + local.minute * 60, repeated)
        };
        let first = ticks.through(instant(span.start, Repeated::First) - 1);
        let closed = ticks.through(horizon) - 1;
        let last = ticks.through(instant(span.end, Repeated::Second)).min(closed) - 1;
        (Self { ticks, first }, last - first)
    }

    /// The recurrence in the user's words.
    pub(super) fn rhythm(&self) -> String {
        format!("cron \"{}\" in {}", self.ticks.cron(), self.ticks.timezone())
    }

    pub(super) fn index_at(&self, second: i64) -> i64 {
        self.ticks.through(second) - 1 - self.first
    }

    /// The second of a tick, or the end of the calendar on the side where it has none.
    pub(super) fn start(&self, index: i64) -> i64 {
        let beyond = if index < 0 { Timestamp::MIN } else { Timestamp::MAX };
        self.ticks.tick(self.first + index).unwrap_or(beyond).as_millis().div_euclid(1_000)
    }

    pub(super) fn value(&self, index: i64) -> PartitionValue {
        PartitionValue::Time(self.start(index) * MICROS)
    }

    /// The index of a tick by its value; negative before the first.
    pub(super) fn index_of(&self, micros: i64) -> Result<i64, Reason> {
        let index = self.index_at(micros.div_euclid(MICROS));
        if self.start(index) * MICROS == micros {
            return Ok(index);
        }
        let around = self.value(index).to_string();
        Err(Reason::NotAStart { around })
    }
}
