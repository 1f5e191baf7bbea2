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
pub trait Ground: Timers {
    /// Spawns a task that may block, under `name`.
    fn thread(&self, name: &'static str, work: BoxFuture<'static, ()>);

    /// Spawns a task that waits most of the time and never blocks.
    fn spawn(&self, work: BoxFuture<'static, ()>);

    /// How long a thread spins for more work before it sleeps: waking it costs more than a short wait.
    fn look_around(&self) -> Duration;
}

/// Spawns a thread for each task that may block; tokio tasks for everything else.
#[derive(Debug, Default)]
pub struct Threads {
    timers: TokioTimers,
}

impl Timers for Threads {
    fn elapsed(&self) -> Duration {
        self.timers.elapsed()
    }

    fn sleep(&self, how_long: Duration) -> BoxFuture<'static, ()> {
        self.timers.sleep(how_long)
    }
}

impl Ground for Threads {
    fn thread(&self, name: &'static str, work: BoxFuture<'static, ()>) {
        let runtime = Handle::current();
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(work));
        started.expect("the system can start a thread");
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }

    fn look_around(&self) -> Duration {
        Duration::from_micros(150)
    }
}

/// The result of `first`, or none if `how_long` passes before.
pub(crate) async fn within<T>(
    ground: &dyn Ground,
    how_long: Duration,
    first: impl Future<Output = T>,
) -> Option<T> {
    let mut first = std::pin::pin!(first.fuse());
    let mut timeout = ground.sleep(how_long).fuse();
    futures::select_biased! {
        value = first => Some(value),
        () = timeout => None,
    }
}

/// Tracks spawned tasks: tells when all have ended, and whether any panicked.
pub(crate) struct Crew {
    ground: Arc<dyn Ground>,
    working: flume::Sender<()>,
    fell: Arc<AtomicBool>,
}

/// Guard held by every running task.
struct AtWork {
    _working: flume::Sender<()>,
    fell: Arc<AtomicBool>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fell.store(true, Ordering::Release);
        }
    }
}

/// A handle on a crew's tasks, for others.
#[derive(Clone)]
pub(crate) struct Work {
    /// Closes when the last task has ended.
    pub(crate) working: flume::Receiver<()>,
    fell: Arc<AtomicBool>,
}

impl Crew {
    pub(crate) fn new(ground: Arc<dyn Ground>) -> (Self, Work) {
        let (working, seen) = flume::bounded(1);
        let fell = Arc::new(AtomicBool::new(false));
        (Self { ground, working, fell: fell.clone() }, Work { working: seen, fell })
    }

    pub(crate) fn thread(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let at_work = AtWork { _working: self.working.clone(), fell: self.fell.clone() };
        let until_done = async move {
            let _at_work = at_work;
            work.await;
        };
        self.ground.thread(name, until_done.boxed());
    }
}

impl Work {
    /// Waits until all tasks have ended; false if one panicked.
    pub(crate) async fn ended(self) -> bool {
        let _closed = self.working.recv_async().await;
        !self.fell.load(Ordering::Acquire)
    }
}
