//! Requests for backfills: what is to be made is found on a snapshot and written down as ranges of keys, or packed if it
//! is scattered, however many partitions they are. Another backfill makes again what one did not make.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use servo_core::partitions::{Block, PartitionContext, PartitionSet};
use servo_core::selection::Selection;
use servo_core::{Fingerprint, Timestamp, fingerprint};

use super::estimate::{Estimate, estimate};
use super::plan::dynamic_partitions;
use super::{PlanBasis, RequestError};
use crate::chunks::{self, Chunks, Sets};
use crate::command::CreateBackfill;
use crate::controllers::backfills::context;
use crate::definitions::Definitions;
use crate::event::{BackfillTarget, FailureThreshold, KeyRange};
use crate::lifecycle::BackfillState;
use crate::planner::{self, PartitionChoice, PlanContext, PlanRequest};
use crate::principal::Caller;
use crate::rows::BackfillChunkRow;
use crate::state::{Backfill, State};

/// Partitions of one run unless said otherwise.
pub const DEFAULT_CHUNK_SIZE: u32 = 10;

/// Runs at once unless said otherwise.
pub const DEFAULT_CONCURRENT_RUNS: u32 = 2;

/// The most runs of one backfill at once.
const MAX_CONCURRENT_RUNS: u32 = 1_000;

/// A request for a backfill, as it was made.
#[derive(Debug, Clone)]
pub struct BackfillRequest {
    /// Which assets, as a selection.
    pub selection: String,
    /// Partitions of the assets.
    pub partitions: PartitionChoice,
    /// Most driving partitions of one run.
    pub chunk_size: u32,
    /// Most runs at once.
    pub max_concurrent_runs: u32,
    /// No chunk is planned after a failure.
    pub stop_on_failure: bool,
    /// No chunk is planned once more than this has failed.
    pub failure_threshold: Option<FailureThreshold>,
    /// Values of configuration fields as JSON texts.
    pub config: BTreeMap<String, String>,
    /// Priority of its runs.
    pub priority: i32,
    /// Labels of its runs.
    pub labels: BTreeMap<String, String>,
    /// Who asks.
    pub caller: Caller,
}

impl Default for BackfillRequest {
    fn default() -> Self {
        Self {
            selection: String::new(),
            partitions: PartitionChoice::default(),
            chunk_size: DEFAULT_CHUNK_SIZE,
            max_concurrent_runs: DEFAULT_CONCURRENT_RUNS,
            stop_on_failure: false,
            failure_threshold: None,
            config: BTreeMap::new(),
            priority: 0,
            labels: BTreeMap::new(),
            caller: Caller::default(),
        }
    }
}

/// A backfill as it would be accepted.
#[derive(Debug, Clone)]
pub struct BackfillPreview {
    /// The partitions of each asset.
    pub targets: Vec<BackfillTarget>,
    /// How many of all assets together.
    pub total_partitions: u64,
    /// How many chunks they make; each is a run.
    pub total_chunks: u64,
    /// The driving partitions of the first chunk.
    pub first_chunk: Vec<KeyRange>,
    /// Tasks of the first run.
    pub first_run_tasks: usize,
    /// How long it takes, if something is known of the past.
    pub estimate: Option<Estimate>,
}

/// Everything that makes two requests for a backfill the same. Who asks and when is not part of it.
#[derive(Serialize)]
struct Normalized<'a> {
    spec_version: u8,
    selection: &'a str,
    partitions: &'a PartitionChoice,
    targets: Option<&'a [BackfillTarget]>,
    chunk_size: u32,
    max_concurrent_runs: u32,
    stop_on_failure: bool,
    failure_threshold: Option<FailureThreshold>,
    config: &'a BTreeMap<String, String>,
    priority: i32,
    labels: &'a BTreeMap<String, String>,
}

impl BackfillRequest {
    /// Hash of what was asked for.
    ///
    /// # Panics
    /// Never: integers and strings always have a canonical form.
    pub(crate) fn fingerprint(&self, targets: Option<&[BackfillTarget]>) -> Fingerprint {
        fingerprint(&Normalized {
            spec_version: 1,
            selection: self.selection.trim(),
            partitions: &self.partitions,
            targets,
            chunk_size: self.chunk_size,
            max_concurrent_runs: self.max_concurrent_runs,
            stop_on_failure: self.stop_on_failure,
            failure_threshold: self.failure_threshold,
            config: &self.config,
            priority: self.priority,
            labels: &self.labels,
        })
        .expect("integers and strings have a canonical form")
    }

    fn check(&self, state: &State) -> Result<(), RequestError> {
        let most = state.settings().max_tasks_per_run;
        let wrong = |problem: String| Err(RequestError::Backfill(problem));
        if !(1..=most).contains(&self.chunk_size) {
            return wrong(format!("chunk size {} is not between 1 and {most}", self.chunk_size));
        }
        if !(1..=MAX_CONCURRENT_RUNS).contains(&self.max_concurrent_runs) {
            let runs = self.max_concurrent_runs;
            return wrong(format!("{runs} concurrent runs are not between 1 and {MAX_CONCURRENT_RUNS}"));
        }
        if matches!(self.failure_threshold, Some(FailureThreshold::Percent(101..))) {
            return wrong("the failure threshold is at most 100%".to_owned());
        }
        Ok(())
    }
}

/// Previews a backfill. Changes nothing.
pub fn preview_backfill(
    state: &State,
    request: &BackfillRequest,
    at: Timestamp,
) -> Result<BackfillPreview, RequestError> {
    request.check(state)?;
    let definitions = deployed(state)?;
    let moment = PartitionContext::new(at, state.dynamic_partitions());
    let targets = asked(state, &definitions, request, moment)?;
    look(state, &definitions, request, targets, moment)
}

/// The command that starts a backfill.
pub fn prepare_backfill(
    state: &State,
    request: BackfillRequest,
    at: Timestamp,
) -> Result<CreateBackfill, RequestError> {
    let preview = preview_backfill(state, &request, at)?;
    let fingerprint = request.fingerprint(None);
    Ok(CreateBackfill {
        basis: basis(state, &preview)?,
        request,
        parent: None,
        preview,
        fingerprint,
        as_of: at,
    })
}

/// The command that makes again what a backfill did not make: what failed, was skipped or stopped, and of one that
/// ended early what it never came to. `chunks` are those of its chunks that did not succeed.
pub fn retry_backfill(
    state: &State,
    parent: &Backfill,
    chunks: &[BackfillChunkRow],
    caller: Caller,
) -> Result<CreateBackfill, RequestError> {
    let backfill_id = parent.id;
    if !parent.state.is_terminal() && parent.state != BackfillState::Paused {
        return Err(RequestError::BackfillActive { backfill_id });
    }
    if !parent.active.is_empty() {
        return Err(RequestError::BackfillActive { backfill_id });
    }
    let definition = &parent.definition;
    let definitions = deployed(state)?;
    let moment = context(state, parent);
    let wrong = RequestError::Backfill;
    let all = chunks::read(&definitions, &definition.targets, moment).map_err(wrong)?;
    let mut targets = not_made(&definitions, chunks, moment);
    if parent.state == BackfillState::Failed {
        let rest = Chunks::new(&definitions, all, moment).remaining(parent.cursor.as_ref()).map_err(wrong)?;
        for (asset, set) in rest {
            let known = targets.entry(asset).or_default();
            *known = known.union(&set);
        }
    }
    targets.retain(|_, set| !set.is_empty());
    if targets.is_empty() {
        return Err(RequestError::NothingFailed { backfill_id });
    }
    let request = BackfillRequest {
        selection: definition.asset_selection.clone(),
        partitions: PartitionChoice { failed: true, ..PartitionChoice::default() },
        chunk_size: definition.chunk_size,
        max_concurrent_runs: definition.max_concurrent_runs,
        stop_on_failure: definition.stop_on_failure,
        failure_threshold: definition.failure_threshold,
        config: definition.config.clone(),
        priority: definition.priority,
        labels: definition.labels.clone(),
        caller,
    };
    let preview = look(state, &definitions, &request, targets, moment)?;
    let fingerprint = request.fingerprint(Some(&preview.targets));
    let basis = basis(state, &preview)?;
    let as_of = definition.as_of;
    Ok(CreateBackfill { basis, request, parent: Some(backfill_id), preview, fingerprint, as_of })
}

/// The partitions of tasks that did not succeed.
fn not_made(definitions: &Definitions, chunks: &[BackfillChunkRow], at: PartitionContext<'_>) -> Sets {
    let mut blocks: BTreeMap<u32, Vec<Block>> = BTreeMap::new();
    for task in chunks.iter().flat_map(|chunk| &chunk.failed_tasks.0) {
        let Some(asset) = definitions.position(&task.asset()) else { continue };
        let block = match (&definitions.asset(asset).partitions, task.partition()) {
            (None, None) => Some(Block::new([])),
            (Some(partitions), Some(key)) => partitions.block_of(&key, at).ok(),
            (None, Some(_)) | (Some(_), None) => None,
        };
        // Outputs of one function are made together.
        for output in definitions.made_with(asset) {
            blocks.entry(output).or_default().extend(block.clone());
        }
    }
    blocks.into_iter().map(|(asset, blocks)| (asset, blocks.into_iter().collect())).collect()
}

fn deployed(state: &State) -> Result<Arc<Definitions>, RequestError> {
    let deployed = state.deployment().and_then(|_| state.checked_definitions());
    deployed.ok_or(RequestError::NothingDeployed)
}

fn asked(
    state: &State,
    definitions: &Definitions,
    request: &BackfillRequest,
    at: PartitionContext<'_>,
) -> Result<Sets, RequestError> {
    let selection = Selection::parse(&request.selection).map_err(RequestError::Selection)?;
    let wanted = PlanRequest {
        selection,
        operation: servo_core::Operation::Materialize,
        partitions: request.partitions.clone(),
        config: request.config.clone(),
        no_retry: false,
    };
    let targets = planner::targets(definitions, &wanted, &plan_context(state, at, u32::MAX))?;
    if targets.keys().all(|asset| definitions.asset(*asset).partitions.is_none()) {
        return Err(RequestError::Backfill(format!(
            "nothing that {} selects has partitions; make it with servo materialize",
            request.selection
        )));
    }
    Ok(targets)
}

fn plan_context<'a>(state: &'a State, at: PartitionContext<'a>, max_tasks: u32) -> PlanContext<'a> {
    PlanContext {
        tenant: state.tenant(),
        workspace: state.workspace(),
        at,
        materializations: state,
        max_tasks,
    }
}

/// Counts what is to be made, and plans the first chunk to see that it can be.
fn look(
    state: &State,
    definitions: &Definitions,
    request: &BackfillRequest,
    targets: Sets,
    at: PartitionContext<'_>,
) -> Result<BackfillPreview, RequestError> {
    let written = chunks::written(definitions, &targets, at);
    let at_once = u64::from(request.chunk_size).saturating_mul(u64::from(request.max_concurrent_runs));
    let estimate = estimate(state, definitions, &targets, at_once);
    let chunks = Chunks::new(definitions, targets, at);
    let count = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    let (total_partitions, total_chunks) =
        (count(chunks.partitions()), count(chunks.count(request.chunk_size)));
    if total_chunks > u64::from(u32::MAX) {
        return Err(RequestError::Backfill(format!(
            "{total_chunks} chunks are too many; make them larger or narrow the partitions"
        )));
    }
    let first = chunks.next(None, request.chunk_size).map_err(RequestError::Backfill)?;
    let first = first.ok_or_else(|| RequestError::Backfill("there is nothing to make".to_owned()))?;
    let context = plan_context(state, at, state.settings().max_tasks_per_run);
    let sets: BTreeMap<u32, PartitionSet> = first.sets;
    let planned = planner::plan_targets(definitions, sets, &request.config, &request.selection, &context)?;
    Ok(BackfillPreview {
        targets: written,
        total_partitions,
        total_chunks,
        first_chunk: first.partition_keys,
        first_run_tasks: planned.tasks.len(),
        estimate,
    })
}

fn basis(state: &State, preview: &BackfillPreview) -> Result<PlanBasis, RequestError> {
    let definitions = deployed(state)?;
    let positions: Vec<u32> =
        preview.targets.iter().filter_map(|target| definitions.position(&target.asset)).collect();
    let dynamic = dynamic_partitions(&definitions, positions.iter().copied(), state);
    Ok(PlanBasis { deployment: Some(state.definitions.number()), dynamic })
}
