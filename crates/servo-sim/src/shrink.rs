//! Shrinks a scenario that failed.

use std::fmt;

use crate::faults::FaultSet;
use crate::scenario::Scenario;
use crate::seed::{How, Outcome, run};

/// The parts to remove from the scenario of a seed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    /// Numbers of the user requests to leave out.
    pub requests: Vec<usize>,
    /// Numbers of the scheduled faults to leave out.
    pub scheduled_faults: Vec<usize>,
    /// The enabled faults, if not all of them.
    pub faults: Option<FaultSet>,
}

impl Cut {
    /// The remaining scenario.
    pub fn of(&self, scenario: &Scenario) -> Scenario {
        let mut left = scenario.clone();
        let keep = |gone: &[usize], number: usize| !gone.contains(&number);
        left.requests =
            numbered(&scenario.requests).filter(|(n, _)| keep(&self.requests, *n)).map(|(_, w)| w).collect();
        left.scheduled_faults = numbered(&scenario.scheduled_faults)
            .filter(|(n, _)| keep(&self.scheduled_faults, *n))
            .map(|(_, b)| b)
            .collect();
        left.faults = self.faults.unwrap_or(scenario.faults);
        left
    }
}

fn numbered<T: Clone>(of: &[T]) -> impl Iterator<Item = (usize, T)> {
    of.iter().cloned().enumerate()
}

impl fmt::Display for Cut {
    /// Formats the parts as arguments of `replay`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        if !self.requests.is_empty() {
            write!(f, " --without-requests {}", list(&self.requests))?;
        }
        if !self.scheduled_faults.is_empty() {
            write!(f, " --without-scheduled-faults {}", list(&self.scheduled_faults))?;
        }
        match self.faults {
            Some(faults) => write!(f, " --faults {}", faults.bits()),
            None => Ok(()),
        }
    }
}

/// Leaves out one part after the other while the seed still fails, at most `tries` times; returns the parts left out,
/// and the last failure.
pub fn shrink(failed: &Outcome, tries: usize) -> (Cut, Outcome) {
    let whole = Scenario::of(failed.seed);
    // Long stories are told whole: each try takes as long as they do.
    let tries = tries.min(usize::try_from(2_000_000 / failed.steps.max(1)).unwrap_or(0));
    let (mut cut, mut best, mut left) = (Cut::default(), failed.clone(), tries);
    loop {
        let candidates = smaller(&whole, &cut);
        let next = candidates.into_iter().find_map(|candidate| {
            left = left.checked_sub(1)?;
            // What takes longer than the whole is another story.
            let how = How { most_steps: Some(best.steps + 1_000), ..failed.how };
            let outcome = run(&candidate.of(&whole), how);
            let is_shorter = !outcome.wrong.is_empty() && outcome.steps <= best.steps;
            is_shorter.then_some((candidate, outcome))
        });
        match next {
            Some((smaller, outcome)) => (cut, best) = (smaller, outcome),
            None => return (cut, best),
        }
    }
}

fn smaller(whole: &Scenario, cut: &Cut) -> Vec<Cut> {
    let mut candidates = Vec::new();
    for number in (0..whole.scheduled_faults.len()).filter(|number| !cut.scheduled_faults.contains(number)) {
        let mut next = cut.clone();
        next.scheduled_faults.push(number);
        candidates.push(next);
    }
    for number in (0..whole.requests.len()).filter(|number| !cut.requests.contains(number)) {
        let mut next = cut.clone();
        next.requests.push(number);
        candidates.push(next);
    }
    let faults = cut.faults.unwrap_or(whole.faults);
    for fault in faults.iter() {
        candidates.push(Cut { faults: Some(faults.without(fault)), ..cut.clone() });
    }
    candidates
}
