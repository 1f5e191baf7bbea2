//! Notifications are sent, each by a task of its own, so that one that takes long holds up nobody else. What came of it
//! goes back to the engine as an acknowledgement.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use servo_core::RuleId;
use servo_engine::Input;
use servo_engine::notification::{Delivery, Notified, SendFailure};
use tokio::sync::Semaphore;

use crate::messages::EngineMessage;
use crate::notifier::Notifier;
use crate::spawner::{Spawner, within};

/// Longest that a try may take, whatever the sender says.
const LONGEST_TRY: Duration = Duration::from_secs(6 * 60);

/// Notifications that are sent to one destination at once.
const AT_ONCE: usize = 4;

/// Sends notifications.
pub(crate) struct NotifyEffects {
    notifier: Option<Arc<dyn Notifier>>,
    spawner: Arc<dyn Spawner>,
    engine: flume::WeakSender<EngineMessage>,
    /// Room at each destination.
    room: Mutex<BTreeMap<(RuleId, u32), Arc<Semaphore>>>,
}

impl NotifyEffects {
    pub(crate) fn new(
        notifier: Option<Arc<dyn Notifier>>,
        spawner: Arc<dyn Spawner>,
        engine: flume::WeakSender<EngineMessage>,
    ) -> Self {
        Self { notifier, spawner, engine, room: Mutex::default() }
    }

    /// Begins to send a notification. Never waits.
    pub(super) fn begin(&self, delivery: Delivery) {
        // The engine asks for none that nobody here could send.
        let Some(notifier) = self.notifier.clone() else { return };
        let (spawner, engine) = (self.spawner.clone(), self.engine.clone());
        let room = self.room(&delivery);
        let sent = async move {
            let _room = room.acquire().await;
            let sending = AssertUnwindSafe(notifier.send(&delivery)).catch_unwind();
            let failure = match within(spawner.as_ref(), LONGEST_TRY, sending).await {
                Some(Ok(sent)) => sent.err(),
                Some(Err(_)) => Some(again("sending it went wrong; the log of the server says more")),
                None => Some(again("nobody has answered for too long")),
            };
            if let Some(failure) = &failure {
                let (rule, attempt) = (&*delivery.rule.name, delivery.attempt);
                tracing::warn!(rule, attempt, error = failure.message, "a notification was not sent");
            }
            let (notification_id, attempt) = (delivery.notification_id, delivery.attempt);
            let notified = Input::Notified(Notified { notification_id, attempt, failure });
            if let Some(engine) = engine.upgrade() {
                let _stopped = engine.send_async(EngineMessage::Input(notified, None)).await;
            }
        };
        self.spawner.spawn(sent.boxed());
    }

    fn room(&self, delivery: &Delivery) -> Arc<Semaphore> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever is at it holds its own.
        room.retain(|_, room| Arc::strong_count(room) > 1);
        let key = (delivery.rule_id, delivery.destination);
        room.entry(key).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone()
    }
}

fn again(message: &str) -> SendFailure {
    SendFailure { message: message.to_owned(), retry: true }
}
