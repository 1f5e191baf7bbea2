//! The expected contents of the files in `corpus/v1/`.

#[path = "notifications.rs"]
mod notifications;
#[path = "sensors.rs"]
mod sensors;

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{
    AssetId, AssetKey, AttemptId, BackfillId, EvaluationId, EventId, Fingerprint, MaterializationId, Millis,
    Operation, PartitionKey, PartitionsDef, PlanId, RunId, ScheduleId, Timestamp,
};
use servo_engine::definitions::{AssetDef, CheckKind, IfRunning, Location, ScheduleDef, Severity};
use servo_engine::event::{
    AssetMoved, AssetRenamed, AssetsDeployed, BackfillChunkPlanned, BackfillCreated, BackfillStateChanged,
    BackfillTarget, ClockStepped, ConditionPauseChanged, ConditionRequested, ConditionsEvaluated,
    DeployedAsset, DispatchEnqueued, DispatchRequested, DynamicPartitionsChanged, ExpiredData,
    FailureThreshold, FreshnessChanged, FreshnessObserved, KeyList, KeyRange, MaterializationApproved,
    MaterializationRejected, MaterializationReleased, NewValue, PartitionsExpired, PartitionsMarked,
    PartitionsRestored, PartitionsWiped, PauseChanged, PlanCreated, RequestAnswered, RequestRefused,
    RequestedRun, RetentionApplied, RunCancelRequested, RunKeyConflicted, RunRequested, RunTriggered,
    ScheduleDefined, ScheduleEvaluationFailed, ScheduleEvaluationRequested, SchedulePaused, ScheduleRemoved,
    ScheduleResumed, ScheduleTicked, SettingsChanged, TaskFinished, TaskHeartbeat, TaskStarted,
    TimerEnqueued, TimerFired, TimerKind, TimerRequested, WorkerChanged, WorkerLeft, WorkerLost,
    WorkerRegistered, manual_tick_id, tick_id,
};
use servo_engine::outputs::{CheckReport, OutputReport, Usage, materialization_of};
use servo_engine::planner::PartitionChoice;
use servo_engine::{
    AttemptOutcome, BackfillState, DataFormat, DepSet, ErrorCode, EventData, EventKind, ExpectedCheck,
    FreshnessStatus, InputRead, Origin, Outcome, OutputState, PieceRead, PiecesRead, Positions, Progress,
    Provenance, RetryPolicy, RunSource, SettingOrigin, TaskError, TaskOptions, TickStatus,
};

use super::AT;
use super::support::{key, plan_of, task};

fn run() -> RunId {
    RunId::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)
}

fn attempt_id() -> AttemptId {
    AttemptId::from_parts(1_736_899_200_100, 7)
}

fn plan_id() -> PlanId {
    PlanId::from_parts(1_736_899_200_000, 3)
}

fn fingerprint(digit: &str) -> Fingerprint {
    Fingerprint::parse(&format!("v1:sha256:{}", digit.repeat(64))).expect("a fingerprint")
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
        previous: Vec::new(),
        config: BTreeMap::new(),
    }
}

/// The payload each file holds: every optional field set in one event and absent in another.
pub(crate) fn expected(kind: EventKind) -> Vec<EventData> {
    let (run_id, attempt_id, plan_id) = (run(), attempt_id(), plan_id());
    let task_key = servo_core::TaskKey::parse("raw/events[date=d:2025-01-15]:materialize").expect("a key");
    let fire_at = AT.saturating_add(Millis::from_minutes(1));
    match kind {
        EventKind::Unknown => vec![],
        EventKind::RunRequested => {
            let bare = RunRequested {
                run_key: "daily:2025-01-15".into(),
                run_id,
                request_fingerprint: fingerprint("a"),
                source: RunSource::Manual,
                selection: String::new(),
                operation: Operation::Materialize,
                partitions: PartitionChoice::default(),
                config: BTreeMap::new(),
                priority: 0,
                timeout_ms: None,
                labels: BTreeMap::new(),
                request_id: None,
            };
            let labels = [("team".to_owned(), "ops \"one\"".to_owned())].into();
            let full = RunRequested {
                source: RunSource::Schedule { id: "nightly".into(), tick: AT },
                selection: "+raw.events or tag:größe".to_owned(),
                partitions: PartitionChoice {
                    keys: vec!["2025-01-15".to_owned()],
                    ranges: vec!["2025-01-01..2025-01-07".to_owned()],
                    latest: true,
                    ..PartitionChoice::default()
                },
                config: [("limit".to_owned(), "1.50".to_owned())].into(),
                priority: -5,
                timeout_ms: None,
                labels,
                request_id: Some("6f1c".into()),
                ..bare.clone()
            };
            vec![EventData::RunRequested(bare), EventData::RunRequested(full)]
        }
        EventKind::RunKeyConflicted => {
            let bare = RunKeyConflicted {
                run_key: "daily:2025-01-15".into(),
                run_id,
                existing_fingerprint: fingerprint("a"),
                conflicting_fingerprint: fingerprint("b"),
                request_id: None,
            };
            let full = RunKeyConflicted { request_id: Some("6f1c".into()), ..bare.clone() };
            vec![EventData::RunKeyConflicted(bare), EventData::RunKeyConflicted(full)]
        }
        EventKind::RequestAnswered => {
            let bare = RequestAnswered {
                request_id: "6f1c".into(),
                request_fingerprint: fingerprint("a"),
                run_id: None,
                event_id: None,
                added: 0,
                removed: 0,
            };
            let full = RequestAnswered {
                run_id: Some(run_id),
                event_id: Some(EventId::from_parts(1_736_899_200_000, 5)),
                added: 2,
                removed: 1,
                ..bare.clone()
            };
            vec![EventData::RequestAnswered(bare), EventData::RequestAnswered(full)]
        }
        EventKind::PlanCreated => {
            let plan = plan_of(vec![
                task("a", &[], TaskOptions::default()),
                task("b", &["a"], options()),
                task("c", &["b", "a"], TaskOptions::default()),
            ]);
            vec![EventData::PlanCreated(PlanCreated {
                run_id,
                plan_id,
                fingerprint: fingerprint("b"),
                deployment: 0,
                tasks: plan.tasks().clone(),
                sets: Arc::default(),
            })]
        }
        EventKind::RunTriggered => vec![
            EventData::RunTriggered(RunTriggered { run_id, plan_id, timeout_ms: None }),
            EventData::RunTriggered(RunTriggered {
                run_id,
                plan_id,
                timeout_ms: Some(Millis::from_hours(2)),
            }),
        ],
        EventKind::RunCancelRequested => {
            let bare = RunCancelRequested { run_id, reason: String::new(), force: false, silent_since: None };
            let reason = "wrong day\nof the week".to_owned();
            let full = RunCancelRequested { reason, force: true, ..bare.clone() };
            vec![EventData::RunCancelRequested(bare), EventData::RunCancelRequested(full)]
        }
        EventKind::DispatchRequested => {
            let provenance = Arc::default();
            let bare = DispatchRequested {
                run_id,
                task_key,
                attempt: 1,
                attempt_id,
                worker_queue: None,
                provenance,
            };
            let day = |day: u32| PartitionKey::parse(&format!("date=d:2024-01-{day:02}")).expect("a key");
            let id = MaterializationId::from_parts(7, 7);
            let piece = |partition| PieceRead { partition, id };
            let input = |asset: &str, pieces| InputRead { asset: asset.parse().expect("an asset"), pieces };
            let counted = PiecesRead::Counted {
                count: 300,
                first: day(1),
                last: day(31),
                digest: format!("sha256:{}", "0".repeat(64)),
            };
            let provenance = Arc::new(Provenance {
                deployment: 3,
                code_versions: vec![Some("sha256:1".into()), None],
                definition_changed: true,
                checks: vec![ExpectedCheck {
                    output: 1,
                    name: "rows".to_owned(),
                    severity: Severity::Critical,
                    blocking: Some(false),
                }],
                inputs: vec![
                    input("raw/flights", PiecesRead::Named(vec![piece(Some(day(5))), piece(Some(day(6)))])),
                    input("raw/planes", PiecesRead::Named(vec![piece(None)])),
                    input("raw/weather", counted),
                ],
                data_as_of: None,
            });
            let full = DispatchRequested { worker_queue: Some("big".into()), provenance, ..bare.clone() };
            vec![EventData::DispatchRequested(bare), EventData::DispatchRequested(full)]
        }
        EventKind::DispatchEnqueued => {
            vec![EventData::DispatchEnqueued(DispatchEnqueued { run_id, task_key, attempt: 2, attempt_id })]
        }
        EventKind::PauseChanged => {
            let pause = |scope: &str, number, paused, reason: &str| {
                let scope = scope.parse().expect("a scope");
                EventData::PauseChanged(PauseChanged { scope, number, paused, reason: reason.to_owned() })
            };
            vec![
                pause("all", 1, true, "the warehouse is down"),
                pause("all", 2, false, ""),
                pause("queue:gpu", 1, true, ""),
                pause("asset:raw/flights", 1, true, ""),
            ]
        }
        EventKind::RetentionApplied => {
            let bare = ExpiredData {
                asset_key: asset(),
                partition_key: None,
                materialization_id: MaterializationId::from_u128(9),
                byte_size: None,
            };
            let partition = PartitionKey::parse("date=d:2025-01-15").expect("a partition");
            let full = ExpiredData { partition_key: Some(partition), byte_size: Some(842), ..bare.clone() };
            vec![
                EventData::RetentionApplied(RetentionApplied { superseded: vec![], logs_before: Some(AT) }),
                EventData::RetentionApplied(RetentionApplied {
                    superseded: vec![bare, full],
                    logs_before: None,
                }),
            ]
        }
        EventKind::SettingsChanged => {
            let new = |value, origin| NewValue { value, origin };
            let set = [
                ("execution_timeout".to_owned(), new(Some(1_800_000), SettingOrigin::Cli)),
                ("pool.warehouse".to_owned(), new(Some(4), SettingOrigin::Project)),
            ];
            let unset = [("execution_timeout".to_owned(), new(None, SettingOrigin::Default))];
            vec![
                EventData::SettingsChanged(SettingsChanged { number: 1, changes: set.into() }),
                EventData::SettingsChanged(SettingsChanged { number: 2, changes: unset.into() }),
            ]
        }
        EventKind::ClockStepped => {
            vec![EventData::ClockStepped(ClockStepped { expected: AT, by_ms: -86_400_000 })]
        }
        EventKind::TimerRequested => {
            let timer_type = TimerKind::Retry;
            vec![EventData::TimerRequested(TimerRequested {
                timer_type,
                run_id,
                task_key,
                attempt: 1,
                fire_at,
            })]
        }
        EventKind::TimerEnqueued => {
            let timer_type = TimerKind::Retry;
            vec![EventData::TimerEnqueued(TimerEnqueued {
                timer_type,
                run_id,
                task_key,
                attempt: 1,
                fire_at,
            })]
        }
        EventKind::TimerFired => {
            let fired = |timer_type, task_key, attempt| {
                EventData::TimerFired(TimerFired {
                    timer_type,
                    run_id,
                    task_key,
                    attempt,
                    fire_at,
                    since: None,
                })
            };
            vec![
                fired(TimerKind::Retry, Some(task_key.clone()), 1),
                fired(TimerKind::HeartbeatCheck, Some(task_key.clone()), 2),
                fired(TimerKind::DispatchAck, Some(task_key), 3),
                fired(TimerKind::RunTimeout, None, 0),
            ]
        }
        EventKind::TaskStarted => {
            let worker_id = "host-1/0".into();
            vec![EventData::TaskStarted(TaskStarted { run_id, task_key, attempt: 1, attempt_id, worker_id })]
        }
        EventKind::TaskHeartbeat => {
            let progress = |ppm, message: &str| Some(Progress { ppm, message: message.to_owned() });
            [None, progress(0, ""), progress(1_000_000, "writing")]
                .into_iter()
                .map(|progress| {
                    EventData::TaskHeartbeat(TaskHeartbeat {
                        run_id,
                        task_key: task_key.clone(),
                        attempt: 1,
                        attempt_id,
                        heartbeat_at: AT,
                        progress,
                    })
                })
                .collect()
        }
        EventKind::TaskFinished => {
            let finished = |outcome, error: Option<TaskError>, materialization_id| {
                EventData::TaskFinished(TaskFinished {
                    run_id,
                    task_key: task_key.clone(),
                    attempt: 1,
                    attempt_id,
                    outcome,
                    error: error.map(Arc::new),
                    materialization_id,
                    outputs: Arc::default(),
                    usage: None,
                })
            };
            let mut list = vec![
                finished(Outcome::Succeeded, None, Some(MaterializationId::from_parts(1_736_899_200_000, 9))),
                finished(Outcome::Cancelled, None, None),
                finished(Outcome::TimedOut, None, None),
                finished(Outcome::Interrupted, None, None),
            ];
            for code in CODES {
                let error_type = (code == ErrorCode::UserCodeException).then(|| "ValueError".to_owned());
                let error = TaskError { error_type, ..TaskError::new(code, "what went wrong") };
                list.push(finished(Outcome::Failed, Some(error), None));
            }
            list
        }
        EventKind::AssetsDeployed => {
            let id = |n| AssetId::from_parts(1_736_899_200_000, n);
            let plain = AssetDef {
                key: "raw/events".to_owned(),
                location: Location { file: "assets.py".to_owned(), line: 7 },
                ..AssetDef::default()
            };
            let full = AssetDef {
                key: "analytics/size".to_owned(),
                function: Some("assets:size".to_owned()),
                description: Some("How \"big\" it is.".to_owned()),
                group: Some("daily".to_owned()),
                tags: [("team".to_owned(), "zoë".to_owned())].into(),
                code_version: Some("v2".to_owned()),
                partitions: Some(PartitionsDef::Static { keys: vec!["eu".to_owned(), "us".to_owned()] }),
                retry: options().retry,
                timeout_ms: Some(Millis::from_minutes(10)),
                ..plain.clone()
            };
            let asset = |n, def: AssetDef| DeployedAsset::new(id(n), Arc::new(def)).expect("a valid key");
            let first = AssetsDeployed {
                number: 1,
                digest: "sha256:00ff".into(),
                time_zones: "2026e".into(),
                project: "shop".to_owned(),
                upsert: vec![asset(1, full), asset(2, plain)],
                removed: vec![],
            };
            let removed = vec![AssetKey::parse("raw.events").expect("a key")];
            let second = AssetsDeployed {
                number: 2,
                digest: "sha256:01".into(),
                upsert: vec![],
                removed,
                ..first.clone()
            };
            vec![EventData::AssetsDeployed(first), EventData::AssetsDeployed(second)]
        }
        EventKind::DynamicPartitionsChanged => {
            let change = |number, added: &[&str], removed: &[&str]| {
                EventData::DynamicPartitionsChanged(DynamicPartitionsChanged {
                    name: "customers".to_owned(),
                    number,
                    added: added.iter().map(|key| (*key).to_owned()).collect(),
                    removed: removed.iter().map(|key| (*key).to_owned()).collect(),
                })
            };
            vec![
                change(1, &["acme", "größe \"one\""], &[]),
                change(2, &[], &["acme"]),
                change(3, &["acme"], &["größe \"one\""]),
            ]
        }
        EventKind::MaterializationApproved => {
            let review = |reason: &str| {
                EventData::MaterializationApproved(MaterializationApproved {
                    asset_key: asset(),
                    materialization_id: materialization_of(attempt_id),
                    reason: reason.to_owned(),
                })
            };
            vec![review(""), review("a holiday: \"few\" flights")]
        }
        EventKind::MaterializationRejected => {
            let review = |reason: &str| {
                EventData::MaterializationRejected(MaterializationRejected {
                    asset_key: asset(),
                    materialization_id: materialization_of(attempt_id),
                    reason: reason.to_owned(),
                })
            };
            vec![review(""), review("rows are missing")]
        }
        EventKind::RequestRefused => {
            let refused = |detail: &str, omitted: u64| {
                EventData::RequestRefused(RequestRefused {
                    action: "run.cancel".to_owned(),
                    subject: "run_aaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
                    detail: detail.to_owned(),
                    code: "unknown_run".to_owned(),
                    message: "there is no such run".to_owned(),
                    omitted,
                    refused_at: AT,
                })
            };
            vec![refused("", 0), refused("wrong day", 3)]
        }
        EventKind::MaterializationReleased => {
            vec![EventData::MaterializationReleased(MaterializationReleased {
                asset_key: asset(),
                materialization_id: materialization_of(attempt_id),
            })]
        }
        EventKind::ScheduleDefined => {
            let plain = schedule();
            let full = ScheduleDef {
                timezone: Some("Europe/Amsterdam".to_owned()),
                function: Some("jobs:morning".to_owned()),
                selection: None,
                description: Some("Every \"morning\".".to_owned()),
                tags: [("team".to_owned(), "zoë".to_owned())].into(),
                enabled: false,
                catch_up_on_resume: true,
                config: [("limit".to_owned(), "100".to_owned())].into(),
                priority: -3,
                catchup_window_minutes: 60,
                max_catchup_ticks: 100,
                if_running: IfRunning::Queue,
                timeout_ms: Some(Millis::from_minutes(2)),
                ..schedule()
            };
            let defined = |origin, state_version, definition| {
                EventData::ScheduleDefined(ScheduleDefined {
                    schedule_id: schedule_id(),
                    origin,
                    state_version,
                    definition: Arc::new(definition),
                })
            };
            vec![defined(Origin::Code, 1, plain), defined(Origin::Api, 2, full)]
        }
        EventKind::SchedulePaused => {
            vec![EventData::SchedulePaused(SchedulePaused { schedule_id: schedule_id(), state_version: 3 })]
        }
        EventKind::ScheduleResumed => {
            vec![EventData::ScheduleResumed(ScheduleResumed { schedule_id: schedule_id(), state_version: 4 })]
        }
        EventKind::ScheduleRemoved => {
            vec![EventData::ScheduleRemoved(ScheduleRemoved { schedule_id: schedule_id(), state_version: 5 })]
        }
        EventKind::ScheduleTicked => {
            let (id, due) = (schedule_id(), Timestamp::from_millis(1_736_920_800_000));
            let skipped = ScheduleTicked {
                schedule_id: id,
                tick_id: tick_id(id, due),
                scheduled_for: due,
                manual: false,
                definition_version: EventId::from_parts(1_736_899_200_000, 4),
                asset_selection: String::new(),
                partition_selection: PartitionChoice::default(),
                status: TickStatus::Skipped,
                reason: Some("the schedule is paused".to_owned()),
                runs: Vec::new(),
                output: None,
            };
            let run = RequestedRun {
                run_key: format!("sched:{}", manual_tick_id(id, due)).into(),
                run_id,
                request_fingerprint: fingerprint("7"),
            };
            let triggered = ScheduleTicked {
                tick_id: manual_tick_id(id, due),
                manual: true,
                asset_selection: "raw.*".to_owned(),
                partition_selection: PartitionChoice { latest: true, ..PartitionChoice::default() },
                status: TickStatus::Triggered,
                reason: None,
                runs: vec![run],
                ..skipped.clone()
            };
            vec![EventData::ScheduleTicked(skipped), EventData::ScheduleTicked(triggered)]
        }
        EventKind::ScheduleEvaluationFailed => {
            let due = Timestamp::from_millis(1_736_920_800_000);
            vec![EventData::ScheduleEvaluationFailed(ScheduleEvaluationFailed {
                schedule_id: schedule_id(),
                scheduled_for: due,
                attempt: 2,
                error: "ValueError: größe".to_owned(),
                retry_at: due.saturating_add(Millis::from_secs(2)),
                output: None,
            })]
        }
        EventKind::ScheduleEvaluationRequested => {
            let due = Timestamp::from_millis(1_736_920_800_000);
            vec![EventData::ScheduleEvaluationRequested(ScheduleEvaluationRequested {
                schedule_id: schedule_id(),
                evaluation_id: EvaluationId::from_parts(1_736_899_200_000, 10),
                scheduled_for: due,
                definition_version: EventId::from_parts(1_736_899_200_000, 4),
                attempt: 1,
                deadline: due.saturating_add(Millis::from_secs(120)),
            })]
        }
        EventKind::SensorDefined
        | EventKind::SensorPaused
        | EventKind::SensorResumed
        | EventKind::SensorRemoved
        | EventKind::SensorCursorReset
        | EventKind::SensorMessageReceived
        | EventKind::SensorEvaluationRequested
        | EventKind::SensorEvaluated => sensors::expected(kind, run_id),
        EventKind::NotificationRuleDefined
        | EventKind::NotificationRuleChanged
        | EventKind::NotificationTested
        | EventKind::NotificationRequested
        | EventKind::NotificationAttempted
        | EventKind::QueueServiceChanged => notifications::expected(kind),
        EventKind::BackfillCreated => {
            let plain = BackfillCreated {
                backfill_id: backfill_id(),
                client_request_id: None,
                request_fingerprint: fingerprint("8"),
                asset_selection: "raw.events".to_owned(),
                partition_selector: PartitionChoice::default(),
                as_of: AT,
                targets: vec![BackfillTarget { asset: asset(), partitions: days() }],
                total_partitions: 30,
                total_chunks: 3,
                chunk_size: 10,
                max_concurrent_runs: 2,
                parent_backfill_id: None,
                stop_on_failure: false,
                failure_threshold: None,
                config: BTreeMap::new(),
                priority: 0,
                labels: BTreeMap::new(),
            };
            let full = BackfillCreated {
                client_request_id: Some("größe".into()),
                partition_selector: PartitionChoice { failed: true, ..PartitionChoice::default() },
                parent_backfill_id: Some(BackfillId::from_parts(1_736_899_200_000, 8)),
                stop_on_failure: true,
                failure_threshold: Some(FailureThreshold::Percent(10)),
                config: [("limit".to_owned(), "1.50".to_owned())].into(),
                priority: -1,
                labels: [("team".to_owned(), "zoë".to_owned())].into(),
                ..plain.clone()
            };
            vec![EventData::BackfillCreated(plain), EventData::BackfillCreated(full)]
        }
        EventKind::BackfillChunkPlanned => {
            let days = days();
            vec![EventData::BackfillChunkPlanned(BackfillChunkPlanned {
                backfill_id: backfill_id(),
                chunk_index: 2,
                asset: asset(),
                through: Some(days[0].last().clone()),
                partition_keys: days,
                partitions: 20,
                run_key: format!("backfill:{}:chunk:2", backfill_id()).into(),
                run_id,
                request_fingerprint: fingerprint("9"),
            })]
        }
        EventKind::BackfillStateChanged => {
            vec![EventData::BackfillStateChanged(BackfillStateChanged {
                backfill_id: backfill_id(),
                from_state: BackfillState::Running,
                to_state: BackfillState::Failed,
                state_version: 3,
                reason: "1 partition was not made".to_owned(),
            })]
        }
        EventKind::FreshnessChanged => vec![EventData::FreshnessChanged(FreshnessChanged {
            asset_key: asset(),
            deployment: 7,
            old: FreshnessStatus::Warn,
            new: FreshnessStatus::Fail,
            since: AT,
            data_as_of: Some(AT),
            lag_ms: Some(Millis::from_hours(26)),
            due_at: None,
        })],
        EventKind::FreshnessObserved => vec![EventData::FreshnessObserved(FreshnessObserved {
            asset_key: asset(),
            deployment: 7,
            data_as_of: Some(AT),
            due_at: Some(AT),
        })],
        EventKind::ConditionsEvaluated => {
            let evaluation_id = servo_core::EvaluationId::from_parts(1_736_899_200_000, 12);
            let trace = servo_engine::conditions::TraceNode {
                label: "eager()".to_owned(),
                holds: 1,
                of: 2,
                since: Some(AT),
                parts: vec![servo_engine::conditions::TraceNode {
                    label: "missing()".to_owned(),
                    holds: 0,
                    of: 2,
                    since: None,
                    parts: Vec::new(),
                }],
            };
            let day = servo_core::PartitionKey::parse("date=d:2025-01-15").expect("a key");
            let requested =
                ConditionRequested { asset: asset(), partitions: vec![day], trace: Some(trace.into()) };
            let whole = ConditionRequested { asset: asset(), partitions: Vec::new(), trace: None };
            let run = RequestedRun {
                run_key: format!("cond:{evaluation_id}").into(),
                run_id,
                request_fingerprint: fingerprint("9"),
            };
            let full = ConditionsEvaluated {
                evaluation_id,
                deployment: 7,
                requested: vec![requested],
                run: Some(run),
                problem: None,
            };
            let failed = ConditionsEvaluated {
                requested: vec![whole],
                run: None,
                problem: Some("größe".to_owned()),
                ..full.clone()
            };
            vec![EventData::ConditionsEvaluated(full), EventData::ConditionsEvaluated(failed)]
        }
        EventKind::ConditionPauseChanged => {
            let change = |paused: bool, state_version: u64, reason: &str| {
                EventData::ConditionPauseChanged(ConditionPauseChanged {
                    asset: asset(),
                    state_version,
                    paused,
                    reason: reason.to_owned(),
                })
            };
            vec![change(true, 2, "größe"), change(false, 3, "")]
        }
        EventKind::PartitionsWiped => {
            let (asset_key, after) = (asset(), EventId::from_parts(1_736_899_200_000, 9));
            let plain = PartitionsWiped {
                asset_key,
                after,
                partitions: Vec::new(),
                count: 1,
                keep_data: false,
                reason: String::new(),
            };
            let full = PartitionsWiped {
                partitions: days(),
                count: 30,
                keep_data: true,
                reason: "größe".to_owned(),
                ..plain.clone()
            };
            vec![EventData::PartitionsWiped(plain), EventData::PartitionsWiped(full)]
        }
        EventKind::PartitionsMarked => {
            let (asset_key, after) = (asset(), EventId::from_parts(1_736_899_200_000, 9));
            let plain = PartitionsMarked {
                asset_key,
                after,
                partitions: KeyList::default(),
                outcome: AttemptOutcome::Failed,
                reason: String::new(),
            };
            let days = days();
            let full = PartitionsMarked {
                partitions: KeyList::new(vec![days[0].last().clone(), days[0].from.clone()]),
                outcome: AttemptOutcome::Succeeded,
                reason: "größe".to_owned(),
                ..plain.clone()
            };
            vec![EventData::PartitionsMarked(plain), EventData::PartitionsMarked(full)]
        }
        EventKind::PartitionsRestored => vec![EventData::PartitionsRestored(PartitionsRestored {
            asset_key: asset(),
            change: EventId::from_parts(1_736_899_200_000, 9),
            count: 30,
        })],
        EventKind::PartitionsExpired => {
            let days = days();
            let plain = PartitionsExpired {
                asset_key: asset(),
                after: EventId::from_parts(1_736_899_200_000, 9),
                made_by: Timestamp::from_millis(1_734_307_200_000),
                partitions: KeyList::default(),
            };
            let full = PartitionsExpired {
                partitions: KeyList::new(vec![days[0].last().clone(), days[0].from.clone()]),
                ..plain.clone()
            };
            vec![EventData::PartitionsExpired(plain), EventData::PartitionsExpired(full)]
        }
        EventKind::AssetRenamed => vec![EventData::AssetRenamed(AssetRenamed {
            asset_key: asset(),
            renamed_to: AssetKey::new("raw", "arrivals").expect("a key"),
            after: EventId::from_parts(1_736_899_200_000, 9),
        })],
        EventKind::AssetMoved => vec![EventData::AssetMoved(AssetMoved {
            asset_key: asset(),
            renamed_by: EventId::from_parts(1_736_899_200_000, 9),
        })],
        EventKind::WorkerRegistered => vec![EventData::WorkerRegistered(WorkerRegistered {
            worker_id: "größe-5f3a9c01".into(),
            number: 1,
            name: "größe".to_owned(),
            queues: vec!["default".into(), "gpu".into()],
            slots: 4,
            deployment: 7,
            digest: "sha256:1234".into(),
            storage: "s3://bucket/path".to_owned(),
            host: "vm-1".to_owned(),
            version: "0.1.0".to_owned(),
        })],
        EventKind::WorkerChanged => {
            let changed = |number, draining| {
                EventData::WorkerChanged(WorkerChanged {
                    worker_id: "w-5f3a9c01".into(),
                    number,
                    deployment: 8,
                    digest: "sha256:5678".into(),
                    draining,
                })
            };
            vec![changed(2, false), changed(3, true)]
        }
        EventKind::WorkerLeft => {
            vec![EventData::WorkerLeft(WorkerLeft { worker_id: "w-5f3a9c01".into(), number: 4 })]
        }
        EventKind::WorkerLost => {
            let lost = |number, heard_at| {
                EventData::WorkerLost(WorkerLost { worker_id: "w-5f3a9c01".into(), number, heard_at })
            };
            vec![lost(2, None), lost(3, Some(AT))]
        }
    }
}

fn backfill_id() -> BackfillId {
    BackfillId::from_parts(1_736_899_200_000, 9)
}

fn days() -> Vec<KeyRange> {
    let day = |text: &str| PartitionKey::parse(text).expect("a key");
    let (from, to) = (day("date=d:2025-01-01"), day("date=d:2025-01-10"));
    vec![KeyRange { from, to: Some(to) }, KeyRange { from: day("date=d:2025-01-15"), to: None }]
}

fn schedule_id() -> ScheduleId {
    ScheduleId::from_parts(1_736_899_200_000, 8)
}

fn schedule() -> ScheduleDef {
    serde_json::from_str(
        r#"{"name":"morning","location":{"file":"jobs.py","line":3},"cron":"0 6 * * *","selection":"raw.*"}"#,
    )
    .expect("a schedule")
}

fn asset() -> AssetKey {
    AssetKey::new("raw", "events").expect("an asset")
}

/// Later additions to existing kinds of events, each in a file of its own.
pub(crate) fn expected_later() -> Vec<(&'static str, Vec<EventData>)> {
    let run_id = run();
    let retried = |from_failure| {
        EventData::RunRequested(RunRequested {
            run_key: "retry:1".into(),
            run_id,
            request_fingerprint: fingerprint("c"),
            source: RunSource::Retry { of: RunId::from_u128(7), from_failure },
            selection: String::new(),
            operation: Operation::Materialize,
            partitions: PartitionChoice::default(),
            config: BTreeMap::new(),
            priority: 0,
            timeout_ms: None,
            labels: BTreeMap::new(),
            request_id: None,
        })
    };
    let checked = EventData::RunRequested(RunRequested {
        run_key: "checks:1".into(),
        run_id,
        request_fingerprint: fingerprint("e"),
        source: RunSource::Api,
        selection: "raw.events".to_owned(),
        operation: Operation::Check,
        partitions: PartitionChoice::default(),
        config: BTreeMap::new(),
        priority: 0,
        timeout_ms: None,
        labels: BTreeMap::new(),
        request_id: None,
    });
    let config = [("limit".to_owned(), "100".to_owned()), ("region".to_owned(), "\"größe\"".to_owned())];
    let configured = TaskOptions { config: config.into(), ..TaskOptions::default() };
    let plan = EventData::PlanCreated(PlanCreated {
        run_id,
        plan_id: plan_id(),
        fingerprint: fingerprint("d"),
        deployment: 7,
        tasks: plan_of(vec![task("a", &[], configured)]).tasks().clone(),
        sets: Arc::default(),
    });
    let tasks = ["a", "b", "c", "d"].map(|name| task(name, &[], TaskOptions::default()));
    let set = DepSet { upstream: Positions::of([0, 2]), downstream: Positions::of([1, 3]) };
    let with_sets = EventData::PlanCreated(PlanCreated {
        run_id,
        plan_id: plan_id(),
        fingerprint: fingerprint("e"),
        deployment: 7,
        tasks: plan_of(tasks.into()).tasks().clone(),
        sets: [set].into(),
    });
    let forced = EventData::RunCancelRequested(RunCancelRequested {
        run_id,
        reason: "stuck".to_owned(),
        force: true,
        silent_since: Some(AT),
    });
    let fired = EventData::TimerFired(TimerFired {
        timer_type: TimerKind::HeartbeatCheck,
        run_id,
        task_key: Some(key("a")),
        attempt: 2,
        fire_at: AT.saturating_add(Millis::from_secs(90)),
        since: Some(AT),
    });
    vec![
        ("PlanCreated_config.json", vec![plan]),
        ("PlanCreated_sets.json", vec![with_sets]),
        ("RunCancelRequested_silent_since.json", vec![forced]),
        ("RunRequested_check.json", vec![checked]),
        ("RunRequested_retry.json", vec![retried(false), retried(true)]),
        ("TaskFinished_outputs.json", finished_with_outputs()),
        ("TimerFired_since.json", vec![fired]),
    ]
}

fn finished_with_outputs() -> Vec<EventData> {
    let texts = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<BTreeMap<_, _>>()
    };
    let full = OutputReport {
        asset: asset(),
        state: OutputState::Committed,
        uri: Some("s3://elsewhere/größe".to_owned()),
        format: Some(DataFormat::Parquet),
        row_count: Some(842),
        byte_size: Some(18_446_744_073_709_551_615),
        content_hash: Some("sha256:00ff".to_owned()),
        schema_hash: Some("sha256:01".to_owned()),
        code_version: Some("sha256:02".into()),
        schema: Some(texts(&[("carrier", "string"), ("delay", "double")])),
        metadata: texts(&[("note", "\"a \\\"good\\\" day\""), ("skipped", "3")]),
        checks: CHECKS
            .iter()
            .zip([Severity::Info, Severity::Warning, Severity::Error, Severity::Critical].iter().cycle())
            .map(|(kind, severity)| CheckReport {
                name: format!("{kind:?}"),
                kind: *kind,
                passed: *severity != Severity::Critical,
                severity: *severity,
                blocking: (*severity == Severity::Info).then_some(true),
                message: (*severity == Severity::Critical).then(|| "3 of 842 rows".to_owned()),
                metadata: texts(&[("failed", "3")]),
                error: None,
                duration_ms: 12,
            })
            .collect(),
    };
    let plain = |state, format| OutputReport { format, ..OutputReport::new(asset(), state) };
    let formats = DataFormat::ALL.iter().map(|format| plain(OutputState::Committed, Some(*format)));
    let states = OutputState::ALL.iter().map(|state| plain(*state, None));
    let usage = Usage { cpu_ms: 1_200, max_rss_bytes: 1 << 30, bytes_read: 0, bytes_written: 77 };
    let traced = TaskError {
        error_type: Some("ValueError".to_owned()),
        traceback: Some("Traceback (most recent call last):\n  File \"a.py\", line 1".to_owned()),
        ..TaskError::new(ErrorCode::CheckFailed, "row_count did not pass")
    };
    let finished = |outcome, error: Option<TaskError>, outputs: Vec<OutputReport>, usage| {
        EventData::TaskFinished(TaskFinished {
            run_id: run(),
            task_key: key("a"),
            attempt: 1,
            attempt_id: attempt_id(),
            outcome,
            error: error.map(Arc::new),
            materialization_id: Some(materialization_of(attempt_id())),
            outputs: outputs.into(),
            usage,
        })
    };
    vec![
        finished(Outcome::Succeeded, None, vec![full], Some(usage)),
        finished(Outcome::Succeeded, None, formats.collect(), Some(Usage::default())),
        finished(Outcome::Failed, Some(traced), states.collect(), None),
    ]
}

const CHECKS: [CheckKind; 8] = [
    CheckKind::RowCount,
    CheckKind::NotNull,
    CheckKind::Unique,
    CheckKind::Freshness,
    CheckKind::Schema,
    CheckKind::AcceptedValues,
    CheckKind::Sql,
    CheckKind::Python,
];

const CODES: [ErrorCode; 19] = [
    ErrorCode::NetworkError,
    ErrorCode::RateLimited,
    ErrorCode::ServiceUnavailable,
    ErrorCode::Timeout,
    ErrorCode::OutOfMemory,
    ErrorCode::DiskFull,
    ErrorCode::WorkerCrash,
    ErrorCode::HeartbeatLost,
    ErrorCode::Interrupted,
    ErrorCode::UserCodeException,
    ErrorCode::ImportError,
    ErrorCode::CheckFailed,
    ErrorCode::MissingInput,
    ErrorCode::SchemaViolation,
    ErrorCode::DataCorruption,
    ErrorCode::OutputMissing,
    ErrorCode::InvalidDefinition,
    ErrorCode::Cancelled,
    ErrorCode::InternalError,
];
