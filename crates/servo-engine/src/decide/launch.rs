//! Runs that controllers request: planned and decided like those that people ask for.

use std::sync::Arc;

use servo_core::Timestamp;

use super::{Answer, trigger};
use crate::command::{Reply, StoredRunKey, TriggerRun};
use crate::event::{EventData, RequestedRun};
use crate::planner::PlanningError;
use crate::refusal::Refusal;
use crate::requests::{RequestError, RunRequest, prepare};
use crate::state::State;

/// A run that can be requested.
pub(crate) struct Requested {
    pub(crate) run: RequestedRun,
    /// The request, with the partitions that were chosen for it.
    pub(crate) request: RunRequest,
    /// None if the same request was made before.
    pub(crate) events: Vec<EventData>,
}

/// Why a request becomes no run.
pub(crate) enum NoRun {
    /// Nothing of what it is about is to be made.
    NothingToMake(String),
    /// It cannot be planned, or is refused.
    Problem(String),
}

impl NoRun {
    pub(crate) fn into_reason(self) -> String {
        match self {
            NoRun::NothingToMake(reason) | NoRun::Problem(reason) => reason,
        }
    }
}

impl From<RequestError> for NoRun {
    fn from(error: RequestError) -> Self {
        match &error {
            RequestError::Planning(planning) => match planning.nothing_to_make() {
                Some(reason) => NoRun::NothingToMake(reason),
                None => NoRun::Problem(error.to_string()),
            },
            RequestError::Selection(_)
            | RequestError::NothingDeployed
            | RequestError::StillRunning { .. }
            | RequestError::NothingToRetry { .. }
            | RequestError::Backfill(_)
            | RequestError::Partitions(_)
            | RequestError::UnknownAsset { .. }
            | RequestError::BackfillActive { .. }
            | RequestError::NothingFailed { .. } => NoRun::Problem(error.to_string()),
        }
    }
}

/// Requests a run, with partitions as they are at a time. If assets have partitions and none are asked for, the newest
/// complete one of each is; why not if that cannot be. `stored` is what the tables say about a key that others may have
/// used before.
pub(crate) fn request_run(
    state: &State,
    secret: &[u8],
    run_key: Arc<str>,
    request: RunRequest,
    stored: Option<StoredRunKey>,
    at: Timestamp,
    now: Timestamp,
) -> Result<Requested, NoRun> {
    let (prepared, request) =
        newest(request, |request| prepare(state, secret, run_key.clone(), request.clone(), at));
    let command: TriggerRun = prepared?;
    let launched = launch_with(state, secret, command, stored, now);
    let (run, events) = launched.map_err(|refusal| NoRun::Problem(refusal.to_string()))?;
    Ok(Requested { run, request, events })
}

/// Plans a request; if assets have partitions and none are asked for, of the newest complete one. The request that was
/// planned is given too.
pub(super) fn newest<T>(
    mut request: RunRequest,
    plan: impl Fn(&RunRequest) -> Result<T, RequestError>,
) -> (Result<T, RequestError>, RunRequest) {
    let mut planned = plan(&request);
    let needs_partition =
        matches!(&planned, Err(RequestError::Planning(PlanningError::NeedsPartition { .. })));
    if needs_partition && request.partitions.is_empty() {
        request.partitions.latest = true;
        planned = plan(&request);
    }
    (planned, request)
}

/// Requests a run that is planned. No events if the same request was made before.
pub(crate) fn launch(
    state: &State,
    secret: &[u8],
    command: TriggerRun,
    now: Timestamp,
) -> Result<(RequestedRun, Vec<EventData>), Refusal> {
    launch_with(state, secret, command, None, now)
}

fn launch_with(
    state: &State,
    secret: &[u8],
    mut command: TriggerRun,
    stored: Option<StoredRunKey>,
    now: Timestamp,
) -> Result<(RequestedRun, Vec<EventData>), Refusal> {
    command.stored_key = stored.unwrap_or_else(|| StoredRunKey {
        fingerprint: None,
        // Controllers make each request once, so that no older run has a key of theirs.
        through: state.run_keys.in_files(),
    });
    let decision = trigger(state, secret, &command, now);
    let run_id = match decision.answer {
        Answer::NewRun(run_id) => run_id,
        Answer::Now(Ok(Reply::Run(reply))) => reply.run_id,
        Answer::Now(Err(refusal)) => return Err(refusal),
        Answer::Now(Ok(_))
        | Answer::Change
        | Answer::Finish
        | Answer::Partitions(..)
        | Answer::NewBackfill(_) => {
            unreachable!("a request for a run is answered with a run")
        }
    };
    let run = RequestedRun {
        run_key: command.run_key.clone(),
        run_id,
        request_fingerprint: command.fingerprint().clone(),
    };
    Ok((run, decision.events))
}
