//! Deployments before the current one, and the definitions that each of them had.

use std::collections::BTreeMap;

use servo_core::EventId;
use servo_engine::rows::{
    DefinitionChange, DefinitionKind, DefinitionVersionRow, DeploymentRow, ReadFrom, Row,
};

use crate::batch::Batch;
use crate::error::Error;
use crate::immutable::Cursor;
use crate::manifest::FileRef;
use crate::projection::Projection;

/// The definitions of a deployment, by kind and name. Each has its JSON.
pub type DefinitionsAsOf = BTreeMap<(DefinitionKind, String), DefinitionVersionRow>;

impl Projection {
    /// Deployments that were followed by another and are accepted, from the newest to the oldest, beginning before an
    /// event.
    pub async fn deployments_before(
        &self,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&DeploymentRow) -> bool,
    ) -> Result<Vec<DeploymentRow>, Error> {
        let mut files: Vec<&FileRef> = self.manifest.immutable(DeploymentRow::TABLE).iter().collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.max_key));
        let mut found: Vec<DeploymentRow> = Vec::new();
        for file in files {
            if found.len() >= limit && file.max_key < found.get(limit - 1).map(Row::sort_key) {
                break;
            }
            if before.is_some_and(|before| file.min_key.is_some_and(|oldest| oldest >= before)) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let rows = DeploymentRow::read_rows(&batch, 0..batch.len())?;
                let is_wanted = |row: &DeploymentRow| {
                    before.is_none_or(|before| row.row_version < before) && accepts(row)
                };
                found.extend(rows.into_iter().filter(is_wanted));
            }
            found.sort_by_key(|row| std::cmp::Reverse(row.row_version));
            found.dedup_by_key(|row| row.row_version);
            found.truncate(limit);
        }
        Ok(found)
    }

    /// The definitions that a deployment had. Reads every version up to it: for comparing and returning, not for pages.
    pub async fn definitions_as_of(&self, number: u64) -> Result<DefinitionsAsOf, Error> {
        let mut found = DefinitionsAsOf::new();
        for file in self.manifest.immutable(DefinitionVersionRow::TABLE) {
            let mut cursor = Cursor::<DefinitionVersionRow>::open(&self.files, file).await?;
            while let Some(row) = cursor.next().await? {
                if row.deployment_number > number {
                    continue;
                }
                let place = (row.kind.0, row.name.clone());
                let is_older = |known: &DefinitionVersionRow| known.row_version > row.row_version;
                if !found.get(&place).is_some_and(is_older) {
                    found.insert(place, row);
                }
            }
        }
        found.retain(|_, row| row.change.0 != DefinitionChange::Removed);
        Ok(found)
    }

    /// Versions of one definition, from the newest to the oldest, beginning before an event.
    pub async fn definition_versions(
        &self,
        kind: DefinitionKind,
        name: &str,
        before: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersionRow>, Error> {
        self.newest_of(name, before, limit, |row: &DefinitionVersionRow| row.kind.0 == kind).await
    }
}
