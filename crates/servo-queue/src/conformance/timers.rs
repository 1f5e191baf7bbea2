//! Time that passes when it is told to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use servo_store::Timers;
use tokio::sync::oneshot;

/// Timers that stand still until they are advanced. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ManualTimers(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    elapsed: Duration,
    sleeping: Vec<(Duration, oneshot::Sender<()>)>,
}

impl ManualTimers {
    /// Lets time pass, and wakes everybody whose time has come.
    pub fn advance(&self, by: Duration) {
        let mut inner = self.lock();
        inner.elapsed += by;
        let now = inner.elapsed;
        let due = inner.sleeping.extract_if(.., |(until, _)| *until <= now);
        due.for_each(|(_, sleeper)| drop(sleeper));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timers for ManualTimers {
    fn elapsed(&self) -> Duration {
        self.lock().elapsed
    }

    fn sleep(&self, how_long: Duration) -> BoxFuture<'static, ()> {
        let (sleeper, woken) = oneshot::channel();
        let mut inner = self.lock();
        let until = inner.elapsed + how_long;
        if !how_long.is_zero() {
            inner.sleeping.push((until, sleeper));
        }
        // It is woken by being dropped.
        woken.map(drop).boxed()
    }
}
