//! Bodies of the worker protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{MaterializationId, Timestamp};
use servo_engine::evaluation::{Evaluation, EvaluationReport};
use servo_engine::outputs::OutputReport;
use servo_engine::rows::WorkerRow;
use servo_engine::{Outcome, State, TaskError, TaskState, WorkerState};
use servo_queue::{SignedEnvelope, WorkRef};
use utoipa::ToSchema;

use super::attempts::Usage;
use super::names::{OutcomeName, WorkerStateName};
use super::requests::Accepted;
use super::tasks::Progress;

/// A worker that wants tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterBody {
    /// Its name.
    pub name: String,
    /// A random text of its process: two processes of one name are two workers.
    pub nonce: String,
    /// The tenant that it works for.
    pub tenant: String,
    /// The workspace that it works for.
    pub workspace: String,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// Functions that it runs at once.
    pub slots: u32,
    /// Digest of its project, as of a deployment.
    pub digest: String,
    /// Its storage, as it calls it.
    #[serde(default)]
    pub storage: String,
    /// The machine that it runs on.
    #[serde(default)]
    pub host: String,
    /// Version of Servo.
    #[serde(default)]
    pub version: String,
    /// Hashes of its assets by key, so that a refusal can name those that differ.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assets: BTreeMap<String, String>,
    /// The contents of the challenge that it found in its storage; absent when it asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Whether it waits to be called, and asks for nothing: each of its queues has to call its workers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listens: bool,
}

/// The result of a registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Registration {
    /// The id of the worker.
    pub worker_id: String,
    /// Whether it is given tasks from now on. If not, a challenge waits in the storage of the workspace.
    pub registered: bool,
}

/// A worker that says something about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerSign {
    /// The worker.
    pub worker_id: String,
}

/// The standing of a worker with the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerStanding {
    /// Whether it is registered. If not, it has to register again.
    pub registered: bool,
    /// Number of the deployment; absent if nothing is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<u64>,
    /// Digest of the deployed project: a worker with another one is given nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Digest of the code that the worker is known to have; absent if it is not registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_digest: Option<String>,
    /// After how many milliseconds of silence it is lost.
    pub timeout_ms: u64,
}

/// A worker takes no more tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaveBody {
    /// The worker.
    pub worker_id: String,
    /// Whether it ends what it has begun first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Worker {
    /// Its name, and a nonce of its process.
    pub worker_id: String,
    pub name: String,
    #[schema(value_type = WorkerStateName)]
    pub state: WorkerState,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// Functions that it runs at once.
    pub slots: u32,
    /// Tasks that it has begun and not ended.
    pub running: u64,
    /// The deployment whose code it has.
    pub deployment: u64,
    /// Digest of that code.
    pub digest: String,
    /// Whether that is the code that is deployed now.
    pub is_current: bool,
    /// Its storage, as it calls it.
    pub storage: String,
    pub host: String,
    /// Version of Servo.
    pub version: String,
    #[schema(value_type = String, format = DateTime)]
    pub registered_at: Timestamp,
    /// When it was last heard of.
    #[schema(value_type = String, format = DateTime)]
    pub heard_at: Timestamp,
}

/// Workers that are there, and the newest of those that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    /// In the order of their ids.
    pub items: Vec<Worker>,
}

impl Worker {
    /// All of a workspace.
    pub(crate) fn all(state: &State) -> Vec<Self> {
        let mut running: BTreeMap<&str, u64> = BTreeMap::new();
        let active = state.runs().filter(|run| !run.state.is_terminal()).flat_map(|run| &run.tasks);
        for worker in active.filter(|task| task.state == TaskState::Running).filter_map(|task| task.worker())
        {
            *running.entry(worker).or_default() += 1;
        }
        let digest = state.deployment().map(|deployment| &*deployment.digest);
        let worker = |row: &WorkerRow| Self {
            worker_id: row.worker_id.clone(),
            name: row.name.clone(),
            state: row.state,
            queues: row.queues.0.clone(),
            slots: row.slots,
            running: running.get(row.worker_id.as_str()).copied().unwrap_or_default(),
            deployment: row.deployment,
            digest: row.digest.clone(),
            is_current: digest == Some(&*row.digest),
            storage: row.storage.clone(),
            host: row.host.clone(),
            version: row.version.clone(),
            registered_at: row.registered_at,
            heard_at: row.heard_at,
        };
        state.workers().map(worker).collect()
    }
}

/// A request to lease tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// The worker.
    pub worker_id: String,
    /// From which queues, by name.
    pub queues: Vec<String>,
    /// Number of free slots.
    #[serde(default = "one")]
    pub slots: usize,
    /// How long to wait for the first task, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Leased tasks. The worker reports `started` before it begins one; a task that is never started goes to another
/// worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// At least one, at most as many as requested.
    #[schema(value_type = Vec<Object>)]
    pub envelopes: Vec<SignedEnvelope>,
}

/// A worker is about to begin an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The worker.
    pub worker_id: String,
    /// The stored work that its message refers to, which is wanted in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkReference>,
}

/// The hash and the size of work that is too large for a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkReference {
    /// SHA-256 of its text, in lower-case hexadecimal digits.
    pub sha256: String,
    /// Bytes of its text.
    pub bytes: u64,
}

impl From<WorkReference> for WorkRef {
    fn from(WorkReference { sha256, bytes }: WorkReference) -> Self {
        Self { sha256, bytes }
    }
}

impl From<&WorkRef> for WorkReference {
    fn from(WorkRef { sha256, bytes }: &WorkRef) -> Self {
        Self { sha256: sha256.clone(), bytes: *bytes }
    }
}

/// Stored work of an attempt that its worker has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HandedOutWork {
    /// JSON text with the hash of the reference.
    pub text: String,
    /// The credentials of further attempts of the same call, in their order: task tokens, or JSON texts of callback URLs
    /// relative to the address that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
}

/// The attempt is the worker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Begun {
    /// The event; absent if the attempt was the worker's already.
    #[serde(flatten)]
    pub accepted: Accepted,
    /// The work that was asked for; absent if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<HandedOutWork>,
}

/// A heartbeat of a running attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// Whether to continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// Whether to stop as soon as possible.
    pub should_cancel: bool,
    /// The token to show from now on, when the one that was shown has little time left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_token: Option<String>,
}

/// Whether to continue, for a worker that reports by callback URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallbackHeartbeatAnswer {
    /// Whether to stop as soon as possible.
    pub should_cancel: bool,
    /// The queries to ask with from now on, when those that were shown have little time left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callbacks: Option<RenewedCallbacks>,
}

/// Queries for the callback URLs of an attempt: each is a reference relative to the URL of its name.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct RenewedCallbacks {
    pub started: String,
    pub heartbeat: String,
    pub finished: String,
    pub logs: String,
}

/// Secrets are never shown.
impl std::fmt::Debug for RenewedCallbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenewedCallbacks").finish_non_exhaustive()
    }
}

// Describes `servo_engine::TaskError`, which is what is read and written.
/// The error of a failed attempt, as its worker reports it.
#[derive(ToSchema)]
#[allow(dead_code)]
struct ReportedError {
    /// For programs, such as `USER_CODE_EXCEPTION`.
    code: String,
    /// For people.
    message: String,
    /// Type of the exception.
    error_type: Option<String>,
    /// Types that the exception is one of besides its own, the nearest first.
    #[schema(required = false)]
    error_bases: Vec<String>,
    /// Traceback, as Python writes it.
    traceback: Option<String>,
    /// A way out, if the worker knows one.
    suggested_action: Option<String>,
    /// More about it, for programs: JSON texts by name.
    #[schema(required = false)]
    details: BTreeMap<String, String>,
}

// Describes `servo_engine::Report`, which is what is read and written.
/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Completed {
    /// In a word.
    #[schema(value_type = OutcomeName)]
    pub outcome: Outcome,
    /// The error of a failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReportedError>)]
    pub error: Option<Arc<TaskError>>,
    /// The materialization that it produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub materialization_id: Option<MaterializationId>,
    /// The reported state of each asset, with metadata as JSON texts by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub outputs: Vec<OutputReport>,
    /// Resource usage of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Usage>)]
    pub usage: Option<servo_engine::outputs::Usage>,
    /// Keys that the attempt adds to dynamic partitions, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_partitions: BTreeMap<String, Vec<String>>,
}

/// The result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reported {
    /// Whether it came too late to count, and was only recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The event; absent if the report was a duplicate.
    #[serde(flatten)]
    pub accepted: Accepted,
}

fn one() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use servo_core::AssetKey;
    use servo_engine::{ErrorCode, OutputState, Report};

    use super::*;

    #[test]
    fn reports_have_the_form_that_is_described() {
        let output = OutputReport::new(AssetKey::parse("raw/flights").unwrap(), OutputState::Committed);
        let whole = Report {
            outcome: Outcome::Failed,
            error: Some(Arc::new(TaskError::new(ErrorCode::CheckFailed, "no rows"))),
            materialization_id: Some(MaterializationId::from_u128(7)),
            outputs: [output].into(),
            usage: Some(servo_engine::outputs::Usage::default()),
            added_partitions: [("customers".to_owned(), vec!["acme".to_owned()])].into(),
        };
        for report in [whole, Report::succeeded()] {
            let told = serde_json::to_value(&report).unwrap();
            let described: Completed = serde_json::from_value(told.clone()).unwrap();
            assert_eq!(serde_json::to_value(&described).unwrap(), told);
            assert_eq!(serde_json::from_value::<Report>(told).unwrap(), report);
        }
        let unknown = serde_json::json!({ "outcome": "SUCCEEDED", "outcom": 1 });
        assert!(serde_json::from_value::<Report>(unknown).is_err(), "a field that nobody knows is a mistake");
    }
}

/// A request for a call of the function of a schedule or a sensor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeEvaluationBody {
    /// How long to wait for one, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
}

/// A call that a worker has taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenEvaluation {
    /// The function, its arguments, and how long it may take.
    #[schema(value_type = Object)]
    pub evaluation: Evaluation,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvaluatedBody {
    /// The call, as it was taken.
    #[schema(value_type = Object)]
    pub evaluation: Evaluation,
    /// The value that the function returned, or its failure.
    #[schema(value_type = Object)]
    pub report: EvaluationReport,
}
