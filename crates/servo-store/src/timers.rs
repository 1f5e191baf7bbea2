//! Time that passes, as opposed to the time of day: how long something took, and waiting.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;

/// Measures and waits. Passed in, so that a simulation can let hours pass in no time.
pub trait Timers: fmt::Debug + Send + Sync + 'static {
    /// How long these timers have been running; never goes back.
    fn elapsed(&self) -> Duration;

    /// Ready once this much more time has passed.
    fn sleep(&self, how_long: Duration) -> BoxFuture<'static, ()>;
}

/// The timers of the tokio runtime that the waiting is done in.
#[derive(Debug, Clone, Copy)]
pub struct TokioTimers {
    since: Instant,
}

impl Default for TokioTimers {
    fn default() -> Self {
        Self { since: Instant::now() }
    }
}

impl Timers for TokioTimers {
    fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    fn sleep(&self, how_long: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(how_long).boxed()
    }
}

/// The result of `first`, or none if `how_long` passes before.
pub async fn within<T>(timers: &dyn Timers, how_long: Duration, first: impl Future<Output = T>) -> Option<T> {
    let mut first = pin!(first.fuse());
    let mut timeout = timers.sleep(how_long).fuse();
    futures::select_biased! {
        value = first => Some(value),
        () = timeout => None,
    }
}
