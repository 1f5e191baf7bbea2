//! The main job through the real binary: real projects, real Python, real processes that are killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Dev, PATIENCE, Project};

#[test]
fn a_new_project_runs_at_once() {
    let project = Project { root: tempfile::tempdir().unwrap() };
    project.good(&["init", ".", "--name", "weather"]);
    let again = project.bad(&["init", "."]);
    assert!(again.contains("servo.toml is there already; nothing was changed"), "{again}");
    let told = project.good(&["materialize", "*", "--partitions", "2026-01-01..2026-01-03"]);
    assert!(told.contains("SUCCEEDED"), "{told}");
    assert!(told.contains("9 tasks; 12 checks, all passed"), "{told}");
    assert_eq!(project.newest_run()["state"], "SUCCEEDED");
    let day = "raw/readings/partitions/date=d:2026-01-02";
    let latest = project.latest(day)["materialization_id"].as_str().unwrap().to_owned();
    assert_eq!(project.committed(day), [latest]);
    project.nothing_is_left_behind();
}

#[test]
fn what_failed_is_explained_and_tried_again_from_there() {
    let project = Project::new(
        r#"
import os, sys

@servo.asset(namespace="t")
def first() -> int:
    return 1

@servo.asset(namespace="t", secrets={"token": servo.SecretRef.env("TOKEN")})
def second(ctx, first: int) -> int:
    print("before the end", ctx.secrets["token"])
    print("aloud", file=sys.stderr)
    if not os.path.exists("mended"):
        raise ValueError("it is not mended, " + ctx.secrets["token"])
    return first + 1

@servo.asset(namespace="t")
def third(second: int) -> int:
    return second + 1
"#,
    );
    let run = |arguments: &[&str]| {
        let output = project.command(arguments).env("TOKEN", "sesame-open").output().unwrap();
        (
            output.status.code(),
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        )
    };
    let (code, told) = run(&["materialize", "*"]);
    assert_eq!(code, Some(1), "{told}");
    for expected in [
        "t.second failed",
        "USER_CODE_EXCEPTION ValueError: it is not mended, ***",
        "work.py\", line",
        "before the end ***",
        "2│ aloud",
        "3 tasks; 1 failed; 1 skipped",
    ] {
        assert!(told.contains(expected), "{expected:?} is not in\n{told}");
    }
    assert!(!told.contains("sesame"), "{told}");
    let failed = project.newest_run()["run_id"].as_str().unwrap().to_owned();
    let shown = project.json(&["run", "show", &failed, "--json"]);
    assert!(!shown.to_string().contains("sesame"), "{shown}");
    let log = project.good(&["run", "logs", &failed, "t.second"]);
    assert!(log.contains("│ before the end ***"), "{log}");

    fs::write(project.path("mended"), "").unwrap();
    let (code, told) = run(&["run", "retry", &failed, "--from-failure", "--json"]);
    assert_eq!(code, Some(0), "{told}");
    let retried: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let tasks: Vec<&str> =
        retried["tasks"].as_array().unwrap().iter().map(|task| task["task_key"].as_str().unwrap()).collect();
    assert_eq!(tasks, ["t/second:materialize", "t/third:materialize"]);
    assert_eq!(project.committed("t/first").len(), 1);
    project.nothing_is_left_behind();
}

#[test]
fn what_a_check_blocks_waits_for_review() {
    let project = Project::new(
        r#"
@servo.asset(namespace="t", quarantine=True, checks=[servo.row_count(min=3, severity="critical")])
def rows() -> list:
    return [1, 2]
"#,
    );
    let told = project.bad(&["materialize", "t.rows"]);
    assert!(told.contains("CHECK_FAILED"), "{told}");
    assert!(project.committed("t/rows").is_empty());
    let waiting = project.json(&["quarantine", "list", "--json"])["items"].clone();
    let id = waiting[0]["materialization_id"].as_str().unwrap();
    assert_eq!(waiting[0]["output"]["row_count"], 2);
    let told = project.bad(&["quarantine", "approve", "0000"]);
    assert!(told.contains("there is no materialization 0000…; `servo quarantine list` shows"), "{told}");
    project.good(&["quarantine", "approve", &id[..23], "--reason", "two are enough today"]);
    assert_eq!(project.latest("t/rows")["materialization_id"], id);
    assert_eq!(project.committed("t/rows"), [id]);
    let twice = project.bad(&["quarantine", "approve", id]);
    assert!(twice.contains("does not wait for review"), "{twice}");

    project.bad(&["materialize", "t.rows"]);
    let waiting = project.json(&["quarantine", "list", "--json"])["items"].clone();
    let second = waiting[0]["materialization_id"].as_str().unwrap();
    project.good(&["quarantine", "reject", "latest"]);
    assert_eq!(project.json(&["quarantine", "list", "--json"])["items"], serde_json::json!([]));
    assert_eq!(project.latest("t/rows")["materialization_id"], id, "the good one before stays");
    assert!(!project.home().join("assets/t/rows/quarantine").join(second).exists());
}

#[test]
fn killed_at_any_moment_it_goes_on_and_does_everything_once() {
    let names: Vec<String> = (0..8).map(|at| format!("n{at}")).collect();
    let mut code = "import time\n".to_owned();
    for (at, name) in names.iter().enumerate() {
        let parameter = if at == 0 { String::new() } else { format!("n{}: int", at - 1) };
        code += &format!(
            "\n@servo.asset(namespace=\"t\")\ndef {name}({parameter}) -> int:\n    time.sleep(0.05)\n    return {at}\n"
        );
    }
    let project = Project::new(&code);
    let start = || {
        project
            .command(&["materialize", "*", "--run-key", "once"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    for pause in [250u64, 400, 550, 700] {
        let mut process = start();
        std::thread::sleep(Duration::from_millis(pause));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let output = project.servo(&["materialize", "*", "--run-key", "once"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let run = project.newest_run();
    assert_eq!((run["state"].as_str(), run["tasks_succeeded"].as_u64()), (Some("SUCCEEDED"), Some(8)));
    for name in &names {
        let asset = format!("t/{name}");
        let latest = project.latest(&asset)["materialization_id"].as_str().unwrap().to_owned();
        assert_eq!(project.committed(&asset), [latest], "{asset}");
    }
    project.nothing_is_left_behind();
    project.good(&["admin", "projections", "verify"]);
}

const LOOPS: &str = r#"
@servo.asset(namespace="t")
def quick():
    return 1

@servo.asset(namespace="t")
def endless() -> int:
    import re
    re.match(r"(a+)+$", "a" * 60 + "b")
"#;

#[test]
fn a_server_is_found_reloads_what_works_and_stops_what_hangs() {
    let project = Project::new(LOOPS);
    let mut dev = Dev::start(&project);
    assert!(project.path(".servo/server.json").is_file());
    project.good(&["materialize", "t.quick"]);
    assert_eq!(project.committed("t/quick").len(), 1);

    project.save("def (");
    dev.wait_for("the code before is kept");
    let told = project.bad(&["materialize", "t.quick"]);
    assert!(told.contains("SyntaxError") && told.contains("work.py:2"), "{told}");
    project.save(&LOOPS.replace("return 1", "return [1, 2]"));
    project.good(&["materialize", "t.quick"]);
    let shown = project.newest_run();
    assert_eq!(shown["state"], "SUCCEEDED");

    let hanging =
        project.command(&["materialize", "t.endless", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    let run = loop {
        let server: Value =
            serde_json::from_slice(&fs::read(project.path(".servo/server.json")).unwrap()).unwrap();
        assert!(server["url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
        let listed = project.newest_run();
        if listed["state"] == "RUNNING" {
            break listed["run_id"].as_str().unwrap().to_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "{listed}");
        std::thread::sleep(Duration::from_millis(50));
    };
    project.good(&["run", "cancel", &run]);
    let output = hanging.wait_with_output().unwrap();
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), ended["run"]["state"].as_str()), (Some(1), Some("CANCELLED")));

    dev.signal("-INT");
    assert!(dev.process.wait().unwrap().success(), "{}", dev.log());
    assert!(!project.path(".servo/server.json").exists());
    project.nothing_is_left_behind();
}

#[test]
fn two_projects_on_one_machine_do_not_meet() {
    let (one, other) = (Project::new(LOOPS), Project::new(LOOPS));
    let (_first, _second) = (Dev::start(&one), Dev::start(&other));
    one.good(&["materialize", "t.quick"]);
    assert_eq!((one.committed("t/quick").len(), other.committed("t/quick").len()), (1, 0));
}

#[test]
fn bad_requests_say_what_to_do_and_leave_nothing() {
    let project = Project::new(LOOPS);
    for (arguments, expected) in [
        (vec!["materialize", "t.quikc"], "t.quick"),
        (
            vec!["materialize", "t.quick", "--partition", "2013-01-01"],
            "nothing that is selected has partitions",
        ),
        (vec!["materialize", "t.quick", "--config", "limit=3"], "takes any configuration"),
        (vec!["materialize", "t.quick and ("], "invalid selection"),
        (vec!["run", "watch", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa"], "there is no run"),
        (vec!["run", "cancel", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa"], "there is no run"),
        (vec!["run", "retry", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa"], "there is no run"),
    ] {
        let told = project.bad(&arguments);
        assert!(told.contains(expected), "{arguments:?}: {expected:?} is not in\n{told}");
    }
    assert_eq!(project.json(&["run", "list", "--json"])["items"], serde_json::json!([]));
}

#[test]
fn after_a_kill_before_anything_followed_the_log_catching_up_turns_the_pointer_and_verify_sees_it() {
    let project = Project::new(
        "@servo.asset(namespace=\"raw\")\ndef n(ctx: servo.Context) -> str:\n    return ctx.run_id\n",
    );
    let copied = |from: &Path, to: &Path| {
        let _absent = fs::remove_dir_all(to);
        assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
    };
    project.good(&["materialize", "raw.n"]);
    let before = project.latest("raw/n")["materialization_id"].clone();
    copied(&project.home(), &project.path("before"));
    let mut dev = Dev::start(&project);
    project.good(&["materialize", "raw.n"]);
    dev.signal("-KILL");
    dev.process.wait().unwrap();
    let made = project.committed("raw/n").into_iter().find(|id| before != id.as_str());
    let made = made.expect("committed before the command ended");
    // As if it had been killed when the last batch was durable, and before pointer and tables followed it.
    let pointer = "assets/raw/n/latest.json";
    let stale = || fs::copy(project.path("before").join(pointer), project.home().join(pointer)).unwrap();
    stale();
    for part in ["manifests", "state"] {
        copied(&project.path("before").join(part), &project.home().join(part));
    }
    assert_eq!(project.servo(&["reconcile", "--once"]).status.code(), Some(5), "the tables lag");
    assert_eq!(project.latest("raw/n")["materialization_id"], before);

    project.good(&["reconcile", "--once", "--catch-up"]);
    assert_eq!(project.latest("raw/n")["materialization_id"], made);
    assert_eq!(project.json(&["admin", "projections", "verify", "--json"])["ok"], true);
    stale();
    let wrong = project.bad(&["admin", "projections", "verify"]);
    assert!(wrong.contains("latest.json: points at"), "{wrong}");
}
