//! Sets of blocks do what sets of partitions do, and a packed set is the set that was packed.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use servo_core::partitions::{Block, PartitionContext, PartitionSet, Partitions, Span};
use servo_core::{PartitionsDef, Timestamp};

type Points = BTreeSet<Vec<u64>>;

fn points(set: &PartitionSet) -> Points {
    set.iter().collect()
}

fn set_of(points: &Points) -> PartitionSet {
    points.iter().map(|point| Block::one(point)).collect()
}

/// Up to 40 blocks of up to 3 dimensions with 12 indexes each.
fn sets(dimensions: usize) -> impl Strategy<Value = PartitionSet> {
    let range = (0..12u64, 1..5u64).prop_map(|(start, len)| start..(start + len).min(12));
    let block = prop::collection::vec(range, dimensions).prop_map(Block::new);
    prop::collection::vec(block, 0..40).prop_map(|blocks| blocks.into_iter().collect())
}

fn pairs() -> impl Strategy<Value = (PartitionSet, PartitionSet)> {
    (0..4usize).prop_flat_map(|dimensions| (sets(dimensions), sets(dimensions)))
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("k{}ü{number:03}", if number % 3 == 0 { "é" } else { "è" })).collect()
}

/// By hour, on a day on which the clock was set forward, by listed key and by dynamic key.
fn three() -> Partitions {
    let span = Span::new("2024-03-31T00:00").until("2024-03-31T20:00").in_zone("Europe/Amsterdam");
    let dims = BTreeMap::from([
        ("at".to_owned(), PartitionsDef::Hourly { span }),
        ("key".to_owned(), PartitionsDef::Static { keys: keys(12) }),
        ("who".to_owned(), PartitionsDef::Dynamic { name: "who".to_owned() }),
    ]);
    PartitionsDef::Multi { dims }.validate().expect("three dimensions")
}

fn who(keys: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut keys = keys.to_vec();
    keys.sort();
    BTreeMap::from([("who".to_owned(), keys)])
}

proptest! {
    #[test]
    fn what_is_in_both_and_what_is_left_is_so_point_by_point((a, b) in pairs()) {
        let (one, other) = (points(&a), points(&b));
        prop_assert_eq!(a.intersection(&b), set_of(&one.intersection(&other).cloned().collect()));
        prop_assert_eq!(a.difference(&b), set_of(&one.difference(&other).cloned().collect()));
    }

    #[test]
    fn the_first_from_a_place_are_those_that_follow_it(
        set in (1..4usize).prop_flat_map(sets),
        from in prop::collection::vec(0..13u64, 3),
        count in 0..30usize,
    ) {
        let dimensions = set.blocks().first().map_or(1, |block| block.ranges().len());
        let from = &from[..dimensions];
        let mut expected: Vec<Vec<u64>> = points(&set).into_iter().filter(|it| it.as_slice() >= from).collect();
        expected.truncate(count);
        let (first, last) = set.first_from(from, count);
        prop_assert_eq!(last, expected.last().cloned());
        prop_assert_eq!(first, set_of(&expected.into_iter().collect()));
    }

    #[test]
    fn a_packed_set_is_read_again(set in sets(3)) {
        let (partitions, dynamic) = (three(), who(&keys(12)));
        let at = PartitionContext::new(Timestamp::MAX, &dynamic);
        match partitions.pack(&set, at) {
            None => prop_assert!(set.is_empty()),
            Some(packed) => {
                prop_assert_eq!(packed.blocks, set.blocks().len() as u64);
                prop_assert_eq!(partitions.unpack(&packed, at), Ok(set));
                let text = serde_json::to_string(&packed).unwrap();
                prop_assert_eq!(serde_json::from_str::<servo_core::partitions::PackedPartitions>(&text).unwrap(), packed);
            }
        }
    }

    #[test]
    fn a_packed_text_that_was_damaged_is_an_error_or_another_set(
        set in sets(3), position in any::<prop::sample::Index>(), with in "[A-Za-z0-9+/]",
    ) {
        let (partitions, dynamic) = (three(), who(&keys(12)));
        let at = PartitionContext::new(Timestamp::MAX, &dynamic);
        if let Some(mut packed) = partitions.pack(&set, at) {
            let place = position.index(packed.text.len());
            packed.text.replace_range(place..=place, &with);
            let _read = partitions.unpack(&packed, at);
        }
    }
}

#[test]
fn a_packed_set_means_the_same_when_partitions_before_it_come_and_keys_go() {
    let daily = |from: &str| PartitionsDef::Daily { span: Span::new(from).until("2024-12-31") };
    let (short, long) = (daily("2024-02-01").validate().unwrap(), daily("2020-01-01").validate().unwrap());
    let odd: PartitionSet = (0..300).step_by(2).map(|day| Block::from(day..day + 1)).collect();
    let packed = short.pack(&odd, Timestamp::MAX).unwrap();
    assert!(packed.text.len() < 600, "{} bytes for 150 blocks", packed.text.len());
    let shown = |partitions: &Partitions, set: &PartitionSet| {
        partitions.keys_in(set, Timestamp::MAX).map(|key| key.to_string()).collect::<Vec<_>>()
    };
    let moved = long.unpack(&packed, Timestamp::MAX).unwrap();
    assert_eq!(shown(&long, &moved), shown(&short, &odd));
    let gone = daily("2024-03-01").validate().unwrap();
    assert!(gone.unpack(&packed, Timestamp::MAX).unwrap_err().contains("2024-02-01"));
    let weekly = PartitionsDef::Weekly { weekday: 3, span: Span::new("2024-01-01").until("2024-12-31") };
    weekly.validate().unwrap().unpack(&packed, Timestamp::MAX).unwrap_err();

    let listed = |keys: &[&str]| {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        PartitionsDef::Static { keys }.validate().unwrap()
    };
    let before = listed(&["a", "b", "c", "d", "e"]);
    let some: PartitionSet = [Block::from(0..1), Block::from(2..4)].into_iter().collect();
    let packed = before.pack(&some, Timestamp::MAX).unwrap();
    let after = listed(&["x", "e", "d", "a", "c", "cc"]);
    let read = after.unpack(&packed, Timestamp::MAX).unwrap();
    assert_eq!(read, PartitionSet::one(&[3]), "c comes behind d now: nothing is between them");
    assert!(listed(&["a", "b"]).unpack(&packed, Timestamp::MAX).is_err(), "c is gone");

    let partitions = PartitionsDef::Dynamic { name: "who".to_owned() }.validate().unwrap();
    let names = |keys: &[&str]| who(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    let before = names(&["ada", "bob", "eve", "joe", "zoe"]);
    let some: PartitionSet = [Block::from(0..1), Block::from(2..4)].into_iter().collect();
    let packed = partitions.pack(&some, PartitionContext::new(Timestamp::MAX, &before)).unwrap();
    let now = names(&["bob", "fay", "joe", "zoe"]);
    let read = partitions.unpack(&packed, PartitionContext::new(Timestamp::MAX, &now)).unwrap();
    assert_eq!(read, PartitionSet::from(Block::from(1..3)), "ada and eve are gone, and fay came");
}
