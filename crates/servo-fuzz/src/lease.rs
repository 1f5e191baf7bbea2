//! Records of leases.

use std::sync::Arc;

use bytes::Bytes;
use servo_core::{Millis, Timestamp};
use servo_store::{Blobs, Layout, Leases, MemoryBlobs};

use crate::runtime::wait;
use crate::tables::layout;

const NAME: &str = "engine";

/// The newest record of a lease: it is held, it is free for the next epoch, or it is damaged.
pub fn lease_record(bytes: &[u8]) {
    for now in [Timestamp::MIN, Timestamp::EPOCH, Timestamp::MAX] {
        wait(acquire(&layout(), bytes, now));
    }
}

async fn acquire(layout: &Layout, bytes: &[u8], now: Timestamp) {
    let blobs: Arc<dyn Blobs> = Arc::new(MemoryBlobs::in_memory(layout));
    let record = Bytes::copy_from_slice(bytes);
    blobs.put(&layout.lease(NAME, 1), record).await.expect("memory takes it");
    let leases = Leases::new(Arc::clone(&blobs), NAME, "me", Millis::new(1_000));
    let Ok(Some(lease)) = leases.acquire(now).await else { return };
    assert!(lease.expires_at >= now);
    let renewed = leases.renew(now).await.expect("memory does not fail");
    assert!(renewed.is_none_or(|renewed| renewed.epoch == lease.epoch), "a renewal keeps its epoch");
    leases.release(now).await.expect("memory does not fail");
    let other = Leases::new(blobs, NAME, "other", Millis::new(1_000));
    if let Ok(Some(next)) = other.acquire(now).await {
        assert!(next.epoch > lease.epoch, "a new holder has a higher epoch");
    }
}
