//! Whether a server is of use, and what it says about that.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Harness, Setting, eventually, layout};

fn check<'a>(body: &'a Value, name: &str) -> &'a Value {
    let found = body["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {body:#}"))
}

#[tokio::test]
async fn a_server_is_ready_when_something_is_deployed_and_everything_can_be_written() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    let answer = harness.get("readyz").await;
    assert_eq!((answer.status, &answer.body["status"]), (503, &json!("not_ready")));
    assert_eq!(
        *check(&answer.body, "deployment"),
        json!({
            "name": "deployment", "ok": false, "reason": "nothing is deployed",
        })
    );
    harness.post("deployments", &crate::support::project()).await.accepted();
    let body = harness.get("readyz").await.ok();
    assert_eq!(body["status"], "ok");
    let names: Vec<&str> =
        body["checks"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["engine", "deployment", "log", "stores", "tables", "data"]);
    harness.close().await;
}

#[tokio::test]
async fn a_server_whose_lock_is_gone_is_not_ready_and_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.get("readyz").await.ok();
    let home = root.path().join(layout().prefix());
    let segment = fs::read_dir(home.join(layout().ledger_dir())).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(home.join(layout().ledger_lock())).unwrap();
    let before = fs::read(&segment).unwrap();
    let refused = harness.post("runs", &json!({ "selection": "raw.orders" })).await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    eventually("it has stopped", async || !harness.workspace.is_open()).await;
    assert_eq!(fs::read(&segment).unwrap(), before, "nothing was appended");
    let answer = harness.get("readyz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(check(&answer.body, "log")["reason"], "another process may have the log");
    assert!(check(&answer.body, "log")["details"][0].as_str().unwrap().contains(".lock"), "{}", answer.body);
    // Who shows no token is told that something is wrong, and not where.
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let told = Answer::of(plain.get(harness.url("readyz")).send().await.unwrap()).await;
    assert_eq!((told.status, check(&told.body, "log").get("details")), (503, None), "{}", told.body);
}

#[tokio::test]
async fn tables_that_stay_behind_the_log_are_told() {
    let root = tempfile::tempdir().unwrap();
    let ahead = Arc::new(AtomicU64::new(0));
    let setting =
        Setting { flush_every: Duration::from_secs(3_600), ahead: ahead.clone(), ..Setting::default() };
    let harness = Harness::with(root.path(), setting).await;
    harness.get("readyz").await.ok();
    ahead.store(40, Ordering::SeqCst);
    let answer = harness.get("readyz").await;
    assert_eq!((answer.status, &answer.body["status"]), (503, &json!("not_ready")));
    let told = check(&answer.body, "tables");
    let reason = told["reason"].as_str().unwrap();
    assert!(told["ok"] == false && reason.ends_with(" s"), "{told}");
    assert!(reason.starts_with("the tables are ") && reason.contains(" batches behind, for "), "{told}");
    // A few changes wait longer than many.
    ahead.store(20_000, Ordering::SeqCst);
    eventually("they were written", async || harness.get("readyz").await.status == 200).await;
    harness.close().await;
}

#[tokio::test]
async fn a_store_that_cannot_be_written_to_is_told() {
    let root = tempfile::tempdir().unwrap();
    // A file where the directory of the probe would be.
    let home = root.path().join(layout().prefix());
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("health"), "").unwrap();
    let harness = Harness::on(root.path()).await;
    let answer = harness.get("readyz").await;
    assert_eq!((answer.status, &answer.body["status"]), (503, &json!("not_ready")));
    assert_eq!(check(&answer.body, "stores")["reason"], "the store of tables cannot be written to");
    harness.close().await;
}
