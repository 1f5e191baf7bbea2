//! Partitions that are wiped, marked and given back what they were (ADR-150).

use servo_core::{EventId, MaterializationId, RunId, sha256_hex};

use super::data::{AssetPartition, LastAttempt, Made, Status};
use super::follow::{Judged, only_if};
use super::log::{list, text};
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
        for place in places {
            let was = self.data.prior.remove(&place).and_then(|(_, status)| status?.latest);
            let now = self.data.statuses.get(&place).and_then(|status| status.latest.as_ref());
            if let Some(was) =
                was.filter(|was| !keeps && was.stored && now.is_none_or(|now| now.id != was.id))
            {
                self.data.removed.insert((asset.clone(), was.id));
            }
        }
        let places: Vec<AssetPartition> =
            self.data.statuses.keys().filter(|place| here(place)).cloned().collect();
        for place in places {
            let Some(status) = self.data.statuses.remove(&place) else { continue };
            if keeps {
                self.data.prior.insert(place, (event.id, Some(status)));
            } else if let Some(made) = status.latest.filter(|made| made.stored) {
                self.data.removed.insert((asset.clone(), made.id));
            }
        }
        Ok(())
    }

    /// Somebody says how partitions fare.
    pub(super) fn partitions_marked(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let asset = text(&event.payload, "asset_key")?.to_owned();
        let succeeded = text(&event.payload, "as")? == "SUCCEEDED";
        let mut keys: Vec<String> = Vec::new();
        for written in list(&event.payload, "partitions").iter().filter_map(serde_json::Value::as_str) {
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
        let nobody = RunId::NIL.to_string();
        let definition = self.deployed.as_ref().and_then(|deployed| deployed.definitions.get(&asset));
        let code = definition.and_then(|definition| definition["code_version"].as_str()).map(str::to_owned);
        for partition in places {
            let place = (asset.clone(), partition);
            let before = self.data.statuses.remove(&place);
            let known = before.as_ref().and_then(|status| status.latest.clone());
            let said = succeeded.then(|| Made {
                id: marked_id(event.id, &place),
                run: nobody.clone(),
                at: event.at,
                event: event.id,
                code: code.clone(),
                as_of: Some(event.id),
                stored: false,
            });
            let last = LastAttempt { succeeded, run: nobody.clone(), at: event.at, event: event.id };
            self.data.prior.insert(place.clone(), (event.id, before));
            self.data.statuses.insert(place, Status { latest: known.or(said), last });
        }
        Ok(())
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
            self.data.statuses.remove(&place);
            if let Some(mut status) = self.data.prior.remove(&place).and_then(|(_, status)| status) {
                status.last.event = event.id;
                self.data.statuses.insert(place, status);
            }
        }
        Ok(())
    }
}

/// The id that a mark gives to what nobody has made.
fn marked_id(event: EventId, place: &AssetPartition) -> String {
    let (asset, partition) = (&place.0, place.1.as_deref().unwrap_or_default());
    let digest = sha256_hex(format!("marked:{event}:{asset}:{partition}").as_bytes());
    let hash = u128::from_str_radix(&digest[..32], 16).unwrap_or_default();
    MaterializationId::from_parts(event.timestamp_ms(), hash).to_string()
}
