//! A process dies at every single write of a script, in every way it can, also while it recovers from dying, and with
//! the power. Whoever starts after it goes on with what was not acknowledged, and in the end nothing is missing,
//! doubled or torn.

mod blobs;
mod crashes;
mod file_log;
mod leases;
mod object_log;
mod outputs;
mod script;
