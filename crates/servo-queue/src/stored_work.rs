//! Work that is too large for a message: it is stored beside what its run stages, named by its hash, and the message
//! refers to it (ADR-310).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, sha256_hex};
use servo_engine::work::Work;

use crate::envelope::{Envelope, Follower};
use crate::token::TaskClaims;

/// The size limit of a message, with what is added to it on its way to a worker.
pub const MAX_ENVELOPE: usize = 64 << 10;

/// Room for the credentials of an attempt, which are written into a message when a worker gets it.
const ROOM_FOR_CREDENTIALS: usize = 3 << 10;

/// The name, the hash and the size of stored work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRef {
    /// SHA-256 of its text, in lower-case hexadecimal digits.
    pub sha256: String,
    /// Bytes of its text.
    pub bytes: u64,
}

/// The work of a message, as it is stored. It has no credentials.
#[derive(Serialize, Deserialize)]
struct StoredWork {
    /// The attempt that leads the message.
    attempt_id: AttemptId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<Arc<Work>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    followers: Vec<Follower>,
}

/// Stored work, as the control plane hands it to the worker that has begun the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedWork {
    /// The text that a message refers to, if it is unharmed.
    pub text: String,
    /// The credentials of the followers, in their order.
    pub credentials: Vec<String>,
}

/// Why stored work cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoredWorkError {
    /// It has other bytes than the message says.
    #[error(
        "it has {found} bytes with the hash {sha256}, and the message refers to {wanted} bytes with the hash {hash}"
    )]
    #[allow(missing_docs)]
    Damaged { found: usize, sha256: String, wanted: u64, hash: String },
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Malformed(String),
    /// It belongs to another attempt.
    #[error("it is the work of attempt {0}")]
    Other(AttemptId),
}

impl WorkRef {
    /// The reference to a text.
    fn of(text: &str) -> Self {
        Self { sha256: sha256_hex(text.as_bytes()), bytes: text.len() as u64 }
    }

    /// Whether its hash can be one: only then it is a part of a name.
    pub fn is_well_formed(&self) -> bool {
        self.sha256.len() == 64 && self.sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}

impl Envelope {
    /// Whether a message with this body, and its credentials, is larger than messages may be.
    pub fn is_oversized(&self, body: &str) -> bool {
        body.len() + ROOM_FOR_CREDENTIALS * (1 + self.followers.len()) > MAX_ENVELOPE
    }

    /// Takes the work out, with the followers, and refers to it; gives the text to store, and the reference. The same
    /// work has the same text.
    ///
    /// # Panics
    /// Never: work is plain data.
    pub fn detach_work(&mut self) -> (String, WorkRef) {
        let mut followers = std::mem::take(&mut self.followers);
        for follower in &mut followers {
            (follower.task_token, follower.callbacks) = (String::new(), None);
        }
        let stored = StoredWork { attempt_id: self.attempt_id, work: self.work.take(), followers };
        let text = serde_json::to_string(&stored).expect("work is plain data");
        let reference = WorkRef::of(&text);
        self.work_ref = Some(reference.clone());
        (text, reference)
    }

    /// Puts back the work that the message refers to, if it is that.
    pub fn attach_work(&mut self, fetched: FetchedWork) -> Result<(), StoredWorkError> {
        let Some(wanted) = &self.work_ref else { return Ok(()) };
        let found = WorkRef::of(&fetched.text);
        if found != *wanted {
            return Err(StoredWorkError::Damaged {
                found: fetched.text.len(),
                sha256: found.sha256,
                wanted: wanted.bytes,
                hash: wanted.sha256.clone(),
            });
        }
        let StoredWork { attempt_id, work, followers } = read(&fetched.text)?;
        if attempt_id != self.attempt_id {
            return Err(StoredWorkError::Other(attempt_id));
        }
        if followers.len() != fetched.credentials.len() {
            let (are, known) = (followers.len(), fetched.credentials.len());
            return Err(StoredWorkError::Malformed(format!("{are} attempts with {known} credentials")));
        }
        (self.work, self.work_ref) = (work, None);
        let with_credential =
            |(follower, credential): (Follower, String)| follower.with_credential(credential);
        self.followers = followers.into_iter().zip(fetched.credentials).map(with_credential).collect();
        Ok(())
    }
}

/// The claims of the followers in stored work, for the holder of these claims. An error if it is not theirs.
pub fn followers_of(text: &str, claims: &TaskClaims) -> Result<Vec<TaskClaims>, StoredWorkError> {
    let stored = read(text)?;
    if stored.attempt_id != claims.attempt_id {
        return Err(StoredWorkError::Other(stored.attempt_id));
    }
    let of = |follower: Follower| TaskClaims {
        task_key: follower.task_key,
        attempt: follower.attempt,
        attempt_id: follower.attempt_id,
        ..claims.clone()
    };
    Ok(stored.followers.into_iter().map(of).collect())
}

fn read(text: &str) -> Result<StoredWork, StoredWorkError> {
    serde_json::from_str(text).map_err(|error| StoredWorkError::Malformed(error.to_string()))
}
