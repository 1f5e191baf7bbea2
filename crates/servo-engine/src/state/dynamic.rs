//! Keys of dynamic partitions, in the form in which partition definitions read them.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::{EventId, Timestamp};

use super::RestoreError;
use crate::event::DynamicPartitionsChanged;
use crate::principal::Principal;
use crate::rows::{DynamicPartitionRow, PartitionSetRow};

/// The keys of every name, sorted, and beside them when each was added.
///
/// A change moves what stands behind its first key, and nothing in front of it: names whose keys grow at the end, as
/// dates and counters do, cost what changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct DynamicPartitions {
    keys: BTreeMap<String, Vec<String>>,
    sets: BTreeMap<String, Set>,
}

/// Metadata of a dynamic partition set. Stays when the last key is removed, so that change numbers continue.
#[derive(Debug, Clone)]
struct Set {
    number: u64,
    principal: Principal,
    changed_at: Timestamp,
    version: EventId,
    /// When each key was added, and by which event: as many as there are keys.
    added_at: Vec<Timestamp>,
    added_by: Vec<EventId>,
}

impl DynamicPartitions {
    /// Number of the last change; 0 before the first.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.sets.get(name).map_or(0, |set| set.number)
    }

    /// How often the keys of any name have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.sets.values().map(|set| set.number).sum()
    }

    /// Keys by name, each list sorted and without duplicates.
    pub(crate) fn keys(&self) -> &BTreeMap<String, Vec<String>> {
        &self.keys
    }

    /// The keys of one name.
    pub(crate) fn keys_of(&self, name: &str) -> &[String] {
        self.keys.get(name).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn contains(&self, name: &str, key: &str) -> bool {
        self.position(name, key).is_some()
    }

    fn position(&self, name: &str, key: &str) -> Option<usize> {
        self.keys_of(name).binary_search_by(|known| known.as_str().cmp(key)).ok()
    }

    /// The event that added a key.
    pub(crate) fn added_by(&self, name: &str, key: &str) -> Option<EventId> {
        let position = self.position(name, key)?;
        self.sets.get(name)?.added_by.get(position).copied()
    }

    /// Removes and adds keys; one that is there already stays as it was.
    pub(crate) fn change(
        &mut self,
        change: &DynamicPartitionsChanged,
        at: Timestamp,
        by: EventId,
        who: &Principal,
    ) {
        let keys = self.keys.entry(change.name.clone()).or_default();
        let set = self.sets.entry(change.name.clone()).or_insert_with(|| Set {
            number: 0,
            principal: who.clone(),
            changed_at: at,
            version: by,
            added_at: Vec::new(),
            added_by: Vec::new(),
        });
        set.number = change.number;
        set.principal.clone_from(who);
        set.changed_at = at;
        set.version = set.version.max(by);

        let added: BTreeSet<&String> = change.added.iter().collect();
        let removed: BTreeSet<&String> = change.removed.iter().collect();
        let Some(first) = added.first().into_iter().chain(removed.first()).min().copied() else { return };
        let from = keys.partition_point(|key| key < first);
        let old_keys = keys.split_off(from);
        let (old_at, old_by) = (set.added_at.split_off(from), set.added_by.split_off(from));
        let mut added = added.into_iter().peekable();
        let mut push = |key: String, at: Timestamp, by: EventId| {
            keys.push(key);
            set.added_at.push(at);
            set.added_by.push(by);
        };
        for (key, (known_at, known_by)) in old_keys.into_iter().zip(old_at.into_iter().zip(old_by)) {
            while let Some(new) = added.next_if(|new| **new < key) {
                push(new.clone(), at, by);
            }
            let again = added.next_if(|new| **new == key).is_some();
            if again || !removed.contains(&key) {
                push(key, known_at, known_by);
            }
        }
        added.for_each(|new| push(new.clone(), at, by));
    }

    pub(crate) fn rows(&self) -> Vec<DynamicPartitionRow> {
        let rows = self.keys.iter().flat_map(|(name, keys)| {
            let set = self.sets.get(name);
            (0..keys.len()).filter_map(move |position| Some(row(name, keys, set?, position)))
        });
        rows.collect()
    }

    pub(crate) fn row(&self, name: &str, key: &str) -> Option<DynamicPartitionRow> {
        let position = self.position(name, key)?;
        Some(row(name, self.keys_of(name), self.sets.get(name)?, position))
    }

    pub(crate) fn set_rows(&self) -> Vec<PartitionSetRow> {
        self.sets.keys().filter_map(|name| self.set_row(name)).collect()
    }

    pub(crate) fn set_row(&self, name: &str) -> Option<PartitionSetRow> {
        self.sets.get(name).map(|set| PartitionSetRow {
            name: name.to_owned(),
            change_number: set.number,
            partitions: self.keys_of(name).len() as u64,
            changed_by: set.principal.clone(),
            changed_at: set.changed_at,
            row_version: set.version,
        })
    }

    pub(crate) fn restore(
        sets: Vec<PartitionSetRow>,
        mut rows: Vec<DynamicPartitionRow>,
    ) -> Result<Self, RestoreError> {
        let mut dynamic = Self::default();
        for row in sets {
            dynamic.keys.insert(row.name.clone(), Vec::new());
            let set = Set {
                number: row.change_number,
                principal: row.changed_by,
                changed_at: row.changed_at,
                version: row.row_version,
                added_at: Vec::new(),
                added_by: Vec::new(),
            };
            dynamic.sets.insert(row.name, set);
        }
        if !rows.is_sorted_by(|a, b| (&a.name, &a.partition) < (&b.name, &b.partition)) {
            rows.sort_by(|a, b| (&a.name, &a.partition).cmp(&(&b.name, &b.partition)));
            rows.dedup_by(|a, b| (&a.name, &a.partition) == (&b.name, &b.partition));
        }
        for row in rows {
            let (Some(keys), Some(set)) = (dynamic.keys.get_mut(&row.name), dynamic.sets.get_mut(&row.name))
            else {
                return Err(RestoreError {
                    table: "dynamic_partitions",
                    key: format!("{}, {}", row.name, row.partition),
                    problem: "its name is not in table dynamic_partition_sets".to_owned(),
                });
            };
            keys.push(row.partition);
            set.added_at.push(row.added_at);
            set.added_by.push(row.row_version);
        }
        Ok(dynamic)
    }
}

fn row(name: &str, keys: &[String], set: &Set, position: usize) -> DynamicPartitionRow {
    DynamicPartitionRow {
        name: name.to_owned(),
        partition: keys[position].clone(),
        added_at: set.added_at[position],
        row_version: set.added_by[position],
    }
}
