//! Checkpoints of a rebuild, so that a killed one can resume.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use servo_store::{BlobError, Blobs};

use crate::error::Error;
use crate::manifest::Manifest;
use crate::table::SCHEMA_VERSION;

/// The checkpoint of a rebuild. There is one rebuild at a time.
pub(crate) const NAME: &str = "rebuild/orchestration.json";

/// Rows that went to history by table, to compare with what the files say.
pub(crate) type Counts = BTreeMap<String, u64>;

/// The progress of a rebuild, from which it can continue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) schema_version: u64,
    /// Last batch folded.
    pub(crate) through: u64,
    pub(crate) errors: u64,
    pub(crate) error_samples: Vec<String>,
    pub(crate) counts: Counts,
    /// The shadow files. Never published as it is.
    pub(crate) shadow: Manifest,
}

impl Checkpoint {
    /// The last checkpoint; none if there is none or it is of no use.
    pub(crate) async fn read(blobs: &dyn Blobs) -> Result<Option<Self>, Error> {
        let bytes = match blobs.get(NAME).await {
            Ok(bytes) => bytes,
            Err(BlobError::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(Error::store("reading", NAME, source)),
        };
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(found) if found.schema_version == SCHEMA_VERSION => Ok(Some(found)),
            Ok(found) => {
                tracing::warn!(
                    version = found.schema_version,
                    "the checkpoint is of another version; starting anew"
                );
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(%error, "the checkpoint of the last rebuild is damaged; starting anew");
                Ok(None)
            }
        }
    }

    pub(crate) async fn write(&self, blobs: &dyn Blobs) -> Result<(), Error> {
        let bytes = serde_json::to_vec_pretty(self).expect("a checkpoint in memory serializes");
        let stored = blobs.put(NAME, Bytes::from(bytes)).await;
        stored.map_err(|source| Error::store("writing", NAME, source))
    }

    pub(crate) async fn delete(blobs: &dyn Blobs) -> Result<(), Error> {
        let deleted = blobs.delete(NAME).await;
        deleted.map_err(|source| Error::store("deleting", NAME, source))
    }
}
