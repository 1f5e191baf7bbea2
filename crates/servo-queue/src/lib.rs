//! The contract between the control plane and workers: what a task message says, how it is trusted, how it travels.
//!
//! This crate owns the [`Envelope`], its signature, the task token, and [`TaskQueue`] with its local implementation.
//! It refuses to know why a task is dispatched. Delivery is at least once: enqueuing the same dispatch twice is
//! answered [`EnqueueResult::Deduplicated`] (INV-4), and a worker asks before it begins, so a message that is
//! delivered twice runs once.
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

mod envelope;
mod keyring;
mod local;
mod queue;
mod sealed_text;
mod source;
mod token;

pub use envelope::{Envelope, SignedEnvelope};
pub use keyring::{AuthError, Keyring};
pub use local::LocalQueue;
pub use queue::{EnqueueResult, Message, QueueError, TaskQueue};
pub use source::TaskSource;
pub use token::TaskClaims;
