//! Backfills: those that ended long ago are read from the tables, lists have filters, and a cancel holds at once.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use servo_api::Code;
use tokio::sync::Semaphore;

use crate::support::{Behaviour, Harness, Setting, eventually};

/// More than are kept in memory once they have ended.
const MANY: usize = 1_010;

fn days() -> Value {
    json!({ "selection": "raw.days", "partitions": { "ranges": ["2013-01-01..2013-01-02"] } })
}

async fn ended(harness: &Harness, name: String) -> String {
    let made = harness.post_with("orchestration/backfills", &days(), &[("idempotency-key", &name)]).await;
    let made = made.accepted();
    let id = made["backfill_id"].as_str().unwrap().to_owned();
    // Or it has ended already.
    harness.post(&format!("orchestration/backfills/{id}/cancel"), &json!({})).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_backfills_leave_memory_and_stay_readable() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let first = ended(&harness, "first".to_owned()).await;
    let path = format!("orchestration/backfills/{first}");
    let shown = async || harness.get(&path).await.ok();
    eventually("its runs end", || async { shown().await["active_runs"] == json!([]) }).await;
    let before = shown().await;
    for some in (0..MANY).collect::<Vec<_>>().chunks(50) {
        join_all(some.iter().map(|number| ended(&harness, format!("b{number}")))).await;
    }
    let kept = || async { harness.workspace.read(|state| state.backfills().count()).await.unwrap() };
    eventually("the first ones leave memory", || async { kept().await <= 1_000 }).await;
    assert_eq!(shown().await, before, "it looks as it did");
    harness.get(&format!("{path}/chunks")).await.ok();
    let again = harness.post_with("orchestration/backfills", &days(), &[("idempotency-key", "first")]).await;
    assert_eq!(again.accepted()["backfill_id"], first.as_str(), "the same request is the same backfill");
    let refused = harness.post(&format!("{path}/pause"), &json!({})).await.problem();
    assert_eq!(refused.code, Code::InvalidStateTransition);

    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = harness.get(&format!("orchestration/backfills?limit=100{cursor}")).await.ok();
        let ids = page["items"].as_array().unwrap().iter();
        listed.extend(ids.map(|item| item["backfill_id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(listed.len(), MANY + 1);
    assert!(listed.is_sorted_by(|a, b| a > b), "the newest first, each once");
    assert_eq!(listed.last(), Some(&first));
    harness.close().await;
}

#[tokio::test]
async fn nothing_starts_after_a_backfill_was_cancelled() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/days", Behaviour::Gate(gate.clone()));
    let body = json!({
        "selection": "raw.days", "partitions": { "ranges": ["2013-01-01..2013-01-31"] },
        "chunk_size": 1, "max_concurrent_runs": 4,
    });
    let id = harness.post("orchestration/backfills", &body).await.accepted()["backfill_id"].clone();
    let path = format!("orchestration/backfills/{}", id.as_str().unwrap());
    let begun = || harness.script.count("raw/days");
    eventually("all slots are taken", || async { begun() == 4 }).await;
    harness.post(&format!("{path}/cancel"), &json!({})).await.accepted();
    let (before, planned) = (begun(), harness.get(&path).await.ok()["planned_chunks"].clone());
    // Running chunks end, and there is room for everything that is left.
    gate.add_permits(100);
    eventually("its runs end", || async { harness.get(&path).await.ok()["active_runs"] == json!([]) }).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(begun(), before, "nothing new starts within two seconds");
    let after = harness.get(&path).await.ok();
    assert_eq!((&after["state"], &after["planned_chunks"]), (&json!("CANCELLED"), &planned));
    let runs = harness.get("runs?limit=100").await.ok();
    assert_eq!(runs["items"].as_array().unwrap().len(), 4, "no run was asked for either");
    harness.close().await;
}

#[tokio::test]
async fn backfills_are_listed_by_asset_source_and_time_from_either_end() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let create = async |selection: &str| {
        let body = json!({ "selection": selection, "partitions": { "keys": ["2013-01-01"] } });
        let made = harness.post("orchestration/backfills", &body).await.accepted();
        let id = made["backfill_id"].as_str().unwrap().to_owned();
        let path = format!("orchestration/backfills/{id}");
        eventually("it ends", || async { harness.get(&path).await.ok()["is_ended"] == true }).await;
        id
    };
    let listed = async |query: &str| {
        let page = harness.get(&format!("orchestration/backfills?{query}")).await.ok();
        let ids = page["items"].as_array().unwrap().iter().map(|item| item["backfill_id"].as_str().unwrap());
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    harness.script.let_asset("shop/daily", Behaviour::Fail(9));
    let (first, second) = (create("raw.days").await, create("shop.daily").await);
    let retried = harness.post(&format!("orchestration/backfills/{second}/retry-failed"), &json!({})).await;
    let third = retried.accepted()["backfill_id"].as_str().unwrap().to_owned();
    let all = [third.clone(), second.clone(), first.clone()];
    assert_eq!(listed("").await, all, "the newest first");
    assert_eq!(listed("asset=raw.days").await, std::slice::from_ref(&first));
    assert_eq!(listed("asset=shop/daily").await, all[..2]);
    assert_eq!(listed("source=retry").await, std::slice::from_ref(&third));
    assert_eq!(listed("source=request&sort=created_at").await, [first.clone(), second.clone()]);
    let oldest = harness.get("orchestration/backfills?sort=created_at&limit=1").await.ok();
    assert_eq!(oldest["items"][0]["backfill_id"], first);
    let cursor = oldest["next_cursor"].as_str().unwrap();
    assert_eq!(
        listed(&format!("sort=created_at&limit=5&cursor={cursor}")).await,
        [second.clone(), third.clone()]
    );
    let created = harness.get(&format!("orchestration/backfills/{second}")).await.ok()["created_at"].clone();
    let created = created.as_str().unwrap();
    assert_eq!(listed(&format!("created_before={created}")).await, [first]);
    assert_eq!(listed(&format!("created_after={created}&sort=created_at")).await, [second, third]);
    for wrong in ["source=nobody", "sort=name", "asset=", "created_after=soon"] {
        let problem = harness.get(&format!("orchestration/backfills?{wrong}")).await.problem();
        assert_eq!(problem.code, Code::InvalidRequest, "{wrong}");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_chunk_at_work_says_what_has_become_of_each_of_its_partitions() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { slots: 1, ..Setting::default() }).await;
    let gate = Arc::new(Semaphore::new(1));
    harness.script.let_asset("raw/days", Behaviour::Gate(gate.clone()));
    let body = json!({
        "selection": "raw.days", "partitions": { "ranges": ["2013-01-01..2013-01-03"] }, "chunk_size": 3,
    });
    let id = harness.post("orchestration/backfills", &body).await.accepted()["backfill_id"].clone();
    let path = format!("orchestration/backfills/{}/chunks", id.as_str().unwrap());
    let chunk = async || harness.get(&path).await.ok()["items"][0].clone();
    let figures = async || {
        let chunk = chunk().await;
        ["completed_partitions", "running_partitions", "failed_partitions"]
            .map(|name| chunk[name].as_u64().unwrap_or_default())
    };
    eventually("one is made and the next one runs", || async { figures().await == [1, 1, 0] }).await;
    let states = async || {
        let tasks = chunk().await["tasks"].as_array().cloned().unwrap_or_default();
        tasks.iter().map(|task| task["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let now = states().await;
    assert_eq!((now.len(), now.iter().filter(|state| *state == "SUCCEEDED").count()), (3, 1), "{now:?}");
    assert_eq!(now.iter().filter(|state| *state == "RUNNING").count(), 1, "{now:?}");
    gate.add_permits(2);
    eventually("it ends", || async { chunk().await["state"] == "SUCCEEDED" }).await;
    assert_eq!((figures().await, states().await.len()), ([3, 0, 0], 0), "what has ended is counted alone");
    harness.close().await;
}
