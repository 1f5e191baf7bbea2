//! A process dies at every single write of a script, in every way it can, also while it recovers from dying, and with
//! the power. Whoever starts after it goes on with what was not acknowledged, and in the end nothing is missing,
//! doubled or torn.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests do")]

mod blobs;
mod crashes;
mod file_log;
mod leases;
mod object_log;
mod outputs;
mod script;
