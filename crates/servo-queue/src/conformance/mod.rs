//! The conformance suite of every queue implementation.
//!
//! A test file says how to make a fresh queue, and gets one test per rule:
//! [`queue_conformance!`](crate::queue_conformance).

mod rules;
mod timers;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Delivery, EnqueueOptions, EnqueueResult, Message, QueueError, SignedEnvelope, TaskQueue, TaskSource,
};

pub use rules::{
    a_delayed_message_waits, a_full_queue_says_so_and_holds_up_no_other,
    a_message_past_its_deadline_is_not_delivered, a_message_that_is_not_settled_is_delivered_again,
    a_nacked_message_is_delivered_again_after_its_delay, a_receiver_gets_what_is_in_its_queues,
    a_receiver_that_stops_waiting_loses_nothing, a_waiting_receiver_gets_what_comes,
    an_acknowledged_message_is_not_delivered_again, an_older_delivery_can_be_acknowledged,
    inv_4_a_message_that_is_enqueued_again_is_delivered_once,
    messages_that_are_due_together_keep_their_order, racing_receivers_get_every_message_once,
};
pub use timers::ManualTimers;

/// A fresh queue under test.
#[async_trait]
pub trait QueueFixture: Send + Sync + 'static {
    /// Where messages go in.
    fn queue(&self) -> Arc<dyn TaskQueue>;

    /// Where they come out.
    fn source(&self) -> Arc<dyn TaskSource>;

    /// Lets time pass for the queue, and lets it do what it does then.
    async fn pass(&self, time: Duration);

    /// After how long a message that nobody has settled is delivered again.
    fn visibility_timeout(&self) -> Duration;

    /// How many messages a queue holds at most; none if it has no limit that a test could reach.
    fn capacity(&self) -> Option<usize>;

    /// How long to wait before it is believed that nothing comes.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Enqueues a message that is due at once.
    async fn enqueue(&self, queue: &str, id: &str) -> Result<EnqueueResult, QueueError> {
        self.queue().enqueue(message(queue, id), EnqueueOptions::default()).await
    }

    /// Enqueues a message.
    async fn enqueue_with(&self, id: &str, options: EnqueueOptions) {
        let enqueued = self.queue().enqueue(message("default", id), options).await;
        assert_eq!(enqueued, Ok(EnqueueResult::Enqueued));
    }

    /// The next message of a queue.
    async fn next(&self, queue: &str) -> Delivery {
        let mut deliveries = self.next_of(&[queue], 1).await;
        assert_eq!(deliveries.len(), 1);
        deliveries.remove(0)
    }

    /// The next messages of some queues.
    async fn next_of(&self, queues: &[&str], at_most: usize) -> Vec<Delivery> {
        let queues = names(queues);
        let (limit, source) = (self.patience() + Duration::from_secs(20), self.source());
        let received = tokio::time::timeout(limit, source.receive(&queues, at_most)).await;
        received.expect("a message comes").expect("the queue answers")
    }

    /// Asserts that a queue has nothing to deliver now.
    async fn nothing(&self, queue: &str) {
        self.pass(Duration::ZERO).await;
        let (queues, source) = (names(&[queue]), self.source());
        let received = tokio::time::timeout(self.patience(), source.receive(&queues, 1)).await;
        if let Ok(deliveries) = received {
            panic!("{queue} delivers {deliveries:?}");
        }
    }
}

/// Names of queues, as receivers give them.
pub fn names(queues: &[&str]) -> Vec<Arc<str>> {
    queues.iter().map(|queue| Arc::from(*queue)).collect()
}

/// A message that can be told from others by its id, which is also its signature.
pub fn message(queue: &str, id: &str) -> Message {
    let envelope = SignedEnvelope { body: "{}".into(), key_id: "k".into(), signature: id.to_owned() };
    Message { queue: queue.into(), id: id.to_owned(), envelope }
}

/// Makes one test per rule of a queue. `$fresh` is an async function that returns a new, empty [`QueueFixture`].
#[macro_export]
macro_rules! queue_conformance {
    ($fresh:path) => {
        $crate::queue_conformance!($fresh;
            inv_4_a_message_that_is_enqueued_again_is_delivered_once, an_acknowledged_message_is_not_delivered_again,
            a_message_that_is_not_settled_is_delivered_again, an_older_delivery_can_be_acknowledged,
            a_nacked_message_is_delivered_again_after_its_delay, a_delayed_message_waits,
            a_message_past_its_deadline_is_not_delivered, messages_that_are_due_together_keep_their_order,
            a_receiver_gets_what_is_in_its_queues, a_waiting_receiver_gets_what_comes,
            a_receiver_that_stops_waiting_loses_nothing, racing_receivers_get_every_message_once,
            a_full_queue_says_so_and_holds_up_no_other);
    };
    ($fresh:path; $($rule:ident),+) => {
        $(#[tokio::test]
        async fn $rule() {
            $crate::conformance::$rule(std::sync::Arc::new($fresh().await)).await;
        })+
    };
}
