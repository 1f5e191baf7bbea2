//! Notices that files of a project have changed.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use servo_worker::project::{MAX_DIRECTORIES, is_source, is_source_directory};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Editors write several files, and some of them twice.
const QUIET: Duration = Duration::from_millis(150);

/// Changes to the files of a project.
pub(super) struct Changes {
    watcher: RecommendedWatcher,
    events: mpsc::UnboundedReceiver<notify::Result<notify::Event>>,
}

impl Changes {
    /// Watches a directory and those below it, but for hidden ones and what tools leave behind.
    pub(super) fn watch(root: &Path) -> anyhow::Result<Self> {
        let (sender, events) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event| {
            let _ended = sender.send(event);
        })
        .context("watching the project")?;
        let mut changes = Self { watcher, events };
        changes.add(root)?;
        Ok(changes)
    }

    /// Resolves after a change, when no further change came for a moment.
    pub(super) async fn next(&mut self) -> anyhow::Result<()> {
        loop {
            let event = self.events.recv().await.context("files are not watched any more")?;
            if self.concerns(event)? {
                break;
            }
        }
        self.quiet().await
    }

    /// Resolves when no change came for a moment.
    pub(super) async fn quiet(&mut self) -> anyhow::Result<()> {
        // Other files may change all the time.
        let mut quiet_at = Instant::now() + QUIET;
        while let Ok(Some(event)) = timeout_at(quiet_at, self.events.recv()).await {
            if self.concerns(event)? {
                quiet_at = Instant::now() + QUIET;
            }
        }
        Ok(())
    }

    fn add(&mut self, directory: &Path) -> anyhow::Result<()> {
        let mut directories = vec![directory.to_owned()];
        let mut count = 0;
        while let Some(directory) = directories.pop() {
            count += 1;
            if count > MAX_DIRECTORIES {
                eprintln!(
                    "more than {MAX_DIRECTORIES} directories: changes below {} are not noticed",
                    directory.display()
                );
                return Ok(());
            }
            let watched = self.watcher.watch(&directory, RecursiveMode::NonRecursive);
            watched.with_context(|| format!("watching {}", directory.display()))?;
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            directories.extend(entries.map(|entry| entry.path()).filter(|path| is_source_directory(path)));
        }
        Ok(())
    }

    /// Whether an event is about code. A new directory is watched from now on.
    fn concerns(&mut self, event: notify::Result<notify::Event>) -> anyhow::Result<bool> {
        // Events were lost: something has changed, nobody knows what.
        let Ok(event) = event else { return Ok(true) };
        if event.kind.is_access() {
            return Ok(false);
        }
        let mut concerns = false;
        for path in &event.paths {
            // Files that are written all the time, logs for example, are known by their names alone.
            let (is_new, is_gone) = (event.kind.is_create(), event.kind.is_remove());
            if (is_new || is_gone) && is_source_directory(path) {
                if is_new {
                    self.add(path)?;
                }
                concerns = true;
            }
            concerns |= is_source(path);
        }
        Ok(concerns)
    }
}
