//! Requests with an idempotency key are carried out once, and the same request again gets the same answer for a day.
//!
//! The engine records the answer in the batch of what the request changed (ADR-090), so it is known after a restart, and
//! after a response that was lost. Only accepted requests are recorded: after a refusal nothing has changed, and the next
//! request with the key is a new one.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use servo_engine::Caller;
use servo_engine::rows::AnswerEntry;

use crate::app::App;
use crate::problem::Problem;

const REPLAYED: &str = "idempotency-replayed";

/// An idempotency key names the run, so that it is the same run for ever.
pub(crate) fn run_key(caller: &Caller) -> Option<String> {
    caller.request_id.as_ref().map(|key| format!("request:{}:{key}", caller.principal))
}

impl App {
    /// Carries a request out; or, if it was before, answers what it was answered then.
    pub(crate) async fn once<T: Serialize>(
        &self,
        caller: Caller,
        work: impl Future<Output = Result<T, Problem>>,
        again: impl AsyncFnOnce(AnswerEntry) -> Result<T, Problem>,
    ) -> Result<Response<Body>, Problem> {
        if let Some(known) = self.answer_to(&caller).await? {
            return replayed(&again(known).await?);
        }
        let problem = match work.await {
            Ok(value) => return accepted(&value),
            Err(problem) => problem,
        };
        // The same request may have come twice at once: what this one asked for is done then, and not to be done again.
        match self.answer_to(&caller).await {
            Ok(Some(known)) => replayed(&again(known).await?),
            Ok(None) | Err(_) => Err(problem),
        }
    }

    /// The answer that a request was given; a problem if its key belongs to another one.
    pub(crate) async fn answer_to(&self, caller: &Caller) -> Result<Option<AnswerEntry>, Problem> {
        let known = self.workspace().read(|state| state.answer_to(caller).map(Option::<&_>::copied)).await?;
        Ok(known?)
    }
}

fn replayed(value: &impl Serialize) -> Result<Response<Body>, Problem> {
    let mut response = accepted(value)?;
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

fn accepted(value: &impl Serialize) -> Result<Response<Body>, Problem> {
    let body = serde_json::to_vec(value).map_err(|error| Problem::internal(&error))?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
