//! Which backfills a list has, and in which order.

use std::collections::BTreeSet;

use servo_core::{AssetKey, Timestamp};
use servo_engine::event::BackfillCreated;
use servo_engine::rows::BackfillRow;
use servo_engine::{Backfill, BackfillState};

/// Which backfills to list. Every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackfillFilter {
    /// In one of these states; in any if there are none.
    pub states: Vec<BackfillState>,
    /// That make partitions of one of these assets: the names that one has, and had.
    pub assets: Option<BTreeSet<AssetKey>>,
    /// Those that make again what another one did not, or those that do not.
    pub retries: Option<bool>,
    /// Created at this time or later.
    pub created_after: Option<Timestamp>,
    /// Created before this time.
    pub created_before: Option<Timestamp>,
    /// The oldest first.
    pub oldest_first: bool,
}

impl BackfillFilter {
    /// Whether a backfill in memory is wanted.
    pub fn accepts(&self, backfill: &Backfill) -> bool {
        self.is_wanted(backfill.state, backfill.created_at, &backfill.definition)
    }

    /// Whether one in the tables is.
    pub fn accepts_row(&self, row: &BackfillRow) -> bool {
        self.is_wanted(row.state, row.created_at, &row.definition.0)
    }

    fn is_wanted(&self, state: BackfillState, created_at: Timestamp, definition: &BackfillCreated) -> bool {
        let makes = |assets: &BTreeSet<AssetKey>| {
            definition.targets.iter().any(|target| assets.contains(&target.asset))
        };
        (self.states.is_empty() || self.states.contains(&state))
            && self.created_after.is_none_or(|after| created_at >= after)
            && self.created_before.is_none_or(|before| created_at < before)
            && self.retries.is_none_or(|retries| retries == definition.parent_backfill_id.is_some())
            && self.assets.as_ref().is_none_or(makes)
    }
}
