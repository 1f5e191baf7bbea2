//! JSON responses, and their OpenAPI descriptions.

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

/// The problem responses that every route may give.
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

/// Query parameters of every read: wait until an event is folded, or until the tables are fresh.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct Wait {
    /// Wait until this event is folded: the change that it accepted is visible then.
    wait_for_event_id: Option<String>,
    /// Timeout of a wait in milliseconds; 5,000 by default, at most 30,000.
    timeout_ms: Option<u64>,
    /// How fresh the answer is: `true` has everything that was accepted before the request, a number of milliseconds, at
    /// most 60,000, lets it be behind by so much, `false` waits for nothing. Reads of memory are always as with `true`.
    fresh: Option<String>,
}

/// Query parameters of a query over the tables.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)]
pub(crate) struct FreshTables {
    /// How fresh the tables are: `true` has everything that was accepted before the request, a number of milliseconds, at
    /// most 60,000, lets them be behind by so much, `false` waits for nothing. Two seconds of patience unless given.
    fresh: Option<String>,
    /// Timeout of that wait in milliseconds; 5,000 by default, at most 30,000.
    timeout_ms: Option<u64>,
}

/// Header of every request that changes something: makes it idempotent.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct IdempotencyKey {
    /// For a day, the same key with the same request gets the same response, and with another request a conflict.
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
}
