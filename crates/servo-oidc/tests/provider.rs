//! Tokens and logins, with a real provider.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use servo_core::Timestamp;
use servo_oidc::{Claims, Config, Error, Polled, Provider};
use support::{Browser, CALLBACK, TestProvider, parameter};

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

fn config(issuer: &str) -> Config {
    let text = format!(
        r#"
        issuer = {issuer:?}
        client_id = "servo"
        audiences = ["servo-api"]
        key_refetch_seconds = 0
        [[roles]]
        group = "admins"
        role = "admin"
        scope = "*"
        "#
    );
    toml::from_str(&text).unwrap()
}

/// A provider of its own, and ours of it.
fn started() -> Option<(TestProvider, Provider)> {
    let real = TestProvider::start(&[CALLBACK])?;
    let ours = Provider::new(config(&real.issuer)).unwrap();
    Some((real, ours))
}

async fn verified(real: &TestProvider, ours: &Provider, what: Value) -> Result<Claims, Error> {
    ours.verify(&real.mint(&what).await, now()).await
}

#[tokio::test]
async fn good_tokens_say_who_it_is() {
    let Some((real, ours)) = started() else { return };
    let claims = verified(&real, &ours, json!({})).await.unwrap();
    assert_eq!((claims.subject.as_str(), claims.name.as_str()), ("alice", "alice"));
    assert_eq!(claims.groups, ["admins"]);
    assert_eq!(ours.identity(&claims).grants.len(), 1);
    let es = verified(&real, &ours, json!({"header": {"alg": "ES256"}})).await.unwrap();
    assert_eq!(es.subject, "alice");
    for audience in [json!("servo-api"), json!(["other", "servo"])] {
        verified(&real, &ours, json!({"claims": {"aud": audience}})).await.unwrap();
    }
    let email = json!({"email": "a@example.org", "email_verified": true, "groups": "ops"});
    let claims = verified(&real, &ours, json!({"claims": email})).await.unwrap();
    assert_eq!((claims.name.as_str(), claims.groups), ("a@example.org", vec!["ops".to_owned()]));
    assert!(
        ours.identity(&verified(&real, &ours, json!({"claims": {"groups": ["x"]}})).await.unwrap())
            .grants
            .is_empty()
    );
    // An address that was not verified may be anybody's.
    let email = json!({"email": "boss@example.org", "email_verified": false});
    assert_eq!(verified(&real, &ours, json!({"claims": email})).await.unwrap().name, "alice");
}

#[tokio::test]
async fn tokens_that_are_wrong_in_any_way_are_refused() {
    let Some((real, ours)) = started() else { return };
    let seconds = now().as_millis() / 1000;
    let cases = [
        ("expired", json!({"claims": {"exp": seconds - 61}})),
        ("no expiry", json!({"claims": {"exp": null}})),
        ("not yet", json!({"claims": {"nbf": seconds + 120}})),
        ("from the future", json!({"claims": {"iat": seconds + 120}})),
        ("issuer", json!({"claims": {"iss": "https://evil.example"}})),
        ("no issuer", json!({"claims": {"iss": null}})),
        ("issuer with a slash", json!({"claims": {"iss": format!("{}/", real.issuer)}})),
        ("audience", json!({"claims": {"aud": "other"}})),
        ("no audience", json!({"claims": {"aud": null}})),
        ("empty audience", json!({"claims": {"aud": []}})),
        ("party", json!({"claims": {"aud": ["servo", "other"], "azp": "other"}})),
        ("no subject", json!({"claims": {"sub": null}})),
        ("empty subject", json!({"claims": {"sub": ""}})),
        ("line break", json!({"claims": {"sub": "a\nb"}})),
        ("infinite", json!({"claims": {"exp": "never"}})),
        ("none", json!({"header": {"alg": "none"}, "with": "none"})),
        ("None", json!({"header": {"alg": "None"}, "with": "none"})),
        ("confusion", json!({"header": {"alg": "HS256"}, "with": "public"})),
        ("another key", json!({"with": "other"})),
        ("an unknown key", json!({"header": {"kid": "made-up"}})),
        ("critical", json!({"header": {"crit": ["b64"], "b64": true}})),
    ];
    for (name, what) in cases {
        let outcome = verified(&real, &ours, what).await;
        assert!(matches!(outcome, Err(Error::Token(_))), "{name}: {outcome:?}");
    }
    // Clocks may differ a little.
    verified(&real, &ours, json!({"claims": {"exp": seconds - 30}})).await.unwrap();
    verified(&real, &ours, json!({"claims": {"nbf": seconds + 30}})).await.unwrap();
}

#[tokio::test]
async fn a_token_that_was_altered_anywhere_is_refused() {
    let Some((real, ours)) = started() else { return };
    let token = real.mint(&json!({})).await;
    ours.verify(&token, now()).await.unwrap();
    for at in (0..token.len()).step_by(7).chain([0, token.len() - 2]) {
        let mut altered = token.clone().into_bytes();
        altered[at] = match altered[at] {
            b'.' => b'A',
            b'A' => b'B',
            _ => b'A',
        };
        let altered = String::from_utf8(altered).unwrap();
        assert!(ours.verify(&altered, now()).await.is_err(), "at {at}");
    }
    let mut parts = token.split('.');
    let (head, body) = (parts.next().unwrap(), parts.next().unwrap());
    for altered in
        [format!("{head}.{body}."), format!("{head}.{body}"), format!("{token}.a"), format!("{token}\n")]
    {
        assert!(ours.verify(&altered, now()).await.is_err());
    }
    assert!(ours.verify(&format!("{head}.{body}.{}", "A".repeat(20_000)), now()).await.is_err());
}

#[tokio::test]
async fn new_keys_are_fetched_when_a_token_names_one_and_old_ones_are_forgotten() {
    let Some((real, ours)) = started() else { return };
    let old = real.mint(&json!({})).await;
    ours.verify(&old, now()).await.unwrap();
    let real = real.restarted(&[CALLBACK]);
    // The keys that are held are good until another one is asked for.
    ours.verify(&old, now()).await.unwrap();
    verified(&real, &ours, json!({})).await.unwrap();
    assert!(matches!(ours.verify(&old, now()).await, Err(Error::Token(_))));
    // A provider that is gone does not lock out those whose keys are known.
    let token = real.mint(&json!({})).await;
    drop(real);
    ours.verify(&token, now()).await.unwrap();
    let stranger = Provider::new(ours.config().clone()).unwrap();
    let unavailable = stranger.verify(&token, now()).await.unwrap_err();
    assert!(unavailable.is_passing(), "{unavailable}");
}

#[tokio::test]
async fn a_document_of_somebody_else_and_redirects_are_not_taken() {
    let Some((real, _ours)) = started() else { return };
    let token = real.mint(&json!({})).await;
    for issuer in [
        format!("{}/test/redirecting", real.issuer),
        format!("{}/", real.issuer),
        format!("{}/nowhere", real.issuer),
    ] {
        let ours = Provider::new(config(&issuer)).unwrap();
        let error = ours.verify(&token, now()).await.unwrap_err();
        assert!(error.is_passing(), "{issuer}: {error}");
    }
}

#[tokio::test]
async fn a_browser_logs_in_with_a_code_and_a_secret_of_its_own() {
    let Some((real, ours)) = started() else { return };
    let (address, login) = ours.begin(CALLBACK).await.unwrap();
    let mut browser = Browser::default();
    let back = browser.go(&address, CALLBACK).await.unwrap_err();
    let (state, code) = (parameter(&back, "state").unwrap(), parameter(&back, "code").unwrap());

    let (_, other) = ours.begin(CALLBACK).await.unwrap();
    let foreign = ours.finish(&other, &state, &code, now()).await.unwrap_err();
    assert!(matches!(foreign, Error::Refused(_)), "another browser's: {foreign}");
    let claims = ours.finish(&login, &state, &code, now()).await.unwrap().claims;
    assert_eq!(
        (claims.name.as_str(), claims.groups.clone()),
        ("alice@example.org", vec!["admins".to_owned()])
    );
    // A code is good once.
    assert!(matches!(ours.finish(&login, &state, &code, now()).await, Err(Error::Refused(_))));
    assert!(matches!(ours.finish(&login, &state, "made-up", now()).await, Err(Error::Refused(_))));
    assert!(!format!("{login:?}").contains(&state));

    let mut confidential = config(&real.issuer);
    confidential.client_id = "confidential".to_owned();
    confidential.client_secret = Some("a secret: with +&%".to_owned().into());
    let ours = Provider::new(confidential.clone()).unwrap();
    let (address, login) = ours.begin(CALLBACK).await.unwrap();
    let back = browser.go(&address, CALLBACK).await.unwrap_err();
    let (state, code) = (parameter(&back, "state").unwrap(), parameter(&back, "code").unwrap());
    confidential.client_secret = Some("wrong".to_owned().into());
    let wrong = Provider::new(confidential).unwrap();
    assert!(matches!(wrong.finish(&login, &state, &code, now()).await, Err(Error::Refused(_))));
    ours.finish(&login, &state, &code, now()).await.unwrap();
}

#[tokio::test]
async fn somebody_at_a_terminal_logs_in_with_a_code_and_stays_in() {
    let Some((_real, ours)) = started() else { return };
    let login = ours.begin_device().await.unwrap();
    assert_eq!(ours.poll_device(&login).await.unwrap(), Polled::Waiting);
    let mut browser = Browser::default();
    let address = login.verification_uri_complete.as_ref().unwrap();
    browser.approve(address, &login.user_code).await;
    let Polled::Done(tokens) = ours.poll_device(&login).await.unwrap() else { panic!("not done") };
    let claims = ours.verify(tokens.id_token.as_ref().unwrap(), now()).await.unwrap();
    assert_eq!(claims.subject, "alice");
    let renewed = ours.renew(tokens.refresh_token.as_ref().unwrap()).await.unwrap();
    ours.verify(renewed.id_token.as_ref().unwrap(), now()).await.unwrap();
    assert!(matches!(ours.renew("made-up").await, Err(Error::Refused(_))));
    assert!(matches!(ours.poll_device(&login).await, Err(Error::Refused(_))), "a code is good once");
}
