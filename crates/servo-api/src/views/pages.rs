//! Pages of lists, under the names that they are described by.

use super::{Asset, Partition, Quarantined, Run, Task};
use crate::pages::Page;

/// Runs.
pub type RunPage = Page<Run>;
/// Tasks of a run.
pub type TaskPage = Page<Task>;
/// Assets.
pub type AssetPage = Page<Asset>;
/// Partitions of an asset.
pub type PartitionPage = Page<Partition>;
/// A page of materializations that wait for review.
pub type QuarantinedPage = Page<Quarantined>;
