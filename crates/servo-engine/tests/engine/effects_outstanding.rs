//! The dispatcher: what queues should hold, and with which message.

use servo_core::Millis;
use servo_engine::effect;
use servo_engine::{Effect, Input, OutboxStatus, Outcome, Settings, State, TaskOptions, TriggerRun};

use crate::support;
use crate::support::{World, crash, ended_as, fold, key, plan, plan_of, task};

fn names(state: &State) -> Vec<String> {
    effect::outstanding(state).iter().map(|d| d.attempt.task_key.to_string()).collect()
}

#[test]
fn nothing_is_outstanding_when_nothing_is_pending_or_queued() {
    assert!(effect::outstanding(World::new(Settings::default()).state()).is_empty());
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    assert!(effect::outstanding(world.state()).is_empty(), "a worker has it");
    world.finish("a", crash()).expect("fails");
    assert!(effect::outstanding(world.state()).is_empty(), "it waits for its retry");
}

#[test]
fn pending_and_queued_attempts_are_handed_out_after_a_start() {
    let mut world =
        World::with(plan(&[("pending", &[]), ("queued", &[]), ("running", &[]), ("blocked", &["running"])]));
    world.enqueue("queued").expect("enqueued");
    world.start("running").expect("starts");
    let expected: Vec<String> = ["pending", "queued"].map(|name| key(name).to_string()).into();
    assert_eq!(names(world.state()), expected);
    let restored =
        State::from_rows(support::tenant(), support::workspace(), world.state().rows()).expect("rows fit");
    assert_eq!(effect::outstanding(&restored), effect::outstanding(world.state()));
}

#[test]
fn the_message_is_the_one_that_was_handed_out_first() {
    let options = TaskOptions {
        worker_queue: Some("big".into()),
        timeout_ms: Some(Millis::from_minutes(3)),
        ..TaskOptions::default()
    };
    let mut world = World::new(Settings::default());
    let tasks = plan_of(vec![task("a", &[], options), task("b", &[], TaskOptions::default())]);
    let step = world.step(&[Input::Trigger(TriggerRun::new("k", tasks, "me"))]);
    let handed_out: Vec<_> = step.effects.iter().filter_map(Effect::dispatch).cloned().collect();
    assert_eq!(handed_out, effect::outstanding(world.state()));
    assert_eq!((&*handed_out[0].queue, handed_out[0].timeout), ("big", Millis::from_minutes(3)));
    assert_eq!((&*handed_out[1].queue, handed_out[1].timeout), ("default", Millis::from_hours(1)));
}

#[test]
fn only_the_newest_attempt_is_outstanding() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.play("a", ended_as(Outcome::Interrupted));
    let outstanding = effect::outstanding(world.state());
    assert_eq!(outstanding.len(), 1);
    assert_eq!(outstanding[0].attempt, world.attempt("a"));
    assert_eq!(outstanding[0].attempt.attempt, 2);
}

#[test]
fn a_queued_task_of_a_cancelling_run_is_still_handed_out_so_that_a_worker_can_end_it() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.enqueue("a").expect("enqueued");
    world.cancel(false).expect("cancelled");
    assert_eq!(names(world.state()).len(), 1);
    assert!(world.start("a").is_err());
    assert!(names(world.state()).is_empty());
}

#[test]
fn the_same_log_has_the_same_outstanding_attempts() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[]), ("c", &["a"])]));
    world.succeed("a");
    let replayed = fold(&Settings::default(), &world.events());
    assert_eq!(effect::outstanding(&replayed), effect::outstanding(world.state()));
    assert_eq!(effect::outstanding(&replayed).len(), 2);
}

#[test]
fn telling_the_engine_twice_that_the_queue_has_it_is_a_duplicate() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.enqueue("a").expect("enqueued");
    let written = world.events().len();
    assert_eq!(world.enqueue("a"), Ok(servo_engine::Reply::Change(servo_engine::Change::Duplicate)));
    assert_eq!(world.events().len(), written);
}

#[test]
fn the_outbox_row_follows_its_attempt_to_the_end() {
    let status = |world: &World| world.state().rows().outbox[0].status;
    let mut world = World::with(plan(&[("a", &[])]));
    assert_eq!(status(&world), OutboxStatus::Pending);
    world.enqueue("a").expect("enqueued");
    assert_eq!(status(&world), OutboxStatus::Created);
    world.start("a").expect("starts");
    assert_eq!(status(&world), OutboxStatus::Acked);
    // A report without a start: somebody had it.
    let mut unheard = World::with(plan(&[("a", &[])]));
    unheard.finish("a", crash()).expect("fails");
    assert_eq!(status(&unheard), OutboxStatus::Acked);
    // Nobody took it, and there is no further attempt.
    let mut lost = World::with(plan(&[("a", &[])]));
    lost.enqueue("a").expect("enqueued");
    lost.cancel(false).expect("cancelled");
    lost.pass(30);
    assert_eq!(status(&lost), OutboxStatus::Failed);
}
