//! States of tasks and runs, and why they change.

use serde::{Deserialize, Serialize};

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The name on the wire and in tables.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// Reads [`Self::name`] back.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named_enum! {
    /// Whether an asset is as new as its freshness policy asks.
    FreshnessStatus {
        /// Nobody has looked yet.
        Unknown = "UNKNOWN",
        /// It is.
        Pass = "PASS",
        /// It is, but not for long.
        Warn = "WARN",
        /// It is not.
        Fail = "FAIL",
    }
}

named_enum! {
    /// The state of a task.
    TaskState {
        /// Planned; its run has not started.
        Planned = "PLANNED",
        /// Waits for other tasks.
        Blocked = "BLOCKED",
        /// May run; waits for a slot or for the queue.
        Ready = "READY",
        /// In a queue.
        Dispatched = "DISPATCHED",
        /// A worker is at it.
        Running = "RUNNING",
        /// Failed; will be tried again.
        RetryWait = "RETRY_WAIT",
        /// Will never run: something before it failed.
        Skipped = "SKIPPED",
        /// Stopped on request.
        Cancelled = "CANCELLED",
        /// Failed for good.
        Failed = "FAILED",
        /// Done.
        Succeeded = "SUCCEEDED",
    }
}

impl TaskState {
    /// Rank for merging rows of equal version: the further along wins.
    pub const fn rank(self) -> u8 {
        match self {
            TaskState::Planned => 0,
            TaskState::Blocked => 1,
            TaskState::Ready => 2,
            TaskState::Dispatched => 3,
            TaskState::Running => 4,
            TaskState::RetryWait => 5,
            TaskState::Skipped => 10,
            TaskState::Cancelled => 11,
            TaskState::Failed => 12,
            TaskState::Succeeded => 13,
        }
    }

    /// Whether nothing can change it any more.
    pub const fn is_terminal(self) -> bool {
        self.rank() >= 10
    }
}

named_enum! {
    /// The state of a run.
    RunState {
        /// Asked for; not planned or not started.
        Pending = "PENDING",
        /// Planned; waits for a place among the runs at work.
        Queued = "QUEUED",
        /// In progress.
        Running = "RUNNING",
        /// Being cancelled; some tasks still run.
        Cancelling = "CANCELLING",
        /// Stopped on request.
        Cancelled = "CANCELLED",
        /// Stopped because it took too long.
        TimedOut = "TIMED_OUT",
        /// Ended with failed tasks.
        Failed = "FAILED",
        /// Every task succeeded.
        Succeeded = "SUCCEEDED",
    }
}

impl RunState {
    /// Whether nothing can change it any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            RunState::Pending | RunState::Queued | RunState::Running | RunState::Cancelling => false,
            RunState::Cancelled | RunState::TimedOut | RunState::Failed | RunState::Succeeded => true,
        }
    }
}

named_enum! {
    /// Why a task changed its state.
    TransitionReason {
        /// Planned with its run.
        Planned = "planned",
        /// Its run started.
        RunStarted = "run_started",
        /// All its dependencies succeeded.
        DependenciesSatisfied = "dependencies_satisfied",
        /// A queue took it.
        EnqueuedForDispatch = "enqueued_for_dispatch",
        /// A worker began.
        ExecutionStarted = "execution_started",
        /// A worker reported success.
        ExecutionSucceeded = "execution_succeeded",
        /// A worker reported failure.
        ExecutionFailed = "execution_failed",
        /// The attempt took too long.
        TimedOut = "timed_out",
        /// The worker fell silent.
        HeartbeatTimeout = "heartbeat_timeout",
        /// No worker took it from the queue in time.
        DispatchAckTimeout = "dispatch_ack_timeout",
        /// The worker went away.
        Interrupted = "interrupted",
        /// It failed, and is tried again after a wait.
        RetryScheduled = "retry_scheduled",
        /// The wait before the next attempt is over.
        RetryTimerExpired = "retry_timer_expired",
        /// Its run was cancelled.
        RunCancelled = "run_cancelled",
        /// Its run took too long.
        RunTimedOut = "run_timed_out",
        /// Cancelled without waiting for a silent worker.
        ForceCancelled = "force_cancelled",
        /// An upstream task failed.
        UpstreamFailed = "upstream_failed",
        /// The last worker of its queue was gone before anybody began it.
        WorkersGone = "workers_gone",
    }
}

named_enum! {
    /// Why a run changed its state.
    RunTransitionReason {
        /// Asked for.
        Created = "created",
        /// Planned.
        Queued = "queued",
        /// Started.
        Started = "started",
        /// Every task succeeded.
        AllTasksSucceeded = "all_tasks_succeeded",
        /// At least one task failed.
        TasksFailed = "tasks_failed",
        /// A user cancelled it.
        UserCancelled = "user_cancelled",
        /// It was cancelled with what it belongs to, such as a backfill; nobody asked for that of the run itself.
        SystemCancelled = "system_cancelled",
        /// It took too long.
        TimedOut = "timed_out",
    }
}

named_enum! {
    /// The resolution of an edge between two tasks.
    Resolution {
        /// The upstream succeeded.
        Success = "SUCCESS",
        /// A check blocked the upstream, and its materialization before is read.
        Previous = "PREVIOUS",
        /// The upstream failed for good.
        Failed = "FAILED",
        /// The upstream was skipped.
        Skipped = "SKIPPED",
        /// The upstream was cancelled.
        Cancelled = "CANCELLED",
    }
}

named_enum! {
    /// Where an attempt is on its way to a queue.
    OutboxStatus {
        /// Intended, not yet in the queue.
        Pending = "PENDING",
        /// In the queue.
        Created = "CREATED",
        /// A worker has it.
        Acked = "ACKED",
        /// Abandoned: cancelled, or never started.
        Failed = "FAILED",
    }
}

named_enum! {
    /// Where a requested timer is.
    TimerState {
        /// Waits for its time.
        Scheduled = "SCHEDULED",
        /// An external service will call.
        Enqueued = "ENQUEUED",
        /// Fired.
        Fired = "FIRED",
        /// No longer wanted.
        Cancelled = "CANCELLED",
    }
}

named_enum! {
    /// How the last task that was to materialize something ended.
    AttemptOutcome {
        /// The task is done.
        Succeeded = "SUCCEEDED",
        /// The task failed for good.
        Failed = "FAILED",
    }
}

named_enum! {
    /// The status of a partition's data, as shown to people.
    DataStatus {
        /// There is none: nothing succeeded yet.
        NeverMaterialized = "NEVER_MATERIALIZED",
        /// There is, and the last attempt was good.
        Materialized = "MATERIALIZED",
        /// There is, but the last attempt to renew it failed.
        LastAttemptFailed = "LAST_ATTEMPT_FAILED",
        /// There was, and it was kept for as long as its asset says.
        Expired = "EXPIRED",
    }
}

named_enum! {
    /// The form of stored data.
    DataFormat {
        /// A table.
        Parquet = "parquet",
        /// A JSON value.
        Json = "json",
        /// Bytes as they are.
        Bin = "bin",
        /// The resource of the project that stored it defines the format.
        Io = "io",
        /// Lies somewhere else, in a place that the function named.
        External = "external",
        /// The function only did something.
        None = "none",
    }
}

named_enum! {
    /// The effect of the checks of an output on what comes after it; the later, the worse.
    GatingDecision {
        /// The output counts.
        Allow = "ALLOW",
        /// The output counts, and its run is flagged.
        Warn = "WARN",
        /// The output does not count, and what depends on it is not made.
        Block = "BLOCK",
    }
}

named_enum! {
    /// Where the value of a setting comes from.
    SettingOrigin {
        /// Nobody said anything.
        Default = "default",
        /// The file of the project.
        Project = "servo.toml",
        /// An option of the command that runs the workspace.
        Flag = "flag",
        /// A request over HTTP.
        Api = "api",
        /// `servo config`.
        Cli = "cli",
    }
}

named_enum! {
    /// Whether a change that somebody asked for was made.
    AuditOutcome {
        /// It was.
        Allowed = "ALLOWED",
        /// It was refused, and nothing changed.
        Refused = "REFUSED",
    }
}

named_enum! {
    /// The state of an output.
    OutputState {
        /// It is stored, and counts if the attempt does.
        Committed = "COMMITTED",
        /// A check blocked it, and it is kept for review.
        Quarantined = "QUARANTINED",
        /// A check blocked it, and it was not kept.
        Discarded = "DISCARDED",
        /// Its worker calls it committed, but storage does not have it.
        Missing = "MISSING",
    }
}

named_enum! {
    /// The status of a schedule or a sensor.
    AutomationStatus {
        /// It requests runs.
        Active = "ACTIVE",
        /// Somebody paused it.
        Paused = "PAUSED",
        /// It goes on, and has failed several times in a row.
        Error = "ERROR",
    }
}

named_enum! {
    /// Who defines a schedule or a sensor. A name belongs to one of them.
    Origin {
        /// A deployed project.
        Code = "code",
        /// Somebody, over the API.
        Api = "api",
    }
}

named_enum! {
    /// The state of a backfill.
    BackfillState {
        /// Accepted; nothing is planned yet.
        Pending = "PENDING",
        /// Its chunks are planned and run.
        Running = "RUNNING",
        /// No chunk is planned until it is resumed; those that were go on.
        Paused = "PAUSED",
        /// Everything was made.
        Succeeded = "SUCCEEDED",
        /// It ended, and something was not made.
        Failed = "FAILED",
        /// Somebody stopped it.
        Cancelled = "CANCELLED",
    }
}

impl BackfillState {
    /// Whether nothing can change it any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            BackfillState::Pending | BackfillState::Running | BackfillState::Paused => false,
            BackfillState::Succeeded | BackfillState::Failed | BackfillState::Cancelled => true,
        }
    }
}

named_enum! {
    /// The state of a chunk of a backfill.
    ChunkState {
        /// Its run was requested.
        Planned = "PLANNED",
        /// Its run has started.
        Running = "RUNNING",
        /// Its run has succeeded.
        Succeeded = "SUCCEEDED",
        /// Its run has failed.
        Failed = "FAILED",
        /// Its run was stopped.
        Cancelled = "CANCELLED",
    }
}

impl ChunkState {
    /// Whether its run has ended.
    pub const fn is_terminal(self) -> bool {
        match self {
            ChunkState::Planned | ChunkState::Running => false,
            ChunkState::Succeeded | ChunkState::Failed | ChunkState::Cancelled => true,
        }
    }
}

named_enum! {
    /// The outcome of a tick of a schedule.
    TickStatus {
        /// Runs were requested.
        Triggered = "TRIGGERED",
        /// No run was requested, as it should be.
        Skipped = "SKIPPED",
        /// A run should have been requested and could not be.
        Failed = "FAILED",
    }
}

named_enum! {
    /// The outcome of an evaluation of a sensor.
    SensorStatus {
        /// Runs were requested.
        Triggered = "TRIGGERED",
        /// There is nothing to do.
        NoNewData = "NO_NEW_DATA",
        /// It raised, hung or asked for something impossible.
        Failed = "FAILED",
        /// The sensor has changed since it began: nothing of it counts (L2-INV-12).
        Stale = "STALE",
    }
}

named_enum! {
    /// The kind of a sensor: what makes it be evaluated.
    SensorKind {
        /// Time: its function looks for something new.
        Poll = "poll",
        /// Messages that are sent to it.
        Push = "push",
        /// Materializations of assets.
        Asset = "asset",
        /// Ends of runs.
        Run = "run",
    }
}

named_enum! {
    /// The state of a worker.
    WorkerState {
        /// It is given tasks.
        Active = "ACTIVE",
        /// It ends what it has begun, and takes nothing more.
        Draining = "DRAINING",
        /// It has ended, and said so.
        Left = "LEFT",
        /// It was not heard of for too long.
        Lost = "LOST",
    }
}

impl WorkerState {
    /// Whether nothing is heard of it any more.
    pub fn is_gone(self) -> bool {
        match self {
            Self::Active | Self::Draining => false,
            Self::Left | Self::Lost => true,
        }
    }
}

named_enum! {
    /// The trigger of a notification rule.
    NotificationTrigger {
        /// A run has failed, or took too long.
        RunFailed = "run_failed",
        /// A task has failed for good: its retries are used up, or it had none.
        RetriesExhausted = "retries_exhausted",
        /// A check has failed with severity error or above, and the data counts all the same.
        CheckFailed = "check_failed",
        /// A check has failed, and the data does not count.
        CheckBlocked = "check_blocked",
        /// An asset is older than it may be.
        FreshnessMissed = "freshness_missed",
        /// A schedule has failed several times in a row.
        ScheduleError = "schedule_error",
        /// A sensor has failed several times in a row.
        SensorError = "sensor_error",
        /// Tasks wait for a queue that no worker serves.
        QueueWithoutWorker = "queue_without_worker",
        /// Something that was told of before is well again.
        Recovered = "recovered",
        /// Somebody wants to see whether it arrives.
        Test = "test",
    }
}

named_enum! {
    /// The kind of a destination of notifications.
    Channel {
        /// A request to an address.
        Webhook = "webhook",
        /// A message in Slack.
        Slack = "slack",
        /// An e-mail.
        Email = "email",
        /// A program.
        Command = "command",
    }
}

named_enum! {
    /// The state of a notification.
    NotificationStatus {
        /// It waits for its first try, or for the next one.
        Pending = "PENDING",
        /// It is on its way.
        Sending = "SENDING",
        /// Its destination has taken it.
        Sent = "SENT",
        /// It could not be sent, and is not tried again.
        Failed = "FAILED",
        /// It was not to be sent any more.
        Dropped = "DROPPED",
    }
}

impl NotificationStatus {
    /// Whether nothing can change it any more.
    pub const fn is_final(self) -> bool {
        match self {
            NotificationStatus::Pending | NotificationStatus::Sending => false,
            NotificationStatus::Sent | NotificationStatus::Failed | NotificationStatus::Dropped => true,
        }
    }
}
