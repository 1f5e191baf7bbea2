//! Rows of history that are not kept any more: they go with their files, or when files are merged.

use servo_core::{Millis, Timestamp};
use servo_engine::rows::{
    AuditRow, CheckResultRow, EdgeRow, Row, RunKeyConflictRow, RunRow, ScheduleTickRow, TaskCostRow, TaskRow,
};

use crate::manifest::{FileRef, Manifest};

/// The tables whose rows are kept for a time. Materializations, their inputs, run keys and deployments are kept for
/// ever: what counts now refers to them.
const TABLES: [&str; 8] = [
    RunRow::TABLE,
    TaskRow::TABLE,
    EdgeRow::TABLE,
    ScheduleTickRow::TABLE,
    CheckResultRow::TABLE,
    TaskCostRow::TABLE,
    AuditRow::TABLE,
    RunKeyConflictRow::TABLE,
];

/// Whether a row of history is not kept any more.
pub(crate) fn is_expired<R: Row>(row: &R, since: Option<i64>) -> bool {
    TABLES.contains(&R::TABLE) && since.is_some_and(|since| row.at().as_millis() < since)
}

/// Whether some rows of a table may be missing.
pub(crate) fn may_lack_rows(table: &str, manifest: &Manifest) -> bool {
    manifest.history_since.is_some() && TABLES.contains(&table)
}

/// Moves the time from which on rows are kept along with the log, and drops files of rows that are all older.
pub(crate) fn advance(draft: &mut Manifest, keep: Millis) {
    if keep == Millis::ZERO {
        return;
    }
    let since = draft.watermarks.last_event_at.saturating_sub(keep);
    let since = draft.history_since.max(Some(since.as_millis()));
    draft.history_since = since;
    for table in TABLES {
        if let Some(files) = draft.history.get_mut(table) {
            files.retain(|file| !is_older(file, since));
        }
    }
}

fn is_older(file: &FileRef, since: Option<i64>) -> bool {
    file.max_at.zip(since).is_some_and(|(newest, since)| newest < since)
}

impl Manifest {
    /// How many rows of history, and how many bytes, go if rows before this time are not kept. Rows that share a file
    /// with younger ones stay for now.
    pub fn history_before(&self, before: Timestamp) -> (u64, u64) {
        let files = TABLES.iter().flat_map(|table| self.immutable(table));
        let old = files.filter(|file| is_older(file, Some(before.as_millis())));
        old.fold((0, 0), |(rows, bytes), file| (rows + file.rows, bytes + file.bytes))
    }
}
