//! Batches of events.

use servo_engine::State;
use servo_engine::event::{decode_batch, encode_batch};

use crate::tables::layout;

/// A batch of the log: it is written as it was read, folds whatever it says, and the state can be stored.
pub fn event_batch(bytes: &[u8]) {
    let Ok(events) = decode_batch(bytes) else { return };
    let mut written = Vec::new();
    encode_batch(&events, &mut written);
    let again = decode_batch(&written).expect("what was written can be read");
    assert_eq!(again, events);
    let mut twice = Vec::new();
    encode_batch(&again, &mut twice);
    assert_eq!(twice, written, "a batch has one text");
    let (tenant, workspace) = (layout().tenant().clone(), layout().workspace().clone());
    let mut state = State::new(tenant.clone(), workspace.clone());
    state.apply_batch(1, &events);
    state.apply_batch(2, &events);
    let rows = state.rows();
    let restored = State::from_rows(tenant, workspace, rows.clone());
    assert_eq!(restored.expect("a state can be restored from its rows").rows(), rows);
}
