//! The evaluator: takes evaluations, calls their functions, and reports what they returned.

use std::sync::Arc;
use std::time::Duration;

use servo_core::Backoff;
use servo_engine::evaluation::Evaluation;
use servo_queue::{CallbackError, EvaluationSource};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::runners::{MAX_EVALUATIONS, Runners};

const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(2);

/// Calls functions of schedules and sensors, each beside the others: one that hangs holds up nobody.
pub struct Evaluator {
    task: JoinHandle<()>,
}

impl Evaluator {
    /// Starts to take evaluations from `source`.
    pub fn start(source: Arc<dyn EvaluationSource>, runners: Runners) -> Self {
        Self { task: tokio::spawn(serve(source, runners)) }
    }

    /// Stops at once. What was being evaluated is asked for again by whoever runs the workspace next.
    pub async fn stop(self) {
        self.task.abort();
        let _cancelled = self.task.await;
    }
}

async fn serve(source: Arc<dyn EvaluationSource>, runners: Runners) {
    let places = Arc::new(Semaphore::new(MAX_EVALUATIONS));
    let mut backoff = backoff();
    // Dropped with this task, and their processes with them.
    let mut calls = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        while calls.try_join_next().is_some() {}
        match source.next_evaluation().await {
            Ok(Some(evaluation)) => {
                backoff.reset();
                let (source, runners) = (source.clone(), runners.clone());
                calls.spawn(async move {
                    let _place = place;
                    call(&*source, &runners, evaluation).await;
                });
            }
            Ok(None) => backoff.reset(),
            Err(error) => {
                tracing::debug!(%error, "no evaluation was received");
                sleep(backoff.next_delay()).await;
            }
        }
    }
}

async fn call(source: &dyn EvaluationSource, runners: &Runners, evaluation: Evaluation) {
    let report = runners.evaluate(&evaluation).await;
    let mut backoff = backoff();
    loop {
        match source.evaluated(&evaluation, report.clone()).await {
            Err(CallbackError::Transient(_)) => sleep(backoff.next_delay()).await,
            Err(error) => {
                tracing::warn!(%error, name = &*evaluation.name, "the result of an evaluation was refused");
                return;
            }
            Ok(()) => return,
        }
    }
}

fn backoff() -> Backoff {
    Backoff::new(FIRST_DELAY, LONGEST_DELAY, getrandom::u64().unwrap_or_default())
}
