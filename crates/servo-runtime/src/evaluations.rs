//! Evaluations: calls of functions of schedules and sensors, handed to workers and taken back as results.
//!
//! A call that the engine asked for is in its state until it is answered or lost, so what is held here may be forgotten
//! with the process. A call that somebody asked for by hand is answered to them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use servo_core::{EvaluationId, RunId};
use servo_engine::evaluation::{Evaluated, Evaluation, EvaluationReport, Subject};
use servo_engine::{Change, EvaluatedByHand, PushMessage, Refusal, RunReply, StoredRunKey, TriggerSchedule};
use servo_queue::{CallbackError, EvaluationSource};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::spawner::within;
use crate::workspace::Workspace;

/// How long somebody who asks by hand waits for a worker to take the call.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// How much longer than the function may take, for its process to be started and stopped.
const GRACE: Duration = Duration::from_secs(30);

/// Calls between the engine, those who ask by hand, and workers.
pub(crate) struct Evaluations {
    waiting: flume::Sender<Evaluation>,
    queue: flume::Receiver<Evaluation>,
    by_hand: Mutex<BTreeMap<EvaluationId, ByHand>>,
    /// Calls that were offered and not answered. After a start a call may be found twice: as an effect of the first
    /// step, and among those that the state remembers.
    offered: Mutex<BTreeSet<EvaluationId>>,
}

/// Whoever asked for a call by hand.
struct ByHand {
    taken: Option<oneshot::Sender<()>>,
    answer: oneshot::Sender<EvaluationReport>,
}

impl Default for Evaluations {
    fn default() -> Self {
        let (waiting, queue) = flume::unbounded();
        Self { waiting, queue, by_hand: Mutex::default(), offered: Mutex::default() }
    }
}

impl Evaluations {
    /// Offers a call to workers, unless it was offered and is not answered yet.
    pub(crate) fn begin(&self, evaluation: Evaluation) {
        if self.offered().insert(evaluation.evaluation_id) {
            let _never_closed = self.waiting.send(evaluation);
        }
    }

    /// Tells whoever asked for a call by hand that a worker has it; whether anybody did.
    fn take(&self, id: EvaluationId) -> bool {
        let mut by_hand = self.lock();
        let asked = by_hand.get_mut(&id);
        if let Some(taken) = asked.and_then(|asked| asked.taken.take()) {
            let _gone = taken.send(());
            return true;
        }
        false
    }

    fn offered(&self) -> MutexGuard<'_, BTreeSet<EvaluationId>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<EvaluationId, ByHand>> {
        self.by_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspace {
    /// Tells a sensor something; returns when that is durable. `Duplicate` if the message came before.
    pub async fn push_message(&self, message: PushMessage) -> Result<Change, Error> {
        self.ask(message).await
    }

    /// Makes a tick of a schedule; returns when the tick and its runs are durable.
    pub async fn trigger_schedule(&self, mut request: TriggerSchedule) -> Result<RunReply, Error> {
        let name = request.schedule.clone();
        let id = self.read(move |state| state.schedule_id(&name)).await?;
        let chosen = request.evaluated.as_ref().zip(id);
        let chosen = chosen.map(|(result, id)| result.run_keys(Subject::Schedule(id)));
        loop {
            request.stored_keys = self.stored_keys(chosen.as_deref().unwrap_or_default()).await?;
            match self.ask(request.clone()).await {
                Err(Error::Refused(Refusal::StaleRunKey { .. })) => {}
                answered => return answered,
            }
        }
    }

    /// Takes over what came of a call by hand; returns when the record and its runs are durable.
    pub async fn evaluated_by_hand(
        &self,
        subject: Subject,
        mut result: EvaluatedByHand,
    ) -> Result<Change, Error> {
        let chosen = result.report.run_keys(subject);
        loop {
            result.stored_keys = self.stored_keys(&chosen).await?;
            match self.ask(result.clone()).await {
                Err(Error::Refused(Refusal::StaleRunKey { .. })) => {}
                answered => return answered,
            }
        }
    }

    /// Lets a worker make a call for whoever asks, and gives them the result. Nothing is recorded.
    ///
    /// # Errors
    /// No worker has taken the call for a while.
    pub async fn evaluate(&self, evaluation: Evaluation) -> Result<EvaluationReport, Error> {
        let (id, name) = (evaluation.evaluation_id, evaluation.name.clone());
        let longest = Duration::from_millis(evaluation.timeout_ms.get()).saturating_add(GRACE);
        let (taken, is_taken) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        self.inner.evaluations.lock().insert(id, ByHand { taken: Some(taken), answer });
        let _forget = Forget { workspace: self, id };
        self.inner.evaluations.begin(evaluation);
        let spawner = self.inner.spawner.as_ref();
        if within(spawner, MAX_WAIT, is_taken).await.is_none() {
            return Err(Error::NoEvaluator { name: name.to_string() });
        }
        match within(spawner, longest, answered).await {
            Some(Ok(report)) => Ok(report),
            Some(Err(_)) | None => Err(Error::NoEvaluator { name: name.to_string() }),
        }
    }

    /// An unused id of a call by hand.
    pub fn new_evaluation_id(&self) -> EvaluationId {
        EvaluationId::from_u128(self.new_id().to_u128())
    }

    async fn take_evaluation(&self) -> Result<Option<Evaluation>, Error> {
        loop {
            let Ok(evaluation) = self.inner.evaluations.queue.recv_async().await else { return Ok(None) };
            if !self.is_open() {
                return Err(Error::Stopped);
            }
            // One that was answered, lost or set aside meanwhile is not worth a call.
            let is_wanted = self.inner.evaluations.take(evaluation.evaluation_id)
                || self.snapshot().state().waits_for(&evaluation);
            if is_wanted {
                return Ok(Some(evaluation));
            }
            self.inner.evaluations.offered().remove(&evaluation.evaluation_id);
        }
    }

    async fn take_result(&self, evaluation: &Evaluation, report: EvaluationReport) -> Result<(), Error> {
        let id = evaluation.evaluation_id;
        // If the answer cannot be recorded, the call may be offered again.
        self.inner.evaluations.offered().remove(&id);
        if let Some(asked) = self.inner.evaluations.lock().remove(&id) {
            let _gone = asked.answer.send(report);
            return Ok(());
        }
        let chosen = report.run_keys(evaluation.subject);
        loop {
            let stored_keys = self.stored_keys(&chosen).await?;
            let (subject, report) = (evaluation.subject, report.clone());
            match self.ask(Evaluated { evaluation_id: id, subject, report, stored_keys }).await {
                Err(Error::Refused(Refusal::StaleRunKey { .. })) => {}
                answered => return answered,
            }
        }
    }

    /// Looks run keys up in the newest tables.
    async fn stored_keys(&self, keys: &[Arc<str>]) -> Result<BTreeMap<Arc<str>, StoredRunKey>, Error> {
        let layout = &self.inner.stores.layout;
        let mut found = BTreeMap::new();
        for key in keys {
            let run = RunId::derive(&self.inner.secret, layout.tenant(), layout.workspace(), key);
            found.insert(key.clone(), self.stored_key(run).await?);
        }
        Ok(found)
    }
}

/// Forgets who asked when they stop waiting.
struct Forget<'a> {
    workspace: &'a Workspace,
    id: EvaluationId,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.workspace.inner.evaluations.lock().remove(&self.id);
    }
}

#[async_trait]
impl EvaluationSource for Workspace {
    async fn next_evaluation(&self) -> Result<Option<Evaluation>, CallbackError> {
        Ok(self.take_evaluation().await?)
    }

    async fn evaluated(
        &self,
        evaluation: &Evaluation,
        report: EvaluationReport,
    ) -> Result<(), CallbackError> {
        Ok(self.take_result(evaluation, report).await?)
    }
}
