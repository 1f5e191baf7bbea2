//! Commands about backfills.

use servo_core::{BackfillId, Fingerprint, Timestamp};

use crate::principal::Caller;
use crate::requests::{BackfillPreview, BackfillRequest, PlanBasis};

/// Start a backfill. Made by [`crate::requests::prepare_backfill`] and [`crate::requests::retry_backfill`].
#[derive(Debug, Clone)]
pub struct CreateBackfill {
    /// The request, as it was made.
    pub request: BackfillRequest,
    /// The backfill whose failures it makes again.
    pub parent: Option<BackfillId>,
    /// The assets and partitions to materialize.
    pub preview: BackfillPreview,
    /// The parts of the state that this was found with.
    pub basis: PlanBasis,
    /// Hash of the request.
    pub fingerprint: Fingerprint,
    /// When partitions were looked at.
    pub as_of: Timestamp,
}

/// Pause, resume or cancel a backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// The change.
    pub change: BackfillChange,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

/// A change of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackfillChange {
    /// No chunk is planned; those at work go on.
    Pause,
    /// Chunks are planned again.
    Resume,
    /// It ends, and the runs of its chunks are cancelled.
    Cancel,
}
