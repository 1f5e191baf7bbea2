//! Commands through the real binary, with and without a server, and several at once.

#![allow(clippy::unwrap_used)]

mod backends;
mod execution;
mod owners;
mod support;
