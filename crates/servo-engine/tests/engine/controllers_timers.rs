//! Timers: a retry gets its row, what is due fires, and nothing fires early or twice.

use servo_core::Millis;
use servo_engine::controllers::{Freshness, timers};
use servo_engine::event::TimerKind;
use servo_engine::{EventData, EventKind, Settings, State, TriggerRun};

use crate::support::{World, crash, fold, kinds, plan};

fn waiting() -> World {
    let mut world = World::with(plan(&[("a", &[])]));
    world.play("a", crash());
    world
}

/// The state before the timer controller saw the failure.
fn unarmed() -> (World, State) {
    let world = waiting();
    let mut facts = world.events();
    facts.retain(|event| event.data.kind() != EventKind::TimerRequested);
    let state = fold(&Settings::default(), &facts);
    (world, state)
}

fn fired(events: &[EventData]) -> Vec<TimerKind> {
    let kind = |data: &EventData| if let EventData::TimerFired(e) = data { Some(e.timer_type) } else { None };
    events.iter().filter_map(kind).collect()
}

#[test]
fn nothing_is_wanted_of_a_healthy_state() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"])]));
    assert!(timers::reconcile(world.state(), world.now, Freshness::Current).is_empty());
    world.start("a").expect("starts");
    let soon = world.now.saturating_add(Millis::from_secs(89));
    assert!(timers::reconcile(world.state(), soon, Freshness::Current).is_empty());
}

#[test]
fn a_task_that_waits_for_a_retry_gets_one_timer_row() {
    let (world, state) = unarmed();
    let wanted = timers::reconcile(&state, world.now, Freshness::Current);
    assert_eq!(kinds(&wanted), ["TimerRequested"]);
    assert!(timers::reconcile(world.state(), world.now, Freshness::Current).is_empty(), "it has it");
}

#[test]
fn a_lagging_state_may_request_timers_but_not_fire_them() {
    let (world, state) = unarmed();
    let later = world.now.saturating_add(Millis::from_hours(48));
    assert_eq!(kinds(&timers::reconcile(&state, later, Freshness::Lagging)), ["TimerRequested"]);
    let all = kinds(&timers::reconcile(&state, later, Freshness::Current));
    assert_eq!(all, ["TimerRequested", "TimerFired", "TimerFired"]);
}

#[test]
fn each_state_has_its_own_deadline_and_fires_at_it() {
    let retry = waiting();
    let mut running = World::with(plan(&[("a", &[])]));
    running.start("a").expect("starts");
    let mut dispatched = World::with(plan(&[("a", &[])]));
    dispatched.enqueue("a").expect("enqueued");
    let in_outbox = World::with(plan(&[("a", &[])]));
    for (world, kind) in [
        (retry, TimerKind::Retry),
        (running, TimerKind::HeartbeatCheck),
        (dispatched, TimerKind::DispatchAck),
        (in_outbox, TimerKind::DispatchAck),
    ] {
        let due = world.state().next_deadline().expect("something is due");
        let before = due.saturating_sub(Millis::new(1));
        assert!(timers::reconcile(world.state(), before, Freshness::Current).is_empty(), "{kind:?} is early");
        assert_eq!(fired(&timers::reconcile(world.state(), due, Freshness::Current)), [kind]);
    }
}

#[test]
fn what_is_due_fires_in_the_order_of_its_deadlines() {
    let mut world = World::new(Settings::default());
    world.trigger(TriggerRun::new("k", plan(&[("a", &[]), ("b", &[]), ("c", &[])]), "me"));
    world.start("c").expect("starts");
    world.enqueue("b").expect("enqueued");
    let later = world.now.saturating_add(Millis::from_hours(25));
    let events = timers::reconcile(world.state(), later, Freshness::Current);
    let order = fired(&events);
    // b after 30 s, c after 90 s, a (never taken by the queue) after 5 min, the run after 24 h.
    let expected =
        [TimerKind::DispatchAck, TimerKind::HeartbeatCheck, TimerKind::DispatchAck, TimerKind::RunTimeout];
    assert_eq!(order, expected);
}

#[test]
fn a_fired_timer_is_not_wanted_again() {
    let mut world = waiting();
    let step = world.pass(60);
    assert_eq!(step.events.iter().filter(|e| e.data.kind() == EventKind::TimerFired).count(), 1);
    assert!(timers::reconcile(world.state(), world.now, Freshness::Current).is_empty());
    assert!(world.step(&[]).events.is_empty());
}

#[test]
fn the_same_state_wants_the_same_keys_twice() {
    let (world, state) = unarmed();
    let keys = |later| -> Vec<String> {
        let now = world.now.saturating_add(Millis::from_hours(later));
        timers::reconcile(&state, now, Freshness::Current).iter().map(EventData::idempotency_key).collect()
    };
    assert_eq!(keys(48), keys(48));
    assert_eq!(keys(48), keys(49), "the keys name the deadline, not the moment of looking");
}

#[test]
fn ended_runs_have_no_deadlines() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.succeed("a");
    assert_eq!(world.state().next_deadline(), None);
    let later = world.now.saturating_add(Millis::from_hours(48));
    assert!(timers::reconcile(world.state(), later, Freshness::Current).is_empty());
}
