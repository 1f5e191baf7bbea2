//! Tasks behind one that a check blocked: skipped, or made of what was there before (ADR-094).

use servo_engine::{
    ErrorCode, Report, Resolution, RunState, Settings, TaskError, TaskOptions, TaskState, TriggerRun,
};

use crate::support::{World, plan_of, task, user_error};

fn world() -> World {
    let asset = servo_core::AssetKey::new("t", "a").expect("an asset");
    let before = TaskOptions { previous: vec![asset], ..TaskOptions::default() };
    let plan = plan_of(vec![
        task("a", &[], TaskOptions::default()),
        task("skips", &["a"], TaskOptions::default()),
        task("goes_on", &["a"], before),
        task("behind", &["goes_on"], TaskOptions::default()),
    ]);
    let mut world = World::new(Settings::default());
    world.trigger(TriggerRun::new("first", plan, "me"));
    world
}

fn blocked() -> Report {
    Report::failed(TaskError::new(ErrorCode::CheckFailed, "a check blocked it"))
}

#[test]
fn a_reader_of_the_previous_materialization_goes_on_when_a_check_blocks_the_newest() {
    let mut world = world();
    world.play("a", blocked());
    let states = ["a", "skips", "goes_on"].map(|name| world.task_state(name));
    assert_eq!(states, [TaskState::Failed, TaskState::Skipped, TaskState::Ready]);
    let resolved: Vec<Option<Resolution>> = world.run().edges.iter().map(|edge| edge.resolution).collect();
    assert!(resolved.contains(&Some(Resolution::Previous)) && resolved.contains(&Some(Resolution::Failed)));
    world.succeed("goes_on");
    world.succeed("behind");
    assert_eq!(world.run_state(), RunState::Failed, "a task of it was blocked");
    let rows = world.run().edge_rows();
    assert_eq!(rows.iter().filter(|row| row.satisfied).count(), 2);
}

#[test]
fn other_failures_are_no_blocks() {
    let mut world = world();
    world.play("a", user_error());
    assert_eq!(world.task_state("goes_on"), TaskState::Skipped);
    assert_eq!(world.run_state(), RunState::Failed);
}
