//! Operations as hooks see them, and the decisions that hooks may return.

use std::io;
use std::path::Path;

/// Which operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// Creating a directory.
    CreateDir,
    /// Creating a file.
    CreateNew,
    /// Writing at the end of a file.
    Append,
    /// Writing zeros behind the end of a file.
    Pad,
    /// Making contents durable.
    SyncData,
    /// Cutting a file down.
    Truncate,
    /// Giving a file another name.
    Rename,
    /// Giving a file a second name.
    HardLink,
    /// Deleting a file.
    Remove,
    /// Deleting a directory with everything in it.
    RemoveDirAll,
    /// Making names durable.
    SyncDir,
    /// Making everything durable.
    SyncFileSystem,
    /// Taking a lock that is free, and writing down who has it.
    Lock,
}

/// An operation that is about to change the disk.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a> {
    /// How many there were before on this disk, plus one.
    pub number: u64,
    /// Which operation.
    pub kind: OperationKind,
    /// On which file or directory; the new name for renames and links.
    pub path: &'a Path,
    /// How many bytes an append or a padding writes; 0 for everything else.
    pub len: usize,
}

/// The decision of a hook about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Go,
    /// It fails and nothing is done, except that [`io::ErrorKind::StorageFull`] leaves half of an append, and that
    /// after a failed sync the next one does not make durable what this one should have.
    Fail(io::ErrorKind),
    /// The process dies before.
    DieBefore,
    /// The process dies after it, and does not learn that it is done.
    DieAfter,
    /// The process dies when an append has written so many bytes. Before, if it is another operation.
    Tear(usize),
}
