//! Several writers, crashes between steps, stores that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use servo_core::RunId;
use servo_engine::rows::{Delta, RunRow};
use servo_store::testing::WrapsBlobs;
use servo_store::{BlobError, Blobs, ErrorKind, PutOutcome};

use super::generate::Generator;
use super::support::{empty_delta, event, latest, layout, memory, now, open, try_open};
use crate::{Compactor, Error, Limits};

fn one_run(seq: u64) -> Delta {
    let run_id = RunId::from_u128(u128::from(seq));
    let row = RunRow { run_id, row_version: event(seq * 1_000), ..Generator::new(seq).row() };
    Delta { runs: vec![row], ..empty_delta(seq) }
}

async fn run_ids(blobs: &Arc<dyn Blobs>) -> Vec<u128> {
    let rows = latest(blobs).await.hot_rows().await.unwrap();
    rows.runs.iter().map(|run| run.run_id.to_u128()).collect()
}

#[tokio::test]
async fn a_fenced_writers_manifest_is_never_visible() {
    let blobs = memory();
    let mut old = open(&blobs, 1, 1, Limits::default()).await;
    old.flush(one_run(1), now()).await.unwrap();
    let mut new = open(&blobs, 2, 2, Limits::default()).await;
    new.flush(one_run(2), now()).await.unwrap();

    let refused = old.flush(one_run(3), now()).await.unwrap_err();
    assert!(matches!(refused, Error::Fenced { revision: 3, .. }), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::Fenced);
    assert_eq!(run_ids(&blobs).await, [1, 2]);
    assert!(matches!(try_open(&blobs, 1, 3, Limits::default()).await, Err(Error::Fenced { .. })));
}

/// A writer that slept after its fifth manifest, and another of `epoch` that published up to the twentieth
/// meanwhile. On waking the first put its copy of the newest manifest back.
async fn slept_through(blobs: &Arc<dyn Blobs>, epoch: u64) -> (Compactor, Compactor) {
    let limits = Limits { keep_manifests: 2, ..Limits::default() };
    let mut stale = open(blobs, 1, 1, limits.clone()).await;
    for seq in 1..=5 {
        stale.flush(one_run(seq), now()).await.unwrap();
    }
    let mut other = open(blobs, epoch, 2, limits).await;
    for seq in 6..=20 {
        other.flush(one_run(seq), now()).await.unwrap();
    }
    let copy = Bytes::from(stale.manifest().unwrap().to_bytes());
    blobs.put(layout().manifest_latest(), copy).await.unwrap();
    (stale, other)
}

#[tokio::test]
async fn a_stale_writer_cannot_reuse_a_number_that_was_deleted() {
    let blobs = memory();
    let (mut stale, _) = slept_through(&blobs, 2).await;
    let refused = stale.flush(one_run(21), now()).await.unwrap_err();
    assert!(matches!(refused, Error::Fenced { .. }), "{refused}");
    assert_eq!(run_ids(&blobs).await.len(), 20);
}

#[tokio::test]
async fn a_stale_writer_of_the_same_epoch_goes_on_from_the_newest() {
    let blobs = memory();
    let (mut stale, other) = slept_through(&blobs, 1).await;
    let manifest = stale.flush(one_run(21), now()).await.unwrap();
    assert_eq!(manifest.watermarks.last_seq, 21);
    assert!(manifest.revision > other.manifest().unwrap().revision);
    assert_eq!(run_ids(&blobs).await.len(), 21);
}

#[tokio::test]
async fn a_manifest_of_the_same_epoch_is_adopted_and_built_upon() {
    let blobs = memory();
    let mut first = open(&blobs, 1, 1, Limits::default()).await;
    first.flush(one_run(1), now()).await.unwrap();
    let mut second = open(&blobs, 1, 2, Limits::default()).await;
    second.flush(one_run(2), now()).await.unwrap();
    let manifest = first.flush(one_run(3), now()).await.unwrap();
    assert_eq!(manifest.revision, 3);
    assert_eq!(run_ids(&blobs).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_writer_that_knows_less_of_the_log_than_the_tables_show_does_not_turn_them_back() {
    let blobs = memory();
    let mut ahead = open(&blobs, 1, 1, Limits::default()).await;
    for seq in 1..=3 {
        ahead.flush(one_run(seq), now()).await.unwrap();
    }
    let mut behind = open(&blobs, 2, 2, Limits::default()).await;
    let manifest = behind.flush(one_run(2), now()).await.unwrap();
    assert_eq!((manifest.revision, manifest.watermarks.last_seq), (3, 3));
    assert!(behind.lost_publish_race());
    let manifest = behind.flush(one_run(4), now()).await.unwrap();
    assert_eq!((manifest.revision, manifest.watermarks.last_seq), (4, 4));
    assert_eq!(run_ids(&blobs).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn changes_that_do_not_follow_on_the_manifest_are_refused() {
    let blobs = memory();
    let mut ahead = open(&blobs, 1, 1, Limits::default()).await;
    ahead.flush(one_run(1), now()).await.unwrap();
    // Somebody replaces the tables by older ones.
    let newest = latest(&blobs).await.manifest().clone();
    let mut older = crate::Manifest::clone(&newest);
    older.revision += 1;
    older.watermarks.last_seq = 0;
    older.revision_ulid = servo_core::PutId::from_parts(9, 9);
    let name = layout().manifest(older.revision);
    blobs.put(&name, Bytes::from(older.to_bytes())).await.unwrap();
    let refused = ahead.flush(one_run(2), now()).await.unwrap_err();
    assert!(matches!(refused, Error::Gap { after: 1, published: 0 }), "{refused}");
}

/// A store whose writes can be made to fail, by the beginning of their names.
struct Failing {
    inner: Arc<dyn Blobs>,
    failing: AtomicBool,
    prefix: &'static str,
}

impl Failing {
    fn check(&self, name: &str) -> Result<(), BlobError> {
        if self.failing.load(Ordering::SeqCst) && name.starts_with(self.prefix) {
            return Err(BlobError::Full {
                name: name.to_owned(),
                location: "test".to_owned(),
                action: "writing",
                source: "no space".into(),
            });
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl WrapsBlobs for Failing {
    fn inside(&self) -> &Arc<dyn Blobs> {
        &self.inner
    }

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> Result<PutOutcome, BlobError> {
        self.check(name)?;
        self.inner.put_if_absent(name, bytes).await
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.check(name)?;
        self.inner.put(name, bytes).await
    }
}

async fn fail_in_between(prefix: &'static str) {
    let failing = Arc::new(Failing { inner: memory(), failing: AtomicBool::new(false), prefix });
    let blobs: Arc<dyn Blobs> = Arc::clone(&failing) as Arc<dyn Blobs>;
    let mut compactor = open(&blobs, 1, 1, Limits::default()).await;
    compactor.flush(one_run(1), now()).await.unwrap();
    let files = blobs.list("state").await.unwrap();

    failing.failing.store(true, Ordering::SeqCst);
    for seq in 2..=3 {
        let error = compactor.flush(one_run(seq), now()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        assert_eq!(run_ids(&blobs).await, [1], "the old state is readable");
        assert_eq!(blobs.list("state").await.unwrap(), files, "nothing is left behind");
    }
    failing.failing.store(false, Ordering::SeqCst);
    compactor.flush(one_run(4), now()).await.unwrap();
    assert_eq!(run_ids(&blobs).await, [1, 2, 3, 4], "what could not be written goes out later");
    let reopened = open(&blobs, 1, 2, Limits::default()).await;
    assert_eq!(reopened.manifest().unwrap().watermarks.last_seq, 4);
}

#[tokio::test]
async fn a_failure_between_files_and_manifest_leaves_the_old_state_and_loses_nothing() {
    fail_in_between("manifests/").await;
    fail_in_between("state/").await;
}

#[tokio::test]
async fn a_crash_between_files_and_manifest_leaves_the_old_state_readable() {
    let blobs = memory();
    let mut compactor = open(&blobs, 1, 1, Limits::default()).await;
    let first = compactor.flush(one_run(1), now()).await.unwrap();
    // The files of revision 2 are there, its manifest is not.
    let mut draft = crate::Manifest::clone(&first);
    draft.revision = 2;
    let files = crate::files::Files { blobs: Arc::clone(&blobs), cache: Arc::default() };
    let put_ids = Arc::new(servo_store::CountingPutIds::new(7));
    let mut writer = crate::writer::Writer::new(files, layout(), Limits::default(), put_ids, 1);
    writer.add_delta(&mut draft, &one_run(2), now()).await.unwrap();
    drop(compactor);

    assert_eq!(run_ids(&blobs).await, [1]);
    let mut compactor = open(&blobs, 1, 3, Limits::default()).await;
    compactor.flush(one_run(2), now()).await.unwrap();
    assert_eq!(run_ids(&blobs).await, [1, 2]);
}

/// Futures of the public functions go to other threads.
#[test]
fn futures_are_send() {
    fn check<T: Send>(_: &T) {}
    let blobs = memory();
    let layout = layout();
    check(&crate::Projection::open_latest(Arc::clone(&blobs), layout.clone()));
    let ids = Arc::new(servo_store::CountingPutIds::new(7));
    let opening = crate::Compactor::open(blobs, layout, 1, Limits::default(), ids);
    check(&opening);
    let flush = async {
        let mut compactor = opening.await.unwrap();
        compactor.flush(empty_delta(1), now()).await
    };
    check(&flush);
}
