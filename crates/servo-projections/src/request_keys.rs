//! Request keys that recovery needs: only their columns are fetched and decoded.

use arrow_array::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};
use servo_core::{Millis, RunId, Timestamp};
use servo_engine::for_each_append_only_table;
use servo_engine::rows::{IdempotencyEntry, IdempotencyRow, Row, RunKeyEntry, RunKeyRow};

use crate::batch::Batch;
use crate::error::Error;
use crate::files::Files;
use crate::manifest::{FileRef, Manifest};

/// Files fetched at once.
const PARALLEL: usize = 8;

pub(crate) async fn run_keys(files: &Files, manifest: &Manifest) -> Result<Vec<RunKeyEntry>, Error> {
    let columns = &["key_hash", "fingerprint_digest", "created_at"];
    let entries = read(files, manifest.immutable(RunKeyRow::TABLE), columns, |batch, entries| {
        let key_hash = batch.column("key_hash")?;
        let fingerprint = batch.column("fingerprint_digest")?;
        let created_at = batch.column("created_at")?;
        for row in 0..batch.len() {
            entries.push(RunKeyEntry {
                run_id: RunId::from_u128(key_hash.get(row)?),
                fingerprint: fingerprint.get(row)?,
                created_at: created_at.get(row)?,
            });
        }
        Ok(())
    });
    Ok(evict(entries.await?, manifest, |entry| (entry.created_at, entry.run_id)))
}

pub(crate) async fn idempotency(files: &Files, manifest: &Manifest) -> Result<Vec<IdempotencyEntry>, Error> {
    let columns = &["key_hash", "created_at"];
    let entries = read(files, manifest.immutable(IdempotencyRow::TABLE), columns, |batch, entries| {
        let (key_hash, created_at) = (batch.column("key_hash")?, batch.column("created_at")?);
        for row in 0..batch.len() {
            entries.push(IdempotencyEntry { key_hash: key_hash.get(row)?, created_at: created_at.get(row)? });
        }
        Ok(())
    });
    Ok(evict(entries.await?, manifest, |entry| (entry.created_at, entry.key_hash)))
}

async fn read<E>(
    files: &Files,
    refs: &[FileRef],
    columns: &'static [&'static str],
    decode: impl Fn(&Batch<'_>, &mut Vec<E>) -> Result<(), Error>,
) -> Result<Vec<E>, Error> {
    let mut entries = Vec::with_capacity(refs.iter().map(|file| file.rows as usize).sum());
    let fetches: Vec<_> = refs.iter().map(|file| fetch(files.clone(), file.clone(), columns)).collect();
    let mut fetched = stream::iter(fetches).buffered(PARALLEL);
    while let Some((name, batches)) = fetched.try_next().await? {
        let mut first_row = 0;
        for rows in &batches {
            decode(&Batch { rows, file: &name, first_row, chosen: None }, &mut entries)?;
            first_row += rows.num_rows() as u64;
        }
    }
    Ok(entries)
}

async fn fetch(
    files: Files,
    file: FileRef,
    columns: &'static [&'static str],
) -> Result<(String, Vec<RecordBatch>), Error> {
    let open = files.open(&file).await?;
    let mut batches = Vec::with_capacity(open.groups());
    for group in 0..open.groups() {
        batches.push(files.group(&open, group, Some(columns)).await?);
    }
    Ok((file.path, batches))
}

/// Evicts keys as the state does, in its order: oldest first, when they are older than the window before the newest
/// key, or too many.
fn evict<E: PartialEq, K: Ord>(
    mut entries: Vec<E>,
    manifest: &Manifest,
    sort_key: impl Fn(&E) -> (Timestamp, K),
) -> Vec<E> {
    // Files hold them in the order of time; only those of one moment may be out of place.
    if entries.is_sorted_by_key(|entry| sort_key(entry).0) {
        for moment in entries.chunk_by_mut(|a, b| sort_key(a).0 == sort_key(b).0) {
            moment.sort_unstable_by_key(&sort_key);
        }
    } else {
        entries.sort_unstable_by_key(&sort_key);
    }
    // The same flush tried twice may have written a key twice.
    entries.dedup();
    let oldest = oldest_kept(manifest);
    let most = usize::try_from(manifest.dedup.max_entries).unwrap_or(usize::MAX);
    let too_old = entries.partition_point(|entry| sort_key(entry).0 < oldest);
    let too_many = entries.len().saturating_sub(most);
    entries.drain(..too_old.max(too_many));
    entries
}

/// Keys older than this are forgotten.
pub(crate) fn oldest_kept(manifest: &Manifest) -> Timestamp {
    let mut newest = None;
    for_each_append_only_table!(R => if R::EXPIRES {
        newest = newest.max(manifest.immutable(R::TABLE).iter().filter_map(|file| file.max_at).max());
    });
    let newest = newest.map_or(Timestamp::MIN, Timestamp::from_millis);
    newest.saturating_sub(Millis::new(manifest.dedup.window_ms))
}
