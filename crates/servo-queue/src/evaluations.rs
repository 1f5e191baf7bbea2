//! Source of evaluations for workers: calls of functions of schedules and sensors, which are no tasks.

use async_trait::async_trait;
use servo_engine::evaluation::{Evaluation, EvaluationReport};

use crate::callbacks::CallbackError;

/// Gives evaluations to workers, and takes their results.
#[async_trait]
pub trait EvaluationSource: Send + Sync {
    /// The next evaluation. Waits for it, however long that takes; none if there was none for a while: ask again.
    async fn next_evaluation(&self) -> Result<Option<Evaluation>, CallbackError>;

    /// Reports the result of an evaluation. Safe to repeat; a result that nobody waits for any more changes nothing.
    async fn evaluated(&self, evaluation: &Evaluation, report: EvaluationReport)
    -> Result<(), CallbackError>;
}
