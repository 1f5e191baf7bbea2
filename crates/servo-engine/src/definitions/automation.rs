//! Schedules and sensors have names of their own, times that exist, and selections that select something.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::AssetKey;
use servo_core::cron::Cron;
use servo_core::partitions::check_timezone;
use servo_core::selection::{AssetGraph, Selection};

use super::limits::About;
use super::manifest::{Location, ResourceDef, ScheduleDef, SensorDef};
use super::notifications::{self, NotificationDef};
use super::problem::Report;
use crate::lifecycle::SensorKind;

/// Prefix of the environment variables that a sensor which no code declares may refer to.
pub const SENSOR_SECRETS: &str = "SERVO_SENSOR_";
const MIN_INTERVAL: u64 = 1_000;
const MAX_INTERVAL: u64 = 30 * 86_400_000;
/// The longest that one evaluation may take.
const MAX_EVALUATION: u64 = 24 * 3_600_000;
const MAX_WINDOW_MINUTES: u32 = 366 * 1_440;
const MAX_CATCHUP_TICKS: u32 = 1_000;
/// Keys and ranges that a schedule may name.
const MAX_CHOSEN: usize = 1_000;

/// Checks schedules, sensors, notification rules, and the names of resources.
pub(super) fn check(
    schedules: &[ScheduleDef],
    sensors: &[SensorDef],
    rules: &[NotificationDef],
    resources: &[ResourceDef],
    graph: &AssetGraph,
    report: &mut Report,
) {
    let mut names = BTreeSet::new();
    for schedule in schedules {
        check_schedule(schedule, graph, report);
        if !names.insert(&schedule.name) {
            about("schedule", &schedule.name, &schedule.location, report)
                .add("is declared twice", "give one of them another name=");
        }
    }
    let mut names = BTreeSet::new();
    for sensor in sensors {
        check_sensor(sensor, graph, report);
        if !names.insert(&sensor.name) {
            about("sensor", &sensor.name, &sensor.location, report)
                .add("is declared twice", "give one of them another name=");
        }
    }
    let mut names = BTreeSet::new();
    for rule in rules {
        notifications::check(rule, graph, report);
        if !names.insert(&rule.name) {
            about("notification", &rule.name, &rule.location, report)
                .add("is declared twice", "give one of them another name");
        }
    }
    let mut names = BTreeSet::new();
    for resource in resources {
        if !names.insert(&resource.name) {
            let subject = format!("resource {}", resource.name);
            report.add(None, subject, "is declared twice", "give one of them another name");
        }
    }
}

pub(super) fn about<'a>(what: &str, name: &str, location: &'a Location, report: &'a mut Report) -> About<'a> {
    About { report, location, subject: format!("{what} {name}") }
}

/// Checks one schedule.
pub(super) fn check_schedule(schedule: &ScheduleDef, graph: &AssetGraph, report: &mut Report) {
    let mut about = about("schedule", &schedule.name, &schedule.location, report);
    check_name(&schedule.name, &mut about);
    check_cron(&schedule.cron, schedule.timezone.as_deref(), &mut about);
    let selection = (schedule.selection.as_deref(), schedule.function.as_deref());
    check_selection(selection, graph, &mut about);
    check_config(&schedule.config, &mut about);
    let chosen = schedule.partitions.keys.len() + schedule.partitions.ranges.len();
    if chosen > MAX_CHOSEN {
        about.add(
            format!("partitions names {chosen} keys and ranges, at most {MAX_CHOSEN} are allowed"),
            "write ranges, or choose \"missing\", \"failed\" or \"stale\"",
        );
    }
    if schedule.catchup_window_minutes > MAX_WINDOW_MINUTES {
        let minutes = schedule.catchup_window_minutes;
        about.add(
            format!("catchup_window_minutes is {minutes}, at most {MAX_WINDOW_MINUTES} are allowed"),
            "a year is the longest; a backfill makes what is older",
        );
    }
    if !(1..=MAX_CATCHUP_TICKS).contains(&schedule.max_catchup_ticks) {
        let ticks = schedule.max_catchup_ticks;
        about.add(
            format!("max_catchup_ticks is {ticks}, not between 1 and {MAX_CATCHUP_TICKS}"),
            "1 makes up for the newest tick alone; a backfill makes what is older",
        );
    }
    if let Some(timeout) = schedule.timeout_ms {
        about.within("timeout", timeout, MIN_INTERVAL, MAX_EVALUATION);
    }
}

/// Restriction on a sensor that no code declares: whoever may define it must not try values against the secrets of the
/// server.
pub(crate) fn foreign_sensor(sensor: &SensorDef) -> Option<String> {
    let secret = &sensor.verify.as_ref()?.secret;
    let is_shared = secret.provider == "env" && secret.path.starts_with(SENSOR_SECRETS);
    (!is_shared).then(|| {
        format!(
            "it refers to the secret {} {}; a sensor that no code declares may refer to environment variables of the \
             server that begin with {SENSOR_SECRETS}",
            secret.provider, secret.path
        )
    })
}

/// Checks one sensor.
pub(super) fn check_sensor(sensor: &SensorDef, graph: &AssetGraph, report: &mut Report) {
    let mut about = about("sensor", &sensor.name, &sensor.location, report);
    check_name(&sensor.name, &mut about);
    if let Some(interval) = sensor.interval_ms {
        about.within("interval", interval, MIN_INTERVAL, MAX_INTERVAL);
    }
    if let Some(timeout) = sensor.timeout_ms {
        about.within("timeout", timeout, MIN_INTERVAL, MAX_EVALUATION);
    }
    check_config(&sensor.config, &mut about);
    check_selection((sensor.selection.as_deref(), sensor.function.as_deref()), graph, &mut about);
    let ways = [sensor.push, !sensor.on.is_empty(), !sensor.run_status.is_empty()];
    if ways.into_iter().filter(|is_so| *is_so).count() > 1 {
        about
            .add("waits for more than one of messages, assets and runs", "declare a sensor for each of them");
    }
    if sensor.kind() == SensorKind::Poll && sensor.function.is_none() {
        about.add("has no function that looks for something", "decorate a function with @servo.sensor");
    }
    if sensor.verify.is_some() && !sensor.push {
        about.add("verifies messages and takes none", "declare it with @servo.push_sensor");
    }
    if let Some(state) = sensor.run_status.iter().find(|state| !state.is_terminal()) {
        about.add(
            format!("waits for runs that end as {state}, which is no end"),
            "choose among SUCCEEDED, FAILED, CANCELLED and TIMED_OUT",
        );
    }
    check_watched(sensor, graph, &mut about);
}

/// The assets that a sensor watches are there, and it does not start itself again and again.
fn check_watched(sensor: &SensorDef, graph: &AssetGraph, about: &mut About<'_>) {
    let mut watched = BTreeSet::new();
    for text in &sensor.on {
        let known = |key: &AssetKey| graph.assets().iter().any(|info| info.key == *key);
        match AssetKey::parse(text) {
            Ok(key) if known(&key) => {
                watched.insert(key);
            }
            Ok(key) => {
                about.add(format!("watches {key}, which the project does not have"), "correct on=");
            }
            Err(error) => about.add(format!("watches {text:?}: {error}"), "correct on="),
        }
    }
    let selected = sensor.selection.as_deref().filter(|_| sensor.function.is_none());
    let selected = selected.and_then(|text| Selection::parse(text).ok()?.evaluate(graph).ok());
    let again = selected.as_ref().and_then(|set| graph.keys(set).find(|key| watched.contains(key)));
    if let Some(key) = again {
        about.add(
            format!("requests {key} whenever {key} was made, without end"),
            "leave it out of selection= or of on=",
        );
    }
}

fn check_config(config: &BTreeMap<String, String>, about: &mut About<'_>) {
    for (field, text) in config {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            about.add(
                format!("config {field} is not JSON: {error}"),
                "write a JSON value, such as 100 or \"eu\"",
            );
        }
    }
}

pub(super) fn check_name(name: &str, about: &mut About<'_>) {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    let goes_on = bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !starts || !goes_on || name.len() > 128 {
        about.add(
            "has an invalid name",
            "use 1 to 128 letters, digits, \"_\" and \"-\", starting with a letter",
        );
    }
}

/// Checks a cron expression and its zone.
pub(super) fn check_cron(cron: &str, timezone: Option<&str>, about: &mut About<'_>) {
    if let Err(error) = Cron::parse(cron) {
        about.add(error.to_string(), "write minute, hour, day, month, weekday, as in \"0 6 * * *\"");
    }
    if let Some(Err(problem)) = timezone.map(check_timezone) {
        about.add(problem, "name a zone of the IANA database: timezone=\"Europe/Amsterdam\"");
    }
}

fn check_selection(selection: (Option<&str>, Option<&str>), graph: &AssetGraph, about: &mut About<'_>) {
    let text = match selection {
        (Some(text), _) => text,
        (None, Some(_)) => return,
        (None, None) => {
            return about.add("selects nothing", "give selection=, or a function that returns run requests");
        }
    };
    match Selection::parse(text) {
        Err(error) => about.add(error.to_string(), "correct selection="),
        Ok(selection) => {
            if let Err(error) = selection.evaluate(graph) {
                about.add(error.to_string(), "correct selection=");
            }
        }
    }
}
