//! Ownership: a lease with TTL and epoch decides which node is active (ADR-014). Losing it costs work, never
//! correctness (P7).

use std::sync::Arc;
use std::time::Duration;

use servo_core::{Clock, Millis};
use servo_engine::State;
use servo_engine::event::encode_batch;
use servo_store::{ErrorKind, Leases, Record};

use crate::config::{Config, Ownership, Stores};
use crate::error::Error;
use crate::spawner::{Spawner, within};

const LEASE_NAME: &str = "engine";

/// Proof that this node owns the workspace.
pub(crate) struct OwnershipGuard {
    leases: Option<(Leases, Millis)>,
    workspace: String,
}

/// Acquires the lease, if the workspace is owned by one. Comes before everything else: a standby node asks often, and
/// must not read the whole state each time.
pub(crate) async fn acquire(stores: &Stores, config: &Config) -> Result<OwnershipGuard, Error> {
    let workspace = stores.layout.prefix();
    let Ownership::ByLease { node, ttl } = &config.ownership else {
        return Ok(OwnershipGuard { leases: None, workspace });
    };
    let leases = Leases::new(stores.blobs.clone(), LEASE_NAME, node.clone(), *ttl);
    match leases.acquire(config.clock.now()).await.map_err(|e| Error::Lease(e.to_string()))? {
        Some(_) => Ok(OwnershipGuard { leases: Some((leases, *ttl)), workspace }),
        None => Err(Error::NotLeader { workspace, ttl: *ttl }),
    }
}

impl OwnershipGuard {
    /// The epoch to write under, higher than any that was `seen` in the log. It is that of the lease, so that the next
    /// holder has a higher one: refused if the lease was taken while the log was read.
    pub(crate) async fn epoch_after(&self, seen: u64, clock: &dyn Clock) -> Result<u64, Error> {
        let Some((leases, ttl)) = &self.leases else { return Ok(seen + 1) };
        match leases.raise(clock.now(), seen + 1).await.map_err(|e| Error::Lease(e.to_string()))? {
            Some(lease) => Ok(lease.epoch),
            None => Err(Error::NotLeader { workspace: self.workspace.clone(), ttl: *ttl }),
        }
    }

    /// Begins the epoch in the log, with a batch that says nothing: whoever had the lease before and does not know
    /// better is refused its next one, and reads why. Without it, it could go on where this node would not look. False
    /// if it did so just now, and the log has to be read again.
    pub(crate) async fn begin(
        &self,
        stores: &Stores,
        config: &Config,
        state: &mut State,
        epoch: u64,
    ) -> Result<bool, Error> {
        if self.leases.is_none() {
            return Ok(true);
        }
        let seq = state.head().seq + 1;
        let mut payload = Vec::new();
        encode_batch(&[], &mut payload);
        let record = Record { seq, epoch, put_id: config.put_ids.next(), payload: payload.into() };
        match stores.log.append(record).await {
            Ok(()) => {
                state.apply_batch(seq, &[]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Fenced) => Ok(false),
            Err(error) => Err(Error::NotDurable(Arc::new(error))),
        }
    }

    /// Releases the lease, so that another node can take it at once.
    pub(crate) async fn release(self, clock: &dyn Clock) {
        let Some((leases, _)) = self.leases else { return };
        if let Err(error) = leases.release(clock.now()).await {
            tracing::warn!(%error, "lease.release failed, it will run out by itself");
        }
    }

    /// Renews the lease until all work has ended, then releases it; calls `deposed` and ends when it is lost.
    ///
    /// `working` closes when the last thread has ended: a workspace that is shutting down still writes.
    pub(crate) async fn keep(
        self,
        clock: Arc<dyn Clock>,
        spawner: Arc<dyn Spawner>,
        working: flume::Receiver<()>,
        deposed: impl FnOnce(),
    ) {
        let Some((leases, ttl)) = &self.leases else { return };
        let period = Duration::from_millis((ttl.get() / 3).max(1));
        loop {
            if within(spawner.as_ref(), period, working.recv_async()).await.is_some() {
                self.release(clock.as_ref()).await;
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
