//! Requests to wipe partitions, to say how they fare, and to undo that (ADR-150).

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::{AssetKey, PartitionKey};

use super::pauses::LONGEST;
use super::{Answer, Decision};
use crate::command::{Change, MarkPartitions, PartitionsReply, Reply, RestorePartitions, WipePartitions};
use crate::event::{EventData, KeyRange, PartitionsMarked, PartitionsRestored, PartitionsWiped};
use crate::refusal::Refusal;
use crate::retention::Readers;
use crate::state::{Materialized, State, making};

/// Ranges that one event names at most: it stays far below the size of a batch.
const MAX_RANGES: usize = 20_000;

/// Partitions that are wiped with their data at once: each is a directory that is removed.
const MAX_WITH_DATA: usize = 100_000;

/// Partitions that are marked at once: each is named.
const MAX_MARKED: usize = 10_000;

pub(super) fn wipe(state: &State, command: &WipePartitions) -> Decision {
    if let Err(refusal) = short(&command.reason) {
        return Decision::refuse(refusal);
    }
    let event = match wiped(state, command) {
        Ok(Some(event)) => event,
        Ok(None) => return unchanged(),
        Err(refusal) => return Decision::refuse(refusal),
    };
    Decision {
        answer: Answer::Partitions(0, event.count),
        events: vec![EventData::PartitionsWiped(event)],
        principal: command.caller.principal.clone(),
    }
}

fn unchanged() -> Decision {
    Decision::reply(Reply::Partitions(PartitionsReply { change: Change::Duplicate, added: 0, removed: 0 }))
}

/// The event that wipes what is known of these partitions; none if nothing is.
fn wiped(state: &State, command: &WipePartitions) -> Result<Option<PartitionsWiped>, Refusal> {
    let asset = &command.asset;
    let known = known(state, asset);
    let selected: BTreeSet<&str> = command.partitions.iter().map(|key| text(key.as_ref())).collect();
    let gone = known.iter().filter(|text| selected.contains(&***text)).count();
    if gone == 0 {
        return Ok(None);
    }
    if !command.force {
        not_busy(state, command, &selected)?;
    }
    let limit = if command.keep_data { usize::MAX } else { MAX_WITH_DATA };
    if gone > limit {
        return Err(Refusal::TooManyToChange { asset: asset.clone(), count: gone, limit });
    }
    let partitions = ranges(&known, &selected);
    if partitions.len() > MAX_RANGES {
        let count = partitions.len();
        return Err(Refusal::TooManyToChange { asset: asset.clone(), count, limit: MAX_RANGES });
    }
    Ok(Some(PartitionsWiped {
        asset_key: asset.clone(),
        after: state.head().last_event,
        partitions,
        count: gone as u64,
        keep_data: command.keep_data,
        reason: command.reason.clone(),
    }))
}

/// The texts of all partitions of an asset that the state knows something of, in order.
fn known(state: &State, asset: &AssetKey) -> BTreeSet<Arc<str>> {
    let of_status = state.statuses.keys_of(asset).map(Option::unwrap_or_default);
    let mut known: BTreeSet<Arc<str>> = of_status.collect();
    known.extend(state.statuses.priors(asset).map(|(text, _)| text.unwrap_or_default().into()));
    for run in state.runs().filter(|run| !run.state.is_terminal()) {
        let made = run.tasks.iter().filter(|task| task.has_open_attempt());
        let made = made.filter(|task| task.assets().any(|made| made == *asset));
        known.extend(made.map(|task| Arc::from(task.key.partition_str().unwrap_or_default())));
    }
    let blocked = state.quarantine.rows().filter(|row| row.asset_key == *asset);
    known.extend(blocked.map(|row| Arc::from(text(row.partition_key.as_ref()))));
    known
}

/// Runs of known partitions that are all selected. The text of an asset without partitions is no key and makes none.
fn ranges(known: &BTreeSet<Arc<str>>, selected: &BTreeSet<&str>) -> Vec<KeyRange> {
    let key = |text: &str| PartitionKey::parse(text).expect("the text of a partition key parses");
    let mut ranges = Vec::new();
    let mut open: Option<(&str, &str)> = None;
    let mut close = |open: &mut Option<(&str, &str)>| {
        if let Some((from, to)) = open.take().filter(|(from, _)| !from.is_empty()) {
            ranges.push(KeyRange { from: key(from), to: (from != to).then(|| key(to)) });
        }
    };
    for text in known.iter().map(|text| &**text) {
        if selected.contains(text) {
            open = Some((open.map_or(text, |(from, _)| from), text));
        } else {
            close(&mut open);
        }
    }
    close(&mut open);
    ranges
}

/// Refuses to wipe what is being made, released or, with its data, read.
fn not_busy(state: &State, command: &WipePartitions, selected: &BTreeSet<&str>) -> Result<(), Refusal> {
    let asset = &command.asset;
    let is_selected = |partition: Option<&str>| selected.contains(partition.unwrap_or_default());
    let mut at_work = making(state, asset).filter(|(_, task)| is_selected(task.key.partition_str()));
    if let Some((place, task)) = at_work.next() {
        return Err(Refusal::PartitionBusy {
            asset: asset.clone(),
            partition: shown(task.key.partition().as_ref()),
            run_id: place.run,
            what: "is being made",
        });
    }
    let is_selected = |partition: Option<&PartitionKey>| selected.contains(text(partition));
    let mut released = state.approved().filter(|row| row.asset_key == *asset);
    if let Some(row) = released.find(|row| is_selected(row.partition_key.as_ref())) {
        return Err(Refusal::PartitionBusy {
            asset: asset.clone(),
            partition: shown(row.partition_key.as_ref()),
            run_id: row.run_id,
            what: "was approved and is being released, made",
        });
    }
    if command.keep_data {
        return Ok(());
    }
    let readers = Readers::of(state);
    for partition in &command.partitions {
        let latest = state.latest(asset, partition.as_ref()).map(Materialized::id);
        if let Some(run_id) = latest.and_then(|id| readers.of_data(asset, id)) {
            let (asset, partition) = (asset.clone(), shown(partition.as_ref()));
            return Err(Refusal::PartitionBusy { asset, partition, run_id, what: "is being read" });
        }
    }
    Ok(())
}

pub(super) fn mark(state: &State, command: &MarkPartitions) -> Decision {
    if let Err(refusal) = short(&command.reason) {
        return Decision::refuse(refusal);
    }
    if let Err(stale) = command.basis.check(state) {
        return Decision::refuse(Refusal::StalePlan(stale));
    }
    let count = command.partitions.iter().len();
    if count > MAX_MARKED {
        let asset = command.asset.clone();
        return Decision::refuse(Refusal::TooManyToChange { asset, count, limit: MAX_MARKED });
    }
    let event = PartitionsMarked {
        asset_key: command.asset.clone(),
        after: state.head().last_event,
        partitions: command.partitions.clone(),
        outcome: command.outcome,
        reason: command.reason.clone(),
    };
    Decision {
        answer: Answer::Partitions(count.max(1) as u64, 0),
        events: vec![EventData::PartitionsMarked(event)],
        principal: command.caller.principal.clone(),
    }
}

pub(super) fn restore(state: &State, command: &RestorePartitions) -> Decision {
    let undoable = state.undoable(&command.asset);
    let found = match command.change {
        Some(change) => undoable.iter().find(|(known, ..)| *known == change),
        None => undoable.last(),
    };
    let Some((change, _, count)) = found.copied() else {
        let asset = command.asset.clone();
        return Decision::refuse(Refusal::NothingToUndo { asset });
    };
    let event = PartitionsRestored { asset_key: command.asset.clone(), change, count };
    Decision {
        answer: Answer::Partitions(count, 0),
        events: vec![EventData::PartitionsRestored(event)],
        principal: command.caller.principal.clone(),
    }
}

fn short(reason: &str) -> Result<(), Refusal> {
    match reason.chars().count() > LONGEST {
        true => Err(Refusal::LongReason { limit: LONGEST }),
        false => Ok(()),
    }
}

fn text(partition: Option<&PartitionKey>) -> &str {
    partition.map_or("", PartitionKey::canonical)
}

/// The partition as people write it, behind a space.
fn shown(partition: Option<&PartitionKey>) -> String {
    partition.map_or_else(String::new, |key| format!(" {key}"))
}
