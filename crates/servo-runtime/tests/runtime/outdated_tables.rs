//! A node that loads so slowly that what it reads is replaced meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use servo_engine::SettingOrigin;
use servo_projections::{Limits, Projection};
use servo_runtime::Config;
use servo_store::testing::WrapsBlobs;
use servo_store::{BlobError, Blobs};

use crate::support::*;

/// Shows manifests as they were until a file is asked for that they name and that is gone.
struct SlowlyRead {
    inner: Arc<dyn Blobs>,
    manifests: BTreeMap<String, Bytes>,
    awake: AtomicBool,
}

impl SlowlyRead {
    async fn of(inner: Arc<dyn Blobs>) -> Self {
        let mut manifests = BTreeMap::new();
        for (name, _) in inner.list("manifests").await.unwrap() {
            let bytes = inner.get(&name).await.unwrap();
            manifests.insert(name, bytes);
        }
        assert!(manifests.len() > 1, "{manifests:?}");
        Self { inner, manifests, awake: AtomicBool::new(false) }
    }

    /// The old content, while that is what is shown.
    fn as_it_was(&self, name: &str) -> Option<Result<Bytes, BlobError>> {
        let missing = || BlobError::NotFound { name: name.to_owned(), location: self.inner.describe() };
        let is_shown = name.starts_with("manifests/") && !self.awake.load(Ordering::SeqCst);
        is_shown.then(|| self.manifests.get(name).cloned().ok_or_else(missing))
    }

    fn noticed<T>(&self, answer: Result<T, BlobError>) -> Result<T, BlobError> {
        if let Err(BlobError::NotFound { .. }) = &answer {
            self.awake.store(true, Ordering::SeqCst);
        }
        answer
    }
}

#[async_trait]
impl WrapsBlobs for SlowlyRead {
    fn inside(&self) -> &Arc<dyn Blobs> {
        &self.inner
    }

    async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        match self.as_it_was(name) {
            Some(answer) => answer,
            None => self.noticed(self.inner.get(name).await),
        }
    }

    async fn size(&self, name: &str) -> Result<u64, BlobError> {
        match self.as_it_was(name) {
            Some(answer) => answer.map(|bytes| bytes.len() as u64),
            None => self.noticed(self.inner.size(name).await),
        }
    }
}

fn hasty(config: &mut Config) {
    config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 3);
    config.flush_every = Duration::from_millis(5);
    config.limits = Limits { keep_manifests: 2, l0_max_count: 2, ..Limits::default() };
}

#[tokio::test]
async fn tables_that_were_replaced_meanwhile_are_opened_again_and_not_taken_for_damaged() {
    let (_, stores) = memory();
    let harness = Harness::open(stores.clone(), hasty).await.unwrap();
    for i in 0..5 {
        harness.run(&format!("before {i}"), diamond()).await;
    }
    harness.close().await;
    let slowly = Arc::new(SlowlyRead::of(stores.blobs.clone()).await);
    let harness = Harness::open(stores.clone(), hasty).await.unwrap();
    for i in 0..20 {
        harness.run(&format!("meanwhile {i}"), diamond()).await;
    }
    harness.close().await;
    let revision = async || {
        let newest = Projection::open_latest(stores.blobs.clone(), layout()).await.unwrap().unwrap();
        newest.manifest().revision
    };
    let published = revision().await;

    let slow = servo_runtime::Stores { blobs: slowly.clone(), ..stores.clone() };
    let harness = Harness::open_with(slow, Arc::default(), 0, hasty).await.unwrap();
    assert!(slowly.awake.load(Ordering::SeqCst), "something was gone");
    assert_eq!(revision().await, published, "and nothing was rebuilt for that");
    harness.assert_replay_is_live().await;
    harness.close().await;
}
