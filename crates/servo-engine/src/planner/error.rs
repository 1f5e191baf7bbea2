//! Why there is no plan.

use std::fmt;

use servo_core::partitions::Reason;
use servo_core::selection::EvaluateError;
use servo_core::{AssetKey, TaskKey};

use crate::plan::PlanError;

/// Why a request cannot be planned. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanningError {
    /// Names of the selection match no asset.
    #[error(transparent)]
    Unmatched(EvaluateError),
    /// The selection is well formed and means no asset.
    #[error("{selection} selects no asset; see the names and tags with \"servo asset list\"")]
    NothingSelected {
        /// The selection.
        selection: String,
    },
    /// What is selected has partitions, and there is none yet.
    #[error("{asset} has no partitions yet{}", add_some(.keys.as_deref()))]
    NoneYet {
        /// The first asset.
        asset: AssetKey,
        /// The dynamic partitions that have no keys.
        keys: Option<String>,
    },
    /// Only what was never made is asked for, and everything was.
    #[error("nothing that {selection} selects is missing; leave out --missing to make it again")]
    NothingMissing {
        /// The selection.
        selection: String,
    },
    /// Only what is stale is asked for, and there is nothing that making it would bring up to date.
    #[error("{}", nothing_stale(.selection, .waiting.as_ref()))]
    NothingStale {
        /// The selection.
        selection: String,
        /// An asset that is stale only because of something that is not selected.
        waiting: Option<AssetKey>,
    },
    /// Checks are asked for, and nothing selected declares any of its data.
    #[error(
        "nothing that {selection} selects declares a check of its data; give an asset checks=[…], or write one with @servo.asset_check"
    )]
    NoChecks {
        /// The selection.
        selection: String,
    },
    /// Checks are asked for, and nothing selected was ever made.
    #[error(
        "nothing that {selection} selects is materialized for these partitions, so there is nothing to check; make it first with \"servo materialize\""
    )]
    NothingToCheck {
        /// The selection.
        selection: String,
    },
    /// Checks of what was never made are asked for.
    #[error("only what was made can be checked; leave out missing and failed")]
    ChecksOfMissing,
    /// Only what failed last is asked for, and nothing did.
    #[error(
        "the last attempt at nothing that {selection} selects has failed; leave out --failed to make it again"
    )]
    NothingFailed {
        /// The selection.
        selection: String,
    },
    /// All selected assets are external.
    #[error("{asset} is external: something else makes it, so there is nothing to run")]
    OnlyExternal {
        /// The first of them.
        asset: AssetKey,
    },
    /// A partitioned asset, and no partition that fits it.
    #[error("{}", needs_partition(.assets, *.more))]
    NeedsPartition {
        /// The first such assets, and how to choose one of their partitions.
        assets: Vec<(AssetKey, String)>,
        /// How many more there are.
        more: usize,
    },
    /// A key or range fits none of the selected assets.
    #[error("partition {text} fits none of the selected assets:{}", lines(.reasons))]
    NoSuchPartition {
        /// The requested partitions.
        text: String,
        /// For the first assets, why it does not fit.
        reasons: Vec<(AssetKey, String)>,
    },
    /// Partitions were asked for, and nothing selected has any.
    #[error("nothing that is selected has partitions; leave out the partition")]
    NoPartitions,
    /// A configuration value that nothing takes.
    #[error("{}", unknown_config(.name, .known))]
    UnknownConfig {
        /// Its name.
        name: String,
        /// The parameters that the selected assets take.
        known: Vec<String>,
    },
    /// Values of configuration are missing, or not what their fields take.
    #[error("the configuration is wrong:{}", config_problems(.problems))]
    WrongConfig {
        /// The problems, by asset.
        problems: Vec<(AssetKey, Vec<String>)>,
    },
    /// More tasks than a run may have.
    #[error(
        "the plan needs at least {count} tasks and a run may have {limit}; narrow the selection or the partitions, or raise max_tasks_per_run"
    )]
    TooManyTasks {
        /// Tasks that are needed, as far as they were counted.
        count: u128,
        /// Tasks allowed.
        limit: u32,
    },
    /// Partitions that tasks read do not exist.
    #[error("{}", do_not_exist(.missing, *.more))]
    Missing {
        /// The first of them.
        missing: Vec<MissingUpstream>,
        /// How many more there are.
        more: u64,
    },
    /// The tasks do not make a plan.
    #[error(transparent)]
    Plan(PlanError),
}

/// A partition that a task reads and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingUpstream {
    /// The task.
    pub task: TaskKey,
    /// The asset that it reads.
    pub upstream: AssetKey,
    /// The partition, in its short form.
    pub partition: String,
    /// Why it does not exist.
    pub reason: Reason,
}

/// `analytics.weekly 2013-01-05 reads raw.flights 2012-12-31: the first partition is 2013-01-01`.
impl fmt::Display for MissingUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} reads {} {}: {}", self.task.subject(), self.upstream, self.partition, self.reason)
    }
}

impl PlanningError {
    /// Says so if all is as it was asked for, so that nothing is to be made.
    pub fn nothing_to_make(&self) -> Option<String> {
        match self {
            PlanningError::NothingMissing { selection } => {
                Some(format!("nothing that {selection} selects is missing"))
            }
            PlanningError::NothingFailed { selection } => {
                Some(format!("the last attempt at nothing that {selection} selects has failed"))
            }
            PlanningError::NothingStale { selection, waiting: None } => Some(nothing_stale(selection, None)),
            PlanningError::NothingStale { waiting: Some(_), .. }
            | PlanningError::Unmatched(_)
            | PlanningError::NothingSelected { .. }
            | PlanningError::NoneYet { .. }
            | PlanningError::NoChecks { .. }
            | PlanningError::NothingToCheck { .. }
            | PlanningError::ChecksOfMissing
            | PlanningError::OnlyExternal { .. }
            | PlanningError::NeedsPartition { .. }
            | PlanningError::NoSuchPartition { .. }
            | PlanningError::NoPartitions
            | PlanningError::UnknownConfig { .. }
            | PlanningError::WrongConfig { .. }
            | PlanningError::TooManyTasks { .. }
            | PlanningError::Missing { .. }
            | PlanningError::Plan(_) => None,
        }
    }
}

fn add_some(keys: Option<&str>) -> String {
    keys.map_or_else(String::new, |keys| format!("; add some: servo partition add {keys} KEY"))
}

fn nothing_stale(selection: &str, waiting: Option<&AssetKey>) -> String {
    match waiting {
        None => format!("everything that {selection} selects is up to date"),
        Some(asset) => format!(
            "{asset} is stale only because of what it is made from, which {selection} does not select; \
             select that too (\"+{asset}\"), or see \"servo why {asset}\""
        ),
    }
}

fn lines(reasons: &[(AssetKey, String)]) -> String {
    reasons.iter().map(|(asset, reason)| format!("\n  {asset}: {reason}")).collect()
}

fn config_problems(problems: &[(AssetKey, Vec<String>)]) -> String {
    let all = problems.iter().flat_map(|(asset, found)| found.iter().map(move |problem| (asset, problem)));
    all.map(|(asset, problem)| format!("\n  {asset}: {problem}")).collect()
}

fn needs_partition(assets: &[(AssetKey, String)], more: usize) -> String {
    let rest = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    format!(
        "choose partitions with --partition KEY, --partitions FROM..TO or --latest:{}{rest}",
        lines(assets)
    )
}

fn do_not_exist(missing: &[MissingUpstream], more: u64) -> String {
    let mut text = "partitions that tasks read do not exist:".to_owned();
    missing.iter().for_each(|missing| text.push_str(&format!("\n  {missing}")));
    if more > 0 {
        text.push_str(&format!("\n  and {more} more"));
    }
    text
}

fn unknown_config(name: &str, known: &[String]) -> String {
    match known {
        [] => format!("config {name}: nothing that is selected takes any configuration"),
        _ => format!("config {name}: nothing that is selected takes it; there is {}", known.join(", ")),
    }
}
