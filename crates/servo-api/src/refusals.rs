//! Maps refusals and errors of the workspace to problems. The one place where errors become statuses.

use servo_access::{ControlRefusal, LedgerError};
use servo_engine::definitions::DefinitionProblems;
use servo_engine::{Refusal, RequestError};
use servo_queue::AuthError;
use servo_runtime::{Error, ErrorKind};
use servo_store::AppendError;

use crate::problem::{Code, DefinitionProblem, Problem, QuotaFigures, SourceLocation, Violation};

/// After how long to ask again where the queue of runs is full.
const FULL_QUEUE_SECONDS: u32 = 30;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match (error.kind(), error) {
            (_, Error::Refused(refusal)) => refusal.into(),
            (_, Error::Request(request)) => request.into(),
            (_, Error::Denied(denied)) => denied.into(),
            (_, error @ Error::NothingToRelease { .. }) => {
                Problem::new(Code::ReviewFailed, error.to_string())
            }
            (_, error @ Error::ReadOnly) => Problem::new(Code::Forbidden, error.to_string()),
            (ErrorKind::Transient, error) => unavailable(&error),
            (ErrorKind::Stopped, _) => Problem::new(Code::ShuttingDown, "the workspace is shut down"),
            (ErrorKind::Fatal | ErrorKind::Refused(_) | ErrorKind::Denied, error) => {
                Problem::internal(&error)
            }
        }
    }
}

/// Says that asking again is safe, and why as far as callers may know.
fn unavailable(error: &Error) -> Problem {
    tracing::warn!(%error, "api.unavailable");
    let is_full = |error: &AppendError| error.kind() == servo_store::ErrorKind::Full;
    Problem::new(
        Code::Unavailable,
        match error {
            Error::NotDurable(error) if is_full(error) => {
                "the server has no space left; nothing was changed, ask again when there is"
            }
            Error::NotDurable(_) => "the request could not be made durable; ask again",
            Error::Recovering => "the workspace is loading its state; ask again",
            Error::NoEvaluator { .. } => {
                "no worker that has the project evaluates it, or it did not answer in time; nothing was changed"
            }
            Error::Log(_)
            | Error::Projection(_)
            | Error::Data(_)
            | Error::Lease(_)
            | Error::Refused(_)
            | Error::Request(_)
            | Error::NothingToRelease { .. }
            | Error::Denied(_)
            | Error::Stopped
            | Error::ReadOnly
            | Error::Batch { .. }
            | Error::LogBehind { .. }
            | Error::NewerLog { .. }
            | Error::Restore(_)
            | Error::NotLeader { .. } => {
                "the stores of the workspace do not answer as they should; ask again"
            }
        },
    )
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        let quota = |name: &str, limit: u64, used: u64| {
            let mut problem = Problem::new(Code::QuotaExceeded, detail.clone());
            problem.quota = Some(Box::new(QuotaFigures { name: name.to_owned(), limit, used }));
            problem
        };
        let code = match &refusal {
            Refusal::UnknownRun { .. } => Code::UnknownRun,
            Refusal::UnknownTask { .. } => Code::UnknownTask,
            Refusal::RunKeyConflict { .. } => Code::RunKeyConflict,
            Refusal::RequestIdReused { .. } => Code::IdempotencyConflict,
            Refusal::StalePlan(_) | Refusal::StaleRunKey { .. } => Code::StalePlan,
            Refusal::RunEnded { .. } => Code::RunEnded,
            Refusal::ForceTooSoon { .. } => Code::ForceTooSoon,
            Refusal::StaleAttempt { .. } => Code::StaleAttempt,
            Refusal::AlreadyStarted { .. } => Code::AlreadyStarted,
            Refusal::Cancelled { .. } => Code::TaskCancelled,
            Refusal::AttemptEnded { .. } => Code::AttemptEnded,
            Refusal::NotInQuarantine { .. } => Code::NotInQuarantine,
            Refusal::PartitionBusy { .. } => Code::PartitionBusy,
            Refusal::NothingToUndo { .. } => Code::NothingToUndo,
            Refusal::UnknownAsset { .. } => Code::UnknownAsset,
            Refusal::CannotRename { .. } => Code::CannotRename,
            Refusal::UnknownSchedule { .. } => Code::UnknownSchedule,
            Refusal::UnknownSensor { .. } => Code::UnknownSensor,
            Refusal::UnknownNotification { .. } => Code::UnknownNotification,
            Refusal::TakesNoMessages { .. } => Code::TakesNoMessages,
            Refusal::TooLarge { .. } => Code::BodyTooLarge,
            Refusal::UnknownBackfill { .. } => Code::UnknownBackfill,
            Refusal::UnknownCondition { .. } => Code::UnknownCondition,
            Refusal::BackfillEnded { .. } => Code::InvalidStateTransition,
            Refusal::NameTaken { .. } => Code::NameTaken,
            Refusal::DefinedByCode { .. } => Code::DefinedByCode,
            Refusal::StateVersion { .. } => Code::VersionConflict,
            Refusal::NothingToTrigger { .. } => Code::NothingToTrigger,
            Refusal::CannotTrigger { .. } => Code::Unplannable,
            Refusal::BadDefinition { .. } => Code::InvalidDefinitions,
            Refusal::UnknownWorker { .. } => Code::UnknownWorker,
            Refusal::NothingDeployed { .. } => Code::NothingDeployed,
            Refusal::OtherCode { .. } => Code::OtherCode,
            Refusal::Forbidden { .. } => Code::Forbidden,
            Refusal::BadPartition { .. }
            | Refusal::AddedAndRemoved { .. }
            | Refusal::BadAsset { .. }
            | Refusal::BadSetting(_)
            | Refusal::LongReason { .. }
            | Refusal::BadMessageId { .. }
            | Refusal::TooManyToChange { .. }
            | Refusal::TooManyPartitionChanges { .. } => Code::InvalidRequest,
            Refusal::TooManyPartitions { count, limit, .. } => {
                return quota("max_dynamic_partitions", u64::from(*limit), *count as u64);
            }
            Refusal::TooManyAssets { count, limit } => {
                return quota("max_assets", *limit as u64, *count as u64);
            }
            Refusal::DailyRuns { limit, used, left } => {
                let mut problem = quota("max_daily_runs", *limit, *used);
                problem.retry_after = Some(u32::try_from(left.get().div_ceil(1_000)).unwrap_or(u32::MAX));
                return problem;
            }
            Refusal::Quota { quota: name, limit, used } => {
                let mut problem = quota(name, *limit, *used);
                // Nobody knows when a run ends; this is often enough to look.
                problem.retry_after = (*name == "max_queued_runs").then_some(FULL_QUEUE_SECONDS);
                return problem;
            }
        };
        Problem::new(code, detail)
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        let detail = error.to_string();
        match &error {
            RequestError::Selection(syntax) => {
                let mut problem = Problem::new(Code::InvalidRequest, detail);
                problem
                    .violations
                    .push(Violation { field: "selection".to_owned(), message: syntax.to_string() });
                problem
            }
            RequestError::Planning(planning) if planning.nothing_to_make().is_some() => {
                Problem::new(Code::UpToDate, detail)
            }
            RequestError::Planning(_) => Problem::new(Code::Unplannable, detail),
            RequestError::NothingDeployed => Problem::new(Code::NothingDeployed, detail),
            RequestError::StillRunning { .. } => Problem::new(Code::RunActive, detail),
            RequestError::Backfill(_) | RequestError::Partitions(_) => {
                Problem::new(Code::InvalidRequest, detail)
            }
            RequestError::UnknownAsset { .. } => Problem::new(Code::UnknownAsset, detail),
            RequestError::BackfillActive { .. } => Problem::new(Code::InvalidStateTransition, detail),
            RequestError::NothingToRetry { .. } | RequestError::NothingFailed { .. } => {
                Problem::new(Code::NothingToRetry, detail)
            }
        }
    }
}

/// An error about a credential; it never says what was expected.
impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        Problem::new(Code::Unauthenticated, error.to_string())
    }
}

impl From<DefinitionProblems> for Problem {
    fn from(found: DefinitionProblems) -> Self {
        let count = found.iter().len();
        let plural = if count == 1 { "" } else { "s" };
        let mut problem =
            Problem::new(Code::InvalidDefinitions, format!("the definitions have {count} problem{plural}"));
        problem.problems = found
            .iter()
            .map(|found| DefinitionProblem {
                location: found
                    .location
                    .as_ref()
                    .map(|at| SourceLocation { file: at.file.to_string(), line: at.line }),
                subject: found.subject.clone(),
                message: found.message.clone(),
                fix: found.fix.clone(),
            })
            .collect();
        problem
    }
}

impl From<ControlRefusal> for Problem {
    fn from(refusal: ControlRefusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            ControlRefusal::UnknownKey { .. } => Problem::new(Code::UnknownKey, detail),
            ControlRefusal::UnknownSession { .. } => Problem::new(Code::UnknownSession, detail),
            ControlRefusal::UnknownTenant { .. } => Problem::new(Code::UnknownTenant, detail),
            ControlRefusal::UnknownWorkspace { .. } => Problem::new(Code::UnknownWorkspace, detail),
            ControlRefusal::TenantExists { .. } | ControlRefusal::WorkspaceExists { .. } => {
                Problem::new(Code::NameTaken, detail)
            }
            ControlRefusal::StillOn { .. } => Problem::new(Code::InvalidStateTransition, detail),
            ControlRefusal::Invalid { field, problem } => Problem::invalid(field, problem),
            ControlRefusal::TooMany { what, limit } => {
                let mut problem = Problem::new(Code::QuotaExceeded, detail);
                let limit = limit as u64;
                problem.quota = Some(Box::new(QuotaFigures { name: what.to_owned(), limit, used: limit }));
                problem
            }
        }
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Refused(refusal) => refusal.into(),
            LedgerError::Append(_) => {
                tracing::warn!(%error, "api.control_unavailable");
                Problem::new(
                    Code::Unavailable,
                    "the control ledger cannot be written; nothing was changed, ask again",
                )
            }
            LedgerError::Closed => Problem::new(Code::ShuttingDown, "the server is about to end"),
            LedgerError::Read(_) | LedgerError::Batch { .. } => Problem::internal(&error),
        }
    }
}
