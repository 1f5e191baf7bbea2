//! The model and the fold agree on every history; and bad logs are detected.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use servo_core::{EventId, Timestamp};
use servo_engine::{Applied, Event, EventKind, RunState, State, TaskState};
use servo_projections::{Compactor, Limits, Projection};
use servo_sim::model::{Log, Model, Rules, Tables, Verdict, history};
use servo_store::{Blobs, CountingPutIds, Layout, MemoryBlobs};
use support::{History, World, empty, log_of, owner, stories};

const CASES: u32 = 256;

fn agree(found: Vec<String>) -> Result<(), TestCaseError> {
    prop_assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

fn checked(log: &Log, rules: &Rules) -> Vec<String> {
    history::check(&log.batches, history::Expected { tenant: "acme", workspace: "prod", rules, leased: true })
}

/// Folds batches, and says what became of each event.
fn fold(state: &mut State, batches: &[Vec<Event>]) -> Vec<(EventId, bool)> {
    let mut applied = Vec::new();
    for (seq, batch) in (1..).zip(batches) {
        applied.extend(batch.iter().map(|event| (event.id, state.apply(event) == Applied::Yes)));
        state.apply_batch(seq, &[]);
    }
    applied
}

/// The applied events.
fn accepted(model: &Model) -> Vec<(EventId, bool)> {
    model.verdicts.iter().map(|(id, verdict)| (*id, !matches!(verdict, Verdict::Ignored(_)))).collect()
}

/// The same history with events left out, repeated and moved; ids still go up.
fn tampered(log: &[Vec<Event>], mut seed: u64) -> Vec<Vec<Event>> {
    let mut chance = |among: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % among
    };
    let mut events: Vec<Event> = log.iter().flatten().cloned().collect();
    for _ in 0..events.len() / 4 {
        let (from, to) = (chance(events.len() as u64) as usize, chance(events.len() as u64) as usize);
        match chance(4) {
            0 => drop(events.remove(from)),
            1 => events.swap(from, to),
            _ => events.insert(to, events[from].clone()),
        }
    }
    for (event, number) in events.iter_mut().zip(1..) {
        event.id = EventId::from_parts(1_736_899_200_000, number);
    }
    events.chunks(5).map(<[Event]>::to_vec).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_model_agrees_with_the_engine_and_the_log_is_good(story in stories(), cut in any::<prop::sample::Index>()) {
        let world = World::play(&story);
        let (log, rules) = (world.log(), Rules::default());
        let model = Model::of(&log.batches, &rules).expect("the log can be read");
        agree(model.compare_state(world.engine.state()))?;
        agree(checked(&log, &rules))?;
        let mut folded = empty();
        prop_assert_eq!(fold(&mut folded, &world.log), accepted(&model));
        let cut = cut.index(log.batches.len() + 1);
        let mut prefix = empty();
        fold(&mut prefix, &world.log[..cut]);
        agree(Model::of(log.through(cut as u64), &rules).expect("a prefix").compare_state(&prefix))?;
    }

    #[test]
    fn the_model_agrees_with_the_fold_about_any_history(story in stories(), seed in any::<u64>()) {
        let world = World::play(&story);
        let batches = tampered(&world.log, seed);
        let mut state = empty();
        let applied = fold(&mut state, &batches);
        let model = Model::of(&log_of(&batches).batches, &Rules::default()).expect("it can be read");
        prop_assert_eq!(applied, accepted(&model));
        agree(model.compare_state(&state))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_model_agrees_with_the_tables(story in stories()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        agree(runtime.block_on(differences_of_tables(&story)))?;
    }
}

async fn differences_of_tables(story: &History) -> Vec<String> {
    let mut world = World::play(story);
    let (tenant, workspace) = owner();
    let layout = Layout::new(tenant, workspace);
    let blobs: Arc<dyn Blobs> = Arc::new(MemoryBlobs::in_memory(&layout));
    let limits = Limits { l0_max_count: 3, tier_fanout: 2, ..Limits::default() };
    let put_ids = Arc::new(CountingPutIds::new(1));
    let mut compactor =
        Compactor::open(blobs.clone(), layout.clone(), 1, limits, put_ids).await.expect("opens");
    let last = world.engine.state_mut().take_delta();
    for delta in std::mem::take(&mut world.deltas).into_iter().chain([last]) {
        compactor.flush(delta, Timestamp::from_millis(1)).await.expect("flushes");
    }
    let projection =
        Projection::open_latest(blobs, layout).await.expect("opens").expect("something is there");
    let last_seq = projection.manifest().watermarks.last_seq;
    let tables = Tables::read(&projection).await.expect("reads");
    let log = world.log();
    let model = Model::of(log.through(last_seq), &Rules::default()).expect("the log can be read");
    assert_eq!(last_seq, log.batches.len() as u64, "the last flush has everything");
    model.compare_tables(&tables)
}

/// Without this the model could agree because nothing happens.
#[test]
fn the_stories_reach_every_verdict_and_state() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..CASES {
        let world = World::play(&stories().new_tree(&mut runner).expect("a story").current());
        let log = world.log();
        let model = Model::of(&log.batches, &Rules::default()).expect("the log can be read");
        let events = log.batches.iter().flat_map(|batch| &batch.events);
        for (event, (_, verdict)) in events.zip(&model.verdicts) {
            seen.insert(match verdict {
                Verdict::Accepted => event.kind.clone(),
                Verdict::Late => "late".to_owned(),
                Verdict::Ignored(why) => (*why).to_owned(),
            });
        }
        for run in &model.runs {
            seen.insert(format!("run {}", run.is.name()));
            seen.extend(run.tasks.iter().map(|task| format!("task {}", task.is.name())));
            seen.extend(
                run.tasks.iter().filter(|task| task.caused_by.is_some()).map(|_| "caused".to_owned()),
            );
            seen.extend((!run.is_in_memory).then(|| "left memory".to_owned()));
        }
        let promotions = &model.data.promotions;
        seen.extend(promotions.iter().filter(|promotion| promotion.approved).map(|_| "approved".to_owned()));
        seen.extend(model.data.quarantine.values().map(|_| "in quarantine".to_owned()));
    }
    // Stories have no external timers, no schedules, no sensors, no backfills, no retention, and no requests with an id; a
    // conflict is in the tests of engines, and wipes are in the simulation.
    let is_untold = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::TimerEnqueued
                | EventKind::RequestAnswered
                | EventKind::RunKeyConflicted
                | EventKind::RetentionApplied
                | EventKind::ScheduleDefined
                | EventKind::SchedulePaused
                | EventKind::ScheduleResumed
                | EventKind::ScheduleRemoved
                | EventKind::ScheduleTicked
                | EventKind::ScheduleEvaluationFailed
                | EventKind::ScheduleEvaluationRequested
                | EventKind::SensorDefined
                | EventKind::SensorPaused
                | EventKind::SensorResumed
                | EventKind::SensorRemoved
                | EventKind::SensorCursorReset
                | EventKind::SensorMessageReceived
                | EventKind::SensorEvaluationRequested
                | EventKind::SensorEvaluated
                | EventKind::NotificationRuleDefined
                | EventKind::NotificationRuleChanged
                | EventKind::NotificationTested
                | EventKind::NotificationRequested
                | EventKind::NotificationAttempted
                | EventKind::QueueServiceChanged
                | EventKind::BackfillCreated
                | EventKind::BackfillChunkPlanned
                | EventKind::BackfillStateChanged
                | EventKind::FreshnessChanged
                | EventKind::FreshnessObserved
                | EventKind::ConditionsEvaluated
                | EventKind::ConditionPauseChanged
                | EventKind::PartitionsWiped
                | EventKind::PartitionsMarked
                | EventKind::PartitionsRestored
                | EventKind::PartitionsExpired
                | EventKind::AssetRenamed
                | EventKind::AssetMoved
        )
    };
    let kinds = EventKind::ALL.iter().filter(|kind| !is_untold(kind)).map(|kind| kind.name());
    // Nothing stays there: what is cancelled ends within its story.
    let passing = [RunState::Pending, RunState::Cancelling];
    let runs = RunState::ALL.iter().filter(|state| !passing.contains(state)).map(|s| format!("run {s}"));
    let tasks =
        TaskState::ALL.iter().filter(|state| **state != TaskState::Planned).map(|s| format!("task {s}"));
    let others = ["late", "stale attempt", "run key conflict", "caused", "left memory"];
    let others = others.into_iter().chain(["approved", "in quarantine"]).chain(kinds).map(str::to_owned);
    let missing: Vec<String> = others.chain(runs).chain(tasks).filter(|what| !seen.contains(what)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}
