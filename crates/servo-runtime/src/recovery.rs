//! Recovery: newest manifest, base, L0, then the tail of the log. Never the history.

use std::sync::Arc;

use futures::TryStreamExt;
use servo_core::planted::{self, Mistake};
use servo_engine::State;
use servo_engine::event::decode_batch;
use servo_projections::rebuild::{RebuildContext, RebuildOptions, rebuild};
use servo_projections::{Manifest, Projection};
use servo_store::{ErrorKind, Log};

use crate::config::{Config, Stores};
use crate::error::Error;

/// A state that equals the log, and the highest writer epoch seen on the way.
pub(crate) struct Recovered {
    pub(crate) state: State,
    pub(crate) epoch: u64,
    /// The tables it was loaded from.
    pub(crate) manifest: Option<Arc<Manifest>>,
}

impl Recovered {
    /// Refuses a log with events that this version does not know: deciding without them could undo what they say.
    pub(crate) fn writable(self, stores: &Stores) -> Result<Self, Error> {
        match self.state.newer_event() {
            None => Ok(self),
            Some(event) => Err(Error::NewerLog { log: stores.log.describe(), event: event.clone() }),
        }
    }
}

/// Loads the newest state. Damaged tables are rebuilt from the log.
pub(crate) async fn recover(stores: &Stores, config: &Config) -> Result<Recovered, Error> {
    match from_tables(stores).await {
        Err(Error::Projection(error)) if error.kind() == ErrorKind::Corrupt => {
            tracing::warn!(%error, "tables are damaged, rebuilding them from the log");
            rebuild(
                stores.log.as_ref(),
                &rebuild_context(stores, config),
                &RebuildOptions::default(),
                &mut |_| {},
            )
            .await?;
            from_tables(stores).await
        }
        other => other,
    }
}

/// The context for building and sweeping tables.
pub(crate) fn rebuild_context(stores: &Stores, config: &Config) -> RebuildContext {
    RebuildContext {
        blobs: stores.blobs.clone(),
        layout: stores.layout.clone(),
        put_ids: config.put_ids.clone(),
        clock: config.clock.clone(),
    }
}

/// The newest tables, then the tail of the log.
pub(crate) async fn from_tables(stores: &Stores) -> Result<Recovered, Error> {
    let newest = async || Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await;
    let mut projection = newest().await?;
    loop {
        match load(stores, projection.as_ref()).await {
            Err(problem) if may_be_outdated(&problem) => {
                // Whoever reads slowly finds gone what newer tables do without.
                let now = newest().await?;
                let revision = |tables: &Option<Projection>| tables.as_ref().map(|it| it.manifest().revision);
                if revision(&now) == revision(&projection) {
                    return Err(problem);
                }
                projection = now;
            }
            other => return other,
        }
    }
}

/// Whether the problem is a file that may have been deleted while it was read.
fn may_be_outdated(problem: &Error) -> bool {
    let tables = matches!(problem, Error::Projection(error) if error.kind() == ErrorKind::Corrupt);
    let log = matches!(problem, Error::Log(error) if error.kind() == ErrorKind::NotFound);
    tables || log
}

async fn load(stores: &Stores, projection: Option<&Projection>) -> Result<Recovered, Error> {
    let (tenant, workspace) = (stores.layout.tenant().clone(), stores.layout.workspace().clone());
    let (mut state, mut epoch) = match projection {
        Some(projection) => {
            let (rows, statuses) = projection.restorable().await?;
            let state = State::from_rows_and(tenant, workspace, rows, statuses)?;
            (state, projection.manifest().epoch)
        }
        None => (State::new(tenant, workspace), 0),
    };
    let (tables, next) = (state.head().seq, stores.log.next_seq().await?);
    if next <= tables {
        return Err(Error::LogBehind { log: stores.log.describe(), last: next - 1, tables });
    }
    epoch = epoch.max(replay(stores.log.as_ref(), &mut state).await?);
    Ok(Recovered { state, epoch, manifest: projection.map(|projection| projection.manifest().clone()) })
}

/// Folds everything after `state`; returns the highest epoch among it.
async fn replay(log: &dyn Log, state: &mut State) -> Result<u64, Error> {
    let mut epoch = 0;
    let mut from = state.head().seq + 1;
    if planted::has(Mistake::CursorByMaxId) && from > 1 {
        from = from.max(log.next_seq().await?.saturating_sub(2));
    }
    let mut tail = log.read(from);
    while let Some(record) = tail.try_next().await? {
        let events = decode_batch(&record.payload).map_err(|error| Error::Batch {
            log: log.describe(),
            seq: record.seq,
            problem: error.to_string(),
        })?;
        state.apply_batch(record.seq, &events);
        epoch = epoch.max(record.epoch);
    }
    Ok(epoch)
}
