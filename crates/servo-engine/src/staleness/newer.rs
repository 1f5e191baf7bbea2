//! Partitions of which something that they read is newer than what they were made from.
//!
//! An event decided what an attempt reads (`inputs_as_of`). Whatever has its content since a later event was not read.
//! Outputs of one attempt have one event: those of a function are never newer than each other.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use servo_core::EventId;
use servo_core::partitions::{MappingAt, MappingDef, PartitionContext, PartitionSet};

use super::track::Track;
use crate::definitions::{Definitions, Dep};
use crate::state::{Materialized, PartitionSlots, State};

/// Most partitions that are looked up one by one; of more, those that changed are looked for among them.
const FEW: u128 = 32;

/// The partitions of which something that they read through a dependency is newer.
#[derive(Debug, Clone, Default)]
pub(super) struct Newer {
    pub(super) set: PartitionSet,
    /// How many partitions there were to read, for mappings that read the last of them.
    read_from: u128,
    /// The changes of both sides that it takes into account: up to an event, of a generation.
    own: Option<(u64, EventId)>,
    up: Option<(u64, EventId)>,
}

/// The event that decided what a materialization reads; for one of which nobody said it, its own.
fn as_of(latest: Materialized) -> EventId {
    latest.inputs_as_of().unwrap_or_else(|| latest.event_id())
}

/// Whether content is newer than what a materialization was made from.
pub(crate) fn is_newer(upstream: Materialized, than: Materialized) -> bool {
    let since = upstream.content_since();
    since > as_of(than) && since != than.event_id()
}

/// Takes in what has changed since the last look at the assets of one function, of which tracks are up to date.
pub(super) fn advance(
    definitions: &Definitions,
    tracks: &mut BTreeMap<u32, Track>,
    state: &State,
    unit: &[u32],
    at: PartitionContext<'_>,
) {
    for &asset in unit {
        let Some(track) = tracks.get_mut(&asset) else { continue };
        let mut known = std::mem::take(&mut track.newer);
        let deps = &definitions.asset(asset).deps;
        known.resize_with(deps.len(), Newer::default);
        let tracks_now = &*tracks;
        if let Some(slots) = state.partition_slots(&definitions.asset(asset).key) {
            for (newer, dep) in known.iter_mut().zip(deps) {
                let upstream = definitions.asset(dep.asset);
                let (Some(own), Some(up)) = (tracks_now.get(&asset), tracks_now.get(&dep.asset)) else {
                    continue;
                };
                let Some(up_slots) = state.partition_slots(&upstream.key) else { continue };
                let read_from = upstream.partitions.as_ref().map_or(1, |partitions| partitions.count(at));
                let has_other_last = newer.read_from != read_from && reads_last(&dep.def);
                let look =
                    Look { own, slots, up, up_slots, mapping: dep.mapping.at(at), floor: OnceCell::new() };
                newer.set = look.advance(newer, has_other_last);
                newer.read_from = read_from;
                newer.own = Some((own.generation, own.seen()));
                newer.up = Some((up.generation, up.seen()));
            }
        }
        if let Some(track) = tracks.get_mut(&asset) {
            track.newer = known;
        }
    }
}

/// Whether other partitions may be read as time passes, although nothing is made.
fn reads_last(mapping: &MappingDef) -> bool {
    match mapping {
        MappingDef::Last => true,
        MappingDef::Dims { dims } => dims.values().filter_map(|dim| dim.mapping.as_deref()).any(reads_last),
        MappingDef::Same
        | MappingDef::All
        | MappingDef::Window { .. }
        | MappingDef::Specific { .. }
        | MappingDef::Static { .. }
        | MappingDef::Time => false,
    }
}

/// A look at one dependency.
struct Look<'a> {
    own: &'a Track,
    slots: PartitionSlots<'a>,
    up: &'a Track,
    up_slots: PartitionSlots<'a>,
    mapping: MappingAt<'a>,
    /// The upstream slots whose content is newer than the oldest thing made from any, the newest first.
    floor: OnceCell<Vec<(EventId, u32)>>,
}

impl Look<'_> {
    /// The inputs that are newer now, given those that were newer at the last look.
    fn advance(&self, known: &Newer, anew: bool) -> PartitionSet {
        let since = |track: &Track, at: Option<(u64, EventId)>| {
            at.filter(|(generation, _)| *generation == track.generation && !anew).map(|(_, event)| event)
        };
        let Some((own, up)) = since(self.own, known.own).zip(since(self.up, known.up)) else {
            return self.anew();
        };
        let mut judged = self.own.moved_since(own, self.slots);
        let changed = self.up.moved_since(up, self.up_slots);
        if !changed.is_empty() {
            let readers = self.mapping.downstream(&self.up.set_of(&changed)).set;
            judged.extend(self.own.slots_in(&readers));
            judged.sort_by(|a, b| self.own.digits_of(*a).cmp(self.own.digits_of(*b)));
            judged.dedup();
        }
        self.own.with(&known.set, &judged, |slot| self.is_newer(slot))
    }

    fn anew(&self) -> PartitionSet {
        let changed = self.changed();
        if changed.is_empty() {
            return PartitionSet::EMPTY;
        }
        let judged: Vec<u32> = if changed.len() * 4 < self.own.slots().len() {
            let mut slots: Vec<u32> = changed.iter().map(|(_, slot)| *slot).collect();
            slots.sort_by(|a, b| self.up.digits_of(*a).cmp(self.up.digits_of(*b)));
            let readers = self.mapping.downstream(&self.up.set_of(&slots)).set;
            self.own.slots_in(&readers).collect()
        } else {
            self.own.slots().to_vec()
        };
        let found: Vec<u32> = judged.into_iter().filter(|slot| self.is_newer(*slot)).collect();
        self.own.set_of(&found)
    }

    /// The upstream slots whose content is newer than the oldest thing made from any, the newest first.
    fn changed(&self) -> &[(EventId, u32)] {
        self.floor.get_or_init(|| {
            let made = self.own.slots().iter().filter_map(|slot| self.slots.get(*slot).latest());
            let Some(oldest) = made.map(as_of).min() else { return Vec::new() };
            if self.up.last_change <= oldest {
                return Vec::new();
            }
            let since = |slot: u32| Some((self.up_slots.get(slot).latest()?.content_since(), slot));
            let found = self.up.slots().iter().filter_map(|slot| since(*slot));
            let mut changed: Vec<(EventId, u32)> = found.filter(|(event, _)| *event > oldest).collect();
            changed.sort_unstable_by(|a, b| b.cmp(a));
            changed
        })
    }

    /// Whether anything that the partition in a slot reads is newer than what it was made from.
    fn is_newer(&self, slot: u32) -> bool {
        let Some(made) = self.slots.get(slot).latest() else { return false };
        if self.up.last_change <= as_of(made) {
            return false;
        }
        let read = self.mapping.upstream_of(self.own.digits_of(slot)).set;
        let newer = |slot: u32| self.up_slots.get(slot).latest().is_some_and(|it| is_newer(it, made));
        if read.len() <= FEW {
            return read.iter().filter_map(|digits| self.up.slot_of(&digits)).any(newer);
        }
        let later = self.changed().iter().take_while(|(since, _)| *since > as_of(made));
        later.map(|(_, slot)| *slot).any(|slot| newer(slot) && read.contains(self.up.digits_of(slot)))
    }
}

/// The upstream partitions that are newer than what a partition was made from, through one dependency: the newest
/// first.
pub(super) fn newer_inputs(
    own: Materialized,
    digits: &[u64],
    dep: &Dep,
    up: &Track,
    up_slots: PartitionSlots<'_>,
    at: PartitionContext<'_>,
) -> Vec<u32> {
    let read = dep.mapping.at(at).upstream_of(digits).set;
    let newest = |slot: &u32| up_slots.get(*slot).latest().map(Materialized::content_since);
    let is_newer = |slot: &u32| up_slots.get(*slot).latest().is_some_and(|it| is_newer(it, own));
    let mut found: Vec<u32> = up.slots_in(&read).filter(is_newer).collect();
    found.sort_by_key(|slot| std::cmp::Reverse(newest(slot)));
    found
}
