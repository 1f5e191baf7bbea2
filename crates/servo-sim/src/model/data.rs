//! The status of data: the latest of each partition, how its last attempt ended, and the quarantine (ADR-056, ADR-062).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_core::{EventId, Operation, TaskKey, Timestamp};

use super::follow::{Judged, Rejection};
use super::log::{list, text};
use super::run::Dispatched;
use super::{Event, Task, TaskIs};

/// An asset, and one of its partitions if it has any.
pub type AssetPartition = (String, Option<String>);

/// A current materialization.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Made {
    pub id: String,
    pub run: String,
    pub at: Timestamp,
    pub event: EventId,
    /// The version of its code, and the event that decided what was read.
    pub code: Option<String>,
    pub as_of: Option<EventId>,
    /// Whether Servo has files of it.
    pub stored: bool,
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
}

/// A quarantined output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Waiting {
    pub id: String,
    pub run: String,
    pub event: EventId,
    pub code: Option<String>,
    pub as_of: Option<EventId>,
    pub stored: bool,
}

/// An approved output whose data is not moved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Approved {
    pub place: AssetPartition,
    pub run: String,
    pub at: Timestamp,
    pub event: EventId,
    pub code: Option<String>,
    pub as_of: Option<EventId>,
    pub stored: bool,
}

/// A materialization that became current.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Promotion {
    pub place: AssetPartition,
    pub made: Made,
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

/// The reported output state of an asset.
fn output_state<'a>(report: &'a Value, asset: &str) -> Option<&'a str> {
    let about = |output: &&Value| output.get("asset").and_then(Value::as_str) == Some(asset);
    list(report, "outputs").iter().find(about)?.get("state")?.as_str()
}

/// Whether a report names files of an asset.
fn is_stored(report: &Value, asset: &str) -> bool {
    let about = |output: &&Value| output.get("asset").and_then(Value::as_str) == Some(asset);
    let format = list(report, "outputs").iter().find(about).and_then(|output| output.get("format")?.as_str());
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
                    code: dispatched.code.get(asset).cloned(),
                    as_of: dispatched.event,
                    stored: is_stored(&event.payload, asset),
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
            let code = task.dispatched.code.get(asset).cloned();
            let stored = is_stored(&event.payload, asset);
            self.ended(place, id, last, (code, task.dispatched.event, stored));
        }
    }

    fn ended(
        &mut self,
        place: AssetPartition,
        id: Option<&str>,
        last: LastAttempt,
        (code, as_of, stored): (Option<String>, Option<EventId>, bool),
    ) {
        let (run, at, event) = (last.run.clone(), last.at, last.event);
        let made = id.map(|id| Made { id: id.to_owned(), run, at, event, code, as_of, stored });
        if let Some(made) = made.clone() {
            self.promotions.push(Promotion { place: place.clone(), made, approved: false });
        }
        self.prior.remove(&place);
        let before = self.statuses.remove(&place).and_then(|status| status.latest);
        self.statuses.insert(place, Status { latest: made.or(before), last });
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
            let Waiting { run, code, as_of, stored, .. } = waiting;
            let approved = Approved { place, run, at: event.at, event: event.id, code, as_of, stored };
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
        let Approved { place, run, at, event: by, code, as_of, stored } = approved;
        let last = LastAttempt { succeeded: true, run: run.clone(), at: event.at, event: event.id };
        let made = Made { id: id.to_owned(), run, at, event: by, code, as_of, stored };
        self.promotions.push(Promotion { place: place.clone(), made: made.clone(), approved: true });
        self.prior.remove(&place);
        let before = self.statuses.remove(&place).and_then(|status| status.latest);
        let newer = before.filter(|before| before.event > by);
        self.statuses.insert(place, Status { latest: Some(newer.unwrap_or(made)), last });
        Ok(())
    }
}
