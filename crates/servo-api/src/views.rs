//! Request and response bodies: the same types for the server and the client.
//!
//! Fields are named like the columns of the tables. Ids and keys are texts in their canonical form, times are RFC 3339
//! in UTC with milliseconds, and what is not there is left out.

mod assets;
mod attempts;
mod deployments;
mod logs;
mod names;
mod outputs;
mod pages;
mod plans;
mod requests;
mod runs;
mod tables;
mod tasks;
mod workers;

pub use assets::{
    Asset, AssetDep, AssetDetail, AssetEdge, AssetGraph, Materialization, Partition, PartitionTotals,
    Quarantined,
};
pub use attempts::{Attempt, Failure, Usage};
pub use deployments::{Deployed, Deployment};
pub use logs::{LogAnswer, LogBody, LogEnd, LogLine, LogPage, TaskLogLine};
pub use names::{
    AttemptOutcomeName, DataFormatName, DataStatusName, OutcomeName, OutputStateName, RunStateName,
    TaskStateName,
};
pub use outputs::{Check, Output};
pub use pages::{AssetPage, PartitionPage, QuarantinedPage, RunPage, TaskPage};
pub use plans::{Plan, PlannedInput, PlannedTask};
pub use requests::{
    Accepted, AcceptedRun, CancelBody, ChangePartitionsBody, PartitionsBody, PartitionsChanged, RetryBody,
    ReviewBody, RunBody,
};
pub use runs::{Run, RunEnd, RunWithTasks};
pub use tables::Tables;
pub use tasks::{Progress, Task, TaskDetail};
pub use workers::{Completed, Heartbeat, HeartbeatAnswer, Lease, LeaseBody, Reported, Started};
