//! Runs that somebody asked for go first (ADR-122), and waiting that is ended by hand.

use servo_engine::controllers::Dispatching;
use servo_engine::{Caller, EventKind, Input, RetryNow, Settings, TaskState, TransitionReason, TriggerRun};

use crate::support;
use crate::support::{World, crash, plan, user_error};

fn kinds(step: &servo_engine::Step) -> Vec<EventKind> {
    step.events.iter().map(|event| event.data.kind()).collect()
}

/// A world with one slot that an earlier run waits for, and an engine that begins anew with it.
fn left_behind() -> World {
    let mut world = World::new(Settings { max_concurrent_tasks: 1, ..Settings::default() });
    world.trigger(TriggerRun::new("old", plan(&[("a", &[]), ("b", &[])]), "me"));
    assert_eq!(world.task_state("a"), TaskState::Ready, "handed out");
    world.engine.set_dispatching(Dispatching::Held);
    world
}

#[test]
fn nothing_is_handed_out_before_something_is_asked_for() {
    let mut world = left_behind();
    let step = world.step(&[Input::MessagesLost]);
    assert_eq!(kinds(&step), [EventKind::TimerFired], "taken back, and held");
    let task = world.task("a");
    assert_eq!((task.state, task.reason), (TaskState::Ready, TransitionReason::DispatchAckTimeout));
    assert_eq!((task.failures, task.interruptions), (0, 0), "nobody is to blame");
    assert!(world.step(&[Input::MessagesLost]).events.is_empty(), "nothing is handed out any more");
    assert!(world.pass(1).events.is_empty());
}

#[test]
fn what_was_asked_for_gets_the_slots_and_others_get_the_rest() {
    let mut world = left_behind();
    world.step(&[Input::MessagesLost]);
    world.trigger(TriggerRun::new("new", plan(&[("x", &[]), ("y", &["x"])]), "me"));
    let dispatched = |world: &World| -> Vec<String> {
        let name = |event: &servo_engine::Event| {
            support::dispatch(&event.data).map(|it| it.task_key.asset_str().to_owned())
        };
        world.events().iter().filter_map(name).collect()
    };
    assert_eq!(dispatched(&world).last().map(String::as_str), Some("t/x"), "before what is older");
    world.succeed("x");
    assert_eq!(dispatched(&world).last().map(String::as_str), Some("t/y"));
    world.succeed("y");
    assert_eq!(dispatched(&world).last().map(String::as_str), Some("t/a"), "then the others");
}

#[test]
fn a_wait_for_a_retry_ends_when_somebody_says_so() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.play("a", crash());
    assert_eq!(world.task_state("a"), TaskState::RetryWait);
    let ask = Input::RetryNow(RetryNow { run_id: world.run, caller: Caller::user("me") });
    let step = world.step(std::slice::from_ref(&ask));
    assert_eq!(kinds(&step), [EventKind::TimerFired, EventKind::DispatchRequested]);
    assert_eq!(step.events[0].principal.to_string(), "user:me");
    assert_eq!((world.task("a").state, world.task("a").attempt), (TaskState::Ready, 2));
    let replayed = support::fold(&Settings::default(), &world.events());
    assert_eq!(replayed.rows().tasks, world.state().rows().tasks);
    assert!(world.step(&[ask]).events.is_empty(), "nothing waits any more");
    world.play("a", user_error());
    let refused = world.ask(Input::RetryNow(RetryNow { run_id: world.run, caller: Caller::user("me") }));
    assert!(refused.is_err_and(|refusal| refusal.to_string().contains("ended")));
}
