//! Drives engines: makes durable what [`servo_engine`] decides, and carries it out.
//!
//! It owns group commit, effects, timers, recovery, leases and the threads they run on. It refuses to decide: every
//! event comes out of [`servo_engine::Engine::step`]. It guarantees that a caller is answered, and an effect begins,
//! only when the batch it belongs to is durable (P4), and that every queue in it is bounded or bounded by what is.
//!
//! Three threads per workspace: the engine decides batch n + 1 while the committer syncs batch n, and the compactor
//! writes tables behind both. What they run on is a [`Spawner`]: a simulation brings its own.

mod attempt_logs;
mod callbacks;
mod clock;
mod clock_steps;
mod committer;
mod compaction;
mod config;
mod costs;
mod data;
mod deployments;
mod effects;
mod engine_loop;
mod error;
mod evaluations;
mod health;
mod host;
mod lineage;
mod log_retention;
mod markers;
mod messages;
mod notifier;
mod ownership;
mod partition_life;
mod pointers;
mod read_only;
mod reads;
mod reconcile;
mod recovery;
mod requests;
mod retention;
mod run_keys;
mod secrets;
mod spawner;
mod stall_detector;
mod workers;
mod workspace;

pub use attempt_logs::{Amount, AttemptLogs};
pub use clock::SystemClock;
pub use config::{Config, LOCAL_WORKERS, Ownership, Stores};
pub use effects::StuckPath;
pub use error::{Error, ErrorKind};
pub use health::{Finding, Vital};
pub use host::{Host, InUse, WorkspaceKey};
pub use lineage::{Direction, Lineage};
pub use notifier::Notifier;
pub use partition_life::WipeRequest;
pub use pointers::{DataReport, point_at_latest, verify_data};
pub use reconcile::{Reconciled, answer_evaluations, answer_notifications, catch_up, reconcile_once};
pub use requests::{Launched, Preview, RetryRequest};
pub use retention::{Kept, Survey};
pub use secrets::read_secret;
pub use spawner::{Spawner, ThreadSpawner};
pub use workspace::{RunDetail, Workspace};
