//! Progress and results of rebuilds and verifications.

/// The phase of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Folding the log.
    Replaying,
    /// Comparing what was written with what was folded.
    Verifying,
    /// Publishing.
    Swapping,
}

/// How far a rebuild has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Last batch folded.
    pub through: u64,
    /// Last batch of the log, when it was last asked.
    pub of: u64,
    /// Batches that could not be decoded.
    pub errors: u64,
}

/// The result of a rebuild.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildReport {
    /// Revision of the manifest that swapped the new tables in.
    pub revision: u64,
    /// Last batch folded.
    pub through: u64,
    /// Batch from which an earlier rebuild was resumed; 0 if it started over.
    pub resumed_from: u64,
    /// Batches that could not be decoded and were skipped.
    pub errors: u64,
    /// The first of them, with the reason.
    pub error_samples: Vec<String>,
    /// Tries it took to swap.
    pub swap_tries: u32,
    /// Files deleted because no manifest names them.
    pub swept: u64,
    /// The new tables.
    pub tables: Vec<TableStatus>,
}

/// One table as the newest manifest has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStatus {
    /// Its name.
    pub table: String,
    /// Files in the base snapshot.
    pub base_files: u64,
    /// Files in deltas.
    pub l0_files: u64,
    /// Files of immutable rows, by level.
    pub history_files: Vec<(u32, u64)>,
    /// Rows in all of them, tombstones and superseded rows included.
    pub rows: u64,
    /// Bytes in all of them.
    pub bytes: u64,
    /// Last batch that is in them.
    pub last_seq: u64,
}
