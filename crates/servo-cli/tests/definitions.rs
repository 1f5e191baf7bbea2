//! A project in Python, seen through the real binary: assets, plans, deployments and dynamic partitions.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const FLIGHTS: &str = r#"
import servo

days = servo.DailyPartitions(start="2013-01-01", end="2013-12-31")
months = servo.MonthlyPartitions(start="2013-01-01", end="2013-12-01")

servo.external("source.feed", description="What the airline sends.")


@servo.asset(namespace="raw", partitions=days, deps=["source.feed"], kind="python", group="ingest")
def flights(ctx):
    """Flights that left on a day."""


@servo.asset(namespace="raw")
def planes(): ...


@servo.asset(
    namespace="analytics",
    partitions=days,
    retry=servo.Retry(max_attempts=3, delay="30s"),
    checks=[servo.row_count(min=1), servo.not_null("carrier", severity="critical")],
    timeout="10m",
    tags={"team": "ops"},
    owners=["ops@example.org"],
    code_version="3",
)
def delays(flights, planes):
    """Delays by carrier and day."""


@servo.asset(namespace="analytics", partitions=days, deps=[servo.dep(delays, mapping=servo.window(-6, 0))])
def weekly(delays): ...


@servo.asset(namespace="report", partitions=months, deps=[servo.dep(delays, mapping=servo.time_grain())])
def monthly(delays): ...


@servo.asset(namespace="crm", partitions=servo.DynamicPartitions("customers"))
def profiles(): ...


@servo.schedule(cron="0 6 * * *", timezone="Europe/Amsterdam", selection="analytics.*")
def morning(ctx): ...
"#;

/// A project in a directory of its own, with the state beside it.
struct Project {
    root: tempfile::TempDir,
}

impl Project {
    fn new(code: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(
            root.path().join("servo.toml"),
            "[project]\nname = \"flights\"\nmodules = [\"flights\"]\n",
        )
        .unwrap();
        std::fs::write(root.path().join("flights.py"), code.trim_start()).unwrap();
        Self { root }
    }

    fn servo(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_servo"));
        command
            .args(arguments)
            .current_dir(self.root.path())
            .env_clear()
            .env("SERVO_PYTHON", python())
            .env("PYTHONPATH", repository().join("python/src"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("COLUMNS", "140")
            .env("USER", "tester")
            .stdin(Stdio::null());
        command
    }

    /// Exit code, stdout and stderr, without the name of the directory.
    fn shown(&self, arguments: &[&str]) -> String {
        let output = self.servo(arguments);
        let text = format!(
            "exit {}\n--- stdout\n{}--- stderr\n{}",
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let root = std::fs::canonicalize(self.root.path()).unwrap();
        text.replace(&root.display().to_string(), "[project]")
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.servo(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

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

#[test]
fn assets_are_listed_shown_and_drawn() {
    let project = Project::new(FLIGHTS);
    insta::assert_snapshot!("asset_list", project.shown(&["asset", "list"]));
    insta::assert_snapshot!(
        "asset_list_selected",
        project.shown(&["asset", "list", "tag:team=ops or source.*"])
    );
    insta::assert_snapshot!("asset_show", project.shown(&["asset", "show", "analytics.delays"]));
    insta::assert_snapshot!("asset_graph", project.shown(&["asset", "graph"]));
    insta::assert_snapshot!(
        "asset_graph_dot",
        project.shown(&["asset", "graph", "+analytics.weekly", "--dot"])
    );
    let graph = project.json(&["asset", "graph", "--json"]);
    assert_eq!((graph["nodes"].as_array().unwrap().len(), graph["edges"].as_array().unwrap().len()), (7, 5));
    let listed = project.json(&["asset", "list", "--json"]);
    assert_eq!(listed["items"][0]["asset_key"], "analytics/delays");
    assert_eq!(listed["items"][0]["partitions"]["total"], 365);
}

#[test]
fn a_plan_says_what_would_run_and_why() {
    let project = Project::new(FLIGHTS);
    insta::assert_snapshot!(
        "plan_one",
        project.shown(&["plan", "analytics.delays", "--partition", "2013-01-05"])
    );
    insta::assert_snapshot!(
        "plan_upstream",
        project.shown(&["plan", "+analytics.weekly", "--partitions", "2013-01-01..2013-01-02"])
    );
    insta::assert_snapshot!(
        "plan_month",
        project.shown(&["plan", "1+report.monthly", "--partition", "2013-02", "--limit", "3"])
    );
    let planned = project.json(&["plan", "+report.monthly", "--partition", "2013-02", "--json"]);
    assert_eq!(planned["tasks"].as_array().unwrap().len(), 28 + 28 + 1 + 1);
    assert_eq!(planned["stages"], 3);
    let again = project.json(&["plan", "+report.monthly", "--partition", "month=d:2013-02-01", "--json"]);
    assert_eq!(planned["fingerprint"], again["fingerprint"], "the same partition in other words");
}

#[test]
fn what_cannot_be_planned_says_what_to_do_and_leaves_nothing_behind() {
    let project = Project::new(FLIGHTS);
    for (name, arguments) in [
        ("refused_unknown", &["plan", "analytics.delay"][..]),
        ("refused_syntax", &["plan", "analytics.delays and"]),
        ("refused_no_partition", &["plan", "analytics.*"]),
        ("refused_wrong_partition", &["plan", "analytics.delays", "--partition", "2014-02-01"]),
        ("refused_external", &["plan", "source.feed"]),
        ("refused_asset", &["asset", "show", "raw.flight"]),
        ("refused_unpartitioned", &["partition", "list", "raw.planes"]),
    ] {
        insta::assert_snapshot!(name, project.shown(arguments));
    }
    assert!(!project.root.path().join(".servo").exists(), "looking changes nothing");
}

#[test]
fn mistakes_are_reported_all_at_once_with_their_places() {
    let project = Project::new(
        r#"
import servo

@servo.asset(namespace="raw", timeout=0)
def flights(): ...

@servo.asset(namespace="raw", partitions=servo.DailyPartitions(start="2013-02-30"))
def planes(): ...

@servo.asset(namespace="analytics")
def delays(flihgts): ...
"#,
    );
    insta::assert_snapshot!("problems", project.shown(&["deploy"]));
    let output = project.servo(&["plan", "*", "--json"]);
    let problems: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(problems["code"], "invalid_definitions");
    assert_eq!(problems["problems"].as_array().unwrap().len(), 3);
    assert_eq!(problems["problems"][0]["location"]["line"], 3);
    assert!(!project.root.path().join(".servo").exists(), "nothing was deployed");
}

#[test]
fn a_module_that_cannot_be_imported_is_shown_without_frames_of_servo() {
    let broken = Project::new("import servo\n\ndef helper():\n    return 1 / 0\n\nvalue = helper()\n");
    insta::assert_snapshot!("broken_module", broken.shown(&["asset", "list"]));
    let syntax = Project::new("def broken(:\n    pass\n");
    insta::assert_snapshot!("broken_syntax", syntax.shown(&["asset", "list"]));
    let nowhere = Project::new("");
    std::fs::remove_file(nowhere.root.path().join("servo.toml")).unwrap();
    insta::assert_snapshot!("no_project", nowhere.shown(&["asset", "list"]));
    let empty = Project::new("");
    insta::assert_snapshot!("empty_project", empty.shown(&["asset", "list"]));
}

#[test]
fn a_deployment_is_recorded_once_and_its_tables_can_be_verified() {
    let project = Project::new(FLIGHTS);
    let dry = project.json(&["deploy", "--dry-run", "--json"]);
    assert_eq!(dry["accepted_event_id"], serde_json::Value::Null);
    assert!(!project.root.path().join(".servo").exists());
    let first = project.json(&["deploy", "--json"]);
    assert_eq!((first["accepted_event_id"].is_string(), first["assets"].as_u64()), (true, Some(7)));
    assert_eq!(first["digest"], dry["digest"], "the scan is deterministic");
    let second = project.json(&["deploy", "--json"]);
    assert_eq!(
        second["accepted_event_id"],
        serde_json::Value::Null,
        "the same definitions are no deployment"
    );
    let verified = project.servo(&["admin", "projections", "verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let project = Project::new(FLIGHTS);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = project.command(&["asset", "list"]).stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn keys_of_dynamic_partitions_are_added_listed_planned_and_removed() {
    let project = Project::new(FLIGHTS);
    insta::assert_snapshot!("dynamic_empty", project.shown(&["plan", "crm.profiles", "--partition", "acme"]));
    insta::assert_snapshot!(
        "dynamic_add",
        project.shown(&["partition", "add", "customers", "globex", "acme"])
    );
    insta::assert_snapshot!("dynamic_add_again", project.shown(&["partition", "add", "customers", "acme"]));
    insta::assert_snapshot!("dynamic_list", project.shown(&["partition", "list", "crm.profiles"]));
    let planned = project.json(&["plan", "crm.profiles", "--partition", "acme", "--json"]);
    assert_eq!(planned["tasks"][0]["partition"], "acme");
    insta::assert_snapshot!("dynamic_remove", project.shown(&["partition", "remove", "customers", "acme"]));
    assert!(!project.servo(&["plan", "crm.profiles", "--partition", "acme"]).status.success());
    insta::assert_snapshot!("dynamic_unknown", project.shown(&["partition", "add", "custmers", "x"]));
    insta::assert_snapshot!("dynamic_refused", project.shown(&["partition", "add", "customers", ""]));
}
