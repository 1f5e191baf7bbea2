//! Which node does the work: a lease with TTL and epoch (ADR-014). Losing it costs work, never correctness (P7).

use std::sync::Arc;
use std::time::Duration;

use servo_core::{Clock, Millis};
use servo_store::{Lease, Leases};

use crate::config::{Config, Ownership, Stores};
use crate::error::Error;
use crate::ground::{Ground, within};

const LEASE_NAME: &str = "engine";

/// The right to work.
pub(crate) struct Held {
    /// What the lease says; 0 without one.
    epoch: u64,
    leases: Option<(Leases, Millis)>,
}

/// Takes the lease, if the workspace is owned by one. Comes before everything else: a node that waits for its turn asks
/// often, and must not read the whole state each time.
pub(crate) async fn acquire(stores: &Stores, config: &Config) -> Result<Held, Error> {
    let Ownership::ByLease { node, ttl } = &config.ownership else {
        return Ok(Held { epoch: 0, leases: None });
    };
    let leases = Leases::new(stores.blobs.clone(), LEASE_NAME, node.clone(), *ttl);
    let lease = leases.acquire(config.clock.now()).await.map_err(|e| Error::Lease(e.to_string()))?;
    let Some(Lease { epoch, .. }) = lease else {
        return Err(Error::NotLeader { workspace: stores.layout.prefix(), ttl: *ttl });
    };
    Ok(Held { epoch, leases: Some((leases, *ttl)) })
}

impl Held {
    /// The epoch to write under, after the highest that was found in the log.
    pub(crate) fn epoch_after(&self, seen: u64) -> u64 {
        self.epoch.max(seen + 1)
    }

    /// Lets the next one try at once.
    pub(crate) async fn give_up(self, clock: &dyn Clock) {
        let Some((leases, _)) = self.leases else { return };
        if let Err(error) = leases.release(clock.now()).await {
            tracing::warn!(%error, "lease.release failed, it will run out by itself");
        }
    }

    /// Renews the lease until all work has ended, then gives it up; calls `deposed` and ends when it is lost.
    ///
    /// `working` closes when the last thread has ended: a workspace that is shutting down still writes.
    pub(crate) async fn keep(
        self,
        clock: Arc<dyn Clock>,
        ground: Arc<dyn Ground>,
        working: flume::Receiver<()>,
        deposed: impl FnOnce(),
    ) {
        let Some((leases, ttl)) = &self.leases else { return };
        let period = Duration::from_millis((ttl.get() / 3).max(1));
        loop {
            if within(ground.as_ref(), period, working.recv_async()).await.is_some() {
                self.give_up(clock.as_ref()).await;
                return;
            }
            match leases.renew(clock.now()).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    tracing::error!("another node took the lease, this one stops");
                    deposed();
                    return;
                }
                Err(error) => tracing::warn!(%error, "lease.renew failed, it will be tried again"),
            }
        }
    }
}
