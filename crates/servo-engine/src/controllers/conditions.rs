//! Automation conditions: partitions whose condition became true are requested, all those of one evaluation in one run.
//!
//! Nothing is evaluated unless something changed. [`Watch`] knows which partitions may have another value: those that a
//! changed fact is about, those downstream of them as far as conditions look, and those that a tick, a new window of
//! time or the end of a limit concerns. They are evaluated in the order of dependencies, each once, so that what is
//! requested upstream counts as made downstream. A partition is requested for a cause once (ADR-145).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::partitions::{Block, PartitionContext, PartitionSet};
use servo_core::{AssetKey, Millis, PartitionKey, PartitionValue, PartitionsDef, Timestamp};

use crate::command::{RunPlan, TriggerRun};
use crate::conditions::{Conditions, Evaluator, Subject, TraceNode, add, affected, blank};
use crate::decide::launch;
use crate::definitions::Definitions;
use crate::derive::evaluation_id;
use crate::event::{
    ConditionRequested, ConditionsEvaluated, EventData, RequestedRun, RunSource, condition_run_key,
};
use crate::planner::{self, PartitionChoice, PlanContext};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::requests::{PlanBasis, RunRequest};
use crate::state::{ChangedFacts, State};

/// Partitions that are evaluated in one step; the rest comes with the next.
const MOST_EVALUATED: usize = 20_000;

/// Partitions of one asset whose values are counted in the trace of an evaluation.
const MOST_TRACED: u64 = 1_000;

/// Partitions of assets, by position.
type Sets = BTreeMap<u32, PartitionSet>;

/// Targets to evaluate again, and when the clock adds more. Follows from the state:
/// a new one begins with everything.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    started: bool,
    deployment: u64,
    /// Positions are those of the deployment.
    dirty: Sets,
    timers: BTreeSet<(Timestamp, u32, Wake)>,
    /// How many runs were queued when there was no room for another.
    full: Option<Full>,
}

/// An action due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    /// A tick, or a window of the day that opens or closes.
    Clock,
    /// Partitions of the asset begin to exist.
    Growth,
    /// A limit counts one request less.
    Release,
}

/// The facts by which there was no room for another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Full {
    queued_runs: usize,
    /// When the day ends, if no more runs may be asked for on it.
    day_ends: Option<Timestamp>,
}

impl Full {
    fn now(state: &State, now: Timestamp) -> Self {
        Self { queued_runs: state.queued_runs(), day_ends: state.full_until(now) }
    }
}

impl Watch {
    /// When there is something to do, if nothing happens before.
    pub(crate) fn next_deadline(&self, state: &State, now: Timestamp) -> Option<Timestamp> {
        if state.conditions.is_empty() {
            return None;
        }
        let waits = self.full == Some(Full::now(state, now));
        let at_once = !self.started || !self.dirty.is_empty() && !waits;
        let timer = self.timers.first().map(|(at, ..)| *at);
        let next_day = self.full.and_then(|full| full.day_ends).filter(|_| waits);
        at_once.then_some(now).into_iter().chain(timer).chain(next_day).min()
    }

    /// The events of an evaluation with the facts that have changed: what became true, then the run of it. Empty if
    /// nothing did.
    pub(crate) fn reconcile(
        &mut self,
        state: &State,
        secret: &[u8],
        facts: ChangedFacts,
        now: Timestamp,
    ) -> Vec<EventData> {
        let definitions = state.deployment().and_then(|_| state.checked_definitions());
        let Some(definitions) = definitions.filter(|_| !state.conditions.is_empty()) else {
            *self = Self::default();
            return Vec::new();
        };
        let conditions = definitions.conditions().clone();
        let pass = Pass { state, definitions: &definitions, conditions: &conditions, now };
        self.absorb(&pass, facts);
        self.wake(&pass);
        let waits = self.full == Some(Full::now(state, now));
        if self.dirty.is_empty() || waits {
            return Vec::new();
        }
        self.full = None;
        let found = self.evaluate(&pass);
        if found.evaluator.fired.is_empty() {
            return Vec::new();
        }
        match requested(&pass, secret, &found) {
            Ok(events) => events,
            Err(NoRoom) => {
                self.full = Some(Full::now(state, now));
                for (asset, set) in found.evaluator.requested() {
                    add(&mut self.dirty, asset, &set);
                }
                Vec::new()
            }
        }
    }

    /// Notes what facts that changed may have changed.
    fn absorb(&mut self, pass: &Pass<'_>, facts: ChangedFacts) {
        let deployment = pass.state.definitions.number();
        let is_new = deployment != self.deployment;
        if !self.started || is_new && !self.dirty.is_empty() {
            *self = Self { started: true, deployment, ..Self::default() };
            for (asset, compiled) in pass.conditions.iter() {
                add(&mut self.dirty, asset, &compiled.bound(pass.definitions.asset(asset), pass.at()));
            }
            self.set_timers(pass);
            return;
        }
        if is_new {
            self.deployment = deployment;
            self.set_timers(pass);
        }
        if facts.is_empty() {
            return;
        }
        let mut changed = Sets::new();
        for asset in facts.assets {
            if let Some(position) = pass.definitions.position(&asset) {
                add(&mut changed, position, &pass.all(position));
            }
        }
        for (asset, partition) in facts.partitions {
            if let Some((position, set)) = pass.set_of(&asset, partition.as_ref()) {
                add(&mut changed, position, &set);
            }
        }
        if !facts.dynamic.is_empty() {
            // Indexes of what is left from before may have moved.
            for position in self.dirty.keys().copied().collect::<Vec<_>>() {
                add(&mut changed, position, &pass.all(position));
            }
            pass.dynamic(&facts.dynamic, &mut changed);
        }
        affected(pass.definitions, pass.conditions, changed, pass.at(), &mut self.dirty);
    }

    fn set_timers(&mut self, pass: &Pass<'_>) {
        self.timers.clear();
        let evaluator = pass.evaluator();
        for (asset, compiled) in pass.conditions.iter() {
            self.set_clock(pass, asset);
            if compiled.limits.is_empty() {
                continue;
            }
            for partition in pass.state.conditions.requested(&pass.definitions.asset(asset).key) {
                if let Some(subject) = evaluator.subject_of(asset, partition.as_ref()) {
                    self.release(pass, &subject);
                }
            }
        }
        for asset in 0..pass.definitions.assets().len() as u32 {
            if pass.conditions.is_watched(asset, pass.definitions.graph().readers(asset)) {
                self.set_growth(pass, asset);
            }
        }
    }

    fn set_clock(&mut self, pass: &Pass<'_>, asset: u32) {
        let next = pass.conditions.get(asset).and_then(|compiled| compiled.next_tick(pass.now));
        self.timers.extend(next.map(|at| (at, asset, Wake::Clock)));
    }

    fn set_growth(&mut self, pass: &Pass<'_>, asset: u32) {
        let partitions = pass.definitions.asset(asset).partitions.as_ref();
        let next = partitions.and_then(|partitions| partitions.grows_at(pass.at()));
        self.timers.extend(next.map(|at| (at, asset, Wake::Growth)));
    }

    /// Notes what the clock has changed.
    fn wake(&mut self, pass: &Pass<'_>) {
        while let Some((at, asset, wake)) = self.timers.first().copied().filter(|(at, ..)| *at <= pass.now) {
            self.timers.pop_first();
            let known = pass.definitions.asset(asset);
            match wake {
                Wake::Clock => {
                    if let Some(compiled) = pass.conditions.get(asset) {
                        add(&mut self.dirty, asset, &compiled.bound(known, pass.at()));
                    }
                    self.set_clock(pass, asset);
                }
                Wake::Growth => {
                    let before = at.saturating_sub(Millis::new(1));
                    let before = PartitionContext::new(before, pass.state.dynamic_partitions());
                    let mut changed = Sets::new();
                    if let Some(partitions) = &known.partitions {
                        let new = pass.all(asset).difference(&partitions.all(before));
                        // What was among the newest may be no longer.
                        let newest = pass.conditions.latest_windows().saturating_add(1);
                        let newest = partitions.newest(newest, before);
                        add(&mut changed, asset, &new.union(&newest));
                    }
                    affected(pass.definitions, pass.conditions, changed, pass.at(), &mut self.dirty);
                    self.set_growth(pass, asset);
                }
                Wake::Release => {
                    for partition in pass.state.conditions.requested(&known.key) {
                        if let Some((position, set)) = pass.set_of(&known.key, partition.as_ref()) {
                            add(&mut self.dirty, position, &set);
                        }
                    }
                }
            }
        }
    }

    /// Evaluates what is dirty, upstream first. Limited; the rest stays dirty.
    fn evaluate<'p>(&mut self, pass: &Pass<'p>) -> Found<'p> {
        let mut found = Found { evaluator: pass.evaluator(), traces: BTreeMap::new() };
        let mut todo: BTreeSet<(u32, u32, Vec<u64>)> = BTreeSet::new();
        for (asset, set) in std::mem::take(&mut self.dirty) {
            let room = MOST_EVALUATED.saturating_sub(todo.len());
            let order = pass.conditions.order(asset);
            todo.extend(set.iter().take(room).map(|digits| (order, asset, digits)));
            if set.len() > room as u128 {
                let taken: PartitionSet = set.iter().take(room).map(|digits| Block::one(&digits)).collect();
                add(&mut self.dirty, asset, &set.difference(&taken));
            }
        }
        let most = pass.state.settings().max_tasks_per_run as usize;
        let mut fired = 0;
        while let Some((order, asset, digits)) = todo.pop_first() {
            if fired >= most {
                add(&mut self.dirty, asset, &PartitionSet::one(&digits));
                continue;
            }
            let Some(subject) = found.evaluator.subject(asset, digits) else { continue };
            self.release(pass, &subject);
            for subject in found.judge(pass, &subject) {
                fired += 1;
                let mut next = Sets::new();
                let changed = Sets::from([(subject.asset, PartitionSet::one(&subject.digits))]);
                affected(pass.definitions, pass.conditions, changed, pass.at(), &mut next);
                for (asset, set) in next {
                    let behind = set.iter().map(|digits| (pass.conditions.order(asset), asset, digits));
                    let here = (order, subject.asset, subject.digits.clone());
                    todo.extend(behind.filter(|it| *it > here));
                }
            }
        }
        found
    }

    /// Wakes up when a limit of a partition counts one request less.
    fn release(&mut self, pass: &Pass<'_>, subject: &Subject) {
        let Some(compiled) = pass.conditions.get(subject.asset).filter(|it| !it.limits.is_empty()) else {
            return;
        };
        let asset = &pass.definitions.asset(subject.asset).key;
        let Some(request) = pass.state.condition_request(asset, subject.key.as_ref()) else { return };
        let ends =
            request.recent.iter().flat_map(|at| compiled.limits.iter().map(|per| at.saturating_add(*per)));
        let next = ends.filter(|end| *end > pass.now).min();
        self.timers.extend(next.map(|at| (at, subject.asset, Wake::Release)));
    }
}

/// One evaluation.
struct Pass<'p> {
    state: &'p State,
    definitions: &'p Definitions,
    conditions: &'p Conditions,
    now: Timestamp,
}

impl<'p> Pass<'p> {
    fn at(&self) -> PartitionContext<'p> {
        PartitionContext::new(self.now, self.state.dynamic_partitions())
    }

    fn evaluator(&self) -> Evaluator<'p> {
        Evaluator::new(self.state, self.definitions, self.now)
    }

    fn all(&self, asset: u32) -> PartitionSet {
        match &self.definitions.asset(asset).partitions {
            Some(partitions) => partitions.all(self.at()),
            None => PartitionSet::unpartitioned(),
        }
    }

    /// A partition as a set; none if it is not deployed, or does not exist any more.
    fn set_of(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<(u32, PartitionSet)> {
        let position = self.definitions.position(asset)?;
        let set = match (&self.definitions.asset(position).partitions, partition) {
            (Some(partitions), Some(key)) => partitions.block_of(key, self.at()).ok()?.into(),
            (None, None) => PartitionSet::unpartitioned(),
            (Some(_), None) | (None, Some(_)) => return None,
        };
        Some((position, set))
    }

    /// Partitions that came with keys of dynamic partitions. Where one went, everything of the asset has changed.
    fn dynamic(&self, keys: &BTreeSet<(String, String)>, changed: &mut Sets) {
        let names: BTreeSet<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
        for (position, asset) in (0u32..).zip(self.definitions.assets()) {
            let Some(partitions) = &asset.partitions else { continue };
            match partitions.def() {
                PartitionsDef::Dynamic { name } if names.contains(name.as_str()) => {
                    let Some(dimension) = partitions.dimensions().next() else { continue };
                    for (_, key) in keys.iter().filter(|(of, _)| of == name) {
                        let value =
                            BTreeMap::from([(dimension.to_owned(), PartitionValue::Str(key.clone()))]);
                        let key = PartitionKey::new(&value).ok();
                        match key.and_then(|key| partitions.block_of(&key, self.at()).ok()) {
                            Some(block) => add(changed, position, &block.into()),
                            None => add(changed, position, &self.all(position)),
                        }
                    }
                }
                PartitionsDef::Multi { dims } => {
                    let is_one = |def: &PartitionsDef| matches!(def, PartitionsDef::Dynamic { name } if names.contains(name.as_str()));
                    if dims.values().any(is_one) {
                        add(changed, position, &self.all(position));
                    }
                }
                PartitionsDef::Hourly { .. }
                | PartitionsDef::Daily { .. }
                | PartitionsDef::Weekly { .. }
                | PartitionsDef::Monthly { .. }
                | PartitionsDef::Cron { .. }
                | PartitionsDef::Static { .. }
                | PartitionsDef::Dynamic { .. } => {}
            }
        }
    }
}

/// The result of an evaluation.
struct Found<'p> {
    evaluator: Evaluator<'p>,
    traces: BTreeMap<u32, TraceNode>,
}

impl Found<'_> {
    /// Evaluates a partition; if it is to be requested, gives it and what its function makes with it.
    fn judge(&mut self, pass: &Pass<'_>, subject: &Subject) -> Vec<Subject> {
        let Some(compiled) = pass.conditions.get(subject.asset) else { return Vec::new() };
        if self.evaluator.is_fired(subject) {
            return Vec::new();
        }
        let truth = self.evaluator.evaluate(&compiled.root, subject);
        if !self.evaluator.fires(truth, subject) {
            return Vec::new();
        }
        let trace = self.traces.entry(subject.asset).or_insert_with(|| blank(&compiled.condition));
        if trace.of < MOST_TRACED {
            self.evaluator.note(&compiled.root, subject, trace);
        }
        let multi = pass.definitions.asset(subject.asset).def.multi.as_ref();
        let together: Vec<u32> = match multi {
            Some(multi) if !multi.can_subset => pass.definitions.made_with(subject.asset).collect(),
            Some(_) | None => vec![subject.asset],
        };
        let subjects = together.into_iter().map(|asset| Subject { asset, ..subject.clone() });
        let fired: Vec<Subject> = subjects.collect();
        fired.iter().for_each(|subject| self.evaluator.fire(subject));
        fired
    }
}

/// There is no room for another run, in the queue or on this day.
struct NoRoom;

/// The events of what an evaluation has found. If the run cannot be requested, the evaluation says why, and what it
/// found is handled all the same: asking again would change nothing.
fn requested(pass: &Pass<'_>, secret: &[u8], found: &Found<'_>) -> Result<Vec<EventData>, NoRoom> {
    let state = pass.state;
    let id = evaluation_id(&format!("conditions:{}", state.head.last_event), pass.now);
    let mut positions: Vec<u32> = found.evaluator.fired.keys().copied().collect();
    positions.sort_by_key(|asset| pass.conditions.order(*asset));
    let sets = found.evaluator.requested();
    let mut keys = BTreeSet::new();
    let mut list = Vec::new();
    for asset in &positions {
        let known = pass.definitions.asset(*asset);
        let of = known.partitions.as_ref().map(|partitions| partitions.keys_in(&sets[asset], pass.at()));
        let partitions: Vec<PartitionKey> = of.into_iter().flatten().collect();
        keys.extend(partitions.iter().map(ToString::to_string));
        let trace = found.traces.get(asset).cloned().map(Arc::new);
        list.push(ConditionRequested { asset: known.key.clone(), partitions, trace });
    }
    let mut evaluated = ConditionsEvaluated {
        evaluation_id: id,
        deployment: state.definitions.number(),
        requested: list,
        run: None,
        problem: None,
    };
    let names: Vec<String> = evaluated.requested.iter().map(|it| it.asset.to_string()).collect();
    let request = RunRequest {
        selection: names.join(" | "),
        partitions: PartitionChoice { keys: keys.into_iter().collect(), ..PartitionChoice::default() },
        source: RunSource::Condition {
            asset: evaluated.requested[0].asset.clone(),
            evaluation: id.to_string().into(),
        },
        caller: Principal::controller("conditions").into(),
        ..RunRequest::default()
    };
    match run(pass, secret, sets, request, condition_run_key(id)) {
        Ok((run, events)) => {
            evaluated.run = Some(run);
            Ok(std::iter::once(EventData::ConditionsEvaluated(evaluated)).chain(events).collect())
        }
        Err(None) => Err(NoRoom),
        Err(Some(problem)) => {
            evaluated.problem = Some(problem);
            Ok(vec![EventData::ConditionsEvaluated(evaluated)])
        }
    }
}

/// Plans a run and requests it; none if there is no room for it, or why it cannot be.
fn run(
    pass: &Pass<'_>,
    secret: &[u8],
    sets: Sets,
    request: RunRequest,
    run_key: Arc<str>,
) -> Result<(RequestedRun, Vec<EventData>), Option<String>> {
    let state = pass.state;
    let context = PlanContext {
        tenant: state.tenant(),
        workspace: state.workspace(),
        at: pass.at(),
        materializations: state,
        max_tasks: state.settings().max_tasks_per_run,
    };
    let planned =
        planner::plan_targets(pass.definitions, sets, &request.config, &request.selection, &context)
            .map_err(|error| Some(error.to_string()))?;
    let plan = RunPlan { plan: planned.plan, basis: PlanBasis::default() };
    match launch(state, secret, TriggerRun::planned(run_key, request, Some(plan)), pass.now) {
        Ok((run, events)) if events.is_empty() => {
            Err(Some(format!("run key {} was used before", run.run_key)))
        }
        Ok(launched) => Ok(launched),
        Err(Refusal::Quota { quota: "max_queued_runs", .. } | Refusal::DailyRuns { .. }) => Err(None),
        Err(refusal) => Err(Some(refusal.to_string())),
    }
}
