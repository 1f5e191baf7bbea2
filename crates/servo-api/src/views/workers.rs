//! Bodies of the worker protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::MaterializationId;
use servo_engine::evaluation::{Evaluation, EvaluationReport};
use servo_engine::outputs::OutputReport;
use servo_engine::{Outcome, TaskError};
use servo_queue::SignedEnvelope;
use utoipa::ToSchema;

use super::attempts::{Failure, Usage};
use super::names::OutcomeName;
use super::outputs::Output;
use super::requests::Accepted;
use super::tasks::Progress;

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
    #[schema(value_type = Option<Failure>)]
    pub error: Option<Arc<TaskError>>,
    /// The materialization that it produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub materialization_id: Option<MaterializationId>,
    /// The reported state of each asset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Output>)]
    pub outputs: Vec<OutputReport>,
    /// Resource usage of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Usage>)]
    pub usage: Option<servo_engine::outputs::Usage>,
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

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvaluatedBody {
    /// The call, as it was taken.
    #[schema(value_type = Object)]
    pub evaluation: Evaluation,
    /// What the function returned, or how it failed.
    #[schema(value_type = Object)]
    pub report: EvaluationReport,
}
