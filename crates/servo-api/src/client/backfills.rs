//! Backfills.

use servo_core::BackfillId;

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::{
    Accepted, AcceptedBackfill, Backfill, BackfillBody, BackfillChunk, BackfillPreview, ChangeBackfillBody,
    RetryBackfillBody,
};

const BACKFILLS: [&str; 2] = ["orchestration", "backfills"];

impl Client {
    /// Previews a backfill.
    pub async fn preview_backfill(&self, body: &BackfillBody) -> Result<BackfillPreview, ClientError> {
        let response = self.post(&["orchestration", "backfills", "preview"], None, body).await?;
        self.read(response).await
    }

    /// Creates a backfill; the same request under the same key is the same backfill.
    pub async fn create_backfill(
        &self,
        key: &str,
        body: &BackfillBody,
    ) -> Result<AcceptedBackfill, ClientError> {
        self.change_once(key, &BACKFILLS, body).await
    }

    /// The backfills, the newest first.
    pub async fn backfills(&self, options: &ListOptions) -> Result<Page<Backfill>, ClientError> {
        self.get(&BACKFILLS, &options.query("state")).await
    }

    /// A backfill.
    pub async fn backfill(&self, id: BackfillId) -> Result<Backfill, ClientError> {
        self.get(&[BACKFILLS[0], BACKFILLS[1], &id.to_string()], &[]).await
    }

    /// The chunks of a backfill that were planned, the last first.
    pub async fn backfill_chunks(
        &self,
        id: BackfillId,
        options: &ListOptions,
    ) -> Result<Page<BackfillChunk>, ClientError> {
        self.get(&[BACKFILLS[0], BACKFILLS[1], &id.to_string(), "chunks"], &options.query("state")).await
    }

    /// Pauses, resumes or cancels a backfill.
    pub async fn change_backfill(
        &self,
        id: BackfillId,
        change: servo_engine::BackfillChange,
        body: &ChangeBackfillBody,
    ) -> Result<Accepted, ClientError> {
        let change = match change {
            servo_engine::BackfillChange::Pause => "pause",
            servo_engine::BackfillChange::Resume => "resume",
            servo_engine::BackfillChange::Cancel => "cancel",
        };
        self.change(&[BACKFILLS[0], BACKFILLS[1], &id.to_string(), change], body).await
    }

    /// Makes again what a backfill did not make; the same request under the same key is the same backfill.
    pub async fn retry_backfill(&self, key: &str, id: BackfillId) -> Result<AcceptedBackfill, ClientError> {
        let body = RetryBackfillBody::default();
        self.change_once(key, &[BACKFILLS[0], BACKFILLS[1], &id.to_string(), "retry-failed"], &body).await
    }
}
