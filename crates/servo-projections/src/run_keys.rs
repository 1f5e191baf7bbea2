//! Run keys, for ever: written beside the table of them, merged, and looked up (ADR-089).

use std::sync::Arc;

use bytes::Bytes;
use servo_core::planted::{self, Mistake};
use servo_core::{EventId, Fingerprint, RunId};
use servo_engine::StoredRunKey;
use servo_engine::rows::{Row, RunKeyEntry, RunKeyRow};
use servo_store::TableFileKind;

use crate::batch::Batch;
use crate::error::Error;
use crate::files::Files;
use crate::key_file::{KeyFile, StoredKey, decode_whole, encode};
use crate::manifest::{FileRef, Manifest};
use crate::projection::Projection;
use crate::tiers::next_merge;
use crate::writer::Writer;

impl Projection {
    /// Looks a run key up in these tables, by the run that it names.
    pub async fn run_key(&self, run: RunId) -> Result<StoredRunKey, Error> {
        let through = self.manifest.watermarks.events_processed_through;
        if planted::has(Mistake::RunKeyForgotten) {
            return Ok(StoredRunKey { fingerprint: None, through });
        }
        let fingerprint = self.requested_with(run).await?;
        Ok(StoredRunKey { fingerprint, through })
    }

    async fn requested_with(&self, run: RunId) -> Result<Option<Fingerprint>, Error> {
        self.files.cache.keys.keep_only(&self.manifest.run_keys);
        for file in self.manifest.run_keys.iter().rev() {
            let open = self.files.open_keys(file).await?;
            let Some((page, range)) = open.page_of(run) else { continue };
            let bytes = self.files.range(&file.path, range).await?;
            if let Some(found) = open.find(run, page, &bytes)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Reads the filters of all run keys, so that looking one up need not; returns the bytes that they take in memory.
    pub async fn load_run_keys(&self) -> Result<usize, Error> {
        let mut memory = 0;
        for file in &self.manifest.run_keys {
            memory += self.files.open_keys(file).await?.memory();
        }
        Ok(memory)
    }
}

impl Files {
    /// The tail of a file of run keys, verified; read once.
    async fn open_keys(&self, file: &FileRef) -> Result<Arc<KeyFile>, Error> {
        if let Some(open) = self.cache.keys.get(&file.path) {
            return Ok(open);
        }
        let open = Arc::new(KeyFile::parse(file, self.tail(file).await?)?);
        self.cache.keys.insert(Arc::clone(&open));
        Ok(open)
    }
}

impl Writer {
    /// Writes the keys of new runs as a file and adds it to the draft.
    pub(crate) async fn add_run_keys(
        &mut self,
        draft: &mut Manifest,
        rows: &[RunKeyRow],
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let keys = rows
            .iter()
            .map(|row| StoredKey { run: row.run_id, digest: row.request_fingerprint.digest() })
            .collect();
        let file = self.store_keys(keys, 0, draft.revision).await?;
        draft.run_keys.push(file);
        Ok(())
    }

    /// Merges files of run keys until there are few. False if there was nothing to merge.
    pub(crate) async fn merge_run_keys(&mut self, draft: &mut Manifest) -> Result<bool, Error> {
        let mut merged = false;
        while let Some(range) = next_merge(&draft.run_keys, &self.limits) {
            let mut keys = Vec::new();
            for file in &draft.run_keys[range.clone()] {
                keys.extend(decode_whole(file, &self.files.fetch(file).await?)?);
            }
            let level = draft.run_keys[range.start].level + 1;
            let file = self.store_keys(keys, level, draft.revision).await?;
            draft.run_keys.splice(range, [file]);
            merged = true;
        }
        Ok(merged)
    }

    async fn store_keys(
        &mut self,
        keys: Vec<StoredKey>,
        level: u32,
        revision: u64,
    ) -> Result<FileRef, Error> {
        let (bytes, file) = encode(keys, level);
        let tail = Bytes::copy_from_slice(&bytes[bytes.len() - file.tail_bytes as usize..]);
        let stored = self
            .store_file(RunKeyRow::TABLE, Bytes::from(bytes), file, TableFileKind::Keys, revision)
            .await?;
        // The next look-up of this process needs no read for it.
        self.files.cache.keys.insert(Arc::new(KeyFile::parse(&stored, tail)?));
        Ok(stored)
    }
}

/// Every key of the files, by run.
pub(crate) async fn stored_keys(files: &Files, manifest: &Manifest) -> Result<Vec<StoredKey>, Error> {
    let mut keys = Vec::new();
    for file in &manifest.run_keys {
        keys.extend(decode_whole(file, &files.fetch(file).await?)?);
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// The newest keys, oldest first, as memory has them, and the newest one that is not among them.
pub(crate) async fn newest(files: &Files, manifest: &Manifest) -> Result<(Vec<RunKeyEntry>, EventId), Error> {
    let wanted = usize::try_from(manifest.dedup.run_keys).unwrap_or(usize::MAX);
    let columns: &[&str] = &["run_id", "request_fingerprint", "row_version"];
    let mut entries: Vec<RunKeyEntry> = Vec::new();
    'files: for file in manifest.immutable(RunKeyRow::TABLE).iter().rev() {
        let open = files.open(file).await?;
        for group in (0..open.groups()).rev() {
            let rows = files.group(&open, group, Some(columns)).await?;
            let batch =
                Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
            let runs = batch.column::<RunId>("run_id")?;
            let fingerprints = batch.column::<Fingerprint>("request_fingerprint")?;
            let versions = batch.column::<EventId>("row_version")?;
            for row in (0..batch.len()).rev() {
                let requested = versions.get(row)?;
                // The same flush tried twice may have written a key twice.
                if entries.last().is_some_and(|newer| newer.requested <= requested) {
                    continue;
                }
                let fingerprint = fingerprints.get(row)?.digest();
                entries.push(RunKeyEntry { run_id: runs.get(row)?, fingerprint, requested });
                if entries.len() > wanted {
                    break 'files;
                }
            }
        }
    }
    let evicted = if entries.len() > wanted { entries.pop() } else { None };
    entries.reverse();
    Ok((entries, evicted.map_or(EventId::NIL, |evicted| evicted.requested)))
}
