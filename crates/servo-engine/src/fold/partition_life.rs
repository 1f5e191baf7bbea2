//! Partitions that are wiped, marked, or given back their status (ADR-150), or expire (ADR-182).
//!
//! A wipe is later than every attempt that was dispatched before it: those that are still at work, and outputs that
//! were approved and are not released yet, do not count any more, however they end. What a wipe that kept the data or a
//! mark has replaced is kept beside the status until something else happens to the partition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{AssetKey, PartitionKey, RunId};

use super::{Applied, At, Ignored, freshness, outputs, retention, sensors};
use crate::derive::marked_id;
use crate::effect::{Effect, Expired};
use crate::event::{KeyRange, PartitionsExpired, PartitionsMarked, PartitionsRestored, PartitionsWiped};
use crate::lifecycle::{AttemptOutcome, DataStatus};
use crate::rows::RemovalRow;
use crate::state::{
    LastAttempt, Materialization, Materialized, PartitionStatus, PriorStatus, State, TaskRef, making,
};

/// The run of what no run has done.
const NO_RUN: RunId = RunId::NIL;

/// A partition of an asset, or an asset without partitions.
type Place = Option<PartitionKey>;

pub(super) fn wiped(state: &mut State, at: At, payload: &PartitionsWiped, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    let asset = &payload.asset_key;
    let ranges = Ranges::new(&payload.partitions);
    if !planted::has(Mistake::WipeUndoneByLateResult) {
        void_attempts(state, at, asset, &ranges);
    }
    void_outputs(state, asset, &ranges, payload.keep_data);
    let mut expired: BTreeMap<Place, Option<PartitionStatus>> = BTreeMap::new();
    for place in ranges.places(state.statuses.priors(asset).map(|(text, _)| text)) {
        if payload.keep_data && has_expired(state, asset, &place) {
            expired.insert(place.clone(), before(state, asset, &place));
        }
        // Only one step can be undone; and what was kept before goes with the rest.
        let prior = state.statuses.take_prior(asset, place.as_ref());
        state.changes.undo.insert((asset.clone(), place.clone()));
        if let Some(latest) = prior.and_then(|prior| prior.status?.latest())
            && !payload.keep_data
            && state.latest(asset, place.as_ref()).is_none_or(|known| known.id() != latest.id())
        {
            expire(state, at, asset, &place, &latest);
        }
    }
    for place in ranges.places(state.statuses.keys_of(asset)) {
        let removed = state.change_status(asset, place.as_ref(), |all| all.remove(asset, place.as_ref()));
        let Some(status) = removed else { continue };
        state.changes.statuses.insert((asset.clone(), place.clone()));
        fact(state, asset, &place);
        if payload.keep_data {
            let status = expired.remove(&place).unwrap_or(Some(status));
            let prior = PriorStatus { change: at.id, at: at.time, status };
            state.statuses.set_prior(asset, place.as_ref(), prior);
            state.changes.undo.insert((asset.clone(), place));
        } else if let Some(latest) = status.latest() {
            expire(state, at, asset, &place, &latest);
        }
    }
    freshness::replaced(state, at, asset);
    Applied::Yes
}

/// The results of attempts that are at work on these partitions do not count.
fn void_attempts(state: &mut State, at: At, asset: &AssetKey, ranges: &Ranges<'_>) {
    let at_work = making(state, asset).filter(|(_, task)| ranges.contain(task.key.partition().as_ref()));
    let at_work: Vec<TaskRef> = at_work.map(|(place, _)| place).collect();
    for TaskRef { run, task } in at_work {
        state.change_task(run, task, at.id, |task| {
            let voided = task.voided.iter().cloned().chain([asset.clone()]);
            task.voided = voided.collect::<BTreeSet<_>>().into_iter().collect();
        });
    }
}

/// Outputs in quarantine that were approved never count; with the data of a partition all of its go.
fn void_outputs(state: &mut State, asset: &AssetKey, ranges: &Ranges<'_>, keep_data: bool) {
    let goes = |row: &&crate::rows::QuarantineRow| {
        row.asset_key == *asset
            && ranges.contain(row.partition_key.as_ref())
            && (!keep_data || row.approved_event_id.is_some())
    };
    let gone: Vec<_> = state.quarantine.rows().filter(goes).map(|row| row.materialization_id).collect();
    for id in gone {
        state.changes.quarantine.insert((asset.clone(), id));
        if let Some(row) = state.quarantine.take(asset, id) {
            outputs::drop_quarantined(state, row);
        }
    }
}

/// The data of what was the latest goes, once this is durable.
fn expire(state: &mut State, at: At, asset: &AssetKey, place: &Place, latest: &Materialized) {
    if !latest.has_data() {
        return;
    }
    state.changes.appended.removals.push(RemovalRow {
        materialization_id: latest.id(),
        asset_key: asset.clone(),
        partition_key: place.clone(),
        byte_size: None,
        removed_at: at.time,
        row_version: at.id,
    });
    state.changes.effect(Effect::Expire(Expired {
        asset: asset.clone(),
        partition: place.clone(),
        materialization_id: latest.id(),
        was_latest: true,
    }));
}

pub(super) fn marked(state: &mut State, at: At, payload: &PartitionsMarked, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    let asset = &payload.asset_key;
    let places: Vec<Place> = match payload.partitions.is_empty() {
        true => vec![None],
        false => payload.partitions.iter().cloned().map(Some).collect(),
    };
    let last = LastAttempt { outcome: payload.outcome, run_id: NO_RUN, at: at.time, event_id: at.id };
    let deployed = state.definitions.get(asset);
    let code_version: Option<Arc<str>> =
        deployed.and_then(|asset| asset.code_version.as_deref().map(Arc::from));
    for place in places {
        let is_expired = has_expired(state, asset, &place);
        let before = before(state, asset, &place);
        let mut latest = before.as_ref().and_then(PartitionStatus::latest);
        if is_expired && payload.outcome == AttemptOutcome::Failed {
            // What has expired counts again only if somebody says that it is good.
            latest = None;
        }
        let mut is_new = false;
        if latest.is_none() && payload.outcome == AttemptOutcome::Succeeded {
            is_new = true;
            latest = Some(state.statuses.marked(&Materialization {
                id: marked_id(at.id, asset, place.as_ref()),
                format: None,
                run_id: NO_RUN,
                at: at.time,
                event_id: at.id,
                // As good as if it was made now, by the code that is deployed, from everything that there is.
                inputs_as_of: Some(at.id),
                code_version: code_version.clone(),
                counts_from: at.id,
                content: None,
                data_as_of: at.time,
            }));
        }
        let prior = PriorStatus { change: at.id, at: at.time, status: before };
        state.statuses.set_prior(asset, place.as_ref(), prior);
        put(state, asset, place.as_ref(), PartitionStatus::of(latest, last));
        state.changes.undo.insert((asset.clone(), place.clone()));
        state.changes.statuses.insert((asset.clone(), place.clone()));
        if let Some(latest) = latest.filter(|_| is_new) {
            sensors::materialized(state, at, asset, place.as_ref(), latest.id(), NO_RUN);
        }
    }
    freshness::replaced(state, at, asset);
    Applied::Yes
}

pub(super) fn restored(state: &mut State, at: At, payload: &PartitionsRestored) -> Applied {
    let asset = &payload.asset_key;
    let of_change = state.statuses.priors(asset).filter(|(_, prior)| prior.change == payload.change);
    let places: Vec<Place> = of_change.map(|(text, _)| parsed(text)).collect();
    if places.is_empty() {
        return Applied::No(Ignored::Duplicate);
    }
    for place in places {
        let Some(prior) = state.statuses.take_prior(asset, place.as_ref()) else { continue };
        state.changes.undo.insert((asset.clone(), place.clone()));
        state.changes.statuses.insert((asset.clone(), place.clone()));
        match prior.status {
            // Its row is newer than the one that it takes the place of, so its last attempt is as of now.
            Some(status) => {
                let mut last = LastAttempt { event_id: at.id, ..status.last_attempt() };
                if has_expired(state, asset, &place) {
                    // It is kept for as long again from now on, or it would expire at once.
                    (last.run_id, last.at) = (NO_RUN, at.time);
                }
                let latest = status.latest();
                put(state, asset, place.as_ref(), PartitionStatus::of(latest, last));
            }
            None => {
                drop(state.change_status(asset, place.as_ref(), |all| all.remove(asset, place.as_ref())));
            }
        }
        fact(state, asset, &place);
    }
    freshness::replaced(state, at, asset);
    Applied::Yes
}

/// Expires partitions: they are missing from now on. A running attempt replaces them all the same.
pub(super) fn expired(state: &mut State, at: At, payload: &PartitionsExpired, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    let asset = &payload.asset_key;
    let places: Vec<Place> = match payload.partitions.is_empty() {
        true => vec![None],
        false => payload.partitions.iter().cloned().map(Some).collect(),
    };
    let last =
        LastAttempt { outcome: AttemptOutcome::Succeeded, run_id: NO_RUN, at: at.time, event_id: at.id };
    for place in places {
        let status = state.statuses.get(asset, place.as_ref());
        let is_due =
            |status: &PartitionStatus| status.counts_since().is_some_and(|since| since <= payload.made_by);
        let Some(status) = status.filter(is_due) else { continue };
        let prior = PriorStatus { change: at.id, at: at.time, status: Some(status) };
        state.statuses.set_prior(asset, place.as_ref(), prior);
        put(state, asset, place.as_ref(), PartitionStatus::expired(last));
        state.changes.undo.insert((asset.clone(), place.clone()));
        state.changes.statuses.insert((asset.clone(), place.clone()));
        fact(state, asset, &place);
    }
    freshness::replaced(state, at, asset);
    Applied::Yes
}

fn has_expired(state: &State, asset: &AssetKey, place: &Place) -> bool {
    let status = state.statuses.get(asset, place.as_ref());
    status.is_some_and(|status| status.status() == DataStatus::Expired)
}

/// The status of a partition; of one that has expired, the status that it had.
fn before(state: &State, asset: &AssetKey, place: &Place) -> Option<PartitionStatus> {
    if has_expired(state, asset, place)
        && let Some(prior) = state.statuses.prior(asset, place.as_ref())
    {
        return prior.status.clone();
    }
    state.statuses.get(asset, place.as_ref())
}

fn put(state: &mut State, asset: &AssetKey, place: Option<&PartitionKey>, status: PartitionStatus) {
    state.change_status(asset, place, |all| all.put(asset, place, status));
}

/// Conditions are evaluated with what has become of a partition.
fn fact(state: &mut State, asset: &AssetKey, place: &Place) {
    if !state.conditions.is_empty() {
        state.changes.facts.partitions.insert((asset.clone(), place.clone()));
    }
}

/// Ranges of partitions by the canonical text of their keys; none stand for an asset without partitions.
pub(crate) struct Ranges<'a>(&'a [KeyRange]);

impl<'a> Ranges<'a> {
    pub(crate) fn new(ranges: &'a [KeyRange]) -> Self {
        Self(ranges)
    }

    fn contain(&self, place: Option<&PartitionKey>) -> bool {
        self.contain_text(place.map(PartitionKey::canonical))
    }

    /// Ranges are in order and do not overlap.
    fn contain_text(&self, text: Option<&str>) -> bool {
        let Some(text) = text else { return self.0.is_empty() };
        let after = self.0.partition_point(|range| range.last().canonical() < text);
        self.0.get(after).is_some_and(|range| range.from.canonical() <= text)
    }

    fn places<T: AsRef<str>>(&self, texts: impl Iterator<Item = Option<T>>) -> Vec<Place> {
        let is_contained = |text: &Option<T>| self.contain_text(text.as_ref().map(AsRef::as_ref));
        texts.filter(is_contained).map(|text| parsed(text.as_ref().map(AsRef::as_ref))).collect()
    }
}

fn parsed(text: Option<&str>) -> Place {
    text.map(|text| PartitionKey::parse(text).expect("the text of a partition key parses"))
}
