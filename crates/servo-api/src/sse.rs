//! Streams of server-sent events.

use std::convert::Infallible;
use std::fmt::Display;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures::Stream;
use serde::Serialize;

/// After so much silence something is said, so that both ends notice when the other is gone.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The comment sent as a keep-alive.
pub(crate) const STILL_HERE: &str = ": still here\n\n";
/// How long a client waits before it comes back after a break.
pub(crate) const RETRY: &str = "retry: 1000\n\n";

/// Writes a message. Without an id the place to come back to stays where it was.
pub(crate) fn message(out: &mut String, event: &str, id: Option<&dyn Display>, data: &impl Serialize) {
    // JSON has no line breaks of its own, so the data is one line; plain data always has a text.
    let data = serde_json::to_string(data).unwrap_or_default();
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    out.push_str(&format!("event: {event}\n{id}data: {data}\n\n"));
}

/// The answer that is a stream.
pub(crate) fn response(stream: impl Stream<Item = String> + Send + 'static) -> Response<Body> {
    use futures::StreamExt;
    let body = Body::from_stream(stream.map(|text| Ok::<_, Infallible>(Bytes::from(text))));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        // Proxies must not gather what should be seen at once.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}
