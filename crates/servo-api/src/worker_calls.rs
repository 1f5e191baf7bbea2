//! Queues that call their workers over HTTP: the call that a server makes, and the endpoint of the worker that takes it
//! (ADR-275).

mod endpoint;
mod target;

pub use endpoint::{PUSH_PATH, WorkerEndpoint, serve_worker};
pub use target::{CalledWorker, WorkerCredential};

use serde::{Deserialize, Serialize};
use servo_queue::SignedEnvelope;

/// The body of a call: a message of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkerCall {
    /// The queue.
    queue: String,
    /// The message, signed with the key of the worker.
    envelope: SignedEnvelope,
}
