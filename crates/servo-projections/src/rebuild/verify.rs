//! Comparing the tables with the log, row by row.

use futures::StreamExt;
use servo_engine::event::decode_batch;
use servo_engine::{HotRows, State};
use servo_store::Log;

use super::compare::{
    Digests, KeptSince, TableCheck, compare_hot, compare_packed_statuses, compare_run_keys,
};
use super::{RebuildContext, start_of, sweep::orphans};
use crate::error::Error;
use crate::files::{Files, MetadataCache};
use crate::manifest::Manifest;
use crate::projection::Projection;

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Revision of the manifest that was checked; 0 if there is none.
    pub revision: u64,
    /// Last batch in it.
    pub through: u64,
    /// Files whose size and checksum were checked.
    pub files: u64,
    /// Files that are damaged or missing, with the reason.
    pub damaged: Vec<String>,
    /// Files that no manifest names; harmless.
    pub orphans: Vec<String>,
    /// Batches that could not be decoded, with the reason.
    pub undecodable: Vec<String>,
    /// Each table, hot and immutable rows apart.
    pub tables: Vec<TableCheck>,
}

impl VerifyReport {
    /// Whether the tables are what the log says.
    pub fn is_ok(&self) -> bool {
        self.damaged.is_empty() && self.tables.iter().all(|table| table.is_ok())
    }
}

/// Replays the log up to where the newest manifest is and compares every row. Changes nothing. Where old batches have
/// been deleted, the replay begins with the tables of the boundary.
///
/// Holds 48 bytes per row of history in memory.
pub async fn verify(log: &dyn Log, context: &RebuildContext) -> Result<VerifyReport, Error> {
    let start = start_of(log, context, "verification").await?;
    let Some(manifest) = context.manifests().newest_by_number().await? else {
        return Ok(VerifyReport::default());
    };
    let files = Files { blobs: context.blobs.clone(), cache: MetadataCache::default().into() };
    let mut report = VerifyReport {
        revision: manifest.revision,
        through: manifest.watermarks.last_seq,
        orphans: orphans(context).await?,
        ..VerifyReport::default()
    };
    for (_, file) in manifest.files() {
        report.files += 1;
        match files.fetch(file).await {
            Ok(_) => {}
            Err(Error::Damaged { file, problem, .. }) => report.damaged.push(format!("{file}: {problem}")),
            Err(error) => return Err(error),
        }
    }
    let (hot, history) = replay(log, context, (&manifest, start.as_ref()), &mut report).await?;
    if report.damaged.is_empty() {
        let found = Projection { files: files.clone(), manifest: manifest.clone().into() }.hot_rows().await?;
        report.tables = compare_hot(&hot, &found);
        report.tables.extend(history.compare(&files, &manifest, KeptSince::of(&manifest)).await?);
        report.tables.push(compare_run_keys(&files, &manifest).await?);
        if manifest.packed_statuses().next().is_some() {
            report.tables.push(compare_packed_statuses(&files, &manifest).await?);
        }
    }
    Ok(report)
}

/// The expected tables: hot rows, and digests of those in history.
async fn replay(
    log: &dyn Log,
    context: &RebuildContext,
    (manifest, start): (&Manifest, Option<&Manifest>),
    report: &mut VerifyReport,
) -> Result<(HotRows, Digests), Error> {
    let (tenant, workspace) = (context.layout.tenant().clone(), context.layout.workspace().clone());
    let kept = KeptSince::of(manifest);
    let mut history = Digests::default();
    let mut state = match start {
        None => State::new(tenant, workspace),
        Some(start) => {
            let files = Files { blobs: context.blobs.clone(), cache: MetadataCache::default().into() };
            history.add_files(&files, start, kept).await?;
            let rows = Projection { files, manifest: start.clone().into() }.hot_rows().await?;
            State::from_rows(tenant, workspace, rows).map_err(|error| Error::Refused {
                what: "verification",
                reason: format!("the tables of the log's boundary make no state: {error}"),
            })?
        }
    };
    let mut batches = log.read(state.head().seq + 1);
    while state.head().seq < report.through {
        let Some(record) = batches.next().await.transpose()? else { break };
        match decode_batch(&record.payload) {
            Ok(events) => state.apply_batch(record.seq, &events),
            Err(error) => {
                report.undecodable.push(format!("batch {}: {error}", record.seq));
                state.apply_batch(record.seq, &[]);
            }
        }
        if record.seq.is_multiple_of(1_000) {
            history.add(&state.take_delta(), kept);
            // What is compared is what was written, so memory need not hold it.
            state.run_keys_published(state.head().last_event);
        }
    }
    history.add(&state.take_delta(), kept);
    if state.head().seq < report.through {
        let reason = format!(
            "the manifest ends at batch {}, the log already at {}; the log has lost its end",
            report.through,
            state.head().seq
        );
        return Err(Error::Refused { what: "verification", reason });
    }
    Ok((state.rows(), history))
}
