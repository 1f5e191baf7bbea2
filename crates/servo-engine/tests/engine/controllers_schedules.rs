//! Schedules: each tick once, in order, with its run in the same batch.

use std::sync::Arc;

use servo_core::partitions::Span;
use servo_core::{MaterializationId, Millis, PartitionsDef, RunId, Timestamp};
use servo_engine::controllers::schedules;
use servo_engine::definitions::{AssetDef, IfRunning, ScheduleDef};
use servo_engine::event::ScheduleTicked;
use servo_engine::planner::PartitionChoice;
use servo_engine::rows::HotRows;
use servo_engine::{
    Applied, AutomationStatus, Caller, Change, ChangeSchedule, Deploy, Engine, Event, EventData, Ignored,
    Input, Refusal, Reply, Report, RunSource, RunState, Schedule, ScheduleChange, Settings, State,
    TickStatus, TriggerSchedule,
};

use crate::support;
use crate::support::{SECRET, START, World, definition, tenant, workspace};

const MINUTE: i64 = 60;

/// Every ten minutes, of asset `t.a`.
fn every_ten() -> ScheduleDef {
    serde_json::from_str(
        r#"{"name":"tens","location":{"file":"jobs.py","line":3},"cron":"*/10 * * * *","selection":"t.a"}"#,
    )
    .expect("a schedule")
}

fn deploy(digest: &str, schedules: Vec<ScheduleDef>) -> Input {
    Input::Deploy(Deploy {
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "shop".to_owned(),
        assets: vec![definition("a", "1"), definition("b", "1")],
        schedules: schedules.into_iter().map(Arc::new).collect(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("me"),
    })
}

fn world(schedule: ScheduleDef) -> World {
    let mut world = World::new(Settings::default());
    world.now = Timestamp::from_millis(START.as_millis() + 30_000);
    world.ask(deploy("d1", vec![schedule])).expect("deployed");
    world
}

fn change(schedule: &str, change: ScheduleChange) -> Input {
    let caller = Caller::user("me");
    Input::ChangeSchedule(ChangeSchedule {
        name: schedule.to_owned(),
        expected_state_version: None,
        change,
        caller,
    })
}

fn ticks(world: &World) -> Vec<ScheduleTicked> {
    let ticks = world.events().into_iter().filter_map(|event| {
        let EventData::ScheduleTicked(ticked) = event.data else { return None };
        Some(ticked)
    });
    ticks.collect()
}

/// Minutes after the start at which ticks were due, and what came of them.
fn outcomes(world: &World) -> Vec<(i64, TickStatus)> {
    let minutes = |at: Timestamp| (at.as_millis() - START.as_millis()) / 60_000;
    ticks(world).iter().map(|tick| (minutes(tick.scheduled_for), tick.status)).collect()
}

fn schedule(world: &World) -> &Schedule {
    world.state().schedule("tens").expect("it is there")
}

fn wait(world: &mut World, seconds: i64) {
    world.now = Timestamp::from_millis(world.now.as_millis() + seconds * 1_000);
    world.step(&[]);
}

#[test]
fn a_tick_beyond_the_runs_of_a_day_is_recorded_with_the_reason_and_the_next_day_goes_on() {
    let mut world = World::new(Settings { max_daily_runs: Some(1), ..Settings::default() });
    world.now = Timestamp::from_millis(START.as_millis() + 30_000);
    world.ask(deploy("d1", vec![every_ten()])).expect("deployed");
    wait(&mut world, 10 * MINUTE);
    finish_runs(&mut world);
    wait(&mut world, 10 * MINUTE);
    assert_eq!(outcomes(&world), [(10, TickStatus::Triggered), (20, TickStatus::Failed)]);
    let reason = ticks(&world)[1].reason.clone().expect("a reason");
    assert!(reason.starts_with("quota max_daily_runs is used up: 1 of 1"), "{reason}");
    for minute in (30..=24 * 60).step_by(10) {
        world.now = Timestamp::from_millis(START.as_millis() + minute * 60_000);
        world.step(&[]);
    }
    assert_eq!(outcomes(&world).last(), Some(&(24 * 60, TickStatus::Triggered)));
}

fn finish_runs(world: &mut World) {
    loop {
        let active = world.state().runs().find(|run| !run.state.is_terminal()).map(|run| run.id);
        let Some(run) = active else { return };
        world.run = run;
        world.succeed("a");
    }
}

#[test]
fn a_tick_and_the_request_for_its_run_are_one_batch() {
    let mut world = world(every_ten());
    assert_eq!(world.engine.next_deadline(world.now), Some(support::after(10 * MINUTE)));
    wait(&mut world, 9 * MINUTE);
    assert_eq!(ticks(&world), []);
    wait(&mut world, MINUTE);
    let batch = world.log.last().expect("a batch");
    let kinds: Vec<&str> = batch.iter().map(|event| event.data.kind().name()).collect();
    assert_eq!(kinds, ["ScheduleTicked", "RunRequested", "PlanCreated", "RunTriggered", "DispatchRequested"]);
    assert_eq!(batch[0].principal.to_string(), "controller:schedules");
    let EventData::RunRequested(requested) = &batch[1].data else { panic!("a request") };
    let tick = &ticks(&world)[0];
    let id = schedule(&world).id;
    assert_eq!(&*tick.tick_id, format!("{id}:{}", support::after(10 * MINUTE).as_millis() / 1_000));
    assert_eq!(*requested.run_key, format!("sched:{}", tick.tick_id));
    let tick_at = support::after(10 * MINUTE);
    assert_eq!(requested.source, RunSource::Schedule { id: id.to_string().into(), tick: tick_at });
    assert_eq!(schedule(&world).next_tick_at, Some(support::after(20 * MINUTE)));
}

/// L2-INV-1 of the seeds: the same tick twice changes nothing.
#[test]
fn test_schedule_tick_idempotent() {
    let mut world = world(every_ten());
    wait(&mut world, 10 * MINUTE);
    let mut state = world.state().clone();
    let before = state.rows();
    let tick: Event = world.log.last().expect("a batch")[0].clone();
    assert_eq!(state.apply(&tick), Applied::No(Ignored::Duplicate));
    assert_eq!(state.rows(), before);
    let again = schedules::reconcile(world.state(), SECRET, schedule(&world).id, world.now);
    assert_eq!(again, [], "the controller has nothing to add (INV-3)");
}

/// L2-INV-10: from the tick to the run key to the run.
#[test]
fn test_correlation_chain() {
    let mut world = world(every_ten());
    wait(&mut world, 10 * MINUTE);
    let row = world.state().recent_ticks().next().expect("a tick").clone();
    let run_id = RunId::derive(SECRET, &tenant(), &workspace(), row.run_key.as_deref().expect("a key"));
    assert_eq!(row.run_id, Some(run_id));
    let run = world.state().run(run_id).expect("the run is there");
    assert_eq!((run.state, Some(&run.fingerprint)), (RunState::Running, row.request_fingerprint.as_ref()));
    assert_eq!(schedule(&world).last_run_id, Some(run_id));
}

/// L2-INV-9: who derives it, and when, makes no difference.
#[test]
fn test_run_id_deterministic() {
    let (mut one, mut other) = (world(every_ten()), world(every_ten()));
    wait(&mut one, 10 * MINUTE);
    wait(&mut other, 5 * MINUTE);
    wait(&mut other, 5 * MINUTE);
    assert_eq!(ticks(&one)[0].runs, ticks(&other)[0].runs);
}

/// L2-INV-11: the tick has the definition that it followed, whatever is deployed later.
#[test]
fn test_schedule_tick_uses_snapshot() {
    let mut world = world(every_ten());
    let version = schedule(&world).definition_version;
    wait(&mut world, 10 * MINUTE);
    world.ask(deploy("d2", vec![ScheduleDef { selection: Some("t.b".into()), ..every_ten() }])).expect("ok");
    wait(&mut world, 10 * MINUTE);
    let ticks = ticks(&world);
    assert_eq!((ticks[0].definition_version, ticks[0].asset_selection.as_str()), (version, "t.a"));
    assert_eq!(ticks[1].asset_selection, "t.b");
    assert!(ticks[1].definition_version > version);
    let runs: Vec<&str> = world.state().runs().map(|run| run.selection.as_str()).collect();
    assert_eq!(runs.len(), 2);
}

#[test]
fn ticks_that_were_missed_are_made_up_for_within_limits_and_the_rest_is_said() {
    let mut world = world(ScheduleDef { max_catchup_ticks: 100, ..every_ten() });
    wait(&mut world, 16 * 60 * MINUTE + 40 * MINUTE);
    let found = outcomes(&world);
    assert_eq!(found.len(), 100, "100 missed ticks after downtime");
    assert!(found.iter().all(|(_, status)| *status == TickStatus::Triggered));
    assert_eq!((found[0].0, found[99].0), (10, 1_000));
    wait(&mut world, 7 * 24 * 60 * MINUTE);
    let left: Vec<_> = ticks(&world).into_iter().filter(|tick| tick.status == TickStatus::Skipped).collect();
    assert_eq!(left.len(), 1);
    let reason = left[0].reason.clone().expect("a reason");
    assert!(reason.starts_with("908 ticks were left out, from 2025-01-15T16:50:00.000Z to "), "{reason}");
    assert!(reason.ends_with(": at most max_catchup_ticks=100 are made up for"), "{reason}");
    assert_eq!(outcomes(&world).len(), 201);
}

#[test]
fn what_is_older_than_the_window_is_left_out() {
    let mut world =
        world(ScheduleDef { catchup_window_minutes: 25, max_catchup_ticks: 1_000, ..every_ten() });
    wait(&mut world, 60 * MINUTE);
    let triggered = |at| (at, TickStatus::Triggered);
    assert_eq!(outcomes(&world), [(30, TickStatus::Skipped), triggered(40), triggered(50), triggered(60)]);
    let reason = ticks(&world)[0].reason.clone().expect("a reason");
    assert!(reason.contains("3 ticks were left out"), "{reason}");
    assert!(reason.ends_with(": they are older than catchup_window_minutes=25"), "{reason}");
}

#[test]
fn a_cron_of_seconds_with_a_window_of_a_year_is_bounded() {
    let mut world = world(ScheduleDef {
        cron: "* * * * * *".into(),
        catchup_window_minutes: 366 * 1_440,
        max_catchup_ticks: 5,
        ..every_ten()
    });
    wait(&mut world, 300 * 24 * 60 * MINUTE);
    assert_eq!(ticks(&world).len(), 6);
    assert!(ticks(&world)[0].reason.clone().expect("a reason").starts_with("25919995 ticks were left out"));
}

#[test]
fn a_clock_that_goes_back_makes_no_tick_again() {
    let mut world = world(every_ten());
    wait(&mut world, 30 * MINUTE);
    let before = outcomes(&world).len();
    wait(&mut world, -25 * MINUTE);
    // Nor does whoever resumes the schedule then.
    world.ask(change("tens", ScheduleChange::Pause)).expect("paused");
    world.ask(change("tens", ScheduleChange::Resume)).expect("resumed");
    wait(&mut world, 20 * MINUTE);
    assert_eq!(outcomes(&world).len(), before);
    wait(&mut world, 15 * MINUTE);
    assert_eq!(outcomes(&world).last(), Some(&(40, TickStatus::Triggered)));
    // A clock that was a year ahead is forgotten when somebody resumes the schedule.
    wait(&mut world, 365 * 24 * 60 * MINUTE);
    wait(&mut world, -365 * 24 * 60 * MINUTE);
    let count = outcomes(&world).len();
    wait(&mut world, 20 * MINUTE);
    assert_eq!(outcomes(&world).len(), count);
    world.ask(change("tens", ScheduleChange::Pause)).expect("paused");
    world.ask(change("tens", ScheduleChange::Resume)).expect("resumed");
    wait(&mut world, 10 * MINUTE);
    assert_eq!(outcomes(&world).len(), count + 1);
}

#[test]
fn a_paused_schedule_records_its_ticks_as_skipped_and_makes_up_for_nothing() {
    let mut world = world(every_ten());
    world.ask(change("tens", ScheduleChange::Pause)).expect("paused");
    assert_eq!(schedule(&world).status(), AutomationStatus::Paused);
    assert_eq!(world.ask(change("tens", ScheduleChange::Pause)), Ok(Reply::Change(Change::Duplicate)));
    wait(&mut world, 10 * MINUTE);
    wait(&mut world, 10 * MINUTE);
    assert_eq!(outcomes(&world), [(10, TickStatus::Skipped), (20, TickStatus::Skipped)]);
    assert_eq!(ticks(&world)[0].reason.as_deref(), Some("the schedule is paused"));
    wait(&mut world, 5 * MINUTE);
    world.ask(change("tens", ScheduleChange::Resume)).expect("resumed");
    wait(&mut world, 5 * MINUTE);
    assert_eq!(outcomes(&world).last(), Some(&(30, TickStatus::Triggered)));
    assert_eq!(world.state().runs().count(), 1);
}

#[test]
fn a_schedule_that_catches_up_on_resume_holds_its_ticks_while_it_is_paused() {
    let mut world = world(ScheduleDef { catch_up_on_resume: true, ..every_ten() });
    world.ask(change("tens", ScheduleChange::Pause)).expect("paused");
    wait(&mut world, 25 * MINUTE);
    assert_eq!(outcomes(&world), []);
    world.ask(change("tens", ScheduleChange::Resume)).expect("resumed");
    assert_eq!(outcomes(&world), [(10, TickStatus::Triggered), (20, TickStatus::Triggered)]);
}

#[test]
fn a_tick_does_what_the_schedule_says_while_an_earlier_run_is_active() {
    let mut allowed = world(every_ten());
    wait(&mut allowed, 10 * MINUTE);
    wait(&mut allowed, 10 * MINUTE);
    assert_eq!(allowed.state().active_runs(), 2);

    let mut skipping = world(ScheduleDef { if_running: IfRunning::Skip, ..every_ten() });
    wait(&mut skipping, 10 * MINUTE);
    wait(&mut skipping, 10 * MINUTE);
    assert_eq!(outcomes(&skipping).last(), Some(&(20, TickStatus::Skipped)));
    let reason = ticks(&skipping)[1].reason.clone().expect("a reason");
    assert!(reason.ends_with("of an earlier tick is still active"), "{reason}");
    finish_runs(&mut skipping);
    wait(&mut skipping, 10 * MINUTE);
    assert_eq!(outcomes(&skipping).last(), Some(&(30, TickStatus::Triggered)));

    let mut queueing = world(ScheduleDef { if_running: IfRunning::Queue, ..every_ten() });
    wait(&mut queueing, 10 * MINUTE);
    wait(&mut queueing, 20 * MINUTE);
    assert_eq!(outcomes(&queueing).len(), 1, "the others wait");
    let run = queueing.state().runs().next().expect("a run").id;
    queueing.run = run;
    queueing.succeed("a");
    assert_eq!(outcomes(&queueing), [(10, TickStatus::Triggered), (20, TickStatus::Triggered)]);
    finish_runs(&mut queueing);
    assert_eq!(outcomes(&queueing).last(), Some(&(30, TickStatus::Triggered)));
}

#[test]
fn a_tick_that_cannot_be_planned_fails_says_why_and_counts() {
    let mut world = world(every_ten());
    world
        .ask(Input::Deploy(Deploy {
            time_zones: "2026e".into(),
            digest: "d2".into(),
            project: "shop".to_owned(),
            assets: vec![definition("b", "1")],
            schedules: vec![Arc::new(every_ten())],
            sensors: Vec::new(),
            notifications: Vec::new(),
            caller: Caller::user("me"),
        }))
        .expect("deployed");
    for _ in 0..3 {
        wait(&mut world, 10 * MINUTE);
    }
    assert_eq!(outcomes(&world), [10, 20, 30].map(|at| (at, TickStatus::Failed)));
    assert!(ticks(&world)[0].reason.clone().expect("a reason").contains("t.a"));
    assert_eq!(schedule(&world).status(), AutomationStatus::Error);
    world.ask(deploy("d3", vec![every_ten()])).expect("deployed");
    wait(&mut world, 10 * MINUTE);
    assert_eq!(schedule(&world).status(), AutomationStatus::Active, "a good tick is the end of it");
}

#[test]
fn what_code_no_longer_declares_is_removed_keeps_its_ticks_and_returns_under_its_id() {
    let mut world = world(every_ten());
    let id = schedule(&world).id;
    wait(&mut world, 10 * MINUTE);
    world.ask(deploy("d2", vec![])).expect("deployed");
    assert!(world.state().schedule("tens").is_none());
    wait(&mut world, 30 * MINUTE);
    assert_eq!(outcomes(&world).len(), 1);
    assert_eq!(world.state().recent_ticks().count(), 1);
    assert_eq!(
        world.engine.next_deadline(world.now),
        Some(world.state().next_deadline().expect("the run's"))
    );
    world.ask(deploy("d3", vec![every_ten()])).expect("deployed");
    assert_eq!(schedule(&world).id, id);
    wait(&mut world, 10 * MINUTE);
    assert_eq!(outcomes(&world), [(10, TickStatus::Triggered), (50, TickStatus::Triggered)]);
}

#[test]
fn a_name_belongs_to_code_or_to_the_api() {
    let mut world = world(every_ten());
    let nightly = Arc::new(ScheduleDef { name: "nightly".into(), ..every_ten() });
    world.ask(change("nightly", ScheduleChange::Create(nightly.clone()))).expect("created");
    let refused = |answer: Result<Reply, Refusal>| answer.expect_err("refused").to_string();
    assert_eq!(
        refused(world.ask(change("tens", ScheduleChange::Create(Arc::new(every_ten()))))),
        "there is a schedule tens already, defined by code; choose another name, or remove that one first"
    );
    assert_eq!(
        refused(world.ask(change("tens", ScheduleChange::Remove))),
        "schedule tens is declared in code: change it there and deploy"
    );
    let both = vec![every_ten(), ScheduleDef::clone(&nightly)];
    assert!(refused(world.ask(deploy("d2", both))).contains("nightly already, defined by api"));
    world.ask(change("nightly", ScheduleChange::Remove)).expect("removed");
    assert!(matches!(
        world.ask(change("nightly", ScheduleChange::Pause)),
        Err(Refusal::UnknownSchedule { .. })
    ));
    world.ask(deploy("d3", vec![every_ten(), ScheduleDef::clone(&nightly)])).expect("the name is free");
}

#[test]
fn changes_are_refused_if_somebody_was_faster() {
    let mut world = world(every_ten());
    let pause = |expected| {
        Input::ChangeSchedule(ChangeSchedule {
            name: "tens".to_owned(),
            expected_state_version: Some(expected),
            change: ScheduleChange::Pause,
            caller: Caller::user("me"),
        })
    };
    assert_eq!(
        world.ask(pause(7)).expect_err("refused").to_string(),
        "schedule tens has state version 1, not 7: somebody has changed it; look again"
    );
    world.ask(pause(1)).expect("paused");
    assert_eq!(schedule(&world).state_version, 2);
}

/// A workspace in which asset `t.a` has a partition for each day since the 12th, and a schedule requests some of them.
fn world_of_days(partitions: PartitionChoice) -> World {
    let mut days = AssetDef::clone(&definition("a", "1"));
    days.partitions = Some(PartitionsDef::Daily { span: Span::new("2025-01-12") });
    let mut world = World::new(Settings::default());
    world.now = Timestamp::from_millis(START.as_millis() + 30_000);
    let Input::Deploy(deployed) = deploy("d1", vec![ScheduleDef { partitions, ..every_ten() }]) else {
        unreachable!("a deployment")
    };
    world.ask(Input::Deploy(Deploy { assets: vec![Arc::new(days)], ..deployed })).expect("deployed");
    world
}

#[test]
fn a_tick_requests_the_partitions_that_its_schedule_says_and_keeps_the_rule() {
    let all = ["2025-01-12", "2025-01-13", "2025-01-14"];
    let choice = PartitionChoice::default;
    let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
    for (chosen, recorded, expected) in [
        (choice(), PartitionChoice { latest: true, ..choice() }, &all[2..]),
        (
            PartitionChoice { missing: true, ..choice() },
            PartitionChoice { missing: true, ..choice() },
            &all[..],
        ),
        (PartitionChoice { stale: true, ..choice() }, PartitionChoice { stale: true, ..choice() }, &all[..]),
        (
            PartitionChoice { keys: texts(&["2025-01-13"]), ..choice() },
            PartitionChoice { keys: texts(&["2025-01-13"]), ..choice() },
            &all[1..2],
        ),
        (
            PartitionChoice { ranges: texts(&["..2025-01-13"]), ..choice() },
            PartitionChoice { ranges: texts(&["..2025-01-13"]), ..choice() },
            &all[..2],
        ),
    ] {
        let mut world = world_of_days(chosen.clone());
        wait(&mut world, 10 * MINUTE);
        let tick = ticks(&world).remove(0);
        assert_eq!(
            (tick.status, &tick.partition_selection),
            (TickStatus::Triggered, &recorded),
            "{chosen:?}"
        );
        let run = world.state().run(tick.runs[0].run_id).expect("its run");
        let made: Vec<String> = run.tasks.iter().map(|task| task.key.as_str().to_owned()).collect();
        let expected: Vec<_> = expected.iter().map(|day| format!("t/a[date=d:{day}]:materialize")).collect();
        assert_eq!(made, expected, "{chosen:?}");
    }
}

#[test]
fn a_tick_that_finds_nothing_to_make_is_skipped_and_says_so() {
    let rules = [
        (PartitionChoice { missing: true, ..Default::default() }, "nothing that t.a selects is missing"),
        (PartitionChoice { stale: true, ..Default::default() }, "everything that t.a selects is up to date"),
    ];
    for (partitions, reason) in rules {
        let mut world = world(ScheduleDef { partitions: partitions.clone(), ..every_ten() });
        wait(&mut world, 10 * MINUTE);
        world.run = ticks(&world)[0].runs[0].run_id;
        let made = MaterializationId::from_parts(1, 7);
        world.play("a", Report { materialization_id: Some(made), ..Report::succeeded() });
        wait(&mut world, 10 * MINUTE);
        assert_eq!(outcomes(&world), [(10, TickStatus::Triggered), (20, TickStatus::Skipped)]);
        let skipped = ticks(&world).remove(1);
        assert_eq!((skipped.reason.as_deref(), skipped.runs.len()), (Some(reason), 0));
        assert_eq!(skipped.partition_selection, partitions, "the rule that it followed");
        assert_eq!(schedule(&world).status(), AutomationStatus::Active);
    }
    let mut world = world(ScheduleDef {
        partitions: PartitionChoice { failed: true, ..Default::default() },
        ..every_ten()
    });
    wait(&mut world, 10 * MINUTE);
    assert_eq!(outcomes(&world), [(10, TickStatus::Skipped)]);
}

/// Gives a schedule of the API another definition, as somebody who knows a version of its state.
fn redefine(definition: ScheduleDef, expected: u64) -> Input {
    Input::ChangeSchedule(ChangeSchedule {
        name: definition.name.to_string(),
        expected_state_version: Some(expected),
        change: ScheduleChange::Redefine(Arc::new(definition)),
        caller: Caller::user("me"),
    })
}

#[test]
fn a_schedule_that_is_redefined_ticks_by_its_new_cron_from_then_on() {
    let mut world = world(every_ten());
    let mine = || ScheduleDef { name: "mine".into(), ..every_ten() };
    let schedule = |world: &World| world.state().schedule("mine").expect("it is there").clone();
    world.ask(change("mine", ScheduleChange::Create(Arc::new(mine())))).expect("created");
    wait(&mut world, 12 * MINUTE);
    let before = schedule(&world);
    assert_eq!((before.state_version, before.next_tick_at), (1, Some(support::after(20 * MINUTE))));
    assert_eq!(before.last_scheduled_for, Some(support::after(10 * MINUTE)));

    // Something else than its times: the next tick stays, and is what the new definition says.
    let other = ScheduleDef { selection: Some("t.b".into()), ..mine() };
    world.ask(redefine(other.clone(), 1)).expect("redefined");
    let selects = schedule(&world);
    assert_eq!((selects.state_version, selects.next_tick_at), (2, before.next_tick_at));
    assert!(selects.definition_version > before.definition_version);
    assert_eq!(selects.last_scheduled_for, before.last_scheduled_for);

    // Its times: counted from now on, none is made up for.
    let hourly = ScheduleDef { cron: "5,15 * * * *".into(), ..other };
    world.ask(redefine(hourly.clone(), 2)).expect("redefined");
    assert_eq!(schedule(&world).next_tick_at, Some(support::after(15 * MINUTE)), "not that of minute 5");
    let same = world.ask(redefine(hourly.clone(), 3)).expect("the same again");
    assert_eq!((same, schedule(&world).state_version), (Reply::Change(Change::Duplicate), 3));
    wait(&mut world, 3 * MINUTE);
    let ticks: Vec<_> = ticks(&world).into_iter().filter(|tick| tick.schedule_id == before.id).collect();
    assert_eq!(ticks.iter().map(|tick| tick.asset_selection.as_str()).collect::<Vec<_>>(), ["t.a", "t.b"]);
    assert_eq!(schedule(&world).next_tick_at, Some(support::after(65 * MINUTE)));

    // One that is paused stays so, and somebody who knows an older version is refused.
    world.ask(change("mine", ScheduleChange::Pause)).expect("paused");
    world.ask(redefine(mine(), 4)).expect("redefined");
    assert!(schedule(&world).paused && schedule(&world).state_version == 5);
    let late = world.ask(redefine(hourly, 4)).expect_err("late").to_string();
    assert_eq!(late, "schedule mine has state version 5, not 4: somebody has changed it; look again");
    assert_eq!(schedule(&world).definition.cron, mine().cron);
    let of_code = ScheduleDef { cron: "0 0 * * *".into(), ..every_ten() };
    let refused = world.ask(redefine(of_code, 1)).expect_err("refused").to_string();
    assert_eq!(refused, "schedule tens is declared in code: change it there and deploy");
}

#[test]
fn definitions_over_the_api_are_checked_like_those_of_code() {
    let mut world = world(every_ten());
    let bad = |definition: ScheduleDef| change("x", ScheduleChange::Create(Arc::new(definition)));
    for (definition, problem) in [
        (ScheduleDef { cron: "61 * * * *".into(), ..every_ten() }, "minute 61 is not between 0 and 59"),
        (ScheduleDef { timezone: Some("Mars/Olympus".into()), ..every_ten() }, "not a time zone"),
        (ScheduleDef { selection: Some("t.nothing".into()), ..every_ten() }, "no asset matches"),
        (ScheduleDef { selection: None, ..every_ten() }, "selects nothing"),
        (ScheduleDef { function: Some("a:b".to_owned()), ..every_ten() }, "belongs into a project"),
        (ScheduleDef { max_catchup_ticks: 0, ..every_ten() }, "not between 1 and 1000"),
        (ScheduleDef { catchup_window_minutes: u32::MAX, ..every_ten() }, "at most 527040 are allowed"),
        (ScheduleDef { config: [("n".to_owned(), "{".to_owned())].into(), ..every_ten() }, "is not JSON"),
        (
            ScheduleDef {
                partitions: PartitionChoice { keys: vec!["k".to_owned(); 1_001], ..Default::default() },
                ..every_ten()
            },
            "at most 1000 are allowed",
        ),
        (ScheduleDef { name: "no name".into(), ..every_ten() }, "has an invalid name"),
    ] {
        let before = world.state().rows();
        let refusal = world.ask(bad(definition)).expect_err("refused");
        assert!(refusal.to_string().contains(problem), "{refusal}");
        // The refusal itself is recorded.
        let after = world.state().rows();
        let but_for_it = HotRows { head: after.head, idempotency: after.idempotency.clone(), ..before };
        assert_eq!(after, but_for_it, "nothing has changed");
    }
}

#[test]
fn a_tick_by_hand_is_beside_those_of_the_clock() {
    let mut world = world(every_ten());
    wait(&mut world, 3 * MINUTE);
    let trigger = |schedule: &str| {
        Input::TriggerSchedule(TriggerSchedule {
            schedule: schedule.to_owned(),
            partitions: PartitionChoice::default(),
            config: Default::default(),
            evaluated: None,
            stored_keys: Default::default(),
            caller: Caller::user("zoë"),
        })
    };
    let reply = world.ask(trigger("tens")).expect("triggered");
    let Reply::Run(run) = reply else { panic!("a run") };
    let tick = &ticks(&world)[0];
    let ms = world.now.as_millis();
    assert_eq!(&*tick.tick_id, format!("{}:manual:{ms}", schedule(&world).id));
    assert_eq!((tick.manual, tick.runs[0].run_id), (true, run.run_id));
    assert_eq!(world.log.last().expect("a batch")[0].principal.to_string(), "user:zoë");
    assert_eq!(schedule(&world).last_scheduled_for, None);
    wait(&mut world, 7 * MINUTE);
    assert_eq!(outcomes(&world).last(), Some(&(10, TickStatus::Triggered)));
    assert!(matches!(world.ask(trigger("nothing")), Err(Refusal::UnknownSchedule { .. })));
}

#[test]
fn schedules_come_back_from_their_rows_and_go_on() {
    let mut world = world(ScheduleDef { if_running: IfRunning::Queue, ..every_ten() });
    wait(&mut world, 10 * MINUTE);
    let rows = world.state().rows();
    let state = State::from_rows(tenant(), workspace(), rows.clone()).expect("restored");
    assert_eq!(state.rows(), rows);
    let mut engine = Engine::new(state, SECRET);
    let later = world.now.saturating_add(Millis::from_minutes(10));
    let events = engine.step(&[], later).events;
    let has_ticked = events.iter().any(|event| matches!(event.data, EventData::ScheduleTicked(_)));
    assert!(!has_ticked, "the run of the tick before is active");
    assert_eq!(schedule(&world).active.len(), 1);
}

#[test]
fn a_command_that_has_the_workspace_for_a_moment_starts_no_ticks() {
    let mut world = world(every_ten());
    world.engine.set_automation(false);
    wait(&mut world, 60 * MINUTE);
    assert_eq!(ticks(&world), []);
    assert_eq!(world.engine.next_deadline(world.now), None);
    world.engine.set_automation(true);
    wait(&mut world, 0);
    assert_eq!(outcomes(&world).len(), 4, "three are made up for, and the others are said");
}
