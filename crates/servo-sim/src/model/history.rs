//! Rules that every log must satisfy, independent of the fold.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::EventId;

use super::log::text;
use super::{Batch, Event, Model, Rules, Run, TaskIs, Verdict};

/// The expectations of a log.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Expected<'a> {
    pub tenant: &'a str,
    pub workspace: &'a str,
    pub rules: &'a Rules,
    /// Whether a lease keeps those with older epochs from writing.
    pub leased: bool,
}

/// The violations of a log; empty if there are none.
pub fn check(batches: &[Batch], expected: Expected<'_>) -> Vec<String> {
    follow(batches, expected).map_or_else(|problem| vec![problem], |(_, problems)| problems)
}

/// The model of a log, and the log's violations.
pub fn follow(batches: &[Batch], expected: Expected<'_>) -> Result<(Model, Vec<String>), String> {
    follow_with(batches, expected, |_| Vec::new())
}

/// The same, where something else looks at the model after each batch.
pub fn follow_with(
    batches: &[Batch],
    expected: Expected<'_>,
    mut look: impl FnMut(&Model) -> Vec<String>,
) -> Result<(Model, Vec<String>), String> {
    let mut checks = Checks {
        expected,
        model: Model::new(expected.rules.clone()),
        problems: Vec::new(),
        effects: BTreeMap::new(),
        run_of_key: BTreeMap::new(),
        asked: BTreeSet::new(),
        made: BTreeSet::new(),
        first_of_batch: EventId::NIL,
    };
    let mut before: Option<&Batch> = None;
    for batch in batches {
        checks.place(before, batch);
        checks.first_of_batch = batch.events.first().map_or(EventId::NIL, |event| event.id);
        for event in &batch.events {
            checks.event(event)?;
        }
        checks.model.last_seq = batch.seq;
        checks.slots(batch);
        for event in &batch.events {
            if let Some(problem) = checks.model.broken_request(event) {
                checks.report(event, problem);
            }
        }
        if let Some(problem) = checks.model.unanswered_conditions() {
            checks.problems.push(format!("after batch {} {problem}", batch.seq));
        }
        let seq = batch.seq;
        checks
            .problems
            .extend(look(&checks.model).into_iter().map(|problem| format!("after batch {seq} {problem}")));
        before = Some(batch);
    }
    Ok((checks.model, checks.problems))
}

struct Checks<'a> {
    expected: Expected<'a>,
    model: Model,
    problems: Vec<String>,
    /// The run that each idempotency key had its effect in, by the event that asked for it.
    effects: BTreeMap<&'a str, EventId>,
    run_of_key: BTreeMap<String, String>,
    /// Who asked for runs, and with which request.
    asked: BTreeSet<(Option<String>, String)>,
    /// Materialized partitions: request of the run, asset, partition.
    made: BTreeSet<(EventId, String, Option<String>)>,
    first_of_batch: EventId,
}

impl<'a> Checks<'a> {
    fn report(&mut self, event: &Event, problem: impl std::fmt::Display) {
        self.problems.push(format!("{} {}: {problem}", event.kind, event.id));
    }

    /// Numbers are dense, epochs never go down, and a batch holds something; but for the one that begins an epoch.
    fn place(&mut self, before: Option<&Batch>, batch: &Batch) {
        let wanted = before.map_or(1, |before| before.seq + 1);
        if batch.seq != wanted {
            self.problems.push(format!("batch {} stands where {wanted} should", batch.seq));
        }
        if let Some(before) = before.filter(|before| self.expected.leased && before.epoch > batch.epoch) {
            let (old, new) = (before.epoch, batch.epoch);
            self.problems.push(format!("batch {} is of epoch {new}, after epoch {old}", batch.seq));
        }
        let begins = self.expected.leased && before.is_none_or(|before| before.epoch < batch.epoch);
        if batch.events.is_empty() && !begins {
            self.problems.push(format!("batch {} is empty", batch.seq));
        }
        if !batch.events.is_empty() && begins && before.is_some() {
            self.problems.push(format!("batch {} is not empty, and begins epoch {}", batch.seq, batch.epoch));
        }
    }

    /// Nothing is dispatched beyond the limit. More may be open only because the limit was lowered.
    fn slots(&mut self, batch: &Batch) {
        let (open, limit) = (self.model.open_attempts(), self.model.slots());
        let dispatches = batch.events.iter().any(|event| event.kind == "DispatchRequested");
        self.places(batch);
        if open > limit && dispatches {
            self.problems.push(format!("after batch {} {open} attempts are open, {limit} may be", batch.seq));
        }
    }

    /// No run starts beyond the limit, and none waits while there is a place.
    fn places(&mut self, batch: &Batch) {
        let (at_work, limit) = (self.model.runs_at_work(), self.model.places());
        let queued = self.model.queued_without_reason();
        let starts = batch.events.iter().any(|event| event.kind == "RunTriggered");
        if at_work > limit && starts {
            self.problems
                .push(format!("after batch {} {at_work} runs are at work, {limit} may be", batch.seq));
        }
        if queued > 0 && at_work < limit && !self.model.is_paused() {
            let free = limit - at_work;
            self.problems
                .push(format!("after batch {} {queued} runs wait with {free} places free", batch.seq));
        }
        if let Some(waits) = self.model.held_back() {
            self.problems.push(format!("after batch {} {waits}", batch.seq));
        }
    }

    fn event(&mut self, event: &'a Event) -> Result<(), String> {
        let last = self.model.last_event;
        if event.id <= last {
            self.report(event, format_args!("its id is not greater than {last}"));
        }
        if (&*event.tenant, &*event.workspace) != (self.expected.tenant, self.expected.workspace) {
            self.report(event, format_args!("it is of {}/{}", event.tenant, event.workspace));
        }
        self.before(event);
        let promoted = self.model.data.promotions.len();
        let verdict = self.model.follow(event)?;
        self.after(event, verdict);
        self.promotions(event, promoted);
        Ok(())
    }

    /// Checks the preconditions of an event.
    fn before(&mut self, event: &Event) {
        if event.kind == "DispatchRequested" && self.model.room() == Some(0) {
            self.report(event, "it is dispatched, and no worker has room for it");
        }
        if let Some(beyond) = self.model.beyond_limit(event) {
            self.report(event, beyond);
        }
        let model = &self.model;
        let falsehood = model.false_evaluation(event).or_else(|| model.false_tick(event));
        let falsehood = falsehood.or_else(|| model.false_request(event));
        let falsehood = falsehood.or_else(|| model.false_freshness(event));
        let falsehood = falsehood.or_else(|| model.false_expiry(event));
        if let Some(falsehood) = falsehood.or_else(|| model.false_notification(event)) {
            self.report(event, falsehood);
        }
        if !matches!(event.kind.as_str(), "DispatchRequested" | "TaskStarted") {
            return;
        }
        let (Ok(id), Ok(key)) = (text(&event.payload, "run_id"), text(&event.payload, "task_key")) else {
            return;
        };
        let Some(run) = self.model.run(id) else { return };
        let Some(task) = run.tasks.iter().find(|task| task.key.as_str() == key) else { return };
        let is_dispatch = event.kind == "DispatchRequested";
        let falsehood = is_dispatch.then(|| self.model.false_provenance(event, task)).flatten();
        let on_its_way = is_dispatch.then(|| self.model.begins_while_moving(&task.assets)).flatten();
        let missing =
            task.upstream.iter().map(|up| &run.tasks[*up]).find(|task| task.is != TaskIs::Succeeded);
        if let Some(missing) = missing {
            let (key, is) = (missing.key.clone(), missing.is.name());
            self.report(event, format_args!("it begins before {key}, which is {is}"));
        }
        for falsehood in falsehood.into_iter().chain(on_its_way) {
            self.report(event, falsehood);
        }
    }

    fn after(&mut self, event: &'a Event, verdict: Verdict) {
        match verdict {
            Verdict::Accepted => self.effect(event),
            Verdict::Late => {}
            // An engine that knows the whole log does not write these.
            Verdict::Ignored("not due") => self.report(event, "it fires before it is due"),
            Verdict::Ignored(why) => self.ignored(event, why),
        }
    }

    /// Each idempotency key has one effect, and each run key one run.
    fn effect(&mut self, event: &'a Event) {
        let run = self.run_of(event).map(|run| (run.requested, run.stopped.map(|(by, _)| by)));
        let (requested, stopped) = run.unwrap_or((EventId::NIL, None));
        // A refusal changes nothing but the audit, where the same one may stand twice.
        // What is as fresh as before a wipe is said again in the same words; the state it follows from tells it apart.
        let is_record =
            matches!(event.kind.as_str(), "RequestRefused" | "FreshnessChanged" | "FreshnessObserved");
        if self.effects.insert(&event.key, requested) == Some(requested) && !is_record {
            self.report(event, format_args!("{} has a second effect", event.key));
        }
        if event.kind == "TaskStarted" && stopped.is_some() {
            self.report(event, "it begins in a run that was stopped");
        }
        if event.kind == "RunRequested"
            && let Ok(id) = text(&event.payload, "request_id")
            && !self.asked.insert((event.principal.clone(), id.to_owned()))
        {
            self.report(event, format_args!("request {id} has a second run"));
        }
        if event.kind == "RunRequested"
            && let (Ok(key), Ok(id)) = (text(&event.payload, "run_key"), text(&event.payload, "run_id"))
            && self.run_of_key.insert(key.to_owned(), id.to_owned()).is_some_and(|known| known != id)
        {
            self.report(event, format_args!("run key {key} has a second run"));
        }
    }

    /// Decisions of the engine count, except about what the same batch has just stopped.
    fn ignored(&mut self, event: &Event, why: &'static str) {
        match event.kind.as_str() {
            "PlanCreated" | "RunTriggered" => {
                self.report(event, format_args!("a second run was begun: {why}"))
            }
            "ScheduleTicked" => self.report(event, format_args!("a tick is made again: {why}")),
            "SensorMessageReceived" => self.report(event, format_args!("a message counts again: {why}")),
            "SensorEvaluationRequested"
            | "SensorEvaluated"
            | "ConditionsEvaluated"
            | "FreshnessChanged"
            | "FreshnessObserved"
            | "AssetRenamed"
            | "NotificationRequested"
            | "NotificationAttempted" => self.report(event, why),
            "BackfillChunkPlanned" => self.report(event, format_args!("a chunk is planned again: {why}")),
            "RunRequested" => self.report(event, format_args!("a run id is used twice: {why}")),
            "RequestAnswered" => self.report(event, format_args!("a request was carried out twice: {why}")),
            "RunKeyConflicted" if why == "no such conflict" => self.report(event, why),
            "DispatchRequested" => {
                let stopped = self.run_of(event).and_then(|run| run.stopped);
                if stopped.is_none_or(|(by, _)| by < self.first_of_batch) {
                    self.report(event, format_args!("an attempt too many: {why}"));
                }
            }
            _ => {}
        }
    }

    /// A run makes each partition once.
    fn promotions(&mut self, event: &Event, before: usize) {
        let new = self.model.data.promotions[before..].to_vec();
        for promotion in new.into_iter().filter(|promotion| !promotion.approved) {
            let requested = self.run_of(event).map_or(EventId::NIL, |run| run.requested);
            let (asset, partition) = promotion.place;
            if !self.made.insert((requested, asset.clone(), partition.clone())) {
                self.report(event, format_args!("{asset} {partition:?} is made twice by one run"));
            }
        }
    }

    fn run_of(&self, event: &Event) -> Option<&Run> {
        self.model.run(event.payload.get("run_id")?.as_str()?)
    }
}
