//! The provenance that a dispatch records of its attempt, and the effect of clock steps on it (ADR-086, ADR-087,
//! ADR-088).

use std::collections::BTreeMap;

use serde_json::Value;
use servo_core::{Operation, Timestamp};

use super::follow::{Judged, Rejection, only_if};
use super::log::{list, number, text};
use super::run::Dispatched;
use super::{Event, Made, Model, Task};

impl Model {
    /// The provenance that a dispatch records, and the time of what is read.
    pub(super) fn provenance(&self, event: &Event, task: &Task) -> Dispatched {
        let nothing = Value::Null;
        let told = event.payload.get("provenance").unwrap_or(&nothing);
        let read = self.read_by(task);
        let mut dispatched = Dispatched { event: Some(event.id), read, ..Dispatched::default() };
        for (asset, code) in task.assets.iter().zip(list(told, "code_versions")) {
            dispatched.code.extend(code.as_str().map(|code| (asset.clone(), code.to_owned())));
        }
        for check in list(told, "checks").iter().filter(|check| check["severity"] == "critical") {
            let output = check.get("output").and_then(Value::as_u64).unwrap_or(0);
            let asset = usize::try_from(output).ok().and_then(|output| task.assets.get(output));
            if let (Some(asset), Ok(name)) = (asset, text(check, "name")) {
                dispatched.blocking.entry(asset.clone()).or_default().push(name.to_owned());
            }
        }
        dispatched
    }

    /// The time of the oldest data that a task reads; nothing is known of what is not deployed.
    fn read_by(&self, task: &Task) -> Option<Timestamp> {
        let deployed = self.deployed.as_ref()?;
        let definitions: Vec<&Value> =
            task.assets.iter().map(|asset| deployed.definitions.get(asset)).collect::<Option<_>>()?;
        let deps = definitions.into_iter().flat_map(|definition| list(definition, "deps"));
        let latest = |dep: &Value| {
            let status = self.data.statuses.get(&(text(dep, "asset").ok()?.to_owned(), None))?;
            status.latest.as_ref().map(Made::data_as_of)
        };
        deps.filter_map(latest).min()
    }

    /// Where the provenance that a dispatch records is not what was deployed and materialized at that moment.
    pub(super) fn false_provenance(&self, event: &Event, task: &Task) -> Option<String> {
        let nothing = Value::Null;
        let told = event.payload.get("provenance").unwrap_or(&nothing);
        let deployed = self.deployed.as_ref()?;
        let definitions: Vec<&Value> =
            task.assets.iter().map(|asset| deployed.definitions.get(asset)).collect::<Option<_>>()?;
        if task.key.partition_str().is_some() && number(told, "deployment").is_err() {
            // A partition that is no more has no work.
            return None;
        }
        let field = |name: &str| told.get(name).cloned().unwrap_or(Value::Null);
        let codes: Vec<Value> =
            definitions.iter().map(|definition| definition["code_version"].clone()).collect();
        let codes = if codes.iter().all(Value::is_null) { Value::Null } else { codes.into() };
        let reads = match task.key.operation() {
            Operation::Check => self.checked(task),
            Operation::Materialize | Operation::Backfill => self.inputs(&definitions),
        };
        let facts = [
            ("its deployment", field("deployment"), Value::from(deployed.number)),
            ("its code", field("code_versions"), codes),
            ("what it reads", field("inputs"), reads),
        ];
        let wrong = facts.into_iter().find(|(_, found, expected)| found != expected);
        wrong.map(|(what, found, expected)| format!("{what} is {found}, should be {expected}"))
    }

    /// The newest materializations of everything that these definitions depend on, as a dispatch writes them.
    fn inputs(&self, definitions: &[&Value]) -> Value {
        let mut inputs: BTreeMap<&str, Value> = BTreeMap::new();
        for dep in definitions.iter().flat_map(|definition| list(definition, "deps")) {
            let Ok(asset) = text(dep, "asset") else { continue };
            let status = self.data.statuses.get(&(asset.to_owned(), None));
            if let Some(latest) = status.and_then(|status| status.latest.as_ref()) {
                let named = serde_json::json!([{ "id": latest.id }]);
                inputs.insert(asset, serde_json::json!({ "asset": asset, "pieces": { "named": named } }));
            }
        }
        if inputs.is_empty() { Value::Null } else { inputs.into_values().collect() }
    }

    /// The newest materializations of what a task checks, as its dispatch writes them.
    fn checked(&self, task: &Task) -> Value {
        let partition = task.key.partition_str();
        let own = |asset: &String| {
            let status = self.data.statuses.get(&(asset.clone(), partition.map(str::to_owned)))?;
            let mut piece = serde_json::json!({ "id": status.latest.as_ref()?.id });
            if let Some(partition) = partition {
                piece["partition"] = partition.into();
            }
            Some(serde_json::json!({ "asset": asset, "pieces": { "named": [piece] } }))
        };
        let found: Vec<Value> = task.assets.iter().filter_map(own).collect();
        if found.is_empty() { Value::Null } else { found.into() }
    }

    /// Everything that is counted from a time moves along.
    pub(super) fn clock_stepped(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let by = event.payload.get("by_ms").and_then(Value::as_i64);
        let by = by.ok_or_else(|| Rejection::Unreadable("by_ms is no number".to_owned()))?;
        let moved = |time: Timestamp| Timestamp::from_millis(time.as_millis().saturating_add(by));
        for run in self.runs.iter_mut().filter(|run| run.is_in_memory && !run.is.has_ended()) {
            run.started_at = run.started_at.map(moved);
            for task in run.tasks.iter_mut().filter(|task| task.is_open() || task.retry_at.is_some()) {
                task.since = moved(task.since);
                for time in [
                    &mut task.pending_since,
                    &mut task.dispatched_at,
                    &mut task.started_at,
                    &mut task.heard_at,
                    &mut task.retry_at,
                ] {
                    *time = time.map(moved);
                }
            }
        }
        self.shift_sensors(moved);
        self.shift_notifications(moved);
        Ok(())
    }
}

/// Why a report of success is none: a code, as the engine gives it.
pub(super) fn refused(report: &Value, task: &Task) -> Option<&'static str> {
    let outputs = list(report, "outputs");
    if task.key.operation() == Operation::Check {
        return task.assets.iter().any(|asset| lacks_results(outputs, asset, task)).then_some("CHECK_FAILED");
    }
    let own = outputs.iter().filter(|output| {
        output
            .get("asset")
            .and_then(Value::as_str)
            .is_some_and(|asset| task.assets.iter().any(|own| own == asset))
    });
    own.filter_map(|output| match output.get("state").and_then(Value::as_str) {
        Some("MISSING") => Some("OUTPUT_MISSING"),
        Some("COMMITTED") if !passes(output, task) => Some("CHECK_FAILED"),
        _ => None,
    })
    .next()
}

/// Whether a check that was asked for has no result, although none before it has failed.
fn lacks_results(outputs: &[Value], asset: &str, task: &Task) -> bool {
    let report = outputs.iter().find(|output| output["asset"] == asset);
    let results = report.map_or(&[][..], |report| list(report, "checks"));
    let has_failed = results.iter().any(|check| check["passed"] == false);
    let is_missing = |name: &String| !results.iter().any(|check| check["name"] == name.as_str());
    !has_failed && task.dispatched.blocking.get(asset).is_some_and(|names| names.iter().any(is_missing))
}

/// Whether every check that blocks was reported and has passed.
fn passes(output: &Value, task: &Task) -> bool {
    let asset = output.get("asset").and_then(Value::as_str).unwrap_or_default();
    let has_passed = |name: &String| {
        list(output, "checks").iter().any(|check| check["name"] == name.as_str() && check["passed"] == true)
    };
    task.dispatched.blocking.get(asset).is_none_or(|names| names.iter().all(has_passed))
}
