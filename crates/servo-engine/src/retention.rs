//! The rules of retention: which data, logs and quarantined outputs are not kept any more (ADR-106).
//!
//! Pure functions of the settings, of what the tables say was made, and of a time. Superseded data is known to the
//! tables only, so a survey of them proposes what may go, and the engine decides: the latest of a partition, and what
//! an attempt at work reads, is never removed.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::{AssetKey, EventId, MaterializationId, Millis, PartitionKey, RunId, Timestamp};

use crate::event::ExpiredData;
use crate::provenance::PiecesRead;
use crate::rows::QuarantineRow;
use crate::settings::Settings;
use crate::state::{Materialized, State, Task};

/// A materialization, as the tables know it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MadeData {
    pub asset: AssetKey,
    pub partition: Option<PartitionKey>,
    pub id: MaterializationId,
    pub at: Timestamp,
    /// The event that made it count.
    pub event: EventId,
    pub byte_size: Option<u64>,
    /// Whether its data lies where Servo keeps data.
    pub is_stored: bool,
}

/// A superseded materialization that the rules do not keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superseded {
    /// Which, by the name that its asset has now.
    pub data: ExpiredData,
    /// The name that its asset had when it was made.
    pub made_as: AssetKey,
    /// The events between which it was the latest of its partition.
    pub latest_between: (EventId, EventId),
}

/// The superseded materializations that the rules do not keep, oldest first. What is needed by others is among them:
/// see [`Read`] and [`is_needed`].
pub fn superseded(state: &State, now: Timestamp, made: Vec<MadeData>) -> Vec<Superseded> {
    let settings = state.settings();
    let Some(cutoff) = before(now, settings.keep_superseded) else { return Vec::new() };
    let kept = settings.keep_superseded_versions as usize;
    let mut partitions: BTreeMap<(AssetKey, Option<PartitionKey>), Vec<MadeData>> = BTreeMap::new();
    for data in made {
        // Data is where the name of today is.
        let now = state.current_name(&data.asset, data.event);
        partitions.entry((now, data.partition.clone())).or_default().push(data);
    }
    let mut found = Vec::new();
    for ((asset, partition), mut versions) in partitions {
        versions.sort_by_key(|data| data.event);
        let latest = state.latest(&asset, partition.as_ref()).map(Materialized::id);
        // The newest is kept although the state may know a newer one: nobody can say yet when it was superseded.
        for (position, pair) in versions.windows(2).enumerate() {
            let [data, newer] = pair else { continue };
            let newer_versions = versions.len() - 2 - position;
            let is_old = newer.at < cutoff && newer_versions >= kept;
            if is_old && data.is_stored && latest != Some(data.id) {
                let expired = ExpiredData {
                    asset_key: asset.clone(),
                    partition_key: partition.clone(),
                    materialization_id: data.id,
                    byte_size: data.byte_size,
                };
                let (made_as, latest_between) = (data.asset.clone(), (data.event, newer.event));
                found.push(Superseded { data: expired, made_as, latest_between });
            }
        }
    }
    found.sort_by_key(|superseded| superseded.latest_between.0);
    found
}

/// The materializations that were read to make what counts now: data of its lineage is kept with it.
#[derive(Debug, Default)]
pub struct Read {
    named: BTreeSet<(MaterializationId, AssetKey)>,
    /// Very many partitions of an asset that were read together, with the event that decided which.
    counted: BTreeSet<(AssetKey, EventId)>,
}

impl Read {
    /// Adds a materialization by name.
    pub fn name(&mut self, asset: AssetKey, id: MaterializationId) {
        self.named.insert((id, asset));
    }

    /// Adds all partitions of an asset as they were at an event.
    pub fn count(&mut self, asset: AssetKey, as_of: EventId) {
        self.counted.insert((asset, as_of));
    }

    /// Whether a superseded materialization is among them.
    pub fn has(&self, superseded: &Superseded) -> bool {
        let Superseded { data, made_as, latest_between: (from, to) } = superseded;
        // It may have been read under either name.
        [&data.asset_key, made_as].into_iter().any(|asset| {
            self.named.contains(&(data.materialization_id, asset.clone()))
                || self.counted.range((asset.clone(), *from)..(asset.clone(), *to)).next().is_some()
        })
    }
}

/// The data that attempts at work were told to read, and what was made of which the tables may not know yet: the inputs
/// of what counts, as far as its task is in memory.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    named: BTreeSet<(MaterializationId, AssetKey)>,
    /// Assets of which very many partitions are read: nothing of them is removed meanwhile.
    assets: BTreeSet<AssetKey>,
}

impl InUse {
    pub(crate) fn of(state: &State) -> Self {
        let mut in_use = Self::default();
        let made = state.runs().flat_map(|run| run.tasks.iter()).filter(|task| counts(state, task));
        let read = |task: &'_ Task| {
            let as_of = task.inputs_as_of.unwrap_or(EventId::NIL);
            let inputs = task.provenance.inputs.iter();
            inputs
                .map(|read| (state.current_name(&read.asset, as_of), read.pieces.clone()))
                .collect::<Vec<_>>()
        };
        for (asset, pieces) in open_attempts(state).chain(made).flat_map(read) {
            match pieces {
                PiecesRead::Named(pieces) => {
                    in_use.named.extend(pieces.iter().map(|piece| (piece.id, asset.clone())));
                }
                PiecesRead::Counted { .. } => {
                    in_use.assets.insert(asset);
                }
            }
        }
        in_use
    }
}

/// Whether data must stay although the rules do not keep it: it counts, or an attempt at work reads it.
pub(crate) fn is_needed(state: &State, in_use: &InUse, data: &ExpiredData) -> bool {
    let latest = state.latest(&data.asset_key, data.partition_key.as_ref()).map(Materialized::id);
    latest == Some(data.materialization_id)
        || in_use.assets.contains(&data.asset_key)
        || in_use.named.contains(&(data.materialization_id, data.asset_key.clone()))
}

/// Of superseded materializations those that nothing needs: neither what counts was made of them, nor does an attempt at
/// work read them.
pub fn removable(state: &State, superseded: Vec<Superseded>, read: &Read) -> Vec<ExpiredData> {
    let in_use = InUse::of(state);
    let is_kept = |found: &Superseded| read.has(found) || is_needed(state, &in_use, &found.data);
    superseded.into_iter().filter(|found| !is_kept(found)).map(|found| found.data).collect()
}

/// Quarantined outputs that have waited for review for too long.
pub fn expired_quarantine(state: &State, now: Timestamp) -> impl Iterator<Item = &QuarantineRow> {
    let cutoff = before(now, state.settings().keep_quarantined);
    let waits = |row: &&QuarantineRow| row.approved_event_id.is_none();
    state.quarantine.rows().filter(waits).filter(move |row| cutoff.is_some_and(|at| row.quarantined_at < at))
}

/// Logs that nobody has written to since this time are not kept; none if all are. Those of attempts at work are.
pub fn logs_before(state: &State, now: Timestamp) -> Option<Timestamp> {
    let begun = |task: &Task| task.execution.as_ref().map_or(task.transition_at, |it| it.started_at);
    let oldest = open_attempts(state).map(begun).min();
    before(now, state.settings().keep_logs).map(|cutoff| oldest.map_or(cutoff, |oldest| oldest.min(cutoff)))
}

/// Rows of history whose time is earlier are not kept; none if all are.
pub fn history_before(settings: &Settings, now: Timestamp) -> Option<Timestamp> {
    before(now, settings.keep_history)
}

/// The time before which nothing is kept; none if everything is.
fn before(now: Timestamp, keep: Millis) -> Option<Timestamp> {
    (keep > Millis::ZERO).then(|| now.saturating_sub(keep))
}

/// Whether the latest of some asset was made by a task.
fn counts(state: &State, task: &Task) -> bool {
    let is_latest = |asset: AssetKey| {
        let asset = state.current_name(&asset, task.version);
        state.latest(&asset, task.key.partition().as_ref()).map(Materialized::id) == task.materialization
    };
    task.materialization.is_some() && task.assets().any(is_latest)
}

fn open_attempts(state: &State) -> impl Iterator<Item = &Task> {
    let active = state.runs().filter(|run| !run.state.is_terminal());
    active.flat_map(|run| run.tasks.iter()).filter(|task| task.has_open_attempt())
}

/// The runs that read data now.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    named: BTreeMap<(MaterializationId, AssetKey), RunId>,
    /// Of assets of which very many partitions are read.
    assets: BTreeMap<AssetKey, RunId>,
}

impl Readers {
    pub(crate) fn of(state: &State) -> Self {
        let mut readers = Self::default();
        for run in state.runs().filter(|run| !run.state.is_terminal()) {
            let open = run.tasks.iter().filter(|task| task.has_open_attempt());
            for read in open.flat_map(|task| &task.provenance.inputs) {
                match &read.pieces {
                    PiecesRead::Named(pieces) => {
                        let named = pieces.iter().map(|piece| ((piece.id, read.asset.clone()), run.id));
                        readers.named.extend(named);
                    }
                    PiecesRead::Counted { .. } => {
                        readers.assets.insert(read.asset.clone(), run.id);
                    }
                }
            }
        }
        readers
    }

    /// A run that reads something of an asset now.
    pub(crate) fn of_asset(&self, asset: &AssetKey) -> Option<RunId> {
        let named = || self.named.iter().find(|((_, of), _)| of == asset).map(|(_, run)| *run);
        self.assets.get(asset).copied().or_else(named)
    }

    /// A run that reads a materialization now.
    pub(crate) fn of_data(&self, asset: &AssetKey, id: MaterializationId) -> Option<RunId> {
        self.named.get(&(id, asset.clone())).or_else(|| self.assets.get(asset)).copied()
    }
}
