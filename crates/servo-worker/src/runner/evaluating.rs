//! Evaluations: the function of a schedule or a sensor is called, and whatever it does there is an answer in time.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use servo_core::{RunId, TaskKey};
use servo_engine::evaluation::{
    Evaluation, EvaluationOutcome, EvaluationReport, EvaluationResult, MAX_ERROR, MAX_OUTPUT,
};
use tokio::time::sleep;

use super::Runner;
use super::frames::FrameError;
use super::protocol::{EvaluatedReply, Failure, Reply, Request};
use crate::logs::{LogLine, LogName, LogSink, LogTarget, LogWriter};

/// How much of what a function prints is looked at.
const MAX_CAPTURED: usize = 1 << 20;

/// The end of an evaluation.
pub(crate) struct EvaluationEnd {
    pub(crate) report: EvaluationReport,
    /// Whether the runner can be used again.
    pub(crate) is_usable: bool,
}

impl Runner {
    /// Calls the function of a schedule or a sensor. When this returns the call is over: it has returned or raised, its
    /// process has died, or it took too long and its process was ended.
    pub(crate) async fn evaluate(&mut self, evaluation: &Evaluation, grace: Duration) -> EvaluationEnd {
        self.tasks += 1;
        self.oom_kills.begin();
        let printed = Arc::new(Printed::default());
        let log = LogWriter::new(printed.clone(), nowhere(), self.clock.clone(), MAX_CAPTURED);
        self.capture.begin(log, false);
        let limit = Duration::from_millis(evaluation.timeout_ms.get());
        let spoken = {
            let exchange = pin!(self.exchange_evaluation(evaluation));
            tokio::select! {
                biased;
                spoken = exchange => Some(spoken),
                () = sleep(limit) => None,
            }
        };
        let (outcome, is_usable) = match spoken {
            Some(Ok(reply)) => {
                self.capture.marked(&evaluation.evaluation_id.to_string()).await;
                self.hear_of_wear().await;
                (outcome_of(reply), true)
            }
            Some(Err(error)) => {
                let error = self.diagnose_exit(error).await;
                (EvaluationOutcome::Failed(error.message), false)
            }
            None => {
                self.process.end(grace).await;
                self.capture.ended().await;
                let took =
                    format!("it took longer than {}; give it a longer timeout=", evaluation.timeout_ms);
                (EvaluationOutcome::Failed(took), false)
            }
        };
        if let Some(log) = self.capture.end() {
            log.end().await;
        }
        EvaluationEnd { report: EvaluationReport { outcome, output: printed.text() }, is_usable }
    }

    async fn exchange_evaluation(&mut self, evaluation: &Evaluation) -> Result<EvaluatedReply, FrameError> {
        self.frames.send(&Request::Evaluate { evaluation, mark: true }).await?;
        loop {
            match self.next().await? {
                Reply::Evaluated(reply) => return Ok(reply),
                Reply::Mask(mask) => self.capture.mask(mask.values),
                Reply::Log(said) => self.logged(said).await,
                Reply::Worn(worn) => self.worn = Some(worn.reason),
                Reply::Hello(_)
                | Reply::Loaded(_)
                | Reply::Scanned(_)
                | Reply::Progress(_)
                | Reply::Part(_)
                | Reply::Finished(_)
                | Reply::Unknown => {}
            }
        }
    }
}

fn outcome_of(reply: EvaluatedReply) -> EvaluationOutcome {
    match reply {
        EvaluatedReply { error: Some(failure), .. } => EvaluationOutcome::Failed(told(failure)),
        EvaluatedReply { result, error: None } => {
            let result: EvaluationResult = result.unwrap_or_default();
            EvaluationOutcome::Returned(result)
        }
    }
}

/// A failure in a few lines: what it is, what would help, and where it happened.
fn told(failure: Failure) -> String {
    let kind = failure.error_type.map(|kind| format!("{kind}: ")).unwrap_or_default();
    let advice = failure.suggested_action.map(|action| format!("; {action}")).unwrap_or_default();
    let mut text = format!("{kind}{}{advice}", failure.message);
    if let Some(traceback) = failure.traceback {
        text = format!("{text}\n{}", traceback.trim_end());
    }
    text.truncate(text.floor_char_boundary(MAX_ERROR));
    text
}

/// The lines of an evaluation, of which the last are kept.
#[derive(Default)]
struct Printed(Mutex<Vec<String>>);

impl Printed {
    fn text(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return None;
        }
        let text = lines.join("\n");
        let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_OUTPUT));
        Some(text[start..].to_owned())
    }
}

#[async_trait]
impl LogSink for Printed {
    async fn write(&self, _target: &LogTarget, lines: Vec<LogLine>) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(lines.into_iter().map(|line| line.text));
        Ok(())
    }

    async fn end(&self, _target: &LogTarget) {}
}

/// Lines of an evaluation belong to no attempt: they are part of its result.
fn nowhere() -> LogTarget {
    let task_key = TaskKey::parse("servo/evaluation:materialize").expect("a task key");
    LogTarget {
        name: LogName { run_id: RunId::from_u128(0), task_key, attempt: 1 },
        task_token: String::new(),
    }
}
