//! Proves that a worker has the storage of its workspace: it reads what the control plane wrote, and the control plane
//! reads what the worker wrote (ADR-110).

use bytes::Bytes;

use super::{DataError, DataRoot};
use crate::Layout;

/// The file that the control plane writes.
const CHALLENGE: &str = "challenge";
/// The file that the worker writes, with the same contents.
const ANSWER: &str = "answer";

impl DataRoot {
    /// Writes contents that nobody can guess for a worker to find.
    pub async fn challenge(&self, layout: &Layout, worker: &str, secret: String) -> Result<(), DataError> {
        let home = layout.worker_proof(worker);
        self.remove(&home).await?;
        self.put_all(vec![(format!("{home}/{CHALLENGE}"), Bytes::from(secret))]).await
    }

    /// Finds the challenge and writes the answer: what a worker does. None if the challenge is not there, since this is
    /// another storage.
    pub async fn answer_challenge(&self, layout: &Layout, worker: &str) -> Result<Option<String>, DataError> {
        let home = layout.worker_proof(worker);
        let Some(found) = self.get(&format!("{home}/{CHALLENGE}")).await? else { return Ok(None) };
        self.put_all(vec![(format!("{home}/{ANSWER}"), found.clone())]).await?;
        Ok(Some(String::from_utf8_lossy(&found).into_owned()))
    }

    /// Whether a worker has found the challenge and answered here. It can be shown once.
    pub async fn is_answered(&self, layout: &Layout, worker: &str, proof: &str) -> Result<bool, DataError> {
        let home = layout.worker_proof(worker);
        let challenge = self.get(&format!("{home}/{CHALLENGE}")).await?;
        let answer = self.get(&format!("{home}/{ANSWER}")).await?;
        self.remove(&home).await?;
        Ok(challenge.is_some_and(|written| *written == *proof.as_bytes() && answer == Some(written)))
    }
}
