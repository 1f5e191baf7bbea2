//! Freshness: how old the data of an asset is, and whether its policy allows that.
//!
//! The age of data is that of the oldest of what it was made from, followed through everything upstream: it is decided
//! with the inputs of an attempt and kept with the materialization. What reads nothing is as old as itself. Of an asset
//! with partitions of time the newest that is whole counts, and is as old as its window at least. Of other partitions
//! all count, and the oldest decides. An asset that was never made is as old as its definition.
//!
//! A lag is allowed at every moment, or matters only at the ticks of a cron expression. A deadline without a lag asks
//! at every tick for data that is newer than the tick before.

use servo_core::cron::{Cron, Ticks};
use servo_core::partitions::{Block, PartitionContext, PartitionSet};
use servo_core::{AssetKey, Millis, Partitions, Timestamp};

use crate::definitions::{Asset, FreshnessDef};
use crate::lifecycle::FreshnessStatus;
use crate::state::State;

/// Windows that are looked at to find the newest whole one.
const MAX_WINDOWS: u64 = 1_000;

/// The freshness of an asset at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// Its status.
    pub status: FreshnessStatus,
    /// Since when it has it; of one that is fresh, since its newest data is there.
    pub since: Timestamp,
    /// When the oldest of what its newest data was made from was made; none if it was never made.
    pub data_as_of: Option<Timestamp>,
    /// When it fails if nothing is made until then, or has failed.
    pub fails_at: Timestamp,
    /// When the status changes next if nothing is made until then; none if it is late already.
    pub due_at: Option<Timestamp>,
}

/// The freshness of a deployed asset; none if it has no policy, or one that this version cannot read.
pub fn evaluate(state: &State, asset: &AssetKey, now: Timestamp) -> Option<Evaluated> {
    let definitions = state.checked_definitions()?;
    evaluate_with(state, definitions.asset(definitions.position(asset)?), now)
}

/// The same with a definition that need not be deployed.
pub(crate) fn evaluate_with(state: &State, asset: &Asset, now: Timestamp) -> Option<Evaluated> {
    let policy = asset.def.freshness.as_ref()?;
    let data_as_of = data_as_of(state, asset, now);
    let base = data_as_of.or_else(|| state.definitions.changed_at(&asset.key))?;
    let fails_at = fails_at(policy, base)?;
    let warns_at = fails_at.saturating_sub(policy.warn_before_ms);
    let (status, since, due_at) = match (now >= fails_at, now >= warns_at) {
        (true, _) => (FreshnessStatus::Fail, fails_at, None),
        (false, true) if policy.warn_before_ms > Millis::ZERO => {
            (FreshnessStatus::Warn, warns_at, Some(fails_at))
        }
        (false, _) if policy.warn_before_ms > Millis::ZERO => (FreshnessStatus::Pass, base, Some(warns_at)),
        (false, _) => (FreshnessStatus::Pass, base, Some(fails_at)),
    };
    Some(Evaluated { status, since, data_as_of, fails_at, due_at })
}

/// When an asset fails whose data is of this time.
fn fails_at(policy: &FreshnessDef, data_as_of: Timestamp) -> Option<Timestamp> {
    let allowed = data_as_of.saturating_add(policy.max_lag_ms);
    let Some(cron) = &policy.cron else { return Some(allowed) };
    let ticks: Ticks = Cron::parse(cron).ok()?.in_zone(policy.timezone.as_deref().unwrap_or("UTC")).ok()?;
    if policy.max_lag_ms > Millis::ZERO {
        return ticks.next(allowed);
    }
    // The first tick after the data is met by it.
    ticks.next(ticks.next(data_as_of)?)
}

fn data_as_of(state: &State, asset: &Asset, now: Timestamp) -> Option<Timestamp> {
    let Some(partitions) = &asset.partitions else {
        return Some(state.latest(&asset.key, None)?.data_as_of());
    };
    let at = PartitionContext::new(now, state.dynamic_partitions());
    let Some(time) = partitions.time_dimension() else {
        return oldest(state, asset, partitions, &partitions.all(at), at);
    };
    let latest = partitions.latest(at);
    let block = latest.blocks().first()?;
    let last = block.ranges()[time].start;
    let windows = (0..=last).rev().take(usize::try_from(MAX_WINDOWS).unwrap_or(usize::MAX));
    windows.into_iter().find_map(|window| {
        let mut ranges = block.ranges().to_vec();
        ranges[time] = window..window + 1;
        let set = PartitionSet::from(Block::new(ranges));
        let made = oldest(state, asset, partitions, &set, at)?;
        let (_, end) = partitions.time_of(&set)?;
        Some(made.min(end))
    })
}

/// When the oldest data of some partitions is of; none unless all of them are made.
fn oldest(
    state: &State,
    asset: &Asset,
    partitions: &Partitions,
    set: &PartitionSet,
    at: PartitionContext<'_>,
) -> Option<Timestamp> {
    let mut oldest: Option<Timestamp> = None;
    for key in partitions.keys_in(set, at) {
        let made = state.latest(&asset.key, Some(&key))?.data_as_of();
        oldest = Some(oldest.map_or(made, |oldest| oldest.min(made)));
    }
    oldest
}
