//! Retention: what leaves memory.

use servo_core::Millis;
use servo_engine::{Settings, TriggerRun};

use crate::support::{World, fold, plan};

fn run_some(world: &mut World, count: usize) {
    for i in 0..count {
        world.trigger(TriggerRun::new(format!("run-{i}"), plan(&[("a", &[]), ("b", &["a"])]), "me"));
        world.succeed("a");
        world.succeed("b");
        world.wait(1);
    }
}

#[test]
fn the_newest_ended_runs_stay_in_memory_and_the_others_leave_once() {
    let mut world = World::new(Settings { recent_runs: 3, ..Settings::default() });
    run_some(&mut world, 10);
    let keys: std::collections::BTreeSet<String> = world.state().runs().map(|r| r.key.to_string()).collect();
    assert_eq!(keys, ["run-7", "run-8", "run-9"].map(str::to_owned).into());
    let delta = world.engine.state_mut().take_delta();
    assert_eq!((delta.ended.runs.len(), delta.ended.tasks.len(), delta.ended.edges.len()), (7, 14, 7));
    assert!(delta.ended.runs.iter().all(|row| row.finished_event_id.is_some()));
    assert_eq!(delta.runs.len(), 3, "what left is not among the hot rows");
    assert!(world.engine.state_mut().take_delta().is_empty());
}

#[test]
fn many_tasks_push_runs_out_before_many_runs_do_and_the_newest_stays_if_it_fits() {
    let mut world = World::new(Settings { recent_runs: 100, recent_tasks: 5, ..Settings::default() });
    run_some(&mut world, 6);
    assert_eq!(world.state().runs().count(), 2, "two runs of two tasks fit into five");
    let mut world = World::new(Settings { recent_runs: 0, recent_tasks: 2, ..Settings::default() });
    run_some(&mut world, 4);
    assert_eq!(world.state().runs().count(), 1);
    let mut world = World::new(Settings { recent_runs: 10, recent_tasks: 1, ..Settings::default() });
    run_some(&mut world, 4);
    assert_eq!(world.state().runs().count(), 0, "larger than all that may stay");
    let delta = world.engine.state_mut().take_delta();
    assert_eq!((delta.ended.runs.len(), delta.ended.tasks.len(), delta.runs.len()), (4, 8, 0));
}

#[test]
fn active_runs_never_leave() {
    let mut world = World::new(Settings { recent_runs: 1, ..Settings::default() });
    let active = world.trigger(TriggerRun::new("active", plan(&[("a", &[])]), "me"));
    world.start("a").expect("starts");
    run_some(&mut world, 5);
    assert!(world.state().run(active).is_some());
    assert_eq!((world.state().active_runs(), world.state().runs().count()), (1, 2));
}

#[test]
fn a_replay_forgets_the_same_runs_at_the_same_event() {
    let settings = Settings { recent_runs: 2, ..Settings::default() };
    let mut world = World::new(settings.clone());
    run_some(&mut world, 6);
    let mut rows = fold(&settings, &world.events()).rows();
    rows.head.seq = world.state().head().seq;
    assert_eq!(rows, world.state().rows());
}

#[test]
fn a_report_about_a_run_that_left_memory_is_refused_and_leaves_no_trace() {
    let mut world = World::new(Settings { recent_runs: 1, ..Settings::default() });
    world.trigger(TriggerRun::new("gone", plan(&[("a", &[])]), "me"));
    let attempt = world.attempt("a");
    world.succeed("a");
    run_some(&mut world, 2);
    let before = world.state().rows();
    world.now = world.now.saturating_add(Millis::from_hours(1));
    let refused = world.ask(servo_engine::Input::Finished(attempt, servo_engine::Report::succeeded()));
    assert_eq!(refused.expect_err("unknown").kind(), servo_engine::RefusalKind::NotFound);
    assert_eq!(world.state().rows(), before);
}
