//! Invariants of a state. Pure: they read, and say what is wrong.
//!
//! [`check`] looks at every row, [`check_totals`] at the tasks of active runs alone, [`check_at_rest`] at what is left
//! when there is nothing to do, [`absorbs`] at what two moments of the same workspace have in common.

mod absorb;
mod data;
mod runs;
#[cfg(test)]
mod tests;
mod totals;

pub use absorb::absorbs;
pub use totals::{check_at_rest, check_totals};

use std::fmt;

use crate::state::State;

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: &'static str,
    /// The observation that violates it.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.seen)
    }
}

impl std::error::Error for Violation {}

/// Refuses unless `holds`; words are only made for what is wrong.
fn ensure(holds: bool, invariant: &'static str, seen: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { invariant, seen: seen() }) }
}

/// Refuses unless both are the same.
fn same<T: PartialEq + fmt::Debug>(
    invariant: &'static str,
    about: impl FnOnce() -> String,
    found: T,
    expected: T,
) -> Result<(), Violation> {
    ensure(found == expected, invariant, || format!("{}: {found:?} instead of {expected:?}", about()))
}

/// Checks the invariants that hold after every batch.
pub fn check(state: &State) -> Result<(), Violation> {
    check_totals(state)?;
    for run in state.runs() {
        runs::check(run)?;
    }
    totals::check_deadlines(state)?;
    data::check(state)
}
