//! The indexes of the state, and changes through them, so that they cannot disagree with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::{AssetKey, EventId, Millis, PartitionKey, RunId, Timestamp};

use super::index::{self, Due, Index};
use super::{Run, State, Statuses, Task, notifications};
use crate::fold::conditions as folded;

impl State {
    /// The indexes as they follow from the rows.
    pub(crate) fn fresh_index(&self) -> Index {
        let mut index = Index::of(self.runs.values().map(|run| &**run), &self.settings, &self.pauses);
        let due = self.schedules.values().filter_map(|schedule| Some((schedule.due_at()?, schedule.id)));
        index.due = due.map(|(at, id)| (at, Due::Schedule(id))).collect();
        let due = self.sensors.values().filter_map(|sensor| Some((sensor.due_at()?, Due::Sensor(sensor.id))));
        index.due.extend(due);
        let open = self.backfills.values().filter(|backfill| backfill.is_open());
        index.backfills = open.map(|backfill| backfill.id).collect();
        let due = self.freshness.iter().filter_map(|(asset, it)| Some((it.due_at?, asset.clone())));
        index.freshness = due.collect();
        index.expiring = self.all_expiring();
        index.chunks_at_work = self.backfills.values().map(|backfill| backfill.active.len() as u32).sum();
        let due = self.notifications.rows();
        index.notifications = due
            .filter_map(|row| Some((notifications::due_at(row)?, row.notification_id.as_str().into())))
            .collect();
        index
    }

    /// Fills the indexes from the runs: on load, and when settings or pauses have changed.
    pub(crate) fn rebuild_index(&mut self) {
        self.index = self.fresh_index();
    }

    /// Changes a task through its indexes, so that they cannot disagree with it.
    pub(crate) fn change_task(
        &mut self,
        run: RunId,
        task: u32,
        version: EventId,
        change: impl FnOnce(&mut Task),
    ) {
        let Some(owner) = self.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let subject = &mut owner.tasks[task as usize];
        let before = index::Place::of(subject, &self.settings);
        let old = subject.side_rows();
        let was_over = subject.state.is_terminal();
        change(subject);
        subject.version = subject.version.max(version);
        if subject.state.is_terminal() {
            subject.finished_event.get_or_insert(version);
        }
        self.changes.replaced(run, &subject.key, old, subject.side_rows());
        self.changes.of(run).task(task);
        let is_over = !was_over && subject.state.is_terminal() && subject.makes_data();
        let over = (is_over && !self.conditions.is_empty()).then(|| {
            let partition = subject.key.partition_str().map(Arc::from);
            (subject.assets().collect(), partition, subject.inputs_as_of)
        });
        let after = index::Place::of(subject, &self.settings);
        if before != after {
            self.index.replace(owner, task, &self.pauses, before, after);
        }
        let requested = owner.requested;
        if let Some((assets, partition, read)) = over {
            folded::task_over(self, assets, partition.as_ref(), requested, read, version);
        }
    }

    /// Changes of a task what no index knows, and what does not end it.
    pub(crate) fn touch_task(
        &mut self,
        run: RunId,
        task: u32,
        version: EventId,
        change: impl FnOnce(&mut Task),
    ) {
        let Some(owner) = self.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let subject = &mut owner.tasks[task as usize];
        change(subject);
        subject.version = subject.version.max(version);
        self.changes.of(run).task(task);
    }

    /// Notes an event that changed the row of a run, and nothing of it that an index knows.
    pub(crate) fn touch_run(&mut self, run: RunId, version: EventId) {
        let Some(owner) = self.runs.get_mut(&run).map(Arc::make_mut) else { return };
        owner.version = owner.version.max(version);
        self.changes.run(run);
    }

    /// Changes a run's own fields through its indexes.
    pub(crate) fn change_run(&mut self, run: RunId, version: EventId, change: impl FnOnce(&mut Run)) {
        let Some(owner) = self.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let before = index::run_keys_of(owner, &self.settings);
        change(owner);
        owner.version = owner.version.max(version);
        self.changes.run(run);
        let after = index::run_keys_of(owner, &self.settings);
        self.index.replace_run(run, before, after);
    }

    /// Changes the status of a partition through its index.
    pub(crate) fn change_status<R>(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        change: impl FnOnce(&mut Statuses) -> R,
    ) -> R {
        let Some(after) = self.expires_after(asset) else { return change(&mut self.statuses) };
        let expires = |statuses: &Statuses| statuses.get(asset, partition)?.expires_at(after);
        let before = expires(&self.statuses);
        let changed = change(&mut self.statuses);
        self.index.replace_expiry(asset, partition, before, expires(&self.statuses));
        changed
    }

    /// When the next partition expires.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.index.expiring.first().map(|(at, ..)| *at)
    }

    /// For how long a materialization of a deployed asset counts; none if for ever.
    pub(crate) fn expires_after(&self, asset: &AssetKey) -> Option<Millis> {
        self.definitions.get(asset)?.expires_after_ms
    }

    /// When partitions of assets expire, of all assets that say so.
    fn all_expiring(&self) -> BTreeSet<(Timestamp, AssetKey, Option<PartitionKey>)> {
        let assets = self.definitions.iter().filter(|(_, asset, _)| asset.expires_after_ms.is_some());
        assets.flat_map(|(key, _, _)| self.expiring(key)).collect()
    }

    /// When the partitions of an asset expire.
    pub(crate) fn expiring(
        &self,
        asset: &AssetKey,
    ) -> impl Iterator<Item = (Timestamp, AssetKey, Option<PartitionKey>)> {
        let after = self.expires_after(asset);
        let known = after.into_iter().flat_map(|_| self.statuses.of_asset(asset));
        known.filter_map(move |(text, status)| {
            let at = status.expires_at(after?)?;
            let key =
                text.map(|text| PartitionKey::parse(&text).expect("the text of a partition key parses"));
            Some((at, asset.clone(), key))
        })
    }
}
