//! Costs: every attempt that was begun costs once, by the prices in force when it ends (ADR-290).

use servo_core::{AssetKey, MicroUsd, Millis};
use servo_engine::definitions::Compute;
use servo_engine::outputs::Usage;
use servo_engine::rows::TaskCostRow;
use servo_engine::{
    Caller, ChangeSettings, Finish, Input, Outcome, Reply, Report, RetryPolicy, RunState, SettingOrigin,
    SettingValue, Settings, State, TaskOptions, TaskState, TriggerRun,
};

use crate::support::{World, ended_as, fold, plan_of, task, tenant, workspace};

/// A gigabyte, a gpu, and three attempts.
fn options() -> TaskOptions {
    let compute = Compute { memory_bytes: Some(1_000_000_000), gpus: Some(1), ..Compute::default() };
    let retry = RetryPolicy { jitter_ppm: 0, ..RetryPolicy::default() };
    TaskOptions { compute: Some(compute), retry: Some(retry), ..TaskOptions::default() }
}

fn world(options: TaskOptions) -> World {
    World::with(plan_of(vec![task("a", &[], options)]))
}

fn used(outcome: Outcome, cpu_ms: u64) -> Report {
    Report { usage: Some(Usage { cpu_ms, ..Usage::default() }), ..ended_as(outcome) }
}

/// Rows that were written since they were last asked for, and that they say the same as the run and its tasks.
fn rows(world: &mut World) -> Vec<TaskCostRow> {
    world.engine.state_mut().take_delta().appended.task_costs
}

fn micros(rows: &[TaskCostRow]) -> Vec<u64> {
    rows.iter().map(|row| row.total_cost_micro_usd.get()).collect()
}

#[test]
fn a_task_that_is_tried_twice_costs_twice() {
    let mut world = world(options());
    world.start("a").expect("starts");
    world.wait(10);
    world.finish("a", used(Outcome::Failed, 2_000)).expect("fails");
    assert_eq!(world.task_state("a"), TaskState::RetryWait);
    assert_eq!(world.task("a").cost, MicroUsd::new(2 * 24 + 10 * 350 + 25));
    world.pass(3_600);
    world.start("a").expect("starts again");
    world.wait(4);
    let usage = Usage {
        cpu_ms: 1_000,
        max_rss_bytes: 7,
        bytes_read: 700_000_000,
        bytes_written: 300_000_000,
        network_egress_bytes: 500_000_000,
    };
    world.finish("a", Report { usage: Some(usage), ..Report::succeeded() }).expect("ends");
    let rows = rows(&mut world);
    let [first, second] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!((first.cpu_ms, first.memory_mb_ms, first.gpu_ms), (2_000, 10_000_000, 10_000));
    assert_eq!((second.cpu_ms, second.memory_mb_ms, second.gpu_ms), (1_000, 4_000_000, 4_000));
    let of_second =
        [second.compute_cost_micro_usd, second.storage_cost_micro_usd, second.network_cost_micro_usd];
    assert_eq!(of_second.map(MicroUsd::get), [24 + 4 * 350 + 10, 20_000, 60_000]);
    assert_eq!(second.created_at, world.now);
    assert_eq!(second.asset_key, AssetKey::parse("t.a").expect("an asset"));
    assert_eq!(micros(&rows), [3_573, 81_434]);
    let both = MicroUsd::new(3_573 + 81_434);
    assert_eq!((world.task("a").cost, world.run().cost), (both, both));
}

#[test]
fn memory_that_nobody_declared_is_the_most_that_was_counted() {
    let mut world = world(TaskOptions::default());
    world.start("a").expect("starts");
    world.wait(100);
    let usage = Usage { max_rss_bytes: 500_000_000, ..Usage::default() };
    world.finish("a", Report { usage: Some(usage), ..Report::succeeded() }).expect("ends");
    let rows = rows(&mut world);
    assert_eq!((rows[0].memory_mb_ms, rows[0].gpu_ms), (50_000_000, 0));
    assert_eq!(micros(&rows), [125]);
}

#[test]
fn a_report_costs_once_however_often_it_comes() {
    let mut world = world(options());
    world.start("a").expect("starts");
    let attempt = world.attempt("a");
    let finished = || Input::Finished(attempt.clone(), used(Outcome::Failed, 1_000));
    let events = world.step(&[finished(), finished()]).events;
    assert_eq!(micros(&rows(&mut world)), [24]);
    assert_eq!(world.ask(finished()).expect("known"), Reply::Finish(Finish::Duplicate));
    for event in &events {
        world.engine.state_mut().apply(event);
    }
    assert!(rows(&mut world).is_empty());
    assert_eq!(world.run().cost, MicroUsd::new(24));
}

#[test]
fn an_attempt_that_nobody_began_costs_nothing() {
    let mut world = world(options());
    world.enqueue("a").expect("enqueued");
    world.pass(31);
    assert!(world.task("a").attempt > 1, "nobody took it");
    assert!(rows(&mut world).is_empty());
    assert_eq!(world.run().cost, MicroUsd::ZERO);
}

#[test]
fn an_attempt_that_was_lost_costs_what_its_asset_declares() {
    let mut world = world(options());
    world.start("a").expect("starts");
    world.pass(90);
    assert_eq!(world.task_state("a"), TaskState::RetryWait, "no heartbeat came");
    let rows = rows(&mut world);
    assert_eq!((rows[0].cpu_ms, rows[0].memory_mb_ms, rows[0].gpu_ms), (0, 90_000_000, 90_000));
    assert_eq!(micros(&rows), [90 * 350 + 225]);
}

#[test]
fn what_is_cancelled_by_force_costs_and_its_late_report_changes_nothing() {
    let patient = Settings { heartbeat_timeout: Millis::from_hours(1), ..Settings::default() };
    let mut world = World::new(patient);
    world.trigger(TriggerRun::new("k", plan_of(vec![task("a", &[], options())]), "me"));
    world.start("a").expect("starts");
    world.wait(300);
    world.cancel(true).expect("forced");
    assert_eq!(micros(&rows(&mut world)), [300 * 350 + 750]);
    let late = world.finish("a", used(Outcome::Succeeded, 1_000)).expect("late");
    assert_eq!(late, Reply::Finish(Finish::Late));
    assert!(rows(&mut world).is_empty());
    assert_eq!((world.run_state(), world.run().cost), (RunState::Cancelled, MicroUsd::new(105_750)));
}

#[test]
fn what_ends_while_its_run_is_cancelled_costs_too() {
    let mut world = world(options());
    world.start("a").expect("starts");
    world.cancel(false).expect("cancelled");
    world.finish("a", used(Outcome::Cancelled, 1_000)).expect("ends");
    assert_eq!(world.run_state(), RunState::Cancelled);
    assert_eq!((micros(&rows(&mut world)), world.run().cost), (vec![24], MicroUsd::new(24)));
}

#[test]
fn prices_are_those_of_the_moment() {
    let mut world = world(options());
    world.start("a").expect("starts");
    world.finish("a", used(Outcome::Failed, 1_000)).expect("fails");
    world
        .ask(Input::ChangeSettings(ChangeSettings {
            set: [("nano_usd_per_cpu_second".to_owned(), SettingValue::Number(1_000_000))].into(),
            unset: Vec::new(),
            origin: SettingOrigin::Cli,
            caller: Caller::user("me"),
        }))
        .expect("changed");
    world.pass(3_600);
    world.start("a").expect("starts again");
    world.finish("a", used(Outcome::Succeeded, 1_000)).expect("ends");
    assert_eq!(micros(&rows(&mut world)), [24, 1_000]);
}

#[test]
fn a_call_of_several_partitions_holds_its_memory_once() {
    let days = ["2025-01-01", "2025-01-02", "2025-01-03"].map(|day| format!("days[date=d:{day}]"));
    let options = TaskOptions { single_call: true, ..options() };
    let mut world = World::with(plan_of(days.iter().map(|day| task(day, &[], options.clone())).collect()));
    for day in &days {
        world.start(day).expect("starts");
    }
    world.wait(10);
    for day in &days {
        world.finish(day, used(Outcome::Succeeded, 500)).expect("ends");
    }
    let rows = rows(&mut world);
    let memory: Vec<u64> = rows.iter().map(|row| row.memory_mb_ms).collect();
    assert_eq!(memory, [10_000_000, 0, 0], "that of the leader");
    assert_eq!(rows.iter().map(|row| row.cpu_ms).collect::<Vec<_>>(), [500; 3]);
}

#[test]
fn a_replay_and_the_rows_of_the_state_have_the_same_costs() {
    let mut world = world(options());
    world.start("a").expect("starts");
    world.wait(10);
    world.finish("a", used(Outcome::Failed, 2_000)).expect("fails");
    world.pass(3_600);
    world.start("a").expect("starts again");
    world.finish("a", used(Outcome::Succeeded, 1_000)).expect("ends");
    let mut again = fold(&Settings::default(), &world.events());
    assert_eq!(again.take_delta().appended.task_costs, rows(&mut world));
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("rows of a state");
    let made = |state: &State| {
        let state = state.asset_state(&AssetKey::parse("t.a").expect("an asset"))?;
        Some(state.efforts().map(|effort| effort.cost).collect::<Vec<_>>())
    };
    assert_eq!(made(&restored), Some(vec![world.run().cost]), "with the attempt that failed");
    assert_eq!(made(&again), made(&restored));
    assert_eq!(restored.run(world.run).map(|run| run.cost), Some(world.run().cost));
}
