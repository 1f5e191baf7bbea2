//! Retention: surveys what the rules do not keep any more, and has the engine decide that it goes (ADR-106).
//!
//! Superseded data is found in the tables, logs among their files, quarantined outputs in the state. The rules are
//! those of [`servo_engine::retention`]; removals are effects of the event that the engine decides.

use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use futures::StreamExt;
use servo_core::{MaterializationId, Timestamp};
use servo_engine::event::ExpiredData;
use servo_engine::retention::{expired_quarantine, history_before, logs_before, removable, superseded};
use servo_engine::{ApplyRetention, Caller, Change, Principal};
use servo_store::DataError;

use crate::attempt_logs::Amount;
use crate::error::Error;
use crate::log_retention::log_boundary;
use crate::spawner::Spawner;
use crate::workspace::{Inner, Workspace};

/// Materializations that one event removes at most: it stays far below 64 kB.
const MAX_REMOVED: usize = 250;

/// How often a server looks whether something is to be removed.
const EVERY: Duration = Duration::from_secs(3_600);

/// Something that is kept for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Logs of attempts.
    Logs,
    /// Data of materializations that are not the latest of their partition.
    Superseded,
    /// Outputs that wait for review.
    Quarantined,
    /// Rows of ended runs, of results of checks and of the audit.
    History,
    /// Batches of the ledger.
    Ledger,
}

impl Kept {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Logs, Self::Superseded, Self::Quarantined, Self::History, Self::Ledger];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Superseded => "superseded",
            Self::Quarantined => "quarantined",
            Self::History => "history",
            Self::Ledger => "ledger",
        }
    }

    /// The settings that say how long.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Logs => &["keep_logs"],
            Self::Superseded => &["keep_superseded", "keep_superseded_versions"],
            Self::Quarantined => &["keep_quarantined"],
            Self::History => &["keep_history"],
            Self::Ledger => &["keep_ledger_batches"],
        }
    }
}

/// A survey of what the rules do not keep at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// When it was made.
    pub at: Timestamp,
    /// How much of each kind goes.
    pub kinds: Vec<(Kept, Amount)>,
    /// The materializations whose data goes, oldest first.
    pub superseded: Vec<ExpiredData>,
}

impl Survey {
    /// How much of a kind goes.
    pub fn amount(&self, kind: Kept) -> Amount {
        self.kinds.iter().find(|(known, _)| *known == kind).map(|(_, amount)| *amount).unwrap_or_default()
    }
}

impl Workspace {
    /// Surveys what the rules do not keep any more. Changes nothing.
    pub async fn survey_retention(&self) -> Result<Survey, Error> {
        let at = self.now();
        let superseded = self.superseded(at).await?;
        let (quarantined, logs_before) = self
            .read(move |state| {
                let sizes: Vec<u64> =
                    expired_quarantine(state, at).map(|row| row.output.0.byte_size.unwrap_or(0)).collect();
                (Amount { items: sizes.len() as u64, bytes: sizes.iter().sum() }, logs_before(state, at))
            })
            .await?;
        let logs = match (&self.inner.logs, logs_before) {
            (Some(logs), Some(before)) => logs.older_than(before).await.map_err(DataError::Files)?,
            (Some(_) | None, None) | (None, Some(_)) => Amount::default(),
        };
        let data = Amount {
            items: superseded.len() as u64,
            bytes: superseded.iter().map(|data| data.byte_size.unwrap_or(0)).sum(),
        };
        let kinds = vec![
            (Kept::Logs, logs),
            (Kept::Superseded, data),
            (Kept::Quarantined, quarantined),
            (Kept::History, self.old_history(at).await?),
            (Kept::Ledger, self.old_batches().await?),
        ];
        Ok(Survey { at, kinds, superseded })
    }

    /// Has the engine decide that what the rules do not keep goes; answers when that is durable, with what was found
    /// and the first event. The removal itself follows, and is repeated after a crash.
    pub async fn apply_retention(&self, caller: Caller) -> Result<(Survey, Change), Error> {
        let survey = self.survey_retention().await?;
        let mut logs = survey.amount(Kept::Logs).items > 0;
        let mut change = Change::Duplicate;
        let mut asks = caller;
        let chunks: Vec<&[ExpiredData]> = survey.superseded.chunks(MAX_REMOVED).collect();
        // Without any data there may still be logs, and outputs that wait for review.
        let chunks = if chunks.is_empty() { vec![&[][..]] } else { chunks };
        for superseded in chunks {
            let principal = asks.principal.clone();
            let command = ApplyRetention { superseded: superseded.to_vec(), logs, caller: asks };
            let decided = self.ask(command).await?;
            change = if change == Change::Duplicate { decided } else { change };
            logs = false;
            // The first event answers the request; the others belong to it.
            asks = principal.into();
        }
        Ok((survey, change))
    }

    /// Rows of history that go with the next tables.
    async fn old_history(&self, at: Timestamp) -> Result<Amount, Error> {
        let before = self.read(|state| history_before(state.settings(), at)).await?;
        let found = self.manifest().zip(before).map(|(manifest, before)| manifest.history_before(before));
        let (items, bytes) = found.unwrap_or_default();
        Ok(Amount { items, bytes })
    }

    /// Batches that go with the next tables, and the bytes of their events. Only on demand: it reads them.
    async fn old_batches(&self) -> Result<Amount, Error> {
        let keep = self.read(|state| state.settings().keep_ledger_batches as u64).await?;
        let log = &self.inner.stores.log;
        let (boundary, tables) = (log.boundary().await?, self.manifest().map(|it| it.watermarks.last_seq));
        let before = tables.and_then(|tables| log_boundary(tables, boundary, (keep > 0).then_some(keep)));
        let mut found = Amount::default();
        let Some(before) = before else { return Ok(found) };
        let mut batches = log.read(boundary);
        while let Some(record) = batches.next().await.transpose()? {
            if record.seq >= before {
                break;
            }
            found = Amount { items: found.items + 1, bytes: found.bytes + record.payload.len() as u64 };
        }
        Ok(found)
    }

    /// Superseded data that the rules do not keep and that nothing needs, as far as the tables know it.
    async fn superseded(&self, at: Timestamp) -> Result<Vec<ExpiredData>, Error> {
        let Some(projection) = self.projection() else { return Ok(Vec::new()) };
        let made = projection.kept_data().await?;
        let found = self.read(move |state| superseded(state, at, made)).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let latest = self.read(|state| {
            let assets = state.attempted_assets().map(|(asset, _)| asset);
            let statuses = assets.flat_map(|asset| state.partition_statuses(asset));
            statuses.filter_map(|(_, status)| Some(status.latest()?.id())).collect()
        });
        let latest: BTreeSet<MaterializationId> = latest.await?;
        let read = projection.read_for(&latest).await?;
        self.read(move |state| removable(state, found, &read)).await
    }
}

/// Applies retention every hour for as long as the workspace is open.
pub(crate) async fn apply_regularly(workspace: Weak<Inner>, spawner: std::sync::Arc<dyn Spawner>) {
    loop {
        spawner.sleep(EVERY).await;
        let Some(inner) = workspace.upgrade() else { return };
        let workspace = Workspace { inner };
        if !workspace.is_open() {
            return;
        }
        if let Err(error) = workspace.apply_retention(Principal::system().into()).await {
            tracing::warn!(%error, "retention could not be applied, it will be tried again in an hour");
        }
    }
}
