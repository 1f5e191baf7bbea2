//! Pauses, settings, and what they do to runs.

use serde_json::{Value, json};
use servo_api::Code;
use servo_api::views::SettingsBody;
use servo_engine::{SettingValue, Settings};

use crate::support::{Harness, Setting, eventually, project};

#[tokio::test]
async fn what_is_paused_waits_and_says_so_until_it_is_resumed() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let paused =
        harness.post("pauses", &json!({ "scope": "asset:raw.orders", "reason": "broken feed" })).await;
    assert!(paused.accepted()["accepted_event_id"].is_string());
    let run = harness.trigger("raw.orders").await.run_id;
    let why = harness.get(&format!("runs/{run}/why")).await.ok();
    assert_eq!(why["tasks_waiting"], 1);
    let wait = &why["tasks"][0]["waits"][0];
    assert_eq!(wait["reason"], "pause");
    assert_eq!(wait["detail"], "asset:raw/orders is paused by user:local: broken feed");
    assert_eq!(wait["remedy"], "servo admin resume --asset raw/orders");
    let admission = harness.get("admission").await.ok();
    assert_eq!((&admission["runs_at_work"], &admission["tasks_waiting"]), (&json!(1), &json!(1)));
    assert_eq!(admission["paused"][0]["scope"], "asset:raw/orders");
    harness.post("pauses/resume", &json!({ "scope": "asset:raw.orders" })).await.accepted();
    harness.ended(run).await;
    let why = harness.get(&format!("runs/{run}/why")).await.ok();
    assert_eq!((&why["state"], &why["tasks"]), (&json!("SUCCEEDED"), &json!([])));
    let bad = harness.post("pauses", &json!({ "scope": "everything" })).await.problem();
    assert_eq!((bad.status, bad.code), (400, Code::InvalidRequest));
    let nowhere = harness.get("runs/run_aaaaaaaaaaaaaaaaaaaaaaaaaa/why").await.problem();
    assert_eq!((nowhere.status, nowhere.code), (404, Code::UnknownRun));
    harness.close().await;
}

#[tokio::test]
async fn settings_are_shown_with_origin_and_author_and_changed_all_or_none() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { recent_runs: 7, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..Setting::default() }).await;
    let find = |all: &Value, name: &str| -> Value {
        let items = all["items"].as_array().unwrap();
        items.iter().find(|item| item["name"] == name).cloned().unwrap_or_default()
    };
    let all = harness.get("settings").await.ok();
    let recent = find(&all, "recent_runs");
    assert_eq!(
        (&recent["value"], &recent["origin"], &recent["changed_by"]),
        (&json!(7), &json!("flag"), &json!("system"))
    );
    let timeout = find(&all, "execution_timeout");
    assert_eq!((&timeout["text"], &timeout["origin"]), (&json!("1h"), &json!("default")));
    let body = SettingsBody {
        set: [
            ("execution_timeout".to_owned(), SettingValue::Text("30m".to_owned())),
            ("pool.warehouse".to_owned(), SettingValue::Number(4)),
        ]
        .into(),
        ..SettingsBody::default()
    };
    let changed = harness.client.change_settings(&body).await.unwrap();
    assert!(changed.accepted.accepted_event_id.is_some());
    let all = harness.get("settings").await.ok();
    let timeout = find(&all, "execution_timeout");
    assert_eq!((&timeout["value"], &timeout["origin"]), (&json!(1_800_000), &json!("api")));
    assert_eq!(timeout["changed_by"], "user:local");
    assert_eq!(find(&all, "pool.warehouse")["text"], "4");
    assert_eq!(harness.get("assets/raw/orders").await.ok()["timeout_ms"], 1_800_000);
    let bad = SettingsBody {
        set: [
            ("recent_runs".to_owned(), SettingValue::Number(1)),
            ("heartbeat_timeout".to_owned(), SettingValue::Text("1ms".to_owned())),
        ]
        .into(),
        ..SettingsBody::default()
    };
    let refused = harness.client.change_settings(&bad).await.unwrap_err().to_string();
    assert!(refused.contains("setting heartbeat_timeout cannot be 1ms; it is from 5s to 1d"), "{refused}");
    assert_eq!(find(&harness.get("settings").await.ok(), "recent_runs")["value"], 7, "none of them");
    harness.close().await;
}

#[tokio::test]
async fn queues_say_what_waits_for_them_since_when_and_who_serves_them() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { push_limit: 0, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..Setting::default() }).await;
    let mut manifest = project();
    manifest["assets"][0]["queue"] = json!("gpu");
    harness.post("deployments", &manifest).await.accepted();
    let queue = async |name: &str| -> Value {
        let all = harness.get("queues").await.ok();
        let found = all["items"].as_array().unwrap().iter().find(|item| item["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("no {name} in {all}"))
    };
    let idle = json!({
        "name": "gpu", "tasks_waiting": 0, "tasks_dispatched": 0, "tasks_running": 0, "workers": 0, "slots": 0, "free": 0,
    });
    assert_eq!(queue("gpu").await, idle, "a definition names it");
    let run = harness.trigger("raw.orders").await.run_id;
    let waits = queue("gpu").await;
    assert_eq!((&waits["tasks_waiting"], &waits["tasks_dispatched"]), (&json!(1), &json!(0)));
    let since: servo_core::Timestamp = waits["waiting_since"].as_str().unwrap().parse().unwrap();
    assert!(since <= harness.workspace.now());
    harness.post("pauses", &json!({ "scope": "queue:cpu", "reason": "too hot" })).await.accepted();
    assert_eq!(queue("cpu").await["paused"]["reason"], "too hot");
    let limit = json!({ "set": { "push_limit.gpu": 1 } });
    let patch = harness.http.patch(harness.url("settings")).header("content-type", "application/json");
    assert_eq!(patch.body(limit.to_string()).send().await.unwrap().status(), 202);
    let handed_out = async || queue("gpu").await["tasks_dispatched"] == 1;
    eventually("it is handed to a queue that calls its workers", handed_out).await;
    let full = queue("gpu").await;
    let figures = [&full["tasks_waiting"], &full["free"], &full["push_limit"]];
    assert_eq!(figures, [&json!(0), &json!(0), &json!(1)]);
    assert_eq!(harness.client.queues().await.unwrap().items[0].name, "cpu", "by name");
    harness.post(&format!("runs/{run}/cancel"), &json!({})).await.accepted();
    harness.close().await;
}
