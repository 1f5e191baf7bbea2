//! Tasks that are spawned together, waited for together, and aborted together.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::channel::oneshot;
use futures::future::{AbortHandle, Abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use servo_store::Spawner;

/// Tasks of a spawner. Dropping the set aborts them.
pub(super) struct TaskSet {
    spawner: Arc<dyn Spawner>,
    running: FuturesUnordered<Running>,
}

impl TaskSet {
    /// No tasks yet.
    pub(super) fn new(spawner: Arc<dyn Spawner>) -> Self {
        Self { spawner, running: FuturesUnordered::new() }
    }

    pub(super) fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let (abort, registration) = AbortHandle::new_pair();
        let (guard, ended) = oneshot::channel::<Infallible>();
        let until_done = async move {
            // Dropped last, also if the work panics: then it is gone with everything that it held.
            let _guard = guard;
            let _aborted = Abortable::new(work, registration).await;
        };
        self.spawner.spawn(until_done.boxed());
        self.running.push(Running { abort, ended });
    }

    /// Tasks whose end nobody has waited for.
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// Waits until one has ended; false if there is none left.
    pub(super) async fn next_end(&mut self) -> bool {
        self.running.next().await.is_some()
    }

    /// Waits until all have ended.
    pub(super) async fn ended(&mut self) {
        while self.next_end().await {}
    }

    /// Aborts all of them, and waits until they are gone.
    pub(super) async fn abort(&mut self) {
        self.running.iter().for_each(|task| task.abort.abort());
        self.ended().await;
    }
}

/// A task that has not ended, as far as anybody has looked.
struct Running {
    abort: AbortHandle,
    ended: oneshot::Receiver<Infallible>,
}

impl Future for Running {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Nothing is ever sent: the other end is dropped with the task.
        Pin::new(&mut self.ended).poll(context).map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.abort.abort();
    }
}
