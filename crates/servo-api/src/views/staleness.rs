//! Stale partitions, and why they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, EventId, PartitionKey, RunId, Timestamp};
use servo_engine::staleness::{Stale, StaleCause, StaleReason, StaleSets};
use utoipa::ToSchema;

use super::attempts::Failure;

/// Number of stale partitions by reason: each is counted for the first that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaleTotals {
    /// All of them.
    pub total: u64,
    /// Never made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub never_made: u64,
    /// Made longer ago than the asset keeps it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expired: u64,
    /// Made by another version of the code than is deployed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub code_changed: u64,
    /// Made from something that has changed since.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub upstream_newer: u64,
    /// Made from something that is stale.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub upstream_stale: u64,
    /// Older than the freshness of the asset allows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub freshness_missed: u64,
}

/// A page of stale partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StalePartitions {
    /// Numbers of all that are stale, not only on this page.
    pub totals: StaleTotals,
    /// The same by asset, `namespace/name`; assets that are up to date are left out.
    pub assets: BTreeMap<String, StaleTotals>,
    /// The partitions of this page.
    pub items: Vec<StalePartition>,
    /// Cursor of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A stale partition, or a stale asset without partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StalePartition {
    /// `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    #[allow(missing_docs)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub partition_key: Option<PartitionKey>,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// `NEVER_MADE`, `EXPIRED`, `CODE_CHANGED`, `UPSTREAM_NEWER`, `UPSTREAM_STALE` or `FRESHNESS_MISSED`.
    pub reason: String,
    /// The same as the end of a sentence that begins with the partition.
    pub why: String,
    /// Since when; absent if it was never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub stale_since: Option<Timestamp>,
    /// The version of the code that made it, if another one is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_code_version: Option<String>,
    /// The version of the code that is deployed, if another one made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_code_version: Option<String>,
    /// The upstream asset at the root: the newest that has changed, or the one that is stale by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub upstream_asset_key: Option<AssetKey>,
    /// Its partition, as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_partition: Option<String>,
    /// Why the root is stale, where the reason is `UPSTREAM_STALE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_reason: Option<String>,
    /// When the upstream partition changed, where the reason is `UPSTREAM_NEWER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub upstream_changed_at: Option<Timestamp>,
    /// The event that decided what it was made from, where the reason is `UPSTREAM_NEWER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub read_as_of: Option<EventId>,
    /// Stale partitions that it is made from, where the reason is `UPSTREAM_STALE`: the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub because_of: Vec<StalePartition>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// Why an asset or one of its partitions is stale, or that it is up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyStale {
    /// `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// The partition that was asked about, as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Whether anything that was asked about is stale.
    pub stale: bool,
    /// The answer in a sentence.
    pub sentence: String,
    /// Numbers of the asset's stale partitions.
    pub totals: StaleTotals,
    /// The cause, with the causes behind it: of the newest stale partition unless one was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<StalePartition>,
    /// The last attempt to make it, if that failed: what there is is older, or there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// An attempt to make a partition that failed, and was the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastFailure {
    /// The partition, as people write it; absent for an asset without partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// When it ended.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Its run; absent if somebody marked the partition as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    /// Its error, as far as it is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl StaleTotals {
    pub(crate) fn new(sets: &StaleSets) -> Self {
        let count = |reason: StaleReason| u64::try_from(sets.of(reason).len()).unwrap_or(u64::MAX);
        let mut totals = Self {
            total: 0,
            never_made: count(StaleReason::NeverMade),
            expired: count(StaleReason::Expired),
            code_changed: count(StaleReason::CodeChanged),
            upstream_newer: count(StaleReason::UpstreamNewer),
            upstream_stale: count(StaleReason::UpstreamStale),
            freshness_missed: count(StaleReason::FreshnessMissed),
        };
        totals.total = totals.each().into_iter().fold(0, |sum, (_, count)| sum.saturating_add(count));
        totals
    }

    /// The numbers with what they count, for people.
    pub fn each(&self) -> [(&'static str, u64); 6] {
        [
            ("never made", self.never_made),
            ("expired", self.expired),
            ("code changed", self.code_changed),
            ("upstream newer", self.upstream_newer),
            ("upstream stale", self.upstream_stale),
            ("freshness missed", self.freshness_missed),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.total = self.total.saturating_add(other.total);
        self.never_made = self.never_made.saturating_add(other.never_made);
        self.expired = self.expired.saturating_add(other.expired);
        self.code_changed = self.code_changed.saturating_add(other.code_changed);
        self.upstream_newer = self.upstream_newer.saturating_add(other.upstream_newer);
        self.upstream_stale = self.upstream_stale.saturating_add(other.upstream_stale);
        self.freshness_missed = self.freshness_missed.saturating_add(other.freshness_missed);
    }
}

impl From<Stale> for StalePartition {
    fn from(stale: Stale) -> Self {
        let Stale { asset, partition, cause, since, because_of, more } = stale;
        let mut shown = Self {
            asset_key: asset,
            partition: partition.as_ref().map(ToString::to_string),
            partition_key: partition,
            reason: cause.reason().name().to_owned(),
            why: cause.to_string(),
            stale_since: since,
            ran_code_version: None,
            deployed_code_version: None,
            upstream_asset_key: None,
            upstream_partition: None,
            root_reason: None,
            upstream_changed_at: None,
            read_as_of: None,
            because_of: because_of.into_iter().map(Self::from).collect(),
            more,
        };
        match cause {
            StaleCause::NeverMade | StaleCause::Expired { .. } | StaleCause::FreshnessMissed { .. } => {}
            StaleCause::CodeChanged { ran, deployed } => {
                shown.ran_code_version = ran.map(|ran| ran.to_string());
                shown.deployed_code_version = Some(deployed.to_string());
            }
            StaleCause::UpstreamNewer { asset, partition, changed_at, read_as_of, .. } => {
                shown.upstream_asset_key = Some(asset);
                shown.upstream_partition = partition.map(|partition| partition.to_string());
                shown.upstream_changed_at = Some(changed_at);
                shown.read_as_of = Some(read_as_of);
            }
            StaleCause::UpstreamStale { asset, partition, root } => {
                shown.upstream_asset_key = Some(asset);
                shown.upstream_partition = partition.map(|partition| partition.to_string());
                shown.root_reason = Some(root.name().to_owned());
            }
        }
        shown
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
