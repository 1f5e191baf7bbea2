//! Logs that nobody has written to for a long time: counted, and removed.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use servo_core::Timestamp;

use super::files::{LogFiles, blocking};

impl LogFiles {
    /// How many logs nobody has written to since a time, and how many bytes they take.
    pub async fn older_than(&self, before: Timestamp) -> io::Result<(u64, u64)> {
        let (directory, before) = (self.all(), time(before));
        blocking(move || {
            let mut found = (0, 0);
            visit(&directory, &mut |file| {
                let known = file.metadata()?;
                if known.modified()? < before {
                    found = (found.0 + 1, found.1 + known.len());
                }
                Ok(())
            })?;
            Ok(found)
        })
        .await
    }

    /// Removes these logs, and directories that become empty. Can be repeated.
    pub async fn remove_before(&self, before: Timestamp) -> io::Result<()> {
        let (directory, before) = (self.all(), time(before));
        blocking(move || {
            visit(&directory, &mut |file| {
                if file.metadata()?.modified()? < before {
                    gone(fs::remove_file(file.path()))?;
                }
                Ok(())
            })?;
            remove_empty(&directory).map(|_| ())
        })
        .await
    }
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(0))
}

/// Takes a file that somebody else has removed meanwhile for removed.
fn gone(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

fn entries(directory: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn visit(directory: &Path, look: &mut dyn FnMut(&DirEntry) -> io::Result<()>) -> io::Result<()> {
    for entry in entries(directory)? {
        if entry.file_type()?.is_dir() {
            visit(&entry.path(), look)?;
        } else {
            gone(look(&entry))?;
        }
    }
    Ok(())
}

/// Removes directories below this one that hold no file; true if it is empty itself. One that a writer has just made
/// goes too, and the writer makes it again.
fn remove_empty(directory: &Path) -> io::Result<bool> {
    let mut is_empty = true;
    for entry in entries(directory)? {
        let is_gone = entry.file_type()?.is_dir()
            && remove_empty(&entry.path())?
            && fs::remove_dir(entry.path()).is_ok();
        is_empty &= is_gone;
    }
    Ok(is_empty)
}
