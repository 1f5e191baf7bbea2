//! Staleness of random graphs, partitions, mappings and histories against a brute-force evaluator that shares no code
//! with it: it has the whole history and every partition written out, and follows dependencies until nothing is added.
//!
//! The same histories are followed step by step, looked at afresh, and read back from tables.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use servo_core::partitions::{PartitionContext, PartitionSet};
use servo_core::{AssetKey, PartitionKey, TaskKey, Timestamp};
use servo_engine::definitions::AssetDef;
use servo_engine::outputs::OutputReport;
use servo_engine::staleness::{StaleReason, Staleness};
use servo_engine::{
    Attempt, Caller, Deploy, Effect, Input, OutputState, Report, Settings, State, TaskOptions, TaskRequest,
    TriggerRun,
};

use crate::planner_oracle::drawn::{Drawn, assets, described, drawn};
use crate::planner_oracle::world::{Asset, DAY, Part, january, name, reads};
use crate::support::{World, plan_of, tenant, workspace};

/// One thing that happens.
#[derive(Debug, Clone)]
enum Act {
    /// A task of an asset, and of what its function makes with it, is dispatched for a partition.
    Start { asset: usize, part: usize, others: u8 },
    /// One of the tasks at work ends, with content of its own, or with one that may have been there before.
    Finish { which: usize, content: Option<u8> },
    /// Another version of the code of an asset is deployed.
    Deploy { asset: usize, version: Option<u8> },
    /// Time passes.
    Pass { hours: u8 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..6usize, any::<usize>(), any::<u8>())
            .prop_map(|(asset, part, others)| Act::Start { asset, part, others }),
        8 => (any::<usize>(), prop_oneof![2 => Just(None), 3 => (0..2u8).prop_map(Some)])
            .prop_map(|(which, content)| Act::Finish { which, content }),
        1 => (0..6usize, prop_oneof![1 => Just(None), 4 => (0..2u8).prop_map(Some)])
            .prop_map(|(asset, version)| Act::Deploy { asset, version }),
        1 => (1..30u8).prop_map(|hours| Act::Pass { hours }),
    ]
}

/// A materialization.
#[derive(Debug, Clone)]
struct Made {
    asset: usize,
    part: Part,
    /// Which moment it was dispatched at, and at which it ended.
    read: usize,
    made: usize,
    version: Option<u8>,
    content: Option<u8>,
}

/// A task at work.
struct AtWork {
    assets: Vec<usize>,
    part: Part,
    read: usize,
    versions: Vec<Option<u8>>,
    attempt: Attempt,
}

struct Story {
    drawn: Vec<Drawn>,
    assets: Vec<Asset>,
    /// Whether dependencies are read as far as they are available, by asset and upstream asset.
    available: BTreeSet<(usize, usize)>,
    versions: Vec<Option<u8>>,
    history: Vec<Made>,
    at_work: Vec<AtWork>,
    moment: usize,
    now: i64,
    world: World,
    deployed: usize,
}

fn key_of(asset: usize) -> AssetKey {
    AssetKey::new("n", &name(asset).to_string()).unwrap()
}

impl Story {
    /// None if functions of several outputs wait for each other.
    fn new(drawn: Vec<Drawn>, available: &[bool], now: i64) -> Option<Self> {
        let assets = assets(&drawn, now);
        let deps =
            assets.iter().enumerate().flat_map(|(at, asset)| asset.deps.iter().map(move |dep| (at, dep.of)));
        let available =
            deps.zip(available.iter().cycle()).filter(|(_, flag)| **flag).map(|(dep, _)| dep).collect();
        let versions = vec![None; assets.len()];
        let mut world = World::new(Settings::default());
        world.now = Timestamp::from_millis(now * 1_000);
        let (history, at_work) = (Vec::new(), Vec::new());
        let (moment, deployed) = (0, 0);
        let mut story =
            Self { drawn, assets, available, versions, history, at_work, moment, now, world, deployed };
        story.deploy();
        story.world.state().checked_definitions().is_some().then_some(story)
    }

    fn deploy(&mut self) {
        self.deployed += 1;
        let mut described = described(&self.assets);
        for (position, asset) in described.iter_mut().enumerate() {
            if let Some(version) = self.versions[position] {
                asset["code_version"] = format!("v{version}").into();
            }
            for dep in asset["deps"].as_array_mut().unwrap() {
                let of = usize::from(dep["asset"].as_str().unwrap().as_bytes()[2] - b'a');
                if self.available.contains(&(position, of)) {
                    dep["available"] = true.into();
                }
            }
        }
        let assets =
            described.into_iter().map(|asset| Arc::new(serde_json::from_value::<AssetDef>(asset).unwrap()));
        let deploy = Deploy {
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            digest: format!("d{}", self.deployed).into(),
            project: "p".to_owned(),
            assets: assets.collect(),
            time_zones: "2026e".into(),
            caller: Caller::user("me"),
        };
        self.world.ask(Input::Deploy(deploy)).unwrap();
    }

    fn act(&mut self, act: &Act) {
        self.moment += 1;
        match act {
            Act::Start { asset, part, others } => self.start(asset % self.assets.len(), *part, *others),
            Act::Finish { which, content } => self.finish(*which, *content),
            Act::Deploy { asset, version } => {
                let asset = asset % self.assets.len();
                if self.versions[asset] != *version {
                    self.versions[asset] = *version;
                    self.deploy();
                }
            }
            Act::Pass { hours } => {
                // Attempts do not outlive hours of silence.
                while !self.at_work.is_empty() {
                    self.finish(0, None);
                    self.moment += 1;
                }
                self.now += i64::from(*hours) * 3_600;
                self.world.now = Timestamp::from_millis(self.now * 1_000);
                self.assets = assets(&self.drawn, self.now);
            }
        }
    }

    fn start(&mut self, asset: usize, part: usize, others: u8) {
        let parts = self.assets[asset].parts();
        // Few partitions, so that the same are made again and read each other.
        let few = &parts[parts.len().saturating_sub(4)..];
        let Some(part) = few.get(part % few.len().max(1)).cloned() else { return };
        if self.at_work.iter().any(|task| task.part == part && task.assets.contains(&asset)) {
            return;
        }
        let this = &self.assets[asset];
        let made_with = |other: &usize| self.assets[*other].function == this.function;
        let is_wanted = |other: &usize| !this.can_subset || *other == asset || others & (1 << other) != 0;
        let assets: Vec<usize> = (0..self.assets.len()).filter(made_with).filter(is_wanted).collect();
        let partition = this.key(&part).map(|key| PartitionKey::parse(&key).unwrap());
        let keys: Vec<AssetKey> = assets.iter().map(|asset| key_of(*asset)).collect();
        let key = TaskKey::new(&keys[0], partition.as_ref(), servo_core::Operation::Materialize);
        let options = TaskOptions { outputs: keys[1..].to_vec(), ..TaskOptions::default() };
        let plan = plan_of(vec![TaskRequest { key, upstream: vec![], options }]);
        let run_key = format!("run {}", self.moment);
        let step = self.world.step(&[Input::Trigger(TriggerRun::new(run_key, plan, "me"))]);
        let attempt = step.effects.iter().find_map(|effect| {
            if let Effect::Enqueue(dispatch) = effect { Some(dispatch.attempt.clone()) } else { None }
        });
        let attempt = attempt.expect("it is dispatched at once");
        let versions = assets.iter().map(|asset| self.versions[*asset]).collect();
        self.at_work.push(AtWork { assets, part, read: self.moment, versions, attempt });
    }

    fn finish(&mut self, which: usize, content: Option<u8>) {
        if self.at_work.is_empty() {
            return;
        }
        let task = self.at_work.remove(which % self.at_work.len());
        let output = |asset: &usize| OutputReport {
            content_hash: content.map(|content| format!("sha256:{content}")),
            ..OutputReport::new(key_of(*asset), OutputState::Committed)
        };
        let report = Report { outputs: task.assets.iter().map(output).collect(), ..Report::succeeded() };
        self.world.now = self.world.now.saturating_add(servo_core::Millis::new(1));
        self.world.ask(Input::Finished(task.attempt, report)).unwrap();
        for (asset, version) in task.assets.into_iter().zip(task.versions) {
            let (part, read, made) = (task.part.clone(), task.read, self.moment);
            self.history.push(Made { asset, part, read, made, version, content });
        }
    }

    // --- brute force

    fn materializations<'s>(
        &'s self,
        asset: usize,
        part: &'s Part,
    ) -> impl DoubleEndedIterator<Item = &'s Made> {
        self.history.iter().filter(move |made| made.asset == asset && made.part == *part)
    }

    /// Whether a partition has got its content after a moment, other than at the end of one task.
    fn changed_after(&self, asset: usize, part: &Part, moment: usize, but: usize) -> bool {
        let all: Vec<&Made> = self.materializations(asset, part).collect();
        let is_change = |(at, made): &(usize, &&Made)| {
            let before = at.checked_sub(1).map(|before| all[before].content);
            made.content.is_none() || before != Some(made.content)
        };
        let last = all.iter().enumerate().rfind(is_change);
        last.is_some_and(|(_, last)| last.made > moment && last.made != but)
    }

    fn by_itself(&self, asset: usize, part: &Part) -> Option<StaleReason> {
        if self.assets[asset].is_external {
            return None;
        }
        let Some(latest) = self.materializations(asset, part).next_back() else {
            return Some(StaleReason::NeverMade);
        };
        if self.versions[asset].is_some() && latest.version != self.versions[asset] {
            return Some(StaleReason::CodeChanged);
        }
        let is_newer = self
            .inputs(asset, part)
            .into_iter()
            .any(|(of, read, _)| self.changed_after(of, &read, latest.read, latest.made));
        is_newer.then_some(StaleReason::UpstreamNewer)
    }

    /// The inputs of a partition, and whether each is read only if available.
    fn inputs(&self, asset: usize, part: &Part) -> Vec<(usize, Part, bool)> {
        let deps = self.assets[asset].deps.iter().flat_map(|dep| {
            let (read, _) = reads(&dep.map, &self.assets[asset], part, &self.assets[dep.of]);
            let available = self.available.contains(&(asset, dep.of));
            read.into_iter().map(move |part| (dep.of, part, available))
        });
        deps.collect()
    }

    fn everything(&self) -> Vec<(usize, Part)> {
        let parts = |(at, asset): (usize, &Asset)| asset.parts().into_iter().map(move |part| (at, part));
        self.assets.iter().enumerate().flat_map(parts).collect()
    }

    fn brute(&self) -> BTreeMap<(usize, Part), StaleReason> {
        let all = self.everything();
        let mut stale: BTreeMap<(usize, Part), StaleReason> = BTreeMap::new();
        for (asset, part) in &all {
            if let Some(reason) = self.by_itself(*asset, part) {
                stale.insert((*asset, part.clone()), reason);
            }
        }
        loop {
            let mut more = Vec::new();
            for (asset, part) in &all {
                let place = (*asset, part.clone());
                if stale.contains_key(&place) || self.assets[*asset].is_external {
                    continue;
                }
                let through = self.inputs(*asset, part).into_iter().any(|(of, read, available)| {
                    stale.get(&(of, read)).is_some_and(|why| !available || *why != StaleReason::NeverMade)
                });
                more.extend(through.then_some(place));
            }
            if more.is_empty() {
                return stale;
            }
            stale.extend(more.into_iter().map(|place| (place, StaleReason::UpstreamStale)));
        }
    }

    /// The partitions to materialize among those requested, by following every reader.
    fn brute_needed(&self, asked: &BTreeSet<(usize, Part)>) -> BTreeSet<(usize, Part)> {
        let own = |(asset, part): &&(usize, Part)| self.by_itself(*asset, part).is_some();
        let mut needed: BTreeSet<(usize, Part)> = asked.iter().filter(own).cloned().collect();
        loop {
            let reads_one = |(asset, part): &&(usize, Part)| {
                !self.assets[*asset].is_external
                    && self.inputs(*asset, part).into_iter().any(|(of, read, _)| needed.contains(&(of, read)))
            };
            let more: Vec<_> =
                asked.iter().filter(|place| !needed.contains(*place)).filter(reads_one).cloned().collect();
            if more.is_empty() {
                return needed;
            }
            needed.extend(more);
        }
    }

    // --- the engine

    fn found(
        &self,
        staleness: &mut Staleness,
        state: &State,
        only: &[usize],
    ) -> BTreeMap<(usize, Part), StaleReason> {
        let definitions = state.checked_definitions().unwrap();
        let positions = only.iter().map(|asset| definitions.position(&key_of(*asset)).unwrap());
        let view = staleness.look(state, positions, self.world.now).unwrap();
        let mut stale = BTreeMap::new();
        for (asset, part) in self.everything().into_iter().filter(|(asset, _)| only.contains(asset)) {
            let partition = self.assets[asset].key(&part).map(|key| PartitionKey::parse(&key).unwrap());
            let position = definitions.position(&key_of(asset)).unwrap();
            if let Some(reason) = view.reason(position, partition.as_ref()) {
                let told = view.explain(position, partition.as_ref()).unwrap();
                assert_eq!(told.cause.reason(), reason, "{told}");
                stale.insert((asset, part), reason);
            }
        }
        stale
    }

    fn needed(&self, asked: &BTreeSet<(usize, Part)>) -> BTreeSet<(usize, Part)> {
        let state = self.world.state();
        let mut staleness = Staleness::of(state).unwrap();
        let definitions = state.checked_definitions().unwrap();
        let at = PartitionContext::new(self.world.now, state.dynamic_partitions());
        let place = |asset: usize, part: &Part| -> (u32, PartitionSet) {
            let position = definitions.position(&key_of(asset)).unwrap();
            let set = match (&definitions.asset(position).partitions, self.assets[asset].key(part)) {
                (Some(partitions), Some(key)) => {
                    partitions.block_of(&PartitionKey::parse(&key).unwrap(), at).unwrap().into()
                }
                _ => PartitionSet::unpartitioned(),
            };
            (position, set)
        };
        let mut sets: BTreeMap<u32, PartitionSet> = BTreeMap::new();
        for (asset, part) in asked {
            let (position, set) = place(*asset, part);
            let known = sets.entry(position).or_default();
            *known = known.union(&set);
        }
        let view = staleness.look(state, sets.keys().copied(), self.world.now).unwrap();
        let needed = view.needed(&sets);
        let is_needed = |(asset, part): &&(usize, Part)| {
            let (position, set) = place(*asset, part);
            !needed.needed[&position].intersection(&set).is_empty()
        };
        asked.iter().filter(is_needed).cloned().collect()
    }
}

fn check(cases: u32, test: impl Fn(Story, &[Act], u64) -> Result<bool, TestCaseError>) {
    let looked_at = Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let case = (
        proptest::collection::vec(drawn(), 1..6),
        proptest::collection::vec(prop::bool::weighted(0.3), 1..12),
        0..40i64,
        proptest::collection::vec(act(), 1..40),
        any::<u64>(),
    );
    let run = runner.run(&case, |(drawn, available, hours, acts, chance)| {
        let now = january(15) * DAY + hours * 3_600;
        let Some(story) = Story::new(drawn, &available, now) else { return Ok(()) };
        looked_at.set(looked_at.get() + u32::from(test(story, &acts, chance)?));
        Ok(())
    });
    run.unwrap();
    assert!(looked_at.get() > cases / 2, "only {} worlds were looked at", looked_at.get());
}

#[test]
fn stale_partitions_are_those_that_brute_force_finds_at_every_step() {
    let met: RefCell<BTreeMap<Option<StaleReason>, usize>> = RefCell::default();
    check(2_000, |mut story, acts, chance| {
        let mut followed = Staleness::of(story.world.state()).unwrap();
        let every = 1 + chance % 5;
        for (at, act) in acts.iter().enumerate() {
            story.act(act);
            if !(at as u64).is_multiple_of(every) && at + 1 != acts.len() {
                continue;
            }
            let all: Vec<usize> = (0..story.assets.len()).collect();
            // Some looks are at one asset only, and what it is made from.
            let only = match chance.rotate_left(at as u32) % 3 {
                0 => vec![all[chance as usize % all.len()]],
                _ => all,
            };
            let mut expected = story.brute();
            expected.retain(|(asset, _), _| only.contains(asset));
            let found = story.found(&mut followed, story.world.state(), &only);
            prop_assert_eq!(&found, &expected, "followed, after {:?}", act);
        }
        let all: Vec<usize> = (0..story.assets.len()).collect();
        let expected = story.brute();
        let afresh = story.found(&mut Staleness::of(story.world.state()).unwrap(), story.world.state(), &all);
        prop_assert_eq!(&afresh, &expected, "afresh");
        let restored = State::from_rows(tenant(), workspace(), story.world.state().rows()).unwrap();
        let read_back = story.found(&mut Staleness::of(&restored).unwrap(), &restored, &all);
        prop_assert_eq!(&read_back, &expected, "read back");
        for made in &story.history {
            *met.borrow_mut().entry(expected.get(&(made.asset, made.part.clone())).copied()).or_default() +=
                1;
        }
        Ok(story.history.len() > 1)
    });
    let met = met.into_inner();
    for reason in [StaleReason::CodeChanged, StaleReason::UpstreamNewer, StaleReason::UpstreamStale].map(Some)
    {
        assert!(met.get(&reason).is_some_and(|count| *count > 500), "{reason:?} is rare: {met:?}");
    }
    assert!(met.get(&None).is_some_and(|count| *count > 500), "little is up to date: {met:?}");
}

#[test]
fn what_is_needed_is_what_is_stale_by_itself_and_all_that_becomes_stale_by_making_it() {
    check(1_000, |mut story, acts, chance| {
        acts.iter().for_each(|act| story.act(act));
        let is_asked = |(asset, part): &(usize, Part)| {
            let mix = chance.rotate_right((asset * 7 + part.iter().sum::<usize>()) as u32);
            !story.assets[*asset].is_external && !mix.is_multiple_of(4)
        };
        let asked: BTreeSet<(usize, Part)> = story.everything().into_iter().filter(is_asked).collect();
        prop_assert_eq!(story.needed(&asked), story.brute_needed(&asked));
        let made_here = |(asset, _): &(usize, Part)| !story.assets[*asset].is_external;
        let everything: BTreeSet<(usize, Part)> = story.everything().into_iter().filter(made_here).collect();
        let stale: BTreeSet<(usize, Part)> = story.brute().into_keys().collect();
        prop_assert!(stale.is_subset(&story.needed(&everything)), "everything that is stale is made");
        Ok(!asked.is_empty())
    });
}
