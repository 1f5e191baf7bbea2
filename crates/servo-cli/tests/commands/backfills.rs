//! Backfills from end to end: real server, real Python.

use serde_json::Value;

use crate::support::{Dev, Project, until};

/// Thirty days, of which the 15th fails once. Every attempt leaves a line.
const MONTH: &str = r#"
import pathlib

tried = pathlib.Path(__file__).parent / "tried"
tried.mkdir(exist_ok=True)

@servo.asset(
    namespace="raw",
    partitions=servo.DailyPartitions("2013-01-01", end="2013-01-30"),
    retry=servo.Retry(1),
)
def days(ctx: servo.Context) -> int:
    day = str(ctx.partition)
    mark = tried / day
    number = int(mark.read_text()) + 1 if mark.exists() else 1
    mark.write_text(str(number))
    if day.endswith("15") and number == 1:
        raise ValueError("not this time")
    return number

@servo.asset(namespace="raw")
def plain() -> int:
    return 1
"#;

fn backfill(project: &Project, id: &str) -> Value {
    project.json(&["backfill", "show", id, "--json"])["backfill"].take()
}

fn attempts(project: &Project) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(project.path("tried")).unwrap().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| {
            let times = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), times)
        })
        .collect();
    found.sort();
    found
}

fn rows(project: &Project, query: &str) -> String {
    project.good(&["sql", query, "--csv"])
}

#[test]
fn thirty_days_are_paused_resumed_and_what_failed_is_made_again() {
    let project = Project::new(MONTH);
    let dev = Dev::start(&project);
    let id = project.json(&[
        "backfill",
        "create",
        "raw.days",
        "--start",
        "2013-01-01",
        "--end",
        "2013-01-30",
        "--chunk-size",
        "1",
        "--concurrency",
        "1",
        "--json",
    ])["backfill_id"]
        .as_str()
        .unwrap()
        .to_owned();
    until("ten days", || {
        let made = backfill(&project, &id)["completed_partitions"].as_u64().unwrap();
        (made >= 10).then_some(())
    });
    let told = project.bad(&["backfill", "pause", "0000"]);
    assert!(told.contains("there is no backfill 0000…; `servo backfill list` shows"), "{told}");
    project.good(&["backfill", "pause", "latest"]);
    let paused = until("the chunk at work", || {
        let seen = backfill(&project, &id);
        seen["active_runs"].as_array().unwrap().is_empty().then_some(seen)
    });
    assert!(paused["state"].as_str().unwrap().starts_with("PAUSED"), "{paused}");
    let quiet = attempts(&project);
    project.good(&["run", "list"]);
    assert_eq!(attempts(&project), quiet, "nothing starts while it is paused");
    assert_eq!(backfill(&project, &id)["planned_chunks"], paused["planned_chunks"]);

    let ended = project.servo(&["backfill", "resume", &id, "--wait"]);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(said.contains("29 of 30 partitions made, 1 failed"), "{said}");
    let again = project.json(&["backfill", "retry-failed", &id, "--wait", "--json"]);
    assert_eq!((&again["state"], &again["total_partitions"]), (&"SUCCEEDED".into(), &1.into()), "{again}");
    assert_eq!(again["parent_backfill_id"], id.as_str());

    let attempted = attempts(&project);
    assert_eq!(attempted.len(), 30);
    let twice: Vec<&str> =
        attempted.iter().filter(|(_, times)| times == "2").map(|(day, _)| day.as_str()).collect();
    assert_eq!(twice, ["2013-01-15"]);
    assert!(attempted.iter().all(|(_, times)| times == "1" || times == "2"));
    drop(dev);
    let made =
        rows(&project, "select count(*) as n, count(distinct partition_key) as d from materializations");
    assert!(made.contains("30,30"), "{made}");
    let chunks =
        rows(&project, "select state, count(*) as n from backfill_chunks group by state order by state");
    assert!(chunks.contains("FAILED,1") && chunks.contains("SUCCEEDED,30"), "{chunks}");
    assert!(project.good(&["backfill", "list"]).contains("failed"), "both are listed");
}

#[test]
fn without_a_server_a_backfill_is_run_by_the_command_that_waits_for_it() {
    let project = Project::new(MONTH);
    let preview = project.good(&["backfill", "preview", "raw.days", "--missing"]);
    assert!(preview.starts_with("30 partitions in 3 chunks of at most 10, 2 at once"), "{preview}");
    let created = project.good(&["backfill", "create", "raw.days", "--partitions", "2013-01-01..2013-01-04"]);
    assert!(created.contains("makes 4 partitions in 1 chunk"), "{created}");
    assert!(created.contains("nobody runs it yet"), "{created}");
    let id = created.split(' ').next().unwrap().to_owned();
    assert_eq!(backfill(&project, &id)["state"], "PENDING");
    let said = project.good(&["backfill", "resume", &id[..20].to_lowercase(), "--wait"]);
    assert!(said.contains("succeeded: 4 of 4 partitions made"), "{said}");
    let missing = project.json(&[
        "backfill",
        "create",
        "raw.days",
        "--missing",
        "--partitions",
        "2013-01-01..2013-01-08",
        "--wait",
        "--json",
    ]);
    assert_eq!(missing["total_partitions"], 4, "{missing}");
    assert_eq!(attempts(&project).len(), 8);
    let same =
        ["backfill", "create", "raw.days", "--partition", "2013-01-20", "--request-id", "mine", "--json"];
    assert_eq!(project.json(&same)["backfill_id"], project.json(&same)["backfill_id"]);
}

#[test]
fn mistakes_are_said_and_nothing_is_begun() {
    let project = Project::new(MONTH);
    let create = |more: &[&str]| project.bad(&[&["backfill", "create"], more].concat());
    for (arguments, problem) in [
        (&["raw.days", "--partitions", "2013-01-20..2013-01-10"][..], "2013-01-20"),
        (&["raw.days", "--start", "2012-01-01", "--end", "2012-01-31"], "the first partition is 2013-01-01"),
        (&["raw.plain", "--partitions", "2013-01-01..2013-01-02"], "nothing that is selected has partitions"),
        (&["raw.days", "--partition", "soon"], "soon"),
        (&["raw.nothing", "--missing"], "raw.nothing"),
        (&["raw.days", "--missing", "--failure-threshold", "200%"], "neither a percentage from 0% to 100%"),
        (&["raw.days", "--missing", "--chunk-size", "0"], "chunk size 0 is not between 1 and"),
        (&["raw.days", "--missing", "--concurrency", "0"], "0 concurrent runs"),
    ] {
        let said = create(arguments);
        assert!(said.contains(problem), "{arguments:?}: {said}");
    }
    let unknown = project.bad(&["backfill", "pause", "01JHKM51000000000000000008"]);
    assert!(unknown.contains("there is no backfill 01JHKM51000000000000000008"), "{unknown}");
    assert!(project.good(&["backfill", "list"]).contains("there are no backfills"));
}
