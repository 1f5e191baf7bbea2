//! Work that its message only refers to: it is fetched when the attempt has begun (ADR-310).

use servo_engine::{ErrorCode, TaskError};
use servo_queue::Envelope;

use super::Executor;

/// Why an attempt has no work.
pub(super) enum Unfetched {
    /// The attempt is not this worker's any more.
    Refused,
    /// What is stored is not what the message refers to. Only this attempt fails.
    Unusable(TaskError),
}

impl Executor {
    /// Puts the work into a message that refers to it.
    pub(super) async fn fetch_work(&self, envelope: &mut Envelope) -> Result<(), Unfetched> {
        let Some(wanted) = envelope.work_ref.clone() else { return Ok(()) };
        let credential = envelope.credential();
        let ask = || self.callbacks.work(&credential, &self.worker, &wanted);
        let fetched = self.retry_until_heard(envelope.attempt_id, ask).await.map_err(|error| {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "worker was refused the work of a task");
            Unfetched::Refused
        })?;
        let problem = match fetched {
            Some(fetched) => match envelope.attach_work(fetched) {
                Ok(()) => return Ok(()),
                Err(error) => error.to_string(),
            },
            None => "it is not there".to_owned(),
        };
        let message = format!("the stored work {} of this attempt cannot be used: {problem}", wanted.sha256);
        Err(Unfetched::Unusable(TaskError::new(ErrorCode::InternalError, message)))
    }
}
