//! The operation of a workspace: pauses, settings, retention, refusals, the clock, workers.

use servo_core::{MaterializationId, PartitionKey};
use servo_engine::event::{
    ClockStepped, ExpiredData, NewValue, PauseChanged, RequestRefused, RetentionApplied, SettingsChanged,
    WorkerChanged, WorkerLeft, WorkerLost, WorkerRegistered,
};
use servo_engine::{EventData, SettingOrigin};

use super::asset;
use crate::corpus::AT;

pub(super) fn pause_changed() -> Vec<EventData> {
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

pub(super) fn retention_applied() -> Vec<EventData> {
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
        EventData::RetentionApplied(RetentionApplied { superseded: vec![bare, full], logs_before: None }),
    ]
}

pub(super) fn settings_changed() -> Vec<EventData> {
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

pub(super) fn clock_stepped() -> Vec<EventData> {
    vec![EventData::ClockStepped(ClockStepped { expected: AT, by_ms: -86_400_000 })]
}

pub(super) fn request_refused() -> Vec<EventData> {
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

pub(super) fn worker_registered() -> Vec<EventData> {
    vec![EventData::WorkerRegistered(WorkerRegistered {
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
    })]
}

pub(super) fn worker_changed() -> Vec<EventData> {
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

pub(super) fn worker_left() -> Vec<EventData> {
    vec![EventData::WorkerLeft(WorkerLeft { worker_id: "w-5f3a9c01".into(), number: 4 })]
}

pub(super) fn worker_lost() -> Vec<EventData> {
    let lost = |number, heard_at| {
        EventData::WorkerLost(WorkerLost { worker_id: "w-5f3a9c01".into(), number, heard_at })
    };
    vec![lost(2, None), lost(3, Some(AT))]
}
