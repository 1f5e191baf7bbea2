//! From what is stale by itself to everything that is made from it.

use std::collections::BTreeMap;

use servo_core::partitions::{Block, MappingDef, PartitionContext, PartitionSet};
use servo_core::planted::{self, Mistake};

use super::track::Track;
use crate::definitions::{Asset, Definitions, Dep};
use crate::freshness::evaluate_with;
use crate::lifecycle::FreshnessStatus;
use crate::state::State;

/// Why a partition is stale: the first that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StaleReason {
    /// It was never made.
    NeverMade,
    /// It was made longer ago than its asset keeps it.
    Expired,
    /// Another version of its code is deployed than the one that made it.
    CodeChanged,
    /// Something that it reads has changed since.
    UpstreamNewer,
    /// Something that it reads is stale.
    UpstreamStale,
    /// Its asset is older than its freshness policy allows.
    FreshnessMissed,
}

impl StaleReason {
    /// All of them, in the order in which they are tested.
    pub const ALL: [Self; 6] = [
        Self::NeverMade,
        Self::Expired,
        Self::CodeChanged,
        Self::UpstreamNewer,
        Self::UpstreamStale,
        Self::FreshnessMissed,
    ];

    /// Its name in tables and interfaces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverMade => "NEVER_MADE",
            Self::Expired => "EXPIRED",
            Self::CodeChanged => "CODE_CHANGED",
            Self::UpstreamNewer => "UPSTREAM_NEWER",
            Self::UpstreamStale => "UPSTREAM_STALE",
            Self::FreshnessMissed => "FRESHNESS_MISSED",
        }
    }
}

/// The stale partitions of an asset by reason; no partition is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StaleSets {
    pub never_made: PartitionSet,
    pub expired: PartitionSet,
    pub code_changed: PartitionSet,
    pub upstream_newer: PartitionSet,
    pub upstream_stale: PartitionSet,
    pub freshness_missed: PartitionSet,
}

impl StaleSets {
    /// Those of one reason.
    pub fn of(&self, reason: StaleReason) -> &PartitionSet {
        match reason {
            StaleReason::NeverMade => &self.never_made,
            StaleReason::Expired => &self.expired,
            StaleReason::CodeChanged => &self.code_changed,
            StaleReason::UpstreamNewer => &self.upstream_newer,
            StaleReason::UpstreamStale => &self.upstream_stale,
            StaleReason::FreshnessMissed => &self.freshness_missed,
        }
    }

    /// All of them.
    pub fn all(&self) -> PartitionSet {
        self.made().union(&self.never_made).union(&self.expired)
    }

    /// Those that are made, and stale.
    pub fn made(&self) -> PartitionSet {
        self.by_themselves_made().union(&self.upstream_stale)
    }

    /// Those that making them again, and nothing else, brings up to date.
    pub fn by_themselves(&self) -> PartitionSet {
        self.by_themselves_made().union(&self.never_made).union(&self.expired)
    }

    fn by_themselves_made(&self) -> PartitionSet {
        self.code_changed.union(&self.upstream_newer).union(&self.freshness_missed)
    }

    /// Why a partition is stale, given by its index along each dimension.
    pub fn reason(&self, index: &[u64]) -> Option<StaleReason> {
        StaleReason::ALL.into_iter().find(|reason| self.of(*reason).contains(index))
    }
}

/// Follows staleness from assets to what is made from them.
pub(super) struct Spread<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) tracks: &'a BTreeMap<u32, Track>,
    pub(super) state: &'a State,
    pub(super) at: PartitionContext<'a>,
}

impl Spread<'_> {
    /// The stale partitions of the assets of one function. What they read of others is known.
    pub(super) fn unit(&self, unit: &[u32], sets: &mut BTreeMap<u32, StaleSets>) {
        for &asset in unit {
            sets.insert(asset, self.by_itself(asset));
        }
        // Outputs of one function may read each other in any order, and an asset itself in several ways.
        let own = |asset: &u32| {
            self.definitions.asset(*asset).deps.iter().filter(|dep| unit.contains(&dep.asset)).count()
        };
        let reads_itself = unit.iter().map(own).sum::<usize>() > 1;
        loop {
            let mut has_more = false;
            for &asset in unit.iter().filter(|asset| !self.definitions.asset(**asset).def.external) {
                let more = self.through_upstream(asset, sets);
                let known = sets.get_mut(&asset).filter(|_| !more.is_empty());
                if let Some(known) = known {
                    known.upstream_stale = known.upstream_stale.union(&more);
                    // What is late as well is stale for the reason that is tested first.
                    known.freshness_missed = known.freshness_missed.difference(&more);
                    has_more = true;
                }
            }
            if !has_more || !reads_itself {
                break;
            }
        }
    }

    /// Those that are stale whatever becomes of what they read.
    fn by_itself(&self, asset: u32) -> StaleSets {
        let definition = self.definitions.asset(asset);
        let Some(track) = self.tracks.get(&asset).filter(|_| !definition.def.external) else {
            return StaleSets::default();
        };
        let existing = match &definition.partitions {
            Some(partitions) => partitions.all(self.at),
            None => PartitionSet::unpartitioned(),
        };
        let code_changed = track.other_code.clone();
        let late = self.late(definition, track);
        let newer = track.newer.iter().fold(PartitionSet::EMPTY, |all, newer| all.union(&newer.set));
        StaleSets {
            never_made: existing.difference(&track.made).difference(&track.expired),
            expired: existing.intersection(&track.expired),
            freshness_missed: late.difference(&code_changed).difference(&newer),
            upstream_newer: newer.difference(&code_changed),
            code_changed,
            upstream_stale: PartitionSet::EMPTY,
        }
    }

    /// The newest partitions of an asset that is older than it may be.
    fn late(&self, asset: &Asset, track: &Track) -> PartitionSet {
        let found =
            asset.def.freshness.as_ref().and_then(|_| evaluate_with(self.state, asset, self.at.now()));
        if found.is_none_or(|found| found.status != FreshnessStatus::Fail) {
            return PartitionSet::EMPTY;
        }
        let newest = match &asset.partitions {
            Some(partitions) => partitions.latest(self.at),
            None => PartitionSet::unpartitioned(),
        };
        newest.intersection(&track.made)
    }

    /// Those that are not known to be stale yet, and are, because of what they read.
    fn through_upstream(&self, asset: u32, sets: &BTreeMap<u32, StaleSets>) -> PartitionSet {
        let Some((track, known)) = self.tracks.get(&asset).zip(sets.get(&asset)) else {
            return PartitionSet::EMPTY;
        };
        let definition = self.definitions.asset(asset);
        let mut reached = PartitionSet::EMPTY;
        for dep in definition.deps.iter().filter(|dep| dep.asset != asset) {
            let Some(upstream) = sets.get(&dep.asset) else { continue };
            let stale = passed_on(upstream, dep);
            if !stale.is_empty() {
                reached = reached.union(&dep.mapping.downstream(&stale, self.at).set);
            }
        }
        let mut found = reached.intersection(&track.made);
        for dep in definition.deps.iter().filter(|dep| dep.asset == asset) {
            let stale = passed_on(known, dep).union(&found);
            found = found.union(&self.along_itself(asset, dep, &stale, track));
        }
        let others = known.code_changed.union(&known.upstream_newer).union(&known.upstream_stale);
        found.difference(&others)
    }

    /// The later partitions of an asset that stale ones lead to, through its own.
    fn along_itself(&self, asset: u32, dep: &Dep, stale: &PartitionSet, track: &Track) -> PartitionSet {
        if stale.is_empty() {
            return PartitionSet::EMPTY;
        }
        if let Some(dimension) = self.next_along(asset, dep).filter(|_| !dep.available) {
            // Whatever comes next reads the one before it: all that come later are stale.
            let later = stale.blocks().iter().map(|block| {
                let mut ranges = block.ranges().to_vec();
                ranges[dimension] = ranges[dimension].start + 1..u64::MAX;
                Block::new(ranges)
            });
            return later.collect::<PartitionSet>().intersection(&track.made);
        }
        let mapping = dep.mapping.at(self.at);
        let (mut found, mut frontier): (Vec<Block>, _) = (Vec::new(), stale.clone());
        while !frontier.is_empty() {
            frontier = mapping.downstream(&frontier).set.intersection(&track.made);
            found.extend_from_slice(frontier.blocks());
        }
        found.into_iter().collect()
    }

    /// The dimension along which every partition reads the one before it, if the mapping does no more than that.
    fn next_along(&self, asset: u32, dep: &Dep) -> Option<usize> {
        let is_next = |mapping: &MappingDef| matches!(mapping, MappingDef::Window { to: -1, .. });
        let partitions = self.definitions.asset(asset).partitions.as_ref()?;
        match &dep.def {
            MappingDef::Dims { dims } => {
                let (name, window) = dims.iter().next().filter(|_| dims.len() == 1)?;
                let along = window.mapping.as_deref().filter(|mapping| is_next(mapping));
                along.filter(|_| window.from.as_ref().is_none_or(|from| from == name))?;
                partitions.dimensions().position(|dimension| dimension == name)
            }
            MappingDef::Window { .. } => {
                (is_next(&dep.def) && partitions.dimensions().count() == 1).then_some(0)
            }
            MappingDef::Same
            | MappingDef::All
            | MappingDef::Last
            | MappingDef::Specific { .. }
            | MappingDef::Static { .. }
            | MappingDef::Time => None,
        }
    }
}

/// The stale partitions of an asset that make those stale that read them.
fn passed_on(upstream: &StaleSets, dep: &Dep) -> PartitionSet {
    match planted::has(Mistake::StaleOneLevelShort) {
        true => upstream.by_themselves(),
        false if dep.available => upstream.made(),
        false => upstream.all(),
    }
}
