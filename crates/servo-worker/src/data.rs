//! Where data lies: from names of the layout to URIs that a runner reads and writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use servo_core::{RunId, TaskKey};
use servo_store::Layout;

/// How often a directory is made that others keep removing.
const TRIES: u32 = 100;

/// The place below which assets and staging lie: a directory, or a prefix of a bucket.
///
/// ```
/// use servo_store::Layout;
/// use servo_worker::DataRoot;
/// let layout = Layout::new("acme".parse()?, "main".parse()?);
/// let root = DataRoot::new("s3://lake/servo/", layout.clone());
/// assert_eq!(root.uri("assets/raw/flights"), "s3://lake/servo/tenant=acme/workspace=main/assets/raw/flights");
/// let root = DataRoot::new("/var/servo", layout);
/// assert_eq!(root.uri("staging"), "file:///var/servo/tenant=acme/workspace=main/staging");
/// # Ok::<(), servo_core::ParseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct DataRoot {
    base: String,
    directory: Option<PathBuf>,
    layout: Layout,
}

impl DataRoot {
    /// Data of a workspace below a URI or an absolute path.
    pub fn new(base: &str, layout: Layout) -> Self {
        let base = base.trim_end_matches('/');
        let local = match base.strip_prefix("file://") {
            Some(path) => Some(path.replace("%25", "%")),
            None => (!base.contains("://")).then(|| base.to_owned()),
        };
        let prefix = layout.prefix();
        match local {
            Some(path) => {
                let directory = Path::new(&path).join(&prefix);
                // The only character of a path that means something in such a URI.
                let base = format!("file://{}/{prefix}", path.replace('%', "%25"));
                Self { base, directory: Some(directory), layout }
            }
            None => Self { base: format!("{base}/{prefix}"), directory: None, layout },
        }
    }

    /// The names below it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The URI of a name of the layout.
    pub fn uri(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// Removes what processes have staged that are gone. Only for a workspace of which this process runs every task.
    pub fn sweep_staging(&self) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        match fs::remove_dir_all(directory.join("staging")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The directory that an attempt stages in, if it is on this machine.
    pub(crate) fn staging(&self, run: RunId, task: &TaskKey, attempt: u32) -> Option<Staging> {
        let name = self.layout.staging(run, task, attempt);
        self.directory.as_ref().map(|directory| Staging { directory: directory.join(name) })
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
