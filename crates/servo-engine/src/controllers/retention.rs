//! Retention of the log: what every kept projection already contains may go, if the workspace says so.
//!
//! By default nothing is deleted, because the log is the truth and projections can be rebuilt from it (P1). Which runs
//! leave memory is not decided here: that is a rule of the fold.

/// The lowest seq to keep, when there is something to delete.
///
/// `keep_batches` batches stay behind what the projections contain, whatever happens.
pub fn log_boundary(projected_seq: u64, boundary: u64, keep_batches: Option<u64>) -> Option<u64> {
    let keep_from = projected_seq.checked_sub(keep_batches?)?.saturating_add(1);
    (keep_from > boundary).then_some(keep_from)
}
