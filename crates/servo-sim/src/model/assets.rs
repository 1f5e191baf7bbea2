//! How each asset fares: failures since its last success, and its last checks (`asset_states`).

use std::collections::BTreeMap;

use serde_json::Value;
use servo_core::{EventId, Operation};
use servo_engine::rows::AssetStateRow;

use super::compare::Differences;
use super::log::list;
use super::{Event, Task, TaskIs};

/// Failures that are counted at most.
const MOST: u32 = 100;

/// How one asset fares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fares {
    pub failures: u32,
    pub success: Option<EventId>,
    pub failure: Option<EventId>,
    /// The last report with results of checks, and whether all of them passed.
    pub check: Option<(EventId, bool)>,
}

/// How all assets fare that were attempted or checked.
#[derive(Debug, Clone, Default)]
pub struct Assets(BTreeMap<String, Fares>);

impl Assets {
    pub(super) fn knows(&self, asset: &str) -> bool {
        self.0.contains_key(asset)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let fares = self.0.remove(from);
        self.0.extend(fares.map(|fares| (to.to_owned(), fares)));
    }

    /// A task has ended for good.
    pub(super) fn ended(&mut self, event: &Event, task: &Task) {
        if task.key.operation() == Operation::Check {
            return;
        }
        for asset in &task.assets {
            match task.is {
                TaskIs::Succeeded if task.voided.contains(asset) => {}
                TaskIs::Succeeded => self.succeeded(asset, event),
                TaskIs::Failed => {
                    let fares = self.0.entry(asset.clone()).or_default();
                    fares.failures = MOST.min(fares.failures + 1);
                    fares.failure = Some(event.id);
                }
                TaskIs::Planned
                | TaskIs::Blocked
                | TaskIs::Ready
                | TaskIs::Dispatched
                | TaskIs::Running
                | TaskIs::RetryWait
                | TaskIs::Skipped
                | TaskIs::Cancelled => {}
            }
        }
    }

    /// Something of an asset counts from now on.
    pub(super) fn succeeded(&mut self, asset: &str, event: &Event) {
        let fares = self.0.entry(asset.to_owned()).or_default();
        (fares.failures, fares.success) = (0, Some(event.id));
    }

    /// A report about these assets may have results of checks.
    pub(super) fn checked(&mut self, event: &Event, assets: &[String]) {
        for asset in assets {
            let outputs = list(&event.payload, "outputs");
            let Some(output) = outputs.iter().find(|output| output["asset"] == asset.as_str()) else {
                continue;
            };
            let results = list(output, "checks");
            if !results.is_empty() {
                let passed = results.iter().all(|check| check["passed"] == Value::Bool(true));
                self.0.entry(asset.clone()).or_default().check = Some((event.id, passed));
            }
        }
    }

    /// The differences of the rows.
    pub(super) fn compare(&self, found: &mut Differences, rows: &[AssetStateRow]) {
        let known = rows.iter().map(|row| row.asset_key.canonical().to_owned()).collect();
        found.same_keys("states of assets", &known, &self.0.keys().cloned().collect());
        for row in rows {
            let Some(fares) = self.0.get(row.asset_key.canonical()) else { continue };
            let about = || row.asset_key.canonical().to_owned();
            found.compare(&about, "its failures in a row", row.consecutive_failures, fares.failures);
            found.compare(&about, "its last success", row.last_success_event_id, fares.success);
            found.compare(&about, "its last failure", row.last_failure_event_id, fares.failure);
            let check = row.last_check_event_id.zip(row.last_check_passed);
            found.compare(&about, "its last checks", check, fares.check);
        }
    }
}
