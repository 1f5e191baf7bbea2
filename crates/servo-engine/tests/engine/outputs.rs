//! Reported outputs: which of them count, the results of their checks, the files to be removed, and the history of
//! superseded attempts (ADR-062).

use std::sync::Arc;

use servo_core::{AssetKey, AttemptId, MaterializationId};
use servo_engine::definitions::{CheckKind, Severity};
use servo_engine::outputs::{CheckReport, OutputReport, Usage, materialization_of};
use servo_engine::rows::Delta;
use servo_engine::{
    Attempt, AttemptOutcome, DataFormat, DataStatus, Discard, Effect, ErrorCode, Finish, Input, Outcome,
    OutputState, Refusal, Reply, Report, RetryPolicy, Settings, State, TaskError, TaskOptions, TaskState,
    TransitionReason,
};

use crate::support;
use crate::support::{
    World, crash, ended_as, event, fold, key, plan, plan_of, task, tenant, user_error, workspace,
};

fn asset(name: &str) -> AssetKey {
    AssetKey::new("t", name).expect("an asset")
}

/// A world with one task, `a`, that also makes `b`; tried three times.
fn world() -> World {
    let options = TaskOptions {
        outputs: vec![asset("b")],
        retry: Some(RetryPolicy::default()),
        ..TaskOptions::default()
    };
    World::with(plan_of(vec![task("a", &[], options)]))
}

fn check(name: &str, passed: bool) -> CheckReport {
    CheckReport {
        name: name.to_owned(),
        kind: CheckKind::RowCount,
        passed,
        severity: if passed { Severity::Info } else { Severity::Critical },
        blocking: (!passed).then_some(true),
        message: (!passed).then(|| "too few".to_owned()),
        metadata: [("rows".to_owned(), "3".to_owned())].into(),
        error: None,
        duration_ms: 7,
    }
}

fn output(name: &str, state: OutputState) -> OutputReport {
    OutputReport {
        format: Some(DataFormat::Parquet),
        row_count: Some(3),
        ..OutputReport::new(asset(name), state)
    }
}

fn made(outputs: &[OutputReport], report: Report) -> Report {
    Report { outputs: outputs.into(), ..report }
}

fn check_failed() -> Report {
    let fatal =
        TaskError { error_type: Some("x".to_owned()), ..TaskError::new(ErrorCode::CheckFailed, "few") };
    Report::failed(fatal)
}

fn delta(world: &mut World) -> Delta {
    world.engine.state_mut().take_delta()
}

fn latest(world: &World, name: &str) -> Option<MaterializationId> {
    world.state().latest(&asset(name), None).map(|latest| latest.id())
}

fn status(world: &World, name: &str) -> Option<(DataStatus, AttemptOutcome)> {
    let status = world.state().partition_status(&asset(name), None)?;
    Some((status.status(), status.last_attempt().outcome))
}

fn abandoned(world: &World) -> Vec<Effect> {
    servo_engine::effect::abandoned(world.state())
}

/// Attempt and assets.
fn removed(discards: &[Discard]) -> Vec<(u32, Vec<String>)> {
    let names = |it: &Discard| it.assets.iter().map(|asset| asset.name().to_owned()).collect();
    discards.iter().map(|it| (it.attempt, names(it))).collect()
}

fn both(attempt: u32) -> (u32, Vec<String>) {
    (attempt, vec!["a".to_owned(), "b".to_owned()])
}

#[test]
fn outputs_of_a_success_count_under_the_name_of_the_attempt() {
    let mut world = world();
    let id = materialization_of(world.attempt("a").attempt_id);
    let a = OutputReport {
        uri: Some("s3://elsewhere".to_owned()),
        byte_size: Some(70),
        content_hash: Some("c".to_owned()),
        schema_hash: Some("s".to_owned()),
        schema: Some([("n".to_owned(), "int64".to_owned())].into()),
        metadata: [("note".to_owned(), "\"ok\"".to_owned())].into(),
        checks: vec![check("rows", true)],
        ..output("a", OutputState::Committed)
    };
    let usage = Usage { cpu_ms: 12, ..Usage::default() };
    let report = made(&[a.clone(), output("b", OutputState::Committed)], Report::succeeded());
    // What else a worker calls it does not matter.
    let named = Some(MaterializationId::from_parts(1, 1));
    world.play("a", Report { usage: Some(usage), materialization_id: named, ..report });
    assert_eq!((latest(&world, "a"), latest(&world, "b")), (Some(id), Some(id)));
    assert_eq!(world.state().latest(&asset("a"), None).and_then(|it| it.format()), Some(DataFormat::Parquet));
    let task = world.task("a");
    assert_eq!((task.materialization, task.usage), (Some(id), Some(usage)));
    assert_eq!(task.outputs.len(), 2);
    let delta = delta(&mut world);
    let [row, other] = delta.appended.materializations.as_slice() else {
        panic!("{:?}", delta.appended.materializations)
    };
    assert_eq!((&row.asset_key, row.materialization_id, row.row_count), (&asset("a"), id, Some(3)));
    assert_eq!((row.uri.as_deref(), row.byte_size), (Some("s3://elsewhere"), Some(70)));
    assert_eq!((row.content_hash.as_deref(), row.schema_hash.as_deref()), (Some("c"), Some("s")));
    assert_eq!(row.schema.as_deref(), a.schema.as_ref());
    let metadata = row.metadata.as_ref().map(servo_engine::rows::Json::to_text);
    assert_eq!(metadata.as_deref(), Some(r#"{"note":"ok"}"#));
    assert_eq!((&other.asset_key, other.materialization_id, &other.metadata), (&asset("b"), id, &None));
    assert!(world.discards().is_empty() && delta.quarantine.is_empty());
}

#[test]
fn results_of_checks_are_kept_in_the_order_of_assets_and_of_their_checks() {
    let mut world = world();
    let checked = |name: &str, checks: &[CheckReport]| OutputReport {
        checks: checks.into(),
        ..output(name, OutputState::Committed)
    };
    let b = checked("b", &[check("z", true), check("b", false)]);
    let a = checked("a", &[check("same", true), check("same", false)]);
    world.play("a", made(&[b, a], Report::succeeded()));
    let rows = delta(&mut world).appended.check_results;
    let found: Vec<_> = rows.iter().map(|r| (r.asset_key.name(), r.check_name.as_str(), r.passed)).collect();
    assert_eq!(found, [("a", "same", true), ("a", "same", false), ("b", "z", true), ("b", "b", false)]);
    let row = &rows[1];
    assert_eq!(
        (row.check_type.to_text().as_str(), row.severity.to_text().as_str(), row.blocking),
        ("row_count", "critical", Some(true))
    );
    assert_eq!((row.message.as_deref(), row.metadata.to_text().as_str()), (Some("too few"), r#"{"rows":3}"#));
    assert_eq!((row.duration_ms, row.attempt, row.run_id), (7, 1, world.run));
    assert_eq!((row.checked_at, row.row_version), (world.now, world.run().version));
}

#[test]
fn of_several_outputs_those_count_that_were_committed() {
    for (b, quarantined) in [
        (None, false),
        (Some(output("b", OutputState::Discarded)), false),
        (Some(output("b", OutputState::Quarantined)), true),
    ] {
        let mut world = world();
        let outputs: Vec<OutputReport> = [output("a", OutputState::Committed)].into_iter().chain(b).collect();
        world.play("a", made(&outputs, Report::succeeded()));
        let id = materialization_of(world.attempt("a").attempt_id);
        assert_eq!((latest(&world, "a"), latest(&world, "b")), (Some(id), None), "{outputs:?}");
        assert_eq!(status(&world, "b"), Some((DataStatus::NeverMaterialized, AttemptOutcome::Succeeded)));
        let delta = delta(&mut world);
        assert_eq!(
            (delta.appended.materializations.len(), delta.quarantine.len()),
            (1, usize::from(quarantined))
        );
        assert!(world.discards().is_empty());
    }
}

#[test]
fn a_success_that_commits_nothing_makes_nothing() {
    let mut world = world();
    let report = made(&[output("b", OutputState::Discarded)], Report::succeeded());
    world.play("a", Report { materialization_id: Some(MaterializationId::from_parts(1, 1)), ..report });
    assert_eq!(world.task("a").materialization, None);
    assert_eq!((latest(&world, "a"), latest(&world, "b")), (None, None));
}

#[test]
fn a_report_about_assets_of_others_says_nothing() {
    let mut world = world();
    let stranger =
        OutputReport { checks: vec![check("rows", false)], ..output("stranger", OutputState::Quarantined) };
    let twice = output("a", OutputState::Quarantined);
    world.play("a", made(&[output("a", OutputState::Committed), stranger, twice], Report::succeeded()));
    let delta = delta(&mut world);
    assert!(delta.quarantine.is_empty() && delta.appended.check_results.is_empty());
    assert_eq!(world.state().quarantine().count(), 0);
    assert_eq!(latest(&world, "stranger"), None);
    assert_eq!(delta.appended.materializations.len(), 1, "of two words about one asset the first counts");
}

#[test]
fn files_of_a_failed_attempt_are_removed_except_what_waits_for_review() {
    let mut world = world();
    let outputs = [output("a", OutputState::Committed), output("b", OutputState::Quarantined)];
    world.play("a", made(&outputs, check_failed()));
    assert_eq!(world.task_state("a"), TaskState::RetryWait);
    let delta = delta(&mut world);
    let discards = world.discards();
    assert_eq!(removed(&discards), [(1, vec!["a".to_owned()])]);
    assert_eq!(discards[0].attempt_id, world.attempt("a").attempt_id);
    let [waiting] = delta.quarantine.as_slice() else { panic!("{:?}", delta.quarantine) };
    assert_eq!((&waiting.asset_key, waiting.attempt, waiting.run_id), (&asset("b"), 1, world.run));
    assert_eq!(*waiting.output, outputs[1]);
    assert!(delta.appended.materializations.is_empty());
    let failed = Some((DataStatus::NeverMaterialized, AttemptOutcome::Failed));
    assert_eq!((status(&world, "a"), status(&world, "b")), (failed, failed));
}

#[test]
fn every_end_of_an_attempt_that_does_not_count_removes_its_files() {
    for (outcome, attempts) in
        [(Outcome::Failed, 1), (Outcome::TimedOut, 1), (Outcome::Interrupted, 1), (Outcome::Cancelled, 1)]
    {
        let mut world = world();
        world.play("a", ended_as(outcome));
        assert_eq!(removed(&world.discards()), vec![both(attempts)], "{outcome:?}");
    }
    let mut world = world();
    world.start("a").expect("starts");
    world.pass(91);
    assert_eq!(world.task("a").past_attempts[0].reason, TransitionReason::HeartbeatTimeout);
    assert_eq!(removed(&world.discards()), [both(1)], "its worker fell silent");
}

#[test]
fn an_attempt_that_nobody_began_has_no_files() {
    let mut world = world();
    world.enqueue("a").expect("enqueued");
    world.pass(31);
    assert_eq!(world.task("a").attempt, 2);
    assert!(world.discards().is_empty());
    world.cancel(false).expect("cancelled");
    assert_eq!(world.task_state("a"), TaskState::Cancelled);
    assert!(world.discards().is_empty());
}

#[test]
fn outputs_in_a_cancelled_run_do_not_count_and_are_removed() {
    let outputs = [
        OutputReport { checks: vec![check("rows", false)], ..output("a", OutputState::Committed) },
        output("b", OutputState::Quarantined),
    ];
    let usage = Some(Usage { cpu_ms: 1, ..Usage::default() });
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled] {
        let mut world = world();
        world.start("a").expect("starts");
        world.cancel(false).expect("cancelled");
        world.finish("a", Report { usage, ..made(&outputs, ended_as(outcome)) }).expect("too late");
        let task = world.task("a");
        assert_eq!((task.state, task.materialization, task.usage), (TaskState::Cancelled, None, usage));
        assert!(task.outputs.is_empty(), "nothing of it is there");
        let delta = delta(&mut world);
        assert_eq!(removed(&world.discards()), [both(1)]);
        assert!(delta.appended.materializations.is_empty() && delta.appended.check_results.is_empty());
        assert_eq!(world.state().quarantine().count(), 0);
        assert_eq!(status(&world, "a"), None);
    }
}

#[test]
fn what_a_silent_worker_has_stored_is_removed_when_it_is_abandoned_and_when_it_returns() {
    let mut world = World::with(plan_of(vec![task(
        "a",
        &[],
        TaskOptions {
            outputs: vec![asset("b")],
            heartbeat_timeout_ms: Some(servo_core::Millis::from_hours(1)),
            ..TaskOptions::default()
        },
    )]));
    world.start("a").expect("starts");
    world.wait(600);
    world.cancel(true).expect("forced");
    assert_eq!(world.task("a").reason, TransitionReason::ForceCancelled);
    assert_eq!(removed(&world.discards()), [both(1)], "abandoned");
    let report = || made(&[output("a", OutputState::Committed)], Report::succeeded());
    assert_eq!(world.finish("a", report()), Ok(Reply::Finish(Finish::Late)));
    assert_eq!(removed(&world.discards()), [both(1)], "it had gone on");
    assert_eq!(world.finish("a", report()), Ok(Reply::Finish(Finish::Duplicate)));
    assert!(world.discards().is_empty(), "once");
    assert_eq!(latest(&world, "a"), None);
}

#[test]
fn the_first_report_of_a_superseded_attempt_removes_its_files() {
    let mut world = world();
    let first = world.attempt("a");
    world.start("a").expect("starts");
    world.pass(91);
    world.pass(3_600);
    assert_eq!(world.task("a").attempt, 2);
    assert_eq!(removed(&world.discards()), [both(1)], "when it was abandoned");
    let report = made(&[output("a", OutputState::Quarantined)], check_failed());
    let stale = Refusal::StaleAttempt { task_key: key("a"), attempt: 1 };
    assert_eq!(world.ask(Input::Finished(first.clone(), report.clone())), Err(stale.clone()));
    let delta_of_report = delta(&mut world);
    assert_eq!(removed(&world.discards()), [both(1)], "it had gone on");
    assert!(delta_of_report.quarantine.is_empty() && delta_of_report.appended.check_results.is_empty());
    assert_eq!(world.ask(Input::Finished(first, report)), Err(stale));
    assert!(world.discards().is_empty(), "once");
    world.play("a", made(&[output("a", OutputState::Committed)], Report::succeeded()));
    assert!(world.discards().is_empty(), "what counts stays");
}

#[test]
fn what_a_silent_worker_may_yet_store_is_looked_for_again() {
    let mut world = world();
    world.start("a").expect("starts");
    assert!(abandoned(&world).is_empty(), "it is at work");
    world.pass(91);
    world.pass(3_600);
    assert_eq!(removed(&support::discards(abandoned(&world))), [both(1)]);
    let clears = Effect::ClearStaging(world.run);
    assert!(!abandoned(&world).contains(&clears), "the next attempt may be staging");
    world.play("a", made(&[output("a", OutputState::Committed)], Report::succeeded()));
    assert_eq!(removed(&support::discards(abandoned(&world))), [both(1)], "and what counts is not among it");
    assert!(abandoned(&world).contains(&clears));
}

#[test]
fn what_a_worker_has_reported_is_not_looked_for() {
    let mut world = world();
    world.play("a", made(&[output("a", OutputState::Quarantined)], check_failed()));
    assert!(abandoned(&world).is_empty(), "it waits for review, or was approved");
    let mut world = World::with(plan(&[("a", &[])]));
    world.play("a", made(&[output("a", OutputState::Quarantined)], crash()));
    world.cancel(false).expect("it waits for a retry");
    assert_eq!(world.task("a").state, TaskState::Cancelled);
    assert!(abandoned(&world).is_empty(), "it waits for review, or was approved");
}

#[test]
fn what_was_at_work_in_a_cancelled_run_is_looked_for_again() {
    let mut world = world();
    world.start("a").expect("starts");
    world.cancel(false).expect("is asked to stop");
    assert!(abandoned(&world).is_empty(), "its worker has not stopped");
    world.pass(91);
    assert_eq!(world.task("a").state, TaskState::Cancelled);
    assert_eq!(removed(&support::discards(abandoned(&world))), [both(1)]);
}

#[test]
fn a_report_of_an_attempt_that_never_was_removes_nothing() {
    let mut world = world();
    let forged = |attempt| Attempt { attempt, attempt_id: AttemptId::from_parts(9, 9), ..world.attempt("a") };
    for attempt in [forged(1), forged(7)] {
        assert!(world.ask(Input::Finished(attempt, Report::succeeded())).is_err());
        assert!(world.discards().is_empty());
    }
}

#[test]
fn a_second_copy_of_a_report_changes_nothing_and_removes_nothing() {
    let mut world = world();
    let outputs = [
        output("a", OutputState::Committed),
        OutputReport { checks: vec![check("rows", false)], ..output("b", OutputState::Quarantined) },
    ];
    world.play("a", made(&outputs, check_failed()));
    world.pass(3_600);
    world.play("a", made(&outputs, Report::succeeded()));
    let rows = world.state().rows();
    delta(&mut world);
    world.discards();
    for again in world.events() {
        let mut state = world.state().clone();
        state.apply(&event(again.data.clone(), world.now, 1));
        let mut after = state.rows();
        after.head = rows.head;
        assert_eq!(after, rows, "{}", again.idempotency_key);
        let delta = state.take_delta();
        assert!(
            world.discards().is_empty()
                && delta.appended.check_results.is_empty()
                && delta.appended.materializations.is_empty(),
            "{}",
            again.idempotency_key
        );
        assert!(delta.quarantine.is_empty() && delta.gone.quarantine.is_empty());
    }
}

#[test]
fn attempts_that_others_followed_stay_explained() {
    let mut world = world();
    let usage = Some(Usage { cpu_ms: 5, ..Usage::default() });
    let outputs = [output("a", OutputState::Discarded)];
    world.play("a", Report { usage, ..made(&outputs, user_error()) });
    assert!(world.task("a").outputs.is_empty() && world.task("a").usage.is_none());
    let ended_at = world.now;
    world.pass(3_600);
    world.play("a", ended_as(Outcome::Interrupted));
    world.enqueue("a").expect("enqueued");
    world.pass(31);
    world.start("a").expect("starts");
    let task = world.task("a");
    let why: Vec<_> = task.past_attempts.iter().map(|past| (past.attempt, past.reason)).collect();
    assert_eq!(
        why,
        [
            (1, TransitionReason::ExecutionFailed),
            (2, TransitionReason::Interrupted),
            (3, TransitionReason::DispatchAckTimeout),
        ]
    );
    let [first, second, third] = task.past_attempts.as_slice() else { panic!("{why:?}") };
    assert_eq!((first.ended_at, first.usage, first.started_at), (ended_at, usage, Some(ended_at)));
    assert_eq!(first.worker_id.as_deref(), Some("w1"));
    assert_eq!(first.error.as_ref().map(|error| error.code), Some(ErrorCode::UserCodeException));
    assert_eq!((second.error.clone(), second.usage), (None, None), "nobody's fault");
    assert_eq!((third.started_at, third.worker_id.clone()), (None, None), "nobody began it");
    world.finish("a", made(&[output("a", OutputState::Committed)], Report::succeeded())).expect("done");
    assert_eq!((world.task("a").attempt, world.task("a").past_attempts.len()), (4, 3));
    let settings = Settings::default();
    let restored = State::from_rows(tenant(), workspace(), world.state().rows());
    assert_eq!(restored.expect("rows fit").rows(), world.state().rows());
    assert_eq!(fold(&settings, &world.events()).rows().tasks, world.state().rows().tasks);
}

#[test]
fn only_so_many_attempts_stay_explained() {
    let mut world = world();
    for _ in 0..60 {
        world.enqueue("a").expect("enqueued");
        world.pass(31);
    }
    let past = &world.task("a").past_attempts;
    assert_eq!((past.len(), past[0].attempt, past[49].attempt), (50, 11, 60));
}

#[test]
fn files_of_an_attempt_are_those_of_the_partition_of_its_task() {
    let task_key = servo_core::TaskKey::parse("t/a[date=d:2025-01-15]:materialize").expect("a key");
    let request = servo_engine::TaskRequest {
        key: task_key.clone(),
        upstream: vec![],
        options: TaskOptions::default(),
    };
    let mut world = World::with(plan_of(vec![request]));
    let task = world.state().task(world.run, &task_key).expect("the task");
    let attempt_id = task.attempt_id.expect("dispatched");
    let attempt = Attempt { run_id: world.run, task_key: task_key.clone(), attempt: 1, attempt_id };
    world.ask(Input::Started(attempt.clone(), Arc::from("w1"))).expect("starts");
    world
        .ask(Input::Finished(attempt, made(&[output("a", OutputState::Quarantined)], check_failed())))
        .expect("ends");
    let delta = delta(&mut world);
    assert_eq!(delta.quarantine[0].partition_key, task_key.partition());
    assert!(world.discards().is_empty(), "all of it waits");
    assert_eq!(delta.partition_status[0].partition_key, task_key.partition());
}
