//! Every state of a task against every event and every input: applied, ignored (why) or refused (what kind).
//!
//! The subject is task `b` of `a -> {b, z}`, `b -> c`; `z` runs throughout, so that the run outlives
//! the subject (except under SKIPPED, where `a` failed and the run with it). Where
//! `b` has been dispatched, attempt 1 was interrupted and attempt 2 is the newest: "stale" means the real attempt 1.

use std::sync::Arc;

use servo_core::{AssetKey, AttemptId, Fingerprint, Millis, PlanId, RunId, TaskKey, Timestamp};
use servo_engine::event::{
    ClockStepped, DispatchEnqueued, DispatchRequested, PlanCreated, RunCancelRequested, RunRequested,
    RunTriggered, TaskFinished, TaskHeartbeat, TaskStarted, TimerEnqueued, TimerFired, TimerKind,
    TimerRequested, UnknownEvent,
};
use servo_engine::rows::TaskRow;
use servo_engine::{
    Applied, Attempt, Caller, CancelRun, Engine, ErrorCode, Event, EventData, Input, Outcome, Plan, Report,
    RetryPolicy, RunRequest, Settings, State, TaskError, TaskOptions, TaskState, TriggerRun, Verdict,
};

use crate::support;
use crate::support::table;
use crate::support::{
    SECRET, World, answered, backfill_events, conflicted, deployed, empty_state, ended_as, event, key,
    notification_events, partitions_changed, pause_changed, plan, plan_of, refused, released,
    retention_applied, reviewed, schedule_events, sensor_events, settings_changed, task, tenant, user_error,
    workspace,
};

const OUTCOMES: [Outcome; 5] =
    [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled, Outcome::TimedOut, Outcome::Interrupted];

fn the_plan() -> Plan {
    let retry = RetryPolicy { no_retry_on: vec!["Fatal".to_owned()], ..RetryPolicy::default() };
    let patient =
        || TaskOptions { heartbeat_timeout_ms: Some(Millis::from_hours(90)), ..TaskOptions::default() };
    plan_of(vec![
        task("a", &[], TaskOptions::default()),
        task("b", &["a"], TaskOptions { retry: Some(retry), ..TaskOptions::default() }),
        task("c", &["b"], TaskOptions::default()),
        task("z", &["a"], TaskOptions { priority: 9, ..patient() }),
    ])
}

fn request() -> TriggerRun {
    TriggerRun::new("first", the_plan(), "me")
}

/// `b` in one of its states, reached by what really happens.
fn subject(name: &str) -> World {
    let slots = if name == "READY, no slot" { 1 } else { 10 };
    let mut world = World::new(Settings { max_concurrent_tasks: slots, ..Settings::default() });
    if name == "PLANNED" {
        // The three events of a trigger are one batch; only a fold can be caught between them.
        let mut whole = World::new(Settings::default());
        whole.trigger(request());
        let mut state = empty_state(&Settings::default());
        for event in &whole.events()[..2] {
            state.apply(event);
        }
        return World { engine: Engine::new(state, SECRET), ..whole };
    }
    world.trigger(request());
    if name == "BLOCKED" {
        return world;
    }
    if name == "SKIPPED" {
        world.play("a", user_error());
        return world;
    }
    world.succeed("a");
    world.wait(1);
    world.start("z").expect("z starts");
    if name == "READY, no slot" {
        return world;
    }
    world.play("b", ended_as(Outcome::Interrupted));
    assert_eq!(world.task("b").attempt, 2);
    world.wait(1);
    let fatal = TaskError {
        error_type: Some("Fatal".to_owned()),
        ..TaskError::new(ErrorCode::UserCodeException, "x")
    };
    match name {
        "READY, outbox" => {}
        "DISPATCHED" => {
            world.enqueue("b").expect("enqueued");
        }
        "RUNNING" => {
            world.start("b").expect("started");
        }
        "RETRY_WAIT" => world.play("b", user_error()),
        "FAILED" => world.play("b", Report::failed(fatal)),
        "SUCCEEDED" => world.succeed("b"),
        "DISPATCHED, cancelling" => {
            world.enqueue("b").expect("enqueued");
            world.cancel(false).expect("cancelled");
        }
        "RUNNING, cancelling" => {
            world.start("b").expect("started");
            world.cancel(false).expect("cancelled");
        }
        "CANCELLED" => {
            world.start("b").expect("started");
            world.cancel(false).expect("cancelled");
            world.finish("b", ended_as(Outcome::Cancelled)).expect("stopped");
        }
        other => panic!("no such state: {other}"),
    }
    world
}

const STATES: [(&str, TaskState); 13] = [
    ("PLANNED", TaskState::Planned),
    ("BLOCKED", TaskState::Blocked),
    ("READY, no slot", TaskState::Ready),
    ("READY, outbox", TaskState::Ready),
    ("DISPATCHED", TaskState::Dispatched),
    ("RUNNING", TaskState::Running),
    ("DISPATCHED, cancelling", TaskState::Dispatched),
    ("RUNNING, cancelling", TaskState::Running),
    ("RETRY_WAIT", TaskState::RetryWait),
    ("SKIPPED", TaskState::Skipped),
    ("CANCELLED", TaskState::Cancelled),
    ("FAILED", TaskState::Failed),
    ("SUCCEEDED", TaskState::Succeeded),
];

/// The newest attempt; before the first, one that was made up.
fn newest(world: &World) -> Attempt {
    let task = world.task("b");
    Attempt {
        run_id: world.run,
        task_key: key("b"),
        attempt: task.attempt.max(1),
        attempt_id: task.attempt_id.unwrap_or(AttemptId::from_parts(1, 1)),
    }
}

/// Attempt 1 as it was dispatched; a forged token where it was never replaced.
fn stale(world: &World) -> Attempt {
    let events = world.events();
    let mut dispatches = events.iter().filter_map(|event| support::dispatch(&event.data));
    let real = dispatches.find(|e| e.task_key == key("b") && e.attempt == 1).map(|e| e.attempt_id);
    let attempt_id = real.unwrap_or(AttemptId::from_parts(2, 2));
    Attempt { run_id: world.run, task_key: key("b"), attempt: 1, attempt_id }
}

fn finished(attempt: &Attempt, outcome: Outcome) -> EventData {
    let error =
        (outcome == Outcome::Failed).then(|| Arc::new(TaskError::new(ErrorCode::UserCodeException, "boom")));
    EventData::TaskFinished(TaskFinished {
        run_id: attempt.run_id,
        task_key: attempt.task_key.clone(),
        attempt: attempt.attempt,
        attempt_id: attempt.attempt_id,
        outcome,
        error,
        materialization_id: None,
        outputs: Arc::default(),
        usage: None,
    })
}

fn first_of(world: &World, wanted: servo_engine::EventKind) -> EventData {
    let found = world.events().into_iter().find(|event| event.data.kind() == wanted);
    found.expect("every world begins with a trigger").data
}

/// Every event kind, about the newest attempt and about a stale one, early and late.
fn events(world: &World) -> Vec<(String, EventData, Timestamp)> {
    let now = world.now;
    let hour = now.saturating_add(Millis::from_hours(2));
    let (run_id, new, old) = (world.run, newest(world), stale(world));
    let task_key: TaskKey = key("b");
    let EventData::RunRequested(asked) = first_of(world, servo_engine::EventKind::RunRequested) else {
        unreachable!()
    };
    let EventData::PlanCreated(planned) = first_of(world, servo_engine::EventKind::PlanCreated) else {
        unreachable!()
    };
    let plan_id = planned.plan_id;
    let other = Fingerprint::parse(&format!("v1:sha256:{}", "0".repeat(64))).expect("a fingerprint");
    let cancel = |force| {
        EventData::RunCancelRequested(RunCancelRequested {
            run_id,
            reason: String::new(),
            force,
            silent_since: None,
            by_system: false,
        })
    };
    let dispatch = |attempt: u32, attempt_id| {
        EventData::DispatchRequested(DispatchRequested {
            run_id,
            task_key: task_key.clone(),
            attempt,
            attempt_id,
            worker_queue: None,
            provenance: Arc::default(),
        })
    };
    let mut list: Vec<(String, EventData, Timestamp)> = vec![
        ("RunRequested, same".into(), EventData::RunRequested(asked.clone()), now),
        (
            "RunRequested, other request".into(),
            EventData::RunRequested(RunRequested { request_fingerprint: other, ..asked }),
            now,
        ),
        ("PlanCreated, same".into(), EventData::PlanCreated(planned.clone()), now),
        (
            "PlanCreated, other plan".into(),
            EventData::PlanCreated(PlanCreated { plan_id: PlanId::from_parts(1, 1), ..planned }),
            now,
        ),
        (
            "RunTriggered".into(),
            EventData::RunTriggered(RunTriggered { run_id, plan_id, timeout_ms: None }),
            now,
        ),
        ("RunCancelRequested".into(), cancel(false), now),
        ("RunCancelRequested, force".into(), cancel(true), now),
        ("RunCancelRequested, force, silent".into(), cancel(true), hour),
        ("DispatchRequested, newest".into(), dispatch(new.attempt, new.attempt_id), now),
        ("DispatchRequested, stale".into(), dispatch(old.attempt, AttemptId::from_parts(3, 3)), now),
        ("DispatchRequested, next".into(), dispatch(new.attempt + 1, AttemptId::from_parts(4, 4)), now),
    ];
    for (which, about) in [("newest", &new), ("stale", &old)] {
        let Attempt { attempt, attempt_id, .. } = *about;
        let task_key = task_key.clone();
        let enqueued = DispatchEnqueued { run_id, task_key: task_key.clone(), attempt, attempt_id };
        list.push((format!("DispatchEnqueued, {which}"), EventData::DispatchEnqueued(enqueued), now));
        // A timer says which attempt it is for by its number: there is no token for what has ended.
        let timer_of = if which == "newest" { world.task("b").attempt } else { old.attempt };
        let timer = TimerRequested {
            timer_type: TimerKind::Retry,
            run_id,
            task_key: task_key.clone(),
            attempt: timer_of,
            fire_at: hour,
        };
        let armed = TimerEnqueued {
            timer_type: TimerKind::Retry,
            run_id,
            task_key: task_key.clone(),
            attempt: timer_of,
            fire_at: hour,
        };
        list.push((format!("TimerRequested, {which}"), EventData::TimerRequested(timer), now));
        list.push((format!("TimerEnqueued, {which}"), EventData::TimerEnqueued(armed), now));
        for (when, at) in [("early", now), ("due", hour)] {
            for timer_type in [TimerKind::Retry, TimerKind::HeartbeatCheck, TimerKind::DispatchAck] {
                let fired = TimerFired {
                    timer_type,
                    run_id,
                    task_key: Some(task_key.clone()),
                    attempt: timer_of,
                    fire_at: at,
                    since: None,
                };
                list.push((
                    format!("TimerFired {}, {which}, {when}", timer_type.id_part()),
                    EventData::TimerFired(fired),
                    at,
                ));
            }
        }
        let started =
            TaskStarted { run_id, task_key: task_key.clone(), attempt, attempt_id, worker_id: "w1".into() };
        list.push((format!("TaskStarted, {which}"), EventData::TaskStarted(started), now));
        let beat = TaskHeartbeat {
            run_id,
            task_key: task_key.clone(),
            attempt,
            attempt_id,
            heartbeat_at: now,
            progress: None,
        };
        let soon = now.saturating_add(Millis::from_secs(1));
        list.push((format!("TaskHeartbeat, {which}"), EventData::TaskHeartbeat(beat), soon));
        for outcome in OUTCOMES {
            list.push((format!("TaskFinished {outcome:?}, {which}"), finished(about, outcome), soon));
        }
    }
    let run_timeout = |fire_at| {
        let timer_type = TimerKind::RunTimeout;
        EventData::TimerFired(TimerFired {
            timer_type,
            run_id,
            task_key: None,
            attempt: 0,
            fire_at,
            since: None,
        })
    };
    let days = now.saturating_add(Millis::from_hours(48));
    list.push(("TimerFired run_timeout, early".into(), run_timeout(now), now));
    list.push(("TimerFired run_timeout, due".into(), run_timeout(days), days));
    let elsewhere = RunId::from_u128(7);
    let nowhere = Attempt { run_id: elsewhere, ..new.clone() };
    list.push(("TaskFinished, unknown run".into(), finished(&nowhere, Outcome::Succeeded), now));
    let nobody = Attempt { task_key: key("nobody"), ..new };
    list.push(("TaskFinished, unknown task".into(), finished(&nobody, Outcome::Succeeded), now));
    let stepped = EventData::ClockStepped(ClockStepped { expected: now, by_ms: 86_400_000 });
    list.push(("ClockStepped".into(), stepped, days));
    list.push(("RunKeyConflicted".into(), conflicted(run_id), now));
    list.push(("RequestAnswered".into(), answered(), now));
    list.push(("AssetsDeployed".into(), deployed(1), now));
    list.push(("DynamicPartitionsChanged".into(), partitions_changed(1), now));
    list.push(("RequestRefused".into(), refused(), now));
    list.push(("MaterializationApproved".into(), reviewed(Verdict::Approve), now));
    list.push(("MaterializationRejected".into(), reviewed(Verdict::Reject), now));
    list.push(("MaterializationReleased".into(), released(), now));
    list.push(("RetentionApplied".into(), retention_applied(), now));
    list.push(("SettingsChanged".into(), settings_changed(1), now));
    list.push(("PauseChanged".into(), pause_changed(1), now));
    list.extend(schedule_events(now).into_iter().map(|(name, data)| (name.into(), data, now)));
    list.extend(sensor_events(now).into_iter().map(|(name, data)| (name.into(), data, now)));
    list.extend(notification_events(now).into_iter().map(|(name, data)| (name.into(), data, now)));
    list.extend(backfill_events(now).into_iter().map(|(name, data)| (name.into(), data, now)));
    list.extend(support::freshness_events(now).into_iter().map(|(name, data)| (name.into(), data, now)));
    let conditions = support::condition_events(AssetKey::parse("t/a").expect("a key"));
    list.extend(conditions.into_iter().map(|(name, data)| (name.into(), data, now)));
    list.extend(support::life_events().into_iter().map(|(name, data)| (name.into(), data, now)));
    list.extend(support::worker_events().into_iter().map(|(name, data)| (name.into(), data, now)));
    let unknown = UnknownEvent { event_type: "Later".to_owned(), event_version: 1, payload: "{}".to_owned() };
    list.push(("Unknown".into(), EventData::Unknown(unknown), now));
    list
}

fn apply(world: &World, data: EventData, at: Timestamp) -> (Applied, servo_engine::State) {
    let mut state = world.state().clone();
    let event: Event = event(data, at, 1);
    let applied = state.apply(&event);
    (applied, state)
}

/// Checked by hand against ADR-037, ADR-042 and ADR-052:
/// - terminal columns hold no arrow at all: nothing moves a task out of SKIPPED, CANCELLED, FAILED or SUCCEEDED;
///   CANCELLED records the one late result (`applied`), SKIPPED and the others record nothing;
/// - §19.2: cancel moves PLANNED, BLOCKED, READY (with or without an outbox row) and RETRY_WAIT to CANCELLED at once,
///   leaves DISPATCHED and RUNNING (`applied`: the run is cancelling), and force takes RUNNING only when silent;
/// - in a cancelling run every end of an attempt is CANCELLED, whatever the worker says;
/// - a stale attempt is `stale` in every row and column, and before the first dispatch so is any attempt at all;
/// - each timer kind acts in its own state only (retry: RETRY_WAIT, heartbeat: RUNNING, dispatch_ack: DISPATCHED and an
///   outbox row that waits), never early, and never for another attempt (INV-9);
/// - FAILED and TIMED_OUT wait for a retry under `b`'s policy, INTERRUPTED and dispatch_ack go back to READY without
///   using up an attempt, an unasked CANCELLED fails at once.
#[test]
fn every_state_of_a_task_against_every_event() {
    let worlds: Vec<World> = STATES.iter().map(|(name, _)| subject(name)).collect();
    let mut rows = vec![vec!["event".to_owned()]];
    rows[0].extend(STATES.iter().map(|(name, _)| (*name).to_owned()));
    let columns: Vec<_> = worlds.iter().map(events).collect();
    for (i, (name, ..)) in columns[0].iter().enumerate() {
        let mut row = vec![name.clone()];
        for (world, column) in worlds.iter().zip(&columns) {
            let (same_name, data, at) = &column[i];
            assert_eq!(same_name, name);
            let (applied, state) = apply(world, data.clone(), *at);
            let after = state.task(world.run, &key("b")).expect("b is there").state;
            row.push(table::fold_cell(applied, world.task_state("b"), after));
        }
        rows.push(row);
    }
    insta::assert_snapshot!("task_events", table::aligned(&rows));
}

#[test]
fn every_state_is_reached_by_real_events() {
    for (name, state) in STATES {
        assert_eq!(subject(name).task_state("b"), state, "{name}");
    }
    let reached: std::collections::BTreeSet<_> = STATES.iter().map(|(_, state)| *state).collect();
    assert_eq!(reached.len(), TaskState::ALL.len(), "every state has a column");
    let kinds: std::collections::BTreeSet<_> =
        events(&subject("RUNNING")).iter().map(|(_, data, _)| data.kind()).collect();
    assert_eq!(
        kinds.len(),
        servo_engine::EventKind::ALL.len() + 1,
        "every event kind, and Unknown, has a row"
    );
}

#[test]
fn terminal_states_absorb_every_event() {
    for (name, state) in STATES.iter().filter(|(_, state)| state.is_terminal()) {
        let world = subject(name);
        for (what, data, at) in events(&world) {
            let (_, after) = apply(&world, data, at);
            let task = after.task(world.run, &key("b")).expect("b is there");
            assert_eq!(task.state, *state, "{what} moved {name}");
            assert_eq!(task.finished_at, world.task("b").finished_at, "{what} moved the end of {name}");
            assert_eq!(task.materialization, None, "{what} promoted the output of {name}");
        }
    }
}

#[test]
fn an_ignored_event_changes_no_row() {
    for (name, _) in STATES {
        let world = subject(name);
        for (what, data, at) in events(&world) {
            let kind = data.kind();
            let (applied, after) = apply(&world, data, at);
            let Applied::No(why) = applied else { continue };
            let (mut before, mut after) = (world.state().rows(), after.rows());
            before.head = after.head;
            if why == servo_engine::Ignored::RunKeyConflict || kind == servo_engine::EventKind::TaskFinished {
                // Recorded once: their keys are remembered, and nothing else.
                before.idempotency.clear();
                after.idempotency.clear();
            }
            assert_eq!(before, after, "{what} in {name}");
        }
    }
}

/// Every input of workers, queues, users and the engine itself.
fn inputs(world: &World) -> Vec<(String, Input, u64)> {
    let (new, old) = (newest(world), stale(world));
    let cancel = |force| {
        Input::Cancel(CancelRun {
            run_id: world.run,
            caller: Caller::user("me"),
            reason: String::new(),
            force,
        })
    };
    let other_request = TriggerRun::of_tasks(
        "first",
        the_plan(),
        RunRequest { priority: 7, caller: Caller::user("me"), ..RunRequest::default() },
    );
    let mut list = vec![
        ("Trigger, same request".to_owned(), Input::Trigger(request()), 0),
        ("Trigger, other request".to_owned(), Input::Trigger(other_request), 0),
        ("Cancel".to_owned(), cancel(false), 0),
        ("Cancel, force".to_owned(), cancel(true), 0),
    ];
    for (which, about) in [("newest", &new), ("stale", &old)] {
        let beat = Input::Heartbeat(about.clone(), world.now, None);
        list.push((format!("Enqueued, {which}"), Input::Enqueued(about.clone()), 0));
        list.push((format!("Started by w1, {which}"), Input::Started(about.clone(), "w1".into()), 0));
        list.push((format!("Started by w2, {which}"), Input::Started(about.clone(), "w2".into()), 0));
        list.push((format!("Heartbeat, {which}"), beat, 1));
        for outcome in OUTCOMES {
            let report = if outcome == Outcome::Failed { user_error() } else { ended_as(outcome) };
            list.push((format!("Finished {outcome:?}, {which}"), Input::Finished(about.clone(), report), 1));
        }
    }
    let elsewhere = Attempt { run_id: RunId::from_u128(7), ..new.clone() };
    let nobody = Attempt { task_key: key("nobody"), ..new };
    list.push(("Started, unknown run".to_owned(), Input::Started(elsewhere, "w1".into()), 0));
    list.push(("Started, unknown task".to_owned(), Input::Started(nobody, "w1".into()), 0));
    list.push(("WorkersLost, w1".to_owned(), Input::WorkersLost("w1".into()), 0));
    list.push(("WorkersLost, w2".to_owned(), Input::WorkersLost("w2".into()), 0));
    list.push(("Sweep".to_owned(), Input::Sweep, 0));
    list
}

/// Checked by hand against ADR-052:
/// - `started` on a cancelled task is a conflict (409), and ends a DISPATCHED task of a cancelling run as CANCELLED;
///   on an attempt that ended it is gone (410); a second worker is refused, the same worker may ask again;
/// - `heartbeat` of anything but the running newest attempt is gone (410: stop now), in a cancelling run it answers
///   `should cancel`;
/// - a stale attempt is a conflict for `started` and `finished`; nothing a stale attempt sends moves the task;
/// - results in a cancelling run are `late`, and so is the first result for a task that is CANCELLED already;
/// - `READY` after `Interrupted` is attempt 3 already, dispatched by the same step.
///
/// The column PLANNED is left out: no step ends there.
#[test]
fn every_state_of_a_task_against_every_input() {
    let worlds: Vec<World> = STATES[1..].iter().map(|(name, _)| subject(name)).collect();
    let mut rows = vec![vec!["input".to_owned()]];
    rows[0].extend(STATES[1..].iter().map(|(name, _)| (*name).to_owned()));
    let columns: Vec<_> = worlds.iter().map(inputs).collect();
    for (i, (name, ..)) in columns[0].iter().enumerate() {
        let mut row = vec![name.clone()];
        for (world, column) in worlds.iter().zip(&columns) {
            let (_, input, later) = &column[i];
            let mut world = world.clone();
            let (state, attempt) = (world.task_state("b"), world.task("b").attempt);
            world.wait(*later);
            let reply = table::reply_word(&world.ask(input.clone()));
            let (after, attempt_after) = (world.task_state("b"), world.task("b").attempt);
            assert!(!state.is_terminal() || after == state, "{name} moved {state}");
            row.push(if (after, attempt_after) == (state, attempt) {
                reply
            } else if attempt_after == attempt {
                format!("{reply} -> {after}")
            } else {
                format!("{reply} -> {after} #{attempt_after}")
            });
        }
        rows.push(row);
    }
    insta::assert_snapshot!("task_inputs", table::aligned(&rows));
}

#[test]
fn rows_of_a_task_that_runs_without_a_worker_are_refused() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    let rows = world.state().rows();
    assert!(State::from_rows(tenant(), workspace(), rows.clone()).is_ok());
    for change in [
        (|row: &mut TaskRow| (row.started_at, row.worker_id) = (None, None)) as fn(&mut TaskRow),
        |row: &mut TaskRow| row.worker_id = None,
        |row: &mut TaskRow| row.started_at = None,
    ] {
        let mut rows = rows.clone();
        rows.tasks.iter_mut().for_each(change);
        match State::from_rows(tenant(), workspace(), rows) {
            Ok(_) => panic!("a task that runs without a worker was restored"),
            Err(error) => assert!(error.to_string().contains("worker"), "{error}"),
        }
    }
}
