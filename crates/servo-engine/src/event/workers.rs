//! Workers that register, change, leave and are lost (ADR-110).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::Timestamp;

use super::Payload;
use crate::principal::Principal;

/// A worker has proven that it shares code and storage with the workspace, and may be given tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRegistered {
    /// Its id: a name, and a nonce of the process.
    pub worker_id: Arc<str>,
    /// Number of this change among those of the worker, from 1.
    pub number: u64,
    /// The name that somebody gave it.
    pub name: String,
    /// The queues that it serves, sorted.
    pub queues: Vec<Arc<str>>,
    /// Functions that it runs at once.
    pub slots: u32,
    /// The deployment whose code it has.
    pub deployment: u64,
    /// Digest of that code.
    pub digest: Arc<str>,
    /// Its storage, as it calls it.
    pub storage: String,
    /// The machine that it runs on.
    pub host: String,
    /// Version of Servo.
    pub version: String,
}

/// A worker has the code of another deployment, or takes no more tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerChanged {
    /// The worker.
    pub worker_id: Arc<str>,
    /// Number of this change among those of the worker.
    pub number: u64,
    /// The deployment whose code it has.
    pub deployment: u64,
    /// Digest of that code.
    pub digest: Arc<str>,
    /// Whether it only ends what it has begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// A worker has ended, and said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLeft {
    /// The worker.
    pub worker_id: Arc<str>,
    /// Number of this change among those of the worker.
    pub number: u64,
}

/// A worker has been silent for too long, or ended with the process that it was part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLost {
    /// The worker.
    pub worker_id: Arc<str>,
    /// Number of this change among those of the worker.
    pub number: u64,
    /// When it was last heard; none if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
}

/// `worker:{worker}:{number}`.
fn key(worker: &str, number: u64) -> String {
    format!("worker:{worker}:{number}")
}

impl Payload for WorkerRegistered {
    fn idempotency_key(&self) -> String {
        key(&self.worker_id, self.number)
    }

    fn usual_principal(&self) -> Principal {
        Principal::worker(self.worker_id.clone())
    }
}

impl Payload for WorkerChanged {
    fn idempotency_key(&self) -> String {
        key(&self.worker_id, self.number)
    }

    fn usual_principal(&self) -> Principal {
        Principal::worker(self.worker_id.clone())
    }
}

impl Payload for WorkerLeft {
    fn idempotency_key(&self) -> String {
        key(&self.worker_id, self.number)
    }

    fn usual_principal(&self) -> Principal {
        Principal::worker(self.worker_id.clone())
    }
}

impl Payload for WorkerLost {
    fn idempotency_key(&self) -> String {
        key(&self.worker_id, self.number)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("workers")
    }
}
