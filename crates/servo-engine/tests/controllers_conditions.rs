//! Automation conditions: what makes an asset be requested, once for each cause, and what does not. Every story is
//! compared with a naive evaluator that looks at everything, and folded again from its log.

#![allow(clippy::panic, clippy::unwrap_used)]

mod conditions_naive;
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use conditions_naive::{Naive, OpenRequests, Piece};
use proptest::prelude::*;
use servo_core::partitions::{MappingDef, Span};
use servo_core::{AssetKey, MaterializationId, Millis, PartitionKey, PartitionsDef};
use servo_engine::definitions::{AssetDef, Condition, Definitions, DepDef, MANIFEST_VERSION, Manifest};
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{self, RunRequest};
use servo_engine::{
    Attempt, Caller, ChangePartitions, Deploy, Engine, Event, EventData, Input, PauseCondition, Refusal,
    Report, RunSource, Settings, State,
};
use support::{SECRET, World, empty_state, tenant, user_error, workspace};

fn missing() -> Condition {
    Condition::Missing
}

fn not(of: Condition) -> Condition {
    Condition::Not { of: of.into() }
}

fn and(of: Vec<Condition>) -> Condition {
    Condition::And { of }
}

fn or(of: Vec<Condition>) -> Condition {
    Condition::Or { of }
}

fn any_upstream(of: Condition) -> Condition {
    Condition::AnyUpstream { of: of.into(), only: Vec::new(), ignore: Vec::new() }
}

fn all_upstream(of: Condition) -> Condition {
    Condition::AllUpstream { of: of.into(), only: Vec::new(), ignore: Vec::new() }
}

/// As the SDK writes it.
fn eager() -> Condition {
    let of = and(vec![
        or(vec![Condition::NewPartition, any_upstream(Condition::Updated)]),
        not(any_upstream(missing())),
        not(any_upstream(Condition::InProgress)),
        not(Condition::InProgress),
    ]);
    Condition::Named { name: "eager()".to_owned(), of: of.into() }
}

fn tick(cron: &str) -> Condition {
    Condition::CronTick { cron: cron.to_owned(), timezone: None }
}

fn on_cron(cron: &str) -> Condition {
    let updated = Condition::Since { of: Condition::Updated.into(), since: tick(cron).into() };
    let of = and(vec![
        Condition::Latest { windows: 1 },
        tick(cron),
        all_upstream(updated),
        not(Condition::InProgress),
    ]);
    Condition::Named { name: format!("on_cron({cron:?})"), of: of.into() }
}

fn on_missing() -> Condition {
    let of = and(vec![missing(), not(any_upstream(missing())), not(Condition::InProgress)]);
    Condition::Named { name: "on_missing()".to_owned(), of: of.into() }
}

fn at_most(times: u32, per: Millis) -> Condition {
    Condition::AtMost { times, per_ms: per }
}

#[derive(Clone, Default)]
struct Declared {
    name: String,
    version: u32,
    partitions: Option<PartitionsDef>,
    deps: Vec<DepDef>,
    automation: Option<Condition>,
}

impl Declared {
    fn def(&self) -> AssetDef {
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

fn asset(name: &str, deps: &[&str], automation: Option<Condition>) -> Declared {
    let deps = deps.iter().map(|dep| reads(dep, None)).collect();
    Declared { name: name.to_owned(), version: 1, partitions: None, deps, automation }
}

fn reads(name: &str, mapping: Option<MappingDef>) -> DepDef {
    DepDef { asset: Some(format!("t/{name}")), mapping, ..DepDef::default() }
}

/// From 2025-01-12 on: three of them exist when a test begins.
fn days() -> Option<PartitionsDef> {
    Some(PartitionsDef::Daily { span: Span::new("2025-01-12") })
}

fn key(name: &str) -> AssetKey {
    AssetKey::parse(&format!("t/{name}")).unwrap()
}

/// An engine whose every batch is compared with the naive evaluator.
struct Story {
    world: World,
    shadow: State,
    log: Vec<Event>,
    open: OpenRequests,
    deployments: u32,
    assets: Vec<Declared>,
}

impl Story {
    fn new(assets: Vec<Declared>) -> Self {
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

    fn deploy(&mut self, assets: Vec<Declared>) -> BTreeSet<String> {
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
    fn step(&mut self, inputs: &[Input]) -> BTreeSet<String> {
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

    fn ask(&mut self, input: Input) -> BTreeSet<String> {
        self.step(&[input])
    }

    fn wait(&mut self, seconds: u64) -> BTreeSet<String> {
        self.world.wait(seconds);
        self.step(&[])
    }

    /// Asks for a run of a partition, as a person would.
    fn request(&mut self, name: &str, partition: Option<&str>) -> BTreeSet<String> {
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

    fn open(&self) -> Vec<Attempt> {
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
    fn end(&mut self, attempt: Attempt, succeeds: bool) -> BTreeSet<String> {
        let mut requested = self.ask(Input::Started(attempt.clone(), Arc::from("w")));
        let report = if succeeds { made(&attempt) } else { user_error() };
        requested.extend(self.ask(Input::Finished(attempt, report)));
        requested
    }

    /// Plays everything that is open and what follows from it, and gives back what conditions requested.
    fn play(&mut self, fails: &[&str]) -> Vec<String> {
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
    fn make(&mut self, name: &str, partition: Option<&str>) -> Vec<String> {
        let mut requested: Vec<String> = self.request(name, partition).into_iter().collect();
        requested.extend(self.play(&[]));
        requested
    }

    fn runs(&self) -> usize {
        let is_ours = |event: &&Event| matches!(event.data, EventData::ConditionsEvaluated(_));
        self.log.iter().filter(is_ours).count()
    }

    /// The state from the log, from its own rows, and of an engine that begins with them, are the state.
    fn replays(&self) {
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
fn made(attempt: &Attempt) -> Report {
    let id = MaterializationId::from_u128(attempt.attempt_id.to_u128());
    Report { materialization_id: Some(id), ..Report::succeeded() }
}

fn text((asset, key): &Piece) -> String {
    let name = asset.to_string().replacen("t.", "", 1);
    key.as_ref().map_or(name.clone(), |key| format!("{name} {key}"))
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_eager_chain_is_one_run_for_one_change() {
    let chain =
        vec![asset("a", &[], None), asset("b", &["a"], Some(eager())), asset("c", &["b"], Some(eager()))];
    let mut story = Story::new(chain);
    assert_eq!(story.play(&[]), Vec::<String>::new(), "nothing happens when it is deployed");
    assert_eq!(story.make("a", None), list(&["b", "c"]));
    assert_eq!(story.runs(), 1, "both in one run");
    let source = story.world.state().runs().map(|run| run.source.kind().to_owned()).collect::<Vec<_>>();
    assert!(source.contains(&"condition".to_owned()), "{source:?}");
    assert_eq!(story.wait(86_400 * 30), BTreeSet::new(), "and never again");
    assert_eq!(story.make("a", None), list(&["b", "c"]), "until the next change");
    assert_eq!(story.make("b", None), list(&["c"]));
    story.replays();
}

#[test]
fn a_failure_is_no_reason_to_request_it_again() {
    let chain =
        vec![asset("a", &[], None), asset("b", &["a"], Some(eager())), asset("c", &["b"], Some(eager()))];
    let mut story = Story::new(chain);
    story.request("a", None);
    assert_eq!(story.play(&["c"]), list(&["b", "c"]));
    assert_eq!(story.wait(86_400), BTreeSet::new());
    story.request("a", None);
    assert_eq!(story.play(&["b"]), list(&["b", "c"]), "a new change is");
    assert_eq!(story.make("b", None), list(&["c"]), "what was not made is, when its upstream is there");
    story.replays();
}

#[test]
fn updates_while_a_run_is_open_are_requested_when_it_is_over() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    story.request("a", None);
    let first = story.open().remove(0);
    assert_eq!(story.end(first, true).len(), 1, "b is requested");
    let b = story.open().remove(0);
    story.ask(Input::Started(b.clone(), Arc::from("w")));
    story.request("a", None);
    let second = story.open().into_iter().find(|attempt| attempt.task_key != b.task_key).unwrap();
    assert_eq!(story.end(second, true), BTreeSet::new(), "b is being made, of the old data");
    let report = made(&b);
    let requested = story.ask(Input::Finished(b, report));
    assert_eq!(requested, BTreeSet::from(["b".to_owned()]));
    assert_eq!(story.play(&[]), Vec::<String>::new());
    story.replays();
}

#[test]
fn a_cron_condition_waits_for_all_upstreams_after_the_tick() {
    let assets = vec![
        asset("a", &[], None),
        asset("b", &[], None),
        asset("c", &["a", "b"], Some(on_cron("0 6 * * *"))),
    ];
    let mut story = Story::new(assets);
    assert_eq!(story.make("b", None), Vec::<String>::new());
    assert_eq!(story.make("a", None), Vec::<String>::new(), "the last tick was before the condition");
    assert_eq!(story.wait(6 * 3_600), BTreeSet::new(), "the tick alone is not enough");
    assert_eq!(story.make("a", None), Vec::<String>::new());
    assert_eq!(story.make("b", None), list(&["c"]));
    assert_eq!(story.make("a", None), Vec::<String>::new(), "once a tick");
    assert_eq!(story.make("b", None), Vec::<String>::new());
    assert_eq!(story.wait(86_400), BTreeSet::new());
    assert_eq!(story.make("a", None), Vec::<String>::new());
    assert_eq!(story.make("b", None), list(&["c"]));
    story.replays();
}

#[test]
fn a_cron_condition_without_upstreams_ticks_and_takes_the_newest_partition() {
    let mut root = asset("a", &[], Some(on_cron("0 6 * * *")));
    root.partitions = days();
    let mut story = Story::new(vec![root]);
    let requested = story.wait(6 * 3_600);
    assert_eq!(requested, BTreeSet::from(["a 2025-01-14".to_owned()]));
    story.play(&[]);
    assert_eq!(story.wait(3_600), BTreeSet::new());
    let deadline = story.world.engine.next_deadline(story.world.now);
    assert!(deadline.is_some_and(|at| at > story.world.now), "it sleeps until there is something to do");
    assert_eq!(story.wait(23 * 3_600), BTreeSet::from(["a 2025-01-15".to_owned()]));
    story.replays();
}

#[test]
fn new_partitions_are_made_and_old_ones_are_left_to_backfills() {
    let mut root = asset("a", &[], Some(on_missing()));
    root.partitions = days();
    let mut below = asset("b", &["a"], Some(eager()));
    below.partitions = days();
    let mut story = Story::new(vec![root, below]);
    assert_eq!(story.play(&[]), Vec::<String>::new(), "three partitions were missing before");
    let requested = story.wait(86_400);
    assert_eq!(requested, ["a 2025-01-15", "b 2025-01-15"].map(str::to_owned).into());
    assert_eq!(story.play(&[]), Vec::<String>::new());
    assert_eq!(
        story.make("a", Some("2025-01-13")),
        list(&["b 2025-01-13"]),
        "a change of an old one is a change"
    );
    story.replays();
}

#[test]
fn an_asset_without_partitions_that_is_missing_is_made_when_it_is_deployed() {
    let assets = vec![asset("a", &[], Some(on_missing())), asset("b", &["a"], Some(on_missing()))];
    let mut story = Story::new(Vec::new());
    assert_eq!(story.deploy(assets), ["a", "b"].map(str::to_owned).into(), "one run of both");
    story.play(&["a"]);
    assert_eq!(story.wait(86_400 * 7), BTreeSet::new(), "a failure does not start it again");
    story.replays();
}

#[test]
fn a_self_dependent_asset_goes_on_from_day_to_day() {
    let mut daily = asset("a", &[], Some(eager()));
    daily.partitions = days();
    daily.deps = vec![reads("a", Some(MappingDef::Window { from: -1, to: -1 }))];
    let mut story = Story::new(vec![daily]);
    assert_eq!(story.make("a", Some("2025-01-12")), list(&["a 2025-01-13", "a 2025-01-14"]));
    assert_eq!(story.runs(), 1);
    assert_eq!(story.wait(86_400), BTreeSet::from(["a 2025-01-15".to_owned()]));
    story.replays();
}

#[test]
fn changed_code_is_made_again_once() {
    let mut changing = asset("a", &[], Some(Condition::CodeChanged));
    let mut story = Story::new(vec![changing.clone()]);
    assert_eq!(story.make("a", None), Vec::<String>::new());
    changing.version = 2;
    assert_eq!(story.deploy(vec![changing.clone()]), BTreeSet::from(["a".to_owned()]));
    story.play(&["a"]);
    assert_eq!(story.wait(3_600), BTreeSet::new(), "it failed, and nothing has changed");
    changing.version = 3;
    assert_eq!(story.deploy(vec![changing]), BTreeSet::from(["a".to_owned()]));
    assert_eq!(story.play(&[]), Vec::<String>::new());
    story.replays();
}

#[test]
fn failures_are_tried_again_as_often_as_a_limit_allows() {
    let retry = and(vec![Condition::Failed, at_most(2, Millis::from_hours(1))]);
    let mut story = Story::new(vec![asset("a", &[], Some(retry))]);
    story.request("a", None);
    assert_eq!(story.play(&["a"]), list(&["a", "a"]));
    assert_eq!(story.wait(1_800), BTreeSet::new());
    assert_eq!(story.wait(1_801), BTreeSet::from(["a".to_owned()]), "an hour after the first");
    story.play(&[]);
    story.replays();
}

#[test]
fn a_paused_condition_requests_nothing_and_catches_up_when_it_is_resumed() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    let change = |paused: bool| {
        Input::PauseCondition(PauseCondition {
            asset: key("b"),
            paused,
            expected_state_version: None,
            reason: "the source is down".to_owned(),
            caller: Caller::user("me"),
        })
    };
    story.ask(change(true));
    assert_eq!(story.make("a", None), Vec::<String>::new());
    assert_eq!(story.ask(change(false)), BTreeSet::from(["b".to_owned()]));
    story.play(&[]);
    let unknown = PauseCondition {
        asset: key("a"),
        paused: true,
        expected_state_version: None,
        reason: String::new(),
        caller: Caller::user("me"),
    };
    let refused = story.world.ask(Input::PauseCondition(unknown)).unwrap_err();
    assert_eq!(refused, Refusal::UnknownCondition { asset: key("a") });
    let stale = PauseCondition {
        asset: key("b"),
        paused: true,
        expected_state_version: Some(1),
        reason: String::new(),
        caller: Caller::user("me"),
    };
    let refused = story.world.ask(Input::PauseCondition(stale)).unwrap_err();
    assert!(matches!(refused, Refusal::StateVersion { expected: 1, found: 3, .. }), "{refused}");
}

#[test]
fn events_that_are_folded_again_change_nothing() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    story.make("a", None);
    let before = story.shadow.rows();
    let again: Vec<Event> = story.log.clone();
    for event in again.iter().filter(|event| matches!(event.data, EventData::ConditionsEvaluated(_))) {
        story.shadow.apply(event);
    }
    assert_eq!(story.shadow.rows().condition_requests, before.condition_requests);
    assert_eq!(story.shadow.rows().condition_evaluations, before.condition_evaluations);
}

#[test]
fn nothing_is_evaluated_and_nothing_is_due_when_nothing_changes() {
    let story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    assert_eq!(story.world.engine.next_deadline(story.world.now), None);
}

#[test]
fn a_trace_says_which_part_holds_and_since_when() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    let explained = |story: &Story| {
        servo_engine::conditions::explain(story.world.state(), &key("b"), None, story.world.now, 10)
    };
    let found = explained(&story).unwrap();
    assert_eq!((found.trace.label.as_str(), found.trace.holds, found.trace.of), ("eager()", 0, 1));
    assert_eq!(found.details[0].held_back.as_deref(), Some("the condition is false"));
    story.make("a", None);
    let found = explained(&story).unwrap();
    assert_eq!(found.trace.holds, 0);
    let row = story.world.state().recent_condition_evaluations().next().unwrap();
    let trace = &row.trace.as_ref().unwrap().0;
    assert_eq!((trace.holds, trace.of), (1, 1));
    let updated = &trace.parts[0].parts[0].parts[1].parts[0];
    assert_eq!((updated.label.as_str(), updated.holds, updated.of), ("updated()", 1, 1));
    assert!(updated.since.is_some());
    assert_eq!(
        servo_engine::conditions::explain(story.world.state(), &key("a"), None, story.world.now, 10),
        None
    );
}

/// Small graphs of a few assets, each reading some of those before it.
fn graph(bytes: &[u8]) -> Vec<Declared> {
    let mut next = bytes.iter().copied().cycle();
    let mut byte = move || next.next().unwrap_or(0);
    let names = ["a", "b", "c", "d"];
    let mut assets: Vec<Declared> = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let partitions = match byte() % 4 {
            0 | 1 => None,
            2 => days(),
            _ => Some(PartitionsDef::Dynamic { name: "customers".to_owned() }),
        };
        let mut deps = Vec::new();
        for before in &assets[..position] {
            if byte() % 2 == 0 {
                // Different partitions read everything of each other.
                let mapping = (before.partitions != partitions).then_some(MappingDef::All);
                deps.push(DepDef { available: byte() % 5 == 0, ..reads(&before.name, mapping) });
            }
        }
        if partitions == days() && byte() % 3 == 0 {
            deps.push(reads(name, Some(MappingDef::Window { from: -1, to: -1 })));
        }
        let automation = condition(&mut byte);
        assets.push(Declared { name: (*name).to_owned(), version: 1, partitions, deps, automation });
    }
    assets
}

fn condition(byte: &mut impl FnMut() -> u8) -> Option<Condition> {
    let hourly = || tick("0 * * * *");
    Some(match byte() % 12 {
        0 | 1 => return None,
        2..=4 => eager(),
        5 => on_cron("0 */3 * * *"),
        6 => on_missing(),
        7 => or(vec![Condition::CodeChanged, and(vec![eager(), Condition::Latest { windows: 2 }])]),
        8 => and(vec![
            or(vec![Condition::Failed, any_upstream(Condition::Failed)]),
            at_most(2, Millis::from_hours(2)),
        ]),
        9 => and(vec![
            any_upstream(Condition::NewlyTrue { of: not(Condition::InProgress).into() }),
            not(any_upstream(missing())),
        ]),
        10 => and(vec![
            all_upstream(Condition::Since { of: Condition::Updated.into(), since: hourly().into() }),
            any_upstream(Condition::Updated),
            at_most(1, Millis::from_hours(1)),
        ]),
        _ => or(vec![missing(), and(vec![any_upstream(any_upstream(Condition::Updated)), hourly()])]),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conditions_equal_a_naive_evaluator_that_looks_at_everything(
        shape in prop::collection::vec(any::<u8>(), 40),
        acts in prop::collection::vec(any::<(u8, u8, u8)>(), 1..50),
    ) {
        tell(&shape, &acts);
    }
}

/// Plays random acts in a random graph.
fn tell(shape: &[u8], acts: &[(u8, u8, u8)]) {
    let mut story = Story::new(graph(shape));
    let names = ["a", "b", "c", "d"];
    for &(act, which, detail) in acts {
        let name = names[usize::from(which) % names.len()];
        match act % 8 {
            0 | 1 => {
                let partition =
                    match story.assets.iter().find(|asset| asset.name == name).unwrap().partitions.clone() {
                        None => None,
                        Some(PartitionsDef::Dynamic { .. }) => Some(format!("k{}", detail % 4)),
                        Some(_) => Some(format!("2025-01-{}", 12 + detail % 4)),
                    };
                story.request(name, partition.as_deref());
            }
            2..=4 => {
                let open = story.open();
                if !open.is_empty() {
                    let attempt = open[usize::from(which) % open.len()].clone();
                    story.end(attempt, detail % 4 != 0);
                }
            }
            5 => drop(story.wait(u64::from(detail) * 300)),
            6 => {
                let change = ChangePartitions {
                    name: "customers".to_owned(),
                    add: vec![format!("k{}", detail % 4)],
                    remove: if which % 5 == 0 {
                        vec![format!("k{}", (detail % 4 + 1) % 4)]
                    } else {
                        Vec::new()
                    },
                    caller: Caller::user("me"),
                };
                story.ask(Input::ChangePartitions(change));
            }
            _ => {
                let mut assets = story.assets.clone();
                if let Some(asset) = assets.iter_mut().find(|asset| asset.name == name) {
                    asset.version += 1;
                    if detail % 4 == 0 {
                        let mut bytes = [which, detail, act].into_iter().cycle();
                        asset.automation = condition(&mut || bytes.next().unwrap_or(0));
                    }
                }
                story.deploy(assets);
            }
        }
    }
    story.replays();
}

#[test]
fn stories_that_were_found_by_chance_stay_told() {
    let shape = [3, 221, 27, 162, 1, 62, 71, 30, 1, 29, 0, 219, 1, 127, 2, 1, 74, 0];
    let acts = [
        (199, 102, 12),
        (0, 0, 0),
        (62, 0, 90),
        (157, 0, 36),
        (104, 243, 70),
        (47, 84, 0),
        (154, 19, 1),
        (170, 190, 0),
        (18, 1, 1),
        (146, 151, 28),
        (146, 0, 5),
    ];
    tell(&[&shape[..], &[0; 22]].concat(), &acts);
    let shape = [4, 0, 202, 0, 95, 25, 74, 19, 134, 0, 72, 1, 12, 48, 74, 1, 5, 20, 0, 164];
    let acts = [
        (182, 0, 72),
        (0, 0, 0),
        (16, 103, 0),
        (42, 2, 1),
        (98, 0, 0),
        (253, 0, 121),
        (8, 170, 60),
        (66, 104, 5),
        (18, 0, 0),
        (0, 0, 0),
        (127, 61, 20),
        (10, 0, 0),
        (72, 4, 0),
        (13, 0, 0),
        (6, 0, 32),
        (106, 0, 105),
        (0, 0, 0),
        (2, 0, 0),
        (0, 125, 31),
        (7, 11, 104),
        (98, 0, 1),
        (160, 235, 0),
        (61, 0, 0),
        (24, 124, 0),
        (146, 82, 72),
        (213, 0, 11),
    ];
    tell(&[&shape[..], &[0; 20]].concat(), &acts);
}

#[test]
fn data_older_than_what_a_failed_attempt_has_read_is_no_reason_to_request_it_again() {
    let mut story = Story::new(vec![
        asset("a", &[], None),
        asset("b", &["a"], Some(eager())),
        asset("c", &["b"], Some(eager())),
    ]);
    story.request("a", None);
    let a = story.open().remove(0);
    assert_eq!(story.end(a, true), ["b", "c"].map(str::to_owned).into());
    story.request("c", None);
    let of = |story: &Story, name: &str| -> Vec<Attempt> {
        story.open().into_iter().filter(|it| it.task_key.asset() == key(name)).collect()
    };
    let by_hand = of(&story, "c").remove(0);
    let b = of(&story, "b").remove(0);
    story.end(b, true);
    let requested = of(&story, "c").into_iter().find(|it| it.run_id != by_hand.run_id).unwrap();
    assert_eq!(story.end(requested, false), BTreeSet::new(), "it failed with what it was requested for");
    assert_eq!(story.end(by_hand, true), BTreeSet::new(), "of older data, and the newer has failed");
    assert_eq!(story.make("b", None), list(&["c"]), "until there is something new");
    story.replays();
}

#[test]
fn a_failure_that_was_not_asked_for_is_handled_the_same_with_and_without_a_limit() {
    for limited in [false, true] {
        let limit = || at_most(9, Millis::from_hours(1));
        let condition = if limited { and(vec![eager(), limit()]) } else { eager() };
        let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(condition))]);
        assert_eq!(story.make("a", None), list(&["b"]), "made good");
        story.request("b", None);
        let b = story.open().remove(0);
        story.request("a", None);
        let a = story.open().into_iter().find(|it| it.task_key != b.task_key).unwrap();
        assert_eq!(story.end(a, true), BTreeSet::new(), "b is being made, of the old data");
        assert_eq!(story.end(b, false), BTreeSet::from(["b".to_owned()]));
        assert_eq!(story.play(&[]), Vec::<String>::new());
        // The same of an attempt that has read the new data.
        story.request("a | t.b", None);
        let a = story.open().remove(0);
        story.end(a, true);
        let b = story.open().remove(0);
        assert_eq!(story.end(b, false), BTreeSet::from(["b".to_owned()]), "limited: {limited}");
        story.replays();
    }
}

#[test]
fn definitions_say_everything_that_is_wrong_with_a_condition() {
    let wrong = [
        ("bad cron", tick("61 * * * *"), "61"),
        (
            "unknown zone",
            Condition::CronTick { cron: "0 6 * * *".to_owned(), timezone: Some("Mars".to_owned()) },
            "Mars",
        ),
        ("no times", and(vec![eager(), at_most(0, Millis::from_hours(1))]), "at_most has 0 times"),
        ("no length", and(vec![eager(), at_most(1, Millis::new(1))]), "per of at_most"),
        ("nothing happens", not(Condition::InProgress), "nothing in it happens"),
        ("starts itself", Condition::Failed, "again and again"),
        ("again", Condition::NewlyTrue { of: not(Condition::InProgress).into() }, "again and again"),
        ("no window", and(vec![eager(), Condition::Latest { windows: 0 }]), "latest has 0 windows"),
        (
            "no time",
            and(vec![
                eager(),
                Condition::During {
                    from: "25:00".to_owned(),
                    to: "6".to_owned(),
                    days: Vec::new(),
                    timezone: None,
                },
            ]),
            "no time of a day",
        ),
        (
            "no day",
            and(vec![
                eager(),
                Condition::During {
                    from: "22:00".to_owned(),
                    to: "06:00".to_owned(),
                    days: vec!["monday".to_owned()],
                    timezone: None,
                },
            ]),
            "is no day",
        ),
        ("too deep", (0..40).fold(eager(), |inner, _| not(not(inner))), "levels deep"),
        ("nothing joined", or(vec![]), "joins nothing"),
        (
            "bad name",
            Condition::AnyUpstream {
                of: Condition::Updated.into(),
                only: vec!["A B".to_owned()],
                ignore: Vec::new(),
            },
            "names \"A B\"",
        ),
    ];
    for (what, condition, message) in wrong {
        let manifest = Manifest {
            manifest_version: MANIFEST_VERSION,
            project: "shop".to_owned(),
            assets: vec![asset("a", &[], Some(condition)).def()],
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            resources: Vec::new(),
        };
        let problems = Definitions::check(manifest).unwrap_err().to_string();
        assert!(problems.contains(message), "{what}: {problems}");
    }
}

#[test]
fn the_window_of_a_day_keeps_back_and_lets_go() {
    let night = Condition::During {
        from: "22:00".to_owned(),
        to: "06:00".to_owned(),
        days: Vec::new(),
        timezone: Some("Europe/Amsterdam".to_owned()),
    };
    let mut story =
        Unwatched::new(vec![asset("a", &[], None), asset("b", &["a"], Some(and(vec![eager(), night])))]);
    // The test begins at one in the morning of Amsterdam.
    story.wait(8 * 3_600);
    story.make("a");
    assert_eq!(story.requested(), 0, "it is nine in the morning");
    story.wait(12 * 3_600);
    assert_eq!(story.requested(), 0, "it is nine in the evening");
    story.wait(3_600);
    assert_eq!(story.requested(), 1, "it is ten");
}

/// An engine without the comparison, for parts that the naive evaluator does not have.
struct Unwatched(Story);

impl Unwatched {
    fn new(assets: Vec<Declared>) -> Self {
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

    fn wait(&mut self, seconds: u64) {
        self.0.world.pass(seconds);
    }

    fn make(&mut self, name: &str) {
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

    fn play(&mut self) {
        while let Some(attempt) = self.0.open().into_iter().next() {
            let world = &mut self.0.world;
            world.ask(Input::Started(attempt.clone(), Arc::from("w"))).unwrap();
            let report = made(&attempt);
            world.ask(Input::Finished(attempt, report)).unwrap();
        }
    }

    fn requested(&self) -> usize {
        let events = self.0.world.events();
        events.iter().filter(|event| matches!(event.data, EventData::ConditionsEvaluated(_))).count()
    }
}

#[test]
fn staleness_reaches_through_assets_without_conditions() {
    let mut story = Unwatched::new(vec![
        asset("a", &[], None),
        asset("b", &["a"], None),
        asset("c", &["b"], Some(and(vec![Condition::Stale, not(any_upstream(Condition::Stale))]))),
    ]);
    for name in ["a", "b", "c"] {
        story.make(name);
    }
    let before = story.requested();
    story.make("a");
    assert_eq!(story.requested(), before, "b is stale, and c waits for it");
    story.make("b");
    assert_eq!(story.requested(), before + 1);
}
