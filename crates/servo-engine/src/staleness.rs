//! Staleness: which partitions are not what they would be if they were made again now, and why.
//!
//! It is computed from a state when somebody asks, and never stored (ADR-140). A partition is stale for the first of
//! these reasons that holds:
//!
//! 1. it was never made, or was and has expired;
//! 2. its asset is deployed with another code version than the one that made it;
//! 3. something that it reads has other content since the event that decided what was read (ADR-086); content that
//!    was made again and is the same is not newer;
//! 4. something that it reads is itself stale, for whatever reason;
//! 5. its asset is older than its freshness policy allows.
//!
//! Partitions that a dependency reads only as far as they are available are not missed: until they are made they make
//! nobody stale. External assets are never stale, and are newer once a materialization of them is reported. A
//! dependency that was added later counts from the next change of what it reads.
//!
//! [`Staleness`] keeps what it found out and looks only at what has changed since, so that one of a million partitions
//! that was made again costs no look at the others. [`Staleness::look`] gives the sets of stale partitions of some
//! assets and of everything that they are made from.

mod explain;
mod needed;
mod newer;
mod sets;
mod track;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::partitions::{Block, PartitionContext, PartitionSet};
use servo_core::{AssetKey, EventId, PartitionKey, Timestamp};

pub use explain::{Stale, StaleCause};
pub use needed::Needed;
pub(crate) use newer::is_newer;
pub use sets::{StaleReason, StaleSets};

use crate::definitions::Definitions;
use crate::state::State;
use sets::Spread;
use track::Track;

/// Follows a workspace and knows which partitions of its assets are stale.
#[derive(Debug, Clone)]
pub struct Staleness {
    definitions: Arc<Definitions>,
    deployment: u64,
    /// The newest event of the state that it last looked at.
    seen: EventId,
    tracks: Tracks,
}

/// Tracked assets by position: those that were queried, and their upstream.
type Tracks = BTreeMap<u32, Track>;

impl Staleness {
    /// Begins to follow a state; none if nothing is deployed.
    pub fn of(state: &State) -> Option<Self> {
        let deployment = state.deployment()?.number;
        let (definitions, tracks) = (state.checked_definitions()?, Tracks::new());
        Some(Self { definitions, deployment, seen: EventId::NIL, tracks })
    }

    /// Looks at some assets, by position in [`State::checked_definitions`], and at everything that they are made from.
    /// None if nothing is deployed.
    ///
    /// It is meant for states that follow each other; of an older one, or of another deployment, it begins anew.
    pub fn look<'s>(
        &'s mut self,
        state: &'s State,
        assets: impl IntoIterator<Item = u32>,
        now: Timestamp,
    ) -> Option<StaleView<'s>> {
        let head = state.head().last_event;
        if state.deployment()?.number != self.deployment || head < self.seen {
            *self = Self::of(state)?;
        }
        self.seen = head;
        Some(look(&self.definitions, &mut self.tracks, state, assets, now))
    }
}

fn look<'s>(
    definitions: &'s Definitions,
    tracks: &'s mut Tracks,
    state: &'s State,
    assets: impl IntoIterator<Item = u32>,
    now: Timestamp,
) -> StaleView<'s> {
    let at = PartitionContext::new(now, state.dynamic_partitions());
    let mut sets: BTreeMap<u32, StaleSets> = BTreeMap::new();
    for unit in units(definitions, assets) {
        for &asset in &unit {
            tracks.entry(asset).or_default().advance(state, definitions.asset(asset), at);
        }
        newer::advance(definitions, tracks, state, &unit, at);
        Spread { definitions, tracks, state, at }.unit(&unit, &mut sets);
    }
    StaleView { definitions, tracks, state, at, now, sets }
}

/// The partitions to materialize among some, with definitions that need not be deployed.
pub(crate) fn needed(
    state: &State,
    definitions: &Definitions,
    asked: &BTreeMap<u32, PartitionSet>,
    now: Timestamp,
) -> Needed {
    let mut tracks = Tracks::new();
    look(definitions, &mut tracks, state, asked.keys().copied(), now).needed(asked)
}

/// Partitions of an asset that were ever attempted.
#[derive(Debug, Clone, Copy)]
pub struct Attempted<'a> {
    /// Those that are made.
    pub made: &'a PartitionSet,
    /// Those that are made, of which the last attempt failed.
    pub failing: &'a PartitionSet,
    /// Those that were never made.
    pub never_made: &'a PartitionSet,
    /// Made, and too old to count.
    pub expired: &'a PartitionSet,
}

/// The stale partitions at one moment.
pub struct StaleView<'s> {
    definitions: &'s Definitions,
    tracks: &'s Tracks,
    state: &'s State,
    at: PartitionContext<'s>,
    now: Timestamp,
    sets: BTreeMap<u32, StaleSets>,
}

impl StaleView<'_> {
    /// The stale partitions of an asset, by position; none unless it was asked for or is upstream of what was.
    pub fn sets(&self, asset: u32) -> Option<&StaleSets> {
        self.sets.get(&asset)
    }

    /// The partitions of an asset that were ever attempted, by how they fare; none unless it was asked for or is
    /// upstream of what was.
    pub fn attempted(&self, asset: u32) -> Option<Attempted<'_>> {
        let Track { made, failing, never_made, expired, .. } = self.tracks.get(&asset)?;
        Some(Attempted { made, failing, never_made, expired })
    }

    /// Why a partition is stale; none if it is not, or is no partition of what was looked at.
    pub fn reason(&self, asset: u32, partition: Option<&PartitionKey>) -> Option<StaleReason> {
        self.sets.get(&asset)?.reason(&self.digits(asset, partition)?)
    }

    /// The indexes of a partition that exists.
    fn digits(&self, asset: u32, partition: Option<&PartitionKey>) -> Option<Vec<u64>> {
        match (&self.definitions.asset(asset).partitions, partition) {
            (None, None) => Some(Vec::new()),
            (Some(partitions), Some(key)) => {
                let block = partitions.block_of(key, self.at).ok()?;
                Some(block.ranges().iter().map(|range| range.start).collect())
            }
            (None, Some(_)) | (Some(_), None) => None,
        }
    }

    /// The key of a partition that exists; none if the asset has no partitions.
    fn key(&self, asset: u32, digits: &[u64]) -> Option<PartitionKey> {
        let partitions = self.definitions.asset(asset).partitions.as_ref()?;
        partitions.keys_of(&Block::one(digits), self.at).next()
    }

    fn name(&self, asset: u32) -> &AssetKey {
        &self.definitions.asset(asset).key
    }
}

/// Some assets and everything that they are made from, those of one function together, each after what it reads.
fn units(definitions: &Definitions, assets: impl IntoIterator<Item = u32>) -> Vec<Vec<u32>> {
    let mut within: BTreeSet<u32> = assets.into_iter().collect();
    let mut ahead: Vec<u32> = within.iter().copied().collect();
    while let Some(asset) = ahead.pop() {
        let deps = definitions.asset(asset).deps.iter().map(|dep| dep.asset);
        ahead.extend(deps.filter(|dep| within.insert(*dep)));
    }
    let mut units: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for asset in &within {
        units.entry(definitions.maker(*asset)).or_default().push(*asset);
    }
    let mut waits_for: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut readers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (unit, members) in &units {
        let deps = members.iter().flat_map(|asset| &definitions.asset(*asset).deps);
        let read: BTreeSet<u32> =
            deps.map(|dep| definitions.maker(dep.asset)).filter(|of| of != unit).collect();
        read.iter().for_each(|of| readers.entry(*of).or_default().push(*unit));
        waits_for.insert(*unit, read);
    }
    let is_free = |(_, read): &(&u32, &BTreeSet<u32>)| read.is_empty();
    let mut free: Vec<u32> = waits_for.iter().filter(is_free).map(|(unit, _)| *unit).collect();
    let mut order = Vec::with_capacity(units.len());
    while let Some(unit) = free.pop() {
        for reader in readers.remove(&unit).unwrap_or_default() {
            if let Some(read) = waits_for.get_mut(&reader) {
                read.remove(&unit);
                if read.is_empty() {
                    free.push(reader);
                }
            }
        }
        order.extend(units.remove(&unit));
    }
    order
}
