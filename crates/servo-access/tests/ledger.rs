//! The control ledger as a server uses it: a real log in a directory, opened again and again.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use servo_access::{
    ControlCommand, ControlLedger, ControlRefusal, Grant, KeyStatus, KeyText, LedgerError, NewKey, Quota,
    Role, Scope, SessionId, SessionOf, parse_key,
};
use servo_core::{ManualClock, Millis, TenantId, Timestamp, WorkspaceId};
use servo_engine::Principal;
use servo_store::{FileLog, Layout, SystemPutIds};

async fn open(root: &Path, clock: &Arc<ManualClock>) -> ControlLedger {
    let layout = Layout::new("server".parse().unwrap(), "control".parse().unwrap());
    let log = Arc::new(FileLog::open(root, &layout).unwrap());
    ControlLedger::open(log, Arc::new(SystemPutIds::default()), clock.clone()).await.unwrap()
}

fn me() -> Principal {
    Principal::user("tests")
}

fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

fn workspace(name: &str) -> WorkspaceId {
    name.parse().unwrap()
}

fn new_key(byte: u8, scope: &str, expires_at: Option<Timestamp>) -> (KeyText, ControlCommand) {
    let text = KeyText::of([byte; 38]);
    let grant = Grant { role: Role::Operator, scope: scope.parse().unwrap(), assets: None };
    let (id, hash) = (text.id.clone(), text.hash());
    let command = ControlCommand::CreateKey(NewKey {
        id,
        hash,
        name: "nightly".to_owned(),
        grant,
        service: true,
        expires_at,
    });
    (text, command)
}

fn refusal(error: LedgerError) -> ControlRefusal {
    let LedgerError::Refused(refusal) = error else { panic!("{error}") };
    refusal
}

#[tokio::test]
async fn keys_survive_restarts_and_are_refused_when_they_are_revoked_or_expire() {
    let root = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
    let ledger = open(root.path(), &clock).await;
    ledger.ask(&me(), &ControlCommand::CreateTenant(tenant("acme"))).await.unwrap();
    ledger.ask(&me(), &ControlCommand::CreateWorkspace(tenant("acme"), workspace("main"))).await.unwrap();
    let later = Timestamp::from_millis(2_000_000);
    let (kept, make_kept) = new_key(1, "acme/main", None);
    let (brief, make_brief) = new_key(2, "*", Some(later));
    assert!(ledger.ask(&me(), &make_kept).await.unwrap());
    assert!(ledger.ask(&me(), &make_brief).await.unwrap());
    let used = BTreeMap::from([(kept.id.clone(), Timestamp::from_millis(1_500_000))]);
    assert!(ledger.ask(&me(), &ControlCommand::RecordUse(used.clone())).await.unwrap());
    assert!(!ledger.ask(&me(), &ControlCommand::RecordUse(used)).await.unwrap());
    let before = ledger.state();
    drop(ledger);

    let ledger = open(root.path(), &clock).await;
    let state = ledger.state();
    assert_eq!(state, before, "the fold of the log is what was answered");
    let text = kept.reveal();
    let (id, secret) = parse_key(&text).unwrap();
    let found = state.verified(&id, secret).unwrap();
    assert_eq!(found.status(ledger.now()), KeyStatus::Active);
    assert_eq!(found.last_used_at, Some(Timestamp::from_millis(1_500_000)));
    assert!(state.verified(&brief.id, secret).is_none(), "the secret of another key");
    assert_eq!(state.key(&brief.id).unwrap().status(later), KeyStatus::Expired);
    assert!(ledger.ask(&me(), &ControlCommand::RevokeKey(id.clone())).await.unwrap());
    assert!(!ledger.ask(&me(), &ControlCommand::RevokeKey(id.clone())).await.unwrap(), "it is so already");
    assert_eq!(ledger.state().verified(&id, secret).unwrap().status(ledger.now()), KeyStatus::Revoked);

    let mut written = String::new();
    for entry in walk(root.path()) {
        written.push_str(&String::from_utf8_lossy(&std::fs::read(entry).unwrap()));
    }
    assert!(written.contains("KeyCreated") && !written.contains(secret), "only the hash is kept");
}

fn walk(at: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn bad_requests_are_refused_and_leave_nothing() {
    let root = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
    let ledger = open(root.path(), &clock).await;
    let before = ledger.state();
    let (_, unknown) = new_key(1, "acme/main", None);
    let refused = refusal(ledger.ask(&me(), &unknown).await.unwrap_err());
    assert!(matches!(refused, ControlRefusal::UnknownWorkspace { .. }), "{refused}");
    let (_, over) = new_key(1, "*", Some(Timestamp::from_millis(999_999)));
    let refused = refusal(ledger.ask(&me(), &over).await.unwrap_err());
    assert!(matches!(refused, ControlRefusal::Invalid { field: "expires_at", .. }), "{refused}");
    let (_, ControlCommand::CreateKey(mut new)) = new_key(1, "*", None) else { unreachable!() };
    new.grant.assets = Some("raw.* and (".into());
    let refused = refusal(ledger.ask(&me(), &ControlCommand::CreateKey(new)).await.unwrap_err());
    assert!(matches!(refused, ControlRefusal::Invalid { field: "assets", .. }), "{refused}");
    for (set, unset) in [
        (vec![("max_dreams", Some(1))], vec![]),
        (vec![("max_concurrent_runs", Some(0))], vec![]),
        (vec![("fairness_weight", None)], vec![]),
        (vec![], vec!["max_dreams"]),
    ] {
        ledger.ask(&me(), &ControlCommand::CreateTenant(tenant("acme"))).await.ok();
        let set = set.into_iter().map(|(name, value): (&str, _)| (name.to_owned(), value)).collect();
        let unset = unset.into_iter().map(str::to_owned).collect();
        let asked = ControlCommand::SetQuotas { tenant: tenant("acme"), set, unset };
        let refused = refusal(ledger.ask(&me(), &asked).await.unwrap_err());
        assert!(matches!(refused, ControlRefusal::Invalid { field: "quotas", .. }), "{refused}");
    }
    assert_eq!(before.tenants().count() + 1, ledger.state().tenants().count());
    assert_eq!(ledger.state().keys().count(), 0);
}

#[tokio::test]
async fn tenants_and_workspaces_are_switched_off_before_they_are_removed_and_their_keys_go_with_them() {
    let root = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
    let ledger = open(root.path(), &clock).await;
    let (acme, main) = (tenant("acme"), workspace("main"));
    for command in [
        ControlCommand::CreateTenant(acme.clone()),
        ControlCommand::CreateWorkspace(acme.clone(), main.clone()),
        new_key(1, "acme/main", None).1,
        new_key(2, "acme/*", None).1,
        new_key(3, "*", None).1,
    ] {
        assert!(ledger.ask(&me(), &command).await.unwrap());
    }
    assert!(ledger.state().is_open(&acme, &main));
    let remove = ControlCommand::RemoveWorkspace(acme.clone(), main.clone());
    assert!(matches!(refusal(ledger.ask(&me(), &remove).await.unwrap_err()), ControlRefusal::StillOn { .. }));
    let off =
        ControlCommand::ChangeWorkspace { tenant: acme.clone(), workspace: main.clone(), disabled: true };
    assert!(ledger.ask(&me(), &off).await.unwrap() && !ledger.ask(&me(), &off).await.unwrap());
    assert!(!ledger.state().is_open(&acme, &main));
    assert!(ledger.ask(&me(), &remove).await.unwrap());
    clock.advance(Millis::from_secs(1));
    let set =
        BTreeMap::from([("max_concurrent_runs".to_owned(), Some(3)), ("max_daily_runs".to_owned(), Some(7))]);
    let quotas = ControlCommand::SetQuotas { tenant: acme.clone(), set, unset: Vec::new() };
    assert!(ledger.ask(&me(), &quotas).await.unwrap() && !ledger.ask(&me(), &quotas).await.unwrap());
    let found = ledger.state().tenant(&acme).unwrap().quotas.clone();
    assert_eq!((found.get(Quota::ConcurrentRuns), found.get(Quota::DailyRuns)), (Some(3), Some(7)));
    assert_eq!(found.get(Quota::QueuedTasks), Some(1_000), "the rest have their defaults");
    assert!(ledger.ask(&me(), &ControlCommand::RemoveTenant(acme.clone())).await.unwrap());
    let state = ledger.state();
    let statuses: Vec<_> = state.keys().map(|key| key.status(ledger.now())).collect();
    assert_eq!(statuses, [KeyStatus::Revoked, KeyStatus::Revoked, KeyStatus::Active]);
    // A tenant of the same name is another one.
    assert!(ledger.ask(&me(), &ControlCommand::CreateTenant(acme.clone())).await.unwrap());
    let state = ledger.state();
    assert!(!state.tenant(&acme).unwrap().quotas.is_set(Quota::ConcurrentRuns));
    assert!(state.keys().filter(|key| key.grant.scope != Scope::Server).all(|key| key.revoked_at.is_some()));
    drop(ledger);
    assert_eq!(open(root.path(), &clock).await.state(), state);
}

#[test]
fn an_event_of_a_newer_version_is_skipped_and_everything_else_counts() {
    let batch = r#"[
        {"timestamp":"2026-01-01T00:00:00.000Z","principal":"user:a","event_version":1,"event_type":"TenantCreated","payload":{"tenant":"acme"}},
        {"timestamp":"2026-01-01T00:00:00.000Z","principal":"user:a","event_version":1,"event_type":"MoonLanded","payload":{"who":"us"}},
        {"timestamp":"2026-01-01T00:00:00.000Z","principal":"user:a","event_version":9,"event_type":"TenantCreated","payload":{"tenant":"zeta"}}
    ]"#;
    let events = servo_access::read_batch(batch.as_bytes()).unwrap();
    let mut state = servo_access::ControlState::default();
    events.iter().for_each(|event| state.apply(event));
    let tenants: Vec<_> = state.tenants().map(|(tenant, _)| tenant.as_str()).collect();
    assert_eq!(tenants, ["acme"]);
}

#[tokio::test]
async fn sessions_end_when_somebody_ends_them_and_the_oldest_of_a_user_makes_room() {
    let root = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
    let ledger = open(root.path(), &clock).await;
    let (zoe, ann) = (Principal::user("zoë"), Principal::user("ann"));
    let id = |number: u8| SessionId::of([number; 8]);
    let start = |number: u8, minutes: u64| ControlCommand::StartSession {
        id: id(number),
        holder: SessionOf::Owner,
        expires_at: Timestamp::from_millis(1_000_000).saturating_add(Millis::from_secs(60 * minutes)),
    };
    ledger.ask(&ann, &start(200, 10)).await.unwrap();
    for number in 0..51 {
        clock.advance(Millis::new(1));
        ledger.ask(&zoe, &start(number, 60)).await.unwrap();
    }
    let (state, now) = (ledger.state(), ledger.now());
    assert!(state.session(&id(0), now).is_none(), "the oldest has made room");
    assert_eq!(state.sessions(now).filter(|session| session.principal == zoe).count(), 50);
    assert!(state.session(&id(200), now).is_some(), "nobody else's");

    ledger.ask(&me(), &ControlCommand::EndSession(id(7))).await.unwrap();
    let again = ledger.ask(&me(), &ControlCommand::EndSession(id(7))).await.unwrap_err();
    assert_eq!(refusal(again), ControlRefusal::UnknownSession { id: id(7) });
    let before = ledger.now();
    ledger.ask(&me(), &ControlCommand::EndSessionsOf(zoe.clone())).await.unwrap();
    clock.advance(Millis::new(1));
    ledger.ask(&zoe, &start(100, 60)).await.unwrap();
    let state = ledger.state();
    let left: Vec<String> = state.sessions(ledger.now()).map(|session| session.id.to_string()).collect();
    assert_eq!(left, [id(100).to_string(), id(200).to_string()]);
    assert!(state.is_logged_out(&zoe, before) && !state.is_logged_out(&ann, before));
    assert!(!state.is_logged_out(&zoe, ledger.now()), "whoever logs in afterwards is in");

    drop(ledger);
    let ledger = open(root.path(), &clock).await;
    assert_eq!(ledger.state(), state, "and it is so after a restart");
    clock.advance(Millis::from_secs(15 * 60));
    assert!(ledger.state().session(&id(200), ledger.now()).is_none(), "its time is over");
}
