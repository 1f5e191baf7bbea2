//! A lease on a store that does not always answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use servo_core::{Millis, Timestamp};
use servo_store::conformance::layout;
use servo_store::testing::WrapsBlobs;
use servo_store::{BlobError, Blobs, Leases, MemoryBlobs};

/// Does not say what is there, while it is told not to.
struct Silent {
    blobs: Arc<dyn Blobs>,
    silent: AtomicBool,
}

#[async_trait]
impl WrapsBlobs for Silent {
    fn inside(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    async fn size(&self, name: &str) -> Result<u64, BlobError> {
        if self.silent.load(Ordering::SeqCst) {
            let (name, location) = (name.to_owned(), self.blobs.describe());
            return Err(BlobError::Unavailable { name, location, action: "asking", source: "503".into() });
        }
        self.blobs.size(name).await
    }
}

#[tokio::test]
async fn a_question_that_was_not_answered_does_not_cost_the_lease() {
    let blobs = Arc::new(MemoryBlobs::in_memory(&layout()));
    let store = Arc::new(Silent { blobs, silent: AtomicBool::new(false) });
    let party = |name: &str| Leases::new(store.clone(), "engine", name, Millis::from_secs(45));
    let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
    let holder = party("a");
    let taken = holder.acquire(at(0)).await.unwrap().unwrap();
    // The record is written, and nobody says whether there is a newer one.
    store.silent.store(true, Ordering::SeqCst);
    holder.renew(at(15)).await.unwrap_err();
    store.silent.store(false, Ordering::SeqCst);
    let renewed = holder.renew(at(30)).await.unwrap().unwrap();
    assert_eq!((renewed.epoch, renewed.expires_at), (taken.epoch, at(75)));
    assert_eq!(party("b").acquire(at(70)).await.unwrap(), None);
}
