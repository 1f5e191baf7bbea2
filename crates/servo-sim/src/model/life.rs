//! Partitions that are wiped, marked and given back what they were (ADR-150), or expire (ADR-182).

use std::collections::BTreeMap;

use servo_core::{EventId, MaterializationId, Millis, RunId, Timestamp, sha256_hex};

use super::data::{AssetPartition, LastAttempt, Made, Origin, Status};
use super::follow::{Judged, only_if};
use super::log::{list, text, texts, time};
use super::{Event, Model};

impl Model {
    /// Wipes partitions: attempts dispatched before no longer count, and nothing is left of the partitions.
    pub(super) fn partitions_wiped(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let asset = text(&event.payload, "asset_key")?.to_owned();
        let ranges = list(&event.payload, "partitions");
        let keeps = event.payload.get("keep_data") == Some(&serde_json::Value::Bool(true));
        let is_meant = |partition: Option<&str>| match partition {
            None => ranges.is_empty(),
            Some(key) => ranges.iter().any(|range| {
                let from = text(range, "from").unwrap_or_default();
                from <= key && key <= text(range, "to").unwrap_or(from)
            }),
        };
        for run in self.runs.iter_mut().filter(|run| !run.is.has_ended() && run.stopped.is_none()) {
            for task in run.tasks.iter_mut().filter(|task| task.is_open()) {
                let makes = task.key.operation() != servo_core::Operation::Check
                    && task.assets.contains(&asset)
                    && is_meant(task.key.partition_str());
                if makes {
                    task.voided.insert(asset.clone());
                }
            }
        }
        let here = |place: &AssetPartition| place.0 == asset && is_meant(place.1.as_deref());
        if !keeps {
            self.data.quarantine.retain(|place, _| !here(place));
        }
        self.data.approved.retain(|_, approved| !here(&approved.place));
        let places: Vec<AssetPartition> =
            self.data.prior.keys().filter(|place| here(place)).cloned().collect();
        let mut expired = BTreeMap::new();
        for place in places {
            // What has expired can be had back as it was before that.
            if let Some(before) = self.before_expiry(&place) {
                expired.insert(place.clone(), before);
            }
            let was = self.data.prior.remove(&place).and_then(|(_, status)| status?.latest);
            let now = self.data.statuses.get(&place).and_then(|status| status.latest.as_ref());
            if let Some(was) =
                was.filter(|was| !keeps && was.origin.stored && now.is_none_or(|now| now.id != was.id))
            {
                self.data.removed.insert((asset.clone(), was.id));
            }
        }
        let places: Vec<AssetPartition> =
            self.data.statuses.keys().filter(|place| here(place)).cloned().collect();
        for place in places {
            let Some(status) = self.data.statuses.remove(&place) else { continue };
            if keeps {
                let status = expired.remove(&place).unwrap_or(Some(status));
                self.data.prior.insert(place, (event.id, status));
            } else if let Some(made) = status.latest.filter(|made| made.origin.stored) {
                self.data.removed.insert((asset.clone(), made.id));
            }
        }
        self.look_again(&asset, event.at);
        Ok(())
    }

    /// Somebody says how partitions fare.
    pub(super) fn partitions_marked(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let asset = text(&event.payload, "asset_key")?.to_owned();
        let succeeded = text(&event.payload, "as")? == "SUCCEEDED";
        let places = named(&event.payload)?;
        let nobody = RunId::NIL.to_string();
        let definition = self.deployed.as_ref().and_then(|deployed| deployed.definitions.get(&asset));
        let code = definition.and_then(|definition| definition["code_version"].as_str()).map(str::to_owned);
        for place in places {
            let (before, is_expired) = match self.before_expiry(&place) {
                Some(before) => (before, true),
                None => {
                    let status = self.data.statuses.get(&place);
                    (status.cloned(), status.is_some_and(|status| status.expired))
                }
            };
            self.data.statuses.remove(&place);
            // What has expired counts again only if somebody says that it is good.
            let known = before.as_ref().and_then(|status| status.latest.clone());
            let known = known.filter(|_| !is_expired || succeeded);
            let is_new = known.is_none();
            let said = succeeded.then(|| Made {
                id: marked_id(event.id, &place),
                run: nobody.clone(),
                at: event.at,
                event: event.id,
                since: event.id,
                origin: Origin { code: code.clone(), as_of: Some(event.id), ..Origin::default() },
            });
            let last = LastAttempt { succeeded, run: nobody.clone(), at: event.at, event: event.id };
            if let Some(said) = said.as_ref().filter(|_| is_new) {
                self.tell_of_asset(&asset, &said.id);
            }
            self.data.prior.insert(place.clone(), (event.id, before));
            self.data.statuses.insert(place, Status { latest: known.or(said), last, expired: false });
        }
        self.look_again(&asset, event.at);
        Ok(())
    }

    /// The status of a partition before it expired, if it did and that is known.
    fn before_expiry(&self, place: &AssetPartition) -> Option<Option<Status>> {
        let status = self.data.statuses.get(place).filter(|status| status.expired)?;
        debug_assert!(status.latest.is_none(), "what has expired does not count");
        self.data.prior.get(place).map(|(_, before)| before.clone())
    }

    /// For how long what is made of an asset counts.
    fn counts_for(&self, asset: &str) -> Option<Millis> {
        let definition = self.deployed.as_ref()?.definitions.get(asset)?;
        definition.get("expires_after_ms").and_then(serde_json::Value::as_u64).map(Millis::new)
    }

    /// Partitions that are older than they may be are missing; their data stays.
    pub(super) fn partitions_expired(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let made_by = time(&event.payload, "made_by")?;
        for place in named(&event.payload)? {
            let Some(status) = self.data.statuses.get(&place) else { continue };
            if status.counts_since().is_none_or(|since| since > made_by) {
                continue;
            }
            let run = RunId::NIL.to_string();
            let last = LastAttempt { succeeded: true, run, at: event.at, event: event.id };
            self.data.prior.insert(place.clone(), (event.id, Some(status.clone())));
            self.data.statuses.insert(place, Status { latest: None, last, expired: true });
        }
        self.look_again(text(&event.payload, "asset_key")?, event.at);
        Ok(())
    }

    /// Where something expires before its time.
    pub(super) fn false_expiry(&self, event: &Event) -> Option<String> {
        if event.kind != "PartitionsExpired" {
            return None;
        }
        let asset = text(&event.payload, "asset_key").ok()?;
        let Some(after) = self.counts_for(asset) else { return Some(format!("{asset} does not expire")) };
        let is_early = |place: &AssetPartition| {
            let status = self.data.statuses.get(place);
            let since = status.and_then(Status::counts_since);
            since.is_none_or(|since| since.saturating_add(after) > event.at)
        };
        let early = named(&event.payload).ok()?.into_iter().find(is_early)?;
        Some(format!("{early:?} expires before its time"))
    }

    /// Partitions that are there although their time is over: at rest, everything that can expire has.
    pub fn overdue(&self) -> impl Iterator<Item = String> {
        let is_overdue = |(place, status): &(&AssetPartition, &Status)| {
            status.latest.is_some() && self.counts_for(&place.0).is_some()
        };
        let overdue = self.data.statuses.iter().filter(is_overdue);
        overdue.map(|(place, _)| format!("{place:?} never expired"))
    }

    /// Partitions that nothing happened to since are what they were.
    pub(super) fn partitions_restored(&mut self, event: &Event) -> Judged {
        let (asset, change) = (text(&event.payload, "asset_key")?, text(&event.payload, "change")?);
        let is_of = |(place, (by, _)): &(&AssetPartition, &(EventId, Option<Status>))| {
            place.0 == asset && by.to_string() == change
        };
        let places: Vec<AssetPartition> =
            self.data.prior.iter().filter(is_of).map(|(place, _)| place.clone()).collect();
        only_if(!places.is_empty(), "duplicate")?;
        for place in places {
            let was_expired = self.data.statuses.remove(&place).is_some_and(|status| status.expired);
            if let Some(mut status) = self.data.prior.remove(&place).and_then(|(_, status)| status) {
                status.last.event = event.id;
                if was_expired {
                    // It counts for as long again.
                    (status.last.run, status.last.at) = (RunId::NIL.to_string(), event.at);
                }
                self.data.statuses.insert(place, status);
            }
        }
        self.look_again(asset, event.at);
        Ok(())
    }
}

impl Status {
    /// Since when it counts: when it was made, or when somebody last said that it is there.
    fn counts_since(&self) -> Option<Timestamp> {
        let made = self.latest.as_ref()?.at;
        Some(if self.last.run == RunId::NIL.to_string() { made.max(self.last.at) } else { made })
    }
}

/// The partitions that an event names, each without what it shares with the one before.
fn named(payload: &serde_json::Value) -> Result<Vec<AssetPartition>, String> {
    let asset = text(payload, "asset_key")?;
    let mut keys: Vec<String> = Vec::new();
    for written in texts(payload, "partitions") {
        let whole = match (keys.last(), written.split_once(':')) {
            (Some(before), Some((shared, rest))) => {
                let shared: usize = shared.parse().map_err(|_| format!("{written} shares nothing"))?;
                format!("{}{rest}", before.get(..shared).unwrap_or_default())
            }
            (Some(_) | None, _) => written.to_owned(),
        };
        keys.push(whole);
    }
    let places = if keys.is_empty() { vec![None] } else { keys.into_iter().map(Some).collect() };
    Ok(places.into_iter().map(|partition| (asset.to_owned(), partition)).collect())
}

/// The id that a mark gives to what nobody has made.
fn marked_id(event: EventId, place: &AssetPartition) -> String {
    let (asset, partition) = (&place.0, place.1.as_deref().unwrap_or_default());
    let digest = sha256_hex(format!("marked:{event}:{asset}:{partition}").as_bytes());
    let hash = u128::from_str_radix(&digest[..32], 16).unwrap_or_default();
    MaterializationId::from_parts(event.timestamp_ms(), hash).to_string()
}
