//! Errors of tables and manifests, classified by what to do about them.

use servo_store::{BlobError, ErrorKind, ReadError};

/// The way out of every damaged projection: nothing in it is the only copy (P1).
pub(crate) const REBUILD_HINT: &str = "the log still has everything: run `servo admin projections rebuild`";

/// Why a projection could not be read, written or rebuilt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is missing, cut off, altered or makes no sense.
    #[error("{file} is damaged: {problem}; {hint}")]
    Damaged {
        /// The file, relative to the workspace.
        file: String,
        /// The problem and its location.
        problem: String,
        /// A hint for the operator.
        hint: &'static str,
    },
    /// A file was written by a newer Servo.
    #[error("{file} has schema version {found}, this Servo reads up to {supported}; use a newer Servo")]
    Newer {
        /// The file, relative to the workspace.
        file: String,
        /// Its version.
        found: u64,
        /// The newest version this build reads.
        supported: u64,
    },
    /// A writer of a newer epoch publishes this workspace's manifests.
    #[error("manifest revision {revision} was not published: {reason}; this writer is stale and must stop")]
    Fenced {
        /// The refused revision.
        revision: u64,
        /// The evidence.
        reason: String,
    },
    /// Changes do not follow on what has been published.
    #[error(
        "changes after batch {after} cannot follow a manifest that ends at batch {published}; \
         recover from the newest manifest and flush again"
    )]
    Gap {
        /// Batch after which the changes begin.
        after: u64,
        /// Batch at which the newest manifest ends.
        published: u64,
    },
    /// The store refused or did not answer.
    #[error("{action} {file} failed: {source}")]
    Store {
        /// The operation that failed.
        action: &'static str,
        /// To which file, relative to the workspace.
        file: String,
        /// Why not.
        source: Box<BlobError>,
    },
    /// The log could not be read.
    #[error("the log could not be read: {0}")]
    Log(#[source] Box<ReadError>),
    /// Rows could not be written as Parquet.
    #[error("rows of `{table}` cannot be written as Parquet: {problem}")]
    Encode {
        /// The table.
        table: &'static str,
        /// Why not.
        problem: String,
    },
    /// A rebuild or a verification cannot be done, or was stopped; nothing visible has changed.
    #[error("the {what} was not done: {reason}; nothing visible has changed")]
    Refused {
        /// `rebuild` or `verification`.
        what: &'static str,
        /// Why not, and what to do instead.
        reason: String,
    },
}

impl Error {
    /// The meaning of the error for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::Newer { .. } | Self::Encode { .. } | Self::Refused { .. } => ErrorKind::Invalid,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::Gap { .. } => ErrorKind::Conflict,
            Self::Store { source, .. } => source.kind(),
            Self::Log(error) => error.kind(),
        }
    }

    pub(crate) fn store(action: &'static str, file: impl Into<String>, source: BlobError) -> Self {
        Self::Store { action, file: file.into(), source: Box::new(source) }
    }

    pub(crate) fn damaged(file: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), problem: problem.into(), hint: REBUILD_HINT }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::Log(Box::new(error))
    }
}
