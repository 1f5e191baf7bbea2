//! Backfills and their chunks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_core::{AssetKey, BackfillId, MicroUsd, RunId, Timestamp};
use servo_engine::event::{self, FailureThreshold};
use servo_engine::requests::{BackfillRequest, DEFAULT_CHUNK_SIZE, DEFAULT_CONCURRENT_RUNS};
use servo_engine::rows::BackfillChunkRow;
use servo_engine::{BackfillState, Caller, Run, Task, TaskState};
use utoipa::ToSchema;

use super::requests::{Accepted, PartitionsBody};
use super::schedules::{texts, values};
use crate::extract::Asked;
use crate::problem::Problem;

/// Ranges of partitions that are shown of one asset.
const SHOWN_RANGES: usize = 100;

/// A backfill to preview or to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillBody {
    /// Selection of assets, as of a run.
    pub selection: String,
    /// Partitions of the assets.
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    /// Most driving partitions of one run; 10 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<u32>,
    /// Most runs at once; 2 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent_runs: Option<u32>,
    /// Plan no chunk after a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_on_failure: bool,
    /// Plan no chunk once more partitions than this have failed: `10%` or `25`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<String>,
    /// Values of configuration fields, by field or by `namespace.name:field`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, Value>,
    /// Priority of its runs; higher runs first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Labels of its runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The idempotency key, as an alternative to the header: the same key is the same backfill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

impl BackfillBody {
    /// The request that it stands for.
    pub(crate) fn request(self, caller: Caller) -> Result<BackfillRequest, Problem> {
        let threshold = self.failure_threshold.as_deref().map(FailureThreshold::parse).transpose();
        Ok(BackfillRequest {
            selection: self.selection,
            partitions: self.partitions.into(),
            chunk_size: self.chunk_size.unwrap_or(DEFAULT_CHUNK_SIZE),
            max_concurrent_runs: self.max_concurrent_runs.unwrap_or(DEFAULT_CONCURRENT_RUNS),
            stop_on_failure: self.stop_on_failure,
            failure_threshold: threshold.map_err(|problem| Problem::invalid("failure_threshold", problem))?,
            config: texts(&self.config),
            priority: self.priority,
            labels: self.labels,
            caller,
        })
    }
}

/// A change of a backfill: pause, resume or cancel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeBackfillBody {
    /// Only if its state has this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// The reason, for the log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// A request to make again what a backfill did not make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBackfillBody {
    /// The idempotency key, as an alternative to the header: the same key is the same backfill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_request_id: Option<String>,
}

impl Asked for BackfillBody {
    fn client_request_id(&self) -> Option<&str> {
        self.client_request_id.as_deref()
    }
}

impl Asked for ChangeBackfillBody {
    fn client_request_id(&self) -> Option<&str> {
        self.client_request_id.as_deref()
    }
}

impl Asked for RetryBackfillBody {
    fn client_request_id(&self) -> Option<&str> {
        self.retry_request_id.as_deref()
    }
}

/// A backfill as it would be accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct BackfillPreview {
    pub selection: String,
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    /// Partitions of all assets together.
    pub total_partitions: u64,
    /// Chunks; each is a run.
    pub total_chunks: u64,
    pub estimated_runs: u64,
    pub chunk_size: u32,
    pub max_concurrent_runs: u32,
    /// The driving partitions of the first chunk.
    pub first_chunk_partitions: Vec<String>,
    /// Tasks of the first run.
    pub first_run_tasks: u64,
    /// Time of all its tasks together, by those of the past; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_work_seconds: Option<f64>,
    /// Time until the last of them has ended, with as many at once as the request and the workers allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_seconds: Option<f64>,
    /// What all its tasks together cost, by those of the past, in millionths of a US dollar; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub estimated_cost_micro_usd: Option<MicroUsd>,
    pub targets: Vec<BackfillTarget>,
}

/// Partitions of one asset that a backfill makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct BackfillTarget {
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// Keys and ranges; none if the asset has no partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<String>,
    /// Ranges that are not shown.
    #[serde(default, skip_serializing_if = "is_none_more")]
    pub more: u64,
}

/// A backfill that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct AcceptedBackfill {
    #[schema(value_type = String)]
    pub backfill_id: BackfillId,
    pub selection: String,
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    pub total_partitions: u64,
    pub total_chunks: u64,
    /// The event, and its time.
    #[serde(flatten)]
    pub accepted: Accepted,
}

/// A backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Backfill {
    #[schema(value_type = String)]
    pub backfill_id: BackfillId,
    /// `PENDING`, `RUNNING`, `PAUSED`, `PAUSED_WITH_FAILURES`, `SUCCEEDED`, `FAILED` or `CANCELLED`.
    pub state: String,
    /// Counts changes of the state.
    pub state_version: u64,
    /// Whether nothing can change it any more.
    pub is_ended: bool,
    /// Why it has this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub selection: String,
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    pub chunk_size: u32,
    pub max_concurrent_runs: u32,
    pub total_partitions: u64,
    /// Partitions that were made.
    pub completed_partitions: u64,
    pub failed_partitions: u64,
    /// Partitions that were not attempted because something before them failed.
    pub skipped_partitions: u64,
    /// Partitions whose run was stopped.
    pub cancelled_partitions: u64,
    /// Partitions of chunks that are at work, and of those that are not planned yet.
    pub pending_partitions: u64,
    pub total_chunks: u64,
    pub planned_chunks: u32,
    pub completed_chunks: u32,
    pub failed_chunks: u32,
    /// Runs of chunks that have not ended.
    #[schema(value_type = Vec<String>)]
    pub active_runs: Vec<RunId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_on_failure: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, Value>,
    pub priority: i32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The backfill whose failures it makes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub parent_backfill_id: Option<BackfillId>,
    pub created_by: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// Partitions made in a second since it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions_per_second: Option<f64>,
    /// Seconds that the rest takes at that rate, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_seconds: Option<f64>,
    /// The partitions that it makes of each asset; absent in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<BackfillTarget>,
}

impl Backfill {
    /// A backfill as it is at a time, without what it makes.
    pub(crate) fn at(backfill: &servo_engine::Backfill, now: Timestamp) -> Self {
        let (definition, fared) = (&backfill.definition, backfill.fared);
        let ended = fared.completed + fared.not_made();
        let pending = definition.total_partitions.saturating_sub(ended);
        let until = backfill.completed_at.unwrap_or(now);
        let seconds = backfill.started_at.map(|from| until.since(from).get() as f64 / 1_000.0);
        let rate = seconds.filter(|seconds| *seconds > 0.0).map(|seconds| fared.completed as f64 / seconds);
        let is_running = backfill.state == BackfillState::Running;
        let remaining = rate.filter(|rate| is_running && *rate > 0.0).map(|rate| pending as f64 / rate);
        Self {
            backfill_id: backfill.id,
            state: backfill.display_state().to_owned(),
            state_version: backfill.state_version,
            is_ended: backfill.state.is_terminal(),
            reason: backfill.reason.clone(),
            selection: definition.asset_selection.clone(),
            partitions: definition.partition_selector.clone().into(),
            chunk_size: definition.chunk_size,
            max_concurrent_runs: definition.max_concurrent_runs,
            total_partitions: definition.total_partitions,
            completed_partitions: fared.completed,
            failed_partitions: fared.failed,
            skipped_partitions: fared.skipped,
            cancelled_partitions: fared.cancelled,
            pending_partitions: pending,
            total_chunks: definition.total_chunks,
            planned_chunks: backfill.planned_chunks,
            completed_chunks: backfill.completed_chunks,
            failed_chunks: backfill.failed_chunks,
            active_runs: backfill.active.keys().copied().collect(),
            stop_on_failure: definition.stop_on_failure,
            failure_threshold: definition.failure_threshold.map(|it| it.to_string()),
            config: values(&definition.config),
            priority: definition.priority,
            labels: definition.labels.clone(),
            parent_backfill_id: definition.parent_backfill_id,
            created_by: backfill.created_by.to_string(),
            created_at: backfill.created_at,
            started_at: backfill.started_at,
            completed_at: backfill.completed_at,
            partitions_per_second: rate,
            remaining_seconds: remaining,
            targets: Vec::new(),
        }
    }
}

impl From<&event::BackfillTarget> for BackfillTarget {
    fn from(target: &event::BackfillTarget) -> Self {
        let shown = target.partitions.iter().take(SHOWN_RANGES).map(ToString::to_string);
        Self {
            asset_key: target.asset.clone(),
            partitions: shown.collect(),
            more: target.ranges().saturating_sub(SHOWN_RANGES as u64),
        }
    }
}

impl BackfillPreview {
    /// The answer to a request for a preview.
    pub(crate) fn of(request: &BackfillRequest, found: &servo_engine::requests::BackfillPreview) -> Self {
        Self {
            selection: request.selection.clone(),
            partitions: request.partitions.clone().into(),
            total_partitions: found.total_partitions,
            total_chunks: found.total_chunks,
            estimated_runs: found.total_chunks,
            chunk_size: request.chunk_size,
            max_concurrent_runs: request.max_concurrent_runs,
            first_chunk_partitions: found.first_chunk.iter().map(ToString::to_string).collect(),
            first_run_tasks: found.first_run_tasks as u64,
            estimated_work_seconds: found.estimate.map(|it| it.work.get() as f64 / 1_000.0),
            estimated_seconds: found.estimate.map(|it| it.elapsed.get() as f64 / 1_000.0),
            estimated_cost_micro_usd: found.estimate.map(|it| it.cost),
            targets: found.targets.iter().map(BackfillTarget::from).collect(),
        }
    }
}

/// A chunk of a backfill: the partitions of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct BackfillChunk {
    pub chunk_id: String,
    #[schema(value_type = String)]
    pub backfill_id: BackfillId,
    pub chunk_index: u32,
    /// `PLANNED`, `RUNNING`, `SUCCEEDED`, `FAILED` or `CANCELLED`.
    pub state: String,
    /// The asset whose partitions make the chunk.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// Those partitions.
    pub partition_keys: Vec<String>,
    /// Partitions of all assets that its run makes.
    pub partitions: u64,
    pub completed_partitions: u64,
    pub failed_partitions: u64,
    pub skipped_partitions: u64,
    pub cancelled_partitions: u64,
    /// Partitions whose tasks run now; none once it has ended.
    #[serde(default)]
    pub running_partitions: u64,
    /// Tasks that did not succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_tasks: Vec<String>,
    /// While it is at work, its tasks and their states in the order of keys; none where a page has room for no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<ChunkTask>,
    pub run_key: String,
    #[schema(value_type = String)]
    pub run_id: RunId,
    #[schema(value_type = String, format = DateTime)]
    pub planned_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
}

/// A task of a chunk that is at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct ChunkTask {
    pub task_key: String,
    /// As that of a task.
    pub state: String,
}

impl BackfillChunk {
    /// A chunk at work with what has become of its partitions so far, by its run; its row counts them when it ends.
    /// Its tasks are listed if there are at most `room`, which they take.
    pub(crate) fn of_run(row: BackfillChunkRow, run: &Run, room: &mut usize) -> Self {
        let mut chunk = Self::from(row);
        for task in run.tasks.iter() {
            let partitions = 1 + task.options.outputs.len() as u64;
            let count = match task.state {
                TaskState::Succeeded => &mut chunk.completed_partitions,
                TaskState::Failed => &mut chunk.failed_partitions,
                TaskState::Skipped => &mut chunk.skipped_partitions,
                TaskState::Cancelled => &mut chunk.cancelled_partitions,
                TaskState::Running => &mut chunk.running_partitions,
                TaskState::Planned
                | TaskState::Blocked
                | TaskState::Ready
                | TaskState::Dispatched
                | TaskState::RetryWait => continue,
            };
            *count += partitions;
            if matches!(task.state, TaskState::Failed | TaskState::Skipped | TaskState::Cancelled) {
                chunk.failed_tasks.push(task.key.to_string());
            }
        }
        if let Some(rest) = room.checked_sub(run.tasks.len()) {
            *room = rest;
            let task =
                |task: &Task| ChunkTask { task_key: task.key.to_string(), state: task.state.to_string() };
            chunk.tasks = run.tasks.iter().map(task).collect();
        }
        chunk
    }
}

impl From<BackfillChunkRow> for BackfillChunk {
    fn from(row: BackfillChunkRow) -> Self {
        Self {
            chunk_id: row.chunk_id,
            backfill_id: row.backfill_id,
            chunk_index: row.chunk_index,
            state: row.state.to_string(),
            asset_key: row.asset_key,
            partition_keys: row.partition_keys.0.iter().map(ToString::to_string).collect(),
            partitions: row.partitions,
            completed_partitions: row.completed_partitions,
            failed_partitions: row.failed_partitions,
            skipped_partitions: row.skipped_partitions,
            cancelled_partitions: row.cancelled_partitions,
            running_partitions: 0,
            failed_tasks: row.failed_tasks.0.iter().map(ToString::to_string).collect(),
            tasks: Vec::new(),
            run_key: row.run_key,
            run_id: row.run_id,
            planned_at: row.planned_at,
            completed_at: row.completed_at,
        }
    }
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

fn is_none_more(more: &u64) -> bool {
    *more == 0
}
