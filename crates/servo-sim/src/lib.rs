//! The whole system in one thread, driven by one number.
//!
//! **Owns** a simulated clock, store, disk, queue, network and workers, and the world in which the real engine,
//! runtime, log, projections and recovery run on them; an independent [`model`] of what should come of it; and the
//! campaigns that run many seeds and look for mistakes that were planted. **Refuses** to ship: nothing depends on it.
//! **Guarantees** that the same seed gives the same history, to the byte.
//!
//! A [`scenario`] is what a seed stands for. [`seed::run`] makes a [`world`], lets people ask for runs at a [`site`]
//! while [`faults`] strike, heals everything, and has the result judged. [`campaign::campaign`] does that many times;
//! [`shrink`] cuts a scenario that failed down to what matters.

pub mod audit;
pub mod blows;
pub mod booked_blobs;
pub mod booked_log;
pub mod bucket;
pub mod campaign;
pub mod dice;
pub mod disk;
pub mod faults;
pub mod graphs;
pub mod judge;
pub mod machine;
pub mod mail;
pub mod model;
pub mod people;
pub mod scenario;
pub mod seed;
pub mod shrink;
pub mod site;
pub mod strangers;
pub mod worker;
pub mod world;

/// A quarter of a seed's time would otherwise go into allocation.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;
