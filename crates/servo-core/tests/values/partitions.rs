//! Partition definitions: what they accept, what they refuse, and the calendar at its oddest.

use std::collections::BTreeMap;

use servo_core::partitions::{PartitionContext, Partitions, Reason, Span};
use servo_core::{PartitionKey, PartitionsDef, Timestamp, to_canonical_string};

const FOREVER: Timestamp = Timestamp::MAX;
const HOUR: i64 = 3_600_000;

fn valid(def: &PartitionsDef) -> Partitions {
    def.validate().unwrap_or_else(|problems| panic!("{problems}"))
}

fn daily(zone: &str, start: &str, end: &str) -> Partitions {
    valid(&PartitionsDef::Daily { span: Span::new(start).until(end).in_zone(zone) })
}

fn key(text: &str) -> PartitionKey {
    PartitionKey::parse(text).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn canonical(keys: &[PartitionKey]) -> Vec<&str> {
    keys.iter().map(PartitionKey::canonical).collect()
}

fn hours_of(partitions: &Partitions, day: &str) -> i64 {
    let (start, end) = partitions.window(&key(&format!("date=d:{day}"))).unwrap();
    (end.as_millis() - start.as_millis()) / HOUR
}

fn static_of(keys: &[&str]) -> PartitionsDef {
    PartitionsDef::Static { keys: keys.iter().map(|key| (*key).to_owned()).collect() }
}

#[test]
fn days_have_23_or_25_hours_when_clocks_change() {
    let days = daily("Europe/Amsterdam", "2024-01-01", "2024-12-31");
    assert_eq!(days.count(FOREVER), 366);
    assert_eq!(hours_of(&days, "2024-03-31"), 23);
    assert_eq!(hours_of(&days, "2024-10-27"), 25);
    assert_eq!(hours_of(&days, "2024-06-01"), 24);
}

#[test]
fn a_day_without_midnight_starts_at_its_first_instant() {
    for (zone, day, start) in [
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00.000Z"),
        ("Asia/Beirut", "2022-03-27", "2022-03-26T22:00:00.000Z"),
    ] {
        let days = daily(zone, "2010-01-01", "2030-12-31");
        assert_eq!(days.window(&key(&format!("date=d:{day}"))).unwrap().0, time(start), "{zone}");
        assert_eq!(hours_of(&days, day), 23, "{zone}");
    }
}

#[test]
fn a_day_that_a_zone_skipped_is_no_partition() {
    let days = daily("Pacific/Apia", "2011-12-28", "2012-01-01");
    let keys = days.page(0, 10, FOREVER);
    assert_eq!(
        canonical(&keys),
        ["date=d:2011-12-28", "date=d:2011-12-29", "date=d:2011-12-31", "date=d:2012-01-01"]
    );
    let error = days.index_of(&key("date=d:2011-12-30"), FOREVER).unwrap_err();
    assert_eq!(error.to_string(), "no partition 2011-12-30: that day did not exist in Pacific/Apia");
    assert_eq!(hours_of(&days, "2011-12-29"), 24);

    let from_the_gap = daily("Pacific/Apia", "2011-12-30", "2012-01-01");
    assert_eq!(from_the_gap.key(0, FOREVER).unwrap(), key("date=d:2011-12-31"));
}

#[test]
fn no_hour_is_lost_or_doubled() {
    for (zone, day, hours) in [
        ("Europe/Amsterdam", "2024-03-31", 23),
        ("Europe/Amsterdam", "2024-10-27", 25),
        ("America/New_York", "2024-11-03", 25),
        ("Africa/Casablanca", "2024-03-10", 25),
    ] {
        let span = Span::new(format!("{day}T00:00")).until(format!("{day}T23:00")).in_zone(zone);
        let partitions = valid(&PartitionsDef::Hourly { span });
        assert_eq!(partitions.count(FOREVER), hours, "{zone}");
        let keys = partitions.page(0, 100, FOREVER);
        assert!(keys.is_sorted_by(|a, b| a < b));
        let windows: Vec<_> = keys.iter().map(|key| partitions.window(key).unwrap()).collect();
        assert!(windows.windows(2).all(|pair| pair[0].1 == pair[1].0));
    }
}

#[test]
fn hours_that_would_start_in_a_gap_start_after_it() {
    // Winamac left Central for Eastern time as summer began: 2 o'clock was 4 o'clock, at 8 o'clock UTC. By the
    // yearly rule of Eastern time, clocks would have changed at 7 o'clock UTC.
    for start in ["02:00", "03:00", "04:00"] {
        let span = Span::new(format!("2007-03-11T{start}")).in_zone("America/Indiana/Winamac");
        let hours = valid(&PartitionsDef::Hourly { span });
        assert_eq!(hours.key(0, FOREVER).unwrap(), key("hour=t:2007-03-11T08:00:00.000000Z"), "{start}");
    }
}

#[test]
fn weeks_and_months_start_where_they_are_told_to() {
    let span = Span::new("2024-01-02").until("2024-01-31");
    let weeks = valid(&PartitionsDef::Weekly { weekday: 1, span: span.clone() });
    let keys = weeks.page(0, 10, FOREVER);
    assert_eq!(
        canonical(&keys),
        ["week=d:2024-01-08", "week=d:2024-01-15", "week=d:2024-01-22", "week=d:2024-01-29"]
    );
    let sundays = valid(&PartitionsDef::Weekly { weekday: 7, span: span.clone() });
    assert_eq!(sundays.key(0, FOREVER).unwrap(), key("week=d:2024-01-07"));

    let months = valid(&PartitionsDef::Monthly { day: 15, span: span.until("2024-03-14") });
    assert_eq!(canonical(&months.page(0, 10, FOREVER)), ["month=d:2024-01-15", "month=d:2024-02-15"]);
    let window = months.window(&key("month=d:2024-02-15")).unwrap();
    assert_eq!(window, (time("2024-02-15T00:00:00.000Z"), time("2024-03-15T00:00:00.000Z")));
    let error = months.index_of(&key("month=d:2024-02-20"), FOREVER).unwrap_err();
    assert_eq!(error.reason, Reason::NotAStart { around: "2024-02-15".to_owned() });
}

fn cron(expression: &str, span: Span) -> PartitionsDef {
    PartitionsDef::Cron { cron: expression.to_owned(), span }
}

#[test]
fn a_partition_exists_when_its_window_has_closed() {
    let span = Span::new("2024-01-01");
    let def = |offset| valid(&PartitionsDef::Daily { span: span.clone().offset(offset) });
    for (now, offset, count) in [
        ("2023-12-25T00:00:00.000Z", 0, 0),
        ("2023-12-25T00:00:00.000Z", 1, 0),
        ("2024-01-01T00:00:00.000Z", 0, 0),
        ("2024-01-01T00:00:00.000Z", 1, 1),
        ("2024-01-01T23:59:59.999Z", 0, 0),
        ("2024-01-02T00:00:00.000Z", 0, 1),
        ("2024-01-11T12:00:00.000Z", 0, 10),
        ("2024-01-11T12:00:00.000Z", -3, 7),
        ("2024-01-11T12:00:00.000Z", -30, 0),
    ] {
        assert_eq!(def(offset).count(time(now)), count, "{now} {offset}");
    }
    let now = time("2024-01-02T00:00:00.000Z");
    let error = def(0).index_of(&key("date=d:2024-01-02"), now).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no partition 2024-01-02: it is not a partition yet; the latest is 2024-01-01"
    );
}

#[test]
fn the_end_is_included_and_nothing_comes_after_it() {
    let days = daily("UTC", "2013-01-01", "2013-12-31");
    assert_eq!(days.count(FOREVER), 365);
    let error = days.index_of(&key("date=d:2014-01-01"), FOREVER).unwrap_err();
    assert_eq!(error.reason, Reason::AfterEnd { last: "2013-12-31".to_owned() });
    let error = days.index_of(&key("date=d:2012-12-31"), FOREVER).unwrap_err();
    assert_eq!(error.reason, Reason::BeforeStart { first: "2013-01-01".to_owned() });
    let error = days.index_of(&key("day=d:2013-01-01"), FOREVER).unwrap_err();
    assert_eq!(error.reason, Reason::Dimensions { expected: "date".to_owned() });
    let error = days.slice(&key("date=d:2013-02-01"), &key("date=d:2013-01-01"), FOREVER).unwrap_err();
    assert_eq!(error.reason, Reason::Backwards { from: "2013-02-01".to_owned() });
}

#[test]
fn dynamic_keys_are_those_of_the_moment() {
    let partitions = valid(&PartitionsDef::Dynamic { name: "customers".to_owned() });
    assert_eq!(partitions.count(FOREVER), 0);
    let keys = BTreeMap::from([("customers".to_owned(), vec!["acme".to_owned(), "zeta".to_owned()])]);
    let now = PartitionContext::new(FOREVER, &keys);
    assert_eq!(partitions.count(now), 2);
    let last = partitions.key(1, now).unwrap();
    assert_eq!(last.to_string(), "zeta");
    assert_eq!(partitions.index_of(&last, now).unwrap(), 1);
    assert!(partitions.index_of(&last, FOREVER).is_err());
}

#[test]
fn a_product_of_many_dimensions_costs_nothing() {
    let numbered = |count: u32| PartitionsDef::Static { keys: (0..count).map(|n| n.to_string()).collect() };
    let date = PartitionsDef::Daily { span: Span::new("2024-01-01").until("2024-04-09") };
    let dims = [("a", numbered(50)), ("b", numbered(40)), ("c", numbered(50)), ("date", date)];
    let dims = dims.into_iter().map(|(name, def)| (name.to_owned(), def)).collect();
    let partitions = valid(&PartitionsDef::Multi { dims });
    assert_eq!(partitions.count(FOREVER), 10_000_000);
    for index in [0, 1, 99, 100, 7_654_321, 9_999_999] {
        let key = partitions.key(index, FOREVER).unwrap();
        assert_eq!(partitions.index_of(&key, FOREVER).unwrap(), index);
    }
    assert_eq!(partitions.key(10_000_000, FOREVER), None);
    let key = partitions.key(101, FOREVER).unwrap();
    assert_eq!(key.to_string(), "a=\"0\",b=\"0\",c=\"1\",date=2024-01-02");
    assert_eq!(partitions.window(&key).unwrap().0, time("2024-01-02T00:00:00.000Z"));
}

#[test]
fn more_partitions_than_can_be_counted_are_not_miscounted() {
    let hours = PartitionsDef::Hourly { span: Span::new("1970-01-01T00:00") };
    let dims: BTreeMap<_, _> = (0..8).map(|n| (format!("h{n}"), hours.clone())).collect();
    let partitions = valid(&PartitionsDef::Multi { dims });
    assert_eq!(partitions.count(FOREVER), u128::MAX);
    assert!(partitions.key(u128::MAX - 1, FOREVER).is_some());
}

#[test]
fn all_problems_are_reported_at_once() {
    let bad_span = Span::new("2024-13-01").until("2024-02-30").in_zone("Europe/Amsterdm");
    let dims = [
        ("Bad", static_of(&[])),
        ("date", PartitionsDef::Daily { span: bad_span }),
        ("month", PartitionsDef::Monthly { day: 29, span: Span::new("2024-01-02").until("2024-01-01") }),
        ("nested", PartitionsDef::Multi { dims: BTreeMap::new() }),
        ("region", static_of(&["eu", "", "eu"])),
        ("week", PartitionsDef::Weekly { weekday: 0, span: Span::new("2024-01-01").in_zone("europe/paris") }),
    ];
    let dims = dims.into_iter().map(|(name, def)| (name.to_owned(), def)).collect();
    let problems = PartitionsDef::Multi { dims }.validate().unwrap_err();
    let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        "dims.Bad: a dimension is named [a-z][a-z0-9_]*",
        "dims.Bad.keys: there are none",
        "dims.date.span.timezone: \"Europe/Amsterdm\" is not a time zone",
        "dims.date.span.start: invalid date \"2024-13-01\" at character 0: month 13",
        "dims.date.span.end: invalid date \"2024-02-30\" at character 0: day 30",
        "dims.month.day: 29 is not between 1 and 28",
        "dims.month.span.end: 2024-01-01 is before the start, 2024-01-02",
        "dims.nested.kind: a dimension is not multi",
        "dims.region.keys[1]: is empty",
        "dims.region.keys[2]: \"eu\" is keys[0] already",
        "dims.week.weekday: 0 is not between 1, Monday, and 7, Sunday",
        "dims.week.span.timezone: \"europe/paris\" is not a time zone; did you mean \"Europe/Paris\"?",
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(shown.starts_with(expected), "{shown}\n{expected}");
    }
}

#[test]
fn hours_are_written_in_one_way() {
    for bad in ["2024-01-01", "2024-01-01T00", "2024-01-01T24:00", "2024-01-01T00:30", "2024-01-01T00:00:00"]
    {
        assert!(PartitionsDef::Hourly { span: Span::new(bad) }.validate().is_err(), "{bad}");
    }
    assert!(PartitionsDef::Daily { span: Span::new("2024-01-01T00:00") }.validate().is_err());
    let weeks = PartitionsDef::Weekly { weekday: 1, span: Span::new("2024-01-02").until("2024-01-05") };
    assert!(weeks.validate().unwrap_err().to_string().contains("no partition starts between"));
}

#[test]
fn definitions_have_one_json_text() {
    let text = r#"{"dims":{"date":{"kind":"daily","span":{"end":null,"end_offset":0,"start":"2024-01-01","timezone":"UTC"}},"region":{"keys":["eu","us"],"kind":"static"}},"kind":"multi"}"#;
    let def: PartitionsDef = serde_json::from_str(text).unwrap();
    assert_eq!(to_canonical_string(&def).unwrap(), text);
    let text = r#"{"cron":"0 6 * * 1-5","kind":"cron","span":{"end":null,"end_offset":0,"start":"2024-01-01T00:00","timezone":"UTC"}}"#;
    let def: PartitionsDef = serde_json::from_str(text).unwrap();
    assert_eq!(def, cron("0 6 * * 1-5", Span::new("2024-01-01T00:00")));
    assert_eq!(to_canonical_string(&def).unwrap(), text);
    let short = r#"{"kind":"daily","span":{"start":"2024-01-01"}}"#;
    let def: PartitionsDef = serde_json::from_str(short).unwrap();
    assert_eq!(def, PartitionsDef::Daily { span: Span::new("2024-01-01") });
    for bad in [
        r#"{"kind":"daily","span":{"start":"2024-01-01","tz":"UTC"}}"#,
        r#"{"kind":"daily","span":{"start":"2024-01-01"},"weekday":1}"#,
        r#"{"kind":"yearly","span":{"start":"2024-01-01"}}"#,
    ] {
        assert!(serde_json::from_str::<PartitionsDef>(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_ends_of_the_calendar_are_reached_and_not_passed() {
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/New_York"] {
        let span = Span::new("0002-01-01").in_zone(zone);
        let hours = Span::new("0002-01-01T00:00").in_zone(zone).offset(i32::MAX);
        let minutes = Span::new("0002-01-01T00:00").in_zone(zone);
        for def in [
            PartitionsDef::Hourly { span: hours },
            cron("* * * * * *", minutes.clone()),
            cron("0 0 29 2 *", minutes.clone()),
            cron("30 2 * * *", minutes.offset(i32::MIN)),
            PartitionsDef::Daily { span: span.clone() },
            PartitionsDef::Weekly { weekday: 7, span: span.clone() },
            PartitionsDef::Monthly { day: 28, span: span.clone().offset(i32::MIN) },
            PartitionsDef::Monthly { day: 28, span },
        ] {
            let partitions = valid(&def);
            assert!(partitions.count(Timestamp::MIN) <= partitions.count(FOREVER));
            for index in [0, partitions.count(FOREVER).saturating_sub(1)] {
                let Some(key) = partitions.key(index, FOREVER) else { continue };
                assert_eq!(partitions.index_of(&key, FOREVER).unwrap(), index, "{key}");
                let (start, end) = partitions.window(&key).unwrap();
                assert!(Timestamp::MIN < start && start < end && end < Timestamp::MAX, "{key}");
            }
        }
    }
    for text in ["hour=t:0001-01-01T00:00:00.000001Z", "hour=t:9999-12-31T23:59:59.999999Z"] {
        let hours = valid(&PartitionsDef::Hourly { span: Span::new("2024-01-01T00:00") });
        assert!(hours.index_of(&key(text), FOREVER).is_err());
    }
    for text in ["date=d:0001-01-01", "date=d:9999-12-31"] {
        assert!(daily("UTC", "2024-01-01", "2024-01-02").index_of(&key(text), FOREVER).is_err());
    }
}
