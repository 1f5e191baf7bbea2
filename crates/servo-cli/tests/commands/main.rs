//! Commands through the real binary, with and without a server, and several at once.

#![allow(clippy::unwrap_used)]

mod backends;
mod execution;
mod facts;
mod keys;
mod owners;
mod safety;
mod schedules;
mod sensors;
mod support;
