//! Access control by address and origin, and the security headers of every response.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use crate::support::{Answer, Harness};
use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use servo_api::client::{Client, ListOptions, RunEvent};
use servo_api::views::RunBody;
use servo_api::{Access, Code, ROUTES, openapi, router};
use servo_engine::RunState;
use tower_service::Service;

#[test]
fn every_route_has_a_permission_and_every_permission_a_route() {
    let description = serde_json::to_value(openapi()).unwrap();
    let mut described: BTreeSet<String> = BTreeSet::from(["GET /api/v1/openapi.json".to_owned()]);
    for (path, methods) in description["paths"].as_object().unwrap() {
        described.extend(
            methods.as_object().unwrap().keys().map(|method| format!("{} {path}", method.to_uppercase())),
        );
    }
    let known: BTreeSet<String> = ROUTES.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    assert_eq!(known, described);
    assert_eq!(known.len(), ROUTES.len(), "each once");
    let public: Vec<&str> =
        ROUTES.iter().filter(|(_, _, access)| *access == Access::Public).map(|(_, path, _)| *path).collect();
    assert_eq!(public, ["/api/v1/healthz", "/api/v1/readyz", "/api/v1/version", "/api/v1/openapi.json"]);
}

#[tokio::test]
async fn pages_of_other_sites_are_turned_away() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let head = harness.head().await;
    let own = format!("http://{}", harness.address);
    let body = json!({ "selection": "raw.orders" });
    for origin in ["http://evil.example", "null", "http://localhost:1"] {
        let problem = harness.post_with("runs", &body, &[("origin", origin)]).await.problem();
        assert_eq!((problem.status, problem.code), (403, Code::ForeignOrigin), "{origin}");
        let read = harness.http.get(harness.url("runs")).header("origin", origin).send().await.unwrap();
        assert_eq!(Answer::of(read).await.problem().code, Code::ForeignOrigin);
    }
    for host in ["evil.example", "evil.example:8741", "127.0.0.1.evil.example"] {
        for path in ["runs", "healthz", "openapi.json"] {
            let read = harness.http.get(harness.url(path)).header("host", host).send().await.unwrap();
            assert_eq!(Answer::of(read).await.problem().code, Code::ForeignOrigin, "{host} {path}");
        }
    }
    assert_eq!(harness.head().await, head);
    harness.post_with("runs", &body, &[("origin", &own)]).await.accepted();
    harness.close().await;
}

#[tokio::test]
async fn every_answer_says_what_browsers_may_do_with_it() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    for path in ["runs", "nothing", "runs/xyz", "openapi.json"] {
        let answer = harness.get(path).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers[name], value, "{path}");
        }
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    harness.close().await;
}

#[tokio::test]
async fn who_does_not_come_from_this_machine_needs_a_key() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    // A server that does not say where requests come from.
    let mut router = router(harness.api.clone());
    for (method, path, access) in ROUTES {
        let path = path.replace("{run_id}", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa").replace("{attempt}", "1");
        let request = Request::builder().method(method).uri(path.as_str()).header("host", "localhost");
        let request = request.header("content-type", "application/json").body(Body::empty()).unwrap();
        let status = router.call(request).await.unwrap().status().as_u16();
        let expected = if *access == Access::Public { 200 } else { 401 };
        assert_eq!(status, expected, "{method} {path}");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_server_with_a_token_answers_whoever_shows_it() {
    let root = tempfile::tempdir().unwrap();
    let mut harness = Harness::on(root.path()).await;
    harness.stop_server().await;
    harness.api.access_token = Some("a token".into());
    harness.start_server().await;
    harness.client.version().await.unwrap();
    let options = ListOptions::default();
    let wrong = harness.client.clone().with_access_token("a tokem");
    for client in [&harness.client, &wrong] {
        let denied = client.runs(&options).await.unwrap_err();
        assert_eq!(denied.code(), Some(Code::Unauthenticated));
        let body = RunBody { selection: "raw.orders".to_owned(), ..RunBody::default() };
        assert_eq!(client.trigger(&body).await.unwrap_err().code(), Some(Code::Unauthenticated));
    }
    let right = harness.client.clone().with_access_token("a token");
    right.runs(&options).await.unwrap();
    // Its own process needs none.
    Client::in_process(harness.api.clone()).unwrap().runs(&options).await.unwrap();
    harness.close().await;
}

#[tokio::test]
async fn a_process_asks_itself_by_the_same_routes() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let client = Client::in_process(harness.api.clone()).unwrap();
    let body = RunBody { selection: "raw.orders".to_owned(), ..RunBody::default() };
    let asked = client.trigger(&body).await.unwrap();
    let mut events = client.follow(asked.run_id, None);
    let mut last = None;
    while let Some(event) = events.next().await.unwrap() {
        last = Some(event);
    }
    assert!(matches!(last, Some(RunEvent::End(end)) if end.state == RunState::Succeeded));
    let options = ListOptions::default();
    assert_eq!(client.runs(&options).await.unwrap(), harness.client.runs(&options).await.unwrap());
    drop((events, client));
    harness.close().await;
}

#[tokio::test]
async fn noise_is_answered_or_hung_up_on_and_nobody_else_notices() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let address = harness.address;
    let noise = tokio::task::spawn_blocking(move || {
        for bytes in [
            &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET /api/v1/runs HTTP/1.0\r\n\r\n",
            b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
            b"GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
            b"\r\n\r\n\r\n",
        ] {
            let mut socket = std::net::TcpStream::connect(address).unwrap();
            socket.write_all(bytes).unwrap();
            socket.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            let _reset = socket.read_to_end(&mut answer);
            let answer = String::from_utf8_lossy(&answer);
            assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
        }
    });
    noise.await.unwrap();
    harness.get("runs").await.ok();
    harness.close().await;
}
