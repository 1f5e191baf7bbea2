//! Every operation of the description, asked by everybody: what each may do is held to a golden table.

use reqwest::Method;
use serde_json::{Value, json};
use servo_access::{ControlCommand, Grant, Role};
use servo_api::{Access, ROUTES, openapi};
use servo_core::Timestamp;
use servo_engine::Principal;

use crate::roles::{api_keys, key, made};
use crate::support::{Harness, Setting};

/// An address with something in the place of its parameters that is well formed and names nothing.
fn filled(path: &str) -> String {
    let mut filled = String::new();
    for part in path.split('/').skip(1) {
        let value = match part {
            "{run_id}" => "run_aaaaaaaaaaaaaaaaaaaaaaaaaa",
            "{attempt}" => "1",
            "{materialization_id}" | "{backfill_id}" => "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "{key_id}" => "0f0f0f0f0f0f",
            _ if part.starts_with('{') => "nothing",
            _ => part,
        };
        filled.push('/');
        filled.push_str(value);
    }
    filled
}

/// How a request was judged: by its credential, by its permission, by its workspace, or not at all.
async fn judged(harness: &Harness, method: &Method, path: &str, bearer: Option<&str>) -> &'static str {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let url = format!("http://{}{}", harness.address, filled(path));
    let mut request = client.build().unwrap().request(method.clone(), url);
    if *method != Method::GET {
        request = request.header("content-type", "application/json").body("{}");
    }
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    let response = request.send().await.unwrap();
    match response.status().as_u16() {
        401 => "401",
        403 => "403",
        404 => {
            let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            if body["code"] == "unknown_workspace" { "404" } else { "yes" }
        }
        status if status >= 500 && status != 503 => panic!("{method} {path}: {status}"),
        // Streams are not read to their end.
        _ => "yes",
    }
}

#[tokio::test]
async fn every_operation_is_for_those_whom_the_golden_table_says_and_nobody_else() {
    let root = tempfile::tempdir().unwrap();
    let keys = api_keys(root.path()).await;
    let harness =
        Harness::with(root.path(), Setting { api_keys: Some(keys.clone()), ..Setting::default() }).await;
    let own = |byte, role| key(&keys, byte, role, "acme/main", None);
    let soon = Timestamp::from_millis(keys.control().now().as_millis() + 500);
    let everything = Grant { role: Role::Admin, scope: "*".parse().unwrap(), assets: None };
    let expired = made(&keys, 1, everything.clone(), Some(soon)).await;
    let revoked = made(&keys, 2, everything, None).await;
    let id = "020202020202".parse().unwrap();
    keys.control().ask(&Principal::system(), &ControlCommand::RevokeKey(id)).await.unwrap();
    while keys.control().now() <= soon {
        tokio::task::yield_now().await;
    }
    let admin = own(7, Role::Admin).await;
    let callers: Vec<(&str, Option<String>)> = vec![
        ("none", None),
        ("wrong", Some(format!("{}0", &admin[..admin.len() - 1]))),
        ("expired", Some(expired)),
        ("revoked", Some(revoked)),
        ("worker", Some(own(3, Role::Worker).await)),
        ("viewer", Some(own(4, Role::Viewer).await)),
        ("operator", Some(own(5, Role::Operator).await)),
        ("developer", Some(own(6, Role::Developer).await)),
        ("admin", Some(admin)),
        ("other workspace", Some(key(&keys, 8, Role::Admin, "acme/other", None).await)),
        ("other tenant", Some(key(&keys, 9, Role::Admin, "zeta/*", None).await)),
        ("server admin", Some(key(&keys, 10, Role::Admin, "*", None).await)),
    ];
    let description = openapi();
    let head: Vec<&str> = callers.iter().map(|(name, _)| *name).collect();
    let mut table = vec![format!("{} | operation", head.join(" | "))];
    let mut operations = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let access = ROUTES.iter().find(|(of, at, _)| *of == method && at == path);
            let (_, _, access) = access.unwrap_or_else(|| panic!("{method} {path} has no permission"));
            let mut cells = Vec::new();
            for (name, bearer) in &callers {
                let cell = judged(&harness, &method, path, bearer.as_deref()).await;
                cells.push(format!("{cell:<width$}", width = name.len()));
            }
            let needs = match access {
                Access::Public => "public".to_owned(),
                Access::Needs(permission) => permission.name().to_owned(),
                Access::Administers(permission) => format!("{} somewhere", permission.name()),
                Access::SensorSecret => "the secret of the sensor, or automation.operate".to_owned(),
                Access::WorkerKey => "the worker key, or workers.serve".to_owned(),
                Access::TaskToken => "the task token".to_owned(),
                Access::CallbackUrl(_) => "the callback URL".to_owned(),
            };
            table.push(format!("{} | {method} {path}: {needs}", cells.join(" | ")));
            operations += 1;
        }
    }
    // The description itself is the one route that does not describe itself.
    assert_eq!(operations + 1, ROUTES.len(), "every route is described, and every operation is in the table");
    insta::assert_snapshot!(table.join("\n"));
    let after = harness.get("runs").await.ok();
    assert_eq!(after["items"], json!([]), "nobody was let do anything by it");
    harness.close().await;
}
