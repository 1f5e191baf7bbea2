//! The assets of a run as a forest: each below the asset that it waits for longest.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::{AssetKey, TaskKey};

/// Characters of indentation beyond which nothing is indented further.
const DEEPEST: usize = 30;

/// An asset with its place in the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeAsset {
    /// Lines that lead to it.
    pub(crate) guide: String,
    /// Its name.
    pub(crate) name: String,
}

impl ShapeAsset {
    /// Characters of guide and name.
    pub(crate) fn label_width(&self) -> usize {
        self.guide.chars().count() + self.name.chars().count()
    }
}

/// The assets of a run in the order in which they are shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    assets: Vec<ShapeAsset>,
    positions: BTreeMap<String, usize>,
}

impl Shape {
    /// The shape of these assets; `upstream` says what each waits for.
    pub(crate) fn new(
        assets: impl IntoIterator<Item = AssetKey>,
        upstream: &BTreeMap<AssetKey, Vec<AssetKey>>,
    ) -> Self {
        let assets: BTreeSet<AssetKey> = assets.into_iter().collect();
        let mut waits_for: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for asset in &assets {
            let above = upstream.get(asset).into_iter().flatten();
            let above = above.filter(|above| *above != asset && assets.contains(above));
            waits_for.insert(asset.canonical(), above.map(AssetKey::canonical).collect());
        }
        let depths = depths(&waits_for);
        let mut children: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
        for (asset, on) in &waits_for {
            let parent = on.iter().copied().max_by_key(|above| depths.get(above).copied().unwrap_or(0));
            children.entry(parent).or_default().push(asset);
        }
        let mut shape = Self::default();
        shape.add(None, "", &children);
        shape
    }

    /// The assets.
    pub(crate) fn assets(&self) -> &[ShapeAsset] {
        &self.assets
    }

    /// Where the asset of a task is shown.
    pub(crate) fn position(&self, task: &TaskKey) -> Option<usize> {
        self.positions.get(task.asset_str()).copied()
    }

    fn add<'a>(
        &mut self,
        parent: Option<&'a str>,
        indent: &str,
        children: &BTreeMap<Option<&'a str>, Vec<&'a str>>,
    ) {
        // A stack of its own: a chain may be thousands long.
        let mut stack: Vec<(&'a str, String, String)> = Vec::new();
        let push = |stack: &mut Vec<(&'a str, String, String)>, of: Option<&'a str>, indent: &str| {
            let found = children.get(&of).map(Vec::as_slice).unwrap_or_default();
            for (index, child) in found.iter().enumerate().rev() {
                let is_last = index + 1 == found.len();
                let (branch, below) = match (of, is_last) {
                    (None, _) => ("", ""),
                    (Some(_), _) if indent.chars().count() >= DEEPEST => ("", ""),
                    (Some(_), true) => ("└─ ", "   "),
                    (Some(_), false) => ("├─ ", "│  "),
                };
                stack.push((child, format!("{indent}{branch}"), format!("{indent}{below}")));
            }
        };
        push(&mut stack, parent, indent);
        while let Some((asset, guide, below)) = stack.pop() {
            self.positions.insert(asset.to_owned(), self.assets.len());
            self.assets.push(ShapeAsset { guide, name: asset.replacen('/', ".", 1) });
            push(&mut stack, Some(asset), &below);
        }
    }
}

/// The longest way to each asset.
fn depths<'a>(waits_for: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeMap<&'a str, usize> {
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    for &start in waits_for.keys() {
        let mut stack = vec![start];
        while let Some(&asset) = stack.last() {
            let above = waits_for.get(asset).map(Vec::as_slice).unwrap_or_default();
            // An asset that waits for itself through others, over partitions, counts as known on the way.
            let unknown = above.iter().find(|above| !depths.contains_key(*above) && !stack.contains(above));
            if let Some(next) = unknown {
                stack.push(next);
                continue;
            }
            let depth = above.iter().filter_map(|above| depths.get(above)).max().map_or(0, |depth| depth + 1);
            depths.insert(asset, depth);
            stack.pop();
        }
    }
    depths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(edges: &[(&str, &str)]) -> Vec<String> {
        let key = |name: &str| AssetKey::parse(&format!("a/{name}")).unwrap();
        let mut upstream: BTreeMap<AssetKey, Vec<AssetKey>> = BTreeMap::new();
        for (down, up) in edges {
            let on = upstream.entry(key(down)).or_default();
            if !up.is_empty() {
                on.push(key(up));
            }
        }
        let shape = Shape::new(upstream.keys().cloned(), &upstream);
        shape.assets().iter().map(|asset| format!("{}{}", asset.guide, asset.name)).collect()
    }

    #[test]
    fn assets_stand_below_what_they_wait_for() {
        let drawn =
            shape(&[("raw", ""), ("clean", "raw"), ("daily", "clean"), ("weekly", "clean"), ("x", "")]);
        assert_eq!(drawn, ["a.raw", "└─ a.clean", "   ├─ a.daily", "   └─ a.weekly", "a.x"]);
    }

    #[test]
    fn of_several_the_deepest_is_the_parent() {
        let drawn = shape(&[("raw", ""), ("clean", "raw"), ("report", "raw"), ("report", "clean")]);
        assert_eq!(drawn, ["a.raw", "└─ a.clean", "   └─ a.report"]);
    }

    #[test]
    fn a_chain_of_thousands_is_no_problem() {
        let names: Vec<String> = (0..5_000).map(|n| format!("n{n:04}")).collect();
        let edges: Vec<(&str, &str)> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), if at == 0 { "" } else { names[at - 1].as_str() }))
            .collect();
        assert_eq!(shape(&edges).len(), 5_000);
    }
}
