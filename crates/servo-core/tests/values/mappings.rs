//! Mappings by example: what a partition reads, what reads it, what is missing, and what is refused.

use std::collections::BTreeMap;

use servo_core::partitions::{
    Block, Mapping, MappingDef, PartitionContext, PartitionSet, Partitions, Reason, Span,
};
use servo_core::{PartitionsDef, Timestamp};

use crate::support::declared::{
    daily, dims, dynamic, hourly, keys, monthly, multi, utc, valid, weekly, window,
};

const FOREVER: Timestamp = Timestamp::MAX;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Both sides and the mapping between them.
struct Pair {
    down: Partitions,
    up: Partitions,
    mapping: Mapping,
}

impl Pair {
    fn new(mapping: &MappingDef, down: &PartitionsDef, up: &PartitionsDef) -> Self {
        let (down, up) = (valid(down), valid(up));
        let mapping = mapping.between(Some(&down), Some(&up)).unwrap_or_else(|problems| panic!("{problems}"));
        Self { down, up, mapping }
    }

    /// The upstream partitions that a range of keys reads: first and last key, count, and missing ones.
    fn reads(&self, text: &str, now: Timestamp) -> (String, Vec<String>) {
        // What is to be read is asked of all partitions there will ever be.
        let set = self.down.parse_range(text, FOREVER).unwrap();
        let mapped = self.mapping.upstream(&set, now);
        (shown(&self.up, &mapped.set, now), mapped.missing.iter().map(ToString::to_string).collect())
    }

    fn reads_only(&self, text: &str) -> String {
        let (read, missing) = self.reads(text, FOREVER);
        assert!(missing.is_empty(), "{missing:?}");
        read
    }

    /// The downstream partitions that read a range of keys.
    fn read_by(&self, text: &str) -> String {
        let set = self.up.parse_range(text, FOREVER).unwrap();
        let mapped = self.mapping.downstream(&set, FOREVER);
        assert!(mapped.missing.is_empty());
        shown(&self.down, &mapped.set, FOREVER)
    }
}

/// Up to three keys, or the first and the last, and how many there are.
fn shown(partitions: &Partitions, set: &PartitionSet, now: Timestamp) -> String {
    let keys: Vec<_> = partitions.keys_in(set, now).map(|key| key.to_string()).collect();
    match keys.as_slice() {
        [] => "none".to_owned(),
        few if few.len() <= 3 => few.join(" "),
        [first, .., last] => format!("{first} to {last} ({})", keys.len()),
        [_] => unreachable!("one key is few"),
    }
}

#[test]
fn the_same_key_is_found_where_spans_differ() {
    let pair = Pair::new(
        &MappingDef::Same,
        &daily(utc("2013-01-01", "2013-12-31")),
        &daily(utc("2013-03-01", "2013-06-30")),
    );
    assert_eq!(pair.reads_only("2013-03-01"), "2013-03-01");
    assert_eq!(pair.reads_only("2013-06-29..2013-06-30"), "2013-06-29 2013-06-30");
    let (read, missing) = pair.reads("2013-02-27..2013-03-02", FOREVER);
    assert_eq!(read, "2013-03-01 2013-03-02");
    assert_eq!(
        missing,
        [
            "no partition 2013-02-27: the first partition is 2013-03-01",
            "no partition 2013-02-28: the first partition is 2013-03-01"
        ]
    );
    let (read, missing) = pair.reads("2013-07-01", FOREVER);
    assert_eq!(read, "none");
    assert_eq!(missing, ["no partition 2013-07-01: the last partition is 2013-06-30"]);
    assert_eq!(pair.read_by("2013-03-01..2013-03-02"), "2013-03-01 2013-03-02");
}

#[test]
fn what_does_not_exist_yet_is_missing() {
    let pair = Pair::new(
        &MappingDef::Same,
        &daily(Span::new("2013-01-01").offset(1)),
        &daily(Span::new("2013-01-01")),
    );
    let (read, missing) = pair.reads("2013-01-05..2013-01-06", time("2013-01-06T12:00:00Z"));
    assert_eq!(read, "2013-01-05");
    assert_eq!(missing, ["no partition 2013-01-06: it is not a partition yet; the latest is 2013-01-05"]);
}

#[test]
fn a_window_is_clipped_where_nothing_ever_exists_and_missing_where_it_comes_later() {
    let pair = Pair::new(
        &window(-6, 0),
        &daily(utc("2013-01-01", "2013-12-31")),
        &daily(utc("2013-01-01", "2013-06-30")),
    );
    assert_eq!(pair.reads_only("2013-01-31"), "2013-01-25 to 2013-01-31 (7)");
    assert_eq!(pair.reads_only("2013-01-01"), "2013-01-01");
    assert_eq!(pair.reads_only("2013-01-03"), "2013-01-01 2013-01-02 2013-01-03");
    assert_eq!(pair.reads_only("2013-07-05"), "2013-06-29 2013-06-30");
    assert_eq!(pair.reads_only("2013-12-31"), "none");
    assert_eq!(pair.reads_only("2013-01-10..2013-01-12"), "2013-01-04 to 2013-01-12 (9)");
    let (read, missing) = pair.reads("2013-01-08", time("2013-01-07T00:00:00Z"));
    assert_eq!(read, "2013-01-02 to 2013-01-06 (5)");
    assert_eq!(missing.len(), 2);
    assert_eq!(missing[0], "no partition 2013-01-07: it is not a partition yet; the latest is 2013-01-06");
    assert_eq!(pair.read_by("2013-01-31"), "2013-01-31 to 2013-02-06 (7)");
}

#[test]
fn an_asset_reads_its_own_partition_before() {
    let days = daily(utc("2013-01-01", "2013-12-31"));
    let pair = Pair::new(&window(-1, -1), &days, &days);
    assert_eq!(pair.reads_only("2013-01-01"), "none");
    assert_eq!(pair.reads_only("2013-01-02"), "2013-01-01");
    assert_eq!(pair.read_by("2013-12-31"), "none");
    assert_eq!(pair.read_by("2013-12-30"), "2013-12-31");
    let phases = keys(&["raw", "clean", "final"]);
    let pair = Pair::new(&window(-1, -1), &phases, &phases);
    assert_eq!(pair.reads_only("raw"), "none");
    assert_eq!(pair.reads_only("final"), "clean");
}

#[test]
fn days_have_as_many_hours_as_their_clocks_show() {
    let zone = "Europe/Amsterdam";
    let days = daily(utc("2024-01-01", "2024-12-31").in_zone(zone));
    let hours = hourly(utc("2024-01-01T00:00", "2024-12-31T23:00").in_zone(zone));
    let pair = Pair::new(&MappingDef::Time, &days, &hours);
    for (day, read) in [
        ("2024-03-31", "2024-03-30T23:00:00Z to 2024-03-31T21:00:00Z (23)"),
        ("2024-10-27", "2024-10-26T22:00:00Z to 2024-10-27T22:00:00Z (25)"),
        ("2024-06-01", "2024-05-31T22:00:00Z to 2024-06-01T21:00:00Z (24)"),
    ] {
        assert_eq!(pair.reads_only(day), read);
    }
    assert_eq!(pair.read_by("2024-10-26T22:00:00Z..2024-10-26T23:00:00Z"), "2024-10-27");
    let back = Pair::new(&MappingDef::Time, &hours, &days);
    assert_eq!(back.reads_only("2024-03-31T03"), "2024-03-31");
    assert_eq!(back.read_by("2024-10-27"), "2024-10-26T22:00:00Z to 2024-10-27T22:00:00Z (25)");
}

#[test]
fn a_skipped_day_is_overlapped_by_its_neighbours_in_other_zones() {
    let apia = daily(utc("2011-12-28", "2012-01-02").in_zone("Pacific/Apia"));
    let days = daily(utc("2011-12-28", "2012-01-02"));
    // Apia's 29th ended when UTC was at 10 o'clock of the 30th.
    let pair = Pair::new(&MappingDef::Time, &apia, &days);
    assert_eq!(pair.reads_only("2011-12-29"), "2011-12-29 2011-12-30");
    assert_eq!(pair.reads_only("2011-12-31"), "2011-12-30 2011-12-31");
    assert_eq!(pair.read_by("2011-12-30"), "2011-12-29 2011-12-31");
    let before = Pair::new(&window(-1, -1), &apia, &apia);
    assert_eq!(before.reads_only("2011-12-31"), "2011-12-29");
}

#[test]
fn grains_overlap_in_both_directions_and_across_zones() {
    let days = daily(utc("2013-01-01", "2013-12-31"));
    let months = monthly(utc("2013-01-01", "2013-12-31"));
    let weeks = weekly(utc("2013-01-01", "2013-12-31"));
    let pair = Pair::new(&MappingDef::Time, &months, &days);
    assert_eq!(pair.reads_only("2013-02"), "2013-02-01 to 2013-02-28 (28)");
    assert_eq!(pair.read_by("2013-02-28..2013-03-01"), "2013-02-01 2013-03-01");
    let pair = Pair::new(&MappingDef::Time, &weeks, &months);
    assert_eq!(pair.reads_only("2013-01-28"), "2013-01-01 2013-02-01");
    assert_eq!(pair.reads_only("2013-01-07"), "2013-01-01");
    let tokyo = daily(utc("2013-01-01", "2013-12-31").in_zone("Asia/Tokyo"));
    let pair = Pair::new(&MappingDef::Time, &days, &tokyo);
    assert_eq!(pair.reads_only("2013-01-15"), "2013-01-15 2013-01-16");
    assert_eq!(pair.read_by("2013-01-15"), "2013-01-14 2013-01-15");
}

#[test]
fn overlaps_are_clipped_later_or_nowhere() {
    let months = monthly(utc("2013-01-01", "2013-12-31"));
    let days = daily(utc("2013-03-15", "2013-06-10"));
    let pair = Pair::new(&MappingDef::Time, &months, &days);
    assert_eq!(pair.reads_only("2013-03"), "2013-03-15 to 2013-03-31 (17)");
    let (read, missing) = pair.reads("2013-02..2013-03", FOREVER);
    assert_eq!(read, "2013-03-15 to 2013-03-31 (17)");
    let apart = "no partition is at that time: the first is 2013-03-15, the last 2013-06-10";
    assert_eq!(missing, [format!("no partition 2013-02-01: {apart}")]);
    // Of days without an end it is not said when the calendar ends.
    let open = Pair::new(&MappingDef::Time, &months, &daily(Span::new("2013-03-15")));
    let apart_of_open = "no partition 2013-02-01: no partition is at that time: the first is 2013-03-15";
    assert_eq!(open.reads("2013-02", FOREVER).1, [apart_of_open]);
    assert_eq!(pair.reads("2013-07", FOREVER).1, [format!("no partition 2013-07-01: {apart}")]);
    let (read, missing) = pair.reads("2013-04", time("2013-04-29T00:00:00Z"));
    assert_eq!(read, "2013-04-01 to 2013-04-28 (28)");
    assert_eq!(missing.len(), 2);
}

#[test]
fn missing_keys_are_named_up_to_ten_and_counted_beyond() {
    let days = daily(utc("2013-01-01", "2013-12-31"));
    let pair = Pair::new(&MappingDef::Same, &days, &daily(utc("2013-07-01", "2013-12-31")));
    let mapped = pair.mapping.upstream(&pair.down.all(FOREVER), FOREVER);
    assert_eq!(mapped.missing.len(), 10);
    assert_eq!(mapped.missing[9].key, "2013-01-10");
    assert_eq!(mapped.more_missing, 171);
    assert_eq!(mapped.set.len(), 184);
}

#[test]
fn all_last_and_specific_ignore_who_reads_them() {
    let days = daily(utc("2013-01-01", "2013-01-10"));
    let regions = keys(&["eu", "us"]);
    let pair = Pair::new(&MappingDef::All, &regions, &days);
    assert_eq!(pair.reads_only("eu"), "2013-01-01 to 2013-01-10 (10)");
    assert_eq!(pair.read_by("2013-01-03"), "eu us");
    let pair = Pair::new(&MappingDef::Last, &regions, &days);
    assert_eq!(pair.reads_only("eu"), "2013-01-10");
    assert_eq!(pair.read_by("2013-01-09"), "none");
    assert_eq!(pair.read_by("2013-01-10"), "eu us");
    assert_eq!(pair.reads("eu", time("2013-01-03T00:00:00Z")).0, "2013-01-02");
    let (read, missing) = pair.reads("eu", time("2013-01-01T00:00:00Z"));
    assert_eq!(read, "none");
    assert_eq!(missing, ["no partition 2013-01-01: it is not a partition yet; the latest is none"]);
    let specific = MappingDef::Specific { keys: vec!["2013-01-02".into(), "date=d:2013-01-05".into()] };
    let pair = Pair::new(&specific, &regions, &days);
    assert_eq!(pair.reads_only("us"), "2013-01-02 2013-01-05");
    assert_eq!(pair.read_by("2013-01-03..2013-01-04"), "none");
    assert_eq!(pair.read_by("2013-01-03..2013-01-05"), "eu us");
    let last = Pair::new(&MappingDef::Last, &regions, &dynamic("customers"));
    assert_eq!(last.reads("eu", FOREVER).1, ["no partition last: partition has no keys yet"]);
}

#[test]
fn assets_without_partitions_have_one() {
    let days = valid(&daily(utc("2013-01-01", "2013-01-10")));
    let one = PartitionSet::unpartitioned();
    for (down, up) in [(None, None), (None, Some(&days)), (Some(&days), None)] {
        let mapping = MappingDef::inferred(down, up).unwrap().between(down, up).unwrap();
        let all = |side: Option<&Partitions>| side.map_or(one.clone(), |side| side.all(FOREVER));
        assert_eq!(mapping.upstream(&all(down), FOREVER).set, all(up));
        assert_eq!(mapping.downstream(&all(up), FOREVER).set, all(down));
        assert!(mapping.upstream(&PartitionSet::EMPTY, FOREVER).set.is_empty());
    }
}

#[test]
fn keys_are_mapped_by_key_where_orders_differ() {
    let pair = Pair::new(&MappingDef::Same, &keys(&["eu", "us", "uk"]), &keys(&["us", "asia", "eu"]));
    assert_eq!(pair.reads_only("eu..us"), "us eu");
    assert_eq!(pair.read_by("asia"), "none");
    let (read, missing) = pair.reads("uk", FOREVER);
    assert_eq!(read, "none");
    assert_eq!(missing, ["no partition uk: \"uk\" is not one of the 3 keys of partition"]);
}

#[test]
fn a_map_of_keys_is_read_both_ways() {
    let map = BTreeMap::from([
        ("emea".to_owned(), vec!["eu".to_owned(), "uk".to_owned()]),
        ("amer".to_owned(), vec!["us".to_owned()]),
    ]);
    let areas = keys(&["amer", "apac", "emea"]);
    let pair = Pair::new(&MappingDef::Static { map: map.clone() }, &areas, &keys(&["us", "eu", "uk"]));
    assert_eq!(pair.reads_only("emea"), "eu uk");
    assert_eq!(pair.reads_only("apac"), "none");
    assert_eq!(pair.read_by("uk"), "emea");
    assert_eq!(pair.read_by("us..eu"), "amer emea");
    let pair = Pair::new(&MappingDef::Static { map }, &areas, &dynamic("countries"));
    let (read, missing) = pair.reads("amer", FOREVER);
    assert_eq!(read, "none");
    assert_eq!(missing, ["no partition us: \"us\" is not one of the 0 keys of partition"]);
}

#[test]
fn dynamic_keys_are_those_of_the_moment() {
    let down = valid(&dynamic("customers"));
    let mapping = MappingDef::Same.between(Some(&down), Some(&valid(&keys(&["zeta", "acme"])))).unwrap();
    let known = BTreeMap::from([("customers".to_owned(), vec!["acme".to_owned(), "new".to_owned()])]);
    let now = PartitionContext::new(FOREVER, &known);
    let mapped = mapping.upstream(&down.all(now), now);
    assert_eq!(mapped.set, PartitionSet::one(&[1]));
    assert_eq!(mapped.missing.len(), 1);
    assert!(matches!(&mapped.missing[0].reason, Reason::Unlisted { value, .. } if value == "new"));
    let own = window(-1, 0).between(Some(&down), Some(&down)).unwrap();
    assert_eq!(own.upstream(&PartitionSet::one(&[1]), now).set, down.all(now));
}

fn cube() -> PartitionsDef {
    multi(&[("date", daily(utc("2013-01-01", "2013-01-31"))), ("region", keys(&["eu", "us"]))])
}

#[test]
fn several_dimensions_map_each_by_itself() {
    let pair = Pair::new(&MappingDef::Same, &cube(), &cube());
    assert_eq!(pair.reads_only("date=2013-01-02,region=us"), "date=2013-01-02,region=us");
    let pair = Pair::new(&dims(&[("date", None, Some(window(-1, 0)))]), &cube(), &cube());
    assert_eq!(
        pair.reads_only("date=2013-01-02,region=us"),
        "date=2013-01-01,region=us date=2013-01-02,region=us"
    );
    let days = daily(utc("2013-01-01", "2013-01-31"));
    let pair = Pair::new(&dims(&[]), &days, &cube());
    assert_eq!(pair.reads_only("2013-01-02"), "date=2013-01-02,region=eu date=2013-01-02,region=us");
    assert_eq!(pair.read_by("region=us"), "2013-01-01 to 2013-01-31 (31)");
    let pair = Pair::new(&dims(&[]), &cube(), &days);
    assert_eq!(pair.reads_only("region=us"), "2013-01-01 to 2013-01-31 (31)");
    assert_eq!(pair.read_by("2013-01-02"), "date=2013-01-02,region=eu date=2013-01-02,region=us");
    let hours = hourly(utc("2013-01-01T00:00", "2013-01-31T23:00"));
    let pair = Pair::new(&dims(&[("date", Some("hour"), Some(MappingDef::Time))]), &hours, &cube());
    assert_eq!(pair.reads_only("2013-01-02T05"), "date=2013-01-02,region=eu date=2013-01-02,region=us");
    let pair = Pair::new(&MappingDef::Last, &days, &cube());
    assert_eq!(pair.reads_only("2013-01-02"), "date=2013-01-31,region=us");
    let some = MappingDef::Specific { keys: vec!["region=eu".into(), "date=2013-01-31,region=us".into()] };
    let pair = Pair::new(&some, &days, &cube());
    assert_eq!(pair.reads_only("2013-01-02"), "date=2013-01-01,region=eu to date=2013-01-31,region=us (32)");
    assert_eq!(pair.read_by("date=2013-01-30,region=us"), "none");
}

#[test]
fn what_is_missing_along_one_dimension_is_named_once() {
    let pair = Pair::new(&dims(&[("date", None, Some(window(0, 1)))]), &cube(), &cube());
    let (read, missing) = pair.reads("date=2013-01-02", time("2013-01-03T00:00:00Z"));
    assert_eq!(read, "date=2013-01-02,region=eu date=2013-01-02,region=us");
    assert_eq!(
        missing,
        ["no partition date=2013-01-03: it is not a partition yet; the latest is 2013-01-02"]
    );
}

#[test]
fn two_dimensions_that_follow_from_one_are_a_diagonal() {
    let days = daily(utc("2013-01-01", "2013-01-31"));
    let both = multi(&[("made", days.clone()), ("of", days.clone())]);
    let mapping = dims(&[("made", Some("date"), None), ("of", Some("date"), Some(window(-1, 0)))]);
    let pair = Pair::new(&mapping, &days, &both);
    let set = pair.down.parse_range("2013-01-01..2013-01-03", FOREVER).unwrap();
    let read = pair.mapping.upstream(&set, FOREVER).set;
    assert_eq!(read, [[0..1, 0..1], [1..2, 0..2], [2..3, 1..3]].into_iter().map(Block::new).collect());
    assert_eq!(pair.read_by("made=2013-01-02,of=2013-01-01"), "2013-01-02");
    assert_eq!(pair.read_by("made=2013-01-01,of=2013-01-02"), "none");
}
