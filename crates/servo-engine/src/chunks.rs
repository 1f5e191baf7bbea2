//! Chunks of a backfill: which partitions of which assets the next run makes.
//!
//! The partitions that nothing else of the backfill leads to drive it: those of its first assets, and of others what
//! mappings do not reach from there. Chunks go over them in order, asset by asset. Every other partition is made in the
//! chunk that has the last of what it is made from, so that whatever it reads is made in the same run or in an earlier
//! one. What has no partitions and reads nothing of the backfill comes first, in a chunk of its own.
//!
//! Everything here works on sets, never on single partitions, except for those of the chunk itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::partitions::{PartitionContext, PartitionSet};
use servo_core::{AssetKey, PartitionKey, Partitions};

use crate::definitions::{Definitions, Dep};
use crate::event::{BackfillTarget, KeyRange};
use crate::state::Cursor;

/// Partitions of assets, by position.
pub(crate) type Sets = BTreeMap<u32, PartitionSet>;

/// The most ranges of an asset that are written down one by one; more are packed.
const NAMED_RANGES: usize = 1_000;

/// Ranges that are named of those that are packed, for people.
const SHOWN_RANGES: usize = 100;

/// The targets of a backfill, with the definitions that are deployed.
pub(crate) struct Chunks<'a> {
    definitions: &'a Definitions,
    at: PartitionContext<'a>,
    prepared: Arc<Prepared>,
}

/// What is found once of the targets of a backfill, however many chunks they make.
#[derive(Debug)]
pub(crate) struct Prepared {
    targets: Sets,
    /// The targets, each after those that it reads.
    order: Vec<u32>,
    /// Targets that are made only when partitions before them were: all that have partitions, and what reads them.
    led: BTreeSet<u32>,
    drivers: Vec<Driver>,
}

/// Assets with the same partitions, and which of those drive a backfill.
#[derive(Debug)]
struct Driver {
    /// The first of them names the chunks.
    assets: Vec<u32>,
    partitions: Option<Arc<Partitions>>,
    /// For each asset the partitions that nothing leads to.
    own: Sets,
    all: PartitionSet,
}

/// The next chunk.
pub(crate) struct Chunk {
    /// The asset that names it.
    pub(crate) asset: AssetKey,
    pub(crate) partition_keys: Vec<KeyRange>,
    /// The last of its driving partitions.
    pub(crate) through: Option<PartitionKey>,
    /// The targets of its run.
    pub(crate) sets: Sets,
}

/// Targets as they are written down.
pub(crate) fn written(
    definitions: &Definitions,
    targets: &Sets,
    at: PartitionContext<'_>,
) -> Vec<BackfillTarget> {
    let target = |(asset, set): (&u32, &PartitionSet)| {
        let asset = definitions.asset(*asset);
        let key = asset.key.clone();
        let Some(partitions) = &asset.partitions else {
            return BackfillTarget { asset: key, partitions: Vec::new(), packed: None };
        };
        let packed = (set.blocks().len() > NAMED_RANGES).then(|| partitions.pack(set, at)).flatten();
        let named = if packed.is_some() { SHOWN_RANGES } else { usize::MAX };
        let partitions = ranges(partitions, set, at).take(named).collect();
        BackfillTarget { asset: key, partitions, packed: packed.map(Arc::new) }
    };
    targets.iter().map(target).collect()
}

fn ranges(
    partitions: &Partitions,
    set: &PartitionSet,
    at: PartitionContext<'_>,
) -> impl Iterator<Item = KeyRange> {
    let corners = set.blocks().iter().filter_map(move |block| partitions.corners(block, at));
    corners.map(|(from, to)| KeyRange { to: Some(to).filter(|to| *to != from), from })
}

/// Reads targets that were written down, or says what is not there any more.
pub(crate) fn read(
    definitions: &Definitions,
    targets: &[BackfillTarget],
    at: PartitionContext<'_>,
) -> Result<Sets, String> {
    let mut sets = Sets::new();
    for target in targets {
        let key = &target.asset;
        let position = definitions.position(key).filter(|it| !definitions.asset(*it).def.external);
        let position = position.ok_or_else(|| format!("{key} is not deployed any more"))?;
        let set = match (&definitions.asset(position).partitions, target.partitions.is_empty()) {
            (None, true) => PartitionSet::unpartitioned(),
            (Some(partitions), false) => match &target.packed {
                Some(packed) => partitions.unpack(packed, at),
                None => read_ranges(partitions, &target.partitions, at),
            }
            .map_err(|problem| format!("the partitions of {key} have changed: {problem}"))?,
            (None, false) => return Err(format!("{key} has no partitions any more")),
            (Some(_), true) => return Err(format!("{key} has partitions now, and had none")),
        };
        sets.insert(position, set);
    }
    Ok(sets)
}

fn read_ranges(
    partitions: &Partitions,
    ranges: &[KeyRange],
    at: PartitionContext<'_>,
) -> Result<PartitionSet, String> {
    let block = |range: &KeyRange| partitions.between(&range.from, range.last(), at);
    ranges.iter().map(block).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

impl Prepared {
    /// Finds what drives some targets.
    pub(crate) fn new(definitions: &Definitions, targets: Sets, at: PartitionContext<'_>) -> Self {
        let order = order(definitions, &targets);
        let mut prepared = Self { targets, order, led: BTreeSet::new(), drivers: Vec::new() };
        let mut own = Sets::new();
        for asset in prepared.order.clone() {
            let has_partitions = definitions.asset(asset).partitions.is_some();
            let reads = prepared.read_by(definitions, asset);
            if has_partitions || reads.iter().any(|dep| prepared.led.contains(&dep.asset)) {
                prepared.led.insert(asset);
            }
            let target = &prepared.targets[&asset];
            let driven = prepared.led_to(definitions, at, asset, &prepared.targets);
            own.insert(asset, target.difference(&driven));
        }
        // What leads nowhere and has no partitions comes first.
        let first = prepared.order.iter().filter(|asset| !prepared.led.contains(*asset));
        let rest = prepared.order.iter().filter(|asset| prepared.led.contains(*asset));
        let mut drivers: Vec<Driver> = Vec::new();
        for &asset in first.chain(rest).filter(|asset| !own[*asset].is_empty()) {
            let partitions = definitions.asset(asset).partitions.clone();
            let is_same = |driver: &&mut Driver| match (&driver.partitions, &partitions) {
                (None, None) => true,
                (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.def() == b.def(),
                (None, Some(_)) | (Some(_), None) => false,
            };
            let set = own[&asset].clone();
            match drivers.iter_mut().find(is_same) {
                Some(driver) => {
                    driver.all = driver.all.union(&set);
                    driver.assets.push(asset);
                    driver.own.insert(asset, set);
                }
                None => drivers.push(Driver {
                    assets: vec![asset],
                    partitions,
                    all: set.clone(),
                    own: Sets::from([(asset, set)]),
                }),
            }
        }
        prepared.drivers = drivers;
        prepared
    }

    /// The target partitions of an asset that some partitions before it lead to.
    fn led_to(
        &self,
        definitions: &Definitions,
        at: PartitionContext<'_>,
        asset: u32,
        from: &Sets,
    ) -> PartitionSet {
        let mut all = PartitionSet::EMPTY;
        for dep in self.leading(definitions, asset) {
            if let Some(set) = from.get(&dep.asset).filter(|set| !set.is_empty()) {
                let readers = dep.mapping.downstream(set, at).set;
                all = all.union(&readers.intersection(&self.targets[&asset]));
            }
        }
        all
    }

    /// The dependencies of an asset that lead to it.
    fn leading<'d>(&self, definitions: &'d Definitions, asset: u32) -> impl Iterator<Item = &'d Dep> {
        let reads = self.read_by(definitions, asset).into_iter();
        reads.filter(move |dep| dep.asset != asset && self.led.contains(&dep.asset))
    }

    /// The dependencies of the function that makes an asset.
    fn read_by<'d>(&self, definitions: &'d Definitions, asset: u32) -> Vec<&'d Dep> {
        let together: Vec<u32> =
            definitions.made_with(asset).filter(|other| self.targets.contains_key(other)).collect();
        definitions.deps_together(&together)
    }
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(definitions: &'a Definitions, targets: Sets, at: PartitionContext<'a>) -> Self {
        Self::of(definitions, Arc::new(Prepared::new(definitions, targets, at)), at)
    }

    /// The chunks of targets that were prepared with these definitions.
    pub(crate) fn of(
        definitions: &'a Definitions,
        prepared: Arc<Prepared>,
        at: PartitionContext<'a>,
    ) -> Self {
        Self { definitions, at, prepared }
    }

    /// How many partitions there are, of all assets together.
    pub(crate) fn partitions(&self) -> u128 {
        self.prepared.targets.values().fold(0, |sum, set| sum.saturating_add(set.len()))
    }

    /// How many chunks of a size they make.
    pub(crate) fn count(&self, size: u32) -> u128 {
        let of = |driver: &Driver| match driver.partitions {
            Some(_) => driver.all.len().div_ceil(u128::from(size.max(1))),
            None => 1,
        };
        self.prepared.drivers.iter().map(of).fold(0, u128::saturating_add)
    }

    /// The chunk after the cursor; none if there is nothing left, and why if the cursor leads nowhere.
    pub(crate) fn next(&self, cursor: Option<&Cursor>, size: u32) -> Result<Option<Chunk>, String> {
        for (driver, from) in self.left(cursor)? {
            let all = &self.prepared.drivers[driver].all;
            let size = size.max(1) as usize;
            let (set, last) = match from {
                Some(from) => all.first_from(&from, size),
                None => all.first(size),
            };
            let Some(last) = last else { continue };
            let chunk = self.chunk(driver, set, &last);
            return Ok(Some(chunk));
        }
        Ok(None)
    }

    /// The remaining targets after the cursor, of all assets.
    pub(crate) fn remaining(&self, cursor: Option<&Cursor>) -> Result<Sets, String> {
        let left: BTreeMap<usize, Option<Vec<u64>>> = self.left(cursor)?.collect();
        Ok(self.spread(|driver, own| match left.get(&driver) {
            Some(Some(from)) => own.starting_at(from),
            Some(None) => own.clone(),
            None => PartitionSet::EMPTY,
        }))
    }

    /// The targets of the run of a chunk that was planned.
    pub(crate) fn sets_of(&self, asset: &AssetKey, ranges: &[KeyRange]) -> Result<Sets, String> {
        let driver = self.driver_of(asset)?;
        let (set, last) = match &self.prepared.drivers[driver].partitions {
            None => (PartitionSet::unpartitioned(), Some(Vec::new())),
            Some(partitions) => {
                let set = read_ranges(partitions, ranges, self.at)?;
                let last = set.iter().max();
                (set, last)
            }
        };
        Ok(last.map(|last| self.chunk(driver, set, &last).sets).unwrap_or_default())
    }

    /// Partitions of the backfill that the tasks of some sets read and do not make themselves.
    pub(crate) fn read_from_others(&self, sets: &Sets) -> Sets {
        let mut read = Sets::new();
        for (asset, set) in sets {
            for dep in self.prepared.read_by(self.definitions, *asset) {
                let Some(target) = self.prepared.targets.get(&dep.asset) else { continue };
                let upstream = dep.mapping.upstream(set, self.at).set.intersection(target);
                let own = sets.get(&dep.asset).cloned().unwrap_or_default();
                let others = upstream.difference(&own);
                if !others.is_empty() {
                    let known: &mut PartitionSet = read.entry(dep.asset).or_default();
                    *known = known.union(&others);
                }
            }
        }
        read
    }

    fn driver_of(&self, asset: &AssetKey) -> Result<usize, String> {
        let position = self.definitions.position(asset);
        let is_driver = |driver: &Driver| position.is_some_and(|it| driver.assets.contains(&it));
        let found = self.prepared.drivers.iter().position(is_driver);
        found.ok_or_else(|| {
            format!("{asset} is deployed with other dependencies than when the backfill began")
        })
    }

    /// The drivers from the cursor on, with the least indexes of the first of them that are left.
    fn left(
        &self,
        cursor: Option<&Cursor>,
    ) -> Result<impl Iterator<Item = (usize, Option<Vec<u64>>)>, String> {
        let (mut first, mut from) = (0, None);
        if let Some(cursor) = cursor {
            first = self.driver_of(&cursor.asset)?;
            match (&self.prepared.drivers[first].partitions, &cursor.partition) {
                (Some(partitions), Some(key)) => {
                    from = Some(partitions.after(key, self.at).map_err(|error| error.to_string())?);
                }
                // It has no partitions, and was made.
                (None, _) | (_, None) => first += 1,
            }
        }
        Ok((first..self.prepared.drivers.len()).map(move |driver| (driver, from.take())))
    }

    fn chunk(&self, driver: usize, set: PartitionSet, last: &[u64]) -> Chunk {
        let of = &self.prepared.drivers[driver];
        let mut after = last.to_vec();
        if let Some(digit) = after.last_mut() {
            *digit = digit.saturating_add(1);
        }
        let mut sets = self.spread(|at, own| match at == driver {
            true => own.intersection(&set),
            false => PartitionSet::EMPTY,
        });
        // What is made later is looked for only where it leads to what this chunk would make.
        let before = self.leading_to(&sets);
        let mut later = Sets::new();
        for &asset in &self.prepared.order {
            let Some(wanted) = before.get(&asset) else { continue };
            let rest = self.prepared.drivers.iter().enumerate().skip(driver).filter_map(|(at, it)| {
                let own = it.own.get(&asset)?.intersection(wanted);
                Some(if at == driver { own.starting_at(&after) } else { own })
            });
            let rest = rest.fold(PartitionSet::EMPTY, |all, set| all.union(&set));
            let led = self.prepared.led_to(self.definitions, self.at, asset, &later);
            later.insert(asset, rest.union(&led.intersection(wanted)));
        }
        for (asset, set) in &mut sets {
            if let Some(later) = later.get(asset) {
                *set = set.difference(later);
            }
        }
        sets.retain(|_, set| !set.is_empty());
        let partitions = of.partitions.as_ref();
        let key =
            |digits: &[u64]| partitions.and_then(|it| it.keys_in(&PartitionSet::one(digits), self.at).next());
        Chunk {
            asset: self.definitions.asset(of.assets[0]).key.clone(),
            partition_keys: partitions.map(|it| ranges(it, &set, self.at).collect()).unwrap_or_default(),
            through: key(last),
            sets,
        }
    }

    /// Some partitions, and the target partitions that lead to them, however far.
    fn leading_to(&self, sets: &Sets) -> Sets {
        let mut all = sets.clone();
        for &asset in self.prepared.order.iter().rev() {
            let Some(set) = all.get(&asset).cloned() else { continue };
            for dep in self.prepared.leading(self.definitions, asset) {
                let Some(target) = self.prepared.targets.get(&dep.asset) else { continue };
                let read = dep.mapping.upstream(&set, self.at).set.intersection(target);
                let known = all.entry(dep.asset).or_default();
                *known = known.union(&read);
            }
        }
        all
    }

    /// The partitions of all assets that driving partitions lead to, themselves included: `chosen` says which of those
    /// that an asset has of a driver.
    fn spread(&self, chosen: impl Fn(usize, &PartitionSet) -> PartitionSet) -> Sets {
        let mut sets = Sets::new();
        for &asset in &self.prepared.order {
            let drivers = self.prepared.drivers.iter().enumerate();
            let own = drivers.filter_map(|(at, driver)| Some(chosen(at, driver.own.get(&asset)?)));
            let own = own.fold(PartitionSet::EMPTY, |all, set| all.union(&set));
            let set = own.union(&self.prepared.led_to(self.definitions, self.at, asset, &sets));
            if !set.is_empty() {
                sets.insert(asset, set);
            }
        }
        sets
    }
}

/// The assets of some targets, each after those that it reads.
fn order(definitions: &Definitions, targets: &Sets) -> Vec<u32> {
    let mut order = Vec::with_capacity(targets.len());
    let mut seen = BTreeSet::new();
    let reads = |asset: u32| -> Vec<u32> {
        let together: Vec<u32> = definitions.made_with(asset).collect();
        definitions.deps_together(&together).iter().map(|dep| dep.asset).collect()
    };
    for &root in targets.keys() {
        // Without recursion: a chain may have thousands of links.
        let mut path = vec![(root, reads(root))];
        while let Some((asset, upstream)) = path.last_mut() {
            let asset = *asset;
            match upstream.pop().filter(|_| !seen.contains(&asset)) {
                Some(read) if targets.contains_key(&read) && !seen.contains(&read) && read != asset => {
                    path.push((read, reads(read)));
                }
                Some(_) => {}
                None => {
                    if seen.insert(asset) {
                        order.push(asset);
                    }
                    path.pop();
                }
            }
        }
    }
    order
}
