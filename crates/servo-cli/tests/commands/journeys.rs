//! The main journeys as somebody sees them: what is typed, what is answered, and how it ends, errors included.
//!
//! One project and one server for each journey; a snapshot is what a terminal of 120 columns would show, without colours,
//! ids and times. Lines of stderr begin with `!`.

use std::fmt::Write as _;

use crate::shown::{is_always_said, line};
use crate::support::{Dev, Project, python, until};

/// A journey, as it is recorded.
struct Journey<'p> {
    project: &'p Project,
    shown: String,
}

impl<'p> Journey<'p> {
    fn of(project: &'p Project) -> Self {
        Self { project, shown: String::new() }
    }

    /// Types a command.
    fn types(&mut self, arguments: &[&str]) -> &mut Self {
        let output = self.project.command(arguments).env("COLUMNS", "120").output().unwrap();
        let typed: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let _infallible = writeln!(self.shown, "$ servo {}", typed.join(" "));
        self.prints(&output.stdout, "");
        self.prints(&output.stderr, "! ");
        match output.status.code() {
            Some(0) => {}
            code => {
                let _infallible = writeln!(self.shown, "[exit {}]", code.unwrap());
            }
        }
        self.shown.push('\n');
        self
    }

    fn prints(&mut self, bytes: &[u8], mark: &str) {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut text = String::from_utf8_lossy(bytes).replace(&format!(" {host} "), " [host] ");
        for (path, name) in [(self.project.path(""), "[dir]/"), (python(), "[python]")] {
            text = text.replace(&path.display().to_string(), name);
        }
        let mut lines: Vec<String> = text.lines().filter(|text| is_always_said(text)).map(line).collect();
        // Tasks that nothing connects end in any order.
        let is_task = |line: &String| line.starts_with('✓');
        for lines in lines.chunk_by_mut(|one, next| is_task(one) && is_task(next)) {
            lines.sort();
        }
        for line in lines {
            let _infallible = writeln!(self.shown, "{}", format!("{mark}{line}").trim_end());
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{word}'") }
}

const SHOP: &str = r#"
import pathlib

here = pathlib.Path(__file__).parent
days = servo.DailyPartitions(start="2013-01-01", end="2013-01-05")

class Limits(servo.Config):
    least: int = 2

@servo.asset(namespace="raw", partitions=days, description="Orders of a day.", group="ingest")
def orders(ctx: servo.Context) -> list[dict]:
    print("orders of", ctx.partition)
    if (here / "broken").exists() and str(ctx.partition) == "2013-01-02":
        raise ValueError("the source is down")
    return [{"id": 1}, {"id": 2}]

@servo.asset(namespace="shop", partitions=days, checks=[servo.row_count(min=3, severity="error")])
def clean(orders: list[dict], config: Limits) -> list[dict]:
    return orders[: config.least]

@servo.asset(namespace="shop", quarantine=True, checks=[servo.row_count(min=3, severity="critical")])
def reviewed() -> list[dict]:
    return [{"id": 1}]

@servo.asset(namespace="crm", partitions=servo.DynamicPartitions("customers"))
def profiles(ctx: servo.Context) -> int:
    return 1

servo.schedule(name="nightly", cron="0 2 * * *", timezone="Europe/Amsterdam", selection="shop.clean", enabled=False)

@servo.push_sensor(selection="raw.orders", enabled=False)
def uploads(ctx, message):
    return servo.RunRequest(partition="2013-01-03", run_key=message.id)
"#;

#[test]
fn a_project_is_begun_and_looked_at() {
    let project = Project::new("");
    let mut journey = Journey::of(&project);
    journey
        .types(&["init", "station"])
        .types(&["init", "station"])
        .types(&["init", "station", "--json"])
        .types(&["init", "other", "--name", "Other One"])
        .types(&["asset", "graph", "--project", "station"])
        .types(&["plan", "+analytics.weekly", "-p", "2026-01-02", "--project", "station"])
        .types(&["schedule", "list", "--project", "station"])
        .types(&["sensor", "list", "--project", "station"])
        .types(&["asset", "list", "--project", "/"])
        .types(&["asset", "list"]);
    insta::assert_snapshot!(journey.shown);
}

#[test]
fn data_is_made_fails_is_blocked_and_is_made_again() {
    let project = Project::new(SHOP);
    let mut journey = Journey::of(&project);
    journey
        .types(&["run", "list"])
        .types(&["run", "show", "latest"])
        .types(&["asset", "show", "shop.clean"])
        .types(&["plan", "+shop.clean", "--partitions", "2013-01-01..2013-01-02"])
        .types(&["materialize", "raw.orders", "-p", "2013-01-01"])
        .types(&["materialize", "shop.clean", "-p", "2013-01-01", "--strict-checks"])
        .types(&["run", "show", "latest"]);
    std::fs::write(project.path("broken"), "").unwrap();
    journey
        .types(&["materialize", "+shop.clean", "-p", "2013-01-02", "--slots", "1"])
        .types(&["run", "show", "latest"])
        .types(&["run", "logs", "latest"])
        .types(&["run", "why", "latest"])
        .types(&["run", "cancel", "latest"])
        .types(&["why", "shop.clean", "-p", "2013-01-02"]);
    std::fs::remove_file(project.path("broken")).unwrap();
    journey
        .types(&["run", "retry", "latest", "--from-failure", "--json"])
        .types(&["materialize", "shop.reviewed"])
        .types(&["why", "shop.reviewed"])
        .types(&["quarantine", "list"])
        .types(&["quarantine", "approve", "latest"])
        .types(&["quarantine", "reject", "latest"])
        .types(&["why", "shop.reviewed"])
        .types(&["asset", "lineage", "shop.clean", "-p", "2013-01-01"])
        .types(&["run", "list", "--state", "failed"]);
    insta::assert_snapshot!(journey.shown);
}

#[test]
fn partitions_are_listed_wiped_and_added() {
    let project = Project::new(SHOP);
    let mut journey = Journey::of(&project);
    journey
        .types(&["partition", "list", "raw.orders"])
        .types(&["partition", "stale", "raw.*", "-n", "2"])
        .types(&["materialize", "raw.orders", "--partitions", "2013-01-01..2013-01-03", "--slots", "1"])
        .types(&["partition", "list", "raw.orders", "--status", "materialized"])
        .types(&["why", "raw.orders"])
        .types(&["partition", "wipe", "raw.orders", "-p", "2013-01-02", "--dry-run"])
        .types(&["partition", "wipe", "raw.orders", "-p", "2013-01-02"])
        .types(&["partition", "wipe", "raw.orders", "-p", "2013-01-02", "--yes"])
        .types(&["partition", "undo", "raw.orders"])
        .types(&["materialize", "crm.profiles", "--partitions", ".."])
        .types(&["partition", "add", "customers", "acme"])
        .types(&["partition", "add", "custmers", "acme"])
        .types(&["partition", "list", "crm.profiles"])
        .types(&["partition", "remove", "customers", "acme"])
        .types(&["partition", "list", "crm.profiles"]);
    insta::assert_snapshot!(journey.shown);
}

#[test]
fn a_backfill_is_previewed_created_paused_and_tried_again() {
    let project = Project::new(SHOP);
    std::fs::write(project.path("broken"), "").unwrap();
    let mut journey = Journey::of(&project);
    journey
        .types(&["backfill", "list"])
        .types(&["backfill", "preview", "raw.orders"])
        .types(&["backfill", "preview", "shop.reviewed"])
        .types(&["backfill", "preview", "raw.orders", "--start", "2013-01-01", "--chunk-size", "2"])
        .types(&["backfill", "create", "raw.orders", "--partitions", "..", "--chunk-size", "2"])
        .types(&["backfill", "pause", "latest"])
        .types(&["backfill", "pause", "latest"])
        .types(&["backfill", "show", "latest"])
        .types(&["backfill", "resume", "latest", "--wait", "--slots", "1"])
        .types(&["backfill", "show", "latest"])
        .types(&["backfill", "cancel", "latest"]);
    std::fs::remove_file(project.path("broken")).unwrap();
    journey
        .types(&["backfill", "retry-failed", "latest", "--wait", "--slots", "1"])
        .types(&["backfill", "retry-failed", "latest"])
        .types(&["backfill", "list"])
        .types(&["backfill", "show", "01AAAAAA"]);
    // Progress is told as it happens to be looked at.
    let shown = journey.shown.lines().filter(|line| !line.starts_with("! ["));
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_server_is_asked_the_same_and_automation_lives_there() {
    let project = Project::new(SHOP);
    let _dev = Dev::start(&project);
    let mut journey = Journey::of(&project);
    journey
        .types(&["schedule", "list"])
        .types(&["schedule", "create", "hourly", "--cron", "0 * * * *", "--select", "raw.orders", "--paused"])
        .types(&["schedule", "create", "hourly", "--cron", "0 * * * *", "--select", "raw.orders"])
        .types(&["schedule", "create", "wrong", "--cron", "0 25 * * *", "--select", "raw.orders"])
        .types(&["schedule", "create", "wrong", "--cron", "0 2 * * *", "--select", "raw.nothing"])
        .types(&["schedule", "update", "hourly", "--cron", "30 * * * *", "--priority", "2"])
        .types(&["schedule", "update", "nightly", "--cron", "30 * * * *"])
        .types(&["schedule", "show", "nightly"])
        .types(&["schedule", "resume", "hourly", "--expected-state-version", "1"])
        .types(&["schedule", "trigger", "nightly"])
        .types(&["schedule", "trigger", "nightly", "-p", "2013-01-09"])
        .types(&["schedule", "delete", "nightly"])
        .types(&["schedule", "delete", "hourly"])
        .types(&["schedule", "show", "hourly"])
        .types(&["sensor", "list"])
        .types(&["sensor", "resume", "uploads"])
        .types(&["sensor", "evaluate", "uploads", "--payload", "{\"file\": 1}", "--dry-run"])
        .types(&["sensor", "evaluate", "uploads", "--payload", "{file}"])
        .types(&["sensor", "push", "uploads", "--id", "m1", "--data", "{\"file\": 1}"]);
    until("the run of the message", || {
        let evals = project.json(&["sensor", "evals", "uploads", "--json"]);
        let run = evals["items"][0]["runs"][0]["run_id"].as_str()?.to_owned();
        project.servo(&["run", "watch", &run]).status.success().then_some(())
    });
    journey
        .types(&["sensor", "push", "uploads", "--id", "m1", "--data", "{\"file\": 1}"])
        .types(&["sensor", "evals", "uploads"])
        .types(&["sensor", "pause", "uploads"])
        .types(&["sensor", "show", "upload"])
        .types(&["sensor", "create", "made", "--push", "--select", "raw.orders"])
        .types(&["sensor", "delete", "made"])
        .types(&["worker", "list"])
        .types(&["queue", "list"])
        .types(&["notification", "list"])
        .types(&["automation", "list"]);
    insta::assert_snapshot!(journey.shown);
}

#[test]
fn settings_and_the_workspace_are_looked_after() {
    let project = Project::new(SHOP);
    let mut journey = Journey::of(&project);
    journey
        .types(&["admin", "status"])
        .types(&["config", "set", "max_concurrent_runs=2", "pool.warehouse=3"])
        .types(&["config", "set", "max_concurrent_runs=2"])
        .types(&["config", "set", "max_concurrent_run=2"])
        .types(&["config", "set", "max_concurrent_runs=none"])
        .types(&["config", "show", "max_concurrent_runs"])
        .types(&["config", "unset", "max_concurrent_runs"])
        .types(&["admin", "pause", "--reason", "the warehouse is down"])
        .types(&["admin", "pause"])
        .types(&["schedule", "trigger", "nightly", "-p", "2013-01-03"])
        .types(&["run", "why", "latest"])
        .types(&["run", "cancel", "latest", "--reason", "not now"])
        .types(&["run", "show", "latest"])
        .types(&["admin", "resume"])
        .types(&["admin", "drain", "--timeout", "5"])
        .types(&["admin", "status"])
        .types(&["admin", "resume"])
        .types(&["admin", "retention", "preview"])
        .types(&["worker", "list"])
        .types(&["deploy", "--dry-run"])
        .types(&["deployment", "list"])
        .types(&["audit", "--action", "nothing"]);
    insta::assert_snapshot!(journey.shown);
}

#[test]
fn mistakes_are_answered_with_what_where_and_what_to_do() {
    let project = Project::new(SHOP);
    let mut journey = Journey::of(&project);
    journey
        .types(&["materialise", "*"])
        .types(&["materialize"])
        .types(&["materialize", "shop.claen", "-p", "2013-01-01"])
        .types(&["materialize", "claen"])
        .types(&["materialize", "shop.clean"])
        .types(&["materialize", "shop.clean", "-p", "2013-13-01"])
        .types(&["materialize", "shop.clean", "-p", "2014-01-01"])
        .types(&["materialize", "shop.clean", "-p", "today"])
        .types(&["materialize", "shop.clean", "--partitions", "2013-01-03..2013-01-01"])
        .types(&["materialize", "shop.clean", "-p", "2013-01-01", "--config", "least=many"])
        .types(&["materialize", "shop.clean", "-p", "2013-01-01", "--config", "leest=1"])
        .types(&["materialize", "shop.clean", "-p", "2013-01-01", "--config", "least"])
        .types(&["plan", "shop.clean and"])
        .types(&["run", "show", "run_1"])
        .types(&["run", "show", "run_aaaa"])
        .types(&["run", "list", "--state", "lost"])
        .types(&["asset", "show", "clean"])
        .types(&["asset", "show", "shop.claen", "--json"])
        .types(&["why", "shop.clean", "-p", "2013-02-01"])
        .types(&["quarantine", "approve", "latest"])
        .types(&["run", "list", "--url", "http://127.0.0.1:1"]);
    project.save("import nothing_like_that\n");
    journey.types(&["asset", "list"]).types(&["materialize", "*"]).types(&["plan", "*", "--json"]);
    project.save("def broken(:\n");
    journey.types(&["materialize", "*"]);
    project.save("@servo.asset(namespace=\"t\", config={\"a\": 1})\ndef x(): ...\n");
    journey.types(&["materialize", "*"]);
    project.save("@servo.asset(namespace=\"t\")\ndef x(y): ...\n");
    journey.types(&["materialize", "*"]);
    insta::assert_snapshot!(journey.shown);
}
