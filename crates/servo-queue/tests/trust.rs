//! Verification of envelopes and task tokens.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::json;
use servo_core::{AttemptId, Millis, RunId, TaskKey, TenantId, Timestamp, WorkspaceId};
use servo_engine::work::Work;
use servo_queue::{AuthError, Envelope, Keyring, TaskClaims};

const NOW: Timestamp = Timestamp::from_millis(1_000);
const LATER: Timestamp = Timestamp::from_millis(9_000);

fn keys() -> Keyring {
    Keyring::new("k1", b"first secret")
}

fn claims() -> TaskClaims {
    TaskClaims {
        tenant: TenantId::parse("acme").unwrap(),
        workspace: WorkspaceId::parse("prod").unwrap(),
        run_id: RunId::from_u128(7),
        task_key: TaskKey::parse("raw/events:materialize").unwrap(),
        attempt: 2,
        attempt_id: AttemptId::from_parts(1, 2),
        expires_at: Timestamp::from_millis(5_000),
    }
}

fn envelope() -> Envelope {
    let claims = claims();
    Envelope {
        followers: Vec::new(),
        work_ref: None,
        callbacks: None,
        envelope_version: 1,
        tenant_id: claims.tenant.clone(),
        workspace_id: claims.workspace.clone(),
        run_id: claims.run_id,
        task_key: claims.task_key.clone(),
        attempt: 2,
        attempt_id: claims.attempt_id,
        dispatch_id: servo_core::dispatch_id(claims.run_id, &claims.task_key, 2),
        timeout_ms: None,
        work: None,
        heartbeat_interval_ms: Millis::from_secs(30),
        task_token: keys().mint(&claims),
        expires_at: claims.expires_at,
        nonce: "n".to_owned(),
    }
}

#[test]
fn an_envelope_survives_the_journey() {
    let sealed = keys().seal(&envelope());
    let wire = serde_json::to_string(&sealed).unwrap();
    assert_eq!(keys().open(&serde_json::from_str(&wire).unwrap(), NOW).unwrap(), envelope());
}

#[test]
fn work_travels_with_its_envelope() {
    let work: Work = serde_json::from_value(json!({
        "function": "assets:größe",
        "partition": { "key": "date=d:2013-01-05", "window": ["2013-01-05T00:00:00.000Z", "2013-01-06T00:00:00.000Z"] },
        "inputs": [{
            "parameter": "x",
            "asset": "raw/x",
            "single": true,
            "pieces": [
                { "materialization_id": "01JHKM51340000000000000007", "format": "parquet" },
                { "partition": "date=d:2013-01-05" },
            ],
        }],
        "outputs": [{
            "asset": "raw/events",
            "materialization_id": "01JHKM51340000000000000008",
            "quarantine": true,
            "checks": [{ "name": "few", "type": "row_count", "spec": { "min": 1, "max_ratio_ppm": 1_500_000 } }],
        }],
        "config": { "limit": "0.5" },
        "isolation": "process",
    }))
    .unwrap();
    let sent = Envelope { work: Some(Arc::new(work)), ..envelope() };
    assert_eq!(keys().open(&keys().seal(&sent), NOW).unwrap(), sent);
}

#[test]
fn a_changed_envelope_is_not_believed() {
    let mut sealed = keys().seal(&envelope());
    sealed.body = sealed.body.replace("\"attempt\":2", "\"attempt\":3").into();
    assert_eq!(keys().open(&sealed, NOW).unwrap_err(), AuthError::BadSignature { what: "task envelope" });
}

#[test]
fn an_expired_envelope_is_not_believed() {
    let sealed = keys().seal(&envelope());
    assert!(matches!(keys().open(&sealed, LATER), Err(AuthError::Expired { .. })));
}

#[test]
fn an_old_key_verifies_until_it_is_taken_out() {
    let token = keys().mint(&claims());
    let rotated = keys().rotated("k2", b"second secret");
    assert_eq!(rotated.verify_token(&token, NOW).unwrap(), claims());
    assert!(rotated.mint(&claims()).starts_with("st1.k2."));
    let error = rotated.without("k1").verify_token(&token, NOW).unwrap_err();
    assert_eq!(error, AuthError::UnknownKey { what: "task token", key_id: "k1".to_owned() });
}

#[test]
fn tokens_of_another_ring_or_form_are_refused_without_a_panic() {
    let foreign = Keyring::new("k1", b"somebody else's").mint(&claims());
    assert_eq!(
        keys().verify_token(&foreign, NOW).unwrap_err(),
        AuthError::BadSignature { what: "task token" }
    );
    for bad in ["", "st1", "st1.k1.x", "st1.k1.a.b.c", "st2.k1.e30.e30", "st1.k1.%%%.%%%", "st1.k1.e30.e30"] {
        assert!(keys().verify_token(bad, NOW).is_err(), "{bad:?}");
    }
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    assert!(!format!("{:?}", keys()).contains("secret"));
}
