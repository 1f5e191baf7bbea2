//! The tables.

use serde::{Deserialize, Serialize};
use servo_projections::Manifest;
use utoipa::ToSchema;

/// How much of the log is in the tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tables {
    /// Number of the manifest; 0 before the first.
    pub revision: u64,
    /// Last batch of the log that they hold.
    pub last_seq: u64,
}

impl Tables {
    pub(crate) fn of(manifest: Option<&Manifest>) -> Self {
        manifest.map_or_else(Self::default, |manifest| Self {
            revision: manifest.revision,
            last_seq: manifest.watermarks.last_seq,
        })
    }
}
