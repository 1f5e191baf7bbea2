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
    let description = openapi();
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
    assert_eq!(
        public,
        [
            "/login",
            "/login/callback",
            "/logout",
            "/api/v1/login-options",
            "/api/v1/healthz",
            "/api/v1/readyz",
            "/api/v1/version",
            "/api/v1/openapi.json",
        ]
    );
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
async fn whoever_shows_nothing_is_told_nothing_wherever_they_come_from() {
    let root = tempfile::tempdir().unwrap();
    let mut harness = Harness::on(root.path()).await;
    let head = harness.head().await;
    let plain =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let lists = || async {
        let mut statuses = Vec::new();
        for (method, path, access) in ROUTES {
            let path = path.replace("{run_id}", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa").replace("{attempt}", "1");
            for bearer in [None, Some(""), Some("guess")] {
                let url = format!("http://{}{path}", harness.address);
                let mut request =
                    plain.request(method.clone(), url).header("content-type", "application/json");
                if let Some(bearer) = bearer {
                    request = request.bearer_auth(bearer);
                }
                let status = request.send().await.unwrap().status().as_u16();
                statuses.push((method.clone(), path.clone(), *access, status));
            }
        }
        statuses
    };
    for (method, path, access, status) in lists().await {
        let expected = match (access, path.as_str()) {
            // A link without its token lets nobody in, and there is no provider to come back from.
            (Access::Public, "/login") => 401,
            (Access::Public, "/login/callback") => 404,
            // Whoever has no session has none afterwards.
            (Access::Public, "/logout") => 303,
            (Access::Public, _) => 200,
            (_, _) => 401,
        };
        assert_eq!(status, expected, "{method} {path}");
    }
    // Secrets that are empty are nobody's.
    harness.stop_server().await;
    harness.api.access_token = Some("".into());
    harness.api.worker_key = Some("".into());
    harness.start_server().await;
    for bearer in ["", " "] {
        for (method, path) in [("GET", "runs"), ("POST", "worker/leases")] {
            let request = plain.request(method.parse().unwrap(), harness.url(path)).body("{}");
            let request = request.header("content-type", "application/json");
            let answer = request.header("authorization", format!("Bearer {bearer}")).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 401, "{method} {path} {bearer:?}");
        }
    }
    assert_eq!(harness.head().await, head, "nothing was written");
    harness.close().await;
}

#[tokio::test]
async fn a_server_answers_whoever_shows_its_token() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let options = ListOptions::default();
    let without = Client::new(&format!("http://{}", harness.address)).unwrap();
    without.version().await.unwrap();
    let wrong = harness.client.clone().with_access_token("a token for testz");
    for client in [&without, &wrong] {
        let denied = client.runs(&options).await.unwrap_err();
        assert_eq!(denied.code(), Some(Code::Unauthenticated));
        let body = RunBody { selection: "raw.orders".to_owned(), ..RunBody::default() };
        assert_eq!(client.trigger(&body).await.unwrap_err().code(), Some(Code::Unauthenticated));
        assert_eq!(client.login().await.unwrap_err().code(), Some(Code::Unauthenticated));
    }
    harness.client.runs(&options).await.unwrap();
    // Its own process needs none, nor does a service that knows no connections make an exception.
    Client::in_process(harness.api.clone()).unwrap().runs(&options).await.unwrap();
    let request =
        Request::builder().uri("/api/v1/runs").header("host", "localhost").body(Body::empty()).unwrap();
    assert_eq!(router(harness.api.clone()).call(request).await.unwrap().status().as_u16(), 401);
    harness.close().await;
}

#[tokio::test]
async fn a_link_lets_one_browser_in_once_and_only_pages_of_the_server_use_its_session() {
    let root = tempfile::tempdir().unwrap();
    let mut harness = Harness::on(root.path()).await;
    let browser =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let at = |path: &str| format!("http://{}{path}", harness.address);
    let link = harness.client.login().await.unwrap().path;
    let elsewhere = browser.get(at(&format!("{link}&next=//evil.example"))).send().await.unwrap();
    assert_eq!(Answer::of(elsewhere).await.problem().code, Code::InvalidRequest);
    let entered = browser.get(at(&format!("{link}&next=/runs"))).send().await.unwrap();
    assert_eq!((entered.status().as_u16(), &entered.headers()["location"]), (303, &"/runs".parse().unwrap()));
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
    let (cookie, attributes) = cookie.split_once("; ").unwrap();
    assert!(cookie.starts_with(&format!("servo_session_{}=", harness.address.port())), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(attributes.contains(attribute), "{attributes}");
    }
    assert!(!cookie.contains(crate::support::TOKEN), "the token stays with the server");
    let again = browser.get(at(&link)).send().await.unwrap();
    assert_eq!(Answer::of(again).await.problem().code, Code::Unauthenticated, "the link is used up");
    let again = browser.get(at(&link)).header("cookie", cookie).send().await.unwrap();
    assert_eq!(again.status().as_u16(), 303, "but whoever is in stays in");

    let own = format!("http://{}", harness.address);
    let ask = async |method: &str, headers: &[(&str, &str)]| {
        let body = json!({ "selection": "raw.orders" }).to_string();
        let mut request = browser.request(method.parse().unwrap(), harness.url("runs"));
        if method == "POST" {
            request = request.header("content-type", "application/json").body(body);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap().status().as_u16()
    };
    let head = harness.head().await;
    let with = |more: &[(&'static str, &'static str)]| -> Vec<(&'static str, String)> {
        let all = std::iter::once(("cookie", cookie.to_owned()));
        all.chain(more.iter().map(|(name, value)| (*name, (*value).to_owned()))).collect()
    };
    fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
        headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
    let read = with(&[]);
    assert_eq!(ask("GET", &borrowed(&read)).await, 200);
    for site in ["same-site", "cross-site"] {
        let foreign = with(&[("sec-fetch-site", site)]);
        assert_eq!(ask("GET", &borrowed(&foreign)).await, 403, "{site}");
        assert_eq!(ask("POST", &borrowed(&foreign)).await, 403, "{site}");
    }
    assert_eq!(ask("POST", &borrowed(&with(&[]))).await, 403, "a form of who knows where");
    assert_eq!(ask("POST", &borrowed(&with(&[("sec-fetch-site", "none")]))).await, 403);
    assert_eq!(ask("POST", &borrowed(&with(&[("origin", "http://127.0.0.1:1")]))).await, 403);
    let other = cookie.replace("servo_session_", "servo_session_1");
    assert_eq!(ask("GET", &[("cookie", &other)]).await, 401, "the cookie of another port");
    let forged = format!("{}x", cookie);
    assert_eq!(ask("GET", &[("cookie", &forged)]).await, 401);
    assert_eq!(harness.head().await, head, "nothing was written");
    let mut page = with(&[("sec-fetch-site", "same-origin")]);
    page.push(("origin", own.clone()));
    assert_eq!(ask("POST", &borrowed(&page)).await, 202);

    // A session outlives the server that gave it.
    harness.stop_server().await;
    harness.api.access_token = Some("another token".into());
    harness.start_server().await;
    let read = browser.get(harness.url("runs")).header("cookie", cookie).send().await.unwrap();
    assert_eq!(read.status().as_u16(), 200);
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
