//! Starts runs that are asked for in the words of people. The engine plans and decides; what was planned on a state
//! that has changed meanwhile is planned again.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{BackfillId, EventId, RunId, Timestamp};
use servo_engine::requests::{
    self, BackfillPreview, BackfillRequest, EndedRun, PlannedRun, Retry, prepare_backfill, preview_backfill,
    retry_backfill,
};
use servo_engine::rows::{AnswerEntry, BackfillChunkRow};
use servo_engine::{
    BackfillReply, Caller, ChunkState, CreateBackfill, Refusal, RequestError, RunReply, RunRequest, State,
    TriggerRun,
};

use crate::error::Error;
use crate::workspace::Workspace;

/// How often a request is planned before its caller is told that the workspace changes too fast.
const MAX_PLANS: u32 = 5;

/// The plan of a request, without a run.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The plan.
    pub run: PlannedRun,
    /// Keys of dynamic partitions when it was made.
    pub dynamic: BTreeMap<String, Vec<String>>,
    /// When it was made.
    pub at: Timestamp,
}

/// A run that was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// The run.
    pub run_id: RunId,
    /// The event that recorded the request; none if the same request was made before.
    pub accepted: Option<EventId>,
    /// Number of tasks.
    pub tasks: usize,
}

/// A request for another try of a run.
#[derive(Debug, Clone, Default)]
pub struct RetryRequest {
    /// Only what did not succeed.
    pub from_failure: bool,
    /// Stable name of the new run; made up if absent.
    pub run_key: Option<Arc<str>>,
    /// Who asks.
    pub caller: Caller,
}

/// A request in the words of people, on a snapshot.
pub(crate) enum Asked<C> {
    /// It is new: the command that it means.
    First(C),
    /// It was carried out before, and is answered what it was answered then. What its words mean now does not matter.
    Again(AnswerEntry),
}

impl Workspace {
    /// Finds what a request means, unless it was answered before.
    pub(crate) async fn asked<C>(
        &self,
        caller: &Caller,
        prepare: impl FnOnce(&State) -> Result<C, Error>,
    ) -> Result<Asked<C>, Error> {
        self.read(|state| match state.answer_to(caller)? {
            Some(known) => Ok(Asked::Again(*known)),
            None => prepare(state).map(Asked::First),
        })
        .await?
    }

    /// Plans a request without running it. Changes nothing.
    pub async fn plan(&self, request: RunRequest) -> Result<Preview, Error> {
        let at = self.now();
        self.read(move |state| {
            let run = requests::plan(state, &request, at)?;
            Ok(Preview { run, dynamic: state.dynamic_partitions().clone(), at })
        })
        .await?
    }

    /// Plans and starts a run; answers when the request is durable. The same request under the same key is answered
    /// with the same run, whatever is deployed by then.
    pub async fn launch(&self, run_key: Option<Arc<str>>, request: RunRequest) -> Result<Launched, Error> {
        let run_key = run_key.unwrap_or_else(|| format!("manual:{}", self.new_id()).into());
        let mut plans = 1;
        loop {
            let (run_key, request) = (run_key.clone(), request.clone());
            let (secret, at) = (self.inner.secret.clone(), self.now());
            let asked = (run_key.clone(), request.clone());
            let prepared = self.read(move |state| requests::prepare(state, &secret, run_key, request, at));
            let command = match prepared.await? {
                Ok(command) => command,
                Err(error) => return self.repeat(asked, error).await,
            };
            match self.start(command).await {
                Err(Error::Refused(Refusal::StalePlan(stale))) if plans < MAX_PLANS => {
                    tracing::debug!(%stale, "run.plan is out of date, planned again");
                    plans += 1;
                }
                started => return started,
            }
        }
    }

    /// Answers a request that cannot be planned: with its run if it was made before, else with why.
    async fn repeat(&self, asked: (Arc<str>, RunRequest), error: RequestError) -> Result<Launched, Error> {
        match self.start(requests::unplanned(asked.0, asked.1)).await {
            Err(Error::Refused(Refusal::StalePlan(_))) => Err(error.into()),
            answered => answered,
        }
    }

    /// Retries an ended run, or only its tasks that did not succeed.
    pub async fn retry(&self, of: RunId, request: RetryRequest) -> Result<Launched, Error> {
        let ended = self.run(of).await?.ok_or(Refusal::UnknownRun { run_id: of })?;
        let RetryRequest { from_failure, run_key, caller } = request;
        let run_key = run_key.unwrap_or_else(|| format!("retry:{of}:{}", self.new_id()).into());
        let retry = Retry { of, from_failure, run_key, caller };
        let prepared = self.read(move |state| {
            let ended =
                EndedRun { run: &ended.run, tasks: &ended.tasks, edges: &ended.edges, sets: &ended.sets };
            requests::retry(state, ended, retry)
        });
        self.start(prepared.await??).await
    }

    /// Previews a backfill. Changes nothing.
    pub async fn preview_backfill(&self, request: BackfillRequest) -> Result<BackfillPreview, Error> {
        let at = self.now();
        Ok(self.read(move |state| preview_backfill(state, &request, at)).await??)
    }

    /// Accepts a backfill; answers when that is durable. The same request under the same id is the same backfill.
    pub async fn create_backfill(&self, request: BackfillRequest) -> Result<BackfillReply, Error> {
        let mut plans = 1;
        loop {
            let (caller, request, at) = (&request.caller, request.clone(), self.now());
            let command = match self.asked(caller, |state| Ok(prepare_backfill(state, request, at)?)).await? {
                Asked::First(command) => command,
                Asked::Again(known) => return self.created(caller, known).await,
            };
            match self.ask(command).await {
                Err(Error::Refused(Refusal::StalePlan(stale))) if plans < MAX_PLANS => {
                    tracing::debug!(%stale, "backfill.plan is out of date, planned again");
                    plans += 1;
                }
                answered => return answered,
            }
        }
    }

    /// Makes again, with another backfill, what one did not make.
    pub async fn retry_backfill(&self, of: BackfillId, caller: Caller) -> Result<BackfillReply, Error> {
        let has_failed = |row: &BackfillChunkRow| match row.state {
            ChunkState::Failed | ChunkState::Cancelled => true,
            ChunkState::Planned | ChunkState::Running | ChunkState::Succeeded => false,
        };
        let chunks = self.backfill_chunks(of, None, usize::MAX, has_failed).await?;
        let parent = self.backfill(of).await?.ok_or(Refusal::UnknownBackfill { backfill_id: of })?;
        let prepared = self.asked(&caller, |state| {
            // Of one that is at work, as it is now.
            let parent = state.backfill(of).unwrap_or(&parent);
            Ok(retry_backfill(state, parent, &chunks, caller.clone())?)
        });
        match prepared.await? {
            Asked::First(command) => self.ask::<CreateBackfill>(command).await,
            Asked::Again(known) => self.created(&caller, known).await,
        }
    }

    /// The backfill that a request was answered with.
    async fn created(&self, caller: &Caller, known: AnswerEntry) -> Result<BackfillReply, Error> {
        let created = match known.event_id {
            Some(event) => self.backfill_created_by(event).await?.map(|backfill| backfill.id),
            None => None,
        };
        // An answer without a backfill was given to a request of another kind.
        let request_id = caller.request_id.clone().unwrap_or_default();
        let backfill_id = created.ok_or(Refusal::RequestIdReused { request_id })?;
        Ok(BackfillReply { backfill_id, accepted: known.event_id })
    }

    async fn start(&self, command: TriggerRun) -> Result<Launched, Error> {
        let planned = command.plan.as_ref().map(|planned| planned.plan.tasks().len());
        let RunReply { run_id, accepted } = self.trigger(command).await?;
        let tasks = match planned.filter(|_| accepted.is_some()) {
            Some(tasks) => tasks,
            // Asked for before: the run has what was planned then.
            None => self.run_row(run_id).await?.map_or(0, |row| row.tasks_total as usize),
        };
        Ok(Launched { run_id, accepted, tasks })
    }
}
