//! Where data lies: from names of the layout to URIs that a runner reads and writes.

use std::fs;
use std::io;
use std::path::PathBuf;

use servo_core::{RunId, TaskKey};
use servo_store::{DataRoot, Layout};

/// The places of a workspace's data: names of the layout as URIs that a runner reads and writes.
#[derive(Clone)]
pub struct DataLocations {
    root: DataRoot,
    layout: Layout,
}

impl DataLocations {
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

    /// The data itself.
    pub(crate) fn root(&self) -> &DataRoot {
        &self.root
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
    pub(crate) fn staging(&self, run: RunId, task: &TaskKey, attempt: u32) -> Option<PathBuf> {
        self.root.local().map(|directory| directory.join(self.layout.staging(run, task, attempt)))
    }
}
