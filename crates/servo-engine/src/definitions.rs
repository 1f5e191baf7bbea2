//! The validated definitions of a project.
//!
//! [`Manifest`] is what the SDK wrote. [`Definitions::check`] reports every problem of it at once, each with its place
//! and what to do, or gives the assets, their partitions, and which of them reads what through which mapping. Nothing
//! changes before a manifest has passed.

mod automation;
mod conditions;
mod cycles;
mod dependencies;
mod limits;
mod manifest;
mod names;
mod notifications;
mod partitions;
mod problem;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use automation::SENSOR_SECRETS;
pub(crate) use automation::foreign_sensor;
pub use conditions::Condition;
pub(crate) use conditions::opening_and_closing;
pub use manifest::{
    AssetDef, CheckDef, CheckKind, Compute, ConfigDef, ConfigField, DepDef, FreshnessDef, IfRunning,
    Isolation, Location, MANIFEST_VERSION, Manifest, Multi, OnBlocked, Phase, ResourceDef, ScheduleDef,
    SecretDef, SensorDef, Severity, VerifyDef, VerifyScheme,
};
pub(crate) use notifications::foreign;
pub use notifications::{
    Destination, NotificationDef, SHARED_SECRETS, SmtpSecurity, TextOrSecret, secret_in,
};
pub use problem::{DefinitionProblem, DefinitionProblems};

use servo_core::partitions::{Mapping, MappingDef};
use servo_core::selection::{AssetGraph, AssetInfo};
use servo_core::{AssetKey, Partitions, PartitionsDef};

use crate::conditions::{Conditions, compile};
use problem::Report;

/// The most assets that a manifest may have.
pub const MAX_ASSETS: usize = 10_000;

/// One asset that makes sense.
#[derive(Debug, Clone)]
pub struct Asset {
    /// Its name.
    pub key: AssetKey,
    /// The declaration.
    pub def: Arc<AssetDef>,
    /// Its partitions; none if it is one piece.
    pub partitions: Option<Arc<Partitions>>,
    /// Dependencies, in the order of declaration.
    pub deps: Vec<Dep>,
}

/// A dependency of an asset.
#[derive(Debug, Clone)]
pub struct Dep {
    /// Position of the asset depended on.
    pub asset: u32,
    /// The parameter that receives its data.
    pub parameter: Option<String>,
    /// How it was declared or inferred.
    pub def: MappingDef,
    /// From partitions of the one to those of the other.
    pub mapping: Arc<Mapping>,
    /// Partitions that were never made are left out.
    pub available: bool,
    /// The behaviour in a run in which a check blocks it.
    pub on_blocked: OnBlocked,
}

/// Checked definitions of a project.
#[derive(Debug, Clone)]
pub struct Definitions {
    project: String,
    assets: Vec<Asset>,
    graph: AssetGraph,
    /// For each asset, the position of the first asset that the same function makes.
    makers: Vec<u32>,
    schedules: Vec<Arc<ScheduleDef>>,
    sensors: Vec<Arc<SensorDef>>,
    notifications: Vec<Arc<NotificationDef>>,
    resources: Vec<ResourceDef>,
    conditions: Arc<Conditions>,
}

impl Definitions {
    /// The definitions of a manifest, or all its problems.
    pub fn check(manifest: Manifest) -> Result<Self, DefinitionProblems> {
        let mut report = Report::default();
        if !limits::readable(&manifest, &mut report) {
            return Err(report.finish());
        }
        let Manifest { project, assets, schedules, sensors, notifications, resources, .. } = manifest;
        for asset in &assets {
            limits::check(asset, &resources, &mut report);
        }
        let named = names::check(assets, &mut report);
        names::check_former(&named, &mut report);
        let partitions = partitions::check(&named, &mut report);
        let makers = names::makers(&named, &mut report);
        let deps = dependencies::check(&named, &partitions, &mut report);
        let upstream: Vec<Vec<u32>> =
            deps.iter().map(|deps| deps.iter().map(|dep| dep.asset).collect()).collect();
        cycles::check(&named, &upstream, &makers, &mut report);
        let infos = named.iter().map(names::Named::info).collect();
        let graph = AssetGraph::new(infos, upstream).expect("assets were sorted and dependencies resolved");
        automation::check(&schedules, &sensors, &notifications, &resources, &graph, &mut report);
        if !report.is_empty() {
            return Err(report.finish());
        }
        let assets: Vec<Asset> = named
            .into_iter()
            .zip(partitions)
            .zip(deps)
            .map(|((named, partitions), deps)| Asset {
                key: named.key,
                def: named.def,
                partitions,
                deps: deps.into_iter().filter_map(dependencies::Resolved::into_dep).collect(),
            })
            .collect();
        let schedules = schedules.into_iter().map(Arc::new).collect();
        let sensors = sensors.into_iter().map(Arc::new).collect();
        let conditions = Arc::new(compile(&assets, &makers, |asset| graph.readers(asset).to_vec()));
        let notifications = notifications.into_iter().map(Arc::new).collect();
        Ok(Self { project, assets, graph, makers, schedules, sensors, notifications, resources, conditions })
    }

    /// Checks a schedule that is not part of the manifest, against these assets.
    pub fn check_schedule(&self, schedule: &ScheduleDef) -> Result<(), DefinitionProblems> {
        let mut report = Report::default();
        automation::check_schedule(schedule, &self.graph, &mut report);
        if report.is_empty() { Ok(()) } else { Err(report.finish()) }
    }

    /// Checks a sensor that is not part of the manifest, against these assets.
    pub fn check_sensor(&self, sensor: &SensorDef) -> Result<(), DefinitionProblems> {
        let mut report = Report::default();
        automation::check_sensor(sensor, &self.graph, &mut report);
        if report.is_empty() { Ok(()) } else { Err(report.finish()) }
    }

    /// Checks a notification rule that is not part of the manifest, against these assets.
    pub fn check_notification(&self, rule: &NotificationDef) -> Result<(), DefinitionProblems> {
        let mut report = Report::default();
        notifications::check(rule, &self.graph, &mut report);
        if report.is_empty() { Ok(()) } else { Err(report.finish()) }
    }

    /// The name of the project.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// The assets, in the order of their keys.
    pub fn assets(&self) -> &[Asset] {
        &self.assets
    }

    /// The asset at a position.
    pub fn asset(&self, position: u32) -> &Asset {
        &self.assets[position as usize]
    }

    /// Where an asset stands.
    pub fn position(&self, key: &AssetKey) -> Option<u32> {
        self.assets.binary_search_by(|asset| asset.key.cmp(key)).ok().map(|found| found as u32)
    }

    /// The assets as selections see them.
    pub fn graph(&self) -> &AssetGraph {
        &self.graph
    }

    /// The properties of an asset that selections can filter by.
    pub fn info(&self, position: u32) -> &AssetInfo {
        &self.graph.assets()[position as usize]
    }

    /// The position of the first asset that the function of this one makes.
    pub(crate) fn maker(&self, position: u32) -> u32 {
        self.makers[position as usize]
    }

    /// The positions of all assets that the function of this one makes; only itself for most.
    pub fn made_with(&self, position: u32) -> impl Iterator<Item = u32> + '_ {
        let maker = self.makers[position as usize];
        let is_multi = self.asset(position).def.multi.is_some();
        let others = (0u32..).zip(&self.makers).filter(move |(_, of)| is_multi && **of == maker);
        let alone = (!is_multi).then_some(position);
        alone.into_iter().chain(others.map(|(other, _)| other))
    }

    /// The dependencies of assets that one function makes, each once. Outputs of one function do not wait for each
    /// other.
    pub fn deps_together(&self, positions: &[u32]) -> Vec<&Dep> {
        let mut deps: Vec<&Dep> = Vec::new();
        for &position in positions {
            for dep in &self.asset(position).deps {
                let is_inside = dep.asset != position && positions.contains(&dep.asset);
                let is_known = |known: &&Dep| {
                    known.asset == dep.asset
                        && known.parameter == dep.parameter
                        && Arc::ptr_eq(&known.mapping, &dep.mapping)
                };
                if !is_inside && !deps.iter().any(is_known) {
                    deps.push(dep);
                }
            }
        }
        deps
    }

    /// The names of dynamic partitions that assets have.
    pub fn dynamic_partitions(&self) -> BTreeSet<&str> {
        let defs = self.assets.iter().filter_map(|asset| asset.def.partitions.as_ref());
        defs.flat_map(PartitionsDef::dynamic_names).collect()
    }

    /// The schedules, by name.
    pub fn schedules(&self) -> &[Arc<ScheduleDef>] {
        &self.schedules
    }

    /// The sensors, by name.
    pub fn sensors(&self) -> &[Arc<SensorDef>] {
        &self.sensors
    }

    /// The automation conditions of its assets, ready to be evaluated.
    pub(crate) fn conditions(&self) -> &Arc<Conditions> {
        &self.conditions
    }

    /// The notification rules, by name.
    pub fn notifications(&self) -> &[Arc<NotificationDef>] {
        &self.notifications
    }

    /// The resources, by name.
    pub fn resources(&self) -> &[ResourceDef] {
        &self.resources
    }
}
