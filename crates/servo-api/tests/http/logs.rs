//! Logs over HTTP: by the part, and as they are written.

use std::sync::Arc;

use crate::support::{Behaviour, Harness, line, within};
use servo_api::client::LogEvent;
use servo_api::views::{LogLine, Task};
use servo_core::{RunId, TaskKey};
use servo_engine::TaskState;
use servo_worker::LogName;
use tokio::sync::Semaphore;

const ORDERS: &str = "raw/orders:materialize";

fn task_id() -> String {
    Task::id_of(&TaskKey::parse(ORDERS).unwrap())
}

fn name(run: RunId) -> LogName {
    LogName { run_id: run, task_key: TaskKey::parse(ORDERS).unwrap(), attempt: 1 }
}

fn texts(lines: &[LogLine]) -> Vec<String> {
    lines.iter().map(|line| line.text.clone()).collect()
}

/// Lines until the end.
async fn rest(tail: &mut servo_api::client::LogTail) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(event) = within(tail.next()).await.unwrap() {
        if let LogEvent::Line(line) = event {
            texts.push(line.text);
        }
    }
    texts
}

#[tokio::test]
async fn a_log_is_read_by_the_part() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let run = harness.run("raw.orders").await.run_id;
    let empty = harness.client.log(run, &task_id(), 1, 0, None).await.unwrap();
    assert_eq!((empty.lines.len(), empty.next_offset, empty.ended), (0, 0, true), "nothing was printed");
    let all: Vec<String> = (0..25).map(|number| format!("line {number} é \u{1f980} \u{0} \"")).collect();
    harness.logs.append(&name(run), all.iter().map(|text| line(text)).collect()).await.unwrap();
    let mut offset = 0;
    let mut read = Vec::new();
    let mut ends = Vec::new();
    while ends.last() != Some(&true) {
        let page = harness.client.log(run, &task_id(), 1, offset, Some(10)).await.unwrap();
        assert!(page.next_offset > offset);
        offset = page.next_offset;
        ends.push(page.ended);
        read.extend(texts(&page.lines));
    }
    assert_eq!((read, ends), (all, vec![false, false, true]));
    let shown = harness.get(&format!("runs/{run}/tasks/{}/attempts/1/logs?limit=1", task_id())).await.ok();
    let at = shown["lines"][0]["at"].as_str().unwrap();
    assert!(at.parse::<servo_core::Timestamp>().is_ok(), "{at}");
    assert_eq!(shown["lines"][0]["stream"], "stdout");
    // An offset that begins no line gives no half ones.
    let odd = harness.client.log(run, &task_id(), 1, 3, None).await.unwrap();
    assert_eq!(odd.lines.len(), 24);
    harness.close().await;
}

#[tokio::test]
async fn a_log_is_followed_until_the_attempt_is_over() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let permits = Arc::new(Semaphore::new(2));
    harness.script.let_asset("raw/orders", Behaviour::Print(permits.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    harness.until(run, ORDERS, TaskState::Running).await;
    let mut tail = harness.client.follow_log(run, &task_id(), 1, 0);
    for number in 1..=4 {
        if number > 2 {
            // Only when everything before it was told.
            permits.add_permits(1);
        }
        match within(tail.next()).await.unwrap() {
            Some(LogEvent::Line(line)) => assert_eq!(line.text, format!("line {number}")),
            other => panic!("{other:?}"),
        }
    }
    permits.close();
    assert_eq!(rest(&mut tail).await, Vec::<String>::new());
    harness.ended(run).await;
    let mut late = harness.client.follow_log(run, &task_id(), 1, 0);
    assert_eq!(rest(&mut late).await, ["line 1", "line 2", "line 3", "line 4"], "also when it is over");
    harness.close().await;
}

#[tokio::test]
async fn a_reader_who_comes_back_goes_on_after_the_last_line() {
    let root = tempfile::tempdir().unwrap();
    let mut harness = Harness::on(root.path()).await;
    let permits = Arc::new(Semaphore::new(3));
    harness.script.let_asset("raw/orders", Behaviour::Print(permits.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    harness.until(run, ORDERS, TaskState::Running).await;
    let mut tail = harness.client.follow_log(run, &task_id(), 1, 0);
    for _ in 0..3 {
        assert!(matches!(within(tail.next()).await.unwrap(), Some(LogEvent::Line(_))));
    }
    harness.stop_server().await;
    permits.add_permits(2);
    harness.start_server().await;
    for number in 4..=5 {
        match within(tail.next()).await.unwrap() {
            Some(LogEvent::Line(line)) => assert_eq!(line.text, format!("line {number}")),
            other => panic!("{other:?}"),
        }
    }
    permits.close();
    assert!(rest(&mut tail).await.is_empty());
    harness.close().await;
}

#[tokio::test]
async fn the_log_of_an_attempt_whose_worker_says_nothing_ends_with_the_attempt() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    harness.until(run, ORDERS, TaskState::Running).await;
    let mut tail = harness.client.follow_log(run, &task_id(), 1, 0);
    harness.logs.append(&name(run), vec![line("only")]).await.unwrap();
    assert!(matches!(within(tail.next()).await.unwrap(), Some(LogEvent::Line(_))));
    // The task ends without a word about its log.
    gate.add_permits(1);
    assert!(matches!(within(tail.next()).await.unwrap(), Some(LogEvent::End(_))));
    harness.close().await;
}

#[tokio::test]
async fn a_log_is_searched_and_says_where_the_search_has_stopped() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let run = harness.run("raw.orders").await.run_id;
    let path = format!("runs/{run}/tasks/{}/attempts/1/logs", task_id());
    let padding = "x".repeat(100_000);
    // Longer than is searched at once, with something to find at both ends.
    let mut lines = vec![line("One Needle"), line("hay")];
    lines.extend((0..170).map(|_| line(&padding)));
    lines.extend([line("another nEEDLE"), line("ÄRGER in the end")]);
    harness.logs.append(&name(run), lines).await.unwrap();
    let found = |page: &serde_json::Value| {
        let lines = page["lines"].as_array().unwrap().iter();
        lines.map(|line| line["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = harness.get(&format!("{path}?search=NEEDLE")).await.ok();
    assert_eq!((found(&first), &first["ended"]), (vec!["One Needle".to_owned()], &false.into()));
    let stopped = first["next_offset"].as_u64().unwrap();
    assert!((16 << 20..17 << 20).contains(&stopped), "{stopped}");
    let rest = harness.get(&format!("{path}?search=needle&offset={stopped}")).await.ok();
    assert_eq!((found(&rest), &rest["ended"]), (vec!["another nEEDLE".to_owned()], &true.into()));
    let one = harness.get(&format!("{path}?search=needle&limit=1")).await.ok();
    assert!(one["next_offset"].as_u64().unwrap() < 1_000, "it has stopped behind the line");
    let umlaut = harness.get(&format!("{path}?search=%C3%A4rger&offset={stopped}")).await.ok();
    assert_eq!(found(&umlaut), ["ÄRGER in the end"]);
    for wrong in [String::new(), "x".repeat(1_001)] {
        let problem = harness.get(&format!("{path}?search={wrong}")).await.problem();
        assert_eq!(problem.violations[0].field, "search");
    }
    harness.close().await;
}
