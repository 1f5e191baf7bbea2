//! The spawner of a process, and tasks of a workspace that are waited for.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
pub use servo_store::Spawner;
pub(crate) use servo_store::within;
use servo_store::{Timers, TokioTimers};
use tokio::runtime::Handle;

/// Name of the thread that writes the tables.
pub(crate) const COMPACTOR: &str = "servo-compact";
/// Added to the niceness of threads that nobody waits for.
const BACKGROUND_NICENESS: i32 = 5;

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
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            if name == COMPACTOR {
                // Tables that follow a little later hold up nobody; they must not hold up those who wait for an answer.
                let _as_any_other = rustix::process::nice(BACKGROUND_NICENESS);
            }
            runtime.block_on(work);
        });
        started.expect("the system can start a thread");
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }

    fn spin_time(&self) -> Duration {
        Duration::from_micros(150)
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
