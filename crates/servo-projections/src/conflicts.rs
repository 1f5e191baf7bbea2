//! Requests that reused a run key, by page, the newest first.

use servo_core::EventId;
use servo_engine::rows::{ReadFrom, Row, RunKeyConflictRow};

use crate::batch::Batch;
use crate::error::Error;
use crate::projection::Projection;

impl Projection {
    /// Conflicts of run keys before an event, the newest first.
    pub async fn conflicts_before(
        &self,
        before: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<RunKeyConflictRow>, Error> {
        let is_before = |event: EventId| before.is_none_or(|before| event < before);
        let mut page: Vec<RunKeyConflictRow> = Vec::new();
        for file in self.manifest.immutable(RunKeyConflictRow::TABLE).iter().rev() {
            if page.len() >= limit {
                break;
            }
            if file.min_key.is_some_and(|oldest| !is_before(oldest)) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in (0..open.groups()).rev() {
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let found = RunKeyConflictRow::read_rows(&batch, (0..batch.len()).rev())?;
                page.extend(found.into_iter().filter(|row| is_before(row.row_version)));
                if page.len() >= limit {
                    break;
                }
            }
        }
        page.dedup();
        page.truncate(limit);
        Ok(page)
    }
}
