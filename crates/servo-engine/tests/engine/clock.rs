//! A step of the clock, forward or back, changes nothing but the times themselves (ADR-088).

use servo_engine::{Input, RetryPolicy, RunState, Settings, TaskOptions, TaskState};

use crate::support::{World, fold, plan, plan_of, task, user_error};

const DAY: i64 = 24 * 3_600_000;

/// Sets the clock of a world, as its engine notices it.
fn step(world: &mut World, by_ms: i64) {
    let expected = world.now;
    let now = world.now.as_millis() + by_ms;
    world.now = servo_core::Timestamp::from_millis(now);
    world.ask(Input::ClockStepped { expected, by_ms }).expect("noted");
}

#[test]
fn a_clock_that_is_set_forward_times_nothing_out() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[])]));
    world.start("a").expect("starts");
    step(&mut world, DAY + 3_600_000);
    world.pass(1);
    assert_eq!(world.run_state(), RunState::Running);
    assert_eq!(world.task_state("a"), TaskState::Running);
    assert_eq!(world.task("a").attempt, 1);
    // What was left of each deadline is left.
    world.pass(100);
    assert_ne!(world.task_state("a"), TaskState::Running, "silent for as long as before");
}

#[test]
fn a_clock_that_is_set_back_keeps_no_deadline_waiting() {
    let policy = TaskOptions { retry: Some(RetryPolicy::default()), ..TaskOptions::default() };
    let mut world = World::with(plan_of(vec![task("a", &[], policy)]));
    world.play("a", user_error());
    assert_eq!(world.task_state("a"), TaskState::RetryWait);
    step(&mut world, -DAY);
    world.pass(3_600);
    assert_ne!(world.task_state("a"), TaskState::RetryWait);
}

#[test]
fn heartbeats_after_a_clock_was_set_back_are_heard() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    step(&mut world, -DAY);
    for _ in 0..10 {
        world.wait(30);
        world.beat("a").expect("heard");
    }
    assert_eq!(world.task_state("a"), TaskState::Running);
}

#[test]
fn a_step_is_folded_once_and_replay_gives_the_same_state() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    step(&mut world, DAY);
    world.succeed("a");
    let replayed = fold(&Settings::default(), &world.events());
    assert_eq!(
        (replayed.rows().runs, replayed.rows().tasks),
        (world.state().rows().runs, world.state().rows().tasks)
    );
    let mut twice = world.events();
    let position = twice.iter().position(|event| event.data.kind().name() == "ClockStepped").expect("a step");
    let again = twice[position].clone();
    twice.insert(position + 1, again);
    assert_eq!(fold(&Settings::default(), &twice).rows().runs, world.state().rows().runs);
}

#[test]
fn an_idle_workspace_writes_nothing() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.succeed("a");
    let before = world.events().len();
    step(&mut world, DAY);
    assert_eq!(world.events().len(), before);
}
