//! Builders shared by the tests of the engine: short names for keys, plans and times, and a `World` that drives one.

mod fixtures;
pub(crate) mod sim;
pub(crate) mod table;

pub(crate) use fixtures::*;

use std::sync::Arc;

use servo_core::{EventId, RunId, TaskKey, TenantId, Timestamp, WorkspaceId};
use servo_engine::definitions::AssetDef;
use servo_engine::{
    Attempt, Caller, CancelRun, Discard, Effect, Engine, ErrorCode, Event, EventData, Input, Outcome, Plan,
    Principal, Refusal, Reply, Report, Run, RunReply, RunState, Settings, State, Step, Task, TaskError,
    TaskOptions, TaskRequest, TaskState, TriggerRun,
};

/// 2025-01-15T00:00:00Z, when every test begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_736_899_200_000);
pub(crate) const SECRET: &[u8] = b"secret";

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

pub(crate) fn workspace() -> WorkspaceId {
    WorkspaceId::parse("prod").expect("a workspace")
}

pub(crate) fn empty_state(settings: &Settings) -> State {
    State::new(tenant(), workspace()).with_settings(settings)
}

/// `seconds` after the test began.
pub(crate) fn after(seconds: i64) -> Timestamp {
    Timestamp::from_millis(START.as_millis() + seconds * 1_000)
}

pub(crate) fn key(name: &str) -> TaskKey {
    TaskKey::parse(&format!("t/{name}:materialize")).expect("a task key")
}

pub(crate) fn task(name: &str, upstream: &[&str], options: TaskOptions) -> TaskRequest {
    TaskRequest { key: key(name), upstream: upstream.iter().map(|u| key(u)).collect(), options }
}

pub(crate) fn plan_of(tasks: Vec<TaskRequest>) -> Plan {
    Plan::build(&tenant(), &workspace(), tasks, 10_000).expect("a plan")
}

/// A plan from `("b", &["a"])` pairs: b waits for a.
pub(crate) fn plan(tasks: &[(&str, &[&str])]) -> Plan {
    plan_of(tasks.iter().map(|(name, upstream)| task(name, upstream, TaskOptions::default())).collect())
}

pub(crate) fn user_error() -> Report {
    Report::failed(TaskError::new(ErrorCode::UserCodeException, "boom"))
}

pub(crate) fn crash() -> Report {
    Report::failed(TaskError::new(ErrorCode::WorkerCrash, "gone"))
}

pub(crate) fn ended_as(outcome: Outcome) -> Report {
    Report::new(outcome)
}

/// An event outside any engine, with an id after everything a test emits.
pub(crate) fn event(data: EventData, at: Timestamp, number: u64) -> Event {
    Event {
        id: EventId::from_parts(
            u64::try_from(at.as_millis()).expect("after 1970") + 1,
            u128::from(number) << 40,
        ),
        at,
        source: "test".into(),
        principal: Principal::user("me"),
        tenant: tenant(),
        workspace: workspace(),
        idempotency_key: data.idempotency_key(),
        causation: None,
        data,
    }
}

/// One engine, its log, and a clock. Most tests have one run: `run` is the one triggered last.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) now: Timestamp,
    pub(crate) run: RunId,
    pub(crate) log: Vec<Vec<Event>>,
    /// All that steps have asked for, in order.
    pub(crate) effects: Vec<Effect>,
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            engine: Engine::new(empty_state(&settings), SECRET),
            now: START,
            run: RunId::from_u128(0),
            log: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// A world with default settings in which `plan` was just triggered.
    pub(crate) fn with(plan: Plan) -> Self {
        let mut world = Self::new(Settings::default());
        world.trigger(TriggerRun::new("first", plan, "me"));
        world
    }

    pub(crate) fn step(&mut self, inputs: &[Input]) -> Step {
        let step = self.engine.step(inputs, self.now);
        if !step.events.is_empty() {
            self.log.push(step.events.clone());
        }
        self.effects.extend(step.effects.iter().cloned());
        step
    }

    pub(crate) fn ask(&mut self, input: Input) -> Result<Reply, Refusal> {
        self.step(&[input]).replies.remove(0)
    }

    pub(crate) fn trigger(&mut self, command: TriggerRun) -> RunId {
        let reply = self.ask(Input::Trigger(command));
        let Ok(Reply::Run(RunReply { run_id, .. })) = reply else { panic!("not triggered: {reply:?}") };
        self.run = run_id;
        run_id
    }

    /// Files to remove that were asked for since the last call.
    pub(crate) fn discards(&mut self) -> Vec<Discard> {
        discards(std::mem::take(&mut self.effects))
    }

    /// Advances the clock without a step.
    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now = self.now.saturating_add(servo_core::Millis::from_secs(seconds));
    }

    /// Advances the clock, then steps the engine.
    pub(crate) fn pass(&mut self, seconds: u64) -> Step {
        self.wait(seconds);
        self.step(&[])
    }

    pub(crate) fn state(&self) -> &State {
        self.engine.state()
    }

    pub(crate) fn run(&self) -> &Run {
        self.state().run(self.run).expect("the run is in memory")
    }

    pub(crate) fn run_state(&self) -> RunState {
        self.run().state
    }

    pub(crate) fn task(&self, name: &str) -> &Task {
        self.state().task(self.run, &key(name)).expect("the task is in memory")
    }

    pub(crate) fn task_state(&self, name: &str) -> TaskState {
        self.task(name).state
    }

    /// The newest attempt of a task.
    pub(crate) fn attempt(&self, name: &str) -> Attempt {
        let task = self.task(name);
        Attempt {
            run_id: self.run,
            task_key: task.key.clone(),
            attempt: task.attempt,
            attempt_id: task.attempt_id.expect("the task was dispatched"),
        }
    }

    pub(crate) fn enqueue(&mut self, name: &str) -> Result<Reply, Refusal> {
        self.ask(Input::Enqueued(self.attempt(name)))
    }

    pub(crate) fn start(&mut self, name: &str) -> Result<Reply, Refusal> {
        self.ask(Input::Started(self.attempt(name), Arc::from("w1")))
    }

    pub(crate) fn beat(&mut self, name: &str) -> Result<Reply, Refusal> {
        self.ask(Input::Heartbeat(self.attempt(name), self.now, None))
    }

    pub(crate) fn finish(&mut self, name: &str, report: Report) -> Result<Reply, Refusal> {
        self.ask(Input::Finished(self.attempt(name), report))
    }

    /// Starts and finishes the newest attempt.
    pub(crate) fn play(&mut self, name: &str, report: Report) {
        self.start(name).expect("the attempt starts");
        self.finish(name, report).expect("the attempt finishes");
    }

    pub(crate) fn succeed(&mut self, name: &str) {
        self.play(name, Report::succeeded());
    }

    pub(crate) fn cancel(&mut self, force: bool) -> Result<Reply, Refusal> {
        self.ask(Input::Cancel(CancelRun {
            run_id: self.run,
            caller: Caller::user("me"),
            reason: "enough".to_owned(),
            force,
        }))
    }

    /// Every event so far, in order.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.log.iter().flatten().cloned().collect()
    }
}

/// Files to remove, of all that is asked for.
pub(crate) fn discards(effects: Vec<Effect>) -> Vec<Discard> {
    let discard = |effect| if let Effect::Discard(discard) = effect { Some(discard) } else { None };
    effects.into_iter().filter_map(discard).collect()
}

/// Folds events one by one into an empty state.
pub(crate) fn fold(settings: &Settings, events: &[Event]) -> State {
    let mut state = empty_state(settings);
    for event in events {
        state.apply(event);
    }
    state
}

/// The payload of a dispatch, if it is one.
pub(crate) fn dispatch(data: &EventData) -> Option<&servo_engine::event::DispatchRequested> {
    if let EventData::DispatchRequested(dispatch) = data { Some(dispatch) } else { None }
}

/// Names of the kinds of some events, for comparing what was emitted.
pub(crate) fn kinds(events: &[EventData]) -> Vec<&'static str> {
    events.iter().map(|data| data.kind().name()).collect()
}

/// An asset of namespace `t`, as a manifest declares it.
pub(crate) fn definition(name: &str, code_version: &str) -> Arc<AssetDef> {
    Arc::new(AssetDef {
        key: format!("t/{name}"),
        code_version: Some(code_version.to_owned()),
        group: Some("tests".to_owned()),
        ..AssetDef::default()
    })
}
