//! Ended runs by page, by id, and their tasks and edges: a few row groups each, whatever the history.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use servo_core::{EventId, RunId, Timestamp};
use servo_engine::rows::{DepSetRow, EdgeRow, HistoryRow, Json, ReadFrom, Row, RunRow, TaskRow};
use servo_engine::{RunState, TaskOptions};

use crate::batch::Batch;
use crate::error::Error;
use crate::manifest::FileRef;
use crate::open_file::OpenFile;
use crate::projection::Projection;
use crate::run_filter::{RunFilter, RunOrder};
use crate::table::StoredRow;

/// Something that may hold the next run of a list, and the highest rank it can have.
struct Source {
    rank: u128,
    what: What,
}

enum What {
    Row(Box<RunRow>),
    Group(Arc<OpenFile>, usize),
    File(FileRef),
}

impl What {
    /// Of equal places, what must still be opened comes before rows, so that no copy of a row is missed.
    fn order(&self) -> u8 {
        match self {
            What::Row(_) => 0,
            What::Group(..) => 1,
            What::File(_) => 2,
        }
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Source {}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Source {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.rank, self.what.order()).cmp(&(other.rank, other.what.order()))
    }
}

impl Projection {
    /// Ended runs that have left memory, in the order of the filter, beginning after `after`.
    pub async fn runs_after(
        &self,
        after: Option<EventId>,
        limit: usize,
        filter: &RunFilter,
    ) -> Result<Vec<RunRow>, Error> {
        let below = after.map_or(u128::MAX, |after| filter.order.rank(after));
        let lowest = filter.lowest();
        // The highest rank below the bound that something between two places can have.
        let rank = |oldest: EventId, newest: EventId| {
            let (first, last) = (filter.order.rank(oldest), filter.order.rank(newest));
            (newest >= lowest && first.min(last) < below).then(|| first.max(last).min(below))
        };
        let facets: Vec<&str> = filter.states.iter().map(|state| state.name()).collect();
        let mut queue: BinaryHeap<Source> = BinaryHeap::new();
        for file in self.manifest.immutable(RunRow::TABLE) {
            if let (Some(oldest), Some(newest)) = (file.min_key, file.max_key)
                && let Some(rank) = rank(oldest, newest)
            {
                queue.push(Source { rank, what: What::File(file.clone()) });
            }
        }
        let mut page: Vec<RunRow> = Vec::new();
        let mut seen = BTreeSet::new();
        while page.len() < limit {
            let Some(source) = queue.pop() else { break };
            match source.what {
                What::File(file) => {
                    let open = self.files.open(&file).await?;
                    for group in 0..open.groups() {
                        let (oldest, newest) = group_bounds(&open, group);
                        if let Some(rank) =
                            rank(oldest, newest).filter(|_| open.may_hold_facet(group, &facets))
                        {
                            queue.push(Source { rank, what: What::Group(Arc::clone(&open), group) });
                        }
                    }
                }
                What::Group(open, group) => {
                    for row in self.first_of_group(&open, group, below, limit, filter).await? {
                        let rank = filter.order.rank(row.requested_event_id);
                        queue.push(Source { rank, what: What::Row(Box::new(row)) });
                    }
                }
                What::Row(row) => {
                    if seen.insert(row.run_id) {
                        page.push(*row);
                    }
                }
            }
        }
        Ok(page)
    }

    /// At most `limit` rows: a group cannot give a page more.
    async fn first_of_group(
        &self,
        open: &OpenFile,
        group: usize,
        below: u128,
        limit: usize,
        filter: &RunFilter,
    ) -> Result<Vec<RunRow>, Error> {
        let making = match filter.asks_for_tasks() {
            true => Some(self.runs_making(filter, group_bounds(open, group)).await?),
            false => None,
        };
        let fetched = self.files.fetch_group(open, group, None).await?;
        let first_row = open.first_row(group);
        // A few columns tell which rows are wanted; the others are decoded for those alone.
        let telling = ["requested_event_id", "state", "source_type", "created_at", "labels", "run_id"];
        let rows = open.decode(group, Some(&telling), fetched.clone(), None)?;
        let batch = Batch { rows: &rows, file: &open.name, first_row, chosen: None };
        let places = batch.column::<EventId>("requested_event_id")?;
        let (states, sources) = (batch.column::<RunState>("state")?, batch.column::<String>("source_type")?);
        let (times, labels) =
            (batch.column::<Timestamp>("created_at")?, batch.column::<Json<BTreeMap<_, _>>>("labels")?);
        let runs = batch.column::<RunId>("run_id")?;
        let mut wanted = Vec::with_capacity(limit);
        let mut rows: Vec<usize> = (0..batch.len()).collect();
        if filter.order == RunOrder::NewestFirst {
            rows.reverse();
        }
        for row in rows {
            if wanted.len() == limit {
                break;
            }
            let is_wanted = filter.order.rank(places.get(row)?) < below
                && filter.accepts(states.get(row)?, &sources.get(row)?, times.get(row)?, &labels.get(row)?.0)
                && (filter.id_prefix.is_none() || filter.accepts_id(runs.get(row)?))
                && match &making {
                    Some(making) => making.contains(&runs.get(row)?),
                    None => true,
                };
            if is_wanted {
                wanted.push(row);
            }
        }
        wanted.sort_unstable();
        let rows = open.decode(group, None, fetched, Some(&wanted))?;
        let batch = Batch { rows: &rows, file: &open.name, first_row, chosen: Some(&wanted) };
        RunRow::read_rows(&batch, 0..batch.len())
    }

    /// Runs between two places that have a task which the filter asks for.
    async fn runs_making(
        &self,
        filter: &RunFilter,
        (oldest, newest): (EventId, EventId),
    ) -> Result<BTreeSet<RunId>, Error> {
        let columns = ["run_id", "asset_key", "partition_key", "options"];
        let mut making = BTreeSet::new();
        for file in self.manifest.immutable(TaskRow::TABLE) {
            if file.max_key < Some(oldest) || file.min_key > Some(newest) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                let (first, last) = group_bounds(&open, group);
                if last < oldest || first > newest {
                    continue;
                }
                let rows = self.files.group(&open, group, Some(&columns)).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let (runs, assets) = (batch.column::<RunId>("run_id")?, batch.column::<String>("asset_key")?);
                let partitions = batch.column::<Option<String>>("partition_key")?;
                let options = batch.column::<Json<Arc<TaskOptions>>>("options")?;
                for row in 0..batch.len() {
                    let (asset, partition) = (assets.get(row)?, partitions.get(row)?);
                    let is_wanted = filter.accepts_task(&asset, partition.as_deref(), &[])
                        || filter.accepts_task(&asset, partition.as_deref(), &options.get(row)?.outputs);
                    if is_wanted {
                        making.insert(runs.get(row)?);
                    }
                }
            }
        }
        Ok(making)
    }

    /// An ended run that has left memory.
    pub async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error> {
        let text = id.to_string();
        for file in self.manifest.immutable(RunRow::TABLE).iter().rev() {
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                if !open.may_hold(group, "run_id", &text)? {
                    continue;
                }
                let found = self.chosen_rows::<RunRow>(&open, group, &["run_id"], |batch| {
                    let ids = batch.column::<RunId>("run_id")?;
                    for row in 0..batch.len() {
                        if ids.get(row)? == id {
                            return Ok(vec![row]);
                        }
                    }
                    Ok(Vec::new())
                });
                if let Some(run) = found.await?.pop() {
                    return Ok(Some(run));
                }
            }
        }
        Ok(None)
    }

    /// Tasks of an ended run that has left memory, by key.
    pub async fn tasks_of(&self, run: &RunRow) -> Result<Vec<TaskRow>, Error> {
        self.rows_of(run).await
    }

    /// Edges of an ended run that has left memory, by upstream and downstream.
    pub async fn edges_of(&self, run: &RunRow) -> Result<Vec<EdgeRow>, Error> {
        self.rows_of(run).await
    }

    /// Sets of dependencies of an ended run that has left memory, by number.
    pub async fn dep_sets_of(&self, run: &RunRow) -> Result<Vec<DepSetRow>, Error> {
        self.rows_of(run).await
    }

    /// Rows of a row group that are chosen by a few columns of it. Of the others nothing else is decoded: a row has
    /// dozens of columns, and a row group thousands of rows.
    async fn chosen_rows<R: StoredRow>(
        &self,
        open: &OpenFile,
        group: usize,
        by: &[&str],
        choose: impl FnOnce(&Batch<'_>) -> Result<Vec<usize>, Error>,
    ) -> Result<Vec<R>, Error> {
        let fetched = self.files.fetch_group(open, group, None).await?;
        let first_row = open.first_row(group);
        let looked_at = open.decode(group, Some(by), fetched.clone(), None)?;
        let batch = Batch { rows: &looked_at, file: &open.name, first_row, chosen: None };
        let chosen = choose(&batch)?;
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let rows = open.decode(group, None, fetched, Some(&chosen))?;
        let batch = Batch { rows: &rows, file: &open.name, first_row, chosen: Some(&chosen) };
        R::read_rows(&batch, 0..chosen.len())
    }

    async fn rows_of<R: HistoryRow + StoredRow>(&self, run: &RunRow) -> Result<Vec<R>, Error> {
        let place = run.requested_event_id;
        let mut found: BTreeMap<R::Key, R> = BTreeMap::new();
        for file in self.manifest.immutable(R::TABLE) {
            if !(file.min_key..=file.max_key).contains(&Some(place)) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                let (oldest, newest) = group_bounds(&open, group);
                if !(oldest..=newest).contains(&place) {
                    continue;
                }
                let columns = ["run_id", "requested_event_id"];
                let rows = self.chosen_rows::<R>(&open, group, &columns, |batch| {
                    let (places, runs) =
                        (batch.column::<EventId>("requested_event_id")?, batch.column::<RunId>("run_id")?);
                    let mut wanted = Vec::new();
                    for row in 0..batch.len() {
                        if places.get(row)? == place && runs.get(row)? == run.run_id {
                            wanted.push(row);
                        }
                    }
                    Ok(wanted)
                });
                found.extend(rows.await?.into_iter().map(|row| (row.key(), row)));
            }
        }
        Ok(found.into_values().collect())
    }
}

/// A row group without statistics may hold anything.
fn group_bounds(open: &OpenFile, group: usize) -> (EventId, EventId) {
    open.bounds(group).unwrap_or((EventId::NIL, EventId::from_u128(u128::MAX)))
}

/// One page of runs from memory and from history: in order, each run once, memory wins.
pub fn merge_page(hot: Vec<RunRow>, history: Vec<RunRow>, limit: usize, order: RunOrder) -> Vec<RunRow> {
    let mut seen: BTreeSet<RunId> = BTreeSet::new();
    let mut page: Vec<RunRow> =
        hot.into_iter().chain(history).filter(|run| seen.insert(run.run_id)).collect();
    order.sort(&mut page, |run| run.requested_event_id);
    page.truncate(limit);
    page
}
