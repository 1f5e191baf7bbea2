//! Reconciling without a server: state from Parquet, decisions into the log, nothing read from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use servo_core::{ManualClock, Millis, Timestamp};
use servo_engine::event::encode_batch;
use servo_engine::{
    Attempt, Engine, ErrorCode, EventData, Input, Report, RetryPolicy, Settings, State, TaskError,
    TaskOptions, TaskState, TriggerRun,
};
use servo_projections::{Compactor, Limits, Projection};
use servo_runtime::{Error, Reconciled, Stores, catch_up, reconcile_once};
use servo_store::{AppendError, Log, MemoryFault, MemoryLog, ReadError, Record, Seq, SystemPutIds};

use crate::support::*;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A log that counts how often it is read.
struct Counting {
    inner: MemoryLog,
    reads: AtomicUsize,
}

#[async_trait]
impl Log for Counting {
    async fn append(&self, record: Record) -> Result<(), AppendError> {
        self.inner.append(record).await
    }
    fn read(&self, from: Seq) -> BoxStream<'_, Result<Record, ReadError>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.read(from)
    }
    async fn next_seq(&self) -> Result<Seq, ReadError> {
        self.inner.next_seq().await
    }
    async fn boundary(&self) -> Result<Seq, ReadError> {
        self.inner.boundary().await
    }
    async fn truncate_before(&self, seq: Seq) -> Result<(), AppendError> {
        self.inner.truncate_before(seq).await
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
}

/// A workspace without a server: its log, its tables, and a clock.
struct Unattended {
    log: MemoryLog,
    counting: Arc<Counting>,
    stores: Stores,
    clock: ManualClock,
    /// Decides what is in the log, as some other process did before.
    engine: Engine,
}

impl Unattended {
    fn new() -> Self {
        let (log, stores) = memory();
        let counting = Arc::new(Counting { inner: log.clone(), reads: AtomicUsize::new(0) });
        let stores = Stores { log: counting.clone(), ..stores };
        // No slots: whatever becomes ready stays ready.
        let settings = Settings { max_concurrent_tasks: 0, ..Settings::default() };
        let engine = Engine::new(State::new(tenant(), workspace_id()).with_settings(&settings), secret());
        Self { log, counting, stores, clock: ManualClock::new(START), engine }
    }

    async fn step(&mut self, input: Input) {
        let now = servo_core::Clock::now(&self.clock);
        let step = self.engine.step(&[input], now);
        assert!(!step.events.is_empty());
        let mut payload = Vec::new();
        encode_batch(&step.events, &mut payload);
        let seq = self.engine.state().head().seq;
        let record = Record { seq, epoch: 1, put_id: put_id(), payload: Bytes::from(payload) };
        self.log.append(record).await.unwrap();
    }

    async fn flush(&mut self) {
        let limits = Limits::default();
        let put_ids = Arc::new(SystemPutIds::default());
        let mut compactor =
            Compactor::open(self.stores.blobs.clone(), layout(), 1, limits, put_ids).await.unwrap();
        let now = servo_core::Clock::now(&self.clock);
        compactor.flush(self.engine.state_mut().take_delta(), now).await.unwrap();
    }

    async fn catch_up(&self) -> Result<u64, Error> {
        let put_ids = Arc::new(SystemPutIds::default());
        catch_up(&self.stores, &self.clock, put_ids).await
    }

    async fn reconcile(&self) -> Result<Reconciled, Error> {
        let put_ids = Arc::new(SystemPutIds::default());
        reconcile_once(&self.stores, secret(), &self.clock, put_ids).await
    }

    async fn revision(&self) -> Option<u64> {
        let projection = Projection::open_latest(self.stores.blobs.clone(), layout()).await.unwrap();
        projection.map(|projection| projection.manifest().revision)
    }

    /// The state in the tables, which must equal the log's.
    async fn tables(&self) -> State {
        let projection = Projection::open_latest(self.stores.blobs.clone(), layout()).await.unwrap().unwrap();
        let rows = projection.hot_rows().await.unwrap();
        let replayed = replay(&self.log, rows.head.seq).await;
        assert_same_rows(&rows, &replayed.rows());
        State::from_rows(tenant(), workspace_id(), rows).unwrap()
    }

    fn trigger(key: &str, options: TaskOptions) -> Input {
        let plan = plan_of(vec![request("a", &[], options), request("b", &["a"], TaskOptions::default())]);
        Input::Trigger(TriggerRun::new(key, plan, "test"))
    }

    fn assert_log_was_not_read(&self) {
        assert_eq!(self.counting.reads.load(Ordering::SeqCst), 0, "controllers never read the log");
    }
}

#[tokio::test]
async fn inv_7_a_ready_task_is_dispatched_from_the_tables_alone() {
    let mut workspace = Unattended::new();
    workspace.step(Unattended::trigger("one", TaskOptions::default())).await;
    workspace.flush().await;
    let done = workspace.reconcile().await.unwrap();
    workspace.assert_log_was_not_read();
    assert_eq!((done.projected_seq, done.lag, done.events), (1, 0, 1));
    assert_eq!(done.dispatches.len(), 1);
    let Attempt { run_id, task_key, attempt, .. } = done.dispatches[0].attempt.clone();
    assert_eq!((task_key.clone(), attempt), (task("a"), 1));
    let last = events(&workspace.log).await.pop().unwrap();
    assert!(matches!(last.data, EventData::DispatchRequested(_)), "{last:?}");
    let state = workspace.tables().await;
    assert_eq!(state.head().seq, 2, "the tables have what was decided");
    assert!(state.task(run_id, &task_key).unwrap().has_open_attempt());
}

#[tokio::test]
async fn inv_3_reconciling_twice_changes_nothing_the_second_time() {
    let mut workspace = Unattended::new();
    workspace.step(Unattended::trigger("one", TaskOptions::default())).await;
    workspace.step(Unattended::trigger("two", TaskOptions::default())).await;
    workspace.flush().await;
    let first = workspace.reconcile().await.unwrap();
    assert_eq!((first.events, first.dispatches.len()), (2, 2));
    let (next, revision) = (workspace.log.next_seq().await.unwrap(), workspace.revision().await);
    for _ in 0..3 {
        let again = workspace.reconcile().await.unwrap();
        assert_eq!((again.events, again.lag), (0, 0));
        assert_eq!(again.dispatches, first.dispatches, "what a queue should hold is said again: INV-4");
    }
    assert_eq!(workspace.log.next_seq().await.unwrap(), next);
    assert_eq!(workspace.revision().await, revision);
    workspace.assert_log_was_not_read();
}

/// A run whose first task has failed once and waits for a minute.
async fn waiting_for_a_retry() -> Unattended {
    let mut workspace = Unattended::new();
    let retry =
        RetryPolicy { jitter_ppm: 0, initial_delay_ms: Millis::from_minutes(1), ..RetryPolicy::default() };
    let options = TaskOptions { retry: Some(retry), ..TaskOptions::default() };
    workspace.step(Unattended::trigger("one", options)).await;
    workspace.flush().await;
    let attempt = workspace.reconcile().await.unwrap().dispatches[0].attempt.clone();
    for record in records(&workspace.log).await {
        if record.seq > workspace.engine.state().head().seq {
            let events = servo_engine::event::decode_batch(&record.payload).unwrap();
            workspace.engine.state_mut().apply_batch(record.seq, &events);
        }
    }
    workspace.flush().await;
    workspace.step(Input::Started(attempt.clone(), "worker".into())).await;
    let failure = Report::failed(TaskError::new(ErrorCode::UserCodeException, "no"));
    workspace.step(Input::Finished(attempt, failure)).await;
    workspace
}

#[tokio::test]
async fn inv_7_a_retry_timer_fires_when_it_is_due_and_not_before() {
    let mut workspace = waiting_for_a_retry().await;
    workspace.flush().await;
    workspace.clock.advance(Millis::from_secs(59));
    let early = workspace.reconcile().await.unwrap();
    assert_eq!((early.events, early.dispatches.len()), (0, 0));
    workspace.clock.advance(Millis::from_secs(2));
    let due = workspace.reconcile().await.unwrap();
    assert_eq!(due.events, 2, "fired, and dispatched");
    assert_eq!(due.dispatches[0].attempt.attempt, 2);
    workspace.assert_log_was_not_read();
    let state = workspace.tables().await;
    let run = state.runs().next().unwrap();
    let states: Vec<TaskState> = run.tasks.iter().map(|task| task.state).collect();
    assert_eq!(states, [TaskState::Ready, TaskState::Blocked]);
}

#[tokio::test]
async fn inv_9_nothing_is_decided_while_the_tables_lag_behind_the_log() {
    let mut workspace = waiting_for_a_retry().await;
    // The tables still show the attempt as dispatched and long overdue; the log knows better.
    workspace.clock.advance(Millis::from_hours(1));
    let (next, revision) = (workspace.log.next_seq().await.unwrap(), workspace.revision().await);
    let lagging = workspace.reconcile().await.unwrap();
    assert_eq!(lagging.lag, 2);
    assert_eq!((lagging.events, lagging.dispatches.len()), (0, 0));
    assert_eq!(workspace.log.next_seq().await.unwrap(), next, "no timer fired on a stale reading");
    assert_eq!(workspace.revision().await, revision);
    workspace.flush().await;
    let fresh = workspace.reconcile().await.unwrap();
    assert_eq!((fresh.lag, fresh.events), (0, 2), "once they have caught up, it does");
    workspace.assert_log_was_not_read();
}

#[tokio::test]
async fn a_concurrent_append_makes_it_fail_and_change_nothing() {
    let mut workspace = Unattended::new();
    workspace.step(Unattended::trigger("one", TaskOptions::default())).await;
    workspace.flush().await;
    let (before, revision) = (records(&workspace.log).await, workspace.revision().await);
    workspace.log.plan([Some(MemoryFault::TakenBySomebodyElse)]);
    let error = workspace.reconcile().await.unwrap_err();
    let Error::NotDurable(cause) = &error else { panic!("{error}") };
    assert!(matches!(**cause, AppendError::Conflict { .. }), "{error}");
    assert!(error.is_transient());
    let after = records(&workspace.log).await;
    assert_eq!(after.len(), before.len() + 1, "only the other's batch");
    assert_eq!(after[..before.len()], before);
    assert_eq!(workspace.revision().await, revision);
    workspace.assert_log_was_not_read();
}

#[tokio::test]
async fn a_store_that_refuses_leaves_everything_as_it_was() {
    let mut workspace = Unattended::new();
    workspace.step(Unattended::trigger("one", TaskOptions::default())).await;
    workspace.flush().await;
    let (next, revision) = (workspace.log.next_seq().await.unwrap(), workspace.revision().await);
    workspace.log.plan([Some(MemoryFault::Full)]);
    let error = workspace.reconcile().await.unwrap_err().to_string();
    assert!(error.contains("no space left"), "{error}");
    assert_eq!((workspace.log.next_seq().await.unwrap(), workspace.revision().await), (next, revision));
    assert_eq!(workspace.reconcile().await.unwrap().events, 1, "and the next try does it");
}

#[tokio::test]
async fn an_empty_workspace_has_nothing_to_do() {
    let workspace = Unattended::new();
    let done = workspace.reconcile().await.unwrap();
    assert_eq!((done.projected_seq, done.lag, done.events), (0, 0, 0));
    assert!(done.dispatches.is_empty() && done.evaluations.is_empty());
    workspace.assert_log_was_not_read();
}

#[tokio::test]
async fn catching_up_lets_a_lagging_workspace_go_on() {
    let workspace = waiting_for_a_retry().await;
    workspace.clock.advance(Millis::from_hours(1));
    assert_eq!(workspace.catch_up().await.unwrap(), 2);
    assert_eq!(workspace.catch_up().await.unwrap(), 0, "once is enough");
    let done = workspace.reconcile().await.unwrap();
    assert_eq!((done.lag, done.events), (0, 2));
}
