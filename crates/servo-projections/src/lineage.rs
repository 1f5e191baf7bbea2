//! Lineage by execution: what was read to make something, and what was made of it, by a few row groups (ADR-093).

use std::collections::BTreeMap;

use servo_core::{EventId, MaterializationId};
use servo_engine::rows::{MaterializationInputRow, ReadFrom, Row};

use crate::batch::Batch;
use crate::error::Error;
use crate::open_file::OpenFile;
use crate::projection::Projection;

/// The side of lineage from which materializations are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineageSide {
    /// They were made: rows say what was read for them.
    Made,
    /// They were read: rows say what was made of them.
    Read,
}

impl LineageSide {
    const fn column(self) -> &'static str {
        match self {
            Self::Made => "materialization_id",
            Self::Read => "upstream_materialization_id",
        }
    }

    /// The materialization on this side of a row; none of very many that were read together.
    pub fn of(self, row: &MaterializationInputRow) -> Option<MaterializationId> {
        match self {
            Self::Made => Some(row.materialization_id),
            Self::Read => row.upstream_materialization_id,
        }
    }
}

/// Materializations that are looked for, each with the last event that its rows can have.
#[derive(Debug, Clone, Default)]
pub struct Wanted(BTreeMap<MaterializationId, EventId>);

impl Wanted {
    /// Looks for one more. Its rows are not newer than `until`, if that is known.
    pub fn insert(&mut self, id: MaterializationId, until: Option<EventId>) {
        let until = until.unwrap_or(EventId::from_u128(u128::MAX));
        let known = self.0.entry(id).or_insert(until);
        *known = until.max(*known);
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a row on this side is looked for.
    pub fn has(&self, side: LineageSide, row: &MaterializationInputRow) -> bool {
        side.of(row).is_some_and(|id| self.0.contains_key(&id))
    }

    /// Those whose rows may be between two events: an attempt has its id before it ends.
    fn between(&self, first: EventId, last: EventId) -> impl Iterator<Item = String> {
        let is_there = move |(id, until): &(&MaterializationId, &EventId)| {
            id.timestamp_ms() <= last.timestamp_ms() && **until >= first
        };
        self.0.iter().filter(is_there).map(|(id, _)| id.to_string())
    }
}

impl Projection {
    /// The rows in the tables that have one of these materializations on one side.
    pub async fn lineage(
        &self,
        side: LineageSide,
        wanted: &Wanted,
    ) -> Result<Vec<MaterializationInputRow>, Error> {
        let mut found = Vec::new();
        for file in self.manifest.immutable(MaterializationInputRow::TABLE) {
            let (first, last) = file.min_key.zip(file.max_key).unwrap_or((EventId::NIL, NEWEST));
            if wanted.between(first, last).next().is_none() {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                let (first, last) = open.bounds(group).unwrap_or((EventId::NIL, NEWEST));
                let ids: Vec<String> = wanted.between(first, last).collect();
                let held = open.may_hold_any(group, side.column(), &ids)?;
                if !held.is_empty() {
                    found.extend(self.rows_with(&open, group, side, &held).await?);
                }
            }
        }
        Ok(found)
    }

    async fn rows_with(
        &self,
        open: &OpenFile,
        group: usize,
        side: LineageSide,
        ids: &[&str],
    ) -> Result<Vec<MaterializationInputRow>, Error> {
        let fetched = self.files.fetch_group(open, group, None).await?;
        let first_row = open.first_row(group);
        // One column tells which rows are wanted; the others are decoded for those alone.
        let rows = open.decode(group, Some(&[side.column()]), fetched.clone(), None)?;
        let batch = Batch { rows: &rows, file: &open.name, first_row, chosen: None };
        let column = batch.column::<Option<String>>(side.column())?;
        let mut chosen = Vec::new();
        for row in 0..batch.len() {
            if column.get(row)?.is_some_and(|id| ids.contains(&id.as_str())) {
                chosen.push(row);
            }
        }
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let rows = open.decode(group, None, fetched, Some(&chosen))?;
        let batch = Batch { rows: &rows, file: &open.name, first_row, chosen: Some(&chosen) };
        MaterializationInputRow::read_rows(&batch, 0..batch.len())
    }
}

const NEWEST: EventId = EventId::from_u128(u128::MAX);
