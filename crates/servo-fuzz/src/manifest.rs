//! Manifests of tables.

use std::sync::Arc;

use bytes::Bytes;
use servo_core::Timestamp;
use servo_engine::State;
use servo_projections::{Compactor, Limits, Manifest, Projection};
use servo_store::CountingPutIds;

use crate::runtime::wait;
use crate::tables::{TABLES, layout, read, store};

/// The newest manifest: read, written and read again it is the same, and neither readers nor a writer that goes on from
/// it panic, whatever it says.
pub fn manifest(bytes: &[u8]) {
    // The files that it may name are there.
    let mut files = TABLES.files.clone();
    wait(async {
        let manifest = Bytes::copy_from_slice(bytes);
        for name in [layout().manifest(1), layout().manifest_latest().to_owned()] {
            files.insert(name, manifest.clone());
        }
        let blobs = store(&files).await;
        let Ok(Some(projection)) = Projection::open_latest(Arc::clone(&blobs), layout()).await else {
            return;
        };
        let written = serde_json::to_vec(&**projection.manifest()).expect("a manifest is JSON");
        let again: Option<Manifest> = serde_json::from_slice(&written).ok();
        assert_eq!(again.as_ref(), Some(&**projection.manifest()));
        drop(read(&projection).await);
        let put_ids = Arc::new(CountingPutIds::new(2));
        let limits = Limits { keep_manifests: 1, ..Limits::default() };
        let Ok(mut compactor) = Compactor::open(blobs, layout(), u64::MAX, limits, put_ids).await else {
            return;
        };
        let (tenant, workspace) = (layout().tenant().clone(), layout().workspace().clone());
        let mut state = State::new(tenant, workspace);
        state.apply_batch(projection.manifest().watermarks.last_seq.saturating_add(1), &[]);
        for _ in 0..2 {
            drop(compactor.flush(state.take_delta(), Timestamp::EPOCH).await);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_good_tables_is_read_and_written_on() {
        let mut good = TABLES.manifest.clone();
        good.revision = 1;
        let bytes = Bytes::from(serde_json::to_vec(&good).unwrap());
        manifest(&bytes);
        let mut files = TABLES.files.clone();
        files.insert(layout().manifest(1), bytes);
        let opened = wait(async { Projection::open_latest(store(&files).await, layout()).await });
        let projection = opened.unwrap().unwrap();
        assert_eq!(**projection.manifest(), good);
        assert!(wait(read(&projection)).is_ok());
    }
}
