//! Pauses, how full the workspace is, and why a run does not go on.

use servo_core::RunId;

use super::{Client, ClientError};
use crate::views::{Accepted, Admission, PauseBody, Queues, Why};

impl Client {
    /// Pauses in force, and how full the workspace is.
    pub async fn admission(&self) -> Result<Admission, ClientError> {
        self.get(&["admission"], &[]).await
    }

    /// Queues by name: what waits for each, and who serves it.
    pub async fn queues(&self) -> Result<Queues, ClientError> {
        self.get(&["queues"], &[]).await
    }

    /// Pauses dispatching.
    pub async fn pause(&self, body: &PauseBody) -> Result<Accepted, ClientError> {
        self.change(&["pauses"], body).await
    }

    /// Resumes what was paused.
    pub async fn resume(&self, body: &PauseBody) -> Result<Accepted, ClientError> {
        self.change(&["pauses", "resume"], body).await
    }

    /// Why a run does not go on.
    pub async fn why(&self, run: RunId) -> Result<Why, ClientError> {
        self.get(&["runs", &run.to_string(), "why"], &[]).await
    }
}
