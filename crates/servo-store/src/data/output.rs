//! Outputs of attempts on their way to being materializations.

use bytes::Bytes;

use super::DataError;
use super::directory::{Directory, Unsynced};
use crate::{BlobError, Blobs, PutOutcome};

/// How much of a record is quoted.
const QUOTED: usize = 500;

/// An output of an attempt, to be committed or put into quarantine. No other attempt has the same directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The directory that it becomes, as [`Layout`](crate::Layout) names it.
    pub directory: String,
    /// Its data.
    pub files: OutputFiles,
    /// Name of the file that makes it one.
    pub marker: &'static str,
    /// The content of that file: JSON, the same whenever the same attempt tries again.
    pub record: Bytes,
}

/// The files of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputFiles {
    /// None that Servo keeps.
    None,
    /// One small file, which is written now.
    Content {
        /// Its name.
        name: String,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Files of a staging directory, which are moved.
    Staged {
        /// The staging directory, as [`Layout`](crate::Layout) names it.
        directory: String,
        /// A file that must be among them, and its size.
        expected: Option<(String, u64)>,
    },
    /// Files that are where they belong.
    InPlace {
        /// A file that must be among them, and its size.
        expected: Option<(String, u64)>,
    },
}

impl Output {
    /// Writes it to its directory, its marker last. It would not survive a loss of power yet.
    pub(super) fn write(&self, to: &Directory, unsynced: &mut Unsynced) -> Result<(), DataError> {
        let written = self.try_write(to, unsynced);
        if !matches!(written, Ok(()) | Err(DataError::Conflict { .. })) {
            let marker = to.get(&format!("{}/{}", self.directory, self.marker));
            let is_marked = marker.is_ok_and(|found| found.as_ref() == Some(&self.record));
            if !is_marked {
                // A disk that is full need not hold what does not count.
                let _left = to.remove(&self.directory);
            }
        }
        written
    }

    fn try_write(&self, to: &Directory, unsynced: &mut Unsynced) -> Result<(), DataError> {
        let marker = format!("{}/{}", self.directory, self.marker);
        let is_marked = match to.get(&marker)? {
            Some(found) => self.is_same(&found)?,
            None => false,
        };
        match &self.files {
            OutputFiles::None => {}
            OutputFiles::Content { name, bytes } => {
                let name = format!("{}/{name}", self.directory);
                // A marker that is there does not mean that the data has survived the loss of power since.
                if !is_marked || to.get(&name)?.as_ref() != Some(bytes) {
                    to.write(&to.path(&name), bytes)?;
                }
                unsynced.add(to.path(&name));
            }
            OutputFiles::Staged { directory, .. } => {
                to.move_files(&to.path(directory), &to.path(&self.directory), unsynced)?;
            }
            OutputFiles::InPlace { .. } => self.files_in(to, unsynced)?,
        }
        if let Some((name, expected)) = self.expected() {
            self.check(name, to.size(&format!("{}/{name}", self.directory))?, *expected)?;
        }
        if is_marked {
            // Whoever was first may not have synced it.
            return self.files_in(to, unsynced);
        }
        let path = to.path(&marker);
        to.write(&path, &self.record)?;
        unsynced.add(path);
        Ok(())
    }

    /// Takes the files of its directory for unsynced.
    fn files_in(&self, to: &Directory, unsynced: &mut Unsynced) -> Result<(), DataError> {
        to.add_files(&to.path(&self.directory), unsynced)?;
        Ok(())
    }

    /// Writes it to a bucket, its marker last. Durable when it returns.
    pub(super) async fn put(&self, blobs: &dyn Blobs) -> Result<(), DataError> {
        if let OutputFiles::Content { name, bytes } = &self.files {
            blobs.put(&format!("{}/{name}", self.directory), bytes.clone()).await?;
        }
        if let Some((name, expected)) = self.expected() {
            let found = match blobs.size(&format!("{}/{name}", self.directory)).await {
                Err(BlobError::NotFound { .. }) => None,
                size => Some(size?),
            };
            self.check(name, found, *expected)?;
        }
        let marker = format!("{}/{}", self.directory, self.marker);
        match blobs.put_if_absent(&marker, self.record.clone()).await? {
            PutOutcome::Created => Ok(()),
            PutOutcome::Exists => match self.is_same(&blobs.get(&marker).await?)? {
                true => Ok(()),
                // An object is whole.
                false => Err(self.conflict(&[])),
            },
        }
    }

    fn expected(&self) -> Option<&(String, u64)> {
        match &self.files {
            OutputFiles::Staged { expected, .. } | OutputFiles::InPlace { expected } => expected.as_ref(),
            OutputFiles::None | OutputFiles::Content { .. } => None,
        }
    }

    fn check(&self, name: &str, found: Option<u64>, expected: u64) -> Result<(), DataError> {
        if found == Some(expected) {
            return Ok(());
        }
        Err(DataError::Incomplete {
            directory: self.directory.clone(),
            name: name.to_owned(),
            found,
            expected,
        })
    }

    /// Whether a marker that is there is this one. False if a process died while it wrote it.
    fn is_same(&self, found: &[u8]) -> Result<bool, DataError> {
        if found == self.record {
            return Ok(true);
        }
        match serde_json::from_slice::<serde::de::IgnoredAny>(found) {
            Ok(_) => Err(self.conflict(found)),
            Err(_) => Ok(false),
        }
    }

    fn conflict(&self, found: &[u8]) -> DataError {
        let found = String::from_utf8_lossy(&found[..found.len().min(QUOTED)]).into_owned();
        DataError::Conflict { directory: self.directory.clone(), found }
    }
}
