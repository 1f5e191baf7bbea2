//! Admission: the run queue, pools, labels, pauses, and why something waits (ADR-097).

use std::collections::BTreeSet;

use proptest::prelude::*;
use servo_core::{EventId, Millis, RunId, TaskKey, Timestamp};
use servo_engine::{
    Caller, ChangeSettings, Engine, Input, Pause, Plan, Refusal, Report, RunRequest, RunSource, RunState,
    SettingOrigin, SettingValue, Settings, State, TaskOptions, TaskState, TriggerRun, WaitReason, why,
};

use crate::support;
use crate::support::sim::{Sim, stories};
use crate::support::{World, key, plan, plan_of, task};

fn one() -> Plan {
    plan(&[("a", &[])])
}

fn request(run_key: &str, request: RunRequest) -> TriggerRun {
    TriggerRun::of_tasks(run_key, one(), RunRequest { caller: Caller::user("me"), ..request })
}

fn backfill(number: usize) -> TriggerRun {
    let source = RunSource::Backfill { id: "b".into(), chunk: format!("b:{number}").into() };
    request(&format!("chunk {number}"), RunRequest { source, ..RunRequest::default() })
}

fn pause(scope: &str, paused: bool) -> Input {
    let scope = scope.parse().expect("a scope");
    Input::Pause(Pause { scope, paused, reason: "a test".to_owned(), caller: Caller::user("me") })
}

fn set(name: &str, value: u64) -> Input {
    Input::ChangeSettings(ChangeSettings {
        set: [(name.to_owned(), SettingValue::Number(value))].into(),
        unset: Vec::new(),
        origin: SettingOrigin::Cli,
        caller: Caller::user("me"),
    })
}

fn states(world: &World) -> Vec<(String, RunState)> {
    let mut runs: Vec<_> = world.state().runs().collect();
    runs.sort_by_key(|run| run.requested);
    runs.into_iter().map(|run| (run.key.to_string(), run.state)).collect()
}

fn at_work(world: &World) -> Vec<String> {
    states(world).into_iter().filter(|(_, state)| *state == RunState::Running).map(|(key, _)| key).collect()
}

/// Ends the only task of a run.
fn end(world: &mut World, run_key: &str) {
    let found = world.state().runs().find(|run| &*run.key == run_key).map(|run| run.id);
    world.run = found.expect("it is there");
    world.succeed("a");
}

#[test]
fn runs_beyond_the_limit_wait_by_priority_and_age_and_start_when_others_end() {
    let mut world = World::new(Settings { max_concurrent_runs: 1, ..Settings::default() });
    world.trigger(request("first", RunRequest::default()));
    world.trigger(request("second", RunRequest::default()));
    world.trigger(request("third", RunRequest::default()));
    world.trigger(request("urgent", RunRequest { priority: 5, ..RunRequest::default() }));
    assert_eq!(at_work(&world), ["first"]);
    assert_eq!((world.state().queued_runs(), world.task_state("a")), (3, TaskState::Planned));
    assert_eq!(world.state().run(world.run).and_then(|run| run.started_at), None);
    for expected in ["urgent", "second", "third"] {
        let before = at_work(&world)[0].clone();
        end(&mut world, &before);
        assert_eq!(at_work(&world), [expected]);
    }
}

#[test]
fn a_queued_run_keeps_its_timeout_and_can_be_cancelled() {
    let mut world = World::new(Settings { max_concurrent_runs: 1, ..Settings::default() });
    world.trigger(request("first", RunRequest::default()));
    let timeout = Some(Millis::from_minutes(3));
    world.trigger(request("second", RunRequest { timeout, ..RunRequest::default() }));
    assert_eq!(world.run().timeout, timeout);
    world.trigger(request("third", RunRequest::default()));
    world.cancel(false).expect("cancelled");
    assert_eq!((world.run_state(), world.state().queued_runs()), (RunState::Cancelled, 1));
    world.wait(60);
    end(&mut world, "first");
    let second = world.state().runs().find(|run| &*run.key == "second").expect("it is there");
    assert_eq!(
        second.deadline(world.state().settings()),
        Some(support::after(60 + 180)),
        "counted from its start"
    );
}

#[test]
fn a_full_queue_refuses_with_its_figures_and_restores_from_rows() {
    let settings = Settings { max_concurrent_runs: 1, max_queued_runs: 2, ..Settings::default() };
    let mut world = World::new(settings);
    for run in ["1", "2", "3"] {
        world.trigger(request(run, RunRequest::default()));
    }
    let refused = world.ask(Input::Trigger(request("4", RunRequest::default()))).expect_err("full");
    assert_eq!(refused, Refusal::Quota { quota: "max_queued_runs", limit: 2, used: 2 });
    let rows = world.state().rows();
    let restored = State::from_rows(support::tenant(), support::workspace(), rows.clone()).expect("rows fit");
    assert_eq!((restored.queued_runs(), restored.rows()), (2, rows));
}

#[test]
fn runs_beyond_those_of_a_day_are_refused_until_the_next_one_and_the_count_survives_a_restart() {
    let mut world = World::new(Settings { max_daily_runs: Some(2), ..Settings::default() });
    world.now = support::after(23 * 3_600);
    for run in ["1", "2"] {
        world.trigger(request(run, RunRequest::default()));
    }
    let third = || Input::Trigger(request("3", RunRequest::default()));
    let refused = world.ask(third()).expect_err("used up");
    assert_eq!(refused, Refusal::DailyRuns { limit: 2, used: 2, left: Millis::from_hours(1) });
    assert_eq!(
        refused.to_string(),
        "quota max_daily_runs is used up: 2 of 2; the day ends in 1h, at 00:00 UTC"
    );
    world.ask(Input::Trigger(request("2", RunRequest::default()))).expect("the same request is no new run");
    let rows = world.state().rows();
    let restored = State::from_rows(support::tenant(), support::workspace(), rows.clone()).expect("rows fit");
    assert_eq!((restored.runs_on_day(world.now), restored.rows()), (2, rows));

    world.now = support::after(24 * 3_600);
    world.ask(third()).expect("another day");
    assert_eq!(world.state().runs_on_day(world.now), 1);
    // A clock that is set back does not give the runs of the day before again.
    world.now = support::after(23 * 3_600);
    world.trigger(request("4", RunRequest::default()));
    let refused = world.ask(Input::Trigger(request("5", RunRequest::default()))).expect_err("used up");
    assert!(matches!(refused, Refusal::DailyRuns { limit: 2, used: 2, .. }), "{refused:?}");
    world.ask(set("max_daily_runs", 3)).expect("set");
    world.ask(Input::Trigger(request("5", RunRequest::default()))).expect("the limit was raised");
}

#[test]
fn tasks_beyond_those_that_may_be_on_their_way_stay_ready_until_a_worker_begins_one() {
    let mut world = World::new(Settings { max_queued_tasks: 1, ..Settings::default() });
    world.trigger(TriggerRun::of_tasks(
        "run",
        plan(&[("a", &[]), ("b", &[])]),
        RunRequest { caller: Caller::user("me"), ..RunRequest::default() },
    ));
    assert_eq!((world.state().queued_tasks(), world.state().waiting()), (1, 1));
    let found = why(world.state(), world.run).expect("it is there");
    let expected = WaitReason::QueuedTasks { queued: 1, limit: 1 };
    assert!(
        found.tasks.iter().any(|task| task.waits.iter().any(|wait| wait.reason == expected)),
        "{found:?}"
    );
    assert_eq!(expected.text(), "1 tasks are on their way to workers, 1 may be");
    world.start("a").expect("it begins");
    assert_eq!((world.state().queued_tasks(), world.state().outstanding()), (1, 2), "the next one is sent");
    world.ask(set("max_queued_tasks", 0)).expect("set");
    world.start("b").expect("it begins");
    world.succeed("a");
    world.trigger(request("later", RunRequest::default()));
    assert_eq!((world.state().queued_tasks(), world.state().waiting()), (0, 1), "0 holds everything back");
}

#[test]
fn a_backfill_of_many_holds_up_neither_a_person_nor_a_schedule() {
    let settings = Settings { max_concurrent_runs: 3, max_concurrent_tasks: 2, ..Settings::default() };
    let mut world = World::new(settings);
    for number in 0..20 {
        world.trigger(backfill(number));
    }
    world.trigger(request("person", RunRequest::default()));
    let source = RunSource::Schedule { id: "daily".into(), tick: world.now };
    world.trigger(request("schedule", RunRequest { source, ..RunRequest::default() }));
    assert_eq!(at_work(&world), ["chunk 0", "chunk 1", "chunk 2"]);
    end(&mut world, "chunk 0");
    assert_eq!(at_work(&world), ["chunk 1", "chunk 2", "person"], "before 17 chunks that are older");
    end(&mut world, "chunk 1");
    assert_eq!(at_work(&world), ["chunk 2", "person", "schedule"]);
    let dispatched: Vec<String> = world
        .state()
        .runs()
        .filter(|run| run.tasks[0].has_open_attempt())
        .map(|run| run.key.to_string())
        .collect();
    assert!(dispatched.contains(&"person".to_owned()), "slots are shared as well: {dispatched:?}");
    end(&mut world, "person");
    assert_eq!(at_work(&world).len(), 3, "the backfill goes on when nobody else asks");
}

#[test]
fn one_run_per_customer_lets_others_pass() {
    let mut world = World::new(Settings::default());
    world.ask(set("runs_per.customer", 1)).expect("set");
    let of = |run: &str, customer: &str| {
        let labels = [("customer".to_owned(), customer.to_owned())].into();
        request(run, RunRequest { labels, ..RunRequest::default() })
    };
    world.trigger(of("acme 1", "acme"));
    world.trigger(of("acme 2", "acme"));
    let acme = world.run;
    world.trigger(of("globex 1", "globex"));
    world.trigger(request("nobody", RunRequest::default()));
    assert_eq!(at_work(&world), ["acme 1", "globex 1", "nobody"]);
    let reasons = why(world.state(), acme).expect("it is there").waits;
    let expected = WaitReason::Label { name: "customer".into(), value: "acme".into(), at_work: 1, limit: 1 };
    assert_eq!(reasons.iter().map(|wait| wait.reason.clone()).collect::<Vec<_>>(), [expected]);
    end(&mut world, "acme 1");
    assert_eq!(at_work(&world), ["acme 2", "globex 1", "nobody"]);
    world.ask(set("runs_with.customer=globex", 3)).expect("set");
    world.trigger(of("globex 2", "globex"));
    assert_eq!(
        states(&world).last().map(|(_, state)| *state),
        Some(RunState::Queued),
        "the lower limit counts"
    );
}

#[test]
fn a_pool_limits_its_tasks_across_runs_and_gives_every_slot_back() {
    let mut world = World::new(Settings::default());
    world.ask(set("pool.warehouse", 2)).expect("set");
    let pooled = || TaskOptions { pool: Some("warehouse".into()), ..TaskOptions::default() };
    let three = plan_of(vec![
        task("a", &[], pooled()),
        task("b", &[], pooled()),
        task("c", &[], TaskOptions::default()),
    ]);
    world.trigger(TriggerRun::new("first", three.clone(), "me"));
    let first = world.run;
    world.trigger(TriggerRun::new("second", three, "me"));
    assert_eq!(
        (world.state().outstanding(), world.state().waiting()),
        (4, 2),
        "two of the pool, two of no pool"
    );
    let found = why(world.state(), world.run).expect("it is there");
    let pool = WaitReason::Pool { pool: "warehouse".into(), at_work: 2, limit: 2 };
    assert!(found.tasks.iter().any(|task| task.waits.iter().any(|wait| wait.reason == pool)), "{found:?}");
    world.run = first;
    world.cancel(false).expect("cancelled");
    world.wait(1);
    for name in ["a", "b", "c"] {
        world.finish(name, support::ended_as(servo_engine::Outcome::Cancelled)).expect("stopped");
    }
    assert_eq!(
        (world.state().outstanding(), world.state().waiting()),
        (3, 0),
        "the second has the pool for itself"
    );
    let load = why::load(world.state());
    assert_eq!(load.pools, [("warehouse".to_owned(), 2, Some(2))]);
}

#[test]
fn a_pause_stops_what_it_is_about_and_nothing_else_and_outlives_a_restart() {
    let mut world = World::new(Settings::default());
    let big = TaskOptions { worker_queue: Some("big".into()), ..TaskOptions::default() };
    let both = plan_of(vec![task("a", &[], TaskOptions::default()), task("b", &[], big)]);
    for (scope, waits) in [("queue:big", "b"), ("asset:t.a", "a"), ("all", "both")] {
        world.ask(pause(scope, true)).expect("paused");
        assert!(world.step(&[pause(scope, true)]).events.is_empty(), "paused already");
        world.trigger(TriggerRun::new(scope, both.clone(), "me"));
        let is_open =
            |name: &str| world.state().task(world.run, &key(name)).is_some_and(|t| t.has_open_attempt());
        if waits == "both" {
            assert_eq!(world.run_state(), RunState::Queued, "no run starts");
        } else {
            assert_eq!((is_open("a"), is_open("b")), (waits != "a", waits != "b"), "{scope}");
        }
        let rows = world.state().rows();
        let restored =
            State::from_rows(support::tenant(), support::workspace(), rows.clone()).expect("rows fit");
        assert_eq!((restored.rows(), restored.waiting()), (rows, world.state().waiting()));
        world.ask(pause(scope, false)).expect("resumed");
        let is_open =
            |name: &str| world.state().task(world.run, &key(name)).is_some_and(|t| t.has_open_attempt());
        assert!(is_open("a") && is_open("b"), "{scope}");
        world.ask(pause(scope, false)).expect("resumed already");
    }
    assert_eq!(world.state().pauses().filter(|row| row.paused).count(), 0);
}

#[test]
fn every_reason_is_named_with_the_time_and_what_would_change_it() {
    let retried = TaskOptions { retry: Some(servo_engine::RetryPolicy::default()), ..TaskOptions::default() };
    let mut world = World::with(plan_of(vec![
        task("a", &[], retried),
        task("b", &["a"], TaskOptions::default()),
        task("c", &[], TaskOptions::default()),
    ]));
    let texts = |world: &World| -> Vec<String> {
        let found = why(world.state(), world.run).expect("it is there");
        let tasks = found.tasks.into_iter().flat_map(|task| task.waits);
        tasks
            .map(|wait| format!("{}: {} ({})", wait.reason.kind(), wait.reason.text(), wait.reason.remedy()))
            .collect()
    };
    let worker = "worker: no worker has taken it from queue default \
                  (a worker with a free slot: servo worker --queue default)";
    assert_eq!(texts(&world), [worker, "dependency: waits for t.a (the end of these tasks)", worker,]);
    world.start("c").expect("starts");
    world.play("a", support::user_error());
    assert!(texts(&world)[0].starts_with("retry_wait: failed once, is tried again at 2025-01-15T00:0"));
    world.finish("c", Report::succeeded()).expect("succeeds");
    assert_eq!(why(world.state(), world.run).expect("it is there").running, 0);
}

/// The engine after removing these reasons, as people would.
fn without(engine: &Engine, now: Timestamp, reasons: &[WaitReason]) -> Engine {
    let mut engine = engine.clone();
    let inputs: Vec<Input> = reasons
        .iter()
        .map(|reason| match reason {
            WaitReason::Queue { .. } => set("max_concurrent_runs", 1_000_000),
            WaitReason::Quota { .. } => set("max_concurrent_tasks", 1_000_000),
            WaitReason::QueuedTasks { .. } => set("max_queued_tasks", 1_000_000),
            WaitReason::Pool { pool, .. } => set(&format!("pool.{pool}"), 1_000_000),
            WaitReason::Label { name, .. } => set(&format!("runs_per.{name}"), 1_000_000),
            WaitReason::Pause { scope, .. } => pause(scope, false),
            WaitReason::PushLimit { queue, .. } => set(&format!("push_limit.{queue}"), 1_000_000),
            WaitReason::Dependency { .. }
            | WaitReason::Worker { .. }
            | WaitReason::NoWorker { .. }
            | WaitReason::Slots { .. }
            | WaitReason::Rename { .. }
            | WaitReason::Call { .. }
            | WaitReason::Retry { .. } => {
                unreachable!("nobody can remove {reason:?}")
            }
        })
        .collect();
    engine.step(&inputs, now);
    engine
}

/// Removes all reasons, and those that come instead because others went first. It must go on, each reason removed once.
fn goes_on_without_reasons(
    sim: &Sim,
    waits: impl Fn(&State) -> Vec<WaitReason>,
    goes_on: impl Fn(&State) -> bool,
) -> bool {
    let (mut engine, mut removed) = (sim.engine.clone(), BTreeSet::new());
    while !goes_on(engine.state()) {
        let reasons = waits(engine.state());
        let is_news = |reason: &WaitReason| removed.insert(reason.remedy());
        if reasons.is_empty() || !reasons.iter().all(is_news) {
            return false;
        }
        engine = without(&engine, sim.now, &reasons);
    }
    true
}

fn is_removable(reason: &WaitReason) -> bool {
    match reason {
        WaitReason::Queue { .. }
        | WaitReason::Quota { .. }
        | WaitReason::QueuedTasks { .. }
        | WaitReason::Pool { .. }
        | WaitReason::Label { .. }
        | WaitReason::PushLimit { .. }
        | WaitReason::Pause { .. } => true,
        WaitReason::Dependency { .. }
        | WaitReason::Worker { .. }
        | WaitReason::NoWorker { .. }
        | WaitReason::Slots { .. }
        | WaitReason::Rename { .. }
        | WaitReason::Call { .. }
        | WaitReason::Retry { .. } => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// One of the reasons left: it does not go on. All of them gone: it does, or others have taken the room before it,
    /// which is then the reason.
    #[test]
    fn what_waits_has_exactly_the_reasons_that_hold_it_back(story in stories()) {
        let sim = Sim::play(&story);
        let state = sim.engine.state();
        let runs: Vec<_> = state.runs().filter(|run| !run.state.is_terminal()).map(|run| run.id).collect();
        for id in runs {
            let found = why(state, id).expect("it is in memory");
            let all: Vec<WaitReason> = found.waits.iter().map(|wait| wait.reason.clone()).collect();
            let is_queued = |state: &State| state.run(id).is_some_and(|run| run.state == RunState::Queued);
            if is_queued(state) {
                prop_assert!(!all.is_empty());
                let waits = |state: &State| reasons_of_run(state, id);
                prop_assert!(goes_on_without_reasons(&sim, waits, |state| !is_queued(state)), "{all:?} are gone");
                for left in 0..all.len() {
                    let others: Vec<_> = (0..all.len()).filter(|i| *i != left).map(|i| all[i].clone()).collect();
                    prop_assert!(is_queued(without(&sim.engine, sim.now, &others).state()), "{:?} is left", all[left]);
                }
                continue;
            }
            for task in found.tasks {
                let all: Vec<WaitReason> = task.waits.iter().map(|wait| wait.reason.clone()).collect();
                prop_assert!(!all.is_empty(), "{} waits for nothing", task.task_key);
                if !all.iter().all(is_removable) {
                    prop_assert_eq!(all.len(), 1);
                    prop_assert!(holds(state, &sim, id, &task.task_key, &all[0]), "{:?}", all[0]);
                    continue;
                }
                let goes_on = |state: &State| {
                    state.task(id, &task.task_key).is_none_or(|task| task.has_open_attempt())
                };
                let waits = |state: &State| reasons_of_task(state, id, &task.task_key);
                prop_assert!(goes_on_without_reasons(&sim, waits, goes_on), "{all:?} of {} are gone", task.task_key);
                for left in 0..all.len() {
                    let others: Vec<_> = (0..all.len()).filter(|i| *i != left).map(|i| all[i].clone()).collect();
                    prop_assert!(!goes_on(without(&sim.engine, sim.now, &others).state()), "{:?} is left", all[left]);
                }
            }
        }
    }
}

fn reasons_of_run(state: &State, run: RunId) -> Vec<WaitReason> {
    why(state, run).map_or_else(Vec::new, |why| why.waits.into_iter().map(|wait| wait.reason).collect())
}

fn reasons_of_task(state: &State, run: RunId, key: &TaskKey) -> Vec<WaitReason> {
    let tasks = why(state, run).map_or_else(Vec::new, |why| why.tasks);
    let found = tasks.into_iter().find(|task| task.task_key == *key);
    found.map_or_else(Vec::new, |task| task.waits.into_iter().map(|wait| wait.reason).collect())
}

/// Whether a reason that nobody can remove at once is true.
fn holds(state: &State, sim: &Sim, run: RunId, key: &TaskKey, reason: &WaitReason) -> bool {
    let Some(task) = state.task(run, key) else { return false };
    match reason {
        WaitReason::Dependency { first, count } => {
            let ended = |up: &TaskKey| state.task(run, up).is_none_or(|up| up.state.is_terminal());
            *count as u32 == task.deps_total - task.deps_satisfied && !first.iter().any(ended)
        }
        WaitReason::Worker { .. } => task.has_open_attempt() && task.state != TaskState::Running,
        WaitReason::Retry { at, .. } => {
            let mut engine = sim.engine.clone();
            engine.step(&[], at.saturating_add(Millis::new(1)));
            task.state == TaskState::RetryWait
                && engine.state().task(run, key).is_none_or(|task| task.state != TaskState::RetryWait)
        }
        WaitReason::NoWorker { .. } | WaitReason::Slots { .. } => {
            task.state == TaskState::Ready && !task.has_open_attempt()
        }
        WaitReason::Rename { asset } => state.current_name(asset, EventId::NIL) == *asset,
        WaitReason::Call { first, .. } => {
            let decided =
                |other: &TaskKey| state.task(run, other).is_none_or(|other| other.state.is_terminal());
            task.options.single_call && !first.iter().any(decided)
        }
        WaitReason::Queue { .. }
        | WaitReason::Quota { .. }
        | WaitReason::QueuedTasks { .. }
        | WaitReason::Pool { .. }
        | WaitReason::Label { .. }
        | WaitReason::PushLimit { .. }
        | WaitReason::Pause { .. } => false,
    }
}
