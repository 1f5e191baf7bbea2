//! The expected contents of the files in `corpus/v1/`: the events of each family in a file of their own, later additions
//! to a kind in `later.rs`.

mod backfills;
mod conditions;
mod data;
mod definitions;
mod later;
mod notifications;
mod operation;
mod runs;
mod schedules;
mod sensors;
mod tasks;

pub(crate) use later::expected_later;

use std::collections::BTreeMap;

use servo_core::{AssetKey, AttemptId, Fingerprint, Millis, PartitionKey, PlanId, RunId, TaskKey};
use servo_engine::event::KeyRange;
use servo_engine::{EventData, EventKind, RetryPolicy, TaskOptions};

fn run() -> RunId {
    RunId::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)
}

fn attempt_id() -> AttemptId {
    AttemptId::from_parts(1_736_899_200_100, 7)
}

fn plan_id() -> PlanId {
    PlanId::from_parts(1_736_899_200_000, 3)
}

fn task_key() -> TaskKey {
    TaskKey::parse("raw/events[date=d:2025-01-15]:materialize").expect("a key")
}

fn fingerprint(digit: &str) -> Fingerprint {
    Fingerprint::parse(&format!("v1:sha256:{}", digit.repeat(64))).expect("a fingerprint")
}

fn asset() -> AssetKey {
    AssetKey::new("raw", "events").expect("an asset")
}

fn days() -> Vec<KeyRange> {
    let day = |text: &str| PartitionKey::parse(text).expect("a key");
    let (from, to) = (day("date=d:2025-01-01"), day("date=d:2025-01-10"));
    vec![KeyRange { from, to: Some(to) }, KeyRange { from: day("date=d:2025-01-15"), to: None }]
}

pub(crate) fn options() -> TaskOptions {
    let retry = RetryPolicy {
        max_attempts: 5,
        initial_delay_ms: Millis::from_secs(30),
        max_delay_ms: Millis::from_minutes(30),
        multiplier_ppm: 1_500_000,
        jitter_ppm: 250_000,
        retry_on: vec!["Flaky".to_owned()],
        no_retry_on: vec!["Fatal".to_owned()],
    };
    TaskOptions {
        priority: -2,
        retry: Some(retry),
        timeout_ms: Some(Millis::from_minutes(10)),
        heartbeat_timeout_ms: Some(Millis::from_minutes(2)),
        worker_queue: Some("big".into()),
        pool: None,
        compute: None,
        outputs: Vec::new(),
        single_call: false,
        previous: Vec::new(),
        config: BTreeMap::new(),
    }
}

/// The payload each file holds: every optional field set in one event and absent in another.
pub(crate) fn expected(kind: EventKind) -> Vec<EventData> {
    match kind {
        EventKind::Unknown => vec![],
        EventKind::RunRequested => runs::run_requested(),
        EventKind::RunKeyConflicted => runs::run_key_conflicted(),
        EventKind::RequestAnswered => runs::request_answered(),
        EventKind::PlanCreated => runs::plan_created(),
        EventKind::RunTriggered => runs::run_triggered(),
        EventKind::RunCancelRequested => runs::run_cancel_requested(),
        EventKind::DispatchRequested => tasks::dispatch_requested(),
        EventKind::DispatchEnqueued => tasks::dispatch_enqueued(),
        EventKind::PauseChanged => operation::pause_changed(),
        EventKind::RetentionApplied => operation::retention_applied(),
        EventKind::SettingsChanged => operation::settings_changed(),
        EventKind::ClockStepped => operation::clock_stepped(),
        EventKind::TimerRequested => tasks::timer_requested(),
        EventKind::TimerEnqueued => tasks::timer_enqueued(),
        EventKind::TimerFired => tasks::timer_fired(),
        EventKind::TaskStarted => tasks::task_started(),
        EventKind::TaskHeartbeat => tasks::task_heartbeat(),
        EventKind::TaskFinished => tasks::task_finished(),
        EventKind::AssetsDeployed => definitions::assets_deployed(),
        EventKind::DynamicPartitionsChanged => definitions::dynamic_partitions_changed(),
        EventKind::MaterializationApproved => data::materialization_approved(),
        EventKind::MaterializationRejected => data::materialization_rejected(),
        EventKind::RequestRefused => operation::request_refused(),
        EventKind::MaterializationReleased => data::materialization_released(),
        EventKind::ScheduleDefined => schedules::schedule_defined(),
        EventKind::SchedulePaused => schedules::schedule_paused(),
        EventKind::ScheduleResumed => schedules::schedule_resumed(),
        EventKind::ScheduleRemoved => schedules::schedule_removed(),
        EventKind::ScheduleTicked => schedules::schedule_ticked(),
        EventKind::ScheduleEvaluationFailed => schedules::schedule_evaluation_failed(),
        EventKind::ScheduleEvaluationRequested => schedules::schedule_evaluation_requested(),
        EventKind::SensorDefined
        | EventKind::SensorPaused
        | EventKind::SensorResumed
        | EventKind::SensorRemoved
        | EventKind::SensorCursorReset
        | EventKind::SensorMessageReceived
        | EventKind::SensorEvaluationRequested
        | EventKind::SensorEvaluated => sensors::expected(kind, run()),
        EventKind::NotificationRuleDefined
        | EventKind::NotificationRuleChanged
        | EventKind::NotificationTested
        | EventKind::NotificationRequested
        | EventKind::NotificationAttempted
        | EventKind::QueueServiceChanged => notifications::expected(kind),
        EventKind::BackfillCreated => backfills::backfill_created(),
        EventKind::BackfillChunkPlanned => backfills::backfill_chunk_planned(),
        EventKind::BackfillStateChanged => backfills::backfill_state_changed(),
        EventKind::FreshnessChanged => data::freshness_changed(),
        EventKind::FreshnessObserved => data::freshness_observed(),
        EventKind::ConditionsEvaluated => conditions::conditions_evaluated(),
        EventKind::ConditionPauseChanged => conditions::condition_pause_changed(),
        EventKind::PartitionsWiped => data::partitions_wiped(),
        EventKind::PartitionsMarked => data::partitions_marked(),
        EventKind::PartitionsRestored => data::partitions_restored(),
        EventKind::PartitionsExpired => data::partitions_expired(),
        EventKind::AssetRenamed => definitions::asset_renamed(),
        EventKind::AssetMoved => definitions::asset_moved(),
        EventKind::WorkerRegistered => operation::worker_registered(),
        EventKind::WorkerChanged => operation::worker_changed(),
        EventKind::WorkerLeft => operation::worker_left(),
        EventKind::WorkerLost => operation::worker_lost(),
    }
}
