//! Signing keys are made, listed and rotated; the secret of run ids is apart from them.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::Project;

const ONE: &str = r#"
import servo

@servo.asset(namespace="raw")
def orders() -> list:
    return [1]
"#;

fn keys(listed: &Value) -> Vec<(String, String, bool)> {
    let text = |key: &Value, name: &str| key[name].as_str().unwrap().to_owned();
    let key = |key: &Value| (text(key, "purpose"), text(key, "key_id"), key["signs"].as_bool().unwrap());
    listed["items"].as_array().unwrap().iter().map(key).collect()
}

#[test]
fn keys_are_listed_and_rotated_one_purpose_or_all() {
    let project = Project::new(ONE);
    project.bad(&["admin", "keys", "list"]);
    project.good(&["materialize", "raw.orders"]);
    let file = project.path(".servo/tenant=default/keys.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = keys(&project.json(&["admin", "keys", "list", "--json"]));
    let purposes: Vec<&str> = first.iter().map(|(purpose, ..)| purpose.as_str()).collect();
    assert_eq!(purposes, ["envelopes", "task_tokens", "cursors", "sessions", "callback_urls"]);
    assert!(first.iter().all(|(.., signs)| *signs));
    let rotated = keys(&project.json(&["admin", "keys", "rotate", "--purpose", "cursors", "--json"]));
    assert_eq!(rotated.len(), 6);
    assert_eq!(rotated[..2], first[..2]);
    assert_eq!(rotated[2].1, first[2].1, "the one before verifies");
    assert_eq!((rotated[2].2, rotated[3].2), (false, true), "the new one signs");
    assert_eq!(keys(&project.json(&["admin", "keys", "rotate", "--json"])).len(), 11);
    let refused = project.servo(&["admin", "keys", "rotate", "--purpose", "run_ids"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2)
            && told.contains("envelopes, task_tokens, cursors, sessions, callback_urls"),
        "{told}"
    );
    let shown = project.good(&["admin", "keys", "list"]);
    let secrets = std::fs::read_to_string(&file).unwrap();
    let secret = secrets.split("\"secret\": \"").nth(1).unwrap().split('"').next().unwrap();
    assert!(secret.len() == 64 && !shown.contains(secret));
    project.good(&["materialize", "raw.orders"]);
}

#[test]
fn a_workspace_is_not_opened_with_another_secret_for_run_ids() {
    let project = Project::new(ONE);
    project.good(&["materialize", "raw.orders", "--run-key", "daily"]);
    let path = project.path(".servo/tenant=default/secret.key");
    let secret = std::fs::read(&path).unwrap();
    let keys = std::fs::read(project.path(".servo/tenant=default/keys.json")).unwrap();
    std::fs::remove_file(&path).unwrap();
    let refused = project.bad(&["materialize", "raw.orders", "--run-key", "daily"]);
    assert!(refused.contains("secret.key is missing") && refused.contains("backup"), "{refused}");
    std::fs::write(&path, &secret).unwrap();
    std::fs::remove_file(project.path(".servo/tenant=default/keys.json")).unwrap();
    project.good(&["materialize", "raw.orders", "--run-key", "daily"]);
    assert_eq!(
        project.json(&["run", "list", "--json"])["items"].as_array().unwrap().len(),
        1,
        "the same run"
    );
    let made = std::fs::read(project.path(".servo/tenant=default/keys.json")).unwrap();
    assert_ne!(made, keys, "signing keys are made anew");
}
