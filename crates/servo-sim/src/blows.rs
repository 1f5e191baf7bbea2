//! Injects faults into a workspace: nodes die, pause and lose track of time, workers die and are partitioned.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::faults::Fault;
use crate::scenario::{Blow, Crew};
use crate::site::Site;
use crate::strangers;
use crate::worker::Worker;

/// Workers that are restarted when they die.
#[derive(Clone)]
pub struct Workers(Arc<Mutex<Vec<(Worker, u32, u32)>>>);

impl Workers {
    /// Starts the workers of a workspace.
    pub fn start(site: &Site) -> Self {
        let count = if site.scenario.crew == Crew::Remote { site.scenario.workers } else { 0 };
        let start = |number| {
            let (worker, process) = Worker::start(site, &format!("worker-{number}.1"));
            (worker, process, 1)
        };
        Self(Arc::new(Mutex::new((0..count).map(start).collect())))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Worker, u32, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn crash(&self, site: &Site, number: usize) {
        let Some((_, process, starts)) = self.lock().get(number).cloned() else { return };
        site.faults.count(Fault::WorkerCrash);
        site.world.kill(process);
        let (worker, process) = Worker::start(site, &format!("worker-{number}.{}", starts + 1));
        self.lock()[number] = (worker, process, starts + 1);
    }

    fn cut_off(&self, site: &Site, number: usize, length: u64, fault: Fault) {
        let Some((worker, ..)) = self.lock().get(number).cloned() else { return };
        worker.cut_off(Some(fault));
        site.faults.later(site.lane, length, move || worker.cut_off(None));
    }

    /// Heals short partitions. Workers cut off for days stay so: that makes them zombies. One more worker is started to
    /// do the work.
    pub fn heal(&self, site: &Site) {
        if !self.lock().is_empty() {
            let (worker, process) = Worker::start(site, "worker-fresh");
            self.lock().push((worker, process, 1));
        }
    }
}

/// Applies a scheduled fault.
pub fn strike(site: &Site, workers: &Workers, blow: &Blow) {
    site.world.note("blow", || format!("{blow:?}"));
    match *blow {
        Blow::Crash { node, turns, pause } => site.crash_after(node, turns, pause),
        Blow::PowerLoss { pause } => site.lose_power(pause),
        Blow::Freeze { node, length } => site.freeze(node, length),
        Blow::Slow(length) => site.bucket.slow_down(site.lane, length),
        Blow::Storm(length) => site.bucket.storm(site.lane, length),
        Blow::Outage(length) => site.bucket.outage(site.lane, length),
        Blow::Clock { node, error, fault } => site.set_clock(node, error, fault),
        Blow::WorkerCrash(worker) => workers.crash(site, worker),
        Blow::CutOff { worker, length, fault } => workers.cut_off(site, worker, length, fault),
        Blow::NewEvents => site.aside("new version", strangers::new_version(site.clone())),
        Blow::SlowReader => site.aside("reader", strangers::slow_reader(site.clone())),
    }
}
