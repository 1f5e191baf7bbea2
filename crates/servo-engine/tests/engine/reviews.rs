//! Reviews: a quarantined materialization is approved or rejected, once (ADR-062).

use servo_core::{AssetKey, MaterializationId};
use servo_engine::outputs::{OutputReport, materialization_of};
use servo_engine::{
    Applied, AttemptOutcome, Caller, Change, DataFormat, DataStatus, Effect, Engine, ErrorCode, Event,
    EventKind, Ignored, Input, OutputState, Refusal, RefusalKind, Reply, Report, RetryPolicy, Review,
    Settings, State, TaskError, TaskOptions, TaskState, TriggerRun, Verdict,
};

use crate::support;
use crate::support::{World, definition, fold, plan, plan_of, task, tenant, workspace};

fn asset(name: &str) -> AssetKey {
    AssetKey::new("t", name).expect("an asset")
}

fn report(state: OutputState, report: Report) -> Report {
    let output = OutputReport {
        format: Some(DataFormat::Json),
        row_count: Some(3),
        code_version: Some("v6".into()),
        ..OutputReport::new(asset("a"), state)
    };
    Report { outputs: [output].into(), ..report }
}

fn blocked() -> Report {
    report(OutputState::Quarantined, Report::failed(TaskError::new(ErrorCode::CheckFailed, "few")))
}

fn committed() -> Report {
    report(OutputState::Committed, Report::succeeded())
}

/// Runs `a` once more; gives what it made.
fn again(world: &mut World, report: Report) -> MaterializationId {
    world.wait(1);
    let run_key = format!("run {}", world.log.len());
    world.trigger(TriggerRun::new(run_key, plan(&[("a", &[])]), "me"));
    let id = materialization_of(world.attempt("a").attempt_id);
    world.play("a", report);
    id
}

/// A world in which `a` has something that waits for review.
fn world() -> (World, MaterializationId) {
    let mut world = World::new(Settings::default());
    let id = again(&mut world, blocked());
    (world, id)
}

fn review(id: MaterializationId, verdict: Verdict) -> Input {
    Input::Review(Review {
        asset: asset("a"),
        materialization_id: id,
        verdict,
        caller: Caller::user("zoë"),
        reason: "looks fine".to_owned(),
    })
}

/// Approves, and lets the data be moved.
fn approve(world: &mut World, id: MaterializationId) {
    let step = world.step(&[review(id, Verdict::Approve)]);
    assert!(matches!(step.replies[0], Ok(Reply::Change(Change::Accepted { .. }))), "{:?}", step.replies);
    let [Effect::Release(release)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    assert_eq!((&release.asset, release.materialization_id), (&asset("a"), id));
    assert!(world.ask(Input::Released(release.clone())).is_ok());
}

fn latest(world: &World) -> Option<MaterializationId> {
    world.state().latest(&asset("a"), None).map(|latest| latest.id())
}

fn status(world: &World) -> (DataStatus, AttemptOutcome) {
    let status = world.state().partition_status(&asset("a"), None).expect("attempted");
    (status.status(), status.last_attempt().outcome)
}

fn waiting(state: &State) -> Vec<MaterializationId> {
    state.quarantine().map(|row| row.materialization_id).collect()
}

#[test]
fn what_is_approved_counts_from_then_on() {
    let (mut world, id) = world();
    let run = world.run;
    assert_eq!(status(&world), (DataStatus::NeverMaterialized, AttemptOutcome::Failed));
    world
        .ask(Input::Deploy(servo_engine::Deploy {
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            time_zones: "2026e".into(),
            digest: "d1".into(),
            project: "tests".to_owned(),
            assets: vec![definition("a", "v7")],
            caller: Caller::user("me"),
        }))
        .expect("deployed");
    world.engine.state_mut().take_delta();
    world.wait(60);
    world.discards();
    approve(&mut world, id);
    let found = world.state().latest(&asset("a"), None).expect("it counts");
    assert_eq!((found.id(), found.run_id(), found.at()), (id, run, world.now));
    assert_eq!(found.format(), Some(DataFormat::Json));
    assert_eq!(status(&world), (DataStatus::Materialized, AttemptOutcome::Succeeded));
    assert_eq!(world.task_state("a"), TaskState::Failed, "what happened has happened");
    let delta = world.engine.state_mut().take_delta();
    let [row] = delta.appended.materializations.as_slice() else {
        panic!("{:?}", delta.appended.materializations)
    };
    assert_eq!((row.materialization_id, row.run_id, row.attempt), (id, run, 1));
    assert_eq!((row.row_count, row.format), (Some(3), Some(DataFormat::Json)));
    assert_eq!((row.materialized_at, row.row_version), (world.now, found.event_id()));
    assert_eq!(materialization_of(row.attempt_id), id);
    assert_eq!(row.code_version.as_deref(), Some("v6"), "what ran, not what is deployed by now");
    assert_eq!(delta.gone.quarantine, [(asset("a"), id)]);
    assert_eq!(delta.partition_status.len(), 1);
    assert!(world.discards().is_empty() && delta.quarantine.is_empty());
}

#[test]
fn what_is_approved_before_the_tables_were_written_is_not_removed() {
    let (mut world, id) = world();
    approve(&mut world, id);
    let delta = world.engine.state_mut().take_delta();
    assert_eq!(delta.appended.materializations.len(), 1);
    assert!(world.discards().is_empty(), "its attempt failed, but this counts");
    let mut replayed = Engine::new(fold(&Settings::default(), &world.events()), support::SECRET);
    assert!(support::discards(replayed.recovered_effects()).is_empty(), "also after a crash");
}

#[test]
fn what_is_rejected_is_removed_and_the_latest_stays() {
    let mut world = World::new(Settings::default());
    let good = again(&mut world, committed());
    let id = again(&mut world, blocked());
    world.engine.state_mut().take_delta();
    world.discards();
    assert!(matches!(world.ask(review(id, Verdict::Reject)), Ok(Reply::Change(Change::Accepted { .. }))));
    let delta = world.engine.state_mut().take_delta();
    let discards = world.discards();
    let [discard] = discards.as_slice() else { panic!("{discards:?}") };
    assert_eq!((discard.run_id, discard.attempt, &discard.assets), (world.run, 1, &vec![asset("a")]));
    assert_eq!(materialization_of(discard.attempt_id), id);
    assert_eq!(delta.gone.quarantine, [(asset("a"), id)]);
    assert!(delta.appended.materializations.is_empty() && delta.partition_status.is_empty());
    assert_eq!(latest(&world), Some(good));
    assert_eq!(status(&world), (DataStatus::LastAttemptFailed, AttemptOutcome::Failed));
}

#[test]
fn something_is_reviewed_once() {
    for first in [Verdict::Approve, Verdict::Reject] {
        for second in [Verdict::Approve, Verdict::Reject] {
            let (mut world, id) = world();
            let replies = world.step(&[review(id, first), review(id, second)]).replies;
            assert!(matches!(replies[0], Ok(Reply::Change(Change::Accepted { .. }))));
            let refusal = replies[1].clone().expect_err("reviewed before");
            assert_eq!(refusal, Refusal::NotInQuarantine { asset: asset("a"), materialization_id: id });
            assert_eq!(refusal.kind(), RefusalKind::NotFound);
        }
    }
}

#[test]
fn what_does_not_wait_cannot_be_reviewed() {
    let mut world = World::new(Settings::default());
    let good = again(&mut world, committed());
    for id in [good, MaterializationId::from_parts(1, 1)] {
        assert!(world.ask(review(id, Verdict::Approve)).is_err());
        assert!(world.ask(review(id, Verdict::Reject)).is_err());
    }
    assert_eq!(latest(&world), Some(good));
}

#[test]
fn inv_2_a_second_copy_of_a_review_or_of_what_it_is_about_changes_nothing() {
    for verdict in [Verdict::Approve, Verdict::Reject] {
        let (mut world, id) = world();
        match verdict {
            Verdict::Approve => approve(&mut world, id),
            Verdict::Reject => drop(world.ask(review(id, verdict)).expect("reviewed")),
        }
        world.engine.state_mut().take_delta();
        let rows = world.state().rows();
        for event in world.events() {
            let mut state = world.state().clone();
            let applied = state.apply(&event);
            assert_eq!(state.rows(), rows, "{}", event.idempotency_key);
            assert!(support::discards(Engine::new(state, support::SECRET).recovered_effects()).is_empty());
            if matches!(
                event.data.kind(),
                EventKind::MaterializationApproved
                    | EventKind::MaterializationRejected
                    | EventKind::MaterializationReleased
            ) {
                assert_eq!(applied, Applied::No(Ignored::Duplicate));
            }
        }
    }
}

#[test]
fn of_each_partition_the_newest_waits_and_the_one_before_is_removed() {
    let (mut world, first) = world();
    let first_run = world.run;
    world.engine.state_mut().take_delta();
    world.discards();
    let second = again(&mut world, blocked());
    assert_eq!(waiting(world.state()), [second]);
    let delta = world.engine.state_mut().take_delta();
    assert_eq!(delta.gone.quarantine, [(asset("a"), first)]);
    assert_eq!(delta.quarantine.iter().map(|row| row.materialization_id).collect::<Vec<_>>(), [second]);
    let discards = world.discards();
    let [discard] = discards.as_slice() else { panic!("{discards:?}") };
    assert_eq!((discard.run_id, materialization_of(discard.attempt_id)), (first_run, first));
    assert!(world.ask(review(first, Verdict::Approve)).is_err(), "it is gone");
    approve(&mut world, second);
    assert_eq!(latest(&world), Some(second));
    let third = again(&mut world, blocked());
    assert_eq!(waiting(world.state()), [third], "a partition may wait again");
}

#[test]
fn attempts_of_one_task_take_each_others_place() {
    let mut world = World::new(Settings::default());
    let retry = Some(RetryPolicy { max_attempts: 2, ..RetryPolicy::default() });
    let options = TaskOptions { retry, ..TaskOptions::default() };
    world.trigger(TriggerRun::new("k", plan_of(vec![task("a", &[], options)]), "me"));
    world.play("a", blocked());
    let first = waiting(world.state());
    assert_eq!(first.len(), 1, "also while it is tried again");
    world.pass(3_600);
    let second = materialization_of(world.attempt("a").attempt_id);
    world.play("a", blocked());
    assert_eq!(world.task_state("a"), TaskState::Failed);
    assert_eq!(waiting(world.state()), [second]);
}

#[test]
fn a_good_materialization_leaves_what_waits_alone() {
    let (mut world, id) = world();
    let good = again(&mut world, committed());
    assert_eq!((waiting(world.state()), latest(&world)), (vec![id], Some(good)));
    approve(&mut world, id);
    assert_eq!(latest(&world), Some(id), "whoever approves it wants it");
}

#[test]
fn inv_1_in_whatever_order_reports_come_the_same_one_waits() {
    let mut world = World::new(Settings::default());
    let mut runs = Vec::new();
    for n in 0..4 {
        world.trigger(TriggerRun::new(format!("run {n}"), plan(&[("a", &[])]), "me"));
        world.start("a").expect("starts");
        runs.push(world.run);
    }
    for (run, report) in runs.into_iter().zip([blocked(), committed(), blocked(), blocked()]) {
        world.wait(1);
        world.run = run;
        world.finish("a", report).expect("finishes");
    }
    let is_end = |event: &Event| event.data.kind() == EventKind::TaskFinished;
    let (ends, others): (Vec<Event>, Vec<Event>) = world.events().into_iter().partition(is_end);
    let in_order = world.state().rows();
    assert_eq!(in_order.quarantine.len(), 1);
    for first in 0..ends.len() {
        let mut order = ends.clone();
        order.rotate_left(first);
        for _ in 0..2 {
            order.reverse();
            let folded = fold(&Settings::default(), &[others.clone(), order.clone()].concat()).rows();
            assert_eq!(folded.quarantine, in_order.quarantine);
            assert_eq!(folded.partition_status, in_order.partition_status);
        }
    }
}

#[test]
fn what_waits_survives_a_restart() {
    let (mut world, id) = world();
    let restored = State::from_rows(tenant(), workspace(), world.state().rows());
    let mut restored = restored.expect("rows fit");
    assert_eq!(restored.rows(), world.state().rows());
    approve(&mut world, id);
    let next = again(&mut world, blocked());
    for event in world.events() {
        if event.id > restored.head().last_event {
            restored.apply(&event);
        }
    }
    assert_eq!(restored.rows().quarantine, world.state().rows().quarantine);
    assert_eq!(waiting(&restored), [next]);
    assert_eq!(restored.rows().partition_status, world.state().rows().partition_status);
}

#[test]
fn what_is_approved_counts_only_when_its_data_was_moved() {
    let mut world = World::new(Settings::default());
    let good = again(&mut world, committed());
    let id = again(&mut world, blocked());
    let step = world.step(&[review(id, Verdict::Approve)]);
    let [release] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    assert_eq!(latest(&world), Some(good), "nobody may be sent to data that is not there");
    assert_eq!(waiting(world.state()), [], "and nobody reviews it again");
    assert!(world.ask(review(id, Verdict::Reject)).is_err());
    let restored = State::from_rows(tenant(), workspace(), world.state().rows());
    let mut restored = Engine::new(restored.expect("rows fit"), support::SECRET);
    assert_eq!(restored.recovered_effects(), std::slice::from_ref(release), "a start moves it again");
    let next = again(&mut world, blocked());
    assert_eq!(waiting(world.state()), [next]);
    let removed = world.discards();
    assert!(removed.iter().all(|it| materialization_of(it.attempt_id) != id), "{removed:?}");
    let Effect::Release(release) = release else { panic!("{release:?}") };
    let step = world.step(&[Input::Released(release.clone()), Input::Released(release.clone())]);
    assert!(matches!(
        step.replies.as_slice(),
        [Ok(Reply::Change(Change::Accepted { .. })), Ok(Reply::Change(Change::Duplicate))]
    ));
    assert_eq!(latest(&world), Some(id));
    let [Effect::Promote(promotion)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    assert_eq!((promotion.materialization_id, &promotion.asset), (id, &asset("a")));
}

#[test]
fn what_is_released_late_does_not_take_the_place_of_what_was_made_after_its_approval() {
    let (mut world, id) = world();
    let step = world.step(&[review(id, Verdict::Approve)]);
    let Effect::Release(release) = &step.effects[0] else { panic!("{:?}", step.effects) };
    let good = again(&mut world, committed());
    let step = world.step(&[Input::Released(release.clone())]);
    assert_eq!(latest(&world), Some(good));
    assert_eq!(step.effects, [], "what is the latest is not pointed at again");
    assert_eq!(world.state().approved().count(), 0);
}
