//! The contract between the control plane and workers: what a task message says, how it is trusted, how it travels, and
//! what is said about it.
//!
//! This crate owns the [`Envelope`], its signature and the task token; the reports of workers ([`Callbacks`]) and their
//! replies, with the token or the [`CallbackUrls`] of the attempt; and queues. [`TaskQueue`] takes messages,
//! [`TaskSource`] gives them to workers that ask, [`PushInbox`] takes them from queues that call. [`LocalQueue`] is the
//! queue of one process, [`PushQueue`] one that calls its worker through a [`PushTarget`], [`NamedQueues`] several of
//! them; [`Leases`] are what remote workers hold. [`EvaluationSource`] gives them calls of functions of schedules and sensors. [`EnqueueLanes`] keep a full queue from holding up others.
//!
//! It refuses to know why a task is dispatched. Delivery is at least once: enqueuing the same dispatch twice is
//! answered [`EnqueueResult::Deduplicated`] (INV-4), a message that nobody acknowledged is delivered again, and a
//! worker asks before it begins, so a message that is delivered twice runs once.
//!
//! ```
//! use servo_core::{RunId, TaskKey, TenantId, Timestamp, WorkspaceId};
//! use servo_queue::{Keyring, TaskClaims};
//!
//! let keys = Keyring::new("k1", *b"0123456789abcdef0123456789abcdef");
//! let claims = TaskClaims {
//!     tenant: TenantId::parse("acme")?,
//!     workspace: WorkspaceId::parse("prod")?,
//!     run_id: RunId::from_u128(7),
//!     task_key: TaskKey::parse("raw/events:materialize")?,
//!     attempt: 1,
//!     attempt_id: servo_core::AttemptId::NIL,
//!     expires_at: Timestamp::from_millis(60_000),
//! };
//! let token = keys.mint(&claims);
//! assert_eq!(keys.verify_token(&token, Timestamp::from_millis(1))?, claims);
//! assert!(keys.verify_token(&token, Timestamp::from_millis(60_001)).is_err(), "expired");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod callback_url;
mod callbacks;
#[cfg(feature = "testing")]
pub mod conformance;
mod envelope;
mod evaluations;
mod keyring;
mod lanes;
mod leases;
mod local;
mod named_queues;
mod push;
mod push_queue;
mod queue;
mod sealed_text;
mod session;
mod source;
mod stored_work;
mod token;

pub use callback_url::{CallbackScope, CallbackUrl, CallbackUrls, CallbackVerb};
pub use callbacks::{CallbackError, Callbacks, FinishedReply, HeartbeatReply, StartedReply};
pub use envelope::{Envelope, Follower, SignedEnvelope};
pub use evaluations::EvaluationSource;
pub use keyring::{AuthError, Keyring, KeyringError, Purpose, SigningKey};
pub use lanes::{EnqueueLanes, EnqueueRequest};
pub use leases::Leases;
pub use local::{LocalQueue, LocalQueueOptions};
pub use named_queues::NamedQueues;
pub use push::{PushInbox, PushReply};
pub use push_queue::{PushError, PushQueue, PushQueueOptions, PushTarget};
pub use queue::{EnqueueOptions, EnqueueResult, Message, QueueError, QueueErrorKind, TaskQueue};
pub use source::{Delivery, Receipt, TaskSource};
pub use stored_work::{FetchedWork, MAX_ENVELOPE, StoredWorkError, WorkRef, followers_of};
pub use token::TaskClaims;
