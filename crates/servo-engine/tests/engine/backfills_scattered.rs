//! Backfills of partitions that lie scattered over more ranges than are named: accepted, and made as a list of them
//! would be (ADR-311).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::partitions::{MappingDef, PartitionContext};
use servo_core::{AssetKey, BackfillId, PartitionKey, PartitionsDef, RunId, TaskKey};
use servo_engine::controllers::backfills;
use servo_engine::definitions::AssetDef;
use servo_engine::event::KeyList;
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{BackfillRequest, PlanBasis};
use servo_engine::{AttemptOutcome, BackfillState, Caller, Input, MarkPartitions, Settings, State};

use crate::controllers_backfills::{all, asset, backfill, create, daily, deploy, open, play, reads, retry};
use crate::support::{SECRET, World, empty_state, tenant, workspace};

/// So many keys that every other one is more ranges than are named.
const KEYS: usize = 5_000;

fn keys() -> PartitionsDef {
    PartitionsDef::Static { keys: (0..KEYS).map(|number| format!("k{number:04}")).collect() }
}

/// Many chunks may be planned at once, so that they need not be played.
fn world(assets: Vec<Arc<AssetDef>>) -> World {
    let mut world = World::new(settings());
    deploy(&mut world, "d1", assets);
    world
}

fn settings() -> Settings {
    Settings { max_backfill_concurrency: 10_000, ..Settings::default() }
}

/// The state from the log and the state from its own rows are the state.
fn replays(world: &World) {
    let mut replayed = empty_state(&settings());
    for (seq, batch) in (1u64..).zip(&world.log) {
        replayed.apply_batch(seq, batch);
    }
    assert_eq!(replayed.rows(), world.state().rows());
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("its own rows");
    assert_eq!(restored.rows(), world.state().rows());
}

fn partitions_of(state: &State, name: &str) -> Vec<PartitionKey> {
    let definitions = state.checked_definitions().expect("deployed");
    let position = definitions.position(&AssetKey::parse(name).expect("a key")).expect("it is there");
    let partitions = definitions.asset(position).partitions.clone().expect("it has some");
    let at = PartitionContext::new(servo_core::Timestamp::MAX, state.dynamic_partitions());
    partitions.page(0, 10_000, at)
}

/// Says of some partitions that they have failed.
fn fail(world: &mut World, name: &str, which: impl Fn(usize) -> bool) -> Vec<PartitionKey> {
    let keys = partitions_of(world.state(), name).into_iter().enumerate();
    let keys: Vec<PartitionKey> = keys.filter(|(number, _)| which(*number)).map(|(_, key)| key).collect();
    let marked = MarkPartitions {
        asset: AssetKey::parse(name).expect("a key"),
        partitions: KeyList::new(keys.clone()),
        outcome: AttemptOutcome::Failed,
        reason: String::new(),
        basis: PlanBasis::default(),
        caller: Caller::user("me"),
    };
    world.ask(Input::MarkPartitions(marked)).expect("marked");
    keys
}

fn failed(selection: &str, chunk_size: u32, max_concurrent_runs: u32) -> BackfillRequest {
    let partitions = PartitionChoice { failed: true, ..PartitionChoice::default() };
    BackfillRequest { partitions, chunk_size, max_concurrent_runs, ..all(selection) }
}

/// The partitions of an asset in each run of a backfill, in the order of its chunks.
fn made(world: &World, id: BackfillId, name: &str) -> Vec<Vec<PartitionKey>> {
    let mut runs: BTreeMap<u32, RunId> = BTreeMap::new();
    for chunk in world.state().backfill_chunks().filter(|chunk| chunk.backfill_id == id) {
        runs.insert(chunk.chunk_index, chunk.run_id);
    }
    let asset = AssetKey::parse(name).expect("a key");
    let of = |run: &RunId| {
        let tasks = world.state().run(*run).expect("it is in memory").tasks.iter();
        let mut keys: Vec<_> =
            tasks.filter(|task| task.key.asset() == asset).filter_map(|task| task.key.partition()).collect();
        keys.sort_by_key(ToString::to_string);
        keys
    };
    runs.values().map(of).collect()
}

/// A bit for each number, by chance that a seed decides.
fn chance(seed: u64) -> impl Fn(usize) -> bool {
    move |number| {
        let mixed = (number as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63 == 1
    }
}

#[test]
fn every_other_partition_is_accepted_and_planned_chunk_by_chunk() {
    let mut world = world(vec![asset("a", Some(keys()), Vec::new())]);
    let expected = fail(&mut world, "t.a", |number| number % 2 == 0);
    let id = create(&mut world, failed("t.a", 7, 100));
    let target = &backfill(&world, id).definition.targets[0];
    assert_eq!((target.ranges(), target.partitions.len()), (2_500, 100), "the first are named, for people");
    let size = serde_json::to_string(&backfill(&world, id).definition).expect("plain data").len();
    assert!(size < 40_000, "{size} bytes");
    assert_eq!(
        (backfill(&world, id).definition.total_partitions, backfill(&world, id).planned),
        (2_500, 700)
    );
    let planned: Vec<PartitionKey> = made(&world, id, "t.a").concat();
    assert_eq!(planned, expected[..700], "in order, and no other");
    replays(&world);
    // A state that was read from its tables goes on where it was.
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("its own rows");
    let attempt = open(&world).remove(0);
    assert_eq!(
        backfills::reconcile(world.state(), SECRET, id, world.now),
        backfills::reconcile(&restored, SECRET, id, world.now)
    );
    let attempted = play(&mut world, |_| false, |world| backfill(world, id).planned_chunks > 102);
    assert_eq!(attempted[0], attempt.task_key);
    let planned: Vec<PartitionKey> = made(&world, id, "t.a").concat();
    assert_eq!(planned, expected[..planned.len()]);
}

#[test]
fn scattered_partitions_are_made_once_each_as_a_list_of_them_would_be() {
    for seed in 0..4 {
        let parts = || Some(keys());
        let mut world = world(vec![
            asset("a", parts(), Vec::new()),
            asset("b", parts(), vec![reads("a", Some(MappingDef::Same))]),
        ]);
        let first: BTreeSet<_> =
            fail(&mut world, "t.a", chance(seed)).into_iter().map(|key| key.to_string()).collect();
        let second: BTreeSet<_> =
            fail(&mut world, "t.b", chance(seed + 100)).into_iter().map(|key| key.to_string()).collect();
        let chunk_size = 150 + seed as u32 * 40;
        let id = create(&mut world, failed("t.a or t.b", chunk_size, 1_000));
        assert!(backfill(&world, id).definition.targets.iter().any(|target| target.packed.is_some()));
        let (of_a, of_b) = (made(&world, id, "t.a"), made(&world, id, "t.b"));
        let texts = |keys: &[PartitionKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (all_a, all_b) = (texts(&of_a.concat()), texts(&of_b.concat()));
        assert_eq!(all_a, first.iter().cloned().collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(all_b, second.iter().cloned().collect::<Vec<_>>(), "seed {seed}");
        // The naive list: the partitions of either, in order, so many at a time.
        let driving: Vec<&String> = first.union(&second).collect();
        let naive: Vec<(Vec<String>, Vec<String>)> = driving
            .chunks(chunk_size as usize)
            .map(|chunk| {
                let of = |set: &BTreeSet<String>| {
                    chunk.iter().filter(|key| set.contains(**key)).map(|key| (*key).clone()).collect()
                };
                (of(&first), of(&second))
            })
            .collect();
        let planned: Vec<_> = of_a.iter().zip(&of_b).map(|(a, b)| (texts(a), texts(b))).collect();
        assert_eq!(planned, naive, "seed {seed}");
        replays(&world);
    }
}

#[test]
fn what_a_scattered_backfill_did_not_make_is_made_again_and_nothing_else() {
    let days = || Some(daily("2017-01-01", "2024-06-30"));
    let mut world = world(vec![
        asset("a", days(), Vec::new()),
        asset("b", days(), vec![reads("a", Some(MappingDef::Window { from: -1, to: 0 }))]),
    ]);
    let first = fail(&mut world, "t.a", |number| number % 2 == 1);
    let id = create(&mut world, failed("t.a", 400, 2));
    assert!(backfill(&world, id).definition.targets[0].packed.is_some());
    let is_bad = |key: &TaskKey| key.as_str().ends_with("7]:materialize");
    play(&mut world, is_bad, |_| false);
    assert_eq!(backfill(&world, id).state, BackfillState::Failed);
    let bad: Vec<String> =
        first.iter().filter(|key| key.canonical().ends_with('7')).map(ToString::to_string).collect();
    assert_eq!(backfill(&world, id).fared.not_made(), bad.len() as u64);
    let again = retry(&mut world, id);
    assert_eq!(backfill(&world, again).definition.total_partitions, bad.len() as u64);
    let attempted = play(&mut world, |_| false, |_| false);
    let attempted: BTreeSet<String> =
        attempted.iter().filter_map(|key| key.partition()).map(|key| key.to_string()).collect();
    assert_eq!(attempted, bad.into_iter().collect());
    assert_eq!(backfill(&world, again).state, BackfillState::Succeeded);
}

#[test]
fn what_reads_scattered_partitions_is_never_made_before_them() {
    let days = || Some(daily("2017-01-01", "2024-06-30"));
    let mut world = world(vec![
        asset("a", days(), Vec::new()),
        asset("b", days(), vec![reads("a", Some(MappingDef::Window { from: -3, to: 0 }))]),
        asset("c", days(), vec![reads("b", Some(MappingDef::Window { from: 0, to: 2 }))]),
    ]);
    let of = ["t.a", "t.b", "t.c"];
    let expected: Vec<BTreeSet<String>> = (0..)
        .zip(of)
        .map(|(seed, name)| fail(&mut world, name, chance(seed)).iter().map(ToString::to_string).collect())
        .collect();
    let id = create(&mut world, failed("t.a or t.b or t.c", 500, 3));
    let attempted = play(&mut world, |_| false, |_| false);
    assert_eq!(backfill(&world, id).state, BackfillState::Succeeded);
    let days: Vec<String> = partitions_of(world.state(), "t.a").iter().map(ToString::to_string).collect();
    let mut done: BTreeSet<(String, String)> = BTreeSet::new();
    for key in attempted {
        let (asset, day) = (key.asset().to_string(), key.partition().expect("a day").to_string());
        let number = days.iter().position(|known| *known == day).expect("a day");
        let (before, read) = match asset.as_str() {
            "t.b" => (0, number.saturating_sub(3)..number + 1),
            "t.c" => (1, number..(number + 3).min(days.len())),
            _ => (0, number..number),
        };
        for upstream in read.map(|at| &days[at]).filter(|day| expected[before].contains(*day)) {
            let needed = (of[before].to_owned(), upstream.clone());
            assert!(done.contains(&needed), "{asset} {day} was made before {} {upstream}", of[before]);
        }
        assert!(done.insert((asset, day)), "made twice");
    }
    for (name, expected) in of.iter().zip(expected) {
        let made: BTreeSet<String> =
            done.iter().filter(|(asset, _)| asset == name).map(|(_, day)| day.clone()).collect();
        assert_eq!(made, expected, "{name}");
    }
}
