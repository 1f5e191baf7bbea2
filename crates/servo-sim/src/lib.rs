//! The whole system in one thread, driven by one number.
//!
//! **Owns** a simulated clock, store, queue, network and workers, and the world in which the real engine, runtime, log,
//! projections and recovery run on them. **Refuses** to ship: nothing depends on it. **Guarantees** that the same
//! seed gives the same history, to the byte.

mod audit;
mod bucket;
mod dice;
mod disk;
pub mod faults;
mod graphs;
mod judge;
mod machine;
mod mail;
pub mod model;
mod people;
pub mod scenario;
pub mod seed;
mod site;
mod worker;
mod world;
