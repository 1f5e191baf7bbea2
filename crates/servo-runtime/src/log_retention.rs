//! Retention of the log: what the tables already contain may go, if the workspace says so.
//!
//! By default nothing is deleted, because the log is the truth and tables can be rebuilt from it (P1).

/// The lowest seq to keep, when there is something to delete.
///
/// `keep_batches` batches stay behind what the tables contain, whatever happens.
pub(crate) fn log_boundary(projected_seq: u64, boundary: u64, keep_batches: Option<u64>) -> Option<u64> {
    let keep_from = projected_seq.checked_sub(keep_batches?)?.saturating_add(1);
    (keep_from > boundary).then_some(keep_from)
}

#[cfg(test)]
mod tests {
    use super::log_boundary;

    #[test]
    fn nothing_leaves_the_log_unless_the_workspace_says_so() {
        assert_eq!(log_boundary(1_000_000, 0, None), None);
    }

    #[test]
    fn the_boundary_follows_the_projections_at_a_distance_and_never_goes_back() {
        for (projected, boundary, keep, expected) in [
            (100, 0, 10, Some(91)),
            (100, 91, 10, None),
            (101, 91, 10, Some(92)),
            (50, 91, 10, None),
            (100, 0, 0, Some(101)),
            (10, 0, 10, Some(1)),
            (10, 1, 10, None),
            (9, 0, 10, None),
            (0, 0, 0, Some(1)),
            (u64::MAX, 0, 0, Some(u64::MAX)),
        ] {
            assert_eq!(
                log_boundary(projected, boundary, Some(keep)),
                expected,
                "{projected} {boundary} {keep}"
            );
        }
    }

    #[test]
    fn asking_again_after_the_boundary_moved_wants_nothing() {
        let boundary = log_boundary(500, 3, Some(20)).expect("something to delete");
        assert_eq!(log_boundary(500, boundary, Some(20)), None);
    }
}
