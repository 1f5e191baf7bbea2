//! Notifications of rules, derived again from what happens: failed runs, tasks whose retries are used up, sensors that
//! fail again and again, data that is too old, and all of that when it is well again (ADR-165). Simulated rules are about
//! all assets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_core::{EventId, Millis, Timestamp};
use servo_engine::HotRows;

use super::compare::Differences;
use super::follow::{Judged, Rejection, only_if};
use super::log::{list, number, text, texts, time};
use super::{Event, Model, RunIs, Sensor, TaskIs};

/// Tries of one notification.
const MOST_TRIES: u64 = 10;

/// Failures in a row by which a sensor counts as failing.
const SENSOR_FAILS_AFTER: u64 = 3;

/// How often a rule tells something within an hour, unless it says otherwise.
const USUAL_PER_HOUR: u64 = 60;

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rule {
    pub version: u64,
    pub paused: bool,
    pub removed: bool,
    pub definition: Value,
    /// Subjects that it has told of and that are not well again, with their partitions.
    pub open: BTreeMap<String, BTreeSet<String>>,
    pub hour_began_at: Timestamp,
    pub told_in_hour: u64,
    pub left_out: u64,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Notification {
    pub is: String,
    pub attempts: u64,
    pub next_at: Option<Timestamp>,
}

/// Rules and what they told.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Notifications {
    pub rules: BTreeMap<String, Rule>,
    pub by_id: BTreeMap<String, Notification>,
}

/// Something that happened: why it is told, under which name, and what is not well until it has recovered.
struct Incident {
    trigger: &'static str,
    occurrence: String,
    opens: Vec<(String, String)>,
}

impl Sensor {
    fn fails(&self) -> Option<bool> {
        (!self.paused).then_some(self.failures >= SENSOR_FAILS_AFTER)
    }
}

/// The sensors that fail, by their name; those that are paused neither do nor do not.
pub(super) type Failing = BTreeMap<String, Option<bool>>;

impl Model {
    fn rule(&mut self, event: &Event) -> Result<&mut Rule, Rejection> {
        let id = text(&event.payload, "rule_id")?;
        self.notifications.rules.get_mut(id).ok_or(Rejection::Ignored("unknown notification"))
    }

    pub(super) fn rule_defined(&mut self, event: &Event) -> Judged {
        let (id, version) = (text(&event.payload, "rule_id")?, number(&event.payload, "state_version")?);
        let definition = event.payload.get("definition").cloned().unwrap_or_default();
        let known = self.notifications.rules.get(id);
        only_if(known.is_none_or(|known| version > known.version), "duplicate")?;
        let was_there = known.filter(|known| !known.removed);
        let rule = Rule {
            version,
            paused: was_there.map_or(definition.get("enabled") == Some(&Value::Bool(false)), |it| it.paused),
            removed: false,
            definition,
            open: known.map(|known| known.open.clone()).unwrap_or_default(),
            hour_began_at: known.map_or(event.at, |known| known.hour_began_at),
            told_in_hour: known.map_or(0, |known| known.told_in_hour),
            left_out: known.map_or(0, |known| known.left_out),
        };
        self.notifications.rules.insert(id.to_owned(), rule);
        Ok(())
    }

    pub(super) fn rule_changed(&mut self, event: &Event) -> Judged {
        let (version, change) =
            (number(&event.payload, "state_version")?, text(&event.payload, "change")?.to_owned());
        let rule = self.rule(event)?;
        only_if(version > rule.version, "duplicate")?;
        rule.version = version;
        match change.as_str() {
            "paused" => rule.paused = true,
            "resumed" => rule.paused = false,
            _ => {
                rule.removed = true;
                rule.open.clear();
            }
        }
        Ok(())
    }

    pub(super) fn rule_tested(&mut self, event: &Event) -> Judged {
        self.rule(event)?;
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let (id, after) = (text(&event.payload, "rule_id")?.to_owned(), text(&event.payload, "after")?);
        self.add_notifications(&id, "test", after, event.at);
        Ok(())
    }

    fn notification(&mut self, event: &Event) -> Result<&mut Notification, Rejection> {
        let id = text(&event.payload, "notification_id")?;
        self.notifications.by_id.get_mut(id).ok_or(Rejection::Ignored("unknown notification"))
    }

    pub(super) fn notification_requested(&mut self, event: &Event) -> Judged {
        let attempt = number(&event.payload, "attempt")?;
        let known = self.notification(event)?;
        only_if(attempt > known.attempts, "duplicate")?;
        only_if(known.is == "PENDING", "not in that state")?;
        *known = Notification { is: "SENDING".to_owned(), attempts: attempt, next_at: None };
        Ok(())
    }

    pub(super) fn notification_attempted(&mut self, event: &Event) -> Judged {
        let (attempt, is) = (number(&event.payload, "attempt")?, text(&event.payload, "status")?.to_owned());
        let next_at = time(&event.payload, "retry_at").ok();
        let known = self.notification(event)?;
        only_if(matches!(known.is.as_str(), "PENDING" | "SENDING"), "duplicate")?;
        only_if(attempt == 0 || known.is == "SENDING" && known.attempts == attempt, "stale attempt")?;
        (known.is, known.next_at) = (is, next_at);
        Ok(())
    }

    /// Why an event about a notification should not be there.
    pub(super) fn false_notification(&self, event: &Event) -> Option<String> {
        let is_request = event.kind == "NotificationRequested";
        if !is_request && event.kind != "NotificationAttempted" {
            return None;
        }
        let id = text(&event.payload, "notification_id").ok()?;
        let known = self.notifications.by_id.get(id)?;
        // Whoever tests a rule sees at once whether it works.
        let tries = if id.contains(":test:") { 1 } else { MOST_TRIES };
        let (attempt, status) = (number(&event.payload, "attempt").ok()?, text(&event.payload, "status"));
        // A first try is due at once, whatever its time says: the clock may have been set back since.
        let is_early = known.attempts > 0 && known.next_at.is_some_and(|due| due > event.at);
        if is_request && (known.next_at.is_none() || is_early) {
            Some(format!("it is sent before {:?}", known.next_at))
        } else if status == Ok("FAILED") && attempt < tries {
            Some(format!("it fails for good after {attempt} tries"))
        } else if status == Ok("PENDING") && event.payload.get("retry_at").is_none() {
            Some("it is to be tried again, and never is".to_owned())
        } else {
            None
        }
    }

    /// The times of notifications move along with the clock.
    pub(super) fn shift_notifications(&mut self, moved: impl Fn(Timestamp) -> Timestamp) {
        for known in self.notifications.by_id.values_mut() {
            known.next_at = known.next_at.map(&moved);
        }
    }

    /// The sensors that fail, before an event.
    pub(super) fn failing(&self) -> Failing {
        let name = |sensor: &Sensor| sensor.definition["name"].as_str().unwrap_or_default().to_owned();
        let sensors = self.sensors.by_id.values();
        sensors.map(|sensor| (name(sensor), sensor.fails())).collect()
    }

    /// Tells what an event has brought about.
    pub(super) fn tell_people(&mut self, event: &Event, failing: &Failing) {
        self.tell_of_made(event);
        self.tell_of_tasks(event);
        self.tell_of_failed_runs(event);
        self.tell_of_sensors(event, failing);
        self.tell_of_freshness(event);
    }

    /// A partition that was made is well again.
    fn tell_of_made(&mut self, event: &Event) {
        if !matches!(event.kind.as_str(), "TaskFinished" | "MaterializationReleased") {
            return;
        }
        let made: Vec<(String, String)> = self
            .data
            .statuses
            .iter()
            .filter(|(_, status)| status.last.succeeded && status.last.event == event.id)
            .map(|(place, _)| (format!("asset:{}", shown(&place.0)), partition(place.1.as_deref())))
            .collect();
        for (what, piece) in made {
            self.well_again(event.id, event.at, &what, &piece);
        }
    }

    fn tell_of_tasks(&mut self, event: &Event) {
        let mut incidents = Vec::new();
        for run in &self.runs {
            let over = |task: &&super::Task| task.ended_by == Some(event.id) && task.is == TaskIs::Failed;
            for task in run.tasks.iter().filter(over).filter(|task| task.failed_with != "CHECK_FAILED") {
                incidents.push(Incident {
                    trigger: "retries_exhausted",
                    occurrence: format!("{}:{}", run.id, shown(&task.assets[0])),
                    opens: pieces(task).collect(),
                });
            }
        }
        incidents.into_iter().for_each(|incident| self.tell(event.at, &incident));
    }

    fn tell_of_failed_runs(&mut self, event: &Event) {
        let ended = self.runs.iter().filter(|run| run.ended_by == Some(event.id));
        let failed = ended.filter(|run| matches!(run.is, RunIs::Failed | RunIs::TimedOut));
        let incidents: Vec<(Timestamp, Incident)> = failed
            .map(|run| {
                let timed_out = run.is == RunIs::TimedOut;
                let is_blamed = |task: &&super::Task| {
                    if timed_out { task.is != TaskIs::Succeeded } else { task.is == TaskIs::Failed }
                };
                let opens = run.tasks.iter().filter(is_blamed).flat_map(pieces).collect();
                let incident = Incident { trigger: "run_failed", occurrence: run.id.clone(), opens };
                (run.finished_at.unwrap_or(event.at), incident)
            })
            .collect();
        incidents.into_iter().for_each(|(at, incident)| self.tell(at, &incident));
    }

    fn tell_of_sensors(&mut self, event: &Event, before: &Failing) {
        for (name, fails) in self.failing() {
            let did = before.get(&name).copied().flatten();
            let what = format!("sensor:{name}");
            if fails == Some(true) && did != Some(true) {
                let opens = match self.selected_by_sensor(&name) {
                    Some(count) => vec![(what, String::new()); count.min(1)],
                    None => vec![(what, String::new())],
                };
                let occurrence = format!("{name}:{}", event.id);
                self.tell(event.at, &Incident { trigger: "sensor_error", occurrence, opens });
            } else if fails == Some(false) && did == Some(true) {
                self.well_again(event.id, event.at, &what, "");
            }
        }
    }

    /// How many assets a sensor selects; none if it leaves that to its function.
    fn selected_by_sensor(&self, name: &str) -> Option<usize> {
        let mut sensors = self.sensors.by_id.values();
        let sensor = sensors.find(|sensor| sensor.definition["name"].as_str() == Some(name))?;
        let selection = sensor.definition.get("selection").and_then(Value::as_str)?;
        let live = self.deployed.as_ref().map(|deployed| &deployed.live);
        let is_there =
            |name: &str| live.is_some_and(|live| live.contains_key(&name.trim().replacen('.', "/", 1)));
        // Where one of the names means nothing, the whole selection does not.
        let names: Vec<&str> = selection.split('|').collect();
        Some(if names.iter().all(|name| is_there(name)) { names.len() } else { 0 })
    }

    fn tell_of_freshness(&mut self, event: &Event) {
        if event.kind != "FreshnessChanged" {
            return;
        }
        let Ok(asset) = text(&event.payload, "asset_key").map(shown) else { return };
        let what = format!("freshness:{asset}");
        match text(&event.payload, "new") {
            Ok("FAIL") => {
                let since = time(&event.payload, "since").map_or(0, Timestamp::as_millis);
                let opens = vec![(what, String::new())];
                let occurrence = format!("{asset}:{since}");
                self.tell(event.at, &Incident { trigger: "freshness_missed", occurrence, opens });
            }
            Ok("PASS") => self.well_again(event.id, event.at, &what, ""),
            Ok(_) | Err(_) => {}
        }
    }

    /// Tells an incident to every rule that is about it, once.
    fn tell(&mut self, at: Timestamp, incident: &Incident) {
        let mut told = Vec::new();
        for (id, rule) in &mut self.notifications.rules {
            if !rule.is_about(incident.trigger) {
                continue;
            }
            for (what, piece) in &incident.opens {
                rule.open.entry(what.clone()).or_default().insert(piece.clone());
            }
            told.push(id.clone());
        }
        for id in told {
            let key = format!("notification:{id}:{}:{}", incident.trigger, incident.occurrence);
            if !self.memory.knows(&key) {
                self.memory.remember(&key, self.elapsed, &self.rules);
                self.tell_rule(&id, incident.trigger, &incident.occurrence, at);
            }
        }
    }

    /// Something is well again, in one of its pieces.
    fn well_again(&mut self, by: EventId, at: Timestamp, what: &str, piece: &str) {
        let mut told = Vec::new();
        for (id, rule) in &mut self.notifications.rules {
            let Some(pieces) = rule.open.get_mut(what) else { continue };
            if !pieces.remove(piece) || !pieces.is_empty() {
                continue;
            }
            rule.open.remove(what);
            told.extend(rule.is_about("recovered").then(|| id.clone()));
        }
        for id in told {
            self.tell_rule(&id, "recovered", &format!("{what}:{by}"), at);
        }
    }

    /// Tells something to a rule, unless it has told enough within the hour.
    fn tell_rule(&mut self, id: &str, trigger: &str, occurrence: &str, at: Timestamp) {
        let Some(rule) = self.notifications.rules.get_mut(id) else { return };
        if at.since(rule.hour_began_at) >= Millis::from_hours(1) || at < rule.hour_began_at {
            (rule.hour_began_at, rule.told_in_hour) = (at, 0);
        }
        let most = rule.definition.get("max_per_hour").and_then(Value::as_u64).unwrap_or(USUAL_PER_HOUR);
        if rule.told_in_hour >= most {
            rule.left_out += 1;
            return;
        }
        rule.told_in_hour += 1;
        rule.left_out = 0;
        self.add_notifications(id, trigger, occurrence, at);
    }

    fn add_notifications(&mut self, id: &str, trigger: &str, occurrence: &str, at: Timestamp) {
        let destinations =
            self.notifications.rules.get(id).map_or(0, |rule| list(&rule.definition, "to").len());
        for position in 0..destinations {
            let new = Notification { is: "PENDING".to_owned(), attempts: 0, next_at: Some(at) };
            self.notifications.by_id.insert(format!("{id}:{trigger}:{occurrence}:{position}"), new);
        }
    }

    /// Notifications that did not come to an end, and those that are said to be sent and were not.
    pub fn untold<'a>(&'a self, sent: &'a BTreeSet<String>) -> impl Iterator<Item = String> + 'a {
        self.notifications.by_id.iter().filter_map(|(id, known)| match known.is.as_str() {
            "SENT" if !sent.contains(id) => Some(format!("notification {id} is SENT, and nobody got it")),
            "SENT" | "FAILED" | "DROPPED" => None,
            is => Some(format!("notification {id} has not come to an end: it is {is}")),
        })
    }

    pub(super) fn compare_notifications(&self, found: &mut Differences, rows: &HotRows) {
        let known = rows.notification_rules.iter().map(|row| row.rule_id.to_string()).collect();
        found.same_keys("rules", &known, &self.notifications.rules.keys().cloned().collect());
        for row in &rows.notification_rules {
            let Some(rule) = self.notifications.rules.get(&row.rule_id.to_string()) else { continue };
            let about = || format!("rule {}", row.name);
            found.compare(&about, "its version", row.state_version, rule.version);
            found.compare(&about, "whether it is paused", row.paused, rule.paused);
            found.compare(&about, "whether it was removed", row.removed_at.is_some(), rule.removed);
            found.compare(&about, "what is not well", (*row.open.0).clone(), rule.open.clone());
            found.compare(&about, "its hour", row.hour_began_at, rule.hour_began_at);
            found.compare(&about, "what it told", u64::from(row.told_in_hour), rule.told_in_hour);
            found.compare(&about, "what it left out", row.left_out, rule.left_out);
        }
        let known = rows.notifications.iter().map(|row| {
            let (is, attempts) = (row.status.name().to_owned(), u64::from(row.attempts));
            (row.notification_id.clone(), is, attempts, row.next_attempt_at)
        });
        let expected = self.notifications.by_id.iter();
        let expected = expected.map(|(id, it)| (id.clone(), it.is.clone(), it.attempts, it.next_at));
        found.same_keys("notifications", &known.collect(), &expected.collect());
    }
}

impl Rule {
    fn is_about(&self, trigger: &str) -> bool {
        !self.paused && !self.removed && texts(&self.definition, "when").any(|known| known == trigger)
    }
}

/// An asset as it is shown to people.
fn shown(asset: &str) -> String {
    asset.replacen('/', ".", 1)
}

/// A partition as it is shown to people.
fn partition(key: Option<&str>) -> String {
    key.and_then(|key| servo_core::PartitionKey::parse(key).ok())
        .map_or_else(String::new, |key| key.to_string())
}

/// The assets of a task and its partition, as incidents of them are named.
fn pieces(task: &super::Task) -> impl Iterator<Item = (String, String)> + '_ {
    let piece = partition(task.key.partition_str());
    task.assets.iter().map(move |asset| (format!("asset:{}", shown(asset)), piece.clone()))
}
