//! Runs that are asked for again: all of a run that has ended, or only what did not succeed.

use std::collections::BTreeMap;

use servo_core::{Millis, RunId};
use servo_engine::{
    Caller, Principal, Refusal, RequestError, RunRequest, RunSource, RunState, SettingOrigin, TaskOptions,
    TaskState, TriggerRun,
};
use servo_runtime::{Error, RetryRequest, RunDetail};

use crate::support::*;

fn again(from_failure: bool, who: &str) -> RetryRequest {
    RetryRequest { from_failure, caller: Caller::user(who), run_key: None }
}

/// The edges between tasks, by name.
fn edges(detail: &RunDetail) -> Vec<(String, String)> {
    let names = |edge: &servo_engine::rows::EdgeRow| {
        (name_of(&edge.upstream_task_key), name_of(&edge.downstream_task_key))
    };
    let mut edges: Vec<_> = detail.edges.iter().map(names).collect();
    edges.sort();
    edges
}

fn pairs(edges: &[(&str, &str)]) -> Vec<(String, String)> {
    edges.iter().map(|(up, down)| ((*up).to_owned(), (*down).to_owned())).collect()
}

/// `top` succeeds, `left` fails, `bottom` is skipped for it, `right` succeeds.
async fn failed(harness: &Harness) -> RunDetail {
    harness.script.let_task("left", Behaviour::Fail(u32::MAX));
    let config = BTreeMap::from([("limit".to_owned(), "5".to_owned())]);
    let configured = TaskOptions { config, priority: 3, ..TaskOptions::default() };
    let plan = plan_of(vec![
        request("top", &[], TaskOptions::default()),
        request("left", &["top"], configured),
        request("right", &["top"], TaskOptions::default()),
        request("bottom", &["left", "right"], TaskOptions::default()),
        request("last", &["bottom"], TaskOptions::default()),
    ]);
    let labels = BTreeMap::from([("team".to_owned(), "ops".to_owned())]);
    let run = TriggerRun::of_tasks(
        "first",
        plan,
        RunRequest {
            priority: 7,
            labels,
            timeout: Some(Millis::from_hours(1)),
            caller: Caller::user("me"),
            ..RunRequest::default()
        },
    );
    let run = harness.workspace.trigger(run).await.unwrap().run_id;
    let detail = harness.ended(run).await;
    assert_eq!(detail.run.state, RunState::Failed);
    detail
}

#[tokio::test]
async fn what_did_not_succeed_is_tried_again_with_the_edges_among_it() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let first = failed(&harness).await;
    harness.script.let_task("left", Behaviour::Succeed);
    let launched = harness.workspace.retry(first.run.run_id, again(true, "zoë")).await.unwrap();
    assert_eq!(launched.tasks, 3);
    assert_ne!(launched.run_id, first.run.run_id);
    let again = harness.ended(launched.run_id).await;
    assert_eq!(again.run.state, RunState::Succeeded);
    let names: Vec<String> = again.tasks.iter().map(|row| name_of(&row.task_key)).collect();
    assert_eq!(names, ["bottom", "last", "left"]);
    assert_eq!(edges(&again), pairs(&[("bottom", "last"), ("left", "bottom")]), "and no others");
    assert_eq!(task_row(&again, "left").options, task_row(&first, "left").options);
    assert_eq!((again.run.priority, again.run.timeout), (7, Some(Millis::from_hours(1))));
    assert_eq!(again.run.labels, first.run.labels);
    let of = first.run.run_id;
    assert_eq!(*again.run.source, RunSource::Retry { of, from_failure: true });
    assert_eq!(again.run.requested_by, Principal::user("zoë"));
    harness.close().await;
}

#[tokio::test]
async fn a_whole_run_is_repeated_with_all_its_edges() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let first = failed(&harness).await;
    let launched = harness.workspace.retry(first.run.run_id, again(false, "me")).await.unwrap();
    let again = harness.ended(launched.run_id).await;
    assert_eq!(edges(&again), edges(&first));
    assert_eq!(again.run.plan_fingerprint, first.run.plan_fingerprint, "the same plan");
    assert_eq!(task_states(&again), task_states(&first));
    harness.close().await;
}

#[tokio::test]
async fn a_run_that_left_memory_can_be_tried_again() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open(directory(root.path()), |config| {
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 1)
    })
    .await
    .unwrap();
    let first = failed(&harness).await;
    for n in 0..3 {
        harness.run(&format!("other {n}"), one("other")).await;
    }
    let id = first.run.run_id;
    let in_memory = harness.workspace.read(move |state| state.run(id).is_some()).await.unwrap();
    assert!(!in_memory);
    let launched = harness.workspace.retry(id, again(true, "me")).await.unwrap();
    let again = harness.ended(launched.run_id).await;
    assert_eq!(edges(&again), pairs(&[("bottom", "last"), ("left", "bottom")]));
    assert_eq!(task_row(&again, "left").state, TaskState::Failed, "it still does");
    harness.close().await;
}

#[tokio::test]
async fn what_cannot_be_tried_again_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let retry = |run: RunId, from_failure| harness.workspace.retry(run, again(from_failure, "me"));
    let nobody = RunId::from_u128(7);
    let unknown = retry(nobody, true).await.unwrap_err();
    assert!(matches!(unknown, Error::Refused(Refusal::UnknownRun { run_id }) if run_id == nobody));
    let good = harness.run("good", diamond()).await.run.run_id;
    let nothing = retry(good, true).await.unwrap_err();
    assert!(matches!(nothing, Error::Request(RequestError::NothingToRetry { run_id }) if run_id == good));
    harness.script.let_task("slow", Behaviour::Hang);
    let at_work = harness.trigger("slow", one("slow")).await;
    let early = retry(at_work, false).await.unwrap_err();
    assert!(matches!(early, Error::Request(RequestError::StillRunning { run_id }) if run_id == at_work));
    harness.close().await;
}
