//! Runs over HTTP: triggered, listed, cancelled, retried.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Behaviour, Harness, Setting, keys, within};
use serde_json::json;
use servo_api::client::ListOptions;
use servo_api::views::{CancelBody, RetryBody, RunBody};
use servo_api::{Code, Page};
use servo_core::RunId;
use servo_engine::{RunSource, RunState, Settings, TaskState};
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_run_is_asked_for_and_looked_at() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = json!({
        "selection": "+shop.report",
        "config": { "rate": 7 },
        "labels": { "team": "ops" },
        "priority": 3,
        "timeout_ms": 60_000,
    });
    let accepted = harness.post("runs", &body).await.accepted();
    assert_eq!(accepted["tasks"], 3);
    let run: RunId = accepted["run_id"].as_str().unwrap().parse().unwrap();
    let event = accepted["accepted_event_id"].as_str().unwrap();
    let row = harness.ended(run).await;
    assert_eq!(row.state, RunState::Succeeded);
    assert_eq!((row.tasks_total, row.tasks_succeeded), (3, 3));
    assert_eq!(row.labels, BTreeMap::from([("team".to_owned(), "ops".to_owned())]));
    assert_eq!((row.priority, row.timeout_ms.unwrap().get()), (3, 60_000));
    assert_eq!(row.requested_event_id.to_string(), event);
    assert_eq!((&row.source, row.requested_by.as_str()), (&RunSource::Api, "user:local"));
    assert_eq!(row.selection, "+shop.report");
    let shown = harness.get(&format!("runs/{run}?wait_for_event_id={event}")).await.ok();
    assert_eq!(shown["created_at"], accepted["accepted_at"]);
    assert_eq!(shown["created_at"].as_str().unwrap().len(), "2025-01-15T10:30:00.123Z".len());
    assert_eq!(shown["state"], "SUCCEEDED");
    assert!(shown.get("cancelled_by").is_none(), "what is not there is left out");

    let task = harness.task(run, "shop/report:materialize").await;
    assert_eq!((task.task.state, task.task.attempt), (TaskState::Succeeded, 1));
    assert_eq!((task.task.asset_key.as_str(), task.task.operation.as_str()), ("shop/report", "materialize"));
    assert_eq!(task.outputs.len(), 1);
    assert_eq!(task.attempts.len(), 1);
    assert!(task.attempts[0].started_at.unwrap() <= task.attempts[0].ended_at.unwrap());
    harness.close().await;
}

#[tokio::test]
async fn partitions_are_asked_for_as_people_write_them() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    for (partitions, tasks) in [
        (json!({ "keys": ["2013-01-05"] }), 2),
        (json!({ "ranges": ["2013-01-01..2013-01-03"] }), 6),
        (json!({ "latest": true }), 2),
        (json!({ "keys": ["2013-01-05"], "ranges": ["2013-01-05..2013-01-06"] }), 4),
    ] {
        let body = json!({ "selection": "+shop.daily", "partitions": partitions });
        let accepted = harness.post("runs", &body).await.accepted();
        assert_eq!(accepted["tasks"], tasks, "{partitions}");
        let run = accepted["run_id"].as_str().unwrap().parse().unwrap();
        assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    }
    let run = harness.client.runs(&ListOptions::default()).await.unwrap().items[3].run_id;
    let task = harness.task(run, "shop/daily[date=d:2013-01-05]:materialize").await.task;
    assert_eq!(task.partition_key.as_deref(), Some("date=d:2013-01-05"));
    assert_eq!(task.partition.as_deref(), Some("2013-01-05"));
    harness.close().await;
}

#[tokio::test]
async fn a_plan_says_what_would_run_and_stores_nothing() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.run("raw.orders").await;
    let head = harness.head().await;
    let body = json!({ "selection": "shop.clean or shop.report or raw.feed", "labels": { "a": "b" } });
    let plan = harness.post("plan", &body).await.ok();
    assert_eq!(plan["stages"], 2);
    assert_eq!(plan["external"], json!(["raw/feed"]));
    let keys: Vec<_> =
        plan["tasks"].as_array().unwrap().iter().map(|task| task["task_key"].clone()).collect();
    assert_eq!(keys, ["shop/clean:materialize", "shop/report:materialize"]);
    assert_eq!(plan["tasks"][1]["upstream"], json!([0]));
    assert_eq!(plan["tasks"][1]["stage"], 2);
    assert_eq!(plan["tasks"][0]["why"], json!([{ "reason": "selected", "of": "shop.clean" }]));
    let input = &plan["tasks"][0]["inputs"][0];
    assert_eq!((&input["asset_key"], &input["materialized"]), (&json!("raw/orders"), &json!(1)));
    assert_eq!(plan["tasks"][1]["inputs"][0]["in_run"], 1);
    assert_eq!(plan["warnings"], json!([]));

    let body = RunBody {
        selection: "shop.daily".to_owned(),
        partitions: servo_api::views::PartitionsBody {
            ranges: vec!["2013-01-02..2013-01-04".to_owned()],
            ..Default::default()
        },
        ..RunBody::default()
    };
    let plan = harness.client.plan(&body).await.unwrap();
    assert_eq!(plan.tasks.len(), 3);
    let input = &plan.tasks[0].inputs[0];
    assert_eq!((input.first.as_deref(), input.last.as_deref()), (Some("2013-01-02"), Some("2013-01-02")));
    assert_eq!((input.partitions, input.never_materialized), (1, 1));
    assert_eq!(plan.warnings.len(), 3);
    assert!(
        plan.warnings[0].ends_with("reads raw.days 2013-01-02, which was never materialized"),
        "{plan:?}"
    );
    assert_eq!(harness.head().await, head);
    harness.close().await;
}

#[tokio::test]
async fn runs_are_listed_by_the_page_the_newest_first() {
    let root = tempfile::tempdir().unwrap();
    // Most of them are in the tables only.
    let settings = Settings { recent_runs: 3, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..Setting::default() }).await;
    harness.script.let_asset("shop/clean", Behaviour::Fail(u32::MAX));
    let mut made = Vec::new();
    for number in 0..12 {
        made.push(harness.run(if number % 4 == 0 { "shop.clean" } else { "raw.orders" }).await.run_id);
    }
    made.reverse();
    let mut options = ListOptions { limit: Some(5), ..ListOptions::default() };
    let mut listed = Vec::new();
    let mut sizes = Vec::new();
    loop {
        let page = harness.client.runs(&options).await.unwrap();
        sizes.push(page.items.len());
        listed.extend(page.items.into_iter().map(|run| run.run_id));
        match page.next_cursor {
            Some(cursor) => options.cursor = Some(cursor),
            None => break,
        }
        // A run that comes meanwhile moves nothing.
        harness.run("raw.orders").await;
    }
    assert_eq!((listed, sizes), (made.clone(), vec![5, 5, 2]));

    let failed =
        ListOptions { state: Some("failed,timed_out".to_owned()), limit: Some(2), ..ListOptions::default() };
    let page = harness.client.runs(&failed).await.unwrap();
    assert!(page.items.iter().all(|run| run.state == RunState::Failed));
    assert_eq!(page.items.len(), 2);
    let rest = ListOptions { cursor: page.next_cursor.clone(), ..failed };
    let last: Page<_> = harness.client.runs(&rest).await.unwrap();
    assert_eq!((last.items.len(), last.next_cursor), (1, None));
    assert_eq!(last.items[0].run_id, *made.last().unwrap());
    let other = ListOptions { cursor: page.next_cursor, ..ListOptions::default() };
    let error = harness.client.runs(&other).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidCursor), "the filter is part of it");
    let old = harness.client.run(*made.last().unwrap()).await.unwrap();
    assert_eq!(old.state, RunState::Failed, "found in the tables");
    harness.close().await;
}

#[tokio::test]
async fn tasks_are_listed_by_the_page_in_the_order_of_their_keys() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { recent_runs: 1, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..Setting::default() }).await;
    harness.script.let_asset("raw/days", Behaviour::Fail(1));
    let body = json!({ "selection": "raw.days", "partitions": { "ranges": ["2013-01-01..2013-01-07"] } });
    let accepted = harness.post("runs", &body).await.accepted();
    let run: RunId = accepted["run_id"].as_str().unwrap().parse().unwrap();
    harness.ended(run).await;
    for is_hot in [true, false] {
        if !is_hot {
            harness.run("raw.orders").await;
        }
        let mut options = ListOptions { limit: Some(3), ..ListOptions::default() };
        let mut keys = Vec::new();
        loop {
            let page = harness.client.tasks(run, &options).await.unwrap();
            keys.extend(page.items.iter().map(|task| task.task_key.clone()));
            let Some(cursor) = page.next_cursor else { break };
            options.cursor = Some(cursor);
        }
        assert_eq!(keys.len(), 7);
        assert!(keys.is_sorted());
        let failed = ListOptions { state: Some("FAILED".to_owned()), ..ListOptions::default() };
        let failed = harness.client.tasks(run, &failed).await.unwrap().items;
        assert_eq!(failed.len(), 1);
        let brief = failed[0].error.as_ref().unwrap();
        assert_eq!((brief.message.as_str(), brief.traceback.as_deref()), ("raw/days said no", None));
        let detail = harness.client.task(run, &failed[0].task_id).await.unwrap();
        assert!(detail.task.error.unwrap().traceback.is_some());
    }
    harness.close().await;
}

#[tokio::test]
async fn a_run_is_cancelled_once() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { slots: 0, ..Setting::default() }).await;
    let run = harness.trigger("+shop.report").await.run_id;
    // Begun by somebody who will not hear of it.
    let sealed = within(harness.taken("default")).await;
    let envelope = keys().open(&sealed, harness.workspace.now()).unwrap();
    harness.workspace.started(&envelope.task_token, "by hand").await.unwrap();
    let too_soon = harness.client.cancel(run, &CancelBody { force: true, ..CancelBody::default() }).await;
    assert_eq!(too_soon.unwrap_err().code(), Some(Code::ForceTooSoon));
    let body = CancelBody { reason: "a mistake".to_owned(), ..CancelBody::default() };
    let first = harness.client.cancel(run, &body).await.unwrap();
    assert!(first.accepted_event_id.is_some() && first.accepted_at.is_some());
    let again = harness.client.cancel(run, &CancelBody::default()).await.unwrap();
    assert_eq!(again.accepted_event_id, None, "it was under way");
    let shown = harness.client.run(run).await.unwrap();
    assert_eq!(shown.state, RunState::Cancelling);
    assert_eq!(
        (shown.cancelled_by.as_deref(), shown.cancel_reason.as_deref()),
        (Some("user:local"), Some("a mistake"))
    );
    harness.close().await;
}

#[tokio::test]
async fn what_has_ended_is_not_cancelled() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { recent_runs: 1, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..Setting::default() }).await;
    let old = harness.run("raw.orders").await.run_id;
    let new = harness.run("raw.orders").await.run_id;
    for run in [old, new] {
        let error = harness.client.cancel(run, &CancelBody::default()).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::RunEnded), "{error}");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_run_is_tried_again_whole_or_from_where_it_failed() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_asset("shop/clean", Behaviour::Fail(1));
    let failed = harness.run("+shop.report").await;
    assert_eq!((failed.state, failed.tasks_skipped), (RunState::Failed, 1));
    let body = RetryBody { from_failure: true, ..RetryBody::default() };
    let again = harness.client.retry(failed.run_id, &body).await.unwrap();
    assert_eq!(again.tasks, 2);
    let again = harness.ended(again.run_id).await;
    assert_eq!(again.state, RunState::Succeeded);
    assert!(matches!(again.source, RunSource::Retry { of, from_failure: true } if of == failed.run_id));
    let nothing = harness.client.retry(again.run_id, &body).await.unwrap_err();
    assert_eq!(nothing.code(), Some(Code::NothingToRetry));
    let whole = harness.client.retry(failed.run_id, &RetryBody::default()).await.unwrap();
    assert_eq!(whole.tasks, 3);
    assert_eq!(harness.ended(whole.run_id).await.state, RunState::Succeeded);

    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let active = harness.trigger("raw.orders").await.run_id;
    let error = harness.client.retry(active, &RetryBody::default()).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::RunActive));
    gate.add_permits(1);
    harness.ended(active).await;
    harness.close().await;
}

#[tokio::test]
async fn a_run_key_names_one_run() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = |selection: &str| json!({ "selection": selection, "run_key": "nightly:2013-01-05" });
    let first = harness.post("runs", &body("raw.orders")).await.accepted();
    let again = harness.post("runs", &body("raw.orders")).await.accepted();
    assert_eq!(first, again);
    let other = harness.post("runs", &body("shop.clean")).await.problem();
    assert_eq!((other.status, other.code), (409, Code::RunKeyConflict));
    harness.close().await;
}

#[tokio::test]
async fn a_quota_is_named_with_its_figures() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { max_concurrent_runs: 1, max_queued_runs: 1, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..Setting::default() }).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let first = harness.trigger("raw.orders").await.run_id;
    let run = harness.trigger("raw.orders").await.run_id;
    let why = harness.get(&format!("runs/{run}/why")).await.ok();
    assert_eq!((&why["state"], &why["waits"][0]["reason"]), (&json!("QUEUED"), &json!("queue")));
    assert_eq!(harness.get(&format!("runs/{first}/why")).await.ok()["waits"], json!([]));
    let problem = harness.post("runs", &json!({ "selection": "raw.orders" })).await.problem();
    assert_eq!((problem.status, problem.code), (429, Code::QuotaExceeded));
    let quota = problem.quota.unwrap();
    assert_eq!((quota.name.as_str(), quota.limit, quota.used), ("max_queued_runs", 1, 1));
    gate.add_permits(2);
    harness.ended(run).await;
    harness.close().await;
}

#[tokio::test]
async fn a_read_waits_for_an_event() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let head = harness.workspace.read(|state| state.head().last_event).await.unwrap();
    // Ids grow: the one after the newest is of the next event, whatever that will be, or before it.
    let next = head.next().unwrap();
    let path = format!("runs?wait_for_event_id={next}&timeout_ms=30000");
    let (page, run) = tokio::join!(within(harness.get(&path)), harness.trigger("raw.orders"));
    assert_eq!(page.ok()["items"][0]["run_id"], run.run_id.to_string());
    harness.ended(run.run_id).await;

    let never = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
    let problem = harness.get(&format!("assets?wait_for_event_id={never}&timeout_ms=1")).await;
    assert_eq!(problem.headers["retry-after"], "1");
    let problem = problem.problem();
    assert_eq!((problem.status, problem.code, problem.retry_after), (503, Code::NotYet, Some(1)));
    harness.close().await;
}

#[tokio::test]
async fn runs_are_listed_by_what_was_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = json!({ "selection": "raw.orders", "labels": { "team": "ops" } });
    let first = harness.post("runs", &body).await.accepted();
    let first = first["run_id"].as_str().unwrap().to_owned();
    let second = harness.trigger("+shop.report").await.run_id.to_string();
    let listed = async |query: &str| {
        let page = harness.get(&format!("runs?{query}")).await.ok();
        let ids =
            page["items"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(listed("source=api").await, [second.clone(), first.clone()], "newest first");
    assert_eq!(listed("sort=created_at").await, [first.clone(), second.clone()]);
    assert_eq!(listed("asset=shop.report").await, std::slice::from_ref(&second));
    assert_eq!(listed("asset=raw/orders&label=team%3Dops").await, std::slice::from_ref(&first));
    assert_eq!(listed("source=schedule,sensor").await, [""; 0]);
    assert_eq!(listed("created_before=2001-01-01T00:00:00.000Z").await, [""; 0]);
    assert_eq!(listed("created_after=2001-01-01T00:00:00.000Z&partition=2025-01-15").await, [""; 0]);
    for wrong in ["sort=name", "label=team", "created_after=today", "asset=none"] {
        let problem = harness.get(&format!("runs?{wrong}")).await.problem();
        assert_eq!((problem.status, problem.code), (400, Code::InvalidRequest), "{wrong}");
    }
    harness.close().await;
}

#[tokio::test]
async fn tasks_of_a_run_are_listed_by_asset() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_asset("shop/clean", Behaviour::Fail(9));
    let run = harness.trigger("+shop.report").await.run_id;
    harness.ended(run).await;
    let listed = async |query: &str| {
        let page = harness.get(&format!("runs/{run}/tasks?{query}")).await.ok();
        let keys = page["items"].as_array().unwrap().iter().map(|task| task["task_key"].as_str().unwrap());
        keys.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await.len(), 3);
    assert_eq!(listed("asset=shop.clean").await, ["shop/clean:materialize"]);
    assert_eq!(listed("asset=shop/report&state=SKIPPED").await, ["shop/report:materialize"]);
    assert_eq!(listed("asset=shop.report&state=FAILED").await, [""; 0]);
    assert_eq!(listed("asset=raw.days").await, [""; 0]);
    assert_eq!(harness.get(&format!("runs/{run}/tasks?asset=shop")).await.problem().status, 400);
    harness.close().await;
}
