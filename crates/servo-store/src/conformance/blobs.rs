//! The rules of a blob store.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;

use super::leases::{
    a_holder_of_long_ago_does_not_go_on_behind_the_newest, a_lease_changes_hands_with_a_new_epoch,
    exactly_one_of_racing_parties_gets_the_lease, old_lease_records_are_deleted,
};
use crate::{Blobs, ErrorKind, PutOutcome};

/// Reading what is not there says so; deleting it is fine.
pub async fn a_missing_blob_is_not_found(blobs: Arc<dyn Blobs>) {
    assert_eq!(blobs.get("a/b").await.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    assert_eq!(blobs.size("a/b").await.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    assert_eq!(blobs.get_range("a/b", 0..1).await.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    blobs.delete("a/b").await.expect("deleting what is not there");
}

/// The second of two creations changes nothing; after a deletion the name is free again.
pub async fn creating_a_blob_twice_keeps_the_first(blobs: Arc<dyn Blobs>) {
    assert_eq!(blobs.put_if_absent("a/b.json", "1".into()).await.expect("put"), PutOutcome::Created);
    assert_eq!(blobs.put_if_absent("a/b.json", "2".into()).await.expect("put"), PutOutcome::Exists);
    assert_eq!(blobs.get("a/b.json").await.expect("get"), "1");
    blobs.delete("a/b.json").await.expect("delete");
    assert_eq!(blobs.put_if_absent("a/b.json", "3".into()).await.expect("put"), PutOutcome::Created);
    assert_eq!(blobs.get("a/b.json").await.expect("get"), "3");
}

/// `put` replaces, whether or not something was there.
pub async fn replacing_a_blob_shows_the_new_value(blobs: Arc<dyn Blobs>) {
    blobs.put("latest.json", "old".into()).await.expect("put");
    blobs.put("latest.json", "newer".into()).await.expect("put");
    assert_eq!(blobs.get("latest.json").await.expect("get"), "newer");
    assert_eq!(blobs.size("latest.json").await.expect("size"), 5);
}

/// Ranges within the value are read, others refused.
pub async fn a_part_of_a_blob_is_read(blobs: Arc<dyn Blobs>) {
    blobs.put("x", "0123456789".into()).await.expect("put");
    assert_eq!(blobs.get_range("x", 2..5).await.expect("get"), "234");
    assert_eq!(blobs.get_range("x", 0..10).await.expect("get"), "0123456789");
    assert_eq!(blobs.get_range("x", 3..3).await.expect("get"), "");
    for (start, end) in [(5, 11), (10, 11), (40, 50), (5, 2)] {
        let refused = blobs.get_range("x", std::ops::Range { start, end }).await;
        assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::Invalid), "{start}..{end}");
    }
}

/// A listing shows names relative to the workspace, sorted, below whole parts of names only.
pub async fn blobs_are_listed_below_a_directory(blobs: Arc<dyn Blobs>) {
    for name in ["t/b/2", "t/b/10", "t/a", "tt/x", "date=2025-01-15,r=ü/x"] {
        blobs.put(name, Bytes::copy_from_slice(name.as_bytes())).await.expect("put");
    }
    let listed = blobs.list("t").await.expect("list");
    assert_eq!(listed, [("t/a".to_owned(), 3), ("t/b/10".to_owned(), 6), ("t/b/2".to_owned(), 5)]);
    assert_eq!(blobs.list("").await.expect("list").len(), 5);
    assert_eq!(blobs.list("nothing/here").await.expect("list"), []);
}

/// Names that lead outside the workspace are refused by every operation.
pub async fn names_outside_are_refused(blobs: Arc<dyn Blobs>) {
    for name in ["../x", "/etc/passwd", "a/../../x", "a//b", "a\\b"] {
        let invalid = Some(ErrorKind::Invalid);
        assert_eq!(blobs.put_if_absent(name, "x".into()).await.err().map(|e| e.kind()), invalid, "{name}");
        assert_eq!(blobs.put(name, "x".into()).await.err().map(|e| e.kind()), invalid, "{name}");
        assert_eq!(blobs.get(name).await.err().map(|e| e.kind()), invalid, "{name}");
        assert_eq!(blobs.get_range(name, 0..1).await.err().map(|e| e.kind()), invalid, "{name}");
        assert_eq!(blobs.size(name).await.err().map(|e| e.kind()), invalid, "{name}");
        assert_eq!(blobs.delete(name).await.err().map(|e| e.kind()), invalid, "{name}");
        assert_eq!(blobs.list(name).await.err().map(|e| e.kind()), invalid, "{name}");
    }
}

/// Twelve creators race for each of ten names: one is told `Created`, and its value is there.
pub async fn exactly_one_of_racing_creators_wins(blobs: Arc<dyn Blobs>) {
    for round in 0..10 {
        let name = format!("race/{round}");
        let tasks = (0..12).map(|creator: u32| {
            let (blobs, name) = (Arc::clone(&blobs), name.clone());
            tokio::spawn(async move { blobs.put_if_absent(&name, creator.to_string().into()).await })
        });
        let outcomes = join_all(tasks.collect::<Vec<_>>()).await;
        let created: Vec<usize> = outcomes
            .into_iter()
            .enumerate()
            .filter(|(_, outcome)| matches!(outcome, Ok(Ok(PutOutcome::Created))))
            .map(|(creator, _)| creator)
            .collect();
        assert_eq!(created.len(), 1, "{name} was created by {created:?}");
        assert_eq!(blobs.get(&name).await.expect("get"), created[0].to_string());
    }
}

/// Every rule of blobs and leases in turn, each on a fresh store, for stores that are slow to start.
pub async fn every_blob_rule(fresh: impl AsyncFn() -> Arc<dyn Blobs>) {
    a_missing_blob_is_not_found(fresh().await).await;
    creating_a_blob_twice_keeps_the_first(fresh().await).await;
    replacing_a_blob_shows_the_new_value(fresh().await).await;
    a_part_of_a_blob_is_read(fresh().await).await;
    blobs_are_listed_below_a_directory(fresh().await).await;
    names_outside_are_refused(fresh().await).await;
    exactly_one_of_racing_creators_wins(fresh().await).await;
    a_lease_changes_hands_with_a_new_epoch(fresh().await).await;
    exactly_one_of_racing_parties_gets_the_lease(fresh().await).await;
    old_lease_records_are_deleted(fresh().await).await;
    a_holder_of_long_ago_does_not_go_on_behind_the_newest(fresh().await).await;
}
