//! Statuses by slot. Those that were changed lately are kept as they are, all others packed (ADR-200).

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use servo_core::Timestamp;

use super::super::code_versions::Symbol;
use super::super::partition_status::{Facts, Materialized, PartitionStatus};
use super::super::shared::SharedVec;
use super::packed::{Reader, Writer};
use crate::outputs::DataFormat;

/// Slots that are packed together.
pub(super) const CHUNK: usize = 64;
/// Chunks of an asset that are kept unpacked: those that were opened last.
const OPEN: usize = 16;

/// Statuses by slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    /// All full but the last.
    chunks: SharedVec<Chunk>,
    len: usize,
    /// Unpacked chunks that are full, from the one that was opened first.
    open: Vec<u32>,
}

#[derive(Debug, Clone)]
enum Chunk {
    Open(Arc<Vec<PartitionStatus>>),
    Packed(Packed),
}

/// A chunk of statuses column by column.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    pub(super) columns: Bytes,
    /// Those that are more than a materialization, by their place in the chunk. There are few.
    pub(super) others: Option<Arc<[(u8, PartitionStatus)]>>,
    /// The code versions that numbers in the columns stand for, if they were packed in another process.
    pub(super) symbols: Option<Arc<[Symbol]>>,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, slot: usize) -> PartitionStatus {
        self.look(slot).into_owned()
    }

    /// The same, without a copy of one that is not packed.
    pub(super) fn look(&self, slot: usize) -> Cow<'_, PartitionStatus> {
        match &self.chunks[slot / CHUNK] {
            Chunk::Open(statuses) => Cow::Borrowed(&statuses[slot % CHUNK]),
            Chunk::Packed(packed) => Cow::Owned(packed.get(slot % CHUNK, CHUNK)),
        }
    }

    pub(super) fn push(&mut self, status: PartitionStatus) {
        let slot = self.len;
        self.len += 1;
        if slot.is_multiple_of(CHUNK) {
            // The first of an asset is often the only one.
            let mut statuses = Vec::with_capacity(if slot == 0 { 1 } else { CHUNK });
            statuses.push(status);
            self.chunks.push(Chunk::Open(Arc::new(statuses)));
        } else {
            self.statuses(slot / CHUNK).push(status);
        }
        if self.len.is_multiple_of(CHUNK) {
            self.opened(slot / CHUNK);
        }
    }

    pub(super) fn set(&mut self, slot: usize, status: PartitionStatus) {
        let chunk = slot / CHUNK;
        if let Chunk::Packed(packed) = &self.chunks[chunk] {
            let statuses = (0..CHUNK).map(|at| packed.get(at, CHUNK)).collect();
            self.chunks[chunk] = Chunk::Open(Arc::new(statuses));
            self.opened(chunk);
        }
        self.statuses(chunk)[slot % CHUNK] = status;
    }

    /// The statuses of a chunk that is not packed.
    fn statuses(&mut self, chunk: usize) -> &mut Vec<PartitionStatus> {
        match &mut self.chunks[chunk] {
            Chunk::Open(statuses) => Arc::make_mut(statuses),
            Chunk::Packed(_) => unreachable!("chunks are unpacked before they are changed"),
        }
    }

    /// Notes that a full chunk is not packed; packs the one that is so for longest.
    fn opened(&mut self, chunk: usize) {
        self.open.push(chunk as u32);
        if self.open.len() <= OPEN {
            return;
        }
        let chunk = self.open.remove(0) as usize;
        if let Chunk::Open(statuses) = &self.chunks[chunk] {
            self.chunks[chunk] = Chunk::Packed(Packed::of(statuses));
        }
    }

    /// Adds a status to those that are restored, of which nothing is about to change.
    pub(super) fn restore(&mut self, status: PartitionStatus) {
        self.push(status);
        while let Some(chunk) = self.open.pop() {
            if let Chunk::Open(statuses) = &self.chunks[chunk as usize] {
                self.chunks[chunk as usize] = Chunk::Packed(Packed::of(statuses));
            }
        }
    }
}

impl Slots {
    /// Leaves the slots unused that are missing until chunks that were packed before can follow.
    pub(super) fn pad(&mut self) {
        while !self.len.is_multiple_of(CHUNK) {
            self.restore(self.get(self.len - 1));
        }
    }

    /// Adds a chunk of this many statuses that was packed before.
    pub(super) fn append(&mut self, packed: Packed, len: usize) {
        if len == CHUNK && self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Chunk::Packed(packed));
            self.len += CHUNK;
        } else {
            (0..len).for_each(|at| self.restore(packed.get(at, len)));
        }
    }
}

impl Packed {
    pub(super) fn of(statuses: &[PartitionStatus]) -> Self {
        let mut others = Vec::new();
        let mut made: Vec<Materialized> = Vec::with_capacity(statuses.len());
        for (at, status) in statuses.iter().enumerate() {
            match &status.0 {
                Facts::Materialized(materialized) => made.push(*materialized),
                Facts::Attempted(_) | Facts::Since(_) | Facts::Expired(_) => {
                    others.push((at as u8, status.clone()));
                    // Its place in the columns is not read; what is there already takes the least room.
                    made.push(status.latest().or_else(|| made.last().copied()).unwrap_or(Materialized::NONE));
                }
            }
        }
        let mut writer = Writer::default();
        let numbers = |of: &dyn Fn(&Materialized) -> u64| -> Vec<u64> { made.iter().map(of).collect() };
        let ids = |of: &dyn Fn(&Materialized) -> [u8; 16]| -> Vec<u128> {
            made.iter().map(|made| u128::from_be_bytes(of(made))).collect()
        };
        // The second half of an id is a hash.
        writer.numbers(&numbers(&|made| u64::from_be_bytes(first(&made.id)) >> 16));
        made.iter().for_each(|made| writer.raw(&made.id[6..]));
        writer.ids(&ids(&|made| made.run_id));
        writer.ids(&ids(&|made| made.event_id));
        writer.ids(&ids(&|made| made.inputs_as_of));
        let is_own = made.iter().all(|made| made.content_since == made.event_id);
        writer.byte(u8::from(is_own));
        if !is_own {
            writer.ids(&ids(&|made| made.content_since));
        }
        let is_known = made.iter().any(|made| made.content != [0; 7]);
        writer.byte(u8::from(is_known));
        if is_known {
            made.iter().for_each(|made| writer.raw(&made.content));
        }
        // Times before 1970 come after all others as numbers.
        writer.numbers(&numbers(&|made| made.at.as_millis().cast_unsigned()));
        writer.numbers(&numbers(&|made| made.data_lag.into()));
        writer.numbers(&numbers(&|made| made.code_version.number().into()));
        writer.numbers(&numbers(&|made| format_number(made.format)));
        let others = (!others.is_empty()).then(|| others.into());
        Self { columns: writer.finish(), others, symbols: None }
    }

    /// One of the statuses of a chunk that has so many.
    pub(super) fn get(&self, at: usize, len: usize) -> PartitionStatus {
        if let Some(others) = &self.others
            && let Ok(found) = others.binary_search_by_key(&at, |(at, _)| usize::from(*at))
        {
            return others[found].1.clone();
        }
        PartitionStatus(Facts::Materialized(self.materialized(at, len)))
    }

    /// The contents of the columns for one of them. Of one that was never materialized it says nothing.
    pub(super) fn materialized(&self, at: usize, len: usize) -> Materialized {
        let mut reader = Reader::new(&self.columns, len);
        let mut id = [0; 16];
        id[..6].copy_from_slice(&reader.number(at).to_be_bytes()[2..]);
        id[6..].copy_from_slice(&reader.raw(10 * len)[at * 10..][..10]);
        let run_id = reader.id(at).to_be_bytes();
        let event_id = reader.id(at).to_be_bytes();
        let inputs_as_of = reader.id(at).to_be_bytes();
        let content_since = if reader.byte() == 1 { event_id } else { reader.id(at).to_be_bytes() };
        let mut content = [0; 7];
        if reader.byte() == 1 {
            content.copy_from_slice(&reader.raw(7 * len)[at * 7..][..7]);
        }
        let time = Timestamp::from_millis(reader.number(at).cast_signed());
        let data_lag = reader.number(at) as u32;
        let symbol = reader.number(at) as u32;
        let format = format_of(reader.number(at));
        let code_version = match &self.symbols {
            None => Symbol::from_number(symbol),
            Some(symbols) => symbols.get(symbol as usize).copied().unwrap_or(Symbol::NONE),
        };
        let at = time;
        Materialized {
            id,
            run_id,
            event_id,
            inputs_as_of,
            content_since,
            content,
            at,
            data_lag,
            code_version,
            format,
        }
    }
}

fn first(id: &[u8; 16]) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&id[..8]);
    bytes
}

fn format_number(format: Option<DataFormat>) -> u64 {
    format.map_or(0, |format| 1 + format as u64)
}

fn format_of(number: u64) -> Option<DataFormat> {
    DataFormat::ALL.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use servo_core::{EventId, RunId};

    use super::*;
    use crate::lifecycle::AttemptOutcome;
    use crate::state::LastAttempt;

    fn materialized() -> impl Strategy<Value = Materialized> {
        let ids = (any::<u128>(), 0..3u128, 0..70_000u128, 0..2u128, any::<bool>());
        let rest =
            (any::<[u8; 7]>(), any::<bool>(), any::<i64>(), any::<u32>(), 0..3u32, 0..=DataFormat::ALL.len());
        (ids, rest).prop_map(
            |((id, run, event, input, is_own), (content, is_known, at, lag, code, format))| {
                let event_id = ((7 << 80) + event).to_be_bytes();
                Materialized {
                    id: id.to_be_bytes(),
                    run_id: (run << 90).to_be_bytes(),
                    event_id,
                    inputs_as_of: (input << 99).to_be_bytes(),
                    content_since: if is_own { event_id } else { (run << 70).to_be_bytes() },
                    content: if is_known { content } else { [0; 7] },
                    at: Timestamp::from_millis(at),
                    data_lag: lag,
                    code_version: Symbol::from_number(code),
                    format: format_of(format as u64),
                }
            },
        )
    }

    fn status() -> impl Strategy<Value = PartitionStatus> {
        (materialized(), 0..10u8).prop_map(|(made, kind)| {
            let (run_id, at, event_id) =
                (RunId::from_u128(9), Timestamp::from_millis(9), EventId::from_u128(9));
            let last = LastAttempt { outcome: AttemptOutcome::Failed, run_id, at, event_id };
            PartitionStatus(match kind {
                0 => Facts::Attempted(Box::new(last)),
                1 => Facts::Since(Box::new((made, last))),
                _ => Facts::Materialized(made),
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn slots_hold_what_was_put_into_them(
            statuses in proptest::collection::vec(status(), 1..3_000),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), status()), 0..200),
        ) {
            let (mut slots, mut restored, mut model) = (Slots::default(), Slots::default(), statuses.clone());
            for status in statuses {
                slots.push(status.clone());
                restored.restore(status);
            }
            let before = slots.clone();
            for (number, status) in model.iter().enumerate() {
                prop_assert_eq!(&restored.get(number), status);
            }
            let first = model.clone();
            for (at, status) in changes {
                let at = at.index(model.len());
                slots.set(at, status.clone());
                restored.set(at, status.clone());
                model[at] = status;
            }
            prop_assert_eq!(slots.len(), model.len());
            for (number, status) in model.iter().enumerate() {
                prop_assert_eq!(&slots.get(number), status);
                prop_assert_eq!(&restored.get(number), status);
                prop_assert_eq!(&before.get(number), &first[number], "a clone does not change");
            }
        }
    }

    #[test]
    fn partitions_of_one_run_take_few_bytes() {
        let made = |at: u128| Materialized {
            id: ((1_700_000_000_000 << 80) + at * 0x1234_5678_9abc_def0_1234).to_be_bytes(),
            run_id: (5_u128 << 80).to_be_bytes(),
            event_id: ((1_700_000_000_001 << 80) + at).to_be_bytes(),
            inputs_as_of: ((1_700_000_000_000 << 80) + at).to_be_bytes(),
            content_since: ((1_700_000_000_001 << 80) + at).to_be_bytes(),
            content: [at as u8; 7],
            at: Timestamp::from_millis(1_700_000_000_001),
            data_lag: 0,
            code_version: Symbol::default(),
            format: format_of(1),
        };
        let statuses: Vec<_> = (0..64).map(|at| PartitionStatus(Facts::Materialized(made(at)))).collect();
        let packed = Packed::of(&statuses);
        assert!(packed.columns.len() <= 64 * 22, "{} bytes", packed.columns.len());
    }
}
