//! Answers as JSON, and how they are described.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

use crate::problem::{PROBLEM_JSON, Problem};

/// An answer.
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response<Body> {
        match serde_json::to_vec(&self.0) {
            Ok(text) => {
                ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
            }
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// What every route may answer instead.
pub(crate) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new()
            .description("Why there is no answer")
            .content(PROBLEM_JSON, content)
            .build();
        BTreeMap::from([("default".to_owned(), response.into())])
    }
}

/// Every read can wait until an event is folded.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct Wait {
    /// Answer when this event is folded: what was accepted with it is to be seen then.
    wait_for_event_id: Option<String>,
    /// Longest to wait for it; 5,000 unless said otherwise, at most 30,000.
    timeout_ms: Option<u64>,
}

/// Every request that changes something can be made again.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct IdempotencyKey {
    /// The same key with the same request gets the same answer, and with another one a conflict, for a day.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
}
