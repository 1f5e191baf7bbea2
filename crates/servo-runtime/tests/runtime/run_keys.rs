//! Run keys that have left memory are looked up in the tables, for ever; requests are carried out once.

use std::time::Duration;

use servo_core::Fingerprint;
use servo_engine::{Caller, Refusal, RunReply, RunRequest, SettingOrigin, Settings, StartWith, TriggerRun};
use servo_runtime::{Error, RetryRequest};

use crate::support::*;

fn forgetful() -> Settings {
    Settings { recent_runs: 1, recent_run_keys: 1, ..Settings::default() }
}

async fn open(root: &std::path::Path) -> Harness {
    let change = |config: &mut servo_runtime::Config| {
        config.start_with = StartWith::differing(&forgetful(), SettingOrigin::Flag);
        config.flush_every = Duration::from_millis(1);
    };
    Harness::open(directory(root), change).await.unwrap()
}

fn caller(id: &str) -> Caller {
    Caller {
        request_id: Some(id.into()),
        request_fingerprint: Some(Fingerprint::from_digest([1; 32])),
        ..Caller::user("me")
    }
}

#[tokio::test]
async fn a_key_that_only_files_know_is_the_same_run_and_a_conflict_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let mut runs = Vec::new();
    for number in 0..12 {
        runs.push(harness.run(&format!("k{number}"), one("a")).await.run.run_id);
    }
    harness.close().await;
    // A second process has nothing in memory but the newest key.
    let harness = open(root.path()).await;
    for (number, run_id) in runs.iter().enumerate() {
        let key = format!("k{number}");
        let again = harness.workspace.trigger(TriggerRun::new(key.clone(), one("a"), "test")).await.unwrap();
        assert_eq!(again, RunReply { run_id: *run_id, accepted: None });
        let other = TriggerRun::new(key, one("b"), "test");
        let refused = harness.workspace.trigger(other).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(Refusal::RunKeyConflict { .. })), "{refused}");
    }
    // Keys go from memory to files while they are asked for.
    for number in 12..40 {
        let key = format!("k{number}");
        let run_id = harness.run(&key, one("a")).await.run.run_id;
        let again = harness.workspace.trigger(TriggerRun::new(key, one("a"), "test")).await.unwrap();
        assert_eq!(again, RunReply { run_id, accepted: None });
        let first = harness.workspace.trigger(TriggerRun::new("k0", one("a"), "test")).await.unwrap();
        assert_eq!(first.run_id, runs[0]);
    }
    assert_eq!(harness.workspace.conflicts(None, 100).await.unwrap().len(), runs.len());
    harness.close().await;
    assert!(assert_tables_verify(&directory(root.path())).await.is_ok());
}

#[tokio::test]
async fn a_retry_is_one_run_across_restarts_although_its_run_key_is_made_up() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let of = harness.run("first", one("a")).await.run.run_id;
    let request = || RetryRequest { from_failure: false, run_key: None, caller: caller("retry") };
    let first = harness.workspace.retry(of, request()).await.unwrap();
    harness.ended(first.run_id).await;
    harness.close().await;
    for _ in 0..3 {
        let harness = open(root.path()).await;
        assert_eq!(harness.workspace.retry(of, request()).await.unwrap(), first);
        let other = RunRequest {
            caller: Caller {
                request_fingerprint: Some(Fingerprint::from_digest([2; 32])),
                ..caller("retry")
            },
            ..RunRequest::default()
        };
        let refused =
            harness.workspace.trigger(TriggerRun::of_tasks("k", one("a"), other)).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(Refusal::RequestIdReused { .. })), "{refused}");
        harness.close().await;
    }
}
