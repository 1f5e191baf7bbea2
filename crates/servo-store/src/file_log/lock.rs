//! The lock of the one writer.
//!
//! It is on the directory of the ledger and on a file in it, which says who has it. The file alone could be deleted or
//! replaced, and a second writer would lock the new one; the directory cannot be without taking the log with it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::files::{FileLock, FileSystem, LockOutcome};
use crate::{AppendError, OpenError};

/// How much is read of who has a lock.
const LONGEST_HOLDER: u64 = 256;

/// The lock of the one writer, kept until it is dropped.
#[derive(Debug)]
pub(super) struct WriterLock {
    path: PathBuf,
    file: Box<dyn FileLock>,
    /// None where the file system cannot lock directories.
    dir: Option<Box<dyn FileLock>>,
    lost: AtomicBool,
}

impl WriterLock {
    /// Takes the lock, or says who has it.
    pub(super) fn take(files: &dyn FileSystem, path: &Path) -> Result<Self, OpenError> {
        let failed = |error| AppendError::io("locking the ledger", path.display().to_string(), error);
        let dir = match files.try_lock_dir(path.parent().unwrap_or(Path::new("."))) {
            Ok(LockOutcome::Acquired(lock)) => Some(lock),
            Ok(LockOutcome::HeldBy(_)) => {
                let holder = files.read_range(path, 0..LONGEST_HOLDER).unwrap_or_default();
                return Err(held(path, String::from_utf8_lossy(&holder).into_owned()));
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => None,
            Err(error) => return Err(failed(error).into()),
        };
        let holder = format!("process {}", std::process::id());
        match files.try_lock(path, &holder) {
            Ok(LockOutcome::Acquired(file)) => {
                Ok(Self { path: path.to_owned(), file, dir, lost: AtomicBool::new(false) })
            }
            Ok(LockOutcome::HeldBy(holder)) => Err(held(path, holder)),
            Err(error) => Err(failed(error).into()),
        }
    }

    /// That it is still this process's; if not, why. Once lost it stays so.
    pub(super) fn check(&self) -> Result<(), String> {
        let checked = self.file.check().and_then(|()| self.dir.as_ref().map_or(Ok(()), |dir| dir.check()));
        match checked {
            Ok(()) if !self.is_lost() => Ok(()),
            Ok(()) => Err(format!("{} was gone for a while", self.path.display())),
            Err(error) => {
                self.lost.store(true, Ordering::Release);
                Err(format!("{} was removed or replaced ({error})", self.path.display()))
            }
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

fn held(path: &Path, holder: String) -> OpenError {
    let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
    OpenError::Locked { path: path.display().to_string(), holder }
}
