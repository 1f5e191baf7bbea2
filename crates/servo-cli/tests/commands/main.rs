//! Commands through the real binary, with and without a server, and several at once.

#![allow(clippy::unwrap_used)]

mod backends;
mod backfills;
mod calls;
mod checks;
mod contexts;
mod costs;
mod execution;
mod expiry;
mod facts;
mod first_hour;
mod journeys;
mod keys;
mod notifications;
mod oidc;
mod owners;
mod partition_life;
mod renames;
mod safety;
mod schedules;
mod sensors;
mod serve;
mod shown;
mod staleness;
mod support;
mod workers;
