//! Keys and ranges as people type them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use servo_core::partitions::{Block, PartitionContext, PartitionSet, Partitions, Span};
use servo_core::{PartitionKey, PartitionValue, PartitionsDef, Timestamp};

const FOREVER: Timestamp = Timestamp::MAX;

fn valid(def: &PartitionsDef) -> Partitions {
    def.validate().unwrap_or_else(|problems| panic!("{problems}"))
}

fn days() -> Partitions {
    valid(&PartitionsDef::Daily { span: Span::new("2013-01-01").until("2013-12-31") })
}

fn months(day: u8) -> Partitions {
    valid(&PartitionsDef::Monthly { day, span: Span::new("2013-01-01").until("2013-12-31") })
}

fn hours(zone: &str) -> Partitions {
    let span = Span::new("2013-01-01T00:00").until("2013-12-31T23:00").in_zone(zone);
    valid(&PartitionsDef::Hourly { span })
}

fn listed(keys: &[&str]) -> PartitionsDef {
    PartitionsDef::Static { keys: keys.iter().map(|key| (*key).to_owned()).collect() }
}

fn cube() -> Partitions {
    let date = PartitionsDef::Daily { span: Span::new("2013-01-01").until("2013-01-31") };
    let dims = [("date", date), ("region", listed(&["eu", "us-east", "us, west"]))];
    valid(&PartitionsDef::Multi {
        dims: dims.into_iter().map(|(name, def)| (name.to_owned(), def)).collect(),
    })
}

fn canonical(partitions: &Partitions, text: &str) -> String {
    let read = partitions.parse_key(text).unwrap_or_else(|error| panic!("{error}"));
    read.key().expect("every dimension was given").canonical().to_owned()
}

fn refused(partitions: &Partitions, text: &str) -> String {
    partitions.parse_key(text).unwrap_err().to_string()
}

#[test]
fn dates_are_written_in_short_or_in_full() {
    for text in ["2013-01-15", " 2013-01-15 ", "date=2013-01-15", "date=d:2013-01-15", "\"2013-01-15\""] {
        assert_eq!(canonical(&days(), text), "date=d:2013-01-15", "{text}");
    }
    for (day, text, start) in [
        (1, "2013-02", "2013-02-01"),
        (1, "2013-02-01", "2013-02-01"),
        (15, "2013-02", "2013-02-15"),
        (15, "month=2013-12", "2013-12-15"),
    ] {
        assert_eq!(canonical(&months(day), text), format!("month=d:{start}"));
    }
}

#[test]
fn hours_are_read_by_the_clock_of_their_zone() {
    for text in [
        "2013-07-15T05",
        "2013-07-15T05:00",
        "2013-07-15T05:00:00",
        "2013-07-15 05:00",
        "2013-07-15T03:00Z",
        "2013-07-15T03:00:00Z",
        "2013-07-15T03:00:00.000Z",
        "2013-07-15T05:00+02:00",
        "2013-07-14T22:00:00-05:00",
        "hour=2013-07-15T05",
        "hour=t:2013-07-15T03:00:00.000000Z",
    ] {
        let read = canonical(&hours("Europe/Amsterdam"), text);
        assert_eq!(read, "hour=t:2013-07-15T03:00:00.000000Z", "{text}");
    }
}

#[test]
fn ticks_are_read_by_the_clock_of_their_zone() {
    let span = Span::new("2013-01-01T00:00").in_zone("Europe/Amsterdam");
    let ticks = valid(&PartitionsDef::Cron { cron: "30 6 * * 1-5".to_owned(), span });
    for text in ["2013-07-15T06:30", "tick=2013-07-15T04:30:00Z"] {
        assert_eq!(canonical(&ticks, text), "tick=t:2013-07-15T04:30:00.000000Z");
    }
    let around = "no partition starts there; the one around it is 2013-07-12T04:30:00Z";
    assert_eq!(refused(&ticks, "2013-07-14T06:30"), format!("no partition 2013-07-14T06:30: {around}"));
}

#[test]
fn times_that_clocks_skip_or_repeat_are_refused() {
    let hours = hours("Europe/Amsterdam");
    assert_eq!(
        refused(&hours, "2013-03-31T02"),
        "no partition 2013-03-31T02: that time did not exist in Europe/Amsterdam; keys look like 2012-12-31T23:00:00Z"
    );
    assert_eq!(
        refused(&hours, "2013-10-27T02:00"),
        "no partition 2013-10-27T02:00: that time happened twice in Europe/Amsterdam, at 2013-10-27T00:00:00Z and \
         2013-10-27T01:00:00Z; keys look like 2012-12-31T23:00:00Z"
    );
    assert_eq!(canonical(&hours, "2013-10-27T02:00+01:00"), "hour=t:2013-10-27T01:00:00.000000Z");
}

#[test]
fn listed_keys_are_written_bare_or_quoted() {
    let regions = valid(&listed(&["us-east", "a,b", "007", "say \"hi\"", "s:YQ", "north sea", "a..b"]));
    for (text, key) in [
        ("us-east", "us-east"),
        ("\"us-east\"", "us-east"),
        ("partition=us-east", "us-east"),
        ("partition=s:dXMtZWFzdA", "us-east"),
        ("\"a,b\"", "a,b"),
        ("007", "007"),
        ("\"say \\\"hi\\\"\"", "say \"hi\""),
        ("s:YQ", "s:YQ"),
        ("north sea", "north sea"),
        ("a..b", "a..b"),
    ] {
        let expected = PartitionKey::single("partition", PartitionValue::Str(key.to_owned())).unwrap();
        assert_eq!(canonical(&regions, text), expected.canonical(), "{text}");
    }
    let customers = valid(&PartitionsDef::Dynamic { name: "customers".to_owned() });
    assert_eq!(canonical(&customers, "acme"), "partition=s:YWNtZQ");
    let read = customers.parse_key("acme").unwrap();
    assert_eq!(
        read.set(FOREVER).unwrap_err().to_string(),
        "no partition acme: \"acme\" was not added to customers; \"servo partition add customers acme\" does"
    );
    let known = BTreeMap::from([("customers".to_owned(), vec!["acme".to_owned()])]);
    assert_eq!(read.set(PartitionContext::new(FOREVER, &known)).unwrap(), PartitionSet::one(&[0]));
}

#[test]
fn dimensions_that_are_left_out_mean_all() {
    let cube = cube();
    let full = "date=2013-01-15,region=us-east";
    assert_eq!(canonical(&cube, full), "date=d:2013-01-15,region=s:dXMtZWFzdA");
    assert_eq!(canonical(&cube, "region=us-east, date=2013-01-15"), canonical(&cube, full));
    assert_eq!(canonical(&cube, &canonical(&cube, full)), canonical(&cube, full));
    assert_eq!(cube.parse_key(full).unwrap().set(FOREVER).unwrap(), PartitionSet::one(&[14, 1]));
    let partial = cube.parse_key("region=\"us, west\"").unwrap();
    assert_eq!(partial.key(), None);
    assert_eq!(partial.values().keys().collect::<Vec<_>>(), ["region"]);
    assert_eq!(partial.set(FOREVER).unwrap().len(), 31);
    let early = "2013-01-03T00:00:00Z".parse::<Timestamp>().unwrap();
    assert_eq!(partial.set(early).unwrap().len(), 2);
}

#[test]
fn refusals_say_what_is_wrong_and_what_keys_look_like() {
    let regions = valid(&listed(&["eu-west", "us-east"]));
    let (days, cube, hours) = (days(), cube(), hours("UTC"));
    for (partitions, text, says) in [
        (&days, "2013-1-5", "found '-', expected a digit; keys look like 2013-01-01"),
        (&days, "", "a value is missing; keys look like 2013-01-01"),
        (&days, "2013-02", "28 partitions start in 2013-02; keys look like 2013-01-01"),
        (&days, "2013-02-30", "day 30 is not between 1 and 28; keys look like 2013-01-01"),
        (&days, "2014-01-01", "the last partition is 2013-12-31"),
        (&days, "day=2013-01-01", "the dimensions of these partitions are date"),
        (&days, "date=2013-01-01,date=2013-01-02", "date is given twice; keys look like 2013-01-01"),
        (&days, "t:2013-01-01T00:00:00.000000Z", "date is a date, d:YYYY-MM-DD"),
        (&months(15), "2013-01-20", "no partition starts there; the one around it is 2013-01-15"),
        (&hours, "2013-01-01", "a time of the day is missing; keys look like 2013-01-01T00:00:00Z"),
        (&hours, "2013-01-01T5", "\"5\" is not a time of the day; keys look like 2013-01-01T00:00:00Z"),
        (&hours, "2013-01-01T25", "hour 25 is not between 0 and 23; keys look like 2013-01-01T00:00:00Z"),
        (&hours, "2013-01-01T05:30", "no partition starts there; the one around it is 2013-01-01T05:00:00Z"),
        (
            &hours,
            "2013-01-01T05+1",
            "\"+1\" is not an offset such as +01:00; keys look like 2013-01-01T00:00:00Z",
        ),
        (&regions, "us-eats", "\"us-eats\" is not one of the 2 keys of partition; did you mean \"us-east\"?"),
        (&regions, "\"us-east", "a quote is not closed; keys look like eu-west or us-east"),
        (&regions, "us-east,", "a value is missing; keys look like eu-west or us-east"),
        (&regions, "partition=", "partition= has no value; keys look like eu-west or us-east"),
        (
            &regions,
            "a=b=c",
            "a value with punctuation needs quotes around the whole of it; keys look like eu-west or us-east",
        ),
        (&cube, "asia", "\"asia\" could be of any dimension; keys look like date=2013-01-01,region=eu"),
        (&cube, "region=eu,week=2013-01-01", "the dimensions of these partitions are date, region"),
    ] {
        assert_eq!(refused(partitions, text), format!("no partition {text}: {says}"));
    }
    assert!(refused(&days, &"x".repeat(10_000)).len() < 200);
}

#[test]
fn ranges_include_both_ends_and_may_be_open() {
    let early = "2013-01-11T00:00:00Z".parse::<Timestamp>().unwrap();
    for (text, range) in [
        ("2013-01-03..2013-01-05", 2..5),
        ("2013-01-03 .. 2013-01-05", 2..5),
        ("date=2013-01-03..date=2013-01-05", 2..5),
        ("date=2013-01-03..2013-01-05", 2..5),
        ("date=d:2013-01-03..date=d:2013-01-05", 2..5),
        ("2013-01-03..", 2..10),
        ("..2013-01-05", 0..5),
        ("..date=2013-01-05", 0..5),
        ("2013-01-03..2013-01-03", 2..3),
        ("2013-01-03", 2..3),
        ("..", 0..10),
        ("2013-01", 0..10),
        ("2012-12-31..2013-01-02", 0..2),
        ("2013-01-05..2013-01-11", 4..10),
        ("2013-01-05T07..2013-01-06T23:59", 4..6),
    ] {
        let set = days().parse_range(text, early).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(set, Block::from(range).into(), "{text}");
    }
    for (text, says) in [
        ("2013-01-05..2013-01-03", "2013-01-03: the range starts after it, at 2013-01-05"),
        ("2013-01-11..2013-01-12", "2013-01-11: it is not a partition yet; the latest is 2013-01-10"),
        ("2012-12-01..2012-12-31", "2012-12-31: the first partition is 2013-01-01"),
        ("2014-01-01..", "2014-01-01: the last partition is 2013-12-31"),
        ("date=2013-01-05..date=2013-01-03", "2013-01-03: the range starts after it, at 2013-01-05"),
        ("a..b..c", "a..b..c: that is not a range A..B; keys look like 2013-01-01"),
    ] {
        let error = days().parse_range(text, early).unwrap_err();
        assert_eq!(error.to_string(), format!("no partition {says}"));
    }
    let regions = valid(&listed(&["eu", "us", "asia"]));
    assert_eq!(regions.parse_range("us..asia", FOREVER).unwrap().len(), 2);
}

#[test]
fn partitions_are_named_by_what_lies_in_them_and_by_what_they_lie_in() {
    let weeks =
        valid(&PartitionsDef::Weekly { weekday: 1, span: Span::new("2013-01-01").until("2013-12-31") });
    let span = Span::new("2013-01-01T00:00").until("2013-12-31T00:00").in_zone("Europe/Amsterdam");
    let quarters = valid(&PartitionsDef::Cron { cron: "*/15 * * * *".to_owned(), span: span.clone() });
    let mornings = valid(&PartitionsDef::Cron { cron: "0 6 * * *".to_owned(), span });
    let amsterdam = hours("Europe/Amsterdam");
    for (partitions, text, first, count) in [
        (&amsterdam, "2013-01-15", "2013-01-14T23:00:00Z", 24),
        (&amsterdam, "2013-03-31", "2013-03-30T23:00:00Z", 23),
        (&amsterdam, "2013-10-27", "2013-10-26T22:00:00Z", 25),
        (&amsterdam, "2013-02", "2013-01-31T23:00:00Z", 28 * 24),
        (&amsterdam, "2013-01-15T05:20", "2013-01-15T04:00:00Z", 1),
        (&amsterdam, "hour=2013-01-15T05:20:30Z", "2013-01-15T05:00:00Z", 1),
        (&quarters, "2013-01-15T05", "2013-01-15T04:00:00Z", 4),
        (&quarters, "2013-01-15T05:07", "2013-01-15T04:00:00Z", 1),
        (&mornings, "2013-01-15", "2013-01-15T05:00:00Z", 1),
        (&mornings, "2013-01", "2013-01-01T05:00:00Z", 31),
        (&mornings, "2013-01-15T03:00", "2013-01-14T05:00:00Z", 1),
        (&weeks, "2013-01-10", "2013-01-07", 1),
        (&weeks, "2013-04", "2013-04-01", 5),
        (&months(1), "2013-03-15", "2013-03-01", 1),
        (&months(15), "2013-03", "2013-03-15", 1),
        (&months(15), "2013-03-14", "2013-02-15", 1),
        (&days(), "2013-03-15T07:30:00Z", "2013-03-15", 1),
        (&days(), "date=d:2013-03-15", "2013-03-15", 1),
    ] {
        let set = partitions.parse_named(text, FOREVER).unwrap_or_else(|error| panic!("{error}"));
        let keys: Vec<_> = partitions.keys_in(&set, FOREVER).collect();
        let value = keys[0].iter().next().unwrap().1.to_string();
        assert_eq!((value.as_str(), keys.len()), (first, count), "{text}");
        assert_eq!(partitions.parse_range(text, FOREVER).unwrap(), set, "{text}");
    }
    for (partitions, text, says) in [
        (&weeks, "week=d:2013-01-10", "no partition starts there; the one around it is 2013-01-07"),
        (&weeks, "2012-12-20", "the first partition is 2013-01-07"),
        (&days(), "2014-01", "the last partition is 2013-12-31"),
        (
            &amsterdam,
            "2013-03-31T02",
            "that time did not exist in Europe/Amsterdam; keys look like 2012-12-31T23:00:00Z",
        ),
        (&days(), "yesterday", "found 'y', expected a digit; keys look like 2013-01-01"),
    ] {
        let error = partitions.parse_named(text, FOREVER).unwrap_err();
        // Of one dimension the value says enough.
        let shown = text.strip_prefix("week=").unwrap_or(text);
        assert_eq!(error.to_string(), format!("no partition {shown}: {says}"));
    }
    let noon = "2013-01-15T12:00:00Z".parse::<Timestamp>().unwrap();
    assert_eq!(hours("UTC").parse_named("2013-01-15", noon).unwrap().len(), 12, "those that exist");
    for (text, count) in [("date=2013-01,region=eu", 31), ("2013-01-15", 3), ("eu", 31), ("2013-01-15,eu", 1)]
    {
        assert_eq!(cube().parse_named(text, FOREVER).unwrap().len(), count, "{text}");
    }
    assert_eq!(cube().parse_range("2013-01-30..", FOREVER).unwrap().len(), 6);
}

#[test]
fn a_day_that_a_zone_skipped_names_only_what_it_begins() {
    let span = Span::new("2011-01-01").until("2012-12-31").in_zone("Pacific/Apia");
    let days = valid(&PartitionsDef::Daily { span: span.clone() });
    let error = days.parse_named("2011-12-30", FOREVER).unwrap_err();
    assert_eq!(error.to_string(), "no partition 2011-12-30: that day did not exist in Pacific/Apia");
    let weeks = valid(&PartitionsDef::Weekly { weekday: 5, span });
    assert_eq!(
        weeks.parse_named("2011-12-30", FOREVER).unwrap(),
        weeks.parse_named("2012-01-02", FOREVER).unwrap()
    );
}

#[test]
fn ranges_of_several_dimensions_are_blocks() {
    for (text, ranges) in [
        ("date=2013-01-03..2013-01-05,region=us-east", [2..5, 1..2]),
        ("region=us-east,date=2013-01-03..", [2..31, 1..2]),
        ("date=2013-01-03,region=eu..date=2013-01-05,region=us-east", [2..5, 0..2]),
        ("date=2013-01-03..date=2013-01-05", [2..5, 0..3]),
        ("date=..2013-01-05,region=us-east..\"us, west\"", [0..5, 1..3]),
        ("region=eu", [0..31, 0..1]),
    ] {
        let set = cube().parse_range(text, FOREVER).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(set, Block::new(ranges).into(), "{text}");
    }
}

fn any_def() -> impl Strategy<Value = PartitionsDef> {
    let zone =
        prop_oneof![Just("UTC"), Just("Europe/Amsterdam"), Just("Asia/Kathmandu"), Just("Pacific/Apia")];
    let texts = proptest::collection::btree_set("[ -~é\n]{1,6}", 1..6);
    prop_oneof![
        (0..4u8, zone).prop_map(|(kind, zone)| {
            let span = Span::new("2011-12-01").until("2012-12-31").in_zone(zone);
            match kind {
                0 => PartitionsDef::Hourly {
                    span: Span::new("2011-12-01T00:00").until("2012-12-31T23:00").in_zone(zone),
                },
                1 => PartitionsDef::Daily { span },
                2 => PartitionsDef::Weekly { weekday: 7, span },
                _ => PartitionsDef::Monthly { day: 28, span },
            }
        }),
        texts.prop_map(|keys| PartitionsDef::Static { keys: keys.into_iter().collect() }),
        Just(PartitionsDef::Static {
            keys: ["s:YWJj", "abc", "..", "=", "true", " a "].map(str::to_owned).into()
        }),
        Just(PartitionsDef::Dynamic { name: "things".to_owned() }),
        Just(PartitionsDef::Cron {
            cron: "15,45 2 * * *".to_owned(),
            span: Span::new("2011-12-01T00:00").until("2012-12-31T23:00").in_zone("Pacific/Apia"),
        }),
    ]
}

proptest! {
    #[test]
    fn what_a_key_displays_reads_as_the_key(
        defs in proptest::collection::vec(any_def(), 1..4), pick in any::<u128>(),
        things in proptest::collection::btree_set("[ -~é]{1,6}|[sibdtn]:[a-zA-Z]{2,4}", 1..6),
    ) {
        let def = if let [only] = defs.as_slice() {
            only.clone()
        } else {
            let dims = defs.into_iter().enumerate().map(|(n, def)| (format!("d{n}"), def));
            PartitionsDef::Multi { dims: dims.collect() }
        };
        let partitions = valid(&def);
        let known = BTreeMap::from([("things".to_owned(), things.into_iter().collect())]);
        let now = PartitionContext::new(FOREVER, &known);
        let key = partitions.key(pick % partitions.count(now), now).unwrap();
        for text in [key.to_string(), key.canonical().to_owned()] {
            let read = partitions.parse_key(&text).unwrap_or_else(|error| panic!("{error}"));
            prop_assert_eq!(read.key(), Some(key.clone()), "{}", text);
            let set = read.set(now).unwrap();
            prop_assert_eq!(&set, &PartitionSet::from(partitions.block_of(&key, now).unwrap()));
            prop_assert_eq!(&partitions.parse_named(&text, now).unwrap(), &set, "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(def in any_def(), text in "[ -~é]{0,20}|[0-9TZ:.+=\"\\-]{0,30}|20[0-9\\-T:.]{0,24}") {
        let partitions = valid(&def);
        let _ = partitions.parse_key(&text);
        let _ = partitions.parse_range(&text, FOREVER);
        let _ = partitions.parse_named(&text, FOREVER);
        let _ = cube().parse_key(&text);
        let _ = cube().parse_range(&text, FOREVER);
    }
}
