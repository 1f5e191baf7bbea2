//! Slots of a process that the executors of several workspaces share, fairly between tenants (ADR-215).

mod round_robin;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use servo_core::TenantId;
use tokio::sync::oneshot;

use round_robin::RoundRobin;

/// Slots that several executors borrow from.
#[derive(Debug, Clone)]
pub struct SlotPool(Arc<Mutex<Pool>>);

#[derive(Debug)]
struct Pool {
    free: usize,
    line: RoundRobin<TenantId, oneshot::Sender<PooledSlot>>,
}

impl SlotPool {
    /// A pool of so many slots.
    pub fn new(slots: usize) -> Self {
        Self(Arc::new(Mutex::new(Pool { free: slots, line: RoundRobin::default() })))
    }

    /// Gives a tenant a share among those that wait, in proportion to those of others.
    pub fn set_weight(&self, tenant: &TenantId, weight: u64) {
        self.lock().line.set_weight(tenant.clone(), weight);
    }

    /// The part that executors of a tenant have in it.
    pub fn share(&self, tenant: TenantId) -> SlotShare {
        SlotShare { pool: self.clone(), tenant }
    }

    /// Gives free slots to those whose turn it is.
    fn hand_out(&self) {
        loop {
            let next = {
                let mut pool = self.lock();
                if pool.free == 0 {
                    return;
                }
                let Some(next) = pool.line.next() else { return };
                if next.is_closed() {
                    continue;
                }
                pool.free -= 1;
                next
            };
            // Whoever has gone meanwhile gives it back at once.
            drop(next.send(PooledSlot { pool: self.clone() }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of one tenant in a pool.
#[derive(Debug, Clone)]
pub struct SlotShare {
    pool: SlotPool,
    tenant: TenantId,
}

impl SlotShare {
    /// Waits for a slot, in the line of the tenant.
    pub async fn acquire(&self) -> PooledSlot {
        loop {
            let (granted, slot) = oneshot::channel();
            self.pool.lock().line.push(self.tenant.clone(), granted);
            self.pool.hand_out();
            // The sender is kept in line until it is used.
            if let Ok(slot) = slot.await {
                return slot;
            }
        }
    }
}

/// A slot of a pool. It goes back when it is dropped.
#[derive(Debug)]
pub struct PooledSlot {
    pool: SlotPool,
}

impl Drop for PooledSlot {
    fn drop(&mut self) {
        self.pool.lock().free += 1;
        self.pool.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("a tenant")
    }

    fn waiting(share: &SlotShare) -> BoxFuture<'static, PooledSlot> {
        let share = share.clone();
        let mut waits = async move { share.acquire().await }.boxed();
        assert!((&mut waits).now_or_never().is_none(), "all slots are taken");
        waits
    }

    #[test]
    fn a_tenant_that_floods_waits_its_turn_and_slots_that_nobody_wants_are_free_to_all() {
        let pool = SlotPool::new(2);
        let (flood, quiet) = (pool.share(tenant("flood")), pool.share(tenant("quiet")));
        let mut held: Vec<PooledSlot> =
            (0..2).map(|_| flood.acquire().now_or_never().expect("a free slot")).collect();
        let mut of_flood: Vec<_> = (0..10).map(|_| waiting(&flood)).collect();
        let mut of_quiet = waiting(&quiet);
        drop(held.pop());
        let first = of_flood[0].as_mut().now_or_never().expect("its turn came first");
        held.push(first);
        drop(held.pop());
        assert!(of_flood[1].as_mut().now_or_never().is_none(), "the other has its turn");
        of_quiet.as_mut().now_or_never().expect("before nine that came earlier");
    }

    #[test]
    fn a_slot_that_was_given_to_somebody_who_has_gone_is_not_lost() {
        let pool = SlotPool::new(1);
        let share = pool.share(tenant("acme"));
        let held = share.acquire().now_or_never().expect("a free slot");
        let (gone, given, stays) = (waiting(&share), waiting(&share), waiting(&share));
        drop(gone);
        drop(held);
        // It was given to the second, who goes without having looked.
        drop(given);
        let mut stays = stays;
        stays.as_mut().now_or_never().expect("the slot");
    }
}
