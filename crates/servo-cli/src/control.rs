//! Who decides: the server that runs the workspace, or this process for a moment.

use servo_api::client::Client;
use servo_api::views::{CancelBody, ReviewBody};
use servo_engine::{CancelRun, Review};
use servo_runtime::Workspace;

use crate::location::Location;
use crate::server;

/// Whoever takes requests.
pub(crate) enum Control {
    /// A server.
    Server(Client),
    /// This process, alone.
    Alone(Workspace),
}

impl Control {
    /// Finds out who.
    pub(crate) async fn find(location: &Location) -> anyhow::Result<Self> {
        Ok(match server::find(location).await? {
            Some(client) => Self::Server(client),
            None => Self::Alone(location.workspace_alone().await?),
        })
    }

    /// Decides about what a check had blocked.
    pub(crate) async fn review(self, review: Review) -> anyhow::Result<()> {
        match self {
            Self::Server(client) => {
                let body = ReviewBody { reason: review.reason, ..ReviewBody::default() };
                client.review(&review.asset, review.materialization_id, review.verdict, &body).await?;
                Ok(())
            }
            Self::Alone(workspace) => {
                let reviewed = workspace.review(review).await;
                workspace.shutdown().await?;
                reviewed?;
                Ok(())
            }
        }
    }

    /// Stops a run.
    pub(crate) async fn cancel(self, cancel: CancelRun) -> anyhow::Result<()> {
        match self {
            Self::Server(client) => {
                let CancelRun { run_id, reason, force, .. } = cancel;
                client.cancel(run_id, &CancelBody { reason, force, ..CancelBody::default() }).await?;
                Ok(())
            }
            Self::Alone(workspace) => {
                let cancelled = workspace.cancel(cancel).await;
                workspace.shutdown().await?;
                cancelled?;
                Ok(())
            }
        }
    }
}
