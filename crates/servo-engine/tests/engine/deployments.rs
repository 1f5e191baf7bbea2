//! Deployments: only differences are written, ids stay, each deployment counts once (ADR-057).

use std::sync::Arc;

use servo_core::{AssetId, AssetKey};
use servo_engine::definitions::{AssetDef, MAX_ASSETS};
use servo_engine::event::AssetsDeployed;
use servo_engine::{
    Applied, Caller, Change, Deploy, Engine, Event, EventData, EventKind, Ignored, Input, Refusal,
    RefusalKind, Reply, Report, Settings, State,
};

use crate::support;
use crate::support::{World, definition, fold, plan, tenant, workspace};

fn deploy(digest: &str, assets: Vec<Arc<AssetDef>>) -> Input {
    Input::Deploy(Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "shop".to_owned(),
        assets,
        caller: Caller::user("me"),
    })
}

fn asset(name: &str) -> AssetKey {
    AssetKey::new("t", name).expect("an asset")
}

fn deployed(world: &World) -> Vec<AssetsDeployed> {
    let deployments = world.events().into_iter().filter_map(|event| {
        let EventData::AssetsDeployed(deployed) = event.data else { return None };
        Some(deployed)
    });
    deployments.collect()
}

/// Names of what a deployment changed and removed.
fn difference(deployment: &AssetsDeployed) -> (Vec<&str>, Vec<&str>) {
    let upsert = deployment.upsert.iter().map(|asset| asset.key().name()).collect();
    (upsert, deployment.removed.iter().map(AssetKey::name).collect())
}

fn ids(state: &State) -> Vec<(String, AssetId)> {
    state.definitions().map(|(key, _, id)| (key.name().to_owned(), id)).collect()
}

#[test]
fn a_deployment_writes_only_what_differs_from_the_one_before() {
    let mut world = World::new(Settings::default());
    world.ask(deploy("d1", vec![definition("b", "1"), definition("a", "1")])).expect("deployed");
    world.ask(deploy("d2", vec![definition("a", "1"), definition("c", "1")])).expect("deployed");
    world.ask(deploy("d3", vec![definition("a", "2"), definition("c", "1")])).expect("deployed");
    world.ask(deploy("d4", vec![definition("a", "2"), definition("c", "1")])).expect("a schedule changed");
    let log = deployed(&world);
    let differences: Vec<_> = log.iter().map(difference).collect();
    assert_eq!(
        differences,
        [(vec!["a", "b"], vec![]), (vec!["c"], vec!["b"]), (vec!["a"], vec![]), (vec![], vec![]),]
    );
    let newest = world.state().deployment().expect("deployed");
    assert_eq!((newest.number, &*newest.digest, newest.project.as_str()), (4, "d4", "shop"));
    assert_eq!((newest.assets, newest.upserted, newest.removed), (2, 0, 0));
    assert_eq!(newest.deployed_at, world.now);
    let live: Vec<(&str, Option<&str>)> = world
        .state()
        .definitions()
        .map(|(key, definition, _)| (key.name(), definition.code_version.as_deref()))
        .collect();
    assert_eq!(live, [("a", Some("2")), ("c", Some("1"))]);
    assert_eq!(world.state().definition(&asset("b")), None);
}

#[test]
fn the_same_definitions_with_newer_time_zones_are_another_deployment() {
    let mut world = World::new(Settings::default());
    let with_zones = |zones: &str| {
        let Input::Deploy(deploy) = deploy("d1", vec![definition("a", "1")]) else {
            unreachable!("a deployment")
        };
        Input::Deploy(Deploy { time_zones: zones.into(), ..deploy })
    };
    world.ask(with_zones("2026e")).expect("deployed");
    assert_eq!(world.ask(with_zones("2026e")), Ok(Reply::Change(Change::Duplicate)));
    world.ask(with_zones("2026f")).expect("deployed");
    let log = deployed(&world);
    let zones: Vec<&str> = log.iter().map(|deployment| &*deployment.time_zones).collect();
    assert_eq!(zones, ["2026e", "2026f"]);
    assert_eq!(&*world.state().deployment().expect("deployed").time_zones, "2026f");
}

#[test]
fn the_deployed_digest_is_a_duplicate_and_an_older_one_is_not() {
    let mut world = World::new(Settings::default());
    let (first, second) = (vec![definition("a", "1")], vec![definition("a", "2")]);
    world.ask(deploy("A", first.clone())).expect("A");
    assert_eq!(world.ask(deploy("A", first.clone())), Ok(Reply::Change(Change::Duplicate)));
    world.ask(deploy("B", second)).expect("B");
    assert!(matches!(world.ask(deploy("A", first)), Ok(Reply::Change(Change::Accepted { .. }))), "back to A");
    let keys: Vec<String> = world.events().into_iter().map(|event| event.idempotency_key).collect();
    assert_eq!(keys, ["deploy:1:A", "deploy:2:B", "deploy:3:A"]);
}

#[test]
fn an_asset_keeps_its_id_over_changes_and_when_it_returns() {
    let mut world = World::new(Settings::default());
    world.ask(deploy("1", vec![definition("a", "1"), definition("b", "1")])).expect("deployed");
    let first = ids(world.state());
    assert_ne!(first[0].1, first[1].1);
    world.wait(60);
    world.ask(deploy("2", vec![definition("a", "2")])).expect("deployed");
    assert_eq!(ids(world.state()), first[..1]);
    // The row of the removed asset survives a restart, and its id with it.
    let rows = world.state().rows();
    assert_eq!(rows.asset_definitions.len(), 2);
    assert_eq!(rows.asset_definitions[1].removed_at, Some(world.now));
    let restored = State::from_rows(tenant(), workspace(), rows.clone()).expect("fits");
    assert_eq!(restored.rows(), rows);
    world.engine = Engine::new(restored, support::SECRET);
    world.ask(deploy("3", vec![definition("a", "2"), definition("b", "1")])).expect("deployed");
    assert_eq!(ids(world.state()), first);
}

#[test]
fn the_same_decision_gives_the_same_ids() {
    let run = || {
        let mut world = World::new(Settings::default());
        world.ask(deploy("1", vec![definition("a", "1")])).expect("deployed");
        ids(world.state())
    };
    assert_eq!(run(), run());
    let id = run()[0].1;
    assert_eq!(i64::try_from(id.timestamp_ms()).expect("a time"), support::START.as_millis());
}

#[test]
fn a_duplicate_and_an_older_deployment_are_ignored() {
    let mut world = World::new(Settings::default());
    world.ask(deploy("1", vec![definition("a", "1"), definition("b", "1")])).expect("deployed");
    world.ask(deploy("2", vec![definition("b", "2")])).expect("deployed");
    let rows = world.state().rows();
    for event in world.events() {
        let mut state = world.state().clone();
        assert_eq!(state.apply(&event), Applied::No(Ignored::Duplicate));
        assert_eq!(state.rows(), rows);
    }
    let mut replayed = fold(&Settings::default(), &world.events()).rows();
    replayed.head.seq = rows.head.seq;
    assert_eq!(replayed, rows);
}

#[test]
fn a_removed_asset_keeps_what_is_known_of_its_partitions() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.ask(deploy("1", vec![definition("a", "1")])).expect("deployed");
    let id = servo_core::MaterializationId::from_parts(1, 1);
    world.play("a", Report { materialization_id: Some(id), ..Report::succeeded() });
    world.ask(deploy("2", vec![])).expect("deployed");
    assert_eq!(world.state().definitions().count(), 0);
    assert_eq!(world.state().latest(&asset("a"), None).map(|latest| latest.id()), Some(id));
}

fn refusal(world: &mut World, input: Input) -> Refusal {
    let refused = world.ask(input).expect_err("refused");
    let is_record = |event: &Event| event.data.kind() == EventKind::RequestRefused;
    assert!(world.events().iter().all(is_record), "a refusal leaves nothing but its record");
    refused
}

#[test]
fn what_the_state_could_not_hold_is_refused() {
    let mut world = World::new(Settings::default());
    let refused = refusal(&mut world, deploy("1", vec![definition("no key", "1")]));
    assert_eq!(refused.kind(), RefusalKind::Invalid);
    let text = refused.to_string();
    assert!(text.starts_with("asset \"t/no key\" cannot be deployed: invalid asset key"), "{text}");
    let twice = refusal(&mut world, deploy("1", vec![definition("a", "1"), definition("a", "2")]));
    assert_eq!(twice.to_string(), "asset \"t/a\" cannot be deployed: it is declared twice");
    let many = (0..=MAX_ASSETS).map(|n| definition(&format!("a{n}"), "1")).collect();
    let refused = refusal(&mut world, deploy("1", many));
    assert_eq!(refused.kind(), RefusalKind::Quota);
    assert_eq!(
        refused.to_string(),
        "the project has 10001 assets, at most 10000 are allowed; split it over several workspaces"
    );
}

#[test]
fn a_delta_has_what_changed_and_history_gets_what_was_followed() {
    let mut world = World::new(Settings::default());
    world.ask(deploy("1", vec![definition("a", "1"), definition("b", "1")])).expect("deployed");
    let first = world.engine.state_mut().take_delta();
    assert_eq!((first.asset_definitions.len(), first.deployments.len()), (2, 1));
    assert!(first.ended.deployments.is_empty() && first.gone.deployments.is_empty());
    world.ask(deploy("2", vec![definition("a", "1"), definition("b", "2")])).expect("deployed");
    world.ask(deploy("3", vec![definition("a", "1")])).expect("deployed");
    let delta = world.engine.state_mut().take_delta();
    let changed: Vec<&str> = delta.asset_definitions.iter().map(|row| row.asset_key.name()).collect();
    assert_eq!(changed, ["b"], "once, and not what stayed the same");
    let numbers: Vec<u64> = delta.deployments.iter().map(|row| row.number).collect();
    let ended: Vec<u64> = delta.ended.deployments.iter().map(|row| row.number).collect();
    assert_eq!((numbers, ended, delta.gone.deployments), (vec![3], vec![1, 2], vec![1, 2]));
    assert!(world.engine.state_mut().take_delta().is_empty());
}

#[test]
fn a_deployed_asset_without_a_valid_key_is_refused_when_it_is_read() {
    let payload = r#"{"asset_id":"01946983-4cbb-7000-8000-00000000002a","definition":{"key":"no key","location":{"file":"a.py","line":1}}}"#;
    let error = serde_json::from_str::<servo_engine::event::DeployedAsset>(payload).expect_err("no key");
    assert!(error.to_string().contains("invalid asset key \"no key\""), "{error}");
}
