//! The log and the blobs in a local directory, opened by URL through the object store, keep every rule.

mod object_storage;

use std::sync::Arc;

use object_storage::Bucket;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use servo_store::conformance::layout;
use servo_store::{ObjectBlobs, open_object_store};
use tempfile::TempDir;

async fn fresh() -> Bucket<TempDir> {
    let root = tempfile::tempdir().expect("a directory");
    let store = LocalFileSystem::new_with_prefix(root.path()).expect("a store").with_fsync(true);
    Bucket::new(Arc::new(store), Path::default(), root)
}

servo_store::log_conformance!(fresh);

mod blobs {
    use super::*;

    async fn fresh() -> (ObjectBlobs, TempDir) {
        let root = tempfile::tempdir().expect("a directory");
        let (store, path) =
            open_object_store(&format!("file://{}", root.path().display()), []).expect("a store");
        (ObjectBlobs::new(store, &path, &layout()), root)
    }

    servo_store::blob_conformance!(fresh);
}
