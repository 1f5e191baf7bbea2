//! Many seeds, on all cores.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use servo_core::planted::Mistake;

use crate::faults::{Fault, FaultCounts};
use crate::scenario::Scenario;
use crate::seed::{How, Outcome, run};

/// One in so many seeds is run twice, to check determinism.
const TWICE: u64 = 100;

/// One in so many seeds is run again beside a second workspace, to check isolation.
const NEXT_DOOR: u64 = 100;

/// The results of many seeds.
#[derive(Debug, Default, Clone)]
pub struct Report {
    /// The number of seeds.
    pub seeds: u64,
    /// Total number of steps.
    pub steps: u64,
    /// How often each fault took effect.
    pub injected: FaultCounts,
    /// Seeds that were run twice.
    pub twice: u64,
    /// Seeds that were also run beside a second workspace.
    pub beside: u64,
    /// The failed seeds.
    pub failed: Vec<Outcome>,
}

impl Report {
    /// Faults that never took effect: the campaign says nothing about them.
    pub fn unused_faults(&self) -> Vec<Fault> {
        Fault::ALL.into_iter().filter(|fault| !self.injected.contains_key(fault)).collect()
    }
}

/// Runs seeds on `jobs` threads. Stops early after `enough` of them have failed. Calls `progress` after each.
pub fn campaign(
    seeds: Range<u64>,
    jobs: usize,
    enough: usize,
    progress: &(dyn Fn(&Outcome) + Sync),
) -> Report {
    let next = AtomicU64::new(seeds.start);
    let report = Mutex::new(Report::default());
    let over = AtomicBool::new(false);
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let outcome = run(&Scenario::of(seed), how(seed));
            progress(&outcome);
            let mut report = report.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            report.seeds += 1;
            report.steps += outcome.steps;
            report.twice += u64::from(outcome.how.twice);
            report.beside += u64::from(outcome.how.neighbour);
            for (fault, times) in &outcome.injected {
                *report.injected.entry(*fault).or_insert(0) += times;
            }
            if !outcome.wrong.is_empty() {
                report.failed.push(outcome);
                over.store(report.failed.len() >= enough, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut report = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report.failed.sort_by_key(|outcome| outcome.seed);
    report
}

/// How a seed is run in a campaign: now and then also twice, or beside a second workspace.
fn how(seed: u64) -> How {
    How { twice: seed.is_multiple_of(TWICE), neighbour: seed % NEXT_DOOR == 1, ..How::default() }
}

/// The first of `most` seeds that detects a planted mistake, its outcome, and how many seeds it took.
pub fn notice(mistake: Mistake, most: u64) -> Option<(u64, Outcome)> {
    // A world that takes long is given up for the next one: that proves nothing.
    let how = How { planted: Some(mistake), most_steps: Some(30_000), ..How::default() };
    (0..most).find_map(|seed| {
        let outcome = run(&Scenario::of(seed), how);
        (!outcome.wrong.is_empty() && outcome.ended).then_some((seed + 1, outcome))
    })
}
