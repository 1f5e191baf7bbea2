//! The contract of a blob store: whole values by name, immutable where it matters.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ErrorKind;
use crate::error::Source;

/// The result of [`Blobs::put_if_absent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PutOutcome {
    /// It was not there, and now is, durably.
    Created,
    /// A blob of that name exists already. It may be this very value, if a response was lost: values that matter carry
    /// a put id, so that the caller can read it back and tell.
    Exists,
}

/// Values by name. Names are relative to the workspace (see [`Layout`](crate::Layout)), with `/` between parts.
#[async_trait]
pub trait Blobs: Send + Sync + 'static {
    /// Stores a value unless the name is taken. Of several at once, exactly one gets `Created`.
    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<PutOutcome, BlobError>;

    /// Stores a value, replacing what was there. A reader sees the old value or the new one, never a mixture.
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError>;

    /// The value of a name.
    async fn get(&self, name: &str) -> Result<Bytes, BlobError>;

    /// A part of a value. The range must lie within it.
    async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, BlobError>;

    /// Length of a value in bytes.
    async fn size(&self, name: &str) -> Result<u64, BlobError>;

    /// Deletes a value. One that is not there is fine. In files a power loss may undo it until something else is stored
    /// in the same directory: what must never come back needs more than a deletion.
    async fn delete(&self, name: &str) -> Result<(), BlobError>;

    /// Names and sizes of everything below a directory, sorted; `""` is the whole workspace. For
    /// administration, never on a hot path (P6).
    async fn list(&self, dir: &str) -> Result<Vec<(String, u64)>, BlobError>;

    /// Where this store is, for messages.
    fn describe(&self) -> String;
}

/// Why a blob operation failed.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is no such value.
    #[error("{name} does not exist in {location}")]
    NotFound {
        /// The name.
        name: String,
        /// Which store.
        location: String,
    },
    /// The name could lead outside the workspace, or is not portable.
    #[error("{name:?} is not a valid name: {reason}")]
    InvalidName {
        /// The name.
        name: String,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// The range is not within the value.
    #[error("bytes {start}..{end} are not within {name} in {location}")]
    BadRange {
        /// The name.
        name: String,
        /// First byte asked for.
        start: u64,
        /// First byte not asked for.
        end: u64,
        /// Which store.
        location: String,
    },
    /// No space or no quota left.
    #[error("no space left in {location} while {action} {name}: {source}; free some space and try again")]
    Full {
        /// The name.
        name: String,
        /// Which store.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
    /// The store does not answer.
    #[error("{location} is unavailable while {action} {name}: {source}; try again later")]
    Unavailable {
        /// The name.
        name: String,
        /// Which store.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
    /// The operating system or the store refused.
    #[error("{action} {name} in {location} failed: {source}")]
    Io {
        /// The name.
        name: String,
        /// Which store.
        location: String,
        /// The operation that failed.
        action: &'static str,
        /// The error of the store.
        source: Source,
    },
}

impl BlobError {
    /// The meaning of the error for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::InvalidName { .. } | Self::BadRange { .. } => ErrorKind::Invalid,
            Self::Full { .. } => ErrorKind::Full,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Io { .. } => ErrorKind::Io,
        }
    }
}

/// Prefix of the names of unfinished files.
pub(crate) const TEMPORARY: &str = ".tmp-";
const LONGEST_NAME: usize = 900;
const LONGEST_PART: usize = 200;

/// Refuses names that could lead outside the workspace or that some store cannot keep.
pub(crate) fn check_name(name: &str) -> Result<(), BlobError> {
    let refuse = |reason| Err(BlobError::InvalidName { name: name.to_owned(), reason });
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > LONGEST_NAME {
        return refuse("it is longer than 900 bytes");
    }
    if name.starts_with('/') {
        return refuse("it must be relative, without a slash at the start");
    }
    if name.chars().any(|c| c.is_control() || "\\%#?*{}[]^~<>|\"`".contains(c)) {
        return refuse("it contains a control character or one of \\ % # ? * { } [ ] ^ ~ < > | \" `");
    }
    for part in name.split('/') {
        if part.is_empty() {
            return refuse("it has an empty part between slashes");
        }
        if part == "." || part == ".." {
            return refuse("it must not contain . or .. as a part");
        }
        if part.starts_with(TEMPORARY) {
            return refuse("parts beginning with .tmp- are for unfinished files");
        }
        if part.len() > LONGEST_PART {
            return refuse("one of its parts is longer than 200 bytes");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a/..",
            ".",
            "a//b",
            "a/",
            "a\\b",
            "a\0b",
            "a\nb",
            "a%2e",
            "x/.tmp-1",
        ] {
            assert!(matches!(check_name(name), Err(BlobError::InvalidName { .. })), "{name:?}");
        }
        assert!(check_name(&"x".repeat(201)).is_err());
        assert!(check_name(&"x/".repeat(500)).is_err());
    }

    #[test]
    fn ordinary_names_are_fine() {
        for name in [
            "a",
            "manifests/orchestration/00000000000000000001.json",
            "date=2025-01-15,r=ü/x.parquet",
            "..a",
            ".hidden",
        ] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
