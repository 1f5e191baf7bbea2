//! The fold of a rebuild, and the shadow files it leaves.

use std::collections::BTreeMap;

use futures::StreamExt;
use servo_core::Timestamp;
use servo_engine::event::decode_batch;
use servo_engine::rows::{AppendedRow, HistoryRow, PartitionStatusRow, Row, RunKeyRow};
use servo_engine::{Delta, State, for_each_append_only_table, for_each_history_table};
use servo_store::{Log, Record, TableFileKind};

use super::checkpoint::{Checkpoint, Counts};
use super::report::{Phase, Progress, RebuildReport};
use super::{RebuildContext, RebuildOptions, aborted, refused, view};
use crate::error::Error;
use crate::history_retention::may_lack_rows;
use crate::manifest::{FileRef, Manifest};
use crate::table::SCHEMA_VERSION;
use crate::writer::Writer;

/// Events folded at most between two flushes: bounds memory whatever the size of batches.
const MAX_EVENTS: usize = 200_000;
/// Errors shown.
const SAMPLES: usize = 20;

/// A state being folded, and the files of what it let go.
pub(super) struct Shadow<'a> {
    context: &'a RebuildContext,
    writer: Writer,
    state: State,
    saved: Checkpoint,
    last: u64,
}

impl<'a> Shadow<'a> {
    /// From the checkpoint, from the tables of the log's boundary, or from nothing. A checkpoint whose files are live is
    /// of a rebuild that was done: its files are not ours to change.
    pub(super) async fn start(
        context: &'a RebuildContext,
        old_revision: u64,
        old: Option<&Manifest>,
        boundary: Option<&Manifest>,
        options: &RebuildOptions,
    ) -> Result<Self, Error> {
        let writer = context.writer(old.map_or(0, |old| old.epoch));
        let is_live =
            |saved: &Checkpoint| old.is_some_and(|old| !old.paths().is_disjoint(&saved.shadow.paths()));
        let first = boundary.map_or(0, |boundary| boundary.watermarks.last_seq);
        let checkpoint = Checkpoint::read(&*context.blobs).await?;
        let checkpoint = checkpoint.filter(|saved| !is_live(saved) && saved.through >= first);
        let (tenant, workspace) = (context.layout.tenant().clone(), context.layout.workspace().clone());
        if let Some(saved) = checkpoint.filter(|_| options.resume) {
            let rows = view(&writer, &saved.shadow).hot_rows().await?;
            let state = State::from_rows(tenant, workspace, rows).map_err(|error| {
                refused(format!("its checkpoint does not make a state: {error}; do not resume it"))
            })?;
            return Ok(Self { context, writer, state, last: saved.through, saved });
        }
        if let Some(boundary) = boundary {
            return Self::copied(context, writer, old_revision + 1, boundary).await;
        }
        let state = State::new(tenant, workspace);
        let mut shadow = writer.draft(None, context.now());
        // Files carry the first revision that may name them.
        shadow.revision = old_revision + 1;
        let saved = Checkpoint {
            schema_version: SCHEMA_VERSION,
            through: 0,
            errors: 0,
            error_samples: Vec::new(),
            counts: Counts::default(),
            shadow,
        };
        Ok(Self { context, writer, state, saved, last: 0 })
    }

    /// From copies of the tables of the log's boundary.
    async fn copied(
        context: &'a RebuildContext,
        mut writer: Writer,
        revision: u64,
        boundary: &Manifest,
    ) -> Result<Self, Error> {
        let (tenant, workspace) = (context.layout.tenant().clone(), context.layout.workspace().clone());
        let rows = view(&writer, boundary).hot_rows().await?;
        let state = State::from_rows(tenant, workspace, rows).map_err(|error| {
            refused(format!("the tables of the log's boundary do not make a state: {error}"))
        })?;
        let shadow = match copy(&mut writer, revision, boundary).await {
            Ok(shadow) => shadow,
            Err(error) => {
                writer.discard_written().await;
                return Err(error);
            }
        };
        let mut counts = Counts::default();
        let mut add = |table: &str| {
            let rows = boundary.immutable(table).iter().map(|file| file.rows).sum();
            counts.insert(table.to_owned(), rows);
        };
        for_each_history_table!(R => add(R::TABLE));
        for_each_append_only_table!(R => if !R::EXPIRES {
            add(R::TABLE);
        });
        let through = boundary.watermarks.last_seq;
        let (schema_version, error_samples) = (SCHEMA_VERSION, Vec::new());
        let saved = Checkpoint { schema_version, through, errors: 0, error_samples, counts, shadow };
        Ok(Self { context, writer, state, saved, last: through })
    }

    pub(super) fn through(&self) -> u64 {
        self.saved.through
    }

    pub(super) fn progress(&self, phase: Phase) -> Progress {
        Progress { phase, through: self.state.head().seq, of: self.last, errors: self.saved.errors }
    }

    /// Folds up to the end of the log and saves.
    pub(super) async fn catch_up(
        &mut self,
        log: &dyn Log,
        options: &RebuildOptions,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), Error> {
        self.last = log.next_seq().await?.saturating_sub(1);
        let allowed = u128::from(self.last) * u128::from(options.max_errors_ppm) / 1_000_000;
        let mut events = 0;
        let mut batches = log.read(self.state.head().seq + 1);
        while let Some(record) = batches.next().await {
            let record = record?;
            let seq = record.seq;
            events += self.fold(&record);
            if u128::from(self.saved.errors) > allowed {
                return Err(self.give_up(options).await);
            }
            if seq.is_multiple_of(options.checkpoint_every.max(1)) || events >= MAX_EVENTS {
                self.save().await?;
                events = 0;
            }
            if seq.is_multiple_of(options.batch_size.max(1)) {
                progress(self.progress(Phase::Replaying));
                if aborted(options) {
                    self.save().await?;
                    return Err(refused(format!(
                        "it was aborted after batch {seq}; run it again to go on from there"
                    )));
                }
            }
        }
        if let Some(newer) = self.state.newer_event() {
            return Err(refused(format!(
                "the log has {newer}, which this version does not know; use a newer servo"
            )));
        }
        if self.state.head().seq > self.saved.through {
            self.save().await?;
        }
        Ok(())
    }

    fn fold(&mut self, record: &Record) -> usize {
        match decode_batch(&record.payload) {
            Ok(events) => {
                self.state.apply_batch(record.seq, &events);
                events.len()
            }
            Err(error) => {
                tracing::warn!(seq = record.seq, %error, "a batch cannot be decoded and is skipped");
                self.saved.errors += 1;
                if self.saved.error_samples.len() < SAMPLES {
                    self.saved.error_samples.push(format!("batch {}: {error}", record.seq));
                }
                self.state.apply_batch(record.seq, &[]);
                0
            }
        }
    }

    async fn give_up(&mut self, options: &RebuildOptions) -> Error {
        let cleaned = self.discard().await;
        if let Err(error) = cleaned {
            tracing::warn!(%error, "the files of a stopped rebuild could not all be deleted");
        }
        refused(format!(
            "{} of {} batches cannot be decoded, more than the {} per million allowed: {}",
            self.saved.errors,
            self.last,
            options.max_errors_ppm,
            self.saved.error_samples.join("; ")
        ))
    }

    /// Deletes the shadow files and the checkpoint.
    async fn discard(&mut self) -> Result<(), Error> {
        Checkpoint::delete(&*self.context.blobs).await?;
        self.writer.discard_written().await;
        let manifests = self.context.manifests();
        for path in self.saved.shadow.paths() {
            manifests.delete(path).await?;
        }
        Ok(())
    }

    /// Writes what changed since the last checkpoint, then the checkpoint, then deletes what it no longer needs.
    async fn save(&mut self) -> Result<(), Error> {
        let now = self.context.now();
        let delta = self.state.take_delta();
        let mut shadow = self.saved.shadow.clone();
        let written = async {
            self.writer.add_delta(&mut shadow, &delta, now).await?;
            self.writer.merge_due(&mut shadow, now).await
        };
        if let Err(error) = written.await {
            self.writer.discard_written().await;
            return Err(error);
        }
        count(&mut self.saved.counts, &delta);
        self.state.run_keys_published(delta.head.last_event);
        self.saved.through = delta.head.seq;
        let before = std::mem::replace(&mut self.saved.shadow, shadow);
        self.saved.write(&*self.context.blobs).await?;
        self.writer.keep_written(&self.saved.shadow).await;
        let manifests = self.context.manifests();
        for path in before.paths().difference(&self.saved.shadow.paths()) {
            manifests.delete(path).await?;
        }
        Ok(())
    }

    /// Reads back what was written and compares it with what was folded.
    pub(super) async fn verify(&self) -> Result<(), Error> {
        let shadow = &self.saved.shadow;
        let rows = view(&self.writer, shadow).hot_rows().await?;
        if rows != self.state.rows() {
            return Err(refused("its hot rows, read back, are not what was folded; please report this"));
        }
        for (table, expected) in self.saved.counts.iter().filter(|(table, _)| !may_lack_rows(table, shadow)) {
            let found: u64 = shadow.immutable(table).iter().map(|file| file.rows).sum();
            if found != *expected {
                return Err(refused(format!(
                    "history of `{table}` has {found} rows, {expected} were folded"
                )));
            }
        }
        Ok(())
    }

    /// The shadow as the manifest after `newest`.
    pub(super) fn manifest_after(
        &self,
        revision: u64,
        newest: Option<&Manifest>,
        now: Timestamp,
    ) -> Manifest {
        let shadow = &self.saved.shadow;
        let next = self.writer.draft(newest, now);
        Manifest {
            // The newest may be damaged; its number counts.
            revision: revision + 1,
            epoch: newest.map_or(0, |newest| newest.epoch),
            watermarks: shadow.watermarks,
            base_snapshot: shadow.base_snapshot.clone(),
            l0_deltas: shadow.l0_deltas.clone(),
            history: shadow.history.clone(),
            run_keys: shadow.run_keys.clone(),
            dedup: shadow.dedup,
            history_since: shadow.history_since,
            ..next
        }
    }

    /// The shadow is live: the checkpoint must not be resumed.
    pub(super) async fn done(&self) -> Result<(), Error> {
        Checkpoint::delete(&*self.context.blobs).await
    }

    pub(super) fn report(
        &self,
        manifest: &Manifest,
        resumed_from: u64,
        swap_tries: u32,
        swept: u64,
    ) -> RebuildReport {
        RebuildReport {
            revision: manifest.revision,
            through: self.saved.through,
            resumed_from,
            errors: self.saved.errors,
            error_samples: self.saved.error_samples.clone(),
            swap_tries,
            swept,
            tables: super::sweep::tables_of(manifest),
        }
    }
}

/// Adds the rows that a delta puts into history. Rows that expire are not counted: their files go at any time.
fn count(counts: &mut Counts, delta: &Delta) {
    let mut add = |table: &str, rows: usize| *counts.entry(table.to_owned()).or_default() += rows as u64;
    for_each_history_table!(R => add(R::TABLE, R::ended(delta).len()));
    for_each_append_only_table!(R => if !R::EXPIRES {
        add(R::TABLE, R::appended(delta).len());
    });
}

/// Copies every file of a manifest, and verifies it on the way: files belong to one line of manifests.
async fn copy(writer: &mut Writer, revision: u64, of: &Manifest) -> Result<Manifest, Error> {
    let mut copy = Manifest { revision, ..of.clone() };
    let base = copy.base_snapshot.iter_mut().map(|base| (&mut base.tables, TableFileKind::Base));
    let deltas = copy.l0_deltas.iter_mut().map(|delta| (&mut delta.tables, TableFileKind::L0));
    let history = [(&mut copy.history, TableFileKind::History)];
    for (tables, kind) in base.chain(deltas).chain(history) {
        for (table, files) in tables.iter_mut() {
            for file in files {
                *file = copy_file(writer, table, file, kind, revision).await?;
            }
        }
    }
    // Packed statuses are named by the file that says the same.
    if let (Some(base), Some(before)) = (&mut copy.base_snapshot, &of.base_snapshot) {
        let (after, before) = (base.tables.values().flatten(), before.tables.values().flatten());
        let renamed = before.zip(after).map(|(before, after)| (before.path.clone(), after.path.clone()));
        let renamed: BTreeMap<String, String> = renamed.collect();
        for (path, file) in std::mem::take(&mut base.packed_statuses) {
            let Some(path) = renamed.get(&path) else { continue };
            let kind = TableFileKind::Packed;
            let file = copy_file(writer, PartitionStatusRow::TABLE, &file, kind, revision).await?;
            base.packed_statuses.insert(path.clone(), file);
        }
    }
    for file in &mut copy.run_keys {
        *file = copy_file(writer, RunKeyRow::TABLE, file, TableFileKind::Keys, revision).await?;
    }
    Ok(copy)
}

async fn copy_file(
    writer: &mut Writer,
    table: &str,
    file: &FileRef,
    kind: TableFileKind,
    revision: u64,
) -> Result<FileRef, Error> {
    let bytes = writer.files.fetch(file).await?;
    writer.store_file(table, bytes, file.clone(), kind, revision).await
}
