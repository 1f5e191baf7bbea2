//! Executors: tasks run on threads of this machine, or on the one thread of a simulation (ADR-067).

use std::time::Duration;

use futures::future::BoxFuture;

use crate::timers::Timers;

/// Spawns the tasks of a workspace or of a worker, and provides their timers.
pub trait Spawner: Timers {
    /// Spawns a task that may block, under `name`.
    fn thread(&self, name: &'static str, work: BoxFuture<'static, ()>);

    /// Spawns a task that waits most of the time and never blocks.
    fn spawn(&self, work: BoxFuture<'static, ()>);

    /// How long a thread spins for more work before it sleeps: waking it costs more than a short wait.
    fn spin_time(&self) -> Duration;
}
