//! Definitions: deployments, keys of dynamic partitions, names of assets.

use std::sync::Arc;

use servo_core::{AssetId, AssetKey, EventId, Millis, PartitionsDef};
use servo_engine::EventData;
use servo_engine::definitions::{AssetDef, Location};
use servo_engine::event::{
    AssetMoved, AssetRenamed, AssetsDeployed, DeployedAsset, DynamicPartitionsChanged,
};

use super::{asset, options};

pub(super) fn assets_deployed() -> Vec<EventData> {
    let id = |n| AssetId::from_parts(1_736_899_200_000, n);
    let plain = AssetDef {
        key: "raw/events".to_owned(),
        location: Location { file: "assets.py".into(), line: 7 },
        ..AssetDef::default()
    };
    let full = AssetDef {
        key: "analytics/size".to_owned(),
        function: Some("assets:size".to_owned()),
        description: Some("How \"big\" it is.".to_owned()),
        group: Some("daily".to_owned()),
        tags: [("team".to_owned(), "zoë".to_owned())].into(),
        code_version: Some("v2".to_owned()),
        partitions: Some(PartitionsDef::Static { keys: vec!["eu".to_owned(), "us".to_owned()] }),
        retry: options().retry,
        timeout_ms: Some(Millis::from_minutes(10)),
        ..plain.clone()
    };
    let asset = |n, def: AssetDef| DeployedAsset::new(id(n), Arc::new(def)).expect("a valid key");
    let first = AssetsDeployed {
        number: 1,
        digest: "sha256:00ff".into(),
        time_zones: "2026e".into(),
        project: "shop".to_owned(),
        upsert: vec![asset(1, full), asset(2, plain)],
        removed: vec![],
    };
    let removed = vec![AssetKey::parse("raw.events").expect("a key")];
    let second =
        AssetsDeployed { number: 2, digest: "sha256:01".into(), upsert: vec![], removed, ..first.clone() };
    vec![EventData::AssetsDeployed(first), EventData::AssetsDeployed(second)]
}

pub(super) fn dynamic_partitions_changed() -> Vec<EventData> {
    let change = |number, added: &[&str], removed: &[&str]| {
        EventData::DynamicPartitionsChanged(DynamicPartitionsChanged {
            name: "customers".to_owned(),
            number,
            added: added.iter().map(|key| (*key).to_owned()).collect(),
            removed: removed.iter().map(|key| (*key).to_owned()).collect(),
        })
    };
    vec![
        change(1, &["acme", "größe \"one\""], &[]),
        change(2, &[], &["acme"]),
        change(3, &["acme"], &["größe \"one\""]),
    ]
}

pub(super) fn asset_renamed() -> Vec<EventData> {
    vec![EventData::AssetRenamed(AssetRenamed {
        asset_key: asset(),
        renamed_to: AssetKey::new("raw", "arrivals").expect("a key"),
        after: EventId::from_parts(1_736_899_200_000, 9),
    })]
}

pub(super) fn asset_moved() -> Vec<EventData> {
    vec![EventData::AssetMoved(AssetMoved {
        asset_key: asset(),
        renamed_by: EventId::from_parts(1_736_899_200_000, 9),
    })]
}
