//! `servo check run` and `servo admin retention`, with real functions and files.

use std::fs;

use serde_json::Value;

use crate::support::{Dev, Project, until};

const SHOP: &str = r#"
import pathlib

@servo.asset(
    namespace="shop",
    quarantine=True,
    checks=[servo.row_count(min=2, severity="critical"), servo.row_count(name="few", max=9, severity="error")],
)
def items() -> list:
    print("making items")
    return list(range(int(pathlib.Path("count").read_text())))

@servo.asset(namespace="shop")
def plain() -> int:
    return 1
"#;

fn shop(count: &str) -> Project {
    let project = Project::new(SHOP);
    fs::write(project.path("count"), count).unwrap();
    project
}

#[test]
fn checks_run_alone_on_what_is_there_and_flag_the_run() {
    let project = shop("3");
    let told = project.bad(&["check", "run", "shop.items"]);
    assert!(told.contains("nothing to check") && told.contains("servo materialize"), "{told}");
    project.good(&["materialize", "shop.*"]);
    let told = project.bad(&["check", "run", "shop.plain"]);
    assert!(told.contains("declares a check"), "{told}");
    let (latest, committed) = (project.latest("shop/items"), project.committed("shop/items"));
    let told = project.good(&["check", "run", "shop.items", "--strict-checks"]);
    assert!(told.contains("SUCCEEDED") && told.contains("2 checks, all passed"), "{told}");
    let run = project.newest_run();
    assert_eq!((run["operation"].as_str(), run["tasks_total"].as_u64()), (Some("check"), Some(1)));
    let logs = project.good(&["run", "logs", run["run_id"].as_str().unwrap()]);
    assert!(!logs.contains("making items"), "the function was not called: {logs}");
    // What is declared now does not hold for what was made before.
    project.save(&SHOP.replace("max=9", "max=2"));
    let strict = project.servo(&["check", "run", "shop.items", "--strict-checks"]);
    let told = String::from_utf8_lossy(&strict.stdout).into_owned();
    assert_eq!(strict.status.code(), Some(3), "{told}");
    assert!(told.contains("check few did not pass") && told.contains("SUCCEEDED"), "{told}");
    assert_eq!(project.newest_run()["checks_failed"], 1);
    project.good(&["check", "run", "shop.items"]);
    // A critical one neither removes nor quarantines what counts.
    project.save(&SHOP.replace("min=2", "min=5"));
    let strict = project.servo(&["check", "run", "shop.items", "--strict-checks"]);
    assert_eq!(strict.status.code(), Some(3));
    assert_eq!(project.latest("shop/items"), latest);
    assert_eq!(project.committed("shop/items"), committed);
    assert_eq!(project.json(&["quarantine", "list", "--json"])["items"], Value::Array(vec![]));
    let asset = project.json(&["asset", "show", "shop.items", "--json"]);
    assert_eq!(asset["health"]["last_check_passed"], false, "{asset:#}");
    let results = project.json(&[
        "sql",
        "select materialization_id, count(*) as n from check_results group by all",
        "--json",
    ]);
    let id = latest["materialization_id"].as_str().unwrap();
    assert_eq!(results.as_array().unwrap().len(), 1, "all are about the one that was made: {results}");
    assert_eq!(results[0]["materialization_id"], id);
    project.nothing_is_left_behind();
}

#[test]
fn a_server_runs_checks_alone_too() {
    let project = shop("3");
    let _dev = Dev::start(&project);
    project.good(&["materialize", "shop.items"]);
    let told = project.good(&["check", "run", "shop.items"]);
    assert!(told.contains("2 checks, all passed"), "{told}");
    assert_eq!(project.newest_run()["operation"], "check");
}

/// How many go of a kind.
fn goes(retention: &Value, kind: &str) -> u64 {
    let kinds = retention["kinds"].as_array().unwrap();
    kinds.iter().find(|it| it["kind"] == kind).unwrap()["items"].as_u64().unwrap()
}

#[test]
fn retention_says_what_would_go_and_removes_it() {
    let project = shop("3");
    for _ in 0..3 {
        project.good(&["materialize", "shop.items"]);
    }
    let preview = || project.json(&["admin", "retention", "preview", "--json"]);
    let told = preview();
    assert_eq!((goes(&told, "superseded"), goes(&told, "logs")), (0, 0), "nothing is old: {told:#}");
    project.good(&["config", "set", "keep_superseded=1ms", "keep_superseded_versions=1", "keep_logs=1ms"]);
    let told = preview();
    assert_eq!((goes(&told, "superseded"), goes(&told, "logs")), (1, 3), "{told:#}");
    let bytes = told["kinds"].as_array().unwrap().iter().map(|kind| kind["bytes"].as_u64().unwrap());
    assert!(bytes.sum::<u64>() > 0, "{told:#}");
    assert_eq!(project.committed("shop/items").len(), 3, "nothing has gone yet");
    let latest = project.latest("shop/items");
    let applied = project.json(&["admin", "retention", "apply", "--json"]);
    assert_eq!(goes(&applied, "superseded"), 1);
    assert!(applied["accepted_event_id"].is_string(), "{applied:#}");
    assert_eq!(project.committed("shop/items").len(), 2);
    assert_eq!(project.latest("shop/items"), latest);
    let told = preview();
    assert_eq!((goes(&told, "superseded"), goes(&told, "logs")), (0, 0), "{told:#}");
    let table = project.good(&["admin", "retention", "apply"]);
    assert!(table.contains("nothing to remove") && table.contains("keep_superseded"), "{table}");
    let removed = project.json(&["sql", "select count(*) as n from removals", "--json"]);
    assert_eq!(removed[0]["n"], 1);
    project.good(&["admin", "projections", "verify"]);
    // The data that counts can still be checked and read.
    project.good(&["check", "run", "shop.items"]);
}

#[test]
fn tables_are_verified_and_rebuilt_although_the_ledger_has_lost_its_beginning() {
    let project = shop("3");
    project.good(&["config", "set", "keep_ledger_batches=1"]);
    for _ in 0..3 {
        project.good(&["materialize", "shop.items"]);
    }
    assert!(
        project.home().join("rebuild/boundary.json").is_file(),
        "tables are kept for the rest of the log"
    );
    project.good(&["admin", "projections", "verify"]);
    project.good(&["admin", "projections", "rebuild"]);
    project.good(&["admin", "projections", "verify"]);
    let runs = project.json(&["sql", "select count(*) as n from runs", "--json"]);
    assert_eq!(runs[0]["n"], 3, "also those of batches that are gone");
    project.good(&["materialize", "shop.items"]);
}

#[test]
fn a_server_removes_what_is_not_kept_when_asked() {
    let project = shop("3");
    project.good(&["materialize", "shop.items"]);
    project.good(&["materialize", "shop.items"]);
    let _dev = Dev::start(&project);
    project.good(&["config", "set", "keep_superseded=1ms", "keep_superseded_versions=0"]);
    let applied = until("the tables know what was made", || {
        let applied = project.json(&["admin", "retention", "apply", "--json"]);
        (goes(&applied, "superseded") == 1).then_some(applied)
    });
    assert!(applied["accepted_event_id"].is_string());
    until("it is gone", || (project.committed("shop/items").len() == 1).then_some(()));
}
