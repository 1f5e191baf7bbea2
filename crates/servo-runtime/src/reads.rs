//! Reads: memory for what is hot, tables for what is history, never the log (P5).
//!
//! Memory is read before the manifest. A run that moves from one to the other in between is then seen twice, and
//! merged, rather than missed.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, BackfillId, EventId, RuleId, RunId, ScheduleId, SensorId};
use servo_engine::rows::{
    AuditRow, BackfillChunkRow, BackfillRow, CheckResultRow, ConditionEvaluationRow, MaterializationRow,
    NotificationRow, RunRow, ScheduleTickRow, SensorEvalRow,
};
use servo_engine::{Backfill, Run, State};
use servo_projections::{
    AuditFilter, BackfillFilter, CheckFilter, CheckPlace, Projection, RunFilter, merge_page,
    newest_checks_first,
};

use crate::error::Error;
use crate::workspace::{RunDetail, Workspace};

impl Workspace {
    /// A page of runs in the order of the filter, beginning after `after`.
    pub async fn runs(
        &self,
        after: Option<EventId>,
        limit: usize,
        filter: RunFilter,
    ) -> Result<Vec<RunRow>, Error> {
        let wanted = filter.clone();
        let mut hot = self
            .read(move |state| {
                let mut found: Vec<&Run> = state
                    .runs()
                    .chain(state.ended_unwritten())
                    .filter(|run| wanted.order.is_after(run.requested, after) && wanted.accepts_run(run))
                    .collect();
                wanted.order.sort(&mut found, |run| run.requested);
                found.truncate(limit);
                found.into_iter().map(Run::row).collect::<Vec<_>>()
            })
            .await?;
        let moving = self.inner.flushes.in_flight();
        for flush in &moving {
            let is_wanted = |run: &&RunRow| {
                filter.order.is_after(run.requested_event_id, after)
                    && filter.accepts_row(run)
                    && filter.accepts_tasks(flush.tasks.iter().filter(|task| task.run_id == run.run_id))
            };
            hot.extend(flush.runs.iter().filter(is_wanted).cloned());
        }
        let history = match self.projection() {
            Some(projection) => projection.runs_after(after, limit, &filter).await?,
            None => Vec::new(),
        };
        Ok(merge_page(hot, history, limit, filter.order))
    }

    /// A page of acts, the newest first, beginning before `before`.
    pub async fn audit(
        &self,
        before: Option<EventId>,
        limit: usize,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditRow>, Error> {
        let is_wanted =
            |row: &&AuditRow| before.is_none_or(|before| row.event_id < before) && filter.accepts(row);
        let newest = |state: &servo_engine::State| {
            state.unwritten_audit().rev().filter(is_wanted).take(limit).cloned().collect::<Vec<_>>()
        };
        let mut found = self.read(newest).await?;
        for flush in self.inner.flushes.in_flight() {
            found.extend(flush.audit.iter().filter(is_wanted).cloned());
        }
        if let Some(projection) = self.projection() {
            found.extend(projection.audit_before(before, limit, filter).await?);
        }
        found.sort_by_key(|row| std::cmp::Reverse(row.event_id));
        found.dedup_by_key(|row| row.event_id);
        found.truncate(limit);
        Ok(found)
    }

    /// The row of one run, hot or old.
    pub async fn run_row(&self, id: RunId) -> Result<Option<RunRow>, Error> {
        let hot = self
            .read(move |state| {
                let ended = || state.ended_unwritten().find(|run| run.id == id);
                state.run(id).or_else(ended).map(Run::row)
            })
            .await?;
        if hot.is_some() {
            return Ok(hot);
        }
        for moving in self.inner.flushes.in_flight() {
            if let Some(run) = moving.runs.iter().find(|run| run.run_id == id) {
                return Ok(Some(run.clone()));
            }
        }
        match self.projection() {
            Some(projection) => Ok(projection.run(id).await?),
            None => Ok(None),
        }
    }

    /// One run with its tasks and edges, hot or old.
    pub async fn run(&self, id: RunId) -> Result<Option<RunDetail>, Error> {
        let hot = self
            .read(move |state| {
                let run = state.run(id).or_else(|| state.ended_unwritten().find(|run| run.id == id))?;
                let (tasks, edges, sets) = (run.task_rows(), run.edge_rows(), run.set_rows());
                Some(RunDetail { run: run.row(), tasks, edges, sets })
            })
            .await?;
        if hot.is_some() {
            return Ok(hot);
        }
        for moving in self.inner.flushes.in_flight() {
            let Some(run) = moving.runs.iter().find(|run| run.run_id == id) else { continue };
            return Ok(Some(RunDetail {
                run: run.clone(),
                tasks: moving.tasks.iter().filter(|task| task.run_id == id).cloned().collect(),
                edges: moving.edges.iter().filter(|edge| edge.run_id == id).cloned().collect(),
                sets: moving.sets.iter().filter(|set| set.run_id == id).cloned().collect(),
            }));
        }
        let Some(projection) = self.projection() else { return Ok(None) };
        let Some(run) = projection.run(id).await? else { return Ok(None) };
        let tasks = projection.tasks_of(&run).await?;
        let edges = projection.edges_of(&run).await?;
        let sets = projection.dep_sets_of(&run).await?;
        Ok(Some(RunDetail { run, tasks, edges, sets }))
    }

    /// The newest ticks of a schedule that are accepted, from the last to the first, beginning before an event.
    pub async fn schedule_ticks(
        &self,
        schedule: ScheduleId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&ScheduleTickRow) -> bool + Sync,
    ) -> Result<Vec<ScheduleTickRow>, Error> {
        let is_wanted = |row: &&ScheduleTickRow| {
            row.schedule_id == schedule
                && before.is_none_or(|before| row.row_version < before)
                && accepts(row)
        };
        let hot = self
            .read(|state| state.recent_ticks().filter(is_wanted).take(limit).cloned().collect::<Vec<_>>());
        let mut found: BTreeMap<EventId, ScheduleTickRow> =
            hot.await?.into_iter().map(|row| (row.row_version, row)).collect();
        for moving in self.inner.flushes.in_flight() {
            found.extend(moving.ticks.iter().filter(is_wanted).map(|row| (row.row_version, row.clone())));
        }
        if let Some(projection) = self.projection().filter(|_| found.len() < limit) {
            let old = projection.schedule_ticks(schedule, before, limit, &accepts).await?;
            found.extend(old.into_iter().map(|row| (row.row_version, row)));
        }
        Ok(found.into_values().rev().take(limit).collect())
    }

    /// The newest evaluations of the condition of an asset, from the last to the first, beginning before an event.
    pub async fn condition_evaluations(
        &self,
        asset: &AssetKey,
        before: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<ConditionEvaluationRow>, Error> {
        let is_wanted = |row: &&ConditionEvaluationRow| {
            row.asset_key == *asset && before.is_none_or(|before| row.row_version < before)
        };
        let hot = self.read(|state| {
            let rows = state.recent_condition_evaluations().filter(is_wanted);
            rows.take(limit).cloned().collect::<Vec<_>>()
        });
        let mut found: BTreeMap<EventId, ConditionEvaluationRow> =
            hot.await?.into_iter().map(|row| (row.row_version, row)).collect();
        for moving in self.inner.flushes.in_flight() {
            let rows = moving.evaluations.iter().filter(is_wanted);
            found.extend(rows.map(|row| (row.row_version, row.clone())));
        }
        if let Some(projection) = self.projection().filter(|_| found.len() < limit) {
            let old = projection.condition_evaluations(asset, before, limit).await?;
            found.extend(old.into_iter().map(|row| (row.row_version, row)));
        }
        Ok(found.into_values().rev().take(limit).collect())
    }

    /// The newest evaluations of a sensor that are accepted, from the last to the first, beginning before an event.
    pub async fn sensor_evals(
        &self,
        sensor: SensorId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&SensorEvalRow) -> bool + Sync,
    ) -> Result<Vec<SensorEvalRow>, Error> {
        let is_wanted = |row: &&SensorEvalRow| {
            row.sensor_id == sensor && before.is_none_or(|before| row.row_version < before) && accepts(row)
        };
        let hot = self
            .read(|state| state.recent_evals().filter(is_wanted).take(limit).cloned().collect::<Vec<_>>());
        let mut found: BTreeMap<EventId, SensorEvalRow> =
            hot.await?.into_iter().map(|row| (row.row_version, row)).collect();
        for moving in self.inner.flushes.in_flight() {
            found.extend(moving.evals.iter().filter(is_wanted).map(|row| (row.row_version, row.clone())));
        }
        if let Some(projection) = self.projection().filter(|_| found.len() < limit) {
            let old = projection.sensor_evals(sensor, before, limit, &accepts).await?;
            found.extend(old.into_iter().map(|row| (row.row_version, row)));
        }
        Ok(found.into_values().rev().take(limit).collect())
    }

    /// The newest notifications of a rule that are accepted, from the last to the first, beginning before an event.
    pub async fn notifications(
        &self,
        rule: RuleId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&NotificationRow) -> bool + Sync,
    ) -> Result<Vec<NotificationRow>, Error> {
        let is_wanted = |row: &NotificationRow| {
            row.rule_id == rule && before.is_none_or(|before| row.row_version < before) && accepts(row)
        };
        let hot = self.read(|state| {
            let recent = state.recent_notifications().into_iter().filter(|row| is_wanted(row));
            recent.take(limit).cloned().collect::<Vec<_>>()
        });
        // One event may make several, and one that waits changes: the newest form of each counts.
        let mut found: BTreeMap<String, NotificationRow> = BTreeMap::new();
        if let Some(projection) = self.projection() {
            let old = projection.notifications(rule, before, limit, &accepts).await?;
            found.extend(old.into_iter().map(|row| (row.notification_id.clone(), row)));
        }
        for moving in self.inner.flushes.in_flight() {
            let moved = moving.notifications.iter().filter(|row| is_wanted(row)).cloned();
            found.extend(moved.map(|row| (row.notification_id.clone(), row)));
        }
        found.extend(hot.await?.into_iter().map(|row| (row.notification_id.clone(), row)));
        let mut found: Vec<NotificationRow> = found.into_values().collect();
        found.sort_by(|a, b| (b.row_version, &b.notification_id).cmp(&(a.row_version, &a.notification_id)));
        found.truncate(limit);
        Ok(found)
    }

    /// A backfill, hot or old.
    pub async fn backfill(&self, id: BackfillId) -> Result<Option<Arc<Backfill>>, Error> {
        let hot = self.read(move |state| {
            let left = state.ended_backfills().find(|row| row.backfill_id == id);
            let known = state.backfill(id).cloned();
            known.or_else(|| left.map(|row| Backfill::from_row(row.clone())))
        });
        if let Some(known) = hot.await? {
            return Ok(Some(Arc::new(known)));
        }
        for moving in self.inner.flushes.in_flight() {
            if let Some(row) = moving.backfills.iter().find(|row| row.backfill_id == id) {
                return Ok(Some(Arc::new(Backfill::from_row(row.clone()))));
            }
        }
        let Some(projection) = self.projection() else { return Ok(None) };
        Ok(projection.backfill(id).await?.map(|row| Arc::new(Backfill::from_row(row))))
    }

    /// The backfill that an event has created, hot or old.
    pub async fn backfill_created_by(&self, event: EventId) -> Result<Option<Arc<Backfill>>, Error> {
        let hot = self.read(move |state| {
            let left = state.ended_backfills().find(|row| row.created_event_id == event);
            let known = state.backfills().rev().find(|backfill| backfill.created == event);
            known.cloned().or_else(|| left.map(|row| Backfill::from_row(row.clone())))
        });
        if let Some(known) = hot.await? {
            return Ok(Some(Arc::new(known)));
        }
        for moving in self.inner.flushes.in_flight() {
            if let Some(row) = moving.backfills.iter().find(|row| row.created_event_id == event) {
                return Ok(Some(Arc::new(Backfill::from_row(row.clone()))));
            }
        }
        let Some(projection) = self.projection() else { return Ok(None) };
        let after = EventId::from_u128(event.to_u128() + 1);
        let found = projection.backfills(Some(after), 1, |row| row.created_event_id == event).await?;
        Ok(found.into_iter().next().map(|row| Arc::new(Backfill::from_row(row))))
    }

    /// A page of backfills in the order of the filter, beginning after one.
    pub async fn backfills(
        &self,
        after: Option<BackfillId>,
        limit: usize,
        filter: &BackfillFilter,
    ) -> Result<Vec<Arc<Backfill>>, Error> {
        let mut filter = filter.clone();
        if let Some(assets) = &mut filter.assets {
            let former = |state: &State| assets.iter().flat_map(|name| state.former_names(name)).collect();
            let former: Vec<AssetKey> = self.read(former).await?;
            assets.extend(former);
        }
        let is_after = |id: BackfillId| {
            after.is_none_or(|after| if filter.oldest_first { id > after } else { id < after })
        };
        let is_wanted = |row: &&BackfillRow| is_after(row.backfill_id) && filter.accepts_row(row);
        let hot = self.read(|state| {
            let known = state.backfills().filter(|it| is_after(it.id) && filter.accepts(it));
            let mut found: Vec<Backfill> = match filter.oldest_first {
                true => known.take(limit).cloned().collect(),
                false => known.rev().take(limit).cloned().collect(),
            };
            let left = state.ended_backfills().filter(is_wanted);
            found.extend(left.map(|row| Backfill::from_row(row.clone())));
            found
        });
        let mut found: BTreeMap<BackfillId, Arc<Backfill>> =
            hot.await?.into_iter().map(|backfill| (backfill.id, Arc::new(backfill))).collect();
        let mut add = |row: BackfillRow| {
            found.entry(row.backfill_id).or_insert_with(|| Arc::new(Backfill::from_row(row)));
        };
        for moving in self.inner.flushes.in_flight() {
            moving.backfills.iter().filter(is_wanted).cloned().for_each(&mut add);
        }
        if let Some(projection) = self.projection() {
            // A backfill is created in the millisecond of its id.
            let old = match filter.oldest_first {
                true => {
                    let from = after.map(|id| EventId::from_parts(id.timestamp_ms(), 0));
                    projection.backfills_from(from, limit, |row| is_wanted(&row)).await?
                }
                false => {
                    let before = after.map(|id| EventId::from_parts(id.timestamp_ms() + 1, 0));
                    projection.backfills(before, limit, |row| is_wanted(&row)).await?
                }
            };
            old.into_iter().for_each(add);
        }
        let found = found.into_values();
        Ok(match filter.oldest_first {
            true => found.take(limit).collect(),
            false => found.rev().take(limit).collect(),
        })
    }

    /// The chunks of a backfill that are accepted, from the last to the first, beginning before the event that planned
    /// one.
    pub async fn backfill_chunks(
        &self,
        backfill: BackfillId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&BackfillChunkRow) -> bool + Sync,
    ) -> Result<Vec<BackfillChunkRow>, Error> {
        let is_wanted = |row: &&BackfillChunkRow| {
            row.backfill_id == backfill
                && before.is_none_or(|before| row.planned_event_id < before)
                && accepts(row)
        };
        let hot = self.read(|state| state.backfill_chunks().filter(is_wanted).cloned().collect::<Vec<_>>());
        let mut found: BTreeMap<EventId, BackfillChunkRow> =
            hot.await?.into_iter().map(|row| (row.planned_event_id, row)).collect();
        for moving in self.inner.flushes.in_flight() {
            let moved = moving.chunks.iter().filter(is_wanted);
            found.extend(moved.map(|row| (row.planned_event_id, row.clone())));
        }
        if let Some(projection) = self.projection().filter(|_| found.len() < limit) {
            let old = projection.backfill_chunks(backfill, before, limit, &accepts).await?;
            found.extend(old.into_iter().map(|row| (row.planned_event_id, row)));
        }
        Ok(found.into_values().rev().take(limit).collect())
    }

    /// A page of results of checks with their places, the newest first, beginning before a place. Assets have the names
    /// of today.
    pub async fn checks(
        &self,
        before: Option<CheckPlace>,
        limit: usize,
        filter: &CheckFilter,
    ) -> Result<Vec<(CheckPlace, CheckResultRow)>, Error> {
        let mut stored = filter.clone();
        if let Some(assets) = &mut stored.assets {
            let former = |state: &State| assets.iter().flat_map(|name| state.former_names(name)).collect();
            let former: Vec<AssetKey> = self.read(former).await?;
            assets.extend(former);
        }
        let (mut page, mut before) = (Vec::new(), before);
        while page.len() < limit {
            let found = self.stored_checks(before.as_ref(), limit, &stored).await?;
            let is_last = found.len() < limit;
            before = found.last().map(CheckPlace::of);
            let named = |state: &State| {
                let named = found.into_iter().map(|row| {
                    let asset_key = state.current_name(&row.asset_key, row.row_version);
                    (CheckPlace::of(&row), CheckResultRow { asset_key, ..row })
                });
                named.collect::<Vec<_>>()
            };
            // Rows of another asset that once had this name are left out.
            page.extend(self.read(named).await?.into_iter().filter(|(_, row)| filter.accepts(row)));
            if is_last {
                break;
            }
        }
        page.truncate(limit);
        Ok(page)
    }

    /// The same under the names that they were stored with.
    async fn stored_checks(
        &self,
        before: Option<&CheckPlace>,
        limit: usize,
        filter: &CheckFilter,
    ) -> Result<Vec<CheckResultRow>, Error> {
        let is_wanted = |row: &&CheckResultRow| {
            filter.accepts(row) && before.is_none_or(|before| CheckPlace::of(row) < *before)
        };
        let mut found: Vec<CheckResultRow> =
            self.read(|state| state.unwritten_checks().filter(is_wanted).cloned().collect()).await?;
        for moving in self.inner.flushes.in_flight() {
            found.extend(moving.checks.iter().filter(is_wanted).cloned());
        }
        if let Some(projection) = self.projection() {
            found.extend(projection.checks_before(before, limit, filter).await?);
        }
        newest_checks_first(&mut found, limit);
        Ok(found)
    }

    /// A page of materializations of an asset that are in the tables and accepted, the newest first, beginning before an
    /// event.
    pub async fn materializations(
        &self,
        asset: &AssetKey,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&MaterializationRow) -> bool + Sync,
    ) -> Result<Vec<MaterializationRow>, Error> {
        let Some(projection) = self.projection() else { return Ok(Vec::new()) };
        let mut found = projection.materializations_of(asset, before, limit, &accepts).await?;
        let former = self.read(|state| state.former_names(asset)).await?;
        for name in &former {
            found.extend(projection.materializations_of(name, before, limit, &accepts).await?);
        }
        if former.is_empty() && self.read(|state| !state.was_renamed(asset)).await? {
            return Ok(found);
        }
        // Names of today; what was once called so and is something else now is not meant.
        found = self
            .read(|state| {
                for row in &mut found {
                    row.asset_key = state.current_name(&row.asset_key, row.row_version);
                }
                found
            })
            .await?;
        found.retain(|row| row.asset_key == *asset);
        found.sort_by_key(|row| std::cmp::Reverse(row.row_version));
        found.truncate(limit);
        Ok(found)
    }

    pub(crate) fn projection(&self) -> Option<Projection> {
        let stores = &self.inner.stores;
        let manifest = self.inner.flushes.manifest()?;
        Some(Projection::from_manifest(stores.blobs.clone(), manifest, self.inner.cache.clone()))
    }
}
