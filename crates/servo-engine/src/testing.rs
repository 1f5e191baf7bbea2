//! Invariants as functions: for the tests of this crate and for the simulation.

pub mod invariants;
pub mod tables;
