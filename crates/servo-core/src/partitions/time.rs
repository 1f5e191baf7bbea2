//! Partitions of time: windows that touch, numbered from the start of a span.

use std::ops::Range;
use std::sync::Arc;

use super::calendar::{Calendar, Grain};
use super::context::PartitionContext;
use super::cron::Ticking;
use super::error::{Collector, Reason};
use super::hourly::Hours;
use super::ranges::clipped;
use super::span::{LAST_DAY, Span, Unit};
use super::zone::Zone;
use crate::{Cron, PartitionValue, Timestamp};

/// 0000-01-01, the first second of a [`Timestamp`]: no time is earlier for partitions.
const FIRST_SECOND: i64 = Timestamp::MIN.as_millis() / 1_000;
/// No time is later than this second for partitions: 9998-12-31 has ended everywhere.
const LAST_SECOND: i64 = (LAST_DAY + 3) * 86_400;

/// Windows of time, from index 0 to a last one.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    grid: Grid,
    /// How many windows there can ever be.
    total: i64,
    /// Whether the span says where they end.
    has_end: bool,
    end_offset: i64,
    zone: Arc<Zone>,
}

/// Where windows start, for any index: also before the first and after the last.
#[derive(Debug, Clone)]
enum Grid {
    Hours(Hours),
    Calendar(Calendar),
    Cron(Ticking),
}

impl Grid {
    fn index_at(&self, second: i64) -> i64 {
        match self {
            Self::Hours(hours) => hours.index_at(second),
            Self::Calendar(calendar) => calendar.index_at(second),
            Self::Cron(ticking) => ticking.index_at(second),
        }
    }

    fn start(&self, index: i64) -> i64 {
        match self {
            Self::Hours(hours) => hours.start(index),
            Self::Calendar(calendar) => calendar.start(index),
            Self::Cron(ticking) => ticking.start(index),
        }
    }
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

    /// From tick to tick of an expression, in a span; none if the expression was a problem.
    pub(super) fn cron(cron: Option<Cron>, span: &Span, problems: &mut Collector) -> Option<Self> {
        let span_checked = span.check(Unit::Minute, problems);
        let (ticking, last) = Ticking::new(cron?, &span_checked?, LAST_SECOND);
        Self::new(Grid::Cron(ticking), last, span, problems)
    }

    fn new(grid: Grid, last: i64, span: &Span, problems: &mut Collector) -> Option<Self> {
        if last < 0 {
            problems.add("end", format!("no partition starts between {} and the end", span.start));
            return None;
        }
        let zone = Zone::get(&span.timezone).ok()?;
        let (end_offset, has_end) = (i64::from(span.end_offset), span.end.is_some());
        Some(Self { grid, total: last + 1, has_end, end_offset, zone })
    }

    /// How many there can ever be.
    pub(super) fn total(&self) -> u64 {
        self.total.unsigned_abs()
    }

    /// The last window there will ever be, unless they go on for ever.
    pub(super) fn last(&self) -> Option<String> {
        self.has_end.then(|| self.shown(self.total().saturating_sub(1)))
    }

    /// The zone whose clock the windows follow.
    pub(super) fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The number of the window around a second; negative before the first, the total or more after the last.
    pub(super) fn index_at(&self, second: i64) -> i64 {
        self.grid.index_at(second.clamp(FIRST_SECOND, LAST_SECOND))
    }

    /// The second at which the window with this number starts, from 0 to the total.
    pub(super) fn start(&self, index: i64) -> i64 {
        self.grid.start(index)
    }

    /// The recurrence in the user's words: windows with the same text start at the same times, except for hours that
    /// start at another minute.
    pub(super) fn rhythm(&self) -> String {
        match &self.grid {
            Grid::Hours(_) => "hourly".to_owned(),
            Grid::Calendar(calendar) => calendar.rhythm(),
            Grid::Cron(ticking) => ticking.rhythm(),
        }
    }

    /// How many exist: those that have closed, shifted by the end offset.
    pub(super) fn count(&self, moment: PartitionContext<'_>) -> u64 {
        // The index of the open window is the number of closed ones before it.
        let open = self.index_at(moment.seconds());
        (open + self.end_offset).clamp(0, self.total).unsigned_abs()
    }

    /// From when on a window is among those that exist.
    pub(super) fn exists_from(&self, index: u64) -> Timestamp {
        Timestamp::from_millis(self.start(index as i64 + 1 - self.end_offset) * 1_000)
    }

    /// The value of the window with this index, which is below the count.
    pub(super) fn value(&self, index: u64) -> PartitionValue {
        let index = index as i64;
        match &self.grid {
            Grid::Hours(hours) => hours.value(index),
            Grid::Calendar(calendar) => PartitionValue::Date(calendar.date(index)),
            Grid::Cron(ticking) => ticking.value(index),
        }
    }

    /// The index of a value, whether or not it exists yet.
    pub(super) fn position(&self, dim: &str, value: &PartitionValue) -> Result<u64, Reason> {
        self.possible(self.number(dim, value)?)
    }

    /// The number of the window with this value; negative before the first, the total or more after the last.
    pub(super) fn number(&self, dim: &str, value: &PartitionValue) -> Result<i64, Reason> {
        let wrong = |expected| Reason::Type { dim: dim.to_owned(), expected };
        match (&self.grid, value) {
            (Grid::Hours(hours), PartitionValue::Time(micros)) => hours.index_of(*micros),
            (Grid::Calendar(calendar), PartitionValue::Date(date)) => calendar.index_of(*date),
            (Grid::Cron(ticking), PartitionValue::Time(micros)) => ticking.index_of(*micros),
            (Grid::Hours(_) | Grid::Cron(_), _) => Err(wrong("a time, t:YYYY-MM-DDTHH:MM:SS.ffffffZ")),
            (Grid::Calendar(_), _) => Err(wrong("a date, d:YYYY-MM-DD")),
        }
    }

    /// The existing indexes of a range, or why there are none. The range is not empty.
    pub(super) fn existing(
        &self,
        numbers: &Range<i64>,
        moment: PartitionContext<'_>,
    ) -> Result<Range<u64>, Reason> {
        let count = self.count(moment);
        let existing = clipped(numbers, count);
        if existing.start < existing.end {
            return Ok(existing);
        }
        // What is nearest to the partitions that there are says why.
        let nearest = if numbers.end <= 0 { numbers.end - 1 } else { numbers.start.max(0) };
        self.possible(nearest)?;
        Err(self.not_yet(count))
    }

    /// The index of a number that can ever be one.
    pub(super) fn possible(&self, index: i64) -> Result<u64, Reason> {
        if index < 0 {
            Err(Reason::BeforeStart { first: self.shown(0) })
        } else if index >= self.total {
            Err(Reason::AfterEnd { last: self.shown(self.total.unsigned_abs() - 1) })
        } else {
            Ok(index.unsigned_abs())
        }
    }

    /// The index of a value that exists.
    pub(super) fn index(
        &self,
        dim: &str,
        value: &PartitionValue,
        moment: PartitionContext<'_>,
    ) -> Result<u64, Reason> {
        let index = self.position(dim, value)?;
        let count = self.count(moment);
        if index < count {
            return Ok(index);
        }
        Err(self.not_yet(count))
    }

    /// Why an index from `count` on is no partition.
    pub(super) fn not_yet(&self, count: u64) -> Reason {
        let latest = count.checked_sub(1).map_or_else(|| "none".to_owned(), |last| self.shown(last));
        Reason::NotYet { latest }
    }

    /// From when to when a window is: the end is the start of the next.
    pub(super) fn window(&self, index: u64) -> (Timestamp, Timestamp) {
        let start = |index: i64| Timestamp::from_millis(self.start(index) * 1_000);
        (start(index as i64), start(index as i64 + 1))
    }

    /// The canonical text of the value with this index.
    pub(super) fn shown(&self, index: u64) -> String {
        self.value(index).to_string()
    }
}
