//! Exit codes: the one place where they are given out.

use std::process::ExitCode;

use servo_api::client::ClientError;
use servo_api::views::Run;
use servo_engine::RunState;
use servo_runtime::ErrorKind;
use servo_store::ErrorKind::Corrupt;

/// The list of exit codes in `servo --help`.
pub(crate) const HELP: &str = "Exit codes:
  0    done
  1    failed: a run did not succeed, a request was refused, or something broke
  2    the command line is wrong
  3    the run succeeded, but checks of severity error or critical failed (with --strict-checks)
  4    not now: the server or its stores do not answer; asking again may help
  5    the tables lag behind the log (servo reconcile)
  130  interrupted";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to.
    Done,
    /// A run did not succeed, a request was refused, or something broke.
    Failed,
    /// A run succeeded, but checks failed and were asked to count.
    ChecksFailed,
    /// Nobody answers now; asking again may help.
    Unavailable,
    /// The tables lag behind the log: nothing was decided.
    Lagging,
    /// Ctrl-C.
    Interrupted,
    /// The exit code of a program that was started for the command.
    Of(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::ChecksFailed => 3,
            Self::Unavailable => 4,
            Self::Lagging => 5,
            Self::Interrupted => 130,
            Self::Of(code) => code,
        }
    }

    /// The exit code of a run; with `strict_checks`, failed checks are told from success.
    pub(crate) fn of_run(run: &Run, strict_checks: bool) -> Self {
        match run.state {
            RunState::Succeeded if strict_checks && run.checks_failed > 0 => Self::ChecksFailed,
            RunState::Succeeded => Self::Done,
            RunState::Pending
            | RunState::Queued
            | RunState::Running
            | RunState::Cancelling
            | RunState::Cancelled
            | RunState::TimedOut
            | RunState::Failed => Self::Failed,
        }
    }

    /// Why a command has no result.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref::<servo_runtime::Error>() {
            // A server may mend damaged tables meanwhile; a command that reads them alone can only fail.
            let is_damage =
                matches!(error, servo_runtime::Error::Projection(tables) if tables.kind() == Corrupt);
            return match error.kind() {
                _ if is_damage => Self::Failed,
                ErrorKind::Transient | ErrorKind::Stopped => Self::Unavailable,
                ErrorKind::Refused(_) | ErrorKind::Denied | ErrorKind::Fatal => Self::Failed,
            };
        }
        match error.downcast_ref::<ClientError>() {
            Some(ClientError::Unreachable { .. }) => Self::Unavailable,
            // The status follows from the kind of the error on the other side.
            Some(ClientError::Problem(problem)) if problem.status == 503 => Self::Unavailable,
            Some(
                ClientError::Address { .. }
                | ClientError::Problem(_)
                | ClientError::Malformed { .. }
                | ClientError::Random(_),
            )
            | None => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
