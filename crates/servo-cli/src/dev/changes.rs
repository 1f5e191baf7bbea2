//! Notices that files of a project have changed.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Editors write several files, and some of them twice.
const QUIET: Duration = Duration::from_millis(150);
/// Directories that are watched at most.
const MAX_DIRECTORIES: usize = 2_000;

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
            if is_source_directory(path) {
                if event.kind.is_create() {
                    self.add(path)?;
                }
                concerns |= event.kind.is_create() || event.kind.is_remove();
            }
            concerns |= is_source(path);
        }
        Ok(concerns)
    }
}

fn is_source(path: &Path) -> bool {
    let is_code = path.extension().is_some_and(|extension| extension == "py" || extension == "sql");
    (is_code || path.file_name().is_some_and(|name| name == servo_worker::project::FILE)) && !is_hidden(path)
}

fn is_source_directory(path: &Path) -> bool {
    let tools = ["__pycache__", "node_modules", "target", "venv"];
    let is_tool = |name: &std::ffi::OsStr| tools.iter().any(|tool| name == *tool);
    !is_hidden(path) && !path.file_name().is_some_and(is_tool) && path.is_dir() && !path.is_symlink()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}
