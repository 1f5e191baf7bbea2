//! Who decides: the server that runs the workspace, or this process for a moment.

use servo_engine::Review;
use servo_runtime::Workspace;

use crate::location::Location;

/// Whoever takes requests.
pub(crate) enum Control {
    /// This process, alone.
    Alone(Workspace),
}

impl Control {
    /// Finds out who.
    pub(crate) async fn find(location: &Location) -> anyhow::Result<Self> {
        Ok(Self::Alone(location.workspace_alone().await?))
    }

    /// Decides about what a check had blocked.
    pub(crate) async fn review(self, review: Review) -> anyhow::Result<()> {
        match self {
            Self::Alone(workspace) => {
                let reviewed = workspace.review(review).await;
                workspace.shutdown().await?;
                reviewed?;
                Ok(())
            }
        }
    }
}
