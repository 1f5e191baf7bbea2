//! Messages to sensors over HTTP: signed as GitHub and Stripe do, with a token, replayed, too large, without an id.

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Harness, project};

const SECRET: &str = "It's a Secret to Everybody";

fn signature(parts: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    HEXLOWER.encode(&mac.finalize().into_bytes())
}

/// A server with a push sensor for each way to prove who sends, and one without any.
async fn server(root: &std::path::Path) -> Harness {
    let harness = Harness::on(root).await;
    let secret = root.join("hook.secret");
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let sensor = |name: &str, scheme: Option<&str>| {
        let mut sensor = json!({
            "name": name, "location": {"file": "jobs.py", "line": 1}, "push": true, "selection": "raw.orders",
        });
        if let Some(scheme) = scheme {
            let secret = json!({"name": "secret", "provider": "file", "path": secret});
            sensor["verify"] = json!({"scheme": scheme, "secret": secret});
        }
        sensor
    };
    let mut manifest = project();
    manifest["sensors"] = json!([
        sensor("github", Some("github")),
        sensor("open", None),
        sensor("stripe", Some("stripe")),
        sensor("token", Some("token")),
    ]);
    harness.post("deployments", &manifest).await.accepted();
    harness
}

/// A request of somebody who does not know the token of the server.
async fn push(harness: &Harness, sensor: &str, body: &str, headers: &[(&str, &str)]) -> (StatusCode, Value) {
    let url = harness.url(&format!("orchestration/sensors/{sensor}/push"));
    let mut request = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .post(url)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.body(body.to_owned()).send().await.unwrap();
    let status = answer.status();
    (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
}

/// Runs that sensors have requested.
async fn runs(harness: &Harness) -> usize {
    harness.workspace.read(|state| state.runs().count()).await.unwrap()
}

#[tokio::test]
async fn a_push_signed_as_github_does_is_taken_once_and_another_is_not() {
    let root = tempfile::tempdir().unwrap();
    let harness = server(root.path()).await;
    let body = r#"{"message_id":"delivery-1","data":{"ref":"refs/heads/main"}}"#;
    let signed = format!("sha256={}", signature(&[body.as_bytes()]));
    let headers = [("X-Hub-Signature-256", signed.as_str())];
    let (status, answer) = push(&harness, "github", body, &headers).await;
    assert_eq!(status, 202, "{answer}");
    assert!(answer["accepted_event_id"].is_string());
    // The same delivery again, as GitHub sends it when nobody has answered in time.
    let (status, answer) = push(&harness, "github", body, &headers).await;
    assert_eq!((status.as_u16(), &answer["accepted_event_id"]), (202, &Value::Null), "{answer}");
    assert_eq!(runs(&harness).await, 1);
    let other = body.replace("main", "mine");
    for (body, headers) in [
        (other.as_str(), vec![("X-Hub-Signature-256", signed.as_str())]),
        (body, vec![("X-Hub-Signature-256", "sha256=00")]),
        (body, vec![("X-Hub-Signature-256", "nonsense")]),
        (body, vec![("Authorization", "Bearer It's a Secret to Everybody")]),
        (body, vec![]),
    ] {
        let (status, answer) = push(&harness, "github", body, &headers).await;
        assert_eq!(
            (status.as_u16(), &answer["code"]),
            (401, &json!("unauthenticated")),
            "{headers:?}: {answer}"
        );
        let text = answer.to_string();
        assert!(!text.contains(&signed) && !text.contains(SECRET), "{text}");
    }
    assert_eq!(runs(&harness).await, 1);
    harness.close().await;
}

#[tokio::test]
async fn a_push_signed_as_stripe_does_is_refused_when_it_is_old() {
    let root = tempfile::tempdir().unwrap();
    let harness = server(root.path()).await;
    let body = r#"{"id":"evt_1","message_id":"evt_1","data":{}}"#;
    let now = harness.workspace.now().as_millis() / 1_000;
    let header = |seconds: i64| {
        let time = seconds.to_string();
        format!("t={time},v0=00,v1={}", signature(&[time.as_bytes(), b".", body.as_bytes()]))
    };
    for (seconds, expected) in [(now, 202), (now - 200, 202), (now - 1_000, 401), (now + 1_000, 401)] {
        let (status, answer) =
            push(&harness, "stripe", body, &[("Stripe-Signature", &header(seconds))]).await;
        assert_eq!(status.as_u16(), expected, "{seconds}: {answer}");
    }
    let changed = header(now).replace("v1=", "v1=0");
    let (status, _) = push(&harness, "stripe", body, &[("Stripe-Signature", &changed)]).await;
    assert_eq!(status, 401);
    assert_eq!(runs(&harness).await, 1);
    harness.close().await;
}

#[tokio::test]
async fn a_push_with_the_token_of_its_sensor_is_taken_and_the_token_of_the_server_is_none() {
    let root = tempfile::tempdir().unwrap();
    let harness = server(root.path()).await;
    let body = r#"{"message_id":"m1","data":{}}"#;
    let shown = format!("Bearer {SECRET}");
    let (status, answer) = push(&harness, "token", body, &[("Authorization", &shown)]).await;
    assert_eq!(status, 202, "{answer}");
    let (status, _) = push(&harness, "token", body, &[("Authorization", "Bearer a token for tests")]).await;
    assert_eq!(status, 401);
    // A sensor without a secret takes messages of those who may ask the server.
    let (status, _) = push(&harness, "open", body, &[]).await;
    assert_eq!(status, 401);
    let (status, _) = push(&harness, "nothing", body, &[]).await;
    assert_eq!(status, 401, "whoever may not ask is not told what there is");
    let (status, answer) =
        push(&harness, "open", body, &[("Authorization", "Bearer a token for tests")]).await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(runs(&harness).await, 2);
    harness.close().await;
}

#[tokio::test]
async fn pushes_that_make_no_sense_change_nothing() {
    let root = tempfile::tempdir().unwrap();
    let harness = server(root.path()).await;
    let shown = format!("Bearer {SECRET}");
    let headers = [("Authorization", shown.as_str())];
    for body in ["", "{", "[]", "7", r#"{"data":{}}"#, r#"{"message_id":""}"#, r#"{"message_id":null}"#] {
        let (status, answer) = push(&harness, "token", body, &headers).await;
        assert_eq!(status.as_u16(), 400, "{body}: {answer}");
        assert!(answer["detail"].is_string(), "{body}: {answer}");
    }
    let large = json!({"message_id": "large", "data": "x".repeat(10_000_000)}).to_string();
    let (status, answer) = push(&harness, "token", &large, &headers).await;
    assert_eq!(status.as_u16(), 413, "{answer}");
    let events =
        harness.workspace.read(move |state| (state.runs().count(), state.sensors().count())).await.unwrap();
    assert_eq!(events, (0, 4));
    let waiting =
        |state: &servo_engine::State| state.sensors().map(|sensor| sensor.messages.len()).sum::<usize>();
    assert_eq!(harness.workspace.read(waiting).await.unwrap(), 0);
    harness.close().await;
}

#[tokio::test]
async fn three_hundred_pushes_of_one_message_at_once_are_one_run() {
    let root = tempfile::tempdir().unwrap();
    let harness = server(root.path()).await;
    let shown = format!("Bearer {SECRET}");
    let body = r#"{"message_id":"upload-7","data":{"file":"a.csv"}}"#;
    let headers = [("Authorization", shown.as_str())];
    let pushes = (0..300).map(|_| push(&harness, "token", body, &headers));
    let answers = futures::future::join_all(pushes).await;
    assert!(answers.iter().all(|(status, _)| *status == 202));
    let taken = answers.iter().filter(|(_, answer)| answer["accepted_event_id"].is_string()).count();
    assert_eq!((taken, runs(&harness).await), (1, 1));
    harness.close().await;
}
