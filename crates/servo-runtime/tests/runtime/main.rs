//! The runtime from outside, in one binary.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests do")]

mod attempts;
mod crash;
mod data;
mod definitions;
mod faults;
mod full_disk;
mod heartbeat_timeouts;
mod launching;
mod outdated_tables;
mod packed_statuses;
mod reads;
mod reconcile;
mod recovery;
mod requests;
mod run_keys;
mod running;
mod shutdown;
mod subscriptions;
mod support;
mod workspaces;
