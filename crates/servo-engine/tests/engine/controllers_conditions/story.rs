//! Projects with conditions, and the story of one: every batch is compared with the naive evaluator.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::partitions::{MappingDef, Span};
use servo_core::{AssetKey, MaterializationId, Millis, PartitionKey, PartitionsDef};
use servo_engine::definitions::{AssetDef, Condition, Definitions, DepDef, MANIFEST_VERSION, Manifest};
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::RunRequest;
use servo_engine::{
    Attempt, Caller, Deploy, Engine, Event, EventData, Input, Report, RunSource, Settings, State, requests,
};

use crate::conditions_naive::{Naive, OpenRequests, Piece};
use crate::support;
use crate::support::{SECRET, World, empty_state, tenant, user_error, workspace};

pub(super) fn missing() -> Condition {
    Condition::Missing
}

pub(super) fn not(of: Condition) -> Condition {
    Condition::Not { of: of.into() }
}

pub(super) fn and(of: Vec<Condition>) -> Condition {
    Condition::And { of }
}

pub(super) fn or(of: Vec<Condition>) -> Condition {
    Condition::Or { of }
}

pub(super) fn any_upstream(of: Condition) -> Condition {
    Condition::AnyUpstream { of: of.into(), only: Vec::new(), ignore: Vec::new() }
}

pub(super) fn all_upstream(of: Condition) -> Condition {
    Condition::AllUpstream { of: of.into(), only: Vec::new(), ignore: Vec::new() }
}

/// As the SDK writes it.
pub(super) fn eager() -> Condition {
    let of = and(vec![
        or(vec![Condition::NewPartition, any_upstream(Condition::Updated)]),
        not(any_upstream(missing())),
        not(any_upstream(Condition::InProgress)),
        not(Condition::InProgress),
    ]);
    Condition::Named { name: "eager()".to_owned(), of: of.into() }
}

pub(super) fn tick(cron: &str) -> Condition {
    Condition::CronTick { cron: cron.to_owned(), timezone: None }
}

pub(super) fn on_cron(cron: &str) -> Condition {
    let updated = Condition::Since { of: Condition::Updated.into(), since: tick(cron).into() };
    let of = and(vec![
        Condition::Latest { windows: 1 },
        tick(cron),
        all_upstream(updated),
        not(Condition::InProgress),
    ]);
    Condition::Named { name: format!("on_cron({cron:?})"), of: of.into() }
}

pub(super) fn on_missing() -> Condition {
    let of = and(vec![missing(), not(any_upstream(missing())), not(Condition::InProgress)]);
    Condition::Named { name: "on_missing()".to_owned(), of: of.into() }
}

pub(super) fn at_most(times: u32, per: Millis) -> Condition {
    Condition::AtMost { times, per_ms: per }
}

#[derive(Clone, Default)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) partitions: Option<PartitionsDef>,
    pub(super) deps: Vec<DepDef>,
    pub(super) automation: Option<Condition>,
}

impl Declared {
    pub(super) fn def(&self) -> AssetDef {
        AssetDef {
            key: format!("t/{}", self.name),
            code_version: Some(self.version.to_string()),
            partitions: self.partitions.clone(),
            deps: self.deps.clone(),
            automation: self.automation.clone().map(Arc::new),
            ..AssetDef::default()
        }
    }
}

pub(super) fn asset(name: &str, deps: &[&str], automation: Option<Condition>) -> Declared {
    let deps = deps.iter().map(|dep| reads(dep, None)).collect();
    Declared { name: name.to_owned(), version: 1, partitions: None, deps, automation }
}

pub(super) fn reads(name: &str, mapping: Option<MappingDef>) -> DepDef {
    DepDef { asset: Some(format!("t/{name}")), mapping, ..DepDef::default() }
}

/// From 2025-01-12 on: three of them exist when a test begins.
pub(super) fn days() -> Option<PartitionsDef> {
    Some(PartitionsDef::Daily { span: Span::new("2025-01-12") })
}

pub(super) fn key(name: &str) -> AssetKey {
    AssetKey::parse(&format!("t/{name}")).unwrap()
}

/// An engine whose every batch is compared with the naive evaluator.
pub(super) struct Story {
    pub(super) world: World,
    pub(super) shadow: State,
    pub(super) log: Vec<Event>,
    pub(super) open: OpenRequests,
    pub(super) deployments: u32,
    pub(super) assets: Vec<Declared>,
}

impl Story {
    pub(super) fn new(assets: Vec<Declared>) -> Self {
        let settings = Settings::default();
        let mut story = Self {
            world: World::new(settings.clone()),
            shadow: empty_state(&settings),
            log: Vec::new(),
            open: OpenRequests::default(),
            deployments: 0,
            assets: Vec::new(),
        };
        story.deploy(assets);
        story
    }

    pub(super) fn deploy(&mut self, assets: Vec<Declared>) -> BTreeSet<String> {
        let defs: Vec<AssetDef> = assets.iter().map(Declared::def).collect();
        let manifest = Manifest {
            manifest_version: MANIFEST_VERSION,
            project: "shop".to_owned(),
            assets: defs.clone(),
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            resources: Vec::new(),
        };
        Definitions::check(manifest).unwrap_or_else(|problems| panic!("{problems}"));
        self.deployments += 1;
        self.assets = assets;
        self.ask(Input::Deploy(Deploy {
            time_zones: "2026e".into(),
            digest: format!("d{}", self.deployments).into(),
            project: "shop".to_owned(),
            assets: defs.into_iter().map(Arc::new).collect(),
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            caller: Caller::user("me"),
        }))
    }

    /// Steps, compares, and gives back what conditions requested, as `name` or `name key`.
    pub(super) fn step(&mut self, inputs: &[Input]) -> BTreeSet<String> {
        self.world.now = self.world.now.saturating_add(Millis::new(10));
        let step = self.world.step(inputs);
        for reply in step.replies {
            reply.unwrap_or_else(|refusal| panic!("{refusal}"));
        }
        let mut requested = BTreeSet::new();
        for event in step.events {
            if let EventData::ConditionsEvaluated(evaluated) = &event.data {
                let expected =
                    Naive::new(&self.shadow, &self.log, &self.open, self.world.now).unwrap().fires();
                let found: BTreeSet<Piece> = evaluated
                    .requested
                    .iter()
                    .flat_map(|it| {
                        let keys: Vec<Option<PartitionKey>> = match it.partitions.is_empty() {
                            true => vec![None],
                            false => it.partitions.iter().cloned().map(Some).collect(),
                        };
                        keys.into_iter().map(|key| (it.asset.clone(), key))
                    })
                    .collect();
                assert_eq!(found, expected, "what is requested, and what should be");
                assert_eq!(evaluated.problem, None);
                requested.extend(found.iter().map(text));
            }
            self.shadow.apply(&event);
            self.open.follow(&event, &self.shadow);
            self.log.push(event);
        }
        if let Some(naive) = Naive::new(&self.shadow, &self.log, &self.open, self.world.now) {
            assert_eq!(naive.fires(), BTreeSet::new(), "should have been requested");
        }
        requested
    }

    pub(super) fn ask(&mut self, input: Input) -> BTreeSet<String> {
        self.step(&[input])
    }

    pub(super) fn wait(&mut self, seconds: u64) -> BTreeSet<String> {
        self.world.wait(seconds);
        self.step(&[])
    }

    /// Asks for a run of a partition, as a person would.
    pub(super) fn request(&mut self, name: &str, partition: Option<&str>) -> BTreeSet<String> {
        let request = RunRequest {
            selection: format!("t.{name}"),
            partitions: PartitionChoice {
                keys: partition.map(str::to_owned).into_iter().collect(),
                ..PartitionChoice::default()
            },
            source: RunSource::Manual,
            caller: Caller::user("me"),
            ..RunRequest::default()
        };
        let run_key = format!("manual-{}", self.log.len());
        match requests::prepare(self.world.state(), SECRET, run_key.into(), request, self.world.now) {
            Ok(command) => self.ask(Input::Trigger(command)),
            // Partitions that do not exist, or whose upstream does not: nothing happens.
            Err(_) => BTreeSet::new(),
        }
    }

    pub(super) fn open(&self) -> Vec<Attempt> {
        let runs = self.world.state().runs().filter(|run| !run.state.is_terminal());
        let tasks = runs.flat_map(|run| {
            run.tasks.iter().filter(|task| task.has_open_attempt()).map(|task| Attempt {
                run_id: run.id,
                task_key: task.key.clone(),
                attempt: task.attempt,
                attempt_id: task.attempt_id.unwrap(),
            })
        });
        tasks.collect()
    }

    /// Ends one attempt.
    pub(super) fn end(&mut self, attempt: Attempt, succeeds: bool) -> BTreeSet<String> {
        let mut requested = self.ask(Input::Started(attempt.clone(), Arc::from("w")));
        let report = if succeeds { made(&attempt) } else { user_error() };
        requested.extend(self.ask(Input::Finished(attempt, report)));
        requested
    }

    /// Plays everything that is open and what follows from it, and gives back what conditions requested.
    pub(super) fn play(&mut self, fails: &[&str]) -> Vec<String> {
        let mut requested = Vec::new();
        for _ in 0..1_000 {
            let Some(attempt) = self.open().into_iter().next() else { return requested };
            let name = attempt.task_key.asset().to_string();
            let succeeds = !fails.iter().any(|failing| name == format!("t.{failing}"));
            requested.extend(self.end(attempt, succeeds));
        }
        panic!("it never ends: {requested:?}");
    }

    /// Makes a partition by hand, and everything that follows.
    pub(super) fn make(&mut self, name: &str, partition: Option<&str>) -> Vec<String> {
        let mut requested: Vec<String> = self.request(name, partition).into_iter().collect();
        requested.extend(self.play(&[]));
        requested
    }

    pub(super) fn runs(&self) -> usize {
        let is_ours = |event: &&Event| matches!(event.data, EventData::ConditionsEvaluated(_));
        self.log.iter().filter(is_ours).count()
    }

    /// The state from the log, from its own rows, and of an engine that begins with them, are the state.
    pub(super) fn replays(&self) {
        assert_eq!(self.shadow.rows().condition_state, self.world.state().rows().condition_state);
        assert_eq!(self.shadow.rows().condition_requests, self.world.state().rows().condition_requests);
        assert_eq!(self.shadow.rows().condition_evaluations, self.world.state().rows().condition_evaluations);
        let restored = State::from_rows(tenant(), workspace(), self.world.state().rows()).unwrap();
        assert_eq!(restored.rows(), self.world.state().rows());
        let mut again = Engine::new(restored, SECRET);
        let step = again.step(&[], self.world.now);
        assert!(
            !step.events.iter().any(|event| matches!(event.data, EventData::ConditionsEvaluated(_))),
            "a restart requests nothing"
        );
    }
}

/// A success that has made something.
pub(super) fn made(attempt: &Attempt) -> Report {
    let id = MaterializationId::from_u128(attempt.attempt_id.to_u128());
    Report { materialization_id: Some(id), ..Report::succeeded() }
}

pub(super) fn text((asset, key): &Piece) -> String {
    let name = asset.to_string().replacen("t.", "", 1);
    key.as_ref().map_or(name.clone(), |key| format!("{name} {key}"))
}

pub(super) fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// An engine without the comparison, for parts that the naive evaluator does not have.
pub(super) struct Unwatched(Story);

impl Unwatched {
    pub(super) fn new(assets: Vec<Declared>) -> Self {
        let mut story = Story::new(Vec::new());
        story.world.now = support::START;
        let defs: Vec<Arc<AssetDef>> = assets.iter().map(|asset| Arc::new(asset.def())).collect();
        let deploy = Deploy {
            time_zones: "2026e".into(),
            digest: "other".into(),
            project: "shop".to_owned(),
            assets: defs,
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            caller: Caller::user("me"),
        };
        story.world.ask(Input::Deploy(deploy)).unwrap();
        Self(story)
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.0.world.pass(seconds);
    }

    pub(super) fn make(&mut self, name: &str) {
        let world = &mut self.0.world;
        let request = RunRequest {
            selection: format!("t.{name}"),
            caller: Caller::user("me"),
            ..RunRequest::default()
        };
        let run_key = format!("manual-{}", world.log.len());
        let command = requests::prepare(world.state(), SECRET, run_key.into(), request, world.now).unwrap();
        world.ask(Input::Trigger(command)).unwrap();
        self.play();
    }

    pub(super) fn play(&mut self) {
        while let Some(attempt) = self.0.open().into_iter().next() {
            let world = &mut self.0.world;
            world.ask(Input::Started(attempt.clone(), Arc::from("w"))).unwrap();
            let report = made(&attempt);
            world.ask(Input::Finished(attempt, report)).unwrap();
        }
    }

    pub(super) fn requested(&self) -> usize {
        let events = self.0.world.events();
        events.iter().filter(|event| matches!(event.data, EventData::ConditionsEvaluated(_))).count()
    }
}
