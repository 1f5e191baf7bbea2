//! How each asset fares: its last success, its last failure, failures since, its last checks, how long it takes.
//!
//! Of two facts of a kind the one with the greater event counts, whichever was folded first (INV-1).

use std::collections::BTreeSet;

use servo_core::planted::{self, Mistake};
use servo_core::{AssetKey, EventId, MaterializationId, MicroUsd, Millis, PartitionKey, RunId, Timestamp};

use super::shared::SharedMap;
use crate::lifecycle::GatingDecision;
use crate::rows::{AssetStateRow, Json};

/// Most failures that are counted.
const MAX_FAILURES: usize = 100;
/// Number of tasks whose duration and cost are kept.
const MAX_EFFORTS: usize = 16;

/// A task of an asset that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Success {
    pub event_id: EventId,
    pub at: Timestamp,
    pub run_id: RunId,
    pub partition: Option<PartitionKey>,
    pub materialization_id: Option<MaterializationId>,
}

/// A task of an asset that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FailedTask {
    pub event_id: EventId,
    pub at: Timestamp,
    pub run_id: RunId,
}

/// A time at which checks of an asset ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Checked {
    pub event_id: EventId,
    pub at: Timestamp,
    pub passed: bool,
    pub decision: GatingDecision,
}

/// What a task took that made an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// How long the attempt ran that succeeded.
    pub took: Millis,
    /// What all attempts of the task cost; nothing where that is counted with another asset of the task.
    pub cost: MicroUsd,
}

/// How an asset fares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssetState {
    success: Option<Success>,
    failure: Option<FailedTask>,
    check: Option<Checked>,
    /// The newest failures after the last success.
    failures: BTreeSet<EventId>,
    /// What the newest tasks took that made it, by the event that ended them, oldest first.
    efforts: Vec<(EventId, Effort)>,
    /// The event that gave it a name which another row was removed under; its row is newer than that.
    renamed: Option<EventId>,
}

impl AssetState {
    /// The newest task that succeeded.
    pub fn last_success(&self) -> Option<&Success> {
        self.success.as_ref()
    }

    /// The newest task that failed.
    pub fn last_failure(&self) -> Option<&FailedTask> {
        self.failure.as_ref()
    }

    /// When checks last ran.
    pub fn last_check(&self) -> Option<&Checked> {
        self.check.as_ref()
    }

    /// Tasks that failed since the last one that succeeded, up to 100.
    pub fn consecutive_failures(&self) -> u32 {
        self.failures.len() as u32
    }

    /// How long the newest attempts ran that made it, oldest first; at most 16.
    pub fn durations(&self) -> impl ExactSizeIterator<Item = Millis> {
        self.efforts.iter().map(|(_, effort)| effort.took)
    }

    /// What the newest tasks took that made it, oldest first; at most 16.
    pub fn efforts(&self) -> impl ExactSizeIterator<Item = Effort> {
        self.efforts.iter().map(|(_, effort)| *effort)
    }

    fn took(&mut self, event_id: EventId, effort: Effort) {
        match self.efforts.binary_search_by_key(&event_id, |(event, _)| *event) {
            Ok(at) => self.efforts[at].1 = effort,
            // Older than all that are kept.
            Err(0) if self.efforts.len() >= MAX_EFFORTS => {}
            Err(at) if self.efforts.len() >= MAX_EFFORTS => {
                self.efforts.remove(0);
                self.efforts.insert(at - 1, (event_id, effort));
            }
            Err(at) => self.efforts.insert(at, (event_id, effort)),
        }
    }

    fn succeeded(&mut self, success: Success) {
        if self.success.as_ref().is_none_or(|known| known.event_id < success.event_id) {
            if !self.failures.is_empty() && !planted::has(Mistake::FailuresMiscounted) {
                self.failures = self.failures.split_off(&success.event_id);
            }
            self.success = Some(success);
        }
    }

    fn failed(&mut self, failure: FailedTask) {
        if self.failure.is_none_or(|known| known.event_id < failure.event_id) {
            self.failure = Some(failure);
        }
        if self.success.as_ref().is_none_or(|success| success.event_id < failure.event_id) {
            self.failures.insert(failure.event_id);
            if self.failures.len() > MAX_FAILURES {
                self.failures.pop_first();
            }
        }
    }

    fn checked(&mut self, check: Checked) {
        if self.check.is_none_or(|known| known.event_id < check.event_id) {
            self.check = Some(check);
        }
    }
}

/// How all assets fare that were ever attempted or checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct AssetStates(SharedMap<AssetKey, AssetState>);

impl AssetStates {
    pub(crate) fn get(&self, asset: &AssetKey) -> Option<&AssetState> {
        self.0.get(asset)
    }

    pub(crate) fn succeeded(&mut self, asset: &AssetKey, success: Success) {
        self.change(asset, |state| state.succeeded(success));
    }

    /// Notes what the task took that made an asset.
    pub(crate) fn took(&mut self, asset: &AssetKey, event_id: EventId, effort: Effort) {
        self.change(asset, |state| state.took(event_id, effort));
    }

    pub(crate) fn failed(&mut self, asset: &AssetKey, failure: FailedTask) {
        self.change(asset, |state| state.failed(failure));
    }

    pub(crate) fn checked(&mut self, asset: &AssetKey, check: Checked) {
        self.change(asset, |state| state.checked(check));
    }

    /// Gives how an asset fares to another, by an event if the name was used before; false if nothing is known of it.
    pub(crate) fn rename(&mut self, from: &AssetKey, to: &AssetKey, newer: Option<EventId>) -> bool {
        let Some(state) = self.0.remove(from) else { return false };
        let renamed = newer.or(state.renamed);
        self.0.insert(to.clone(), AssetState { renamed, ..state });
        true
    }

    fn change(&mut self, asset: &AssetKey, change: impl FnOnce(&mut AssetState)) {
        match self.0.get_mut(asset) {
            Some(state) => change(state),
            None => {
                let mut state = AssetState::default();
                change(&mut state);
                self.0.insert(asset.clone(), state);
            }
        }
    }

    pub(crate) fn rows(&self) -> Vec<AssetStateRow> {
        self.0.iter().map(|(asset, state)| row(asset, state)).collect()
    }

    pub(crate) fn row(&self, asset: &AssetKey) -> Option<AssetStateRow> {
        self.0.get(asset).map(|state| row(asset, state))
    }

    pub(crate) fn restore(rows: Vec<AssetStateRow>) -> Self {
        Self(rows.into_iter().map(|row| (row.asset_key.clone(), restored(row))).collect())
    }
}

fn row(asset: &AssetKey, state: &AssetState) -> AssetStateRow {
    let (success, failure, check) = (state.last_success(), state.last_failure(), state.last_check());
    let events = [success.map(|it| it.event_id), failure.map(|it| it.event_id), check.map(|it| it.event_id)];
    AssetStateRow {
        asset_key: asset.clone(),
        consecutive_failures: state.consecutive_failures(),
        failure_event_ids: Json(state.failures.iter().copied().collect()),
        last_success_at: success.map(|it| it.at),
        last_success_run_id: success.map(|it| it.run_id),
        last_success_event_id: success.map(|it| it.event_id),
        last_partition_key: success.and_then(|it| it.partition.clone()),
        last_materialization_id: success.and_then(|it| it.materialization_id),
        last_failure_at: failure.map(|it| it.at),
        last_failure_run_id: failure.map(|it| it.run_id),
        last_failure_event_id: failure.map(|it| it.event_id),
        last_check_at: check.map(|it| it.at),
        last_check_event_id: check.map(|it| it.event_id),
        last_check_passed: check.map(|it| it.passed),
        last_gating_decision: check.map(|it| it.decision),
        efforts: Json(
            state.efforts.iter().map(|(event, effort)| (*event, effort.took, effort.cost)).collect(),
        ),
        row_version: events.into_iter().chain([state.renamed]).flatten().max().unwrap_or(EventId::NIL),
    }
}

fn restored(row: AssetStateRow) -> AssetState {
    let success = row.last_success_event_id.zip(row.last_success_at).zip(row.last_success_run_id);
    let failure = row.last_failure_event_id.zip(row.last_failure_at).zip(row.last_failure_run_id);
    let check = row.last_check_event_id.zip(row.last_check_at);
    let check = check.zip(row.last_check_passed).zip(row.last_gating_decision);
    AssetState {
        success: success.map(|((event_id, at), run_id)| Success {
            event_id,
            at,
            run_id,
            partition: row.last_partition_key,
            materialization_id: row.last_materialization_id,
        }),
        failure: failure.map(|((event_id, at), run_id)| FailedTask { event_id, at, run_id }),
        check: check.map(|(((event_id, at), passed), decision)| Checked { event_id, at, passed, decision }),
        failures: row.failure_event_ids.0.into_iter().collect(),
        efforts: row
            .efforts
            .0
            .into_iter()
            .map(|(event, took, cost)| (event, Effort { took, cost }))
            .collect(),
        renamed: Some(row.row_version),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(number: u64) -> EventId {
        EventId::from_parts(number, 0)
    }

    fn fold(facts: &[(u64, bool)]) -> AssetState {
        let mut state = AssetState::default();
        for (number, succeeded) in facts {
            let (event_id, run_id, at) = (event(*number), RunId::from_u128(1), Timestamp::from_millis(1));
            if *succeeded {
                state.succeeded(Success { event_id, at, run_id, partition: None, materialization_id: None });
                state.took(event_id, Effort { took: Millis::new(*number), cost: MicroUsd::new(*number) });
            } else {
                state.failed(FailedTask { event_id, at, run_id });
            }
        }
        state
    }

    proptest! {
        #[test]
        fn failures_since_the_last_success_are_counted_in_any_order(
            outcomes in proptest::collection::vec(proptest::bool::weighted(0.1), 0..40),
            shuffle in any::<u64>(),
        ) {
            let facts: Vec<(u64, bool)> = (1..).zip(outcomes.iter().copied()).collect();
            let mut mixed = facts.clone();
            mixed.sort_by_key(|(number, _)| number.wrapping_mul(shuffle | 1) % 1_009);
            prop_assert_eq!(fold(&facts), fold(&mixed));
            let expected = outcomes.iter().rev().take_while(|succeeded| !**succeeded).count() as u32;
            prop_assert_eq!(fold(&facts).consecutive_failures(), expected);
        }
    }

    #[test]
    fn the_newest_durations_are_kept_in_the_order_of_their_events() {
        let mut facts: Vec<(u64, bool)> = (1..=20).map(|number| (number, true)).collect();
        facts.reverse();
        let kept: Vec<Millis> = fold(&facts).durations().collect();
        assert_eq!(kept, (5..=20).map(Millis::new).collect::<Vec<_>>());
    }

    #[test]
    fn a_row_gives_back_what_it_was_made_of() {
        let asset = AssetKey::parse("raw.a").unwrap();
        let mut states = AssetStates::default();
        let (run_id, at) = (RunId::from_u128(1), Timestamp::from_millis(1));
        states.failed(&asset, FailedTask { event_id: event(7), at, run_id });
        states.took(&asset, event(5), Effort { took: Millis::new(1_200), cost: MicroUsd::new(77) });
        states.checked(
            &asset,
            Checked { event_id: event(9), at, passed: false, decision: GatingDecision::Warn },
        );
        let rows = states.rows();
        assert_eq!((rows[0].consecutive_failures, rows[0].row_version), (1, event(9)));
        assert_eq!(AssetStates::restore(rows.clone()).rows(), rows);
    }
}
