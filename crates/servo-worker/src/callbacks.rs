//! What a worker tells the control plane.

use async_trait::async_trait;
use servo_engine::{Change, Finish, HeartbeatReply, Progress, Report};
use servo_runtime::{Error, Workspace};

/// The control plane, as a worker sees it. Every call carries the token of the attempt it is about.
#[async_trait]
pub trait Callbacks: Send + Sync {
    /// Before the work begins; an error means that it must not.
    async fn started(&self, token: &str, worker: &str) -> Result<Change, Error>;
    /// While it goes on.
    async fn heartbeat(&self, token: &str, progress: Option<Progress>) -> Result<HeartbeatReply, Error>;
    /// When it has ended.
    async fn finished(&self, token: &str, report: Report) -> Result<Finish, Error>;
}

#[async_trait]
impl Callbacks for Workspace {
    async fn started(&self, token: &str, worker: &str) -> Result<Change, Error> {
        Workspace::started_here(self, token, worker).await
    }

    async fn heartbeat(&self, token: &str, progress: Option<Progress>) -> Result<HeartbeatReply, Error> {
        Workspace::heartbeat(self, token, progress).await
    }

    async fn finished(&self, token: &str, report: Report) -> Result<Finish, Error> {
        Workspace::finished(self, token, report).await
    }
}
