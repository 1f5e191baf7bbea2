//! Tasks: what is handed out, what workers report, timers.

use std::sync::Arc;

use servo_core::{MaterializationId, Millis, PartitionKey};
use servo_engine::definitions::Severity;
use servo_engine::event::{
    DispatchEnqueued, DispatchRequested, TaskFinished, TaskHeartbeat, TaskStarted, TimerEnqueued, TimerFired,
    TimerKind, TimerRequested,
};
use servo_engine::{
    ErrorCode, EventData, ExpectedCheck, InputRead, Outcome, PieceRead, PiecesRead, Progress, Provenance,
    TaskError,
};

use super::{attempt_id, run, task_key};
use crate::corpus::AT;

pub(super) fn dispatch_requested() -> Vec<EventData> {
    let run_id = run();
    let attempt_id = attempt_id();
    let task_key = task_key();
    let provenance = Arc::default();
    let bare = DispatchRequested { run_id, task_key, attempt: 1, attempt_id, worker_queue: None, provenance };
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
        unnamed: None,
        data_as_of: None,
        call: None,
    });
    let full = DispatchRequested { worker_queue: Some("big".into()), provenance, ..bare.clone() };
    vec![EventData::DispatchRequested(bare), EventData::DispatchRequested(full)]
}

pub(super) fn dispatch_enqueued() -> Vec<EventData> {
    let run_id = run();
    let attempt_id = attempt_id();
    let task_key = task_key();
    vec![EventData::DispatchEnqueued(DispatchEnqueued { run_id, task_key, attempt: 2, attempt_id })]
}

pub(super) fn timer_requested() -> Vec<EventData> {
    let run_id = run();
    let task_key = task_key();
    let fire_at = AT.saturating_add(Millis::from_minutes(1));
    let timer_type = TimerKind::Retry;
    vec![EventData::TimerRequested(TimerRequested { timer_type, run_id, task_key, attempt: 1, fire_at })]
}

pub(super) fn timer_enqueued() -> Vec<EventData> {
    let run_id = run();
    let task_key = task_key();
    let fire_at = AT.saturating_add(Millis::from_minutes(1));
    let timer_type = TimerKind::Retry;
    vec![EventData::TimerEnqueued(TimerEnqueued { timer_type, run_id, task_key, attempt: 1, fire_at })]
}

pub(super) fn timer_fired() -> Vec<EventData> {
    let run_id = run();
    let task_key = task_key();
    let fire_at = AT.saturating_add(Millis::from_minutes(1));
    let fired = |timer_type, task_key, attempt| {
        EventData::TimerFired(TimerFired { timer_type, run_id, task_key, attempt, fire_at, since: None })
    };
    vec![
        fired(TimerKind::Retry, Some(task_key.clone()), 1),
        fired(TimerKind::HeartbeatCheck, Some(task_key.clone()), 2),
        fired(TimerKind::DispatchAck, Some(task_key), 3),
        fired(TimerKind::RunTimeout, None, 0),
    ]
}

pub(super) fn task_started() -> Vec<EventData> {
    let run_id = run();
    let attempt_id = attempt_id();
    let task_key = task_key();
    let worker_id = "host-1/0".into();
    vec![EventData::TaskStarted(TaskStarted { run_id, task_key, attempt: 1, attempt_id, worker_id })]
}

pub(super) fn task_heartbeat() -> Vec<EventData> {
    let run_id = run();
    let attempt_id = attempt_id();
    let task_key = task_key();
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

pub(super) fn task_finished() -> Vec<EventData> {
    let run_id = run();
    let attempt_id = attempt_id();
    let task_key = task_key();
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
