//! Plans: what would run.

use serde::{Deserialize, Serialize};
use servo_core::partitions::{PartitionContext, PartitionSet};
use servo_core::{AssetKey, PartitionKey, Partitions, TaskKey};
use servo_engine::definitions::Definitions;
use servo_engine::planner::{self, Why};
use servo_engine::requests::PlannedRun;
use servo_engine::{DepSet, Positions};
use servo_runtime::Preview;
use utoipa::ToSchema;

use super::tasks::Task;

/// Number of warnings that are listed one by one.
const MAX_WARNINGS: usize = 50;

/// The plan of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Equal plans, equal fingerprint.
    pub fingerprint: String,
    /// How many stages there are: tasks of a stage wait only for earlier stages.
    pub stages: u32,
    /// The tasks, in the order of their keys.
    pub tasks: Vec<PlannedTask>,
    /// Tasks that all wait for the same tasks, beside the `upstream` of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<PlannedSet>,
    /// Selected external assets, as `namespace/name`.
    #[schema(value_type = Vec<String>)]
    pub external: Vec<AssetKey>,
    /// What was asked for and is not planned, if only what is stale was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedPartitions>,
    /// Warnings to consider before running it, as sentences.
    pub warnings: Vec<String>,
}

/// The plan that a run follows, by asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunPlan {
    /// Equal plans, equal fingerprint; absent before the run is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// How many stages there are: tasks of a stage wait only for earlier stages.
    pub stages: u32,
    /// Number of its tasks.
    pub tasks: u32,
    /// Its assets, in the order of their first stages, then of their keys; at most 1,000.
    pub steps: Vec<PlanStep>,
    /// Assets that are left out of `steps`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_steps: u32,
    /// The chain of tasks that decided when the run ended: each waited last for the one before it. Names of tasks in
    /// addresses, in the order in which they ran; empty before anything has begun.
    pub critical_path: Vec<String>,
}

/// An asset of the plan of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    /// `namespace/name`.
    pub asset_key: String,
    /// Number of its tasks.
    pub tasks: u32,
    /// Stage of the first of them, from 1.
    pub first_stage: u32,
    /// Stage of the last of them.
    pub last_stage: u32,
    /// Assets of the plan whose tasks they wait for, as `namespace/name`.
    pub upstream: Vec<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Partitions of an asset that were asked for and are not planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedPartitions {
    /// The asset, as `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// `SKIPPED_UP_TO_DATE`, or `SKIPPED_UPSTREAM_STALE` if it is stale only because of something that is not part of
    /// the request.
    pub reason: String,
    /// How many; 1 if the asset has none.
    pub partitions: u64,
}

/// Every task of one list waits for every task of the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedSet {
    /// Tasks that must end first: ranges of positions in the list of tasks, each with its first and the one behind its
    /// last.
    #[schema(value_type = Vec<Vec<u32>>)]
    pub upstream: Positions,
    /// Tasks that wait for all of them.
    #[schema(value_type = Vec<Vec<u32>>)]
    pub downstream: Positions,
}

/// A task of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct PlannedTask {
    pub task_id: String,
    #[schema(value_type = String)]
    pub task_key: TaskKey,
    /// The assets it makes, as `namespace/name`; the first names the task.
    #[schema(value_type = Vec<String>)]
    pub asset_keys: Vec<AssetKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub partition_key: Option<PartitionKey>,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Whether one call of the function makes this and all other partitions of the asset in the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_call: bool,
    /// From 1.
    pub stage: u32,
    /// Every reason for it.
    pub why: Vec<PlannedReason>,
    /// Its upstream tasks, as positions in the list of tasks; more may be in `sets` of the plan.
    pub upstream: Vec<u32>,
    pub inputs: Vec<PlannedInput>,
}

/// Why a task is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedReason {
    /// `selected`, `upstream`, `downstream`, or `same_function` as something that is planned.
    pub reason: String,
    /// The part of the selection that it is selected by, upstream or downstream of; or the asset of the same function.
    pub of: String,
}

/// The partitions of one asset that a task reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedInput {
    /// The asset, as `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// The parameter that receives its data; absent if only the order matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Made elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    /// Number of partitions that are read; 1 if the asset has none.
    pub partitions: u64,
    /// Which partitions, for people: `2013-01-01..2013-01-07`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub which: String,
    /// The first of them, as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Number of them that tasks of the plan make.
    pub in_run: u64,
    /// Number of the others that are materialized.
    pub materialized: u64,
    /// Number of the others that were never materialized.
    pub never_materialized: u64,
    /// Whether those are left out, and only the rest is read: `servo.available()`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub available: bool,
}

impl From<Preview> for Plan {
    fn from(Preview { run, dynamic, at }: Preview) -> Self {
        let PlannedRun { planned, definitions, .. } = run;
        let at = PartitionContext::new(at, &dynamic);
        let key = |position: &u32| definitions.asset(*position).key.clone();
        let why = |reason: &planner::PlannedReason| PlannedReason::new(&reason.why, &definitions);
        let mut warnings = Warnings::default();
        let tasks = planned.tasks.iter().zip(planned.plan.tasks().iter()).map(|(task, spec)| {
            for input in &task.inputs {
                match &input.never_materialized {
                    Some((_, count)) if input.available => {
                        warnings.left_out(&spec.task_key, &key(&input.asset), *count, input.partitions.len());
                    }
                    Some((first, count)) => {
                        warnings.never(&spec.task_key, &key(&input.asset), first.as_ref(), *count);
                    }
                    None => {}
                }
            }
            PlannedTask {
                task_id: Task::id_of(&spec.task_key),
                task_key: spec.task_key.clone(),
                asset_keys: task.assets.iter().map(key).collect(),
                partition: task.partition.as_ref().map(ToString::to_string),
                partition_key: task.partition.clone(),
                single_call: spec.options.single_call,
                stage: task.stage + 1,
                why: planned.reasons(task).map(why).collect(),
                upstream: spec.upstream.clone(),
                inputs: task.inputs.iter().map(|input| PlannedInput::new(input, &definitions, at)).collect(),
            }
        });
        Self {
            fingerprint: planned.plan.fingerprint().to_string(),
            stages: planned.stages,
            tasks: tasks.collect(),
            sets: planned.plan.sets().iter().map(PlannedSet::from).collect(),
            external: planned.external.iter().map(key).collect(),
            skipped: planned.skipped.iter().flat_map(|it| skipped(key(&it.asset), it)).collect(),
            warnings: warnings.finish(),
        }
    }
}

fn skipped(asset_key: AssetKey, of: &planner::SkippedAsset) -> impl Iterator<Item = SkippedPartitions> {
    let sets = [("SKIPPED_UP_TO_DATE", &of.up_to_date), ("SKIPPED_UPSTREAM_STALE", &of.waiting)];
    let counted = sets.map(|(reason, set)| SkippedPartitions {
        asset_key: asset_key.clone(),
        reason: reason.to_owned(),
        partitions: u64::try_from(set.len()).unwrap_or(u64::MAX),
    });
    counted.into_iter().filter(|skipped| skipped.partitions > 0)
}

impl From<&DepSet> for PlannedSet {
    fn from(set: &DepSet) -> Self {
        Self { upstream: set.upstream.clone(), downstream: set.downstream.clone() }
    }
}

impl PlannedInput {
    fn new(input: &planner::PlannedInput, definitions: &Definitions, at: PartitionContext<'_>) -> Self {
        let asset = definitions.asset(input.asset);
        let ends = asset.partitions.as_ref().map(|partitions| {
            let digits = |end: Option<Vec<u64>>| {
                let end = PartitionSet::one(&end?);
                partitions.keys_in(&end, at).next().map(|key| key.to_string())
            };
            let blocks = input.partitions.blocks();
            let first = |block: &servo_core::partitions::Block| {
                block.ranges().iter().map(|range| range.start).collect()
            };
            let last = |block: &servo_core::partitions::Block| {
                block.ranges().iter().map(|range| range.end - 1).collect()
            };
            (digits(blocks.first().map(first)), digits(blocks.last().map(last)))
        });
        let (first, last) = ends.unwrap_or_default();
        let count = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            asset_key: asset.key.clone(),
            parameter: input.parameter.clone(),
            external: asset.def.external,
            which: which(asset.partitions.as_deref(), &input.partitions, first.as_deref(), last.as_deref()),
            partitions: count(input.partitions.len()),
            first,
            last,
            in_run: input.in_run,
            materialized: input.materialized,
            never_materialized: input.never_materialized.as_ref().map_or(0, |(_, never)| count(*never)),
            available: input.available,
        }
    }
}

impl PlannedReason {
    fn new(why: &Why, definitions: &Definitions) -> Self {
        let (reason, of) = match why {
            Why::Selected { part } => ("selected", part.to_string()),
            Why::Upstream { of } => ("upstream", of.to_string()),
            Why::Downstream { of } => ("downstream", of.to_string()),
            Why::SameFunction { of } => ("same_function", definitions.asset(*of).key.canonical().to_owned()),
        };
        Self { reason: reason.to_owned(), of }
    }
}

/// For people.
impl std::fmt::Display for PlannedReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.reason.as_str() {
            "selected" => write!(f, "selected by {}", self.of),
            "same_function" => write!(f, "made together with {}", self.of.replacen('/', ".", 1)),
            reason => write!(f, "{reason} of {}", self.of),
        }
    }
}

/// The first and the last of a set, and how many where they do not follow each other.
fn which(
    partitions: Option<&Partitions>,
    set: &PartitionSet,
    first: Option<&str>,
    last: Option<&str>,
) -> String {
    let has_one_dimension = set.blocks().iter().all(|block| block.ranges().len() == 1);
    match (first, last, set.len()) {
        _ if partitions.is_none() => String::new(),
        (Some(first), _, 1) => first.to_owned(),
        (Some(first), Some(last), _) if set.blocks().len() == 1 && has_one_dimension => {
            format!("{first}..{last}")
        }
        (Some(first), Some(last), count) => format!("{count} from {first} to {last}"),
        (None, _, 0) | (_, None, 0) => String::new(),
        (None, _, count) | (_, None, count) => format!("{count} partitions"),
    }
}

#[derive(Default)]
struct Warnings {
    said: Vec<String>,
    more: usize,
}

impl Warnings {
    fn never(&mut self, task: &TaskKey, asset: &AssetKey, first: Option<&PartitionKey>, count: u128) {
        let which = first.map(|first| format!(" {first}")).unwrap_or_default();
        let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        self.say(task, &format!("{asset}{which}{others}, which was never materialized"));
    }

    fn left_out(&mut self, task: &TaskKey, asset: &AssetKey, never: u128, all: u128) {
        self.say(
            task,
            &format!("{asset} without {never} of {all} partitions, which were never materialized"),
        );
    }

    fn say(&mut self, task: &TaskKey, read: &str) {
        if self.said.len() >= MAX_WARNINGS {
            self.more += 1;
            return;
        }
        let partition = task.partition().map(|partition| format!(" {partition}")).unwrap_or_default();
        self.said.push(format!("{}{partition} reads {read}", task.asset()));
    }

    fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.said.push(format!("and {} more", self.more));
        }
        self.said
    }
}
