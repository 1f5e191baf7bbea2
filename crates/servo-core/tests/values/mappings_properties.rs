//! Laws of mappings: sets map as their members do, there and back, over every grain and odd zones.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use servo_core::partitions::{
    Block, DimMapping, Mapping, MappingDef, PartitionContext, PartitionSet, Partitions, Reason, Span,
};
use servo_core::{PartitionsDef, Timestamp};

const ZONES: [&str; 6] =
    ["UTC", "Europe/Amsterdam", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"];
/// 2011-12-20, shortly before Apia skipped a day, and half a year before clocks change in most zones.
const FROM: i64 = 1_324_339_200;
const DAY: i64 = 86_400;

fn date(day: i64) -> String {
    jiff::Timestamp::from_second(FROM + day * DAY).unwrap().to_string()[..10].to_owned()
}

fn def(kind: u8, zone: usize, start: i64, days: i64) -> PartitionsDef {
    let span = match kind {
        0 | 4 => {
            Span::new(format!("{}T00:00", date(start))).until(format!("{}T23:00", date(start + days.min(3))))
        }
        3 => Span::new(date(start)).until(date(start + days + 31)),
        _ => Span::new(date(start)).until(date(start + days + 7)),
    };
    let span = span.in_zone(ZONES[zone]);
    match kind {
        0 => PartitionsDef::Hourly { span },
        1 => PartitionsDef::Daily { span },
        2 => PartitionsDef::Weekly { weekday: 3, span },
        4 => PartitionsDef::Cron { cron: "30 1,2,3,14 * * *".to_owned(), span },
        _ => PartitionsDef::Monthly { day: 10, span },
    }
}

fn time_def() -> impl Strategy<Value = PartitionsDef> {
    (0..5u8, 0..ZONES.len(), 0..120i64, 0..40i64)
        .prop_map(|(kind, zone, start, days)| def(kind, zone, start, days))
}

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        Just(Timestamp::MAX),
        (0..200i64, 0..DAY)
            .prop_map(|(day, second)| Timestamp::from_millis((FROM + day * DAY + second) * 1_000)),
    ]
}

/// Two that repeat alike, of spans that may be apart.
fn alike() -> impl Strategy<Value = (PartitionsDef, PartitionsDef)> {
    (0..5u8, 0..ZONES.len(), [0..60i64, 0..60], [0..40i64, 0..40]).prop_map(|(kind, zone, starts, days)| {
        (def(kind, zone, starts[0], days[0]), def(kind, zone, starts[1], days[1]))
    })
}

fn valid(def: &PartitionsDef) -> Partitions {
    def.validate().unwrap_or_else(|problems| panic!("{problems}"))
}

fn members(set: &PartitionSet) -> BTreeSet<Vec<u64>> {
    let members: Vec<_> = set.iter().collect();
    let distinct: BTreeSet<_> = members.iter().cloned().collect();
    assert_eq!(distinct.len(), members.len(), "blocks are disjoint");
    assert_eq!(distinct.len() as u128, set.len());
    distinct
}

/// A set maps to the union of what its members map to, in both directions, and the directions agree.
fn check_laws(mapping: &Mapping, down: &PartitionSet, up: &PartitionSet, now: PartitionContext<'_>) {
    let at = mapping.at(now);
    let mut expected = BTreeSet::new();
    let mut readers: BTreeMap<Vec<u64>, BTreeSet<Vec<u64>>> = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for one in down.iter() {
        let mapped = at.upstream_of(&one);
        missing.extend(mapped.missing.iter().map(ToString::to_string));
        assert!(mapped.more_missing > 0 || mapped.missing.len() <= 10);
        for read in members(&mapped.set) {
            assert!(up.contains(&read), "only what exists is read");
            readers.entry(read.clone()).or_default().insert(one.clone());
            expected.insert(read);
        }
    }
    let whole = at.upstream(down);
    assert_eq!(members(&whole.set), expected);
    if whole.more_missing == 0 {
        assert_eq!(whole.missing.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), missing);
    }
    let mut all_readers = BTreeSet::new();
    for read in up.iter() {
        let back = members(&at.downstream(&PartitionSet::one(&read)).set);
        assert_eq!(back, readers.remove(&read).unwrap_or_default(), "{read:?}");
        all_readers.extend(back);
    }
    assert_eq!(members(&at.downstream(up).set), all_readers);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn sets_map_as_their_members_do_and_back(
        down in time_def(), up in time_def(), now in moment(), which in 0..3u8,
    ) {
        let (down, up) = (valid(&down), valid(&up));
        let def = [MappingDef::Time, MappingDef::All, MappingDef::Last][usize::from(which)].clone();
        let mapping = def.between(Some(&down), Some(&up)).unwrap();
        check_laws(&mapping, &down.all(now), &up.all(now), now.into());
    }

    #[test]
    fn the_same_key_and_windows_follow_the_same_laws(
        (down, up) in alike(), now in moment(), window in [-9..9i64, 0..12],
    ) {
        let (down, up) = (valid(&down), valid(&up));
        prop_assume!(MappingDef::inferred(Some(&down), Some(&up)).is_ok());
        let window = MappingDef::Window { from: window[0], to: window[0] + window[1] };
        for def in [MappingDef::Same, window] {
            let mapping = def.between(Some(&down), Some(&up)).unwrap();
            check_laws(&mapping, &down.all(now), &up.all(now), now.into());
        }
    }

    #[test]
    fn what_overlaps_is_what_windows_say(down in time_def(), up in time_def()) {
        let (down, up, now) = (valid(&down), valid(&up), Timestamp::MAX);
        let mapping = MappingDef::Time.between(Some(&down), Some(&up)).unwrap();
        let windows: Vec<_> = up.page(0, usize::MAX, now).iter().map(|key| up.window(key).unwrap()).collect();
        for (index, key) in down.page(0, usize::MAX, now).iter().enumerate() {
            let (start, end) = down.window(key).unwrap();
            let overlapping = windows.iter().enumerate().filter(|(_, window)| window.0 < end && start < window.1);
            let expected: BTreeSet<_> = overlapping.map(|(index, _)| vec![index as u64]).collect();
            let mapped = mapping.upstream(&PartitionSet::one(&[index as u64]), now);
            prop_assert_eq!(mapped.missing.is_empty(), !expected.is_empty());
            prop_assert_eq!(members(&mapped.set), expected);
        }
    }

    #[test]
    fn the_same_key_is_the_same_key((down, up) in alike(), now in moment()) {
        let (down, up) = (valid(&down), valid(&up));
        prop_assume!(MappingDef::inferred(Some(&down), Some(&up)).is_ok());
        let mapping = MappingDef::Same.between(Some(&down), Some(&up)).unwrap();
        for (index, key) in down.page(0, usize::MAX, Timestamp::MAX).iter().enumerate() {
            let mapped = mapping.upstream(&PartitionSet::one(&[index as u64]), now);
            match up.block_of(key, now) {
                Ok(block) => prop_assert_eq!(mapped.set, PartitionSet::from(block)),
                Err(error) => prop_assert_eq!(mapped.missing, vec![error]),
            }
        }
    }

    #[test]
    fn dimensions_follow_the_same_laws(
        (day, other) in alike(), now in moment(), from in -2..1i64, regions in 1..4usize, shared in any::<bool>(),
        customers in proptest::collection::btree_set("[a-d]", 0..4),
    ) {
        let keys = |count: usize| (0..count).map(|n| ["a", "b", "c", "d"][n].to_owned()).collect::<Vec<_>>();
        let dims = |dims: &[(&str, &PartitionsDef)]| PartitionsDef::Multi {
            dims: dims.iter().map(|(name, def)| ((*name).to_owned(), (*def).clone())).collect(),
        };
        prop_assume!(MappingDef::inferred(Some(&valid(&day)), Some(&valid(&other))).is_ok());
        prop_assume!(valid(&day).count(now) <= 20 && valid(&other).count(now) <= 20);
        let region = PartitionsDef::Static { keys: keys(regions) };
        let customer = PartitionsDef::Dynamic { name: "customers".to_owned() };
        let down = valid(&dims(&[("day", &day), ("region", &region)]));
        let up = valid(&if shared {
            dims(&[("as_of", &other), ("date", &other)])
        } else {
            dims(&[("date", &other), ("region", &customer)])
        });
        let window = MappingDef::Window { from, to: from + 1 };
        let along = |mapping: MappingDef| DimMapping { from: Some("day".to_owned()), mapping: Some(Box::new(mapping)) };
        let mut dims = BTreeMap::from([("date".to_owned(), along(window))]);
        if shared {
            dims.insert("as_of".to_owned(), along(MappingDef::Time));
        }
        let mapping = MappingDef::Dims { dims }.between(Some(&down), Some(&up)).unwrap();
        let known = BTreeMap::from([("customers".to_owned(), customers.into_iter().collect())]);
        let now = PartitionContext::new(now, &known);
        check_laws(&mapping, &down.all(now), &up.all(now), now);
    }

    #[test]
    fn sets_of_partitions_are_sets(
        blocks in proptest::collection::vec([(0..6u64, 0..4u64), (0..6, 0..4), (0..6, 0..4)], 0..7), cut in 0..7usize,
    ) {
        let block = |ranges: &[(u64, u64); 3]| {
            Block::new(ranges.map(|(start, length)| start..start + length))
        };
        let cut = cut.min(blocks.len());
        let set = |some: &[[(u64, u64); 3]]| some.iter().map(block).collect::<PartitionSet>();
        let model = |some: &[[(u64, u64); 3]]| some.iter().flat_map(|ranges| {
            block(ranges).iter().collect::<Vec<_>>()
        }).collect::<BTreeSet<_>>();
        let (a, b) = (set(&blocks[..cut]), set(&blocks[cut..]));
        let (in_a, in_b) = (model(&blocks[..cut]), model(&blocks[cut..]));
        prop_assert_eq!(members(&a), in_a.clone());
        prop_assert_eq!(members(&a.union(&b)), in_a.union(&in_b).cloned().collect::<BTreeSet<_>>());
        prop_assert_eq!(members(&a.intersection(&b)), in_a.intersection(&in_b).cloned().collect::<BTreeSet<_>>());
        prop_assert_eq!(members(&a.difference(&b)), in_a.difference(&in_b).cloned().collect::<BTreeSet<_>>());
        prop_assert!(in_a.iter().all(|index| a.contains(index)));
        // Equal sets are equal values, however they came about.
        let one_by_one: PartitionSet = in_a.union(&in_b).map(|index| {
            Block::one(index)
        }).collect();
        prop_assert_eq!(a.union(&b), one_by_one);
    }

    #[test]
    fn flat_indexes_and_digits_agree(counts in [1..5usize, 1..5, 1..5], from in 0..80u128, length in 0..80u128) {
        let keys = |count: usize| PartitionsDef::Static { keys: (0..count).map(|n| format!("k{n}")).collect() };
        let dims = ["a", "b", "c"].iter().zip(counts).map(|(name, count)| ((*name).to_owned(), keys(count)));
        let partitions = valid(&PartitionsDef::Multi { dims: dims.collect() });
        let now = Timestamp::MAX;
        let set = partitions.set_of(from..from + length, now);
        let end = partitions.count(now).min(from + length);
        let expected: BTreeSet<_> = (from..end).map(|index| partitions.digits(index, now).unwrap()).collect();
        prop_assert_eq!(members(&set), expected);
        for digits in set.iter() {
            let index = partitions.index_of_digits(&digits, now).unwrap();
            let key = partitions.key(index, now).unwrap();
            prop_assert_eq!(partitions.digits(index, now), Some(digits.clone()));
            prop_assert_eq!(partitions.block_of(&key, now).unwrap(), Block::one(&digits));
        }
        let keys: BTreeSet<_> = partitions.keys_in(&set, now).collect();
        let paged = partitions.page(from, usize::try_from(length).unwrap(), now);
        prop_assert_eq!(keys, paged.into_iter().collect::<BTreeSet<_>>());
    }

    #[test]
    fn no_number_is_too_large(
        from in any::<i64>(), length in any::<u64>(), start in any::<u64>(), end in any::<u64>(),
        down in time_def(), up in time_def(),
    ) {
        let (down, up) = (valid(&down), valid(&up));
        let set = PartitionSet::from(Block::from(start.min(end)..start.max(end)));
        let to = from.saturating_add_unsigned(length);
        for (def, up) in [(MappingDef::Window { from, to }, &down), (MappingDef::Time, &up), (MappingDef::Same, &down)] {
            let mapping = def.between(Some(&down), Some(up)).unwrap();
            for now in [Timestamp::MIN, Timestamp::EPOCH, Timestamp::MAX] {
                prop_assert!(mapping.upstream(&set, now).set.len() <= up.count(now));
                prop_assert!(mapping.downstream(&set, now).set.len() <= down.count(now));
                mapping.at(now).upstream_of(&[start]);
            }
        }
    }
}

#[test]
fn windows_of_any_size_over_all_time_are_one_range() {
    let hours = valid(&PartitionsDef::Hourly { span: Span::new("0002-01-01T00:00") });
    let months =
        valid(&PartitionsDef::Monthly { day: 28, span: Span::new("0002-01-01").in_zone("Pacific/Apia") });
    let now = Timestamp::MAX;
    for (from, to) in [(i64::MIN, i64::MAX), (-1_000_000_000_000_000_000, 0), (0, 1_000_000_000_000_000_000)]
    {
        let mapping = MappingDef::Window { from, to }.between(Some(&hours), Some(&hours)).unwrap();
        assert_eq!(mapping.upstream(&hours.all(now), now).set, hours.all(now));
        assert_eq!(mapping.downstream(&hours.all(now), now).set, hours.all(now));
    }
    for (from, to) in [(i64::MIN, i64::MIN), (i64::MAX, i64::MAX)] {
        let mapping = MappingDef::Window { from, to }.between(Some(&hours), Some(&hours)).unwrap();
        assert!(mapping.upstream(&hours.all(now), now).set.is_empty());
    }
    let mapping = MappingDef::Time.between(Some(&months), Some(&hours)).unwrap();
    assert_eq!(mapping.downstream(&hours.all(now), now).set, months.all(now));
    assert_eq!(mapping.upstream(&months.all(now), now).set.blocks().len(), 1);
    // Hours that will exist in eight thousand years are counted, not listed.
    let mapped = mapping.upstream(&months.all(now), Timestamp::EPOCH);
    assert_eq!(mapped.missing.len(), 10);
    assert!(mapped.more_missing > 70_000_000);
    assert!(mapped.missing.iter().all(|missing| matches!(missing.reason, Reason::NotYet { .. })));
}
