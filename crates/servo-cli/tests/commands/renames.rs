//! Renaming an asset from end to end: the real binary, real Python, real files.

use serde_json::Value;

use crate::support::{Dev, Project, until};

const CODE: &str = r#"
days_of = servo.DailyPartitions("2013-01-01", end="2013-01-02")

@servo.asset(namespace="raw", partitions=days_of OPTIONS)
def NAME(ctx: servo.Context) -> int:
    return 20

@servo.asset(namespace="shop", partitions=days_of, code_version="1", deps=[servo.dep("raw.NAME", parameter="made")])
def doubled(made: int) -> int:
    return 2 * made
"#;

fn code(name: &str, options: &str) -> String {
    CODE.replace("NAME", name).replace("OPTIONS", options)
}

fn statuses(project: &Project, asset: &str) -> Vec<String> {
    let page = project.json(&["partition", "list", asset, "--json"]);
    let status = |row: &Value| row["status"].as_str().unwrap_or_default().to_owned();
    page["items"].as_array().unwrap().iter().map(status).collect()
}

fn homes(project: &Project) -> Vec<String> {
    let entries = std::fs::read_dir(project.home().join("assets/raw")).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Everything that was made is there under a name, can be read, and makes nobody stale.
fn is_all_there(project: &Project, asset: &str) {
    assert_eq!(statuses(project, asset), ["MATERIALIZED", "MATERIALIZED"]);
    let shown = project.good(&["asset", "show", asset, "-p", "2013-01-02"]);
    assert!(shown.contains("20"), "{shown}");
    let planned = project.servo(&["plan", asset, "--missing", "--json"]);
    let planned: Value = serde_json::from_slice(&planned.stdout).unwrap_or_default();
    assert_eq!(planned["tasks"].as_array().map_or(0, Vec::len), 0, "{planned}");
    let lineage = project.json(&["asset", "lineage", "shop.doubled", "-p", "2013-01-02", "--json"]);
    let slashed = asset.replace('.', "/");
    assert!(lineage.to_string().contains(&slashed), "{lineage}");
}

#[test]
fn a_deployment_with_renamed_from_takes_along_history_and_data() {
    let project = Project::new(&code("flights", ""));
    project.good(&["materialize", "*", "--partitions", "2013-01-01..2013-01-02"]);
    assert_eq!(homes(&project), ["flights"]);
    project.save(&code("arrivals", ", renamed_from=\"raw.flights\""));
    project.good(&["deploy"]);
    is_all_there(&project, "raw.arrivals");
    assert_eq!(homes(&project), ["arrivals"]);
    let made = project.json(&["materialize", "shop.doubled", "--partition", "2013-01-01", "--json"]);
    assert_eq!(made["run"]["tasks_succeeded"], 1, "it reads what was made under the old name: {made}");
    let audit = project.good(&["audit", "--action", "asset.rename"]);
    assert!(audit.contains("raw.flights") && audit.contains("to raw.arrivals"), "{audit}");
    let names = project.json(&["sql", "select asset_key, renamed_to from asset_renames", "--json"]);
    assert!(names.to_string().contains("raw/arrivals"), "{names}");
    let old = project.bad(&["asset", "show", "raw.flights"]);
    assert!(old.contains("there is no asset raw.flights"), "{old}");
}

#[test]
fn a_server_renames_what_its_code_has_renamed_and_back() {
    let project = Project::new(&code("flights", ""));
    let dev = Dev::start(&project);
    project.good(&["materialize", "*", "--partitions", "2013-01-01..2013-01-02"]);
    let refused = project.bad(&["asset", "rename", "raw.flights", "raw.arrivals"]);
    assert!(refused.contains("renamed_from=\"raw.flights\""), "{refused}");

    project.save(&code("arrivals", ""));
    until("the new name is deployed", || {
        project.servo(&["asset", "show", "raw.arrivals"]).status.success().then_some(())
    });
    let said = project.good(&["asset", "rename", "raw.flights", "raw.arrivals"]);
    assert!(said.contains("raw.flights is raw.arrivals now"), "{said}");
    until("its data is moved", || (homes(&project) == ["arrivals"]).then_some(()));
    is_all_there(&project, "raw.arrivals");
    let again = project.bad(&["asset", "rename", "raw.flights", "raw.arrivals"]);
    assert!(again.contains("there is no asset raw.flights"), "{again}");
    let taken = project.bad(&["asset", "rename", "shop.doubled", "raw.arrivals"]);
    assert!(taken.contains("declared by the code that is deployed"), "{taken}");

    project.save(&code("flights", ", renamed_from=\"raw.arrivals\""));
    until("the old name is back", || (homes(&project) == ["flights"]).then_some(()));
    is_all_there(&project, "raw.flights");
    drop(dev);
    is_all_there(&project, "raw.flights");
}
