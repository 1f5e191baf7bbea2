//! Executors: a workspace runs on threads of this machine, or on the one thread of a simulation (ADR-067).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use servo_store::{Timers, TokioTimers};
use tokio::runtime::Handle;

/// Spawns the tasks of a workspace, and provides its timers.
pub trait Spawner: Timers {
    /// Spawns a task that may block, under `name`.
    fn thread(&self, name: &'static str, work: BoxFuture<'static, ()>);

    /// Spawns a task that waits most of the time and never blocks.
    fn spawn(&self, work: BoxFuture<'static, ()>);

    /// How long a thread spins for more work before it sleeps: waking it costs more than a short wait.
    fn spin_time(&self) -> Duration;
}

/// Spawns a thread for each task that may block; tokio tasks for everything else.
#[derive(Debug, Default)]
pub struct ThreadSpawner {
    timers: TokioTimers,
}

impl Timers for ThreadSpawner {
    fn elapsed(&self) -> Duration {
        self.timers.elapsed()
    }

    fn sleep(&self, how_long: Duration) -> BoxFuture<'static, ()> {
        self.timers.sleep(how_long)
    }
}

impl Spawner for ThreadSpawner {
    fn thread(&self, name: &'static str, work: BoxFuture<'static, ()>) {
        let runtime = Handle::current();
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(work));
        started.expect("the system can start a thread");
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }

    fn spin_time(&self) -> Duration {
        Duration::from_micros(150)
    }
}

/// The result of `first`, or none if `how_long` passes before.
pub(crate) async fn within<T>(
    spawner: &dyn Spawner,
    how_long: Duration,
    first: impl Future<Output = T>,
) -> Option<T> {
    let mut first = std::pin::pin!(first.fuse());
    let mut timeout = spawner.sleep(how_long).fuse();
    futures::select_biased! {
        value = first => Some(value),
        () = timeout => None,
    }
}

/// Tracks spawned tasks: tells when all have ended, and whether any panicked.
pub(crate) struct TaskTracker {
    spawner: Arc<dyn Spawner>,
    running: flume::Sender<()>,
    panicked: Arc<AtomicBool>,
}

/// Guard held by every running task.
struct TaskGuard {
    _working: flume::Sender<()>,
    panicked: Arc<AtomicBool>,
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.panicked.store(true, Ordering::Release);
        }
    }
}

/// A handle on a tracker's tasks, for others.
#[derive(Clone)]
pub(crate) struct TrackedTasks {
    /// Closes when the last task has ended.
    pub(crate) running: flume::Receiver<()>,
    panicked: Arc<AtomicBool>,
}

impl TaskTracker {
    pub(crate) fn new(spawner: Arc<dyn Spawner>) -> (Self, TrackedTasks) {
        let (running, seen) = flume::bounded(1);
        let panicked = Arc::new(AtomicBool::new(false));
        (Self { spawner, running, panicked: panicked.clone() }, TrackedTasks { running: seen, panicked })
    }

    pub(crate) fn thread(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let guard = TaskGuard { _working: self.running.clone(), panicked: self.panicked.clone() };
        let until_done = async move {
            let _guard = guard;
            work.await;
        };
        self.spawner.thread(name, until_done.boxed());
    }
}

impl TrackedTasks {
    /// Waits until all tasks have ended; false if one panicked.
    pub(crate) async fn ended(self) -> bool {
        let _closed = self.running.recv_async().await;
        !self.panicked.load(Ordering::Acquire)
    }
}
