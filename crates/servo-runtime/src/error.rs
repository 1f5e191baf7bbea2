//! Errors between a caller and a durable answer.

use std::sync::Arc;

use servo_core::{AssetKey, MaterializationId, Millis};
use servo_engine::{NewerEvent, Refusal, RefusalKind, RequestError, RestoreError};
use servo_queue::AuthError;
use servo_store::{AppendError, DataError, ReadError};

/// Reasons why there is no answer, or a negative one.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The engine refused; nothing changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request is not valid; nothing changed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The data to be approved is not in quarantine; nothing changed.
    #[error(
        "what was to be approved is not there: {asset} has no data of {materialization_id} in quarantine"
    )]
    NothingToRelease {
        /// The asset.
        asset: AssetKey,
        /// The materialization that was in quarantine.
        materialization_id: MaterializationId,
    },
    /// Nobody is there to call the function of a schedule or a sensor; nothing changed.
    #[error(
        "no worker that has the project is there to evaluate {name}, or it did not answer; is one running? Nothing was \
         changed"
    )]
    NoEvaluator {
        /// The schedule or sensor.
        name: String,
    },
    /// The caller is not authorized.
    #[error(transparent)]
    Denied(#[from] AuthError),
    /// The log refused the batch. Nothing was acknowledged; retrying is safe.
    #[error("not accepted: {0}")]
    NotDurable(Arc<AppendError>),
    /// The state was reloaded meanwhile. Nothing was acknowledged; retrying is safe.
    #[error("not accepted: the workspace is recovering; ask again")]
    Recovering,
    /// The workspace is closed.
    #[error("the workspace is shut down")]
    Stopped,
    /// The workspace was opened to be read.
    #[error("the workspace was opened to be read only; nothing was changed")]
    ReadOnly,
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] Arc<ReadError>),
    /// A batch of the log could not be decoded.
    #[error("batch {seq} of {log} cannot be read: {problem}; restore the log from a copy, it is the truth")]
    Batch {
        /// The log.
        log: String,
        /// The batch.
        seq: u64,
        /// The problem.
        problem: String,
    },
    /// The log ends before the tables do: acknowledged batches are missing from it.
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
    /// The log has events that this version does not know.
    #[error(
        "{log} has an event that this version of servo does not know: {event}; a newer version wrote it. \
         Nothing was changed: use that version to change the workspace; reading works with this one"
    )]
    NewerLog {
        /// The log.
        log: String,
        /// The first of these events.
        event: NewerEvent,
    },
    /// The tables could not be read or written.
    #[error(transparent)]
    Projection(Arc<servo_projections::Error>),
    /// The storage of data did not answer. Nothing was acknowledged; asking again is safe.
    #[error("the data cannot be reached: {0}; ask again")]
    Data(Arc<DataError>),
    /// The tables are inconsistent.
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

/// Class of an error. It alone decides whether to ask again, the HTTP status, and the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request was understood and refused. Nothing changed.
    Refused(RefusalKind),
    /// The caller may not say this. Nothing changed.
    Denied,
    /// Nothing was acknowledged. Asking again is safe, and can succeed.
    Transient,
    /// The workspace is closed. Whoever runs it next can be asked.
    Stopped,
    /// Nothing was acknowledged, and asking again does not help: somebody has to see to it first.
    Fatal,
}

impl Error {
    /// Returns its class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Refused(refusal) => ErrorKind::Refused(refusal.kind()),
            Error::Request(request) => ErrorKind::Refused(request.kind()),
            Error::NothingToRelease { .. } => ErrorKind::Refused(RefusalKind::Conflict),
            Error::Denied(_) => ErrorKind::Denied,
            Error::NoEvaluator { .. }
            | Error::NotDurable(_)
            | Error::Recovering
            | Error::Log(_)
            | Error::Projection(_)
            | Error::Data(_)
            | Error::Lease(_) => ErrorKind::Transient,
            Error::Stopped => ErrorKind::Stopped,
            Error::ReadOnly => ErrorKind::Denied,
            Error::Batch { .. }
            | Error::LogBehind { .. }
            | Error::NewerLog { .. }
            | Error::Restore(_)
            | Error::NotLeader { .. } => ErrorKind::Fatal,
        }
    }

    /// Whether the same request may be retried and can succeed.
    pub fn is_transient(&self) -> bool {
        self.kind() == ErrorKind::Transient
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

impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        Error::Data(Arc::new(error))
    }
}
