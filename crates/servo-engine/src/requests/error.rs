//! Reasons why a request for a run makes no sense.

use servo_core::{AssetKey, BackfillId, RunId};

use crate::planner::PlanningError;
use crate::refusal::RefusalKind;

/// Reasons why a request for a run is not valid. Nothing was changed.
#[derive(Debug, Clone, thiserror::Error)]
#[allow(missing_docs)]
pub enum RequestError {
    #[error("invalid selection\n\n  {}", .0.caret().replace('\n', "\n  "))]
    Selection(servo_core::selection::SyntaxError),
    #[error(transparent)]
    Planning(#[from] PlanningError),
    #[error("no project is deployed in this workspace; run `servo deploy` in the project")]
    NothingDeployed,
    #[error("run {run_id} is still active; cancel it first, or wait until it has ended")]
    StillRunning { run_id: RunId },
    #[error("every task of run {run_id} has succeeded; there is nothing to try again")]
    NothingToRetry { run_id: RunId },
    #[error("{0}")]
    Backfill(String),
    #[error("{0}")]
    Partitions(String),
    #[error("there is no asset {asset}; `servo asset list` shows what there is")]
    UnknownAsset { asset: AssetKey },
    #[error("backfill {backfill_id} is still active; cancel it first, or wait until it has ended")]
    BackfillActive { backfill_id: BackfillId },
    #[error("backfill {backfill_id} has made everything that it came to; there is nothing to try again")]
    NothingFailed { backfill_id: BackfillId },
}

impl RequestError {
    /// The kind of this refusal.
    pub fn kind(&self) -> RefusalKind {
        match self {
            RequestError::Selection(_)
            | RequestError::Planning(_)
            | RequestError::Backfill(_)
            | RequestError::Partitions(_) => RefusalKind::Invalid,
            RequestError::UnknownAsset { .. } => RefusalKind::NotFound,
            RequestError::NothingDeployed
            | RequestError::StillRunning { .. }
            | RequestError::BackfillActive { .. }
            | RequestError::NothingFailed { .. }
            | RequestError::NothingToRetry { .. } => RefusalKind::Conflict,
        }
    }
}
