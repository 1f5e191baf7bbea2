//! Staleness from end to end: the real binary, real Python, real content hashes.

use serde_json::Value;

use crate::support::Project;

/// Two days of `raw.days`, whose content is in a file; `shop.same` reads one day, `shop.all` reads both.
const CHAIN: &str = r#"
import pathlib

days_of = servo.DailyPartitions("2013-01-01", end="2013-01-02")
content = pathlib.Path(__file__).parent / "content"

@servo.asset(namespace="raw", partitions=days_of, code_version="VERSION")
def days(ctx: servo.Context) -> list:
    return [str(ctx.partition), content.read_text()]

@servo.asset(namespace="shop", partitions=days_of)
def same(days: list) -> list:
    return days[:1]

@servo.asset(namespace="shop", deps=[servo.dep("shop.same", mapping=servo.all_partitions())])
def all(ctx: servo.Context) -> int:
    return 1
"#;

fn project() -> Project {
    let project = Project::new(&CHAIN.replace("VERSION", "1"));
    std::fs::write(project.path("content"), "first").unwrap();
    project
}

fn stale(project: &Project) -> Vec<(String, String)> {
    let page = project.json(&["partition", "stale", "--json"]);
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let item = |item: &Value| {
        let name = format!("{} {}", text(item, "asset_key"), text(item, "partition"));
        (name.trim().to_owned(), text(item, "reason"))
    };
    page["items"].as_array().unwrap().iter().map(item).collect()
}

fn pair(name: &str, reason: &str) -> (String, String) {
    (name.to_owned(), reason.to_owned())
}

#[test]
fn what_is_stale_is_made_and_nothing_else() {
    let project = project();
    let everything = ["raw/days 2013-01-01", "raw/days 2013-01-02", "shop/all", "shop/same 2013-01-01"];
    let found = stale(&project);
    assert!(everything.iter().all(|name| found.contains(&pair(name, "NEVER_MADE"))), "{found:?}");
    assert_eq!(found.len(), 5);

    let made = project.json(&["materialize", "*", "--stale", "--json"]);
    assert_eq!(made["run"]["tasks_succeeded"], 5, "{made}");
    assert_eq!(stale(&project), []);
    let text = project.good(&["materialize", "*", "--stale"]);
    assert!(text.contains("everything that * selects is up to date"), "{text}");
    assert!(project.good(&["partition", "stale"]).contains("nothing is stale"));
    assert!(project.good(&["why", "shop.all"]).contains("shop.all is up to date"));

    // Made again with the same content: nobody has to be made again.
    project.good(&["materialize", "raw.days", "--partition", "2013-01-01"]);
    assert_eq!(stale(&project), []);

    // With other content, its reader is, and what reads that.
    std::fs::write(project.path("content"), "second").unwrap();
    project.good(&["materialize", "raw.days", "--partition", "2013-01-01"]);
    assert_eq!(
        stale(&project),
        [pair("shop/all", "UPSTREAM_STALE"), pair("shop/same 2013-01-01", "UPSTREAM_NEWER")]
    );
    let why = project.good(&["why", "shop.all"]);
    assert!(why.contains("it is made from shop.same 2013-01-01"), "{why}");
    assert!(why.contains("└─ shop.same 2013-01-01 was made from what was there at"), "{why}");
    assert!(why.contains("and raw.days 2013-01-01 changed at"), "{why}");
    let listed = project.good(&["partition", "list", "shop.same"]);
    assert!(listed.contains("materialized, stale (upstream newer)"), "{listed}");

    // What is stale only because of something else is not made alone.
    let refused = project.bad(&["materialize", "shop.all", "--stale"]);
    assert!(refused.contains("stale only because of what it is made from"), "{refused}");
    let plan = project.json(&["plan", "shop.*", "--stale", "--json"]);
    let tasks: Vec<&str> =
        plan["tasks"].as_array().unwrap().iter().filter_map(|task| task["task_key"].as_str()).collect();
    assert_eq!(tasks, ["shop/all:materialize", "shop/same[date=d:2013-01-01]:materialize"]);
    assert_eq!(plan["skipped"][0]["reason"], "SKIPPED_UP_TO_DATE");
    assert_eq!(
        (&plan["skipped"][0]["asset_key"], &plan["skipped"][0]["partitions"]),
        (&"shop/same".into(), &1.into())
    );
    project.good(&["materialize", "*", "--stale"]);
    assert_eq!(stale(&project), []);

    // Other code makes all of it stale, by the deployed version.
    project.save(&CHAIN.replace("VERSION", "2"));
    let why = project.json(&["why", "raw.days", "--partition", "2013-01-02", "--json"]);
    assert_eq!(
        (&why["cause"]["ran_code_version"], &why["cause"]["deployed_code_version"]),
        (&"1".into(), &"2".into())
    );
    assert_eq!(why["totals"]["code_changed"], 2);
    let preview = project.json(&["backfill", "preview", "raw.days", "--stale", "--json"]);
    assert_eq!(preview["total_partitions"], 2, "{preview}");
}
