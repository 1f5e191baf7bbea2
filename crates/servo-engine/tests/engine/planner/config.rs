//! Values of configuration: which tasks they reach, and which are refused.

use super::*;

/// Two assets with a field each and one in common, one function with two outputs, and one without configuration.
fn configurable() -> Definitions {
    let fields = |names: &[&str]| {
        let fields: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "config": { "fields": fields } })
    };
    let output = |key: &str| {
        let mut output = asset(key, fields(&["limit"]));
        output["function"] = "assets:both".into();
        output["multi"] = json!({ "can_subset": true });
        output
    };
    definitions(json!([
        asset("raw/a", fields(&["limit", "region"])),
        asset("raw/b", fields(&["limit", "depth"])),
        asset("raw/plain", json!({})),
        output("many/x"),
        output("many/y"),
    ]))
}

/// The configuration of each task, by the name of its asset.
fn configs(selection: &str, config: &[(&str, &str)]) -> Result<BTreeMap<String, String>, PlanningError> {
    let planned =
        configured(&configurable(), selection, keys(&[]), &FixedMaterializations::default(), config)?;
    let text = |config: &BTreeMap<String, String>| {
        config.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    let tasks = planned.plan.tasks().iter();
    Ok(tasks.map(|task| (task.task_key.asset().name().to_owned(), text(&task.options.config))).collect())
}

#[test]
fn values_of_configuration_reach_the_assets_that_take_them() {
    let found = configs("raw.*", &[("limit", "5"), ("region", "\"eu\""), ("raw.b:limit", "9")]).unwrap();
    let expected = [("a", "limit=5 region=\"eu\""), ("b", "limit=9"), ("plain", "")];
    assert_eq!(found, expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    assert!(
        configs("raw.*", &[]).unwrap().values().all(String::is_empty),
        "declared defaults are not repeated"
    );
}

#[test]
fn a_function_takes_what_is_meant_for_any_of_its_outputs() {
    let found = |config: &[(&str, &str)]| configs("many.*", config).unwrap()["x"].clone();
    assert_eq!(found(&[("limit", "1"), ("many.x:limit", "2")]), "limit=2");
    assert_eq!(found(&[("limit", "1"), ("many.y:limit", "3")]), "limit=3");
    assert_eq!(configs("many.y", &[("many.y:limit", "3")]).unwrap()["y"], "limit=3");
}

#[test]
fn values_are_held_to_the_types_of_fields_before_anything_runs() {
    let fields = json!([
        { "name": "day", "type": "str", "required": true },
        { "name": "limit", "type": "int", "required": false, "default": "5" },
    ]);
    let definitions = definitions(json!([asset("raw/a", json!({ "config": { "fields": fields } }))]));
    let planned = |config: &[(&str, &str)]| {
        let known = FixedMaterializations::default();
        configured(&definitions, "raw.a", keys(&[]), &known, config)
    };
    let given = planned(&[("day", "20180201"), ("limit", "\"7\"")]).unwrap();
    let config = &given.plan.tasks()[0].options.config;
    assert_eq!((config["day"].as_str(), config["limit"].as_str()), ("\"20180201\"", "7"));
    assert_eq!(
        planned(&[("limit", "\"many\"")]).unwrap_err().to_string(),
        "the configuration is wrong:\n  raw.a: day is missing; give it with --config day=…\n  \
         raw.a: limit takes an integer, not \"many\""
    );
}

#[test]
fn a_value_that_nothing_planned_takes_is_refused() {
    let error = |selection: &str, name: &str| configs(selection, &[(name, "1")]).unwrap_err().to_string();
    assert_eq!(
        error("raw.a", "depth"),
        "config depth: nothing that is selected takes it; there is limit, region"
    );
    assert_eq!(
        error("raw.a", "raw.b:limit"),
        "config raw.b:limit: nothing that is selected takes it; there is limit, region"
    );
    assert_eq!(
        error("raw.a", "raw.a:depth"),
        "config raw.a:depth: nothing that is selected takes it; there is limit, region"
    );
    assert_eq!(error("raw.plain", "limit"), "config limit: nothing that is selected takes any configuration");
    assert_eq!(configs("raw.*", &[("depth", "1")]).unwrap()["b"], "depth=1");
}

#[test]
fn another_configuration_is_another_plan() {
    let fingerprint = |config: &[(&str, &str)]| {
        let planned =
            configured(&configurable(), "raw.a", keys(&[]), &FixedMaterializations::default(), config)
                .unwrap();
        planned.plan.fingerprint().clone()
    };
    assert_eq!(fingerprint(&[("limit", "1")]), fingerprint(&[("raw.a:limit", "1")]), "said another way");
    assert_ne!(fingerprint(&[("limit", "1")]), fingerprint(&[("limit", "2")]));
    assert_ne!(fingerprint(&[("limit", "1")]), fingerprint(&[]));
}
