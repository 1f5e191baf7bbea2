//! The end of a task updates partition status: the newest good materialization, and how the last attempt ended
//! (ADR-056).

use servo_core::{AssetKey, MaterializationId, PartitionKey, TaskKey};
use servo_engine::rows::MaterializationRow;
use servo_engine::{
    AttemptOutcome, DataStatus, Event, EventKind, Input, Outcome, PartitionCounts, Report, RetryPolicy,
    Settings, State, TaskOptions, TaskRequest, TriggerRun,
};

use crate::support::{World, ended_as, fold, key, plan, plan_of, task, tenant, user_error, workspace};

fn asset(name: &str) -> AssetKey {
    AssetKey::new("t", name).expect("an asset")
}

fn produced(number: u128) -> Report {
    Report { materialization_id: Some(MaterializationId::from_parts(1, number)), ..Report::succeeded() }
}

fn id(number: u128) -> Option<MaterializationId> {
    Some(MaterializationId::from_parts(1, number))
}

fn latest(world: &World, name: &str) -> Option<MaterializationId> {
    world.state().latest(&asset(name), None).map(|latest| latest.id())
}

fn status(world: &World, name: &str) -> Option<(DataStatus, AttemptOutcome)> {
    let status = world.state().partition_status(&asset(name), None)?;
    Some((status.status(), status.last_attempt().outcome))
}

/// A world in which `a` can be run again and again.
fn again(world: &mut World, run_key: &str, report: Report) {
    world.trigger(TriggerRun::new(run_key, plan(&[("a", &[])]), "me"));
    world.wait(1);
    world.play("a", report);
}

fn history(world: &mut World) -> Vec<MaterializationRow> {
    world.engine.state_mut().take_delta().appended.materializations
}

#[test]
fn a_success_with_a_materialization_is_the_latest_and_goes_to_history() {
    let mut world = World::new(Settings::default());
    again(&mut world, "one", produced(1));
    let found = world.state().latest(&asset("a"), None).expect("materialized");
    assert_eq!((found.id(), found.run_id(), found.at()), (id(1).expect("one"), world.run, world.now));
    assert_eq!(found.event_id(), world.task("a").version);
    assert_eq!(status(&world, "a"), Some((DataStatus::Materialized, AttemptOutcome::Succeeded)));
    let rows = history(&mut world);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].task_key.clone(), rows[0].attempt), (key("a"), 1));
    assert_eq!((rows[0].materialization_id, rows[0].row_version), (found.id(), found.event_id()));
    assert_eq!(world.state().partition_status(&asset("b"), None), None, "never attempted");
}

#[test]
fn a_failure_keeps_the_latest_and_shows() {
    let mut world = World::new(Settings::default());
    again(&mut world, "one", user_error());
    assert_eq!(status(&world, "a"), Some((DataStatus::NeverMaterialized, AttemptOutcome::Failed)));
    again(&mut world, "two", produced(2));
    again(&mut world, "three", user_error());
    assert_eq!(latest(&world, "a"), id(2));
    assert_eq!(status(&world, "a"), Some((DataStatus::LastAttemptFailed, AttemptOutcome::Failed)));
    assert_eq!(
        world.state().partition_counts(&asset("a")),
        PartitionCounts { failing: 1, ..PartitionCounts::default() }
    );
    again(&mut world, "four", produced(4));
    assert_eq!(latest(&world, "a"), id(4));
    assert_eq!(status(&world, "a"), Some((DataStatus::Materialized, AttemptOutcome::Succeeded)));
    assert_eq!(history(&mut world).len(), 2);
}

#[test]
fn a_success_without_a_materialization_is_an_attempt_and_no_more() {
    let mut world = World::new(Settings::default());
    again(&mut world, "one", Report::succeeded());
    assert_eq!(status(&world, "a"), Some((DataStatus::NeverMaterialized, AttemptOutcome::Succeeded)));
    again(&mut world, "two", produced(2));
    again(&mut world, "three", user_error());
    again(&mut world, "four", Report::succeeded());
    assert_eq!(latest(&world, "a"), id(2));
    assert_eq!(status(&world, "a"), Some((DataStatus::Materialized, AttemptOutcome::Succeeded)));
}

#[test]
fn every_attempt_that_ends_is_the_last_attempt() {
    let policy = TaskOptions { retry: Some(RetryPolicy::default()), ..TaskOptions::default() };
    let mut world = World::with(plan_of(vec![task("a", &[], policy)]));
    world.play("a", user_error());
    assert_eq!(status(&world, "a"), Some((DataStatus::NeverMaterialized, AttemptOutcome::Failed)));
    world.pass(3_600);
    world.play("a", produced(2));
    assert_eq!(status(&world, "a"), Some((DataStatus::Materialized, AttemptOutcome::Succeeded)));
}

#[test]
fn a_result_of_a_superseded_attempt_never_counts() {
    let mut world = World::with(plan(&[("a", &[])]));
    let first = world.attempt("a");
    world.start("a").expect("starts");
    world.pass(91);
    world.pass(60);
    world.start("a").expect("starts again");
    assert!(world.ask(Input::Finished(first, produced(1))).is_err());
    assert_eq!(status(&world, "a"), Some((DataStatus::NeverMaterialized, AttemptOutcome::Failed)));
    assert!(history(&mut world).is_empty());
}

#[test]
fn results_of_a_cancelled_run_never_count() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[])]));
    world.start("a").expect("starts");
    world.start("b").expect("starts");
    world.cancel(false).expect("cancelled");
    world.finish("a", produced(1)).expect("late");
    world.finish("b", user_error()).expect("late");
    assert_eq!((status(&world, "a"), status(&world, "b")), (None, None));
    assert!(history(&mut world).is_empty());
}

#[test]
fn a_second_report_of_the_same_success_changes_nothing() {
    let mut world = World::with(plan(&[("a", &[])]));
    let attempt = world.attempt("a");
    world.play("a", produced(1));
    let rows = world.state().rows();
    assert_eq!(
        world.ask(Input::Finished(attempt, produced(9))),
        Ok(servo_engine::Reply::Finish(servo_engine::Finish::Duplicate))
    );
    assert_eq!(world.state().rows(), rows);
    for event in world.events() {
        let mut state = world.state().clone();
        state.apply(&event);
        assert_eq!(state.rows(), rows);
        assert_eq!(state.take_delta().appended.materializations.len(), 1, "not another one");
    }
}

#[test]
fn further_outputs_are_materialized_with_their_task() {
    let options = TaskOptions {
        outputs: vec![asset("z"), asset("b"), asset("a"), asset("b")],
        ..TaskOptions::default()
    };
    let partition = PartitionKey::parse("date=d:2025-01-15").expect("a partition");
    let task_key = TaskKey::parse("t/a[date=d:2025-01-15]:materialize").expect("a key");
    let request = TaskRequest { key: task_key.clone(), upstream: vec![], options };
    let plan = plan_of(vec![request]);
    assert_eq!(plan.tasks()[0].options.outputs, [asset("b"), asset("z")], "once each, and not its own");
    let mut world = World::with(plan);
    let task = world.state().task(world.run, &task_key).expect("the task");
    let attempt = servo_engine::Attempt {
        run_id: world.run,
        task_key,
        attempt: 1,
        attempt_id: task.attempt_id.expect("dispatched"),
    };
    world.ask(Input::Started(attempt.clone(), "w1".into())).expect("starts");
    world.ask(Input::Finished(attempt, produced(1))).expect("finishes");
    for name in ["a", "b", "z"] {
        let found = world.state().latest(&asset(name), Some(&partition)).expect("materialized");
        assert_eq!(Some(found.id()), id(1));
        let keys: Vec<_> = world.state().partition_statuses(&asset(name)).map(|(key, _)| key).collect();
        assert_eq!(keys, [Some(partition.canonical().into())]);
    }
    let assets: Vec<AssetKey> = history(&mut world).into_iter().map(|row| row.asset_key).collect();
    assert_eq!(assets, [asset("a"), asset("b"), asset("z")]);
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("rows fit");
    assert_eq!(restored.rows(), world.state().rows());
}

#[test]
fn a_check_says_nothing_about_the_data_of_its_asset() {
    let task_key = TaskKey::parse("t/a:check").expect("a key");
    let mut world = World::with(plan_of(vec![TaskRequest {
        key: task_key.clone(),
        upstream: vec![],
        options: TaskOptions::default(),
    }]));
    let attempt_id = world.state().task(world.run, &task_key).and_then(|task| task.attempt_id);
    let attempt = servo_engine::Attempt {
        run_id: world.run,
        task_key,
        attempt: 1,
        attempt_id: attempt_id.expect("dispatched"),
    };
    world.ask(Input::Finished(attempt, ended_as(Outcome::Failed))).expect("finishes");
    assert_eq!(world.state().attempted_assets().count(), 0);
}

/// L2-INV-8 and INV-1: the greatest event decides in whatever order concurrent runs end.
#[test]
fn test_partition_status_concurrent() {
    let reports = [produced(1), user_error(), produced(3), Report::succeeded(), user_error()];
    for skipped in 0..reports.len() {
        let mut world = World::new(Settings::default());
        let mut runs = Vec::new();
        for (n, report) in reports.iter().enumerate().filter(|(n, _)| *n != skipped) {
            world.trigger(TriggerRun::new(format!("run {n}"), plan(&[("a", &[])]), "me"));
            world.start("a").expect("starts");
            runs.push((world.run, report.clone()));
        }
        for (run, report) in runs {
            world.wait(1);
            world.run = run;
            world.finish("a", report).expect("finishes");
        }
        let is_end = |event: &Event| event.data.kind() == EventKind::TaskFinished;
        let (ends, others): (Vec<Event>, Vec<Event>) = world.events().into_iter().partition(is_end);
        let in_order = fold(&Settings::default(), &world.events()).rows().partition_status;
        for first in 0..ends.len() {
            let mut order = ends.clone();
            order.rotate_left(first);
            for _ in 0..2 {
                order.reverse();
                let folded = fold(&Settings::default(), &[others.clone(), order.clone()].concat());
                assert_eq!(folded.rows().partition_status, in_order);
            }
        }
    }
}
