//! Requests in the words of people: planned beside the engine, again if the workspace changes meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_core::{AssetKey, Fingerprint, PartitionsDef};
use servo_engine::definitions::AssetDef;
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{BackfillRequest, PartitionsOf};
use servo_engine::{AttemptOutcome, Caller, ChangePartitions, Deploy, Refusal, RunRequest, RunSource};
use servo_runtime::{Error, WipeRequest};

use crate::support::*;

fn deploy(digest: &str, assets: &[&str]) -> Deploy {
    let customers = || Some(PartitionsDef::Dynamic { name: "customers".to_owned() });
    let asset = |name: &&str| {
        let partitions = if *name == "per_customer" { customers() } else { None };
        Arc::new(AssetDef { key: format!("t/{name}"), partitions, ..AssetDef::default() })
    };
    Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        digest: digest.into(),
        time_zones: "2026e".into(),
        project: "tests".to_owned(),
        assets: assets.iter().map(asset).collect(),
        caller: Caller::user("me"),
    }
}

fn customer(add: &str) -> ChangePartitions {
    let (name, add) = ("customers".to_owned(), vec![add.to_owned()]);
    ChangePartitions { name, add, remove: vec![], caller: Caller::user("me") }
}

fn select(selection: &str) -> RunRequest {
    RunRequest { selection: selection.to_owned(), source: RunSource::Api, ..RunRequest::default() }
}

#[tokio::test]
async fn the_same_request_after_a_deployment_gets_its_run_back_with_its_tasks() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.workspace.deploy(deploy("one", &["a", "b"])).await.unwrap();
    let first = harness.workspace.launch(Some("k".into()), select("t.*")).await.unwrap();
    assert!(first.accepted.is_some());
    harness.workspace.deploy(deploy("two", &["c"])).await.unwrap();
    let again = harness.workspace.launch(Some("k".into()), select("t.*")).await.unwrap();
    assert_eq!((again.run_id, again.accepted, again.tasks), (first.run_id, None, 2));
    let other = harness.workspace.launch(Some("k".into()), select("t.c")).await.unwrap_err();
    assert!(matches!(other, Error::Refused(Refusal::RunKeyConflict { .. })), "{other}");
    harness.ended(first.run_id).await;
    harness.close().await;
}

/// Somebody whose request has an identity.
fn asking(request: &str) -> Caller {
    Caller {
        request_id: Some(request.into()),
        request_fingerprint: Some(Fingerprint::from_digest([1; 32])),
        ..Caller::user("me")
    }
}

#[tokio::test]
async fn a_change_of_partitions_that_are_gone_is_answered_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let workspace = &harness.workspace;
    workspace.deploy(deploy("one", &["per_customer"])).await.unwrap();
    workspace.change_partitions(customer("acme")).await.unwrap();
    let asset = AssetKey::parse("t/per_customer").unwrap();
    let acme = || PartitionsOf { keys: vec!["acme".to_owned()], ..PartitionsOf::default() };
    let wipe = |request: &str, partitions: PartitionsOf| {
        let request = WipeRequest { partitions, caller: asking(request), ..WipeRequest::default() };
        workspace.wipe_partitions(asset.clone(), request)
    };
    let mark = |request: &str| {
        let (outcome, reason) = (AttemptOutcome::Failed, String::new());
        workspace.mark_partitions(asset.clone(), acme(), outcome, reason, asking(request))
    };
    let backfill = |request: &str| {
        let selection = "t.per_customer".to_owned();
        let partitions = PartitionChoice { keys: vec!["acme".to_owned()], ..PartitionChoice::default() };
        let caller = asking(request);
        workspace.create_backfill(BackfillRequest { selection, partitions, caller, ..Default::default() })
    };
    let marked = mark("mark").await.unwrap();
    let (_, wiped) = wipe("wipe", acme()).await.unwrap();
    assert!(marked.change.event_id().is_some() && wiped.change.event_id().is_some());
    let created = backfill("backfill").await.unwrap();
    let gone = ChangePartitions {
        name: "customers".to_owned(),
        add: vec![],
        remove: vec!["acme".to_owned()],
        caller: Caller::user("me"),
    };
    workspace.change_partitions(gone).await.unwrap();
    workspace.deploy(deploy("two", &["other"])).await.unwrap();

    assert!(
        mark("another").await.is_err() && backfill("another").await.is_err(),
        "there is no such partition"
    );
    assert_eq!(mark("mark").await.unwrap(), marked);
    let (preview, again) = wipe("wipe", acme()).await.unwrap();
    assert_eq!((again, preview.count), (wiped, wiped.removed));
    assert_eq!(backfill("backfill").await.unwrap(), created);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_planned_again_while_definitions_and_partitions_change() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.workspace.deploy(deploy("0", &["per_customer"])).await.unwrap();
    harness.workspace.change_partitions(customer("acme")).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let changing = {
        let (workspace, stop) = (harness.workspace.clone(), stop.clone());
        tokio::spawn(async move {
            for n in 1.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let also = format!("a{n}");
                workspace.deploy(deploy(&n.to_string(), &["per_customer", &also])).await.unwrap();
                workspace.change_partitions(customer(&n.to_string())).await.unwrap();
            }
        })
    };
    let mut started = Vec::new();
    for n in 0..40 {
        let partitions = PartitionChoice { keys: vec!["acme".to_owned()], ..PartitionChoice::default() };
        let request = RunRequest { partitions, ..select("t.per_customer") };
        match within(harness.workspace.launch(Some(format!("run {n}").into()), request)).await {
            Ok(launched) => {
                assert_eq!(launched.tasks, 1);
                started.push(launched.run_id);
            }
            Err(Error::Refused(Refusal::StalePlan(_))) => {}
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    within(changing).await.unwrap();
    assert!(!started.is_empty(), "some plans are followed however fast the workspace changes");
    for run in started {
        harness.ended(run).await;
    }
    harness.assert_replay_is_live().await;
    harness.close().await;
}
