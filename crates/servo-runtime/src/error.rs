//! What can go wrong between a caller and a durable answer.

use std::sync::Arc;

use servo_core::Millis;
use servo_engine::{Refusal, RequestError, RestoreError};
use servo_queue::AuthError;
use servo_store::{AppendError, ReadError};

/// Why there is no answer, or why the answer is no.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The engine said no; nothing changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request makes no sense; nothing changed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// What was to be reviewed cannot be moved; nothing changed.
    #[error("what was to be reviewed cannot be moved: {0}")]
    Review(String),
    /// The caller may not say this.
    #[error(transparent)]
    Denied(#[from] AuthError),
    /// The log did not take it. Nothing was acknowledged; asking again is safe.
    #[error("not accepted: {0}")]
    NotDurable(Arc<AppendError>),
    /// The state was reloaded meanwhile. Nothing was acknowledged; asking again is safe.
    #[error("not accepted: the workspace is recovering; ask again")]
    Recovering,
    /// The workspace is closed.
    #[error("the workspace is shut down")]
    Stopped,
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] Arc<ReadError>),
    /// A batch of the log could not be understood.
    #[error("batch {seq} of {log} cannot be read: {problem}; restore the log from a copy, it is the truth")]
    Batch {
        /// The log.
        log: String,
        /// The batch.
        seq: u64,
        /// What is wrong.
        problem: String,
    },
    /// The log ends before the tables do: batches that were acknowledged are gone from it.
    #[error(
        "{log} ends at batch {last}, but the tables hold everything up to batch {tables}: the log has lost its end; \
         restore it from a copy, it is the truth"
    )]
    LogBehind {
        /// The log.
        log: String,
        /// Its last batch.
        last: u64,
        /// The last batch in the tables.
        tables: u64,
    },
    /// The tables could not be read or written.
    #[error(transparent)]
    Projection(Arc<servo_projections::Error>),
    /// The storage of data did not answer. Nothing was acknowledged; asking again is safe.
    #[error("the data cannot be looked at: {0}; ask again")]
    Data(Arc<servo_store::DataError>),
    /// The tables do not fit together.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Another node runs this workspace.
    #[error("{workspace} is run by another node; stop that node, or wait until its lease of {ttl} runs out")]
    NotLeader {
        /// The workspace.
        workspace: String,
        /// How long a lease lasts after its node fell silent.
        ttl: Millis,
    },
    /// The lease store failed.
    #[error("the lease of the workspace: {0}")]
    Lease(String),
}

impl Error {
    /// Whether the same request may be made again and can succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::NotDurable(_)
            | Error::Recovering
            | Error::Log(_)
            | Error::Projection(_)
            | Error::Data(_)
            | Error::Lease(_) => true,
            Error::Refused(_)
            | Error::Request(_)
            | Error::Review(_)
            | Error::Denied(_)
            | Error::Stopped
            | Error::Batch { .. }
            | Error::LogBehind { .. }
            | Error::Restore(_)
            | Error::NotLeader { .. } => false,
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Error::Log(Arc::new(error))
    }
}

impl From<servo_projections::Error> for Error {
    fn from(error: servo_projections::Error) -> Self {
        Error::Projection(Arc::new(error))
    }
}
