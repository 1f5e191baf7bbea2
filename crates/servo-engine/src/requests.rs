//! Requests for runs: which assets and partitions, planned against a state, and other tries of runs that have ended.
//!
//! Planning reads a state and changes nothing, so large requests are planned on a snapshot beside the engine. A plan
//! remembers what it was made from, and the engine refuses one that the state has outrun ([`StalePlan`]): plan again.

mod backfills;
mod error;
mod estimate;
mod partition_life;
mod plan;
mod retry;

pub use backfills::{
    BackfillPreview, BackfillRequest, DEFAULT_CHUNK_SIZE, DEFAULT_CONCURRENT_RUNS, prepare_backfill,
    preview_backfill, retry_backfill,
};
pub use error::RequestError;
pub use estimate::Estimate;
pub use partition_life::{
    PartitionsOf, Repartitioned, WipePreview, prepare_mark, prepare_wipe, repartitioned,
};
pub use plan::{PlanBasis, PlannedRun, StalePlan, plan, plan_with, prepare, unplanned};
pub use retry::{EndedRun, Retry, retry};

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use servo_core::{Fingerprint, Millis, Operation, RunId, fingerprint};

use crate::event::RunSource;
use crate::plan::Plan;
use crate::planner::PartitionChoice;
use crate::principal::Caller;

/// A request for a run, as it was made.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Which assets, as a selection; empty if the tasks were given one by one, or are those of another run.
    pub selection: String,
    /// The operation on the assets.
    pub operation: Operation,
    /// Partitions of the assets.
    pub partitions: PartitionChoice,
    /// Values of configuration fields as JSON texts, by field or by `namespace.name:field`.
    pub config: BTreeMap<String, String>,
    /// Higher runs first.
    pub priority: i32,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Longest the run may take.
    pub timeout: Option<Millis>,
    /// Whether tasks that fail are left at that, whatever their policy says.
    pub no_retry: bool,
    /// Origin of the run.
    pub source: RunSource,
    /// Who asks.
    pub caller: Caller,
}

/// Everything that makes two requests under one run key the same. Who asks, when and why is not part of it.
#[derive(Serialize)]
struct NormalizedRequest<'a> {
    spec_version: u8,
    selection: &'a str,
    #[serde(skip_serializing_if = "Operation::is_default")]
    operation: Operation,
    keys: BTreeSet<&'a str>,
    ranges: BTreeSet<&'a str>,
    latest: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    missing: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
    config: &'a BTreeMap<String, String>,
    retry_of: Option<(RunId, bool)>,
    tasks: Option<&'a Fingerprint>,
    priority: i32,
    labels: &'a BTreeMap<String, String>,
    timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_retry: bool,
}

impl RunRequest {
    /// Hash of what was asked for. The plan takes part only if the request consists of it: the same selection means
    /// other tasks after a deployment, and is the same request.
    ///
    /// # Panics
    /// Never: integers and strings always have a canonical form.
    pub(crate) fn fingerprint(&self, tasks: Option<&Plan>) -> Fingerprint {
        let retry_of = match self.source {
            RunSource::Retry { of, from_failure } => Some((of, from_failure)),
            RunSource::Manual
            | RunSource::Api
            | RunSource::Schedule { .. }
            | RunSource::Sensor { .. }
            | RunSource::Backfill { .. }
            | RunSource::Condition { .. }
            | RunSource::Unknown(_) => None,
        };
        fingerprint(&NormalizedRequest {
            spec_version: 1,
            selection: self.selection.trim(),
            operation: self.operation,
            keys: self.partitions.keys.iter().map(String::as_str).collect(),
            ranges: self.partitions.ranges.iter().map(String::as_str).collect(),
            latest: self.partitions.latest,
            missing: self.partitions.missing,
            failed: self.partitions.failed,
            stale: self.partitions.stale,
            config: &self.config,
            retry_of,
            tasks: tasks.map(Plan::fingerprint),
            priority: self.priority,
            labels: &self.labels,
            timeout_ms: self.timeout,
            no_retry: self.no_retry,
        })
        .expect("integers and strings have a canonical form")
    }
}
