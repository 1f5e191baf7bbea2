//! Exit codes: the one place where they are given out.

use std::process::ExitCode;

use servo_api::client::ClientError;
use servo_engine::RunState;

/// The list of exit codes in `servo --help`.
pub(crate) const HELP: &str = "Exit codes:
  0    done
  1    failed: a run did not succeed, a request was refused, or something broke
  2    the command line is wrong
  4    the server does not answer
  5    the tables lag behind the log (servo reconcile)
  130  interrupted";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to.
    Done,
    /// A run did not succeed, a request was refused, or something broke.
    Failed,
    /// The server does not answer.
    Unreachable,
    /// The tables lag behind the log: nothing was decided.
    Lagging,
    /// Ctrl-C.
    Interrupted,
    /// Whatever a program says that was started for the command.
    Of(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Unreachable => 4,
            Self::Lagging => 5,
            Self::Interrupted => 130,
            Self::Of(code) => code,
        }
    }

    /// The exit code of a run.
    pub(crate) fn of_run(state: RunState) -> Self {
        if state == RunState::Succeeded { Self::Done } else { Self::Failed }
    }

    /// Why a command has no result.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<ClientError>() {
            Some(ClientError::Unreachable { .. }) => Self::Unreachable,
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
