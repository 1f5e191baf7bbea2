//! One task of a run.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::planted::{self, Mistake};
use servo_core::{
    AssetKey, AttemptId, EventId, MaterializationId, MicroUsd, Millis, Operation, TaskKey, Timestamp,
};

use crate::event::{Outcome, Progress, TimerKind};
use crate::failure::TaskError;
use crate::lifecycle::{OutboxStatus, TaskState, TimerState, TransitionReason};
use crate::outputs::{OutputReport, Usage};
use crate::plan::TaskOptions;
use crate::provenance::Provenance;
use crate::settings::Settings;
use crate::state::DEFAULT_QUEUE;

/// Past attempts that are remembered; a task that no worker takes may have many.
const MAX_PAST_ATTEMPTS: usize = 50;

/// The timer that ends a retry wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryTimer {
    /// When it fires.
    pub fire_at: Timestamp,
    /// Where it is.
    pub state: TimerState,
}

/// An attempt on its way to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outbox {
    pub(crate) status: OutboxStatus,
    pub(crate) created_at: Timestamp,
}

/// The execution of an attempt by a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The worker that runs it.
    pub worker: Arc<str>,
    /// When it began.
    pub started_at: Timestamp,
    /// The time of the last heartbeat; the start counts as one.
    pub heartbeat_at: Timestamp,
    /// How far it is.
    pub progress: Option<Progress>,
}

/// An attempt that ended without ending its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAttempt {
    /// Its number.
    pub attempt: u32,
    /// Its token.
    pub attempt_id: AttemptId,
    /// Why it ended.
    pub reason: TransitionReason,
    /// Start time, if a worker began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The worker that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<Arc<str>>,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<TaskError>>,
    /// Its resource usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Where a task is. Whoever has a task reads it, and only the transitions of the task change it, so that there is none
/// that is running without a worker.
///
/// ```
/// fn is_running(task: &servo_engine::Task) -> bool {
///     task.state == servo_engine::TaskState::Running
/// }
/// ```
///
/// ```compile_fail
/// fn run_without_a_worker(task: &mut servo_engine::Task) {
///     task.state = servo_engine::TaskState::Running;
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPhase {
    /// Where it is.
    pub state: TaskState,
    /// Why it is there.
    pub reason: TransitionReason,
    /// Since when.
    pub transition_at: Timestamp,
    /// The newest attempt as a worker executes it, or has; none before one began it.
    pub execution: Option<Execution>,
}

impl TaskPhase {
    /// The phase that rows say; none if it cannot be.
    pub(crate) fn restore(
        state: TaskState,
        reason: TransitionReason,
        transition_at: Timestamp,
        execution: Option<Execution>,
    ) -> Option<Self> {
        let is_possible = state != TaskState::Running || execution.is_some();
        is_possible.then_some(Self { state, reason, transition_at, execution })
    }
}

impl Deref for Task {
    type Target = TaskPhase;

    fn deref(&self) -> &TaskPhase {
        &self.phase
    }
}

/// One task of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Identity of the task: asset, partition, operation.
    pub key: TaskKey,
    /// How it runs.
    pub options: Arc<TaskOptions>,
    /// Where it is; read as if it were part of the task.
    phase: TaskPhase,
    /// Number of the newest attempt; 0 before the first.
    pub attempt: u32,
    /// Token of the newest attempt.
    pub attempt_id: Option<AttemptId>,
    /// Attempts that count against `max_attempts`.
    pub failures: u32,
    /// Consecutive attempts that were lost without counting against the limit.
    pub interruptions: u32,
    /// Edges into it.
    pub deps_total: u32,
    /// Edges into it that resolved to success, each counted once (ADR-022).
    pub deps_satisfied: u32,
    /// When the newest of them did.
    pub deps_satisfied_at: Option<Timestamp>,
    /// When it last became ready.
    pub ready_at: Option<Timestamp>,
    /// The code and the data of the newest attempt.
    pub provenance: Arc<Provenance>,
    /// The dispatch event: the newest attempt reads what was newest then.
    pub inputs_as_of: Option<EventId>,
    /// Assets that were wiped while the newest attempt was at work on them: its result does not count for them.
    pub voided: Arc<[AssetKey]>,
    /// When the queue took the newest attempt.
    pub dispatched_at: Option<Timestamp>,
    /// When it ended for good.
    pub finished_at: Option<Timestamp>,
    /// The event that ended it; if it was skipped, that of the failure.
    pub finished_event: Option<EventId>,
    /// Start time of the next attempt.
    pub retry_at: Option<Timestamp>,
    /// Position of the task whose failure this one was skipped for.
    pub caused_by: Option<u32>,
    /// The last error.
    pub error: Option<Arc<TaskError>>,
    /// The outcome a worker reported after the task had been cancelled.
    pub late_outcome: Option<Outcome>,
    /// The materialization that it produced.
    pub materialization: Option<MaterializationId>,
    /// The state of each asset in the newest attempt that reported it.
    pub outputs: Arc<[OutputReport]>,
    /// The resource usage of that attempt.
    pub usage: Option<Usage>,
    /// What its attempts cost that have ended.
    pub cost: MicroUsd,
    /// The attempts that ended without ending it, oldest first: all but the newest one, and that one too while it waits
    /// for the next.
    pub past_attempts: Vec<PastAttempt>,
    pub(crate) outbox: Option<Outbox>,
    pub(crate) timer: Option<RetryTimer>,
    /// Newest event that changed it.
    pub version: EventId,
}

impl Task {
    /// The version of its row: the newest event that changed it, or the failure that it was skipped for.
    pub fn row_version(&self) -> EventId {
        self.finished_event.map_or(self.version, |ended| self.version.max(ended))
    }

    pub(crate) fn planned(
        key: TaskKey,
        options: Arc<TaskOptions>,
        deps_total: u32,
        at: Timestamp,
        version: EventId,
    ) -> Self {
        let (state, reason) = (TaskState::Planned, TransitionReason::Planned);
        let phase = TaskPhase { state, reason, transition_at: at, execution: None };
        Self { deps_total, ..Self::of_phase(key, options, phase, version) }
    }

    /// A task of which nothing is known but where it is.
    pub(crate) fn of_phase(
        key: TaskKey,
        options: Arc<TaskOptions>,
        phase: TaskPhase,
        version: EventId,
    ) -> Self {
        Self {
            key,
            options,
            phase,
            attempt: 0,
            attempt_id: None,
            failures: 0,
            interruptions: 0,
            deps_total: 0,
            deps_satisfied: 0,
            deps_satisfied_at: None,
            ready_at: None,
            provenance: Provenance::none(),
            inputs_as_of: None,
            voided: Arc::default(),
            dispatched_at: None,
            finished_at: None,
            finished_event: None,
            retry_at: None,
            caused_by: None,
            error: None,
            late_outcome: None,
            materialization: None,
            outputs: Arc::default(),
            usage: None,
            cost: MicroUsd::ZERO,
            past_attempts: Vec::new(),
            outbox: None,
            timer: None,
            version,
        }
    }

    /// Whether `attempt` is the newest one and has not ended (INV-8).
    pub fn is_open(&self, attempt: u32, attempt_id: AttemptId) -> bool {
        self.is_attempt(attempt, attempt_id) && self.has_open_attempt()
    }

    /// Whether `attempt` is the newest one.
    pub fn is_attempt(&self, attempt: u32, attempt_id: AttemptId) -> bool {
        planted::has(Mistake::AttemptGuardDropped)
            || self.attempt == attempt && self.attempt_id == Some(attempt_id)
    }

    /// Whether an attempt is under way: it holds a slot.
    pub fn has_open_attempt(&self) -> bool {
        match self.state {
            TaskState::Ready => self.outbox_status() == Some(OutboxStatus::Pending),
            TaskState::Dispatched | TaskState::Running => true,
            TaskState::Planned
            | TaskState::Blocked
            | TaskState::RetryWait
            | TaskState::Skipped
            | TaskState::Cancelled
            | TaskState::Failed
            | TaskState::Succeeded => false,
        }
    }

    /// The attempt that leads the call which the newest attempt is part of; none if it leads, or is called alone.
    pub(crate) fn leader(&self) -> Option<AttemptId> {
        self.provenance.call.filter(|leader| self.attempt_id != Some(*leader))
    }

    /// The assets that it makes, that of its key first.
    pub(crate) fn assets(&self) -> impl Iterator<Item = AssetKey> {
        std::iter::once(self.key.asset()).chain(self.options.outputs.iter().cloned())
    }

    /// Whether it goes on waiting when so many more edges into it are satisfied: no index hears of that.
    pub(crate) fn waits_for_more_than(&self, edges: u32) -> bool {
        self.state == TaskState::Blocked && self.deps_satisfied + edges < self.deps_total
    }

    /// Whether it makes data: checks alone make none.
    pub(crate) fn makes_data(&self) -> bool {
        self.key.operation() != Operation::Check
    }

    /// The queue that its attempts are handed to.
    pub fn queue(&self) -> &str {
        self.options.worker_queue.as_deref().unwrap_or(DEFAULT_QUEUE)
    }

    /// Where the newest attempt is on its way to the queue.
    pub fn outbox_status(&self) -> Option<OutboxStatus> {
        self.outbox.map(|o| o.status)
    }

    /// The timer of the current or last retry wait.
    pub fn retry_timer(&self) -> Option<RetryTimer> {
        self.timer
    }

    /// The next timeout of the row, and the kind of its timer.
    pub fn deadline(&self, settings: &Settings) -> Option<(Timestamp, TimerKind)> {
        let (patience, kind) = match self.state {
            TaskState::Ready => (settings.outbox_retry_after, TimerKind::DispatchAck),
            TaskState::Dispatched => (settings.dispatch_ack_timeout, TimerKind::DispatchAck),
            TaskState::Running => {
                let silence = self.heartbeat_timeout(settings).saturating_add(settings.heartbeat_grace);
                (silence, TimerKind::HeartbeatCheck)
            }
            TaskState::RetryWait => return self.retry_at.map(|at| (at, TimerKind::Retry)),
            TaskState::Planned
            | TaskState::Blocked
            | TaskState::Skipped
            | TaskState::Cancelled
            | TaskState::Failed
            | TaskState::Succeeded => return None,
        };
        self.waits_since().map(|since| (since.saturating_add(patience), kind))
    }

    /// The start of the timeout that applies to the row: the time of the last event or heartbeat.
    pub(crate) fn waits_since(&self) -> Option<Timestamp> {
        match self.state {
            TaskState::Ready => {
                self.outbox.filter(|o| o.status == OutboxStatus::Pending).map(|o| o.created_at)
            }
            TaskState::Dispatched => Some(self.dispatched_at.unwrap_or(self.transition_at)),
            TaskState::Running if planted::has(Mistake::TimerWithoutWatermark) => self.started_at(),
            TaskState::Running => self.execution.as_ref().map(|execution| execution.heartbeat_at),
            TaskState::RetryWait
            | TaskState::Planned
            | TaskState::Blocked
            | TaskState::Skipped
            | TaskState::Cancelled
            | TaskState::Failed
            | TaskState::Succeeded => None,
        }
    }

    /// Longest silence of a running attempt.
    pub fn heartbeat_timeout(&self, settings: &Settings) -> Millis {
        self.options.heartbeat_timeout_ms.unwrap_or(settings.heartbeat_timeout)
    }

    /// When a worker began the newest attempt.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.execution.as_ref().map(|execution| execution.started_at)
    }

    /// The worker of the newest attempt.
    pub fn worker(&self) -> Option<&Arc<str>> {
        self.execution.as_ref().map(|execution| &execution.worker)
    }

    /// A worker begins the newest attempt: the one way to be running.
    pub(crate) fn start(&mut self, worker: Arc<str>, at: Timestamp) {
        self.set_outbox(OutboxStatus::Acked);
        self.phase.execution = Some(Execution { worker, started_at: at, heartbeat_at: at, progress: None });
        self.transition(TaskState::Running, TransitionReason::ExecutionStarted, at);
    }

    /// Gets another attempt, which nobody executes yet. It waits to be handed out.
    pub(crate) fn begin_attempt(&mut self, attempt: u32, attempt_id: AttemptId) {
        debug_assert!(self.state == TaskState::Ready, "an attempt is given to a task that is ready");
        (self.attempt, self.attempt_id) = (attempt, Some(attempt_id));
        self.dispatched_at = None;
        self.phase.execution = None;
    }

    /// The worker of the newest attempt was heard of.
    pub(crate) fn heard(&mut self, at: Timestamp, progress: Option<&Progress>) {
        if let Some(execution) = &mut self.phase.execution {
            execution.heartbeat_at = at;
            if let Some(progress) = progress {
                execution.progress = Some(progress.clone());
            }
        }
    }

    /// Restates the times that something is counted from.
    pub(crate) fn restate_times(&mut self, moved: impl Fn(Timestamp) -> Timestamp) {
        self.dispatched_at = self.dispatched_at.map(&moved);
        if let Some(execution) = &mut self.phase.execution {
            execution.started_at = moved(execution.started_at);
            execution.heartbeat_at = moved(execution.heartbeat_at);
        }
        self.retry_at = self.retry_at.map(&moved);
        self.phase.transition_at = moved(self.phase.transition_at);
        if let Some(outbox) = &mut self.outbox {
            outbox.created_at = moved(outbox.created_at);
        }
    }

    /// Leaves whatever it was doing for a state in which no worker is at it.
    pub(crate) fn enter(&mut self, state: Rest, reason: TransitionReason, at: Timestamp) {
        self.transition(state.into(), reason, at);
    }

    fn transition(&mut self, state: TaskState, reason: TransitionReason, at: Timestamp) {
        (self.phase.state, self.phase.reason, self.phase.transition_at) = (state, reason, at);
        if state.is_terminal() {
            self.finished_at = Some(at);
        }
        if state == TaskState::Ready {
            self.ready_at = Some(at);
        }
        if state != TaskState::RetryWait {
            self.retry_at = None;
        }
    }

    /// Keeps what is known of the newest attempt, which has ended for this reason and did not end the task.
    pub(crate) fn remember_attempt(&mut self, ended_at: Timestamp, reason: TransitionReason) {
        let Some(attempt_id) = self.attempt_id else { return };
        if self.past_attempts.len() >= MAX_PAST_ATTEMPTS {
            self.past_attempts.remove(0);
        }
        self.past_attempts.push(PastAttempt {
            attempt: self.attempt,
            attempt_id,
            reason,
            started_at: self.started_at(),
            ended_at,
            worker_id: self.worker().cloned(),
            error: self.error.clone().filter(|_| self.state == TaskState::RetryWait),
            usage: self.usage.take(),
        });
        self.outputs = Arc::default();
    }

    pub(crate) fn set_outbox(&mut self, status: OutboxStatus) {
        if let Some(outbox) = &mut self.outbox {
            outbox.status = status;
        }
    }

    pub(crate) fn set_timer(&mut self, state: TimerState) {
        if let Some(timer) = &mut self.timer {
            timer.state = state;
        }
    }

    pub(crate) fn cancel_timer(&mut self) {
        if self.timer.is_some_and(|t| t.state != TimerState::Fired) {
            self.set_timer(TimerState::Cancelled);
        }
    }

    /// The keys of the outbox row and the timer row that belong to it.
    pub(crate) fn side_rows(&self) -> SideRows {
        SideRows {
            outbox: self.outbox.map(|_| self.attempt),
            timer: self.timer.map(|t| (self.attempt, t.fire_at)),
        }
    }
}

/// A state in which no worker is at the task. [`Task::start`] alone makes one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Blocked,
    Ready,
    Dispatched,
    RetryWait,
    Skipped,
    Cancelled,
    Failed,
    Succeeded,
}

impl From<Rest> for TaskState {
    fn from(rest: Rest) -> Self {
        match rest {
            Rest::Blocked => Self::Blocked,
            Rest::Ready => Self::Ready,
            Rest::Dispatched => Self::Dispatched,
            Rest::RetryWait => Self::RetryWait,
            Rest::Skipped => Self::Skipped,
            Rest::Cancelled => Self::Cancelled,
            Rest::Failed => Self::Failed,
            Rest::Succeeded => Self::Succeeded,
        }
    }
}

/// Identity of a task's outbox row (attempt) and timer row (attempt and time).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SideRows {
    pub(crate) outbox: Option<u32>,
    pub(crate) timer: Option<(u32, Timestamp)>,
}
