//! Comparing the tables with the log, row by row.

use futures::StreamExt;
use servo_engine::event::decode_batch;
use servo_engine::rows::{CheckResultRow, MaterializationRow};
use servo_engine::{Delta, HotRows, State};
use servo_store::Log;

use super::compare::{Digests, TableCheck, compare_hot, compare_settled};
use super::{Workshop, sweep::orphans, whole_log};
use crate::error::Error;
use crate::files::{Files, MetadataCache};
use crate::manifest::Manifest;
use crate::projection::Projection;
use crate::request_keys::oldest_kept;
use crate::settled::history_key;
use crate::table::{HistoryTable, Table};
use crate::tables::{
    CheckResults, Deployments, Edges, Idempotency, Materializations, RunKeyConflicts, RunKeys, Runs, Tasks,
};

/// What a verification found.
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
    /// Each table, hot and settled rows apart.
    pub tables: Vec<TableCheck>,
}

impl VerifyReport {
    /// Whether the tables are what the log says.
    pub fn is_ok(&self) -> bool {
        self.damaged.is_empty() && self.tables.iter().all(|table| table.is_ok())
    }
}

/// Replays the log up to where the newest manifest is and compares every row. Changes nothing.
///
/// Holds 48 bytes per row of history in memory.
pub async fn verify(log: &dyn Log, workshop: &Workshop) -> Result<VerifyReport, Error> {
    whole_log(log, "verification").await?;
    let Some(manifest) = workshop.manifests().newest_by_number().await? else {
        return Ok(VerifyReport::default());
    };
    let files = Files { blobs: workshop.blobs.clone(), cache: MetadataCache::default().into() };
    let mut report = VerifyReport {
        revision: manifest.revision,
        through: manifest.watermarks.last_seq,
        orphans: orphans(workshop).await?,
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
    let expected = replay(log, workshop, &manifest, &mut report).await?;
    if report.damaged.is_empty() {
        let oldest = oldest_kept(&manifest);
        let Expected {
            hot,
            runs,
            tasks,
            edges,
            run_keys,
            conflicts,
            idempotency,
            materializations,
            check_results,
            deployments,
        } = expected;
        let found = Projection { files: files.clone(), manifest: manifest.clone().into() }.hot_rows().await?;
        report.tables = compare_hot(&hot, &found);
        report.tables.push(compare_settled(&files, &manifest, runs, |_| true).await?);
        report.tables.push(compare_settled(&files, &manifest, tasks, |_| true).await?);
        report.tables.push(compare_settled(&files, &manifest, edges, |_| true).await?);
        report
            .tables
            .push(compare_settled(&files, &manifest, run_keys, |row| row.created_at >= oldest).await?);
        report.tables.push(compare_settled(&files, &manifest, conflicts, |_| true).await?);
        report
            .tables
            .push(compare_settled(&files, &manifest, idempotency, |row| row.created_at >= oldest).await?);
        report.tables.push(compare_settled(&files, &manifest, materializations, |_| true).await?);
        report.tables.push(compare_settled(&files, &manifest, check_results, |_| true).await?);
        report.tables.push(compare_settled(&files, &manifest, deployments, |_| true).await?);
    }
    Ok(report)
}

struct Expected {
    hot: HotRows,
    runs: Digests<Runs>,
    tasks: Digests<Tasks>,
    edges: Digests<Edges>,
    run_keys: Digests<RunKeys>,
    conflicts: Digests<RunKeyConflicts>,
    idempotency: Digests<Idempotency>,
    materializations: Digests<Materializations>,
    check_results: Digests<CheckResults>,
    deployments: Digests<Deployments>,
}

fn history_text<T: HistoryTable>(row: &T::Row) -> String {
    format!("{:?}", history_key::<T>(row))
}

fn place_text<T: Table>(row: &T::Row) -> String {
    T::place(row).to_string()
}

async fn replay(
    log: &dyn Log,
    workshop: &Workshop,
    manifest: &Manifest,
    report: &mut VerifyReport,
) -> Result<Expected, Error> {
    let (tenant, workspace) = (workshop.layout.tenant().clone(), workshop.layout.workspace().clone());
    let mut state = State::new(tenant, workspace, workshop.settings.clone());
    let oldest = oldest_kept(manifest);
    let mut expected = Expected {
        hot: state.rows(),
        runs: Digests::new(history_text::<Runs>),
        tasks: Digests::new(history_text::<Tasks>),
        edges: Digests::new(history_text::<Edges>),
        run_keys: Digests::new(place_text::<RunKeys>),
        conflicts: Digests::new(place_text::<RunKeyConflicts>),
        idempotency: Digests::new(place_text::<Idempotency>),
        materializations: Digests::new(|row: &MaterializationRow| {
            format!("{} {:?}", row.row_version, row.asset_key)
        }),
        check_results: Digests::new(|row: &CheckResultRow| {
            format!("{} {:?} {}", row.row_version, row.asset_key, row.check_name)
        }),
        deployments: Digests::new(history_text::<Deployments>),
    };
    let mut take = |delta: &Delta| {
        expected.runs.add(&delta.ended_runs, |_| true);
        expected.tasks.add(&delta.ended_tasks, |_| true);
        expected.edges.add(&delta.ended_edges, |_| true);
        expected.run_keys.add(&delta.run_keys, |row| row.created_at >= oldest);
        expected.conflicts.add(&delta.run_key_conflicts, |_| true);
        expected.idempotency.add(&delta.idempotency, |row| row.created_at >= oldest);
        expected.materializations.add(&delta.materializations, |_| true);
        expected.check_results.add(&delta.check_results, |_| true);
        expected.deployments.add(&delta.ended_deployments, |_| true);
    };
    let mut batches = log.read(1);
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
            take(&state.take_delta());
        }
    }
    take(&state.take_delta());
    if state.head().seq < report.through {
        let reason = format!(
            "the manifest ends at batch {}, the log already at {}; the log has lost its end",
            report.through,
            state.head().seq
        );
        return Err(Error::Refused { what: "verification", reason });
    }
    expected.hot = state.rows();
    Ok(expected)
}
