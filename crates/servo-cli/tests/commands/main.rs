//! Commands through the real binary, with and without a server, and several at once.

#![allow(clippy::unwrap_used)]

mod backends;
mod checks;
mod execution;
mod facts;
mod keys;
mod owners;
mod schedules;
mod support;
