//! The whole system in one thread, driven by one number.
//!
//! **Owns** a simulated clock, store, disk, queue, network and workers, and the world in which the real engine,
//! runtime, log, projections and recovery run on them; an independent [`model`] of what should come of it; and the
//! campaigns that run many seeds and look for mistakes that were planted. **Refuses** to ship: nothing depends on it.
//! **Guarantees** that the same seed gives the same history, to the byte.
//!
//! A [`scenario`] is what a seed stands for. [`seed::run`] makes a [`world`], lets users ask for runs at a [`cluster`]
//! while [`faults`] are injected, heals everything, and has the result verified. [`campaign::campaign`] does that many
//! times; [`shrink`] cuts a scenario that failed down to what matters.

pub mod audit;
pub mod auditing_blobs;
pub mod auditing_log;
pub mod bucket;
pub mod campaign;
pub mod cluster;
pub mod declared;
pub mod disk;
pub mod evaluators;
pub mod fault_injector;
pub mod faults;
pub mod foreign_writers;
pub mod graphs;
pub mod machine;
pub mod model;
pub mod network;
pub mod notifier;
pub mod queue;
pub mod rng;
pub mod scenario;
pub mod seed;
pub mod shrink;
pub mod users;
pub mod verification;
pub mod worker;
pub mod world;

/// A quarter of a seed's time would otherwise go into allocation.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;
