//! A workspace that is closed: everyone is answered, and nothing is left.

use std::collections::BTreeSet;

use servo_engine::{EventData, Refusal, TriggerRun};
use servo_projections::Projection;
use servo_runtime::{Error, Stores};

use crate::attempts::dispatched;
use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_shutdown_answers_everyone_and_leaves_complete_tables() {
    for round in 0..12 {
        let root = tempfile::tempdir().unwrap();
        let harness =
            Harness::open(directory(root.path()), |config| config.input_capacity = 4).await.unwrap();
        let callers: Vec<_> = (0..40)
            .map(|i| {
                let workspace = harness.workspace.clone();
                tokio::spawn(async move {
                    let mut accepted = Vec::new();
                    for j in 0.. {
                        let request = TriggerRun::new(format!("run {i} {j}"), one("a"), "test");
                        match workspace.trigger(request).await {
                            Ok(reply) => accepted.extend(reply.accepted),
                            Err(Error::Stopped) => return accepted,
                            Err(Error::Refused(Refusal::Quota { .. })) => tokio::task::yield_now().await,
                            Err(error) => panic!("neither accepted nor stopped: {error}"),
                        }
                    }
                    unreachable!("callers go on until the workspace stops")
                })
            })
            .collect();
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let workspace = harness.workspace.clone();
                tokio::spawn(
                    async move { while workspace.runs(None, 5, Default::default()).await.is_ok() {} },
                )
            })
            .collect();
        let log = harness.stores.log.clone();
        eventually("work is under way", async || log.next_seq().await.unwrap() > 3 + round % 5).await;
        let stores = harness.stores.clone();
        harness.close().await;
        let mut accepted = BTreeSet::new();
        for caller in callers {
            accepted.extend(within(caller).await.unwrap());
        }
        for reader in readers {
            within(reader).await.unwrap();
        }
        let logged = events(stores.log.as_ref()).await.into_iter();
        let logged: BTreeSet<_> = logged
            .filter(|event| matches!(event.data, EventData::RunRequested(_)))
            .map(|event| event.id)
            .collect();
        assert_eq!(accepted, logged, "what was accepted was answered, and the other way round");
        let projection =
            Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await.unwrap().unwrap();
        let rows = projection.hot_rows().await.unwrap();
        assert_eq!(rows.head.seq + 1, stores.log.next_seq().await.unwrap(), "recovery reads no tail");
        let replayed = replay(stores.log.as_ref(), rows.head.seq).await;
        assert_same_rows(&rows, &replayed.rows());
    }
}

#[tokio::test]
async fn after_shutdown_everything_is_refused_and_nothing_hangs() {
    let root = tempfile::tempdir().unwrap();
    let (harness, envelope) = dispatched(directory(root.path())).await;
    let workspace = harness.workspace.clone();
    let run = envelope.run_id;
    let waiting = tokio::spawn({
        let workspace = workspace.clone();
        async move { workspace.wait(run).await }
    });
    tokio::task::yield_now().await;
    harness.close().await;
    assert!(matches!(within(waiting).await.unwrap(), Err(Error::Stopped)), "the run did not end");
    assert!(matches!(within(workspace.wait(run)).await, Err(Error::Stopped)));
    assert!(matches!(within(workspace.run(run)).await, Err(Error::Stopped)));
    let late = within(workspace.started(&envelope.task_token, "worker")).await;
    assert!(matches!(late, Err(Error::Stopped)));
    assert!(within(workspace.shutdown()).await.is_ok(), "shutting down again is fine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_shut_it_down_at_once_both_wait_until_it_is_done() {
    for _ in 0..10 {
        let root = tempfile::tempdir().unwrap();
        let harness = Harness::on(root.path()).await;
        harness.run("one", diamond()).await;
        let stores = harness.stores.clone();
        let second = tokio::spawn({
            let workspace = harness.workspace.clone();
            async move {
                // The first has the threads by now.
                while workspace.wake().await.is_ok() {
                    tokio::task::yield_now().await;
                }
                within(workspace.shutdown()).await.unwrap();
                let report = assert_tables_verify(&stores).await;
                assert_eq!(
                    report.through + 1,
                    stores.log.next_seq().await.unwrap(),
                    "nothing is left to write"
                );
            }
        });
        harness.close().await;
        within(second).await.unwrap();
    }
}

#[tokio::test]
async fn a_workspace_that_is_dropped_lets_go_of_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.run("one", one("a")).await;
    assert!(Stores::open_directory(root.path(), tenant(), workspace_id()).is_err(), "one writer");
    drop(harness);
    eventually("the lock is free", async || {
        Stores::open_directory(root.path(), tenant(), workspace_id()).is_ok()
    })
    .await;
}
