//! People of an identity provider at `servo serve`: the real binary, and a real provider in a process of its own.

#[path = "../../../servo-oidc/tests/support.rs"]
mod provider;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use provider::{Browser, TestProvider, http};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::serve::{ORDERS, Serve};
use crate::support::Project;

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A project whose server has a provider, and that provider; none where it cannot be started.
fn project_with_provider() -> Option<(Project, TestProvider, String)> {
    let project = Project::new(ORDERS);
    let address = format!("127.0.0.1:{}", free_port());
    let provider = TestProvider::start(&[&format!("http://{address}/login/callback")])?;
    let issuer = &provider.issuer;
    let text = format!(
        "idle_after = 3600\n\n[oidc]\nissuer = \"{issuer}\"\nclient_id = \"servo\"\n\
         scopes = [\"openid\", \"profile\", \"email\", \"offline_access\"]\n\n\
         [[oidc.roles]]\ngroup = \"admins\"\nrole = \"admin\"\nscope = \"*\"\n\n\
         [[oidc.roles]]\ngroup = \"operators\"\nrole = \"operator\"\nscope = \"default/main\"\n"
    );
    fs::write(project.path("serve.toml"), text).unwrap();
    Some((project, provider, address))
}

async fn status(request: reqwest::RequestBuilder) -> StatusCode {
    request.send().await.unwrap().status()
}

fn same_origin(browser_request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    browser_request.header("sec-fetch-site", "same-origin")
}

/// Reads a stream until the server ends it.
async fn read_to_its_end(mut stream: reqwest::Response) {
    while stream.chunk().await.unwrap().is_some() {}
}

#[tokio::test]
async fn tokens_browsers_and_terminals_are_let_in_until_an_admin_ends_their_sessions() {
    let Some((project, provider, address)) = project_with_provider() else { return };
    let serve = Serve::start_at(&project, &address, &[]);
    let admin = serve.first_key.clone().unwrap();
    let api = |path: &str| format!("http://{address}/api/v1/{path}");
    let administer = |arguments: &[&str]| -> Value {
        let text = serve.good(&project, &admin, &[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap()
    };

    // Tokens are good for what the groups may do.
    let token = provider.mint(&json!({})).await;
    assert_eq!(status(http().get(api("audit")).bearer_auth(&token)).await, StatusCode::OK);
    let operator = provider.mint(&json!({"claims": {"sub": "bob", "groups": ["operators"]}})).await;
    assert_eq!(status(http().get(api("runs")).bearer_auth(&operator)).await, StatusCode::OK);
    assert_eq!(status(http().get(api("audit")).bearer_auth(&operator)).await, StatusCode::FORBIDDEN);
    let nobody = provider.mint(&json!({"claims": {"groups": []}})).await;
    assert_eq!(status(http().get(api("runs")).bearer_auth(&nobody)).await, StatusCode::NOT_FOUND);
    let expired = provider.mint(&json!({"claims": {"exp": 1}})).await;
    assert_eq!(status(http().get(api("runs")).bearer_auth(&expired)).await, StatusCode::UNAUTHORIZED);
    assert!(serve.good(&project, &token, &["admin", "tenants", "list"]).contains("default"));

    // A browser has a session that the ledger knows, and a stream that ends with it.
    let mut browser = Browser::default();
    let login = format!("http://{address}/login?next=/runs");
    let page = browser.go(&login, &format!("http://{address}/runs")).await;
    assert!(page.is_err(), "the browser is back");
    let me = browser.send(same_origin(http().get(api("me")))).await.text().await.unwrap();
    assert!(me.contains("user:alice@example.org"), "{me}");
    let sessions = administer(&["admin", "sessions", "list"]);
    let session = &sessions["items"][0];
    assert_eq!(
        (&session["principal"], &session["login"]),
        (&json!("user:alice@example.org"), &json!("provider"))
    );
    let stream = browser.send(same_origin(http().get(api("changes")))).await;
    assert_eq!(stream.status(), StatusCode::OK);
    administer(&["admin", "sessions", "end", session["session_id"].as_str().unwrap()]);
    read_to_its_end(stream).await;
    let refused = browser.send(same_origin(http().get(api("me")))).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(administer(&["admin", "sessions", "list"])["items"], json!([]));

    // A cookie that somebody has copied is worth nothing after its owner has logged out.
    assert!(browser.go(&login, &format!("http://{address}/runs")).await.is_err());
    let (name, copied) = browser.cookie(&address, "servo_session_").unwrap();
    let out = browser.send(same_origin(http().post(format!("http://{address}/logout")))).await;
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    let mut thief = Browser::default();
    thief.set(&address, &name, &copied);
    let refused = thief.send(same_origin(http().get(api("me")))).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);

    // Everything that somebody logged in with: sessions and tokens that were issued before.
    administer(&["admin", "sessions", "end", "--principal", "user:alice"]);
    let ended = http().get(api("runs")).bearer_auth(&token).send().await.unwrap();
    assert_eq!(ended.status(), StatusCode::UNAUTHORIZED);
    assert!(ended.text().await.unwrap().contains("an admin has ended your sessions"));
    assert_eq!(
        status(http().get(api("runs")).bearer_auth(&operator)).await,
        StatusCode::OK,
        "others stay in"
    );
    let later = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 2;
    let newer = provider.mint(&json!({"claims": {"iat": later}})).await;
    assert_eq!(status(http().get(api("runs")).bearer_auth(&newer)).await, StatusCode::OK);
    let wrong = serve.bad(&project, &admin, &["admin", "sessions", "end", "--principal", "alice"]);
    assert!(wrong.contains("user:NAME"), "{wrong}");
    let wrong = serve.bad(&project, &admin, &["admin", "sessions", "end", "ses_0000000000000000"]);
    assert!(wrong.contains("there is no session"), "{wrong}");

    // A session that was begun with a key ends with the key, and so do its streams.
    let key = ["admin", "api-keys", "create", "x", "--role", "viewer", "--scope", "default/main", "--json"];
    let key: Value = serde_json::from_str(&serve.good(&project, &admin, &key)).unwrap();
    let (key, key_id) = (key["key"].as_str().unwrap(), key["key_id"].as_str().unwrap());
    let link: Value = http()
        .post(api("logins"))
        .bearer_auth(key)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
    let mut other = Browser::default();
    other.send(http().get(format!("http://{address}{}", link["path"].as_str().unwrap()))).await;
    let by_session = other.send(same_origin(http().get(api("changes")))).await;
    let by_key = http().get(api("changes")).bearer_auth(key).send().await.unwrap();
    assert_eq!((by_session.status(), by_key.status()), (StatusCode::OK, StatusCode::OK));
    // A tenant's admin sees and ends sessions of the tenant alone.
    serve.good(&project, &admin, &["admin", "tenants", "create", "acme"]);
    let of_acme = ["admin", "api-keys", "create", "y", "--role", "admin", "--scope", "acme/*", "--json"];
    let of_acme: Value = serde_json::from_str(&serve.good(&project, &admin, &of_acme)).unwrap();
    let listed = http().get(api("admin/sessions")).bearer_auth(of_acme["key"].as_str().unwrap());
    let listed = listed.send().await.unwrap().text().await.unwrap();
    assert_eq!(listed, r#"{"items":[]}"#);
    administer(&["admin", "api-keys", "revoke", key_id]);
    read_to_its_end(by_session).await;
    read_to_its_end(by_key).await;
    let refused = other.send(same_origin(http().get(api("me")))).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);

    // At a terminal, with a code that is entered in a browser.
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config.toml");
    let mut login = project.command(&["login", &serve.url, "--name", "prod"]);
    let mut login = login.env("SERVO_CONFIG", &config).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(login.stderr.take().unwrap()).lines();
    let (open, enter) = (told.next().unwrap().unwrap(), told.next().unwrap().unwrap());
    let (open, code) = (open.strip_prefix("open ").unwrap(), enter.strip_prefix("and enter ").unwrap());
    Browser::default().approve(open, code).await;
    let rest: Vec<String> = told.map(Result::unwrap).collect();
    assert!(login.wait().unwrap().success(), "{rest:?}");
    let mut list = project.command(&["--context", "prod", "admin", "tenants", "list"]);
    let listed = list.env("SERVO_CONFIG", &config).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("acme"), "{listed:?}");

    let log = serve.log();
    serve.stop();
    for secret in [&token, &copied] {
        assert!(!log.contains(secret.as_str()), "in the log");
    }
}

#[test]
fn an_identity_provider_that_cannot_be_used_is_said_before_anything_is_begun() {
    let project = Project::new(ORDERS);
    for (text, problem) in [
        ("[oidc]\nclient_id = \"servo\"\n", "missing field `issuer`"),
        ("[oidc]\nissuer = \"http://login.example.org\"\nclient_id = \"servo\"\n", "https://"),
        ("[oidc]\nissuer = \"https://a\"\nclient_id = \"s\"\nalgorithms = [\"HS256\"]\n", "HS256"),
        (
            "[oidc]\nissuer = \"https://a\"\nclient_id = \"s\"\n[[oidc.roles]]\ngroup = \"g\"\nrole = \"root\"\n",
            "root",
        ),
        ("oidc = 7\n", "oidc is a table"),
    ] {
        fs::write(project.path("serve.toml"), text).unwrap();
        let wrong = project.bad(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(wrong.contains("serve.toml") && wrong.contains(problem), "{wrong}");
    }
    assert!(!project.path(".servo/control").exists(), "nothing was begun");
    fs::write(project.path("serve.toml"), "[oidc]\nissuer = \"https://a.example\"\nclient_id = \"s\"\n")
        .unwrap();
    let shown = project.json(&["config", "show", "--serve", "--json"]);
    let oidc = shown["items"].as_array().unwrap().iter().find(|it| it["name"] == "oidc").unwrap();
    assert_eq!((&oidc["value"], &oidc["origin"]), (&json!("https://a.example"), &json!("file")));
}
