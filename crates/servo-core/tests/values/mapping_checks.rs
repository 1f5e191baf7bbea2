//! Mappings that follow by themselves, those that are refused, and their JSON.

use std::collections::BTreeMap;

use servo_core::partitions::{MappingDef, Span};
use servo_core::{PartitionsDef, to_canonical_string};

use crate::support::declared::{
    daily, dims, dynamic, hourly, keys, monthly, multi, utc, valid, weekly, window,
};

fn cube() -> PartitionsDef {
    multi(&[("date", daily(utc("2013-01-01", "2013-01-31"))), ("region", keys(&["eu", "us"]))])
}

#[test]
fn only_what_can_be_meant_in_one_way_is_inferred() {
    let days = daily(utc("2013-01-01", "2013-12-31"));
    let later = daily(Span::new("2015-01-01"));
    let same = [
        (days.clone(), later),
        (keys(&["a", "b"]), keys(&["b", "a"])),
        (dynamic("x"), dynamic("x")),
        (cube(), cube()),
        (hourly(Span::new("2013-01-01T00:00")), hourly(Span::new("2014-01-01T05:00").in_zone("Asia/Tokyo"))),
    ];
    for (down, up) in &same {
        let inferred = MappingDef::inferred(Some(&valid(down)), Some(&valid(up)));
        assert_eq!(inferred, Ok(MappingDef::Same), "{down:?} {up:?}");
    }
    let tokyo = daily(Span::new("2013-01-01").in_zone("Asia/Tokyo"));
    let sundays = PartitionsDef::Weekly { weekday: 7, span: Span::new("2013-01-01") };
    let by_day = multi(&[("day", days.clone()), ("region", keys(&["eu", "us"]))]);
    for (down, up, says) in [
        (days.clone(), hourly(Span::new("2013-01-01T00:00")), "servo.time_grain()"),
        (days.clone(), tokyo, "servo.time_grain()"),
        (weekly(Span::new("2013-01-01")), sundays, "servo.time_grain()"),
        (keys(&["a"]), keys(&["a", "b"]), "servo.same() for those with the same key"),
        (keys(&["a"]), dynamic("x"), "servo.same() for those with the same key"),
        (days.clone(), keys(&["a"]), "servo.all_partitions(), or servo.last()"),
        (cube(), days.clone(), "servo.per_dimension({\"date\": servo.same()})"),
        (
            days.clone(),
            cube(),
            "servo.per_dimension({\"date\": servo.same(), \"region\": servo.all_partitions()})",
        ),
        (days.clone(), by_day, "{\"day\": servo.dimension(\"date\", servo.same()), \"region\": "),
        (
            monthly(Span::new("2013-01-01")),
            cube(),
            "{\"date\": servo.dimension(\"month\", servo.time_grain()), ",
        ),
    ] {
        let error = MappingDef::inferred(Some(&valid(&down)), Some(&valid(&up))).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    let hours = hourly(Span::new("2013-01-01T00:00"));
    let error = MappingDef::inferred(Some(&valid(&days)), Some(&valid(&hours))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the asset has daily in UTC partitions, the asset it depends on has hourly partitions; which belong \
         together is not clear from that: say it with mapping=servo.time_grain() for those that overlap in time, \
         or servo.all_partitions()"
    );
}

#[test]
fn mappings_that_make_no_sense_are_refused() {
    let days = daily(utc("2013-01-01", "2013-12-31"));
    let hours = hourly(utc("2013-01-01T00:00", "2013-12-31T23:00"));
    let half = hourly(utc("2013-05-01T00:00", "2013-12-31T23:00").in_zone("Asia/Kolkata"));
    let regions = keys(&["eu-west", "us-east"]);
    let map = |key: &str, read: &str| MappingDef::Static {
        map: BTreeMap::from([(key.to_owned(), vec![read.to_owned()])]),
    };
    let specific = |key: &str| MappingDef::Specific { keys: vec![key.to_owned()] };
    let refused = [
        (window(0, -1), &days, &days, "from: 0 is after to, -1; swap them"),
        (
            window(-1, 0),
            &days,
            &hours,
            "kind: hour is daily in UTC, and hourly in the asset depended on; write servo.time_grain()",
        ),
        (
            MappingDef::Same,
            &days,
            &hours,
            "kind: hour is daily in UTC, and hourly in the asset depended on; write",
        ),
        (MappingDef::Same, &days, &cube(), "kind: no keys are the same: the asset has the dimensions date, "),
        (
            MappingDef::Same,
            &hours,
            &half,
            "kind: hour is hourly on both sides, but starts at other minutes; write",
        ),
        (
            window(-1, 0),
            &cube(),
            &cube(),
            "kind: there are several dimensions; say which, as in servo.per_dimension({\"date\": servo.window(-1, 0)})",
        ),
        (
            MappingDef::Time,
            &days,
            &regions,
            "kind: both need windows of time: daily in UTC and 2 static do not overlap",
        ),
        (
            map("eu-wst", "eu-west"),
            &regions,
            &regions,
            "map.eu-wst: of the asset itself, \"eu-wst\" is not one of the 2 keys of partition; did you mean \"eu-west\"?",
        ),
        (
            map("eu-west", "us-eats"),
            &regions,
            &regions,
            "map.eu-west[0]: of the asset depended on, \"us-eats\" is not one of the 2 keys of partition; did you mean \"us-east\"?",
        ),
        (
            map("a", "b"),
            &days,
            &regions,
            "kind: keys are of static and dynamic partitions; these are daily in UTC",
        ),
        (
            specific("2013-1-1"),
            &regions,
            &days,
            "keys[0]: no partition 2013-1-1: found '-', expected a digit; keys look like 2013-01-01",
        ),
        (
            specific("2014-01-01"),
            &regions,
            &days,
            "keys[0]: no partition 2014-01-01: the last partition is 2013-12-31",
        ),
        (MappingDef::Specific { keys: Vec::new() }, &days, &days, "keys: there are none"),
        (
            dims(&[("dte", None, None)]),
            &days,
            &days,
            "dims.dte: is no dimension of the asset depended on, which has date",
        ),
        (
            dims(&[("date", Some("day"), None)]),
            &days,
            &days,
            "dims.date.from: \"day\" is no dimension of the asset itself, which has date",
        ),
        (
            dims(&[("region", None, None)]),
            &days,
            &cube(),
            "dims.region.mapping.kind: the asset itself has no dimension region",
        ),
        (
            dims(&[("date", None, Some(dims(&[])))]),
            &days,
            &days,
            "dims.date.mapping.kind: a dimension has no dimensions",
        ),
        (
            dims(&[("date", None, Some(specific("2013-01-01T05")))]),
            &days,
            &days,
            "dims.date.mapping.keys[0]: no partition 2013-01-01T05: found 'T', expected the end of the value; keys look like 2013-01-01",
        ),
        (MappingDef::Same, &keys(&["a"]), &keys(&["b"]), "kind: no key of partition is on both sides"),
        (
            window(-1, 0),
            &keys(&["a", "b"]),
            &keys(&["b", "a"]),
            "kind: a window of partition needs the same keys in the same order",
        ),
    ];
    for (mapping, down, up, says) in refused {
        let problems = mapping.between(Some(&valid(down)), Some(&valid(up))).unwrap_err();
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].starts_with(says), "{}\n{says}", shown[0]);
    }
    let problems = window(-1, 0).between(Some(&valid(&days)), None).unwrap_err();
    assert!(
        problems.to_string().starts_with("invalid mapping: kind: the asset depended on has no partitions")
    );
    let problems = MappingDef::Same.between(None, Some(&valid(&days))).unwrap_err();
    assert!(problems.to_string().contains("the asset itself has no partitions"), "{problems}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let mapping = dims(&[
        ("dates", None, None),
        ("date", None, Some(window(1, -1))),
        ("region", Some("regions"), Some(MappingDef::Last)),
    ]);
    let problems = mapping.between(Some(&valid(&cube())), Some(&valid(&cube()))).unwrap_err();
    let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["dims.dates", "dims.date.mapping.from", "dims.region.from"]);
}

#[test]
fn mappings_have_one_json_text() {
    for text in [
        r#"{"kind":"same"}"#,
        r#"{"kind":"all"}"#,
        r#"{"kind":"last"}"#,
        r#"{"from":-6,"kind":"window","to":0}"#,
        r#"{"keys":["2013-01-01"],"kind":"specific"}"#,
        r#"{"kind":"static","map":{"emea":["eu","uk"]}}"#,
        r#"{"kind":"time"}"#,
        r#"{"dims":{"date":{"from":"day","mapping":{"from":-6,"kind":"window","to":0}},"region":{}},"kind":"dims"}"#,
    ] {
        let def: MappingDef = serde_json::from_str(text).unwrap();
        assert_eq!(to_canonical_string(&def).unwrap(), text);
    }
    for bad in [
        r#"{"kind":"window","from":-6}"#,
        r#"{"kind":"window","from":-6,"to":0,"step":2}"#,
        r#"{"kind":"dims","dims":{"date":{"of":"day"}}}"#,
        r#"{"kind":"next"}"#,
        r#"{"kind":"same","from":1}"#,
    ] {
        assert!(serde_json::from_str::<MappingDef>(bad).is_err(), "{bad}");
    }
}
