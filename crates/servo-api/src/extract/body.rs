//! JSON bodies of a limited size and a known form.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, Method, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use servo_core::fingerprint;
use servo_engine::{Caller, Principal};
use servo_store::{Timers, within};

use super::violation;
use crate::access::Actor;
use crate::app::Shared;
use crate::problem::{Code, Problem};

/// Size limit of an ordinary body.
const LIMIT: usize = 1 << 20;
/// Size limit of a manifest.
const MANIFEST_LIMIT: usize = 32 << 20;
/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "idempotency-key";
const MAX_KEY: usize = 255;

/// A body of plain data.
pub(crate) struct Json<T, const MOST: usize = LIMIT>(pub(crate) T);

/// A request that changes something. With a key it is idempotent.
pub(crate) struct Command<T> {
    pub(crate) body: T,
    pub(crate) caller: Caller,
}

/// The text of a manifest, and who deploys it.
pub(crate) struct Manifest {
    pub(crate) text: Bytes,
    pub(crate) caller: Caller,
}

/// The body of a request that changes something.
pub(crate) trait Asked: DeserializeOwned {
    /// The idempotency key in the body.
    fn client_request_id(&self) -> Option<&str>;
}

impl<T: DeserializeOwned, const MOST: usize> FromRequest<Shared> for Json<T, MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let text = read(app.timers(), &parts.headers, body, MOST).await?;
        parse(&text).map(Self)
    }
}

impl<T: Asked> FromRequest<Shared> for Command<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Actor(principal) = Actor::from_request_parts(&mut parts, app).await?;
        let text = read(app.timers(), &parts.headers, body, LIMIT).await?;
        let body: T = parse(&text)?;
        let header = header_key(&parts.headers)?;
        let key = match (header, body.client_request_id()) {
            (Some(header), Some(body)) if header != body => {
                return Err(Problem::invalid(
                    "client_request_id",
                    "differs from the Idempotency-Key of the request; give one of the two",
                ));
            }
            (Some(key), _) => Some(key),
            (None, Some(key)) => Some(checked(key, "client_request_id")?),
            (None, None) => None,
        };
        let caller = caller(principal, key, &parts.method, parts.uri.path(), &text)?;
        Ok(Self { body, caller })
    }
}

impl FromRequest<Shared> for Manifest {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Actor(principal) = Actor::from_request_parts(&mut parts, app).await?;
        let text = read(app.timers(), &parts.headers, body, MANIFEST_LIMIT).await?;
        let key = header_key(&parts.headers)?;
        let caller = caller(principal, key, &parts.method, parts.uri.path(), &text)?;
        Ok(Self { text, caller })
    }
}

/// A message that somebody pushes: of any form, and of a limited size.
pub(crate) struct Pushed {
    pub(crate) headers: HeaderMap,
    /// The parameter `token` of the address.
    pub(crate) token: Option<String>,
    pub(crate) body: Bytes,
}

impl FromRequest<Shared> for Pushed {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let token = query.into_iter().find(|(name, _)| name == "token").map(|(_, value)| value.into_owned());
        let body = bytes(app.timers(), &parts.headers, body, LIMIT).await?;
        Ok(Self { headers: parts.headers, token, body })
    }
}

/// A JSON body of a limited size, which has some time to arrive.
pub(crate) async fn read(
    timers: &dyn Timers,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    let text = bytes(timers, headers, body, limit).await?;
    if !text.is_empty() && !is_json(headers) {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            "bodies are JSON; say so with Content-Type: application/json",
        ));
    }
    Ok(text)
}

async fn bytes(timers: &dyn Timers, headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        Problem::new(Code::BodyTooLarge, format!("the body is longer than {limit} bytes, which is the most"))
    };
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > limit as u64) {
        return Err(too_large());
    }
    match within(timers, PATIENCE, Limited::new(body, limit).collect()).await {
        None => Err(Problem::new(Code::RequestTimeout, "the body did not come in time")),
        Some(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Some(Err(error)) => Err(Problem::new(Code::MalformedJson, format!("the body broke off: {error}"))),
        Some(Ok(body)) => Ok(body.to_bytes()),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json")
}

/// An empty body is an object without fields.
pub(crate) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let text = if text.is_empty() { b"{}" } else { text };
    // The fields of a list would be taken in their order, without their names.
    if text.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::invalid(".", "is an object, not a list"));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let malformed = |error: &serde_json::Error| {
        Problem::new(Code::MalformedJson, format!("the body is not JSON: {error}"))
    };
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        use serde_json::error::Category;
        match error.inner().classify() {
            Category::Data => violation(error.path(), &error.inner().to_string()),
            Category::Io | Category::Syntax | Category::Eof => malformed(error.inner()),
        }
    })?;
    reader.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

fn header_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    checked(value.to_str().unwrap_or_default(), "Idempotency-Key").map(Some)
}

fn checked(key: &str, field: &str) -> Result<String, Problem> {
    let is_good = !key.is_empty() && key.len() <= MAX_KEY && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_good {
        return Ok(key.to_owned());
    }
    Err(Problem::invalid(field, format!("is 1 to {MAX_KEY} printable characters of ASCII without spaces")))
}

/// Who asks, and with a key the identity of the request: the order of fields does not matter.
fn caller(
    principal: Principal,
    key: Option<String>,
    method: &Method,
    path: &str,
    text: &[u8],
) -> Result<Caller, Problem> {
    let Some(key) = key else { return Ok(principal.into()) };
    let value: serde_json::Value = parse(text)?;
    let request = serde_json::json!({"method": method.as_str(), "path": path, "body": value.to_string()});
    let fingerprint = fingerprint(&request).map_err(|error| Problem::internal(&error))?;
    Ok(Caller { principal, request_id: Some(key.into()), request_fingerprint: Some(fingerprint) })
}
