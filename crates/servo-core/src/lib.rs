//! Values of Servo: keys, ids, canonical JSON, time, cron, partitions and selections.
//!
//! **Owns** what things are called ([`AssetKey`], [`PartitionKey`], [`TaskKey`], [`RunId`], [`EventId`] and its
//! kin), the one text of a value ([`canonical`], [`Fingerprint`]), what time is ([`Timestamp`], [`Millis`],
//! [`Clock`]), what money is ([`MicroUsd`]), when schedules tick ([`cron`]), which partitions there are ([`partitions`])
//! and which assets are meant ([`selection`]).
//!
//! **Refuses** I/O, async, wall clocks, random numbers and floats. Time, ids and randomness are arguments; the
//! `clippy.toml` of the crate enforces it.
//!
//! **Guarantees** that text and value are one to one: what `Display` (or `canonical`, or serde) writes is the only
//! text that parses back to the value, and everything else is refused with a [`ParseError`] that says what is wrong
//! at which character. Exceptions are written for people and say so: [`AssetKey::parse`] takes both separators,
//! `PartitionKey`'s `Display` is a short form, [`Timestamp`] accepts other lengths of fraction, and [`cron::Cron`] any
//! spaces and case. The Python package follows the same rules; the vectors in `tests/golden/` hold both to it.
//!
//! ```
//! use servo_core::{AssetKey, Operation, PartitionKey, RunId, TaskKey, TenantId, WorkspaceId, dispatch_id};
//!
//! let asset = AssetKey::parse("analytics.delays")?;
//! let partition = PartitionKey::parse("date=d:2025-01-15")?;
//! let task = TaskKey::new(&asset, Some(&partition), Operation::Materialize);
//! assert_eq!(task.as_str(), "analytics/delays[date=d:2025-01-15]:materialize");
//!
//! let run = RunId::derive(b"secret", &TenantId::parse("acme")?, &WorkspaceId::parse("prod")?, "daily:2025-01-15");
//! assert_eq!(dispatch_id(run, &task, 1), format!("dispatch:{run}:{task}:1"));
//! # Ok::<(), servo_core::ParseError>(())
//! ```

mod asset_id;
mod asset_key;
mod backoff;
mod base32;
pub mod canonical;
mod civil;
mod clock;
pub mod cron;
mod edit_distance;
mod fingerprint;
mod ids;
mod money;
mod names;
mod parse_error;
mod partition_key;
mod partition_short;
mod partition_value;
pub mod partitions;
pub mod planted;
mod queue_id;
mod run_id;
pub mod selection;
mod serde_text;
mod task_key;
mod time;
mod timestamp_text;
mod zone;

pub use asset_id::AssetId;
pub use asset_key::AssetKey;
pub use backoff::Backoff;
pub use canonical::{canonicalize_str, to_canonical_bytes, to_canonical_string};
pub use clock::{Clock, ManualClock};
pub use cron::Cron;
pub use fingerprint::{Fingerprint, fingerprint, sha256_hex};
pub use ids::{
    AttemptId, BackfillId, EvaluationId, EventId, MaterializationId, PlanId, PutId, RuleId, ScheduleId,
    SensorId,
};
pub use money::{MicroUsd, NanoUsd};
pub use names::{TenantId, WorkspaceId};
pub use parse_error::ParseError;
pub use partition_key::PartitionKey;
pub use partition_value::PartitionValue;
pub use partitions::{Partitions, PartitionsDef};
pub use queue_id::{cloud_task_id, dispatch_id, timer_id};
pub use run_id::RunId;
pub use task_key::{Operation, TaskKey};
pub use time::{Millis, Timestamp};
pub use zone::TimeZones;
