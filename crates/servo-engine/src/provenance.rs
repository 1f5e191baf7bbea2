//! The provenance of an attempt: the deployed code it is asked to run, and the exact materializations it reads.
//!
//! It is decided with the dispatch and recorded in the log (ADR-086), so that staleness and lineage can say what was
//! really read, and an attempt that is handed out again reads the same data. A task with very many inputs records a
//! digest of them instead: their names would make the log as large as the data.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, AttemptId, MaterializationId, PartitionKey, Timestamp, sha256_hex};

use crate::definitions::Severity;
use crate::work::WorkPiece;

/// The most partitions of inputs that a dispatch names one by one; an event stays far below 64 kB.
pub const NAMED_INPUTS: usize = 256;

/// The code and the data of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Number of the deployment whose definitions the attempt follows; 0 if nothing is deployed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deployment: u64,
    /// The code version of each asset that the task makes, in the order of the task; absent where none is declared.
    #[serde(default, skip_serializing_if = "no_versions")]
    pub code_versions: Vec<Option<Arc<str>>>,
    /// Whether a definition changed between the plan of the run and this dispatch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub definition_changed: bool,
    /// The checks that the attempt has to report, as they were declared at the dispatch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ExpectedCheck>,
    /// One entry for each dependency that has data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputRead>,
    /// When the oldest data behind the inputs was made; of partitions of time the newest that is read counts. None if
    /// it reads nothing that was made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_as_of: Option<Timestamp>,
    /// The attempt that leads the call which makes several partitions, this one among them (ADR-210).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<AttemptId>,
}

/// A check that an attempt has to report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ExpectedCheck {
    /// Position of the asset among those of the task.
    #[serde(default, skip_serializing_if = "is_first")]
    pub output: u32,
    pub name: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub severity: Severity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<bool>,
}

/// The data of one dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRead {
    /// The upstream asset.
    pub asset: AssetKey,
    /// Its partitions and their materializations.
    pub pieces: PiecesRead,
}

/// The materializations of one dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PiecesRead {
    /// Each by name, in the order of partitions.
    Named(Vec<PieceRead>),
    /// Too many to name: the newest materializations of these partitions at the event of the dispatch.
    Counted {
        /// How many partitions have data.
        count: u64,
        /// The first of them.
        first: PartitionKey,
        /// The last of them.
        last: PartitionKey,
        /// Hash of their keys and materializations, in order.
        digest: String,
    },
}

/// One materialization that an attempt reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceRead {
    /// Its partition; none if the asset has no partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionKey>,
    /// Its id.
    pub id: MaterializationId,
}

impl Provenance {
    /// That of a task without an attempt, which all of them share.
    pub(crate) fn none() -> Arc<Self> {
        static NONE: LazyLock<Arc<Provenance>> = LazyLock::new(Arc::default);
        NONE.clone()
    }

    /// The code version that the attempt was asked to run for the asset at this position of the task.
    pub fn code_version(&self, position: usize) -> Option<&Arc<str>> {
        self.code_versions.get(position)?.as_ref()
    }

    /// The materialization that a check of an asset looks at: it is recorded as an input of its own.
    pub fn checked(&self, asset: &AssetKey) -> Option<MaterializationId> {
        match &self.inputs.iter().find(|read| read.asset == *asset)?.pieces {
            PiecesRead::Named(pieces) => pieces.first().map(|piece| piece.id),
            PiecesRead::Counted { .. } => None,
        }
    }
}

impl InputRead {
    /// Records what a dependency gives; none if it gives nothing. `named` is how many more pieces may be named.
    pub(crate) fn new(asset: &AssetKey, pieces: &[WorkPiece], named: usize) -> Option<Self> {
        let stored = || pieces.iter().filter_map(|piece| Some((piece, piece.materialization_id?)));
        let count = stored().count();
        let (first, last) = (stored().next()?.0, stored().next_back()?.0);
        let pieces = match (&first.partition, &last.partition) {
            (Some(first), Some(last)) if count > named => PiecesRead::Counted {
                count: count as u64,
                first: first.clone(),
                last: last.clone(),
                digest: digest(stored()),
            },
            _ => PiecesRead::Named(
                stored().map(|(piece, id)| PieceRead { partition: piece.partition.clone(), id }).collect(),
            ),
        };
        Some(Self { asset: asset.clone(), pieces })
    }

    /// How many materializations it names.
    pub(crate) fn named(&self) -> usize {
        match &self.pieces {
            PiecesRead::Named(pieces) => pieces.len(),
            PiecesRead::Counted { .. } => 0,
        }
    }
}

fn digest<'a>(pieces: impl Iterator<Item = (&'a WorkPiece, MaterializationId)>) -> String {
    let mut text = String::new();
    for (piece, id) in pieces {
        text.push_str(piece.partition.as_ref().map_or("", PartitionKey::canonical));
        text.push('=');
        text.push_str(&id.to_string());
        text.push('\n');
    }
    format!("sha256:{}", sha256_hex(text.as_bytes()))
}

fn is_first(position: &u32) -> bool {
    *position == 0
}

fn is_default(severity: &Severity) -> bool {
    *severity == Severity::default()
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn no_versions(versions: &[Option<Arc<str>>]) -> bool {
    versions.iter().all(Option::is_none)
}
