//! How assets fare: failures since the last success, and what was last heard of each.

use servo_engine::definitions::{CheckKind, Severity};
use servo_engine::outputs::{CheckReport, OutputReport};
use servo_engine::{GatingDecision, OutputState, Report, Settings, State, TriggerRun};

use crate::support::{World, plan, tenant, user_error, workspace};

fn asset() -> servo_core::AssetKey {
    servo_core::AssetKey::new("t", "a").expect("an asset")
}

fn again(world: &mut World, number: u32, report: Report) {
    world.trigger(TriggerRun::new(format!("run {number}"), plan(&[("a", &[])]), "me"));
    world.wait(1);
    world.play("a", report);
}

#[test]
fn failures_are_counted_until_something_succeeds() {
    let mut world = World::new(Settings::default());
    let failures =
        |world: &World| world.state().asset_state(&asset()).map(|state| state.consecutive_failures());
    assert_eq!(failures(&world), None);
    again(&mut world, 1, user_error());
    again(&mut world, 2, user_error());
    assert_eq!(failures(&world), Some(2));
    let failed = world.run;
    again(&mut world, 3, Report::succeeded());
    let state = world.state().asset_state(&asset()).expect("attempted");
    assert_eq!(state.consecutive_failures(), 0);
    assert_eq!(state.last_failure().map(|failure| failure.run_id), Some(failed));
    assert_eq!(state.last_success().map(|success| success.run_id), Some(world.run));
    assert!(state.last_check().is_none());
}

#[test]
fn a_check_that_raises_is_worse_than_a_warning_and_flags_the_run() {
    let mut world = World::new(Settings::default());
    let check = CheckReport {
        name: "sound".to_owned(),
        kind: CheckKind::Python,
        passed: false,
        severity: Severity::Warning,
        blocking: None,
        message: Some("KeyError: 'x'".to_owned()),
        error: Some("KeyError".to_owned()),
        metadata: std::collections::BTreeMap::new(),
        duration_ms: 1,
    };
    let output = OutputReport { checks: vec![check], ..OutputReport::new(asset(), OutputState::Committed) };
    again(&mut world, 1, Report { outputs: [output].into(), ..Report::succeeded() });
    assert_eq!(world.run().checks_failed, 1);
    let checked = *world.state().asset_state(&asset()).and_then(|state| state.last_check()).expect("checked");
    assert_eq!((checked.passed, checked.decision), (false, GatingDecision::Warn));
    let delta = world.engine.state_mut().take_delta();
    assert_eq!(delta.appended.check_results[0].error.as_deref(), Some("KeyError"));
    assert_eq!(delta.asset_states.len(), 1);
    let rows = world.state().rows();
    let back = State::from_rows(tenant(), workspace(), rows.clone()).expect("rows are a state");
    assert_eq!(back.rows(), rows);
}
