//! Processes that are started, used again, worn out and replaced.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_engine::{ErrorCode, Outcome};
use servo_worker::project::ScanError;
use servo_worker::{LogStream, RunnerSettings};

use crate::support::*;

const TELLS: &str = r#"
import os, time

@servo.asset(namespace="t")
def process():
    print(os.getpid())

@servo.asset(namespace="t")
def hoards():
    global hoard
    hoard = bytearray(os.urandom(1024)) * (300 * 1024)
    print(os.getpid())

@servo.asset(namespace="t")
def waits():
    print(os.getpid(), VERSION)
    open("begun", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.005)

VERSION = 1
"#;

fn one() -> RunnerSettings {
    RunnerSettings { slots: 1, ..RunnerSettings::default() }
}

/// Runs a function that prints the id of its process.
async fn process_of(harness: &Harness, function: &str) -> u32 {
    let task = envelope(function);
    let report = harness.run(&task).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    // What the import printed may come first.
    harness.printed(&task, LogStream::Stdout).await.last().unwrap().parse().unwrap()
}

#[tokio::test]
async fn one_process_says_what_there_is_and_runs_it() {
    let harness = Harness::with(&format!("print('imported')\n{TELLS}"), one());
    let scanned = harness.runners.scan().await.unwrap();
    assert_eq!(scanned.manifest.assets.len(), 3);
    let first = process_of(&harness, "process").await;
    assert_eq!(process_of(&harness, "process").await, first);
    harness.runners.shutdown().await;
    assert!(!is_running(first));
}

#[tokio::test]
async fn a_runner_is_replaced_after_some_tasks_or_if_it_holds_too_much_memory() {
    let settings = RunnerSettings { tasks_per_process: 2, ..one() };
    let harness = Harness::with(TELLS, settings);
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(process_of(&harness, "process").await);
    }
    assert_eq!((processes[0], processes[2]), (processes[1], processes[3]));
    assert_ne!(processes[0], processes[2]);
    eventually("the worn one is gone", || !is_running(processes[0])).await;

    let harness = Harness::with(TELLS, RunnerSettings { max_resident_bytes: 200 << 20, ..one() });
    let small = process_of(&harness, "process").await;
    let large = process_of(&harness, "hoards").await;
    assert_eq!(small, large);
    assert_ne!(process_of(&harness, "process").await, large);
}

#[tokio::test]
async fn warm_runners_are_all_there_before_the_first_task() {
    let harness = Harness::new(&format!("import os\nopen(f'warm-{{os.getpid()}}', 'w').close()\n{TELLS}"));
    harness.runners.warm().await.unwrap();
    let warm = || {
        let names = harness.root.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        let processes =
            names.filter_map(|name| name.to_str().unwrap().strip_prefix("warm-").map(str::to_owned));
        processes.collect::<BTreeSet<_>>()
    };
    let before = warm();
    assert_eq!(before.len(), 2);
    let used = process_of(&harness, "process").await;
    harness.runners.warm().await.unwrap();
    assert!(warm().contains(&used.to_string()));
    assert_eq!(warm(), before, "nothing more was started");
}

#[tokio::test]
async fn new_code_takes_over_while_the_old_ends_its_task() {
    let harness = Arc::new(Harness::new(TELLS));
    let old = envelope("waits");
    let running = tokio::spawn({
        let (harness, old) = (harness.clone(), old.clone());
        async move { harness.run(&old).await }
    });
    eventually("the old code is at work", || harness.path("begun").exists()).await;

    let broken = TELLS.replace("VERSION = 1", "VERSION = 2 / 0");
    write_project(harness.root.path(), &broken);
    let Err(ScanError::Broken(modules)) = harness.runners.reload(harness.project()).await else {
        panic!("it was imported")
    };
    assert_eq!(modules[0].kind, "ZeroDivisionError");
    let idle = process_of(&harness, "process").await;

    write_project(harness.root.path(), &TELLS.replace("VERSION = 1", "VERSION = 22"));
    harness.runners.reload(harness.project()).await.unwrap();
    eventually("the idle one of the old code is gone", || !is_running(idle)).await;
    std::fs::write(harness.path("go"), "").unwrap();
    let new = envelope("waits");
    assert_eq!(harness.run(&new).await.outcome, Outcome::Succeeded);
    assert_eq!(running.await.unwrap().outcome, Outcome::Succeeded);
    let version =
        async |task| harness.printed(task, LogStream::Stdout).await[0].split(' ').nth(1).unwrap().to_owned();
    assert_eq!((version(&old).await, version(&new).await), ("1".to_owned(), "22".to_owned()));
    let process =
        harness.printed(&old, LogStream::Stdout).await[0].split(' ').next().unwrap().parse().unwrap();
    eventually("the old code is gone", || !is_running(process)).await;
}

#[tokio::test]
async fn a_module_that_cannot_be_imported_does_not_keep_others_from_running() {
    let harness = Harness::new(TELLS);
    let toml = std::fs::read_to_string(harness.path("servo.toml")).unwrap();
    std::fs::write(harness.path("servo.toml"), toml.replace("[\"my_code\"]", "[\"my_code\", \"bad\"]"))
        .unwrap();
    std::fs::write(harness.path("bad.py"), "import no_such_library\n").unwrap();
    let Err(ScanError::Broken(modules)) = harness.runners.scan().await else { panic!("it was imported") };
    assert_eq!(modules[0].module.as_deref(), Some("bad"));
    process_of(&harness, "process").await;
    let missing = with_work(envelope("gone"), |work| work.function = "bad:gone".to_owned());
    let error = harness.run(&missing).await.error.unwrap();
    assert_eq!(error.code, ErrorCode::ImportError, "{}", error.message);
}

#[tokio::test]
async fn python_that_does_not_start_is_explained() {
    let harness = Harness::new("import os\nos.write(2, b'no licence\\n')\nos._exit(4)\n");
    let error = harness.call("any").await.error.unwrap();
    assert_eq!(error.code, ErrorCode::WorkerCrash);
    assert!(
        error.message.contains("exit code 4") && error.message.ends_with("no licence"),
        "{}",
        error.message
    );

    for (python, code, words) in [
        ("/no/such/python", ErrorCode::InvalidDefinition, "/no/such/python is not there"),
        ("/bin/false", ErrorCode::ImportError, "/bin/false has no servo package"),
    ] {
        let toml = format!("[project]\npython = \"{python}\"\nmodules = [\"my_code\"]\n");
        std::fs::write(harness.path("servo.toml"), toml).unwrap();
        let (runners, _) = runners(harness.root.path(), one());
        let harness = Harness { root: tempfile::tempdir().unwrap(), runners, logs: harness.logs.clone() };
        let error = harness.call("any").await.error.unwrap();
        assert_eq!(error.code, code, "{}", error.message);
        assert!(error.message.starts_with(words), "{}", error.message);
    }
}
