//! Errors, classified by what the caller should do about them.

use std::io;

use crate::Seq;

/// Any underlying error.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The meaning of an error for the caller, whatever it was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Another writer committed first: read its record, decide again.
    Conflict,
    /// This writer has been deposed: stop, reopen, do not retry.
    Fenced,
    /// No room. Nothing was acknowledged; try again when there is space.
    Full,
    /// Passing trouble: try again later.
    Unavailable,
    /// Stored bytes are damaged: a person has to look.
    Corrupt,
    /// It is not there, or not any more.
    NotFound,
    /// Another process has it open.
    Locked,
    /// The request itself is wrong; trying again will not help.
    Invalid,
    /// The operating system or the store refused; the message says why.
    Io,
}

/// Why a batch was not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another writer's record has that number, or the number is not the next one.
    #[error("batch {seq} was not appended to {location}: {reason}; read from {seq} and decide again")]
    Conflict {
        /// The refused number.
        seq: Seq,
        /// Which log.
        location: String,
        /// The conflicting record.
        reason: String,
    },
    /// The number is below the boundary, or a writer of a newer epoch has it.
    #[error(
        "batch {seq} was not appended to {location}: {reason}; this writer is stale and must reopen the log"
    )]
    Fenced {
        /// The refused number.
        seq: Seq,
        /// Which log.
        location: String,
        /// The evidence.
        reason: String,
    },
    /// No space or no quota left. Nothing was acknowledged.
    #[error(
        "no space left at {location} while {action}: {source}; nothing was lost, free some space and try again"
    )]
    Full {
        /// Which file or log.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
    /// The store does not answer, or asks to try later. Append the same record again: if it had landed after
    /// all, that is noticed.
    #[error("{location} is unavailable while {action}: {source}; try the same record again later")]
    Unavailable {
        /// Which object or log.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
    /// The record can never be appended as it is.
    #[error("batch {seq} cannot be appended to {location}: {reason}")]
    Invalid {
        /// The refused number.
        seq: Seq,
        /// Which log.
        location: String,
        /// The problem with the record.
        reason: String,
    },
    /// The operating system or the store refused.
    #[error("{action} failed at {location}: {source}")]
    Io {
        /// Which file, object or log.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
}

impl AppendError {
    /// The meaning of the error for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::Full { .. } => ErrorKind::Full,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Io { .. } => ErrorKind::Io,
        }
    }

    pub(crate) fn io(action: &'static str, location: impl Into<String>, error: io::Error) -> Self {
        let location = location.into();
        if is_full(&error) {
            Self::Full { location, action, source: error.into() }
        } else {
            Self::Io { location, action, source: error.into() }
        }
    }

    pub(crate) fn read(action: &'static str, error: ReadError) -> Self {
        match error {
            ReadError::Unavailable { location, source, .. } => Self::Unavailable { location, action, source },
            ReadError::Io { location, source, .. } => Self::Io { location, action, source },
            other @ (ReadError::Corrupt { .. } | ReadError::BelowBoundary { .. }) => {
                Self::Io { location: other.location().to_owned(), action, source: other.into() }
            }
        }
    }
}

/// Why batches could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Stored bytes are not what was written.
    #[error("{file} is damaged at line {line}, byte {offset}: {damage}; {hint}")]
    Corrupt {
        /// The file or object.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// Where that line begins.
        offset: u64,
        /// The kind of damage.
        damage: Damage,
        /// A hint for the operator.
        hint: &'static str,
    },
    /// These batches have been deleted.
    #[error("batch {asked} of {location} has been deleted: the log begins at {boundary}; read from there")]
    BelowBoundary {
        /// The number asked for.
        asked: Seq,
        /// The lowest that can be read.
        boundary: Seq,
        /// Which log.
        location: String,
    },
    /// The store does not answer.
    #[error("{location} is unavailable while {action}: {source}; try again later")]
    Unavailable {
        /// Which object or log.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
    /// The operating system or the store refused.
    #[error("{action} failed at {location}: {source}")]
    Io {
        /// Which file or object.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
}

impl ReadError {
    /// The meaning of the error for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::BelowBoundary { .. } => ErrorKind::NotFound,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Io { .. } => ErrorKind::Io,
        }
    }

    /// Which file, object or log it is about.
    pub fn location(&self) -> &str {
        match self {
            Self::Corrupt { file, .. } => file,
            Self::BelowBoundary { location, .. }
            | Self::Unavailable { location, .. }
            | Self::Io { location, .. } => location,
        }
    }

    pub(crate) fn io(action: &'static str, location: impl Into<String>, error: io::Error) -> Self {
        Self::Io { location: location.into(), action, source: error.into() }
    }

    pub(crate) fn corrupt(file: impl Into<String>, line: u64, offset: u64, damage: Damage) -> Self {
        let hint = match damage {
            Damage::Checksum { .. } | Damage::Malformed { .. } | Damage::Unterminated => {
                "restore this file from a backup; Servo will not skip a batch"
            }
            Damage::WrongSeq { .. } => {
                "two processes wrote to the log, or the file was put together from parts; restore it from a backup, or \
                 see what servo admin log repair would drop"
            }
            Damage::Missing { .. } => "restore the missing file from a backup; Servo will not skip a batch",
        };
        Self::Corrupt { file: file.into(), line, offset, damage, hint }
    }
}

/// The damage of a stored batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The bytes do not match their checksum.
    #[error("the checksum is {actual:08x} but the line says {expected:08x}")]
    Checksum {
        /// The checksum in the line.
        expected: u32,
        /// The checksum of its bytes.
        actual: u32,
    },
    /// Not a line of this format.
    #[error("this is not a batch: {reason}")]
    Malformed {
        /// The first thing that is wrong.
        reason: &'static str,
    },
    /// The file ends in the middle of the line.
    #[error("the line is cut off")]
    Unterminated,
    /// A whole line, with another number than its place says.
    #[error("this is batch {actual} where batch {expected} belongs")]
    WrongSeq {
        /// The number that belongs here.
        expected: Seq,
        /// The number found.
        actual: Seq,
    },
    /// Later batches are there and this one is not.
    #[error("batch {seq} is missing although later ones exist")]
    Missing {
        /// The number that is missing.
        seq: Seq,
    },
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process is writing this log.
    #[error("{path} is held by {holder}; stop that process, or use the server that it runs")]
    Locked {
        /// The lock file.
        path: String,
        /// The holder, as it describes itself.
        holder: String,
    },
    /// The stored log could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The files that opening requires could not be written.
    #[error(transparent)]
    Write(#[from] AppendError),
}

impl OpenError {
    /// The meaning of the error for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Read(error) => error.kind(),
            Self::Write(error) => error.kind(),
        }
    }
}

/// No space or no quota left: the one I/O error that mends itself.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
