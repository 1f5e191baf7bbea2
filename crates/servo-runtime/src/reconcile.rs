//! Reconciling without a server: state from the tables, decisions into the log, tables again (INV-7).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use servo_core::{Clock, RunId};
use servo_engine::controllers::notifications::Notifying;
use servo_engine::evaluation::{Evaluated, Evaluation, EvaluationReport};
use servo_engine::event::encode_batch;
use servo_engine::notification::{Delivery, Notified};
use servo_engine::{Dispatch, Effect, Engine, Input, State, Step, StoredRunKey, effect};
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
    /// Calls of functions that somebody should make now.
    pub evaluations: Vec<Evaluation>,
    /// Notifications that somebody should send now.
    pub notifications: Vec<Delivery>,
}

/// Reconciles once: reads the tables, decides, and writes the tables. The log is appended to, never read.
pub async fn reconcile_once(
    stores: &Stores,
    secret: Arc<[u8]>,
    clock: &dyn Clock,
    put_ids: Arc<dyn PutIds>,
) -> Result<Reconciled, Error> {
    let tables = Tables::open(stores).await?;
    if tables.lag > 0 {
        return Ok(tables.lagging());
    }
    let mut engine = engine(tables.state, secret);
    let step = engine.reconcile(clock.now());
    write(stores, clock, put_ids, tables.epoch, tables.projected_seq, engine, step).await
}

/// The same with results of evaluations that it has asked for: what follows from them is decided.
pub async fn answer_evaluations(
    stores: &Stores,
    secret: Arc<[u8]>,
    clock: &dyn Clock,
    put_ids: Arc<dyn PutIds>,
    answers: Vec<(Evaluation, EvaluationReport)>,
) -> Result<Reconciled, Error> {
    let tables = Tables::open(stores).await?;
    if tables.lag > 0 {
        return Ok(tables.lagging());
    }
    let mut inputs = Vec::with_capacity(answers.len());
    for (evaluation, report) in answers {
        let mut stored_keys = BTreeMap::new();
        for key in report.run_keys(evaluation.subject) {
            let (tenant, workspace) = (stores.layout.tenant(), stores.layout.workspace());
            let run = RunId::derive(&secret, tenant, workspace, &key);
            let stored = match &tables.projection {
                Some(projection) => projection.run_key(run).await?,
                None => StoredRunKey::default(),
            };
            stored_keys.insert(key, stored);
        }
        let Evaluation { evaluation_id, subject, .. } = evaluation;
        inputs.push(Input::Evaluated(Evaluated { evaluation_id, subject, report, stored_keys }));
    }
    let mut engine = engine(tables.state, secret);
    let step = engine.step(&inputs, clock.now());
    write(stores, clock, put_ids, tables.epoch, tables.projected_seq, engine, step).await
}

/// The same with what came of notifications that it has asked for.
pub async fn answer_notifications(
    stores: &Stores,
    secret: Arc<[u8]>,
    clock: &dyn Clock,
    put_ids: Arc<dyn PutIds>,
    answers: Vec<Notified>,
) -> Result<Reconciled, Error> {
    let tables = Tables::open(stores).await?;
    if tables.lag > 0 {
        return Ok(tables.lagging());
    }
    let inputs: Vec<Input> = answers.into_iter().map(Input::Notified).collect();
    let mut engine = engine(tables.state, secret);
    let step = engine.step(&inputs, clock.now());
    write(stores, clock, put_ids, tables.epoch, tables.projected_seq, engine, step).await
}

/// Nobody else may stay, so that everything is told.
fn engine(state: State, secret: Arc<[u8]>) -> Engine {
    let mut engine = Engine::new(state, secret);
    engine.set_notifying(Notifying::Everything);
    engine
}

/// The state as the tables have it.
struct Tables {
    state: State,
    epoch: u64,
    projected_seq: u64,
    lag: u64,
    projection: Option<Projection>,
}

impl Tables {
    async fn open(stores: &Stores) -> Result<Self, Error> {
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
        Ok(Self { state, epoch, projected_seq, lag, projection })
    }

    fn lagging(&self) -> Reconciled {
        let (projected_seq, lag) = (self.projected_seq, self.lag);
        Reconciled {
            projected_seq,
            lag,
            events: 0,
            dispatches: Vec::new(),
            evaluations: Vec::new(),
            notifications: Vec::new(),
        }
    }
}

/// Appends what was decided, and brings the tables up to it.
async fn write(
    stores: &Stores,
    clock: &dyn Clock,
    put_ids: Arc<dyn PutIds>,
    epoch: u64,
    projected_seq: u64,
    mut engine: Engine,
    step: Step,
) -> Result<Reconciled, Error> {
    let events = step.events.len();
    if !step.events.is_empty() {
        let mut payload = Vec::new();
        encode_batch(&step.events, &mut payload);
        let seq = engine.state().head().seq;
        let record = Record { seq, epoch, put_id: put_ids.next(), payload: Bytes::from(payload) };
        stores.log.append(record).await.map_err(|error| Error::NotDurable(Arc::new(error)))?;
        flush(stores, put_ids, epoch, engine.state_mut(), step.effects, clock).await?;
    }
    let dispatches = effect::outstanding(engine.state());
    let evaluations = effect::evaluations(engine.state()).collect();
    let notifications = effect::deliveries(engine.state()).collect();
    Ok(Reconciled { projected_seq, lag: 0, events, dispatches, evaluations, notifications })
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
