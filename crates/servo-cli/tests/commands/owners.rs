//! Several commands at once: whoever has the workspace is asked or waited for, whatever becomes of it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Project, until};

/// Runs until the file `go` is there.
const GATED: &str = r#"
import os, time

@servo.asset(namespace="t")
def gated() -> int:
    print("it has begun", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.02)
    return 1

@servo.asset(namespace="t")
def quick() -> int:
    return 2

@servo.asset(namespace="t", partitions=servo.DynamicPartitions("customers"))
def profiles() -> int:
    return 3
"#;

fn start(project: &Project, arguments: &[&str]) -> Child {
    project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn owner(project: &Project) -> Option<Value> {
    serde_json::from_slice(&fs::read(project.path(".servo/server.json")).ok()?).ok()
}

/// A `servo materialize` whose task is running, and its run.
fn running(project: &Project) -> (Child, String) {
    let process = start(project, &["materialize", "t.gated"]);
    let run = until("a task that runs", || {
        let runs = project.json(&["run", "list", "--json", "--limit", "1", "--state", "RUNNING"]);
        let run = runs["items"][0]["run_id"].as_str()?.to_owned();
        let tasks = project.json(&["run", "show", &run, "--json"]);
        (tasks["tasks"][0]["state"] == "RUNNING").then_some(run)
    });
    (process, run)
}

fn ended(process: Child) -> (bool, String) {
    let output = process.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), format!("{out}{err}"))
}

#[test]
fn a_command_at_work_is_asked_by_others() {
    let project = Project::new(GATED);
    let (first, run) = running(&project);
    let notice = owner(&project).unwrap();
    assert_eq!(
        (notice["command"].as_str(), notice["kind"].as_str()),
        (Some("servo materialize"), Some("command"))
    );
    let mode = fs::metadata(project.path(".servo/server.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the token is nobody else's");

    assert!(project.good(&["partition", "add", "customers", "acme"]).contains("1 key added"));
    let mut following = start(&project, &["run", "logs", &run, "--follow"]);
    let mut line = String::new();
    let mut printed = BufReader::new(following.stdout.take().unwrap());
    printed.read_line(&mut line).unwrap();
    assert!(line.contains("it has begun"), "{line}");
    let watching = start(&project, &["run", "watch", &run]);
    project.good(&["run", "cancel", &run]);
    for process in [first, watching] {
        let (succeeded, told) = ended(process);
        assert!(!succeeded && told.contains("CANCELLED"), "{told}");
    }
    let (succeeded, told) = ended(following);
    assert!(succeeded, "{told}");
    assert_eq!(owner(&project), None);
}

#[test]
fn nobody_else_may_ask_a_command() {
    let project = Project::new(GATED);
    let (first, _) = running(&project);
    let notice = owner(&project).unwrap();
    let address = notice["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let status = |token: &str, request: &str| -> String {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let head = format!("{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let shown = format!("Authorization: Bearer {}\r\n", notice["token"].as_str().unwrap());
    assert_eq!(status(&shown, "GET /api/v1/runs"), "200");
    assert_eq!(status("", "GET /api/v1/runs"), "401");
    assert_eq!(status("Authorization: Bearer guess\r\n", "GET /api/v1/runs"), "401");
    assert_eq!(status("", "POST /api/v1/worker/leases"), "401", "nor be given its tasks");
    fs::write(project.path("go"), "").unwrap();
    assert!(ended(first).0);
}

#[test]
fn a_second_run_waits_and_says_for_whom() {
    let project = Project::new(GATED);
    let (first, _) = running(&project);
    let mut second = start(&project, &["materialize", "t.quick"]);
    let mut said = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, format!("waiting for servo materialize (pid {})\n", first.id()));
    fs::write(project.path("go"), "").unwrap();
    for process in [first, second] {
        let (succeeded, told) = ended(process);
        assert!(succeeded && told.contains("SUCCEEDED"), "{told}");
    }
    assert_eq!(project.json(&["run", "list", "--json"])["items"].as_array().unwrap().len(), 2);
}

#[test]
fn whoever_waits_goes_on_when_the_first_is_killed() {
    let project = Project::new(GATED);
    let (mut first, run) = running(&project);
    let watching = start(&project, &["run", "watch", &run]);
    let following = start(&project, &["run", "logs", &run, "--follow"]);
    let waiting = start(&project, &["materialize", "t.quick"]);
    first.kill().unwrap();
    first.wait().unwrap();
    fs::write(project.path("go"), "").unwrap();
    for process in [watching, waiting, following] {
        let (succeeded, told) = ended(process);
        assert!(succeeded, "{told}");
    }
    let runs = project.json(&["run", "list", "--json"]);
    let states: Vec<&str> =
        runs["items"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["SUCCEEDED", "SUCCEEDED"]);
    assert_eq!(project.committed("t/gated").len(), 1, "what was begun twice is done once");
    project.good(&["admin", "projections", "verify"]);
}

#[test]
fn commands_that_begin_at_the_same_moment_are_all_done() {
    let project = Project::new(GATED);
    fs::write(project.path("go"), "").unwrap();
    let mut all: Vec<Child> =
        (0..4).map(|at| start(&project, &["partition", "add", "customers", &format!("c{at}")])).collect();
    all.push(start(&project, &["materialize", "t.quick"]));
    all.push(start(&project, &["materialize", "t.gated"]));
    all.push(start(&project, &["deploy"]));
    for process in all {
        let (succeeded, told) = ended(process);
        assert!(succeeded, "{told}");
    }
    let asset = project.json(&["asset", "show", "t.profiles", "--json"]);
    assert_eq!(asset["partitions"]["total"], 4);
    assert_eq!(project.json(&["run", "list", "--json"])["items"].as_array().unwrap().len(), 2);
    project.good(&["admin", "projections", "verify"]);
}

#[test]
fn what_a_killed_process_left_behind_is_in_nobodys_way() {
    let project = Project::new(GATED);
    project.good(&["deploy"]);
    // A process that lives, and never had anything to do with it.
    let pid = std::process::id();
    let left = format!(
        "{{\"pid\":{pid},\"command\":\"servo dev\",\"kind\":\"server\",\"url\":\"http://127.0.0.1:1\"}}"
    );
    for text in [left.as_str(), "{", ""] {
        fs::write(project.path(".servo/server.json"), text).unwrap();
        project.good(&["run", "list"]);
        project.good(&["materialize", "t.quick"]);
        assert_eq!(owner(&project), None);
    }
}

#[test]
fn a_second_server_is_told_who_serves() {
    let project = Project::new(GATED);
    let dev = crate::support::Dev::start(&project);
    let told = project.bad(&["dev", "--port", "0"]);
    let expected = format!("servo dev (pid {}) has the workspace", dev.process.id());
    assert!(told.contains(&expected), "{told}");
    let told = project.bad(&["admin", "projections", "rebuild"]);
    assert!(told.contains(&expected), "{told}");
}
