//! Partitions, what waits for review, and definitions.

use std::collections::BTreeSet;

use servo_core::PartitionKey;

use super::{Violation, ensure, same};
use crate::lifecycle::DataStatus;
use crate::state::{Materialized, PartitionCounts, State};

pub(super) fn check(state: &State) -> Result<(), Violation> {
    let limit = state.settings().max_dynamic_partitions as usize;
    for (name, keys) in state.dynamic_partitions() {
        ensure(keys.is_sorted_by(|a, b| a < b), "keys of dynamic partitions are sorted, each once", || {
            format!("{name}: {keys:?}")
        })?;
        ensure(keys.len() <= limit, "dynamic partitions stay within the limit", || {
            format!("{name}: {} of {limit}", keys.len())
        })?;
    }
    let workspace = || state.workspace().as_str().to_owned();
    let counted = state.deployment().map_or(0, |deployment| deployment.assets as usize);
    same("a deployment counts its assets right", workspace, counted, state.definitions().count())?;
    check_statuses(state)?;
    check_quarantine(state)
}

fn check_statuses(state: &State) -> Result<(), Violation> {
    for (asset, counts) in state.attempted_assets() {
        let mut counted = PartitionCounts::default();
        for (partition, status) in state.partition_statuses(asset) {
            let about = || format!("{} {partition:?}", asset.canonical());
            *match status.status() {
                DataStatus::NeverMaterialized => &mut counted.never,
                DataStatus::Materialized => &mut counted.materialized,
                DataStatus::LastAttemptFailed => &mut counted.failing,
                DataStatus::Expired => &mut counted.expired,
            } += 1;
            let key = partition.as_deref().map(PartitionKey::parse).transpose();
            let key = key.map_err(|error| Violation {
                invariant: "a partition is found by the text of its key",
                seen: format!("{}: {error}", about()),
            })?;
            same("a status is found by its key", about, state.latest(asset, key.as_ref()), status.latest())?;
            let last = status.last_attempt().event_id;
            ensure(
                status.latest().is_none_or(|latest| latest.event_id() <= last),
                "the last attempt is not before the latest materialization",
                about,
            )?;
        }
        let about = || asset.canonical().to_owned();
        same("partitions are counted right", about, counts, counted)?;
        same("partitions are counted once", about, state.partition_counts(asset), counted)?;
    }
    Ok(())
}

fn check_quarantine(state: &State) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    for row in state.quarantine() {
        let about = || format!("{} {:?}", row.asset_key.canonical(), row.partition_key);
        let is_first = seen.insert((&row.asset_key, &row.partition_key));
        ensure(is_first, "of each partition one waits for review", about)?;
        let latest = state.latest(&row.asset_key, row.partition_key.as_ref()).map(Materialized::id);
        ensure(
            latest != Some(row.materialization_id),
            "something waits for review or counts, not both",
            about,
        )?;
    }
    Ok(())
}
