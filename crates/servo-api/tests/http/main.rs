//! The interface as its users meet it: a real server, a real workspace, real sockets.

#![allow(clippy::unwrap_used)]

mod assets;
mod attempts;
mod description;
mod events;
mod far_workers;
mod idempotency;
mod logs;
mod problems;
mod runs;
mod security;
mod support;
mod workers;
