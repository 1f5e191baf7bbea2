//! Sensors as the log tells of them: what each was told, where it has come to, and which of its evaluations count.
//! Simulated sensors of assets watch assets without partitions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_core::{Millis, Timestamp};
use servo_engine::HotRows;

use super::compare::Differences;
use super::follow::{Judged, Rejection, only_if};
use super::log::{list, number, text, texts, time};
use super::{Event, Model, Run};

/// Tries of one message.
const MOST_TRIES: u64 = 5;

/// How long after one evaluation the next one comes, unless a sensor says otherwise.
const USUAL_INTERVAL: u64 = 30_000;

/// A sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Sensor {
    pub version: u64,
    pub paused: bool,
    pub removed: bool,
    pub definition: Value,
    pub cursor: Option<String>,
    pub failures: u64,
    /// The call that was asked for, and why.
    pub evaluating: Option<(String, Value)>,
    pub last_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
    /// Assets that were made since it last had all of them.
    pub seen: BTreeSet<String>,
    /// Messages that wait: how often each was tried, and when it is tried again.
    pub waiting: BTreeMap<String, (u64, Option<Timestamp>)>,
}

/// Sensors and their evaluations.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Sensors {
    pub by_id: BTreeMap<String, Sensor>,
    /// Evaluations by their id: status, cursor and runs.
    pub evaluations: BTreeMap<String, (String, Option<String>, Vec<String>)>,
    /// Messages that came to something, by sensor.
    pub told: BTreeSet<(String, String)>,
}

impl Sensor {
    fn polls(&self) -> bool {
        let is_empty = |name: &str| list(&self.definition, name).is_empty();
        self.definition.get("push") != Some(&Value::Bool(true)) && is_empty("on") && is_empty("run_status")
    }

    fn interval(&self) -> Millis {
        Millis::new(self.definition.get("interval_ms").and_then(Value::as_u64).unwrap_or(USUAL_INTERVAL))
    }

    /// Its next evaluation comes as soon as its interval allows.
    fn begin_anew(&mut self, now: Timestamp) {
        let last = self.last_at.filter(|last| *last <= now);
        let soonest = last.map_or(now, |last| last.saturating_add(self.interval()).max(now));
        self.next_at = self.polls().then_some(soonest).or(self.next_at);
    }

    /// Messages that have failed are tried at once.
    fn retry_all(&mut self) {
        self.waiting.values_mut().for_each(|(_, retry_at)| *retry_at = None);
    }
}

/// The message that an evaluation is about.
fn message_of(payload: &Value) -> Option<&str> {
    payload.get("trigger")?.get("message_id")?.as_str()
}

fn optional(payload: &Value, name: &str) -> Option<String> {
    payload.get(name).and_then(Value::as_str).map(str::to_owned)
}

impl Model {
    pub(super) fn sensor_defined(&mut self, event: &Event) -> Judged {
        let (id, version) =
            (text(&event.payload, "sensor_id")?.to_owned(), number(&event.payload, "state_version")?);
        let definition = event.payload.get("definition").cloned().unwrap_or_default();
        let is_disabled = definition.get("enabled") == Some(&Value::Bool(false));
        let Some(known) = self.sensors.by_id.get_mut(&id) else {
            let mut sensor = Sensor {
                version,
                paused: is_disabled,
                removed: false,
                definition,
                cursor: None,
                failures: 0,
                evaluating: None,
                last_at: None,
                next_at: None,
                seen: BTreeSet::new(),
                waiting: BTreeMap::new(),
            };
            sensor.begin_anew(event.at);
            self.sensors.by_id.insert(id, sensor);
            return Ok(());
        };
        only_if(version > known.version, "duplicate")?;
        if known.removed {
            known.paused = is_disabled;
        }
        (known.version, known.removed, known.definition) = (version, false, definition);
        known.begin_anew(event.at);
        Ok(())
    }

    fn sensor(&mut self, event: &Event) -> Result<&mut Sensor, Rejection> {
        let id = text(&event.payload, "sensor_id")?;
        self.sensors.by_id.get_mut(id).ok_or(Rejection::Ignored("unknown sensor"))
    }

    pub(super) fn sensor_changed(&mut self, event: &Event, change: impl FnOnce(&mut Sensor)) -> Judged {
        let version = number(&event.payload, "state_version")?;
        let sensor = self.sensor(event)?;
        only_if(version > sensor.version, "duplicate")?;
        sensor.version = version;
        change(sensor);
        Ok(())
    }

    pub(super) fn sensor_resumed(&mut self, event: &Event) -> Judged {
        self.sensor_changed(event, |sensor| {
            sensor.paused = false;
            sensor.begin_anew(event.at);
            sensor.retry_all();
        })
    }

    pub(super) fn sensor_removed(&mut self, event: &Event) -> Judged {
        self.sensor_changed(event, |sensor| {
            sensor.removed = true;
            sensor.evaluating = None;
            sensor.waiting.clear();
        })
    }

    pub(super) fn cursor_reset(&mut self, event: &Event) -> Judged {
        self.sensor_changed(event, |sensor| {
            sensor.cursor = optional(&event.payload, "cursor");
            sensor.seen.clear();
            sensor.begin_anew(event.at);
            sensor.retry_all();
        })
    }

    /// A message counts once by its id.
    pub(super) fn message_received(&mut self, event: &Event) -> Judged {
        self.sensor(event)?;
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        let id = text(&event.payload, "message_id")?.to_owned();
        self.sensor(event)?.waiting.insert(id, (0, None));
        Ok(())
    }

    pub(super) fn sensor_call(&mut self, event: &Event) -> Judged {
        let call = text(&event.payload, "evaluation_id")?.to_owned();
        let trigger = event.payload.get("trigger").cloned().unwrap_or_default();
        let sensor = self.sensor(event)?;
        only_if(sensor.evaluating.is_none(), "not in that state")?;
        sensor.evaluating = Some((call, trigger));
        Ok(())
    }

    pub(super) fn sensor_evaluated(&mut self, event: &Event) -> Judged {
        let payload = &event.payload;
        let (id, status) = (text(payload, "sensor_id")?.to_owned(), text(payload, "status")?.to_owned());
        let (message, call) = (message_of(payload).map(str::to_owned), optional(payload, "evaluation_id"));
        let (attempt, retry_at) = (number(payload, "attempt").unwrap_or(1), time(payload, "retry_at").ok());
        let cursor = optional(payload, "cursor_after");
        let sensor = self.sensor(event)?;
        let is_answer = call.is_some() && sensor.evaluating.as_ref().map(|(call, _)| call) == call.as_ref();
        let is_of_message =
            call.is_none() && message.as_ref().is_some_and(|message| sensor.waiting.contains_key(message));
        only_if(is_answer || is_of_message, "nobody asked for it")?;
        if is_answer {
            sensor.evaluating = None;
        }
        match status.as_str() {
            "STALE" => sensor.begin_anew(event.at),
            "FAILED" => {
                if let Some(message) = &message {
                    sensor.waiting.remove(message);
                    if retry_at.is_some() {
                        sensor.waiting.insert(message.clone(), (attempt, retry_at));
                    }
                }
                sensor.failures += 1;
                sensor.last_at = Some(event.at);
                sensor.next_at = if sensor.polls() { retry_at } else { sensor.next_at };
            }
            _ => {
                if let Some(message) = &message {
                    sensor.waiting.remove(message);
                }
                if cursor.is_some() && cursor != sensor.cursor {
                    sensor.cursor.clone_from(&cursor);
                    sensor.version += 1;
                }
                (sensor.failures, sensor.last_at) = (0, Some(event.at));
                let next = event.at.saturating_add(sensor.interval());
                sensor.next_at = if sensor.polls() { Some(next) } else { sensor.next_at };
                self.sensors.told.extend(message.map(|message| (id, message)));
            }
        }
        let runs = list(payload, "run_requests").iter().map(|run| text(run, "run_id").map(str::to_owned));
        let evaluation = (status, cursor, runs.collect::<Result<_, String>>()?);
        self.sensors.evaluations.insert(text(payload, "eval_id")?.to_owned(), evaluation);
        Ok(())
    }

    /// Where an evaluation, or the request for one, is not what its sensor allows at that moment.
    pub(super) fn false_evaluation(&self, event: &Event) -> Option<String> {
        let payload = &event.payload;
        let is_call = event.kind == "SensorEvaluationRequested";
        if !is_call && event.kind != "SensorEvaluated" {
            return None;
        }
        let id = text(payload, "sensor_id").ok()?;
        let Some(sensor) = self.sensors.by_id.get(id) else {
            return Some(format!("nobody has defined sensor {id}"));
        };
        let known = payload.get("expected_state_version").and_then(Value::as_u64);
        let (status, message) = (text(payload, "status").unwrap_or_default(), message_of(payload));
        let counts = matches!(status, "TRIGGERED" | "NO_NEW_DATA");
        let is_of_now = known.is_none_or(|known| known == sensor.version);
        let waits = |message: &str| sensor.waiting.contains_key(message);
        let attempt = number(payload, "attempt").unwrap_or(1);
        let gives_up = status == "FAILED" && message.is_some() && payload.get("retry_at").is_none();
        if is_call && (sensor.paused || sensor.removed) {
            Some("the sensor is paused, or gone".to_owned())
        } else if is_call && !is_of_now || !is_call && is_of_now == (status == "STALE") {
            let version = sensor.version;
            Some(format!("it knows version {known:?} of the sensor, which is at {version}, and is {status}"))
        } else if !is_call && optional(payload, "cursor_before") != sensor.cursor {
            Some(format!("the sensor is at {:?}", sensor.cursor))
        } else if message.is_some_and(|message| !waits(message)) {
            let came = message.map(|message| (id.to_owned(), message.to_owned()));
            let again = came.is_some_and(|came| self.sensors.told.contains(&came));
            Some(format!("its message does not wait{}", if again { ": it was told before" } else { "" }))
        } else if gives_up && attempt < MOST_TRIES {
            Some(format!("its message is given up after {attempt} tries"))
        } else if counts && list(payload, "run_requests").is_empty() == (status == "TRIGGERED") {
            Some(format!("it is {status}, and its runs say otherwise"))
        } else {
            None
        }
    }

    /// Something was made: the sensors that watch it are told.
    pub(super) fn tell_of_asset(&mut self, asset: &str, materialization: &str) {
        let name = asset.replacen('/', ".", 1);
        for sensor in self.sensors.by_id.values_mut().filter(|sensor| !sensor.removed) {
            let watched: BTreeSet<String> = texts(&sensor.definition, "on").map(str::to_owned).collect();
            if !watched.contains(asset) {
                continue;
            }
            if sensor.definition.get("all_of") == Some(&Value::Bool(true)) {
                sensor.seen.insert(asset.to_owned());
                if sensor.seen != watched {
                    continue;
                }
                sensor.seen.clear();
            }
            sensor.waiting.insert(format!("{materialization}:{name}"), (0, None));
        }
    }

    /// Runs have ended: the sensors that wait for that are told, but for the one that has asked.
    pub(super) fn tell_of_runs(&mut self, event: &Event) {
        let ended: Vec<&Run> = self.runs.iter().filter(|run| run.ended_by == Some(event.id)).collect();
        for run in ended {
            let source = run.asked.get("source").unwrap_or(&Value::Null);
            let is_sensor = source.get("type").and_then(Value::as_str) == Some("sensor");
            let asked_by = source.get("id").and_then(Value::as_str).filter(|_| is_sensor);
            for (id, sensor) in &mut self.sensors.by_id {
                let waits = texts(&sensor.definition, "run_status").any(|status| status == run.is.name());
                if waits && !sensor.removed && asked_by != Some(id.as_str()) {
                    sensor.waiting.insert(format!("{}:{}", run.id, run.is.name()), (0, None));
                }
            }
        }
    }

    /// The times of sensors move along with the clock.
    pub(super) fn shift_sensors(&mut self, moved: impl Fn(Timestamp) -> Timestamp) {
        for sensor in self.sensors.by_id.values_mut().filter(|sensor| !sensor.removed) {
            sensor.next_at = sensor.next_at.map(&moved);
            for (_, retry_at) in sensor.waiting.values_mut() {
                *retry_at = retry_at.map(&moved);
            }
        }
    }

    /// Sensors that are there and have something to do.
    pub fn busy_sensors(&self) -> impl Iterator<Item = String> {
        let is_busy = |sensor: &&Sensor| {
            !sensor.removed && !sensor.paused && (sensor.evaluating.is_some() || !sensor.waiting.is_empty())
        };
        let busy = self.sensors.by_id.values().filter(is_busy);
        busy.map(|sensor| {
            format!("sensor {} has not come to rest: {:?}", sensor.definition["name"], sensor.waiting)
        })
    }

    pub(super) fn compare_sensors(&self, found: &mut Differences, rows: &HotRows) {
        let known = rows.sensor_state.iter().map(|row| row.sensor_id.to_string()).collect();
        found.same_keys("sensors", &known, &self.sensors.by_id.keys().cloned().collect());
        for row in &rows.sensor_state {
            let Some(sensor) = self.sensors.by_id.get(&row.sensor_id.to_string()) else { continue };
            let about = || format!("sensor {}", sensor.definition["name"]);
            found.compare(&about, "its version", row.state_version, sensor.version);
            found.compare(&about, "whether it is paused", row.paused, sensor.paused);
            found.compare(&about, "its cursor", row.cursor.clone(), sensor.cursor.clone());
            found.compare(&about, "its failures", u64::from(row.failures), sensor.failures);
            found.compare(&about, "its last evaluation", row.last_evaluation_at, sensor.last_at);
            found.compare(&about, "its next evaluation", row.next_evaluation_at, sensor.next_at);
            let call = row.evaluating.as_ref().map(|pending| pending.0.evaluation_id.to_string());
            let expected = sensor.evaluating.as_ref().map(|(call, _)| call.clone());
            found.compare(&about, "the call that it waits for", call, expected);
            let seen = row.seen.0.values().flatten().map(|asset| asset.replacen('.', "/", 1)).collect();
            found.compare(&about, "what it has seen", seen, sensor.seen.clone());
        }
        let removed = rows.sensor_definitions.iter().filter(|row| row.removed_at.is_some());
        let removed = removed.map(|row| row.sensor_id.to_string()).collect();
        let expected = self.sensors.by_id.iter().filter(|(_, sensor)| sensor.removed);
        found.same_keys("removed sensors", &removed, &expected.map(|(id, _)| id.clone()).collect());
        let waiting = rows.sensor_messages.iter().map(|row| {
            (row.sensor_id.to_string(), row.message_id.clone(), u64::from(row.attempts), row.retry_at)
        });
        let expected = self.sensors.by_id.iter().flat_map(|(id, sensor)| {
            sensor.waiting.iter().map(|(message, (tries, at))| (id.clone(), message.clone(), *tries, *at))
        });
        found.same_keys("messages", &waiting.collect(), &expected.collect());
        let evaluations = rows.sensor_evals.iter().map(|row| {
            let runs: Vec<String> = row.runs.0.iter().map(|run| run.run_id.to_string()).collect();
            (row.eval_id.clone(), (row.status.name().to_owned(), row.cursor_after.clone(), runs))
        });
        let expected = self.sensors.evaluations.iter().map(|(id, it)| (id.clone(), it.clone()));
        found.same_keys("evaluations", &evaluations.collect(), &expected.collect());
    }
}
