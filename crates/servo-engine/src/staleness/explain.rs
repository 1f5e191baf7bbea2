//! Why one partition is stale: the cause, and the causes behind it down to the root.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use servo_core::partitions::PartitionSet;
use servo_core::{AssetKey, EventId, Millis, PartitionKey, Timestamp};

use super::newer::newer_inputs;
use super::sets::StaleReason;
use super::{StaleView, track::Track};
use crate::definitions::Dep;
use crate::freshness::evaluate_with;
use crate::state::{Materialized, PartitionSlots};

/// Causes that are named beside each other.
const MAX_CAUSES: usize = 5;
/// Causes that are named altogether.
const MAX_NAMED: usize = 60;
/// Steps on the way to a root.
const MAX_STEPS: usize = 100_000;

/// A stale partition, and why it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// The asset.
    pub asset: AssetKey,
    /// Its partition; none if it has none.
    pub partition: Option<PartitionKey>,
    /// The reasons why it is stale.
    pub cause: StaleCause,
    /// Since when; none if it was never made.
    pub since: Option<Timestamp>,
    /// The first few stale inputs, if they are the cause.
    pub because_of: Vec<Stale>,
    /// How many more there are.
    pub more: u64,
}

/// The reason why a partition is stale.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StaleCause {
    /// It was never made.
    NeverMade,
    /// It was made longer ago than its asset keeps it.
    Expired {
        /// For how long it is kept; none if that was changed since.
        after: Option<Millis>,
    },
    /// Another version of its code is deployed.
    CodeChanged {
        /// The version that made it; none if there was none.
        ran: Option<Arc<str>>,
        deployed: Arc<str>,
    },
    /// Something that it reads has changed since.
    UpstreamNewer {
        /// The newest of what has changed.
        asset: AssetKey,
        partition: Option<PartitionKey>,
        /// When it changed.
        changed_at: Timestamp,
        /// The event that decided what was read, and when that was.
        read_as_of: EventId,
        read_at: Timestamp,
        /// How many partitions of all that it reads have changed.
        count: u64,
    },
    /// Something that it reads is stale.
    UpstreamStale {
        /// The root cause: a partition that is stale for a reason of its own.
        asset: AssetKey,
        partition: Option<PartitionKey>,
        root: StaleReason,
    },
    /// Its asset is older than its freshness policy allows.
    FreshnessMissed {
        /// How old its data is.
        lag: Millis,
        /// For how long that is more than allowed.
        late_by: Millis,
    },
}

impl StaleCause {
    /// Which of the reasons it is.
    pub fn reason(&self) -> StaleReason {
        match self {
            Self::NeverMade => StaleReason::NeverMade,
            Self::Expired { .. } => StaleReason::Expired,
            Self::CodeChanged { .. } => StaleReason::CodeChanged,
            Self::UpstreamNewer { .. } => StaleReason::UpstreamNewer,
            Self::UpstreamStale { .. } => StaleReason::UpstreamStale,
            Self::FreshnessMissed { .. } => StaleReason::FreshnessMissed,
        }
    }
}

/// `raw.flights 2013-01-15`.
struct Named<'a>(&'a AssetKey, Option<&'a PartitionKey>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        self.1.map_or(Ok(()), |partition| write!(f, " {partition}"))
    }
}

/// The end of a sentence that begins with the partition.
impl fmt::Display for StaleCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverMade => f.write_str("was never made"),
            Self::Expired { after: Some(after) } => {
                write!(f, "has expired: it counts for {after} after it was made")
            }
            Self::Expired { after: None } => f.write_str("has expired"),
            Self::CodeChanged { ran: Some(ran), deployed } => {
                write!(f, "was made by code version {ran}, and {deployed} is deployed")
            }
            Self::CodeChanged { ran: None, deployed } => {
                write!(f, "was made by code without a version, and version {deployed} is deployed")
            }
            Self::UpstreamNewer { asset, partition, changed_at, read_at, count, .. } => {
                let upstream = Named(asset, partition.as_ref());
                write!(
                    f,
                    "was made from what was there at {read_at}, and {upstream} changed at {changed_at}"
                )?;
                match count {
                    0 | 1 => Ok(()),
                    count => write!(f, ", as did {} more", count - 1),
                }
            }
            Self::UpstreamStale { asset, partition, root } => {
                let what = match root {
                    StaleReason::NeverMade => "was never made",
                    StaleReason::Expired => "has expired",
                    StaleReason::CodeChanged => "was made by other code than is deployed",
                    StaleReason::UpstreamNewer => "was made from data that has changed since",
                    StaleReason::UpstreamStale => "is stale",
                    StaleReason::FreshnessMissed => "is older than it may be",
                };
                write!(f, "is made from {}, which {what}", Named(asset, partition.as_ref()))
            }
            Self::FreshnessMissed { lag, late_by } => {
                write!(f, "has data of {lag} ago, and was due {late_by} ago by its freshness")
            }
        }
    }
}

/// `analytics.daily 2013-01-15 was never made`.
impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Named(&self.asset, self.partition.as_ref()), self.cause)
    }
}

/// A partition by the position of its asset and its indexes.
type Place = (u32, Vec<u64>);

impl StaleView<'_> {
    /// Why a partition is stale; none if it is not, or is no partition of what was looked at.
    pub fn explain(&self, asset: u32, partition: Option<&PartitionKey>) -> Option<Stale> {
        self.explained(&(asset, self.digits(asset, partition)?), &mut BTreeSet::new())
    }

    /// Causes that were named elsewhere are not followed again.
    fn explained(&self, place: &Place, named: &mut BTreeSet<Place>) -> Option<Stale> {
        let (asset, digits) = (place.0, place.1.as_slice());
        let reason = self.sets.get(&asset)?.reason(digits)?;
        let latest = self.latest(asset, digits);
        let (mut because_of, mut more) = (Vec::new(), 0);
        let (cause, since) = match (reason, latest) {
            (StaleReason::Expired, _) => self.expired(asset, digits)?,
            (StaleReason::NeverMade, _) | (_, None) => (StaleCause::NeverMade, None),
            (StaleReason::CodeChanged, Some(latest)) => {
                let deployed = self.definitions.asset(asset).def.code_version.as_deref().unwrap_or_default();
                let ran = self.state.code_version(latest).cloned();
                let since = self.state.definitions.changed_at(self.name(asset));
                (StaleCause::CodeChanged { ran, deployed: deployed.into() }, since)
            }
            (StaleReason::UpstreamNewer, Some(latest)) => self.newer(asset, digits, latest)?,
            (StaleReason::UpstreamStale, Some(_)) => {
                if named.len() < MAX_NAMED && named.insert(place.clone()) {
                    let (causes, others) = self.stale_inputs(asset, digits);
                    more = others;
                    because_of = causes.iter().filter_map(|cause| self.explained(cause, named)).collect();
                }
                let (root, since) = self.root(place)?;
                (root, since)
            }
            (StaleReason::FreshnessMissed, Some(_)) => self.late(asset)?,
        };
        let partition = self.key(asset, digits);
        Some(Stale { asset: self.name(asset).clone(), partition, cause, since, because_of, more })
    }

    fn slots(&self, asset: u32) -> Option<(&Track, PartitionSlots<'_>)> {
        Some((self.tracks.get(&asset)?, self.state.partition_slots(self.name(asset))?))
    }

    fn latest(&self, asset: u32, digits: &[u64]) -> Option<Materialized> {
        let (track, slots) = self.slots(asset)?;
        slots.get(track.slot_of(digits)?).latest()
    }

    fn newer(
        &self,
        asset: u32,
        digits: &[u64],
        made: Materialized,
    ) -> Option<(StaleCause, Option<Timestamp>)> {
        let mut count = 0;
        let mut newest: Option<(EventId, u32, u32)> = None;
        let mut first: Option<EventId> = None;
        for dep in &self.definitions.asset(asset).deps {
            let Some((track, slots)) = self.slots(dep.asset) else { continue };
            let found = newer_inputs(made, digits, dep, track, slots, self.at);
            count += found.len() as u64;
            let since = |slot: u32| Some(slots.get(slot).latest()?.content_since());
            let this = found.first().and_then(|slot| Some((since(*slot)?, dep.asset, *slot)));
            newest = newest.max(this);
            first = first.into_iter().chain(found.last().and_then(|slot| since(*slot))).min();
        }
        let (event, upstream, slot) = newest?;
        let read_as_of = made.inputs_as_of().unwrap_or_else(|| made.event_id());
        let cause = StaleCause::UpstreamNewer {
            asset: self.name(upstream).clone(),
            partition: self.key(upstream, self.tracks.get(&upstream)?.digits_of(slot)),
            changed_at: time_of(event),
            read_as_of,
            read_at: time_of(read_as_of),
            count,
        };
        Some((cause, first.map(time_of)))
    }

    /// The inputs that a partition reads through a dependency and that make it stale.
    fn stale_through(&self, dep: &Dep, digits: &[u64]) -> PartitionSet {
        let Some(sets) = self.sets.get(&dep.asset) else { return PartitionSet::EMPTY };
        let stale = if dep.available { sets.made() } else { sets.all() };
        dep.mapping.at(self.at).upstream_of(digits).set.intersection(&stale)
    }

    /// The first few partitions that a partition reads and that are stale, and how many more there are.
    fn stale_inputs(&self, asset: u32, digits: &[u64]) -> (Vec<Place>, u64) {
        let mut found: Vec<Place> = Vec::new();
        let mut count: u128 = 0;
        for dep in &self.definitions.asset(asset).deps {
            let stale = self.stale_through(dep, digits);
            count = count.saturating_add(stale.len());
            let places = stale.iter().map(|digits| (dep.asset, digits));
            found.extend(places.take(MAX_CAUSES.saturating_sub(found.len())));
        }
        let more = count.saturating_sub(found.len() as u128);
        (found, u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// The root of a partition that is stale because of what it reads: the next that is stale by itself, and since
    /// when it is.
    fn root(&self, place: &Place) -> Option<(StaleCause, Option<Timestamp>)> {
        let mut place = place.clone();
        for _ in 0..MAX_STEPS {
            let deps = self.definitions.asset(place.0).deps.iter();
            // What others make comes first: an asset's own earlier partitions lead there as well, a step at a time.
            let (own, others): (Vec<&Dep>, Vec<&Dep>) = deps.partition(|dep| dep.asset == place.0);
            let mut stale = others.into_iter().chain(own).map(|dep| (dep, self.stale_through(dep, &place.1)));
            let (dep, stale) = stale.find(|(_, stale)| !stale.is_empty())?;
            let sets = self.sets.get(&dep.asset)?;
            let by_itself = stale.intersection(&sets.by_themselves());
            let first = |set: &PartitionSet| set.iter().next();
            if let Some(digits) = first(&by_itself) {
                let root = sets.reason(&digits)?;
                let since = self.explained(&(dep.asset, digits.clone()), &mut BTreeSet::new())?.since;
                let (asset, partition) = (self.name(dep.asset).clone(), self.key(dep.asset, &digits));
                return Some((StaleCause::UpstreamStale { asset, partition, root }, since));
            }
            place = (dep.asset, first(&stale)?);
        }
        None
    }

    fn expired(&self, asset: u32, digits: &[u64]) -> Option<(StaleCause, Option<Timestamp>)> {
        let (track, slots) = self.slots(asset)?;
        let since = slots.get(track.slot_of(digits)?).last_attempt().at;
        let after = self.definitions.asset(asset).def.expires_after_ms;
        Some((StaleCause::Expired { after }, Some(since)))
    }

    fn late(&self, asset: u32) -> Option<(StaleCause, Option<Timestamp>)> {
        let found = evaluate_with(self.state, self.definitions.asset(asset), self.now)?;
        let lag = found.data_as_of.map_or(Millis::ZERO, |data_as_of| self.now.since(data_as_of));
        let cause = StaleCause::FreshnessMissed { lag, late_by: self.now.since(found.fails_at) };
        Some((cause, Some(found.fails_at)))
    }
}

/// When an event was.
fn time_of(event: EventId) -> Timestamp {
    Timestamp::from_millis(i64::try_from(event.timestamp_ms()).unwrap_or(i64::MAX))
}
