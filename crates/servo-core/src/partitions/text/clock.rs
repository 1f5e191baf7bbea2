//! Dates, months and times of the clock as people type them.

use std::ops::Range;

use super::super::dimension::Dimension;
use super::super::error::Reason;
use super::super::time::Windows;
use super::super::zone::Clock;
use super::words::Word;
use crate::PartitionValue;
use crate::civil::{self, Day};

const DAY: i64 = 86_400;
const MICROS: i64 = 1_000_000;

/// The numbers of the windows that a text of time names: those that start in it, or if none does, those around it.
pub(super) fn named(windows: &Windows, text: &str) -> Result<Range<i64>, Unnamed> {
    let (from, to) = span(windows, text).map_err(Unnamed::Unreadable)?;
    if from < to {
        return Ok(windows.named(from, to));
    }
    // A day that the zone skipped is still the name of a week or a month that it begins.
    let day =
        PartitionValue::parse(&format!("d:{text}")).map_err(|error| Unnamed::Unreadable(error.problem))?;
    let number = windows.number("", &day).map_err(Unnamed::Nothing)?;
    Ok(number..number + 1)
}

/// Whether a dimension is of time and a word is one.
pub(super) fn reads(dimension: &Dimension, word: &Word) -> bool {
    !word.quoted && dimension.windows().is_some_and(|windows| span(windows, &word.text).is_ok())
}

/// Why a text names no window.
pub(super) enum Unnamed {
    /// It is not a time.
    Unreadable(String),
    /// No window is there.
    Nothing(Reason),
}

/// From which second to which a text is: a month, a day, an hour, a minute or a second. Nothing of a skipped day.
fn span(windows: &Windows, text: &str) -> Result<(i64, i64), String> {
    let start = |day: Day| windows.zone().start_of_day(civil::days_from_civil(day));
    if text.len() == 7 {
        let first = first_of_month(text)?;
        return Ok((start(first), start(next_month(first))));
    }
    let day = civil::read_date(text, 0).map_err(|(_, problem)| problem)?;
    if text.len() > 10 {
        let (instant, length) = instant(windows, day, &text[10..])?;
        return Ok((instant, instant + length));
    }
    check_year(day)?;
    let next = windows.zone().start_of_day(civil::days_from_civil(day) + 1);
    Ok((start(day), next))
}

/// Reads a value of windows of time: a date where they are named by dates, otherwise a time.
pub(super) fn read(windows: &Windows, text: &str) -> Result<PartitionValue, String> {
    match windows.value(0) {
        PartitionValue::Date(_) => date(windows, text),
        PartitionValue::Time(_)
        | PartitionValue::Str(_)
        | PartitionValue::Int(_)
        | PartitionValue::Bool(_)
        | PartitionValue::Null => time(windows, text),
    }
}

/// `YYYY-MM-DD`, or `YYYY-MM` where one window starts in that month.
fn date(windows: &Windows, text: &str) -> Result<PartitionValue, String> {
    if text.len() == 7 {
        return month(windows, text);
    }
    PartitionValue::parse(&format!("d:{text}")).map_err(|error| error.problem)
}

fn month(windows: &Windows, text: &str) -> Result<PartitionValue, String> {
    let first = first_of_month(text)?;
    let next = next_month(first);
    let start = |day: Day| windows.zone().start_of_day(civil::days_from_civil(day));
    let (from, to) = (windows.index_at(start(first) - 1) + 1, windows.index_at(start(next) - 1) + 1);
    if to != from + 1 {
        return Err(format!("{} partitions start in {text}", to - from));
    }
    match windows.possible(from) {
        Ok(index) => Ok(windows.value(index)),
        Err(reason) => Err(reason.to_string()),
    }
}

fn first_of_month(text: &str) -> Result<Day, String> {
    let first = civil::read_date(&format!("{text}-01"), 0).map_err(|(_, problem)| problem)?;
    check_year(first).map(|()| first)
}

fn next_month(first: Day) -> Day {
    match first.month {
        12 => Day { year: first.year + 1, month: 1, day: 1 },
        month => Day { month: month + 1, ..first },
    }
}

/// A year from the ends of the calendar, so that the day or month after it is in it too.
fn check_year(day: Day) -> Result<(), String> {
    if (2..=9998).contains(&day.year) {
        return Ok(());
    }
    Err(format!("year {} is not between 2 and 9998", day.year))
}

/// `YYYY-MM-DDTHH[:MM[:SS[.0]]]` by the clock of the zone, or at an instant with `Z` or `±HH:MM` after it.
fn time(windows: &Windows, text: &str) -> Result<PartitionValue, String> {
    let day = civil::read_date(text, 0).map_err(|(_, problem)| problem)?;
    let (instant, _) = instant(windows, day, text.get(10..).unwrap_or_default())?;
    Ok(PartitionValue::Time(instant * MICROS))
}

/// The instant of a day and the clock after it, and how many seconds it stands for.
fn instant(windows: &Windows, day: Day, text: &str) -> Result<(i64, i64), String> {
    if !(1..=9999).contains(&day.year) {
        return Err("year 0 is not between 1 and 9999".to_owned());
    }
    let Time { second, length, offset } = clock(text)?;
    let local = civil::days_from_civil(day) * DAY + second;
    let instant = match offset {
        Some(offset) => local - offset,
        None => match windows.zone().at_clock(local) {
            Clock::Once(instant) => instant,
            Clock::Never => return Err(format!("that time did not exist in {}", windows.zone().name())),
            Clock::Twice(first, second) => {
                let [first, second] = [first, second].map(shown);
                return Err(format!(
                    "that time happened twice in {}, at {first} and {second}",
                    windows.zone().name()
                ));
            }
        },
    };
    Ok((instant, length))
}

fn shown(instant: i64) -> String {
    let mut text = [0; 19];
    civil::write_date_time(&mut text, instant);
    format!("{}Z", String::from_utf8_lossy(&text))
}

/// A time of the day as written.
struct Time {
    second: i64,
    /// How many seconds it stands for: an hour, a minute or one.
    length: i64,
    /// From UTC, if one was written.
    offset: Option<i64>,
}

/// Reads `THH[:MM[:SS[.0]]]`, and `Z` or `±HH:MM` after it.
fn clock(text: &str) -> Result<Time, String> {
    let Some(rest) = text.strip_prefix(['T', ' ']) else {
        return Err("a time of the day is missing".to_owned());
    };
    let end = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(end);
    let time = time.split_once('.').map_or(time, |(whole, fraction)| {
        if fraction.bytes().all(|digit| digit == b'0') { whole } else { time }
    });
    let (second, length) = match time.len() {
        2 => (format!("T{time}:00:00"), 3_600),
        5 => (format!("T{time}:00"), 60),
        _ => (format!("T{time}"), 1),
    };
    if second.len() != 9 {
        return Err(format!("{time:?} is not a time of the day"));
    }
    let second = civil::read_time(&second, 0).map_err(|(_, problem)| problem)?;
    Ok(Time { second, length, offset: offset(zone)? })
}

fn offset(text: &str) -> Result<Option<i64>, String> {
    let (sign, clock) = match text.split_at_checked(1) {
        None => return Ok(None),
        Some(("Z", "")) => return Ok(Some(0)),
        Some(("+", clock)) => (1, clock),
        Some(("-", clock)) => (-1, clock),
        Some(_) => {
            return Err(format!("found {text:?} after the time, expected \"Z\" or an offset such as +01:00"));
        }
    };
    let whole = if clock.len() == 5 { format!("T{clock}:00") } else { String::new() };
    let seconds =
        civil::read_time(&whole, 0).map_err(|_| format!("{text:?} is not an offset such as +01:00"))?;
    Ok(Some(sign * seconds))
}
