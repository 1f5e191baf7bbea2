//! Looks run keys up in the tables before the engine decides about them, and lists their conflicts (ADR-089).

use servo_core::{EventId, RunId};
use servo_engine::rows::RunKeyConflictRow;
use servo_engine::{Refusal, RunReply, StoredRunKey, TriggerRun};
use servo_store::ErrorKind;

use crate::error::Error;
use crate::workspace::Workspace;

impl Workspace {
    /// Starts a run; returns when the request is durable. The same request again returns the same run, for ever.
    pub async fn trigger(&self, mut request: TriggerRun) -> Result<RunReply, Error> {
        let layout = &self.inner.stores.layout;
        let run = RunId::derive(&self.inner.secret, layout.tenant(), layout.workspace(), &request.run_key);
        loop {
            request.stored_key = self.stored_key(run).await?;
            match self.ask(request.clone()).await {
                // Newer tables were published meanwhile, and memory has dropped what they have.
                Err(Error::Refused(Refusal::StaleRunKey { .. })) => {}
                answered => return answered,
            }
        }
    }

    /// Looks the key of a run up in the newest tables.
    pub(crate) async fn stored_key(&self, run: RunId) -> Result<StoredRunKey, Error> {
        loop {
            let Some(tables) = self.projection() else { return Ok(StoredRunKey::default()) };
            match tables.run_key(run).await {
                // Files may have been merged away while they were read: then there are newer tables.
                Err(error)
                    if error.kind() == ErrorKind::Corrupt && self.is_outdated(tables.manifest().revision) => {
                }
                looked_up => return Ok(looked_up?),
            }
        }
    }

    fn is_outdated(&self, revision: u64) -> bool {
        self.inner.flushes.manifest().is_some_and(|newest| newest.revision > revision)
    }

    /// Requests that reused a run key for something else, before an event, the newest first.
    pub async fn conflicts(
        &self,
        before: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<RunKeyConflictRow>, Error> {
        let is_wanted = |row: &&RunKeyConflictRow| before.is_none_or(|before| row.row_version < before);
        let mut found: Vec<RunKeyConflictRow> =
            self.read(|state| state.conflicts_unwritten().filter(is_wanted).cloned().collect()).await?;
        for moving in self.inner.flushes.in_flight() {
            found.extend(moving.conflicts.iter().filter(is_wanted).cloned());
        }
        if let Some(tables) = self.projection() {
            found.extend(tables.conflicts_before(before, limit).await?);
        }
        found.sort_by_key(|row| std::cmp::Reverse(row.row_version));
        found.dedup_by_key(|row| row.row_version);
        found.truncate(limit);
        Ok(found)
    }
}
