//! Properties of any history: whatever the simulated world logs must fold to the same rows however it is replayed.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use servo_core::{AssetKey, AttemptId, MaterializationId, Millis, Operation, RunId, TaskKey};
use servo_engine::controllers::{self, Freshness};
use servo_engine::event::{decode_batch, encode_batch};
use servo_engine::rows::HotRows;
use servo_engine::testing::{invariants, tables};
use servo_engine::{
    DailyRuns, Effect, Event, EventData, EventKind, Input, OutputState, Settings, State, TaskSpec, TaskState,
};

use crate::support;
use crate::support::sim::{Sim, stories};
use crate::support::{tenant, workspace};

const CASES: u32 = 128;

fn fold_batches(log: &[Vec<Event>]) -> State {
    let mut state = State::new(tenant(), workspace());
    for (seq, batch) in (1u64..).zip(log) {
        state.apply_batch(seq, batch);
    }
    state
}

/// Folds single events; the batch number, which they do not carry, is taken from `live`.
fn fold_events(events: &[Event], live: &HotRows) -> HotRows {
    let mut rows = support::fold(&Settings::default(), events).rows();
    rows.head.seq = live.head.seq;
    rows
}

/// Equality of rows with an answer that a person can read: only the lines that differ.
fn same(found: &HotRows, expected: &HotRows) -> Result<(), TestCaseError> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let differing: Vec<String> = found
        .lines()
        .zip(expected.lines())
        .filter(|(f, e)| f != e)
        .take(12)
        .map(|(f, e)| format!("found    {}\nexpected {}", f.trim(), e.trim()))
        .collect();
    Err(TestCaseError::fail(format!("rows differ:\n{}", differing.join("\n"))))
}

/// The same rows without what says in which order events came: how much time passed between them, and with it when a
/// key was remembered.
fn without_order(mut rows: HotRows) -> HotRows {
    rows.head.elapsed = Millis::ZERO;
    // What is asked for by a clock that is set back counts for the newest day so far (ADR-217).
    rows.head.daily_runs = DailyRuns::default();
    rows.run_keys.sort_by_key(|entry| entry.run_id);
    rows.idempotency.iter_mut().for_each(|entry| entry.elapsed = Millis::ZERO);
    rows.idempotency.sort_by_key(|entry| entry.key_hash);
    rows.answers.iter_mut().for_each(|entry| entry.elapsed = Millis::ZERO);
    rows.answers.sort_by_key(|entry| entry.key_hash);
    rows
}

/// Whether two events that follow each other in a log could have come the other way round.
///
/// A decision of the engine about a run or a task (requests, cancellations, timers, dispatches) was decided knowing
/// all that came before, so it stays where it is relative to that run or task. Reports of workers and answers of
/// queues about different tasks, or from the queue and the worker about one attempt, are concurrent.
fn concurrent(first: &EventData, second: &EventData, upstream: &Upstream) -> bool {
    // Everything before a step of the clock was timed by the old clock, and judged by the settings of then.
    let is_barrier = |data: &&EventData| {
        matches!(
            data,
            EventData::ClockStepped(_)
                | EventData::SettingsChanged(_)
                | EventData::PauseChanged(_)
                | EventData::RetentionApplied(_)
                | EventData::PartitionsWiped(_)
                | EventData::PartitionsMarked(_)
                | EventData::PartitionsRestored(_)
                | EventData::PartitionsExpired(_)
                | EventData::AssetRenamed(_)
                | EventData::AssetMoved(_)
                | EventData::WorkerRegistered(_)
                | EventData::WorkerChanged(_)
                | EventData::WorkerLeft(_)
                | EventData::WorkerLost(_)
        )
    };
    if [first, second].iter().any(is_barrier) {
        return false;
    }
    let (a, b) = (AssetPartition::of(first), AssetPartition::of(second));
    if is_review(first) && is_report(second) || is_report(first) && is_review(second) {
        return false;
    }
    if a.run != b.run {
        return true;
    }
    let (Some(task_a), Some(task_b)) = (&a.task, &b.task) else { return false };
    if task_a != task_b {
        // The dispatch of a task stays after the end of what it waits for, even if that is a retry's own dispatch.
        let waits = |later: &TaskKey, earlier: &TaskKey| {
            upstream.get(&(a.run, later.clone())).is_some_and(|up| up.contains(earlier))
        };
        return !waits(task_b, task_a) && !waits(task_a, task_b);
    }
    match (a.role, b.role) {
        (Role::Decision, _) | (_, Role::Decision) => false,
        (Role::Queue, Role::Worker) | (Role::Worker, Role::Queue) => true,
        (Role::Queue, Role::Queue) | (Role::Worker, Role::Worker) => a.attempt != b.attempt,
    }
}

type Upstream = BTreeMap<(RunId, TaskKey), BTreeSet<TaskKey>>;

#[derive(Clone, Copy)]
enum Role {
    Decision,
    Queue,
    Worker,
}

struct AssetPartition {
    run: RunId,
    /// None: about the whole run, or a barrier for it.
    task: Option<TaskKey>,
    attempt: u32,
    role: Role,
}

impl AssetPartition {
    fn of(data: &EventData) -> Self {
        let run = |run: RunId| AssetPartition { run, task: None, attempt: 0, role: Role::Decision };
        let task = |run: RunId, task: &TaskKey, attempt: u32, role: Role| AssetPartition {
            run,
            task: Some(task.clone()),
            attempt,
            role,
        };
        match data {
            EventData::RunRequested(e) => run(e.run_id),
            EventData::PlanCreated(e) => run(e.run_id),
            EventData::RunTriggered(e) => run(e.run_id),
            EventData::RunCancelRequested(e) => run(e.run_id),
            EventData::RunKeyConflicted(e) => run(e.run_id),
            EventData::RequestAnswered(e) => run(e.run_id.unwrap_or(RunId::from_u128(4))),
            EventData::TimerFired(e) => run(e.run_id),
            EventData::DispatchRequested(e) => task(e.run_id, &e.task_key, e.attempt, Role::Decision),
            EventData::TimerRequested(e) => task(e.run_id, &e.task_key, e.attempt, Role::Decision),
            EventData::TimerEnqueued(e) => task(e.run_id, &e.task_key, e.attempt, Role::Decision),
            EventData::DispatchEnqueued(e) => task(e.run_id, &e.task_key, e.attempt, Role::Queue),
            EventData::TaskStarted(e) => task(e.run_id, &e.task_key, e.attempt, Role::Worker),
            EventData::TaskHeartbeat(e) => task(e.run_id, &e.task_key, e.attempt, Role::Worker),
            EventData::TaskFinished(e) => task(e.run_id, &e.task_key, e.attempt, Role::Worker),
            // Deployments follow each other, and so do changes of partitions; both race with everything else.
            EventData::AssetsDeployed(_) => run(RunId::from_u128(2)),
            EventData::DynamicPartitionsChanged(_) => run(RunId::from_u128(1)),
            // Reviews were decided knowing every report before them.
            EventData::MaterializationApproved(_)
            | EventData::MaterializationRejected(_)
            | EventData::MaterializationReleased(_) => run(RunId::from_u128(3)),
            EventData::ClockStepped(_)
            | EventData::SettingsChanged(_)
            | EventData::PauseChanged(_)
            | EventData::RetentionApplied(_)
            | EventData::PartitionsWiped(_)
            | EventData::PartitionsMarked(_)
            | EventData::PartitionsRestored(_)
            | EventData::PartitionsExpired(_)
            | EventData::AssetRenamed(_)
            | EventData::AssetMoved(_)
            | EventData::RequestRefused(_)
            | EventData::WorkerRegistered(_)
            | EventData::WorkerChanged(_)
            | EventData::WorkerLeft(_)
            | EventData::WorkerLost(_)
            | EventData::NotificationRuleDefined(_)
            | EventData::NotificationRuleChanged(_)
            | EventData::NotificationTested(_)
            | EventData::NotificationRequested(_)
            | EventData::NotificationAttempted(_)
            | EventData::QueueServiceChanged(_)
            | EventData::Unknown(_) => run(RunId::from_u128(0)),
            // Changes of a schedule follow each other, and its ticks come in order.
            EventData::ScheduleDefined(_)
            | EventData::SchedulePaused(_)
            | EventData::ScheduleResumed(_)
            | EventData::ScheduleRemoved(_)
            | EventData::ScheduleTicked(_)
            | EventData::ScheduleEvaluationFailed(_)
            | EventData::ScheduleEvaluationRequested(_) => run(RunId::from_u128(4)),
            // So do changes of a sensor, its messages and its evaluations.
            EventData::SensorDefined(_)
            | EventData::SensorPaused(_)
            | EventData::SensorResumed(_)
            | EventData::SensorRemoved(_)
            | EventData::SensorCursorReset(_)
            | EventData::SensorMessageReceived(_)
            | EventData::SensorEvaluationRequested(_)
            | EventData::SensorEvaluated(_) => run(RunId::from_u128(5)),
            // Changes of a backfill follow each other, and its chunks come in order.
            EventData::BackfillCreated(_)
            | EventData::BackfillChunkPlanned(_)
            | EventData::BackfillStateChanged(_) => run(RunId::from_u128(6)),
            // Statuses of an asset follow each other.
            EventData::FreshnessChanged(_) | EventData::FreshnessObserved(_) => run(RunId::from_u128(7)),
            // What conditions request follows what they looked at.
            EventData::ConditionsEvaluated(_) | EventData::ConditionPauseChanged(_) => {
                run(RunId::from_u128(7))
            }
        }
    }
}

fn is_review(data: &EventData) -> bool {
    matches!(
        data,
        EventData::MaterializationApproved(_)
            | EventData::MaterializationRejected(_)
            | EventData::MaterializationReleased(_)
    )
}

fn is_report(data: &EventData) -> bool {
    matches!(data, EventData::TaskFinished(_))
}

fn upstream_of(events: &[Event]) -> Upstream {
    let mut upstream = Upstream::new();
    for event in events {
        if let EventData::PlanCreated(plan) = &event.data {
            for spec in plan.tasks.iter() {
                let keys = spec.upstream.iter().map(|u| plan.tasks[*u as usize].task_key.clone());
                upstream.insert((plan.run_id, spec.task_key.clone()), keys.collect());
            }
        }
    }
    upstream
}

/// Deterministic numbers from a seed (splitmix64), for choices that need not shrink.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}

/// A random walk through the orders that `concurrent` allows.
fn reorder(events: &[Event], chance: &mut Chance) -> Vec<Event> {
    let upstream = upstream_of(events);
    let mut events = events.to_vec();
    for _ in 0..events.len() * 40 {
        let at = chance.below(events.len().saturating_sub(1));
        let Some([first, second]) = events.get(at..at + 2) else { break };
        if concurrent(&first.data, &second.data, &upstream) {
            events.swap(at, at + 1);
        }
    }
    events
}

/// Every event one to three times: where it was, and again at random later places.
fn duplicate(events: &[Event], chance: &mut Chance) -> Vec<Event> {
    let mut placed: Vec<(usize, usize, &Event)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        placed.push((at, 0, event));
        for copy in 0..chance.below(3) {
            placed.push((at + chance.below(events.len() - at), copy + 1, event));
        }
    }
    placed.sort_by_key(|(at, copy, _)| (*at, *copy));
    placed.into_iter().map(|(_, _, event)| event.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replay_of_the_log_is_the_live_state_byte_for_byte(story in stories()) {
        let sim = Sim::play(&story);
        let live = sim.engine.state().rows();
        let read_back: Vec<Vec<Event>> = sim.log.iter().map(|batch| {
            let mut bytes = Vec::new();
            encode_batch(batch, &mut bytes);
            decode_batch(&bytes).expect("what was written can be read")
        }).collect();
        prop_assert_eq!(&read_back, &sim.log, "every batch reads back as it was");
        let replayed = fold_batches(&read_back).rows();
        same(&replayed, &live)?;
        prop_assert_eq!(format!("{replayed:?}").into_bytes(), format!("{live:?}").into_bytes());
    }

    #[test]
    fn any_duplication_of_a_history_folds_to_the_same_rows(story in stories(), seed in any::<u64>()) {
        let sim = Sim::play(&story);
        let live = sim.engine.state().rows();
        let events = duplicate(&sim.events(), &mut Chance(seed));
        same(&fold_events(&events, &live), &live)?;
    }

    #[test]
    fn any_order_of_concurrent_facts_folds_to_the_same_rows(mut story in stories(), seed in any::<u64>()) {
        // Which ended runs are still in memory depends on which ended last; that is not at stake here.
        story.recent_runs = 100;
        let sim = Sim::play(&story);
        // What is told depends on what came first: a failure before a success, or after it.
        let untold: Vec<Event> =
            sim.events().into_iter().filter(|event| !matches!(event.data, EventData::NotificationRuleDefined(_))).collect();
        let live = fold_events(&untold, &sim.engine.state().rows());
        let events = reorder(&untold, &mut Chance(seed));
        let folded = fold_events(&events, &live);
        prop_assert_eq!(folded.head.last_event, live.head.last_event);
        same(&without_order(folded), &without_order(live))?;
    }

    #[test]
    fn a_state_restored_from_rows_folds_on_as_if_it_had_never_left(story in stories(), seed in any::<u64>()) {
        let mut sim = Sim::play(&story);
        sim.run_to_rest();
        let cut = Chance(seed).below(sim.log.len() + 1);
        let prefix = fold_batches(&sim.log[..cut]);
        let mut restored = State::from_rows(tenant(), workspace(), prefix.rows())
            .expect("its own rows fit");
        same(&restored.rows(), &prefix.rows())?;
        prop_assert_eq!(restored.waiting(), prefix.waiting());
        prop_assert_eq!(restored.outstanding(), prefix.outstanding());
        prop_assert_eq!(restored.next_deadline(), prefix.next_deadline());
        let later = sim.now.saturating_add(Millis::from_hours(1));
        prop_assert_eq!(
            controllers::reconcile(&restored, later, Freshness::Current),
            controllers::reconcile(&prefix, later, Freshness::Current)
        );
        for (seq, batch) in (1u64..).zip(&sim.log).skip(cut) {
            restored.apply_batch(seq, batch);
        }
        same(&restored.rows(), &sim.engine.state().rows())?;
    }

    #[test]
    fn when_faults_stop_everything_ends(story in stories()) {
        let mut sim = Sim::play(&story);
        sim.run_to_rest();
        invariants::check_at_rest(sim.engine.state()).unwrap_or_else(|violation| panic!("{violation}"));
        prop_assert!(sim.engine.step(&[Input::Sweep], sim.now).events.is_empty(), "nothing left to repair");
    }

    #[test]
    fn deltas_alone_rebuild_the_tables_and_history_gets_each_ended_run_once(story in stories()) {
        let mut sim = Sim::play(&story);
        sim.run_to_rest();
        sim.take_delta();
        let state = sim.engine.state();
        prop_assert!(state.runs().count() <= state.settings().recent_runs.max(1), "ended runs leave memory");
        let mut kept = HotRows::empty(state.head());
        let mut ended: Vec<RunId> = Vec::new();
        let mut materialized = BTreeSet::new();
        let mut deployments: Vec<u64> = Vec::new();
        for delta in &sim.deltas {
            tables::apply(&mut kept, delta);
            for row in &delta.appended.materializations {
                prop_assert!(materialized.insert((row.row_version, row.asset_key.clone())), "each once");
            }
            deployments.extend(delta.ended.deployments.iter().map(|r| r.number));
            ended.extend(delta.ended.runs.iter().map(|r| r.run_id));
        }
        for row in &state.rows().partition_status {
            let latest = row.last_materialization_event_id.map(|event| (event, row.asset_key.clone()));
            // What somebody says is there was not made by a run.
            let is_marked = row.last_materialization_run_id == Some(RunId::NIL);
            prop_assert!(is_marked || latest.is_none_or(|latest| materialized.contains(&latest)), "history has the latest");
        }
        deployments.extend(state.deployment().map(|newest| newest.number));
        let all: Vec<u64> = (1..=deployments.len() as u64).collect();
        prop_assert_eq!(deployments, all, "each deployment is either hot or was handed to history once");
        let live = state.rows();
        (kept.run_keys, kept.run_keys_evicted) = (live.run_keys.clone(), live.run_keys_evicted);
        (kept.idempotency, kept.answers) = (live.idempotency.clone(), live.answers.clone());
        same(&kept, &live)?;
        let in_memory = state.runs().map(|r| r.id);
        let mut all: Vec<RunId> = ended.into_iter().chain(in_memory).collect();
        all.sort();
        let mut requested: Vec<RunId> = Vec::new();
        for event in sim.log.iter().flatten() {
            if let EventData::RunRequested(payload) = &event.data {
                requested.push(payload.run_id);
            }
        }
        requested.sort();
        prop_assert_eq!(all, requested, "each run is either in memory or was handed to history once");
        let mut state = sim.engine.state().clone();
        prop_assert!(state.take_delta().is_empty(), "nothing changed since");
    }

    #[test]
    fn what_counts_or_waits_is_never_removed_and_everything_else_is(story in stories()) {
        let mut sim = Sim::play(&story);
        sim.run_to_rest();
        sim.take_delta();
        let deltas = || sim.deltas.iter();
        let discards = sim.effects.iter().filter_map(|effect| match effect {
            Effect::Discard(discard) => Some(discard),
            Effect::Enqueue(_)
            | Effect::Release(_)
            | Effect::Move(_)
            | Effect::Promote(_)
            | Effect::ClearStaging(_)
            | Effect::Evaluate(_)
            | Effect::Notify(_)
            | Effect::Expire(_)
            | Effect::ExpireLogs(_) => None,
        });
        let removed: BTreeSet<(AttemptId, AssetKey)> = discards
            .flat_map(|it| it.assets.iter().map(|asset| (it.attempt_id, asset.clone())))
            .collect();
        let counts: BTreeSet<(AttemptId, AssetKey)> = deltas()
            .flat_map(|delta| &delta.appended.materializations)
            .map(|row| (row.attempt_id, row.asset_key.clone()))
            .collect();
        let attempt = |id: MaterializationId| AttemptId::from_u128(id.to_u128());
        let mut set_aside: BTreeSet<(AttemptId, AssetKey)> = BTreeSet::new();
        for delta in deltas() {
            set_aside.extend(delta.quarantine.iter().map(|r| (attempt(r.materialization_id), r.asset_key.clone())));
            set_aside.extend(delta.gone.quarantine.iter().map(|(asset, id)| (attempt(*id), asset.clone())));
        }
        let waits: BTreeSet<(AttemptId, AssetKey)> = sim.engine.state().quarantine()
            .map(|r| (attempt(r.materialization_id), r.asset_key.clone()))
            .collect();
        prop_assert!(counts.is_disjoint(&removed) && counts.is_disjoint(&waits) && waits.is_disjoint(&removed));
        for output in &set_aside {
            let ends = [&waits, &removed, &counts].iter().filter(|ends| ends.contains(output)).count();
            prop_assert_eq!(ends, 1, "it waits, was thrown away or counts: {:?}", output);
        }
        let rows = sim.engine.state().rows();
        let tasks = rows.tasks.iter().chain(deltas().flat_map(|delta| &delta.ended.tasks));
        let succeeded: BTreeSet<AttemptId> =
            tasks.filter(|row| row.state == TaskState::Succeeded).filter_map(|row| row.attempt_id).collect();
        for (attempt, assets) in begun(&sim.events()).into_iter().filter(|(id, _)| !succeeded.contains(id)) {
            for asset in assets {
                let output = (attempt, asset);
                prop_assert!(removed.contains(&output) || set_aside.contains(&output), "{output:?} stays for ever");
            }
        }
    }
}

/// Attempts that workers began, with the assets that they were to make; those of checks make none.
fn begun(events: &[Event]) -> Vec<(AttemptId, BTreeSet<AssetKey>)> {
    let mut outputs: BTreeMap<(RunId, TaskKey), BTreeSet<AssetKey>> = BTreeMap::new();
    let mut begun = Vec::new();
    for event in events {
        if let EventData::PlanCreated(plan) = &event.data {
            let makes_data = |spec: &&TaskSpec| spec.task_key.operation() != Operation::Check;
            outputs.extend(plan.tasks.iter().filter(makes_data).map(|spec| {
                let assets = spec.options.outputs.iter().cloned().chain([spec.task_key.asset()]);
                ((plan.run_id, spec.task_key.clone()), assets.collect())
            }));
        }
        if let EventData::TaskStarted(start) = &event.data {
            let assets = outputs.get(&(start.run_id, start.task_key.clone()));
            begun.extend(assets.map(|assets| (start.attempt_id, assets.clone())));
        }
    }
    begun
}

/// Without this the properties could hold because nothing happens.
#[test]
fn the_stories_reach_every_state_reason_timer_and_answer() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..CASES * 6 {
        let story = stories().new_tree(&mut runner).expect("a story").current();
        let mut sim = Sim::play(&story);
        sim.run_to_rest();
        seen.extend(sim.seen);
    }
    let mut wanted: Vec<String> = Vec::new();
    // Schedules, backfills, conditions, freshness, expiry, renames and retention have stories of their own, in
    // `controllers_schedules`, `controllers_backfills`, `controllers_conditions`, `freshness`, `expiry`, `renames` and
    // `retention_rules`.
    let elsewhere = |kind: EventKind| {
        kind == EventKind::TimerEnqueued
            || kind == EventKind::RetentionApplied
            || kind == EventKind::PartitionsExpired
            || kind == EventKind::AssetRenamed
            || kind == EventKind::AssetMoved
            // Tests of `controllers_notifications` are about these two.
            || kind == EventKind::NotificationTested
            || kind == EventKind::QueueServiceChanged
            || kind.name().starts_with("Schedule")
            || kind.name().starts_with("Backfill")
            || kind.name().starts_with("Condition")
            || kind.name().starts_with("Freshness")
    };
    let kinds = EventKind::ALL.iter().filter(|kind| !elsewhere(**kind));
    wanted.extend(kinds.map(|k| k.name().to_owned()));
    wanted.extend(["retry", "heartbeat", "dispatch_ack", "run_timeout"].map(|kind| format!("fired {kind}")));
    wanted.extend(
        ["RUNNING", "CANCELLING", "CANCELLED", "TIMED_OUT", "FAILED", "SUCCEEDED"]
            .map(|s| format!("run {s}")),
    );
    wanted.extend(
        [
            "BLOCKED run_started",
            "READY run_started",
            "READY dependencies_satisfied",
            "READY retry_timer_expired",
            "READY interrupted",
            "READY dispatch_ack_timeout",
            "DISPATCHED enqueued_for_dispatch",
            "RUNNING execution_started",
            "RETRY_WAIT retry_scheduled",
            "SKIPPED upstream_failed",
            "CANCELLED run_cancelled",
            "CANCELLED run_timed_out",
            "CANCELLED force_cancelled",
            "FAILED execution_failed",
            "FAILED interrupted",
            "SUCCEEDED execution_succeeded",
        ]
        .map(|s| format!("task {s}")),
    );
    wanted.extend(["Succeeded", "Failed", "Interrupted"].map(|outcome| format!("late {outcome}")));
    wanted.extend(
        [
            "Run",
            "Change(Accepted",
            "Change(Duplicate",
            "Heartbeat",
            "Finish(Accepted",
            "Finish(Duplicate",
            "Finish(Late",
            "Done",
        ]
        .map(str::to_owned),
    );
    wanted.extend(
        [
            "UnknownRun",
            "RunKeyConflict",
            "RunEnded",
            "ForceTooSoon",
            "StaleAttempt",
            "AlreadyStarted",
            "Cancelled",
            "AttemptEnded",
            "Quota",
            "BadAsset",
            "BadPartition",
            "AddedAndRemoved",
            "TooManyPartitionChanges",
            "TooManyPartitions",
            "NotInQuarantine",
            "PartitionBusy",
            "NothingToUndo",
        ]
        .map(str::to_owned),
    );
    wanted.push("usage".to_owned());
    wanted.extend(
        OutputState::ALL
            .iter()
            .flat_map(|state| [format!("output {state} SUCCEEDED"), format!("output {state} FAILED")]),
    );
    wanted.extend(
        ["execution_failed", "timed_out", "heartbeat_timeout", "dispatch_ack_timeout", "interrupted"]
            .map(|reason| format!("past {reason}")),
    );
    wanted.extend(
        [
            "NEVER_MATERIALIZED SUCCEEDED",
            "NEVER_MATERIALIZED FAILED",
            "MATERIALIZED SUCCEEDED",
            "LAST_ATTEMPT_FAILED FAILED",
        ]
        .map(|s| format!("data {s}")),
    );
    let missing: Vec<&String> = wanted.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}
