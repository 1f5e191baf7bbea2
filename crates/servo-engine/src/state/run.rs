//! One run: its tasks, its edges and what is left to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use servo_core::{EventId, Fingerprint, MicroUsd, Millis, Operation, PlanId, RunId, TaskKey, Timestamp};

use super::Task;
use super::shared::{SharedItems, SharedVec};
use crate::dep_sets::DepSet;
use crate::event::RunSource;
use crate::lifecycle::{Resolution, RunState, RunTransitionReason, TaskState, TransitionReason};
use crate::planner::PartitionChoice;
use crate::principal::Principal;
use crate::rows::JsonTexts;
use crate::settings::Settings;

/// An edge between two tasks of a run, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The task that must end first.
    pub upstream: u32,
    /// The task that waits.
    pub downstream: u32,
    /// Its resolution; set once.
    pub resolution: Option<Resolution>,
    /// The expiry.
    pub at: Option<Timestamp>,
    /// The upstream's attempt that decided it.
    pub attempt: Option<u32>,
    /// Newest event that changed it.
    pub version: EventId,
}

/// A set of dependencies of a run, and what became of the tasks that must end first. It follows from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSet {
    /// The tasks.
    pub set: Arc<DepSet>,
    /// How many of those that must end first did so well.
    pub satisfied: u32,
    /// When the newest of them did.
    pub satisfied_at: Option<Timestamp>,
    /// The newest event by which one did.
    pub satisfied_by: EventId,
    /// The first event by which one failed, or was skipped.
    pub broken_by: Option<EventId>,
    /// Whether one was cancelled.
    pub is_cancelled: bool,
    /// The event that planned it.
    pub version: EventId,
}

impl RunSet {
    /// A set of which nothing has ended.
    pub(crate) fn new(set: Arc<DepSet>, version: EventId) -> Self {
        Self {
            set,
            satisfied: 0,
            satisfied_at: None,
            satisfied_by: EventId::NIL,
            broken_by: None,
            is_cancelled: false,
            version,
        }
    }

    /// Whether all that must end first did so well.
    pub fn is_complete(&self) -> bool {
        self.satisfied as usize == self.set.upstream.len()
    }

    /// Counts one more that ended well, by this event; whether it was the last.
    pub(crate) fn satisfy(&mut self, at: Option<Timestamp>, by: EventId) -> bool {
        self.satisfied += 1;
        self.satisfied_at = self.satisfied_at.max(at);
        self.satisfied_by = self.satisfied_by.max(by);
        self.is_complete()
    }
}

/// The cancellation of a run: by whom, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The expiry.
    pub at: Timestamp,
    /// Who.
    pub principal: Principal,
    /// Why.
    pub reason: String,
    /// The cause.
    pub cause: CancelCause,
}

/// The cause of the cancellation of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// Somebody asked for it.
    User,
    /// It is cancelled with what it belongs to, such as a backfill.
    System,
    /// It took too long.
    Timeout,
}

impl CancelCause {
    /// The reason of the run.
    pub(crate) fn reason(self) -> RunTransitionReason {
        match self {
            CancelCause::User => RunTransitionReason::UserCancelled,
            CancelCause::System => RunTransitionReason::SystemCancelled,
            CancelCause::Timeout => RunTransitionReason::TimedOut,
        }
    }

    /// The reason of the tasks that are cancelled with the run.
    pub(crate) fn reason_of_tasks(self) -> TransitionReason {
        match self {
            CancelCause::Timeout => TransitionReason::RunTimedOut,
            CancelCause::User | CancelCause::System => TransitionReason::RunCancelled,
        }
    }

    /// The cause of a run that is or was cancelled, by its reason.
    pub(crate) fn of(reason: RunTransitionReason) -> Self {
        match reason {
            RunTransitionReason::TimedOut => CancelCause::Timeout,
            RunTransitionReason::SystemCancelled => CancelCause::System,
            RunTransitionReason::UserCancelled
            | RunTransitionReason::Created
            | RunTransitionReason::Queued
            | RunTransitionReason::Started
            | RunTransitionReason::AllTasksSucceeded
            | RunTransitionReason::TasksFailed => CancelCause::User,
        }
    }
}

/// How many tasks of a run ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub succeeded: u32,
    pub failed: u32,
    pub skipped: u32,
    pub cancelled: u32,
}

impl Counts {
    /// Tasks that have ended.
    pub fn ended(self) -> u32 {
        self.succeeded + self.failed + self.skipped + self.cancelled
    }

    pub(crate) fn add(&mut self, state: TaskState) {
        match state {
            TaskState::Succeeded => self.succeeded += 1,
            TaskState::Failed => self.failed += 1,
            TaskState::Skipped => self.skipped += 1,
            TaskState::Cancelled => self.cancelled += 1,
            TaskState::Planned
            | TaskState::Blocked
            | TaskState::Ready
            | TaskState::Dispatched
            | TaskState::Running
            | TaskState::RetryWait => {}
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Derived from the key.
    pub id: RunId,
    /// Event that asked for it: its place in every list of runs.
    pub requested: EventId,
    /// Stable name of the request.
    pub key: Arc<str>,
    /// Hash of the request.
    pub fingerprint: Fingerprint,
    /// The plan it follows.
    pub plan: Option<PlanId>,
    /// Hash of that plan.
    pub plan_fingerprint: Option<Fingerprint>,
    /// Number of the deployment that it was planned with; 0 if nothing was deployed.
    pub deployment: u64,
    /// Whether some task ran other code than was planned.
    pub code_changed: bool,
    /// Failed checks of severity error and above, and checks that raised, of all its attempts.
    pub checks_failed: u32,
    /// What its attempts cost that have ended.
    pub cost: MicroUsd,
    /// Where it is.
    pub state: RunState,
    /// Why it is there.
    pub reason: RunTransitionReason,
    /// Origin of the run.
    pub source: RunSource,
    /// The caller.
    pub requested_by: Principal,
    /// The caller's own id of the request.
    pub request_id: Option<Arc<str>>,
    /// Which assets were asked for, as a selection.
    pub selection: String,
    /// The operation on them.
    pub operation: Operation,
    /// Which of their partitions, as they were asked for.
    pub partitions: PartitionChoice,
    /// Values of configuration fields.
    pub config: JsonTexts,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Higher runs first.
    pub priority: i32,
    /// How its tasks ended.
    pub counts: Counts,
    /// Longest it may take, if it sets a limit of its own.
    pub timeout: Option<Millis>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Event that ended it.
    pub finished_event: Option<EventId>,
    /// The cancellation, if there was one.
    pub cancel: Option<Cancel>,
    /// Newest event that changed it.
    pub version: EventId,
    /// Sorted by key.
    pub tasks: SharedItems<Task>,
    /// Sorted by upstream, then downstream.
    pub edges: SharedVec<Edge>,
    /// Tasks that all wait for the same tasks.
    pub sets: Vec<RunSet>,
    /// `edges[out_start[i]..out_start[i + 1]]` leave task `i`.
    pub(crate) out_start: Arc<[u32]>,
    pub(crate) last_found: LastFound,
}

/// The position that was asked for last: the next question is mostly about the same task or the one after it. It
/// decides how long a search takes and nothing else, and takes no part in comparisons.
#[derive(Debug, Default)]
pub(crate) struct LastFound(AtomicU32);

impl Clone for LastFound {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Relaxed)))
    }
}

impl PartialEq for LastFound {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LastFound {}

impl Run {
    /// Position of a task.
    pub fn position(&self, key: &TaskKey) -> Option<u32> {
        let last = self.last_found.0.load(Relaxed);
        let is_there = |at: &u32| self.tasks.get(*at as usize).is_some_and(|task| task.key == *key);
        let near = [last, last.wrapping_add(1)].into_iter().find(is_there);
        let found = near.or_else(|| u32::try_from(self.tasks.find_by(|task| task.key.cmp(key))?).ok())?;
        if found != last {
            self.last_found.0.store(found, Relaxed);
        }
        Some(found)
    }

    /// When it has taken too long.
    pub fn deadline(&self, settings: &Settings) -> Option<Timestamp> {
        if self.state.is_terminal() || self.cancel.is_some() {
            return None;
        }
        let limit = self.timeout.unwrap_or(settings.max_run_duration).min(settings.max_run_duration);
        self.started_at.map(|at| at.saturating_add(limit))
    }

    /// Edges that leave a task.
    pub fn edges_out(&self, task: u32) -> std::ops::Range<usize> {
        let at = task as usize;
        match (self.out_start.get(at), self.out_start.get(at + 1)) {
            (Some(from), Some(to)) => *from as usize..*to as usize,
            _ => 0..0,
        }
    }

    /// Tasks that a task waits for. Linear in the edges of the run: for people, not for the fold.
    pub fn upstream_of(&self, task: u32) -> impl Iterator<Item = &Task> {
        let paired = self.edges.iter().filter(move |e| e.downstream == task).map(|e| e.upstream);
        let waits_for = self.sets.iter().filter(move |set| set.set.downstream.contains(task));
        let together = waits_for.flat_map(|set| set.set.upstream.iter());
        paired.chain(together).map(|upstream| &self.tasks[upstream as usize])
    }

    /// The resolution of a dependency set, from the tasks themselves: for a run that was just restored.
    pub(crate) fn recount_sets(&mut self) {
        for set in &mut self.sets {
            let Some(waiting) = set.set.downstream.iter().next() else { continue };
            let previous = &self.tasks[waiting as usize].options.previous;
            let members = Arc::clone(&set.set);
            for position in members.upstream.iter() {
                let task = &self.tasks[position as usize];
                let by = task.finished_event.unwrap_or(EventId::NIL);
                match Resolution::of(task, previous) {
                    Some(Resolution::Success | Resolution::Previous) => {
                        set.satisfy(task.finished_at, by);
                    }
                    Some(Resolution::Failed | Resolution::Skipped) => {
                        set.broken_by = Some(set.broken_by.map_or(by, |known| known.min(by)));
                    }
                    Some(Resolution::Cancelled) => set.is_cancelled = true,
                    None => {}
                }
            }
        }
    }

    /// Sets the edges between its tasks, in any order.
    pub(crate) fn set_edges(&mut self, mut edges: Vec<Edge>) {
        let mut out_start = vec![0; self.tasks.len() + 1];
        for edge in &edges {
            out_start[edge.upstream as usize + 1] += 1;
        }
        for i in 1..out_start.len() {
            out_start[i] += out_start[i - 1];
        }
        if edges.is_sorted_by_key(|e| e.downstream) {
            // As a plan has them: each goes where the edges of its upstream task begin, behind those before it.
            let mut next: Vec<u32> = out_start.clone();
            let mut order = vec![0; edges.len()];
            for (from, edge) in (0u32..).zip(&edges) {
                let place = &mut next[edge.upstream as usize];
                order[*place as usize] = from;
                *place += 1;
            }
            edges = order.into_iter().map(|from| edges[from as usize].clone()).collect();
        } else {
            edges.sort_by_key(|e| (e.upstream, e.downstream));
        }
        self.edges = edges.into_iter().collect();
        self.out_start = out_start.into();
    }
}
