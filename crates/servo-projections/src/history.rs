//! Ended runs by page, by id, and their tasks and edges: a few row groups each, whatever the history.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::sync::Arc;

use servo_core::{EventId, RunId};
use servo_engine::RunState;
use servo_engine::rows::{EdgeRow, HistoryRow, ReadFrom, Row, RunRow, TaskRow};

use crate::batch::Batch;
use crate::error::Error;
use crate::manifest::FileRef;
use crate::open_file::OpenFile;
use crate::projection::Projection;
use crate::table::StoredRow;

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In one of these states; empty means any.
    pub states: Vec<RunState>,
}

impl RunFilter {
    /// Whether a run is wanted.
    pub fn accepts(&self, run: &RunRow) -> bool {
        self.states.is_empty() || self.states.contains(&run.state)
    }
}

/// Something that may hold the next run of a list, and the newest place it can have.
struct Source {
    newest: EventId,
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
        (self.newest, self.what.order()).cmp(&(other.newest, other.what.order()))
    }
}

impl Projection {
    /// Ended runs that have left memory, newest first, beginning after `before`.
    pub async fn runs_before(
        &self,
        before: Option<EventId>,
        limit: usize,
        filter: &RunFilter,
    ) -> Result<Vec<RunRow>, Error> {
        let before = before.unwrap_or(EventId::from_u128(u128::MAX));
        let facets: Vec<&str> = filter.states.iter().map(|state| state.name()).collect();
        let mut queue: BinaryHeap<Source> = BinaryHeap::new();
        for file in self.manifest.settled(RunRow::TABLE) {
            if let (Some(oldest), Some(newest)) = (file.min_key, file.max_key)
                && oldest < before
            {
                queue.push(Source { newest: newest.min(before), what: What::File(file.clone()) });
            }
        }
        let mut page: Vec<RunRow> = Vec::new();
        let mut seen = HashSet::new();
        while page.len() < limit {
            let Some(source) = queue.pop() else { break };
            match source.what {
                What::File(file) => {
                    let open = self.files.open(&file).await?;
                    for group in 0..open.groups() {
                        let (oldest, newest) = group_bounds(&open, group);
                        if oldest < before && open.may_hold_facet(group, &facets) {
                            let what = What::Group(Arc::clone(&open), group);
                            queue.push(Source { newest: newest.min(before), what });
                        }
                    }
                }
                What::Group(open, group) => {
                    for row in self.newest_of_group(&open, group, before, limit, filter).await? {
                        queue.push(Source { newest: row.requested_event_id, what: What::Row(Box::new(row)) });
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
    async fn newest_of_group(
        &self,
        open: &OpenFile,
        group: usize,
        before: EventId,
        limit: usize,
        filter: &RunFilter,
    ) -> Result<Vec<RunRow>, Error> {
        let fetched = self.files.fetch_group(open, group, None).await?;
        let first_row = open.first_row(group);
        // Two columns tell which rows are wanted; the others are decoded for those alone.
        let rows = open.decode(group, Some(&["requested_event_id", "state"]), fetched.clone(), None)?;
        let batch = Batch { rows: &rows, file: &open.name, first_row, chosen: None };
        let (places, states) =
            (batch.column::<EventId>("requested_event_id")?, batch.column::<RunState>("state")?);
        let mut wanted = Vec::with_capacity(limit);
        for row in (0..batch.len()).rev() {
            if wanted.len() == limit {
                break;
            }
            if places.get(row)? < before
                && (filter.states.is_empty() || filter.states.contains(&states.get(row)?))
            {
                wanted.push(row);
            }
        }
        wanted.reverse();
        let rows = open.decode(group, None, fetched, Some(&wanted))?;
        let batch = Batch { rows: &rows, file: &open.name, first_row, chosen: Some(&wanted) };
        RunRow::read_rows(&batch, 0..batch.len())
    }

    /// An ended run that has left memory.
    pub async fn run(&self, id: RunId) -> Result<Option<RunRow>, Error> {
        let text = id.to_string();
        for file in self.manifest.settled(RunRow::TABLE).iter().rev() {
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                if !open.may_hold(group, "run_id", &text)? {
                    continue;
                }
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let ids = batch.column::<RunId>("run_id")?;
                for row in 0..batch.len() {
                    if ids.get(row)? == id {
                        return Ok(RunRow::read_rows(&batch, std::iter::once(row))?.pop());
                    }
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

    async fn rows_of<R: HistoryRow + StoredRow>(&self, run: &RunRow) -> Result<Vec<R>, Error> {
        let place = run.requested_event_id;
        let mut found: BTreeMap<R::Key, R> = BTreeMap::new();
        for file in self.manifest.settled(R::TABLE) {
            if !(file.min_key..=file.max_key).contains(&Some(place)) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                let (oldest, newest) = group_bounds(&open, group);
                if !(oldest..=newest).contains(&place) {
                    continue;
                }
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let (places, runs) =
                    (batch.column::<EventId>("requested_event_id")?, batch.column::<RunId>("run_id")?);
                let mut wanted = Vec::new();
                for row in 0..batch.len() {
                    if places.get(row)? == place && runs.get(row)? == run.run_id {
                        wanted.push(row);
                    }
                }
                let rows = R::read_rows(&batch, wanted.into_iter())?;
                found.extend(rows.into_iter().map(|row| (row.key(), row)));
            }
        }
        Ok(found.into_values().collect())
    }
}

/// A row group without statistics may hold anything.
fn group_bounds(open: &OpenFile, group: usize) -> (EventId, EventId) {
    open.bounds(group).unwrap_or((EventId::NIL, EventId::from_u128(u128::MAX)))
}

/// One page of runs from memory and from history: newest first, each run once, memory wins.
pub fn merge_page(hot: Vec<RunRow>, history: Vec<RunRow>, limit: usize) -> Vec<RunRow> {
    let mut seen: HashSet<RunId> = HashSet::new();
    let mut page: Vec<RunRow> =
        hot.into_iter().chain(history).filter(|run| seen.insert(run.run_id)).collect();
    page.sort_by_key(|run| std::cmp::Reverse(run.requested_event_id));
    page.truncate(limit);
    page
}
