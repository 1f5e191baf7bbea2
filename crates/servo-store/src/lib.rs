//! The log, blobs and leases: everything of Servo that must survive a crash goes through here.
//!
//! **Owns** the bytes: how a batch is framed and checksummed, when it is durable, where every file and
//! object of a workspace lies ([`Layout`]), who may write, and what to do when a disk or a bucket misbehaves.
//!
//! **Refuses** to know what a batch means. A payload is one JSON array of events; it is stored and handed
//! back unread.
//!
//! **Guarantees**
//! - `append` is create-if-absent on a dense number: of all writers of batch `n` exactly one wins.
//! - `Ok` means durable. After any error nothing unacknowledged is visible to a reader of this process.
//! - "Already exists" is told apart: mine (`Ok`), somebody else's ([`AppendError::Conflict`] or
//!   [`AppendError::Fenced`]), or nothing landed (tried again, then [`AppendError::Unavailable`]).
//! - A damaged batch is refused with file, line and byte offset; it is never skipped.
//! - A name that was deleted cannot come back: a durable boundary is advanced before anything is deleted.
//! - No listing on a hot path: names are computed and probed (P6).
//!
//! ```
//! use futures::TryStreamExt;
//! use servo_core::{TenantId, WorkspaceId};
//! use servo_store::{FileLog, Layout, Log, PutIds, Record, SystemPutIds};
//!
//! # let rt = tokio::runtime::Builder::new_current_thread().build()?;
//! # rt.block_on(async {
//! let root = tempfile::tempdir()?;
//! let layout = Layout::new("acme".parse::<TenantId>()?, "main".parse::<WorkspaceId>()?);
//! let log = FileLog::open(root.path(), &layout)?;
//!
//! let put_id = SystemPutIds::default().next();
//! let seq = log.next_seq().await?;
//! log.append(Record { seq, epoch: 1, put_id, payload: r#"[{"event":"hello"}]"#.into() }).await?;
//!
//! let batches: Vec<Record> = log.read(1).try_collect().await?;
//! assert_eq!(batches[0].payload, r#"[{"event":"hello"}]"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blobs;
#[cfg(feature = "testing")]
pub mod conformance;
mod data;
mod error;
mod file_blobs;
mod file_log;
mod files;
mod layout;
mod leases;
mod line;
mod log;
mod memory_log;
mod object_blobs;
mod object_log;
mod object_stores;
pub mod probe;
mod put_ids;
mod spawner;
#[cfg(feature = "testing")]
pub mod testing;
mod timers;

pub use blobs::{BlobError, Blobs, PutOutcome};
pub use data::{DataError, DataRoot, Output, OutputFiles};
pub use error::{AppendError, Damage, ErrorKind, OpenError, ReadError};
pub use file_blobs::FileBlobs;
pub use file_log::{DamagedLog, DroppedBatch, FileLog, FileLogOptions};
pub use files::{DirEntry, FileLock, FileSystem, LockOutcome, OpenFile, OsFiles, WholeFileSystem};
pub use layout::{Layout, TableFileKind};
pub use leases::{Lease, LeaseError, Leases};
pub use log::{Log, Record, Seq};
pub use memory_log::{MemoryFault, MemoryLog};
pub use object_blobs::{MemoryBlobs, ObjectBlobs};
pub use object_log::{ObjectLog, ObjectLogOptions};
pub use object_stores::{StoreUrlError, open_object_store};
pub use put_ids::{CountingPutIds, PutIds, SystemPutIds};
pub use spawner::Spawner;
pub use timers::{Timers, TokioTimers, within};
