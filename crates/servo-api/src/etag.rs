//! Conditional reads: a strong entity tag of the answer, and nothing again for whoever shows it.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::IntoParams;

use crate::app::Shared;
use crate::problem::Problem;

/// Digits of the hash that a tag has.
const DIGITS: usize = 32;

/// The header of a conditional read, as it is described.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct Conditional {
    /// Tags of answers that the caller has: `304` without a body if what would be answered is one of them.
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
}

/// The tags of a request: answers that the caller has already.
pub(crate) struct IfNoneMatch(Vec<HeaderValue>);

impl FromRequestParts<Shared> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect()))
    }
}

impl IfNoneMatch {
    /// The answer with its tag.
    pub(crate) fn answer<T>(self, value: T) -> Tagged<T> {
        Tagged { value, if_none_match: self }
    }

    /// Whether a tag is among them. They are compared weakly, as RFC 9110 says of this header.
    fn has(&self, tag: &str) -> bool {
        let tags = self.0.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        tags.map(str::trim).any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
    }
}

/// An answer with an entity tag. Equal bytes have equal tags and others have not, so the tag is a strong one.
pub(crate) struct Tagged<T> {
    value: T,
    if_none_match: IfNoneMatch,
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response<Body> {
        let text = match serde_json::to_vec(&self.value) {
            Ok(text) => text,
            Err(error) => return Problem::internal(&error).into_response(),
        };
        let mut digest = servo_core::sha256_hex(&text);
        digest.truncate(DIGITS);
        let tag = format!("\"{digest}\"");
        let is_known = self.if_none_match.has(&tag);
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => {
                ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
            }
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(values: &[&'static str]) -> IfNoneMatch {
        IfNoneMatch(values.iter().map(|value| HeaderValue::from_static(value)).collect())
    }

    #[test]
    fn a_tag_is_known_if_one_of_those_shown_is_the_same() {
        let tag = "\"0f\"";
        for shown in [&["\"0f\""][..], &["W/\"0f\""], &["\"1\", \"0f\""], &["\"1\"", "\"0f\""], &["*"]] {
            assert!(known(shown).has(tag), "{shown:?}");
        }
        for shown in [&[][..], &[""], &["0f"], &["\"1\", \"2\""], &["\"0f"], &["w/\"0f\""]] {
            assert!(!known(shown).has(tag), "{shown:?}");
        }
    }

    #[test]
    fn equal_answers_have_equal_tags_and_others_have_not() {
        let tag = |value: u32| {
            let response = known(&[]).answer(value).into_response();
            response.headers()[header::ETAG].to_str().unwrap().to_owned()
        };
        assert_eq!(tag(1), tag(1));
        assert_ne!(tag(1), tag(2));
        assert_eq!(tag(1).len(), DIGITS + 2);
    }
}
