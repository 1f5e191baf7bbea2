//! Ticks of schedules against a second opinion: an oracle that walks through the two days around every change of every
//! clock from 2024 to 2036, minute by minute, in Python.

use std::collections::BTreeMap;

use serde::Deserialize;
use servo_core::Timestamp;
use servo_core::cron::{Cron, Ticks};

use crate::support::oracle;

const MINUTE: i64 = 60;
const DAYS: i64 = 2 * 86_400;

/// A change of clocks, wherever it happens in the same way, and the minutes after the start at which each expression
/// ticks.
#[derive(Deserialize)]
struct Change {
    starts: Vec<(String, i64)>,
    ticks: Vec<Vec<i64>>,
}

fn seconds(at: i64) -> Timestamp {
    Timestamp::from_millis(at * 1_000)
}

/// The ticks from one time until another, one after another, as a schedule meets them.
fn walk(ticks: &Ticks, from: i64, until: i64) -> Vec<i64> {
    let after = |at: Timestamp| ticks.next(at).filter(|next| *next < seconds(until));
    let first = after(Timestamp::from_millis(from * 1_000 - 1));
    std::iter::successors(first, |at| after(*at)).map(|at| at.as_millis() / 1_000).collect()
}

#[test]
fn no_tick_is_lost_or_doubled_when_clocks_change_in_any_zone() {
    let mut expressions: Vec<Cron> = Vec::new();
    // By zone, so that its ticks are prepared once.
    let mut zones: BTreeMap<String, Vec<(i64, usize)>> = BTreeMap::new();
    let mut changes: Vec<Change> = Vec::new();
    oracle::ask("schedules_oracle", &[], "", |line| {
        if expressions.is_empty() {
            let texts: Vec<String> = serde_json::from_str(line).unwrap();
            expressions = texts.iter().map(|text| Cron::parse(text).unwrap()).collect();
            return;
        }
        let change: Change = serde_json::from_str(line).unwrap();
        for (zone, start) in &change.starts {
            zones.entry(zone.clone()).or_default().push((*start, changes.len()));
        }
        changes.push(change);
    });
    assert!(expressions.len() >= 20 && zones.len() > 100, "{} in {} zones", expressions.len(), zones.len());
    let mut wrong = Vec::new();
    for (zone, places) in &zones {
        for (index, expression) in expressions.iter().enumerate() {
            let ticks = expression.in_zone(zone).unwrap();
            for (start, change) in places {
                let ours = walk(&ticks, *start, start + DAYS);
                let theirs = changes[*change].ticks[index].iter().map(|minute| start + minute * MINUTE);
                if !ours.iter().copied().eq(theirs.clone()) {
                    let theirs: Vec<i64> = theirs.collect();
                    wrong.push(format!("{} in {zone}: {ours:?}, should be {theirs:?}", expression.as_str()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {zones:?}, the first: {}", wrong.len(), wrong[0]);
}
