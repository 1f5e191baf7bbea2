//! Cron expressions as text: what they mean, and what is refused.

use servo_core::Cron;

use crate::support::ticking::{between, ticks};

/// The local times of the ticks of 2024, a year that starts on a Monday.
fn of_2024(cron: &str) -> Vec<String> {
    between(&ticks(cron, "UTC"), "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z")
}

fn days_of_2024(cron: &str) -> Vec<String> {
    of_2024(cron).into_iter().map(|tick| tick[5..10].to_owned()).collect()
}

fn problem(cron: &str) -> (usize, String) {
    let error = Cron::parse(cron).expect_err(cron);
    assert_eq!(error.what, "cron expression");
    (error.at, error.problem)
}

#[test]
fn fields_are_lists_ranges_and_steps() {
    let minutes = |field: &str| {
        let hour = between(
            &ticks(&format!("{field} * * * *"), "UTC"),
            "2024-01-01T00:00:00Z",
            "2024-01-01T01:00:00Z",
        );
        hour.into_iter().map(|tick| tick[14..16].parse().unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(minutes("*"), (0..60).collect::<Vec<_>>());
    assert_eq!(minutes("7"), [7]);
    assert_eq!(minutes("30,0,30"), [0, 30]);
    assert_eq!(minutes("58-59"), [58, 59]);
    assert_eq!(minutes("*/20"), [0, 20, 40]);
    assert_eq!(minutes("1-10/4"), [1, 5, 9]);
    assert_eq!(minutes("5/15"), [5, 20, 35, 50]);
    assert_eq!(minutes("07,*/30,20-21"), [0, 7, 20, 21, 30]);
    assert_eq!(minutes("*/60"), [0]);
}

#[test]
fn a_sixth_field_in_front_is_the_second() {
    let found = between(&ticks("*/20 0 6 * * *", "UTC"), "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z");
    assert_eq!(found, ["2024-01-01T06:00:00", "2024-01-01T06:00:20", "2024-01-01T06:00:40"]);
}

#[test]
fn months_and_weekdays_have_names_and_sunday_two_numbers() {
    assert_eq!(days_of_2024("0 0 1 jan,Jul-AUG *"), ["01-01", "07-01", "08-01"]);
    for sundays in ["SUN", "0", "7", "sun"] {
        assert_eq!(
            days_of_2024(&format!("0 0 * 1 {sundays}")),
            ["01-07", "01-14", "01-21", "01-28"],
            "{sundays}"
        );
    }
    for weekend in ["SAT-SUN", "6-7", "6-0", "6,0", "0/6", "*/6"] {
        let days = days_of_2024(&format!("0 0 * 1 {weekend}"));
        assert_eq!(days.len(), 8, "{weekend} {days:?}");
    }
    assert_eq!(days_of_2024("0 0 * * MON-SUN").len(), 366);
    assert_eq!(days_of_2024("0 0 * * 0-7").len(), 366);
    assert_eq!(days_of_2024("0 0 * 1 5-7").len(), 12);
}

#[test]
fn either_the_day_or_the_weekday_will_do_if_both_say_something() {
    assert_eq!(days_of_2024("0 0 13 9 FRI"), ["09-06", "09-13", "09-20", "09-27"]);
    assert_eq!(days_of_2024("0 0 10 9 FRI"), ["09-06", "09-10", "09-13", "09-20", "09-27"]);
    for any in ["*", "?"] {
        assert_eq!(days_of_2024(&format!("0 0 10 9 {any}")), ["09-10"]);
        assert_eq!(days_of_2024(&format!("0 0 {any} 9 TUE")), ["09-03", "09-10", "09-17", "09-24"]);
    }
    assert_eq!(days_of_2024("0 0 ? 9 ?").len(), 30);
    // A field that begins with a star takes days away from the other, as in Vixie cron and cronie.
    assert_eq!(days_of_2024("0 0 */2 9 MON"), ["09-09", "09-23"]);
    assert_eq!(days_of_2024("0 0 10-20 9 */3"), ["09-11", "09-14", "09-15", "09-18"]);
    assert_eq!(days_of_2024("0 0 */2,4 9 WED"), ["09-04", "09-11", "09-25"]);
    assert_eq!(days_of_2024("0 0 4,*/10 9 WED").len(), 6);
    // A range of all days says something: every day will do.
    assert_eq!(days_of_2024("0 0 1-31 9 TUE").len(), 30);
}

#[test]
fn l_is_the_last_day_of_the_month() {
    let ends = [
        "01-31", "02-29", "03-31", "04-30", "05-31", "06-30", "07-31", "08-31", "09-30", "10-31", "11-30",
        "12-31",
    ];
    assert_eq!(days_of_2024("0 0 L * *"), ends);
    assert_eq!(days_of_2024("0 0 15,l 2 *"), ["02-15", "02-29"]);
    assert_eq!(days_of_2024("0 0 L 2 MON"), ["02-05", "02-12", "02-19", "02-26", "02-29"]);
    let ends = between(&ticks("0 0 L 2 *", "UTC"), "2097-01-01T00:00:00Z", "2105-01-01T00:00:00Z");
    let ends: Vec<_> = ends.iter().map(|tick| &tick[8..10]).collect();
    assert_eq!(ends, ["28", "28", "28", "28", "28", "28", "28", "29"]);
}

#[test]
fn short_names_mean_what_they_say() {
    for (short, long) in [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ] {
        assert_eq!(of_2024(short), of_2024(long), "{short}");
        assert_eq!(Cron::parse(&format!(" {} ", short.to_uppercase())).unwrap().as_str(), short);
    }
}

#[test]
fn the_text_has_single_spaces_and_capital_names() {
    let cron = Cron::parse("\t0  6 l * mon-Fri\n").unwrap();
    assert_eq!(cron.to_string(), "0 6 L * MON-FRI");
    assert_eq!(Cron::parse(cron.as_str()).unwrap(), cron);
    assert_ne!(Cron::parse("@daily").unwrap(), Cron::parse("0 0 * * *").unwrap());
}

#[test]
fn refusals_say_where_and_what_is_allowed() {
    for (text, at, message) in [
        ("61 * * * *", 0, "minute 61 is not between 0 and 59"),
        ("0 24 * * *", 2, "hour 24 is not between 0 and 23"),
        (" 0 0 0 * *", 5, "day 0 is not between 1 and 31"),
        ("0 0 1,32 * *", 6, "day 32 is not between 1 and 31"),
        ("0 0 * 13 *", 6, "month 13 is not between 1 and 12"),
        ("0 0 * * 8", 8, "weekday 8 is not between 0 and 7"),
        ("60 0 0 * * *", 0, "second 60 is not between 0 and 59"),
        ("99999999999 * * * *", 0, "minute 4294967295 is not between 0 and 59"),
        ("0 0 * FOO *", 6, "FOO is not a month, expected 1 to 12, JAN to DEC or \"*\""),
        ("0 0 * * MONDAY", 8, "MONDAY is not a weekday, expected 0 to 7, SUN to SAT, \"*\" or \"?\""),
        ("x * * * *", 0, "found 'x', expected the minute, 0 to 59 or \"*\""),
        ("0 0 5W * *", 5, "found 'W', expected \"-\", \"/\", \",\" or the end of the field"),
        ("0 0 * * 5#2", 9, "found '#', expected \"-\", \"/\", \",\" or the end of the field"),
        ("0 0 L-3 * *", 5, "found '-', expected \",\" or the end of the field"),
        ("*-5 * * * *", 1, "found '-', expected \"/\", \",\" or the end of the field"),
        ("1-5-9 * * * *", 3, "found '-', expected \"/\", \",\" or the end of the field"),
        ("*/5/2 * * * *", 3, "found '/', expected \",\" or the end of the field"),
        ("0 0 * * L", 8, "L, the last day of the month, is a day and not a weekday"),
        ("? * * * *", 0, "\"?\" is for the day or the weekday; any minute is \"*\""),
        ("*/0 * * * *", 2, "a step of 0 is not between 1 and 60, the number of minutes"),
        ("*/90 * * * *", 2, "a step of 90 is not between 1 and 60, the number of minutes"),
        ("*/ * * * *", 2, "found ' ', expected a number after \"/\", as in */5"),
        ("0, * * * *", 2, "found ' ', expected the minute, 0 to 59 or \"*\""),
        ("0 22-4 * * *", 2, "the hours 22-4 run backwards; write 22-23,0-4"),
        ("0 0 * * FRI-MON", 8, "the weekdays 5-1 run backwards; write 5-6,0-1"),
        ("0 -1 * * *", 2, "found '-', expected the hour, 0 to 23 or \"*\""),
        (
            "0 0 * *",
            7,
            "it has 4 fields, expected 5, minute hour day month weekday, or 6 with the second first",
        ),
        ("", 0, "it has 0 fields, expected 5, minute hour day month weekday, or 6 with the second first"),
        (
            "0 0 0 * * * 2024",
            12,
            "it has 7 fields, expected 5, minute hour day month weekday, or 6 with the second first",
        ),
        (
            "@reboot",
            0,
            "@reboot is not one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually",
        ),
        ("@daily *", 7, "nothing may follow @daily"),
        ("0 0 30 2 *", 4, "it never ticks: none of its months has such a day"),
        ("0 0 31 4,6,9,11 *", 4, "it never ticks: none of its months has such a day"),
        ("é * * * *", 0, "found 'é', expected the minute, 0 to 59 or \"*\""),
        ("0 0 * * é", 8, "found 'é', expected the weekday, 0 to 7, SUN to SAT, \"*\" or \"?\""),
    ] {
        assert_eq!(problem(text), (at, message.to_owned()), "{text}");
    }
    let (at, message) = problem(&"0,".repeat(600));
    assert_eq!((at, message.as_str()), (1_000, "it is longer than 1000 bytes"));
    let every = |max: u32| (0..=max).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let longest = format!(
        "{} {} {} {} {} {}",
        every(59),
        every(59),
        every(23),
        &every(31)[2..],
        &every(12)[2..],
        every(7)
    );
    assert!(Cron::parse(&longest).is_ok());
    // Only with a weekday, of which every month has some.
    assert_eq!(days_of_2024("0 0 30 2 THU").len(), 5);
}

#[test]
fn a_zone_is_named_exactly() {
    let cron = Cron::parse("@daily").unwrap();
    let error = cron.in_zone("europe/paris").unwrap_err();
    assert_eq!((error.what, error.at), ("time zone", 0));
    assert!(error.problem.ends_with("did you mean \"Europe/Paris\"?"), "{error}");
}
