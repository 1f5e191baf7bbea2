//! The manifest: which files make up the tables at one moment. Immutable, numbered, plain JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use servo_core::{EventId, Millis, PutId, Timestamp};
use servo_engine::DailyRuns;
use servo_engine::rows::{Head, KeyRetention};

use crate::error::Error;
use crate::table::SCHEMA_VERSION;

/// The name under which files of run keys are listed among those of tables.
pub(crate) const RUN_KEYS: &str = "run keys";
/// The same for files of packed statuses.
pub(crate) const PACKED_STATUSES: &str = "packed statuses";

/// Files by table.
pub type TableFiles = BTreeMap<String, Vec<FileRef>>;

/// One revision of the tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form and of the files it names.
    pub schema_version: u64,
    /// Number of the manifest, from 1, without holes.
    pub revision: u64,
    /// Unique for each attempt to publish: tells this writer's manifest from another's.
    pub revision_ulid: PutId,
    /// When it was published, by the clock of its writer.
    pub published_at: Timestamp,
    /// Epoch of its writer.
    pub epoch: u64,
    /// The writer: one id per opened compactor or rebuild.
    pub writer: PutId,
    /// How much of the log is in the tables.
    pub watermarks: Watermarks,
    /// Complete hot tables at an earlier moment.
    pub base_snapshot: Option<BaseSnapshot>,
    /// Changes since then, oldest first.
    pub l0_deltas: Vec<L0Delta>,
    /// When the deltas are merged into a new base.
    pub l0_limits: L0Limits,
    /// Rows that do not change any more, oldest file first: ended runs, and tables that only grow.
    pub history: TableFiles,
    /// Run keys, sorted by hash, oldest file first.
    pub run_keys: Vec<FileRef>,
    /// How long request keys are remembered, so that readers forget exactly what the state forgot.
    pub dedup: Dedup,
    /// Rows of history whose time is earlier may be missing: they are not kept any more. In milliseconds since the
    /// epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_since: Option<i64>,
    /// Manifests up to this one may be deleted at any time: a writer that creates such a number is stale.
    pub boundary: u64,
    /// Manifests up to this one have been dropped, and the files that only they named are deleted.
    pub pruned_through: u64,
}

/// How much of the log is in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermarks {
    /// Last event folded.
    pub events_processed_through: EventId,
    /// Last batch folded.
    pub last_seq: u64,
    /// When that was written to the tables.
    pub last_processed_at: Timestamp,
    /// Time of the newest event.
    pub last_event_at: Timestamp,
    /// Time that has passed in the log, by which request keys expire.
    pub elapsed_ms: Millis,
    /// Events skipped because the writer did not know them.
    pub unknown_events: u64,
    /// Runs that were asked for on the newest day that had some.
    #[serde(default)]
    pub daily_runs: DailyRuns,
}

impl Watermarks {
    pub(crate) fn new(head: Head, now: Timestamp) -> Self {
        Self {
            events_processed_through: head.last_event,
            last_seq: head.seq,
            last_processed_at: now,
            last_event_at: head.last_event_at,
            elapsed_ms: head.elapsed,
            unknown_events: head.unknown_events,
            daily_runs: head.daily_runs,
        }
    }

    /// The same as the fold says it.
    pub fn head(&self) -> Head {
        Head {
            seq: self.last_seq,
            last_event: self.events_processed_through,
            last_event_at: self.last_event_at,
            elapsed: self.elapsed_ms,
            unknown_events: self.unknown_events,
            daily_runs: self.daily_runs,
        }
    }
}

/// Complete hot tables at an earlier moment, not necessarily the same for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseSnapshot {
    /// Unique id.
    pub snapshot_id: PutId,
    /// When it was made.
    pub published_at: Timestamp,
    /// Its files.
    pub tables: TableFiles,
    /// Contents of large files of table `partition_status`, as memory has them: by the paths of those.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packed_statuses: BTreeMap<String, FileRef>,
}

/// Changes of one flush, or of several merged into one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct L0Delta {
    /// Unique id.
    pub l0_id: PutId,
    /// When it was written.
    pub created_at: Timestamp,
    /// First batch whose changes it holds.
    pub first_seq: u64,
    /// Last batch whose changes it holds.
    pub last_seq: u64,
    /// Rows and tombstones in all its files.
    pub rows: u64,
    /// 0: one flush. 1: many, merged, of tables whose base is so large that it stays.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// Its files.
    pub tables: TableFiles,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// When deltas are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct L0Limits {
    /// More deltas than this.
    pub max_count: u64,
    /// More rows in them than this.
    pub max_rows: u64,
    /// An oldest delta older than this.
    pub max_age_ms: u64,
}

/// How long request keys are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dedup {
    /// Age, relative to the newest key of the table.
    pub window_ms: u64,
    /// Number of keys.
    pub max_entries: u64,
    /// Number of run keys in memory.
    pub run_keys: u64,
}

impl Dedup {
    pub(crate) fn of(kept: KeyRetention) -> Self {
        Self {
            window_ms: kept.window.get(),
            max_entries: kept.entries as u64,
            run_keys: kept.run_keys as u64,
        }
    }
}

/// One file: of a table in Parquet, or of run keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// Name, relative to the workspace.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of all of it, in hex.
    pub sha256: String,
    /// Length of its end: everything after the last row group.
    pub tail_bytes: u64,
    /// CRC-32 of that end, which holds the CRC-32 of every column chunk: parts of a file are verified one by one.
    pub tail_crc32: u32,
    /// How often its rows have been merged.
    pub level: u32,
    /// Lowest place of a row: `requested_event_id` for ended runs, else `row_version`.
    pub min_key: Option<EventId>,
    /// Highest place of a row.
    pub max_key: Option<EventId>,
    /// Earliest time of a row, in milliseconds since the epoch.
    pub min_at: Option<i64>,
    /// Latest time of a row.
    pub max_at: Option<i64>,
}

impl Manifest {
    /// Reads a manifest, refusing newer versions before looking at anything else in them.
    pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u64,
        }
        let damaged = |error: serde_json::Error| Error::damaged(file, format!("not a manifest: {error}"));
        let Version { schema_version: found } = serde_json::from_slice(bytes).map_err(damaged)?;
        if found > SCHEMA_VERSION {
            return Err(Error::Newer { file: file.to_owned(), found, supported: SCHEMA_VERSION });
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        match manifest.nonsense() {
            Some(problem) => Err(Error::damaged(file, problem)),
            None => Ok(manifest),
        }
    }

    /// Numbers that no writer produces, and that readers and the next writer could not continue from.
    fn nonsense(&self) -> Option<&'static str> {
        if self.boundary >= self.revision {
            Some("its boundary is not below its revision")
        } else if self.pruned_through > self.boundary {
            Some("more is dropped than its boundary allows")
        } else if self.watermarks.last_seq == u64::MAX {
            Some("no batch can follow its last one")
        } else {
            None
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a manifest in memory serializes");
        bytes.push(b'\n');
        bytes
    }

    /// Every file it names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &FileRef)> {
        let base = self.base_snapshot.iter().map(|base| &base.tables);
        let deltas = self.l0_deltas.iter().map(|delta| &delta.tables);
        let tables = base.chain(deltas).chain([&self.history]).flatten();
        let run_keys = self.run_keys.iter().map(|file| (RUN_KEYS, file));
        let packed = self.packed_statuses().map(|(_, file)| (PACKED_STATUSES, file));
        let tables = tables.flat_map(|(table, files)| files.iter().map(move |file| (table.as_str(), file)));
        tables.chain(run_keys).chain(packed)
    }

    /// Files of packed statuses, each behind the file of the table that says the same.
    pub(crate) fn packed_statuses(&self) -> impl Iterator<Item = (&str, &FileRef)> {
        let packed = self.base_snapshot.iter().flat_map(|base| &base.packed_statuses);
        packed.map(|(path, file)| (path.as_str(), file))
    }

    pub(crate) fn paths(&self) -> BTreeSet<&str> {
        self.files().map(|(_, file)| file.path.as_str()).collect()
    }

    /// Files of immutable rows of a table, oldest first.
    pub(crate) fn immutable(&self, table: &str) -> &[FileRef] {
        self.history.get(table).map_or(&[], Vec::as_slice)
    }
}
