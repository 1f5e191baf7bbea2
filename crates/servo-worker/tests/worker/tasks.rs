//! Tasks of every kind, in real processes: what they make, and what is said of those that make nothing.

use rustix::process::{Pid, Signal, kill_process};
use servo_engine::definitions::Isolation;
use servo_engine::{ErrorCode, Outcome, OutputState, Report, TaskError};
use servo_worker::{LogStream, TaskFunction};
use tokio::sync::watch;

use crate::support::*;

fn error(report: &Report) -> &TaskError {
    assert_eq!(report.outcome, Outcome::Failed, "{report:?}");
    report.error.as_deref().unwrap()
}

const CHAIN: &str = r#"
@servo.asset(namespace="t")
def numbers(ctx):
    ctx.progress(0.5, "half way")
    ctx.log.info("counting", extra={"upto": 3})
    print(ctx.partition)
    return [1, 2, 3]

@servo.asset(namespace="t")
def total(numbers: list):
    return sum(numbers)
"#;

#[tokio::test]
async fn a_task_reads_what_another_has_made_and_leaves_its_output_where_it_belongs() {
    let harness = Harness::new(CHAIN);
    let (progress, first) = (watch::Sender::new(None), envelope("numbers"));
    let made = harness.runners.run(&first, &progress).await;
    assert_eq!(made.outcome, Outcome::Succeeded, "{made:?}");
    assert_eq!(made.materialization_id.map(|id| id.to_u128()), Some(first.attempt_id.to_u128()));
    let [output] = &made.outputs[..] else { panic!("one output: {made:?}") };
    assert_eq!((output.state, output.row_count, &output.uri), (OutputState::Committed, Some(3), &None));
    assert!(made.usage.unwrap().max_rss_bytes > 1_000_000);
    let last = last_progress(&progress).unwrap();
    assert_eq!((last.ppm, last.message.as_str()), (500_000, "half way"));
    let said: Vec<_> = harness.log(&first).await.into_iter().filter(|l| l.stream == LogStream::Log).collect();
    assert_eq!((said.len(), said[0].text.as_str()), (1, "counting"));
    assert_eq!(said[0].fields.as_ref().unwrap()["upto"], 3);

    let second = reading(envelope("total"), "numbers", Some(&first));
    let report = harness.run(&second).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    let home = format!("assets/t/total/materializations/{}", second.attempt_id);
    assert_eq!(std::fs::read_to_string(harness.state(&home).join("data.json")).unwrap().trim(), "6");
    assert!(harness.state(&home).join("_commit.json").is_file());
    harness.assert_nothing_is_staged();
}

#[tokio::test]
async fn a_partition_has_a_home_and_a_window() {
    let harness = Harness::new(
        r#"
days = servo.DailyPartitions(start="2013-01-01")

@servo.asset(namespace="t", partitions=days)
def daily(ctx):
    print(ctx.partition, ctx.partition.start, ctx.partition.end)
    return 1
"#,
    );
    let task = for_day(envelope("daily"), "2013-01-15");
    assert_eq!(harness.run(&task).await.outcome, Outcome::Succeeded);
    assert_eq!(
        harness.printed(&task, LogStream::Stdout).await,
        ["2013-01-15 2013-01-15 00:00:00+00:00 2013-01-16 00:00:00+00:00"]
    );
    let home = "assets/t/daily/partitions/date=d:2013-01-15/materializations";
    assert!(harness.state(home).join(task.attempt_id.to_string()).join("_commit.json").is_file());
}

#[tokio::test]
async fn an_input_that_was_never_made_is_named_and_python_is_not_started() {
    let harness = Harness::new("import os\nopen('imported', 'w').close()\n");
    let report = harness.run(&reading(envelope("total"), "numbers", None)).await;
    assert_eq!(error(&report).code, ErrorCode::MissingInput);
    assert_eq!(error(&report).message, "t.numbers was never materialized, and this task reads it");
    assert_eq!(
        error(&report).suggested_action(),
        Some("make it first: servo materialize '+t.total' --missing")
    );
    let mut gone = envelope("total");
    gone.work = None;
    let report = harness.run(&gone).await;
    assert_eq!(error(&report).code, ErrorCode::InvalidDefinition);
    assert!(!harness.path("imported").exists());
}

#[tokio::test]
async fn what_checks_say_is_reported_with_what_became_of_each_output() {
    let harness = Harness::new(
        r#"
at_least = lambda count: [servo.row_count(min=count, blocking=True), servo.row_count(min=1, severity="info", name="any")]

@servo.asset(namespace="t", checks=at_least(3))
def enough():
    return [1, 2, 3]

@servo.asset(namespace="t", checks=at_least(4))
def few():
    return [1, 2, 3]
"#,
    );
    let assets = harness.runners.scan().await.unwrap().manifest.assets;
    let checked = |name: &str, quarantine: bool| {
        let declared = assets.iter().find(|declared| declared.key == asset(name).canonical()).unwrap();
        with_work(envelope(name), |work| {
            work.outputs[0].checks = declared.checks.clone();
            work.outputs[0].quarantine = quarantine;
        })
    };
    let enough = harness.run(&checked("enough", true)).await;
    let passed: Vec<_> = enough.outputs[0].checks.iter().map(|check| check.passed).collect();
    assert_eq!((enough.outcome, passed), (Outcome::Succeeded, vec![true, true]));

    let kept = checked("few", true);
    for (task, state) in [(&kept, OutputState::Quarantined), (&checked("few", false), OutputState::Discarded)]
    {
        let few = harness.run(task).await;
        assert_eq!(error(&few).code, ErrorCode::CheckFailed);
        let [output] = &few.outputs[..] else { panic!("one output: {few:?}") };
        assert_eq!((output.state, output.checks[0].passed, &output.uri), (state, false, &None));
        assert_eq!(few.materialization_id, None);
    }
    let aside = harness.state("assets/t/few/quarantine").join(kept.attempt_id.to_string());
    assert!(aside.join("_reason.json").is_file());
    harness.assert_nothing_is_staged();
}

const FAILING: &str = r#"
import ctypes, os, sys

@servo.asset(namespace="t")
def raises():
    print("before")
    raise ValueError("wrong on purpose")

@servo.asset(namespace="t")
def shouts():
    raise ValueError("x" * 50_000_000)

@servo.asset(namespace="t")
def leaves():
    sys.exit(3)

@servo.asset(namespace="t")
def vanishes():
    print("last words", file=sys.stderr)
    os._exit(3)

@servo.asset(namespace="t")
def crashes():
    ctypes.string_at(0)

@servo.asset(namespace="t")
def works():
    return 1
"#;

#[tokio::test]
async fn failures_of_user_code_are_told_apart_and_leave_the_runner_usable() {
    let harness = Harness::new(FAILING);
    let task = envelope("raises");
    let report = harness.run(&task).await;
    let raised = error(&report);
    assert_eq!(
        (raised.code, raised.error_type.as_deref()),
        (ErrorCode::UserCodeException, Some("ValueError"))
    );
    assert!(raised.message.contains("wrong on purpose"), "{}", raised.message);
    assert!(raised.traceback.as_deref().unwrap().contains("in raises"), "{raised:?}");
    assert_eq!(harness.printed(&task, LogStream::Stdout).await, ["before"]);

    let report = harness.call("shouts").await;
    assert_eq!(error(&report).code, ErrorCode::UserCodeException);
    assert!(error(&report).message.len() < 10_000);

    let report = harness.call("leaves").await;
    assert_eq!(error(&report).code, ErrorCode::UserCodeException);
    assert!(error(&report).message.contains("exit code 3"), "{}", error(&report).message);

    assert_eq!(harness.call("works").await.outcome, Outcome::Succeeded);
    harness.assert_nothing_is_staged();
}

#[tokio::test]
async fn a_process_that_dies_is_explained_and_replaced() {
    let harness = Harness::new(FAILING);
    for (function, words) in [("crashes", "ended by SIGSEGV"), ("vanishes", "exit code 3")] {
        let task = envelope(function);
        let report = harness.run(&task).await;
        assert_eq!(error(&report).code, ErrorCode::WorkerCrash);
        assert!(error(&report).message.contains(words), "{}", error(&report).message);
        let said = harness.printed(&task, LogStream::Servo).await;
        assert!(said[0].contains(words), "{said:?}");
        assert_eq!(harness.call("works").await.outcome, Outcome::Succeeded);
    }
    let report = harness.call("vanishes").await;
    assert!(
        error(&report).message.ends_with("the last of stderr:\nlast words"),
        "{}",
        error(&report).message
    );
    let isolated = with_work(envelope("crashes"), |work| work.isolation = Isolation::Process);
    let report = harness.run(&isolated).await;
    assert_eq!(error(&report).code, ErrorCode::WorkerCrash);
    assert!(error(&report).message.contains("SIGSEGV"), "{}", error(&report).message);
    harness.assert_nothing_is_staged();
}

const WAITING: &str = r#"
import os, time

@servo.asset(namespace="t")
def waits(ctx):
    with open("staged", "w") as file:
        file.write(str(os.getpid()) + "\n")
    while True:
        time.sleep(1)
"#;

#[tokio::test]
async fn a_process_that_somebody_kills_is_noticed_at_once() {
    let harness = Harness::new(WAITING);
    let task = envelope("waits");
    let (report, ()) = tokio::join!(harness.run(&task), async {
        let process = process_in(&harness.path("staged")).await;
        kill_process(Pid::from_raw(process.cast_signed()).unwrap(), Signal::KILL).unwrap();
    });
    assert_eq!(error(&report).code, ErrorCode::WorkerCrash);
    assert!(error(&report).message.contains("SIGKILL"), "{}", error(&report).message);
    harness.assert_nothing_is_staged();
}

#[tokio::test]
async fn a_child_that_user_code_leaves_behind_keeps_nothing_waiting() {
    let harness = Harness::new(
        r#"
import os, subprocess, time

def fork():
    subprocess.Popen(["sleep", "1000"])
    child = os.fork()
    if child == 0:
        time.sleep(1000)
        os._exit(0)
    with open("left_behind", "w") as file:
        file.write(f"{child}\n")

@servo.asset(namespace="t")
def forks():
    fork()
    print("done")

@servo.asset(namespace="t")
def forks_and_dies():
    fork()
    os._exit(1)
"#,
    );
    let task = envelope("forks");
    assert_eq!(harness.run(&task).await.outcome, Outcome::Succeeded);
    assert_eq!(harness.printed(&task, LogStream::Stdout).await, ["done"]);
    assert!(is_running(process_in(&harness.path("left_behind")).await));
    std::fs::remove_file(harness.path("left_behind")).unwrap();

    let report = harness.call("forks_and_dies").await;
    assert_eq!(error(&report).code, ErrorCode::WorkerCrash);
    let child = process_in(&harness.path("left_behind")).await;
    eventually("the child of a dead runner is gone", || !is_running(child)).await;
}

#[tokio::test]
async fn two_tasks_run_at_the_same_time() {
    let harness = Harness::new(
        r#"
import os, time

def meet(me, other):
    open(me, "w").close()
    while not os.path.exists(other):
        time.sleep(0.005)

@servo.asset(namespace="t")
def left():
    meet("left", "right")

@servo.asset(namespace="t")
def right():
    meet("right", "left")
"#,
    );
    let (left, right) = tokio::join!(harness.call("left"), harness.call("right"));
    assert_eq!((left.outcome, right.outcome), (Outcome::Succeeded, Outcome::Succeeded));
}
