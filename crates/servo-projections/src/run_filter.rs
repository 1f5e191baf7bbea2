//! Which runs to list, and in which order.

use std::collections::BTreeMap;

use servo_core::{AssetKey, EventId, PartitionKey, RunId, Timestamp};
use servo_engine::rows::{RunRow, TaskRow};
use servo_engine::{Run, RunState};

/// Which runs to list, and in which order. Every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In one of these states; empty means any.
    pub states: Vec<RunState>,
    /// With an id that begins so.
    pub id_prefix: Option<String>,
    /// Of one of these kinds of sources; empty means any.
    pub sources: Vec<String>,
    /// With all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Asked for at this time or later.
    pub created_after: Option<Timestamp>,
    /// Asked for before this time.
    pub created_before: Option<Timestamp>,
    /// With a task that makes this asset, for the partition if one is given.
    pub asset: Option<AssetKey>,
    /// With a task for one of these partitions, as they are written or as people write them; empty means any.
    pub partitions: Vec<String>,
    /// Which come first.
    pub order: RunOrder,
}

/// Which runs come first in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// Those that were asked for last.
    #[default]
    NewestFirst,
    /// Those that were asked for first.
    OldestFirst,
}

impl RunOrder {
    /// A number that is higher for what comes earlier in the list.
    pub(crate) fn rank(self, place: EventId) -> u128 {
        match self {
            RunOrder::NewestFirst => place.to_u128(),
            RunOrder::OldestFirst => !place.to_u128(),
        }
    }

    /// Whether a run comes after the end of the page before.
    pub fn is_after(self, place: EventId, after: Option<EventId>) -> bool {
        after.is_none_or(|after| self.rank(place) < self.rank(after))
    }

    /// Sorts what has places into the order of the list.
    pub fn sort<T>(self, items: &mut [T], place: impl Fn(&T) -> EventId) {
        items.sort_by_key(|item| std::cmp::Reverse(self.rank(place(item))));
    }
}

impl RunFilter {
    /// Whether a run in memory is wanted.
    pub fn accepts_run(&self, run: &Run) -> bool {
        self.accepts_id(run.id)
            && self.accepts(run.state, run.source.kind(), run.created_at, &run.labels)
            && (!self.asks_for_tasks()
                || run.tasks.iter().any(|task| {
                    self.accepts_task(task.key.asset_str(), task.key.partition_str(), &task.options.outputs)
                }))
    }

    /// Whether a run is wanted, its tasks aside.
    pub fn accepts_row(&self, run: &RunRow) -> bool {
        self.accepts_id(run.run_id) && self.accepts(run.state, run.source.kind(), run.created_at, &run.labels)
    }

    pub(crate) fn accepts_id(&self, id: RunId) -> bool {
        self.id_prefix.as_ref().is_none_or(|prefix| id.to_string().starts_with(prefix.as_str()))
    }

    /// Whether one of the tasks of a run is wanted.
    pub fn accepts_tasks<'a>(&self, mut tasks: impl Iterator<Item = &'a TaskRow>) -> bool {
        let is_wanted = |task: &TaskRow| {
            self.accepts_task(&task.asset_key, task.partition_key.as_deref(), &task.options.outputs)
        };
        !self.asks_for_tasks() || tasks.any(is_wanted)
    }

    pub(crate) fn accepts(
        &self,
        state: RunState,
        source: &str,
        created_at: Timestamp,
        labels: &BTreeMap<String, String>,
    ) -> bool {
        (self.states.is_empty() || self.states.contains(&state))
            && (self.sources.is_empty() || self.sources.iter().any(|wanted| wanted == source))
            && self.created_after.is_none_or(|after| created_at >= after)
            && self.created_before.is_none_or(|before| created_at < before)
            && self.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
    }

    /// Whether runs must have certain tasks.
    pub(crate) fn asks_for_tasks(&self) -> bool {
        self.asset.is_some() || !self.partitions.is_empty()
    }

    pub(crate) fn accepts_task(&self, asset: &str, partition: Option<&str>, outputs: &[AssetKey]) -> bool {
        let makes = |wanted: &AssetKey| asset == wanted.canonical() || outputs.contains(wanted);
        self.asset.as_ref().is_none_or(makes) && self.accepts_partition(partition)
    }

    fn accepts_partition(&self, partition: Option<&str>) -> bool {
        if self.partitions.is_empty() {
            return true;
        }
        let Some(partition) = partition else { return false };
        let is_wanted = |text: &str| self.partitions.iter().any(|wanted| wanted == text);
        is_wanted(partition) || PartitionKey::parse(partition).is_ok_and(|key| is_wanted(&key.to_string()))
    }

    /// The lowest place that a wanted run can have: ids of events are never older than their times.
    pub(crate) fn lowest(&self) -> EventId {
        let after = self.created_after.and_then(|after| u64::try_from(after.as_millis()).ok());
        after.map_or(EventId::NIL, |after| EventId::from_parts(after, 0))
    }
}
