//! Automation conditions: what makes an asset be made without anybody asking (`docs/automation.md`, ADR-145).
//!
//! [`Condition`] is the tree as the SDK writes it into the manifest. [`check`] says everything that is wrong with one:
//! times that do not exist, assets that are not upstream, a tree that is too large, one that nothing can make true, and
//! one that would request its asset again and again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, Millis};

use super::automation::check_cron;
use super::limits::About;
use super::manifest::is_default;

/// Levels of a condition. Manifests are written into events, where they are nested deeper.
const MAX_DEPTH: usize = 32;
/// Parts of a condition.
const MAX_PARTS: usize = 200;
/// Requests within a time that a limit may count: as many are kept in memory for each partition.
const MAX_TIMES: u32 = 100;
const MAX_PER: u64 = 31 * 86_400_000;
const MAX_WINDOWS: u32 = 1_000;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A condition, evaluated for each partition of its asset.
///
/// Parts are about the asset itself, or about the upstream asset if they stand within `any_upstream` or `all_upstream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Condition {
    /// All of these.
    And {
        /// The parts.
        of: Vec<Condition>,
    },
    /// One of these.
    Or {
        /// The parts.
        of: Vec<Condition>,
    },
    /// Not this.
    Not {
        /// The part.
        of: Box<Condition>,
    },
    /// This, and it happened after the other.
    Since {
        /// The part.
        of: Box<Condition>,
        /// The condition that resets it.
        since: Box<Condition>,
    },
    /// This became true since the partition was last made or requested.
    NewlyTrue {
        /// The part.
        of: Box<Condition>,
    },
    /// A part with a name for people.
    Named {
        /// The name.
        name: String,
        /// The part.
        of: Box<Condition>,
    },
    /// The partition was never made, or is gone.
    Missing,
    /// The partition came into existence since it was last made or requested.
    NewPartition,
    /// The partition was made since.
    Updated,
    /// The partition is not what the newest code and data would give.
    Stale,
    /// The partition was made by another version of the code.
    CodeChanged,
    /// A run that is not over makes the partition.
    InProgress,
    /// The last attempt at the partition failed.
    Failed,
    /// A tick has passed since.
    CronTick {
        /// The expression.
        cron: String,
        /// Its zone; UTC if none is given.
        #[serde(default, skip_serializing_if = "is_default")]
        timezone: Option<String>,
    },
    /// True of one upstream partition.
    AnyUpstream {
        /// The part.
        of: Box<Condition>,
        /// Only these assets; all if there are none.
        #[serde(default, skip_serializing_if = "is_default")]
        only: Vec<String>,
        /// Without these assets.
        #[serde(default, skip_serializing_if = "is_default")]
        ignore: Vec<String>,
    },
    /// True of all upstream partitions.
    AllUpstream {
        /// The part.
        of: Box<Condition>,
        /// Only these assets; all if there are none.
        #[serde(default, skip_serializing_if = "is_default")]
        only: Vec<String>,
        /// Without these assets.
        #[serde(default, skip_serializing_if = "is_default")]
        ignore: Vec<String>,
    },
    /// The partition is among the newest along its dimension of time; always true without one.
    Latest {
        /// How many windows count as newest.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        windows: u32,
    },
    /// It is now between two times of a day.
    During {
        /// `HH:MM`.
        from: String,
        /// `HH:MM`, excluded; of the next day if it is not later.
        to: String,
        /// Days on which it begins; every day if there are none.
        #[serde(default, skip_serializing_if = "is_default")]
        days: Vec<String>,
        /// Its zone; UTC if none is given.
        #[serde(default, skip_serializing_if = "is_default")]
        timezone: Option<String>,
    },
    /// The partition was requested fewer than so many times lately.
    AtMost {
        /// How many times.
        times: u32,
        /// Within how long.
        per_ms: Millis,
    },
}

fn one() -> u32 {
    1
}

fn is_one(windows: &u32) -> bool {
    *windows == 1
}

impl Condition {
    /// The parts right below this one.
    pub fn parts(&self) -> Vec<&Condition> {
        match self {
            Self::And { of } | Self::Or { of } => of.iter().collect(),
            Self::Since { of, since } => vec![of, since],
            Self::Not { of }
            | Self::NewlyTrue { of }
            | Self::Named { of, .. }
            | Self::AnyUpstream { of, .. }
            | Self::AllUpstream { of, .. } => vec![of],
            Self::Missing
            | Self::NewPartition
            | Self::Updated
            | Self::Stale
            | Self::CodeChanged
            | Self::InProgress
            | Self::Failed
            | Self::CronTick { .. }
            | Self::Latest { .. }
            | Self::During { .. }
            | Self::AtMost { .. } => Vec::new(),
        }
    }

    /// The condition in a line, as it could be written in Python.
    pub fn text(&self) -> String {
        let joined = |of: &[Condition], sign: &str| {
            let parts: Vec<String> = of.iter().map(Condition::inner_text).collect();
            parts.join(sign)
        };
        match self {
            Self::And { of } => joined(of, " & "),
            Self::Or { of } => joined(of, " | "),
            Self::Not { of } => format!("~{}", of.inner_text()),
            Self::Since { of, since } => format!("{}.since({})", of.inner_text(), since.text()),
            Self::NewlyTrue { of } => format!("{}.newly_true()", of.inner_text()),
            Self::Named { name, .. } => name.clone(),
            Self::Missing => "missing()".to_owned(),
            Self::NewPartition => "new_partition()".to_owned(),
            Self::Updated => "updated()".to_owned(),
            Self::Stale => "stale()".to_owned(),
            Self::CodeChanged => "code_changed()".to_owned(),
            Self::InProgress => "in_progress()".to_owned(),
            Self::Failed => "failed()".to_owned(),
            Self::CronTick { cron, timezone } => match timezone {
                Some(zone) => format!("cron_tick({cron:?}, timezone={zone:?})"),
                None => format!("cron_tick({cron:?})"),
            },
            Self::AnyUpstream { of, .. } => format!("any_upstream({})", of.text()),
            Self::AllUpstream { of, .. } => format!("all_upstream({})", of.text()),
            Self::Latest { windows: 1 } => "latest()".to_owned(),
            Self::Latest { windows } => format!("latest({windows})"),
            Self::During { from, to, days, timezone } => {
                let days = if days.is_empty() { String::new() } else { format!(" on {}", days.join(", ")) };
                let zone = timezone.as_deref().map(|zone| format!(" in {zone}")).unwrap_or_default();
                format!("during(\"{from}\", \"{to}\"){days}{zone}")
            }
            Self::AtMost { times, per_ms } => format!("at_most({times}, per={per_ms})"),
        }
    }

    fn inner_text(&self) -> String {
        match self {
            Self::And { .. } | Self::Or { .. } => format!("({})", self.text()),
            Self::Not { .. }
            | Self::Since { .. }
            | Self::NewlyTrue { .. }
            | Self::Named { .. }
            | Self::Missing
            | Self::NewPartition
            | Self::Updated
            | Self::Stale
            | Self::CodeChanged
            | Self::InProgress
            | Self::Failed
            | Self::CronTick { .. }
            | Self::AnyUpstream { .. }
            | Self::AllUpstream { .. }
            | Self::Latest { .. }
            | Self::During { .. }
            | Self::AtMost { .. } => self.text(),
        }
    }

    /// How many requests of a partition the limits in it have to know.
    pub(crate) fn remembered_requests(&self) -> usize {
        let own = if let Self::AtMost { times, .. } = self { *times as usize } else { 0 };
        self.parts().into_iter().map(Self::remembered_requests).chain([own]).max().unwrap_or(0)
    }
}

/// The cron expressions that open and close the window of a [`Condition::During`], in that order.
pub(crate) fn opening_and_closing(from: &str, to: &str, days: &[String]) -> Result<(String, String), String> {
    let (opens, closes) = (minute_of_day(from)?, minute_of_day(to)?);
    if opens == closes {
        return Err(format!("opens and closes at {from}"));
    }
    let mut numbers = BTreeSet::new();
    for day in days {
        let found = DAYS.iter().position(|known| known == day);
        numbers.insert(found.ok_or_else(|| format!("{day:?} is no day: {}", DAYS.join(", ")))?);
    }
    let cron = |minute: u32, shift: usize| {
        let days: Vec<String> =
            numbers.iter().map(|day| ((day + shift) % 7 + 1).to_string().replace('7', "0")).collect();
        let days = if days.is_empty() || days.len() == 7 { "*".to_owned() } else { days.join(",") };
        format!("{} {} * * {days}", minute % 60, minute / 60)
    };
    Ok((cron(opens, 0), cron(closes, usize::from(closes < opens))))
}

fn minute_of_day(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is no time of a day, HH:MM");
    let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
    let number = |digits: &str, below: u32| {
        let is_plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|number| is_plain && *number < below)
    };
    let minutes = number(hour, 24).zip(number(minute, 60)).map(|(hour, minute)| hour * 60 + minute);
    minutes.ok_or_else(wrong)
}

/// Reports every problem of the condition of one asset. `upstream` has the keys of the assets that it depends on, by
/// how many steps they are away: conditions may look further than one.
pub(super) fn check(condition: &Condition, is_external: bool, about: &mut About<'_>) {
    if is_external {
        about.add("has automation= and is made outside of Servo", "leave automation= out");
        return;
    }
    let (depth, parts) = (depth(condition), count(condition));
    if depth > MAX_DEPTH || parts > MAX_PARTS {
        about.add(
            format!("automation= is {depth} levels deep and has {parts} parts; {MAX_DEPTH} and {MAX_PARTS} are allowed"),
            "split it, or decide in a sensor",
        );
        return;
    }
    check_parts(condition, about);
    if !can_fire(condition, Place::Own, false) {
        about.add(
            format!("automation={} never makes it: nothing in it happens", condition.text()),
            "add what is to start it: any_upstream(updated()), cron_tick(…), missing(), stale() or code_changed()",
        );
    }
    if starts_itself(condition, Place::Own, false, false) {
        about.add(
            format!("automation={} can make it again and again, for what its own runs do", condition.text()),
            "limit it: … & servo.at_most(3, per=\"1d\")",
        );
    }
}

fn depth(condition: &Condition) -> usize {
    // Not recursive: the depth is not known to be small yet.
    let (mut level, mut depth) = (vec![condition], 0);
    while !level.is_empty() {
        depth += 1;
        level = level.into_iter().flat_map(Condition::parts).collect();
    }
    depth
}

fn count(condition: &Condition) -> usize {
    let (mut todo, mut count) = (vec![condition], 0);
    while let Some(next) = todo.pop() {
        count += 1;
        todo.extend(next.parts());
    }
    count
}

fn check_parts(condition: &Condition, about: &mut About<'_>) {
    match condition {
        Condition::And { of } | Condition::Or { of } if of.is_empty() => {
            about.add("automation= joins nothing", "give & and | two conditions");
        }
        Condition::CronTick { cron, timezone } => check_cron(cron, timezone.as_deref(), about),
        Condition::During { from, to, days, timezone } => {
            match opening_and_closing(from, to, days) {
                Ok((opening, _)) => check_cron(&opening, timezone.as_deref(), about),
                Err(problem) => about.add(
                    format!("during: {problem}"),
                    "write during(\"22:00\", \"06:00\", days=[\"mon\", \"tue\"])",
                ),
            };
        }
        Condition::AtMost { times, per_ms } => {
            if !(1..=MAX_TIMES).contains(times) {
                about.add(
                    format!("at_most has {times} times, 1 to {MAX_TIMES} are allowed"),
                    "pause its automation instead of at_most(0, …)",
                );
            }
            about.within("per of at_most", *per_ms, 1_000, MAX_PER);
        }
        Condition::Latest { windows } if !(1..=MAX_WINDOWS).contains(windows) => {
            about.add(
                format!("latest has {windows} windows, 1 to {MAX_WINDOWS} are allowed"),
                "latest() is the newest one",
            );
        }
        Condition::Named { name, .. }
            if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) =>
        {
            about.add(
                format!("automation= has the label {name:?}, which is not 1 to 200 printable characters"),
                "shorten it",
            );
        }
        Condition::AnyUpstream { only, ignore, .. } | Condition::AllUpstream { only, ignore, .. } => {
            for text in only.iter().chain(ignore) {
                if let Err(error) = AssetKey::parse(text) {
                    about.add(
                        format!("automation= names {text:?}: {error}"),
                        "name an asset, such as \"raw.flights\"",
                    );
                }
            }
        }
        Condition::And { .. }
        | Condition::Or { .. }
        | Condition::Not { .. }
        | Condition::Since { .. }
        | Condition::NewlyTrue { .. }
        | Condition::Named { .. }
        | Condition::Missing
        | Condition::NewPartition
        | Condition::Updated
        | Condition::Stale
        | Condition::CodeChanged
        | Condition::InProgress
        | Condition::Failed
        | Condition::Latest { .. } => {}
    }
    condition.parts().into_iter().for_each(|part| check_parts(part, about));
}

/// Whether a part is about the asset itself or one upstream of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Own,
    Upstream,
}

/// Whether something in a condition can be what makes its asset be requested: a fact that is news, not a state that
/// keeps it back.
fn can_fire(condition: &Condition, place: Place, negated: bool) -> bool {
    match condition {
        Condition::And { of } | Condition::Or { of } => of.iter().any(|part| can_fire(part, place, negated)),
        Condition::Not { of } => can_fire(of, place, !negated),
        Condition::Since { of, .. } | Condition::Named { of, .. } => can_fire(of, place, negated),
        Condition::AnyUpstream { of, .. } | Condition::AllUpstream { of, .. } => {
            can_fire(of, Place::Upstream, negated)
        }
        Condition::NewlyTrue { of } => !negated && has_a_moment(of),
        Condition::Updated | Condition::InProgress => !negated && place == Place::Upstream,
        Condition::Missing
        | Condition::NewPartition
        | Condition::Stale
        | Condition::CodeChanged
        | Condition::Failed
        | Condition::CronTick { .. } => !negated,
        Condition::Latest { .. } | Condition::During { .. } | Condition::AtMost { .. } => false,
    }
}

/// Whether it is known since when a part is as it is.
fn has_a_moment(condition: &Condition) -> bool {
    let parts = condition.parts();
    match condition {
        Condition::Latest { .. } | Condition::AtMost { .. } => false,
        Condition::And { .. }
        | Condition::Or { .. }
        | Condition::Not { .. }
        | Condition::Since { .. }
        | Condition::NewlyTrue { .. }
        | Condition::Named { .. }
        | Condition::Missing
        | Condition::NewPartition
        | Condition::Updated
        | Condition::Stale
        | Condition::CodeChanged
        | Condition::InProgress
        | Condition::Failed
        | Condition::CronTick { .. }
        | Condition::AnyUpstream { .. }
        | Condition::AllUpstream { .. }
        | Condition::During { .. } => parts.is_empty() || parts.into_iter().any(has_a_moment),
    }
}

/// Whether what runs of the asset do can make it be requested again, without a limit.
fn starts_itself(condition: &Condition, place: Place, negated: bool, newly: bool) -> bool {
    let below = |part: &Condition| starts_itself(part, place, negated, newly);
    match condition {
        Condition::And { of } if !negated => !of.iter().any(is_limit) && of.iter().any(below),
        Condition::And { of } | Condition::Or { of } => of.iter().any(below),
        Condition::Not { of } => starts_itself(of, place, !negated, newly),
        Condition::Since { of, .. } | Condition::Named { of, .. } => below(of),
        Condition::NewlyTrue { of } => starts_itself(of, place, negated, true),
        Condition::AnyUpstream { .. } | Condition::AllUpstream { .. } => false,
        Condition::Failed => place == Place::Own && (!negated || newly),
        Condition::Updated | Condition::InProgress => place == Place::Own && newly,
        Condition::Missing | Condition::Stale | Condition::CodeChanged => {
            place == Place::Own && negated && newly
        }
        Condition::NewPartition
        | Condition::CronTick { .. }
        | Condition::Latest { .. }
        | Condition::During { .. }
        | Condition::AtMost { .. } => false,
    }
}

fn is_limit(condition: &Condition) -> bool {
    match condition {
        Condition::AtMost { .. } => true,
        Condition::And { of } => of.iter().any(is_limit),
        Condition::Named { of, .. } => is_limit(of),
        Condition::Or { .. }
        | Condition::Not { .. }
        | Condition::Since { .. }
        | Condition::NewlyTrue { .. }
        | Condition::Missing
        | Condition::NewPartition
        | Condition::Updated
        | Condition::Stale
        | Condition::CodeChanged
        | Condition::InProgress
        | Condition::Failed
        | Condition::CronTick { .. }
        | Condition::AnyUpstream { .. }
        | Condition::AllUpstream { .. }
        | Condition::Latest { .. }
        | Condition::During { .. } => false,
    }
}
