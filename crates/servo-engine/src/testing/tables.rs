//! Tables that are maintained from deltas alone, as a writer must.

use std::collections::{BTreeMap, BTreeSet};

use crate::for_each_hot_table;
use crate::rows::{Delta, HotRow, HotRows};

/// Makes the changes of a delta to hot rows. Of request keys a delta does not say which are forgotten, so they stay.
///
/// # Panics
/// If the delta has a row twice, or says of a row that it is gone.
pub fn apply(rows: &mut HotRows, delta: &Delta) {
    rows.head = delta.head;
    for_each_hot_table!(R => apply_to::<R>(rows, delta));
}

fn apply_to<R: HotRow>(rows: &mut HotRows, delta: &Delta) {
    let changed: BTreeSet<R::Key> = R::changed(delta).iter().map(R::key).collect();
    assert_eq!(changed.len(), R::changed(delta).len(), "{}: each row once", R::TABLE);
    let is_gone = |key| R::gone(delta).contains(key);
    assert!(!changed.iter().any(is_gone), "{}: a key that is gone is not among the rows", R::TABLE);
    let before = std::mem::take(R::hot_mut(rows));
    let mut table: BTreeMap<R::Key, R> = before.into_iter().map(|row| (row.key(), row)).collect();
    for key in R::gone(delta) {
        table.remove(key);
    }
    table.extend(R::changed(delta).iter().map(|row| (row.key(), row.clone())));
    *R::hot_mut(rows) = table.into_values().collect();
}
