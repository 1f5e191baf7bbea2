//! Commands through the real binary, with and without a server, and several at once.

#![allow(clippy::unwrap_used)]

mod backends;
mod backfills;
mod checks;
mod contexts;
mod execution;
mod facts;
mod first_hour;
mod keys;
mod owners;
mod safety;
mod schedules;
mod sensors;
mod staleness;
mod support;
mod workers;
