//! Executor and runners from outside, in one binary.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests do")]

mod contract;
mod environment;
mod hostile;
mod output;
mod pool;
mod stopping;
mod support;
mod tasks;
