//! Staging directories on this machine, removed when their attempts have ended, however they did.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use servo_core::RunId;

/// Tracks attempts that may stage files.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    /// Number of running attempts per run. The directory of a run is removed with the last: before, a task could be
    /// creating its own directory in it.
    runs: Mutex<BTreeMap<RunId, usize>>,
}

/// The staging directory of an attempt.
#[derive(Debug)]
#[must_use = "what is staged is removed by `remove`"]
pub(crate) struct Staged {
    staging: Arc<Staging>,
    run: RunId,
    directory: PathBuf,
}

impl Staging {
    /// Registers the start of an attempt.
    pub(crate) fn begin(self: &Arc<Self>, run: RunId, directory: PathBuf) -> Staged {
        *self.lock().entry(run).or_default() += 1;
        Staged { staging: self.clone(), run, directory }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, usize>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Staged {
    /// Removes the staged files. No process of the attempt may be running any more.
    pub(crate) async fn remove(self) {
        // Most tasks stage nothing, or have moved it already.
        if self.directory.exists() {
            let _removed = tokio::task::spawn_blocking(move || remove(&self.directory)).await;
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let mut runs = self.staging.lock();
        let others = runs.get_mut(&self.run).map_or(0, |count| {
            *count = count.saturating_sub(1);
            *count
        });
        if others == 0 {
            runs.remove(&self.run);
            if let Some(run) = self.directory.ancestors().nth(2) {
                // An error means that there is none, or that another process uses it.
                let _in_use = fs::remove_dir(run);
            }
        }
    }
}

/// Removes the directory of an attempt, and that of its task if nothing else is there.
fn remove(directory: &Path) {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%error, directory = %directory.display(), "staged files cannot be removed");
        }
        Ok(()) | Err(_) => {
            let _in_use = directory.parent().map(fs::remove_dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_directory_of_a_run_goes_with_its_last_attempt() {
        let root = tempfile::tempdir().unwrap();
        let staging = Arc::new(Staging::default());
        let place = |task: &str| root.path().join("run").join(task).join("attempt=1");
        let begin = |task: &str| staging.begin(RunId::from_u128(1), place(task));
        let (first, second, third) = (begin("a"), begin("b"), begin("c"));
        fs::create_dir_all(place("a").join("t.a")).unwrap();
        first.remove().await;
        assert!(!root.path().join("run/a").exists());
        assert!(root.path().join("run").exists(), "others may be about to use it");
        fs::create_dir_all(place("b")).unwrap();
        second.remove().await;
        third.remove().await;
        assert!(!root.path().join("run").exists());
    }
}
