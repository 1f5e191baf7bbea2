//! Events about requests themselves: conflicts of run keys, and answers to be given again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{EventId, Fingerprint, RunId, sha256_hex};

use super::Payload;
use crate::audit::Act;

/// A run key was used again for another request. Nothing runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunKeyConflicted {
    /// The key.
    pub run_key: Arc<str>,
    /// The run that it names.
    pub run_id: RunId,
    /// Hash of the request that the run was asked for with.
    pub existing_fingerprint: Fingerprint,
    /// Hash of the request that was refused.
    pub conflicting_fingerprint: Fingerprint,
    /// The caller's own id of the request that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Arc<str>>,
}

/// The answer to a request that is carried out once. It is in the batch of what the request changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswered {
    /// The caller's own id of the request; with the principal of the event it names the request.
    pub request_id: Arc<str>,
    /// Hash of the whole request.
    pub request_fingerprint: Fingerprint,
    /// The run that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The event that the request made; none if everything was so already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// Keys of dynamic partitions that it added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub added: u64,
    /// Keys of dynamic partitions that it removed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Payload for RunKeyConflicted {
    /// The key of the request, had it been the first: a request conflicts once.
    fn idempotency_key(&self) -> String {
        format!("runreq:{}:{}", self.run_key, sha256_hex(self.conflicting_fingerprint.as_str().as_bytes()))
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::TRIGGER, self.run_id, self.run_key.as_ref()))
    }
}

impl Payload for RequestAnswered {
    /// A request is answered once; after a day its id may be used again.
    fn idempotency_key(&self) -> String {
        let event = self.event_id.map_or_else(String::new, |event| event.to_string());
        format!("answer:{}:{}:{event}", self.request_id, sha256_hex(self.request_fingerprint.as_str()))
    }

    fn run_id(&self) -> Option<RunId> {
        self.run_id
    }
}
