//! The environment of a simulated process: an executor and a clock that may be wrong.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use servo_core::{Clock, Timestamp};
use servo_runtime::Spawner;
use servo_store::Timers;

use crate::world::{Domain, ProcessId, World, micros};

/// The simulation begins at this time: 2025-01-15.
pub const START: i64 = 1_736_899_200_000;

/// Or, in some seeds, at this one: 2025-10-26 00:50 UTC, ten minutes before clocks in Amsterdam are set back.
pub const START_AT_CHANGE: i64 = 1_761_439_800_000;

/// The true time, in milliseconds since 1970.
pub fn true_time(world: &World) -> i64 {
    world.start() + i64::try_from(world.now() / 1_000).unwrap_or(i64::MAX)
}

/// The clock of a machine: the true time plus an error.
#[derive(Clone)]
pub struct MachineClock {
    world: World,
    error: Arc<AtomicI64>,
}

impl MachineClock {
    /// A clock that is off by so many milliseconds.
    pub fn new(world: &World, error: i64) -> Self {
        Self { world: world.clone(), error: Arc::new(AtomicI64::new(error)) }
    }

    /// Changes the error, in milliseconds.
    pub fn set_error(&self, error: i64) {
        self.error.store(error, Ordering::Relaxed);
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(true_time(&self.world) + self.error.load(Ordering::Relaxed))
    }
}

/// The spawner of a simulated process: its tasks end with the process.
#[derive(Clone)]
pub struct ProcessSpawner {
    /// The world.
    pub world: World,
    /// Its domain.
    pub domain: Domain,
    /// The process.
    pub process: ProcessId,
}

impl fmt::Debug for ProcessSpawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSpawner").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Timers for ProcessSpawner {
    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.world.now())
    }

    fn sleep(&self, how_long: Duration) -> BoxFuture<'static, ()> {
        self.world.sleep(self.domain, micros(how_long)).boxed()
    }
}

impl Spawner for ProcessSpawner {
    fn thread(&self, name: &'static str, work: BoxFuture<'static, ()>) {
        self.world.spawn(self.process, name, work);
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.world.spawn(self.process, "spawned", work);
    }

    fn spin_time(&self) -> Duration {
        Duration::ZERO
    }
}
