//! Random graphs of assets, their partitions and mappings.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Asset, Dep, Grain, Kind, Map, name};

/// An asset as it is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    pub(crate) kind: Kind,
    /// Which earlier assets it reads, and how.
    pub(crate) deps: Vec<(usize, u8)>,
    pub(crate) reads_itself: Option<u8>,
    pub(crate) is_external: bool,
    pub(crate) is_tagged: bool,
    /// Made by the function of the asset before it, and with its partitions.
    pub(crate) joins: bool,
    pub(crate) can_subset: bool,
}

fn kind() -> impl Strategy<Value = Kind> {
    let time = |grain: Grain, zones: std::ops::Range<usize>| {
        (zones, 0..3i64).prop_map(move |(zone, later)| Kind::Time { grain, zone, later })
    };
    prop_oneof![
        2 => Just(Kind::Whole),
        6 => time(Grain::Day, 0..2),
        1 => time(Grain::Day, 2..4),
        2 => time(Grain::Hour, 0..4),
        1 => time(Grain::Week, 0..2),
        1 => time(Grain::Month, 0..2),
        1 => Just(Kind::Listed),
        1 => Just(Kind::Cube),
    ]
}

pub(crate) fn drawn() -> impl Strategy<Value = Drawn> {
    let deps = proptest::collection::vec((0..6usize, any::<u8>()), 0..3);
    let own = prop_oneof![2 => Just(None), 1 => any::<u8>().prop_map(Some)];
    let rarely = || prop::bool::weighted(0.1);
    (kind(), deps, own, rarely(), any::<bool>(), rarely(), any::<bool>()).prop_map(
        |(kind, deps, reads_itself, is_external, is_tagged, joins, can_subset)| Drawn {
            kind,
            deps,
            reads_itself,
            is_external,
            is_tagged,
            joins,
            can_subset,
        },
    )
}

/// A mapping that makes sense between two kinds.
fn map(down: Kind, up: Kind, pick: u8) -> Map {
    let of = |maps: &[Map]| maps[usize::from(pick) % maps.len()].clone();
    let days = |map: Map| Map::Dates(Box::new(map));
    let is_utc_day = |kind: Kind| matches!(kind, Kind::Time { grain: Grain::Day, zone: 0, .. });
    match (down, up) {
        (_, Kind::Whole) => Map::Inferred,
        (Kind::Whole, _) => of(&[Map::Inferred, Map::All, Map::Last]),
        (Kind::Time { grain, zone, .. }, Kind::Time { grain: other, zone: there, .. }) => {
            if grain == other && zone == there {
                of(&[Map::Same, Map::Window(-1, -1), Map::Window(-2, 0), Map::Overlap, Map::Inferred])
            } else {
                of(&[Map::Overlap, Map::Overlap, Map::Overlap, Map::All, Map::Last])
            }
        }
        (Kind::Listed, Kind::Listed) => of(&[Map::Same, Map::Table, Map::Inferred, Map::Last]),
        (Kind::Cube, Kind::Cube) => of(&[Map::Same, Map::Inferred, days(Map::Window(-1, 0)), Map::All]),
        (down, Kind::Cube) if is_utc_day(down) => of(&[days(Map::Same), days(Map::Window(-1, 0))]),
        (Kind::Cube, up) if is_utc_day(up) => of(&[days(Map::Same), days(Map::Window(-2, -1))]),
        (_, _) => of(&[Map::All, Map::Last]),
    }
}

fn own(kind: Kind, pick: u8) -> Option<Map> {
    let windows = [Map::Window(-1, -1), Map::Window(-2, -1), Map::Window(-3, -2)];
    let window = windows[usize::from(pick) % windows.len()].clone();
    match kind {
        Kind::Time { .. } => Some(window),
        Kind::Cube => Some(Map::Dates(Box::new(window))),
        Kind::Whole | Kind::Listed => None,
    }
}

pub(crate) fn assets(drawn: &[Drawn], now: i64) -> Vec<Asset> {
    let mut assets: Vec<Asset> = Vec::new();
    for (position, this) in drawn.iter().enumerate() {
        let before = assets.last().filter(|before| this.joins && !before.is_external && !this.is_external);
        let (kind, function, can_subset) = match before {
            Some(before) => (before.kind, before.function, before.can_subset),
            None => (this.kind, position, this.can_subset),
        };
        let mut deps: BTreeMap<usize, Map> = BTreeMap::new();
        if !this.is_external {
            for (of, pick) in this.deps.iter().filter(|_| position > 0) {
                let of = of % position.max(1);
                deps.insert(of, map(kind, assets[of].kind, *pick));
            }
            if let Some(own) = this.reads_itself.and_then(|pick| own(kind, pick)) {
                deps.insert(position, own);
            }
        }
        assets.push(Asset {
            kind,
            dims: kind.dims(now),
            deps: deps.into_iter().map(|(of, map)| Dep { of, map }).collect(),
            is_external: this.is_external,
            is_tagged: this.is_tagged,
            function,
            can_subset,
        });
    }
    assets
}

/// The assets as a manifest writes them.
pub(crate) fn described(assets: &[Asset]) -> Vec<Value> {
    let key = |asset: usize| format!("n/{}", name(asset));
    assets
        .iter()
        .enumerate()
        .map(|(position, asset)| {
            let dep = |dep: &Dep| {
                let mapping = dep.map.json();
                if mapping.is_null() {
                    json!({ "asset": key(dep.of) })
                } else {
                    json!({ "asset": key(dep.of), "mapping": mapping })
                }
            };
            let mut described = json!({
                "key": key(position),
                "location": { "file": "a.py", "line": 1 },
                "deps": asset.deps.iter().map(dep).collect::<Vec<_>>(),
                "external": asset.is_external,
            });
            let with = described.as_object_mut().unwrap();
            if !asset.is_external {
                with.insert("function".to_owned(), format!("a:f{}", asset.function).into());
            }
            if asset.has_partitions() {
                with.insert("partitions".to_owned(), asset.kind.json());
            }
            if asset.is_tagged {
                with.insert("tags".to_owned(), json!({ "t": "1" }));
            }
            let outputs = assets.iter().filter(|other| other.function == asset.function).count();
            if outputs > 1 {
                let multi = json!({ "can_subset": asset.can_subset, "first": key(asset.function) });
                with.insert("multi".to_owned(), multi);
            }
            described
        })
        .collect()
}
