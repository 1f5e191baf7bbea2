//! Variables that code of a project is started with.

use std::path::PathBuf;
use std::process::Command;

use servo_engine::Outcome;
use servo_worker::{RunnerSettings, TaskFunction};
use tokio::sync::watch;

use crate::support::*;

/// Writes down the names of the variables that have the value of the test.
const LOOKS: &str = r#"
import os, pathlib

def look(who):
    found = sorted(name for name, value in os.environ.items() if value == "of the test")
    with open(pathlib.Path(__file__).with_name("found"), "a") as file:
        file.write(f"{who}: {' '.join(found)}\n")

look("import")

@servo.asset(namespace="t")
def looks():
    look("function")
"#;

const ROOT: &str = "SERVO_TEST_ENVIRONMENT_ROOT";
const VALUE: &str = "of the test";

/// Not a test of its own: the process whose environment has credentials.
#[tokio::test]
async fn the_process_with_credentials() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else { return };
    let (runners, _logs) = runners(&root, RunnerSettings { slots: 1, ..RunnerSettings::default() });
    servo_worker::project::Project::open(&root).unwrap().scan().unwrap();
    let report = within(runners.run(&envelope("looks"), &watch::Sender::new(None))).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    within(runners.shutdown()).await;
}

#[test]
fn code_of_a_project_gets_no_credentials() {
    let root = tempfile::tempdir().unwrap();
    write_project(root.path(), LOOKS);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["environment::the_process_with_credentials", "--exact"]).env(ROOT, root.path());
    for name in ["SERVO_KEY", "SERVO_OIDC_CLIENT_SECRET", "SERVO_TOKEN", "SERVO_WORKER_KEY", "DATABASE"] {
        command.env(name, VALUE);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let found = std::fs::read_to_string(root.path().join("found")).unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines, ["import: DATABASE", "import: DATABASE", "function: DATABASE"]);
}
