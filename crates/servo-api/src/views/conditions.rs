//! Automation conditions of assets, their evaluations, and why they hold or not.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, RunId, Timestamp};
use servo_engine::conditions::{Explanation, TraceNode};
use servo_engine::rows::ConditionEvaluationRow;
use servo_engine::{ConditionState, State};
use utoipa::ToSchema;

use crate::extract::Asked;

/// The automation of an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Condition {
    /// The asset.
    #[schema(value_type = String)]
    pub asset: AssetKey,
    /// The condition, as it could be written in Python.
    pub condition: String,
    /// `ACTIVE`, or `PAUSED`.
    pub status: String,
    /// Changes with every change of the condition and of its pause.
    pub state_version: u64,
    /// From when on the condition is in force: what was so before does not count.
    #[schema(value_type = String)]
    pub deployed_at: Timestamp,
    /// When it last requested something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub last_requested_at: Option<Timestamp>,
    /// The last run that it requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub last_run_id: Option<RunId>,
    /// Why the last request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl From<&ConditionState> for Condition {
    fn from(state: &ConditionState) -> Self {
        Self {
            asset: state.asset.clone(),
            condition: state.condition.text(),
            status: if state.paused { "PAUSED" } else { "ACTIVE" }.to_owned(),
            state_version: state.state_version,
            deployed_at: state.deployed_at,
            last_requested_at: state.last_requested_at,
            last_run_id: state.last_run_id,
            last_error: state.last_error.clone(),
        }
    }
}

/// The automation of an asset, and why its condition holds or not at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedCondition {
    /// The automation.
    #[serde(flatten)]
    pub condition: Condition,
    /// How many partitions were looked at: one, or the newest.
    pub looked_at: u64,
    /// The condition, part by part.
    pub trace: Trace,
    /// The partitions, each with what holds it back.
    pub partitions: Vec<ExplainedPartition>,
}

/// A part of a condition, and for how many partitions it is true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// The part, as people write it.
    pub label: String,
    /// For how many partitions it is true.
    pub holds: u64,
    /// Of how many.
    pub of: u64,
    /// Since when the newest of them is as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub since: Option<Timestamp>,
    /// Its parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub parts: Vec<Trace>,
}

impl From<&TraceNode> for Trace {
    fn from(node: &TraceNode) -> Self {
        Self {
            label: node.label.clone(),
            holds: node.holds,
            of: node.of,
            since: node.since,
            parts: node.parts.iter().map(Self::from).collect(),
        }
    }
}

/// A partition, and what holds it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedPartition {
    /// The partition; none if the asset has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Whether the condition holds.
    pub holds: bool,
    /// Why it is not requested now; none if it is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
    /// When the condition last requested it, if that is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub requested_at: Option<Timestamp>,
}

impl ExplainedCondition {
    pub(crate) fn new(state: &State, explanation: Explanation) -> Option<Self> {
        let condition = Condition::from(state.condition(&explanation.asset)?);
        let partitions = explanation.details.into_iter().map(|it| ExplainedPartition {
            partition: it.partition.map(|key| key.to_string()),
            holds: it.holds,
            held_back: it.held_back,
            requested_at: it.requested_at,
        });
        Some(Self {
            condition,
            looked_at: explanation.partitions,
            trace: Trace::from(&explanation.trace),
            partitions: partitions.collect(),
        })
    }
}

/// An evaluation that requested something of an asset, or could not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConditionEvaluation {
    /// Its id; other assets may have been requested in the same evaluation.
    pub evaluation_id: String,
    /// The asset.
    #[schema(value_type = String)]
    pub asset: AssetKey,
    /// When.
    #[schema(value_type = String)]
    pub evaluated_at: Timestamp,
    /// `TRIGGERED`, or `FAILED`.
    pub status: String,
    /// How many partitions were requested; 1 if it has none.
    pub partitions: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_keys: Vec<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    /// Why there is no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it was requested, part by part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

impl From<ConditionEvaluationRow> for ConditionEvaluation {
    fn from(row: ConditionEvaluationRow) -> Self {
        Self {
            evaluation_id: row.evaluation_id,
            asset: row.asset_key,
            evaluated_at: row.evaluated_at,
            status: row.status.to_string(),
            partitions: row.partitions,
            partition_keys: row.partition_keys.0.iter().map(ToString::to_string).collect(),
            run_id: row.run_id,
            reason: row.reason,
            trace: row.trace.map(|trace| Trace::from(&*trace.0)),
        }
    }
}

/// A pause of an asset's automation, or its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseConditionBody {
    /// Only if its state has this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// The reason, for the log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

impl Asked for PauseConditionBody {
    fn client_request_id(&self) -> Option<&str> {
        self.client_request_id.as_deref()
    }
}
