//! Requests that are too long for a frame: a file that the runner reads, and that is gone when the task has ended.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::protocol::RunTask;

/// The request of a task in a file that only this user can read. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct RequestFile(PathBuf);

impl RequestFile {
    /// Writes the request, off the threads that others wait for.
    pub(super) async fn write(task: &RunTask) -> io::Result<Self> {
        let path =
            std::env::temp_dir().join(format!("servo-{}-{}.json", std::process::id(), task.attempt_id));
        let json = serde_json::to_vec(task)?;
        tokio::task::spawn_blocking(move || {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            let written = Self(path);
            let mut file = BufWriter::new(file);
            file.write_all(&json)?;
            file.flush()?;
            Ok(written)
        })
        .await
        .map_err(io::Error::other)?
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RequestFile {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}
