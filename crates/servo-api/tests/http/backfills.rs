//! Backfills that ended long ago are read from the tables: they look as they did, and stay ended.

use futures::future::join_all;
use serde_json::{Value, json};
use servo_api::Code;

use crate::support::{Harness, eventually};

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
