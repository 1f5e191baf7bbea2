//! The data of assets, as the control plane deals with it. Workers write it; effects point at it, move it and remove
//! it.

use servo_store::{DataRoot, Layout};

/// The file that makes a directory a materialization. Written last.
pub(crate) const MARKER: &str = "_commit.json";

/// The file that says why something is in quarantine.
pub(crate) const REASON: &str = "_reason.json";

/// The data of a workspace.
#[derive(Clone)]
pub(crate) struct Data {
    pub(crate) root: DataRoot,
    pub(crate) layout: Layout,
}
