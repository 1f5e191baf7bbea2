//! Real Python processes: what they print, how they end, and what is told of it.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests do")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use servo_engine::ErrorCode;
use servo_runtime::SystemClock;
use servo_worker::runner::{Line, LineSink, Output, RunTask, Runner, RunnerError, Stream, Told, WorkOutcome};

const CODE: &str = r#"
import ctypes
import os
import sys
import time
import servo


@servo.asset(namespace="t")
def prints(ctx):
    print("to stdout")
    print("to stderr", file=sys.stderr)
    ctx.progress(0.5, "half way")
    os.write(1, b"not \xff utf-8\n")
    sys.stdout.write("no newline at the end")
    return {"rows": 1}


@servo.asset(namespace="t")
def many():
    for number in range(20000):
        print(number)
    return 1


@servo.asset(namespace="t")
def raises():
    raise ValueError("wrong on purpose")


@servo.asset(namespace="t")
def crashes():
    ctypes.string_at(0)


@servo.asset(namespace="t")
def exits():
    os._exit(3)


@servo.asset(namespace="t")
def spins():
    while True:
        pass
"#;

#[derive(Default)]
struct Lines(Mutex<Vec<Line>>);

impl LineSink for Lines {
    fn take(&self, lines: Vec<Line>) {
        self.0.lock().unwrap().extend(lines);
    }
}

struct Project {
    root: tempfile::TempDir,
}

impl Project {
    fn new(code: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("servo.toml"), "[project]\nmodules = [\"code_of_test\"]\n").unwrap();
        std::fs::write(root.path().join("code_of_test.py"), code).unwrap();
        Self { root }
    }

    async fn runner(&self) -> Runner {
        let mut runner = Runner::start(&python(), Arc::new(SystemClock)).await.unwrap();
        runner.load(self.root.path()).await.unwrap();
        runner
    }

    fn task(&self, function: &str) -> RunTask {
        let place = |name: &str| format!("file://{}/{name}/{function}", self.root.path().display());
        RunTask {
            run_id: "run_test".to_owned(),
            task_key: format!("t/{function}:materialize"),
            attempt: 1,
            attempt_id: "01JCQ0000000000000000000AA".to_owned(),
            function: format!("code_of_test:{function}"),
            outputs: vec![Output {
                asset: format!("t/{function}"),
                io: None,
                materialization_id: "01JCQ0000000000000000000MM".to_owned(),
                staging: place("staging"),
                r#final: place("final"),
                quarantine_to: place("quarantine"),
                quarantine: false,
                checks: Vec::new(),
                previous: None,
            }],
            ..RunTask::default()
        }
    }
}

/// The interpreter that `make setup` made, with the SDK of this checkout.
fn python() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let python = std::env::var_os("SERVO_TEST_PYTHON")
        .map_or_else(|| repository.join(".venv/bin/python"), PathBuf::from);
    assert!(python.is_file(), "{} is not there: run make setup", python.display());
    python
}

#[tokio::test]
async fn a_task_runs_and_every_line_it_prints_is_its_own() {
    let project = Project::new(CODE);
    let mut runner = project.runner().await;
    let (lines, mut told) = (Arc::new(Lines::default()), Vec::new());
    let finished =
        runner.run(&project.task("prints"), lines.clone(), |event| told.push(event)).await.unwrap();
    assert_eq!(finished.outcome, WorkOutcome::Succeeded, "{:?}", finished.error);
    assert!(project.root.path().join("final/prints/_commit.json").is_file());
    assert!(
        matches!(&told[..], [Told::Progress { ppm: 500_000, message }] if message == "half way"),
        "{told:?}"
    );
    let of = |stream: Stream| -> Vec<String> {
        lines
            .0
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.stream == stream)
            .map(|line| line.text.clone())
            .collect()
    };
    assert_eq!(of(Stream::Stdout), ["to stdout", "not \u{fffd} utf-8", "no newline at the end"]);
    assert_eq!(of(Stream::Stderr), ["to stderr"]);

    let next = Arc::new(Lines::default());
    runner.run(&project.task("many"), next.clone(), |_| {}).await.unwrap();
    let numbers: Vec<usize> = next.0.lock().unwrap().iter().map(|line| line.text.parse().unwrap()).collect();
    assert_eq!(numbers, (0..20_000).collect::<Vec<_>>(), "no line is lost, none belongs to another task");
}

#[tokio::test]
async fn errors_crashes_and_exits_are_told_apart() {
    let project = Project::new(CODE);
    let mut runner = project.runner().await;
    let finished = runner.run(&project.task("raises"), Arc::new(Lines::default()), |_| {}).await.unwrap();
    let error = finished.error.unwrap();
    assert_eq!((finished.outcome, error.code), (WorkOutcome::Failed, ErrorCode::UserCodeException));
    assert!(error.message.contains("wrong on purpose"), "{}", error.message);
    assert!(!project.root.path().join("final/raises").exists());

    for (function, code, words) in [
        ("crashes", ErrorCode::WorkerCrash, "SIGSEGV"),
        ("exits", ErrorCode::UserCodeException, "exit code 3"),
    ] {
        let mut runner = project.runner().await;
        let error =
            runner.run(&project.task(function), Arc::new(Lines::default()), |_| {}).await.unwrap_err();
        assert_eq!(error.code, code, "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
    }
}

#[tokio::test]
async fn a_runner_that_is_dropped_is_gone_even_if_its_function_never_ends() {
    let project = Project::new(CODE);
    let mut runner = project.runner().await;
    let process = runner.process_id();
    let task = project.task("spins");
    let spinning = runner.run(&task, Arc::new(Lines::default()), |_| {});
    tokio::select! {
        ended = spinning => panic!("it ended: {ended:?}"),
        () = tokio::time::sleep(std::time::Duration::from_millis(300)) => {}
    }
    drop(runner);
    let status = Path::new("/proc").join(process.to_string());
    for _ in 0..500 {
        // A killed process may stay as a name until it is reaped.
        let state = std::fs::read_to_string(status.join("stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the process is still there");
}

#[tokio::test]
async fn a_project_that_cannot_be_imported_says_where() {
    let project = Project::new("import servo\n\n1 / 0\n");
    let mut runner = Runner::start(&python(), Arc::new(SystemClock)).await.unwrap();
    let Err(RunnerError::Broken(modules)) = runner.load(project.root.path()).await else {
        panic!("it was imported")
    };
    assert_eq!((modules[0].line, modules[0].kind.as_str()), (Some(3), "ZeroDivisionError"));
}

#[tokio::test]
async fn a_warm_runner_says_what_its_project_declares() {
    let project = Project::new(CODE);
    let mut runner = project.runner().await;
    let scanned = runner.scan().await.unwrap();
    assert_eq!(scanned.manifest.assets.len(), 6);
}
