//! Wipe, mark and undo from end to end: real server, real Python, real files.

use serde_json::Value;

use crate::support::{Dev, Project};

const DAYS: &str = r#"
@servo.asset(namespace="raw", partitions=servo.DailyPartitions("2013-01-01", end="2013-01-05"))
def days(ctx: servo.Context) -> int:
    return 1

@servo.asset(namespace="raw")
def plain() -> int:
    return 1

@servo.asset(namespace="raw", partitions=servo.DailyPartitions("2013-01-01", end="2013-01-05"))
def doubled(days: int) -> int:
    return 2 * days
"#;

fn statuses(project: &Project, asset: &str) -> Vec<(String, String)> {
    let page = project.json(&["partition", "list", asset, "--json"]);
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let rows = page["items"].as_array().unwrap().iter();
    let mut rows: Vec<_> = rows.map(|row| (text(row, "partition"), text(row, "status"))).collect();
    rows.sort();
    rows
}

fn made(project: &Project, asset: &str) -> Vec<String> {
    let made = statuses(project, asset).into_iter().filter(|(_, status)| status == "MATERIALIZED");
    made.map(|(day, _)| day).collect()
}

/// Files of one partition of `raw.days`.
fn files(project: &Project, day: &str) -> usize {
    fn count(path: &std::path::Path, day: &str) -> usize {
        let Ok(entries) = std::fs::read_dir(path) else { return 0 };
        let of = |path: std::path::PathBuf| match path.is_dir() {
            true => count(&path, day),
            false => {
                usize::from(path.to_string_lossy().contains(day) && path.to_string_lossy().contains("days"))
            }
        };
        entries.flatten().map(|entry| of(entry.path())).sum()
    }
    count(&project.home().join("assets"), day)
}

#[test]
fn a_wipe_names_what_goes_and_takes_the_data_or_only_the_status() {
    let project = Project::new(DAYS);
    project.good(&["materialize", "raw.days", "--partitions", "2013-01-01..2013-01-05"]);
    assert!(files(&project, "2013-01-02") > 0);

    let unasked = project.servo(&["partition", "wipe", "raw.days", "--partition", "2013-01-02"]);
    let said = String::from_utf8_lossy(&unasked.stderr).into_owned();
    assert_eq!(unasked.status.code(), Some(1));
    assert!(
        said.contains("this wipes 1 partition of raw.days (2013-01-02); the data of 1 is removed"),
        "{said}"
    );
    assert_eq!(made(&project, "raw.days").len(), 5, "nobody has said yes");

    let gone = project.good(&["partition", "wipe", "raw.days", "--partition", "2013-01-02", "--yes"]);
    assert!(gone.contains("wiped 1 partition of raw.days"), "{gone}");
    assert_eq!(files(&project, "2013-01-02"), 0, "its files are gone, latest.json too");
    assert_eq!(made(&project, "raw.days"), ["2013-01-01", "2013-01-03", "2013-01-04", "2013-01-05"]);

    let kept = project.json(&[
        "partition",
        "wipe",
        "raw.days",
        "--partitions",
        "2013-01-03..2013-01-04",
        "--keep-data",
        "--yes",
        "--json",
    ]);
    assert_eq!((&kept["count"], &kept["first"]), (&2.into(), &"2013-01-03".into()), "{kept}");
    assert!(files(&project, "2013-01-03") > 0);
    assert_eq!(made(&project, "raw.days"), ["2013-01-01", "2013-01-05"]);
    let plan = project.good(&["backfill", "preview", "raw.days", "--missing"]);
    assert!(plan.starts_with("3 partitions"), "{plan}");

    let unknown = project.bad(&["partition", "undo", "raw.days", "--change", "7zzz"]);
    assert!(unknown.contains("there is no change 7ZZZ… of partitions of raw.days"), "{unknown}");
    let change = kept["accepted_event_id"].as_str().unwrap();
    project.good(&["partition", "undo", "raw.days", "--change", &change[..20]]);
    assert_eq!(made(&project, "raw.days").len(), 4);
    project.good(&["materialize", "raw.doubled", "--partition", "2013-01-03"]);
    assert!(project.bad(&["partition", "undo", "raw.days"]).contains("nothing of raw.days can be undone"));
    let acts = project.good(&["audit", "--action", "partitions"]);
    assert!(acts.contains("partitions.wipe") && acts.contains("partitions.undo"), "{acts}");
    let again = project.good(&["partition", "wipe", "raw.days", "--partition", "2013-01-02", "--yes"]);
    assert!(again.contains("nothing to wipe"), "{again}");
}

#[test]
fn partitions_are_marked_with_a_server_and_without() {
    let project = Project::new(DAYS);
    let dev = Dev::start(&project);
    let marked = project.good(&[
        "partition",
        "mark",
        "raw.days",
        "--partitions",
        "2013-01-01..2013-01-02",
        "--as",
        "materialized",
    ]);
    assert!(marked.contains("marked 2 partitions of raw.days as materialized"), "{marked}");
    assert_eq!(made(&project, "raw.days"), ["2013-01-01", "2013-01-02"]);
    drop(dev);
    project.good(&["partition", "mark", "raw.days", "--partition", "2013-01-02", "--as", "failed"]);
    let failed = project.good(&["backfill", "preview", "raw.days", "--failed"]);
    assert!(failed.starts_with("1 partition "), "{failed}");
    project.good(&["partition", "undo", "raw.days"]);
    assert_eq!(made(&project, "raw.days"), ["2013-01-01", "2013-01-02"]);
    project.good(&["partition", "mark", "raw.plain", "--as", "materialized"]);
    assert!(project.good(&["asset", "show", "raw.plain"]).contains("nobody: it was marked"));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason_and_changes_nothing() {
    let project = Project::new(DAYS);
    project.good(&["materialize", "raw.days", "--partition", "2013-01-01"]);
    let wipe = |rest: &[&str]| {
        let all: Vec<&str> = ["partition", "wipe"].iter().chain(rest).chain(&["--yes"]).copied().collect();
        project.bad(&all)
    };
    assert!(wipe(&["raw.nothing", "--all"]).contains("there is no asset raw.nothing"));
    assert!(wipe(&["raw.days"]).contains("say which, with --partition KEY"));
    assert!(wipe(&["raw.plain", "--partition", "2013-01-01"]).contains("raw.plain has no partitions"));
    let backwards = wipe(&["raw.days", "--partitions", "2013-01-05..2013-01-01"]);
    assert!(backwards.contains("2013-01-05..2013-01-01"), "{backwards}");
    let unknown = wipe(&["raw.days", "--partition", "2014-01-01"]);
    assert!(unknown.contains("raw.days has no partition 2014-01-01"), "{unknown}");
    let unknown = project.bad(&["partition", "mark", "raw.days", "--partition", "eu", "--as", "failed"]);
    assert!(unknown.contains("raw.days has no partition eu"), "{unknown}");
    let wrong = project.servo(&["partition", "mark", "raw.days", "--all", "--as", "fine"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(made(&project, "raw.days"), ["2013-01-01"]);
}

#[test]
fn keys_that_the_definition_has_no_more_are_kept_until_they_are_wiped() {
    let project = Project::new(DAYS);
    project.good(&["materialize", "raw.days", "--partitions", "2013-01-01..2013-01-05"]);
    project.save(&DAYS.replace("\"2013-01-01\"", "\"2013-01-03\""));
    let before = project.good(&["deploy", "--dry-run"]);
    assert!(before.contains("raw.days has other partitions: 3 that were made keep their status"), "{before}");
    assert!(before.contains("2 are not among them any more"), "{before}");
    let deployed = project.good(&["deploy"]);
    assert!(deployed.contains("2 are not among them any more"), "{deployed}");
    let would = project.good(&["partition", "wipe", "raw.days", "--outside-definition", "--dry-run"]);
    assert!(would.contains("would wipe 2 partitions of raw.days (2013-01-01 to 2013-01-02)"), "{would}");
    assert!(would.contains("2 of them outside of its definition"), "{would}");
    project.good(&["partition", "wipe", "raw.days", "--outside-definition", "--yes"]);
    assert_eq!(files(&project, "2013-01-01"), 0);
    assert_eq!(made(&project, "raw.days"), ["2013-01-03", "2013-01-04", "2013-01-05"]);
}
