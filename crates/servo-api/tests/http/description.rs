//! The description of the interface is whole, and changes only on purpose.

use std::collections::BTreeSet;

use crate::support::Harness;
use serde_json::Value;
use servo_api::{Code, openapi};

fn description() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

/// Every `$ref` in a value.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_description_is_the_one_that_was_agreed_on() {
    let text = serde_json::to_string_pretty(&description()).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn codes_of_problems_are_described_as_they_are_sent() {
    let described = &description()["components"]["schemas"]["Code"]["enum"];
    let sent = Code::ALL.iter().map(|code| code.name()).chain(["other"]);
    assert_eq!(*described, serde_json::json!(sent.collect::<Vec<_>>()));
}

#[test]
fn the_description_is_whole() {
    let description = description();
    assert_eq!(description["openapi"], "3.1.0");
    let mut referred = BTreeSet::new();
    references(&description, &mut referred);
    assert!(!referred.is_empty());
    for reference in &referred {
        let place = reference.strip_prefix('#').unwrap();
        assert!(description.pointer(place).is_some(), "{reference} leads nowhere");
    }
    let schemas = description["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        assert!(referred.contains(&format!("#/components/schemas/{name}")), "{name} is not used");
    }
    let mut ids = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let in_path: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let described: BTreeSet<&str> = parameters
                .iter()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            assert_eq!(described, in_path, "{method} {path}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{method} {path}");
            let is_public = ["healthz", "version"].contains(&id);
            assert!(
                responses.contains_key("default") || is_public,
                "{method} {path} says nothing of problems"
            );
            assert!(operation["summary"].is_string(), "{method} {path} says what it does");
        }
    }
}

#[tokio::test]
async fn the_server_serves_it() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    assert_eq!(harness.get("openapi.json").await.ok(), description());
    assert_eq!(harness.client.version().await.unwrap().version, env!("CARGO_PKG_VERSION"));
    assert_eq!(harness.client.ready().await.unwrap().status, "ok");
    harness.close().await;
}
