//! Stores and file systems that fail on purpose, for the tests of this crate and of others.

mod faulty_files;
mod flaky_store;
mod hooked_store;
mod memory_disk;
pub mod parsers;
mod wraps_blobs;

pub use faulty_files::{Fault, FaultyFiles, FileCall};
pub use flaky_store::{FlakyStore, StoreFault};
pub use hooked_store::{HookedStore, Request, RequestHook, RequestVerdict};
pub use memory_disk::{Hook, MemoryDisk, MemoryFiles, Operation, OperationKind, Verdict};
pub use wraps_blobs::WrapsBlobs;
