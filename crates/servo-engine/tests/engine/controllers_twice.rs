//! Every controller acts once: running it again adds nothing, and an engine that was restored from rows decides the
//! same (INV-3).

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{MaterializationId, TaskKey, Timestamp};
use servo_engine::controllers::notifications::Notifying;
use servo_engine::definitions::{AssetDef, NotificationDef, ScheduleDef, SensorDef};
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{self, BackfillRequest};
use servo_engine::{
    Caller, Deploy, Effect, Engine, EventKind, HotRows, Input, RegisterWorker, Report, RetryPolicy, Settings,
    State, TaskOptions, TaskRequest, TriggerRun,
};

use crate::support::{SECRET, World, plan, plan_of, task, tenant, user_error, workspace};

/// A controller, in a world where it has something to do.
struct Case {
    name: &'static str,
    /// The world just before.
    world: World,
    /// The inputs that it acts upon, besides the time.
    inputs: Vec<Input>,
    /// Seconds until it acts.
    after: u64,
    /// An event that it adds, among others.
    adds: EventKind,
    /// Whether it knows only what is in the log: whoever was heard of is not.
    by_log: bool,
}

impl Case {
    fn new(name: &'static str, world: World, after: u64, adds: EventKind) -> Self {
        Self { name, world, inputs: Vec::new(), after, adds, by_log: true }
    }
}

fn deployed(settings: Settings, more: Value) -> World {
    let mut world = World::new(settings);
    world.engine.set_notifying(Notifying::Everything);
    let place = json!({ "file": "jobs.py", "line": 1 });
    let all = |kind: &str| {
        let list = more[kind].as_array().cloned().unwrap_or_default().into_iter();
        list.map(|mut one| {
            one["location"] = place.clone();
            one
        })
        .collect::<Vec<Value>>()
    };
    let read = "a definition";
    let deploy = Deploy {
        time_zones: "2026e".into(),
        digest: "d1".into(),
        project: "shop".to_owned(),
        assets: all("assets")
            .into_iter()
            .map(|mut one| {
                one["function"] = "jobs:make".into();
                Arc::new(serde_json::from_value::<AssetDef>(one).expect(read))
            })
            .collect(),
        schedules: all("schedules")
            .into_iter()
            .map(|one| Arc::new(serde_json::from_value::<ScheduleDef>(one).expect(read)))
            .collect(),
        sensors: all("sensors")
            .into_iter()
            .map(|one| Arc::new(serde_json::from_value::<SensorDef>(one).expect(read)))
            .collect(),
        notifications: all("notifications")
            .into_iter()
            .map(|one| Arc::new(serde_json::from_value::<NotificationDef>(one).expect(read)))
            .collect(),
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
    world
}

/// Makes data of a task, so that its partition is materialized.
fn make(world: &mut World, task: &str) {
    let key = TaskKey::parse(&format!("{task}:materialize")).expect("a task key");
    let plan = plan_of(vec![TaskRequest { key, upstream: vec![], options: TaskOptions::default() }]);
    let step = world.step(&[Input::Trigger(TriggerRun::new(format!("run {}", world.log.len()), plan, "me"))]);
    let attempt = step.effects.iter().find_map(|effect| {
        if let Effect::Enqueue(dispatch) = effect { Some(dispatch.attempt.clone()) } else { None }
    });
    let made = MaterializationId::from_u128(world.log.len() as u128);
    let report = Report { materialization_id: Some(made), ..Report::succeeded() };
    world.ask(Input::Finished(attempt.expect("dispatched"), report)).expect("finished");
}

fn cases() -> Vec<Case> {
    let asset = |more: Value| {
        let mut asset = json!({ "key": "t/a" });
        asset.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        asset
    };
    let plain = || json!({ "key": "t/a" });
    let ticks = json!({ "name": "tens", "cron": "*/10 * * * *", "selection": "t.a" });
    let polls = json!({ "name": "inbox", "function": "jobs:inbox", "selection": "t.a" });
    let hook = json!([{ "type": "webhook", "url": "https://example.org/hook" }]);
    let tells = json!({ "name": "oncall", "when": ["run_failed"], "to": hook });
    let conditioned = asset(json!({ "automation": { "op": "cron_tick", "cron": "0 6 * * *" } }));
    let kept = json!({ "partitions": { "kind": "static", "keys": ["one"] }, "expires_after_ms": 3_600_000 });
    let fresh = asset(json!({ "freshness": { "max_lag_ms": 3_600_000 } }));

    let failing = |options: TaskOptions| {
        let mut world =
            deployed(Settings::default(), json!({ "assets": [plain()], "notifications": [tells] }));
        world.trigger(TriggerRun::new("r", plan_of(vec![task("a", &[], options)]), "me"));
        world
    };
    let mut told = failing(TaskOptions::default());
    told.engine.set_notifying(Notifying::Nothing);
    told.play("a", user_error());
    told.engine.set_notifying(Notifying::Everything);
    let mut retried = failing(TaskOptions { retry: Some(RetryPolicy::default()), ..TaskOptions::default() });
    retried.play("a", user_error());
    let mut silent = failing(TaskOptions::default());
    silent.start("a").expect("starts");

    let mut expiring = deployed(Settings::default(), json!({ "assets": [asset(kept)] }));
    make(&mut expiring, "t/a[partition=s:b25l]");

    let days = json!({ "partitions": { "kind": "static", "keys": ["one", "two"] } });
    let mut filling = deployed(Settings::default(), json!({ "assets": [asset(days)] }));
    filling.engine.set_backfills(false);
    let request = BackfillRequest {
        selection: "t.a".to_owned(),
        partitions: PartitionChoice { keys: vec!["one".into(), "two".into()], ..PartitionChoice::default() },
        caller: Caller::user("me"),
        ..BackfillRequest::default()
    };
    let command = requests::prepare_backfill(filling.state(), request, filling.now).expect("it can be made");
    filling.ask(Input::CreateBackfill(command)).expect("created");
    filling.engine.set_backfills(true);

    let mut full = World::new(Settings { max_concurrent_runs: 1, ..Settings::default() });
    full.trigger(TriggerRun::new("second", plan(&[("b", &[])]), "me"));
    let running = full.run;
    full.trigger(TriggerRun::new("third", plan(&[("a", &[])]), "me"));
    full.run = running;
    let ends = Input::Finished(full.attempt("b"), Report::succeeded());

    let mut served = deployed(
        Settings { push_limit: 0, tasks_per_slot: 1, ..Settings::default() },
        json!({ "assets": [plain()] }),
    );
    let worker = RegisterWorker {
        worker_id: "w-1".into(),
        name: "w-1".to_owned(),
        queues: vec!["default".into()],
        slots: 2,
        digest: "d1".into(),
        storage: "file:///data".to_owned(),
        host: "vm".to_owned(),
        version: "1".to_owned(),
    };
    served.ask(Input::RegisterWorker(worker)).expect("registered");

    let assets = || json!([plain()]);
    vec![
        Case::new(
            "schedules",
            deployed(Settings::default(), json!({ "assets": assets(), "schedules": [ticks] })),
            600,
            EventKind::ScheduleTicked,
        ),
        Case::new(
            "sensors",
            deployed(Settings::default(), json!({ "assets": assets(), "sensors": [polls] })),
            3_600,
            EventKind::SensorEvaluated,
        ),
        Case::new(
            "conditions",
            deployed(Settings::default(), json!({ "assets": [conditioned] })),
            6 * 3_600,
            EventKind::RunRequested,
        ),
        Case::new(
            "freshness",
            deployed(Settings::default(), json!({ "assets": [fresh] })),
            7_200,
            EventKind::FreshnessChanged,
        ),
        Case::new("notifications", told, 0, EventKind::NotificationRequested),
        Case::new("expiry", expiring, 3_700, EventKind::PartitionsExpired),
        Case::new("backfills", filling, 0, EventKind::BackfillChunkPlanned),
        Case::new("timers", silent, 3_600, EventKind::TimerFired),
        Case::new("dispatch of what is tried again", retried, 3_600, EventKind::DispatchRequested),
        Case { inputs: vec![ends], ..Case::new("the queue of runs", full, 1, EventKind::RunTriggered) },
        Case { by_log: false, ..Case::new("workers", served, 86_400, EventKind::WorkerLost) },
    ]
}

fn restored(rows: HotRows) -> Engine {
    let state = State::from_rows(tenant(), workspace(), rows).expect("its own rows fit");
    let mut engine = Engine::new(state, SECRET);
    engine.set_notifying(Notifying::Everything);
    engine
}

/// Asserts that an engine has nothing to add, also if it looks at every row.
fn assert_at_rest(name: &str, what: &str, engine: &mut Engine, now: Timestamp) {
    for inputs in [&[][..], &[Input::Sweep]] {
        let kinds: Vec<_> =
            engine.step(inputs, now).events.iter().map(|event| event.data.kind().name()).collect();
        assert_eq!(kinds, [""; 0], "{name}: {what}");
    }
}

#[test]
fn every_controller_run_twice_or_on_another_engine_changes_nothing() {
    for Case { name, mut world, inputs, after, adds, by_log } in cases() {
        let mut other = restored(world.state().rows());
        world.wait(after);
        let now = world.now;
        let events = world.step(&inputs).events;
        let kinds: Vec<_> = events.iter().map(|event| event.data.kind()).collect();
        assert!(kinds.contains(&adds), "{name}: {kinds:?}");
        if by_log {
            assert_eq!(other.step(&inputs, now).events, events, "{name}: an engine restored before");
            assert_eq!(other.state().rows(), world.state().rows(), "{name}");
            assert_at_rest(name, "the engine restored before, again", &mut other, now);
        }
        let rows = world.state().rows();
        assert_at_rest(name, "the same engine again", &mut world.engine, now);
        assert_at_rest(name, "an engine restored afterwards", &mut restored(rows.clone()), now);
        assert_eq!(world.state().rows(), rows, "{name}: nothing has changed");
    }
}
