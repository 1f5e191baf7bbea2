//! An object store that can misbehave, as the storage of a log.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::path::Path;
use servo_store::conformance::{Storage, Trouble, layout};
use servo_store::testing::{FlakyStore, StoreFault};
use servo_store::{Log, ObjectLog, ObjectLogOptions};

/// A store, and what must outlive it.
pub(crate) struct Bucket<K> {
    pub(crate) store: FlakyStore,
    pub(crate) root: Path,
    _keep: K,
}

impl<K> Bucket<K> {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, root: Path, keep: K) -> Self {
        Self { store: FlakyStore::new(store), root, _keep: keep }
    }

    /// Every writer is a log of its own, as in another process.
    pub(crate) fn log(&self) -> ObjectLog {
        let options =
            ObjectLogOptions { backoff: Duration::ZERO, read_ahead: 4, ..ObjectLogOptions::default() };
        ObjectLog::new(Arc::new(self.store.clone()), &self.root, &layout(), options)
    }
}

#[async_trait]
impl<K: Send + Sync> Storage for Bucket<K> {
    async fn writer(&self) -> Arc<dyn Log> {
        Arc::new(self.log())
    }

    fn trouble(&self, trouble: Trouble) -> bool {
        match trouble {
            Trouble::LostAnswer => self.store.plan([StoreFault::LostAnswerThenExists]),
            Trouble::NothingLanded => self.store.plan([StoreFault::ExistsButNothingLanded]),
            Trouble::Unavailable => self.store.plan([StoreFault::Unavailable; 5]),
        }
        true
    }
}
