//! Where data lies: from names of the layout to URIs that a runner reads and writes.

use std::fs;
use std::io;
use std::path::PathBuf;

use servo_core::{RunId, TaskKey};
use servo_store::{DataRoot, Layout};

/// How often a directory is made that others keep removing.
const TRIES: u32 = 100;

/// The places of a workspace's data: names of the layout as URIs that a runner reads and writes.
#[derive(Clone)]
pub struct Places {
    root: DataRoot,
    layout: Layout,
}

impl Places {
    /// Data of a workspace.
    pub fn new(root: DataRoot, layout: Layout) -> Self {
        Self { root, layout }
    }

    /// The names below it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The URI of a name of the layout.
    pub fn uri(&self, name: &str) -> String {
        self.root.uri(name)
    }

    /// Removes what processes have staged that are gone. Only for a workspace of which this process runs every task.
    pub fn sweep_staging(&self) -> io::Result<()> {
        let Some(directory) = self.root.local() else { return Ok(()) };
        match fs::remove_dir_all(directory.join("staging")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The directory that an attempt stages in, if it is on this machine.
    pub(crate) fn staging(&self, run: RunId, task: &TaskKey, attempt: u32) -> Option<Staging> {
        let name = self.layout.staging(run, task, attempt);
        self.root.local().map(|directory| Staging { directory: directory.join(name) })
    }
}

/// The directory of one attempt, which is gone when it has ended.
#[derive(Debug)]
pub(crate) struct Staging {
    directory: PathBuf,
}

impl Staging {
    /// Makes the directory. Attempts of the same run may remove those above it in the same moment.
    pub(crate) fn make(&self) -> io::Result<()> {
        let make = || fs::create_dir_all(&self.directory);
        let removed =
            |made: &io::Result<()>| matches!(made, Err(error) if error.kind() == io::ErrorKind::NotFound);
        (0..TRIES).map(|_| make()).find(|made| !removed(made)).unwrap_or_else(make)
    }

    /// Removes the directory with all that is in it, and those of the task and of the run if nothing else is there.
    pub(crate) fn remove(&self) {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, directory = %self.directory.display(), "what was staged cannot be removed");
            }
            Ok(()) | Err(_) => {
                let above = self.directory.ancestors().skip(1).take(2);
                let _in_use = above.map(fs::remove_dir).all(|removed| removed.is_ok());
            }
        }
    }
}
