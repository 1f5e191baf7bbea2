//! Runs tasks: takes envelopes from a queue, asks before it begins, reports until it is heard.
//!
//! This crate owns the worker's side of the contract ([`Callbacks`]), the executor that runs tasks inside the
//! process ([`Executor`]), and everything that starts Python ([`project`]). It refuses to plan. The executor goes through the same envelopes, tokens and reports as
//! any other worker (P10): it only lacks an interpreter.

mod callbacks;
mod executor;
pub mod project;
pub mod runner;

pub use callbacks::Callbacks;
pub use executor::{Executor, TaskFunction};
