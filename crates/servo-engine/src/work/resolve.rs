//! From a task to the work of its newest attempt.

use servo_core::partitions::{Block, DimMapping, MappingDef, Moment, PartitionSet};
use servo_core::{AssetKey, PartitionKey, Partitions, Timestamp};

use super::{Work, WorkInput, WorkOutput, WorkPartition, WorkPiece};
use crate::definitions::{Asset, Definitions, Dep};
use crate::outputs::materialization_of;
use crate::state::{Materialized, Run, State, Task};

/// The work of the newest attempt of a task. None if what it makes is not deployed (any more).
///
/// Partitions are taken as they were when the run was asked for, which is when it was planned.
pub(crate) fn resolve(state: &State, run: &Run, task: &Task) -> Option<Work> {
    let definitions = state.definitions.checked()?;
    let at = Moment::new(run.created_at, state.dynamic_partitions());
    let positions: Vec<u32> =
        task.assets().map(|asset| definitions.position(&asset)).collect::<Option<_>>()?;
    let asset = definitions.asset(*positions.first()?);
    let partition = task.key.partition();
    let place = match (&asset.partitions, &partition) {
        (Some(partitions), Some(key)) => Some(partitions.block_of(key, at).ok()?),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return None,
    };
    let window = asset
        .partitions
        .as_ref()
        .zip(place.as_ref())
        .and_then(|(partitions, block)| partitions.time_of(&PartitionSet::from(block.clone())));
    let materialization_id = materialization_of(task.attempt_id?);
    let outputs = positions.iter().map(|position| {
        let asset = definitions.asset(*position);
        WorkOutput {
            asset: asset.key.clone(),
            materialization_id,
            io: asset.def.io.clone(),
            quarantine: asset.def.quarantine,
            checks: asset.def.checks.clone(),
            previous: state.latest(&asset.key, partition.as_ref()).map(Materialized::id),
        }
    });
    let reader = Reader { state, definitions: &definitions, at, asset, place: place.as_ref(), window };
    let inputs =
        definitions.deps_together(&positions).into_iter().filter_map(|dep| reader.input(dep)).collect();
    Some(Work {
        function: asset.def.function.clone()?,
        inputs,
        outputs: outputs.collect(),
        config: task.options.config.clone(),
        secrets: asset.def.secrets.clone(),
        isolation: asset.def.isolation,
        partition: partition.map(|key| WorkPartition { key, window }),
    })
}

struct Reader<'a> {
    state: &'a State,
    definitions: &'a Definitions,
    at: Moment<'a>,
    asset: &'a Asset,
    place: Option<&'a Block>,
    window: Option<(Timestamp, Timestamp)>,
}

impl Reader<'_> {
    /// What a parameter is given; none for a dependency that is only waited for.
    fn input(&self, dep: &Dep) -> Option<WorkInput> {
        let parameter = dep.parameter.clone()?;
        let upstream = self.definitions.asset(dep.asset);
        let set = self.place.cloned().map_or_else(PartitionSet::unpartitioned, PartitionSet::from);
        let set = dep.mapping.upstream(&set, self.at).set;
        let single =
            upstream.partitions.as_ref().is_none_or(|partitions| self.is_one(&dep.def, partitions, &set));
        let pieces = match &upstream.partitions {
            None => vec![self.piece(&upstream.key, None)],
            Some(partitions) => {
                partitions.keys_in(&set, self.at).map(|key| self.piece(&upstream.key, Some(key))).collect()
            }
        };
        Some(WorkInput {
            parameter,
            asset: upstream.key.clone(),
            io: upstream.def.io.clone(),
            external: upstream.def.external,
            single,
            pieces,
        })
    }

    fn piece(&self, asset: &AssetKey, partition: Option<PartitionKey>) -> WorkPiece {
        let latest = self.state.latest(asset, partition.as_ref());
        WorkPiece {
            partition,
            materialization_id: latest.map(Materialized::id),
            format: latest.and_then(Materialized::format),
        }
    }

    /// Whether a mapping always gives one partition of these. It must not depend on how many there happen to be.
    fn is_one(&self, mapping: &MappingDef, partitions: &Partitions, set: &PartitionSet) -> bool {
        match mapping {
            MappingDef::Same | MappingDef::Last => true,
            MappingDef::Window { from, to } => from == to,
            MappingDef::All | MappingDef::Specific { .. } | MappingDef::Static { .. } => false,
            MappingDef::Time => {
                let covers = |outer: (_, _), inner: (_, _)| outer.0 <= inner.0 && inner.1 <= outer.1;
                let times = partitions.time_of(set).zip(self.window);
                set.len() == 1 && times.is_some_and(|(outer, inner)| covers(outer, inner))
            }
            MappingDef::Dims { dims } => partitions.dimensions().all(|name| match dims.get(name) {
                Some(DimMapping { mapping: Some(mapping), .. }) => self.is_one(mapping, partitions, set),
                Some(DimMapping { mapping: None, .. }) => true,
                None => self.asset.partitions.iter().flat_map(|own| own.dimensions()).any(|own| own == name),
            }),
        }
    }
}
