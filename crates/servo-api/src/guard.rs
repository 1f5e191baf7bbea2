//! Checks and headers that apply to every request and response, whatever the route.
//!
//! A server on the loopback is within reach of every page that a browser of this machine shows. A page of another site
//! can have its name point at the loopback, and so be of the same origin; then the name in `Host` gives it away. And it
//! can send forms without asking; then `Origin` does.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::Shared;
use crate::problem::{Code, Problem};

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses cross-origin requests, and adds security headers to every response.
pub(crate) async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    with_headers(match guarded(request.uri(), request.headers(), &app.api.hosts) {
        Ok(()) => next.run(request).await,
        Err(problem) => refused(problem),
    })
}

/// Adds the headers that every response has.
pub(crate) fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Refuses a request that has not come as it should; nothing more is read from its connection.
pub(crate) fn refused(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// That a request addresses this server and does not come from a page of another one.
pub(crate) fn guarded(uri: &Uri, headers: &HeaderMap, hosts: &[String]) -> Result<(), Problem> {
    let foreign = |detail: String| Err(Problem::new(Code::ForeignOrigin, detail));
    // Something before this server may have gone by the other one, and have taken what follows for part of this request.
    if headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH) {
        return Err(Problem::invalid("content-length", "a request has this or transfer-encoding, not both"));
    }
    // A request may name its host in the address too, and then that counts.
    let host = match uri.authority() {
        Some(authority) => Some(authority.clone()),
        None => only(headers, &header::HOST).and_then(|host| host.parse::<Authority>().ok()),
    };
    let Some(host) = host else {
        return Err(Problem::invalid("host", "the request names no host, or several"));
    };
    if !is_loopback(host.host()) && !hosts.iter().any(|known| known.eq_ignore_ascii_case(host.host())) {
        return foreign(format!("this server is not {:?}; address it as localhost", host.host()));
    }
    match headers.contains_key(header::ORIGIN) {
        true if !only(headers, &header::ORIGIN).is_some_and(|origin| is_same(origin, &host)) => {
            foreign("pages of another origin may not use this server".to_owned())
        }
        true | false => Ok(()),
    }
}

/// The one value of a header.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_same(origin: &str, host: &Authority) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    matches!(scheme, "http" | "https") && rest.eq_ignore_ascii_case(host.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(host: &str, origin: Option<&str>) -> Result<(), Code> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let hosts = ["servo.example.org".to_owned()];
        guarded(&Uri::from_static("/api/v1/runs"), &headers, &hosts).map_err(|problem| problem.code)
    }

    #[test]
    fn a_request_must_address_this_server_and_come_from_its_own_pages() {
        for host in
            ["localhost:8741", "LOCALHOST", "127.0.0.1:8741", "127.9.9.9", "[::1]:8741", "servo.example.org"]
        {
            assert_eq!(checked(host, None), Ok(()), "{host}");
            assert_eq!(checked(host, Some(&format!("http://{host}"))), Ok(()), "{host}");
            for origin in ["http://evil.example", "null", "http://localhost:3000", "file://", ""] {
                assert_eq!(checked(host, Some(origin)), Err(Code::ForeignOrigin), "{host} {origin}");
            }
        }
        for host in
            ["evil.example:8741", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0"]
        {
            assert_eq!(checked(host, None), Err(Code::ForeignOrigin), "{host}");
            let same = format!("http://{host}");
            assert_eq!(checked(host, Some(&same)), Err(Code::ForeignOrigin), "also to itself: {host}");
        }
        for host in ["", "a b", "user@localhost:80@evil"] {
            assert!(checked(host, None).is_err(), "{host:?}");
        }
    }

    #[test]
    fn a_request_with_two_hosts_is_turned_away() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert!(guarded(&Uri::from_static("/"), &headers, &[]).is_err());
    }
}
