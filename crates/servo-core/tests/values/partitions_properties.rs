//! Laws of partitions, over every kind and many zones.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use proptest::prelude::*;
use servo_core::partitions::{PartitionContext, Partitions, Span};
use servo_core::{PartitionKey, PartitionValue, PartitionsDef, Timestamp};

const FOREVER: Timestamp = Timestamp::MAX;
const DAY: i64 = 86_400;
/// 2000-01-01 and 2040-01-01.
const FROM: i64 = 946_684_800;
const TO: i64 = 2_208_988_800;

/// Half hours, quarters, midnight gaps and folds, the date line, Ramadan, one-minute-past changes, fixed offsets.
const ZONES: [&str; 36] = [
    "UTC",
    "Europe/Amsterdam",
    "Europe/London",
    "Europe/Dublin",
    "Europe/Moscow",
    "Europe/Istanbul",
    "Europe/Volgograd",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "America/Caracas",
    "America/Asuncion",
    "America/Santiago",
    "America/Nuuk",
    "America/Scoresbysund",
    "America/Godthab",
    "Asia/Beirut",
    "Asia/Amman",
    "Asia/Damascus",
    "Asia/Gaza",
    "Asia/Tehran",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Asia/Dhaka",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "Atlantic/Azores",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Pacific/Fakaofo",
];

/// Fixed times, intervals, and both kinds of days; each ticks at least once a month.
const CRONS: [&str; 6] =
    ["30 2 * * *", "15 */6 * * *", "*/20 1-3 * * MON,SUN", "0,30 0-3 L * *", "7 59 23 13 * FRI", "0 0 1 * *"];

fn def(kind: u8, zone: &str, start_day: i64, days: i64) -> PartitionsDef {
    let date =
        |day: i64| jiff::Timestamp::from_second(FROM + day * DAY).unwrap().to_string()[..10].to_owned();
    let (start, end) = (date(start_day), date(start_day + days));
    let span = match kind {
        0 | 4.. => Span::new(format!("{start}T00:00")).until(format!("{end}T23:00")),
        _ => Span::new(start).until(end),
    };
    let span = span.in_zone(zone);
    match kind {
        0 => PartitionsDef::Hourly { span },
        1 => PartitionsDef::Daily { span },
        2 => PartitionsDef::Weekly { weekday: (start_day % 7 + 1) as u8, span },
        3 => PartitionsDef::Monthly { day: (start_day % 28 + 1) as u8, span },
        _ => PartitionsDef::Cron { cron: CRONS[usize::from(kind) % CRONS.len()].to_owned(), span },
    }
}

prop_compose! {
    /// A zone, a kind, a start in 2000–2039 and a length that has at least one month.
    fn partitions()(zone in 0..ZONES.len(), kind in 0..10u8, start in 0..14_600i64, days in 35..400i64)
        -> Partitions
    {
        def(kind, ZONES[zone], start, days).validate().unwrap()
    }
}

fn seconds(time: Timestamp) -> i64 {
    time.as_millis() / 1_000
}

proptest! {
    #[test]
    fn index_of_key_is_the_identity(partitions in partitions(), pick in any::<u64>()) {
        let index = u128::from(pick) % partitions.count(FOREVER);
        let key = partitions.key(index, FOREVER).unwrap();
        prop_assert_eq!(partitions.index_of(&key, FOREVER).unwrap(), index);
        prop_assert_eq!(PartitionKey::parse(key.canonical()).unwrap(), key);
    }

    #[test]
    fn slices_concatenate(partitions in partitions(), a in any::<u64>(), b in any::<u64>()) {
        let count = partitions.count(FOREVER);
        let (mut cuts, at) = ([0, u128::from(a) % count, u128::from(b) % count, count], |i| partitions.key(i, FOREVER));
        cuts.sort_unstable();
        let mut keys = Vec::new();
        for pair in cuts.windows(2).filter(|pair| pair[0] < pair[1]) {
            let slice = partitions.slice(&at(pair[0]).unwrap(), &at(pair[1] - 1).unwrap(), FOREVER).unwrap();
            prop_assert_eq!(&slice, &(pair[0]..pair[1]));
            keys.extend(partitions.page(slice.start, (slice.end - slice.start) as usize, FOREVER));
        }
        prop_assert_eq!(keys, partitions.page(0, usize::MAX, FOREVER));
    }

    #[test]
    fn keys_increase_and_windows_touch(partitions in partitions()) {
        let keys = partitions.page(0, usize::MAX, FOREVER);
        prop_assert!(keys.is_sorted_by(|a, b| a < b));
        let windows: Vec<_> = keys.iter().map(|key| partitions.window(key).unwrap()).collect();
        prop_assert!(windows.iter().all(|(start, end)| start < end));
        prop_assert!(windows.windows(2).all(|pair| pair[0].1 == pair[1].0));
    }

    #[test]
    fn the_count_is_the_number_of_closed_windows(partitions in partitions(), part in 0..1_200i64, nudge in -1..=1i64) {
        let keys = partitions.page(0, usize::MAX, FOREVER);
        let windows: Vec<_> = keys.iter().map(|key| partitions.window(key).unwrap()).collect();
        let (first, last) = (windows[0].0.as_millis(), windows[windows.len() - 1].1.as_millis());
        let around = first + (last - first) / 1_000 * part - 50 * 3_600_000;
        // On a boundary, a millisecond before it, and after it.
        let boundary = windows.iter().map(|window| window.1.as_millis()).find(|end| *end >= around);
        for now in [around, boundary.unwrap_or(last) + nudge] {
            let closed = windows.iter().filter(|window| window.1.as_millis() <= now).count();
            prop_assert_eq!(partitions.count(Timestamp::from_millis(now)), closed as u128);
        }
    }
}

proptest! {
    #[test]
    fn products_number_every_combination_once(
        kind in prop_oneof![Just(1u8), Just(6u8)], zone in 0..ZONES.len(), start in 0..14_600i64, statics in 1..5usize, dynamics in 0..4usize,
    ) {
        let names = |count: usize| (0..count).map(|n| format!("k{n}")).collect::<Vec<_>>();
        let month = def(kind, ZONES[zone], start, 20);
        let dims = BTreeMap::from([
            ("a".to_owned(), PartitionsDef::Static { keys: names(statics).into_iter().rev().collect() }),
            ("m".to_owned(), month.clone()),
            ("z".to_owned(), PartitionsDef::Dynamic { name: "things".to_owned() }),
        ]);
        let partitions = PartitionsDef::Multi { dims }.validate().unwrap();
        let dynamic = BTreeMap::from([("things".to_owned(), names(dynamics))]);
        let now = PartitionContext::new(FOREVER, &dynamic);

        let keys = partitions.page(0, usize::MAX, now);
        let days = month.validate().unwrap().count(FOREVER);
        prop_assert_eq!(partitions.count(now), days * (statics * dynamics) as u128);
        prop_assert_eq!(keys.len() as u128, partitions.count(now));
        prop_assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        for (index, key) in keys.iter().enumerate() {
            prop_assert_eq!(partitions.index_of(key, now).unwrap(), index as u128);
        }
    }
}

#[test]
fn local_days_start_at_their_first_instant_around_every_transition_of_every_zone() {
    let database = TimeZoneDatabase::bundled();
    let mut transitions = 0;
    for name in database.available() {
        let Ok(zone) = database.get(name.as_str()) else { continue };
        let span = Span::new("2000-01-01").until("2040-12-31").in_zone(name.as_str());
        let days = PartitionsDef::Daily { span }.validate().unwrap();
        let from = jiff::Timestamp::from_second(FROM + 5 * DAY).unwrap();
        for transition in
            zone.following(from).take_while(|transition| transition.timestamp().as_second() < TO)
        {
            transitions += 1;
            check_days_around(&days, &zone, transition.timestamp().as_second());
        }
    }
    assert!(transitions > 5_000, "{transitions}");
}

fn check_days_around(days: &Partitions, zone: &TimeZone, second: i64) {
    let local = |second| zone.to_datetime(jiff::Timestamp::from_second(second).unwrap()).date();
    let open = days.count(Timestamp::from_millis(second * 1_000));
    let mut end_before = None;
    for index in open - 2..open + 3 {
        let key = days.key(index, FOREVER).unwrap();
        let Some(PartitionValue::Date(date)) = key.get("date") else { panic!("{key} is a date") };
        let (start, end) = days.window(&key).unwrap();
        assert_eq!(days.index_of(&key, FOREVER).unwrap(), index);
        assert_eq!(local(seconds(start)), date, "{key} {zone:?}");
        assert!(local(seconds(start) - 1) < date, "{key} {zone:?}");
        assert!(end > start && end_before.is_none_or(|before| before == start), "{key} {zone:?}");
        end_before = Some(end);
    }
}
