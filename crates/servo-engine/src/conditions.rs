//! Automation conditions at work: compiled for the deployed assets, evaluated for one partition, and explained.
//!
//! A condition is a function of facts: what was made when and of what, which runs are open, what is deployed, which
//! time it is, and when the partition was last requested. Nothing else is remembered, so a restart changes nothing, and
//! evaluating again without a new fact gives the same (ADR-145).

mod affected;
mod compiled;
mod evaluate;
mod trace;

pub(crate) use affected::{add, affected};
pub(crate) use compiled::{Conditions, compile};
pub(crate) use evaluate::{Evaluator, Subject};
pub(crate) use trace::blank;
pub use trace::{Explanation, PartitionExplanation, TraceNode, explain};
