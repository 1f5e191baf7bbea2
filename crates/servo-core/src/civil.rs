//! The text form of dates and times, shared by [`Timestamp`](crate::Timestamp) and partition keys.
//!
//! Written by hand because it is on the path of every event: no allocation, no time zone, no leap seconds.

use std::ops::RangeInclusive;

use crate::parse_error::{Refused, unexpected};

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Day {
    pub(crate) year: i64,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

/// Days since 1970-01-01. (Howard Hinnant's `days_from_civil`.)
pub(crate) fn days_from_civil(date: Day) -> i64 {
    let year = if date.month <= 2 { date.year - 1 } else { date.year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = i64::from((date.month + 9) % 12);
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(date.day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The day that is `days` after 1970-01-01. (Howard Hinnant's `civil_from_days`.)
pub(crate) fn civil_from_days(days: i64) -> Day {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Day { year, month, day }
}

/// Writes `value` into `out` as decimal digits with leading zeros.
pub(crate) fn write_digits(out: &mut [u8], mut value: u64) {
    for slot in out.iter_mut().rev() {
        *slot = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Writes `YYYY-MM-DDTHH:MM:SS` into the first 19 bytes of `out`.
pub(crate) fn write_date_time(out: &mut [u8], epoch_seconds: i64) {
    let date = civil_from_days(epoch_seconds.div_euclid(86_400));
    let second = epoch_seconds.rem_euclid(86_400) as u64;
    out[..19].copy_from_slice(b"0000-00-00T00:00:00");
    write_digits(&mut out[0..4], date.year as u64);
    write_digits(&mut out[5..7], u64::from(date.month));
    write_digits(&mut out[8..10], u64::from(date.day));
    write_digits(&mut out[11..13], second / 3_600);
    write_digits(&mut out[14..16], second / 60 % 60);
    write_digits(&mut out[17..19], second % 60);
}

/// Reads `YYYY-MM-DD` at byte `start` of `text`. Shape errors point at the character, calendar errors at `start`.
pub(crate) fn read_date(text: &str, start: usize) -> Result<Day, Refused> {
    let year = read_digits(text, start, 4)?;
    expect(text, start + 4, b'-', "\"-\" after the year")?;
    let month = read_digits(text, start + 5, 2)?;
    expect(text, start + 7, b'-', "\"-\" after the month")?;
    let day = read_digits(text, start + 8, 2)?;
    within(start, "month", month, 1..=12)?;
    let (year, month, day) = (i64::from(year), month, day);
    let last = days_in_month(year, month);
    if !(1..=last).contains(&day) {
        return Err((start, format!("day {day} is not between 1 and {last}")));
    }
    Ok(Day { year, month, day })
}

/// Reads `THH:MM:SS` at byte `start` and gives the second of the day.
pub(crate) fn read_time(text: &str, start: usize) -> Result<i64, Refused> {
    expect(text, start, b'T', "\"T\" between date and time")?;
    let hour = read_digits(text, start + 1, 2)?;
    expect(text, start + 3, b':', "\":\" after the hour")?;
    let minute = read_digits(text, start + 4, 2)?;
    expect(text, start + 6, b':', "\":\" after the minute")?;
    let second = read_digits(text, start + 7, 2)?;
    within(start, "hour", hour, 0..=23)?;
    within(start, "minute", minute, 0..=59)?;
    within(start, "second", second, 0..=59)?;
    Ok(i64::from(hour * 3_600 + minute * 60 + second))
}

/// Refuses unless the byte at `at` is `wanted`.
pub(crate) fn expect(text: &str, at: usize, wanted: u8, expected: &str) -> Result<(), Refused> {
    if text.as_bytes().get(at) == Some(&wanted) { Ok(()) } else { Err((at, unexpected(text, at, expected))) }
}

/// Reads exactly `count` decimal digits.
pub(crate) fn read_digits(text: &str, start: usize, count: usize) -> Result<u32, Refused> {
    let mut value = 0;
    for at in start..start + count {
        match text.as_bytes().get(at) {
            Some(digit @ b'0'..=b'9') => value = value * 10 + u32::from(digit - b'0'),
            Some(_) | None => return Err((at, unexpected(text, at, "a digit"))),
        }
    }
    Ok(value)
}

fn within(at: usize, unit: &str, value: u32, range: RangeInclusive<u32>) -> Result<(), Refused> {
    if range.contains(&value) {
        return Ok(());
    }
    Err((at, format!("{unit} {value} is not between {} and {}", range.start(), range.end())))
}

/// How many days the month of a year has.
pub(crate) fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree_with_jiff_over_ten_thousand_years() {
        let epoch = jiff::civil::date(1970, 1, 1);
        for days in (-719_528..=2_932_896).step_by(97).chain([-719_528, -1, 0, 1, 2_932_896]) {
            let day = civil_from_days(days);
            assert_eq!(days_from_civil(day), days);
            let theirs = epoch.checked_add(jiff::ToSpan::days(days)).unwrap();
            assert_eq!(
                (day.year, day.month, day.day),
                (i64::from(theirs.year()), theirs.month() as u32, theirs.day() as u32)
            );
        }
    }

    #[test]
    fn leap_days_exist_only_in_leap_years() {
        assert!(read_date("2024-02-29", 0).is_ok());
        assert!(read_date("2000-02-29", 0).is_ok());
        assert_eq!(read_date("1900-02-29", 0).unwrap_err().1, "day 29 is not between 1 and 28");
    }
}
