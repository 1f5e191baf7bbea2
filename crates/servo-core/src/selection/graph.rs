//! The assets that a selection chooses from, and how they depend on each other.

use std::collections::BTreeMap;

use super::set::AssetSet;
use crate::AssetKey;

/// The properties of an asset that selections can filter by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetInfo {
    /// Its name.
    pub key: AssetKey,
    /// Its tags, by their key.
    pub tags: BTreeMap<String, String>,
    /// The group it belongs to.
    pub group: Option<String>,
    /// Its owners.
    pub owners: Vec<String>,
    /// The technologies it is made with.
    pub kinds: Vec<String>,
}

impl AssetInfo {
    /// An asset of which nothing but the name is known.
    pub fn new(key: AssetKey) -> Self {
        Self { key, tags: BTreeMap::new(), group: None, owners: Vec::new(), kinds: Vec::new() }
    }
}

/// Assets in the order of their keys, and the positions of what each depends on. It may contain cycles: the planner
/// reports them, a selection merely ends.
#[derive(Debug, Clone)]
pub struct AssetGraph {
    assets: Vec<AssetInfo>,
    upstream: Vec<Vec<u32>>,
    downstream: Vec<Vec<u32>>,
}

/// The parts given do not make a graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Assets must ascend by key, each once.
    #[error("asset {second} comes after {first}: sort the assets by key, each once")]
    NotSorted {
        /// The earlier of the two.
        first: AssetKey,
        /// The one that should come before it.
        second: AssetKey,
    },
    /// There must be one list of dependencies for each asset.
    #[error("{lists} lists of upstream assets for {assets} assets: give one for each")]
    WrongLength {
        /// How many assets there are.
        assets: usize,
        /// How many lists were given.
        lists: usize,
    },
    /// A dependency points outside the graph.
    #[error("asset {asset} depends on position {upstream}, but there are {assets} assets")]
    UnknownUpstream {
        /// The asset with the dependency.
        asset: AssetKey,
        /// The position that does not exist.
        upstream: u32,
        /// How many assets there are.
        assets: usize,
    },
}

impl AssetGraph {
    /// Checks the parts: `assets` ascend by key, and `upstream[i]` holds the positions that asset `i` depends on.
    pub fn new(assets: Vec<AssetInfo>, upstream: Vec<Vec<u32>>) -> Result<Self, GraphError> {
        if let Some([first, second]) = assets.array_windows().find(|[first, second]| first.key >= second.key)
        {
            return Err(GraphError::NotSorted { first: first.key.clone(), second: second.key.clone() });
        }
        if upstream.len() != assets.len() {
            return Err(GraphError::WrongLength { assets: assets.len(), lists: upstream.len() });
        }
        let mut downstream = vec![Vec::new(); assets.len()];
        for (position, list) in (0u32..).zip(&upstream) {
            for &dependency in list {
                let Some(dependents) = downstream.get_mut(dependency as usize) else {
                    let asset = assets[position as usize].key.clone();
                    return Err(GraphError::UnknownUpstream {
                        asset,
                        upstream: dependency,
                        assets: assets.len(),
                    });
                };
                dependents.push(position);
            }
        }
        Ok(Self { assets, upstream, downstream })
    }

    /// The assets, in the order of their keys.
    pub fn assets(&self) -> &[AssetInfo] {
        &self.assets
    }

    /// The keys of a set, in order.
    pub fn keys<'g>(&'g self, set: &'g AssetSet) -> impl Iterator<Item = &'g AssetKey> + 'g {
        set.positions().map(|position| &self.assets[position].key)
    }

    /// The positions of the assets that depend on the one at `position`.
    pub fn readers(&self, position: u32) -> &[u32] {
        &self.downstream[position as usize]
    }

    pub(super) fn upstream(&self) -> &[Vec<u32>] {
        &self.upstream
    }

    pub(super) fn downstream(&self) -> &[Vec<u32>] {
        &self.downstream
    }
}
