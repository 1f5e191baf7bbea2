//! Partitions of an asset by the bucket: what a heat map shows before somebody zooms in.

use std::ops::Range;

use axum::extract::State;
use serde::Deserialize;
use servo_core::partitions::{Block, PartitionContext, PartitionSet, Partitions};
use servo_engine::PartitionStatus;
use servo_engine::staleness::{Attempted, StaleSets};
use utoipa::IntoParams;

use super::assets::{key, unknown};
use super::partition_plane::Plane;
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Path, Query};
use crate::problem::Problem;
use crate::views::{PartitionBucket, PartitionSummary};

const DEFAULT_BUCKETS: u64 = 200;
const MAX_BUCKETS: u64 = 1_000;
/// The most values of a dimension that is laid out as rows.
const MAX_ROWS: u64 = 40;

/// Query of the summary.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SummaryQuery {
    /// Most ranges, at most 1,000; 200 by default.
    pub(super) buckets: Option<u64>,
    /// The first position; 0 by default.
    #[serde(default)]
    pub(super) from: u64,
    /// Number of positions; all that follow by default.
    pub(super) count: Option<u64>,
    /// The dimension of the columns, by name: counts over any dimensions instead of over the order of partitions.
    pub(super) x: Option<String>,
    /// The dimension of the rows, by name; with `x`. All other dimensions are summed.
    pub(super) y: Option<String>,
    /// Most columns; 20 by default. Columns times rows are at most 1,000.
    pub(super) x_buckets: Option<u64>,
    /// Most rows; 20 by default.
    pub(super) y_buckets: Option<u64>,
    /// The first position of the rows; with `y`.
    #[serde(default)]
    pub(super) row_from: u64,
    /// Number of positions of the rows; all that follow by default.
    pub(super) row_count: Option<u64>,
}

/// Counts of the partitions of an asset by status, in equal ranges of their order, or over any two dimensions.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/partitions/summary", operation_id = "summarize_partitions", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), SummaryQuery, Wait),
    responses((status = 200, body = PartitionSummary), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<SummaryQuery>,
) -> Result<Answer<PartitionSummary>, Problem> {
    let asset = key(&namespace, &name)?;
    let most = query.buckets.unwrap_or(DEFAULT_BUCKETS);
    if !(1..=MAX_BUCKETS).contains(&most) {
        return Err(Problem::invalid("buckets", format!("{most} is not between 1 and {MAX_BUCKETS}")));
    }
    let plane = Plane::of(&query)?;
    let now = app.workspace().now();
    let shared = app.clone();
    let found = app.workspace().read(move |state| {
        let definitions = state.checked_definitions();
        let position = definitions.as_ref().and_then(|definitions| definitions.position(&asset));
        let Some((definitions, position)) = definitions.as_ref().zip(position) else {
            return Err(unknown(&asset, definitions.as_deref()));
        };
        let at = PartitionContext::new(now, state.dynamic_partitions());
        let found = shared.stale(state, [position], now, |view| {
            let stale = view.sets(position).map(StaleSets::made).unwrap_or_default();
            match &definitions.asset(position).partitions {
                None if plane.is_some() => {
                    Err(Problem::invalid("x", format!("{asset} has no partitions, and so no dimensions")))
                }
                None => Ok(of_one(state.partition_status(&asset, None).as_ref(), &stale)),
                Some(partitions) => {
                    let attempted = view.attempted(position);
                    match &plane {
                        Some(plane) => plane.summary(partitions, at, &query, attempted, &stale),
                        None => Ok(summary(partitions, at, &query, most, attempted, &stale)),
                    }
                }
            }
        });
        found.ok_or_else(|| unknown(&asset, Some(definitions)))?
    });
    found.await?.map(Answer)
}

/// An asset without partitions counts as one.
fn of_one(status: Option<&PartitionStatus>, stale: &PartitionSet) -> PartitionSummary {
    let stale = u64::from(!stale.is_empty());
    let mut bucket = PartitionBucket { partitions: 1, stale, ..PartitionBucket::default() };
    count(&mut bucket, status);
    PartitionSummary {
        total: 1,
        count: 1,
        step: 1,
        rows: vec![String::new()],
        buckets: vec![bucket],
        ..PartitionSummary::default()
    }
}

/// How indexes of partitions are laid out: positions along the ranges, and rows.
struct Grid {
    /// Number of positions.
    total: u64,
    /// Number of rows.
    rows: u64,
    /// Whether the dimension of the rows is the one that changes fastest.
    rows_are_inner: bool,
    dimension: String,
    row_dimension: Option<String>,
}

impl Grid {
    fn of(partitions: &Partitions, at: PartitionContext<'_>) -> Self {
        let count = u64::try_from(partitions.count(at)).unwrap_or(u64::MAX);
        let names: Vec<&str> = partitions.dimensions().collect();
        let last = count.checked_sub(1).and_then(|last| partitions.digits(last.into(), at));
        let sizes: Vec<u64> = last.unwrap_or_default().into_iter().map(|digit| digit + 1).collect();
        let (rows, rows_are_inner) = match sizes[..] {
            [outer, inner] if inner <= MAX_ROWS && inner <= outer => (inner, true),
            [outer, _] if outer <= MAX_ROWS => (outer, false),
            [_, inner] if inner <= MAX_ROWS => (inner, true),
            _ => (1, true),
        };
        let (dimension, row_dimension) = match (names.as_slice(), rows_are_inner) {
            ([outer, inner], true) if sizes.len() == 2 && rows == sizes[1] => {
                ((*outer).to_owned(), Some(*inner))
            }
            ([outer, inner], false) => ((*inner).to_owned(), Some(*outer)),
            (names, _) => (names.join(", "), None),
        };
        let (total, row_dimension) = (count / rows.max(1), row_dimension.map(str::to_owned));
        Self { total, rows, rows_are_inner, dimension, row_dimension }
    }

    fn index(&self, position: u64, row: u64) -> u128 {
        let index =
            if self.rows_are_inner { position * self.rows + row } else { row * self.total + position };
        index.into()
    }

    /// How many partitions of a set are in a range of one row. Counts ranges, not partitions.
    fn count(
        &self,
        partitions: &Partitions,
        set: &PartitionSet,
        positions: Range<u64>,
        row: u64,
        at: PartitionContext<'_>,
    ) -> u64 {
        if set.is_empty() {
            return 0;
        }
        let bucket = if self.row_dimension.is_some() {
            let rows = row..row + 1;
            let ranges = if self.rows_are_inner { [positions, rows] } else { [rows, positions] };
            PartitionSet::from(Block::new(ranges))
        } else {
            partitions.set_of(self.index(positions.start, 0)..self.index(positions.end, 0), at)
        };
        u64::try_from(set.intersection(&bucket).len()).unwrap_or(u64::MAX)
    }
}

fn summary(
    partitions: &Partitions,
    at: PartitionContext<'_>,
    query: &SummaryQuery,
    most: u64,
    attempted: Option<Attempted<'_>>,
    stale: &PartitionSet,
) -> PartitionSummary {
    let grid = Grid::of(partitions, at);
    let from = query.from.min(grid.total);
    let counted = query.count.unwrap_or(u64::MAX).min(grid.total - from);
    let step = counted.div_ceil((most / grid.rows).max(1)).max(1);
    let text = |position: u64, row: u64| {
        partitions.key(grid.index(position, row), at).map(|key| key.to_string()).unwrap_or_default()
    };
    let mut buckets = Vec::new();
    for first in (from..from + counted).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let positions = step.min(from + counted - first);
        for row in 0..grid.rows {
            let count = |set: &PartitionSet| grid.count(partitions, set, first..first + positions, row, at);
            let [made, failing, never_made, expired] = attempted.map_or([0; 4], |it| {
                [count(it.made), count(it.failing), count(it.never_made), count(it.expired)]
            });
            buckets.push(PartitionBucket {
                first: text(first, row),
                last: (positions > 1).then(|| text(first + positions - 1, row)),
                partitions: positions,
                materialized: made.saturating_sub(failing),
                last_attempt_failed: failing,
                never_succeeded: never_made,
                expired,
                stale: count(stale),
            });
        }
    }
    let label = |row: u64| {
        let dimension = grid.row_dimension.as_deref()?;
        let key = partitions.key(grid.index(0, row), at)?;
        Some(key.get(dimension)?.to_string())
    };
    PartitionSummary {
        total: grid.total,
        from,
        count: counted,
        step,
        rows: (0..grid.rows).map(|row| label(row).unwrap_or_default()).collect(),
        dimension: grid.dimension.clone(),
        row_dimension: grid.row_dimension.clone(),
        buckets,
        ..PartitionSummary::default()
    }
}

fn count(bucket: &mut PartitionBucket, status: Option<&PartitionStatus>) {
    use servo_engine::{AttemptOutcome, DataStatus};
    match status.map(|status| (status.status(), status.last_attempt().outcome)) {
        Some((DataStatus::Materialized, _)) => bucket.materialized += 1,
        Some((DataStatus::LastAttemptFailed, _)) => bucket.last_attempt_failed += 1,
        Some((DataStatus::Expired, _)) => bucket.expired += 1,
        Some((DataStatus::NeverMaterialized, AttemptOutcome::Succeeded | AttemptOutcome::Failed)) => {
            bucket.never_succeeded += 1;
        }
        None => {}
    }
}
