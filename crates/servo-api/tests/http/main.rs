//! The interface as its users meet it: a real server, a real workspace, real sockets.

#![allow(clippy::unwrap_used)]

mod admission;
mod assets;
mod attempts;
mod backfills;
mod callback_urls;
mod called_workers;
mod checks;
mod costs;
mod deployments;
mod description;
mod events;
mod fresh_reads;
mod freshness;
mod idempotency;
mod journeys;
mod logs;
mod matrix;
mod oidc;
mod pages;
mod partition_life;
mod problems;
mod pushes;
mod readiness;
mod registration;
mod remote_workers;
mod roles;
mod runs;
mod security;
mod stored_work;
mod support;
mod tenants;
mod workers;
