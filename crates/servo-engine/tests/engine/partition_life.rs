//! Partitions are wiped, marked, and given back what they were (ADR-150).

use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, TaskKey};
use servo_engine::event::KeyList;
use servo_engine::outputs::{OutputReport, materialization_of};
use servo_engine::requests::PlanBasis;
use servo_engine::{
    AttemptOutcome, Caller, Change, DataFormat, DataStatus, Effect, Expired, Input, MarkPartitions,
    OutputState, PartitionsReply, Refusal, Reply, Report, RestorePartitions, Settings, State, TaskOptions,
    TaskRequest, TaskState, TriggerRun, WipePartitions,
};

use crate::support;
use crate::support::{World, fold, plan_of, tenant, workspace};

fn asset() -> AssetKey {
    AssetKey::new("t", "a").expect("an asset")
}

fn partition(number: i64) -> PartitionKey {
    PartitionKey::parse(&format!("p=i:{number}")).expect("a partition")
}

fn task_key(number: i64) -> TaskKey {
    TaskKey::parse(&format!("t/a[p=i:{number}]:materialize")).expect("a task key")
}

fn committed() -> Report {
    let output =
        OutputReport { format: Some(DataFormat::Json), ..OutputReport::new(asset(), OutputState::Committed) };
    Report { outputs: [output].into(), ..Report::succeeded() }
}

/// Triggers a run of these partitions.
fn trigger(world: &mut World, numbers: &[i64]) {
    world.wait(1);
    let tasks = numbers.iter().map(|number| TaskRequest {
        key: task_key(*number),
        upstream: Vec::new(),
        options: TaskOptions::default(),
    });
    let run_key = format!("run {}", world.log.len());
    world.trigger(TriggerRun::new(run_key, plan_of(tasks.collect()), "me"));
}

/// The attempt at a partition in the newest run.
fn attempt(world: &World, number: i64) -> servo_engine::Attempt {
    let task = world.state().task(world.run, &task_key(number)).expect("a task");
    servo_engine::Attempt {
        run_id: world.run,
        task_key: task.key.clone(),
        attempt: task.attempt,
        attempt_id: task.attempt_id.expect("an attempt"),
    }
}

fn finish(world: &mut World, number: i64, report: Report) -> MaterializationId {
    let attempt = attempt(world, number);
    let id = materialization_of(attempt.attempt_id);
    let _started = world.ask(Input::Started(attempt.clone(), "w".into()));
    world.ask(Input::Finished(attempt, report)).expect("reported");
    id
}

/// A world in which partitions 1 to `count` are made.
fn made(count: i64) -> World {
    let mut world = World::new(Settings::default());
    let numbers: Vec<i64> = (1..=count).collect();
    trigger(&mut world, &numbers);
    for number in numbers {
        finish(&mut world, number, committed());
    }
    world
}

fn wipe(numbers: &[i64], keep_data: bool, force: bool) -> Input {
    Input::WipePartitions(WipePartitions {
        asset: asset(),
        partitions: numbers.iter().map(|number| Some(partition(*number))).collect(),
        keep_data,
        force,
        reason: "bad source".to_owned(),
        caller: Caller::user("zoë"),
    })
}

fn mark(numbers: &[i64], outcome: AttemptOutcome) -> Input {
    Input::MarkPartitions(MarkPartitions {
        asset: asset(),
        partitions: KeyList::new(numbers.iter().map(|number| partition(*number)).collect()),
        outcome,
        reason: String::new(),
        basis: PlanBasis::default(),
        caller: Caller::user("zoë"),
    })
}

fn undo() -> Input {
    Input::RestorePartitions(RestorePartitions { asset: asset(), change: None, caller: Caller::user("zoë") })
}

fn changed(reply: Result<Reply, Refusal>) -> PartitionsReply {
    match reply {
        Ok(Reply::Partitions(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

fn latest(state: &State, number: i64) -> Option<MaterializationId> {
    state.latest(&asset(), Some(&partition(number))).map(|latest| latest.id())
}

fn status(state: &State, number: i64) -> Option<DataStatus> {
    state.partition_status(&asset(), Some(&partition(number))).map(|status| status.status())
}

fn expired(effects: Vec<Effect>) -> Vec<Expired> {
    let of = |effect| if let Effect::Expire(expired) = effect { Some(expired) } else { None };
    effects.into_iter().filter_map(of).collect()
}

/// The same state, from rows and from the log.
fn survives(world: &World) {
    let rows = world.state().rows();
    let restored = State::from_rows(tenant(), workspace(), rows.clone()).expect("its own rows fit");
    assert_eq!(restored.rows(), rows);
    let mut replayed = fold(&Settings::default(), &world.events()).rows();
    replayed.head.seq = rows.head.seq;
    assert_eq!(replayed, rows);
}

#[test]
fn a_wipe_takes_the_status_and_after_durability_the_data() {
    let mut world = made(4);
    let second = latest(world.state(), 2).expect("made");
    world.engine.state_mut().take_delta();
    let step = world.step(&[wipe(&[2, 3, 9], false, false)]);
    let reply = changed(step.replies.into_iter().next().expect("a reply"));
    assert_eq!(reply.removed, 2, "nothing is known of 9");
    let gone = expired(step.effects);
    assert_eq!(gone.len(), 2);
    assert!(gone.iter().any(|gone| gone.materialization_id == second && gone.was_latest));
    let found: Vec<_> = (1..=4).map(|number| status(world.state(), number)).collect();
    assert_eq!(found, [Some(DataStatus::Materialized), None, None, Some(DataStatus::Materialized)]);
    assert_eq!(world.state().partition_counts(&asset()).materialized, 2);
    let delta = world.engine.state_mut().take_delta();
    assert_eq!(delta.gone.partition_status.len(), 2);
    assert_eq!(delta.appended.removals.len(), 2);
    assert_eq!(delta.appended.audit.len(), 1);
    assert_eq!(delta.appended.audit[0].action, "partitions.wipe");
    assert!(matches!(world.ask(undo()), Err(Refusal::NothingToUndo { .. })), "the data is gone");
    survives(&world);
}

#[test]
fn a_wipe_is_written_as_ranges_however_many_partitions_it_takes() {
    let mut world = made(9);
    let step = world.step(&[wipe(&[1, 2, 3, 4, 5, 6, 7, 8], true, false)]);
    let servo_engine::EventData::PartitionsWiped(event) = &step.events[0].data else { panic!("a wipe") };
    assert_eq!((event.count, event.partitions.len()), (8, 1));
    assert_eq!(status(world.state(), 9), Some(DataStatus::Materialized));
}

#[test]
fn a_wipe_that_keeps_the_data_can_be_undone_once() {
    let mut world = made(3);
    let before: Vec<_> = (1..=3).map(|number| latest(world.state(), number)).collect();
    let step = world.step(&[wipe(&[1, 2], true, false)]);
    assert!(expired(step.effects).is_empty());
    assert_eq!((latest(world.state(), 1), latest(world.state(), 2)), (None, None));
    survives(&world);
    assert_eq!(changed(world.ask(undo())).added, 2);
    let after: Vec<_> = (1..=3).map(|number| latest(world.state(), number)).collect();
    assert_eq!(before, after);
    assert!(matches!(world.ask(undo()), Err(Refusal::NothingToUndo { .. })));
    survives(&world);
}

#[test]
fn what_was_made_again_since_a_wipe_is_not_touched_by_undoing_it() {
    let mut world = made(2);
    changed(world.ask(wipe(&[1, 2], true, false)));
    trigger(&mut world, &[1]);
    let again = finish(&mut world, 1, committed());
    assert_eq!(changed(world.ask(undo())).added, 1);
    assert_eq!(latest(world.state(), 1), Some(again));
    assert_eq!(status(world.state(), 2), Some(DataStatus::Materialized));
    survives(&world);
}

#[test]
fn a_wipe_of_what_is_being_made_is_refused_and_says_what_to_do() {
    let mut world = made(1);
    trigger(&mut world, &[1]);
    let before = world.state().rows();
    let refusal = world.ask(wipe(&[1], false, false)).expect_err("busy");
    let text = refusal.to_string();
    assert!(text.contains("t.a 1 is being made by run"), "{text}");
    assert!(text.contains(&format!("servo run cancel {}", world.run)) && text.contains("--force"), "{text}");
    assert_eq!(world.state().rows().partition_status, before.partition_status);
}

#[test]
fn a_late_result_of_an_attempt_from_before_a_wipe_does_not_count() {
    for keep_data in [false, true] {
        let mut world = made(1);
        trigger(&mut world, &[1, 2]);
        changed(world.ask(wipe(&[1, 2], keep_data, true)));
        survives(&world);
        world.discards();
        let late = finish(&mut world, 1, committed());
        assert_eq!(status(world.state(), 1), None, "the wipe holds");
        let task = world.state().task(world.run, &task_key(1)).expect("a task");
        assert_eq!((task.state, task.materialization), (TaskState::Succeeded, None), "it is recorded");
        let discarded = world.discards();
        assert_eq!(discarded.len(), 1);
        assert_eq!(materialization_of(discarded[0].attempt_id), late);
        finish(&mut world, 2, support::user_error());
        assert_eq!(status(world.state(), 2), None, "nor does a failure");
        survives(&world);
    }
}

#[test]
fn an_attempt_that_is_dispatched_after_a_wipe_counts_also_if_an_older_one_ends_last() {
    let mut world = made(1);
    trigger(&mut world, &[1]);
    let (old_run, old) = (world.run, attempt(&world, 1));
    changed(world.ask(wipe(&[1], false, true)));
    trigger(&mut world, &[1]);
    let new = finish(&mut world, 1, committed());
    world.ask(Input::Started(old.clone(), "w".into())).expect("starts");
    world.ask(Input::Finished(old, committed())).expect("reported");
    assert_eq!(latest(world.state(), 1), Some(new));
    assert_ne!(old_run, world.run);
    survives(&world);
}

#[test]
fn a_second_try_of_a_task_from_before_a_wipe_counts() {
    let mut world = made(1);
    world.wait(1);
    let options = TaskOptions { retry: Some(servo_engine::RetryPolicy::default()), ..TaskOptions::default() };
    let task = TaskRequest { key: task_key(1), upstream: Vec::new(), options };
    world.trigger(TriggerRun::new("again", plan_of(vec![task]), "me"));
    changed(world.ask(wipe(&[1], false, true)));
    finish(&mut world, 1, support::user_error());
    assert_eq!(status(world.state(), 1), None);
    world.pass(3_600);
    let second = finish(&mut world, 1, committed());
    assert_eq!(latest(world.state(), 1), Some(second));
}

#[test]
fn data_that_was_made_elsewhere_is_marked_as_materialized() {
    let mut world = made(1);
    let step = world.step(&[mark(&[5, 6], AttemptOutcome::Succeeded)]);
    assert!(matches!(
        step.replies[0],
        Ok(Reply::Partitions(PartitionsReply { change: Change::Accepted { .. }, added: 2, removed: 0 }))
    ));
    let found = world.state().latest(&asset(), Some(&partition(5))).expect("marked");
    assert_eq!((found.run_id(), found.has_data()), (RunId::NIL, false));
    assert_ne!(latest(world.state(), 5), latest(world.state(), 6));
    survives(&world);
    assert_eq!(changed(world.ask(undo())).added, 2);
    assert_eq!((status(world.state(), 5), status(world.state(), 6)), (None, None));
    survives(&world);
}

#[test]
fn a_mark_as_failed_keeps_the_data_and_can_be_undone() {
    let mut world = made(2);
    let data = latest(world.state(), 1);
    changed(world.ask(mark(&[1], AttemptOutcome::Failed)));
    assert_eq!(status(world.state(), 1), Some(DataStatus::LastAttemptFailed));
    assert_eq!(latest(world.state(), 1), data);
    changed(world.ask(mark(&[1], AttemptOutcome::Succeeded)));
    assert_eq!(status(world.state(), 1), Some(DataStatus::Materialized));
    assert_eq!(latest(world.state(), 1), data, "the data that is there counts, none is made up");
    assert_eq!(changed(world.ask(undo())).added, 1);
    assert_eq!(status(world.state(), 1), Some(DataStatus::LastAttemptFailed));
    survives(&world);
}

#[test]
fn a_wipe_with_data_takes_what_an_earlier_wipe_has_kept() {
    let mut world = made(1);
    let data = latest(world.state(), 1).expect("made");
    changed(world.ask(wipe(&[1], true, false)));
    let step = world.step(&[wipe(&[1], false, false)]);
    let gone = expired(step.effects);
    assert_eq!(gone.iter().map(|gone| gone.materialization_id).collect::<Vec<_>>(), [data]);
    assert!(matches!(world.ask(undo()), Err(Refusal::NothingToUndo { .. })));
    survives(&world);
}

#[test]
fn the_same_request_is_carried_out_once_and_answered_alike() {
    let mut world = made(1);
    let caller = Caller {
        request_id: Some("monday".into()),
        request_fingerprint: Some(servo_core::Fingerprint::from_digest([7; 32])),
        ..Caller::user("zoë")
    };
    let Input::WipePartitions(command) = wipe(&[1], true, false) else { unreachable!() };
    let command = Input::WipePartitions(WipePartitions { caller, ..command });
    let first = changed(world.ask(command.clone()));
    let events = world.events().len();
    assert_eq!(changed(world.ask(command)), first);
    assert_eq!(world.events().len(), events);
}

#[test]
fn too_many_marks_and_long_reasons_are_refused() {
    let mut world = made(1);
    let numbers: Vec<i64> = (0..10_001).collect();
    let refusal = world.ask(mark(&numbers, AttemptOutcome::Failed)).expect_err("too many");
    assert!(
        refusal.to_string().contains("10001") && refusal.to_string().contains("at most 10000"),
        "{refusal}"
    );
    let Input::WipePartitions(command) = wipe(&[1], false, false) else { unreachable!() };
    let long = Input::WipePartitions(WipePartitions { reason: "x".repeat(5_000), ..command });
    assert!(matches!(world.ask(long), Err(Refusal::LongReason { .. })));
    assert_eq!(status(world.state(), 1), Some(DataStatus::Materialized));
}
