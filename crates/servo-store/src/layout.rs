//! Where everything of a workspace lies. No other code puts paths together.
//!
//! Names are relative to the workspace's own prefix, `tenant={t}/workspace={w}`, which a log or a blob store
//! puts in front. They use `/` everywhere.

use std::fmt;

use servo_core::{
    AssetKey, MaterializationId, PartitionKey, RunId, TaskKey, TenantId, WorkspaceId, cloud_task_id,
    sha256_hex,
};

use crate::Seq;

/// Longer partition keys are hashed: a name of a file has at most 255 bytes.
const LONGEST_NAME: usize = 200;

/// The kind of a table's Parquet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableFileKind {
    /// Rows changed since the last flush.
    L0,
    /// The whole table at some revision.
    Base,
    /// Rows that will not change any more, in time order.
    History,
    /// Run keys, sorted by hash.
    Keys,
    /// A part of the base as memory has it.
    Packed,
}

impl TableFileKind {
    /// As it is written in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::L0 => "l0",
            Self::Base => "base",
            Self::History => "history",
            Self::Keys => "keys",
            Self::Packed => "base",
        }
    }

    /// The end of file names.
    fn extension(self) -> &'static str {
        match self {
            Self::L0 | Self::Base | Self::History => "parquet",
            Self::Keys => "keys",
            Self::Packed => "packed",
        }
    }
}

/// Builds the names of one workspace.
///
/// ```
/// use servo_store::{Layout, TableFileKind};
/// let layout = Layout::new("acme".parse()?, "main".parse()?);
/// assert_eq!(layout.prefix(), "tenant=acme/workspace=main");
/// assert_eq!(layout.batch(7), "ledger/orchestration/00000000000000000007.jsonl");
/// assert_eq!(layout.table_file("runs", TableFileKind::Base, "12"), "state/orchestration/runs/base-12.parquet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    tenant: TenantId,
    workspace: WorkspaceId,
}

impl Layout {
    /// The layout of a workspace.
    pub fn new(tenant: TenantId, workspace: WorkspaceId) -> Self {
        Self { tenant, workspace }
    }

    /// The tenant that owns the workspace.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Which workspace it is.
    pub fn workspace(&self) -> &WorkspaceId {
        &self.workspace
    }

    /// Prefix of every name of this workspace, without a slash at the end.
    pub fn prefix(&self) -> String {
        format!("tenant={}/workspace={}", self.tenant, self.workspace)
    }

    /// Directory of the log's batches or segments.
    pub fn ledger_dir(&self) -> &'static str {
        "ledger/orchestration"
    }

    /// A batch object by its number, or a segment file by the number of its first batch.
    pub fn batch(&self, seq: Seq) -> String {
        format!("{}/{}", self.ledger_dir(), batch_name(seq))
    }

    /// The lock file that makes one writer of a log of files.
    pub fn ledger_lock(&self) -> &'static str {
        "ledger/.lock"
    }

    /// The file that keeps space for a log of files.
    pub fn ledger_reserve(&self) -> &'static str {
        "ledger/.reserve"
    }

    /// The boundary of a log of files.
    pub fn ledger_boundary(&self) -> &'static str {
        "ledger/orchestration.boundary.json"
    }

    /// The `n`th boundary of a log of objects.
    pub fn ledger_boundary_step(&self, n: u64) -> String {
        format!("ledger/orchestration.boundary/{n:020}.json")
    }

    /// A manifest by its revision.
    pub fn manifest(&self, revision: u64) -> String {
        format!("{}/{revision:020}.json", self.manifest_dir())
    }

    /// Directory of the numbered manifests.
    pub fn manifest_dir(&self) -> &'static str {
        "manifests/orchestration"
    }

    /// The copy of the newest manifest, for people and tools.
    pub fn manifest_latest(&self) -> &'static str {
        "manifests/orchestration.manifest.json"
    }

    /// Directory of all tables.
    pub fn state_dir(&self) -> &'static str {
        "state/orchestration"
    }

    /// Directory of one table.
    pub fn table_dir(&self, table: &str) -> String {
        format!("{}/{table}", self.state_dir())
    }

    /// One Parquet file of a table.
    pub fn table_file(&self, table: &str, kind: TableFileKind, id: impl fmt::Display) -> String {
        format!("{}/{table}/{}-{id}.{}", self.state_dir(), kind.as_str(), kind.extension())
    }

    /// Home of an asset, or of one of its partitions: where its materializations are.
    pub fn data_home(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> String {
        let asset = format!("assets/{}", asset.canonical());
        match partition.map(PartitionKey::canonical) {
            None => asset,
            Some(key) if key.len() <= LONGEST_NAME => format!("{asset}/partitions/{key}"),
            Some(key) => format!("{asset}/partitions/sha256-{}", sha256_hex(key.as_bytes())),
        }
    }

    /// Directory of a materialization.
    pub fn materialization(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        id: MaterializationId,
    ) -> String {
        format!("{}/materializations/{id}", self.data_home(asset, partition))
    }

    /// Directory of what a check has blocked.
    pub fn quarantine(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        id: MaterializationId,
    ) -> String {
        format!("{}/quarantine/{id}", self.data_home(asset, partition))
    }

    /// Says which materialization is the latest, for people and tools.
    pub fn latest(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> String {
        format!("{}/latest.json", self.data_home(asset, partition))
    }

    /// Directory of what the attempts of a run write before it counts.
    pub fn staging_of(&self, run: RunId) -> String {
        format!("staging/{run}")
    }

    /// Directory of what an attempt writes before it counts.
    pub fn staging(&self, run: RunId, task: &TaskKey, attempt: u32) -> String {
        format!("{}/{}/attempt={attempt}", self.staging_of(run), cloud_task_id('t', task.as_str()))
    }

    /// Work of an attempt that is too large for its message, by its hash. It goes with what the run has staged.
    pub fn stored_work(&self, run: RunId, sha256: &str) -> String {
        format!("{}/work/{sha256}.json", self.staging_of(run))
    }

    /// Directory of all logs of attempts.
    pub fn attempt_logs(&self) -> &'static str {
        "logs"
    }

    /// Directory in which a worker proves that it shares the storage of the workspace.
    pub fn worker_proof(&self, worker: &str) -> String {
        format!("workers/{}", &sha256_hex(worker.as_bytes())[..32])
    }

    /// The log of an attempt.
    pub fn attempt_log(&self, run: RunId, task: &TaskKey, attempt: u32) -> String {
        format!("logs/{run}/{}/attempt={attempt}.jsonl", cloud_task_id('t', task.as_str()))
    }

    /// The `n`th record of a lease.
    pub fn lease(&self, name: &str, n: u64) -> String {
        lease(name, n)
    }
}

/// Name of a batch object or a segment file within its directory.
pub(crate) fn batch_name(seq: Seq) -> String {
    format!("{seq:020}.jsonl")
}

/// The number in such a name; nothing for any other name.
pub(crate) fn parse_batch_name(name: &str) -> Option<Seq> {
    let digits = name.strip_suffix(".jsonl")?;
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The `n`th record of a lease, for the lease itself, which knows only its blob store.
pub(crate) fn lease(name: &str, n: u64) -> String {
    format!("leases/{name}/{n:020}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_name_is_read_back() {
        for seq in [1, 42, u64::MAX] {
            assert_eq!(parse_batch_name(&batch_name(seq)), Some(seq));
        }
    }

    #[test]
    fn other_names_are_not_batches() {
        for name in [
            "1.jsonl",
            "00000000000000000001.json",
            "00000000000000000001.jsonl#1",
            "-0000000000000000001.jsonl",
        ] {
            assert_eq!(parse_batch_name(name), None, "{name}");
        }
    }
}
