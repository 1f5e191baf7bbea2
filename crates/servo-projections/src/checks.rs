//! Results of checks by page: the newest first, and of one asset a few row groups, whatever the history.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use servo_core::{AssetKey, EventId, RunId};
use servo_engine::rows::{CheckResultRow, ReadFrom, Row};

use crate::batch::Batch;
use crate::error::Error;
use crate::manifest::FileRef;
use crate::projection::Projection;

/// Which results of checks to list. Every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckFilter {
    /// Of one of these assets: the names that one has, and had.
    pub assets: Option<BTreeSet<AssetKey>>,
    /// Of checks of this name.
    pub check: Option<String>,
    /// Of one of these partitions in canonical form; of any if there are none.
    pub partitions: Vec<String>,
    /// Those that passed, or those that did not.
    pub passed: Option<bool>,
    /// Of this run.
    pub run: Option<RunId>,
}

impl CheckFilter {
    /// Whether a result is wanted.
    pub fn accepts(&self, row: &CheckResultRow) -> bool {
        self.assets.as_ref().is_none_or(|assets| assets.contains(&row.asset_key))
            && self.check.as_ref().is_none_or(|check| *check == row.check_name)
            && (self.partitions.is_empty()
                || row
                    .partition_key
                    .as_ref()
                    .is_some_and(|key| self.partitions.iter().any(|partition| partition == key.canonical())))
            && self.passed.is_none_or(|passed| row.passed == passed)
            && self.run.is_none_or(|run| row.run_id == run)
    }
}

/// The place of a result in the order of lists: one event brings the results of several checks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckPlace {
    event: EventId,
    asset: AssetKey,
    check: String,
}

impl CheckPlace {
    /// The place of a row.
    pub fn of(row: &CheckResultRow) -> Self {
        Self { event: row.row_version, asset: row.asset_key.clone(), check: row.check_name.clone() }
    }
}

impl fmt::Display for CheckPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.event, self.asset.canonical(), self.check)
    }
}

/// A text is no place of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for CheckPlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let mut parts = text.splitn(3, ' ');
        let (event, asset, check) = (parts.next(), parts.next(), parts.next());
        let (Some(event), Some(asset), Some(check)) = (event, asset, check) else { return Err(NoPlace) };
        let event = event.parse().map_err(|_| NoPlace)?;
        Ok(Self { event, asset: AssetKey::parse(asset).map_err(|_| NoPlace)?, check: check.to_owned() })
    }
}

impl Projection {
    /// Results in the tables, the newest first, beginning before a place.
    pub async fn checks_before(
        &self,
        before: Option<&CheckPlace>,
        limit: usize,
        filter: &CheckFilter,
    ) -> Result<Vec<CheckResultRow>, Error> {
        let is_behind = |oldest: EventId| before.is_some_and(|before| oldest > before.event);
        let mut files: Vec<&FileRef> = self.manifest.immutable(CheckResultRow::TABLE).iter().collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.max_key));
        let mut page: Vec<CheckResultRow> = Vec::new();
        for file in files {
            // Rows older than the page that was found cannot be part of it.
            if page.len() >= limit && file.max_key < page.get(limit - 1).map(|row| row.row_version) {
                break;
            }
            if file.min_key.is_some_and(is_behind) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in (0..open.groups()).rev() {
                let bounds = open.bounds(group);
                let is_full = page.len() >= limit
                    && bounds.is_some_and(|(_, newest)| {
                        page.get(limit - 1).is_some_and(|last| newest < last.row_version)
                    });
                if is_full || bounds.is_some_and(|(oldest, _)| is_behind(oldest)) {
                    continue;
                }
                if let Some(assets) = &filter.assets {
                    let names: Vec<&str> = assets.iter().map(AssetKey::canonical).collect();
                    if open.may_hold_any(group, "asset_key", &names)?.is_empty() {
                        continue;
                    }
                }
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let rows = CheckResultRow::read_rows(&batch, 0..batch.len())?;
                let is_before =
                    |row: &CheckResultRow| before.is_none_or(|before| CheckPlace::of(row) < *before);
                page.extend(rows.into_iter().filter(|row| filter.accepts(row) && is_before(row)));
                newest_first(&mut page, limit);
            }
        }
        Ok(page)
    }
}

/// Brings results into the order of lists, each once, and no more than are wanted.
pub fn newest_first(rows: &mut Vec<CheckResultRow>, limit: usize) {
    rows.sort_by_cached_key(|row| std::cmp::Reverse(CheckPlace::of(row)));
    rows.dedup_by(|a, b| CheckPlace::of(a) == CheckPlace::of(b));
    rows.truncate(limit);
}
