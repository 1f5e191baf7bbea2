//! Injects faults into a workspace: nodes die, pause and lose track of time, workers die and are partitioned.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::foreign_writers;
use crate::scenario::{ScheduledFault, WorkerKind};
use crate::worker::Worker;

/// Workers that are restarted when they die.
#[derive(Clone)]
pub struct Workers(Arc<Mutex<Vec<Supervised>>>);

/// A worker, with what its supervisor needs to end it and to start it again.
struct Supervised {
    worker: Worker,
    process: u32,
    /// Tells an executor to end.
    end: Option<oneshot::Sender<()>>,
    starts: u32,
}

impl Supervised {
    fn start(cluster: &Cluster, name: &str, starts: u32) -> Self {
        let (worker, process, end) = Worker::start(cluster, name);
        Self { worker, process, end, starts }
    }
}

impl Workers {
    /// Starts the workers of a workspace.
    pub fn start(cluster: &Cluster) -> Self {
        let count =
            if cluster.scenario.worker_kind == WorkerKind::Remote { cluster.scenario.workers } else { 0 };
        let start = |number| Supervised::start(cluster, &format!("worker-{number}.1"), 1);
        Self(Arc::new(Mutex::new((0..count).map(start).collect())))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Supervised>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn crash(&self, cluster: &Cluster, number: usize) {
        let (process, end, starts) = match self.lock().get_mut(number) {
            Some(known) => (known.process, known.end.take(), known.starts + 1),
            None => return,
        };
        cluster.faults.count(Fault::WorkerCrash);
        match end {
            // One in three is asked to end, as by whoever brings new code, and does so beside its successor.
            Some(end) if cluster.world.roll(cluster.domain, |rng| rng.chance(333)) => drop(end.send(())),
            Some(_) | None => cluster.world.kill(process),
        }
        let known = Supervised::start(cluster, &format!("worker-{number}.{starts}"), starts);
        self.lock()[number] = known;
    }

    fn cut_off(&self, cluster: &Cluster, number: usize, length: u64, fault: Fault) {
        let Some(worker) = self.lock().get(number).map(|known| known.worker.clone()) else { return };
        worker.cut_off(Some(fault));
        cluster.faults.later(cluster.domain, length, move || worker.cut_off(None));
    }

    /// Heals short partitions. Workers cut off for days stay so: that makes them zombies. One more worker is started to
    /// do the work.
    pub fn heal(&self, cluster: &Cluster) {
        if !self.lock().is_empty() {
            let known = Supervised::start(cluster, "worker-fresh", 1);
            self.lock().push(known);
        }
    }
}

/// Applies a scheduled fault.
pub fn inject(cluster: &Cluster, workers: &Workers, fault: &ScheduledFault) {
    cluster.world.note("fault", || format!("{fault:?}"));
    match *fault {
        ScheduledFault::Crash { node, turns, pause } => cluster.crash_after(node, turns, pause),
        ScheduledFault::PowerLoss { pause } => cluster.lose_power(pause),
        ScheduledFault::Freeze { node, length } => cluster.freeze(node, length),
        ScheduledFault::Slow(length) => cluster.bucket.slow_down(cluster.domain, length),
        ScheduledFault::Throttling(length) => cluster.bucket.throttle(cluster.domain, length),
        ScheduledFault::Outage(length) => cluster.bucket.outage(cluster.domain, length),
        ScheduledFault::Clock { node, error, fault } => cluster.set_clock(node, error, fault),
        ScheduledFault::WorkerCrash(worker) => workers.crash(cluster, worker),
        ScheduledFault::CutOff { worker, length, fault } => workers.cut_off(cluster, worker, length, fault),
        ScheduledFault::SlowReader => {
            cluster.spawn_process("reader", foreign_writers::slow_reader(cluster.clone()))
        }
    }
}
