//! Workspaces of one process.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::WorkspaceId;
use servo_engine::{Plan, TaskOptions};
use servo_runtime::{Host, Stores, Workspace};

use crate::support::*;

/// The log of a workspace, without times: acknowledgements of the queue arrive in any order.
async fn history(stores: &Stores) -> Vec<String> {
    let mut keys: Vec<String> =
        events(stores.log.as_ref()).await.into_iter().map(|event| event.idempotency_key).collect();
    keys.sort();
    keys
}

async fn closed(_: servo_runtime::WorkspaceKey, workspace: Arc<Workspace>) {
    Workspace::clone(&workspace).shutdown().await.unwrap();
}

async fn open_in(host: &Host<Workspace>, root: &std::path::Path, workspace: &str) -> (Harness, Stores) {
    let id = WorkspaceId::parse(workspace).unwrap();
    let stores = Stores::open_directory(root, tenant(), id.clone()).unwrap();
    let harness = Harness::open_in(host, stores.clone()).await;
    (harness, stores)
}

fn plan_in(workspace: &str) -> Plan {
    let tasks = ["a", "b", "c"].map(|name| request(name, &[], TaskOptions::default()));
    Plan::build(&tenant(), &WorkspaceId::parse(workspace).unwrap(), tasks.into(), 10).unwrap()
}

#[tokio::test]
async fn workspaces_in_one_process_do_not_meet() {
    let (alone, together) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = Host::default();
    let (harness, stores_alone) = open_in(&host, alone.path(), "first").await;
    for i in 0..5 {
        harness.run(&format!("run {i}"), plan_in("first")).await;
    }
    harness.close_workers().await;
    host.close_all(closed).await;

    let names = ["first", "second", "third"];
    let mut harnesses = Vec::new();
    for name in names {
        harnesses.push(open_in(&host, together.path(), name).await);
    }
    for i in 0..5 {
        let work = names
            .iter()
            .zip(&harnesses)
            .map(|(name, (harness, _))| async move { harness.run(&format!("run {i}"), plan_in(name)).await });
        let details = futures::future::join_all(work).await;
        let runs: BTreeSet<_> = details.iter().map(|detail| detail.run.run_id).collect();
        assert_eq!(runs.len(), names.len(), "the same run key names another run in another workspace");
        let first = details[0].run.run_id;
        assert!(
            harnesses[1].0.workspace.run(first).await.unwrap().is_none(),
            "and cannot be seen from there"
        );
    }
    assert_eq!(host.all_open().len(), names.len());
    let second = (tenant(), WorkspaceId::parse("second").unwrap());
    let now = harnesses[1].0.workspace.now();
    let reopened = host.open(&second, now, async || Err::<Workspace, _>("it is opened again")).await;
    assert!(reopened.is_ok(), "an open workspace is handed out again");
    drop(reopened);
    for (harness, _) in &mut harnesses {
        assert_eq!(harness.script.begun().len(), 15);
    }
    let stores: Vec<Stores> = harnesses.iter().map(|(_, stores)| stores.clone()).collect();
    for (harness, _) in harnesses {
        harness.close_workers().await;
    }
    host.close_all(closed).await;
    assert_eq!(
        history(&stores_alone).await,
        history(&stores[0]).await,
        "the same with and without neighbours"
    );
    assert_ne!(history(&stores[0]).await, history(&stores[1]).await);
}
