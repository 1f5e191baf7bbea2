//! Partitions of time: windows that touch, numbered from the start of a span.

use super::calendar::{Calendar, Grain};
use super::error::{Collector, Reason};
use super::hourly::Hours;
use super::moment::Moment;
use super::span::{LAST_DAY, Span, Unit};
use crate::{PartitionValue, Timestamp};

/// No time is later than this second for partitions: 9998-12-31 has ended everywhere.
const LAST_SECOND: i64 = (LAST_DAY + 3) * 86_400;

/// Windows of time, from index 0 to a last one.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    grid: Grid,
    /// How many windows there can ever be.
    total: i64,
    end_offset: i64,
}

/// Where windows start, for any index: also before the first and after the last.
#[derive(Debug, Clone)]
enum Grid {
    Hours(Hours),
    Calendar(Calendar),
}

impl Windows {
    /// Hours of a span.
    pub(super) fn hourly(span: &Span, problems: &mut Collector) -> Option<Self> {
        let (hours, last) = Hours::new(&span.check(Unit::Hour, problems)?);
        Self::new(Grid::Hours(hours), last, span, problems)
    }

    /// Days, weeks or months of a span.
    pub(super) fn calendar(grain: Grain, span: &Span, problems: &mut Collector) -> Option<Self> {
        let (calendar, last) = Calendar::new(grain, &span.check(Unit::Day, problems)?);
        Self::new(Grid::Calendar(calendar), last, span, problems)
    }

    fn new(grid: Grid, last: i64, span: &Span, problems: &mut Collector) -> Option<Self> {
        if last < 0 {
            problems.add("end", format!("no partition starts between {} and the end", span.start));
            return None;
        }
        Some(Self { grid, total: last + 1, end_offset: i64::from(span.end_offset) })
    }

    /// How many exist: those that have closed, shifted by the end offset.
    pub(super) fn count(&self, moment: Moment<'_>) -> u64 {
        let now = moment.seconds().min(LAST_SECOND);
        // The index of the open window is the number of closed ones before it.
        let open = match &self.grid {
            Grid::Hours(hours) => hours.index_at(now),
            Grid::Calendar(calendar) => calendar.index_at(now),
        };
        (open + self.end_offset).clamp(0, self.total).unsigned_abs()
    }

    /// The value of the window with this index, which is below the count.
    pub(super) fn value(&self, index: u64) -> PartitionValue {
        let index = index as i64;
        match &self.grid {
            Grid::Hours(hours) => hours.value(index),
            Grid::Calendar(calendar) => PartitionValue::Date(calendar.date(index)),
        }
    }

    /// The index of a value, whether or not it exists yet.
    pub(super) fn position(&self, dim: &str, value: &PartitionValue) -> Result<u64, Reason> {
        let wrong = |expected| Reason::Type { dim: dim.to_owned(), expected };
        let index = match (&self.grid, value) {
            (Grid::Hours(hours), PartitionValue::Time(micros)) => hours.index_of(*micros)?,
            (Grid::Calendar(calendar), PartitionValue::Date(date)) => calendar.index_of(*date)?,
            (Grid::Hours(_), _) => return Err(wrong("a time, t:YYYY-MM-DDTHH:MM:SS.ffffffZ")),
            (Grid::Calendar(_), _) => return Err(wrong("a date, d:YYYY-MM-DD")),
        };
        if index < 0 {
            Err(Reason::BeforeStart { first: self.shown(0) })
        } else if index >= self.total {
            Err(Reason::AfterEnd { last: self.shown(self.total.unsigned_abs() - 1) })
        } else {
            Ok(index.unsigned_abs())
        }
    }

    /// The index of a value that exists.
    pub(super) fn index(&self, dim: &str, value: &PartitionValue, moment: Moment<'_>) -> Result<u64, Reason> {
        let index = self.position(dim, value)?;
        let count = self.count(moment);
        if index < count {
            return Ok(index);
        }
        let latest = count.checked_sub(1).map_or_else(|| "none".to_owned(), |last| self.shown(last));
        Err(Reason::NotYet { latest })
    }

    /// From when to when a window is: the end is the start of the next.
    pub(super) fn window(&self, index: u64) -> (Timestamp, Timestamp) {
        let start = |index: i64| {
            let second = match &self.grid {
                Grid::Hours(hours) => hours.start(index),
                Grid::Calendar(calendar) => calendar.start(index),
            };
            Timestamp::from_millis(second * 1_000)
        };
        (start(index as i64), start(index as i64 + 1))
    }

    fn shown(&self, index: u64) -> String {
        self.value(index).canonical().unwrap_or_else(|error| error.to_string())
    }
}
