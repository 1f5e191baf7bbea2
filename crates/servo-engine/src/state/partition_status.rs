//! The status of each partition: its newest good materialization, and how the last attempt ended (ADR-056).
//!
//! An asset may have millions of partitions. A status takes 104 bytes while it changes, and about 25 afterwards
//! (ADR-200). Code versions are interned: partitions made by the same code share its text.
//! Only partitions whose last attempt was not a materialization need more.

use std::sync::Arc;

use servo_core::{AssetKey, EventId, MaterializationId, Millis, PartitionKey, RunId, Timestamp, sha256_hex};

use super::RestoreError;
use super::code_versions::{CodeVersions, Symbol};
use crate::lifecycle::{AttemptOutcome, DataStatus};
use crate::outputs::DataFormat;
use crate::rows::PartitionStatusRow;

/// A materialization that counts, with everything that is kept of it in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Materialization {
    pub(crate) id: MaterializationId,
    pub(crate) format: Option<DataFormat>,
    pub(crate) run_id: RunId,
    pub(crate) at: Timestamp,
    pub(crate) event_id: EventId,
    /// The event that decided what its attempt reads; none if nobody recorded it.
    pub(crate) inputs_as_of: Option<EventId>,
    /// The version of the code that made it.
    pub(crate) code_version: Option<Arc<str>>,
    /// The event from which on it counts: later than its own if it had to be released first.
    pub(crate) counts_from: EventId,
    /// Stands for what it contains; none if nobody said.
    pub(crate) content: Option<ContentDigest>,
    /// When the oldest of what it was made from was made; its own time if it reads nothing.
    pub(crate) data_as_of: Timestamp,
}

/// Stands for a hash of content, in 56 bits: only two materializations of one partition are ever compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentDigest([u8; 7]);

impl ContentDigest {
    /// The digest of a reported hash.
    pub(crate) fn of(content_hash: &str) -> Self {
        let hex = sha256_hex(content_hash.as_bytes());
        let number = u64::from_str_radix(&hex[..14], 16).expect("a hash is hexadecimal");
        // Zero stands for none.
        Self::from_number(number).unwrap_or(Self([0, 0, 0, 0, 0, 0, 1]))
    }

    fn from_number(number: u64) -> Option<Self> {
        let [_, digest @ ..] = number.to_be_bytes();
        (digest != [0; 7]).then_some(Self(digest))
    }

    fn number(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[1..].copy_from_slice(&self.0);
        u64::from_be_bytes(bytes)
    }
}

/// A good materialization, packed. Ids are kept as bytes, which pack more tightly than numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Materialized {
    pub(super) id: [u8; 16],
    pub(super) run_id: [u8; 16],
    pub(super) event_id: [u8; 16],
    pub(super) inputs_as_of: [u8; 16],
    pub(super) content_since: [u8; 16],
    /// All zero if nobody said.
    pub(super) content: [u8; 7],
    pub(super) at: Timestamp,
    /// Seconds from the time of the data to its own.
    pub(super) data_lag: u32,
    pub(super) code_version: Symbol,
    pub(super) format: Option<DataFormat>,
}

impl Materialized {
    /// Stands where there is none.
    pub(super) const NONE: Self = Self {
        id: [0; 16],
        run_id: [0; 16],
        event_id: [0; 16],
        inputs_as_of: [0; 16],
        content_since: [0; 16],
        content: [0; 7],
        at: Timestamp::EPOCH,
        data_lag: 0,
        code_version: Symbol::NONE,
        format: None,
    };

    /// Packs a materialization.
    pub(super) fn new(materialization: &Materialization, code_versions: &mut CodeVersions) -> Self {
        let inputs_as_of = materialization.inputs_as_of.unwrap_or(EventId::NIL);
        Self {
            id: materialization.id.to_u128().to_be_bytes(),
            run_id: materialization.run_id.to_u128().to_be_bytes(),
            event_id: materialization.event_id.to_u128().to_be_bytes(),
            inputs_as_of: inputs_as_of.to_u128().to_be_bytes(),
            content_since: materialization.counts_from.to_u128().to_be_bytes(),
            content: materialization.content.map_or([0; 7], |content| content.0),
            at: materialization.at,
            data_lag: data_lag(materialization.at, materialization.data_as_of),
            code_version: code_versions.intern(materialization.code_version.as_ref()),
            format: materialization.format,
        }
    }

    /// The event that decided what its attempt reads: inputs that are newer were not read.
    pub fn inputs_as_of(self) -> Option<EventId> {
        let event = EventId::from_u128(u128::from_be_bytes(self.inputs_as_of));
        (event != EventId::NIL).then_some(event)
    }

    /// The event since which its partition has this content: a materialization that changes nothing is none for its
    /// readers.
    pub fn content_since(self) -> EventId {
        EventId::from_u128(u128::from_be_bytes(self.content_since))
    }

    /// How old its data is: when the oldest of what it was made from was made, to the second.
    pub fn data_as_of(self) -> Timestamp {
        self.at.saturating_sub(Millis::from_secs(u64::from(self.data_lag)))
    }

    /// The same, of which the partition had this content before already.
    fn after(mut self, before: &Self) -> Self {
        if self.content != [0; 7] && self.content == before.content {
            self.content_since = before.content_since;
        }
        self
    }

    /// Where the version of its code is among the interned ones.
    pub(super) fn code_version(self) -> Symbol {
        self.code_version
    }

    /// The format of its data; none if it was not reported.
    pub fn format(self) -> Option<DataFormat> {
        self.format
    }

    /// Whether it has data that can be pointed at. A worker that said nothing of its form has stored none that is
    /// known.
    pub fn has_data(self) -> bool {
        self.format.is_some_and(|format| format != DataFormat::None)
    }

    /// Its id.
    pub fn id(self) -> MaterializationId {
        MaterializationId::from_u128(u128::from_be_bytes(self.id))
    }

    /// The run that made it.
    pub fn run_id(self) -> RunId {
        RunId::from_u128(u128::from_be_bytes(self.run_id))
    }

    /// The event that reported it.
    pub fn event_id(self) -> EventId {
        EventId::from_u128(u128::from_be_bytes(self.event_id))
    }

    /// When it was reported.
    pub fn at(self) -> Timestamp {
        self.at
    }

    fn attempt(self) -> LastAttempt {
        LastAttempt {
            outcome: AttemptOutcome::Succeeded,
            run_id: self.run_id(),
            at: self.at,
            event_id: self.event_id(),
        }
    }
}

/// The last task that ended for a partition, one way or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAttempt {
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Its run.
    pub run_id: RunId,
    /// When it ended.
    pub at: Timestamp,
    /// The event that ended it.
    pub event_id: EventId,
}

/// The status of one partition, or of an asset without partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionStatus(pub(super) Facts);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Facts {
    /// Attempted, never materialized.
    Attempted(Box<LastAttempt>),
    /// The last attempt is the materialization.
    Materialized(Materialized),
    /// Attempted again since, without a materialization.
    Since(Box<(Materialized, LastAttempt)>),
    /// Materialized, and too old to count: when it expired.
    Expired(Box<LastAttempt>),
}

impl PartitionStatus {
    /// The newest good materialization.
    pub fn latest(&self) -> Option<Materialized> {
        match &self.0 {
            Facts::Attempted(_) | Facts::Expired(_) => None,
            Facts::Materialized(latest) => Some(*latest),
            Facts::Since(known) => Some(known.0),
        }
    }

    /// How the last attempt ended.
    pub fn last_attempt(&self) -> LastAttempt {
        match &self.0 {
            Facts::Attempted(last) | Facts::Expired(last) => **last,
            Facts::Materialized(latest) => latest.attempt(),
            Facts::Since(known) => known.1,
        }
    }

    /// The event of its newest change, or the one since which it has its content if that is later.
    pub(super) fn changed_at(&self) -> EventId {
        let since = self.latest().map_or(EventId::NIL, Materialized::content_since);
        self.last_attempt().event_id.max(since)
    }

    /// The status shown to people.
    pub fn status(&self) -> DataStatus {
        if let Facts::Expired(_) = self.0 {
            return DataStatus::Expired;
        }
        match (self.latest(), self.last_attempt().outcome) {
            (None, AttemptOutcome::Succeeded | AttemptOutcome::Failed) => DataStatus::NeverMaterialized,
            (Some(_), AttemptOutcome::Succeeded) => DataStatus::Materialized,
            (Some(_), AttemptOutcome::Failed) => DataStatus::LastAttemptFailed,
        }
    }

    /// Of two materializations and of two attempts the one with the greater event counts, whichever came first.
    pub(super) fn merge(&self, latest: Option<Materialized>, last: LastAttempt) -> Self {
        let latest = match (self.latest(), latest) {
            (Some(known), Some(latest)) if latest.event_id() > known.event_id() => Some(latest.after(&known)),
            (Some(known), _) => Some(known),
            (None, latest) => latest,
        };
        let known = self.last_attempt();
        if latest.is_none() && last.event_id <= known.event_id {
            return self.clone();
        }
        Self::of(latest, if last.event_id > known.event_id { last } else { known })
    }

    /// The same, as of a later event.
    pub(super) fn renewed(&self, event_id: EventId) -> Self {
        let last = LastAttempt { event_id, ..self.last_attempt() };
        match &self.0 {
            Facts::Expired(_) => Self::expired(last),
            Facts::Attempted(_) | Facts::Materialized(_) | Facts::Since(_) => Self::of(self.latest(), last),
        }
    }

    /// The status of what was materialized and is too old to count.
    pub(crate) fn expired(at: LastAttempt) -> Self {
        Self(Facts::Expired(Box::new(at)))
    }

    /// Since when it counts: when it was made, or when somebody last said that it is there. None if it does not.
    pub(crate) fn counts_since(&self) -> Option<Timestamp> {
        let (latest, last) = (self.latest()?, self.last_attempt());
        Some(if last.run_id == RunId::NIL { last.at.max(latest.at()) } else { latest.at() })
    }

    /// When it expires if it counts for this long, to the next full second: what was made together expires together.
    pub(crate) fn expires_at(&self, after: Millis) -> Option<Timestamp> {
        let exact = self.counts_since()?.saturating_add(after);
        let past = exact.as_millis().rem_euclid(1_000).unsigned_abs();
        Some(exact.saturating_add(Millis::new((1_000 - past) % 1_000)))
    }

    pub(crate) fn of(latest: Option<Materialized>, last: LastAttempt) -> Self {
        Self(match latest {
            None => Facts::Attempted(Box::new(last)),
            Some(latest) if latest.attempt() == last => Facts::Materialized(latest),
            Some(latest) => Facts::Since(Box::new((latest, last))),
        })
    }
}

/// Number of partitions of an asset by status. Partitions that were never attempted are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartitionCounts {
    /// Attempted, never materialized.
    pub never: u64,
    /// Materialized, and the last attempt succeeded.
    pub materialized: u64,
    /// Materialized, and the last attempt failed.
    pub failing: u64,
    /// Materialized, and too old to count.
    pub expired: u64,
}

impl PartitionCounts {
    pub(super) fn of(&mut self, status: DataStatus) -> &mut u64 {
        match status {
            DataStatus::NeverMaterialized => &mut self.never,
            DataStatus::Materialized => &mut self.materialized,
            DataStatus::LastAttemptFailed => &mut self.failing,
            DataStatus::Expired => &mut self.expired,
        }
    }
}

pub(super) fn row(
    asset: &AssetKey,
    partition: Option<PartitionKey>,
    status: &PartitionStatus,
    code_versions: &CodeVersions,
) -> PartitionStatusRow {
    let (latest, last) = (status.latest(), status.last_attempt());
    PartitionStatusRow {
        asset_key: asset.clone(),
        partition_key: partition,
        status: status.status(),
        last_materialization_id: latest.map(Materialized::id),
        last_materialization_format: latest.and_then(Materialized::format),
        last_materialization_at: latest.map(Materialized::at),
        last_materialization_run_id: latest.map(Materialized::run_id),
        last_materialization_event_id: latest.map(Materialized::event_id),
        last_materialization_inputs_as_of: latest.and_then(Materialized::inputs_as_of),
        last_materialization_code_version: latest
            .and_then(|latest| code_versions.get(latest.code_version))
            .map(ToString::to_string),
        last_materialization_content_since: latest.map(Materialized::content_since),
        last_materialization_content: latest
            .and_then(|latest| ContentDigest::from_number(ContentDigest(latest.content).number()))
            .map(ContentDigest::number),
        last_materialization_data_as_of: latest.map(Materialized::data_as_of),
        last_attempt_outcome: last.outcome,
        last_attempt_at: last.at,
        last_attempt_run_id: last.run_id,
        row_version: last.event_id,
    }
}

/// Whole seconds, rounded down: data is never said to be older than it is.
fn data_lag(at: Timestamp, data_as_of: Timestamp) -> u32 {
    u32::try_from(at.since(data_as_of).get() / 1_000).unwrap_or(u32::MAX)
}

pub(super) fn restore(
    row: &PartitionStatusRow,
    code_versions: &mut CodeVersions,
) -> Result<PartitionStatus, RestoreError> {
    let last = LastAttempt {
        outcome: row.last_attempt_outcome,
        run_id: row.last_attempt_run_id,
        at: row.last_attempt_at,
        event_id: row.row_version,
    };
    if row.status == DataStatus::Expired {
        return Ok(PartitionStatus::expired(last));
    }
    let latest = match (
        row.last_materialization_id,
        row.last_materialization_run_id,
        row.last_materialization_at,
        row.last_materialization_event_id,
    ) {
        (Some(id), Some(run_id), Some(at), Some(event)) => Some(Materialized {
            id: id.to_u128().to_be_bytes(),
            run_id: run_id.to_u128().to_be_bytes(),
            event_id: event.to_u128().to_be_bytes(),
            inputs_as_of: row
                .last_materialization_inputs_as_of
                .unwrap_or(EventId::NIL)
                .to_u128()
                .to_be_bytes(),
            content_since: row.last_materialization_content_since.unwrap_or(event).to_u128().to_be_bytes(),
            content: row
                .last_materialization_content
                .and_then(ContentDigest::from_number)
                .map_or([0; 7], |content| content.0),
            at,
            data_lag: data_lag(at, row.last_materialization_data_as_of.unwrap_or(at)),
            code_version: code_versions.intern_str(row.last_materialization_code_version.as_deref()),
            format: row.last_materialization_format,
        }),
        (None, None, None, None) => None,
        _ => {
            let partition = row.partition_key.as_ref().map_or("", PartitionKey::canonical);
            return Err(RestoreError {
                table: "partition_status",
                key: format!("{}, {partition}", row.asset_key.canonical()),
                problem: "it has a part of a materialization".to_owned(),
            });
        }
    };
    Ok(PartitionStatus::of(latest, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_takes_104_bytes_beside_its_key() {
        assert_eq!(size_of::<PartitionStatus>(), 104);
    }
}
