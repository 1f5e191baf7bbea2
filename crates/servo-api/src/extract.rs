//! Extractors for paths, queries and bodies; errors name the part that is wrong.

mod body;
mod fresh;
mod query;

pub(crate) use body::{Asked, Command, Json, Manifest, Pushed, parse, read};
pub(crate) use fresh::Fresh;
pub(crate) use query::{NoQuery, Query};

use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::app::Shared;
use crate::problem::{Code, Problem, Violation};

/// The path parameters.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, app).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(failed)) => Err(wrong(failed.into_kind())),
            Err(other) => Err(Problem::internal(&other)),
        }
    }
}

fn wrong(kind: ErrorKind) -> Problem {
    if let ErrorKind::ParseErrorAtKey { key, value, expected_type } = kind {
        Problem::invalid(key, format!("{value:?} is not of type {expected_type}"))
    } else if let ErrorKind::DeserializeError { key, message, .. } = kind {
        Problem::invalid(key, message)
    } else if let ErrorKind::InvalidUtf8InPathParam { key } = kind {
        Problem::invalid(key, "is not UTF-8")
    } else {
        Problem::invalid("path", kind.to_string())
    }
}

/// Converts a serde error about a part of a request.
fn violation(path: &serde_path_to_error::Path, message: &str) -> Problem {
    let at = path.to_string();
    // These are said of the whole, and name the field in their text.
    let named = ["unknown field `", "missing field `", "duplicate field `"]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix)?.split_once('`').map(|(name, _)| name));
    let field = match named {
        Some(name) if at == "." => name.to_owned(),
        Some(name) if at != name && !at.ends_with(&format!(".{name}")) => format!("{at}.{name}"),
        Some(_) | None => at,
    };
    let mut problem = Problem::new(Code::InvalidRequest, format!("{field}: {message}"));
    problem.violations.push(Violation { field, message: message.to_owned() });
    problem
}
