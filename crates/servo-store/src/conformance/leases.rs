//! The rules of a lease.

use std::sync::Arc;

use futures::future::join_all;
use servo_core::{Millis, Timestamp};

use crate::{Blobs, Leases};

const TTL: Millis = Millis::from_secs(10);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn party(blobs: &Arc<dyn Blobs>, holder: &str) -> Leases {
    Leases::new(Arc::clone(blobs), "compactor", holder, TTL)
}

/// Held, renewed, refused to others, expired, taken over, released, taken again: the epoch follows the holder.
pub async fn a_lease_changes_hands_with_a_new_epoch(blobs: Arc<dyn Blobs>) {
    let (a, b) = (party(&blobs, "a"), party(&blobs, "b"));
    let first = a.acquire(at(0)).await.expect("acquire").expect("free");
    assert_eq!((first.epoch, first.expires_at), (1, at(10)));
    assert_eq!(b.acquire(at(5)).await.expect("acquire"), None, "held by a");
    let renewed = a.renew(at(8)).await.expect("renew").expect("still ours");
    assert_eq!((renewed.epoch, renewed.expires_at), (1, at(18)));
    assert_eq!(b.acquire(at(17)).await.expect("acquire"), None, "renewed by a");

    let taken = b.acquire(at(18)).await.expect("acquire").expect("expired");
    assert_eq!((taken.epoch, taken.expires_at), (2, at(28)));
    assert_eq!(a.renew(at(19)).await.expect("renew"), None, "expired");
    assert_eq!(a.acquire(at(19)).await.expect("acquire"), None, "held by b");

    b.release(at(20)).await.expect("release");
    assert_eq!(b.renew(at(20)).await.expect("renew"), None, "released");
    let back = a.acquire(at(20)).await.expect("acquire").expect("released");
    assert_eq!(back.epoch, 3);
    assert_eq!(b.raise(at(20), 9).await.expect("raise"), None, "held by a");
    assert_eq!(a.raise(at(20), 2).await.expect("raise").expect("ours").epoch, 3, "high enough");
    assert_eq!(a.raise(at(20), 7).await.expect("raise").expect("ours").epoch, 7);
    a.release(at(21)).await.expect("release");

    let newcomer = party(&blobs, "c").acquire(at(22)).await.expect("acquire").expect("released");
    assert_eq!(newcomer.epoch, 8);
    a.release(at(22)).await.expect("releasing what another holds does nothing");
    assert_eq!(b.acquire(at(23)).await.expect("acquire"), None, "held by c");
}

/// Of eight parties at once one gets the lease, and its epoch is new.
pub async fn exactly_one_of_racing_parties_gets_the_lease(blobs: Arc<dyn Blobs>) {
    for round in 0..5 {
        let now = at(round * 100);
        let tasks = (0..8).map(|party_number| {
            let leases = party(&blobs, &format!("party {round} {party_number}"));
            tokio::spawn(async move { leases.acquire(now).await })
        });
        let outcomes = join_all(tasks.collect::<Vec<_>>()).await;
        let held: Vec<_> = outcomes.into_iter().filter_map(|task| task.ok()?.expect("acquire")).collect();
        assert_eq!(held.len(), 1, "{held:?}");
        assert_eq!(i64::try_from(held[0].epoch), Ok(round + 1));
    }
}

/// Renewing for long leaves few records, and a newcomer still finds the newest.
pub async fn old_lease_records_are_deleted(blobs: Arc<dyn Blobs>) {
    let a = party(&blobs, "a");
    a.acquire(at(0)).await.expect("acquire").expect("free");
    for second in 1..=150 {
        a.renew(at(second)).await.expect("renew").expect("still ours");
    }
    let records = blobs.list("leases").await.expect("list").len();
    assert!(records < 40, "{records} records are left");
    let b = party(&blobs, "b");
    assert_eq!(b.acquire(at(159)).await.expect("acquire"), None, "a newcomer sees the newest record");
    assert_eq!(b.acquire(at(160)).await.expect("acquire").expect("expired").epoch, 2);
    assert_eq!(a.acquire(at(161)).await.expect("acquire"), None);
}

/// A number that is free because its record was deleted is not the next one: whoever slept, or whose clock is wrong,
/// does not hold a second lease beside the newest.
pub async fn a_holder_of_long_ago_does_not_go_on_behind_the_newest(blobs: Arc<dyn Blobs>) {
    let (a, b) = (party(&blobs, "a"), party(&blobs, "b"));
    a.acquire(at(0)).await.expect("acquire").expect("free");
    for _ in 0..32 {
        a.renew(at(0)).await.expect("renew").expect("still ours");
    }
    b.acquire(at(10)).await.expect("acquire").expect("expired");
    for _ in 0..40 {
        b.renew(at(10)).await.expect("renew").expect("still ours");
    }
    let records = blobs.list("leases").await.expect("list");
    assert_eq!(a.renew(at(1)).await.expect("renew"), None, "b has it");
    assert_eq!(blobs.list("leases").await.expect("list"), records, "and nothing is left of the attempt");
    assert_eq!(a.acquire(at(11)).await.expect("acquire"), None);
    b.renew(at(12)).await.expect("renew").expect("still ours");
}
