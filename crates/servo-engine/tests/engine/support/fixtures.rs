//! Events of every kind, for tests that go through all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{
    AssetId, AssetKey, BackfillId, EvaluationId, EventId, Fingerprint, MaterializationId, RuleId, RunId,
    ScheduleId, SensorId, Timestamp,
};
use servo_engine::definitions::{ScheduleDef, SensorDef};
use servo_engine::event::{
    AssetMoved, AssetRenamed, AssetsDeployed, BackfillChunkPlanned, BackfillCreated, BackfillStateChanged,
    BackfillTarget, ConditionPauseChanged, ConditionRequested, ConditionsEvaluated, DeployedAsset, KeyList,
    MaterializationApproved, MaterializationRejected, MaterializationReleased, NotificationAttempted,
    NotificationRequested, NotificationRuleChanged, NotificationRuleDefined, NotificationTested,
    PartitionsExpired, PartitionsMarked, PartitionsRestored, PartitionsWiped, QueueServiceChanged,
    RequestAnswered, RequestRefused, RuleChange, RunKeyConflicted, ScheduleDefined, ScheduleEvaluationFailed,
    ScheduleEvaluationRequested, SchedulePaused, ScheduleRemoved, ScheduleResumed, ScheduleTicked,
    SensorCursorReset, SensorDefined, SensorEvaluated, SensorEvaluationRequested, SensorMessageReceived,
    SensorPaused, SensorRemoved, SensorResumed, SensorTrigger, tick_id,
};
use servo_engine::planner::PartitionChoice;
use servo_engine::{
    AttemptOutcome, BackfillState, EventData, NotificationStatus, Origin, SensorStatus, TickStatus, Verdict,
};

use super::{START, definition};

/// The change of dynamic partitions with this number: one key more.
pub(crate) fn partitions_changed(number: u64) -> EventData {
    EventData::DynamicPartitionsChanged(servo_engine::event::DynamicPartitionsChanged {
        name: "customers".to_owned(),
        number,
        added: vec![format!("customer {number}")],
        removed: vec![],
    })
}

/// The change of settings with this number: fewer slots.
pub(crate) fn settings_changed(number: u64) -> EventData {
    let new = servo_engine::event::NewValue { value: Some(7), origin: servo_engine::SettingOrigin::Api };
    EventData::SettingsChanged(servo_engine::event::SettingsChanged {
        number,
        changes: [("max_concurrent_tasks".to_owned(), new)].into(),
    })
}

/// The removal of old logs.
pub(crate) fn retention_applied() -> EventData {
    EventData::RetentionApplied(servo_engine::event::RetentionApplied {
        superseded: Vec::new(),
        logs_before: Some(START),
    })
}

/// The pause of everything with this number.
pub(crate) fn pause_changed(number: u64) -> EventData {
    EventData::PauseChanged(servo_engine::event::PauseChanged {
        scope: servo_engine::event::PauseScope::All,
        number,
        paused: true,
        reason: "enough".to_owned(),
    })
}

/// Events about the freshness of an asset that has no policy.
pub(crate) fn freshness_events(now: Timestamp) -> [(&'static str, EventData); 2] {
    use servo_engine::event::{FreshnessChanged, FreshnessObserved};
    let asset_key = AssetKey::new("t", "a").expect("an asset");
    let changed = FreshnessChanged {
        asset_key: asset_key.clone(),
        deployment: 1,
        old: servo_engine::FreshnessStatus::Pass,
        new: servo_engine::FreshnessStatus::Fail,
        since: now,
        data_as_of: None,
        lag_ms: None,
        due_at: None,
    };
    let observed = FreshnessObserved { asset_key, deployment: 1, data_as_of: None, due_at: Some(now) };
    [
        ("FreshnessChanged", EventData::FreshnessChanged(changed)),
        ("FreshnessObserved", EventData::FreshnessObserved(observed)),
    ]
}

/// Events of a worker that is not there: it registers, changes, leaves, is lost.
pub(crate) fn worker_events() -> [(&'static str, EventData); 4] {
    use servo_engine::event::{WorkerChanged, WorkerLeft, WorkerLost, WorkerRegistered};
    let registered = WorkerRegistered {
        worker_id: "w-1".into(),
        number: 1,
        name: "w".to_owned(),
        queues: vec!["default".into()],
        slots: 2,
        deployment: 1,
        digest: "sha256:1".into(),
        storage: String::new(),
        host: String::new(),
        version: String::new(),
    };
    let changed = WorkerChanged {
        worker_id: "w-2".into(),
        number: 2,
        deployment: 1,
        digest: "sha256:1".into(),
        draining: false,
    };
    [
        ("WorkerRegistered", EventData::WorkerRegistered(registered)),
        ("WorkerChanged, unknown", EventData::WorkerChanged(changed)),
        ("WorkerLeft, unknown", EventData::WorkerLeft(WorkerLeft { worker_id: "w-2".into(), number: 2 })),
        (
            "WorkerLost, unknown",
            EventData::WorkerLost(WorkerLost { worker_id: "w-2".into(), number: 2, heard_at: None }),
        ),
    ]
}

/// The review of a materialization that is not in quarantine.
pub(crate) fn reviewed(verdict: Verdict) -> EventData {
    let asset_key = AssetKey::new("t", "a").expect("an asset");
    let materialization_id = MaterializationId::from_parts(1, 1);
    let reason = String::new();
    match verdict {
        Verdict::Approve => EventData::MaterializationApproved(MaterializationApproved {
            asset_key,
            materialization_id,
            reason,
        }),
        Verdict::Reject => EventData::MaterializationRejected(MaterializationRejected {
            asset_key,
            materialization_id,
            reason,
        }),
    }
}

/// A request that was refused.
pub(crate) fn refused() -> EventData {
    EventData::RequestRefused(RequestRefused {
        action: "run.cancel".to_owned(),
        subject: "run_aaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
        detail: String::new(),
        code: "unknown_run".to_owned(),
        message: "there is no such run".to_owned(),
        omitted: 0,
        refused_at: START,
    })
}

/// The release of something that nobody put aside.
pub(crate) fn released() -> EventData {
    EventData::MaterializationReleased(MaterializationReleased {
        asset_key: AssetKey::new("t", "a").expect("an asset"),
        materialization_id: MaterializationId::from_parts(1, 1),
    })
}

/// A request that reused the key of a run.
pub(crate) fn conflicted(run_id: RunId) -> EventData {
    EventData::RunKeyConflicted(RunKeyConflicted {
        run_key: "k".into(),
        run_id,
        existing_fingerprint: Fingerprint::from_digest([1; 32]),
        conflicting_fingerprint: Fingerprint::from_digest([2; 32]),
        request_id: None,
    })
}

/// The answer to a request that changed nothing.
pub(crate) fn answered() -> EventData {
    EventData::RequestAnswered(RequestAnswered {
        request_id: "6f1c".into(),
        request_fingerprint: Fingerprint::from_digest([3; 32]),
        run_id: None,
        event_id: None,
        added: 0,
        removed: 0,
    })
}

/// The deployment with this number: one asset.
pub(crate) fn deployed(number: u64) -> EventData {
    let id = AssetId::from_parts(1, u128::from(number));
    EventData::AssetsDeployed(AssetsDeployed {
        number,
        digest: format!("sha256:{number}").into(),
        time_zones: "2026e".into(),
        project: "tests".to_owned(),
        upsert: vec![DeployedAsset::new(id, definition("a", "1")).expect("a valid key")],
        removed: vec![],
    })
}

/// Every event about a schedule, of which only its definition finds one.
pub(crate) fn schedule_events(now: Timestamp) -> Vec<(&'static str, EventData)> {
    let schedule_id = ScheduleId::from_parts(1, 1);
    let definition: ScheduleDef = serde_json::from_str(
        r#"{"name":"tens","location":{"file":"jobs.py","line":3},"cron":"*/10 * * * *","selection":"t.a"}"#,
    )
    .expect("a schedule");
    let defined = ScheduleDefined {
        schedule_id,
        origin: Origin::Code,
        state_version: 1,
        definition: Arc::new(definition),
    };
    let ticked = ScheduleTicked {
        schedule_id,
        tick_id: tick_id(schedule_id, now),
        scheduled_for: now,
        manual: false,
        definition_version: EventId::NIL,
        asset_selection: String::new(),
        partition_selection: PartitionChoice::default(),
        status: TickStatus::Skipped,
        reason: None,
        runs: Vec::new(),
        output: None,
    };
    let failed = ScheduleEvaluationFailed {
        schedule_id,
        scheduled_for: now,
        attempt: 1,
        error: "boom".to_owned(),
        retry_at: now,
        output: None,
    };
    let requested = ScheduleEvaluationRequested {
        schedule_id,
        evaluation_id: EvaluationId::from_parts(1, 2),
        scheduled_for: now,
        definition_version: EventId::NIL,
        attempt: 1,
        deadline: now,
    };
    let state_version = 2;
    vec![
        ("ScheduleDefined", EventData::ScheduleDefined(defined)),
        ("SchedulePaused", EventData::SchedulePaused(SchedulePaused { schedule_id, state_version })),
        ("ScheduleResumed", EventData::ScheduleResumed(ScheduleResumed { schedule_id, state_version })),
        ("ScheduleRemoved", EventData::ScheduleRemoved(ScheduleRemoved { schedule_id, state_version })),
        ("ScheduleTicked", EventData::ScheduleTicked(ticked)),
        ("ScheduleEvaluationFailed", EventData::ScheduleEvaluationFailed(failed)),
        ("ScheduleEvaluationRequested", EventData::ScheduleEvaluationRequested(requested)),
    ]
}

/// Every event about a sensor, of which only its definition finds one.
pub(crate) fn sensor_events(now: Timestamp) -> Vec<(&'static str, EventData)> {
    let sensor_id = SensorId::from_parts(1, 1);
    let definition: SensorDef = serde_json::from_str(
        r#"{"name":"inbox","location":{"file":"jobs.py","line":3},"selection":"t.a","push":true}"#,
    )
    .expect("a sensor");
    let (origin, definition) = (Origin::Code, Arc::new(definition));
    let defined = SensorDefined { sensor_id, origin, state_version: 1, definition };
    let trigger = SensorTrigger::Push { message_id: "m1".into() };
    let received =
        SensorMessageReceived { sensor_id, message_id: "m1".into(), message: r#"{"id":"m1"}"#.into() };
    let requested = SensorEvaluationRequested {
        sensor_id,
        evaluation_id: EvaluationId::from_parts(1, 3),
        trigger: trigger.clone(),
        attempt: 1,
        expected_state_version: 1,
        deadline: now,
    };
    let evaluated = SensorEvaluated {
        sensor_id,
        eval_id: format!("{sensor_id}:msg:m1").into(),
        evaluation_id: None,
        trigger,
        attempt: 1,
        manual: false,
        definition_version: EventId::NIL,
        expected_state_version: None,
        cursor_before: None,
        cursor_after: None,
        status: SensorStatus::NoNewData,
        reason: None,
        run_requests: Vec::new(),
        retry_at: None,
        output: None,
    };
    let state_version = 2;
    let reset = SensorCursorReset { sensor_id, state_version, cursor: None };
    vec![
        ("SensorDefined", EventData::SensorDefined(defined)),
        ("SensorPaused", EventData::SensorPaused(SensorPaused { sensor_id, state_version })),
        ("SensorResumed", EventData::SensorResumed(SensorResumed { sensor_id, state_version })),
        ("SensorRemoved", EventData::SensorRemoved(SensorRemoved { sensor_id, state_version })),
        ("SensorCursorReset", EventData::SensorCursorReset(reset)),
        ("SensorMessageReceived", EventData::SensorMessageReceived(received)),
        ("SensorEvaluationRequested", EventData::SensorEvaluationRequested(requested)),
        ("SensorEvaluated", EventData::SensorEvaluated(evaluated)),
    ]
}

/// Every event about notifications, of which only the definition of a rule finds something.
pub(crate) fn notification_events(now: Timestamp) -> Vec<(&'static str, EventData)> {
    let rule_id = RuleId::from_parts(1, 1);
    let definition = r#"{"name":"n","when":["run_failed"],"to":[{"type":"command","command":["true"]}]}"#;
    let definition = Arc::new(serde_json::from_str(definition).expect("a notification rule"));
    let defined = NotificationRuleDefined { rule_id, origin: Origin::Api, state_version: 1, definition };
    let changed = NotificationRuleChanged { rule_id, state_version: 2, change: RuleChange::Paused };
    let notification_id: Arc<str> = "unknown".into();
    let requested = NotificationRequested { notification_id: notification_id.clone(), attempt: 1 };
    let attempted = NotificationAttempted {
        notification_id,
        attempt: 1,
        status: NotificationStatus::Sent,
        error: None,
        retry_at: None,
    };
    let tested = NotificationTested { rule_id, after: EventId::NIL };
    let queue = QueueServiceChanged { queue: "default".into(), served: false, since: now };
    vec![
        ("NotificationRuleDefined", EventData::NotificationRuleDefined(defined)),
        ("NotificationRuleChanged", EventData::NotificationRuleChanged(changed)),
        ("NotificationTested", EventData::NotificationTested(tested)),
        ("NotificationRequested", EventData::NotificationRequested(requested)),
        ("NotificationAttempted", EventData::NotificationAttempted(attempted)),
        ("QueueServiceChanged", EventData::QueueServiceChanged(queue)),
    ]
}

/// Every event about a backfill, of which only its creation finds one.
pub(crate) fn backfill_events(now: Timestamp) -> Vec<(&'static str, EventData)> {
    let backfill_id = BackfillId::from_parts(1, 1);
    let asset = AssetKey::new("t", "a").expect("an asset");
    let fingerprint = Fingerprint::from_digest([7; 32]);
    let created = BackfillCreated {
        backfill_id,
        client_request_id: None,
        request_fingerprint: fingerprint.clone(),
        asset_selection: "t.a".to_owned(),
        partition_selector: PartitionChoice::default(),
        as_of: now,
        targets: vec![BackfillTarget { asset: asset.clone(), partitions: Vec::new(), packed: None }],
        total_partitions: 1,
        total_chunks: 1,
        chunk_size: 10,
        max_concurrent_runs: 2,
        parent_backfill_id: None,
        stop_on_failure: false,
        failure_threshold: None,
        config: BTreeMap::new(),
        priority: 0,
        labels: BTreeMap::new(),
    };
    let planned = BackfillChunkPlanned {
        backfill_id,
        chunk_index: 0,
        asset,
        partition_keys: Vec::new(),
        through: None,
        partitions: 1,
        run_key: "backfill:x:chunk:0".into(),
        run_id: RunId::from_u128(99),
        request_fingerprint: fingerprint,
    };
    let changed = BackfillStateChanged {
        backfill_id,
        from_state: BackfillState::Pending,
        to_state: BackfillState::Paused,
        state_version: 2,
        reason: String::new(),
    };
    vec![
        ("BackfillCreated", EventData::BackfillCreated(created)),
        ("BackfillChunkPlanned", EventData::BackfillChunkPlanned(planned)),
        ("BackfillStateChanged", EventData::BackfillStateChanged(changed)),
    ]
}

/// One event of each kind about the automation condition of an asset.
pub(crate) fn condition_events(asset: AssetKey) -> Vec<(&'static str, EventData)> {
    let evaluated = ConditionsEvaluated {
        evaluation_id: EvaluationId::from_u128(8),
        deployment: 1,
        requested: vec![ConditionRequested { asset: asset.clone(), partitions: Vec::new(), trace: None }],
        run: None,
        problem: Some("it cannot be planned".to_owned()),
    };
    let paused = ConditionPauseChanged {
        asset,
        state_version: 2,
        paused: true,
        reason: "the source is down".to_owned(),
    };
    vec![
        ("ConditionsEvaluated", EventData::ConditionsEvaluated(evaluated)),
        ("ConditionPauseChanged", EventData::ConditionPauseChanged(paused)),
    ]
}

/// Every event about the life of a partition.
pub(crate) fn life_events() -> Vec<(&'static str, EventData)> {
    let asset_key = AssetKey::new("t", "a").expect("an asset");
    let after = EventId::NIL;
    let wiped = PartitionsWiped {
        asset_key: asset_key.clone(),
        after,
        partitions: Vec::new(),
        count: 1,
        keep_data: false,
        reason: String::new(),
    };
    let marked = PartitionsMarked {
        asset_key: asset_key.clone(),
        after,
        partitions: KeyList::default(),
        outcome: AttemptOutcome::Succeeded,
        reason: String::new(),
    };
    let restored = PartitionsRestored { asset_key: asset_key.clone(), change: after, count: 1 };
    let (made_by, partitions) = (Timestamp::from_millis(0), KeyList::default());
    let expired = PartitionsExpired { asset_key: asset_key.clone(), after, made_by, partitions };
    let renamed_to = AssetKey::new("t", "renamed").expect("an asset");
    let renamed = AssetRenamed { asset_key: asset_key.clone(), renamed_to, after };
    let moved = AssetMoved { asset_key, renamed_by: after };
    vec![
        ("PartitionsWiped", EventData::PartitionsWiped(wiped)),
        ("PartitionsMarked", EventData::PartitionsMarked(marked)),
        ("PartitionsRestored", EventData::PartitionsRestored(restored)),
        ("PartitionsExpired", EventData::PartitionsExpired(expired)),
        ("AssetRenamed", EventData::AssetRenamed(renamed)),
        ("AssetMoved", EventData::AssetMoved(moved)),
    ]
}
