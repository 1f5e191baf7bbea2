//! Keys of events and answers to requests that recovery needs: only their columns are fetched and decoded.

use arrow_array::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};
use servo_core::{EventId, Millis, RunId, Timestamp};
use servo_engine::rows::{AnswerEntry, AnswerRow, IdempotencyEntry, IdempotencyRow, Row};
use servo_engine::{ANSWER_WINDOW, for_each_append_only_table};

use crate::batch::Batch;
use crate::error::Error;
use crate::files::Files;
use crate::manifest::{FileRef, Manifest};

/// Files fetched at once.
const PARALLEL: usize = 8;

pub(crate) async fn idempotency(files: &Files, manifest: &Manifest) -> Result<Vec<IdempotencyEntry>, Error> {
    let columns = &["key_hash", "elapsed_ms"];
    let entries = read(files, manifest.immutable(IdempotencyRow::TABLE), columns, |batch, entries| {
        let (key_hash, elapsed) = (batch.column("key_hash")?, batch.column("elapsed_ms")?);
        for row in 0..batch.len() {
            entries.push(IdempotencyEntry { key_hash: key_hash.get(row)?, elapsed: elapsed.get(row)? });
        }
        Ok(())
    });
    let window = Millis::new(manifest.dedup.window_ms);
    Ok(evict(entries.await?, manifest, window, |entry| (entry.elapsed, entry.key_hash)))
}

pub(crate) async fn answers(files: &Files, manifest: &Manifest) -> Result<Vec<AnswerEntry>, Error> {
    let columns = &["key_hash", "request_digest", "elapsed_ms", "run_id", "event_id", "added", "removed"];
    let entries = read(files, manifest.immutable(AnswerRow::TABLE), columns, |batch, entries| {
        let (key_hash, request_digest) = (batch.column("key_hash")?, batch.column("request_digest")?);
        let elapsed = batch.column("elapsed_ms")?;
        let runs = batch.column::<Option<RunId>>("run_id")?;
        let events = batch.column::<Option<EventId>>("event_id")?;
        let (added, removed) = (batch.column("added")?, batch.column("removed")?);
        for row in 0..batch.len() {
            entries.push(AnswerEntry {
                key_hash: key_hash.get(row)?,
                request_digest: request_digest.get(row)?,
                elapsed: elapsed.get(row)?,
                run_id: runs.get(row)?,
                event_id: events.get(row)?,
                added: added.get(row)?,
                removed: removed.get(row)?,
            });
        }
        Ok(())
    });
    Ok(evict(entries.await?, manifest, ANSWER_WINDOW, |entry| (entry.elapsed, entry.key_hash)))
}

pub(crate) async fn read<E>(
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

/// Evicts entries as the state does, in its order: oldest first, when they are older than the window before the newest
/// one, or too many.
fn evict<E: PartialEq>(
    mut entries: Vec<E>,
    manifest: &Manifest,
    window: Millis,
    sort_key: impl Fn(&E) -> (Millis, u128),
) -> Vec<E> {
    // Files hold them in the order of time; only those of one moment may be out of place.
    if entries.is_sorted_by_key(|entry| sort_key(entry).0) {
        for moment in entries.chunk_by_mut(|a, b| sort_key(a).0 == sort_key(b).0) {
            moment.sort_unstable_by_key(&sort_key);
        }
    } else {
        entries.sort_unstable_by_key(&sort_key);
    }
    // The same flush tried twice may have written a row twice.
    entries.dedup();
    let oldest = newest(manifest).saturating_sub(window);
    let most = usize::try_from(manifest.dedup.max_entries).unwrap_or(usize::MAX);
    let place = |entry: &E| Timestamp::EPOCH.saturating_add(sort_key(entry).0);
    let too_old = entries.partition_point(|entry| place(entry) < oldest);
    let too_many = entries.len().saturating_sub(most);
    entries.drain(..too_old.max(too_many));
    entries
}

/// Rows that expire are dropped when they are older than this.
pub(crate) fn oldest_kept(manifest: &Manifest) -> Timestamp {
    newest(manifest).saturating_sub(Millis::new(manifest.dedup.window_ms).max(ANSWER_WINDOW))
}

/// The place in time of the newest row that expires.
fn newest(manifest: &Manifest) -> Timestamp {
    let mut newest = None;
    for_each_append_only_table!(R => if R::EXPIRES {
        newest = newest.max(manifest.immutable(R::TABLE).iter().filter_map(|file| file.max_at).max());
    });
    newest.map_or(Timestamp::MIN, Timestamp::from_millis)
}
