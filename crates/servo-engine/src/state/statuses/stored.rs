//! Statuses as they are packed in memory, stored so that nobody looks at each of them to take them back (ADR-240).
//!
//! A section has blocks, one after the other, of which each has partitions of one asset in the order of their keys:
//! its name, how many there are, the versions of code that their columns number, the chunks of their statuses and the
//! chunks of their keys. Slots are counted from the beginning of the block.

use std::sync::Arc;

use bytes::Bytes;
use servo_core::{AssetKey, EventId, RunId, Timestamp};

use super::super::RestoreError;
use super::super::code_versions::{CodeVersions, Symbol};
use super::super::partition_status::{Facts, LastAttempt, PartitionStatus, restore};
use super::keys::{self, Entries};
use super::packed::{Pieces, Writer};
use super::slots::{self, Packed};
use super::{Restored, RestoredStatuses, text};
use crate::lifecycle::AttemptOutcome;
use crate::rows::{PartitionStatusRow, Row as _};

/// Partitions of a block, at most: all chunks of one that is followed by another are full.
const BLOCK: usize = 1 << 16;
/// A section that has more bytes takes no further block. Each is verified, read and kept in memory on its own.
const SECTION: usize = 1 << 20;

/// Packs rows of table `partition_status` for [`RestoredStatuses::add_packed`].
#[derive(Default)]
pub struct PackedStatuses {
    sections: Vec<Bytes>,
    section: Writer,
    block: Option<Block>,
}

struct Block {
    asset: AssetKey,
    code_versions: CodeVersions,
    keys: Entries,
    statuses: Vec<PartitionStatus>,
    /// The newest change of each chunk of them.
    newest: Vec<EventId>,
}

impl PackedStatuses {
    /// Adds rows, which come in the order of their keys.
    pub fn add(&mut self, rows: &[PartitionStatusRow]) -> Result<(), RestoreError> {
        for row in rows {
            let is_full = |block: &Block| block.asset != row.asset_key || block.statuses.len() == BLOCK;
            if self.block.as_ref().is_none_or(is_full) {
                self.close();
            }
            self.block.get_or_insert_with(|| Block::of(&row.asset_key)).add(row)?;
        }
        Ok(())
    }

    /// All sections.
    pub fn finish(mut self) -> Vec<Bytes> {
        self.close();
        if self.section.len() > 0 {
            self.sections.push(self.section.finish());
        }
        self.sections
    }

    fn close(&mut self) {
        if let Some(block) = self.block.take() {
            block.write(&mut self.section);
        }
        if self.section.len() > SECTION {
            self.sections.push(std::mem::take(&mut self.section).finish());
        }
    }
}

impl Block {
    fn of(asset: &AssetKey) -> Self {
        Self {
            asset: asset.clone(),
            code_versions: CodeVersions::default(),
            keys: Vec::new(),
            statuses: Vec::new(),
            newest: Vec::new(),
        }
    }

    fn add(&mut self, row: &PartitionStatusRow) -> Result<(), RestoreError> {
        let status = restore(row, &mut self.code_versions)?;
        let slot = self.statuses.len();
        let changed = status.changed_at();
        match self.newest.get_mut(slot / slots::CHUNK) {
            Some(newest) => *newest = changed.max(*newest),
            None => self.newest.push(changed),
        }
        self.keys.push((text(row.partition_key.as_ref()).into(), slot as u32));
        self.statuses.push(status);
        Ok(())
    }

    fn write(&self, writer: &mut Writer) {
        writer.sized(self.asset.canonical().as_bytes());
        writer.size(self.statuses.len());
        writer.size(self.code_versions.len());
        self.code_versions.iter().for_each(|version| writer.sized(version.as_bytes()));
        for (statuses, newest) in self.statuses.chunks(slots::CHUNK).zip(&self.newest) {
            let packed = Packed::of(statuses);
            writer.sized(&packed.columns);
            let others = packed.others.as_deref().unwrap_or_default();
            writer.size(others.len());
            for (at, status) in others {
                let last = status.last_attempt();
                writer.byte(*at);
                writer.byte(match status.0 {
                    Facts::Materialized(_) | Facts::Since(_) => 0,
                    Facts::Attempted(_) => 1,
                    Facts::Expired(_) => 2,
                });
                writer.byte(last.outcome as u8);
                writer.raw(&last.run_id.to_u128().to_be_bytes());
                writer.raw(&last.at.as_millis().to_be_bytes());
                writer.raw(&last.event_id.to_u128().to_be_bytes());
            }
            writer.raw(&newest.to_u128().to_be_bytes());
        }
        self.keys.chunks(keys::CHUNK).for_each(|keys| writer.sized(&keys::pack(keys)));
    }
}

impl RestoredStatuses {
    /// Adds the statuses of a section. Sections come in the order in which they were packed.
    pub fn add_packed(&mut self, section: Bytes) -> Result<(), RestoreError> {
        let mut pieces = Pieces(section);
        while !pieces.is_empty() {
            let asset = pieces.text().and_then(|text| AssetKey::parse_canonical(&text).ok());
            let asset = asset.ok_or_else(|| problem("", "it is not that of an asset"))?;
            let added = self.add_block(&asset, &mut pieces);
            added.ok_or_else(|| problem(asset.canonical(), "it is cut off, or out of order"))?;
        }
        Ok(())
    }

    fn add_block(&mut self, asset: &AssetKey, pieces: &mut Pieces) -> Option<()> {
        let len = pieces.size()?;
        let mut symbols = vec![Symbol::NONE];
        for _ in 0..pieces.size()? {
            symbols.push(self.code_versions.intern_str(Some(&pieces.text()?)));
        }
        let is_same = symbols.iter().zip(0..).all(|(symbol, number)| symbol.number() == number);
        let symbols: Option<Arc<[Symbol]>> = (!is_same).then(|| symbols.into());
        let Restored { index, statuses, counts, changed } = self.of(asset);
        if len >= slots::CHUNK {
            statuses.pad();
        }
        let first_slot = statuses.len();
        for from in (0..len).step_by(slots::CHUNK) {
            let here = (len - from).min(slots::CHUNK);
            let packed = Packed { columns: pieces.sized()?, others: None, symbols: symbols.clone() };
            let others = (0..pieces.size()?).map(|_| other(&packed, here, pieces));
            let others = others.collect::<Option<Vec<_>>>()?;
            (others.len() <= here).then_some(())?;
            others.iter().for_each(|(_, status)| *counts.of(status.status()) += 1);
            counts.materialized += (here - others.len()) as u64;
            let newest = EventId::from_u128(u128::from_be_bytes(pieces.array()?));
            changed.note(first_slot + from, newest);
            changed.note(first_slot + from + here - 1, newest);
            let others = (!others.is_empty()).then(|| others.into());
            statuses.append(Packed { others, ..packed }, here);
        }
        let first_slot = u32::try_from(first_slot).ok()?;
        for _ in (0..len).step_by(keys::CHUNK) {
            index.append(pieces.sized()?, first_slot).then_some(())?;
        }
        index.appended();
        Some(())
    }
}

/// A status that is more than what the columns have of it.
fn other(packed: &Packed, len: usize, pieces: &mut Pieces) -> Option<(u8, PartitionStatus)> {
    let [at, kind, outcome] = pieces.array()?;
    let last = LastAttempt {
        outcome: *AttemptOutcome::ALL.get(usize::from(outcome))?,
        run_id: RunId::from_u128(u128::from_be_bytes(pieces.array()?)),
        at: Timestamp::from_millis(i64::from_be_bytes(pieces.array()?)),
        event_id: EventId::from_u128(u128::from_be_bytes(pieces.array()?)),
    };
    let facts = match kind {
        0 => Facts::Since(Box::new((packed.materialized(usize::from(at), len), last))),
        1 => Facts::Attempted(Box::new(last)),
        2 => Facts::Expired(Box::new(last)),
        _ => return None,
    };
    Some((at, PartitionStatus(facts)))
}

fn problem(asset: &str, problem: &str) -> RestoreError {
    let problem = format!("its packed form cannot be read: {problem}");
    RestoreError { table: PartitionStatusRow::TABLE, key: asset.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use servo_core::{MaterializationId, PartitionKey};

    use super::*;
    use crate::lifecycle::DataStatus;
    use crate::outputs::DataFormat;
    use crate::state::statuses::Statuses;

    /// The status of a partition, by number: most were made, some failed before or after that, some expired.
    fn row(asset: u8, partition: u32, seed: u64) -> PartitionStatusRow {
        let made = EventId::from_parts(1_700_000_000_000 + seed % 7, u128::from(seed % 300));
        let after = EventId::from_parts(1_700_000_000_900, u128::from(seed % 300));
        let (status, is_made, last) = match seed % 11 {
            0 => (DataStatus::NeverMaterialized, false, AttemptOutcome::Failed),
            1 => (DataStatus::LastAttemptFailed, true, AttemptOutcome::Failed),
            2 => (DataStatus::Expired, false, AttemptOutcome::Succeeded),
            _ => (DataStatus::Materialized, true, AttemptOutcome::Succeeded),
        };
        let is_last = status == DataStatus::Materialized;
        let run_id = RunId::from_u128(u128::from(seed % 3));
        let at = Timestamp::from_millis(1_700_000_000_000 + seed as i64 % 5_000);
        let is_partitioned = partition > 0;
        PartitionStatusRow {
            asset_key: AssetKey::new("stored", &format!("a{asset}")).unwrap(),
            partition_key: is_partitioned
                .then(|| PartitionKey::parse(&format!("n=i:{}", partition + 1_000_000)).unwrap()),
            status,
            last_materialization_id: is_made.then(|| {
                MaterializationId::from_u128(u128::from(seed).wrapping_mul(0x1234_5678_9abc_def0_1234))
            }),
            last_materialization_format: (is_made && seed.is_multiple_of(2)).then_some(DataFormat::Parquet),
            last_materialization_at: is_made.then_some(at),
            last_materialization_run_id: is_made.then_some(run_id),
            last_materialization_event_id: is_made.then_some(made),
            last_materialization_inputs_as_of: (is_made && !seed.is_multiple_of(3)).then_some(made),
            last_materialization_code_version: (is_made && !seed.is_multiple_of(5))
                .then(|| format!("v{}", seed % 4)),
            last_materialization_content_since: is_made.then_some(made),
            last_materialization_content: (is_made && !seed.is_multiple_of(4)).then_some(seed % 1_000 + 1),
            last_materialization_data_as_of: is_made.then_some(at),
            last_attempt_outcome: last,
            last_attempt_at: if is_last { at } else { Timestamp::from_millis(1_700_000_009_000) },
            last_attempt_run_id: if is_last { run_id } else { RunId::from_u128(77) },
            row_version: if is_last { made } else { after },
        }
    }

    fn restored(rows: &[PartitionStatusRow]) -> Statuses {
        let mut statuses = RestoredStatuses::default();
        rows.iter().for_each(|row| statuses.add(row));
        statuses.finish().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn statuses_that_were_packed_are_those_that_were_added_one_by_one(
            assets in proptest::collection::vec((0..400u32, any::<bool>()), 1..5),
            seed: u64,
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..4),
            changes in proptest::collection::vec((0..4u8, 0..450u32, any::<u64>(), 0..3u8), 0..40),
        ) {
            let mut rows = Vec::new();
            for (asset, (count, is_partitioned)) in (0u8..).zip(&assets) {
                let partitions = if *is_partitioned { 1..count + 1 } else { 0..1 };
                let of = |partition: u32| row(asset, partition, seed.wrapping_mul(31).wrapping_add(u64::from(partition * partition)));
                rows.extend(partitions.map(of));
            }
            // Some files are packed, some are not.
            let mut cuts: Vec<(usize, bool)> =
                cuts.into_iter().map(|(cut, is_packed)| (cut.index(rows.len() + 1), is_packed)).collect();
            cuts.sort_unstable();
            cuts.push((rows.len(), true));
            let (mut statuses, mut from) = (RestoredStatuses::default(), 0);
            for (to, is_packed) in cuts {
                if is_packed {
                    let mut packed = PackedStatuses::default();
                    packed.add(&rows[from..to]).unwrap();
                    packed.finish().into_iter().for_each(|section| statuses.add_packed(section).unwrap());
                } else {
                    rows[from..to].iter().for_each(|row| statuses.add(row));
                }
                from = to;
            }
            let mut model: BTreeMap<_, PartitionStatusRow> =
                rows.iter().map(|row| ((row.asset_key.clone(), row.partition_key.clone()), row.clone())).collect();
            for (asset, partition, seed, kind) in changes {
                let row = row(asset, partition, seed);
                let key = (row.asset_key.clone(), row.partition_key.clone());
                match kind {
                    0 => {
                        model.remove(&key);
                        statuses.change(key, None, true);
                    }
                    kind => {
                        let known = model.get(&key).filter(|_| kind == 1);
                        if known.is_none_or(|known| row.row_version >= known.row_version) {
                            model.insert(key.clone(), row.clone());
                        }
                        statuses.change(key, Some(row), kind == 2);
                    }
                }
            }
            let found = statuses.finish().unwrap();
            let expected: Vec<PartitionStatusRow> = model.into_values().collect();
            prop_assert_eq!(found.rows(), &*expected);
            let one_by_one = restored(&expected);
            for row in &expected {
                let (asset, partition) = (&row.asset_key, row.partition_key.as_ref());
                prop_assert_eq!(found.row(asset, partition), one_by_one.row(asset, partition));
                prop_assert_eq!(found.counts(asset), one_by_one.counts(asset));
                let slots = found.slots(asset).unwrap();
                let event = EventId::from_parts(1_700_000_000_003, 0);
                let changed: Vec<_> = slots.changed_since(event).map(|(key, _, status)| (key, status)).collect();
                let status = found.get(asset, partition).unwrap();
                let key = partition.map(|partition| Arc::from(partition.canonical()));
                prop_assert!(status.changed_at() <= event || changed.contains(&(key, status)));
            }
        }

        #[test]
        fn a_section_that_is_cut_off_is_an_error(cut in any::<prop::sample::Index>()) {
            let rows: Vec<_> = (1..300).map(|partition| row(1, partition, u64::from(partition))).collect();
            let mut packed = PackedStatuses::default();
            packed.add(&rows).unwrap();
            let section = packed.finish().remove(0);
            let cut = cut.index(section.len() - 1) + 1;
            prop_assert!(RestoredStatuses::default().add_packed(section.slice(..cut)).is_err());
        }
    }

    #[test]
    fn blocks_that_come_out_of_order_are_an_error() {
        let packed = |partition: u32| {
            let mut packed = PackedStatuses::default();
            packed.add(&[row(1, partition, 5)]).unwrap();
            packed.finish().remove(0)
        };
        let mut statuses = RestoredStatuses::default();
        statuses.add_packed(packed(2)).unwrap();
        assert!(statuses.add_packed(packed(1)).is_err());
    }

    #[test]
    fn large_assets_are_several_blocks_and_sections() {
        let rows: Vec<_> =
            (1..200_000).map(|partition| row(1, partition, u64::from(partition) + 1)).collect();
        let mut packed = PackedStatuses::default();
        packed.add(&rows).unwrap();
        let sections = packed.finish();
        assert!(sections.len() > 2, "{} sections", sections.len());
        let mut statuses = RestoredStatuses::default();
        sections.into_iter().for_each(|section| statuses.add_packed(section).unwrap());
        assert_eq!(statuses.into_rows().unwrap(), rows);
    }
}
