//! The rules of a queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;

use super::{QueueFixture, names};
use crate::{EnqueueOptions, EnqueueResult, QueueErrorKind};

/// Before it is delivered, while it is in somebody's hands, and after it was acknowledged.
pub async fn inv_4_a_message_that_is_enqueued_again_is_delivered_once<F: QueueFixture>(fixture: Arc<F>) {
    assert_eq!(fixture.enqueue("default", "d_1").await, Ok(EnqueueResult::Enqueued));
    assert_eq!(fixture.enqueue("default", "d_1").await, Ok(EnqueueResult::Deduplicated));
    let delivery = fixture.next("default").await;
    assert_eq!(delivery.envelope.signature, "d_1");
    assert_eq!(fixture.enqueue("default", "d_1").await, Ok(EnqueueResult::Deduplicated));
    delivery.ack().await.expect("ack");
    assert_eq!(fixture.enqueue("default", "d_1").await, Ok(EnqueueResult::Deduplicated));
    fixture.nothing("default").await;
}

/// However long one waits.
pub async fn an_acknowledged_message_is_not_delivered_again<F: QueueFixture>(fixture: Arc<F>) {
    fixture.enqueue("default", "d_1").await.expect("enqueue");
    fixture.next("default").await.ack().await.expect("ack");
    fixture.nothing("default").await;
    fixture.pass(fixture.visibility_timeout() * 2).await;
    fixture.nothing("default").await;
}

/// Its receiver is gone, or has forgotten it; one that waits already gets it too.
pub async fn a_message_that_is_not_settled_is_delivered_again<F: QueueFixture>(fixture: Arc<F>) {
    fixture.enqueue("default", "d_1").await.expect("enqueue");
    let lost = fixture.next("default").await;
    fixture.nothing("default").await;
    let waiting = tokio::spawn({
        let fixture = fixture.clone();
        async move {
            let again = fixture.next("default").await;
            assert_eq!(again.envelope.signature, "d_1");
            again.ack().await.expect("ack");
        }
    });
    fixture.pass(Duration::ZERO).await;
    drop(lost);
    fixture.pass(fixture.visibility_timeout()).await;
    waiting.await.expect("it is delivered to whoever waits");
    fixture.nothing("default").await;
}

/// A slow consumer may have completed the message all the same.
pub async fn an_older_delivery_can_be_acknowledged<F: QueueFixture>(fixture: Arc<F>) {
    fixture.enqueue("default", "d_1").await.expect("enqueue");
    let slow = fixture.next("default").await;
    fixture.pass(fixture.visibility_timeout()).await;
    let second = fixture.next("default").await;
    assert_eq!(second.envelope, slow.envelope);
    slow.ack().await.expect("ack");
    second.ack().await.expect("ack");
    fixture.pass(fixture.visibility_timeout() * 2).await;
    fixture.nothing("default").await;
}

/// At once, if there is none.
pub async fn a_nacked_message_is_delivered_again_after_its_delay<F: QueueFixture>(fixture: Arc<F>) {
    fixture.enqueue("default", "d_1").await.expect("enqueue");
    fixture.next("default").await.nack(Duration::ZERO).await.expect("nack");
    let delay = fixture.visibility_timeout() / 4;
    fixture.next("default").await.nack(delay).await.expect("nack");
    fixture.nothing("default").await;
    fixture.pass(delay).await;
    let again = fixture.next("default").await;
    assert_eq!(again.envelope.signature, "d_1");
    again.ack().await.expect("ack");
}

/// Others overtake it meanwhile.
pub async fn a_delayed_message_waits<F: QueueFixture>(fixture: Arc<F>) {
    let delay = fixture.visibility_timeout() / 4;
    fixture.enqueue_with("later", EnqueueOptions { delay, deadline: None }).await;
    fixture.nothing("default").await;
    fixture.enqueue("default", "now").await.expect("enqueue");
    let now = fixture.next("default").await;
    assert_eq!(now.envelope.signature, "now");
    now.ack().await.expect("ack");
    fixture.nothing("default").await;
    fixture.pass(delay).await;
    let later = fixture.next("default").await;
    assert_eq!(later.envelope.signature, "later");
    later.ack().await.expect("ack");
}

/// Whether it was never delivered, or delivered and not settled.
pub async fn a_message_past_its_deadline_is_not_delivered<F: QueueFixture>(fixture: Arc<F>) {
    let deadline = fixture.visibility_timeout() / 2;
    let options = EnqueueOptions { deadline: Some(deadline), ..EnqueueOptions::default() };
    fixture.enqueue_with("in time", options).await;
    let delivery = fixture.next("default").await;
    fixture.enqueue_with("too late", options).await;
    drop(delivery);
    fixture.pass(fixture.visibility_timeout() * 2).await;
    fixture.nothing("default").await;
}

/// As long as nobody gives one back.
pub async fn messages_that_are_due_together_keep_their_order<F: QueueFixture>(fixture: Arc<F>) {
    let ids: Vec<String> = (0..6).map(|number| format!("d_{number}")).collect();
    for id in &ids {
        fixture.enqueue("default", id).await.expect("enqueue");
    }
    let mut received = Vec::new();
    while received.len() < ids.len() {
        for delivery in fixture.next_of(&["default"], 4).await {
            received.push(delivery.envelope.signature.clone());
            delivery.ack().await.expect("ack");
        }
    }
    assert_eq!(received, ids);
}

/// And no more than it asked for.
pub async fn a_receiver_gets_what_is_in_its_queues<F: QueueFixture>(fixture: Arc<F>) {
    for (queue, id) in [("a", "a1"), ("b", "b1"), ("c", "c1"), ("a", "a2"), ("b", "b2")] {
        fixture.enqueue(queue, id).await.expect("enqueue");
    }
    fixture.pass(Duration::ZERO).await;
    let first = fixture.next_of(&["a", "b"], 3).await;
    let rest = fixture.next_of(&["a", "b"], 9).await;
    assert!(first.len() <= 3);
    let mut ids = Vec::new();
    for delivery in first.into_iter().chain(rest) {
        ids.push(delivery.envelope.signature.clone());
        delivery.ack().await.expect("ack");
    }
    ids.sort();
    assert_eq!(ids, ["a1", "a2", "b1", "b2"]);
    fixture.nothing("a").await;
    fixture.nothing("b").await;
    assert_eq!(fixture.next("c").await.envelope.signature, "c1");
}

/// Receivers that wait for another queue do not block it.
pub async fn a_waiting_receiver_gets_what_comes<F: QueueFixture>(fixture: Arc<F>) {
    let wait = |queue: &'static str| {
        let fixture = fixture.clone();
        tokio::spawn(async move { fixture.next(queue).await.envelope.signature.clone() })
    };
    let (other, waiting) = (wait("other"), wait("default"));
    fixture.pass(Duration::ZERO).await;
    fixture.enqueue("default", "d_1").await.expect("enqueue");
    assert_eq!(waiting.await.expect("a message comes"), "d_1");
    assert!(!other.is_finished());
    fixture.enqueue("other", "o_1").await.expect("enqueue");
    assert_eq!(other.await.expect("a message comes"), "o_1");
}

/// Neither before a message comes, nor when it has come and was not taken yet.
pub async fn a_receiver_that_stops_waiting_loses_nothing<F: QueueFixture>(fixture: Arc<F>) {
    let (queues, source) = (names(&["default"]), fixture.source());
    assert!(source.receive(&queues, 1).now_or_never().is_none());
    let mut first = source.receive(&queues, 1);
    let second = tokio::spawn({
        let fixture = fixture.clone();
        async move { fixture.next("default").await }
    });
    assert!((&mut first).now_or_never().is_none());
    fixture.pass(Duration::ZERO).await;
    fixture.enqueue("default", "d_1").await.expect("enqueue");
    drop(first);
    fixture.pass(fixture.visibility_timeout()).await;
    let delivery = second.await.expect("the other receiver gets it");
    assert_eq!(delivery.envelope.signature, "d_1");
}

/// As long as they settle in time.
pub async fn racing_receivers_get_every_message_once<F: QueueFixture>(fixture: Arc<F>) {
    let counts: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let (fixture, counts) = (fixture.clone(), counts.clone());
            tokio::spawn(async move {
                loop {
                    let delivery = fixture.next("default").await;
                    let id = delivery.envelope.signature.clone();
                    tokio::task::yield_now().await;
                    delivery.ack().await.expect("ack");
                    *counts.lock().expect("no receiver panics").entry(id).or_default() += 1;
                }
            })
        })
        .collect();
    let ids: Vec<String> = (0..50).map(|number| format!("d_{number:02}")).collect();
    for id in &ids {
        while fixture.enqueue("default", id).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    while counts.lock().expect("no receiver panics").len() < ids.len() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    receivers.iter().for_each(tokio::task::JoinHandle::abort);
    let counts = counts.lock().expect("no receiver panics");
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

/// There is room again when a message was acknowledged.
pub async fn a_full_queue_says_so_and_holds_up_no_other<F: QueueFixture>(fixture: Arc<F>) {
    let Some(capacity) = fixture.capacity() else { return };
    for number in 0..capacity {
        fixture.enqueue("default", &format!("d_{number}")).await.expect("there is room");
    }
    let full = fixture.enqueue("default", "more").await.expect_err("there is no room");
    assert_eq!(full.kind(), QueueErrorKind::Full);
    assert!(full.kind().is_transient());
    assert_eq!(fixture.enqueue("other", "o_1").await, Ok(EnqueueResult::Enqueued));
    assert_eq!(fixture.enqueue("default", "d_0").await, Ok(EnqueueResult::Deduplicated));
    fixture.next("default").await.ack().await.expect("ack");
    fixture.pass(Duration::ZERO).await;
    assert_eq!(fixture.enqueue("default", "more").await, Ok(EnqueueResult::Enqueued));
}
