//! Following a run: every row that changed, in order, whatever breaks in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Behaviour, Harness, Setting, within};
use futures::StreamExt;
use serde_json::{Value, json};
use servo_api::Code;
use servo_api::client::{ClientError, RunEvent};
use servo_api::views::LeaseBody;
use servo_core::{EventId, RunId};
use servo_engine::{RunState, Settings, TaskState};
use tokio::sync::Semaphore;

/// One message as it is on the wire.
#[derive(Debug, Clone)]
struct SseEvent {
    event: String,
    id: Option<EventId>,
    data: Value,
}

/// Reads a stream to its end, or until enough was seen.
async fn messages(harness: &Harness, run: RunId, seen: Option<EventId>, most: usize) -> Vec<SseEvent> {
    let mut request = harness.http.get(harness.url(&format!("runs/{run}/events")));
    if let Some(seen) = seen {
        request = request.header("last-event-id", seen.to_string());
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.bytes_stream();
    let mut text = String::new();
    let mut found = Vec::new();
    while let Some(bytes) = within(body.next()).await {
        text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        while let Some((message, rest)) = text.split_once("\n\n") {
            let field = |name: &str| {
                message.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
            };
            if let Some(event) = field("event:") {
                let data = serde_json::from_str(&field("data:").unwrap()).unwrap();
                found.push(SseEvent { event, id: field("id:").map(|id| id.parse().unwrap()), data });
            }
            text = rest.to_owned();
            if found.len() >= most {
                return found;
            }
        }
    }
    found
}

/// The rows that a reader of these messages ends up with.
fn rows(messages: &[SseEvent]) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    for message in messages.iter().filter(|message| message.event != "end") {
        let name = message.data.get("task_key").unwrap_or(&json!("run")).to_string();
        rows.insert(name, message.data.clone());
    }
    rows
}

#[tokio::test]
async fn a_run_that_has_ended_is_told_whole_then_the_end() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { recent_runs: 1, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..Setting::default() }).await;
    let run = harness.run("+shop.report").await.run_id;
    let mut before = None;
    for is_hot in [true, false] {
        if !is_hot {
            harness.run("raw.orders").await;
        }
        let told = messages(&harness, run, None, usize::MAX).await;
        let end = told.last().unwrap();
        assert_eq!((end.event.as_str(), &end.data["state"]), ("end", &json!("SUCCEEDED")));
        let rows = rows(&told);
        assert_eq!(rows.len(), 4, "the run and its three tasks, each once");
        assert_eq!(told.len(), 5);
        let versions: Vec<&str> =
            told.iter().filter_map(|message| message.data["row_version"].as_str()).collect();
        assert!(versions.is_sorted(), "{versions:?}");
        if let Some(before) = before {
            assert_eq!(rows, before, "the same from memory and from the tables");
        }
        before = Some(rows);
    }
    harness.close().await;
}

#[tokio::test]
async fn a_reader_who_comes_back_misses_nothing_wherever_it_broke_off() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_asset("raw/orders", Behaviour::Fail(u32::MAX));
    // One event fails the first task and skips the others: several rows of one version.
    let run = harness.run("+shop.report").await.run_id;
    let all = messages(&harness, run, None, usize::MAX).await;
    let whole = rows(&all);
    let ids: Vec<EventId> = all.iter().filter_map(|message| message.id).collect();
    assert!(ids.len() < all.len() - 1, "rows of one version share an id: {all:#?}");
    for seen in 1..=all.len() {
        let first = &all[..seen];
        let last = first.iter().rev().find_map(|message| message.id);
        let rest = messages(&harness, run, last, usize::MAX).await;
        let together: Vec<SseEvent> = first.iter().chain(&rest).cloned().collect();
        assert_eq!(rows(&together), whole, "broken off after {seen}");
        assert_eq!(rest.last().unwrap().event, "end");
        let is_new = |message: &SseEvent| {
            let version: EventId = message.data["row_version"].as_str().unwrap().parse().unwrap();
            last.is_none_or(|last| version > last)
        };
        assert!(rest[..rest.len() - 1].iter().all(is_new), "nothing is told that was seen");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_run_at_work_is_followed_as_it_goes() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("shop/clean", Behaviour::Gate(gate.clone()));
    let run = harness.trigger("+shop.report").await.run_id;
    let mut events = harness.client.follow(run, None);
    let mut seen: BTreeMap<String, Vec<TaskState>> = BTreeMap::new();
    let end = loop {
        match within(events.next()).await.unwrap().expect("there is an end") {
            RunEvent::Run(row) => assert_eq!(row.run_id, run),
            RunEvent::Task(row) => {
                let states = seen.entry(row.task_key.to_string()).or_default();
                if states.last() != Some(&row.state) {
                    states.push(row.state);
                }
                if row.task_key.as_str() == "shop/clean:materialize" && row.state == TaskState::Running {
                    gate.add_permits(1);
                }
            }
            RunEvent::End(end) => break end,
        }
    };
    assert_eq!(end.state, RunState::Succeeded);
    assert_eq!(within(events.next()).await.unwrap(), None, "nothing comes after the end");
    assert_eq!(seen.len(), 3);
    for (task, states) in &seen {
        assert_eq!(states.last(), Some(&TaskState::Succeeded), "{task}: {states:?}");
    }
    assert!(seen["shop/clean:materialize"].contains(&TaskState::Running));
    harness.close().await;
}

#[tokio::test]
async fn progress_is_told() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    let mut events = harness.client.follow(run, None);
    let mut progress = None;
    while let Some(event) = within(events.next()).await.unwrap() {
        if let RunEvent::Task(row) = event
            && row.progress.is_some()
        {
            progress = row.progress;
            gate.add_permits(1);
        }
    }
    let progress = progress.expect("it said how far it was");
    assert_eq!((progress.ppm, progress.message.as_str()), (400_000, "at the gate"));
    harness.close().await;
}

#[tokio::test]
async fn a_big_run_is_told_in_parts() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    let daily = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2015-12-31" } });
    let project = json!({ "manifest_version": 1, "project": "big", "assets": [
        { "key": "big/days", "function": "a:b", "location": { "file": "a.py", "line": 1 }, "partitions": daily },
    ] });
    harness.post("deployments", &project).await.accepted();
    let body = json!({ "selection": "big.days", "partitions": { "ranges": ["2013-01-01..2015-12-31"] } });
    let accepted = harness.post("runs", &body).await.accepted();
    assert_eq!(accepted["tasks"], 1095);
    let run: RunId = accepted["run_id"].as_str().unwrap().parse().unwrap();
    let told = messages(&harness, run, None, usize::MAX).await;
    assert_eq!(told.last().unwrap().event, "end");
    let rows = rows(&told);
    assert_eq!(rows.len(), 1096);
    let ended = rows.values().filter(|row| row["state"] == "SUCCEEDED").count();
    assert_eq!(ended, 1096, "the last that was told of every row is what it became");
    harness.close().await;
}

#[tokio::test]
async fn a_stream_goes_on_after_the_server_was_restarted() {
    let root = tempfile::tempdir().unwrap();
    let mut harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    let mut events = harness.client.follow(run, None);
    assert!(within(events.next()).await.unwrap().is_some());
    harness.stop_server().await;
    gate.add_permits(1);
    within(harness.workspace.wait(run)).await.unwrap();
    harness.start_server().await;
    let mut last = None;
    while let Some(event) = within(events.next()).await.unwrap() {
        last = Some(event);
    }
    assert!(matches!(last, Some(RunEvent::End(end)) if end.state == RunState::Succeeded));
    harness.close().await;
}

#[tokio::test]
async fn a_server_that_ends_ends_its_streams_and_those_who_wait() {
    let root = tempfile::tempdir().unwrap();
    let mut harness = Harness::with(root.path(), Setting { slots: 0, ..Setting::default() }).await;
    let run = harness.trigger("raw.orders").await.run_id;
    within(harness.taken("default")).await;
    let response = harness.http.get(harness.url(&format!("runs/{run}/events"))).send().await.unwrap();
    let mut body = response.bytes_stream();
    assert!(within(body.next()).await.unwrap().is_ok());
    let client = harness.client.clone();
    let wait = LeaseBody {
        worker_id: "w".to_owned(),
        queues: vec!["default".to_owned()],
        slots: 1,
        wait_ms: 30_000,
    };
    let lease = tokio::spawn(async move { client.lease(&wait).await });
    let (_, rest) = tokio::join!(harness.stop_server(), body.collect::<Vec<_>>());
    assert!(rest.iter().all(Result::is_ok), "it ends, and is not broken off: {rest:?}");
    // Either it was told that there is nothing, or it had not got through yet.
    let leased = within(lease).await.unwrap();
    assert!(
        leased.as_ref().is_ok_and(Vec::is_empty) || matches!(leased, Err(ClientError::Unreachable { .. }))
    );
    harness.close().await;
}

#[tokio::test]
async fn a_place_to_go_on_from_must_be_one() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let run = harness.run("raw.orders").await.run_id;
    let request =
        harness.http.get(harness.url(&format!("runs/{run}/events"))).header("last-event-id", "yesterday");
    let problem = crate::support::Answer::of(request.send().await.unwrap()).await.problem();
    assert_eq!(problem.code, Code::InvalidRequest);
    assert_eq!(problem.violations[0].field, "Last-Event-ID");
    harness.close().await;
}
