//! Reconciling without a server: state from the tables, decisions into the log, tables again (INV-7).

use std::sync::Arc;

use bytes::Bytes;
use servo_core::Clock;
use servo_engine::event::encode_batch;
use servo_engine::{Dispatch, Effect, Engine, State, effect};
use servo_projections::{Compactor, Limits, Projection};
use servo_store::{DataError, PutIds, Record};

use crate::config::Stores;
use crate::data::Data;
use crate::effects::{SetAside, files};
use crate::error::Error;
use crate::recovery::{Recovered, from_tables};

/// The result of one reconciliation of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// Last batch in the tables before.
    pub projected_seq: u64,
    /// Batches in the log that the tables do not have. While there are any, nothing is decided: what looks overdue may
    /// have been heard of in them (INV-9).
    pub lag: u64,
    /// Events appended.
    pub events: usize,
    /// Attempts that a queue should hold now.
    pub dispatches: Vec<Dispatch>,
}

/// Reconciles once: reads the tables, decides, and writes the tables. The log is appended to, never read.
pub async fn reconcile_once(
    stores: &Stores,
    secret: Arc<[u8]>,
    clock: &dyn Clock,
    put_ids: Arc<dyn PutIds>,
) -> Result<Reconciled, Error> {
    let (tenant, workspace) = (stores.layout.tenant().clone(), stores.layout.workspace().clone());
    let projection = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await?;
    let (state, epoch) = match &projection {
        Some(projection) => {
            let rows = projection.hot_rows().await?;
            let state = State::from_rows(tenant, workspace, rows)?;
            (state, projection.manifest().epoch)
        }
        None => (State::new(tenant, workspace), 0),
    };
    let projected_seq = state.head().seq;
    let lag = stores.log.next_seq().await?.saturating_sub(projected_seq + 1);
    if lag > 0 {
        return Ok(Reconciled { projected_seq, lag, events: 0, dispatches: Vec::new() });
    }
    let mut engine = Engine::new(state, secret);
    let now = clock.now();
    let step = engine.reconcile(now);
    let events = step.events.len();
    if !step.events.is_empty() {
        let mut payload = Vec::new();
        encode_batch(&step.events, &mut payload);
        let seq = engine.state().head().seq;
        let record = Record { seq, epoch, put_id: put_ids.next(), payload: Bytes::from(payload) };
        stores.log.append(record).await.map_err(|error| Error::NotDurable(Arc::new(error)))?;
        flush(stores, put_ids, epoch, engine.state_mut(), step.effects, clock).await?;
    }
    Ok(Reconciled { projected_seq, lag, events, dispatches: effect::outstanding(engine.state()) })
}

/// Brings the tables up to the end of the log, as the compactor of a server does; returns by how many batches. For the
/// batches of a process that died between its append and its flush.
pub async fn catch_up(stores: &Stores, clock: &dyn Clock, put_ids: Arc<dyn PutIds>) -> Result<u64, Error> {
    let Recovered { state, epoch, manifest } = from_tables(stores).await?.writable(stores)?;
    let behind = state.head().seq - manifest.map_or(0, |manifest| manifest.watermarks.last_seq);
    if behind > 0 {
        let mut engine = Engine::new(state, []);
        let effects = engine.recovered_effects();
        flush(stores, put_ids, epoch, engine.state_mut(), effects, clock).await?;
    }
    Ok(behind)
}

/// Data follows the log before the tables do.
async fn flush(
    stores: &Stores,
    put_ids: Arc<dyn PutIds>,
    epoch: u64,
    state: &mut State,
    effects: Vec<Effect>,
    clock: &dyn Clock,
) -> Result<(), Error> {
    let now = clock.now();
    if let Some(root) = stores.data.clone() {
        let data = Data { root, layout: stores.layout.clone() };
        let set_aside = SetAside::load(stores.blobs.clone(), state).await.map_err(DataError::from)?;
        for stuck in files::follow(&data, set_aside, clock, effects).await? {
            tracing::warn!(
                path = stuck.path,
                problem = stuck.problem,
                "this cannot be written, it is tried again later"
            );
        }
    }
    let (blobs, layout) = (stores.blobs.clone(), stores.layout.clone());
    let mut compactor = Compactor::open(blobs, layout, epoch, Limits::default(), put_ids).await?;
    compactor.flush(state.take_delta(), now).await?;
    Ok(())
}
