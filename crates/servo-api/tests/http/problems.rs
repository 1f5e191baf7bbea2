//! Every malformed request is answered with a problem that names the cause, and changes nothing.

use crate::support::{Harness, Setting};
use serde_json::{Value, json};
use servo_api::{Code, Problem};
use servo_core::RunId;

/// Asserts the code of a problem, and the field that it is about.
fn assert_is(problem: &Problem, code: Code, field: Option<&str>) {
    assert_eq!(problem.code, code, "{problem:?}");
    assert_eq!(problem.status, code.status().as_u16());
    let fields: Vec<&str> = problem.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields.first().copied(), field, "{problem:?}");
}

#[tokio::test]
async fn bodies_that_are_wrong_are_refused_before_anything_happens() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let head = harness.head().await;
    let run = RunId::from_u128(7);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let nested = format!("{{\"selection\": \"a\", \"config\": {{\"b\": {deep}}}}}");
    let long = "x".repeat(300);
    for (path, body, code, field) in [
        ("runs", "{", Code::MalformedJson, None),
        ("runs", "{\"selection\": \"raw.orders\"} trailing", Code::MalformedJson, None),
        ("runs", "\u{feff}{}", Code::MalformedJson, None),
        ("runs", "not json", Code::MalformedJson, None),
        ("runs", deep.as_str(), Code::InvalidRequest, Some(".")),
        ("runs", "", Code::InvalidRequest, Some("selection")),
        ("runs", "[\"raw.orders\"]", Code::InvalidRequest, Some(".")),
        ("runs", nested.as_str(), Code::MalformedJson, None),
        ("runs", "{}", Code::InvalidRequest, Some("selection")),
        ("runs", "{\"selection\": 7}", Code::InvalidRequest, Some("selection")),
        ("runs", "{\"selection\": \"a\", \"selection\": \"b\"}", Code::InvalidRequest, Some("selection")),
        ("runs", "{\"selection\": \"a\", \"colour\": 1}", Code::InvalidRequest, Some("colour")),
        (
            "runs",
            "{\"selection\": \"a\", \"partitions\": {\"keys\": [1]}}",
            Code::InvalidRequest,
            Some("partitions.keys[0]"),
        ),
        (
            "runs",
            "{\"selection\": \"a\", \"partitions\": {\"kyes\": []}}",
            Code::InvalidRequest,
            Some("partitions.kyes"),
        ),
        ("runs", "{\"selection\": \"a\", \"labels\": {\"b\": null}}", Code::InvalidRequest, Some("labels.b")),
        ("runs", "{\"selection\": \"a\", \"priority\": 4294967296}", Code::InvalidRequest, Some("priority")),
        ("runs", "{\"selection\": \"a\", \"timeout_ms\": 0}", Code::InvalidRequest, Some("timeout_ms")),
        ("runs", "{\"selection\": \"a\", \"timeout_ms\": -1}", Code::InvalidRequest, Some("timeout_ms")),
        ("runs", "{\"selection\": \"a\", \"run_key\": \"\"}", Code::InvalidRequest, Some("run_key")),
        (
            "runs",
            &format!("{{\"selection\": \"a\", \"run_key\": \"{long}\"}}"),
            Code::InvalidRequest,
            Some("run_key"),
        ),
        ("runs", "{\"selection\": \"raw.orders and\"}", Code::InvalidRequest, Some("selection")),
        ("runs", "{\"selection\": \"raw.ordres\"}", Code::Unplannable, None),
        ("runs", "{\"selection\": \"raw.days\"}", Code::Unplannable, None),
        ("runs", "{\"selection\": \"raw.feed\"}", Code::Unplannable, None),
        (
            "runs",
            "{\"selection\": \"raw.orders\", \"partitions\": {\"latest\": true}}",
            Code::Unplannable,
            None,
        ),
        ("runs", "{\"selection\": \"raw.orders\", \"config\": {\"speed\": 1}}", Code::Unplannable, None),
        ("plan", "{\"selection\": \"raw.ordres\"}", Code::Unplannable, None),
        ("plan", "{", Code::MalformedJson, None),
        (&format!("runs/{run}/cancel"), "{\"force\": \"yes\"}", Code::InvalidRequest, Some("force")),
        (&format!("runs/{run}/cancel"), "{\"why\": \"x\"}", Code::InvalidRequest, Some("why")),
        (&format!("runs/{run}/cancel"), "", Code::UnknownRun, None),
        (&format!("runs/{run}/retry"), "{\"from\": 1}", Code::InvalidRequest, Some("from")),
        (&format!("runs/{run}/retry"), "{}", Code::UnknownRun, None),
        ("deployments", "{", Code::MalformedJson, None),
        ("deployments", "{\"manifest_version\": 1}", Code::InvalidRequest, Some("project")),
        ("deployments", "{\"manifest_version\": 1.5, \"project\": \"a\"}", Code::InvalidRequest, Some(".")),
        ("worker/leases", "{\"worker_id\": \"w\"}", Code::InvalidRequest, Some("queues")),
        ("worker/leases", "{\"worker_id\": \"w\", \"queues\": []}", Code::InvalidRequest, Some("queues")),
        (
            "worker/leases",
            "{\"worker_id\": \"\", \"queues\": [\"q\"]}",
            Code::InvalidRequest,
            Some("worker_id"),
        ),
        (
            "worker/leases",
            "{\"worker_id\": \"w\", \"queues\": [\"q\"], \"slots\": 0}",
            Code::InvalidRequest,
            Some("slots"),
        ),
    ] {
        let problem = harness.post_text(path, body.to_owned(), &[]).await.problem();
        let shown: String = body.chars().take(80).collect();
        assert_eq!(problem.code, code, "{path} {shown}: {problem:?}");
        assert_is(&problem, code, field);
    }
    assert_eq!(
        harness.head().await,
        head + 1,
        "nothing but the record of the refused cancellation was written"
    );
    harness.close().await;
}

#[tokio::test]
async fn addresses_and_queries_that_are_wrong_are_named() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let run = harness.run("raw.orders").await.run_id;
    let head = harness.head().await;
    let stranger = RunId::from_u128(7);
    let task = "t_aaaaaaaaaaaaaaaaaaaaaaaaaa";
    let known = servo_api::views::Task::id_of(&servo_core::TaskKey::parse("raw/orders:materialize").unwrap());
    for (path, code, field) in [
        ("".to_owned(), Code::NotFound, None),
        ("nothing".to_owned(), Code::NotFound, None),
        ("runs/".to_owned(), Code::NotFound, None),
        ("..%2f..%2fetc%2fpasswd".to_owned(), Code::NotFound, None),
        ("runs/xyz".to_owned(), Code::InvalidRequest, Some("run_id")),
        ("runs/run_AAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(), Code::InvalidRequest, Some("run_id")),
        ("runs/%FF".to_owned(), Code::InvalidRequest, Some("run_id")),
        (format!("runs/{stranger}"), Code::UnknownRun, None),
        (format!("runs/{stranger}/tasks"), Code::UnknownRun, None),
        (format!("runs/{stranger}/events"), Code::UnknownRun, None),
        (format!("runs/{stranger}/tasks/{task}"), Code::UnknownRun, None),
        (format!("runs/{run}/tasks/{task}"), Code::UnknownTask, None),
        (format!("runs/{run}/tasks/%2e%2e%2fsecret"), Code::UnknownTask, None),
        (format!("runs/{run}/tasks/{task}/attempts/1/logs"), Code::UnknownTask, None),
        (format!("runs/{run}/tasks/{known}/attempts/0/logs"), Code::UnknownAttempt, None),
        (format!("runs/{run}/tasks/{known}/attempts/2/logs"), Code::UnknownAttempt, None),
        (format!("runs/{run}/tasks/{known}/attempts/2/logs/stream"), Code::UnknownAttempt, None),
        (format!("runs/{run}/tasks/{known}/attempts/-1/logs"), Code::InvalidRequest, Some("attempt")),
        (format!("runs/{run}/tasks/{known}/attempts/1/logs?limit=0"), Code::InvalidRequest, Some("limit")),
        (format!("runs/{run}/tasks/{known}/attempts/1/logs?offset=x"), Code::InvalidRequest, Some("offset")),
        ("runs?limit=0".to_owned(), Code::InvalidRequest, Some("limit")),
        ("runs?limit=101".to_owned(), Code::InvalidRequest, Some("limit")),
        ("runs?limit=ten".to_owned(), Code::InvalidRequest, Some("limit")),
        ("runs?size=10".to_owned(), Code::InvalidRequest, Some("size")),
        ("runs?state=RUNING".to_owned(), Code::InvalidRequest, Some("state")),
        ("runs?cursor=x".to_owned(), Code::InvalidCursor, None),
        ("runs?wait_for_event_id=x".to_owned(), Code::InvalidRequest, Some("wait_for_event_id")),
        ("runs?timeout_ms=soon".to_owned(), Code::InvalidRequest, Some("timeout_ms")),
        (format!("runs/{run}?limit=1"), Code::InvalidRequest, Some("limit")),
        ("assets/raw/nothing".to_owned(), Code::UnknownAsset, None),
        ("assets/raw/no.thing".to_owned(), Code::InvalidRequest, Some("asset")),
        ("assets/raw/nothing/partitions".to_owned(), Code::UnknownAsset, None),
        ("assets/raw/orders/partitions?status=LOST".to_owned(), Code::InvalidRequest, Some("status")),
        ("quarantine?limit=1000".to_owned(), Code::InvalidRequest, Some("limit")),
    ] {
        let problem = harness.get(&path).await.problem();
        assert_eq!(problem.code, code, "{path}: {problem:?}");
        assert_is(&problem, code, field);
    }
    let id = "01JCQ0000000000000000000AA";
    for (path, code) in [
        (format!("quarantine/raw/orders/{id}/approve"), Code::NotInQuarantine),
        (format!("quarantine/raw/orders/{id}/reject"), Code::NotInQuarantine),
        (format!("quarantine/raw/no.thing/{id}/reject"), Code::InvalidRequest),
        ("quarantine/raw/orders/7/reject".to_owned(), Code::InvalidRequest),
        (format!("quarantine/raw/orders/{id}/forget"), Code::NotFound),
    ] {
        assert_eq!(harness.post(&path, &json!({})).await.problem().code, code, "{path}");
    }
    assert_eq!(harness.head().await, head + 2, "nothing but the records of the refused reviews was written");
    harness.close().await;
}

#[tokio::test]
async fn a_cursor_cannot_be_made_up() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    for _ in 0..2 {
        harness.run("raw.orders").await;
    }
    let cursor = harness.get("runs?limit=1").await.ok()["next_cursor"].as_str().unwrap().to_owned();
    harness.get(&format!("runs?limit=1&cursor={cursor}")).await.ok();
    let middle = cursor.find('.').unwrap() + 4;
    let mut tampered = cursor.clone();
    let other = if tampered.as_bytes()[middle] == b'A' { "B" } else { "A" };
    tampered.replace_range(middle..=middle, other);
    for (path, cursor) in
        [("runs", tampered.as_str()), ("assets", &cursor), ("quarantine", &cursor), ("runs", &cursor[..20])]
    {
        let problem = harness.get(&format!("{path}?cursor={cursor}")).await.problem();
        assert_eq!(problem.code, Code::InvalidCursor, "{path} {cursor}");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_wrong_method_is_told_which_there_are() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let answer =
        crate::support::Answer::of(harness.http.delete(harness.url("runs")).send().await.unwrap()).await;
    let allow = answer.headers["allow"].to_str().unwrap().to_owned();
    assert_eq!(answer.problem().code, Code::MethodNotAllowed);
    let mut allowed: Vec<&str> = allow.split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    harness.close().await;
}

#[tokio::test]
async fn bodies_have_a_limit_and_a_type() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let big = json!({ "selection": "x".repeat(1 << 20) }).to_string();
    let problem = harness.post_text("runs", big.clone(), &[]).await.problem();
    assert_eq!((problem.status, problem.code), (413, Code::BodyTooLarge));
    // In pieces, so that nobody says beforehand how long it will be.
    let pieces = futures::stream::iter((0..32).map(|_| Ok::<_, std::io::Error>(vec![b' '; 64 << 10])));
    let request = harness.http.post(harness.url("runs")).header("content-type", "application/json");
    let response = request.body(reqwest::Body::wrap_stream(pieces)).send().await.unwrap();
    assert_eq!(crate::support::Answer::of(response).await.problem().code, Code::BodyTooLarge);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let problem = harness.post_text("runs", "selection=raw.orders".to_owned(), &form).await.problem();
    assert_eq!((problem.status, problem.code), (415, Code::UnsupportedMediaType));
    let plain = [("content-type", "text/plain")];
    let problem =
        harness.post_text("runs", "{\"selection\":\"raw.orders\"}".to_owned(), &plain).await.problem();
    assert_eq!(problem.code, Code::UnsupportedMediaType);
    let charset = [("content-type", "application/json; charset=utf-8")];
    harness.post_text("runs", "{\"selection\":\"raw.orders\"}".to_owned(), &charset).await.accepted();
    harness.close().await;
}

#[tokio::test]
async fn definitions_come_back_with_all_their_problems_and_places() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    let head = harness.head().await;
    let asset = |key: &str, line: u32, deps: Value| json!({ "key": key, "function": "a:b", "location": { "file": "a.py", "line": line }, "deps": deps });
    let manifest = json!({
        "manifest_version": 1,
        "project": "shop",
        "assets": [
            asset("raw/orders", 3, json!([])),
            asset("raw/orders", 9, json!([])),
            asset("shop/clean", 12, json!([{ "asset": "raw/ordres" }])),
        ],
    });
    let problem = harness.post("deployments", &manifest).await.problem();
    assert_eq!((problem.status, problem.code), (422, Code::InvalidDefinitions));
    assert_eq!(*problem.detail, format!("the definitions have {} problems", problem.problems.len()));
    let clean = problem.problems.iter().find(|problem| problem.subject == "asset shop.clean").unwrap();
    let place = clean.location.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("a.py", 12));
    assert!(clean.fix.contains("raw.orders") || clean.message.contains("raw.orders"), "{clean:?}");
    assert!(problem.problems.iter().any(|problem| problem.subject == "asset raw.orders"));
    for path in ["deployments/current", "assets/raw/orders"] {
        let code = harness.get(path).await.problem().code;
        assert!(matches!(code, Code::NothingDeployed | Code::UnknownAsset), "{path}: {code:?}");
    }
    let problem = harness.post("runs", &json!({ "selection": "raw.orders" })).await.problem();
    assert_eq!(problem.code, Code::NothingDeployed);
    assert_eq!(harness.head().await, head, "nothing was written");
    harness.close().await;
}

#[tokio::test]
async fn a_workspace_that_is_shut_down_says_so() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.get("readyz").await.ok();
    harness.workspace.clone().shutdown().await.unwrap();
    let answer = harness.get("readyz").await;
    assert_eq!((answer.status, &answer.body["status"]), (503, &json!("not_ready")), "{}", answer.body);
    assert_eq!(answer.body["checks"][0]["reason"], "the workspace is shut down");
    let problem = harness.post("runs", &json!({ "selection": "raw.orders" })).await.problem();
    assert_eq!((problem.status, problem.code), (503, Code::ShuttingDown));
    harness.get("healthz").await.ok();
}
