//! Request and response bodies: the same types for the server and the client.
//!
//! Fields are named like the columns of the tables. Ids and keys are texts in their canonical form, times are RFC 3339
//! in UTC with milliseconds, and what is not there is left out.

mod admission;
mod assets;
mod attempts;
mod audit;
mod conflicts;
mod deployments;
mod lineage;
mod logs;
mod names;
mod outputs;
mod pages;
mod plans;
mod requests;
mod retention;
mod runs;
mod schedules;
mod settings;
mod tables;
mod tasks;
mod workers;

pub use admission::{Admission, Pause, PauseBody, Pool, TaskWaits, Wait, Why};
pub use assets::{
    Asset, AssetDep, AssetDetail, AssetEdge, AssetGraph, AssetHealth, Materialization, Partition,
    PartitionTotals, Quarantined,
};
pub use attempts::{Attempt, Failure, Usage};
pub use audit::Act;
pub use conflicts::Conflict;
pub use deployments::{Deployed, Deployment};
pub use lineage::{Lineage, LineageDirection, LineageEdge};
pub use logs::{LogAnswer, LogBody, LogEnd, LogLine, LogPage, TaskErrorLine, TaskLogLine};
pub use names::{
    AttemptOutcomeName, AuditOutcomeName, DataFormatName, DataStatusName, GatingDecisionName, OutcomeName,
    OutputStateName, RunStateName, SettingOriginName, TaskStateName,
};
pub use outputs::{Check, Output};
pub use pages::{
    ActPage, AssetPage, ConflictPage, PartitionPage, QuarantinedPage, RunPage, SchedulePage, TaskPage,
    TickPage,
};
pub use plans::{Plan, PlannedInput, PlannedTask};
pub use requests::{
    Accepted, AcceptedRun, CancelBody, ChangePartitionsBody, PartitionsBody, PartitionsChanged,
    RequestOperation, RequestSource, RetryBody, ReviewBody, RunBody,
};
pub use retention::{ApplyRetentionBody, Retention, RetentionApplied, RetentionKind, RetentionRule};
pub use runs::{Run, RunEnd, RunWithTasks};
pub(crate) use schedules::texts;
pub use schedules::{NextTicks, Schedule, ScheduleBody, Tick, TickRun, TriggerScheduleBody, VersionBody};
pub use settings::{Setting, Settings, SettingsBody, SettingsChanged};
pub use tables::Tables;
pub use tasks::{Progress, Task, TaskDetail};
pub use workers::{Completed, Heartbeat, HeartbeatAnswer, Lease, LeaseBody, Reported, Started};
