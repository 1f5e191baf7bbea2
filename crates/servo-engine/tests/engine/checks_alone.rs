//! Checks that run alone: on what is materialized, without making, promoting or quarantining anything.

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{AssetKey, MaterializationId, Operation, PartitionKey};
use servo_engine::definitions::{AssetDef, CheckKind, Severity};
use servo_engine::outputs::{CheckReport, OutputReport, materialization_of};
use servo_engine::planner::{PartitionChoice, PlanningError};
use servo_engine::requests::{RequestError, prepare};
use servo_engine::{
    Caller, Deploy, Dispatch, Effect, GatingDecision, Input, OutputState, Report, RunRequest, RunState,
    Settings, TaskState,
};

use crate::support::{SECRET, World};

fn asset(key: &str, more: Value) -> Arc<AssetDef> {
    let mut asset = json!({ "key": key, "location": { "file": "a.py", "line": 1 }, "function": "a:f" });
    asset.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    Arc::new(serde_json::from_value(asset).expect("an asset"))
}

fn rows(severity: &str, phase: &str) -> Value {
    json!([{ "name": "rows", "type": "row_count", "severity": severity, "phase": phase }])
}

fn world() -> World {
    let mut world = World::new(Settings::default());
    let days = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-01-31" } });
    let assets = vec![
        asset("raw/a", json!({ "checks": rows("critical", "post"), "quarantine": true })),
        asset("raw/days", json!({ "checks": rows("error", "post"), "partitions": days })),
        asset("raw/plain", json!({})),
        asset("raw/reads", json!({ "checks": rows("error", "pre") })),
    ];
    let deploy = Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        time_zones: "2026e".into(),
        digest: "d1".into(),
        project: "checks".to_owned(),
        assets,
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
    world
}

fn asked(selection: &str, operation: Operation, keys: &[&str]) -> RunRequest {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    let partitions = PartitionChoice { keys, ..PartitionChoice::default() };
    RunRequest { selection: selection.to_owned(), operation, partitions, ..RunRequest::default() }
}

fn dispatched(world: &mut World, request: RunRequest) -> Result<Vec<Dispatch>, RequestError> {
    let run_key = format!("run {}", world.log.len());
    let command = prepare(world.state(), SECRET, run_key.into(), request, world.now)?;
    let step = world.step(&[Input::Trigger(command)]);
    let dispatches: Vec<Dispatch> = step.effects.iter().filter_map(Effect::dispatch).cloned().collect();
    world.run = dispatches[0].attempt.run_id;
    Ok(dispatches)
}

fn result(passed: bool) -> CheckReport {
    CheckReport {
        name: "rows".to_owned(),
        kind: CheckKind::RowCount,
        passed,
        severity: Severity::Info,
        blocking: None,
        message: None,
        error: None,
        metadata: [].into(),
        duration_ms: 1,
    }
}

fn ended(world: &mut World, dispatch: &Dispatch, state: OutputState, checks: Vec<CheckReport>) {
    let asset = dispatch.attempt.task_key.asset();
    let output = OutputReport { checks, ..OutputReport::new(asset, state) };
    let report = Report { outputs: [output].into(), ..Report::succeeded() };
    world.ask(Input::Started(dispatch.attempt.clone(), "w1".into())).expect("begun");
    world.ask(Input::Finished(dispatch.attempt.clone(), report)).expect("ended");
}

/// Materializes partitions of an asset, or the asset.
fn made(world: &mut World, selection: &str, keys: &[&str]) -> Vec<MaterializationId> {
    world.wait(1);
    let dispatches = dispatched(world, asked(selection, Operation::Materialize, keys)).expect("planned");
    for dispatch in &dispatches {
        ended(world, dispatch, OutputState::Committed, vec![result(true)]);
    }
    dispatches.iter().map(|dispatch| materialization_of(dispatch.attempt.attempt_id)).collect()
}

fn a() -> AssetKey {
    AssetKey::parse("raw.a").expect("an asset")
}

#[test]
fn a_check_looks_at_the_exact_materialization_and_changes_nothing_about_data() {
    let mut world = world();
    let id = made(&mut world, "raw.a", &[])[0];
    world.engine.state_mut().take_delta();
    let before = world.state().partition_status(&a(), None).expect("a status");
    world.wait(1);
    let [check] = &dispatched(&mut world, asked("raw.a", Operation::Check, &[])).expect("planned")[..] else {
        panic!("one task")
    };
    assert_eq!(check.attempt.task_key.as_str(), "raw/a:check");
    let work = check.work.as_ref().expect("there is work");
    assert!(work.inputs.is_empty(), "the function is not called");
    let checked = work.outputs[0].checked.as_ref().expect("something to look at");
    assert_eq!((checked.materialization_id, work.outputs[0].quarantine), (Some(id), false));
    // Whatever a worker says about data.
    ended(&mut world, check, OutputState::Quarantined, vec![result(false)]);
    assert_eq!(world.run_state(), RunState::Succeeded);
    assert_eq!(world.run().checks_failed, 1, "critical, as it is declared");
    assert_eq!(world.state().quarantine().count(), 0);
    assert_eq!(world.state().partition_status(&a(), None).expect("a status"), before);
    let state = world.state().asset_state(&a()).expect("a state");
    let last = state.last_check().expect("checked");
    assert_eq!((last.passed, last.decision), (false, GatingDecision::Block));
    assert_eq!(state.consecutive_failures(), 0);
    let delta = world.engine.state_mut().take_delta();
    let results: Vec<_> = delta.appended.check_results.iter().map(|row| row.materialization_id).collect();
    assert_eq!(results, [id]);
    assert!(delta.appended.materializations.is_empty());
    let run = world.run;
    let of_check = |effect: &Effect| {
        matches!(effect, Effect::Promote(promotion) if promotion.run_id == run)
            || matches!(effect, Effect::Discard(discard) if discard.run_id == run)
    };
    assert!(!world.effects.iter().any(of_check), "{:?}", world.effects);
}

#[test]
fn a_report_without_the_results_that_were_asked_for_is_no_success() {
    let mut world = world();
    made(&mut world, "raw.a", &[]);
    let check = dispatched(&mut world, asked("raw.a", Operation::Check, &[])).expect("planned")[0].clone();
    ended(&mut world, &check, OutputState::Discarded, vec![]);
    let task = world.state().task(world.run, &check.attempt.task_key).expect("in memory");
    assert_eq!(task.state, TaskState::Failed);
    assert!(task.error.as_ref().is_some_and(|error| error.message.contains("rows")), "{:?}", task.error);
    assert_eq!(world.state().asset_state(&a()).expect("a state").consecutive_failures(), 0);
}

#[test]
fn only_materialized_partitions_are_checked_and_all_of_them_unless_asked_otherwise() {
    let mut world = world();
    made(&mut world, "raw.days", &["2013-01-02"]);
    made(&mut world, "raw.days", &["2013-01-05"]);
    let mut planned = |keys: &[&str]| -> Vec<Option<PartitionKey>> {
        let found = dispatched(&mut world, asked("raw.*", Operation::Check, keys)).expect("planned");
        found.iter().map(|dispatch| dispatch.attempt.task_key.partition()).collect()
    };
    let day = |day: &str| Some(PartitionKey::parse(&format!("date=d:{day}")).expect("a partition"));
    assert_eq!(planned(&[]), [day("2013-01-02"), day("2013-01-05")]);
    assert_eq!(planned(&["2013-01-05"]), [day("2013-01-05")]);
    assert_eq!(planned(&["2013-01"]).len(), 2);
}

#[test]
fn a_check_of_nothing_says_what_is_missing() {
    let mut world = world();
    let refused = |world: &mut World, request: RunRequest| match dispatched(world, request) {
        Err(RequestError::Planning(error)) => error,
        other => panic!("{other:?}"),
    };
    let error = refused(&mut world, asked("raw.a", Operation::Check, &[]));
    assert!(matches!(error, PlanningError::NothingToCheck { .. }));
    assert!(error.to_string().contains("servo materialize"), "{error}");
    made(&mut world, "raw.days", &["2013-01-02"]);
    let error = refused(&mut world, asked("raw.days", Operation::Check, &["2013-01-03"]));
    assert!(matches!(error, PlanningError::NothingToCheck { .. }));
    made(&mut world, "raw.plain", &[]);
    for selection in ["raw.plain", "raw.reads"] {
        let error = refused(&mut world, asked(selection, Operation::Check, &[]));
        assert!(matches!(error, PlanningError::NoChecks { .. }), "{error}");
    }
    let mut missing = asked("raw.days", Operation::Check, &[]);
    missing.partitions.missing = true;
    assert!(matches!(refused(&mut world, missing), PlanningError::ChecksOfMissing));
    let mut configured = asked("raw.a", Operation::Check, &[]);
    configured.config.insert("limit".to_owned(), "1".to_owned());
    assert!(matches!(refused(&mut world, configured), PlanningError::UnknownConfig { .. }));
}

#[test]
fn a_request_to_check_is_another_request_than_one_to_make() {
    let mut world = world();
    made(&mut world, "raw.a", &[]);
    let command = |operation| {
        prepare(world.state(), SECRET, "k".into(), asked("raw.a", operation, &[]), world.now)
            .expect("planned")
    };
    let (make, check) = (command(Operation::Materialize), command(Operation::Check));
    assert_ne!(make.fingerprint(), check.fingerprint());
}
