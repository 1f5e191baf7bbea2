//! The planner: a selection and partitions in, tasks and what each waits for out. Pure and deterministic.
//!
//! Only what was selected is planned. What a task reads from outside the run is its latest good materialization, and
//! the plan says where there is none. The assets that the selection names are planned for the partitions that were
//! asked for, and what `+` adds for those that mappings name. A plan is the union of what each reason asks for.

mod asked;
mod checks;
mod config;
mod error;
mod inputs;
mod lookup;
mod meaning;
mod outside;
mod reach;
mod select;
mod stages;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use servo_core::partitions::{PartitionContext, PartitionSet};
use servo_core::selection::Selection;
use servo_core::{
    AssetKey, MaterializationId, Operation, PartitionKey, TaskKey, TenantId, Timestamp, WorkspaceId,
};

pub use error::{MissingUpstream, PlanningError};
pub use inputs::PlannedInput;
pub use meaning::{PlannedReason, Why};

use crate::definitions::{Asset, AssetDef, Definitions, Dep, OnBlocked};
use crate::plan::{Plan, PlanError, TaskOptions, TaskSpec};
use crate::retry::RetryPolicy;
use crate::staleness::Needed;
use lookup::Lookup;
use outside::Outside;

/// A request to plan a run.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// Which assets.
    pub selection: Selection,
    /// The operation on them. Only data that is there can be checked.
    pub operation: Operation,
    /// Partitions of the assets.
    pub partitions: PartitionChoice,
    /// Values of configuration fields as JSON texts, by field, or by `namespace.name:field` for one asset alone.
    pub config: BTreeMap<String, String>,
    /// Whether tasks that fail are left at that, whatever their policy says.
    pub no_retry: bool,
}

/// Partitions in the user's notation; the union of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionChoice {
    /// Keys, such as `2013-01-15` or `date=2013-01-15,region=eu`; a dimension left out means all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Ranges, such as `2013-01-01..2013-01-31`, both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<String>,
    /// The newest partition of every asset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latest: bool,
    /// Of these, or of all if none are given, only those that were never made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// Of these, or of all if none are given, only those whose last attempt failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Of these, or of all if none are given, only those that have to be made to be up to date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

impl PartitionChoice {
    /// Whether no partitions are asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether only some of the partitions are meant, by how they fare.
    pub(crate) fn is_filtered(&self) -> bool {
        self.missing || self.failed || self.stale
    }
}

/// Looks up materializations that exist outside the plan.
pub trait Materializations {
    /// The latest good materialization of every partition of an asset that has one.
    fn of<'s>(
        &'s self,
        asset: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's>;

    /// The latest good materialization of one partition.
    fn get(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<MaterializationId> {
        self.of(asset).find(|(key, _)| key.as_ref() == partition).map(|(_, id)| id)
    }

    /// Whether the last attempt at a partition failed.
    fn has_failed(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> bool {
        let _ = (asset, partition);
        false
    }

    /// Of some partitions, by position of their assets, those that have to be made to bring them up to date.
    fn needed(
        &self,
        definitions: &Definitions,
        asked: &BTreeMap<u32, PartitionSet>,
        now: Timestamp,
    ) -> Needed {
        let _ = (definitions, now);
        Needed { needed: asked.clone(), ..Needed::default() }
    }
}

/// The inputs of a plan besides definitions and request.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The tenant, for the fingerprint.
    pub tenant: &'a TenantId,
    /// The workspace, for the fingerprint.
    pub workspace: &'a WorkspaceId,
    /// Time, and keys of dynamic partitions.
    pub at: PartitionContext<'a>,
    /// Existing materializations.
    pub materializations: &'a dyn Materializations,
    /// The most tasks that a run may have.
    pub max_tasks: u32,
}

/// A plan, and its explanation.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Its assets, in the order of their keys.
    pub assets: Vec<PlannedAsset>,
    /// Its tasks, in the order of the plan.
    pub tasks: Vec<PlannedTask>,
    /// How many stages there are: tasks of a stage wait only for earlier stages.
    pub stages: u32,
    /// Selected assets that are made elsewhere, by position.
    pub external: Vec<u32>,
    /// Requested targets that are not planned, if only stale ones were.
    pub skipped: Vec<SkippedAsset>,
}

/// Partitions of an asset that were asked for and are not planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedAsset {
    /// Its position in the definitions.
    pub asset: u32,
    /// Those that are up to date.
    pub up_to_date: PartitionSet,
    /// Those that are stale only because of something that is not part of the request: they would be stale again.
    pub waiting: PartitionSet,
}

impl Planned {
    /// Why a task is planned: every reason for any asset that it makes.
    pub fn reasons(&self, task: &PlannedTask) -> impl Iterator<Item = &PlannedReason> {
        let of = |asset: &u32| self.assets.binary_search_by_key(asset, |planned| planned.asset).ok();
        let reasons = task.assets.iter().filter_map(of).flat_map(|found| &self.assets[found].reasons);
        reasons.filter(|reason| reason.partitions.contains(&task.index))
    }
}

/// An asset of a plan.
#[derive(Debug, Clone)]
pub struct PlannedAsset {
    /// Its position in the definitions.
    pub asset: u32,
    /// Why it is planned, in the order of [`Why`], and which partitions for each reason.
    pub reasons: Vec<PlannedReason>,
    /// The partitions of all reasons together.
    pub partitions: PartitionSet,
}

/// A task of a plan.
#[derive(Debug, Clone)]
pub struct PlannedTask {
    /// Positions of the assets that it makes; the first names the task.
    pub assets: Vec<u32>,
    /// The partition, if they have any.
    pub partition: Option<PartitionKey>,
    /// Indexes of the partition, one per dimension.
    pub index: Vec<u64>,
    /// From 0.
    pub stage: u32,
    /// Its inputs and dependencies, in the order of declaration.
    pub inputs: Vec<PlannedInput>,
}

/// Plans a request.
pub fn plan(
    definitions: &Definitions,
    request: &PlanRequest,
    context: &PlanContext<'_>,
) -> Result<Planned, PlanningError> {
    let outside = Outside::new(definitions, context);
    let select::Selected { assets, external, skipped } =
        select::select(definitions, request, context, &outside)?;
    let mut groups = match request.operation {
        Operation::Materialize | Operation::Backfill => {
            config::check(definitions, &assets, &request.config)?;
            groups(definitions, &assets, &request.config)?
        }
        Operation::Check => checks::groups(definitions, &assets),
    };
    if request.no_retry {
        groups.iter_mut().for_each(|group| group.options.retry = Some(RetryPolicy::never()));
    }
    let planned = plan_groups(definitions, request.operation, assets, groups, external, &outside, context)?;
    Ok(Planned { skipped, ..planned })
}

/// The partitions of each asset that a request means, by position, without a plan of them.
pub fn targets(
    definitions: &Definitions,
    request: &PlanRequest,
    context: &PlanContext<'_>,
) -> Result<BTreeMap<u32, PartitionSet>, PlanningError> {
    let outside = Outside::new(definitions, context);
    let select::Selected { assets, .. } = select::select(definitions, request, context, &outside)?;
    config::check(definitions, &assets, &request.config)?;
    groups(definitions, &assets, &request.config)?;
    Ok(assets.into_iter().map(|planned| (planned.asset, planned.partitions)).collect())
}

/// Plans given partitions of assets, by position. `part` names the selection that they come from.
pub fn plan_targets(
    definitions: &Definitions,
    targets: BTreeMap<u32, PartitionSet>,
    config: &BTreeMap<String, String>,
    part: &str,
    context: &PlanContext<'_>,
) -> Result<Planned, PlanningError> {
    let why = Why::Selected { part: part.into() };
    let planned = |(asset, partitions): (u32, PartitionSet)| PlannedAsset {
        asset,
        reasons: vec![PlannedReason { why: why.clone(), partitions: partitions.clone() }],
        partitions,
    };
    let assets: Vec<PlannedAsset> =
        targets.into_iter().filter(|(_, set)| !set.is_empty()).map(planned).collect();
    let groups = groups(definitions, &assets, config)?;
    let outside = Outside::new(definitions, context);
    plan_groups(definitions, Operation::Materialize, assets, groups, Vec::new(), &outside, context)
}

fn plan_groups(
    definitions: &Definitions,
    operation: Operation,
    assets: Vec<PlannedAsset>,
    groups: Vec<Group>,
    external: Vec<u32>,
    outside: &Outside<'_>,
    context: &PlanContext<'_>,
) -> Result<Planned, PlanningError> {
    let total = groups.iter().fold(0u128, |sum, group| sum.saturating_add(group.partitions.len()));
    if total > u128::from(context.max_tasks) {
        return Err(PlanningError::TooManyTasks { count: total, limit: context.max_tasks });
    }
    let drafts = drafts(definitions, &groups, operation, context);
    let mut owners = vec![None; definitions.assets().len()];
    for (at, group) in groups.iter().enumerate() {
        group.assets.iter().for_each(|asset| owners[*asset as usize] = Some(at));
    }
    let lookups = lookups(&groups, &drafts);
    let (wired, sets) = match operation {
        Operation::Materialize | Operation::Backfill => {
            inputs::wire(definitions, &groups, &drafts, &owners, &lookups, outside, context)?
        }
        // What is there is checked as it is: no check waits for another.
        Operation::Check => (drafts.iter().map(|_| inputs::Wired::default()).collect(), Vec::new()),
    };
    let specs = drafts
        .iter()
        .zip(&wired)
        .map(|(draft, wired)| TaskSpec {
            task_key: draft.key.clone(),
            upstream: wired.upstream.clone(),
            options: groups[draft.group].options.clone(),
        })
        .collect();
    let plan = Plan::assemble(context.tenant, context.workspace, specs, sets)?;
    let (stages, of) = stages::stages(plan.tasks(), plan.sets());
    let tasks = drafts.into_iter().zip(wired).zip(of).map(|((draft, wired), stage)| PlannedTask {
        assets: groups[draft.group].assets.clone(),
        partition: draft.partition,
        index: draft.digits,
        stage,
        inputs: wired.inputs,
    });
    Ok(Planned { tasks: tasks.collect(), plan, assets, stages, external, skipped: Vec::new() })
}

/// Assets that are made together: one task per partition makes them all.
struct Group {
    assets: Vec<u32>,
    partitions: PartitionSet,
    options: TaskOptions,
}

fn groups(
    definitions: &Definitions,
    planned: &[PlannedAsset],
    config: &BTreeMap<String, String>,
) -> Result<Vec<Group>, PlanningError> {
    let find = |position: u32| {
        planned.binary_search_by_key(&position, |planned| planned.asset).ok().map(|found| &planned[found])
    };
    let mut groups: Vec<Group> = Vec::new();
    let mut problems = Vec::new();
    for asset in planned {
        let together: Vec<u32> =
            definitions.made_with(asset.asset).filter(|other| find(*other).is_some()).collect();
        if together.first() != Some(&asset.asset) {
            continue;
        }
        let made: Vec<&Asset> = together.iter().map(|asset| definitions.asset(*asset)).collect();
        let others = made[1..].iter().map(|other| other.key.clone()).collect();
        let config = config::of(&made, config).unwrap_or_else(|found| {
            problems.push((made[0].key.clone(), found));
            BTreeMap::new()
        });
        let is_previous = |dep: &&Dep| dep.on_blocked == OnBlocked::Previous;
        let deps = made.iter().flat_map(|asset| &asset.deps).filter(is_previous);
        let previous: BTreeSet<AssetKey> = deps.map(|dep| definitions.asset(dep.asset).key.clone()).collect();
        let options = TaskOptions {
            previous: previous.into_iter().collect(),
            config,
            ..options(&definitions.asset(asset.asset).def, others)
        };
        groups.push(Group { assets: together, partitions: asset.partitions.clone(), options });
    }
    if problems.is_empty() { Ok(groups) } else { Err(PlanningError::WrongConfig { problems }) }
}

fn options(def: &AssetDef, outputs: Vec<AssetKey>) -> TaskOptions {
    TaskOptions {
        priority: def.priority,
        retry: def.retry.clone(),
        timeout_ms: def.timeout_ms,
        heartbeat_timeout_ms: None,
        worker_queue: def.queue.as_deref().map(Into::into),
        pool: def.pool.as_deref().map(Into::into),
        compute: def.compute.clone(),
        outputs,
        single_call: def.single_call,
        previous: Vec::new(),
        config: BTreeMap::new(),
    }
}

/// A task whose dependencies are not known yet.
struct Draft {
    key: TaskKey,
    group: usize,
    partition: Option<PartitionKey>,
    /// Indexes of the partition, one per dimension.
    digits: Vec<u64>,
}

/// One task per group and partition, in the order of task keys.
fn drafts(
    definitions: &Definitions,
    groups: &[Group],
    operation: Operation,
    context: &PlanContext<'_>,
) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let asset = definitions.asset(group.assets[0]);
        let draft = |partition: Option<PartitionKey>, digits| Draft {
            key: TaskKey::new(&asset.key, partition.as_ref(), operation),
            group: at,
            partition,
            digits,
        };
        match &asset.partitions {
            None => drafts.push(draft(None, Vec::new())),
            Some(partitions) => {
                let keys = partitions.keys_in(&group.partitions, context.at);
                drafts
                    .extend(keys.zip(group.partitions.iter()).map(|(key, digits)| draft(Some(key), digits)));
            }
        }
    }
    drafts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    drafts
}

/// Where the task of a partition is, for each group.
fn lookups(groups: &[Group], drafts: &[Draft]) -> Vec<Lookup<u32>> {
    let mut entries: Vec<Vec<(Vec<u64>, u32)>> = groups.iter().map(|_| Vec::new()).collect();
    for (position, draft) in (0u32..).zip(drafts) {
        entries[draft.group].push((draft.digits.clone(), position));
    }
    entries.into_iter().map(Lookup::new).collect()
}

impl From<PlanError> for PlanningError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
