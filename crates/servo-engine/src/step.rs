//! One step of an engine: inputs and a time in, one batch and a list of effects out, all data (ADR-040).

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{BackfillId, EventId, RunId, Timestamp};

use crate::audit::RefusalRecords;
use crate::command::{BackfillReply, Change, Finish, Input, PartitionsReply, Reply, RunReply};
use crate::controllers::conditions::Watch;
use crate::controllers::notifications::{Notifying, Unserved};
use crate::controllers::workers::Liveness;
use crate::controllers::{
    self, Dispatching, Freshness, anti_entropy, backfills, notifications, schedules, sensors, workers,
};
use crate::decide::{Answer, Decision, answers, decide};
use crate::derive::{idempotency_hash, next_event_id};
use crate::effect::{self, AssetMove, Effect, Release};
use crate::event::{Causation, Event, EventData};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::AssetRenameRow;
use crate::state::{Due, State};

/// Most rounds of controllers within a step; the rest comes with the next one.
const MAX_ROUNDS: usize = 8;

/// Most ticks within a step, so that no batch grows without bound; the rest comes with the next one.
const MAX_TICKS: usize = 1_000;

/// Most chunks of backfills that are planned at once; the rest comes with the next step.
const MAX_CHUNKS: usize = 64;

/// The result of a step.
#[derive(Debug, Default)]
pub struct Step {
    /// To append as one batch; may be empty.
    pub events: Vec<Event>,
    /// To do once the batch is durable.
    pub effects: Vec<Effect>,
    /// One per input, in order, to be given once the batch is durable.
    pub replies: Vec<Result<Reply, Refusal>>,
    /// Runs that ended, in order.
    pub ended: Vec<RunId>,
}

/// The decisions of one workspace: its state and the secret its run ids are derived with.
#[derive(Debug, Clone)]
pub struct Engine {
    state: State,
    secret: Arc<[u8]>,
    source: Arc<str>,
    freshness: Freshness,
    refusals: RefusalRecords,
    automation: bool,
    dispatching: Dispatching,
    liveness: Liveness,
    notifying: Notifying,
    unserved: Unserved,
    /// Whether chunks of backfills are planned.
    backfills: bool,
    /// Backfills that could only wait, and what that followed from.
    waiting: BTreeMap<BackfillId, Waiting>,
    /// The targets to evaluate conditions for.
    watch: Watch,
}

/// The facts that decide whether a backfill can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    version: EventId,
    queued_runs: usize,
    deployment: u64,
    has_room: bool,
    /// When the day ends, if no more runs may be asked for on it.
    day_ends: Option<Timestamp>,
}

impl Engine {
    /// An engine over a state.
    pub fn new(mut state: State, secret: impl Into<Arc<[u8]>>) -> Self {
        // Runs that ended while the log was replayed are not news to anybody.
        state.changes.take_just_ended();
        Self {
            state,
            secret: secret.into(),
            source: "engine".into(),
            freshness: Freshness::Current,
            refusals: RefusalRecords::default(),
            automation: true,
            dispatching: Dispatching::All,
            liveness: Liveness::default(),
            notifying: Notifying::default(),
            unserved: Unserved::default(),
            backfills: true,
            waiting: BTreeMap::new(),
            watch: Watch::default(),
        }
    }

    /// How far what follows may trust the state.
    pub fn set_freshness(&mut self, freshness: Freshness) {
        self.freshness = freshness;
    }

    /// Whether schedules tick. They do unless this is said: a command that has a workspace for a moment starts no runs
    /// that it was not asked for.
    pub fn set_automation(&mut self, automation: bool) {
        self.automation = automation;
    }

    /// Whether chunks of backfills are planned. They are unless this is said, as with automation.
    pub fn set_backfills(&mut self, backfills: bool) {
        self.backfills = backfills;
    }

    /// Which notifications are sent. None unless this is said.
    pub fn set_notifying(&mut self, notifying: Notifying) {
        self.notifying = notifying;
    }

    /// Which tasks are handed out. What is held until the first request is handed out with it, and after it.
    pub fn set_dispatching(&mut self, dispatching: Dispatching) {
        self.dispatching = dispatching;
    }

    /// Which tasks are handed out.
    pub fn dispatching(&self) -> Dispatching {
        self.dispatching
    }

    /// When workers were last heard of: whoever drives the engine passes that on.
    pub fn liveness_mut(&mut self) -> &mut Liveness {
        &mut self.liveness
    }

    /// When to wake up next if there is no input before. Timers that may not fire yet do not count.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let first = self.state.next_deadline();
        let timers = match self.freshness {
            Freshness::Current => first.into_iter().chain(self.liveness.next_deadline(&self.state)).min(),
            Freshness::HeartbeatsUnreliable | Freshness::Lagging => self.state.next_deadline_after(now),
        };
        let automation = self.state.index.due.first().map(|(at, _)| *at).filter(|_| self.may_tick());
        let freshness = self.state.index.freshness.first().map(|(at, _)| *at).filter(|_| self.may_tick());
        let expiring = self.state.next_expiry().filter(|_| self.freshness != Freshness::Lagging);
        let backfills = self.open_backfills(now).next().map(|_| now);
        let next_day = self.waiting.values().filter_map(|waiting| waiting.day_ends).min();
        let conditions = self.watch.next_deadline(&self.state, now).filter(|_| self.may_tick());
        let notifications = self.next_notification();
        timers
            .into_iter()
            .chain(automation)
            .chain(freshness)
            .chain(expiring)
            .chain(backfills)
            .chain(next_day.filter(|at| *at > now))
            .chain(notifications)
            .chain(conditions)
            .min()
    }

    /// When a notification is due, or a queue has been without a worker for long enough.
    fn next_notification(&self) -> Option<Timestamp> {
        if self.notifying != Notifying::Everything || self.freshness == Freshness::Lagging {
            return None;
        }
        let due = self.state.index.notifications.first().map(|(at, _)| *at);
        due.into_iter().chain(self.unserved.next_deadline(&self.state)).min()
    }

    /// Effects that may not have been carried out before the state was loaded: those that it remembers, those that
    /// follow from the part of the log that was folded, and removals of what abandoned attempts may have left since. To
    /// be carried out once, before anything that follows.
    pub fn recovered_effects(&mut self) -> Vec<Effect> {
        let mut effects = effect::unfinished(&self.state);
        // A command that has the workspace for a moment leaves evaluations to those who stay.
        effects.retain(|effect| self.automation || !matches!(effect, Effect::Evaluate(_)));
        effects
            .retain(|effect| self.notifying == Notifying::Everything || !matches!(effect, Effect::Notify(_)));
        effects.extend(self.state.changes.take_effects());
        effects.extend(effect::abandoned(&self.state));
        effects
    }

    /// The state, including what is not yet durable.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// For the compactor, see [`State::take_delta`].
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The events that the controllers want without any input: for a state that was read from projections and may lag.
    pub fn reconcile(&mut self, now: Timestamp) -> Step {
        let mut step = Step::default();
        for data in anti_entropy::reconcile(&self.state, now, self.freshness) {
            self.react(data, now, &mut step);
        }
        self.run_controllers(now, &mut step);
        step
    }

    /// Decides `inputs`, runs the controllers, and folds the resulting events.
    ///
    /// The state moves on at once; if the batch cannot be appended, throw the engine away and load it again (ADR-040).
    pub fn step(&mut self, inputs: &[Input], now: Timestamp) -> Step {
        let mut step = Step { replies: Vec::with_capacity(inputs.len()), ..Step::default() };
        for input in inputs {
            if let Some(known) = answers::known(&self.state, input) {
                self.asked_for(&known);
                step.replies.push(known);
                continue;
            }
            let Decision { mut events, mut principal, answer } =
                decide(&self.state, &self.secret, input, now);
            if let (Answer::Now(Err(refusal)), true) = (&answer, events.is_empty())
                && let Some((record, caller)) = self.refusals.record(input, refusal, now)
                && !self.state.idempotency.contains(idempotency_hash(&record.idempotency_key()))
            {
                events.push(record);
                principal = caller.principal;
            }
            let first = step.events.len();
            for data in events {
                // The first event is caused by the request, the others by it.
                let before = step.events.get(first).map(|event| Causation::Event(event.id));
                let cause = before.or_else(|| self.cause(input, &data));
                self.emit(data, principal.clone(), cause, now, &mut step);
            }
            let event_id = step.events.get(first).map(|event| event.id);
            let reply = match (answer, event_id) {
                (Answer::Now(answer), _) => answer,
                (Answer::NewRun(run_id), accepted) => Ok(Reply::Run(RunReply { run_id, accepted })),
                (Answer::NewBackfill(backfill_id), accepted) => {
                    Ok(Reply::Backfill(BackfillReply { backfill_id, accepted }))
                }
                (Answer::Change, event_id) => Ok(Reply::Change(Change::made_by(event_id))),
                (Answer::Partitions(added, removed), event_id) => {
                    let change = Change::made_by(event_id);
                    Ok(Reply::Partitions(PartitionsReply { change, added, removed }))
                }
                (Answer::Finish, Some(event_id)) => Ok(Reply::Finish(Finish::Accepted { event_id })),
                (Answer::Finish, None) => Ok(Reply::Finish(Finish::Duplicate)),
            };
            self.asked_for(&reply);
            self.record_answer(input, &reply, event_id, now, &mut step);
            step.replies.push(reply);
            if matches!(input, Input::Sweep) && self.dispatching != Dispatching::Held {
                for data in anti_entropy::reconcile(&self.state, now, self.freshness) {
                    self.react(data, now, &mut step);
                }
                step.effects.extend(effect::abandoned(&self.state));
            }
        }
        self.run_controllers(now, &mut step);
        step
    }

    /// The same, for events that go to the log as part of the batch of the step before.
    pub fn step_on(&mut self, inputs: &[Input], now: Timestamp) -> Step {
        let seq = self.state.head.seq;
        let step = self.step(inputs, now);
        self.state.head.seq = seq;
        step
    }

    /// Begins to hand out tasks with the first run that is asked for.
    fn asked_for(&mut self, reply: &Result<Reply, Refusal>) {
        if let (Dispatching::Held, Ok(Reply::Run(asked))) = (self.dispatching, reply) {
            self.dispatching = Dispatching::First(asked.run_id);
        }
    }

    /// Records the answer to a request that is carried out once, in the batch of what it changed.
    fn record_answer(
        &mut self,
        input: &Input,
        reply: &Result<Reply, Refusal>,
        event: Option<EventId>,
        now: Timestamp,
        step: &mut Step,
    ) {
        let Some(answered) = reply.as_ref().ok().and_then(|reply| answers::record(input, reply)) else {
            return;
        };
        let Some(caller) = input.caller() else { return };
        let request = Causation::Request(answered.request_id.clone());
        let cause = event.map_or(request, Causation::Event);
        self.emit(EventData::RequestAnswered(answered), caller.principal.clone(), Some(cause), now, step);
    }

    /// Whether schedules may act on the state.
    fn may_tick(&self) -> bool {
        self.automation && self.freshness != Freshness::Lagging
    }

    /// Makes the ticks that are due, one by one: each is decided on a state that has the one before.
    fn run_automation(&mut self, now: Timestamp, step: &mut Step) {
        if !self.may_tick() {
            return;
        }
        for _ in 0..MAX_TICKS {
            let Some((_, due)) = self.state.index.due.first().filter(|(at, _)| *at <= now) else { return };
            let wanted = match due {
                Due::Schedule(id) => schedules::reconcile(&self.state, &self.secret, *id, now),
                Due::Sensor(id) => sensors::reconcile(&self.state, &self.secret, *id, now),
            };
            if wanted.is_empty() {
                return;
            }
            self.emit_together(wanted, now, step);
        }
    }

    /// Looks at assets whose freshness is due, one by one.
    fn run_freshness(&mut self, now: Timestamp, step: &mut Step) {
        if !self.may_tick() {
            return;
        }
        for _ in 0..MAX_TICKS {
            let first = self.state.index.freshness.first().filter(|(at, _)| *at <= now);
            let wanted =
                first.and_then(|(_, asset)| controllers::freshness::reconcile(&self.state, asset, now));
            let Some(wanted) = wanted else { return };
            self.react(wanted, now, step);
        }
    }

    /// Lets partitions expire whose time has come. Whoever has the workspace does, also if only for a moment: what is
    /// asked for next should not be planned with them.
    fn run_expiry(&mut self, now: Timestamp, step: &mut Step) {
        if self.freshness == Freshness::Lagging {
            return;
        }
        for _ in 0..MAX_TICKS {
            let Some(wanted) = controllers::expiry::reconcile(&self.state, now) else { return };
            self.react(wanted, now, step);
        }
    }

    /// Requests what conditions became true for; false if there was nothing to do.
    fn run_conditions(&mut self, now: Timestamp, step: &mut Step) -> bool {
        let facts = self.state.changes.take_facts();
        if !self.may_tick() {
            // Whoever may act on it looks at everything first.
            self.watch = Watch::default();
            return false;
        }
        let wanted = self.watch.reconcile(&self.state, &self.secret, facts, now);
        let has_some = !wanted.is_empty();
        if has_some {
            self.emit_together(wanted, now, step);
        }
        has_some
    }

    /// Backfills that may go on: those that could only wait, and nothing has changed since, are not among them.
    fn open_backfills(&self, now: Timestamp) -> impl Iterator<Item = BackfillId> {
        let may_plan = self.backfills && self.freshness != Freshness::Lagging;
        let open = self.state.index.backfills.iter().copied().filter(move |_| may_plan);
        open.filter(move |id| self.waiting_now(*id, now) != self.waiting.get(id).copied())
    }

    fn waiting_now(&self, id: BackfillId, now: Timestamp) -> Option<Waiting> {
        self.state.backfill(id).map(|backfill| Waiting {
            version: backfill.version,
            queued_runs: self.state.queued_runs(),
            deployment: self.state.definitions.number(),
            has_room: self.state.has_room_for_chunks(),
            day_ends: self.state.full_until(now),
        })
    }

    /// Plans chunks of backfills in turn, as many as there is room for; false if there was nothing to do.
    fn run_backfills(&mut self, now: Timestamp, step: &mut Step) -> bool {
        let first = step.events.len();
        let mut planned = 0;
        loop {
            let mut open: Vec<BackfillId> = self.open_backfills(now).collect();
            // Where places are few, those that have the fewest go first.
            open.sort_by_key(|id| self.state.backfill(*id).map_or(0, |backfill| backfill.active.len()));
            if open.is_empty() || planned >= MAX_CHUNKS {
                return step.events.len() > first;
            }
            for id in open {
                let wanted = backfills::reconcile(&self.state, &self.secret, id, now);
                if wanted.is_empty() {
                    self.waiting.extend(self.waiting_now(id, now).map(|waiting| (id, waiting)));
                } else {
                    self.emit_together(wanted, now, step);
                    planned += 1;
                }
            }
            self.waiting.retain(|id, _| self.state.index.backfills.contains(id));
        }
    }

    /// Notices workers that are gone, unless nobody could have been heard.
    fn run_liveness(&mut self, now: Timestamp, step: &mut Step) {
        self.liveness.begin(now);
        if self.freshness != Freshness::Current {
            return;
        }
        for data in workers::reconcile(&self.state, &self.liveness, now) {
            self.react(data, now, step);
        }
        self.liveness.forget_gone(&self.state);
    }

    /// Asks for notifications that are due, and notices queues that nobody serves.
    fn run_notifications(&mut self, now: Timestamp, step: &mut Step) {
        if self.notifying == Notifying::Nothing || self.freshness == Freshness::Lagging {
            return;
        }
        let mut wanted = Vec::new();
        if self.notifying == Notifying::Everything {
            wanted = notifications::queues(&self.state, &mut self.unserved, now);
        }
        for data in wanted {
            self.react(data, now, step);
        }
        for data in notifications::reconcile(&self.state, self.notifying, now) {
            self.react(data, now, step);
        }
    }

    /// Emits events of which the first is the cause of the others.
    fn emit_together(&mut self, events: Vec<EventData>, now: Timestamp, step: &mut Step) {
        let first = step.events.len();
        let principal = events.first().map(EventData::usual_principal).unwrap_or_default();
        for data in events {
            let cause = step.events.get(first).map(|event| Causation::Event(event.id));
            self.emit(data, principal.clone(), cause, now, step);
        }
    }

    /// Runs the controllers until they add nothing, and closes the batch.
    fn run_controllers(&mut self, now: Timestamp, step: &mut Step) {
        self.run_expiry(now, step);
        self.run_automation(now, step);
        self.run_freshness(now, step);
        self.run_liveness(now, step);
        for _ in 0..MAX_ROUNDS {
            let planned = self.run_backfills(now, step) | self.run_conditions(now, step);
            let wanted = controllers::reconcile_with(&self.state, now, self.freshness, self.dispatching);
            if wanted.is_empty() && !planned {
                break;
            }
            for data in wanted {
                self.react(data, now, step);
            }
        }
        self.run_notifications(now, step);
        if !step.events.is_empty() {
            self.state.head.seq += 1;
        }
        step.ended = self.state.changes.take_just_ended();
        step.effects.extend(self.state.changes.take_effects());
    }

    /// Emits what a controller wants.
    fn react(&mut self, data: EventData, now: Timestamp, step: &mut Step) {
        let cause = self.last_change(&data).map(Causation::Event);
        let principal = data.usual_principal();
        self.emit(data, principal, cause, now, step);
    }

    /// The request that an input came with, or else the last change of what it is about.
    fn cause(&self, input: &Input, data: &EventData) -> Option<Causation> {
        let request = input.caller().and_then(|caller| caller.request_id.clone());
        request.map(Causation::Request).or_else(|| self.last_change(data).map(Causation::Event))
    }

    /// The newest event that changed what this one is about.
    fn last_change(&self, data: &EventData) -> Option<EventId> {
        let run = self.state.run(data.run_id()?)?;
        let task = data.task_key().and_then(|key| run.position(key));
        Some(task.map_or(run.version, |position| run.tasks[position as usize].version))
    }

    fn emit(
        &mut self,
        data: EventData,
        principal: Principal,
        causation: Option<Causation>,
        now: Timestamp,
        step: &mut Step,
    ) {
        let idempotency_key = data.idempotency_key();
        let event = Event {
            id: next_event_id(self.state.head.last_event, now, &idempotency_key),
            at: now,
            source: self.source.clone(),
            principal,
            tenant: self.state.tenant.clone(),
            workspace: self.state.workspace.clone(),
            idempotency_key,
            causation,
            data,
        };
        self.state.apply(&event);
        step.effects.extend(self.intended_by(&event.data));
        step.events.push(event);
    }

    /// The effect that an event announces and another one will acknowledge.
    fn intended_by(&self, intent: &EventData) -> Option<Effect> {
        if let EventData::DispatchRequested(request) = intent {
            let run = self.state.runs.get(&request.run_id)?;
            let task = &run.tasks[run.position(&request.task_key)? as usize];
            effect::dispatch(&self.state, run, task).map(Effect::Enqueue)
        } else if let EventData::MaterializationApproved(approved) = intent {
            let row = self.state.quarantine.get(&approved.asset_key, approved.materialization_id)?;
            Some(Effect::Release(Release::of(row)))
        } else if let EventData::AssetRenamed(renamed) = intent {
            let asked = |row: &&AssetRenameRow| row.asset_key == renamed.asset_key;
            self.state.renames.moving().find(asked).map(|row| Effect::Move(AssetMove::of(row)))
        } else if let EventData::ScheduleEvaluationRequested(request) = intent {
            let evaluation =
                effect::of_schedule(&self.state, self.state.schedules.get(request.schedule_id)?)?;
            Some(Effect::Evaluate(Box::new(evaluation)))
        } else if let EventData::SensorEvaluationRequested(request) = intent {
            let evaluation = effect::of_sensor(self.state.sensors.get(request.sensor_id)?)?;
            Some(Effect::Evaluate(Box::new(evaluation)))
        } else if let EventData::NotificationRequested(request) = intent {
            let row = self.state.notifications.row(&request.notification_id)?;
            Some(Effect::Notify(Box::new(effect::delivery(&self.state, row)?)))
        } else {
            None
        }
    }
}
