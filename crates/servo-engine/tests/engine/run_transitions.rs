//! Every state of a run against every event and every input.
//!
//! The subject is a run of one task, `a`, which runs on worker `w1` wherever the run is at work: what ends the task
//! ends the run.

use std::sync::Arc;

use servo_core::{AssetKey, AttemptId, Fingerprint, Millis, PlanId, Timestamp};
use servo_engine::event::{
    ClockStepped, DispatchEnqueued, DispatchRequested, PlanCreated, RunCancelRequested, RunRequested,
    RunTriggered, TaskFinished, TaskHeartbeat, TaskStarted, TimerEnqueued, TimerFired, TimerKind,
    TimerRequested, UnknownEvent,
};
use servo_engine::{
    Attempt, Caller, CancelRun, Engine, EventData, EventKind, Input, Outcome, Reply, Report, RunReply,
    RunRequest, RunState, Settings, State, TriggerRun, Verdict,
};

use crate::support;
use crate::support::table;
use crate::support::{
    SECRET, World, answered, backfill_events, conflicted, deployed, empty_state, ended_as, event, key,
    notification_events, partitions_changed, pause_changed, plan, refused, released, retention_applied,
    reviewed, schedule_events, sensor_events, settings_changed, user_error,
};

fn request() -> TriggerRun {
    TriggerRun::new("first", plan(&[("a", &[])]), "me")
}

const STATES: [(&str, RunState); 8] = [
    ("PENDING, no plan", RunState::Pending),
    ("QUEUED", RunState::Queued),
    ("RUNNING", RunState::Running),
    ("CANCELLING", RunState::Cancelling),
    ("CANCELLED", RunState::Cancelled),
    ("TIMED_OUT", RunState::TimedOut),
    ("FAILED", RunState::Failed),
    ("SUCCEEDED", RunState::Succeeded),
];

fn subject(name: &str) -> World {
    let mut world = World::new(Settings::default());
    world.trigger(request());
    let prefix = |world: World, events: usize| {
        // The events of a trigger are one batch; only a fold can be caught between them.
        let mut state = empty_state(&Settings::default());
        for event in &world.events()[..events] {
            state.apply(event);
        }
        World { engine: Engine::new(state, SECRET), ..world }
    };
    match name {
        "PENDING, no plan" => return prefix(world, 1),
        "QUEUED" => return prefix(world, 2),
        _ => world.wait(1),
    }
    world.start("a").expect("a starts");
    world.wait(1);
    match name {
        "RUNNING" => {}
        "CANCELLING" => {
            world.cancel(false).expect("cancelled");
        }
        "CANCELLED" => {
            world.cancel(false).expect("cancelled");
            world.finish("a", ended_as(Outcome::Cancelled)).expect("stopped");
        }
        "TIMED_OUT" => {
            for _ in 0..24 * 60 {
                world.wait(60);
                world.beat("a").expect("a is heard of");
            }
            assert_eq!(world.run_state(), RunState::Cancelling);
            world.finish("a", ended_as(Outcome::Cancelled)).expect("stopped");
        }
        "FAILED" => {
            world.finish("a", user_error()).expect("failed");
        }
        "SUCCEEDED" => {
            world.finish("a", Report::succeeded()).expect("succeeded");
        }
        other => panic!("no such state: {other}"),
    }
    world
}

/// The attempt of `a` that the whole world knew; the run may not have come that far.
fn attempt(world: &World) -> Attempt {
    let events = world.events();
    let dispatched = events.iter().find_map(|event| support::dispatch(&event.data));
    let e = dispatched.expect("a trigger dispatches a").clone();
    Attempt { run_id: e.run_id, task_key: e.task_key, attempt: e.attempt, attempt_id: e.attempt_id }
}

fn events(world: &World) -> Vec<(String, EventData, Timestamp)> {
    let now = world.now.saturating_add(Millis::from_secs(1));
    let days = now.saturating_add(Millis::from_hours(72));
    let Attempt { run_id, task_key, attempt, attempt_id } = attempt(world);
    let all = world.events();
    let (EventData::RunRequested(asked), EventData::PlanCreated(planned)) =
        (all[0].data.clone(), all[1].data.clone())
    else {
        unreachable!("a trigger begins with a request and a plan")
    };
    let plan_id = planned.plan_id;
    let other = Fingerprint::parse(&format!("v1:sha256:{}", "0".repeat(64))).expect("a fingerprint");
    let cancel = |force| {
        let reason = String::new();
        EventData::RunCancelRequested(RunCancelRequested {
            run_id,
            reason,
            force,
            silent_since: None,
            by_system: false,
        })
    };
    let finished = |outcome| {
        let error = None;
        EventData::TaskFinished(TaskFinished {
            run_id,
            task_key: key("a"),
            attempt,
            attempt_id,
            outcome,
            error,
            materialization_id: None,
            outputs: Arc::default(),
            usage: None,
        })
    };
    let fired = |timer_type: TimerKind, fire_at| {
        let of_run = timer_type == TimerKind::RunTimeout;
        EventData::TimerFired(TimerFired {
            timer_type,
            run_id,
            task_key: (!of_run).then(|| key("a")),
            attempt: if of_run { 0 } else { attempt },
            fire_at,
            since: None,
        })
    };
    let mut list: Vec<(String, EventData, Timestamp)> = Vec::new();
    let mut add = |name: &str, data: EventData, at: Timestamp| list.push((name.to_owned(), data, at));
    add("RunRequested, same", EventData::RunRequested(asked.clone()), now);
    let conflicting = RunRequested { request_fingerprint: other, ..asked };
    add("RunRequested, other request", EventData::RunRequested(conflicting), now);
    add("PlanCreated, same", EventData::PlanCreated(planned.clone()), now);
    let other_plan = PlanCreated { plan_id: PlanId::from_parts(1, 1), ..planned };
    add("PlanCreated, other plan", EventData::PlanCreated(other_plan), now);
    add("RunTriggered", EventData::RunTriggered(RunTriggered { run_id, plan_id, timeout_ms: None }), now);
    let elsewhere = RunTriggered { run_id, plan_id: PlanId::from_parts(1, 1), timeout_ms: None };
    add("RunTriggered, other plan", EventData::RunTriggered(elsewhere), now);
    add("RunCancelRequested", cancel(false), now);
    add("RunCancelRequested, force", cancel(true), now);
    add("RunCancelRequested, force, silent", cancel(true), days);
    let next = DispatchRequested {
        run_id,
        task_key: task_key.clone(),
        attempt: attempt + 1,
        attempt_id: AttemptId::from_parts(4, 4),
        worker_queue: None,
        provenance: Arc::default(),
    };
    add("DispatchRequested, next", EventData::DispatchRequested(next), now);
    let enqueued = DispatchEnqueued { run_id, task_key: task_key.clone(), attempt, attempt_id };
    add("DispatchEnqueued", EventData::DispatchEnqueued(enqueued), now);
    let (timer_type, fire_at) = (TimerKind::Retry, days);
    let timer = TimerRequested { timer_type, run_id, task_key: task_key.clone(), attempt, fire_at };
    add("TimerRequested", EventData::TimerRequested(timer), now);
    let armed = TimerEnqueued { timer_type, run_id, task_key: task_key.clone(), attempt, fire_at };
    add("TimerEnqueued", EventData::TimerEnqueued(armed), now);
    add("TimerFired run_timeout, early", fired(TimerKind::RunTimeout, now), now);
    add("TimerFired run_timeout, due", fired(TimerKind::RunTimeout, days), days);
    add("TimerFired heartbeat, due", fired(TimerKind::HeartbeatCheck, days), days);
    add("TimerFired retry, due", fired(TimerKind::Retry, days), days);
    add("TimerFired dispatch_ack, due", fired(TimerKind::DispatchAck, days), days);
    let started =
        TaskStarted { run_id, task_key: task_key.clone(), attempt, attempt_id, worker_id: "w1".into() };
    add("TaskStarted", EventData::TaskStarted(started), now);
    let beat = TaskHeartbeat { run_id, task_key, attempt, attempt_id, heartbeat_at: now, progress: None };
    add("TaskHeartbeat", EventData::TaskHeartbeat(beat), now);
    for outcome in
        [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled, Outcome::TimedOut, Outcome::Interrupted]
    {
        add(&format!("TaskFinished {outcome:?}"), finished(outcome), now);
    }
    let stepped = EventData::ClockStepped(ClockStepped { expected: now, by_ms: 86_400_000 });
    add("ClockStepped", stepped, days);
    add("RunKeyConflicted", conflicted(run_id), now);
    add("RequestAnswered", answered(), now);
    add("AssetsDeployed", deployed(1), now);
    add("DynamicPartitionsChanged", partitions_changed(1), now);
    add("RequestRefused", refused(), now);
    add("MaterializationApproved", reviewed(Verdict::Approve), now);
    add("MaterializationRejected", reviewed(Verdict::Reject), now);
    add("MaterializationReleased", released(), now);
    add("RetentionApplied", retention_applied(), now);
    add("SettingsChanged", settings_changed(1), now);
    add("PauseChanged", pause_changed(1), now);
    for (name, data) in schedule_events(now)
        .into_iter()
        .chain(sensor_events(now))
        .chain(notification_events(now))
        .chain(backfill_events(now))
        .chain(support::life_events())
    {
        add(name, data, now);
    }
    for (name, data) in support::freshness_events(now) {
        add(name, data, now);
    }
    for (name, data) in support::condition_events(AssetKey::parse("t/a").expect("a key")) {
        add(name, data, now);
    }
    for (name, data) in support::worker_events() {
        add(name, data, now);
    }
    let unknown = UnknownEvent { event_type: "Later".to_owned(), event_version: 1, payload: "{}".to_owned() };
    add("Unknown", EventData::Unknown(unknown), now);
    list
}

fn run_state(state: &State, world: &World) -> RunState {
    state.run(world.run).expect("the run is in memory").state
}

/// Checked by hand against ADR-052:
/// - PENDING becomes RUNNING by `RunTriggered` of its own plan and in no other way; without a plan it does not start;
/// - a cancel of a run in which nothing is held by a worker ends it at once; RUNNING becomes CANCELLING while `a` runs,
///   and CANCELLED at once if `a` is silent and the cancel is forced;
/// - CANCELLING ends as CANCELLED however `a` ends, also when its worker falls silent;
/// - a run timeout is a cancellation (CANCELLING) that is never early and never follows another one;
/// - the four terminal columns hold no arrow: only facts about the task are still `applied` (the queue's answer, and
///   the first late result of a cancelled task), and they do not touch the run.
#[test]
fn every_state_of_a_run_against_every_event() {
    let worlds: Vec<World> = STATES.iter().map(|(name, _)| subject(name)).collect();
    let columns: Vec<_> = worlds.iter().map(events).collect();
    let mut rows = vec![vec!["event".to_owned()]];
    rows[0].extend(STATES.iter().map(|(name, _)| (*name).to_owned()));
    for (i, (name, ..)) in columns[0].iter().enumerate() {
        let mut row = vec![name.clone()];
        for (world, column) in worlds.iter().zip(&columns) {
            let (_, data, at) = &column[i];
            let mut state = world.state().clone();
            let applied = state.apply(&event(data.clone(), *at, 1));
            let (before, after) = (world.run_state(), run_state(&state, world));
            if before.is_terminal() {
                let (run, was) = (state.run(world.run).expect("in memory"), world.run());
                assert_eq!(
                    (run.state, run.counts, run.version),
                    (was.state, was.counts, was.version),
                    "{name}"
                );
            }
            row.push(table::fold_cell(applied, before, after));
        }
        rows.push(row);
    }
    insta::assert_snapshot!("run_events", table::aligned(&rows));
}

#[test]
fn every_state_of_a_run_is_reached_by_real_events() {
    for (name, state) in STATES {
        assert_eq!(subject(name).run_state(), state, "{name}");
    }
    let reached: std::collections::BTreeSet<_> = STATES.iter().map(|(_, state)| *state).collect();
    assert_eq!(reached.len(), RunState::ALL.len(), "every state has a column");
    let kinds: std::collections::BTreeSet<_> =
        events(&subject("RUNNING")).iter().map(|(_, data, _)| data.kind()).collect();
    assert_eq!(kinds.len(), EventKind::ALL.len() + 1, "every event kind, and Unknown, has a row");
}

/// Checked by hand against ADR-034: the same request is the same run in every state, another request
/// under its key is a conflict in every state, a run that has ended cannot be cancelled (409), and a run that is being
/// cancelled takes a second cancel as a duplicate.
#[test]
fn every_state_of_a_run_against_every_input() {
    let worlds: Vec<World> = STATES[2..].iter().map(|(name, _)| subject(name)).collect();
    let other = TriggerRun::of_tasks(
        "first",
        plan(&[("a", &[])]),
        RunRequest { priority: 7, caller: Caller::user("me"), ..RunRequest::default() },
    );
    let inputs = |world: &World| {
        let attempt = attempt(world);
        let cancel = |force| {
            let (caller, reason) = (Caller::user("me"), String::new());
            Input::Cancel(CancelRun { run_id: world.run, caller, reason, force })
        };
        vec![
            ("Trigger, same request", Input::Trigger(request()), 0),
            ("Trigger, other request", Input::Trigger(other.clone()), 0),
            ("Cancel", cancel(false), 0),
            ("Cancel, force", cancel(true), 0),
            ("Enqueued", Input::Enqueued(attempt.clone()), 0),
            ("Started", Input::Started(attempt.clone(), "w1".into()), 0),
            ("Heartbeat", Input::Heartbeat(attempt.clone(), world.now, None), 1),
            ("Finished Succeeded", Input::Finished(attempt.clone(), Report::succeeded()), 1),
            ("Finished Failed", Input::Finished(attempt.clone(), user_error()), 1),
            ("Finished Cancelled", Input::Finished(attempt.clone(), ended_as(Outcome::Cancelled)), 1),
            ("Finished TimedOut", Input::Finished(attempt.clone(), ended_as(Outcome::TimedOut)), 1),
            ("Finished Interrupted", Input::Finished(attempt, ended_as(Outcome::Interrupted)), 1),
            ("WorkersLost", Input::WorkersLost("w1".into()), 0),
            ("Sweep", Input::Sweep, 0),
            ("Sweep, two minutes later", Input::Sweep, 120),
            ("Sweep, two days later", Input::Sweep, 172_800),
        ]
    };
    let columns: Vec<_> = worlds.iter().map(inputs).collect();
    let mut rows = vec![vec!["input".to_owned()]];
    rows[0].extend(STATES[2..].iter().map(|(name, _)| (*name).to_owned()));
    for (i, (name, ..)) in columns[0].iter().enumerate() {
        let mut row = vec![(*name).to_owned()];
        for (world, column) in worlds.iter().zip(&columns) {
            let (_, input, later) = &column[i];
            let mut world = world.clone();
            let before = world.run_state();
            world.wait(*later);
            let reply = table::reply_word(&world.ask(input.clone()));
            let after = world.run_state();
            assert!(!before.is_terminal() || after == before, "{name} moved {before}");
            row.push(if after == before { reply } else { format!("{reply} -> {after}") });
        }
        rows.push(row);
    }
    insta::assert_snapshot!("run_inputs", table::aligned(&rows));
}

#[test]
fn a_run_is_in_the_log_from_request_to_end() {
    let mut world = World::new(Settings::default());
    let reply = world.ask(Input::Trigger(request())).expect("a new run");
    let Reply::Run(RunReply { run_id, accepted: Some(event_id) }) = reply else { panic!("{reply:?}") };
    world.run = run_id;
    assert_eq!(world.events()[0].id, event_id, "the caller is told the event that asked for it");
    world.succeed("a");
    let run = world.run();
    assert_eq!(run.state, RunState::Succeeded);
    assert_eq!(run.finished_event, Some(world.events().last().expect("events").id));
    let names: Vec<_> = world.events().iter().map(|e| e.data.kind().name()).collect();
    let expected =
        ["RunRequested", "PlanCreated", "RunTriggered", "DispatchRequested", "TaskStarted", "TaskFinished"];
    assert_eq!(names, expected);
}

#[test]
fn a_step_names_the_runs_that_ended_in_it_and_no_others() {
    let mut world = World::new(Settings::default());
    let run = world.trigger(request());
    let started = Input::Started(world.attempt("a"), "w1".into());
    assert!(world.step(&[started]).ended.is_empty());
    world.engine.state_mut().take_delta();
    let report = Input::Finished(world.attempt("a"), Report::succeeded());
    assert_eq!(world.step(&[report]).ended, [run]);
    assert!(world.step(&[Input::Sweep]).ended.is_empty(), "once");
    let replayed = support::fold(&Settings::default(), &world.events());
    let mut restarted = Engine::new(replayed, SECRET);
    assert!(restarted.step(&[Input::Sweep], world.now).ended.is_empty(), "a replay is not news");
}
