//! Automation conditions, evaluated over the model whenever somebody asks, by looking at everything. Simulated ones are
//! those of [`crate::declared`], of assets without partitions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_core::EventId;
use servo_engine::HotRows;

use super::compare::Differences;
use super::follow::{Judged, Rejection, only_if};
use super::log::{list, number, text, texts};
use super::{Event, Model, Task};

/// Later than anything that has happened: the moment of what is requested in the same evaluation.
const NOW: EventId = EventId::from_u128(u128::MAX);

/// The condition of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Condition {
    pub condition: Value,
    /// The deployment that it came with.
    pub in_force: EventId,
    pub paused: bool,
    pub version: u64,
    /// Everything up to this event was a reason to request the asset, or was read since; none if it was made of that.
    pub handled: Option<EventId>,
}

/// The value of a part, the newest event that made it so, and the newest that speaks for a request.
#[derive(Debug, Clone, Copy)]
struct Truth {
    holds: bool,
    at: Option<EventId>,
    cause: Option<EventId>,
}

impl Truth {
    fn state(holds: bool, at: Option<EventId>) -> Self {
        Self { holds, at, cause: at.filter(|_| holds) }
    }

    /// Of what only keeps a request back.
    fn guard(holds: bool, at: Option<EventId>) -> Self {
        Self { holds, at, cause: None }
    }

    fn joined(parts: &[Self], all: bool) -> Self {
        let holds =
            if all { parts.iter().all(|part| part.holds) } else { parts.iter().any(|part| part.holds) };
        let at = parts.iter().filter(|part| part.holds == holds).filter_map(|part| part.at).max();
        let cause = parts.iter().filter(|part| part.holds).filter_map(|part| part.cause).max();
        Self { holds, at, cause: cause.filter(|_| holds) }
    }
}

/// One evaluation of all conditions.
struct Evaluation<'m> {
    model: &'m Model,
    requested: BTreeSet<String>,
}

impl Evaluation<'_> {
    fn deps(&self, asset: &str) -> Vec<String> {
        let deployed = self.model.deployed.as_ref();
        let definition = deployed.and_then(|deployed| deployed.definitions.get(asset));
        let deps = definition.map_or(&[][..], |definition| list(definition, "deps"));
        deps.iter().filter_map(|dep| text(dep, "asset").ok().map(str::to_owned)).collect()
    }

    /// The value of a part for an asset, for the condition of another one or its own. What happened counts if it is
    /// later than `after`.
    fn value(&self, part: &Value, of: &str, own: &str, after: EventId) -> Result<Truth, String> {
        let inner = || part.get("of").ok_or_else(|| format!("{part} has no parts"));
        let status = self.model.data.statuses.get(&(of.to_owned(), None));
        let made = status.and_then(|status| status.latest.as_ref()).map(|made| made.event);
        let is_requested = self.requested.contains(of);
        Ok(match text(part, "op")? {
            op @ ("and" | "or") => {
                let parts = list(part, "of").iter().map(|part| self.value(part, of, own, after));
                Truth::joined(&parts.collect::<Result<Vec<_>, _>>()?, op == "and")
            }
            "not" => {
                let truth = self.value(inner()?, of, own, after)?;
                Truth::guard(!truth.holds, truth.at)
            }
            "named" => self.value(inner()?, of, own, after)?,
            "any_upstream" => {
                let inner = inner()?;
                let parts = self.deps(of).into_iter().map(|up| self.value(inner, &up, own, after));
                Truth::joined(&parts.collect::<Result<Vec<_>, _>>()?, false)
            }
            // Nothing that has no partitions gets a new one.
            "new_partition" => Truth::state(false, None),
            "updated" => {
                let at = if is_requested { Some(NOW) } else { made };
                let holds = at.is_some_and(|at| at > after);
                if of == own { Truth::guard(holds, at) } else { Truth::state(holds, at) }
            }
            "missing" if is_requested => Truth::guard(false, Some(NOW)),
            "missing" if made.is_some() => Truth::guard(false, made),
            "missing" => {
                let since = self.model.conditions.get(of).filter(|_| of == own).map(|known| known.in_force);
                Truth::state(true, since)
            }
            "in_progress" => {
                let makes = |task: &Task| task.makes_data() && !task.is.has_ended() && task.makes(of);
                let at_work = self.model.runs.iter().filter(|run| !run.is.has_ended());
                let makers = at_work.filter(|run| run.tasks.iter().any(makes)).map(|run| run.requested).min();
                let at = makers.or_else(|| status.map(|status| status.last.event));
                let holds = makers.is_some();
                if of == own { Truth::guard(holds, at) } else { Truth::state(holds, at) }
            }
            op => return Err(format!("no simulated condition has {op}")),
        })
    }
}

impl Model {
    /// The assets that their conditions request now, each after those that it reads.
    pub(super) fn wanted(&self) -> Result<BTreeSet<String>, String> {
        let mut evaluation = Evaluation { model: self, requested: BTreeSet::new() };
        let mut left: BTreeSet<&String> = self.conditions.keys().collect();
        while let Some(asset) = left.iter().copied().find(|asset| {
            let deps = evaluation.deps(asset);
            !deps.iter().any(|dep| dep != *asset && left.contains(dep))
        }) {
            left.remove(asset);
            let known = &self.conditions[asset];
            let status = self.data.statuses.get(&(asset.clone(), None));
            let made = status.and_then(|status| status.latest.as_ref());
            let read = made.map(|made| made.origin.as_of.unwrap_or(made.event));
            let handled = known.handled.max(read).unwrap_or(EventId::NIL);
            let truth = evaluation.value(&known.condition, asset, asset, handled)?;
            let is_news = truth.cause.is_some_and(|cause| cause >= known.in_force && cause > handled);
            let is_free =
                !evaluation.value(&serde_json::json!({ "op": "in_progress" }), asset, asset, handled)?.holds;
            if truth.holds && is_news && is_free && !known.paused {
                evaluation.requested.insert(asset.clone());
            }
        }
        Ok(evaluation.requested)
    }

    /// Conditions come with deployments; one that has changed begins anew.
    pub(super) fn conditions_deployed(&mut self, event: &Event) -> Judged {
        for asset in list(&event.payload, "upsert") {
            let definition = asset.get("definition").unwrap_or(&Value::Null);
            let key = text(definition, "key")?.to_owned();
            let Some(condition) = definition.get("automation") else {
                self.conditions.remove(&key);
                continue;
            };
            let known = self.conditions.get(&key);
            if known.is_some_and(|known| known.condition == *condition) {
                continue;
            }
            let new = Condition {
                condition: condition.clone(),
                in_force: event.id,
                paused: known.is_some_and(|known| known.paused),
                version: known.map_or(0, |known| known.version) + 1,
                handled: known.and_then(|known| known.handled),
            };
            self.conditions.insert(key, new);
        }
        for key in texts(&event.payload, "removed") {
            self.conditions.remove(key);
        }
        Ok(())
    }

    pub(super) fn condition_paused(&mut self, event: &Event) -> Judged {
        let (asset, version) = (text(&event.payload, "asset")?, number(&event.payload, "state_version")?);
        let known = self.conditions.get_mut(asset).ok_or(Rejection::Ignored("unknown condition"))?;
        only_if(version > known.version, "duplicate")?;
        known.version = version;
        known.paused = event.payload.get("paused") == Some(&Value::Bool(true));
        Ok(())
    }

    pub(super) fn conditions_evaluated(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        for asset in requested(event) {
            if let Some(known) = self.conditions.get_mut(&asset) {
                known.handled = known.handled.max(Some(event.id));
            }
        }
        Ok(())
    }

    /// Data that an attempt could read is handled once its task is over; with data that has it nothing is open.
    pub(super) fn handle(&mut self, event: &Event) {
        let over = |task: &&Task| task.ended_by == Some(event.id) && task.makes_data();
        let tasks = self.runs.iter().flat_map(|run| run.tasks.iter().filter(over));
        let read: Vec<(String, EventId)> = tasks
            .filter_map(|task| Some((task, task.dispatched.event?)))
            .flat_map(|(task, read)| task.assets.iter().map(move |asset| (asset.clone(), read)))
            .collect();
        let promoted = self.data.promotions.iter().rev().take_while(|it| it.by == event.id);
        let made: Vec<(String, EventId)> = promoted
            .filter(|promotion| promotion.place.1.is_none())
            .map(|it| (it.place.0.clone(), it.made.origin.as_of.unwrap_or(it.made.event)))
            .collect();
        for (asset, read) in read {
            if let Some(handled) = self.conditions.get_mut(&asset).and_then(|known| known.handled.as_mut()) {
                *handled = read.max(*handled);
            }
        }
        for (asset, read) in made {
            if let Some(known) = self.conditions.get_mut(&asset) {
                known.handled = known.handled.filter(|handled| read < *handled);
            }
        }
    }

    /// Where an evaluation requests something else than the conditions of that moment.
    pub(super) fn false_request(&self, event: &Event) -> Option<String> {
        if event.kind != "ConditionsEvaluated" {
            return None;
        }
        match self.wanted() {
            Ok(wanted) if wanted == requested(event) => None,
            Ok(wanted) => Some(format!("it requests {:?}, should be {wanted:?}", requested(event))),
            Err(problem) => Some(problem),
        }
    }

    /// Partitions that conditions would request, and nobody has.
    pub fn unanswered_conditions(&self) -> Option<String> {
        match self.wanted() {
            Ok(wanted) if wanted.is_empty() => None,
            Ok(wanted) => Some(format!("conditions of {wanted:?} hold, and nothing was requested")),
            Err(problem) => Some(problem),
        }
    }

    pub(super) fn compare_conditions(&self, found: &mut Differences, rows: &HotRows) {
        let known = rows.condition_state.iter().map(|row| {
            (row.asset_key.canonical().to_owned(), row.in_force_event_id, row.paused, row.state_version)
        });
        let expected = self.conditions.iter();
        let expected = expected.map(|(asset, it)| (asset.clone(), it.in_force, it.paused, it.version));
        found.same_keys("conditions", &known.collect(), &expected.collect());
        let known = rows.condition_requests.iter();
        let known = known.map(|row| (row.asset_key.canonical().to_owned(), row.handled_event_id));
        let expected = self.conditions.iter();
        let expected = expected.filter_map(|(asset, known)| Some((asset.clone(), known.handled?)));
        found.same_keys("requests of conditions", &known.collect(), &expected.collect());
    }
}

/// The assets that an evaluation requests.
fn requested(event: &Event) -> BTreeSet<String> {
    let requested = list(&event.payload, "requested").iter();
    requested.filter_map(|it| text(it, "asset").ok().map(str::to_owned)).collect()
}

/// Conditions by asset.
pub type Conditions = BTreeMap<String, Condition>;
