//! The newest rows about one thing: ticks of a schedule, chunks of a backfill, materializations of an asset.

use servo_core::{AssetKey, BackfillId, EventId, RuleId, ScheduleId, SensorId};
use servo_engine::rows::{
    BackfillChunkRow, BackfillRow, ConditionEvaluationRow, MaterializationRow, NotificationRow, ReadFrom,
    Row, ScheduleTickRow, SensorEvalRow,
};

use crate::batch::Batch;
use crate::error::Error;
use crate::manifest::FileRef;
use crate::projection::Projection;
use crate::table::StoredRow;

impl Projection {
    /// Ticks of a schedule that have left memory and are accepted, from the newest to the oldest, beginning before an
    /// event.
    pub async fn schedule_ticks(
        &self,
        schedule: ScheduleId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&ScheduleTickRow) -> bool,
    ) -> Result<Vec<ScheduleTickRow>, Error> {
        self.newest_of(&schedule.to_string(), before, limit, accepts).await
    }

    /// Evaluations of a sensor that have left memory and are accepted, from the newest to the oldest, beginning before an
    /// event.
    pub async fn sensor_evals(
        &self,
        sensor: SensorId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&SensorEvalRow) -> bool,
    ) -> Result<Vec<SensorEvalRow>, Error> {
        self.newest_of(&sensor.to_string(), before, limit, accepts).await
    }

    /// Evaluations of the condition of an asset that have left memory, from the newest to the oldest, beginning before an
    /// event.
    pub async fn condition_evaluations(
        &self,
        asset: &AssetKey,
        before: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<ConditionEvaluationRow>, Error> {
        self.newest_of(asset.canonical(), before, limit, |_| true).await
    }

    /// Notifications of a rule that have left memory and are accepted, from the newest to the oldest, beginning before an
    /// event.
    pub async fn notifications(
        &self,
        rule: RuleId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&NotificationRow) -> bool,
    ) -> Result<Vec<NotificationRow>, Error> {
        self.newest_of(&rule.to_string(), before, limit, accepts).await
    }

    /// Chunks of a backfill that have left memory and are accepted, from the last to the first, beginning before the
    /// event that planned one.
    pub async fn backfill_chunks(
        &self,
        backfill: BackfillId,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&BackfillChunkRow) -> bool,
    ) -> Result<Vec<BackfillChunkRow>, Error> {
        self.newest_of(&backfill.to_string(), before, limit, accepts).await
    }

    /// A backfill that has left memory.
    pub async fn backfill(&self, id: BackfillId) -> Result<Option<BackfillRow>, Error> {
        Ok(self.newest_of(&id.to_string(), None, 1, |_| true).await?.pop())
    }

    /// Backfills that have left memory and are accepted, from the last to the first, beginning before an event.
    pub async fn backfills(
        &self,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&BackfillRow) -> bool,
    ) -> Result<Vec<BackfillRow>, Error> {
        self.newest(None, before, limit, accepts).await
    }

    /// Backfills that have left memory and are accepted, from the first to the last, beginning with an event.
    pub async fn backfills_from(
        &self,
        from: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&BackfillRow) -> bool,
    ) -> Result<Vec<BackfillRow>, Error> {
        let is_in = |event: EventId| from.is_none_or(|from| event >= from);
        let mut files: Vec<&FileRef> = self.manifest.immutable(BackfillRow::TABLE).iter().collect();
        files.sort_by_key(|file| file.min_key);
        let mut found: Vec<BackfillRow> = Vec::new();
        for file in files {
            // Rows newer than the page that was found cannot be part of it.
            if found.len() >= limit && file.min_key > found.get(limit - 1).map(Row::sort_key) {
                break;
            }
            if file.max_key.is_some_and(|newest| !is_in(newest)) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                if open.bounds(group).is_some_and(|(_, newest)| !is_in(newest)) {
                    continue;
                }
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let rows = BackfillRow::read_rows(&batch, 0..batch.len())?;
                found.extend(rows.into_iter().filter(|row| is_in(row.sort_key()) && accepts(row)));
            }
            found.sort_by_key(Row::sort_key);
            found.dedup_by_key(|row| row.sort_key());
            found.truncate(limit);
        }
        Ok(found)
    }

    /// Materializations of an asset that are in the tables and accepted, from the newest to the oldest, beginning before an event.
    pub async fn materializations_of(
        &self,
        asset: &AssetKey,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&MaterializationRow) -> bool,
    ) -> Result<Vec<MaterializationRow>, Error> {
        self.newest_of(asset.canonical(), before, limit, accepts).await
    }

    /// Rows whose lookup column has this value and that are accepted, from the newest to the oldest, beginning before
    /// an event. Files and row groups that cannot have any are not read.
    pub(crate) async fn newest_of<R: Row + StoredRow>(
        &self,
        about: &str,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&R) -> bool,
    ) -> Result<Vec<R>, Error> {
        self.newest(Some(about), before, limit, accepts).await
    }

    /// The same of all rows, if they need not be about something.
    async fn newest<R: Row + StoredRow>(
        &self,
        about: Option<&str>,
        before: Option<EventId>,
        limit: usize,
        accepts: impl Fn(&R) -> bool,
    ) -> Result<Vec<R>, Error> {
        let Some(lookup) = R::LOOKUP.first().copied() else { return Ok(Vec::new()) };
        let mut files: Vec<&FileRef> = self.manifest.immutable(R::TABLE).iter().collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.max_key));
        let mut found: Vec<R> = Vec::new();
        for file in files {
            // What is older than the page that was found cannot be part of it.
            if found.len() >= limit && file.max_key < found.get(limit - 1).map(Row::sort_key) {
                break;
            }
            if before.is_some_and(|before| file.min_key.is_some_and(|oldest| oldest >= before)) {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                if let Some(about) = about
                    && !open.may_hold(group, lookup, about)?
                {
                    continue;
                }
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let subjects = batch.column::<String>(lookup)?;
                let mut wanted = Vec::new();
                for row in 0..batch.len() {
                    if about.is_none_or(|about| subjects.get(row).is_ok_and(|subject| subject == about)) {
                        wanted.push(row);
                    }
                }
                let is_before = |row: &R| before.is_none_or(|before| row.sort_key() < before);
                let rows = R::read_rows(&batch, wanted.into_iter())?;
                found.extend(rows.into_iter().filter(|row| is_before(row) && accepts(row)));
            }
            found.sort_by_key(|row| std::cmp::Reverse(row.sort_key()));
            found.dedup_by_key(|row| row.sort_key());
            found.truncate(limit);
        }
        Ok(found)
    }
}
