//! Pages of lists, under the names that they are described by.

use super::{
    Act, ApiKey, Asset, AssetFreshness, AssetVersion, Backfill, BackfillChunk, CheckResult, Condition,
    ConditionEvaluation, Conflict, Deployment, MaterializationRecord, NotificationRecord, NotificationRule,
    Partition, Quarantined, Run, Schedule, Sensor, SensorEval, Session, Task, Tenant, Tick, VisibleWorkspace,
    WorkspaceInfo,
};
use crate::pages::Page;

/// Runs.
pub type RunPage = Page<Run>;
/// Conflicts of run keys.
pub type ConflictPage = Page<Conflict>;
/// Tasks of a run.
pub type TaskPage = Page<Task>;
/// Changes that were asked for.
pub type ActPage = Page<Act>;
/// Assets.
pub type AssetPage = Page<Asset>;
/// Results of checks.
pub type CheckResultPage = Page<CheckResult>;
/// Assets that have a freshness policy.
pub type AssetFreshnessPage = Page<AssetFreshness>;
/// Partitions of an asset.
pub type PartitionPage = Page<Partition>;
/// Materializations of an asset.
pub type MaterializationRecordPage = Page<MaterializationRecord>;
/// A page of materializations that wait for review.
pub type QuarantinedPage = Page<Quarantined>;
/// A page of schedules.
pub type SchedulePage = Page<Schedule>;
/// A page of ticks of a schedule.
pub type TickPage = Page<Tick>;
/// A page of sensors.
pub type SensorPage = Page<Sensor>;
/// A page of evaluations of a sensor.
pub type SensorEvalPage = Page<SensorEval>;
/// A page of backfills.
pub type BackfillPage = Page<Backfill>;
/// A page of chunks of a backfill.
pub type BackfillChunkPage = Page<BackfillChunk>;
/// A page of API keys.
pub type ApiKeyPage = Page<ApiKey>;
/// A page of sessions of browsers.
pub type SessionPage = Page<Session>;
/// A page of tenants.
pub type TenantPage = Page<Tenant>;
/// A page of workspaces.
pub type WorkspaceInfoPage = Page<WorkspaceInfo>;
/// A page of workspaces that a caller may open.
pub type VisibleWorkspacePage = Page<VisibleWorkspace>;
/// A page of automation conditions.
pub type ConditionPage = Page<Condition>;
/// A page of evaluations of a condition.
pub type ConditionEvaluationPage = Page<ConditionEvaluation>;
/// A page of notification rules.
pub type NotificationRulePage = Page<NotificationRule>;
/// A page of notifications of a rule.
pub type NotificationRecordPage = Page<NotificationRecord>;
/// Deployments.
pub type DeploymentPage = Page<Deployment>;
/// Versions of the definition of an asset.
pub type AssetVersionPage = Page<AssetVersion>;
