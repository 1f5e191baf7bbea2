//! Functions that make several partitions in one call, from end to end: real binary, real Python.

use crate::support::{Dev, Project};

/// Days that are made in one call, of which the third fails once. Every call leaves a line.
const DAYS: &str = r#"
import pathlib

calls = pathlib.Path(__file__).parent / "calls"
days = servo.DailyPartitions("2013-01-01", end="2013-01-30")

@servo.asset(namespace="raw", partitions=days)
def source(ctx: servo.Context) -> int:
    return ctx.partition.date.day

@servo.asset(
    namespace="raw",
    partitions=days,
    single_call=True,
    checks=[servo.row_count(min=1)],
)
def made(ctx: servo.Context, source: dict[str, int]) -> dict[str, list[int]]:
    """Everything at once."""
    print("called for", *ctx.partitions.keys)
    before = calls.read_text() if calls.exists() else ""
    with calls.open("a") as file:
        print(*ctx.partitions.keys, file=file)
    outputs = {key: [source[key]] for key in ctx.partitions.keys}
    if "2013-01-03" in outputs and "2013-01-03" not in before:
        del outputs["2013-01-03"]
        raise servo.PartitionFailures({"2013-01-03": ValueError("not this time")}, outputs=outputs)
    return outputs

@servo.asset(namespace="raw", partitions=days)
def after(made: list[int]) -> int:
    return made[0] * 10
"#;

fn calls(project: &Project) -> Vec<String> {
    let text = std::fs::read_to_string(project.path("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn rows(project: &Project, query: &str) -> String {
    project.good(&["sql", query, "--csv"])
}

#[test]
fn a_range_is_one_call_and_a_bad_day_leaves_the_others_good() {
    let project = Project::new(DAYS);
    let plan = project.good(&["plan", "raw.*", "-p", "2013-01-01..2013-01-04"]);
    assert!(plan.contains("one call makes all partitions of raw.made (single_call)"), "{plan}");
    let ended = project.servo(&[
        "materialize",
        "raw.source",
        "raw.made",
        "raw.after",
        "-p",
        "2013-01-01..2013-01-04",
    ]);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(calls(&project), ["2013-01-01 2013-01-02 2013-01-03 2013-01-04"]);
    let states = "select task_key, state, error from tasks where asset_key = 'raw/made' order by task_key";
    let found = rows(&project, states);
    assert_eq!(found.matches("SUCCEEDED").count(), 3, "{found}");
    assert!(found.contains("not this time"), "{found}");
    // What reads a good day was made, and the reader of the bad one was not.
    let count = "select asset_key, count(*) as n from materializations group by asset_key order by asset_key";
    let found = rows(&project, count);
    assert!(found.contains("raw/after,3") && found.contains("raw/made,3"), "{found}");
    // Each was made of its own day.
    let inputs = "select count(*) as n from materialization_inputs where asset_key = 'raw/made' \
                  and partition_key = upstream_partition_key";
    assert!(rows(&project, inputs).contains('3'));

    project.good(&[
        "materialize",
        "raw.made",
        "raw.after",
        "--partitions",
        "2013-01-01..2013-01-04",
        "--missing",
    ]);
    assert_eq!(calls(&project)[1..], ["2013-01-03"], "only what failed is made again");
    let found = rows(&project, count);
    assert!(found.contains("raw/after,4") && found.contains("raw/made,4"), "{found}");
    let stale = project.json(&["partition", "stale", "raw.*", "--limit", "1000", "--json"]);
    assert_eq!(stale["items"].as_array().map(Vec::len), Some(3 * 26), "what was asked for is fresh: {stale}");
    project.nothing_is_left_behind();
}

#[test]
fn each_chunk_of_a_backfill_is_one_call_and_retries_make_what_failed() {
    let project = Project::new(DAYS);
    let dev = Dev::start(&project);
    let chunked = ["--partitions", "2013-01-01..2013-01-08", "--chunk-size", "4", "--wait"];
    let ended = project.servo(&[&["backfill", "create", "raw.source", "raw.made"][..], &chunked].concat());
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(
        said.contains("15 of 16 partitions made, 1 failed"),
        "{said}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let mut made = calls(&project);
    made.sort();
    assert_eq!(
        made,
        ["2013-01-01 2013-01-02 2013-01-03 2013-01-04", "2013-01-05 2013-01-06 2013-01-07 2013-01-08"]
    );
    let id =
        project.json(&["backfill", "list", "--json"])["items"][0]["backfill_id"].as_str().unwrap().to_owned();
    let again = project.json(&["backfill", "retry-failed", &id, "--wait", "--json"]);
    assert_eq!((&again["state"], &again["total_partitions"]), (&"SUCCEEDED".into(), &1.into()), "{again}");
    assert_eq!(calls(&project).last().map(String::as_str), Some("2013-01-03"));
    drop(dev);
}

#[test]
fn the_log_of_a_call_is_found_from_each_of_its_partitions() {
    let project = Project::new(DAYS);
    project.servo(&["materialize", "raw.source", "raw.made", "-p", "2013-01-05..2013-01-06"]);
    let run = project.newest_run()["run_id"].as_str().unwrap().to_owned();
    let first = project.good(&["run", "logs", &run, "raw.made", "2013-01-05"]);
    assert!(first.contains("called for 2013-01-05 2013-01-06"), "{first}");
    let second = project.good(&["run", "logs", &run, "raw.made", "2013-01-06"]);
    assert!(
        second.contains("whose log is that of raw/made[date=d:2013-01-05]:materialize, attempt 1"),
        "{second}"
    );
}

#[test]
fn definitions_that_cannot_be_called_once_are_refused() {
    let project = Project::new(
        r#"
days = servo.DailyPartitions("2013-01-01")

@servo.asset(single_call=True)
def whole():
    return 1

@servo.asset(partitions=days, single_call=True, deps=[servo.dep("default.chain", mapping=servo.window(-1, -1))])
def chain(ctx):
    return {}

@servo.multi_asset(outputs=[servo.AssetSpec("m.a"), servo.AssetSpec("m.b")], partitions=days, single_call=True)
def several(ctx):
    return {}
"#,
    );
    let said = project.bad(&["plan", "*"]);
    assert!(said.contains("asset default.whole: has single_call, and no partitions"), "{said}");
    assert!(
        said.contains("asset default.chain: has single_call and reads its own earlier partitions"),
        "{said}"
    );
    assert!(said.contains("asset m.a: has single_call, and is made together with other assets"), "{said}");
}
