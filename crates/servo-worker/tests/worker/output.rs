//! Captured output of tasks: complete, in order, assigned to the right attempt, without secrets.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use servo_engine::Outcome;
use servo_engine::definitions::Isolation;
use servo_runtime::SystemClock;
use servo_store::DataRoot;
use servo_worker::{
    DataLocations, LogFiles, LogLine, LogSink, LogState, LogStream, LogTarget, RunnerSettings, Runners,
    TaskFunction,
};
use tokio::sync::watch;

use crate::support::*;

const LOUD: &str = r#"
import os, sys, threading, time

@servo.asset(namespace="t")
def many():
    for number in range(20_000):
        print(number)
        if number % 2:
            print(number, file=sys.stderr)

@servo.asset(namespace="t")
def strange():
    os.write(1, b"not \xff utf-8\n")
    print("x" * 100_000)
    print()
    sys.stdout.write("no end")

@servo.asset(namespace="t")
def silent():
    pass

@servo.asset(namespace="t")
def closes():
    print("before")
    sys.stdout.flush()
    os.close(1)
    os.close(2)

@servo.asset(namespace="t")
def tells(ctx):
    secret = ctx.secrets["PASSWORD"]
    for end in range(0, 12):
        os.write(1, b"x" * end)
        for character in secret:
            os.write(1, character.encode())
        os.write(1, b"\n")
    os.write(1, b"y" * (65536 - 4) + secret.encode() + b"\n")
    print("about", secret, file=sys.stderr)
    ctx.log.warning("it is %s", secret)
    ctx.progress(0.1, f"sending {secret}")
    os.write(2, f"half of a line with {secret}".encode())
    raise ValueError(secret)

@servo.asset(namespace="t")
def tells_later():
    print("hunter2-xyzzy")
"#;

#[tokio::test]
async fn every_line_comes_in_order_and_to_its_own_attempt() {
    let harness = Harness::with(LOUD, RunnerSettings { slots: 1, ..RunnerSettings::default() });
    let (many, strange, silent) = (envelope("many"), envelope("strange"), envelope("silent"));
    for task in [&many, &strange, &silent] {
        assert_eq!(harness.run(task).await.outcome, Outcome::Succeeded);
    }
    let numbers =
        |range: std::ops::Range<u32>, step| range.step_by(step).map(|n| n.to_string()).collect::<Vec<_>>();
    assert_eq!(harness.printed(&many, LogStream::Stdout).await, numbers(0..20_000, 1));
    assert_eq!(harness.printed(&many, LogStream::Stderr).await, numbers(1..20_000, 2));
    let long = "x".repeat(100_000);
    assert_eq!(
        harness.printed(&strange, LogStream::Stdout).await,
        ["not \u{fffd} utf-8", &long[..65_536], &long[65_536..], "", "no end"]
    );
    assert!(harness.log(&silent).await.is_empty() && !harness.logs.path(&log_name(&silent)).exists());
}

#[tokio::test]
async fn streams_that_a_task_closes_do_not_keep_it_or_the_next_from_ending() {
    let harness = Harness::with(LOUD, RunnerSettings { slots: 1, ..RunnerSettings::default() });
    let task = envelope("closes");
    assert_eq!(harness.run(&task).await.outcome, Outcome::Succeeded);
    assert_eq!(harness.printed(&task, LogStream::Stdout).await, ["before"]);
    assert_eq!(harness.call("silent").await.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_secret_is_nowhere_to_be_found() {
    let harness = Harness::with(LOUD, RunnerSettings { slots: 1, ..RunnerSettings::default() });
    std::fs::write(harness.path("password"), "hunter2-xyzzy\n").unwrap();
    for isolation in [Isolation::Shared, Isolation::Process] {
        let task = with_secret(envelope("tells"), "PASSWORD", "password");
        let task = with_work(task, |work| work.isolation = isolation);
        let progress = watch::Sender::new(None);
        let report = within(harness.runners.run(&task, &progress)).await;
        assert_eq!(report.outcome, Outcome::Failed);
        let log = std::fs::read_to_string(harness.logs.path(&log_name(&task))).unwrap();
        let shown = format!("{log}{report:?}{progress:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("xyzzy"), "{shown}");
        let mut expected: Vec<String> = (0..12).map(|end| "x".repeat(end) + "***").collect();
        expected.extend(["y".repeat(65_536 - 4), "***".to_owned()]);
        assert_eq!(harness.printed(&task, LogStream::Stdout).await, expected);
        assert_eq!(harness.printed(&task, LogStream::Stderr).await, ["about ***", "half of a line with ***"]);
        assert_eq!(harness.printed(&task, LogStream::Log).await, ["it is ***"]);
        assert_eq!(last_progress(&progress).unwrap().message, "sending ***");
        assert!(report.error.unwrap().message.contains("***"));
    }
    let later = envelope("tells_later");
    harness.run(&later).await;
    assert_eq!(
        harness.printed(&later, LogStream::Stdout).await,
        ["***"],
        "what the process knows stays secret"
    );
}

#[tokio::test]
async fn a_log_can_be_followed_while_it_is_written() {
    let harness = Harness::new(
        r#"
import os, time

@servo.asset(namespace="t")
def steps():
    for step in range(3):
        print("step", step)
        while not os.path.exists(f"seen-{step}"):
            time.sleep(0.005)
"#,
    );
    let task = envelope("steps");
    let name = log_name(&task);
    let mut watched = harness.logs.watch(&name);
    assert_eq!(*watched.borrow(), LogState { len: 0, ended: false });
    let follow = async {
        let (mut from, mut seen) = (0, Vec::new());
        loop {
            let state = *watched.borrow_and_update();
            let part = harness.logs.read(&name, from, 1).await.unwrap();
            for line in part.lines() {
                std::fs::write(harness.path(&line.text.replace("step ", "seen-")), "").unwrap();
                seen.push(line.text);
            }
            from = part.next;
            if state.ended && from == state.len {
                return seen;
            }
            if from == state.len {
                watched.changed().await.unwrap();
            }
        }
    };
    let (seen, report) = tokio::join!(within(follow), harness.run(&task));
    assert_eq!(
        (seen, report.outcome),
        (vec!["step 0".to_owned(), "step 1".to_owned(), "step 2".to_owned()], Outcome::Succeeded)
    );
}

/// A disk that is full until it is not.
#[derive(Default)]
struct Full {
    has_room: AtomicBool,
    refused: AtomicUsize,
    written: Mutex<Vec<LogLine>>,
    ended: AtomicUsize,
}

#[async_trait]
impl LogSink for Full {
    async fn write(&self, _target: &LogTarget, lines: Vec<LogLine>) -> io::Result<()> {
        if !self.has_room.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written.lock().unwrap().extend(lines);
        Ok(())
    }

    async fn end(&self, _target: &LogTarget) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_full_disk_under_the_log_loses_lines_and_says_how_many_but_fails_no_task() {
    let root = tempfile::tempdir().unwrap();
    write_project(
        root.path(),
        r#"
import os, time

@servo.asset(namespace="t")
def goes_on():
    print("one")
    print("two")
    while not os.path.exists("room"):
        time.sleep(0.005)
    print("three")
"#,
    );
    let sink = Arc::new(Full::default());
    let root_of_data = DataRoot::directory(&root.path().join(".servo"), &layout()).unwrap();
    let data = DataLocations::new(root_of_data, layout());
    let project = servo_worker::project::Project::open(root.path()).unwrap();
    let runners = Runners::new(project, data, sink.clone(), Arc::new(SystemClock), RunnerSettings::default());
    let (task, progress) = (envelope("goes_on"), watch::Sender::new(None));
    let (report, ()) = tokio::join!(within(runners.run(&task, &progress)), async {
        eventually("lines were refused", || sink.refused.load(Ordering::SeqCst) > 0).await;
        sink.has_room.store(true, Ordering::SeqCst);
        std::fs::write(root.path().join("room"), "").unwrap();
    });
    assert_eq!(report.outcome, Outcome::Succeeded);
    assert_eq!(sink.ended.load(Ordering::SeqCst), 1);
    let written = sink.written.lock().unwrap();
    let texts: Vec<_> = written.iter().map(|line| (line.stream, line.text.as_str())).collect();
    let lost = (LogStream::Servo, "2 lines are missing here: no storage space");
    assert_eq!(texts, [lost, (LogStream::Stdout, "three")]);
}

#[tokio::test]
async fn half_a_line_of_a_process_that_was_killed_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let logs = LogFiles::new(directory.path(), layout());
    let name = log_name(&envelope("some"));
    let line = |text: &str| LogLine::new(servo_core::Timestamp::EPOCH, LogStream::Stdout, text);
    logs.append(&name, vec![line("whole")]).await.unwrap();
    let file = logs.path(&name);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], &whole[..10]].concat()).unwrap();
    assert_eq!(logs.read(&name, 0, 1_000).await.unwrap().bytes, whole, "it is not shown");
    logs.append(&name, vec![line("next")]).await.unwrap();
    let texts: Vec<_> = logs.read(&name, 0, 1_000).await.unwrap().lines().map(|line| line.text).collect();
    assert_eq!(texts, ["whole", "next"]);
    let end = std::fs::metadata(&file).unwrap().len();
    assert_eq!(logs.read(&name, end, 1_000).await.unwrap().next, end);
}
