//! Callers of an identity provider, which is a real one.

#[path = "../../../servo-oidc/tests/support.rs"]
mod provider;

use provider::{Browser, TestProvider, http};
use reqwest::StatusCode;
use serde_json::json;
use servo_api::Code;
use servo_oidc::{Config, Provider};

use crate::support::{Answer, Harness, Setting};

/// A server, its provider and its directory. The callback is that of the server, so the provider is started after it.
async fn started(root: &std::path::Path) -> Option<(Harness, TestProvider)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config: Config = serde_json::from_value(json!({
        "issuer": format!("http://127.0.0.1:{port}"),
        "client_id": "servo",
        "key_refetch_seconds": 0,
        "roles": [
            { "group": "admins", "role": "admin", "scope": "*" },
            { "group": "operators", "role": "operator", "scope": "acme/main" },
            { "group": "others", "role": "viewer", "scope": "other/*" },
        ],
    }))
    .unwrap();
    let setting = Setting { oidc: Some(Provider::new(config).unwrap()), ..Setting::default() };
    let harness = Harness::with(root, setting).await;
    let callback = format!("http://{}/login/callback", harness.address);
    let Some(provider) = TestProvider::start_on(port, &[&callback]) else {
        harness.close().await;
        return None;
    };
    Some((harness, provider))
}

#[tokio::test]
async fn tokens_of_the_provider_are_good_for_what_their_groups_may_do() {
    let root = tempfile::tempdir().unwrap();
    let Some((harness, provider)) = started(root.path()).await else { return };
    let ask = async |what: serde_json::Value, path: &str| {
        let token = provider.mint(&what).await;
        let request = harness.http.get(harness.url(path)).bearer_auth(token);
        Answer::of(request.send().await.unwrap()).await
    };
    ask(json!({}), "audit").await.ok();
    ask(json!({"claims": {"groups": ["operators"]}}), "runs").await.ok();
    let refused = ask(json!({"claims": {"groups": ["operators"]}}), "audit").await;
    assert_eq!((refused.status, refused.problem().code), (403, Code::Forbidden));
    for groups in [json!([]), json!(["others"]), json!(["unknown"])] {
        let hidden = ask(json!({"claims": {"groups": groups}}), "runs").await;
        assert_eq!(hidden.status, 404, "{groups}");
    }
    for wrong in [
        json!({"claims": {"exp": 1}}),
        json!({"claims": {"aud": "other"}}),
        json!({"claims": {"iss": "https://evil.example"}}),
        json!({"header": {"alg": "none"}, "with": "none"}),
        json!({"header": {"alg": "HS256"}, "with": "public"}),
        json!({"with": "other"}),
    ] {
        let denied = ask(wrong.clone(), "runs").await;
        assert_eq!(denied.problem().code, Code::Unauthenticated, "{wrong}");
    }
    // Changes have the name of whoever asked.
    let email = json!({"email": "ann@example.org", "email_verified": true});
    let token = provider.mint(&json!({"claims": email})).await;
    let body = json!({"selection": "raw.orders"}).to_string();
    let request = harness.http.post(harness.url("runs")).bearer_auth(token);
    let asked = request.header("content-type", "application/json").body(body).send().await.unwrap();
    let run = Answer::of(asked).await.accepted();
    let run = harness.get(&format!("runs/{}", run["run_id"].as_str().unwrap())).await.ok();
    assert_eq!(run["requested_by"], "user:ann@example.org");
    harness.close().await;
}

#[tokio::test]
async fn a_browser_logs_in_at_the_provider_and_gets_a_session_of_its_own() {
    let root = tempfile::tempdir().unwrap();
    let Some((harness, _provider)) = started(root.path()).await else { return };
    let (base, authority) = (format!("http://{}", harness.address), harness.address.to_string());
    let options = harness.get("login-options").await.ok();
    assert_eq!(options["oidc"]["client_id"], "servo");
    assert_eq!(options["api_keys"], false);

    let mut browser = Browser::default();
    // A session that somebody else planted is not the one that the user gets.
    let name = format!("servo_session_{}", harness.address.port());
    browser.set(&authority, &name, "planted");
    let page =
        browser.go(&format!("{base}/login?next=/runs%3Fstate%3DFAILED"), &format!("{base}/runs")).await;
    assert_eq!(page.unwrap_err().as_str(), format!("{base}/runs?state=FAILED"));
    let (_, session) = browser.cookie(&authority, "servo_session_").unwrap();
    assert_ne!(session, "planted");
    assert!(browser.cookie(&authority, "servo_login_").is_none(), "it has done its work");

    let audit = format!("{base}/api/v1/audit");
    let own = browser.send(http().get(&audit).header("sec-fetch-site", "same-origin")).await;
    assert_eq!(own.status(), StatusCode::OK);
    for site in ["cross-site", "same-site"] {
        let foreign = browser.send(http().get(&audit).header("sec-fetch-site", site)).await;
        assert_eq!(foreign.status(), StatusCode::FORBIDDEN, "{site}");
    }
    let foreign =
        browser.send(http().post(format!("{base}/logout")).header("sec-fetch-site", "cross-site")).await;
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN, "nobody else logs the user out");
    let out =
        browser.send(http().post(format!("{base}/logout")).header("sec-fetch-site", "same-origin")).await;
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    assert!(browser.cookie(&authority, "servo_session_").is_none());
    let gone = browser.send(http().get(&audit).header("sec-fetch-site", "same-origin")).await;
    assert_eq!(gone.status(), StatusCode::UNAUTHORIZED);
    harness.close().await;
}

#[tokio::test]
async fn a_login_belongs_to_the_browser_that_began_it_and_leads_to_pages_of_this_server_alone() {
    let root = tempfile::tempdir().unwrap();
    let Some((harness, _provider)) = started(root.path()).await else { return };
    let base = format!("http://{}", harness.address);
    for next in ["//evil.example", "https://evil.example", "/%5Cevil.example", "/a%0d%0ab"] {
        let refused = http().get(format!("{base}/login?next={next}")).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{next}");
    }
    let begun = http().get(format!("{base}/login")).send().await.unwrap();
    assert_eq!(begun.status(), StatusCode::SEE_OTHER);
    let cookie = begun.headers()["set-cookie"].to_str().unwrap();
    for attribute in ["servo_login_", "HttpOnly", "SameSite=Lax", "Path=/login", "Max-Age=600"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    // The code of one browser is of no use in another, which has begun nothing, or something else.
    let mut victim = Browser::default();
    let callback = format!("{base}/login/callback");
    let back = victim.go(&format!("{base}/login"), &callback).await.unwrap_err();
    let stranger = http().get(back.clone()).send().await.unwrap();
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    let mut other = Browser::default();
    other.send(http().get(format!("{base}/login"))).await;
    assert_eq!(other.send(http().get(back.clone())).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(
        victim.send(http().get(format!("{callback}?error=access_denied"))).await.status(),
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(victim.send(http().get(back.clone())).await.status(), StatusCode::SEE_OTHER);
    // A pending login is no session, and a session is no pending login.
    let sealed = cookie.split(';').next().unwrap().split_once('=').unwrap().1;
    let name = format!("servo_session_{}", harness.address.port());
    let fake = http().get(format!("{base}/api/v1/runs")).header("cookie", format!("{name}={sealed}"));
    assert_eq!(fake.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    harness.close().await;
}
