//! Partitions of an asset over two of its dimensions, however many there are and however large: the others are summed.
//!
//! Every cell counts blocks of indexes. A column of cells is cut out of what is known once, and its cells out of that,
//! so that the cost follows the number of buckets and not the number of partitions (ADR-200).

use std::ops::Range;

use servo_core::partitions::{Block, PartitionContext, PartitionSet, Partitions};
use servo_engine::staleness::Attempted;

use super::partition_summary::SummaryQuery;
use crate::problem::Problem;
use crate::views::{PartitionBucket, PartitionSummary};

/// Buckets along each dimension unless said otherwise.
const DEFAULT_BUCKETS: u64 = 20;
/// The most cells of an answer.
const MAX_CELLS: u64 = 1_000;

/// Which dimensions, and by how many buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plane {
    x: String,
    y: Option<String>,
    x_buckets: u64,
    y_buckets: u64,
}

impl Plane {
    /// The plane that a query asks for, if it asks for one.
    pub(super) fn of(query: &SummaryQuery) -> Result<Option<Self>, Problem> {
        let Some(x) = query.x.clone() else {
            let further = [("y", query.y.is_some()), ("x_buckets", query.x_buckets.is_some())];
            let further = further.into_iter().chain([("y_buckets", query.y_buckets.is_some())]);
            return match further.into_iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(Problem::invalid(name, "goes with x, the dimension of the columns")),
                None => Ok(None),
            };
        };
        if query.y.as_ref() == Some(&x) {
            return Err(Problem::invalid("y", format!("{x:?} is the dimension of x; name another one")));
        }
        let of_rows = [("y_buckets", query.y_buckets.is_some()), ("row_count", query.row_count.is_some())];
        let mut of_rows = of_rows.into_iter().chain([("row_from", query.row_from > 0)]);
        if let Some((name, _)) = of_rows.find(|(_, is_given)| *is_given && query.y.is_none()) {
            return Err(Problem::invalid(name, "goes with y, the dimension of the rows"));
        }
        let (x_buckets, y_buckets) =
            (query.x_buckets.unwrap_or(DEFAULT_BUCKETS), query.y_buckets.unwrap_or(DEFAULT_BUCKETS));
        let y_buckets = if query.y.is_some() { y_buckets } else { 1 };
        for (name, buckets) in [("x_buckets", x_buckets), ("y_buckets", y_buckets)] {
            if !(1..=MAX_CELLS).contains(&buckets) {
                return Err(Problem::invalid(name, format!("{buckets} is not between 1 and {MAX_CELLS}")));
            }
        }
        if x_buckets * y_buckets > MAX_CELLS {
            let detail = format!("{x_buckets} by {y_buckets} buckets are more than {MAX_CELLS}");
            return Err(Problem::invalid("x_buckets", detail));
        }
        Ok(Some(Self { x, y: query.y.clone(), x_buckets, y_buckets }))
    }

    /// The counts of its cells.
    pub(super) fn summary(
        &self,
        partitions: &Partitions,
        at: PartitionContext<'_>,
        query: &SummaryQuery,
        attempted: Option<Attempted<'_>>,
        stale: &PartitionSet,
    ) -> Result<PartitionSummary, Problem> {
        let names: Vec<&str> = partitions.dimensions().collect();
        let position = |field: &str, name: &str| {
            names.iter().position(|known| *known == name).ok_or_else(|| {
                Problem::invalid(
                    field,
                    format!("there is no dimension {name:?}; there are {}", names.join(", ")),
                )
            })
        };
        let x = position("x", &self.x)?;
        let y = self.y.as_deref().map(|name| position("y", name)).transpose()?;
        let last = partitions.count(at).checked_sub(1).and_then(|last| partitions.digits(last, at));
        let sizes: Vec<u64> = match last {
            Some(digits) => digits.into_iter().map(|digit| digit + 1).collect(),
            None => vec![0; names.len()],
        };
        let cells = Cells { partitions, at, sizes, x, y };
        let from = query.from.min(cells.sizes[x]);
        let count = query.count.unwrap_or(u64::MAX).min(cells.sizes[x] - from);
        let columns = ranges(from..from + count, self.x_buckets);
        let y_size = y.map_or(1, |y| cells.sizes[y]);
        let row_from = query.row_from.min(y_size);
        let row_count = query.row_count.unwrap_or(u64::MAX).min(y_size - row_from);
        let rows = ranges(row_from..row_from + row_count, self.y_buckets);
        let sets = attempted.map_or([const { None }; 4], |it| {
            [Some(it.made), Some(it.failing), Some(it.never_made), Some(it.expired)]
        });
        let mut buckets = Vec::with_capacity(columns.len() * rows.len());
        for column in &columns {
            let within =
                |set: Option<&PartitionSet>| set.map(|set| cells.slice(set, x, column)).unwrap_or_default();
            let known = sets.map(within);
            let stale = within(Some(stale));
            for row in &rows {
                let count = |set: &PartitionSet| match y {
                    Some(y) => number(cells.slice(set, y, row).len()),
                    None => number(set.len()),
                };
                let [made, failing, never_made, expired] = known.each_ref().map(count);
                buckets.push(PartitionBucket {
                    materialized: made.saturating_sub(failing),
                    last_attempt_failed: failing,
                    never_succeeded: never_made,
                    expired,
                    stale: count(&stale),
                    ..cells.bucket(column, row)
                });
            }
        }
        let summed = names.iter().enumerate().filter(|(at, _)| *at != x && Some(*at) != y);
        Ok(PartitionSummary {
            total: cells.sizes[x],
            from,
            count,
            step: columns.first().map_or(1, |range| range.end - range.start),
            dimension: self.x.clone(),
            row_dimension: self.y.clone(),
            rows: match y {
                Some(y) => rows.iter().map(|row| cells.label(y, row)).collect(),
                None => vec![String::new()],
            },
            buckets,
            columns: columns.iter().map(|column| cells.label(x, column)).collect(),
            row_total: y.map(|_| y_size),
            row_step: y.and_then(|_| rows.first().map(|range| range.end - range.start)),
            summed: summed.map(|(_, name)| (*name).to_owned()).collect(),
        })
    }
}

/// The partitions of an asset along two of their dimensions.
struct Cells<'a> {
    partitions: &'a Partitions,
    at: PartitionContext<'a>,
    /// Of every dimension.
    sizes: Vec<u64>,
    x: usize,
    y: Option<usize>,
}

impl Cells<'_> {
    /// The part of a set that is in a range of one dimension.
    fn slice(&self, set: &PartitionSet, dimension: usize, range: &Range<u64>) -> PartitionSet {
        if set.is_empty() {
            return PartitionSet::default();
        }
        let whole = self.sizes.iter().map(|size| 0..*size);
        let ranges: Vec<Range<u64>> = whole
            .enumerate()
            .map(|(at, whole)| if at == dimension { range.clone() } else { whole })
            .collect();
        set.intersection(&PartitionSet::from(Block::new(ranges)))
    }

    /// A cell without its counts of what is known: how many partitions there are, and its corners.
    fn bucket(&self, column: &Range<u64>, row: &Range<u64>) -> PartitionBucket {
        let range = |dimension: usize| match dimension {
            at if at == self.x => column.clone(),
            at if Some(at) == self.y => row.clone(),
            at => 0..self.sizes[at],
        };
        let ranges: Vec<Range<u64>> = (0..self.sizes.len()).map(range).collect();
        let partitions = number(Block::new(ranges.clone()).len());
        let corner = |digit: fn(&Range<u64>) -> u64| {
            let digits: Vec<u64> = ranges.iter().map(digit).collect();
            let index = self.partitions.index_of_digits(&digits, self.at);
            let key = index.and_then(|index| self.partitions.key(index, self.at));
            key.map(|key| key.to_string()).unwrap_or_default()
        };
        let last = (partitions > 1).then(|| corner(|range| range.end.saturating_sub(1)));
        PartitionBucket { first: corner(|range| range.start), last, partitions, ..PartitionBucket::default() }
    }

    /// The label of a range of a dimension: its first value, and its last if it has several.
    fn label(&self, dimension: usize, range: &Range<u64>) -> String {
        let value = |digit: u64| {
            let digits: Vec<u64> =
                (0..self.sizes.len()).map(|at| if at == dimension { digit } else { 0 }).collect();
            let index = self.partitions.index_of_digits(&digits, self.at)?;
            let key = self.partitions.key(index, self.at)?;
            let name = self.partitions.dimensions().nth(dimension)?;
            Some(key.get(name)?.to_string())
        };
        let (first, last) = (value(range.start).unwrap_or_default(), value(range.end.saturating_sub(1)));
        match last.filter(|_| range.end - range.start > 1) {
            Some(last) => format!("{first}..{last}"),
            None => first,
        }
    }
}

/// Equal ranges, at most so many; the last may be shorter.
fn ranges(whole: Range<u64>, most: u64) -> Vec<Range<u64>> {
    let step = (whole.end - whole.start).div_ceil(most).max(1);
    let starts = (0..most).map(|number| whole.start.saturating_add(number.saturating_mul(step)));
    let starts = starts.take_while(|start| *start < whole.end);
    starts.map(|start| start..start.saturating_add(step).min(whole.end)).collect()
}

fn number(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_equal_and_have_everything_once() {
        assert_eq!(ranges(0..10, 3), [0..4, 4..8, 8..10]);
        assert_eq!(ranges(5..7, 20), [5..6, 6..7]);
        assert_eq!(ranges(3..3, 20), []);
        assert_eq!(ranges(0..1_000_000, 1_000).len(), 1_000);
    }
}
