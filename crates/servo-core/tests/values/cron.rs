//! When cron expressions tick as clocks change, and at the ends of the calendar.

use servo_core::Timestamp;

use crate::support::ticking::{between, ticks, time};

const NEW_YORK: &str = "America/New_York";

#[test]
fn a_fixed_time_that_clocks_skip_ticks_right_after_the_gap() {
    let (from, to) = ("2024-03-09T12:00:00Z", "2024-03-11T12:00:00Z");
    let found = between(&ticks("30 2 * * *", NEW_YORK), from, to);
    assert_eq!(found, ["2024-03-10T07:00:00", "2024-03-11T06:30:00"]);
    // Skipped times and the time right after the gap are one tick.
    let found = between(&ticks("15,45 2,3 * * *", NEW_YORK), from, "2024-03-10T12:00:00Z");
    assert_eq!(found, ["2024-03-10T07:00:00", "2024-03-10T07:15:00", "2024-03-10T07:45:00"]);
    let found = between(&ticks("0,30 2-3 * * *", NEW_YORK), from, "2024-03-10T12:00:00Z");
    assert_eq!(found, ["2024-03-10T07:00:00", "2024-03-10T07:30:00"]);
}

#[test]
fn a_fixed_time_that_clocks_show_twice_ticks_the_first_time() {
    let found = between(&ticks("30 1 * * *", NEW_YORK), "2024-11-02T12:00:00Z", "2024-11-04T12:00:00Z");
    assert_eq!(found, ["2024-11-03T05:30:00", "2024-11-04T06:30:00"]);
}

#[test]
fn intervals_follow_real_time() {
    let half_hours = ticks("*/30 * * * *", NEW_YORK);
    let spring = between(&half_hours, "2024-03-10T06:00:00Z", "2024-03-10T08:00:00Z");
    assert_eq!(
        spring,
        ["2024-03-10T06:00:00", "2024-03-10T06:30:00", "2024-03-10T07:00:00", "2024-03-10T07:30:00"]
    );
    let autumn = between(&half_hours, "2024-11-03T05:00:00Z", "2024-11-03T07:00:00Z");
    assert_eq!(
        autumn,
        ["2024-11-03T05:00:00", "2024-11-03T05:30:00", "2024-11-03T06:00:00", "2024-11-03T06:30:00"]
    );
    // A step of the minutes makes an interval even in one hour.
    let (from, to) = ("2024-03-10T00:00:00Z", "2024-03-11T00:00:00Z");
    assert_eq!(between(&ticks("*/30 2 * * *", NEW_YORK), from, to), [""; 0]);
    let (from, to) = ("2024-11-03T00:00:00Z", "2024-11-04T00:00:00Z");
    assert_eq!(between(&ticks("0 */1 * * *", NEW_YORK), from, to).len(), 24);
    assert_eq!(between(&ticks("*/30 1 * * *", NEW_YORK), from, to).len(), 4);
}

#[test]
fn half_an_hour_of_lord_howe() {
    // Clocks go from 02:00 to 02:30 at 15:30 UTC, and back from 02:00 to 01:30 at 15:00 UTC.
    let zone = "Australia/Lord_Howe";
    let (from, to) = ("2024-10-05T14:00:00Z", "2024-10-05T17:00:00Z");
    assert_eq!(between(&ticks("15 2 * * *", zone), from, to), ["2024-10-05T15:30:00"]);
    assert_eq!(between(&ticks("15 * * * *", zone), from, to), ["2024-10-05T14:45:00", "2024-10-05T16:15:00"]);
    let (from, to) = ("2024-04-06T14:00:00Z", "2024-04-06T16:00:00Z");
    assert_eq!(between(&ticks("45 1 * * *", zone), from, to), ["2024-04-06T14:45:00"]);
    assert_eq!(between(&ticks("45 * * * *", zone), from, to), ["2024-04-06T14:45:00", "2024-04-06T15:15:00"]);
}

#[test]
fn the_day_that_samoa_skipped_has_its_tick_when_the_next_begins() {
    let (from, to) = ("2011-12-29T10:00:00Z", "2012-01-01T10:00:00Z");
    assert_eq!(
        between(&ticks("0 6 * * *", "Pacific/Apia"), from, to),
        ["2011-12-29T16:00:00", "2011-12-30T10:00:00", "2011-12-30T16:00:00", "2011-12-31T16:00:00"]
    );
    assert_eq!(between(&ticks("0 0 30 12 *", "Pacific/Apia"), from, to), ["2011-12-30T10:00:00"]);
    // Midnight of both days is the same instant.
    assert_eq!(
        between(&ticks("0 0 * * *", "Pacific/Apia"), from, to),
        ["2011-12-29T10:00:00", "2011-12-30T10:00:00", "2011-12-31T10:00:00"]
    );
    assert_eq!(between(&ticks("0 */6 30 12 *", "Pacific/Apia"), from, to), [""; 0]);
}

#[test]
fn winter_time_of_dublin_is_the_exception_and_clocks_do_not_care() {
    let found =
        between(&ticks("30 1 * * *", "Europe/Dublin"), "2024-03-30T12:00:00Z", "2024-04-01T12:00:00Z");
    assert_eq!(found, ["2024-03-31T01:00:00", "2024-04-01T00:30:00"]);
    let found =
        between(&ticks("30 1 * * *", "Europe/Dublin"), "2024-10-26T12:00:00Z", "2024-10-28T12:00:00Z");
    assert_eq!(found, ["2024-10-27T00:30:00", "2024-10-28T01:30:00"]);
    // Until 1916 its clocks were 25 minutes and 21 seconds behind.
    let found = between(&ticks("0 6 * * *", "Europe/Dublin"), "1910-01-01T00:00:00Z", "1910-01-02T00:00:00Z");
    assert_eq!(found, ["1910-01-01T06:25:21"]);
}

#[test]
fn next_is_after_and_previous_is_at_or_before() {
    let hours = ticks("0 * * * *", "UTC");
    let one = time("2024-01-01T01:00:00Z");
    assert_eq!(hours.next(one), Some(time("2024-01-01T02:00:00Z")));
    assert_eq!(hours.next(time("2024-01-01T00:59:59.999Z")), Some(one));
    assert_eq!(hours.previous(one), Some(one));
    assert_eq!(hours.previous(time("2024-01-01T01:00:00.001Z")), Some(one));
    assert_eq!(hours.previous(time("2024-01-01T00:59:59.999Z")), Some(time("2024-01-01T00:00:00Z")));
    assert_eq!(hours.rank(one), hours.rank(time("2024-01-01T00:00:00.001Z")));
    assert_eq!(hours.rank(one) + 1, hours.rank(time("2024-01-01T01:00:00.001Z")));
}

#[test]
fn the_ends_of_the_calendar_are_reached_and_not_passed() {
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", NEW_YORK] {
        for cron in ["* * * * * *", "0 0 29 2 *", "0 * * * *"] {
            let ticks = ticks(cron, zone);
            let first = ticks.next(Timestamp::MIN).unwrap();
            let last = ticks.previous(Timestamp::MAX).unwrap();
            assert!(first < time("0005-01-01T00:00:00Z"), "{cron} {zone} {first}");
            assert!(last > time("9995-01-01T00:00:00Z"), "{cron} {zone} {last}");
            assert_eq!(ticks.next(last), None);
            assert_eq!(ticks.tick(ticks.rank(last)), Some(last));
            for rank in [i64::MIN, i64::MAX, ticks.rank(Timestamp::MIN) - 1, ticks.rank(last) + 1] {
                assert_eq!(ticks.tick(rank), None, "{cron} {zone} {rank}");
            }
        }
    }
}
