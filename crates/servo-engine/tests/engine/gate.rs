//! The gate: what counts follows from the results of checks and from the definitions, not from what a worker calls it
//! (ADR-087).

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{AssetKey, TaskKey};
use servo_engine::definitions::{AssetDef, CheckKind, Severity};
use servo_engine::outputs::{CheckReport, OutputReport};
use servo_engine::{
    Attempt, Caller, DataFormat, Deploy, Effect, ErrorCode, GatingDecision, Input, OutputState, Report,
    RetryPolicy, RunState, Settings, TaskOptions, TaskRequest, TaskState, TriggerRun, verdicts,
};

use crate::support::{World, plan_of};

fn check(name: &str, passed: bool, severity: Severity, blocking: Option<bool>) -> CheckReport {
    CheckReport {
        name: name.to_owned(),
        kind: CheckKind::RowCount,
        passed,
        severity,
        blocking,
        message: (!passed).then(|| "too few".to_owned()),
        metadata: [].into(),
        error: None,
        duration_ms: 1,
    }
}

/// An asset with a critical check `rows` and a check of severity error, `unique`.
fn world() -> (World, Attempt) {
    let mut world = World::new(Settings::default());
    deploy(
        &mut world,
        "d1",
        &json!([{ "name": "rows", "type": "row_count", "severity": "critical" },
                                     { "name": "unique", "type": "unique" }]),
    );
    let key = TaskKey::parse("raw/x:materialize").expect("a key");
    let options = TaskOptions { retry: Some(RetryPolicy::default()), ..TaskOptions::default() };
    let plan = plan_of(vec![TaskRequest { key, upstream: vec![], options }]);
    let step = world.step(&[Input::Trigger(TriggerRun::new("k", plan, "me"))]);
    let [Effect::Enqueue(dispatch)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    let attempt = dispatch.attempt.clone();
    (world, attempt)
}

fn deploy(world: &mut World, digest: &str, checks: &Value) {
    let asset = json!({ "key": "raw/x", "location": { "file": "a.py", "line": 1 }, "function": "a:x", "checks": checks });
    let asset: AssetDef = serde_json::from_value(asset).expect("an asset");
    let (project, caller) = ("p".to_owned(), Caller::user("me"));
    let deploy = Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        digest: digest.into(),
        project,
        assets: vec![Arc::new(asset)],
        time_zones: "2026e".into(),
        caller,
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
}

fn x() -> AssetKey {
    "raw/x".parse().expect("an asset")
}

/// Reports a success with these results of checks, as committed.
fn report(world: &mut World, attempt: &Attempt, checks: Vec<CheckReport>) {
    let output = OutputReport {
        format: Some(DataFormat::Json),
        checks,
        ..OutputReport::new(x(), OutputState::Committed)
    };
    let report = Report { outputs: [output].into(), ..Report::succeeded() };
    world.ask(Input::Finished(attempt.clone(), report)).expect("taken");
}

fn state_of(world: &World, attempt: &Attempt) -> TaskState {
    world.state().task(attempt.run_id, &attempt.task_key).expect("a task").state
}

#[test]
fn the_decision_is_the_worst_effect_of_any_check() {
    use Severity::{Critical, Error, Info, Warning};
    let of = |severity, blocking| verdicts(&[check("c", false, severity, blocking)]).decision;
    let decided = |blocking| [Critical, Error, Warning, Info].map(|severity| of(severity, blocking));
    let (allow, warn, block) = (GatingDecision::Allow, GatingDecision::Warn, GatingDecision::Block);
    assert_eq!(decided(None), [block, warn, allow, allow]);
    assert_eq!(decided(Some(true)), [block; 4]);
    assert_eq!(decided(Some(false)), [warn, warn, allow, allow]);
    let both = [check("a", true, Critical, None), check("b", false, Error, None)];
    let sum = verdicts(&both);
    assert_eq!((sum.decision, sum.passed, sum.failed), (warn, 1, 1));
}

#[test]
fn committed_with_a_failed_critical_check_does_not_count() {
    let (mut world, attempt) = world();
    let failed = check("rows", false, Severity::Critical, None);
    report(&mut world, &attempt, vec![failed, check("unique", true, Severity::Error, None)]);
    let task = world.state().task(attempt.run_id, &attempt.task_key).expect("a task");
    assert_eq!(task.error.as_ref().map(|error| error.code), Some(ErrorCode::CheckFailed));
    assert_eq!(task.materialization, None);
    assert!(world.state().latest(&x(), None).is_none());
    assert!(world.engine.state_mut().take_delta().appended.materializations.is_empty());
}

#[test]
fn a_worker_cannot_play_a_check_down_or_leave_it_out() {
    let played_down =
        vec![check("rows", false, Severity::Info, Some(false)), check("unique", true, Severity::Error, None)];
    let left_out = vec![check("unique", true, Severity::Error, None)];
    for checks in [played_down, left_out] {
        let (mut world, attempt) = world();
        report(&mut world, &attempt, checks);
        assert_ne!(state_of(&world, &attempt), TaskState::Succeeded);
        assert!(world.state().latest(&x(), None).is_none());
    }
}

#[test]
fn a_failed_check_of_severity_error_flags_the_run_and_the_materialization() {
    let (mut world, attempt) = world();
    let passed = check("rows", true, Severity::Critical, None);
    report(&mut world, &attempt, vec![passed, check("unique", false, Severity::Error, None)]);
    assert_eq!(state_of(&world, &attempt), TaskState::Succeeded);
    let run = world.state().run(attempt.run_id).expect("a run");
    assert_eq!((run.state, run.checks_failed), (RunState::Succeeded, 1));
    let [row] = world.engine.state_mut().take_delta().appended.materializations.try_into().expect("one");
    assert_eq!((row.gating_decision, row.checks_passed, row.checks_failed), (GatingDecision::Warn, 1, 1));
}

#[test]
fn a_check_that_was_deployed_after_the_dispatch_is_not_missed() {
    let (mut world, attempt) = world();
    deploy(&mut world, "d2", &json!([{ "name": "new", "type": "row_count", "severity": "critical" }]));
    let passed = ["rows", "unique"].map(|name| check(name, true, Severity::Error, None));
    report(&mut world, &attempt, passed.into());
    assert_eq!(state_of(&world, &attempt), TaskState::Succeeded);
}

#[test]
fn an_output_that_storage_does_not_have_fails_the_attempt() {
    let (mut world, attempt) = world();
    let output =
        OutputReport { format: Some(DataFormat::Json), ..OutputReport::new(x(), OutputState::Missing) };
    let report = Report { outputs: [output].into(), ..Report::succeeded() };
    world.ask(Input::Finished(attempt.clone(), report)).expect("taken");
    let task = world.state().task(attempt.run_id, &attempt.task_key).expect("a task");
    assert_eq!(task.state, TaskState::RetryWait, "worth another try");
    assert_eq!(task.error.as_ref().map(|error| error.code), Some(ErrorCode::OutputMissing));
    assert!(world.state().latest(&x(), None).is_none());
}

#[test]
fn what_a_report_says_of_assets_of_others_does_not_matter() {
    let (mut world, attempt) = world();
    let own = OutputReport {
        format: Some(DataFormat::Json),
        checks: vec![
            check("rows", true, Severity::Critical, None),
            check("unique", true, Severity::Error, None),
        ],
        ..OutputReport::new(x(), OutputState::Committed)
    };
    let other = OutputReport::new("raw/other".parse().expect("an asset"), OutputState::Missing);
    let report = Report { outputs: [own, other].into(), ..Report::succeeded() };
    world.ask(Input::Finished(attempt.clone(), report)).expect("taken");
    assert_eq!(state_of(&world, &attempt), TaskState::Succeeded);
}
