//! Backfills: chunks in order and each once, as many at a time as is allowed, pauses, ends, and what is not made over a
//! gap. Each story is also folded from its log, and must give the same state.

#![allow(clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::{MappingDef, Span};
use servo_core::{BackfillId, PartitionsDef, TaskKey};
use servo_engine::controllers::backfills;
use servo_engine::definitions::{AssetDef, DepDef};
use servo_engine::event::{BackfillChunkPlanned, FailureThreshold};
use servo_engine::outputs::Usage;
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{self, BackfillRequest};
use servo_engine::{
    Attempt, Backfill, BackfillChange, BackfillState, Caller, CancelCause, ChangeBackfill, ChangeSettings,
    Deploy, EventData, Input, Refusal, Reply, Report, RunSource, RunTransitionReason, SettingOrigin,
    SettingValue, Settings, State,
};

use crate::support;
use crate::support::{SECRET, World, tenant, user_error, workspace};

pub(crate) fn daily(from: &str, to: &str) -> PartitionsDef {
    PartitionsDef::Daily { span: Span::new(from).until(to) }
}

pub(crate) fn asset(name: &str, partitions: Option<PartitionsDef>, deps: Vec<DepDef>) -> Arc<AssetDef> {
    Arc::new(AssetDef {
        key: format!("t/{name}"),
        code_version: Some("1".to_owned()),
        partitions,
        deps,
        ..AssetDef::default()
    })
}

pub(crate) fn reads(name: &str, mapping: Option<MappingDef>) -> DepDef {
    DepDef { asset: Some(format!("t/{name}")), mapping, ..DepDef::default() }
}

/// January 2024: long over when the tests begin.
fn january() -> Option<PartitionsDef> {
    Some(daily("2024-01-01", "2024-01-30"))
}

pub(crate) fn deploy(world: &mut World, digest: &str, assets: Vec<Arc<AssetDef>>) {
    let command = Deploy {
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "shop".to_owned(),
        assets,
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(command)).expect("deployed");
}

fn world(assets: Vec<Arc<AssetDef>>) -> World {
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", assets);
    world
}

fn month() -> World {
    world(vec![asset("a", january(), Vec::new())])
}

fn request(selection: &str, range: &str) -> BackfillRequest {
    BackfillRequest {
        selection: selection.to_owned(),
        partitions: PartitionChoice { ranges: vec![range.to_owned()], ..PartitionChoice::default() },
        caller: Caller::user("me"),
        ..BackfillRequest::default()
    }
}

pub(crate) fn all(selection: &str) -> BackfillRequest {
    request(selection, "2024-01-01..2024-01-30")
}

pub(crate) fn create(world: &mut World, request: BackfillRequest) -> BackfillId {
    let command = requests::prepare_backfill(world.state(), request, world.now).expect("it can be made");
    match world.ask(Input::CreateBackfill(command)) {
        Ok(Reply::Backfill(reply)) => reply.backfill_id,
        other => panic!("a backfill, not {other:?}"),
    }
}

pub(crate) fn retry(world: &mut World, of: BackfillId) -> BackfillId {
    let failed: Vec<_> =
        world.state().backfill_chunks().filter(|row| row.backfill_id == of).cloned().collect();
    let parent = world.state().backfill(of).expect("it is there");
    let command = requests::retry_backfill(world.state(), parent, &failed, Caller::user("me"))
        .expect("something to retry");
    match world.ask(Input::CreateBackfill(command)) {
        Ok(Reply::Backfill(reply)) => reply.backfill_id,
        other => panic!("a backfill, not {other:?}"),
    }
}

fn change(world: &mut World, backfill: BackfillId, change: BackfillChange) -> Result<Reply, Refusal> {
    let caller = Caller::user("me");
    let (expected_state_version, reason) = (None, String::new());
    world.ask(Input::ChangeBackfill(ChangeBackfill {
        backfill,
        expected_state_version,
        change,
        reason,
        caller,
    }))
}

pub(crate) fn backfill(world: &World, id: BackfillId) -> &Backfill {
    world.state().backfill(id).expect("it is there")
}

fn chunks(world: &World) -> Vec<BackfillChunkPlanned> {
    let planned = world.events().into_iter().filter_map(|event| {
        let EventData::BackfillChunkPlanned(planned) = event.data else { return None };
        Some(planned)
    });
    planned.collect()
}

/// Every attempt that waits for a worker.
pub(crate) fn open(world: &World) -> Vec<Attempt> {
    let runs = world.state().runs().filter(|run| !run.state.is_terminal());
    let tasks = runs.flat_map(|run| {
        run.tasks.iter().filter(|task| task.has_open_attempt()).map(|task| Attempt {
            run_id: run.id,
            task_key: task.key.clone(),
            attempt: task.attempt,
            attempt_id: task.attempt_id.expect("an attempt has an id"),
        })
    });
    tasks.collect()
}

/// Plays every task until nothing is left to do, or `enough` says so; `fails` decides which attempts do. Gives back
/// what was attempted, in order.
pub(crate) fn play(
    world: &mut World,
    fails: impl Fn(&TaskKey) -> bool,
    enough: impl Fn(&World) -> bool,
) -> Vec<TaskKey> {
    let mut attempted = Vec::new();
    loop {
        if enough(world) {
            return attempted;
        }
        let Some(attempt) = open(world).into_iter().next() else { return attempted };
        attempted.push(attempt.task_key.clone());
        let report = if fails(&attempt.task_key) { user_error() } else { Report::succeeded() };
        world.ask(Input::Started(attempt.clone(), Arc::from("w"))).expect("it starts");
        world.ask(Input::Finished(attempt, report)).expect("it ends");
    }
}

fn finish(world: &mut World) -> Vec<TaskKey> {
    play(world, |_| false, |_| false)
}

/// The state from the log and the state from its own rows are the state.
fn replays(world: &World) {
    let mut replayed = support::empty_state(&Settings::default());
    for (seq, batch) in (1u64..).zip(&world.log) {
        replayed.apply_batch(seq, batch);
    }
    assert_eq!(replayed.rows(), world.state().rows());
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("its own rows");
    assert_eq!(restored.rows(), world.state().rows());
}

fn day(number: u32) -> String {
    format!("t/a[date=d:2024-01-{number:02}]:materialize")
}

#[test]
fn a_million_partitions_are_accepted_as_one_range_and_two_chunks_are_planned() {
    let hours = PartitionsDef::Hourly { span: Span::new("1900-01-01T00:00").until("2020-12-31T00:00") };
    let mut world = world(vec![asset("a", Some(hours), Vec::new())]);
    let request = request("t.a", "1900-01-01T00:00Z..2014-01-29T15:00Z");
    let id = create(&mut world, request);
    let created = &backfill(&world, id).definition;
    assert_eq!((created.total_partitions, created.total_chunks), (1_000_000, 100_000));
    assert_eq!(created.targets[0].partitions.len(), 1, "a range, not a list");
    assert_eq!(chunks(&world).len(), 2);
    let batch = world.log.last().expect("a batch");
    let kinds: Vec<&str> = batch.iter().map(|event| event.data.kind().name()).take(6).collect();
    assert_eq!(
        kinds,
        [
            "BackfillCreated",
            "BackfillStateChanged",
            "BackfillChunkPlanned",
            "RunRequested",
            "PlanCreated",
            "RunTriggered"
        ]
    );
    change(&mut world, id, BackfillChange::Cancel).expect("cancelled");
    assert!(world.state().runs().all(|run| run.cancel.is_some() || run.state.is_terminal()));
    replays(&world);
}

#[test]
fn chunks_are_planned_in_order_each_once_and_at_most_so_many_at_a_time() {
    let mut world = month();
    let id = create(&mut world, BackfillRequest { chunk_size: 4, max_concurrent_runs: 3, ..all("t.a") });
    let mut most = 0;
    let mut attempted = Vec::new();
    while !backfill(&world, id).state.is_terminal() {
        most = most.max(backfill(&world, id).active.len());
        let before = attempted.len();
        attempted.extend(play(&mut world, |_| false, {
            let seen = std::cell::Cell::new(0);
            move |_| seen.replace(seen.get() + 1) > 0
        }));
        assert!(attempted.len() > before, "it goes on");
    }
    assert_eq!(most, 3);
    attempted.sort();
    let wanted: Vec<TaskKey> = (1..=30).map(|number| TaskKey::parse(&day(number)).expect("a key")).collect();
    assert_eq!(attempted, wanted, "each partition once");
    let planned = chunks(&world);
    let indexes: Vec<u32> = planned.iter().map(|chunk| chunk.chunk_index).collect();
    assert_eq!(indexes, (0..8).collect::<Vec<u32>>());
    assert_eq!(planned[0].partition_keys[0].to_string(), "2024-01-01..2024-01-04");
    assert_eq!(&*planned[7].run_key, format!("backfill:{id}:chunk:7"));
    let run = world.state().run(planned[7].run_id).expect("in memory");
    assert_eq!(
        run.source,
        RunSource::Backfill { id: id.to_string().into(), chunk: format!("{id}:7").into() }
    );
    assert_eq!(backfill(&world, id).state, BackfillState::Succeeded);
    replays(&world);
}

#[test]
fn chunks_of_all_backfills_together_are_limited_and_the_places_are_shared() {
    let mut world = month();
    let many = |selection| BackfillRequest { chunk_size: 1, max_concurrent_runs: 50, ..all(selection) };
    let first = create(&mut world, many("t.a"));
    assert_eq!(backfill(&world, first).active.len(), 5, "max_backfill_concurrency");
    let second = create(&mut world, many("t.a"));
    assert!(backfill(&world, second).active.is_empty(), "there is no room");
    let waits = world.state().backfill_waits(backfill(&world, second), world.now).expect("it waits");
    assert_eq!(waits, "5 chunks of backfills are at work, and max_backfill_concurrency is 5");
    let mut both = false;
    while !backfill(&world, first).state.is_terminal() || !backfill(&world, second).state.is_terminal() {
        let at_work = [first, second].map(|id| backfill(&world, id).active.len());
        assert!(at_work.iter().sum::<usize>() <= 5, "{at_work:?}");
        both |= at_work.iter().all(|count| *count > 0);
        let attempted = play(&mut world, |_| false, {
            let seen = std::cell::Cell::new(0);
            move |_| seen.replace(seen.get() + 1) > 0
        });
        assert!(!attempted.is_empty(), "it goes on");
    }
    assert!(both, "whoever has fewer places goes first");
    assert_eq!(world.state().backfill_waits(backfill(&world, second), world.now), None);
    replays(&world);
}

#[test]
fn chunks_beyond_the_runs_of_a_day_wait_for_the_next_one() {
    let mut world = month();
    let limit = ChangeSettings {
        set: [("max_daily_runs".to_owned(), SettingValue::Number(2))].into(),
        unset: Vec::new(),
        origin: SettingOrigin::Cli,
        caller: Caller::user("me"),
    };
    world.ask(Input::ChangeSettings(limit)).expect("set");
    let id = create(&mut world, BackfillRequest { chunk_size: 10, max_concurrent_runs: 5, ..all("t.a") });
    assert_eq!(backfill(&world, id).active.len(), 2, "of three chunks");
    let waits = world.state().backfill_waits(backfill(&world, id), world.now).expect("it waits");
    assert!(
        waits.starts_with("max_daily_runs is 2, and so many were asked for; it goes on at 2025-01-16T00:00")
    );
    let midnight = support::after(24 * 3_600);
    assert!(world.engine.next_deadline(world.now).is_some_and(|at| at <= midnight), "it wakes up by itself");
    play(&mut world, |_| false, |world| world.state().runs().all(|run| run.state.is_terminal()));
    assert_eq!(chunks(&world).len(), 2, "the end of runs does not bring the day's runs back");
    assert_eq!(backfill(&world, id).state, BackfillState::Running);
    assert_eq!(world.engine.next_deadline(world.now), Some(midnight));
    world.now = midnight;
    world.step(&[]);
    assert_eq!(chunks(&world).len(), 3);
    replays(&world);
}

fn half_a_second_of_work() -> Report {
    Report { usage: Some(Usage { cpu_ms: 500, ..Usage::default() }), ..Report::succeeded() }
}

#[test]
fn a_preview_says_how_long_it_takes_by_how_long_it_took() {
    let mut world = month();
    let preview = |world: &World, request| {
        requests::preview_backfill(world.state(), &request, world.now).expect("it can be made").estimate
    };
    assert_eq!(preview(&world, all("t.a")), None, "nothing is known yet");
    let id = create(&mut world, request("t.a", "2024-01-01..2024-01-02"));
    for attempt in open(&world) {
        world.ask(Input::Started(attempt.clone(), "w".into())).expect("begun");
        world.wait(3);
        world.ask(Input::Finished(attempt, half_a_second_of_work())).expect("ended");
    }
    assert!(backfill(&world, id).state.is_terminal());
    let estimate = preview(&world, BackfillRequest { chunk_size: 5, ..all("t.a") }).expect("by the past");
    assert_eq!((estimate.work.get(), estimate.from_tasks), (90_000, 2), "30 days of 3 seconds each");
    assert_eq!(estimate.elapsed.get(), 9_000, "10 at once: 2 runs of 5");
    assert_eq!(estimate.cost.get(), 30 * 12, "half a second of a processor each");
}

#[test]
fn a_preview_knows_how_long_it_took_when_the_runs_have_left_memory() {
    let mut world = World::new(Settings { recent_tasks: 1, ..Settings::default() });
    deploy(&mut world, "1", vec![asset("a", january(), Vec::new())]);
    create(&mut world, request("t.a", "2024-01-01..2024-01-02"));
    for attempt in open(&world) {
        world.ask(Input::Started(attempt.clone(), "w".into())).expect("begun");
        world.wait(3);
        world.ask(Input::Finished(attempt, half_a_second_of_work())).expect("ended");
    }
    assert_eq!(world.state().runs().count(), 0, "it has more tasks than may stay");
    let asked = BackfillRequest { chunk_size: 5, ..all("t.a") };
    let found = requests::preview_backfill(world.state(), &asked, world.now).expect("it can be made");
    let estimate = found.estimate.expect("durations stay with the asset");
    assert_eq!((estimate.work.get(), estimate.elapsed.get(), estimate.from_tasks), (90_000, 9_000, 2));
    assert_eq!(estimate.cost.get(), 30 * 12, "and so do costs");
}

/// L2-INV-7 of the seeds: the same chunk twice changes nothing.
/// L2-INV-7: a chunk is planned once.
#[test]
fn test_chunk_planning_idempotent() {
    let mut world = month();
    let id = create(&mut world, all("t.a"));
    let planned = chunks(&world)[0].clone();
    let before = world.state().rows();
    let mut state = world.state().clone();
    let again = support::event(EventData::BackfillChunkPlanned(planned), world.now, 77);
    state.apply(&again);
    assert_eq!(state.rows().backfills, before.backfills);
    assert_eq!(state.rows().backfill_chunks, before.backfill_chunks);
    assert_eq!(backfills::reconcile(world.state(), SECRET, id, world.now), [], "there is no room");
    let steps = world.log.len();
    world.step(&[]);
    assert_eq!(world.log.len(), steps, "nothing is planned twice");
}

/// L2-INV-6 of the seeds: a change with another version than there is changes nothing.
/// L2-INV-6: a change of an older version is refused.
#[test]
fn test_backfill_version_conflict() {
    let mut world = month();
    let id = create(&mut world, all("t.a"));
    let pause = |expected| {
        Input::ChangeBackfill(ChangeBackfill {
            backfill: id,
            expected_state_version: Some(expected),
            change: BackfillChange::Pause,
            reason: String::new(),
            caller: Caller::user("me"),
        })
    };
    let refused = world.ask(pause(1)).unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    assert_eq!(backfill(&world, id).state, BackfillState::Running);
    world.ask(pause(2)).expect("paused");
    assert_eq!((backfill(&world, id).state, backfill(&world, id).state_version), (BackfillState::Paused, 3));
    world.ask(pause(2)).unwrap_err();
}

/// L2-INV-5 of the seeds: the run key of a chunk that somebody used for something else is a conflict, not another run.
#[test]
fn l2_inv_5_a_run_key_that_was_used_for_something_else_ends_the_backfill() {
    let mut world = month();
    let request = BackfillRequest { max_concurrent_runs: 1, ..all("t.a") };
    let id = create(&mut world, request);
    let plan = support::plan(&[("a", &[])]);
    let taken = servo_engine::TriggerRun::new(format!("backfill:{id}:chunk:1"), plan, "me");
    world.ask(Input::Trigger(taken)).expect("a run");
    finish(&mut world);
    let ended = backfill(&world, id);
    assert_eq!((ended.state, ended.planned_chunks), (BackfillState::Failed, 1));
    assert!(ended.reason.as_deref().unwrap_or_default().contains("was used before"), "{:?}", ended.reason);
    replays(&world);
}

#[test]
fn a_paused_backfill_is_quiet_and_goes_on_where_it_was() {
    let mut world = month();
    let request = BackfillRequest { chunk_size: 5, max_concurrent_runs: 1, ..all("t.a") };
    let id = create(&mut world, request);
    let made = |world: &World| backfill(world, id).fared.completed;
    play(&mut world, |_| false, |world| made(world) >= 10);
    change(&mut world, id, BackfillChange::Pause).expect("paused");
    finish(&mut world);
    assert_eq!(made(&world), 15, "the chunk at work ends");
    let quiet = world.log.len();
    world.step(&[]);
    assert_eq!((world.log.len(), world.engine.next_deadline(world.now)), (quiet, None));
    change(&mut world, id, BackfillChange::Resume).expect("resumed");
    let rest = play(&mut world, |key| key.as_str() == day(20), |_| false);
    assert_eq!(rest.len(), 15);
    assert_eq!((backfill(&world, id).state, backfill(&world, id).fared.failed), (BackfillState::Failed, 1));
    let again = retry(&mut world, id);
    assert_eq!(finish(&mut world), [TaskKey::parse(&day(20)).expect("a key")], "only what failed");
    assert_eq!(backfill(&world, again).definition.parent_backfill_id, Some(id));
    assert_eq!(backfill(&world, again).state, BackfillState::Succeeded);
    replays(&world);
}

#[test]
fn failures_while_paused_do_not_fail_the_backfill_and_are_shown() {
    let mut world = month();
    let id = create(&mut world, BackfillRequest { chunk_size: 15, max_concurrent_runs: 1, ..all("t.a") });
    change(&mut world, id, BackfillChange::Pause).expect("paused");
    play(&mut world, |key| key.as_str() == day(3), |_| false);
    assert_eq!(backfill(&world, id).state, BackfillState::Paused);
    assert_eq!(backfill(&world, id).display_state(), "PAUSED_WITH_FAILURES");
}

#[test]
fn a_cancelled_backfill_starts_nothing_more_and_keeps_no_place() {
    let mut world = month();
    let id = create(&mut world, all("t.a"));
    change(&mut world, id, BackfillChange::Cancel).expect("cancelled");
    assert!(open(&world).is_empty() || world.state().runs().all(|run| run.cancel.is_some()));
    let runs: Vec<_> = world.state().runs().map(|run| (run.id, run.reason)).collect();
    assert!(runs.iter().all(|(_, reason)| *reason == RunTransitionReason::SystemCancelled), "{runs:?}");
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("restored");
    let causes: Vec<_> = restored.runs().map(|run| run.cancel.as_ref().map(|cancel| cancel.cause)).collect();
    assert!(causes.iter().all(|cause| *cause == Some(CancelCause::System)), "{causes:?}");
    finish_cancelled(&mut world);
    let ended = backfill(&world, id);
    assert_eq!((ended.state, ended.active.len(), ended.planned_chunks), (BackfillState::Cancelled, 0, 2));
    let refused = change(&mut world, id, BackfillChange::Resume).unwrap_err();
    assert_eq!(refused.code(), "invalid_state_transition");
    assert_eq!(change(&mut world, id, BackfillChange::Cancel).map(|_| ()), Ok(()), "it is so already");
    replays(&world);
}

/// Workers that are told to stop do.
fn finish_cancelled(world: &mut World) {
    for attempt in open(world) {
        let _ = world.ask(Input::Started(attempt.clone(), Arc::from("w")));
        let _ = world.ask(Input::Finished(attempt, support::ended_as(servo_engine::Outcome::Cancelled)));
    }
}

#[test]
fn it_stops_at_the_first_failure_or_when_too_much_has_failed() {
    for (request, planned) in [
        (BackfillRequest { stop_on_failure: true, ..all("t.a") }, 1),
        (BackfillRequest { failure_threshold: Some(FailureThreshold::Count(1)), ..all("t.a") }, 2),
        (BackfillRequest { failure_threshold: Some(FailureThreshold::Percent(10)), ..all("t.a") }, 4),
    ] {
        let mut world = month();
        let id = create(&mut world, BackfillRequest { chunk_size: 1, max_concurrent_runs: 1, ..request });
        play(&mut world, |_| true, |_| false);
        let ended = backfill(&world, id);
        assert_eq!(
            (ended.state, ended.planned_chunks),
            (BackfillState::Failed, planned),
            "{:?}",
            ended.reason
        );
        assert!(ended.reason.is_some());
        let again = retry(&mut world, id);
        finish(&mut world);
        assert_eq!(backfill(&world, again).fared.completed, 30, "what it never came to is made too");
    }
}

#[test]
fn a_self_dependent_asset_is_made_in_order_and_never_over_a_gap() {
    let yesterday = reads("a", Some(MappingDef::Window { from: -1, to: -1 }));
    let mut world = world(vec![asset("a", january(), vec![yesterday])]);
    let request = BackfillRequest { chunk_size: 4, max_concurrent_runs: 5, ..all("t.a") };
    let id = create(&mut world, request);
    let attempted = play(&mut world, |key| key.as_str() == day(15), |_| false);
    let wanted: Vec<TaskKey> = (1..=15).map(|number| TaskKey::parse(&day(number)).expect("a key")).collect();
    assert_eq!(attempted, wanted, "one after the other, and nothing after the gap");
    let ended = backfill(&world, id);
    assert_eq!((ended.state, ended.fared.skipped), (BackfillState::Failed, 1));
    assert!(ended.reason.as_deref().unwrap_or_default().contains("reads it"), "{:?}", ended.reason);
    let again = retry(&mut world, id);
    let rest = finish(&mut world);
    let wanted: Vec<TaskKey> = (15..=30).map(|number| TaskKey::parse(&day(number)).expect("a key")).collect();
    assert_eq!(rest, wanted, "without a gap");
    assert_eq!(backfill(&world, again).state, BackfillState::Succeeded);
    replays(&world);
}

#[test]
fn assets_with_other_partitions_are_made_when_all_that_they_read_is() {
    let weeks = PartitionsDef::Weekly { weekday: 1, span: Span::new("2024-01-01").until("2024-01-22") };
    let assets = vec![
        asset("a", Some(daily("2024-01-01", "2024-01-28")), Vec::new()),
        asset("clean", Some(daily("2024-01-01", "2024-01-28")), vec![reads("a", None)]),
        asset("total", None, vec![reads("weekly", None)]),
        asset("weekly", Some(weeks), vec![reads("clean", Some(MappingDef::Time))]),
    ];
    let mut world = world(assets);
    let request = BackfillRequest {
        selection: "t.*".to_owned(),
        partitions: PartitionChoice { missing: true, ..PartitionChoice::default() },
        chunk_size: 5,
        max_concurrent_runs: 4,
        caller: Caller::user("me"),
        ..BackfillRequest::default()
    };
    let id = create(&mut world, request);
    assert_eq!(backfill(&world, id).definition.total_partitions, 28 + 28 + 4 + 1);
    let attempted = finish(&mut world);
    assert_eq!(attempted.len(), 61, "each once");
    let at: BTreeMap<String, usize> =
        attempted.iter().enumerate().map(|(at, key)| (key.as_str().to_owned(), at)).collect();
    for week in 0..4u32 {
        let monday = 1 + week * 7;
        let made = at[&format!("t/weekly[week=d:2024-01-{monday:02}]:materialize")];
        for day in monday..monday + 7 {
            let clean = at[&format!("t/clean[date=d:2024-01-{day:02}]:materialize")];
            assert!(at[&format!("t/a[date=d:2024-01-{day:02}]:materialize")] < clean && clean < made);
        }
    }
    assert_eq!(at["t/total:materialize"], 60, "last");
    assert_eq!(backfill(&world, id).state, BackfillState::Succeeded);
    replays(&world);
}

#[test]
fn what_is_deployed_in_the_middle_counts_from_the_next_chunk_and_what_is_gone_ends_it() {
    let mut world = month();
    let id = create(&mut world, BackfillRequest { max_concurrent_runs: 1, ..all("t.a") });
    deploy(&mut world, "d2", vec![asset("a", Some(daily("2024-01-01", "2024-01-20")), Vec::new())]);
    finish(&mut world);
    let ended = backfill(&world, id);
    assert_eq!((ended.state, ended.fared.completed), (BackfillState::Failed, 10));
    assert!(ended.reason.as_deref().unwrap_or_default().contains("have changed"), "{:?}", ended.reason);
    let id = create(
        &mut world,
        BackfillRequest { max_concurrent_runs: 1, ..request("t.a", "2024-01-01..2024-01-20") },
    );
    deploy(&mut world, "d3", vec![asset("b", None, Vec::new())]);
    finish(&mut world);
    let reason = backfill(&world, id).reason.clone().unwrap_or_default();
    assert!(reason.contains("t.a is not deployed any more"), "{reason}");
    replays(&world);
}

#[test]
fn requests_that_make_no_sense_are_refused_and_change_nothing() {
    let world = world(vec![asset("a", january(), Vec::new()), asset("plain", None, Vec::new())]);
    let refused = |request: BackfillRequest| -> String {
        match requests::prepare_backfill(world.state(), request, world.now) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it was accepted"),
        }
    };
    for (request, problem) in [
        (request("t.a", "2024-01-20..2024-01-10"), "after"),
        (request("t.a", "2023-01-01..2023-01-10"), "first partition is 2024-01-01"),
        (request("t.plain", "2024-01-01..2024-01-02"), "nothing that is selected has partitions"),
        (BackfillRequest { partitions: PartitionChoice::default(), ..all("t.plain") }, "has partitions"),
        (BackfillRequest { partitions: PartitionChoice::default(), ..all("t.a") }, "choose partitions"),
        (request("t.nothing", "2024-01-01..2024-01-02"), "t.nothing"),
        (BackfillRequest { chunk_size: 0, ..all("t.a") }, "chunk size 0 is not between 1 and"),
        (BackfillRequest { max_concurrent_runs: 0, ..all("t.a") }, "0 concurrent runs"),
        (
            BackfillRequest { failure_threshold: Some(FailureThreshold::Percent(200)), ..all("t.a") },
            "at most 100%",
        ),
        (
            BackfillRequest {
                partitions: PartitionChoice { failed: true, ..PartitionChoice::default() },
                ..all("t.a")
            },
            "leave out --failed",
        ),
    ] {
        let said = refused(request);
        assert!(said.contains(problem), "{said:?} should say {problem:?}");
    }
}

#[test]
fn the_same_request_is_the_same_backfill_and_another_one_under_its_id_is_a_conflict() {
    let mut world = month();
    let caller = Caller { request_id: Some("r1".into()), ..Caller::user("me") };
    let asked = BackfillRequest { caller, ..all("t.a") };
    let id = create(&mut world, asked.clone());
    finish(&mut world);
    assert_eq!(create(&mut world, asked.clone()), id);
    let other = BackfillRequest { chunk_size: 3, ..asked };
    let command = requests::prepare_backfill(world.state(), other, world.now).expect("it can be made");
    assert_eq!(world.ask(Input::CreateBackfill(command)).unwrap_err().code(), "idempotency_conflict");
    assert_eq!(world.state().backfills().count(), 1);
}

#[test]
fn backfills_that_ended_long_ago_leave_memory_with_their_chunks_and_are_written_once() {
    let mut world = month();
    let first = create(&mut world, request("t.a", "2024-01-01..2024-01-02"));
    play(&mut world, |_| false, |_| false);
    assert_eq!(backfill(&world, first).state, BackfillState::Succeeded);
    let open = create(&mut world, request("t.a", "2024-01-01..2024-01-02"));
    change(&mut world, open, BackfillChange::Pause).expect("paused");
    let mut written = Vec::new();
    let mut chunks = Vec::new();
    for _ in 0..1_000 {
        world.engine.set_backfills(false);
        let id = create(&mut world, request("t.a", "2024-01-01..2024-01-02"));
        change(&mut world, id, BackfillChange::Cancel).expect("cancelled");
        let delta = world.engine.state_mut().take_delta();
        written.extend(delta.ended.backfills.iter().map(|row| row.backfill_id));
        chunks.extend(delta.ended.backfill_chunks.iter().map(|row| row.backfill_id));
        assert_eq!(delta.gone.backfills.len(), delta.ended.backfills.len());
    }
    assert_eq!(written, [first], "the one that ended first, and no other");
    assert_eq!(chunks, [first]);
    assert!(world.state().backfill(first).is_none());
    assert!(world.state().backfill_chunks().all(|row| row.backfill_id != first));
    assert!(world.state().backfill(open).is_some(), "one that is paused stays, however old it is");
    assert_eq!(world.state().backfills().count(), 1_001);
    let refused = change(&mut world, first, BackfillChange::Pause);
    assert!(matches!(refused, Err(Refusal::UnknownBackfill { .. })), "{refused:?}");
    let rows = world.state().rows();
    let restored = State::from_rows(tenant(), workspace(), rows.clone()).expect("its own rows fit");
    assert_eq!(restored.rows(), rows);
}
