//! Commands and reports become events, or are refused. Reads the state, never changes it.

pub(crate) mod answers;
mod backfills;
mod conditions;
mod deploy;
mod evaluations;
mod launch;
mod named;
mod notifications;
mod partition_life;
mod partitions;
mod pauses;
mod renames;
mod retention;
mod review;
mod schedules;
mod sensors;
mod settings;
mod waiting;
mod workers;

pub(crate) use evaluations::{SensorOutcome, evaluate, tick};
use launch::newest;
pub(crate) use launch::{NoRun, launch, request_run};

use std::sync::Arc;

use servo_core::{BackfillId, Fingerprint, Millis, RunId, Timestamp};

use crate::command::{
    Attempt, CancelRun, Change, Finish, HeartbeatReply, Input, Reply, Report, RunPlan, RunReply,
    StoredRunKey, TriggerRun,
};
use crate::derive::{idempotency_hash, plan_id};
use crate::event::{
    ClockStepped, DispatchEnqueued, EventData, Outcome, PauseScope, PlanCreated, Progress,
    RunCancelRequested, RunKeyConflicted, RunRequested, RunTriggered, TaskFinished, TaskHeartbeat,
    TaskStarted,
};
use crate::fold::is_silent;
use crate::lifecycle::TaskState;
use crate::principal::{Principal, PrincipalKind};
use crate::refusal::Refusal;
use crate::requests::{RunRequest, StalePlan};
use crate::state::{Run, Schedule, State, Task};
use crate::work;

/// Heartbeats that the log holds of a worker until it could be taken for dead.
const HEARTBEATS_PER_TIMEOUT: u64 = 4;

/// Events to append, who is responsible for them, and the answer once they are durable. A refusal may still leave a
/// record.
pub(crate) struct Decision {
    pub(crate) events: Vec<EventData>,
    pub(crate) principal: Principal,
    pub(crate) answer: Answer,
}

/// The answer to one input.
pub(crate) enum Answer {
    /// Known now.
    Now(Result<Reply, Refusal>),
    /// A change, with the id of the first event.
    Change,
    /// The end of an attempt, with the id of the first event.
    Finish,
    /// A new run, with the id of the first event.
    NewRun(RunId),
    /// A new backfill, with the id of the first event.
    NewBackfill(BackfillId),
    /// Keys of dynamic partitions: how many are new, how many are gone, and the id of the first event.
    Partitions(u64, u64),
}

impl Decision {
    fn reply(reply: Reply) -> Self {
        Self { events: Vec::new(), principal: Principal::system(), answer: Answer::Now(Ok(reply)) }
    }

    /// A change that has been made before.
    fn unchanged() -> Self {
        Self::reply(Reply::Change(Change::Duplicate))
    }

    fn refuse(refusal: Refusal) -> Self {
        Self { events: Vec::new(), principal: Principal::system(), answer: Answer::Now(Err(refusal)) }
    }

    fn change(event: EventData, principal: Principal) -> Self {
        Self { events: vec![event], principal, answer: Answer::Change }
    }

    fn record(event: EventData, principal: Principal, answer: Result<Reply, Refusal>) -> Self {
        Self { events: vec![event], principal, answer: Answer::Now(answer) }
    }
}

pub(crate) fn decide(state: &State, secret: &[u8], input: &Input, now: Timestamp) -> Decision {
    match input {
        Input::Trigger(command) => trigger(state, secret, command, now),
        Input::Cancel(command) => cancel(state, command, now),
        Input::RetryNow(command) => waiting::retry_now(state, command, now),
        Input::Deploy(command) => deploy::deploy(state, command, now),
        Input::ChangePartitions(command) => partitions::change(state, command),
        Input::WipePartitions(command) => partition_life::wipe(state, command),
        Input::MarkPartitions(command) => partition_life::mark(state, command),
        Input::RestorePartitions(command) => partition_life::restore(state, command),
        Input::RenameAsset(command) => renames::rename(state, command),
        Input::ChangeSettings(command) => settings::change(state, command),
        Input::Pause(command) => pauses::change(state, command),
        Input::StartWith(command) => settings::start_with(state, command),
        Input::Review(command) => review::review(state, command),
        Input::ChangeSchedule(command) => schedules::change(state, command, now),
        Input::TriggerSchedule(command) => schedules::trigger(state, secret, command, now),
        Input::ChangeSensor(command) => sensors::change(state, command, now),
        Input::PushMessage(command) => sensors::push(state, command),
        Input::EvaluatedByHand(command) => sensors::by_hand(state, secret, command, now),
        Input::Evaluated(answer) => evaluations::evaluated(state, secret, answer, now),
        Input::ApplyRetention(command) => retention::apply(state, command, now),
        Input::CreateBackfill(command) => backfills::create(state, command, now),
        Input::ChangeBackfill(command) => backfills::change(state, command),
        Input::PauseCondition(command) => conditions::pause(state, command),
        Input::ChangeNotification(command) => notifications::change(state, command, now),
        Input::Notified(answer) => notifications::notified(state, answer, now),
        Input::Deny(command) => {
            Decision::refuse(Refusal::Forbidden { permission: command.permission, role: command.role })
        }
        Input::Enqueued(attempt) => enqueued(state, attempt),
        Input::Released(release) => review::released(state, release),
        Input::Moved(moved) => renames::moved(state, moved),
        Input::Started(attempt, worker) => {
            on_task(state, attempt, |run, task| started(state, run, task, attempt, worker))
        }
        Input::Heartbeat(attempt, sent_at, progress) => on_task(state, attempt, |run, task| {
            heartbeat(state, run, task, attempt, *sent_at, progress.as_ref())
        }),
        Input::Finished(attempt, report) => {
            on_task(state, attempt, |run, task| finished(state, run, task, attempt, report))
        }
        Input::RegisterWorker(command) => workers::register(state, command),
        Input::WorkerLeaves(command) => workers::leave(state, command),
        Input::WorkersLost(prefix) => workers_lost(state, prefix),
        Input::MessagesLost => waiting::messages_lost(state, now),
        Input::ClockStepped { expected, by_ms } => clock_stepped(state, *expected, *by_ms),
        Input::Sweep => Decision::reply(Reply::Done),
    }
}

fn trigger(state: &State, secret: &[u8], command: &TriggerRun, now: Timestamp) -> Decision {
    let run_id = RunId::derive(secret, state.tenant(), state.workspace(), &command.run_key);
    let request = &command.request;
    let requested = EventData::RunRequested(RunRequested {
        run_key: command.run_key.clone(),
        run_id,
        request_fingerprint: command.fingerprint().clone(),
        source: request.source.clone(),
        selection: request.selection.clone(),
        operation: request.operation,
        partitions: request.partitions.clone(),
        config: request.config.clone(),
        priority: request.priority,
        timeout_ms: request.timeout,
        labels: request.labels.clone(),
        request_id: request.caller.request_id.clone(),
    });
    match known_key(state, run_id, &command.stored_key) {
        Err(stale) => return Decision::refuse(stale),
        Ok(Some(known)) if known == *command.fingerprint() => {
            return Decision::reply(Reply::Run(RunReply { run_id, accepted: None }));
        }
        Ok(Some(existing)) => return conflict(state, command, run_id, existing),
        Ok(None) => {}
    }
    let Some(RunPlan { plan, basis }) = command.plan.as_deref() else {
        return Decision::refuse(Refusal::StalePlan(StalePlan::Unplanned));
    };
    if let Err(stale) = basis.check(state) {
        return Decision::refuse(Refusal::StalePlan(stale));
    }
    let settings = state.settings();
    let (queued, limit) = (state.queued_runs(), settings.max_queued_runs as usize);
    let free = settings.max_concurrent_runs.saturating_sub(state.index.at_work) as usize;
    if queued >= limit.saturating_add(free) {
        return Decision::refuse(Refusal::Quota {
            quota: "max_queued_runs",
            limit: limit as u64,
            used: queued as u64,
        });
    }
    if let (Some(0), Some(limit)) = (state.daily_runs_left(now), settings.max_daily_runs) {
        let (limit, left) = (u64::from(limit), state.head.daily_runs.left(now));
        return Decision::refuse(Refusal::DailyRuns { limit, used: state.runs_on_day(now), left });
    }
    let (tasks, limit) = (plan.tasks().len(), state.settings().max_tasks_per_run);
    if tasks > limit as usize {
        return Decision::refuse(Refusal::Quota {
            quota: "max_tasks_per_run",
            limit: u64::from(limit),
            used: tasks as u64,
        });
    }
    let plan_id = plan_id(run_id, plan.fingerprint(), now);
    let planned = EventData::PlanCreated(PlanCreated {
        run_id,
        plan_id,
        fingerprint: plan.fingerprint().clone(),
        deployment: state.definitions.number(),
        tasks: plan.tasks().clone(),
        sets: plan.sets().clone(),
    });
    let mut events = vec![requested, planned];
    if starts_at_once(state, request) {
        events.push(EventData::RunTriggered(RunTriggered { run_id, plan_id, timeout_ms: request.timeout }));
    }
    let principal = request.caller.principal.clone();
    Decision { events, principal, answer: Answer::NewRun(run_id) }
}

/// Whether a new run has a place and nobody waits for one. Otherwise the run queue decides, perhaps in the same step.
fn starts_at_once(state: &State, request: &RunRequest) -> bool {
    state.index.queued_runs == 0
        && state.index.at_work < state.settings().max_concurrent_runs
        && state.pauses.paused(&PauseScope::All).is_none()
        && !request.labels.iter().any(|(name, value)| state.settings().runs_limit(name, value).is_some())
}

/// The fingerprint that a run was asked for with, if its key was ever used.
fn known_key(state: &State, run: RunId, stored: &StoredRunKey) -> Result<Option<Fingerprint>, Refusal> {
    let known = state.requested_with(run).or_else(|| state.run_keys.get(run));
    if known.is_none() && stored.through < state.run_keys.in_files() {
        // Keys have left memory that these tables did not have yet.
        return Err(Refusal::StaleRunKey { run_id: run });
    }
    Ok(known.or_else(|| stored.fingerprint.clone()))
}

/// Refuses to use a run key for another request, and records it once.
fn conflict(state: &State, command: &TriggerRun, run_id: RunId, existing: Fingerprint) -> Decision {
    let caller = &command.request.caller;
    let refusal = Refusal::RunKeyConflict { run_key: command.run_key.clone(), run_id };
    let conflicted = EventData::RunKeyConflicted(RunKeyConflicted {
        run_key: command.run_key.clone(),
        run_id,
        existing_fingerprint: existing,
        conflicting_fingerprint: command.fingerprint().clone(),
        request_id: caller.request_id.clone(),
    });
    if state.idempotency.contains(idempotency_hash(&conflicted.idempotency_key())) {
        return Decision::refuse(refusal);
    }
    Decision::record(conflicted, caller.principal.clone(), Err(refusal))
}

fn cancel(state: &State, command: &CancelRun, now: Timestamp) -> Decision {
    let run_id = command.run_id;
    let Some(run) = state.run(run_id) else { return Decision::refuse(Refusal::UnknownRun { run_id }) };
    if run.state.is_terminal() {
        return Decision::refuse(Refusal::RunEnded { run_id, state: run.state });
    }
    let after = state.settings().force_cancel_after;
    let silent_since = command.force.then(|| now.saturating_sub(after));
    if let Some(since) = silent_since {
        let stuck = |task: &Task| {
            (task.state == TaskState::Running && is_silent(task, since))
                || (task.state == TaskState::Dispatched && run.cancel.is_some())
        };
        if !run.tasks.iter().any(stuck) {
            return Decision::refuse(Refusal::ForceTooSoon { run_id, after });
        }
    } else if run.cancel.is_some() {
        return Decision::unchanged();
    }
    let event = RunCancelRequested {
        run_id,
        reason: command.reason.clone(),
        force: command.force,
        silent_since,
        by_system: false,
    };
    Decision::change(EventData::RunCancelRequested(event), command.caller.principal.clone())
}

fn on_task(state: &State, attempt: &Attempt, decide: impl FnOnce(&Run, &Task) -> Decision) -> Decision {
    let run_id = attempt.run_id;
    let Some(run) = state.run(run_id) else { return Decision::refuse(Refusal::UnknownRun { run_id }) };
    match run.position(&attempt.task_key) {
        Some(position) => decide(run, &run.tasks[position as usize]),
        None => Decision::refuse(Refusal::UnknownTask { run_id, task_key: attempt.task_key.clone() }),
    }
}

fn enqueued(state: &State, attempt: &Attempt) -> Decision {
    match state.task(attempt.run_id, &attempt.task_key) {
        Some(task)
            if task.is_attempt(attempt.attempt, attempt.attempt_id) && task.dispatched_at.is_none() =>
        {
            let event = EventData::DispatchEnqueued(DispatchEnqueued {
                run_id: attempt.run_id,
                task_key: attempt.task_key.clone(),
                attempt: attempt.attempt,
                attempt_id: attempt.attempt_id,
            });
            Decision::change(event, Principal::system())
        }
        Some(_) | None => Decision::unchanged(),
    }
}

fn started(state: &State, run: &Run, task: &Task, attempt: &Attempt, worker: &Arc<str>) -> Decision {
    let task_key = || attempt.task_key.clone();
    if !task.is_attempt(attempt.attempt, attempt.attempt_id) {
        return Decision::refuse(Refusal::StaleAttempt { task_key: task_key(), attempt: attempt.attempt });
    }
    if !task.has_open_attempt() {
        return Decision::refuse(if task.state == TaskState::Cancelled {
            Refusal::Cancelled { task_key: task_key() }
        } else {
            Refusal::AttemptEnded { task_key: task_key(), attempt: attempt.attempt }
        });
    }
    if task.state == TaskState::Running {
        return match task.worker() {
            Some(by) if by != worker => Decision::refuse(Refusal::AlreadyStarted {
                task_key: task_key(),
                attempt: attempt.attempt,
                worker: by.clone(),
            }),
            Some(_) | None => Decision::unchanged(),
        };
    }
    let principal = Principal::worker(worker.clone());
    if run.cancel.is_some() {
        return Decision::record(
            ended(attempt, &Report::new(Outcome::Cancelled)),
            principal,
            Err(Refusal::Cancelled { task_key: task_key() }),
        );
    }
    // Where workers ask, whoever has not proven itself begins nothing.
    let is_registered = || state.workers.get(worker).is_some_and(|row| !row.state.is_gone());
    if state.settings().push_limit(task.queue()) == 0 && !is_registered() {
        return Decision::refuse(Refusal::UnknownWorker { worker: worker.clone() });
    }
    let event = EventData::TaskStarted(TaskStarted {
        run_id: attempt.run_id,
        task_key: task_key(),
        attempt: attempt.attempt,
        attempt_id: attempt.attempt_id,
        worker_id: worker.clone(),
    });
    Decision::change(event, principal)
}

/// Workers send heartbeats often, to learn soon that they must stop. Only changes go into the log: progress, and a sign
/// of life once the last one has grown old.
fn heartbeat(
    state: &State,
    run: &Run,
    task: &Task,
    attempt: &Attempt,
    sent_at: Timestamp,
    progress: Option<&Progress>,
) -> Decision {
    let stop = || Refusal::AttemptEnded { task_key: attempt.task_key.clone(), attempt: attempt.attempt };
    if !task.is_open(attempt.attempt, attempt.attempt_id) {
        return Decision::refuse(stop());
    }
    let reply = Reply::Heartbeat(HeartbeatReply { should_cancel: run.cancel.is_some() });
    if task.state != TaskState::Running {
        // That it began was lost with a commit that failed; how it ends will be heard all the same.
        return Decision::reply(reply);
    }
    let silence = task.heartbeat_timeout(state.settings()).min(state.settings().force_cancel_after);
    let old = Millis::new(silence.get() / HEARTBEATS_PER_TIMEOUT);
    let is_older_than =
        |age| task.execution.as_ref().is_none_or(|it| sent_at > it.heartbeat_at.saturating_add(age));
    // What was sent before the last one was heard, or in the same moment, would say it again under the same key.
    let is_news = is_older_than(old) || (progress.is_some() && is_older_than(Millis::ZERO));
    if !is_news {
        return Decision::reply(reply);
    }
    let answer = Ok(reply);
    Decision::record(
        EventData::TaskHeartbeat(TaskHeartbeat {
            run_id: attempt.run_id,
            task_key: attempt.task_key.clone(),
            attempt: attempt.attempt,
            attempt_id: attempt.attempt_id,
            heartbeat_at: sent_at,
            progress: progress.cloned(),
        }),
        worker_of(task),
        answer,
    )
}

fn ended(attempt: &Attempt, report: &Report) -> EventData {
    EventData::TaskFinished(TaskFinished {
        run_id: attempt.run_id,
        task_key: attempt.task_key.clone(),
        attempt: attempt.attempt,
        attempt_id: attempt.attempt_id,
        outcome: report.outcome,
        error: report.error.clone(),
        materialization_id: report.materialization_id,
        outputs: report.outputs.clone(),
        usage: report.usage,
    })
}

/// Who reports about the newest attempt of a task.
fn worker_of(task: &Task) -> Principal {
    task.worker().cloned().map_or_else(|| Principal::new(PrincipalKind::Worker, ""), Principal::worker)
}

fn finished(state: &State, run: &Run, task: &Task, attempt: &Attempt, report: &Report) -> Decision {
    if !task.is_attempt(attempt.attempt, attempt.attempt_id) {
        // Recorded once, and refused (ADR-034).
        let refusal = Refusal::StaleAttempt { task_key: attempt.task_key.clone(), attempt: attempt.attempt };
        let event = ended(attempt, report);
        let known = attempt.attempt > task.attempt || reported_before(state, &event);
        let somebody = Principal::new(PrincipalKind::Worker, "");
        return if known {
            Decision::refuse(refusal)
        } else {
            Decision::record(event, somebody, Err(refusal))
        };
    }
    let late = || Ok(Reply::Finish(Finish::Late));
    let event = ended(attempt, report);
    if task.has_open_attempt() {
        if run.cancel.is_some() && report.outcome != Outcome::Cancelled {
            return Decision::record(event, worker_of(task), late());
        }
        let events = match partitions::added_by(state, task, report) {
            Ok(added) => std::iter::once(event).chain(added).collect(),
            // What it wants to add cannot be added, so that nothing of it counts.
            Err(error) => vec![ended(attempt, &Report::failed(*error))],
        };
        return Decision { events, principal: worker_of(task), answer: Answer::Finish };
    }
    let worth_recording = task.state == TaskState::Cancelled
        && task.late_outcome.is_none()
        && report.outcome != Outcome::Cancelled;
    if worth_recording && !reported_before(state, &event) {
        return Decision::record(event, worker_of(task), late());
    }
    Decision::reply(Reply::Finish(Finish::Duplicate))
}

fn reported_before(state: &State, event: &EventData) -> bool {
    state.idempotency.contains(idempotency_hash(&event.idempotency_key()))
}

/// Without a run at work, a sensor or a call of a function nothing waits, so there is nothing to move.
fn clock_stepped(state: &State, expected: Timestamp, by_ms: i64) -> Decision {
    let is_called = |schedule: &Schedule| schedule.evaluating.is_some() || schedule.retry_at.is_some();
    let waits = state.active_runs() > 0
        || state.sensors().next().is_some()
        || state.schedules().any(is_called)
        || state.notifications.waiting() > 0;
    if !waits {
        return Decision::reply(Reply::Done);
    }
    let event = EventData::ClockStepped(ClockStepped { expected, by_ms });
    Decision::record(event, Principal::system(), Ok(Reply::Done))
}

fn workers_lost(state: &State, prefix: &str) -> Decision {
    let interrupted = Report::new(Outcome::Interrupted);
    let mut events: Vec<EventData> = workers::lost(state, prefix).collect();
    for run in state.runs().filter(|run| !run.state.is_terminal()) {
        for task in &run.tasks {
            let theirs = task.worker().is_some_and(|worker| worker.starts_with(prefix));
            // An attempt that a queue may have lost is handed out again, unless it cannot read the same data any more,
            // or the message that led it is not sent again.
            let waits = |task: &Task| task.has_open_attempt() && task.state != TaskState::Running;
            let is_handed_out = |task: &Task| waits(task) && work::can_be_repeated(state, run, task);
            let is_led =
                |leader| run.tasks.iter().any(|task| task.attempt_id == Some(leader) && is_handed_out(task));
            let is_lost = (task.state == TaskState::Running && theirs)
                || (waits(task) && !(is_handed_out(task) && task.leader().is_none_or(is_led)));
            if let (true, Some(attempt_id)) = (is_lost, task.attempt_id) {
                let attempt =
                    Attempt { run_id: run.id, task_key: task.key.clone(), attempt: task.attempt, attempt_id };
                events.push(ended(&attempt, &interrupted));
            }
        }
    }
    Decision { events, principal: Principal::system(), answer: Answer::Now(Ok(Reply::Done)) }
}
