//! Facts of runs that are remembered and shown afterwards: who asked for what, checks, lineage, how an asset fares.

use serde_json::Value;

use crate::support::Project;

const CODE: &str = r#"
days = servo.DailyPartitions(start="2013-01-01", end="2013-01-31")

@servo.asset(namespace="raw", partitions=days)
def orders() -> list:
    return [1, 2, 3]

@servo.asset(namespace="shop", partitions=days, checks=[servo.row_count(min=5)])
def clean(orders: list) -> list:
    return orders

@servo.asset_check(asset=clean, severity="warning")
def sound(clean: list) -> bool:
    raise KeyError("no such column")

@servo.asset(namespace="shop")
def total(clean: list) -> int:
    return len(clean)

@servo.asset(namespace="shop", retry=servo.Retry(max_attempts=1))
def broken() -> int:
    raise ValueError("it is broken")
"#;

#[test]
fn failed_checks_leave_a_mark_and_count_if_asked_to() {
    let project = Project::new(CODE);
    let told = project.good(&["materialize", "+shop.clean", "--partition", "2013-01-01"]);
    assert!(told.contains("SUCCEEDED, 2 checks failed"), "{told}");
    assert!(told.contains("shop.clean 2013-01-01: check sound could not run: KeyError"), "{told}");
    assert_eq!(project.newest_run()["checks_failed"], 2);
    assert!(project.good(&["run", "list"]).contains("SUCCEEDED, 2 checks failed"));
    assert!(project.good(&["run", "show", "latest"]).contains("2 of 2 checks failed"));
    let strict =
        project.servo(&["materialize", "shop.clean", "--partition", "2013-01-01", "--strict-checks"]);
    assert_eq!(strict.status.code(), Some(3), "{}", String::from_utf8_lossy(&strict.stdout));
    let well = project.servo(&["materialize", "raw.orders", "--partition", "2013-01-01", "--strict-checks"]);
    assert_eq!(well.status.code(), Some(0));
    assert!(project.good(&["--help"]).contains("--strict-checks"));
    let shown = project.json(&["asset", "show", "shop.clean", "--json"]);
    assert_eq!(
        (&shown["health"]["last_check_passed"], &shown["health"]["last_gating_decision"]),
        (&false.into(), &"WARN".into())
    );
}

#[test]
fn runs_are_known_by_what_was_asked() {
    let project = Project::new(CODE);
    project.good(&["materialize", "+shop.clean", "--partitions", "2013-01-01..2013-01-02"]);
    // In the sentence and twice in the traceback, and not as a line of progress too.
    assert_eq!(project.bad(&["materialize", "shop.broken"]).matches("ValueError").count(), 3);
    let list = project.good(&["run", "list"]);
    for expected in ["+shop.clean", "2013-01-01..2013-01-02", "manual by local", "4/4"] {
        assert!(list.contains(expected), "{expected:?} is not in\n{list}");
    }
    assert_eq!(project.newest_run()["source"]["type"], "manual");
    let runs = |arguments: &[&str]| {
        let found = project.json(&[&["run", "list", "--json"], arguments].concat());
        let items = found["items"].as_array().unwrap().clone();
        items.iter().map(|run| run["selection"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(runs(&["-a", "raw.orders", "-p", "2013-01-02"]), ["+shop.clean"]);
    assert_eq!(runs(&["--sort", "oldest"]), ["+shop.clean", "shop.broken"]);
    assert_eq!(runs(&["--source", "manual", "--state", "failed"]), ["shop.broken"]);
    assert!(runs(&["--source", "api"]).is_empty() && runs(&["--since", "2100-01-01T00:00:00Z"]).is_empty());
    let id = project.newest_run()["run_id"].as_str().unwrap().to_owned();
    for which in ["latest", &id[..12], &id[4..12]] {
        assert_eq!(project.json(&["run", "show", which, "--json"])["run"]["run_id"], id);
    }
    let tasks = project.json(&["run", "show", "latest", "--state", "failed", "--limit", "1", "--json"]);
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1);
    let log = project.good(&["run", "logs", "latest", "shop.broken"]);
    assert!(
        log.contains("USER_CODE_EXCEPTION ValueError: it is broken") && log.contains("Traceback"),
        "{log}"
    );
    let error = &project.json(&["run", "show", "latest", "--json"])["tasks"][0]["error"];
    assert_eq!((&error["category"], &error["retriable"]), (&"USER_CODE".into(), &false.into()));
    let health = project.json(&["asset", "show", "shop.broken", "--json"])["health"].clone();
    assert_eq!(health["consecutive_failures"], 1);
}

#[test]
fn partitions_are_found_as_people_type_them() {
    let code = r#"
hours = servo.HourlyPartitions(start="2013-01-01T00:00", end="2013-01-02T00:00", timezone="Europe/Amsterdam")

@servo.asset(namespace="raw", partitions=hours)
def events(ctx) -> int:
    print("made", ctx.partition)
    return 1
"#;
    let project = Project::new(code);
    project.good(&["materialize", "raw.events", "-p", "2013-01-01T07:00", "-p", "2013-01-01T08:00"]);
    let runs = |arguments: &[&str]| {
        let found = project.json(&[&["run", "list", "--json"], arguments].concat());
        found["items"].as_array().unwrap().len()
    };
    for typed in ["2013-01-01T07:00", "2013-01-01T06:00:00Z"] {
        assert_eq!(runs(&["-p", typed]), 1, "{typed}");
        assert_eq!(runs(&["-a", "raw.events", "-p", typed]), 1, "{typed}");
        let log = project.good(&["run", "logs", "latest", "raw.events", typed]);
        assert!(log.contains("made 2013-01-01T06:00:00Z") && !log.contains("T07:00:00Z"), "{log}");
    }
    assert_eq!(runs(&["-a", "raw.events", "-p", "2013-01-01T09:00"]), 0);
    let told = project.bad(&["run", "list", "-a", "raw.events", "-p", "yesterday"]);
    assert!(told.contains("yesterday"), "{told}");
    let told = project.bad(&["run", "logs", "latest", "raw.events", "2013-01-01T09:00"]);
    assert!(told.contains("has no task raw.events 2013-01-01T09:00"), "{told}");
}

#[test]
fn lineage_is_that_of_what_was_really_read() {
    let project = Project::new(CODE);
    project.good(&["materialize", "+shop.clean", "--partition", "2013-01-01"]);
    let lineage = |arguments: &[&str]| project.json(&[&["asset", "lineage", "--json"], arguments].concat());
    let edges = |found: &Value| {
        let edges = found["edges"].as_array().unwrap().clone();
        edges
            .iter()
            .map(|edge| (edge["asset_key"].clone(), edge["upstream_asset_key"].clone()))
            .collect::<Vec<_>>()
    };
    let up = lineage(&["shop.clean", "-p", "2013-01-01"]);
    assert_eq!(edges(&up), [("shop/clean".into(), "raw/orders".into())]);
    let read = up["edges"][0]["upstream_materialization_id"].clone();
    project.good(&["materialize", "raw.orders", "--partition", "2013-01-01"]);
    assert_eq!(lineage(&["shop.clean"])["edges"][0]["upstream_materialization_id"], read, "not the newest");
    assert!(edges(&lineage(&["raw.orders", "--down"])).is_empty(), "nobody has read the newest");
    let down = lineage(&["raw.orders", "--down", "--materialization", read.as_str().unwrap()]);
    assert_eq!(edges(&down), edges(&up));
    let beginning = &read.as_str().unwrap()[..24];
    assert_eq!(lineage(&["raw.orders", "--down", "--materialization", beginning]), down);
    assert_eq!(lineage(&["shop.clean", "--materialization", "latest"]), lineage(&["shop.clean"]));
    let unknown = project.bad(&["asset", "lineage", "raw.orders", "--materialization", "7zzz"]);
    assert!(unknown.contains("there is no materialization 7ZZZ… of raw.orders"), "{unknown}");
    let told = project.good(&["asset", "lineage", "shop.clean"]);
    assert!(told.contains("\n  raw.orders 2013-01-01  "), "{told}");
    let never = project.bad(&["asset", "lineage", "shop.total"]);
    assert!(never.contains("was never materialized"), "{never}");
}

#[test]
fn who_did_what_is_in_the_audit() {
    let project = Project::new(CODE);
    project.good(&["materialize", "raw.orders", "--partition", "2013-01-01"]);
    project.bad(&["run", "cancel", "latest"]);
    let found = project.json(&["audit", "--json"]);
    let acts: Vec<(&str, &str, &str)> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|act| {
            let text = |name: &str| act[name].as_str().unwrap_or_default();
            (text("principal"), text("action"), text("outcome"))
        })
        .collect();
    let expected = [("user:local", "run.cancel", "REFUSED"), ("user:local", "run.trigger", "ALLOWED")];
    assert_eq!(acts[..2], expected, "{acts:?}");
    assert!(acts.iter().any(|act| act.1 == "assets.deploy"), "{acts:?}");
    let refused = project.json(&["audit", "--refused", "--json"]);
    assert_eq!(refused["items"][0]["refusal"], "run_ended");
    let counted =
        project.good(&["sql", "select count(*) as n from audit where action = 'run.trigger'", "--csv"]);
    assert_eq!(counted.trim(), "n\n1");
}
