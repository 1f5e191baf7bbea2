//! Keys of dynamic partitions: what a request changes, what is refused, and that each change counts once (ADR-055).

use servo_core::PartitionsDef;
use servo_core::partitions::PartitionContext;
use servo_engine::{
    Applied, Caller, Change, ChangePartitions, Event, EventData, EventKind, Ignored, Input, PartitionsReply,
    Refusal, RefusalKind, Reply, Settings, State,
};

use crate::support;
use crate::support::{World, fold, tenant, workspace};

fn change(add: &[&str], remove: &[&str]) -> Input {
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    Input::ChangePartitions(ChangePartitions {
        name: "customers".to_owned(),
        add: keys(add),
        remove: keys(remove),
        caller: Caller::user("me"),
    })
}

fn keys(state: &State) -> Vec<&str> {
    state.dynamic_partitions().get("customers").into_iter().flatten().map(String::as_str).collect()
}

fn numbers(world: &World) -> Vec<(u64, usize, usize)> {
    let changes = world.events().into_iter().filter_map(|event| {
        let EventData::DynamicPartitionsChanged(change) = event.data else { return None };
        Some((change.number, change.added.len(), change.removed.len()))
    });
    changes.collect()
}

fn refusal(world: &mut World, input: Input) -> Refusal {
    let is_change = |event: &&Event| event.data.kind() != EventKind::RequestRefused;
    let changes = |world: &World| world.events().iter().filter(is_change).count();
    let written = changes(world);
    let refused = world.ask(input).expect_err("refused");
    assert_eq!(changes(world), written, "a refusal leaves nothing but its record");
    refused
}

#[test]
fn a_request_writes_only_what_makes_a_difference() {
    let mut world = World::new(Settings::default());
    let first = world.ask(change(&["b", "a", "b"], &["never there"])).expect("accepted");
    assert!(matches!(first, Reply::Partitions(PartitionsReply { change: Change::Accepted { .. }, .. })));
    assert_eq!(keys(world.state()), ["a", "b"]);
    let same = PartitionsReply { change: Change::Duplicate, added: 0, removed: 0 };
    assert_eq!(world.ask(change(&["a"], &["z"])), Ok(Reply::Partitions(same)));
    world.ask(change(&["a", "aa"], &["b", "z"])).expect("accepted");
    assert_eq!(keys(world.state()), ["a", "aa"]);
    assert_eq!(numbers(&world), [(1, 2, 0), (2, 1, 1)]);
}

#[test]
fn a_key_can_be_added_removed_and_added_again() {
    let mut world = World::new(Settings::default());
    for (add, remove) in [(&["a"][..], &[][..]), (&[], &["a"]), (&["a"], &[])] {
        world.wait(10);
        let Ok(Reply::Partitions(reply)) = world.ask(change(add, remove)) else { panic!("it is changed") };
        assert!(matches!(reply.change, Change::Accepted { .. }));
    }
    let rows = world.state().rows();
    assert_eq!(rows.dynamic_partitions.len(), 1);
    assert_eq!(rows.dynamic_partitions[0].added_at, support::after(30), "as of the last time");
    let keys: Vec<String> = world.events().into_iter().map(|event| event.idempotency_key).collect();
    assert_eq!(keys, ["partitions:customers:1", "partitions:customers:2", "partitions:customers:3"]);
}

#[test]
fn numbers_go_on_after_the_last_key_is_gone_and_after_a_restart() {
    let mut world = World::new(Settings::default());
    world.ask(change(&["a"], &[])).expect("added");
    world.ask(change(&[], &["a"])).expect("removed");
    let rows = world.state().rows();
    assert!(rows.dynamic_partitions.is_empty());
    let restored = State::from_rows(tenant(), workspace(), rows).expect("rows fit");
    world.engine = servo_engine::Engine::new(restored, support::SECRET);
    world.ask(change(&["a"], &[])).expect("added again");
    assert_eq!(numbers(&world).last(), Some(&(3, 1, 0)));
    assert_eq!(fold(&Settings::default(), &world.events()).rows(), {
        let mut rows = world.state().rows();
        rows.head.seq = 0;
        rows
    });
}

#[test]
fn a_duplicate_and_an_older_change_are_ignored() {
    let mut world = World::new(Settings::default());
    world.ask(change(&["a", "c"], &[])).expect("added");
    world.ask(change(&["b"], &["a"])).expect("changed");
    let rows = world.state().rows();
    for event in world.events() {
        let mut state = world.state().clone();
        assert_eq!(state.apply(&event), Applied::No(Ignored::Duplicate));
        assert_eq!(state.rows(), rows);
    }
}

#[test]
fn names_do_not_mix() {
    let mut world = World::new(Settings::default());
    world.ask(change(&["a"], &[])).expect("added");
    let Input::ChangePartitions(mut other) = change(&["a", "x"], &[]) else { unreachable!("as made") };
    other.name = "regions".to_owned();
    world.ask(Input::ChangePartitions(other)).expect("added");
    world.ask(change(&[], &["a"])).expect("removed");
    let partitions = world.state().dynamic_partitions();
    assert_eq!(partitions["customers"], [""; 0]);
    assert_eq!(partitions["regions"], ["a", "x"]);
}

#[test]
fn partition_definitions_read_the_keys_as_they_are() {
    let mut world = World::new(Settings::default());
    world.ask(change(&["b", "a"], &[])).expect("added");
    let def = PartitionsDef::Dynamic { name: "customers".to_owned() };
    let partitions = def.validate().expect("a definition");
    assert_eq!(partitions.count(PartitionContext::new(world.now, world.state().dynamic_partitions())), 2);
}

#[test]
fn what_is_no_name_or_key_is_refused_with_the_reason() {
    let mut world = World::new(Settings::default());
    let long = "é".repeat(257);
    for (input, text) in [
        (change(&[""], &[]), "partition key \"\" is empty".to_owned()),
        (
            change(&["a\tb"], &[]),
            "partition key \"a\\tb\" has the control character '\\t' at character 2".to_owned(),
        ),
        (
            change(&[], &[long.as_str()]),
            format!("partition key \"{}…\" has 257 characters, at most 256 are allowed", "é".repeat(32)),
        ),
        (
            change(&["a", "b"], &["b"]),
            "dynamic partitions \"customers\": key \"b\" is to be added and removed; ask for one of the two"
                .to_owned(),
        ),
    ] {
        let refused = refusal(&mut world, input);
        assert_eq!((refused.kind(), refused.to_string()), (RefusalKind::Invalid, text));
    }
    let nameless =
        ChangePartitions { name: String::new(), add: vec![], remove: vec![], caller: Caller::default() };
    let refused = refusal(&mut world, Input::ChangePartitions(nameless));
    assert_eq!(refused.to_string(), "name of dynamic partitions \"\" is empty");
    assert!(world.ask(change(&[&"é".repeat(256)], &[])).is_ok(), "256 characters are fine");
}

#[test]
fn too_many_keys_are_refused_with_figure_and_limit() {
    let settings = Settings { max_partition_changes: 3, max_dynamic_partitions: 4, ..Settings::default() };
    let mut world = World::new(settings);
    let refused = refusal(&mut world, change(&["a", "b"], &["c", "d"]));
    assert_eq!(refused.kind(), RefusalKind::Invalid);
    assert_eq!(
        refused.to_string(),
        "dynamic partitions \"customers\": 4 keys in one request, at most 3 are allowed; split the request"
    );
    world.ask(change(&["a", "b", "c"], &[])).expect("three");
    let refused = refusal(&mut world, change(&["d", "e"], &[]));
    assert_eq!(refused.kind(), RefusalKind::Quota);
    assert_eq!(
        refused.to_string(),
        "dynamic partitions \"customers\" would have 5 keys, at most 4 are allowed; remove some first"
    );
    world.ask(change(&["d", "e"], &["a"])).expect("as many as are allowed");
    assert_eq!(keys(world.state()), ["b", "c", "d", "e"]);
}

#[test]
fn a_key_that_came_and_went_between_two_flushes_is_a_tombstone() {
    let mut world = World::new(Settings::default());
    world.ask(change(&["a", "b"], &[])).expect("added");
    world.engine.state_mut().take_delta();
    world.ask(change(&["c"], &["a"])).expect("changed");
    world.ask(change(&["d"], &["c"])).expect("changed");
    let delta = world.engine.state_mut().take_delta();
    let rows: Vec<&str> = delta.dynamic_partitions.iter().map(|row| row.partition.as_str()).collect();
    assert_eq!(rows, ["d"], "only what changed");
    let gone: Vec<&str> = delta.gone.dynamic_partitions.iter().map(|(_, key)| key.as_str()).collect();
    assert_eq!(gone, ["a", "c"]);
    assert_eq!(delta.partition_sets.len(), 1);
    assert!(world.engine.state_mut().take_delta().is_empty());
}
