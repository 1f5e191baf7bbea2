//! `fresh` of reads: how far behind an answer from the tables may be (ADR-280).

use std::time::Duration;

use serde_json::json;
use servo_api::Code;

use crate::support::{Harness, Setting};

#[tokio::test]
async fn a_fresh_read_of_the_tables_has_everything_that_was_accepted_before_it() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let path = "assets/raw/orders/materializations";
    for number in 1..=20 {
        let run = harness.trigger("raw.orders").await.run_id;
        harness.workspace.wait(run).await.unwrap();
        let page = harness.get(&format!("{path}?fresh=true&limit=1")).await.ok();
        assert_eq!(page["items"][0]["run_id"], run.to_string(), "run {number}");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_read_may_be_as_far_behind_as_it_says_and_waits_no_longer_than_it_says() {
    let root = tempfile::tempdir().unwrap();
    // Tables that are written once a minute, unless somebody waits for them.
    let setting = Setting { flush_every: Duration::from_secs(60), ..Setting::default() };
    let harness = Harness::with(root.path(), setting).await;
    let run = harness.trigger("raw.orders").await.run_id;
    harness.workspace.wait(run).await.unwrap();
    let path = "assets/raw/orders/materializations";
    assert_eq!(harness.get(&format!("{path}?fresh=false")).await.ok(), json!({ "items": [] }));
    let late = harness.get(&format!("{path}?fresh=true&timeout_ms=0")).await.problem();
    assert_eq!((late.status, late.code), (503, Code::NotYet));
    let page = harness.get(&format!("{path}?fresh=0")).await.ok();
    assert_eq!(page["items"][0]["run_id"], run.to_string(), "they are written at once");
    // Reads from memory are never behind, and wait for nothing.
    let runs = harness.get("runs?fresh=true&timeout_ms=0").await.ok();
    assert_eq!(runs["items"][0]["run_id"], run.to_string());
    for wrong in ["fresh=", "fresh=soon", "fresh=-1", "fresh=60001"] {
        for path in [path, "runs", "assets"] {
            let problem = harness.get(&format!("{path}?{wrong}")).await.problem();
            assert_eq!(problem.violations[0].field, "fresh", "{path} {wrong}");
        }
    }
    harness.close().await;
}

#[tokio::test]
async fn tables_that_are_behind_by_less_than_was_said_are_fresh_enough() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let run = harness.trigger("raw.orders").await.run_id;
    harness.workspace.wait(run).await.unwrap();
    let page = harness.get("assets/raw/orders/materializations?fresh=60000&timeout_ms=20000").await.ok();
    // Within the last minute: it may be there or not, and is answered either way.
    assert!(page["items"].as_array().unwrap().len() <= 1);
    harness.close().await;
}
