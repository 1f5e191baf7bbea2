//! Events of automation conditions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, EvaluationId, PartitionKey};

use super::{Payload, RequestedRun};
use crate::audit::Act;
use crate::conditions::TraceNode;
use crate::principal::Principal;

/// Conditions became true for some partitions, and a run of them was requested in the same batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionsEvaluated {
    /// Names the evaluation.
    pub evaluation_id: EvaluationId,
    /// Number of the deployment whose conditions these are.
    pub deployment: u64,
    /// The requested targets, each asset after those that it reads.
    pub requested: Vec<ConditionRequested>,
    /// The run; none if it could not be requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RequestedRun>,
    /// Why there is no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The partitions of one asset whose condition became true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionRequested {
    /// The asset.
    pub asset: AssetKey,
    /// Its partitions; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionKey>,
    /// Why; none of an asset that the same function makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<TraceNode>>,
}

/// The automation of an asset was paused or resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionPauseChanged {
    /// The asset.
    pub asset: AssetKey,
    /// The version of the condition's state that this makes.
    pub state_version: u64,
    /// Whether it is paused from now on.
    pub paused: bool,
    /// Why, in the words of whoever asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Payload for ConditionsEvaluated {
    /// `conditions:{evaluation_id}`: what became true is requested once.
    fn idempotency_key(&self) -> String {
        format!("conditions:{}", self.evaluation_id)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("conditions")
    }
}

impl Payload for ConditionPauseChanged {
    /// `condition_pause:{asset}:{state_version}`.
    fn idempotency_key(&self) -> String {
        format!("condition_pause:{}:{}", self.asset.canonical(), self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::condition_action(self.paused), &self.asset, self.reason.as_str()))
    }
}

/// The key of the run of an evaluation.
pub fn condition_run_key(evaluation: EvaluationId) -> Arc<str> {
    format!("cond:{evaluation}").into()
}
