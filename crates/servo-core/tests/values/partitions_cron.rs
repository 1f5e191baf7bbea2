//! Cron partitions: windows from tick to tick, and what is refused.

use servo_core::partitions::{Partitions, Reason, Span};
use servo_core::{PartitionKey, PartitionsDef, Timestamp};

const FOREVER: Timestamp = Timestamp::MAX;

fn cron(expression: &str, span: Span) -> PartitionsDef {
    PartitionsDef::Cron { cron: expression.to_owned(), span }
}

fn valid(def: &PartitionsDef) -> Partitions {
    def.validate().unwrap_or_else(|problems| panic!("{problems}"))
}

fn key(text: &str) -> PartitionKey {
    PartitionKey::parse(text).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn cron_partitions_go_from_tick_to_tick() {
    let span = Span::new("2024-01-05T06:01").until("2024-01-09T06:00").in_zone("Europe/Amsterdam");
    let mornings = valid(&cron("0 6 * * MON-FRI", span));
    let keys = mornings.page(0, 10, FOREVER);
    assert_eq!(
        keys.iter().map(PartitionKey::canonical).collect::<Vec<_>>(),
        ["tick=t:2024-01-08T05:00:00.000000Z", "tick=t:2024-01-09T05:00:00.000000Z"]
    );
    let window = mornings.window(&keys[1]).unwrap();
    assert_eq!(window, (time("2024-01-09T05:00:00.000Z"), time("2024-01-10T05:00:00.000Z")));
    // The one of Monday exists when that of Tuesday starts.
    assert_eq!(mornings.count(time("2024-01-09T04:59:59.999Z")), 0);
    assert_eq!(mornings.count(time("2024-01-09T05:00:00.000Z")), 1);
    let reason = |text: &str| mornings.index_of(&key(text), FOREVER).unwrap_err().reason;
    let at = |text: &str| format!("{text}Z");
    assert_eq!(
        reason("tick=t:2024-01-08T05:00:00.000001Z"),
        Reason::NotAStart { around: at("2024-01-08T05:00:00") }
    );
    assert_eq!(
        reason("tick=t:2024-01-05T05:00:00.000000Z"),
        Reason::BeforeStart { first: at("2024-01-08T05:00:00") }
    );
    assert_eq!(
        reason("tick=t:2024-01-10T05:00:00.000000Z"),
        Reason::AfterEnd { last: at("2024-01-09T05:00:00") }
    );
    assert!(matches!(reason("tick=d:2024-01-08"), Reason::Type { .. }));
}

#[test]
fn a_tick_of_every_second_for_a_century_costs_nothing() {
    let seconds = valid(&cron("* * * * * *", Span::new("1970-01-01T00:00").until("2099-12-31T23:59")));
    assert_eq!(seconds.count(FOREVER), 4_102_444_741);
    assert_eq!(seconds.count(time("2024-01-01T00:00:00.000Z")), 1_704_067_200);
    let key = seconds.key(1_704_067_200, FOREVER).unwrap();
    assert_eq!(key.canonical(), "tick=t:2024-01-01T00:00:00.000000Z");
    assert_eq!(seconds.index_of(&key, FOREVER).unwrap(), 1_704_067_200);
}

#[test]
fn cron_problems_say_which_field() {
    let shown = |expression: &str, span: Span| {
        let problems = cron(expression, span).validate().unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        shown("61 * * * *", Span::new("2024-01-01").until("2024-01-01T00:60")),
        [
            "cron: invalid cron expression \"61 * * * *\" at character 0: minute 61 is not between 0 and 59",
            "span.start: invalid minute \"2024-01-01\" at character 10: it ends here, expected \"T\" and the hour, \
             as in 2025-01-15T00:00",
            "span.end: invalid minute \"2024-01-01T00:60\" at character 14: minute 60 is not between 0 and 59",
        ]
    );
    assert_eq!(
        shown("0 6 29 2 *", Span::new("2025-01-01T00:00").until("2027-12-31T00:00")),
        ["span.end: no partition starts between 2025-01-01T00:00 and the end"]
    );
}

#[test]
fn a_dimension_may_be_of_ticks() {
    let ticks = cron(
        "30 2 * * *",
        Span::new("2024-03-09T00:00").until("2024-03-11T23:59").in_zone("America/New_York"),
    );
    let region = PartitionsDef::Static { keys: vec!["eu".to_owned(), "us".to_owned()] };
    let dims = [("at", ticks), ("region", region)].map(|(name, def)| (name.to_owned(), def));
    let partitions = valid(&PartitionsDef::Multi { dims: dims.into() });
    assert_eq!(partitions.count(FOREVER), 6);
    // The second morning had no half past two.
    let skipped = partitions.key(3, FOREVER).unwrap();
    assert_eq!(skipped.canonical(), "at=t:2024-03-10T07:00:00.000000Z,region=s:dXM");
    assert_eq!(partitions.index_of(&skipped, FOREVER).unwrap(), 3);
    let window = partitions.window(&skipped).unwrap();
    assert_eq!(window, (time("2024-03-10T07:00:00.000Z"), time("2024-03-11T06:30:00.000Z")));
}
