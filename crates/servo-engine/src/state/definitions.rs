//! Deployed definitions: the newest deployment, and every asset that was ever deployed (ADR-057).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use servo_core::{AssetId, AssetKey, EventId, Timestamp};

use crate::definitions::{AssetDef, Definitions, MANIFEST_VERSION, Manifest, ResourceDef};
use crate::event::AssetsDeployed;
use crate::principal::Principal;
use crate::rows::{AssetDefinitionRow, DeploymentRow, Json};

/// A deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Its number, from 1.
    pub number: u64,
    /// Digest of the manifest.
    pub digest: Arc<str>,
    /// Release of the time zone database that its partitions follow.
    pub time_zones: Arc<str>,
    /// Name of the project.
    pub project: String,
    /// The author of the deployment.
    pub principal: Principal,
    /// When.
    pub deployed_at: Timestamp,
    /// The event.
    pub event_id: EventId,
    /// Number of assets.
    pub assets: u32,
    /// Number of new or changed assets.
    pub upserted: u32,
    /// Number of removed assets.
    pub removed: u32,
}

/// An asset that is or was deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Defined {
    id: AssetId,
    definition: Arc<AssetDef>,
    /// The deployment that last changed or removed it.
    number: u64,
    digest: Arc<str>,
    deployed_at: Timestamp,
    removed_at: Option<Timestamp>,
    version: EventId,
}

/// The definitions of a workspace. Those of removed assets stay, so that an asset that returns keeps its id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deployed {
    deployment: Option<Deployment>,
    assets: BTreeMap<AssetKey, Defined>,
    /// How many are not removed.
    live: u32,
    /// The validated definitions, computed on first use.
    checked: OnceLock<Option<Arc<Definitions>>>,
}

impl Deployed {
    pub(crate) fn deployment(&self) -> Option<&Deployment> {
        self.deployment.as_ref()
    }

    /// Number of the newest deployment; 0 before the first.
    pub(crate) fn number(&self) -> u64 {
        self.deployment.as_ref().map_or(0, |deployment| deployment.number)
    }

    /// Assets that are deployed now, by key.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, &Arc<AssetDef>, AssetId)> {
        let live = self.assets.iter().filter(|(_, asset)| asset.removed_at.is_none());
        live.map(|(key, asset)| (key, &asset.definition, asset.id))
    }

    /// The current definition of an asset.
    pub(crate) fn get(&self, key: &AssetKey) -> Option<&Arc<AssetDef>> {
        self.assets.get(key).filter(|asset| asset.removed_at.is_none()).map(|asset| &asset.definition)
    }

    /// Number of the deployment that last changed or removed an asset; 0 if it was never deployed.
    pub(crate) fn changed_in(&self, key: &AssetKey) -> u64 {
        self.assets.get(key).map_or(0, |asset| asset.number)
    }

    /// The event that last changed the definition of an asset.
    pub(crate) fn changed_by(&self, key: &AssetKey) -> Option<EventId> {
        self.assets.get(key).map(|asset| asset.version)
    }

    /// When an asset was last changed or removed by a deployment; none if it was never deployed.
    pub(crate) fn changed_at(&self, key: &AssetKey) -> Option<Timestamp> {
        self.assets.get(key).map(|asset| asset.removed_at.unwrap_or(asset.deployed_at))
    }

    /// The deployed assets, checked; none if they do not make sense to this version.
    pub(crate) fn checked(&self) -> Option<Arc<Definitions>> {
        self.checked.get_or_init(|| Definitions::check(self.manifest()).ok().map(Arc::new)).clone()
    }

    /// Reassembles the deployed manifest. Only the names of resources are known here.
    fn manifest(&self) -> Manifest {
        let resources: BTreeSet<&String> =
            self.iter().flat_map(|(_, asset, _)| asset.resources.iter().chain(&asset.io)).collect();
        Manifest {
            manifest_version: MANIFEST_VERSION,
            project: self
                .deployment
                .as_ref()
                .map_or_else(String::new, |deployment| deployment.project.clone()),
            assets: self.iter().map(|(_, asset, _)| AssetDef::clone(asset)).collect(),
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            resources: resources
                .into_iter()
                .map(|name| ResourceDef { name: name.clone(), kind: String::new() })
                .collect(),
        }
    }

    /// The id of an asset that is or was deployed.
    pub(crate) fn id(&self, key: &AssetKey) -> Option<AssetId> {
        self.assets.get(key).map(|asset| asset.id)
    }

    pub(crate) fn deploy(&mut self, payload: &AssetsDeployed, at: Timestamp, by: EventId, who: &Principal) {
        self.checked.take();
        for asset in &payload.upsert {
            let defined = Defined {
                id: asset.asset_id(),
                definition: asset.definition().clone(),
                number: payload.number,
                digest: payload.digest.clone(),
                deployed_at: at,
                removed_at: None,
                version: by,
            };
            let before = self.assets.insert(asset.key().clone(), defined);
            self.live += u32::from(before.is_none_or(|before| before.removed_at.is_some()));
        }
        for key in &payload.removed {
            let Some(asset) = self.assets.get_mut(key).filter(|asset| asset.removed_at.is_none()) else {
                continue;
            };
            asset.number = payload.number;
            asset.digest = payload.digest.clone();
            asset.removed_at = Some(at);
            asset.version = by;
            self.live -= 1;
        }
        self.deployment = Some(Deployment {
            number: payload.number,
            digest: payload.digest.clone(),
            time_zones: payload.time_zones.clone(),
            project: payload.project.clone(),
            principal: who.clone(),
            deployed_at: at,
            event_id: by,
            assets: self.live,
            upserted: payload.upsert.len() as u32,
            removed: payload.removed.len() as u32,
        });
    }

    pub(crate) fn deployment_row(&self) -> Option<DeploymentRow> {
        self.deployment.as_ref().map(|deployment| DeploymentRow {
            number: deployment.number,
            digest: deployment.digest.to_string(),
            time_zones: deployment.time_zones.to_string(),
            project: deployment.project.clone(),
            deployed_by: deployment.principal.clone(),
            assets: deployment.assets,
            assets_upserted: deployment.upserted,
            assets_removed: deployment.removed,
            deployed_at: deployment.deployed_at,
            row_version: deployment.event_id,
        })
    }

    pub(crate) fn rows(&self) -> Vec<AssetDefinitionRow> {
        self.assets.iter().map(|(key, asset)| row(key, asset)).collect()
    }

    pub(crate) fn row(&self, key: &AssetKey) -> Option<AssetDefinitionRow> {
        self.assets.get(key).map(|asset| row(key, asset))
    }

    pub(crate) fn restore(deployments: Vec<DeploymentRow>, rows: Vec<AssetDefinitionRow>) -> Self {
        let mut deployed = Self::default();
        // There is one; of more, the newest counts.
        if let Some(row) = deployments.into_iter().max_by_key(|row| row.number) {
            deployed.deployment = Some(Deployment {
                number: row.number,
                digest: row.digest.into(),
                time_zones: row.time_zones.into(),
                project: row.project,
                principal: row.deployed_by,
                deployed_at: row.deployed_at,
                event_id: row.row_version,
                assets: row.assets,
                upserted: row.assets_upserted,
                removed: row.assets_removed,
            });
        }
        let mut digests: BTreeMap<String, Arc<str>> = BTreeMap::new();
        for row in rows {
            let digest = digests
                .entry(row.deployment_digest)
                .or_insert_with_key(|digest| Arc::from(digest.as_str()))
                .clone();
            deployed.live += u32::from(row.removed_at.is_none());
            let defined = Defined {
                id: row.asset_id,
                definition: row.definition.0,
                number: row.deployment_number,
                digest,
                deployed_at: row.deployed_at,
                removed_at: row.removed_at,
                version: row.row_version,
            };
            deployed.assets.insert(row.asset_key, defined);
        }
        deployed
    }
}

fn row(key: &AssetKey, asset: &Defined) -> AssetDefinitionRow {
    AssetDefinitionRow {
        asset_key: key.clone(),
        asset_id: asset.id,
        definition: Json(asset.definition.clone()),
        code_version: asset.definition.code_version.clone(),
        group_name: asset.definition.group.clone(),
        deployment_number: asset.number,
        deployment_digest: asset.digest.to_string(),
        deployed_at: asset.deployed_at,
        removed_at: asset.removed_at,
        row_version: asset.version,
    }
}
