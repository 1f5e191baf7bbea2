//! The provenance that a dispatch records of its attempt, and the effect of clock steps on it (ADR-086, ADR-087,
//! ADR-088).

use std::collections::BTreeMap;

use serde_json::Value;
use servo_core::Timestamp;

use super::follow::{Judged, Rejection, only_if};
use super::log::{list, number, text};
use super::run::Dispatched;
use super::{Event, Model, Task};

impl Model {
    /// The expected provenance of an attempt. A record that differs is a violation.
    pub(super) fn provenance(&self, event: &Event, task: &Task) -> Result<Dispatched, String> {
        let nothing = Value::Null;
        let told = event.payload.get("provenance").unwrap_or(&nothing);
        let mut dispatched = Dispatched { event: Some(event.id), ..Dispatched::default() };
        let Some(deployed) = &self.deployed else { return Ok(dispatched) };
        let definitions: Option<Vec<&Value>> =
            task.assets.iter().map(|asset| deployed.definitions.get(asset)).collect();
        let has_provenance = number(told, "deployment").is_ok();
        let Some(definitions) = definitions.filter(|_| task.key.partition_str().is_none() || has_provenance)
        else {
            return Ok(dispatched);
        };
        let same = |what: &str, found: Value, expected: Value| {
            if found == expected { Ok(()) } else { Err(format!("{what} is {found}, should be {expected}")) }
        };
        let field = |name: &str| told.get(name).cloned().unwrap_or(Value::Null);
        same("its deployment", field("deployment"), deployed.number.into())?;
        let codes: Vec<Value> =
            definitions.iter().map(|definition| definition["code_version"].clone()).collect();
        let codes = if codes.iter().all(Value::is_null) { Value::Null } else { codes.into() };
        same("its code", field("code_versions"), codes)?;
        same("what it reads", field("inputs"), self.inputs(&definitions))?;
        for (asset, definition) in task.assets.iter().zip(&definitions) {
            if let Some(code) = definition["code_version"].as_str() {
                dispatched.code.insert(asset.clone(), code.to_owned());
            }
            let critical = list(definition, "checks").iter().filter(|check| check["severity"] == "critical");
            let names = critical.filter_map(|check| Some(text(check, "name").ok()?.to_owned()));
            dispatched.blocking.insert(asset.clone(), names.collect());
        }
        Ok(dispatched)
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

    /// Everything that is counted from a time moves along.
    pub(super) fn clock_stepped(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, event.at, self.last_event_at, &self.rules);
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
        Ok(())
    }
}

/// Why a report of success is none: a code, as the engine gives it.
pub(super) fn refused(report: &Value, task: &Task) -> Option<&'static str> {
    let outputs = list(report, "outputs");
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

/// Whether every check that blocks was reported and has passed.
fn passes(output: &Value, task: &Task) -> bool {
    let asset = output.get("asset").and_then(Value::as_str).unwrap_or_default();
    let has_passed = |name: &String| {
        list(output, "checks").iter().any(|check| check["name"] == name.as_str() && check["passed"] == true)
    };
    task.dispatched.blocking.get(asset).is_none_or(|names| names.iter().all(has_passed))
}
