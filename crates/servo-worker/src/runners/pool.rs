//! Idle processes: taken, given back, replaced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use servo_core::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::RunnerSettings;
use crate::project::{Project, ScanError, Scanned, StartError};
use crate::runner::Runner;

/// How long a runner may take to tear down its resources.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

pub(super) struct Pool {
    settings: RunnerSettings,
    clock: Arc<dyn Clock>,
    /// One permit per process that is starting or running.
    slots: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

struct Idle {
    project: Project,
    /// How often the project was replaced.
    generation: u64,
    runners: Vec<Runner>,
    is_closed: bool,
}

/// A runner in use. Dropping it kills its process.
pub(super) struct Lease {
    pub(super) runner: Runner,
    generation: u64,
    slot: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(project: Project, clock: Arc<dyn Clock>, settings: RunnerSettings) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(settings.slots.max(1)));
        let idle = Mutex::new(Idle { project, generation: 0, runners: Vec::new(), is_closed: false });
        Arc::new(Self { settings, clock, slots, idle })
    }

    pub(super) fn grace(&self) -> Duration {
        self.settings.grace
    }

    pub(super) fn max_log_bytes(&self) -> usize {
        self.settings.max_log_bytes
    }

    /// A runner that is alive; waits for a slot, and starts a process if none is there.
    pub(super) async fn take(&self) -> Result<Lease, StartError> {
        let slot = self.slots.clone().acquire_owned().await.expect("slots are never closed");
        let idle = {
            let mut idle = self.lock();
            let generation = idle.generation;
            std::iter::from_fn(|| idle.runners.pop())
                .find_map(|mut runner| runner.is_alive().then_some(runner))
                .map(|runner| (runner, generation))
        };
        match idle {
            Some((runner, generation)) => Ok(Lease { runner, generation, slot }),
            None => self.start(slot).await,
        }
    }

    async fn start(&self, slot: OwnedSemaphorePermit) -> Result<Lease, StartError> {
        let (project, generation) = {
            let idle = self.lock();
            (idle.project.clone(), idle.generation)
        };
        let runner = Runner::start(&project, self.clock.clone()).await?;
        Ok(Lease { runner, generation, slot })
    }

    /// Keeps a runner for the next task, unless it is worn out.
    pub(super) fn give_back(self: &Arc<Self>, mut lease: Lease) {
        let settings = &self.settings;
        let is_worn = lease.runner.tasks() >= settings.tasks_per_process
            || lease.runner.is_worn()
            || !lease.runner.is_alive()
            || lease.runner.resident_bytes().is_some_and(|held| held > settings.max_resident_bytes);
        if is_worn {
            self.replace(lease);
            return;
        }
        let mut idle = self.lock();
        if lease.generation == idle.generation && !idle.is_closed {
            // Before the slot is free, so that whoever waits for it finds the runner.
            idle.runners.push(lease.runner);
            return;
        }
        drop(idle);
        self.replace(lease);
    }

    /// Starts a process to replace a dead or worn-out runner.
    pub(super) fn replace(self: &Arc<Self>, lease: Lease) {
        let Lease { runner, slot, .. } = lease;
        let is_wanted = {
            let idle = self.lock();
            // After a reload there may be one for every slot already.
            !idle.is_closed && idle.runners.len() <= self.slots.available_permits()
        };
        let pool = self.clone();
        tokio::spawn(async move {
            let successor = async {
                if !is_wanted {
                    return;
                }
                match pool.start(slot).await {
                    Ok(lease) => pool.give_back(lease),
                    // The next task says why.
                    Err(error) => tracing::debug!(%error, "a runner was not replaced"),
                }
            };
            tokio::join!(successor, runner.exit(SHUTDOWN_GRACE));
        });
    }

    /// Starts all that there may be.
    pub(super) async fn warm(self: &Arc<Self>) -> Result<(), StartError> {
        let missing = self.slots.available_permits().saturating_sub(self.lock().runners.len());
        self.add(missing).await
    }

    async fn add(self: &Arc<Self>, count: usize) -> Result<(), StartError> {
        let slots = (0..count).map_while(|_| self.slots.clone().try_acquire_owned().ok());
        let leases = try_join_all(slots.map(|slot| self.start(slot))).await?;
        for lease in leases {
            // Code may have been broken since. Whoever has the code before is of more use.
            let is_worse = !lease.runner.broken().is_empty() && !self.lock().runners.is_empty();
            if !is_worse {
                self.give_back(lease);
            }
        }
        Ok(())
    }

    /// Uses another project, or other code of the same, if it can be imported.
    pub(super) async fn reload(self: &Arc<Self>, project: Project) -> Result<Scanned, ScanError> {
        let mut first = Runner::start(&project, self.clock.clone()).await?;
        let scanned = first.scan().await?;
        let old = {
            let mut idle = self.lock();
            idle.generation += 1;
            idle.project = project;
            std::mem::replace(&mut idle.runners, vec![first])
        };
        let pool = self.clone();
        tokio::spawn(async move {
            let more = old.len().saturating_sub(1);
            let farewell = join_all(old.into_iter().map(|runner| runner.exit(SHUTDOWN_GRACE)));
            let (added, _) = tokio::join!(pool.add(more), farewell);
            if let Err(error) = added {
                tracing::debug!(%error, "runners were not replaced");
            }
        });
        Ok(scanned)
    }

    /// Uses a project that can be imported from now on, and starts nothing.
    pub(super) fn follow(&self, project: Project) {
        let old = {
            let mut idle = self.lock();
            idle.generation += 1;
            idle.project = project;
            std::mem::take(&mut idle.runners)
        };
        tokio::spawn(join_all(old.into_iter().map(|runner| runner.exit(SHUTDOWN_GRACE))));
    }

    /// Ends those that are idle. The others end with their task.
    pub(super) async fn close(&self) {
        let idle = {
            let mut idle = self.lock();
            idle.is_closed = true;
            std::mem::take(&mut idle.runners)
        };
        join_all(idle.into_iter().map(|runner| runner.exit(SHUTDOWN_GRACE))).await;
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
