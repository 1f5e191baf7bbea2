//! Backfills and their chunks.

use std::collections::BTreeMap;

use servo_core::BackfillId;
use servo_engine::event::{
    BackfillChunkPlanned, BackfillCreated, BackfillStateChanged, BackfillTarget, FailureThreshold,
};
use servo_engine::planner::PartitionChoice;
use servo_engine::{BackfillState, EventData};

use super::{asset, days, fingerprint, run};
use crate::corpus::AT;

pub(super) fn backfill_created() -> Vec<EventData> {
    let plain = BackfillCreated {
        backfill_id: backfill_id(),
        client_request_id: None,
        request_fingerprint: fingerprint("8"),
        asset_selection: "raw.events".to_owned(),
        partition_selector: PartitionChoice::default(),
        as_of: AT,
        targets: vec![BackfillTarget { asset: asset(), partitions: days(), packed: None }],
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

pub(super) fn backfill_chunk_planned() -> Vec<EventData> {
    let run_id = run();
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

pub(super) fn backfill_state_changed() -> Vec<EventData> {
    vec![EventData::BackfillStateChanged(BackfillStateChanged {
        backfill_id: backfill_id(),
        from_state: BackfillState::Running,
        to_state: BackfillState::Failed,
        state_version: 3,
        reason: "1 partition was not made".to_owned(),
    })]
}

fn backfill_id() -> BackfillId {
    BackfillId::from_parts(1_736_899_200_000, 9)
}
