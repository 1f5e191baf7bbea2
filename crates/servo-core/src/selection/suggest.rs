//! Near misses: what a person probably meant by a name that matches nothing.

use std::collections::BTreeSet;

use super::ast::NamePattern;
use super::graph::AssetInfo;
use crate::AssetKey;
use crate::edit_distance::near;

const MAX_NEAR_MISSES: usize = 3;

/// Up to three texts like `pattern` that match something, the nearest first. A name is near if few edits make it an
/// existing one, or if another namespace has it. Of a glob, the part without wildcards is corrected.
pub(super) fn near_misses(pattern: &NamePattern, assets: &[AssetInfo]) -> Vec<String> {
    let mut found = BTreeSet::new();
    let name = pattern.name.literal();
    let namespace = pattern.namespace.as_ref().map(|namespace| namespace.literal());
    for asset in assets.iter().map(|asset| &asset.key) {
        let candidate = match (&namespace, &name) {
            (None, Some(name)) => near(name, asset.name()).map(|edits| (edits, asset.to_string())),
            (None, None) => pattern.name.matches(asset.name()).then(|| (0, format!("*.{}", pattern.name))),
            (Some(Some(namespace)), Some(name)) => near_asset(&format!("{namespace}.{name}"), name, asset),
            (Some(Some(namespace)), None) => {
                // `analytcs.*` is a slip in the namespace, but `*` says nothing about other namespaces.
                let far = (!pattern.name.is_everything()).then_some(usize::MAX);
                let edits = near(namespace, asset.namespace()).or(far);
                edits
                    .filter(|_| pattern.name.matches(asset.name()))
                    .map(|edits| (edits, format!("{}.{}", asset.namespace(), pattern.name)))
            }
            (Some(None), Some(name)) => {
                let glob = pattern.namespace.as_ref().filter(|glob| glob.matches(asset.namespace()));
                let edits = near(name, asset.name()).filter(|_| glob.is_some());
                edits.map(|edits| (edits, asset.to_string()))
            }
            (Some(None), None) => None,
        };
        found.extend(candidate);
    }
    nearest(found)
}

/// Up to three of `assets` that could have been meant by `key`, the nearest first.
pub fn similar_assets<'a>(key: &AssetKey, assets: impl IntoIterator<Item = &'a AssetKey>) -> Vec<String> {
    let written = key.to_string();
    let found = assets.into_iter().filter_map(|asset| near_asset(&written, key.name(), asset));
    nearest(found.collect())
}

/// Up to three of `assets` whose name could have been meant by `name`, the nearest first.
pub fn similarly_named<'a>(name: &str, assets: impl IntoIterator<Item = &'a AssetKey>) -> Vec<String> {
    let found = assets.into_iter().filter_map(|asset| Some((near(name, asset.name())?, asset.to_string())));
    nearest(found.collect())
}

/// How far an asset is from what was written, and its name: few edits away, or of the same name elsewhere.
fn near_asset(written: &str, name: &str, asset: &AssetKey) -> Option<(usize, String)> {
    let shown = asset.to_string();
    let far = (name == asset.name()).then_some(usize::MAX);
    near(written, &shown).or(far).map(|edits| (edits, shown))
}

/// The first texts, each once.
fn nearest(found: BTreeSet<(usize, String)>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (_, text) in found {
        if texts.len() < MAX_NEAR_MISSES && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// The word that was probably meant, if one is near.
pub(super) fn nearest_word(written: &str, words: &[&'static str]) -> Option<&'static str> {
    words
        .iter()
        .filter_map(|word| near(written, word).map(|edits| (edits, *word)))
        .min()
        .map(|(_, word)| word)
}
