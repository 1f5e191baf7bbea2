//! Commands about what is deployed, and about partitions.

use std::sync::Arc;

use servo_core::{AssetKey, EventId, PartitionKey};

use crate::definitions::{AssetDef, NotificationDef, ScheduleDef, SensorDef};
use crate::event::KeyList;
use crate::lifecycle::AttemptOutcome;
use crate::principal::Caller;
use crate::requests::PlanBasis;

/// Work with these definitions from now on.
#[derive(Debug, Clone)]
pub struct Deploy {
    /// Digest of the manifest: the same as the deployed one, with the same time zones, is no deployment.
    pub digest: Arc<str>,
    /// Release of the time zone database that its partitions follow.
    pub time_zones: Arc<str>,
    /// Name of the project.
    pub project: String,
    /// All its assets, checked before, in any order.
    pub assets: Vec<Arc<AssetDef>>,
    /// All its schedules, checked before, in any order.
    pub schedules: Vec<Arc<ScheduleDef>>,
    /// All its sensors, checked before, in any order.
    pub sensors: Vec<Arc<SensorDef>>,
    /// All its notification rules, checked before, in any order.
    pub notifications: Vec<Arc<NotificationDef>>,
    /// Who asks.
    pub caller: Caller,
}

/// Add and remove keys of dynamic partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePartitions {
    /// The name that definitions use.
    pub name: String,
    /// Keys to add, in any order; those that are there already do not matter.
    pub add: Vec<String>,
    /// Keys to remove, in any order; those that are not there do not matter.
    pub remove: Vec<String>,
    /// Who asks.
    pub caller: Caller,
}

/// Forget the status of partitions. Made by [`crate::requests::prepare_wipe`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WipePartitions {
    /// The asset.
    pub asset: AssetKey,
    /// Its partitions; none for an asset without partitions. Those of which nothing is known do not matter.
    pub partitions: Vec<Option<PartitionKey>>,
    /// Whether their data stays where it is.
    pub keep_data: bool,
    /// Whether attempts that are at work on them do not matter: what they make does not count.
    pub force: bool,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

/// Say how partitions fare. Made by [`crate::requests::prepare_mark`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkPartitions {
    /// The asset.
    pub asset: AssetKey,
    /// Its partitions; none if it has no partitions.
    pub partitions: KeyList,
    /// Materialized, or failed.
    pub outcome: AttemptOutcome,
    /// Why.
    pub reason: String,
    /// The parts of the state that these were found with.
    pub basis: PlanBasis,
    /// Who asks.
    pub caller: Caller,
}

/// Undo a wipe that kept the data, or a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestorePartitions {
    /// The asset.
    pub asset: AssetKey,
    /// The event that is undone; the last one that can be if absent.
    pub change: Option<EventId>,
    /// Who asks.
    pub caller: Caller,
}

/// Give an asset another name: what was made of it, and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenameAsset {
    /// The name that it has.
    pub from: AssetKey,
    /// The name from now on.
    pub to: AssetKey,
    /// Who asks.
    pub caller: Caller,
}
