//! Hostile functions: each has a clear result, and the next task finds a clean process.

use std::time::Duration;

use servo_engine::definitions::{Compute, Isolation};
use servo_engine::{ErrorCode, Outcome, Report};
use servo_queue::Envelope;
use servo_worker::{LogLevel, LogStream, RunnerSettings, TaskFunction};
use tokio::sync::watch;

use crate::support::*;

const HOSTILE: &str = r#"
import ctypes, os, signal, subprocess, sys, threading, time

PIECE = "x" * 1023

@servo.asset(namespace="t")
def clean():
    print("clean", os.path.exists("servo.toml"), os.environ.get("LEFT"))
    return 1

@servo.asset(namespace="t")
def prints_much():
    for number in range(100_000):
        print(f"{number:06} {PIECE}")

@servo.asset(namespace="t")
def prints_for_ever():
    while True:
        print(PIECE)

@servo.asset(namespace="t")
def prints_binary():
    os.write(1, bytes(range(256)) * 100)
    os.write(2, b"\x1b[2J\xff\xfe\n")

@servo.asset(namespace="t")
def recurses():
    return deeper(0)

def deeper(depth):
    return deeper(depth + 1)

@servo.asset(namespace="t")
def exits():
    os._exit(7)

@servo.asset(namespace="t")
def segfaults():
    ctypes.string_at(0)

@servo.asset(namespace="t")
def leaves_a_thread():
    def goes_on():
        while True:
            print("from the thread")
            time.sleep(0.01)
    threading.Thread(target=goes_on).start()

@servo.asset(namespace="t")
def leaves_a_child():
    subprocess.Popen(["sh", "-c", "while true; do echo from the child; sleep 0.01; done"])

@servo.asset(namespace="t")
def takes_memory():
    return len(bytearray(2_000_000_000))

@servo.asset(namespace="t")
def ignores_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("begun", "w").close()
    while True:
        time.sleep(60)

@servo.asset(namespace="t")
def changes_everything():
    os.chdir("/")
    os.environ["LEFT"] = "behind"
    os.close(1)
    sys.stdout = None
    os.umask(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
"#;

const KEPT: usize = 1 << 20;

fn harness() -> Harness {
    let settings = RunnerSettings {
        slots: 1,
        max_log_bytes: KEPT,
        grace: Duration::from_millis(200),
        ..RunnerSettings::default()
    };
    Harness::with(HOSTILE, settings)
}

/// Runs a task, and then one that must find everything as it should be.
async fn hostile(harness: &Harness, task: &Envelope) -> Report {
    let report = harness.run(task).await;
    assert_next_is_clean(harness).await;
    report
}

async fn assert_next_is_clean(harness: &Harness) {
    let next = envelope("clean");
    let report = harness.run(&next).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    let lines = harness.log(&next).await;
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["clean True None"]);
    harness.assert_nothing_is_staged();
}

fn code(report: &Report) -> ErrorCode {
    assert_eq!(report.outcome, Outcome::Failed, "{report:?}");
    report.error.as_ref().unwrap().code
}

#[tokio::test]
async fn of_a_hundred_megabytes_the_beginning_and_the_end_are_kept() {
    let harness = harness();
    let task = envelope("prints_much");
    assert_eq!(hostile(&harness, &task).await.outcome, Outcome::Succeeded);
    let printed = harness.printed(&task, LogStream::Stdout).await;
    assert!(printed[0].starts_with("000000 ") && printed.last().unwrap().starts_with("099999 "));
    let size = std::fs::metadata(harness.logs.path(&log_name(&task))).unwrap().len();
    assert!(size < 2 * KEPT as u64, "{size}");
    let notices = harness.printed(&task, LogStream::Servo).await;
    assert!(notices.len() == 2 && notices[1].contains("lines, 9"), "{notices:?}");
}

#[tokio::test]
async fn who_prints_for_ever_fills_no_disk_and_can_be_stopped() {
    let harness = harness();
    let task = envelope("prints_for_ever");
    let progress = watch::Sender::new(None);
    let running = harness.runners.run(&task, &progress);
    let stopped = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        harness.runners.stop(&task).await;
    };
    let (report, ()) = within(async { tokio::join!(running, stopped) }).await;
    assert_eq!(report.outcome, Outcome::Interrupted);
    let size = std::fs::metadata(harness.logs.path(&log_name(&task))).unwrap().len();
    assert!(size < 2 * KEPT as u64, "{size}");
    assert_next_is_clean(&harness).await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_printed_and_do_no_harm() {
    let harness = harness();
    let task = envelope("prints_binary");
    assert_eq!(hostile(&harness, &task).await.outcome, Outcome::Succeeded);
    assert!(!harness.printed(&task, LogStream::Stdout).await.is_empty());
}

#[tokio::test]
async fn crashes_are_told_apart() {
    let harness = harness();
    let report = hostile(&harness, &envelope("recurses")).await;
    assert_eq!(code(&report), ErrorCode::UserCodeException);
    let report = hostile(&harness, &envelope("exits")).await;
    assert_eq!(code(&report), ErrorCode::WorkerCrash);
    assert!(report.error.unwrap().message.contains("exit code 7"));
    for isolation in [Isolation::Shared, Isolation::Process] {
        let task = with_work(envelope("segfaults"), |work| work.isolation = isolation);
        let report = hostile(&harness, &task).await;
        assert_eq!(code(&report), ErrorCode::WorkerCrash);
        assert!(report.error.unwrap().message.contains("SIGSEGV"));
    }
}

#[tokio::test]
async fn a_thread_or_a_child_that_is_left_running_goes_with_its_process() {
    let harness = harness();
    for (function, reason) in [
        ("leaves_a_thread", "is still running"),
        ("leaves_a_child", "a process that it started is still running"),
    ] {
        let task = envelope(function);
        assert_eq!(hostile(&harness, &task).await.outcome, Outcome::Succeeded);
        let told = harness.log(&task).await.into_iter().filter(|line| line.stream == LogStream::Servo);
        let told: Vec<_> = told.map(|line| (line.level, line.text)).collect();
        assert!(told.len() == 1 && told[0].0 == Some(LogLevel::Warning), "{told:?}");
        assert!(told[0].1.starts_with("the process of this task is replaced: "), "{told:?}");
        assert!(told[0].1.ends_with(reason), "{told:?}");
    }
}

#[tokio::test]
async fn memory_beyond_the_limit_is_refused() {
    let harness = harness();
    for isolation in [Isolation::Shared, Isolation::Process] {
        let task = with_work(envelope("takes_memory"), |work| {
            work.isolation = isolation;
            work.compute = Some(Compute {
                memory_bytes: Some(500_000_000),
                cpu_millicores: Some(500),
                ..Compute::default()
            });
        });
        assert_eq!(code(&hostile(&harness, &task).await), ErrorCode::OutOfMemory);
    }
}

#[tokio::test]
async fn who_ignores_sigterm_is_killed() {
    let harness = harness();
    let task = envelope("ignores_sigterm");
    let progress = watch::Sender::new(None);
    let running = harness.runners.run(&task, &progress);
    let stopped = async {
        while !harness.path("begun").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        harness.runners.stop(&task).await;
    };
    let (report, ()) = within(async { tokio::join!(running, stopped) }).await;
    assert_eq!(report.outcome, Outcome::Interrupted);
    assert_next_is_clean(&harness).await;
}

#[tokio::test]
async fn directory_environment_and_streams_are_put_back() {
    let harness = harness();
    assert_eq!(hostile(&harness, &envelope("changes_everything")).await.outcome, Outcome::Succeeded);
}
