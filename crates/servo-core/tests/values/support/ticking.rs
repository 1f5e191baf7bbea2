//! Ticks of cron expressions in few words.

use servo_core::cron::Ticks;
use servo_core::{Cron, Timestamp};

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn ticks(cron: &str, zone: &str) -> Ticks {
    Cron::parse(cron).unwrap_or_else(|error| panic!("{error}")).in_zone(zone).unwrap()
}

/// The ticks from a time on, and before another, as `YYYY-MM-DDTHH:MM:SS` in UTC.
pub(crate) fn between(ticks: &Ticks, from: &str, to: &str) -> Vec<String> {
    let ranks = ticks.rank(time(from))..ticks.rank(time(to));
    ranks.map(|rank| ticks.tick(rank).unwrap().to_string()[..19].to_owned()).collect()
}
