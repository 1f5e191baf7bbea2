//! Roles, API keys and grants for some assets, as callers meet them.

use std::path::Path;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use servo_access::{ControlCommand, ControlLedger, Grant, KeyText, NewKey, Role};
use servo_api::{ApiKeys, Code};
use servo_core::Timestamp;
use servo_engine::Principal;
use servo_runtime::SystemClock;
use servo_store::{FileLog, Layout, SystemPutIds};

use crate::support::{Answer, Harness, Setting};

/// The keys of a server in a directory, which has the workspace of the harness.
pub(crate) async fn api_keys(root: &Path) -> ApiKeys {
    let layout = Layout::new("server".parse().unwrap(), "control".parse().unwrap());
    let log = Arc::new(FileLog::open(root.join("control"), &layout).unwrap());
    let put_ids = Arc::new(SystemPutIds::default());
    let control = ControlLedger::open(log, put_ids, Arc::new(SystemClock)).await.unwrap();
    let system = Principal::system();
    for command in [
        ControlCommand::CreateTenant("acme".parse().unwrap()),
        ControlCommand::CreateWorkspace("acme".parse().unwrap(), "main".parse().unwrap()),
        ControlCommand::CreateWorkspace("acme".parse().unwrap(), "other".parse().unwrap()),
        ControlCommand::CreateTenant("zeta".parse().unwrap()),
        ControlCommand::CreateWorkspace("zeta".parse().unwrap(), "main".parse().unwrap()),
    ] {
        // A ledger that is opened again has them.
        let _exists = control.ask(&system, &command).await;
    }
    ApiKeys::new(control)
}

/// A new key.
pub(crate) async fn key(keys: &ApiKeys, byte: u8, role: Role, scope: &str, assets: Option<&str>) -> String {
    made(keys, byte, Grant { role, scope: scope.parse().unwrap(), assets: assets.map(Into::into) }, None)
        .await
}

pub(crate) async fn made(keys: &ApiKeys, byte: u8, grant: Grant, expires_at: Option<Timestamp>) -> String {
    let text = KeyText::of([byte; 38]);
    let name = format!("{} of {}", grant.role, grant.scope);
    let (id, hash) = (text.id.clone(), text.hash());
    let new = NewKey { id, hash, name, grant, service: false, expires_at };
    keys.control().ask(&Principal::system(), &ControlCommand::CreateKey(new)).await.unwrap();
    text.reveal()
}

async fn ask(harness: &Harness, key: &str, method: Method, path: &str, body: Option<Value>) -> Answer {
    let mut request = harness.http.request(method, harness.url(path)).bearer_auth(key);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_role_may_do_what_it_is_for_and_the_refusal_says_what_is_missing_and_is_recorded() {
    let root = tempfile::tempdir().unwrap();
    let keys = api_keys(root.path()).await;
    let harness =
        Harness::with(root.path(), Setting { api_keys: Some(keys.clone()), ..Setting::default() }).await;
    let viewer = key(&keys, 1, Role::Viewer, "acme/main", None).await;
    let operator = key(&keys, 2, Role::Operator, "acme/*", None).await;
    let admin = key(&keys, 3, Role::Admin, "*", None).await;
    let orders = json!({ "selection": "raw.orders" });
    ask(&harness, &viewer, Method::GET, "runs", None).await.ok();
    let refused = ask(&harness, &viewer, Method::POST, "runs", Some(orders.clone())).await;
    assert_eq!(refused.status, 403);
    let problem = refused.problem();
    assert_eq!(problem.code, Code::Forbidden);
    for part in ["runs.trigger", "the role operator has", "has the role viewer in acme/main"] {
        assert!(problem.detail.contains(part), "{}", problem.detail);
    }
    assert!(!problem.detail.contains(&viewer), "{}", problem.detail);
    ask(&harness, &operator, Method::POST, "runs", Some(orders)).await.accepted();
    assert_eq!(ask(&harness, &operator, Method::POST, "deployments", Some(json!({}))).await.status, 403);
    assert_eq!(ask(&harness, &operator, Method::GET, "audit", None).await.status, 403);
    let audit = ask(&harness, &admin, Method::GET, "audit?outcome=refused", None).await.ok();
    let found: Vec<(&str, &str, &str)> = audit["items"].as_array().unwrap().iter().map(told).collect();
    let of_operator = "user:operator of acme/*#020202020202";
    assert_eq!(
        found,
        [
            (of_operator, "audit.read", "GET /api/v1/audit"),
            (of_operator, "assets.deploy", "POST /api/v1/deployments"),
            ("user:viewer of acme/main#010101010101", "runs.trigger", "POST /api/v1/runs"),
        ]
    );
    // The link that a viewer asks for lets a viewer in.
    let link = ask(&harness, &viewer, Method::POST, "logins", None).await.ok();
    let browser =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let at = format!("http://{}{}", harness.address, link["path"].as_str().unwrap());
    let entered = browser.get(at).send().await.unwrap();
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let own = format!("http://{}", harness.address);
    let by_cookie = async |method: Method, path: &str| {
        let request = browser.request(method, harness.url(path)).header("cookie", &cookie);
        let request = request.header("origin", &own).header("content-type", "application/json");
        request.body(r#"{"selection":"raw.orders"}"#).send().await.unwrap().status().as_u16()
    };
    assert_eq!(by_cookie(Method::GET, "assets").await, 200);
    assert_eq!(by_cookie(Method::POST, "runs").await, 403);
    // And it ends with the key.
    let id = "010101010101".parse().unwrap();
    keys.control().ask(&Principal::system(), &ControlCommand::RevokeKey(id)).await.unwrap();
    assert_eq!(by_cookie(Method::GET, "assets").await, 401);
    assert_eq!(ask(&harness, &viewer, Method::GET, "runs", None).await.status, 401);
    harness.close().await;
}

#[tokio::test]
async fn callers_can_ask_who_they_are_and_what_they_may_do() {
    let root = tempfile::tempdir().unwrap();
    let keys = api_keys(root.path()).await;
    let harness =
        Harness::with(root.path(), Setting { api_keys: Some(keys.clone()), ..Setting::default() }).await;
    let viewer = key(&keys, 1, Role::Viewer, "acme/main", None).await;
    let some = key(&keys, 2, Role::Operator, "acme/main", Some("raw.*")).await;
    let owner = harness.get("me").await.ok();
    assert_eq!((&owner["principal"], &owner["roles"]), (&json!("user:local"), &json!(["admin"])));
    let may = |me: &Value, what: &str| me["permissions"].as_array().unwrap().contains(&json!(what));
    assert!(may(&owner, "sql.run") && may(&owner, "assets.deploy"));
    assert_eq!((&owner["tenant"], &owner["workspace"]), (&json!("acme"), &json!("main")));
    let me = ask(&harness, &viewer, Method::GET, "me", None).await.ok();
    assert_eq!(
        (&me["principal"], &me["roles"]),
        (&json!("user:viewer of acme/main#010101010101"), &json!(["viewer"]))
    );
    assert_eq!((&owner["scopes"], &me["scopes"]), (&json!(["*"]), &json!(["acme/main"])));
    assert!(may(&me, "runs.read") && !may(&me, "runs.trigger") && !may(&me, "sql.run"));
    let me = ask(&harness, &some, Method::GET, "me", None).await.ok();
    assert!(may(&me, "runs.trigger"), "for some assets it may");
    assert_eq!(
        ask(&harness, &viewer, Method::POST, "sql", Some(json!({ "query": "select 1" }))).await.status,
        403
    );
    harness.close().await;
}

fn told(act: &Value) -> (&str, &str, &str) {
    let text = |name: &str| act[name].as_str().unwrap();
    (text("principal"), text("action"), text("subject"))
}

#[tokio::test]
async fn keys_that_are_altered_expired_or_of_another_workspace_are_refused_without_saying_what_there_is() {
    let root = tempfile::tempdir().unwrap();
    let keys = api_keys(root.path()).await;
    let harness =
        Harness::with(root.path(), Setting { api_keys: Some(keys.clone()), ..Setting::default() }).await;
    let good = key(&keys, 1, Role::Admin, "acme/main", None).await;
    let soon = Timestamp::from_millis(keys.control().now().as_millis() + 500);
    let grant = Grant { role: Role::Admin, scope: "*".parse().unwrap(), assets: None };
    let expired = made(&keys, 2, grant, Some(soon)).await;
    while keys.control().now() <= soon {
        tokio::task::yield_now().await;
    }
    ask(&harness, &good, Method::GET, "runs", None).await.ok();
    let first = ask(&harness, &format!("{}0", &good[..good.len() - 1]), Method::GET, "runs", None).await;
    assert_eq!(first.status, 401);
    // Whatever is altered, the id included, the answer is the same.
    let unknown = good.replace("010101010101", "0f0f0f0f0f0f");
    assert_eq!(ask(&harness, &unknown, Method::GET, "runs", None).await.body, first.body);
    for place in (0..good.len()).step_by(5) {
        let mut altered = good.clone().into_bytes();
        altered[place] = if altered[place] == b'2' { b'3' } else { b'2' };
        let altered = String::from_utf8(altered).unwrap();
        let refused = ask(&harness, &altered, Method::GET, "runs", None).await;
        assert_eq!(refused.status, 401, "{place}");
        assert!(!refused.body.to_string().contains(&good[20..]), "{place}");
    }
    for bad in ["", "servo_", &good[..30], &format!("{good}00"), &good.to_uppercase()] {
        assert_eq!(ask(&harness, bad, Method::GET, "runs", None).await.status, 401, "{bad:?}");
    }
    let refused = ask(&harness, &expired, Method::GET, "runs", None).await.problem();
    assert!(refused.detail.contains("has expired"), "{}", refused.detail);
    // A key of another tenant or workspace finds nothing here.
    for (byte, scope) in [(4, "acme/other"), (5, "zeta/*")] {
        let other = key(&keys, byte, Role::Admin, scope, None).await;
        for path in ["runs", "assets", "settings", "audit"] {
            let refused = ask(&harness, &other, Method::GET, path, None).await;
            assert_eq!(
                (refused.status, refused.problem().code),
                (404, Code::UnknownWorkspace),
                "{scope} {path}"
            );
        }
    }
    assert!(keys.last_used(&"010101010101".parse().unwrap()).is_some());
    keys.record_uses(false).await.unwrap();
    let used = keys.control().state().key(&"010101010101".parse().unwrap()).unwrap().last_used_at;
    assert!(used.is_some());
    harness.close().await;
}

#[tokio::test]
async fn a_key_for_some_assets_triggers_and_sees_those_alone() {
    let root = tempfile::tempdir().unwrap();
    let keys = api_keys(root.path()).await;
    let harness =
        Harness::with(root.path(), Setting { api_keys: Some(keys.clone()), ..Setting::default() }).await;
    let raw = key(&keys, 1, Role::Operator, "acme/main", Some("raw.*")).await;
    let all = harness.get("assets").await.ok();
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|asset| asset["asset_key"].as_str().unwrap().to_owned()).collect()
    };
    let (mine, others): (Vec<_>, Vec<_>) = names(&all).into_iter().partition(|name| name.starts_with("raw/"));
    assert!(!mine.is_empty() && !others.is_empty());
    assert_eq!(names(&ask(&harness, &raw, Method::GET, "assets", None).await.ok()), mine);
    ask(&harness, &raw, Method::GET, &format!("assets/{}", mine[0]), None).await.ok();
    let hidden = ask(&harness, &raw, Method::GET, &format!("assets/{}", others[0]), None).await;
    let missing = ask(&harness, &raw, Method::GET, "assets/raw/nothing", None).await;
    assert_eq!((hidden.status, missing.status), (404, 404));
    let text = |answer: &Answer, name: &str| answer.body.to_string().replace(&name.replace('/', "."), "X");
    assert_eq!(
        text(&hidden, &others[0]),
        text(&missing, "raw/nothing"),
        "the same as one that does not exist"
    );
    let own = ask(&harness, &raw, Method::POST, "runs", Some(json!({ "selection": "raw.orders" })))
        .await
        .accepted();
    let run = own["run_id"].as_str().unwrap();
    ask(&harness, &raw, Method::GET, &format!("runs/{run}"), None).await.ok();
    ask(&harness, &raw, Method::GET, &format!("runs/{run}/tasks"), None).await.ok();
    for selection in ["*", "raw.orders+", "raw.orders or shop.dayly", &others[0].replace('/', ".")] {
        let refused =
            ask(&harness, &raw, Method::POST, "runs", Some(json!({ "selection": selection }))).await;
        assert_eq!(refused.status, 403, "{selection}: {:#}", refused.body);
        let refused =
            ask(&harness, &raw, Method::POST, "plan", Some(json!({ "selection": selection }))).await;
        assert_eq!(refused.status, 403, "{selection}");
    }
    let foreign = harness.trigger(&others[0].replace('/', ".")).await.run_id;
    let hidden = ask(&harness, &raw, Method::GET, &format!("runs/{foreign}"), None).await;
    assert_eq!((hidden.status, hidden.problem().code), (404, Code::UnknownRun));
    let cancel = format!("runs/{foreign}/cancel");
    assert_eq!(ask(&harness, &raw, Method::POST, &cancel, Some(json!({}))).await.status, 404);
    for path in ["runs", "graph", "settings", "orchestration/schedules"] {
        let refused = ask(&harness, &raw, Method::GET, path, None).await;
        assert_eq!((refused.status, refused.problem().code), (403, Code::Forbidden), "{path}");
    }
    harness.close().await;
}
