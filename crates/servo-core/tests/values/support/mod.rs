//! Declarations, ticks and the oracle in Python, shared by tests.

pub(crate) mod declared;
pub(crate) mod oracle;
pub(crate) mod ticking;
