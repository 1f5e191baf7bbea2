//! Later additions to existing kinds of events.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{Millis, Operation, RunId, ScheduleId};
use servo_engine::definitions::{CheckKind, ScheduleDef, Severity};
use servo_engine::event::{
    PlanCreated, RunCancelRequested, RunRequested, ScheduleDefined, TaskFinished, TimerFired, TimerKind,
};
use servo_engine::outputs::{CheckReport, OutputReport, Usage, materialization_of};
use servo_engine::planner::PartitionChoice;
use servo_engine::{
    DataFormat, DepSet, ErrorCode, EventData, Origin, Outcome, OutputState, Positions, RunSource, TaskError,
    TaskOptions,
};

use super::{asset, attempt_id, fingerprint, plan_id, run};
use crate::corpus::AT;
use crate::support::{key, plan_of, task};

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
        by_system: false,
    });
    let of_backfill = EventData::RunCancelRequested(RunCancelRequested {
        run_id,
        reason: "backfill 01JHKM51000000000000000008 was cancelled".to_owned(),
        force: false,
        silent_since: None,
        by_system: true,
    });
    let fired = EventData::TimerFired(TimerFired {
        timer_type: TimerKind::HeartbeatCheck,
        run_id,
        task_key: Some(key("a")),
        attempt: 2,
        fire_at: AT.saturating_add(Millis::from_secs(90)),
        since: Some(AT),
    });
    let of_missing = EventData::ScheduleDefined(ScheduleDefined {
        schedule_id: ScheduleId::from_parts(1_736_899_200_000, 8),
        origin: Origin::Code,
        state_version: 3,
        definition: Arc::new(ScheduleDef {
            partitions: PartitionChoice {
                keys: vec!["2025-01-15".to_owned()],
                ranges: vec!["2025-01-01..2025-01-10".to_owned()],
                latest: true,
                missing: true,
                failed: true,
                stale: true,
            },
            ..super::schedules::schedule()
        }),
    });
    vec![
        ("PlanCreated_config.json", vec![plan]),
        ("PlanCreated_sets.json", vec![with_sets]),
        ("RunCancelRequested_by_system.json", vec![of_backfill]),
        ("RunCancelRequested_silent_since.json", vec![forced]),
        ("RunRequested_check.json", vec![checked]),
        ("RunRequested_retry.json", vec![retried(false), retried(true)]),
        ("ScheduleDefined_partitions.json", vec![of_missing]),
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
    let usage = Usage {
        cpu_ms: 1_200,
        max_rss_bytes: 1 << 30,
        bytes_read: 0,
        bytes_written: 77,
        network_egress_bytes: 0,
    };
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
