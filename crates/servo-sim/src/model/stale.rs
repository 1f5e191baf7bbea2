//! Staleness as its definition says, found by following every dependency again (ADR-140): of assets without partitions,
//! and of those with static ones, which read nothing.

use std::collections::BTreeSet;

use serde_json::Value;
use servo_core::{PartitionKey, PartitionValue, Timestamp};
use servo_engine::State;
use servo_engine::staleness::Staleness;

use super::log::{list, text, texts};
use super::{Made, Model};

impl Model {
    /// Where what a state finds stale is not so.
    pub fn compare_staleness(&self, state: &State) -> Vec<String> {
        let now = state.head().last_event_at;
        let (Some(deployed), Some(definitions), Some(mut follower)) =
            (&self.deployed, state.checked_definitions(), Staleness::of(state))
        else {
            return Vec::new();
        };
        let all = 0..u32::try_from(definitions.assets().len()).unwrap_or(0);
        let Some(view) = follower.look(state, all.clone(), now) else { return Vec::new() };
        let mut wrong = Vec::new();
        for position in all {
            let key = definitions.asset(position).key.canonical();
            let Some(definition) = deployed.definitions.get(key) else {
                wrong.push(format!("{key} is not deployed, and looked at"));
                continue;
            };
            for partition in partitions(definition) {
                let found = view.reason(position, partition.as_ref()).map(|reason| reason.name());
                let text = partition.as_ref().map(PartitionKey::canonical);
                let expected = self.stale_for(key, text, now, &mut BTreeSet::new());
                if found != expected {
                    let place = text.unwrap_or_default();
                    wrong.push(format!("{key} {place} is stale for {found:?}, should be {expected:?}"));
                }
            }
        }
        wrong
    }

    /// The first reason that holds for a partition.
    fn stale_for(
        &self,
        asset: &str,
        partition: Option<&str>,
        now: Timestamp,
        seen: &mut BTreeSet<String>,
    ) -> Option<&'static str> {
        let definition = self.deployed.as_ref()?.definitions.get(asset)?;
        let status = self.data.statuses.get(&(asset.to_owned(), partition.map(str::to_owned)));
        if status.is_some_and(|status| status.expired) {
            return Some("EXPIRED");
        }
        let Some(made) = status.and_then(|status| status.latest.as_ref()) else { return Some("NEVER_MADE") };
        if definition.get("code_version").and_then(Value::as_str) != made.origin.code.as_deref() {
            return Some("CODE_CHANGED");
        }
        let ups: Vec<&str> =
            list(definition, "deps").iter().filter_map(|dep| text(dep, "asset").ok()).collect();
        let latest = |up: &str| self.data.statuses.get(&(up.to_owned(), None))?.latest.as_ref();
        let read = made.origin.as_of.unwrap_or(made.event);
        let is_newer = |up: &Made| up.since > read && up.since != made.event;
        if ups.iter().filter_map(|up| latest(up)).any(is_newer) {
            return Some("UPSTREAM_NEWER");
        }
        seen.insert(asset.to_owned());
        let is_stale =
            |up: &&str| !seen.contains(*up) && self.stale_for(up, None, now, &mut seen.clone()).is_some();
        if ups.iter().any(is_stale) {
            return Some("UPSTREAM_STALE");
        }
        self.is_late(asset, now).then_some("FRESHNESS_MISSED")
    }
}

/// The partitions that are looked at: none of those that people add and remove.
fn partitions(definition: &Value) -> Vec<Option<PartitionKey>> {
    let Some(declared) = definition.get("partitions") else { return vec![None] };
    let key = |text: &str| PartitionKey::single("partition", PartitionValue::Str(text.to_owned())).ok();
    texts(declared, "keys").map(key).collect()
}
