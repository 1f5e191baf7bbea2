//! The callbacks of workers to the control plane, and their replies.

use async_trait::async_trait;
use servo_core::EventId;
use servo_engine::{Progress, Report};

use crate::stored_work::{FetchedWork, WorkRef};

/// The control plane, as a worker sees it. Every call carries the credential of the attempt it is about, which is a token
/// or its callback URLs ([`Envelope::credential`](crate::Envelope::credential)), and is safe to repeat.
#[async_trait]
pub trait Callbacks: Send + Sync {
    /// Asks before the work begins; an error means that it must not.
    async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, CallbackError>;
    /// The stored work that a message refers to, for the worker that has begun the attempt; none if there is none.
    async fn work(
        &self,
        token: &str,
        worker: &str,
        work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError>;
    /// Reports that the work goes on, and asks whether it should.
    async fn heartbeat(
        &self,
        token: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError>;
    /// Reports how the work has ended.
    async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, CallbackError>;
}

/// The attempt is the worker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedReply {
    /// It begins with this event.
    Begun {
        /// The event.
        event_id: EventId,
    },
    /// It was the worker's already: the question came twice.
    AlreadyBegun,
}

/// Whether to continue, and with which token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// Stop as soon as possible, and report that.
    pub should_cancel: bool,
    /// A credential that lives longer than the one that was shown, when that has little left.
    pub task_token: Option<String>,
}

/// The result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedReply {
    /// It ends the attempt with this event.
    Ended {
        /// The event.
        event_id: EventId,
    },
    /// It was known already.
    AlreadyEnded,
    /// Whether it came too late to count, and was only recorded.
    Late,
}

/// Why the control plane did not take what a worker said, in terms of what the worker does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    /// The attempt is not the worker's: superseded, cancelled, ended, or begun by another. It must not go on.
    #[error("refused: {0}")]
    Refused(String),
    /// The worker is not believed. It must not go on, and somebody should look at its token.
    #[error("denied: {0}")]
    Denied(String),
    /// The worker is not registered, or not any more. It must not go on; the attempt waits for another one.
    #[error("not registered: {0}")]
    NotRegistered(String),
    /// Passing trouble: the same call can succeed later, and until then nothing was decided.
    #[error("not heard: {0}")]
    Transient(String),
}

impl CallbackError {
    /// Whether the same call can succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transient(_) => true,
            Self::Refused(_) | Self::Denied(_) | Self::NotRegistered(_) => false,
        }
    }
}
