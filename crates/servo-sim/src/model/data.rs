//! The status of data: the latest of each partition, how its last attempt ended, and the quarantine (ADR-056, ADR-062).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_core::{EventId, Millis, Operation, TaskKey, Timestamp};

use super::follow::{Judged, Rejection};
use super::log::{list, text};
use super::run::Dispatched;
use super::{Event, Task, TaskIs};

/// An asset, and one of its partitions if it has any.
pub type AssetPartition = (String, Option<String>);

/// The known origin of an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Origin {
    /// The version of its code, and the event that decided what was read.
    pub code: Option<String>,
    pub as_of: Option<EventId>,
    /// The time of the oldest of what was read.
    pub read: Option<Timestamp>,
    /// Whether Servo has files of it, and the hash of what is in them.
    pub stored: bool,
    pub content: Option<String>,
}

impl Origin {
    fn of(report: &Value, asset: &str, dispatched: &Dispatched) -> Self {
        let content = output_of(report, asset).and_then(|output| output.get("content_hash")?.as_str());
        Self {
            code: dispatched.code.get(asset).cloned(),
            as_of: dispatched.event,
            read: dispatched.read,
            stored: is_stored(report, asset),
            content: content.map(str::to_owned),
        }
    }
}

/// A current materialization.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Made {
    pub id: String,
    pub run: String,
    pub at: Timestamp,
    pub event: EventId,
    /// The event since which its partition has this content.
    pub since: EventId,
    pub origin: Origin,
}

impl Made {
    /// The time of the oldest of what it was made of, to the second.
    pub fn data_as_of(&self) -> Timestamp {
        let age = self.origin.read.map_or(Millis::ZERO, |read| self.at.since(read));
        self.at.saturating_sub(Millis::new(age.get() / 1_000 * 1_000))
    }
}

/// How the last task of a partition ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LastAttempt {
    pub succeeded: bool,
    pub run: String,
    pub at: Timestamp,
    pub event: EventId,
}

/// The status of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Status {
    pub latest: Option<Made>,
    pub last: LastAttempt,
    /// Whether it was made and is too old to count; its last attempt is when that was noticed.
    pub expired: bool,
}

/// A quarantined output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Waiting {
    pub id: String,
    pub run: String,
    pub event: EventId,
    pub origin: Origin,
}

/// An approved output whose data is not moved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Approved {
    pub place: AssetPartition,
    pub run: String,
    pub at: Timestamp,
    pub event: EventId,
    pub origin: Origin,
}

/// A materialization that became current.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Promotion {
    pub place: AssetPartition,
    pub made: Made,
    /// The event by which it did.
    pub by: EventId,
    /// Whether a review made it current, rather than the end of its task.
    pub approved: bool,
}

/// The status of all data.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Data {
    pub statuses: BTreeMap<AssetPartition, Status>,
    pub quarantine: BTreeMap<AssetPartition, Waiting>,
    /// Approved outputs that are not released yet, by asset and id.
    pub approved: BTreeMap<(String, String), Approved>,
    /// All materializations that ever became current, in order.
    pub promotions: Vec<Promotion>,
    /// Those whose data was removed since, by asset and id.
    pub removed: BTreeSet<(String, String)>,
    /// Undoable changes: the event that wiped or marked a partition, and its status before.
    pub prior: BTreeMap<AssetPartition, (EventId, Option<Status>)>,
}

/// The reported output of an asset.
fn output_of<'a>(report: &'a Value, asset: &str) -> Option<&'a Value> {
    let about = |output: &&Value| output.get("asset").and_then(Value::as_str) == Some(asset);
    list(report, "outputs").iter().find(about)
}

/// The reported output state of an asset.
fn output_state<'a>(report: &'a Value, asset: &str) -> Option<&'a str> {
    output_of(report, asset)?.get("state")?.as_str()
}

/// Whether a report names files of an asset.
fn is_stored(report: &Value, asset: &str) -> bool {
    let format = output_of(report, asset).and_then(|output| output.get("format")?.as_str());
    format.is_some_and(|format| !format.eq_ignore_ascii_case("none"))
}

/// The id under which a report of success counts. Where outputs are reported, it is that of the attempt.
pub(super) fn name_of(report: &Value, key: &TaskKey, assets: &[String]) -> Option<String> {
    if key.operation() == Operation::Check {
        return None;
    }
    if list(report, "outputs").is_empty() {
        return report.get("materialization_id").and_then(Value::as_str).map(str::to_owned);
    }
    let counts = assets.iter().any(|asset| output_state(report, asset) == Some("COMMITTED"));
    counts.then(|| text(report, "attempt_id").unwrap_or_default().to_owned())
}

impl Data {
    /// Quarantines reported outputs, whatever the outcome of their task.
    pub(super) fn set_aside(
        &mut self,
        event: &Event,
        run: &str,
        key: &TaskKey,
        assets: &[String],
        dispatched: &Dispatched,
    ) {
        if key.operation() == Operation::Check {
            return;
        }
        let id = text(&event.payload, "attempt_id").unwrap_or_default();
        for asset in assets {
            if output_state(&event.payload, asset) == Some("QUARANTINED") {
                let place = (asset.clone(), key.partition_str().map(str::to_owned));
                let waiting = Waiting {
                    id: id.to_owned(),
                    run: run.to_owned(),
                    event: event.id,
                    origin: Origin::of(&event.payload, asset, dispatched),
                };
                self.quarantine.insert(place, waiting);
            }
        }
    }

    /// A task succeeded, or an attempt of it failed.
    pub(super) fn attempt_ended(&mut self, event: &Event, run: &str, task: &Task) {
        match task.key.operation() {
            Operation::Check => return,
            Operation::Materialize | Operation::Backfill => {}
        }
        let says_nothing = list(&event.payload, "outputs").is_empty();
        let succeeded = task.is == TaskIs::Succeeded;
        for asset in task.assets.iter().filter(|asset| !task.voided.contains(*asset)) {
            let place = (asset.clone(), task.key.partition_str().map(str::to_owned));
            let counts = says_nothing || output_state(&event.payload, asset) == Some("COMMITTED");
            let id = task.materialization.as_deref().filter(|_| counts && succeeded);
            let last = LastAttempt { succeeded, run: run.to_owned(), at: event.at, event: event.id };
            self.ended(place, id, last, Origin::of(&event.payload, asset, &task.dispatched));
        }
    }

    fn ended(&mut self, place: AssetPartition, id: Option<&str>, last: LastAttempt, origin: Origin) {
        let (run, at, event) = (last.run.clone(), last.at, last.event);
        match id {
            Some(id) => {
                let made = Made { id: id.to_owned(), run, at, event, since: event, origin };
                self.promote(Promotion { place, made, by: event, approved: false }, last);
            }
            None => {
                self.prior.remove(&place);
                let latest = self.statuses.remove(&place).and_then(|status| status.latest);
                self.statuses.insert(place, Status { latest, last, expired: false });
            }
        }
    }

    /// Something becomes current, unless something newer is. What has the same content as before is no news to readers.
    fn promote(&mut self, promotion: Promotion, last: LastAttempt) {
        let (place, mut made) = (promotion.place.clone(), promotion.made.clone());
        self.promotions.push(promotion);
        self.prior.remove(&place);
        let before = self.statuses.remove(&place).and_then(|status| status.latest);
        let latest = match before {
            Some(before) if before.event > made.event => before,
            Some(before) if made.origin.content.is_some() && made.origin.content == before.origin.content => {
                made.since = before.since;
                made
            }
            Some(_) | None => made,
        };
        self.statuses.insert(place, Status { latest: Some(latest), last, expired: false });
    }

    /// Applies a review of a quarantined output.
    pub(super) fn reviewed(&mut self, event: &Event, approves: bool) -> Judged {
        let (asset, id) = (text(&event.payload, "asset_key")?, text(&event.payload, "materialization_id")?);
        let mut waiting = self.quarantine.iter();
        let found = waiting.find(|((of, _), waiting)| of == asset && waiting.id == id);
        let place = found.map(|(place, _)| place.clone()).ok_or(Rejection::Ignored("duplicate"))?;
        let Some(waiting) = self.quarantine.remove(&place) else {
            return Err(Rejection::Ignored("duplicate"));
        };
        if approves {
            let Waiting { run, origin, .. } = waiting;
            let approved = Approved { place, run, at: event.at, event: event.id, origin };
            self.approved.insert((asset.to_owned(), id.to_owned()), approved);
        }
        Ok(())
    }

    /// Makes an approved output count, as of its approval: its data is where readers look for it.
    pub(super) fn released(&mut self, event: &Event) -> Judged {
        let (asset, id) = (text(&event.payload, "asset_key")?, text(&event.payload, "materialization_id")?);
        let Some(approved) = self.approved.remove(&(asset.to_owned(), id.to_owned())) else {
            let waits = self.quarantine.iter().any(|((of, _), waiting)| of == asset && waiting.id == id);
            return Err(Rejection::Ignored(if waits { "not in that state" } else { "duplicate" }));
        };
        let Approved { place, run, at, event: by, origin } = approved;
        let last = LastAttempt { succeeded: true, run: run.clone(), at: event.at, event: event.id };
        // Whoever was dispatched between the approval and now has read the one before.
        let made = Made { id: id.to_owned(), run, at, event: by, since: event.id, origin };
        self.promote(Promotion { place, made, by: event.id, approved: true }, last);
        Ok(())
    }
}
