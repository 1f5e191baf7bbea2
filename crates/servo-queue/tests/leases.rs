//! Leased tasks are redelivered if remote workers do not begin them.

use std::time::Duration;

use futures::FutureExt;
use servo_core::AttemptId;
use servo_queue::conformance::{message, names};
use servo_queue::{EnqueueOptions, Leases, LocalQueue, TaskQueue, TaskSource};

#[tokio::test]
async fn a_lease_that_ends_gives_its_message_to_others_unless_the_attempt_was_begun() {
    let (queue, leases, queues) = (LocalQueue::new(8), Leases::default(), names(&["default"]));
    let attempts = [AttemptId::from_u128(1), AttemptId::from_u128(2)];
    for (id, attempt) in ["begun", "lost"].into_iter().zip(attempts) {
        queue.enqueue(message("default", id), EnqueueOptions::default()).await.unwrap();
        leases.grant(attempt, queue.receive(&queues, 1).await.unwrap().remove(0));
    }
    leases.settle(attempts[0]).await;
    assert!(queue.receive(&queues, 2).now_or_never().is_none(), "both are in the hands of workers");
    for attempt in attempts {
        leases.expire(attempt).await;
    }
    let again =
        tokio::time::timeout(Duration::from_secs(20), queue.receive(&queues, 2)).await.unwrap().unwrap();
    let ids: Vec<_> = again.iter().map(|delivery| delivery.envelope.signature.as_str()).collect();
    assert_eq!(ids, ["lost"]);
    leases.settle(attempts[1]).await;
    assert_eq!(queue.len(), 1, "a worker that was too late settles nothing");
}
