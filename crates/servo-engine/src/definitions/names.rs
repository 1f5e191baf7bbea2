//! Every asset has a valid name of its own, and the outputs of one function fit together.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::AssetKey;
use servo_core::selection::AssetInfo;

use super::manifest::AssetDef;
use super::problem::{self, Report};

/// An asset whose name is valid.
pub(super) struct Named {
    pub(super) key: AssetKey,
    pub(super) def: Arc<AssetDef>,
}

impl Named {
    pub(super) fn info(&self) -> AssetInfo {
        AssetInfo {
            key: self.key.clone(),
            tags: self.def.tags.clone(),
            group: self.def.group.clone(),
            owners: self.def.owners.clone(),
            kinds: self.def.kinds.clone(),
        }
    }
}

/// The assets by key, each once. Of duplicates the first declared stays, so that the rest can be checked too.
pub(super) fn check(assets: Vec<AssetDef>, report: &mut Report) -> Vec<Named> {
    let mut named: BTreeMap<AssetKey, Arc<AssetDef>> = BTreeMap::new();
    for def in assets {
        let subject = problem::asset(&def.key);
        let key = match AssetKey::parse(&def.key) {
            Ok(key) => key,
            Err(error) => {
                let fix = "name it with letters, digits, \"_\" and \"-\", starting with a letter: name=\"…\", namespace=\"…\"";
                report.add(Some(&def.location), subject, error.to_string(), fix);
                continue;
            }
        };
        match named.get(&key) {
            Some(first) => {
                let message = format!("is declared twice, also at {}", first.location);
                report.add(Some(&def.location), subject, message, "rename one of them, or remove it");
            }
            None => {
                named.insert(key, Arc::new(def));
            }
        }
    }
    named.into_iter().map(|(key, def)| Named { key, def }).collect()
}

/// Names that assets had before: valid, not declared any more, and each claimed once.
pub(super) fn check_former(named: &[Named], report: &mut Report) {
    let mut claimed: BTreeMap<AssetKey, &AssetKey> = BTreeMap::new();
    for asset in named {
        let Some(text) = &asset.def.renamed_from else { continue };
        let mut add = |message: String, fix: &str| {
            report.add(Some(&asset.def.location), problem::asset(&asset.def.key), message, fix);
        };
        let key = match AssetKey::parse(text) {
            Ok(key) => key,
            Err(error) => {
                add(
                    format!("renamed_from: {error}"),
                    "give the name as it was: renamed_from=\"raw.flights\"",
                );
                continue;
            }
        };
        if named.binary_search_by(|other| other.key.cmp(&key)).is_ok() {
            add(
                format!("is renamed from {key}, which is declared too"),
                "remove one of them, or renamed_from=",
            );
        }
        if let Some(other) = claimed.insert(key.clone(), &asset.key) {
            add(format!("is renamed from {key}, and {other} is too"), "leave it at one of them");
        }
    }
}

/// For each asset, the position of the first one that the same function makes.
pub(super) fn makers(named: &[Named], report: &mut Report) -> Vec<u32> {
    let mut first_of: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let mut makers = Vec::with_capacity(named.len());
    for (position, asset) in (0u32..).zip(named) {
        let function = asset.def.function.as_deref().zip(asset.def.multi.as_ref());
        let maker = function.map_or(position, |(function, multi)| {
            *first_of.entry((function, multi.first.as_str())).or_insert(position)
        });
        let first = &named[maker as usize];
        if first.def.partitions != asset.def.partitions {
            report.add(
                Some(&asset.def.location),
                problem::asset(&asset.def.key),
                format!("has other partitions than {}, which the same function makes", first.key),
                "give all outputs of a @multi_asset the same partitions=, or split the function",
            );
        }
        makers.push(maker);
    }
    makers
}
