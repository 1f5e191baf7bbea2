//! Anti-entropy: finds what nothing else would wake, and nothing in a healthy workspace.

use std::collections::BTreeMap;

use servo_core::Millis;
use servo_engine::controllers::{Freshness, anti_entropy, timers};
use servo_engine::{
    Caller, Engine, EventData, EventKind, Input, Report, RunRequest, Settings, State, TriggerRun,
};

use crate::support::{SECRET, World, crash, dispatch, fold, key, kinds, plan};

/// The log without the dispatches: every ready task has lost its outbox row.
fn without_dispatches(world: &World) -> State {
    let mut facts = world.events();
    facts.retain(|event| event.data.kind() != EventKind::DispatchRequested);
    fold(world.state().settings(), &facts)
}

#[test]
fn a_healthy_state_needs_no_repair() {
    let mut world = World::new(Settings { max_concurrent_tasks: 2, ..Settings::default() });
    world.trigger(TriggerRun::new("k", plan(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &["a"])]), "me"));
    world.start("a").expect("starts");
    world.play("b", crash());
    for _ in 0..3 {
        assert!(anti_entropy::reconcile(world.state(), world.now, Freshness::Current).is_empty());
        assert!(world.step(&[Input::Sweep]).events.is_empty());
        world.pass(5);
    }
}

#[test]
fn ended_runs_are_left_alone() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.succeed("a");
    let later = world.now.saturating_add(Millis::from_hours(999));
    assert!(anti_entropy::reconcile(world.state(), later, Freshness::Current).is_empty());
}

#[test]
fn ready_tasks_without_an_outbox_row_are_dispatched_within_the_limit() {
    let mut world = World::new(Settings { max_concurrent_tasks: 2, ..Settings::default() });
    world.trigger(TriggerRun::new("k", plan(&[("a", &[]), ("b", &[]), ("c", &[])]), "me"));
    let state = without_dispatches(&world);
    let repairs = anti_entropy::reconcile(&state, world.now, Freshness::Current);
    assert_eq!(kinds(&repairs), ["DispatchRequested", "DispatchRequested"]);
    let lagging = anti_entropy::reconcile(&state, world.now, Freshness::Lagging);
    assert_eq!(repairs, lagging, "a dispatch is safe on old knowledge: its key makes it idempotent");
}

#[test]
fn everything_past_its_deadline_fires_as_the_timer_controller_would() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[]), ("c", &[])]));
    world.start("a").expect("starts");
    world.enqueue("b").expect("enqueued");
    world.play("c", crash());
    let later = world.now.saturating_add(Millis::from_hours(25));
    let keys = |events: Vec<EventData>| {
        let mut keys: Vec<String> = events.iter().map(EventData::idempotency_key).collect();
        keys.sort();
        keys
    };
    let swept = keys(anti_entropy::reconcile(world.state(), later, Freshness::Current));
    assert_eq!(swept.len(), 4, "three tasks and the run");
    assert_eq!(swept, keys(timers::reconcile(world.state(), later, Freshness::Current)));
    assert!(anti_entropy::reconcile(world.state(), later, Freshness::Lagging).is_empty(), "INV-9");
}

#[test]
fn the_same_state_wants_the_same_keys_twice() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"]), ("c", &[])]));
    world.start("c").expect("starts");
    let state = without_dispatches(&world);
    let keys = |hours| -> Vec<String> {
        let now = world.now.saturating_add(Millis::from_hours(hours));
        anti_entropy::reconcile(&state, now, Freshness::Current)
            .iter()
            .map(EventData::idempotency_key)
            .collect()
    };
    assert!(!keys(1).is_empty());
    assert_eq!(keys(1), keys(1));
}

#[test]
fn a_sweep_gives_slots_to_the_tasks_that_ready_dispatch_would_give_them_to() {
    let request = |run_key: &str, priority| {
        let labels = BTreeMap::new();
        TriggerRun::of_tasks(
            run_key,
            plan(&[("a", &[])]),
            RunRequest { priority, labels, caller: Caller::user("me"), ..RunRequest::default() },
        )
    };
    // Many runs wait for one slot; whatever their ids, the slot belongs to the most important one.
    for important in 0..6 {
        let mut world = World::new(Settings { max_concurrent_tasks: 1, ..Settings::default() });
        let first = world.trigger(request("first", 99));
        world.start("a").expect("starts");
        let others: Vec<_> =
            (0..6).map(|i| world.trigger(request(&format!("r{i}"), i32::from(i == important)))).collect();
        world.run = first;
        // A slot becomes free in the very batch that sweeps.
        let inputs = [Input::Finished(world.attempt("a"), Report::succeeded()), Input::Sweep];
        world.step(&inputs);
        world.run = others[important];
        assert_eq!(world.task("a").attempt, 1, "run {important} is the important one");
        assert_eq!(world.state().waiting(), 5);
    }
}

#[test]
fn when_every_outbox_row_is_lost_the_most_important_run_comes_first() {
    let request = |run_key: String, priority| {
        TriggerRun::of_tasks(
            run_key,
            plan(&[("a", &[])]),
            RunRequest { priority, caller: Caller::user("me"), ..RunRequest::default() },
        )
    };
    let mut world = World::new(Settings { max_concurrent_tasks: 2, ..Settings::default() });
    let runs: Vec<_> = (0..6).map(|i| world.trigger(request(format!("r{i}"), i % 3))).collect();
    let repairs = anti_entropy::reconcile(&without_dispatches(&world), world.now, Freshness::Current);
    let dispatched: Vec<_> = repairs.iter().filter_map(dispatch).map(|e| e.run_id).collect();
    assert_eq!(dispatched, [runs[2], runs[5]], "highest priority, oldest first");
}

#[test]
fn an_engine_without_inputs_repairs_and_fires_only_on_a_current_state() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[])]));
    world.start("a").expect("starts");
    // b's dispatch is lost with the end of the log; a's worker has been silent for an hour.
    let mut facts = world.events();
    facts.retain(|event| dispatch(&event.data).is_none_or(|e| e.task_key != key("b")));
    let later = world.now.saturating_add(Millis::from_hours(1));
    let reconcile = |freshness| {
        let mut engine = Engine::new(fold(&Settings::default(), &facts), SECRET);
        let seq = engine.state().head().seq;
        engine.set_freshness(freshness);
        let step = engine.reconcile(later);
        assert_eq!(engine.state().head().seq, seq + 1, "one batch");
        assert!(engine.reconcile(later).events.is_empty(), "twice changes nothing");
        step.events.iter().map(|event| event.data.kind().name()).collect::<Vec<_>>()
    };
    assert_eq!(reconcile(Freshness::Lagging), ["DispatchRequested"]);
    assert_eq!(reconcile(Freshness::Current), ["TimerFired", "DispatchRequested", "TimerRequested"]);
}
