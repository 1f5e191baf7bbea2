//! Runs tasks: takes envelopes from a queue, asks before it begins, reports until it is acknowledged.
//!
//! **Owns** the executor that keeps the worker's side of the contract ([`servo_queue::Callbacks`]) and watches over
//! tasks ([`Executor`]), and everything that starts Python: projects and their interpreter ([`project`]), the processes
//! that run tasks ([`Runners`]), calls of functions of schedules and sensors ([`Evaluator`]), what they print ([`LogSink`], [`LogFiles`]) and where their data lies
//! ([`DataLocations`]).
//!
//! **Refuses** to plan, and to trust user code: heartbeats, timeouts, cancellation and the capture of output work
//! whatever it does (P9).
//!
//! **Guarantees** that a process that was started ends with this one, together with all that it has started; that an
//! attempt is reported when its outputs are durable, its log is complete and nothing of it is left in staging; and that the in-process functions
//! of tests go through the same envelopes, tokens and reports as Python does (P10).

// An error of a task is told once, and never on a fast path.
#![allow(clippy::result_large_err)]

mod data;
mod evaluator;
mod executor;
mod logs;
mod outputs;
pub mod project;
mod runner;
mod runners;
mod slot_pool;
mod staging;
mod work;

pub use data::DataLocations;
pub use evaluator::Evaluator;
pub use executor::{Executor, Slots, TaskFunction};
pub use logs::{LogChunk, LogFiles, LogLevel, LogLine, LogName, LogSink, LogState, LogStream, LogTarget};
#[cfg(feature = "testing")]
pub use runner::testing;
pub use runners::{RunnerSettings, Runners};
pub use slot_pool::{PooledSlot, SlotPool, SlotShare};
