//! The log of objects keeps every rule in memory, and tells the three meanings of "already exists" apart.

mod object_storage;

use std::sync::Arc;

use futures::TryStreamExt;
use object_storage::Bucket;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use servo_store::conformance::{batch, layout};
use servo_store::testing::StoreFault;
use servo_store::{Damage, ErrorKind, Log, ReadError, Record};

async fn fresh() -> Bucket<()> {
    Bucket::new(Arc::new(InMemory::new()), Path::from("some/root"), ())
}

servo_store::log_conformance!(fresh);

fn object(bucket: &Bucket<()>, name: &str) -> Path {
    Path::from(format!("{}/{}/{name}", bucket.root, layout().prefix()))
}

#[tokio::test]
async fn every_way_of_losing_an_answer_ends_well() {
    use StoreFault::{ExistsButNothingLanded, LostAnswer, LostAnswerThenExists, Unavailable};
    for plan in [
        vec![LostAnswer],
        vec![LostAnswerThenExists],
        vec![Unavailable, LostAnswer],
        vec![ExistsButNothingLanded, ExistsButNothingLanded, LostAnswerThenExists],
        vec![Unavailable, ExistsButNothingLanded],
    ] {
        let bucket = fresh().await;
        let log = bucket.log();
        bucket.store.plan(plan.clone());
        log.append(batch(1, 1)).await.unwrap_or_else(|error| panic!("{plan:?}: {error}"));
        let read: Vec<Record> = bucket.log().read(1).try_collect().await.unwrap();
        assert_eq!(read, [batch(1, 1)], "{plan:?}");
    }
}

#[tokio::test]
async fn an_endless_409_is_abandoned_and_nothing_has_landed() {
    let bucket = fresh().await;
    let log = bucket.log();
    bucket.store.plan([StoreFault::ExistsButNothingLanded; 5]);
    assert_eq!(log.append(batch(1, 1)).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(log.next_seq().await.unwrap(), 1);
    log.append(batch(1, 1)).await.unwrap();
}

#[tokio::test]
async fn a_stale_writer_whose_answer_was_lost_is_fenced_all_the_same() {
    let bucket = fresh().await;
    let (stale, live) = (bucket.log(), bucket.log());
    for seq in 1..=3 {
        live.append(batch(seq, 2)).await.unwrap();
    }
    assert_eq!(stale.next_seq().await.unwrap(), 4);
    for seq in 4..=6 {
        live.append(batch(seq, 2)).await.unwrap();
    }
    live.truncate_before(6).await.unwrap();
    bucket.store.plan([StoreFault::LostAnswerThenExists]);
    assert_eq!(stale.append(batch(4, 1)).await.unwrap_err().kind(), ErrorKind::Fenced);
    let path = object(&bucket, &layout().batch(4));
    assert!(bucket.store.head(&path).await.is_err(), "the object was taken back");
}

#[tokio::test]
async fn a_damaged_object_is_refused_by_name() {
    let bucket = fresh().await;
    let log = bucket.log();
    for seq in 1..=3 {
        log.append(batch(seq, 1)).await.unwrap();
    }
    let path = object(&bucket, &layout().batch(2));
    let mut bytes = bucket.store.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
    bytes[40] ^= 1;
    bucket.store.put(&path, PutPayload::from(bytes)).await.unwrap();
    let error = log.read(1).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(matches!(error, ReadError::Corrupt { damage: Damage::Checksum { .. }, .. }), "{error}");
    assert!(error.to_string().contains("00000000000000000002.jsonl"), "{error}");

    bucket.store.put(&path, PutPayload::from_static(b"not a batch")).await.unwrap();
    assert_eq!(log.read(2).try_collect::<Vec<_>>().await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn a_lost_object_is_not_taken_for_the_end() {
    let bucket = fresh().await;
    let log = bucket.log();
    for seq in 1..=5 {
        log.append(batch(seq, 1)).await.unwrap();
    }
    bucket.store.delete(&object(&bucket, &layout().batch(3))).await.unwrap();
    let error = log.read(1).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(matches!(error, ReadError::Corrupt { damage: Damage::Missing { seq: 3 }, .. }), "{error}");
}

#[tokio::test]
async fn a_reader_is_not_given_a_deleted_number_that_somebody_is_about_to_take_back() {
    let bucket = fresh().await;
    let log = bucket.log();
    for seq in 1..=20 {
        log.append(batch(seq, 1)).await.unwrap();
    }
    let fifth = object(&bucket, &layout().batch(5));
    let bytes = bucket.store.get(&fifth).await.unwrap().bytes().await.unwrap();
    let reader = bucket.log();
    let mut reading = reader.read(1);
    assert_eq!(reading.try_next().await.unwrap().unwrap().seq, 1);
    log.truncate_before(15).await.unwrap();
    bucket.store.put(&fifth, PutPayload::from(bytes)).await.unwrap();
    for seq in 2..=4 {
        assert_eq!(reading.try_next().await.unwrap().unwrap().seq, seq, "fetched before it was deleted");
    }
    let error = reading.try_next().await.unwrap_err();
    assert!(matches!(error, ReadError::BelowBoundary { asked: 5, boundary: 15, .. }), "{error}");
}

#[tokio::test]
async fn an_interrupted_deletion_is_finished_by_the_next() {
    let bucket = fresh().await;
    let log = bucket.log();
    for seq in 1..=20 {
        log.append(batch(seq, 1)).await.unwrap();
    }
    // The boundary was moved and only the first objects deleted, then the process died.
    let step = object(&bucket, &layout().ledger_boundary_step(1));
    bucket.store.put(&step, PutPayload::from_static(b"{\"boundary\":12}")).await.unwrap();
    for seq in 1..5 {
        bucket.store.delete(&object(&bucket, &layout().batch(seq))).await.unwrap();
    }
    let log = bucket.log();
    assert_eq!(log.boundary().await.unwrap(), 12);
    log.truncate_before(15).await.unwrap();
    for seq in 1..15 {
        assert!(
            bucket.store.head(&object(&bucket, &layout().batch(seq))).await.is_err(),
            "batch {seq} is left"
        );
    }
    assert_eq!(log.read(15).try_collect::<Vec<_>>().await.unwrap().len(), 6);
}
