//! `servo sql` through the real binary: the interpreter is found, the query is passed on, and so is the exit code.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The interpreter that `make setup` made.
fn python() -> PathBuf {
    let python = std::env::var_os("SERVO_TEST_PYTHON")
        .map_or_else(|| repository().join(".venv/bin/python"), PathBuf::from);
    assert!(python.is_file(), "{} is not there: run make setup", python.display());
    python
}

/// A directory where the demo has run.
struct Demo {
    root: tempfile::TempDir,
}

impl Demo {
    fn new() -> Self {
        let demo = Self { root: tempfile::tempdir().unwrap() };
        let output = demo.command(&["demo", "--width", "2"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        demo
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_servo"));
        command
            .args(arguments)
            .current_dir(self.root.path())
            .env_clear()
            .env("SERVO_PYTHON", python())
            .env("SERVO_WORKSPACE", "demo")
            .env("PYTHONPATH", repository().join("python/src"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("COLUMNS", "100")
            .stdin(Stdio::null());
        command
    }

    fn shown(&self, arguments: &[&str]) -> String {
        self.shown_of(&self.command(arguments).output().unwrap())
    }

    /// Exit code, stdout and stderr, without the name of the directory.
    fn shown_of(&self, output: &Output) -> String {
        let text = format!(
            "exit {}\n--- stdout\n{}--- stderr\n{}",
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let root = std::fs::canonicalize(self.root.path()).unwrap();
        text.replace(&root.display().to_string(), "[dir]")
            .replace(&python().display().to_string(), "[python]")
    }
}

#[test]
fn queries_see_the_tables() {
    let demo = Demo::new();
    insta::assert_snapshot!(
        "sql_table",
        demo.shown(&["sql", "select task_key, state, attempt, error from tasks order by task_key"])
    );
    insta::assert_snapshot!(
        "sql_csv",
        demo.shown(&["sql", "--csv", "select state, count(*) as tasks from tasks group by state"])
    );
    let json = demo.command(&["sql", "--json", "select tasks_total, created_at from runs"]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(rows[0]["tasks_total"], 4);
    assert!(rows[0]["created_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_result_is_written_to_a_file_whole_or_not_at_all() {
    let demo = Demo::new();
    let (csv, json) = (demo.root.path().join("runs.csv"), demo.root.path().join("runs.json"));
    let query = "select state, count(*) as tasks from tasks group by state";
    let told = demo.shown(&["sql", "-o", "runs.csv", query]);
    assert!(told.starts_with("exit 0\n--- stdout\n--- stderr\n"), "{told}");
    let printed = demo.command(&["sql", "--csv", query]).output().unwrap().stdout;
    assert_eq!(std::fs::read(&csv).unwrap(), printed);
    demo.shown(&["sql", "--output", "runs.json", query]);
    let rows: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(rows[0]["tasks"].is_number(), "{rows}");
    let failed = demo.shown(&["sql", "-o", "runs.csv", "select * from rusn"]);
    assert!(failed.starts_with("exit 1\n"), "{failed}");
    assert_eq!(std::fs::read(&csv).unwrap(), printed, "that of before is kept");
    let names = std::fs::read_dir(demo.root.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".runs")).collect();
    assert!(left.is_empty(), "{left:?}");
    let wrong = demo.shown(&["sql", "-o", "runs.xlsx", query]);
    assert!(wrong.starts_with("exit 2\n") && wrong.contains("ends with .csv or .json"), "{wrong}");
}

#[test]
fn every_table_can_be_queried() {
    let demo = Demo::new();
    let listed = demo.command(&["sql", "--tables", "--json"]).output().unwrap();
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let names: Vec<&str> = listed.iter().map(|each| each["name"].as_str().unwrap()).collect();
    assert_eq!(names, servo_projections::TABLES);
    let counted: Vec<_> = listed.iter().filter(|each| each["rows"].as_u64() > Some(0)).collect();
    assert!(counted.len() > 5, "{listed:?}");
    let shown = demo.shown(&["sql", "--tables"]);
    assert!(
        shown.starts_with("exit 0\n--- stdout\nname                    kind   partitions  rows  columns\n"),
        "{shown}"
    );
}

#[test]
fn mistakes_and_wrong_uses_have_their_exit_codes() {
    let demo = Demo::new();
    insta::assert_snapshot!("sql_unknown_table", demo.shown(&["sql", "select * from rusn"]));
    insta::assert_snapshot!("sql_syntax", demo.shown(&["sql", "select *\nfrom runs\nwher true"]));
    insta::assert_snapshot!("sql_refused", demo.shown(&["sql", "copy runs to 'runs.csv'"]));
    insta::assert_snapshot!("sql_two_shapes", demo.shown(&["sql", "--json", "--csv", "select 1"]));
    insta::assert_snapshot!("sql_no_query", demo.shown(&["sql"]));
    insta::assert_snapshot!("sql_no_workspace", demo.shown(&["sql", "--workspace", "other", "select 1"]));
}

#[test]
fn a_query_comes_from_stdin() {
    let demo = Demo::new();
    let mut servo = demo
        .command(&["sql", "--csv", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    servo.stdin.take().unwrap().write_all(b"-- how many\nselect count(*) as n from runs;\n").unwrap();
    insta::assert_snapshot!(demo.shown_of(&servo.wait_with_output().unwrap()), @r"
    exit 0
    --- stdout
    n
    1
    --- stderr
    ");
}

#[test]
fn an_interpreter_without_the_sdk_or_duckdb_says_what_to_install() {
    let demo = Demo::new();
    let bare = demo.root.path().join("bare-python");
    std::fs::write(&bare, format!("#!/bin/sh\nexec {} -I -S \"$@\"\n", python().display())).unwrap();
    std::fs::set_permissions(&bare, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = demo.command(&["sql", "select 1"]).env("SERVO_PYTHON", &bare).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.ends_with("bare-python -m pip install servo-orchestrator\n"), "{text}");

    let without = demo.root.path().join("without");
    std::fs::create_dir(&without).unwrap();
    std::fs::write(without.join("_duckdb.py"), "raise ModuleNotFoundError(name='_duckdb')").unwrap();
    let path = format!("{}:{}", without.display(), repository().join("python/src").display());
    let output = demo.command(&["sql", "select 1"]).env("PYTHONPATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.starts_with("error: DuckDB is not installed"), "{text}");
    assert!(text.contains("'servo-orchestrator[sql]'"), "{text}");
}
