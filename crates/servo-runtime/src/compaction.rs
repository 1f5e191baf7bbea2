//! The compactor's own thread: writes changes to the tables without ever holding up the engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use servo_core::Clock;
use servo_engine::Delta;
use servo_engine::controllers::retention::log_boundary;
use servo_engine::rows::{EdgeRow, RunRow, TaskRow};
use servo_projections::{Compactor, Manifest};
use servo_store::{ErrorKind, Log};
use tokio::runtime::Handle;

/// What readers need to know about the tables.
#[derive(Debug, Default)]
pub(crate) struct Published {
    busy: AtomicBool,
    /// Set when no more changes can be written until the workspace is opened again.
    broken: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    manifest: Option<Arc<Manifest>>,
    /// Final rows that left memory and are on their way to history.
    in_flight: Arc<InFlight>,
}

/// Final rows between memory and history, where readers must still find them.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) runs: Vec<RunRow>,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) edges: Vec<EdgeRow>,
}

impl Published {
    /// Whether a flush is under way; changes go on gathering meanwhile.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Announces changes that are about to be written.
    pub(crate) fn begin(&self, delta: &Delta) {
        self.busy.store(true, Ordering::Release);
        self.lock().in_flight = Arc::new(InFlight {
            runs: delta.ended_runs.clone(),
            tasks: delta.ended_tasks.clone(),
            edges: delta.ended_edges.clone(),
        });
    }

    /// Takes back an announcement whose changes will never be written.
    pub(crate) fn abandon(&self) {
        self.lock().in_flight = Arc::default();
        self.busy.store(false, Ordering::Release);
    }

    pub(crate) fn in_flight(&self) -> Arc<InFlight> {
        self.lock().in_flight.clone()
    }

    pub(crate) fn manifest(&self) -> Option<Arc<Manifest>> {
        self.lock().manifest.clone()
    }

    pub(crate) fn set_manifest(&self, manifest: Option<Arc<Manifest>>) {
        self.lock().manifest = manifest;
    }

    fn end(&self, manifest: Arc<Manifest>) {
        {
            let mut inner = self.lock();
            inner.manifest = Some(manifest);
            inner.in_flight = Arc::default();
        }
        self.busy.store(false, Ordering::Release);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Compaction {
    pub(crate) compactor: Compactor,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) handle: Handle,
    pub(crate) published: Arc<Published>,
    pub(crate) keep_log_batches: Option<u64>,
    pub(crate) stopping: Arc<AtomicBool>,
}

impl Compaction {
    /// Until the commit thread hangs up. A flush that fails is tried again: its changes are nowhere else but in the log.
    pub(crate) fn run(mut self, deltas: flume::Receiver<Box<Delta>>) {
        while let Ok(delta) = deltas.recv() {
            let mut wait = Duration::from_millis(100);
            loop {
                let flushed = self.handle.block_on(self.compactor.flush((*delta).clone(), self.clock.now()));
                match flushed {
                    Ok(manifest) => {
                        let seq = manifest.watermarks.last_seq;
                        self.published.end(manifest);
                        self.truncate_log(seq);
                        break;
                    }
                    Err(error) => {
                        let hopeless = matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Conflict);
                        tracing::error!(%error, "projections.flush failed");
                        if hopeless || self.stopping.load(Ordering::Acquire) {
                            self.published.broken.store(true, Ordering::Release);
                            return;
                        }
                        std::thread::sleep(wait);
                        wait = (wait * 2).min(Duration::from_secs(5));
                    }
                }
            }
        }
    }

    fn truncate_log(&self, projected: u64) {
        if self.keep_log_batches.is_none() {
            return;
        }
        let outcome = self.handle.block_on(async {
            let boundary = self.log.boundary().await.unwrap_or(1);
            match log_boundary(projected, boundary, self.keep_log_batches) {
                Some(before) => self.log.truncate_before(before).await,
                None => Ok(()),
            }
        });
        if let Err(error) = outcome {
            tracing::warn!(%error, "log.truncate_before failed, it will be tried again");
        }
    }
}
