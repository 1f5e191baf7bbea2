//! Whoever sends notifications: some arrive although nobody hears of it, some never do, and some take long.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use servo_engine::notification::{Delivery, SendFailure};
use servo_runtime::Notifier;

use crate::faults::Faults;
use crate::scenario::SECOND;
use crate::world::{Domain, World};

/// The receivers of a workspace's notifications. Cheap to clone.
#[derive(Clone)]
pub struct SimNotifier {
    world: World,
    faults: Faults,
    domain: Domain,
    /// Ids of what has arrived.
    arrived: Arc<Mutex<BTreeSet<String>>>,
}

impl SimNotifier {
    /// Receivers that nothing has reached yet.
    pub fn new(world: &World, faults: &Faults, domain: Domain) -> Self {
        Self { world: world.clone(), faults: faults.clone(), domain, arrived: Arc::default() }
    }

    /// Ids of what has arrived.
    pub fn arrived(&self) -> BTreeSet<String> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Notifier for SimNotifier {
    async fn send(&self, delivery: &Delivery) -> Result<(), SendFailure> {
        let healed = self.faults.is_healed();
        let (length, is_lost, is_unheard) = self.world.roll(self.domain, |rng| {
            let length = if rng.chance(100) { 60 * SECOND } else { 2 * SECOND };
            (rng.within(1_000..length), rng.chance(if healed { 50 } else { 300 }), rng.chance(50))
        });
        self.world.sleep(self.domain, length).await;
        if !is_lost {
            let id = delivery.notification_id.to_string();
            self.arrived.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
        if is_lost || is_unheard {
            return Err(SendFailure { message: "nobody has answered".to_owned(), retry: true });
        }
        Ok(())
    }
}
