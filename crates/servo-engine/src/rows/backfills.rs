//! Tables `backfills` and `backfill_chunks`.

use std::sync::Arc;

use servo_core::{AssetKey, BackfillId, EventId, PartitionKey, RunId, TaskKey, Timestamp};

use super::Json;
use super::table::table;
use crate::event::{BackfillCreated, KeyRange};
use crate::lifecycle::{BackfillState, ChunkState};
use crate::planner::PartitionChoice;
use crate::principal::Principal;

table! {
    /// One row per backfill.
    "backfills" => BackfillRow {
        key (backfill_id: BackfillId),
        sorted by created_event_id,
        at |row| row.created_at,
        facet state,
        lookup backfill_id,
    }
    columns {
        backfill_id: BackfillId, unique;
        client_request_id: Option<String>, unique;
        asset_selection: String;
        /// The partitions, as they were asked for.
        partition_selector: Json<PartitionChoice>;
        chunk_size: u32;
        max_concurrent_runs: u32;
        state: BackfillState;
        /// Counts changes of the state.
        state_version: u64;
        /// Why it has this state.
        reason: Option<String>;
        total_partitions: u64;
        total_chunks: u64;
        planned_chunks: u32;
        completed_chunks: u32;
        failed_chunks: u32;
        planned_partitions: u64;
        completed_partitions: u64;
        failed_partitions: u64;
        /// Partitions that were not attempted because something before them failed.
        skipped_partitions: u64;
        /// Partitions that were not made because their run was stopped.
        cancelled_partitions: u64;
        parent_backfill_id: Option<BackfillId>;
        created_by: Principal;
        created_at: Timestamp;
        started_at: Option<Timestamp>;
        completed_at: Option<Timestamp>;
        /// The request as it was accepted, with the partitions of each asset.
        definition: Json<Arc<BackfillCreated>>, unique;
        /// The asset of the last chunk.
        cursor_asset: Option<AssetKey>;
        /// The last partition of the last chunk.
        cursor_partition: Option<PartitionKey>;
        created_event_id: EventId, unique;
        row_version: EventId, unique;
    }
}

table! {
    /// One row per chunk of a backfill that was planned.
    "backfill_chunks" => BackfillChunkRow {
        key (chunk_id: String),
        sorted by planned_event_id,
        at |row| row.planned_at,
        facet state,
        lookup backfill_id,
    }
    columns {
        chunk_id: String, unique;
        backfill_id: BackfillId;
        chunk_index: u32;
        /// The asset whose partitions make the chunk.
        asset_key: AssetKey;
        /// Those partitions, as ranges.
        partition_keys: Json<Vec<KeyRange>>;
        /// How many partitions of all assets its run makes.
        partitions: u64;
        run_key: String, unique;
        run_id: RunId, unique;
        state: ChunkState;
        completed_partitions: u64;
        failed_partitions: u64;
        skipped_partitions: u64;
        cancelled_partitions: u64;
        /// Tasks of its run that did not succeed.
        failed_tasks: Json<Vec<TaskKey>>;
        planned_at: Timestamp;
        completed_at: Option<Timestamp>;
        planned_event_id: EventId, unique;
        row_version: EventId, unique;
    }
}
