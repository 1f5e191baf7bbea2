//! The conformance suite of every log, blob store and lease implementation.
//!
//! A test file says how to make a fresh storage, and gets one test per rule:
//! [`log_conformance!`](crate::log_conformance), [`blob_conformance!`](crate::blob_conformance).

mod blobs;
mod leases;
mod log;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use servo_core::{PutId, TenantId, WorkspaceId};

use crate::{Layout, Log, Record, Seq};

pub use blobs::{
    a_missing_blob_is_not_found, a_part_of_a_blob_is_read, blobs_are_listed_below_a_directory,
    creating_a_blob_twice_keeps_the_first, every_blob_rule, exactly_one_of_racing_creators_wins,
    names_outside_are_refused, replacing_a_blob_shows_the_new_value,
};
pub use leases::{
    a_holder_of_long_ago_does_not_go_on_behind_the_newest, a_lease_changes_hands_with_a_new_epoch,
    exactly_one_of_racing_parties_gets_the_lease, old_lease_records_are_deleted,
};
pub use log::{
    a_bad_payload_is_refused, a_big_batch_is_kept, a_deleted_number_cannot_come_back,
    a_lost_answer_is_recognized, a_newer_epoch_fences_an_older_one, a_number_is_given_once,
    an_empty_log_reads_as_empty, every_log_rule, exactly_one_of_racing_writers_wins_each_number,
    nothing_landed_is_tried_again, numbers_have_no_holes, reading_starts_anywhere,
    reopening_shows_what_was_acknowledged, the_boundary_survives_and_only_moves_up,
    unavailable_is_reported_and_the_same_record_lands_later,
};

/// Trouble that a storage may be able to make on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The next append lands, but its answer is lost.
    LostAnswer,
    /// The next append is told "already exists" although nothing landed.
    NothingLanded,
    /// The store does not answer until [`Storage::heal`].
    Unavailable,
}

/// One place where a log lies.
#[async_trait]
pub trait Storage: Send + Sync {
    /// A writer on it: as from another process, where the log allows several, and else the one that is open.
    async fn writer(&self) -> Arc<dyn Log>;

    /// Makes trouble; false if this storage cannot.
    fn trouble(&self, _trouble: Trouble) -> bool {
        false
    }

    /// Ends the trouble.
    fn heal(&self) {}
}

/// The workspace that tests use.
pub fn layout() -> Layout {
    let tenant: TenantId = "acme".parse().expect("a valid tenant");
    let workspace: WorkspaceId = "main".parse().expect("a valid workspace");
    Layout::new(tenant, workspace)
}

/// A batch of writer `writer`, the same each time.
pub fn batch(seq: Seq, writer: u64) -> Record {
    let payload = Bytes::from(format!(r#"[{{"seq":{seq},"writer":{writer},"text":"größer"}}]"#));
    Record { seq, epoch: 1, put_id: PutId::from_parts(writer, u128::from(seq)), payload }
}

/// Makes one test per rule of a log. `$fresh` is an async function that returns a new, empty [`Storage`].
#[macro_export]
macro_rules! log_conformance {
    ($fresh:path) => {
        $crate::log_conformance!($fresh;
            an_empty_log_reads_as_empty, numbers_have_no_holes, a_number_is_given_once, a_lost_answer_is_recognized,
            nothing_landed_is_tried_again, unavailable_is_reported_and_the_same_record_lands_later,
            a_newer_epoch_fences_an_older_one, a_bad_payload_is_refused, reopening_shows_what_was_acknowledged,
            reading_starts_anywhere, a_big_batch_is_kept, the_boundary_survives_and_only_moves_up,
            a_deleted_number_cannot_come_back, exactly_one_of_racing_writers_wins_each_number);
    };
    ($fresh:path; $($rule:ident),+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $rule() {
            $crate::conformance::$rule(&$fresh().await).await;
        })+
    };
}

/// Makes one test per rule of blobs, and of the leases on top of them. `$fresh` is an async function that
/// returns new, empty blobs and whatever must outlive them.
#[macro_export]
macro_rules! blob_conformance {
    ($fresh:path) => {
        $crate::blob_conformance!($fresh;
            a_missing_blob_is_not_found, creating_a_blob_twice_keeps_the_first, replacing_a_blob_shows_the_new_value,
            a_part_of_a_blob_is_read, blobs_are_listed_below_a_directory, names_outside_are_refused,
            exactly_one_of_racing_creators_wins, a_lease_changes_hands_with_a_new_epoch,
            exactly_one_of_racing_parties_gets_the_lease, old_lease_records_are_deleted,
            a_holder_of_long_ago_does_not_go_on_behind_the_newest);
    };
    ($fresh:path; $($rule:ident),+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $rule() {
            let (blobs, _keep) = $fresh().await;
            $crate::conformance::$rule(std::sync::Arc::new(blobs)).await;
        })+
    };
}
