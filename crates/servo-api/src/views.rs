//! Request and response bodies: the same types for the server and the client.
//!
//! Fields are named like the columns of the tables. Ids and keys are texts in their canonical form, times are RFC 3339
//! in UTC with milliseconds, and what is not there is left out.

mod admin;
mod admission;
mod assets;
mod attempts;
mod audit;
mod backfills;
mod changes;
mod checks;
mod conditions;
mod conflicts;
mod costs;
mod definition_diff;
mod deployments;
mod freshness;
mod graph;
mod lineage;
mod logins;
mod logs;
mod materialization_detail;
mod materializations;
mod me;
mod names;
mod notifications;
mod outputs;
mod pages;
mod partition_life;
mod partition_summary;
mod plans;
mod queues;
mod readiness;
mod renames;
mod requests;
mod retention;
mod runs;
mod schedules;
mod sensors;
mod settings;
mod sql;
mod staleness;
mod tables;
mod tasks;
mod workers;

pub use admin::{
    ApiKey, CreatedKey, EndSessionsBody, KeyBody, QuotasBody, ServerChanged, Session, Tenant, TenantBody,
    TenantQuota, TenantQuotas, WorkspaceBody, WorkspaceInfo,
};
pub use admission::{Admission, Pause, PauseBody, Pool, TaskWaits, Wait, Why};
pub use assets::{
    Asset, AssetActivity, AssetAutomation, AssetDep, AssetDetail, AssetEdge, AssetGraph, AssetHealth,
    Materialization, Partition, PartitionTotals, Quarantined,
};
pub use attempts::{Attempt, Failure, Usage};
pub use audit::Act;
pub use backfills::{
    AcceptedBackfill, Backfill, BackfillBody, BackfillChunk, BackfillPreview, BackfillTarget,
    ChangeBackfillBody, ChunkTask, RetryBackfillBody,
};
pub use changes::Changes;
pub use checks::CheckResult;
pub use conditions::{
    Condition, ConditionEvaluation, ExplainedCondition, ExplainedPartition, PauseConditionBody, Trace,
};
pub use conflicts::Conflict;
pub use costs::{CostGroup, CostSum, Costs, CostsBy};
pub use definition_diff::FieldChange;
pub(crate) use definition_diff::{Fields, fields as differing_fields};
pub use deployments::{
    AssetVersion, DefinitionDiff, Deployed, Deployment, DeploymentDetail, DeploymentDiff, DiffCounts,
    Repartitioned, RollbackBody, RolledBack,
};
pub use freshness::AssetFreshness;
pub use graph::{Graph, GraphNode};
pub use lineage::{Lineage, LineageDirection, LineageEdge};
pub use logins::{LoginLink, LoginOptions, OidcOptions};
pub use logs::{LogAnswer, LogBody, LogEnd, LogLine, LogPage, TaskErrorLine, TaskLogLine};
pub use materialization_detail::MaterializationDetail;
pub(crate) use materialization_detail::has_picture;
pub use materializations::MaterializationRecord;
pub use me::{Me, VisibleWorkspace};
pub use names::{
    AttemptOutcomeName, AuditOutcomeName, DataFormatName, DataStatusName, FreshnessStatusName,
    GatingDecisionName, OutcomeName, OutputStateName, RunStateName, SettingOriginName, TaskStateName,
    WorkerStateName,
};
pub use notifications::{NotificationBody, NotificationRecord, NotificationRule};
pub use outputs::{Check, Output};
pub use pages::{
    ActPage, ApiKeyPage, AssetFreshnessPage, AssetPage, AssetVersionPage, BackfillChunkPage, BackfillPage,
    CheckResultPage, ConditionEvaluationPage, ConditionPage, ConflictPage, DeploymentPage,
    MaterializationRecordPage, NotificationRecordPage, NotificationRulePage, PartitionPage, QuarantinedPage,
    RunPage, SchedulePage, SensorEvalPage, SensorPage, SessionPage, TaskPage, TenantPage, TickPage,
    VisibleWorkspacePage, WorkspaceInfoPage,
};
pub use partition_life::{MarkAs, MarkBody, PartitionsOfBody, PartitionsSet, UndoBody, WipeBody, Wiped};
pub use partition_summary::{PartitionBucket, PartitionSummary};
pub use plans::{Plan, PlanStep, PlannedInput, PlannedSet, PlannedTask, RunPlan, SkippedPartitions};
pub use queues::{Queue, Queues};
pub use readiness::{Readiness, ReadinessCheck};
pub use renames::{RenameBody, Renamed};
pub use requests::{
    Accepted, AcceptedRun, CancelBody, ChangePartitionsBody, PartitionsBody, PartitionsChanged,
    RequestOperation, RequestSource, RetryBody, RetryNowBody, ReviewBody, RunBody,
};
pub use retention::{ApplyRetentionBody, Retention, RetentionApplied, RetentionKind, RetentionRule};
pub use runs::{Run, RunEnd, RunWithTasks};
pub(crate) use schedules::texts;
pub use schedules::{NextTicks, Schedule, ScheduleBody, Tick, TickRun, TriggerScheduleBody, VersionBody};
pub use sensors::{
    EvaluateBody, MessageId, PushBody, RequestedView, ResetCursorBody, SecretReference, Sensor, SensorBody,
    SensorEval, SensorEvaluation, SensorVerify,
};
pub use settings::{Setting, Settings, SettingsBody, SettingsChanged};
pub use sql::{SqlBody, SqlColumn, SqlResult, SqlTable, SqlTables};
pub use staleness::{LastFailure, StalePartition, StalePartitions, StaleTotals, WhyStale};
pub use tables::Tables;
pub use tasks::{Progress, Task, TaskDetail};
pub use workers::{
    Begun, CallbackHeartbeatAnswer, Completed, EvaluatedBody, HandedOutWork, Heartbeat, HeartbeatAnswer,
    Lease, LeaseBody, LeaveBody, RegisterBody, Registration, RenewedCallbacks, Reported, Started,
    TakeEvaluationBody, TakenEvaluation, WorkReference, Worker, WorkerSign, WorkerStanding, Workers,
};
