//! From a task to the work of an attempt, and to its provenance.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::{Block, DimMapping, MappingDef, PartitionContext, PartitionSet};
use servo_core::planted::{self, Mistake};
use servo_core::{AssetKey, AttemptId, MaterializationId, Operation, PartitionKey, Partitions, Timestamp};

use super::{Work, WorkInput, WorkOutput, WorkPartition, WorkPiece};
use crate::definitions::{Asset, Definitions, Dep, Phase};
use crate::outputs::materialization_of;
use crate::provenance::{ExpectedCheck, InputRead, PieceRead, PiecesRead, Provenance, RoomForNames};
use crate::state::{Materialized, Run, State, Task};

/// The provenance of an attempt that is about to be dispatched. Nothing is known of what is not deployed.
pub(crate) fn provenance(state: &State, run: &Run, task: &Task) -> Provenance {
    let Some(task) = Resolver::new(state, run, task) else { return Provenance::default() };
    let mut inputs: Vec<InputRead> = Vec::new();
    let mut room = RoomForNames::of_event();
    let is_check = task.is_check();
    if is_check {
        let own = |asset: &Asset| {
            InputRead::new(&asset.key, &[task.piece(&asset.key, task.partition.clone())], &room)
        };
        inputs.extend(task.outputs().filter_map(own));
    }
    let deps = task.deps().into_iter().filter(|_| !is_check && !planted::has(Mistake::InputNotRecorded));
    let mut data_as_of: Option<Timestamp> = None;
    for dep in deps {
        let set = task.upstream(dep);
        let pieces = task.pieces(dep, &set);
        let input = InputRead::new(&task.definitions.asset(dep.asset).key, &pieces, &room);
        data_as_of = data_as_of.into_iter().chain(task.data_as_of(dep, &set)).min();
        // Inputs without partitions are always named, however many there are; the event leaves some out.
        input.iter().for_each(|input| room.take(input));
        inputs.extend(input);
    }
    let version = |asset: &Asset| asset.def.code_version.as_deref().map(Arc::from);
    let versions: Vec<Option<Arc<str>>> = task.outputs().map(version).collect();
    Provenance {
        deployment: state.definitions.number(),
        code_versions: if versions.iter().all(Option::is_none) { Vec::new() } else { versions },
        definition_changed: task
            .outputs()
            .any(|asset| state.definitions.changed_in(&asset.key) > run.deployment),
        checks: (0..)
            .zip(task.outputs())
            .flat_map(|(output, asset)| expected(output, asset, is_check))
            .collect(),
        inputs,
        unnamed: None,
        data_as_of,
        call: None,
    }
}

fn expected(output: u32, asset: &Asset, is_check: bool) -> impl Iterator<Item = ExpectedCheck> {
    let checks = asset.def.checks.iter().filter(move |check| !is_check || check.phase == Phase::Post);
    checks.map(move |check| ExpectedCheck {
        output,
        name: check.name.clone(),
        severity: check.severity,
        blocking: check.blocking,
    })
}

/// The work of an attempt that was dispatched. None if what it makes is not deployed (any more).
pub(crate) fn work(state: &State, run: &Run, task: &Task, attempt: AttemptId) -> Option<Work> {
    let provenance = &task.provenance;
    let task = Resolver::new(state, run, task)?;
    if task.is_check() {
        return task.checks(provenance);
    }
    let materialization_id = materialization_of(attempt);
    let outputs = task.outputs().map(|asset| WorkOutput {
        asset: asset.key.clone(),
        materialization_id,
        io: asset.def.io.clone(),
        quarantine: asset.def.quarantine,
        checks: asset.def.checks.clone(),
        previous: state.latest(&asset.key, task.partition.as_ref()).map(Materialized::id),
        checked: None,
    });
    let inputs = task.deps().into_iter().filter_map(|dep| {
        let mut input = task.input(dep)?;
        repeat(&mut input, provenance);
        if dep.available {
            leave_out_missing(&mut input);
        }
        Some(input)
    });
    let inputs = inputs.collect();
    Some(Work { inputs, config: task.task.options.config.clone(), ..task.work(outputs.collect())? })
}

/// Whether an attempt that was dispatched can still be told to read exactly what its provenance says.
pub(crate) fn can_be_repeated(state: &State, run: &Run, task: &Task) -> bool {
    let Some(resolver) = Resolver::new(state, run, task) else { return true };
    let recorded = &task.provenance.inputs;
    recorded.iter().all(|read| match &read.pieces {
        PiecesRead::Named(_) => true,
        PiecesRead::Counted { .. } => resolver.deps().into_iter().any(|dep| {
            let asset = &resolver.definitions.asset(dep.asset).key;
            *asset == read.asset
                && InputRead::new(asset, &resolver.pieces(dep, &resolver.upstream(dep)), &RoomForNames::NONE)
                    .as_ref()
                    == Some(read)
        }),
    })
}

/// Lets an attempt read what it was first told to, also if something newer is there by now.
fn repeat(input: &mut WorkInput, provenance: &Provenance) {
    let recorded = || provenance.inputs.iter().filter(|read| read.asset == input.asset);
    let is_counted = recorded().any(|read| matches!(read.pieces, PiecesRead::Counted { .. }));
    if provenance.deployment == 0 || is_counted {
        return;
    }
    let named: Vec<&PieceRead> = recorded()
        .flat_map(|read| match &read.pieces {
            PiecesRead::Named(pieces) => pieces.as_slice(),
            PiecesRead::Counted { .. } => &[],
        })
        .collect();
    for piece in &mut input.pieces {
        let read = named.iter().find(|read| read.partition == piece.partition).map(|read| read.id);
        if piece.materialization_id != read {
            // The form of what is no longer the latest is found in its record.
            piece.format = None;
            piece.materialization_id = read;
        }
    }
}

/// Leaves out what was not there when the attempt was first dispatched.
fn leave_out_missing(input: &mut WorkInput) {
    let count = input.pieces.len();
    input.pieces.retain(|piece| piece.materialization_id.is_some());
    input.missing = (count - input.pieces.len()) as u64;
}

/// A task with its definitions and the partitions that it is about.
///
/// Partitions are taken as they were when the run was asked for, which is when it was planned.
struct Resolver<'a> {
    state: &'a State,
    task: &'a Task,
    definitions: Arc<Definitions>,
    /// The assets that it makes.
    positions: Vec<u32>,
    at: PartitionContext<'a>,
    partition: Option<PartitionKey>,
    block: Option<Block>,
    window: Option<(Timestamp, Timestamp)>,
}

impl<'a> Resolver<'a> {
    /// None if what it makes is not deployed, or has other partitions by now.
    fn new(state: &'a State, run: &Run, task: &'a Task) -> Option<Self> {
        let definitions = state.definitions.checked()?;
        let at = PartitionContext::new(run.created_at, state.dynamic_partitions());
        let positions: Vec<u32> =
            task.assets().map(|asset| definitions.position(&asset)).collect::<Option<_>>()?;
        let asset = definitions.asset(*positions.first()?);
        let partition = task.key.partition();
        let block = match (&asset.partitions, &partition) {
            (Some(partitions), Some(key)) => Some(partitions.block_of(key, at).ok()?),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let window = asset
            .partitions
            .as_ref()
            .zip(block.as_ref())
            .and_then(|(partitions, block)| partitions.time_of(&PartitionSet::from(block.clone())));
        Some(Self { state, task, at, positions, partition, block, window, definitions })
    }

    fn is_check(&self) -> bool {
        self.task.key.operation() == Operation::Check
    }

    /// Work with these outputs, without inputs and configuration.
    fn work(&self, outputs: Vec<WorkOutput>) -> Option<Work> {
        let def = &self.asset().def;
        Some(Work {
            function: def.function.clone()?,
            single_call: def.single_call && !self.is_check(),
            inputs: Vec::new(),
            outputs,
            config: BTreeMap::new(),
            secrets: def.secrets.clone(),
            isolation: def.isolation,
            compute: def.compute.clone(),
            partition: self.partition.clone().map(|key| WorkPartition { key, window: self.window }),
        })
    }

    /// Work that checks what is stored, as it was when the attempt was dispatched, and makes nothing.
    fn checks(&self, provenance: &Provenance) -> Option<Work> {
        let output = |asset: &Asset| {
            let mut piece = self.piece(&asset.key, self.partition.clone());
            let recorded = provenance.checked(&asset.key);
            if piece.materialization_id != recorded {
                (piece.materialization_id, piece.format) = (recorded, None);
            }
            let checks = asset.def.checks.iter().filter(|check| check.phase == Phase::Post).cloned();
            WorkOutput {
                asset: asset.key.clone(),
                materialization_id: recorded.unwrap_or(MaterializationId::NIL),
                io: asset.def.io.clone(),
                quarantine: false,
                checks: checks.collect(),
                previous: None,
                checked: Some(piece),
            }
        };
        self.work(self.outputs().map(output).collect())
    }

    /// The asset of the task's key.
    fn asset(&self) -> &Asset {
        self.definitions.asset(self.positions[0])
    }

    /// The assets that it makes.
    fn outputs(&self) -> impl Iterator<Item = &Asset> {
        self.positions.iter().map(|position| self.definitions.asset(*position))
    }

    fn deps(&self) -> Vec<&Dep> {
        self.definitions.deps_together(&self.positions)
    }

    /// The input of a parameter; none for a dependency that is only waited for.
    fn input(&self, dep: &Dep) -> Option<WorkInput> {
        let parameter = dep.parameter.clone()?;
        let upstream = self.definitions.asset(dep.asset);
        let set = self.upstream(dep);
        let single =
            upstream.partitions.as_ref().is_none_or(|partitions| self.is_one(&dep.def, partitions, &set));
        Some(WorkInput {
            parameter,
            asset: upstream.key.clone(),
            io: upstream.def.io.clone(),
            external: upstream.def.external,
            single,
            pieces: self.pieces(dep, &set),
            missing: 0,
        })
    }

    /// The partitions of a dependency that the task reads.
    fn upstream(&self, dep: &Dep) -> PartitionSet {
        let set = self.block.clone().map_or_else(PartitionSet::unpartitioned, PartitionSet::from);
        dep.mapping.upstream(&set, self.at).set
    }

    /// Their newest materializations.
    fn pieces(&self, dep: &Dep, set: &PartitionSet) -> Vec<WorkPiece> {
        let upstream = self.definitions.asset(dep.asset);
        match &upstream.partitions {
            None => vec![self.piece(&upstream.key, None)],
            Some(partitions) => {
                partitions.keys_in(set, self.at).map(|key| self.piece(&upstream.key, Some(key))).collect()
            }
        }
    }

    /// When the oldest data behind a dependency was made. Of partitions of time only the newest that is read counts:
    /// a total over a year is not a year old.
    fn data_as_of(&self, dep: &Dep, set: &PartitionSet) -> Option<Timestamp> {
        let upstream = self.definitions.asset(dep.asset);
        let time = |key: Option<&PartitionKey>| Some(self.state.latest(&upstream.key, key)?.data_as_of());
        let Some(partitions) = &upstream.partitions else { return time(None) };
        let newest = partitions.newest_of(set);
        partitions.keys_in(&newest, self.at).filter_map(|key| time(Some(&key))).min()
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
                None => {
                    self.asset().partitions.iter().flat_map(|own| own.dimensions()).any(|own| own == name)
                }
            }),
        }
    }
}
