//! The resolved work of an attempt, as a worker needs it: the function, its inputs, its outputs.
//!
//! Plain data. It is put together from definitions and state when the attempt is dispatched (ADR-061). The exact
//! materializations are in the log with the dispatch (ADR-086): what is promoted afterwards does not change what an
//! attempt reads.

mod resolve;

pub(crate) use resolve::{can_be_repeated, provenance, work};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, MaterializationId, PartitionKey, Timestamp};

use crate::definitions::{CheckDef, Compute, Isolation, SecretDef};
use crate::outputs::DataFormat;

/// Variables of the environment that prove to a server, or to an identity provider, who a process is. Programs of users
/// are started without them: code of a project, its scan, commands of notifications.
pub const CREDENTIALS: [&str; 4] =
    ["SERVO_KEY", "SERVO_TOKEN", "SERVO_WORKER_KEY", "SERVO_OIDC_CLIENT_SECRET"];

/// The resolved work of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// `module:qualname`.
    pub function: String,
    /// For which partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<WorkPartition>,
    /// Whether the function takes a range of partitions, of which this is one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_call: bool,
    /// Inputs, by parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<WorkInput>,
    /// Outputs; at least one.
    pub outputs: Vec<WorkOutput>,
    /// Values of the configuration, as JSON texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Secrets that the function is given; never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretDef>,
    /// Whether it gets a process of its own.
    #[serde(default, skip_serializing_if = "is_shared")]
    pub isolation: Isolation,
    /// The machine resources that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Compute>,
}

/// The partition of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPartition {
    /// Its key.
    pub key: PartitionKey,
    /// Its time, if it has one: from the first moment to the one after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<(Timestamp, Timestamp)>,
}

/// The input of one parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkInput {
    /// The parameter.
    pub parameter: String,
    /// The asset it reads.
    pub asset: AssetKey,
    /// The resource that loads it; the default storage if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<String>,
    /// Made elsewhere: there are no materializations of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    /// Exactly one piece is wanted, not a table of several.
    pub single: bool,
    /// The data, in the order of partitions.
    pub pieces: Vec<WorkPiece>,
    /// How many partitions were never made, and are left out because the dependency says so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One partition of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPiece {
    /// Which; none if the asset has no partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionKey>,
    /// Its latest good materialization; none if there never was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialization_id: Option<MaterializationId>,
    /// The form of its data, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DataFormat>,
}

/// One asset that an attempt makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkOutput {
    /// Which.
    pub asset: AssetKey,
    /// The materialization id of its data, if the attempt succeeds.
    pub materialization_id: MaterializationId,
    /// The resource that stores it; the default storage if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<String>,
    /// Keep for review what a check blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quarantine: bool,
    /// Tests of it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub checks: Arc<[CheckDef]>,
    /// The previous good materialization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<MaterializationId>,
    /// The data to check, if nothing is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<WorkPiece>,
}

fn is_empty(checks: &Arc<[CheckDef]>) -> bool {
    checks.is_empty()
}

fn is_shared(isolation: &Isolation) -> bool {
    *isolation == Isolation::Shared
}
