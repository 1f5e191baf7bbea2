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

/// The most partitions of inputs that a dispatch names one by one.
pub const NAMED_INPUTS: usize = 256;

/// The most bytes of inputs that a dispatch names: an event stays far below 64 kB, whatever keys are like.
const NAMED_BYTES: usize = 32 << 10;

/// Bytes of an input besides the names in it.
const PIECE_BYTES: usize = 64;

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
    /// Further inputs without partitions, as a dispatch says it that has too many to name. The state names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<UnnamedInputs>,
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

/// Inputs without partitions that an event has no room to name: the newest materializations, at that event, of what the
/// task depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnnamedInputs {
    /// How many.
    pub count: u64,
    /// Hash of all that is named and unnamed, in order.
    pub digest: String,
}

/// The room that an event has for names of inputs.
pub(crate) struct RoomForNames {
    pieces: usize,
    bytes: usize,
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
    /// Records what a dependency gives; none if it gives nothing. Without room for names partitions are counted.
    pub(crate) fn new(asset: &AssetKey, pieces: &[WorkPiece], room: &RoomForNames) -> Option<Self> {
        let stored = || pieces.iter().filter_map(|piece| Some((piece, piece.materialization_id?)));
        let (mut count, mut bytes) = (0, asset.canonical().len());
        for (piece, _) in stored() {
            count += 1;
            bytes += piece.partition.as_ref().map_or(0, |key| key.canonical().len()) + PIECE_BYTES;
        }
        let (first, last) = (stored().next()?.0, stored().next_back()?.0);
        let pieces = match (&first.partition, &last.partition) {
            (Some(first), Some(last)) if count > room.pieces || bytes > room.bytes => PiecesRead::Counted {
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

    fn has_partitions(&self) -> bool {
        match &self.pieces {
            PiecesRead::Named(pieces) => pieces.iter().any(|piece| piece.partition.is_some()),
            PiecesRead::Counted { .. } => true,
        }
    }
}

impl RoomForNames {
    /// The room of an event in which nothing is named yet.
    pub(crate) fn of_event() -> Self {
        Self { pieces: NAMED_INPUTS, bytes: NAMED_BYTES }
    }

    /// No room: partitions are counted.
    pub(crate) const NONE: Self = Self { pieces: 0, bytes: 0 };

    /// Notes what is named.
    pub(crate) fn take(&mut self, input: &InputRead) {
        let PiecesRead::Named(pieces) = &input.pieces else { return };
        let keys =
            pieces.iter().filter_map(|piece| piece.partition.as_ref()).map(|key| key.canonical().len());
        let bytes = input.asset.canonical().len() + keys.sum::<usize>() + pieces.len() * PIECE_BYTES;
        self.pieces = self.pieces.saturating_sub(pieces.len());
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Provenance {
    /// The same as an event says it: of many inputs without partitions only those that it has room to name.
    pub(crate) fn into_event(mut self) -> Self {
        let mut room = RoomForNames::of_event();
        let digest = digest_of(&self.inputs);
        let before = self.inputs.len();
        self.inputs.retain(|input| {
            let has_room = input.has_partitions() || room.bytes > 0;
            room.take(input);
            has_room
        });
        let count = (before - self.inputs.len()) as u64;
        self.unnamed = (count > 0).then_some(UnnamedInputs { count, digest });
        self
    }

    /// Whether an event that names fewer inputs is about these.
    pub(crate) fn is_meant_by(&self, event: &Self) -> bool {
        event.unnamed.as_ref().is_some_and(|unnamed| unnamed.digest == digest_of(&self.inputs))
    }
}

fn digest_of(inputs: &[InputRead]) -> String {
    let text = serde_json::to_string(inputs).expect("inputs are plain data");
    format!("sha256:{}", sha256_hex(text.as_bytes()))
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
