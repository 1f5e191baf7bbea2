//! Runs and their tasks.

use servo_core::RunId;

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{
    Accepted, AcceptedRun, CancelBody, Conflict, Costs, Plan, RetryBody, RetryNowBody, Run, RunBody, Task,
    TaskDetail,
};

impl Client {
    /// Triggers a run.
    pub async fn trigger(&self, body: &RunBody) -> Result<AcceptedRun, ClientError> {
        self.change(&["runs"], body).await
    }

    /// Plans a request without running it.
    pub async fn plan(&self, body: &RunBody) -> Result<Plan, ClientError> {
        let response = self.post(&["plan"], None, body).await?;
        self.read(response).await
    }

    /// One run.
    pub async fn run(&self, run: RunId) -> Result<Run, ClientError> {
        self.get(&["runs", &run.to_string()], &[]).await
    }

    /// Runs, the newest first.
    pub async fn runs(&self, options: &ListOptions) -> Result<Page<Run>, ClientError> {
        self.get(&["runs"], &options.query("state")).await
    }

    /// Requests that were refused because of their run key, the newest first.
    pub async fn conflicts(&self, options: &ListOptions) -> Result<Page<Conflict>, ClientError> {
        self.get(&["conflicts"], &options.query("state")).await
    }

    /// Costs of attempts by group: a page of groups, and the total.
    pub async fn costs(&self, options: &ListOptions) -> Result<Costs, ClientError> {
        self.get(&["costs"], &options.query("by")).await
    }

    /// Tasks of a run, by key.
    pub async fn tasks(&self, run: RunId, options: &ListOptions) -> Result<Page<Task>, ClientError> {
        self.get(&["runs", &run.to_string(), "tasks"], &options.query("state")).await
    }

    /// One task of a run.
    pub async fn task(&self, run: RunId, task_id: &str) -> Result<TaskDetail, ClientError> {
        self.get(&["runs", &run.to_string(), "tasks", task_id], &[]).await
    }

    /// Cancels a run.
    pub async fn cancel(&self, run: RunId, body: &CancelBody) -> Result<Accepted, ClientError> {
        self.change(&["runs", &run.to_string(), "cancel"], body).await
    }

    /// Retries a run.
    pub async fn retry(&self, run: RunId, body: &RetryBody) -> Result<AcceptedRun, ClientError> {
        self.change(&["runs", &run.to_string(), "retry"], body).await
    }

    /// Tries at once what waits to be tried again.
    pub async fn retry_now(&self, run: RunId, body: &RetryNowBody) -> Result<Accepted, ClientError> {
        self.change(&["runs", &run.to_string(), "retry-now"], body).await
    }
}
