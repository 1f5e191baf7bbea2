//! Deployments, dynamic partitions and materializations through a running workspace: durable, and there after a
//! restart.

use std::path::Path;
use std::sync::Arc;

use servo_core::{AssetKey, MaterializationId};
use servo_engine::definitions::{AssetDef, DepDef, Location};
use servo_engine::rows::HotRows;
use servo_engine::{
    Caller, Change, ChangePartitions, DataStatus, Deploy, EventData, Outcome, Refusal, Report, SettingOrigin,
    State,
};
use servo_runtime::{Error, SystemClock};

use crate::support;
use crate::support::{
    Harness, assert_same_rows, assert_tables_verify, directory, events, keys, memory, one, taken, within,
};

fn definition(name: &str, description: &str) -> Arc<AssetDef> {
    Arc::new(AssetDef {
        key: format!("test/{name}"),
        location: Location { file: "shop/assets.py".into(), line: 12 },
        function: Some(format!("shop.assets:{name}")),
        description: Some(description.to_owned()),
        code_version: Some("sha256:0123456789abcdef".to_owned()),
        ..AssetDef::default()
    })
}

fn deploy(digest: &str, assets: Vec<Arc<AssetDef>>) -> Deploy {
    Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "shop".to_owned(),
        assets,
        caller: Caller::user("test"),
    }
}

fn customers(add: &[&str], remove: &[&str]) -> ChangePartitions {
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    let (name, caller) = ("customers".to_owned(), Caller::user("test"));
    ChangePartitions { name, add: keys(add), remove: keys(remove), caller }
}

/// Runs the one task of a plan by hand and reports what it produced.
async fn materialize(harness: &Harness, run_key: &str, report: Report) {
    let run = harness.trigger(run_key, one("a")).await;
    let sealed = within(taken(&harness.queue, "default")).await;
    let envelope = keys().open(&sealed, servo_core::Clock::now(&SystemClock)).unwrap();
    harness.workspace.started(&envelope.task_token, "local-hand").await.unwrap();
    harness.workspace.finished(&envelope.task_token, report).await.unwrap();
    harness.ended(run).await;
}

async fn by_hand(root: &Path) -> Harness {
    Harness::open_with(directory(root), Arc::default(), 0, |_| {}).await.unwrap()
}

fn produced(n: u128) -> Report {
    Report { materialization_id: Some(MaterializationId::from_parts(1, n)), ..Report::succeeded() }
}

fn a() -> AssetKey {
    AssetKey::parse("test.a").unwrap()
}

#[tokio::test]
async fn a_restart_keeps_what_is_deployed_partitions_and_what_is_materialized() {
    let root = tempfile::tempdir().unwrap();
    let harness = by_hand(root.path()).await;
    harness
        .workspace
        .deploy(deploy("d1", vec![definition("a", "one"), definition("b", "one")]))
        .await
        .unwrap();
    harness.workspace.change_partitions(customers(&["acme", "zenith"], &[])).await.unwrap();
    materialize(&harness, "first", produced(1)).await;
    let failed = Report::new(Outcome::Cancelled);
    materialize(&harness, "second", failed).await;
    harness.workspace.deploy(deploy("d2", vec![definition("a", "two")])).await.unwrap();
    harness.workspace.change_partitions(customers(&["bolt"], &["acme"])).await.unwrap();
    let before = harness.rows().await;
    harness.assert_replay_is_live().await;
    let stores = harness.stores.clone();
    harness.close().await;
    assert_tables_verify(&stores).await;
    drop(stores);

    let harness = by_hand(root.path()).await;
    assert_same_rows(&before, &harness.rows().await);
    let (deployment, definitions, customers_now, status) = harness
        .workspace
        .read(|state: &State| {
            let definitions: Vec<_> =
                state.definitions().map(|(key, def, _)| (key.clone(), def.clone())).collect();
            let status = state.partition_status(&a(), None);
            let customers = state.dynamic_partitions()["customers"].clone();
            (state.deployment().cloned(), definitions, customers, status)
        })
        .await
        .unwrap();
    let deployment = deployment.unwrap();
    assert_eq!((deployment.number, &*deployment.digest, deployment.assets), (2, "d2", 1));
    assert_eq!(definitions, [(a(), definition("a", "two"))]);
    assert_eq!(customers_now, ["bolt", "zenith"]);
    let status = status.unwrap();
    assert_eq!(status.status(), DataStatus::LastAttemptFailed);
    assert_eq!(status.latest().unwrap().id(), MaterializationId::from_parts(1, 1));
    // And it goes on from there.
    let same = harness.workspace.deploy(deploy("d2", vec![definition("a", "two")])).await.unwrap();
    assert_eq!(same, Change::Duplicate);
    assert!(harness.workspace.deploy(deploy("d1", vec![definition("a", "one")])).await.is_ok());
    let nothing = harness.workspace.change_partitions(customers(&["bolt"], &["acme"])).await.unwrap();
    assert_eq!(nothing.change, Change::Duplicate);
    materialize(&harness, "third", produced(3)).await;
    let latest = harness.workspace.read(|state| state.latest(&a(), None)).await.unwrap();
    assert_eq!(latest.unwrap().id(), MaterializationId::from_parts(1, 3));
    harness.assert_replay_is_live().await;
    harness.close().await;
}

#[tokio::test]
async fn a_refused_request_changes_nothing_and_says_why() {
    let (_, stores) = memory();
    let harness = Harness::open(stores, |config| {
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.max_dynamic_partitions = 2)
    })
    .await
    .unwrap();
    let before = harness.rows().await;
    let bad = harness.workspace.deploy(deploy("d1", vec![definition("no key", "one")])).await.unwrap_err();
    assert!(matches!(bad, Error::Refused(Refusal::BadAsset { .. })), "{bad}");
    let many = harness.workspace.change_partitions(customers(&["a", "b", "c"], &[])).await.unwrap_err();
    assert!(matches!(many, Error::Refused(Refusal::TooManyPartitions { count: 3, limit: 2, .. })), "{many}");
    assert!(!many.is_transient());
    let after = harness.rows().await;
    // The refusals themselves are recorded.
    assert_same_rows(&HotRows { head: after.head, idempotency: after.idempotency.clone(), ..before }, &after);
    harness.close().await;
}

/// About as large as definitions get: dependencies, and a description of some sentences.
fn large(n: usize, description: &str) -> Arc<AssetDef> {
    let deps = (1..=4).filter(|back| n >= *back).map(|back| DepDef {
        asset: Some(format!("test/asset_{:05}", n - back)),
        parameter: Some(format!("asset_{:05}", n - back)),
        ..DepDef::default()
    });
    let mut def = AssetDef::clone(&definition(&format!("asset_{n:05}"), &description.repeat(10)));
    def.deps = deps.collect();
    def.tags = [("team".to_owned(), "analytics".to_owned())].into();
    Arc::new(def)
}

async fn rows_of(root: &Path) -> HotRows {
    let harness = by_hand(root).await;
    let rows = harness.rows().await;
    harness.close().await;
    rows
}

#[tokio::test]
async fn a_deployment_of_ten_thousand_assets_is_one_batch_and_loads_again() {
    let root = tempfile::tempdir().unwrap();
    let harness = by_hand(root.path()).await;
    let all = |text: &str| -> Vec<_> { (0..10_000).map(|n| large(n, text)).collect() };
    harness.workspace.deploy(deploy("d1", all("One sentence of many about it. "))).await.unwrap();
    let mut next = all("One sentence of many about it. ");
    next[77] = large(77, "Another one.");
    harness.workspace.deploy(deploy("d2", next)).await.unwrap();
    let logged = events(harness.stores.log.as_ref()).await;
    let sizes: Vec<(usize, usize)> = logged
        .iter()
        .filter_map(|event| {
            let EventData::AssetsDeployed(deployed) = &event.data else { return None };
            Some((deployed.upsert.len(), serde_json::to_vec(deployed).unwrap().len()))
        })
        .collect();
    assert!(sizes[0].0 == 10_000 && sizes[0].1 > 7_000_000, "{sizes:?}");
    assert!(sizes[1].0 == 1 && sizes[1].1 < 2_000, "only what changed: {sizes:?}");
    let before = harness.rows().await;
    let stores = harness.stores.clone();
    harness.close().await;
    assert_tables_verify(&stores).await;
    drop(stores);
    assert_same_rows(&before, &rows_of(root.path()).await);
    // Without tables everything comes from the log.
    let home = root.path().join(support::layout().prefix());
    std::fs::remove_dir_all(home.join("manifests")).unwrap();
    std::fs::remove_dir_all(home.join("state")).unwrap();
    assert_same_rows(&before, &rows_of(root.path()).await);
}
