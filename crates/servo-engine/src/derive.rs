//! Values derived by hashing, so that the same decision always has the same ids.

use servo_core::{
    AssetId, AssetKey, AttemptId, BackfillId, EvaluationId, EventId, Fingerprint, MaterializationId,
    PartitionKey, PlanId, RuleId, RunId, ScheduleId, SensorId, TaskKey, TenantId, Timestamp, WorkspaceId,
    dispatch_id,
};
use sha2::{Digest, Sha256};

use crate::principal::Principal;

fn hash128(text: &[u8]) -> u128 {
    let digest = Sha256::digest(text);
    digest.iter().take(16).fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// First 128 bits of SHA-256 of an idempotency key: what the index keeps of it.
pub fn idempotency_hash(key: &str) -> u128 {
    hash128(key.as_bytes())
}

/// First 128 bits of SHA-256 of who asks and their own id of the request: what names a request that is carried out once.
pub(crate) fn request_hash(principal: &Principal, request_id: &str) -> u128 {
    hash128(format!("{principal}\0{request_id}").as_bytes())
}

/// The id of the event after `last`: strictly greater, whatever the clock says (ADR-033).
pub(crate) fn next_event_id(last: EventId, now: Timestamp, idempotency_key: &str) -> EventId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    if now > last.timestamp_ms() {
        return EventId::from_parts(now, idempotency_hash(idempotency_key));
    }
    last.next().unwrap_or_else(|| EventId::from_parts(last.timestamp_ms() + 1, 0))
}

/// The token of an attempt.
pub(crate) fn attempt_id(run: RunId, task: &TaskKey, attempt: u32, now: Timestamp) -> AttemptId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    AttemptId::from_parts(now, hash128(dispatch_id(run, task, attempt).as_bytes()))
}

/// The id of an asset that is deployed for the first time.
pub(crate) fn asset_id(
    tenant: &TenantId,
    workspace: &WorkspaceId,
    key: &AssetKey,
    deployment: u64,
    now: Timestamp,
) -> AssetId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    let name = format!("asset:{}:{}:{}:{deployment}", tenant.as_str(), workspace.as_str(), key.canonical());
    AssetId::from_parts(now, hash128(name.as_bytes()))
}

/// The id of a run's plan.
pub(crate) fn plan_id(run: RunId, fingerprint: &Fingerprint, now: Timestamp) -> PlanId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    PlanId::from_parts(now, hash128(format!("plan:{run}:{fingerprint}").as_bytes()))
}

/// The id of a schedule that is defined for the first time.
pub(crate) fn schedule_id(
    tenant: &TenantId,
    workspace: &WorkspaceId,
    name: &str,
    now: Timestamp,
) -> ScheduleId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    let name = format!("schedule:{}:{}:{name}", tenant.as_str(), workspace.as_str());
    ScheduleId::from_parts(now, hash128(name.as_bytes()))
}

/// The id of a sensor that is defined for the first time.
pub(crate) fn sensor_id(tenant: &TenantId, workspace: &WorkspaceId, name: &str, now: Timestamp) -> SensorId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    let name = format!("sensor:{}:{}:{name}", tenant.as_str(), workspace.as_str());
    SensorId::from_parts(now, hash128(name.as_bytes()))
}

/// The id of a notification rule that is defined for the first time.
pub(crate) fn rule_id(tenant: &TenantId, workspace: &WorkspaceId, name: &str, now: Timestamp) -> RuleId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    let name = format!("notification:{}:{}:{name}", tenant.as_str(), workspace.as_str());
    RuleId::from_parts(now, hash128(name.as_bytes()))
}

/// The id of a call of a function.
pub(crate) fn evaluation_id(name: &str, now: Timestamp) -> EvaluationId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    EvaluationId::from_parts(now, hash128(format!("evaluation:{name}").as_bytes()))
}

/// The id of a materialization that somebody says is there.
pub(crate) fn marked_id(
    event: EventId,
    asset: &AssetKey,
    partition: Option<&PartitionKey>,
) -> MaterializationId {
    let partition = partition.map_or("", PartitionKey::canonical);
    let name = format!("marked:{event}:{}:{partition}", asset.canonical());
    MaterializationId::from_parts(event.timestamp_ms(), hash128(name.as_bytes()))
}

/// The id of a backfill that follows an event.
pub(crate) fn backfill_id(
    tenant: &TenantId,
    workspace: &WorkspaceId,
    after: EventId,
    request: &Fingerprint,
    now: Timestamp,
) -> BackfillId {
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    let name = format!("backfill:{}:{}:{after}:{request}", tenant.as_str(), workspace.as_str());
    BackfillId::from_parts(now, hash128(name.as_bytes()))
}
