//! Laws of cron: it finds what walking over every second, and what naming every local time, finds.

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use proptest::prelude::*;
use proptest::strategy::Union;
use servo_core::cron::Ticks;
use servo_core::{Cron, Timestamp};

const DAY: i64 = 86_400;
const ZONES: [&str; 16] = [
    "UTC",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Juneau",
    "Europe/Dublin",
    "Europe/Amsterdam",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Manila",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "Antarctica/Troll",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kwajalein",
];

/// The years that croner knows end with 4999.
const CRONER_ENDS: i64 = 90_000_000_000;

/// An expression, a zone, and what [`near_change`] makes a time of.
type Case = (Expression, &'static str, (i64, i64));

/// A field as text, and what it means.
#[derive(Debug, Clone)]
struct Field {
    text: String,
    values: BTreeSet<i64>,
    /// It has a `*`, which it then begins with.
    star: bool,
}

/// An expression as text, and what it means.
#[derive(Clone)]
struct Expression {
    text: String,
    /// Second, minute, hour, day, month, weekday.
    fields: [Field; 6],
}

fn field(min: i64, max: i64) -> impl Strategy<Value = Field> {
    let made = |text: String, values: BTreeSet<i64>| Field { text, values, star: false };
    let range = move || (min..=max, min..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    Union::new_weighted(vec![
        (3, Just(Field { star: true, ..made("*".to_owned(), (min..=max).collect()) }).boxed()),
        (3, (min..=max).prop_map(move |value| made(value.to_string(), BTreeSet::from([value]))).boxed()),
        (
            2,
            (1..=max / 2)
                .prop_map(move |step| Field {
                    star: true,
                    ..made(format!("*/{step}"), (min..=max).step_by(step as usize).collect())
                })
                .boxed(),
        ),
        (1, range().prop_map(move |(a, b)| made(format!("{a}-{b}"), (a..=b).collect())).boxed()),
        (
            1,
            (range(), 1..=3usize)
                .prop_map(move |((a, b), step)| {
                    made(format!("{a}-{b}/{step}"), (a..=b).step_by(step).collect())
                })
                .boxed(),
        ),
        (
            1,
            (min..=max, 1..=3usize)
                .prop_map(move |(a, step)| made(format!("{a}/{step}"), (a..=max).step_by(step).collect()))
                .boxed(),
        ),
        (1, range().prop_map(move |(a, b)| made(format!("{b},{a}"), BTreeSet::from([a, b]))).boxed()),
    ])
}

prop_compose! {
    /// An expression; some have seconds, most do not.
    fn expression()(
        second in prop_oneof![3 => Just(None), 1 => field(0, 59).prop_map(Some)],
        rest in (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)),
    ) -> Expression {
        let (minute, hour, day, month, weekday) = rest;
        let shown = [second.as_ref(), Some(&minute), Some(&hour), Some(&day), Some(&month), Some(&weekday)];
        let text = shown.into_iter().flatten().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ");
        let zero = Field { text: "0".to_owned(), values: BTreeSet::from([0]), star: false };
        Expression { text, fields: [second.unwrap_or(zero), minute, hour, day, month, weekday] }
    }
}

/// Failures show what to try again, not its hundreds of values.
impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    fn is_interval(&self) -> bool {
        self.fields[1].star || self.fields[2].star
    }

    fn has_day(&self, local: DateTime) -> bool {
        let [.., day, month, weekday] = &self.fields;
        let by_day = day.values.contains(&i64::from(local.day()));
        let by_weekday = weekday.values.contains(&i64::from(local.weekday().to_sunday_zero_offset()));
        let fits = if day.star || weekday.star { by_day && by_weekday } else { by_day || by_weekday };
        fits && month.values.contains(&i64::from(local.month()))
    }

    fn has(&self, local: DateTime) -> bool {
        let [second, minute, hour, ..] = &self.fields;
        self.has_day(local)
            && hour.values.contains(&i64::from(local.hour()))
            && minute.values.contains(&i64::from(local.minute()))
            && second.values.contains(&i64::from(local.second()))
    }

    /// The ticks from a second on, and before another, by giving every local time its instants.
    fn by_naming(&self, zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
        let [seconds, minutes, hours, ..] = &self.fields;
        let mut ticks = BTreeSet::new();
        for day in from.div_euclid(DAY) - 2..=to.div_euclid(DAY) + 2 {
            let midnight = TimeZone::UTC.to_datetime(instant(day * DAY));
            if !self.has_day(midnight) {
                continue;
            }
            for (hour, minute) in
                hours.values.iter().flat_map(|hour| minutes.values.iter().map(move |m| (hour, m)))
            {
                for second in &seconds.values {
                    let local = midnight.date().at(*hour as i8, *minute as i8, *second as i8, 0);
                    ticks.extend(self.instants(zone, local, day * DAY + hour * 3_600 + minute * 60 + second));
                }
            }
        }
        ticks.range(from..to).copied().collect()
    }

    fn instants(&self, zone: &TimeZone, local: DateTime, second: i64) -> Vec<i64> {
        let at = |offset: jiff::tz::Offset| second - i64::from(offset.seconds());
        match (zone.to_ambiguous_timestamp(local).offset(), self.is_interval()) {
            (AmbiguousOffset::Unambiguous { offset }, _) => vec![at(offset)],
            (AmbiguousOffset::Fold { before, .. }, false) => vec![at(before)],
            (AmbiguousOffset::Fold { before, after }, true) => vec![at(before), at(after)],
            (AmbiguousOffset::Gap { after, .. }, false) => {
                let change = zone.following(instant(at(after))).next().unwrap();
                vec![change.timestamp().as_second()]
            }
            (AmbiguousOffset::Gap { .. }, true) => vec![],
        }
    }
}

fn instant(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap()
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

fn seconds(ticks: &Ticks, from: i64, to: i64) -> Vec<i64> {
    let ranks = ticks.rank(time(from))..ticks.rank(time(to));
    ranks.map(|rank| ticks.tick(rank).unwrap().as_millis() / 1_000).collect()
}

/// A second near a change of clocks, if there is one to come, in the years 1800 to 2100 or in any later.
fn moment() -> impl Strategy<Value = (i64, i64)> {
    let year = 31_556_952_i64;
    let second = prop_oneof![3 => -170 * year..130 * year, 1 => 130 * year..8_000 * year];
    (second, -DAY..DAY)
}

fn near_change(zone: &TimeZone, (second, shift): (i64, i64)) -> i64 {
    let change = zone.following(instant(second)).next();
    change.map_or(second, |change| change.timestamp().as_second()) + shift
}

fn case() -> impl Strategy<Value = Case> {
    let ticks = |expression: &Expression| Cron::parse(&expression.text).is_ok();
    (expression().prop_filter("February 30", ticks), prop::sample::select(&ZONES[..]), moment())
}

fn set_up((expression, zone, moment): &Case) -> (Ticks, TimeZone, i64) {
    let ticks = Cron::parse(&expression.text).unwrap().in_zone(zone).unwrap();
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    let around = near_change(&zone, *moment);
    (ticks, zone, around)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn intervals_tick_at_each_second_whose_local_time_fits(case in case()) {
        let (ticks, zone, around) = set_up(&case);
        if !case.0.is_interval() {
            return Ok(());
        }
        let (from, to) = (around - DAY / 2, around + DAY / 2);
        let walked = (from..to).filter(|second| case.0.has(zone.to_datetime(instant(*second))));
        prop_assert_eq!(seconds(&ticks, from, to), walked.collect::<Vec<_>>());
    }

    #[test]
    fn ticks_are_the_instants_of_local_times_near_changes(case in case()) {
        let (ticks, zone, around) = set_up(&case);
        let (from, to) = (around - 2 * DAY, around + 2 * DAY);
        prop_assert_eq!(seconds(&ticks, from, to), case.0.by_naming(&zone, from, to));
    }
}

proptest! {
    #[test]
    fn ticks_are_the_instants_of_local_times_over_years(case in case(), years in 1..12i64) {
        let (ticks, zone, from) = set_up(&case);
        let per_day: usize = case.0.fields[..3].iter().map(|field| field.values.len()).product();
        let to = from + years * 365 * DAY / (per_day as i64 / 4 + 1);
        prop_assert_eq!(seconds(&ticks, from, to), case.0.by_naming(&zone, from, to));
    }

    #[test]
    fn rank_and_tick_are_inverse_and_neighbours_meet(case in case(), millis in 0..1_000i64) {
        let (ticks, _, around) = set_up(&case);
        let at = Timestamp::from_millis(around * 1_000 + millis);
        let (Some(previous), Some(next)) = (ticks.previous(at), ticks.next(at)) else { return Ok(()) };
        prop_assert!(previous <= at && at < next);
        prop_assert_eq!(ticks.rank(next), ticks.rank(previous) + 1);
        prop_assert_eq!(ticks.rank(at), ticks.rank(next) - i64::from(previous == at));
        for tick in [previous, next] {
            prop_assert_eq!(ticks.tick(ticks.rank(tick)), Some(tick));
        }
        prop_assert_eq!(ticks.next(previous), Some(next));
        prop_assert_eq!(ticks.previous(next), Some(next));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-*/?,@# 0-9a-zA-Zé]{0,24}") {
        if let Ok(cron) = Cron::parse(&text) {
            prop_assert_eq!(Cron::parse(cron.as_str()).unwrap(), cron);
        }
    }

    /// A second opinion, on what it is right about. `croner` does not read `5/15`, takes only expressions of one time a
    /// day as fixed times, and lets those tick after gaps that they are not in: they are compared where there are none.
    /// Of a day and a weekday it takes either, also where one of them is `*/2`.
    #[test]
    fn croner_agrees(case in case()) {
        let (ticks, zone, around) = set_up(&case);
        let one_time = case.0.fields[..3].iter().all(|field| field.text.parse::<u8>().is_ok());
        if !(case.0.is_interval() || one_time && case.1 == "UTC") || around > CRONER_ENDS {
            return Ok(());
        }
        let is_step = |field: &Field| field.star && field.text != "*";
        if case.0.fields[3..].iter().any(is_step) {
            return Ok(());
        }
        let Ok(theirs) = case.0.text.parse::<croner::Cron>() else { return Ok(()) };
        let mut now = instant(around).to_zoned(zone);
        for _ in 0..20 {
            let ours = ticks.next(time(now.timestamp().as_second())).unwrap();
            now = theirs.find_next_occurrence(&now, false).unwrap();
            prop_assert_eq!(ours, time(now.timestamp().as_second()), "{}", now);
        }
    }
}
