//! Expiry from end to end: the real binary, real Python, real time.

use serde_json::Value;

use crate::support::{Dev, Project, until};

const SHORT: &str = r#"
days_of = servo.DailyPartitions("2013-01-01", end="2013-01-02")

@servo.asset(namespace="raw", partitions=days_of, expires_after="1s")
def days(ctx: servo.Context) -> int:
    return 1

@servo.asset(namespace="raw", partitions=days_of)
def doubled(days: int) -> int:
    return 2 * days
"#;

fn statuses(project: &Project) -> Vec<String> {
    let page = project.json(&["partition", "list", "raw.days", "--json"]);
    let status = |row: &Value| row["status"].as_str().unwrap_or_default().to_owned();
    page["items"].as_array().unwrap().iter().map(status).collect()
}

#[test]
fn what_has_expired_is_missing_with_its_reason_and_can_be_given_back() {
    let project = Project::new(SHORT);
    let _dev = Dev::start(&project);
    project.good(&["materialize", "*", "--partitions", "2013-01-01..2013-01-02"]);
    until("both expire", || (statuses(&project) == ["EXPIRED", "EXPIRED"]).then_some(()));

    let listed = project.json(&["partition", "list", "raw.days", "--status", "expired", "--json"]);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    assert!(listed["items"][0]["expired_at"].is_string(), "{listed}");
    let why = project.good(&["why", "raw.days", "--partition", "2013-01-02"]);
    assert!(why.contains("has expired: it counts for 1s after it was made"), "{why}");
    let reader = project.good(&["why", "raw.doubled", "--partition", "2013-01-02"]);
    assert!(reader.contains("is made from raw.days 2013-01-02, which has expired"), "{reader}");
    let stale = project.json(&["partition", "stale", "raw.days", "--reason", "expired", "--json"]);
    assert_eq!(stale["totals"]["expired"], 2, "{stale}");
    let planned = project.json(&["plan", "raw.days", "--missing", "--json"]);
    assert_eq!(planned["tasks"].as_array().unwrap().len(), 2, "{planned}");
    let audit = project.good(&["audit", "--action", "partitions.expire"]);
    assert!(audit.contains("raw.days") && audit.contains("system"), "{audit}");

    // The last expiry: both, unless they were made in two different seconds.
    let undone = project.json(&["partition", "undo", "raw.days", "--json"]);
    assert!(undone["count"].as_u64() >= Some(1), "{undone}");
    until("it expires again", || (statuses(&project) == ["EXPIRED", "EXPIRED"]).then_some(()));
}

#[test]
fn a_command_without_a_server_finds_missing_what_expired_since() {
    let project = Project::new(SHORT);
    project.good(&["materialize", "raw.days", "--partition", "2013-01-01"]);
    // Whatever it is about, a command that may change something lets what is due expire first.
    until("it is made again", || {
        let made =
            project.servo(&["materialize", "raw.days", "--partition", "2013-01-01", "--missing", "--json"]);
        let answer: Value = serde_json::from_slice(&made.stdout).unwrap_or_default();
        (answer["run"]["tasks_succeeded"] == 1).then_some(())
    });
}

#[test]
fn a_time_that_makes_no_sense_is_refused_with_the_place() {
    let project = Project::new(&SHORT.replace("expires_after=\"1s\"", "expires_after=\"10ms\""));
    let refused = project.servo(&["deploy"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_ne!(refused.status.code(), Some(0));
    assert!(said.contains("raw.days") && said.contains("expires_after"), "{said}");
}
