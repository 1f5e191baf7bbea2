//! The web UI: files of `ui/dist`, embedded in release builds and read from disk in others.
//!
//! Addresses of its pages are not files; each of them gets the one document, which finds out where it is. Nothing here
//! is about a workspace, so nobody is asked who they are; the routes that the pages ask are another matter.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, Uri, header};
use axum::response::IntoResponse;

use crate::problem::{Code, Problem};

/// Scripts, styles and pictures of this server alone; no frames, no forms to elsewhere, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; worker-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";
/// Files whose name has a hash of their content never change.
const HASHED: &str = "static/";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

/// The files by name, sorted.
#[cfg(embedded_ui)]
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/ui_files.rs"));

/// The content of a file.
#[cfg(embedded_ui)]
fn content(name: &str) -> Option<Cow<'static, [u8]>> {
    let at = FILES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    FILES.get(at).map(|(_, content)| Cow::Borrowed(*content))
}

/// The content of a file of the checkout.
#[cfg(not(embedded_ui))]
fn content(name: &str) -> Option<Cow<'static, [u8]>> {
    let is_plain =
        |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']);
    if !name.split('/').all(is_plain) {
        return None;
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist").join(name);
    std::fs::read(path).ok().map(Cow::Owned)
}

/// The document, until it is built.
const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Servo</title>\
<h1>The web UI is not built</h1><p>This server works; its pages are not part of the build. Build them with \
<code>make ui</code> in a checkout of Servo (needs Node 20 or newer), then load this page again.</p>\
<p>Meanwhile: the <code>servo</code> command, and the HTTP interface, which \
<a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a> describes.</p></html>\n";

/// Answers a request that no route of the interface takes.
pub(crate) fn answer(method: &Method, uri: &Uri, headers: &HeaderMap) -> Response<Body> {
    let path = uri.path();
    let nothing = || {
        let detail = format!("there is nothing at {path}; /api/v1/openapi.json says what there is");
        Problem::new(Code::NotFound, detail).into_response()
    };
    if path == "/api" || path.starts_with("/api/") {
        return nothing();
    }
    if method != Method::GET && method != Method::HEAD {
        return Problem::new(Code::MethodNotAllowed, format!("{path} does not know {method}"))
            .into_response();
    }
    let name = path.trim_start_matches('/');
    if let Some(file) = Some(name).filter(|name| *name != "index.html").and_then(|name| found(name, headers))
    {
        return file;
    }
    // A file of another build is not a page.
    if name.starts_with(HASHED) || content_type(name) != OTHER && !name.contains('/') {
        return nothing();
    }
    found("index.html", headers)
        .unwrap_or_else(|| response("index.html", NOT_BUILT.as_bytes().to_vec(), ASK_AGAIN))
}

const OTHER: &str = "application/octet-stream";

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        Some(_) | None => OTHER,
    }
}

/// A file, compressed if the build has it so and the browser takes it.
fn found(name: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    if name.is_empty() || name.ends_with(".br") {
        return None;
    }
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let takes_brotli = accepts.is_some_and(|value| value.split(',').any(|word| word.trim() == "br"));
    let compressed = takes_brotli.then(|| content(&format!("{name}.br"))).flatten();
    let is_compressed = compressed.is_some();
    let data = compressed.or_else(|| content(name))?;
    let kept = if name.starts_with(HASHED) { FOR_EVER } else { ASK_AGAIN };
    let mut response = response(name, data.into_owned(), kept);
    if is_compressed {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
    }
    Some(response)
}

fn response(name: &str, data: Vec<u8>, kept: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(data));
    for (name, value) in [
        (header::CONTENT_TYPE, content_type(name)),
        (header::CACHE_CONTROL, kept),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::VARY, "accept-encoding"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
