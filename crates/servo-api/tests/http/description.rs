//! The description of the interface is whole, and changes only on purpose.

use std::collections::BTreeSet;

use crate::support::Harness;
use serde_json::Value;
use servo_api::{Code, openapi};

fn description() -> Value {
    openapi()
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

/// The description as it is committed, for whoever generates code or pages from it.
const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

#[test]
fn the_committed_description_is_current() {
    let text = serde_json::to_string_pretty(&description()).unwrap() + "\n";
    if std::env::var_os("SERVO_UPDATE").is_some() {
        std::fs::write(COMMITTED, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(COMMITTED).unwrap_or_default() == text,
        "openapi.json is not what the routes say; write it anew, and look at the difference: \
         SERVO_UPDATE=1 cargo nextest run --workspace --test http description"
    );
}

#[test]
fn every_operation_says_what_it_does_what_it_asks_for_and_what_can_go_wrong() {
    let description = description();
    let codes = &description["components"]["schemas"]["Code"]["enum"];
    let names: Value = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(*codes, names, "as they are sent");
    let mut used = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is = format!("{method} {path}");
            let text = |field: &str| operation[field].as_str().unwrap_or_default();
            assert!(!text("summary").is_empty(), "{is} has no summary");
            assert!(!text("x-permission").is_empty(), "{is} has no permission");
            let responses = operation["responses"].as_object().unwrap();
            assert!(!responses.contains_key("default"), "{is} hides its errors");
            let statuses: Vec<&str> = responses.keys().map(String::as_str).collect();
            let mut expected = vec!["400", "403", "503"];
            if text("x-permission") != "public" {
                expected.extend(["401", "404"]);
            }
            if operation.get("requestBody").is_some() {
                expected.extend(["408", "413", "415"]);
            }
            for status in expected {
                assert!(statuses.contains(&status), "{is} does not say {status}");
            }
            for (status, response) in responses {
                assert!(!status.starts_with("50") || status == "503", "{is} promises {status}");
                for code in response["x-codes"].as_array().into_iter().flatten() {
                    let code: Code = serde_json::from_value(code.clone()).unwrap();
                    assert_eq!(code.status().as_str(), status, "{is} {code:?}");
                    used.insert(code);
                }
            }
        }
    }
    // What no operation answers with: another address, another method, and a defect.
    let never = [Code::MethodNotAllowed, Code::Internal];
    let all: BTreeSet<Code> = Code::ALL.iter().copied().filter(|code| !never.contains(code)).collect();
    assert_eq!(used, all, "every code is said somewhere");
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
