//! Resolves the inputs of each task: upstream tasks of the same run, and materializations from outside it.

use std::collections::BTreeMap;
use std::rc::Rc;

use servo_core::partitions::{MappingAt, PartitionSet};
use servo_core::{MaterializationId, PartitionKey};

use super::error::{MissingUpstream, PlanningError};
use super::lookup::Lookup;
use super::outside::Outside;
use super::{Draft, Group, PlanContext};
use crate::definitions::{Definitions, Dep};
use crate::dep_sets::{DepSet, Positions};

/// How many missing partitions are reported one by one.
const MAX_REPORTED: usize = 20;

/// The partitions of one asset that a task reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedInput {
    /// Position of the asset.
    pub asset: u32,
    /// The parameter that receives its data; none if only the order matters.
    pub parameter: Option<String>,
    /// Which partitions of it.
    pub partitions: PartitionSet,
    /// Whether only those of them are read that are there, and the rest is left out.
    pub available: bool,
    /// Number of them that tasks of the plan make.
    pub in_run: u64,
    /// How many of the others have a good materialization, the latest of which is read.
    pub materialized: u64,
    /// The first of the others that was never materialized, and how many such there are. Assets that are made
    /// elsewhere are taken to be there.
    pub never_materialized: Option<(Option<PartitionKey>, u128)>,
}

/// The dependencies of one task.
#[derive(Default)]
pub(super) struct Wired {
    pub(super) upstream: Vec<u32>,
    pub(super) inputs: Vec<PlannedInput>,
}

/// A set is worth its while from so many edges on.
const SET_FROM: u64 = 16;
/// Sets that a plan may have: each end of a task looks at all of them.
const MAX_SETS: usize = 256;

/// Tasks that some tasks in a row read, all the same ones.
struct Shared {
    partitions: PartitionSet,
    input: PlannedInput,
    /// Tasks that make them.
    upstream: Vec<u32>,
    /// Tasks that wait for these.
    downstream: Vec<u32>,
}

impl Shared {
    fn edges(&self) -> u64 {
        self.upstream.len() as u64 * self.downstream.len() as u64
    }

    /// A set if that is worth its while; else there are edges between the pairs.
    fn is_set(&self) -> bool {
        self.upstream.len() > 1 && self.downstream.len() > 1 && self.edges() >= SET_FROM
    }
}

/// Wires all tasks, or says which partitions do not exist.
pub(super) fn wire(
    definitions: &Definitions,
    groups: &[Group],
    drafts: &[Draft],
    owners: &[Option<usize>],
    lookups: &[Lookup<u32>],
    outside: &Outside<'_>,
    context: &PlanContext<'_>,
) -> Result<(Vec<Wired>, Vec<DepSet>), PlanningError> {
    let deps: Vec<Vec<(&Dep, MappingAt<'_>)>> = groups
        .iter()
        .map(|group| {
            definitions
                .deps_together(&group.assets)
                .into_iter()
                .map(|dep| (dep, dep.mapping.at(context.at)))
                .collect()
        })
        .collect();
    let mut wiring = Wiring {
        definitions,
        owners,
        lookups,
        context,
        outside: vec![None; definitions.assets().len()],
        missing: Vec::new(),
        more: 0,
        shared: Vec::new(),
        last: BTreeMap::new(),
    };
    let mut read: BTreeMap<u32, PartitionSet> = BTreeMap::new();
    for (group, deps) in groups.iter().zip(&deps) {
        for (dep, mapping) in deps {
            let set = read.entry(dep.asset).or_default();
            *set = set.union(&mapping.upstream(&group.partitions).set);
        }
    }
    for (asset, set) in read {
        wiring.outside[asset as usize] = Some(outside.within(asset, &set));
    }
    let mut wired: Vec<Wired> = (0u32..)
        .zip(drafts)
        .map(|(position, draft)| wiring.task(position, draft, &deps[draft.group]))
        .collect();
    if !wiring.missing.is_empty() {
        return Err(PlanningError::Missing { missing: wiring.missing, more: wiring.more });
    }
    let sets = add_shared(wiring.shared, &mut wired);
    for (position, task) in (0u32..).zip(&mut wired) {
        task.upstream.sort_unstable();
        task.upstream.dedup();
        task.upstream.retain(|upstream| *upstream != position);
    }
    Ok((wired, sets))
}

/// Makes sets of what many tasks wait for together, and edges of the rest. The largest are sets, if not all can be.
fn add_shared(mut shared: Vec<Shared>, wired: &mut [Wired]) -> Vec<DepSet> {
    shared.sort_by_key(|it| {
        (std::cmp::Reverse(it.is_set()), std::cmp::Reverse(it.edges()), it.downstream.first().copied())
    });
    let mut sets = Vec::new();
    for (at, it) in shared.into_iter().enumerate() {
        if it.is_set() && at < MAX_SETS {
            sets.push(DepSet {
                upstream: Positions::of(it.upstream),
                downstream: Positions::of(it.downstream),
            });
        } else {
            for task in it.downstream {
                wired[task as usize].upstream.extend(&it.upstream);
            }
        }
    }
    // Two dependencies may be on the same tasks: an edge that a set stands for is none of its own.
    for set in &sets {
        for task in set.downstream.iter() {
            wired[task as usize].upstream.retain(|upstream| !set.upstream.contains(*upstream));
        }
    }
    sets
}

struct Wiring<'a> {
    definitions: &'a Definitions,
    owners: &'a [Option<usize>],
    lookups: &'a [Lookup<u32>],
    context: &'a PlanContext<'a>,
    /// Materializations of the assets that tasks read, by position.
    outside: Vec<Option<Rc<Lookup<MaterializationId>>>>,
    missing: Vec<MissingUpstream>,
    more: u64,
    /// Dependency sets that tasks share.
    shared: Vec<Shared>,
    /// The last of these, by group and dependency.
    last: BTreeMap<(usize, usize), usize>,
}

impl Wiring<'_> {
    fn task(&mut self, position: u32, draft: &Draft, deps: &[(&Dep, MappingAt<'_>)]) -> Wired {
        let mut wired = Wired { upstream: Vec::new(), inputs: Vec::with_capacity(deps.len()) };
        for (at, (dep, mapping)) in deps.iter().enumerate() {
            let mapped = mapping.upstream_of(&draft.digits);
            for missing in mapped.missing {
                self.report(draft, dep, missing);
            }
            self.more += mapped.more_missing;
            // Tasks of the same function wait for some of each other.
            let owner = self.owners[dep.asset as usize];
            if owner.is_none() || owner == Some(draft.group) {
                let input = self.input(dep, mapped.set, &mut wired.upstream);
                wired.inputs.push(input);
                continue;
            }
            wired.inputs.push(self.shared_input(position, (draft.group, at), dep, mapped.set));
        }
        wired
    }

    /// The input of a task whose upstream tasks are perhaps those of the task before it.
    fn shared_input(
        &mut self,
        position: u32,
        by: (usize, usize),
        dep: &Dep,
        partitions: PartitionSet,
    ) -> PlannedInput {
        let last = self.last.get(&by).copied().filter(|last| self.shared[*last].partitions == partitions);
        let found = last.unwrap_or_else(|| {
            let mut upstream = Vec::new();
            let input = self.input(dep, partitions.clone(), &mut upstream);
            self.shared.push(Shared { partitions, input, upstream, downstream: Vec::new() });
            self.last.insert(by, self.shared.len() - 1);
            self.shared.len() - 1
        });
        let shared = &mut self.shared[found];
        shared.downstream.push(position);
        shared.input.clone()
    }

    fn input(&self, dep: &Dep, partitions: PartitionSet, upstream: &mut Vec<u32>) -> PlannedInput {
        let tasks = self.owners[dep.asset as usize].map(|owner| &self.lookups[owner]);
        let before = upstream.len();
        if let Some(tasks) = tasks {
            let found = partitions.blocks().iter().flat_map(|block| tasks.within(block));
            upstream.extend(found.map(|(_, task)| *task));
        }
        let in_run = (upstream.len() - before) as u64;
        let rest = partitions.len() - u128::from(in_run);
        let mut input = PlannedInput {
            asset: dep.asset,
            parameter: dep.parameter.clone(),
            partitions,
            available: dep.available,
            in_run,
            materialized: 0,
            never_materialized: None,
        };
        if rest > 0 && !self.definitions.asset(dep.asset).def.external {
            self.look_outside(&mut input, rest, tasks);
        }
        input
    }

    /// Counts which of the `rest` partitions that no task makes are there.
    fn look_outside(&self, input: &mut PlannedInput, rest: u128, tasks: Option<&Lookup<u32>>) {
        let Some(outside) = &self.outside[input.asset as usize] else { return };
        let is_made = |digits: &[u64]| tasks.is_some_and(|tasks| tasks.contains(digits));
        let there = input.partitions.blocks().iter().flat_map(|block| outside.within(block));
        let there = there.filter(|(digits, _)| input.in_run == 0 || !is_made(digits)).count() as u64;
        input.materialized = there;
        let never = rest - u128::from(there);
        if never > 0 {
            let first = input.partitions.iter().find(|digits| !is_made(digits) && !outside.contains(digits));
            let partitions = self.definitions.asset(input.asset).partitions.as_ref();
            let key = first.zip(partitions).and_then(|(digits, partitions)| {
                let one = PartitionSet::one(&digits);
                partitions.keys_in(&one, self.context.at).next()
            });
            input.never_materialized = Some((key, never));
        }
    }

    fn report(&mut self, draft: &Draft, dep: &Dep, missing: servo_core::partitions::Missing) {
        if self.missing.len() < MAX_REPORTED {
            self.missing.push(MissingUpstream {
                task: draft.key.clone(),
                upstream: self.definitions.asset(dep.asset).key.clone(),
                partition: missing.key,
                reason: missing.reason,
            });
        } else {
            self.more += 1;
        }
    }
}
