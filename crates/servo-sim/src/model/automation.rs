//! Schedules and backfills as the log tells of them: which ticks were made, which chunks were planned, by which runs.
//! Expressions of simulated schedules are of three forms: every so many seconds and every minute, of which the next tick
//! is a division, and every third minute from two to three in Amsterdam, in the night in which clocks show that twice.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_core::Timestamp;
use servo_engine::{HotRows, State};

use super::compare::Differences;
use super::follow::{Judged, Rejection, only_if};
use super::log::{list, number, text, time};
use super::{Event, Model, RunIs};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Schedule {
    pub version: u64,
    pub paused: bool,
    pub removed: bool,
    pub times: Times,
    pub ticks_after: Timestamp,
    pub last: Option<Timestamp>,
}

/// The times of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Milliseconds from one tick to the next.
    Every(i64),
    /// Every third minute of an hour, on a clock that is set back.
    Night,
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// When clocks in Amsterdam go from three to two: 2025-10-26 01:00 UTC.
const SET_BACK: i64 = 1_761_440_400_000;

impl Times {
    fn has(self, at: i64) -> bool {
        match self {
            Times::Every(every) => at.rem_euclid(every) == 0,
            Times::Night => {
                // In the hour after that they show what they have shown before.
                let ahead = if at < SET_BACK { 2 * HOUR } else { HOUR };
                let (hour, minute) = ((at + ahead).rem_euclid(DAY) / HOUR, at.rem_euclid(HOUR) / MINUTE);
                let is_shown_again = (SET_BACK..SET_BACK + HOUR).contains(&at);
                at.rem_euclid(MINUTE) == 0 && hour == 2 && minute % 3 == 0 && !is_shown_again
            }
        }
    }

    /// The first after a time.
    fn next(self, after: i64) -> i64 {
        let every = if let Times::Every(every) = self { every } else { MINUTE };
        let first = (after.div_euclid(every) + 1) * every;
        (0..).map(|number| first + number * every).find(|at| self.has(*at)).unwrap_or(first)
    }
}

impl Schedule {
    /// The first tick after everything that was made.
    fn next(&self) -> Timestamp {
        let after = self.last.map_or(self.ticks_after, |last| last.max(self.ticks_after)).as_millis();
        Timestamp::from_millis(self.times.next(after))
    }
}

/// A backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Backfill {
    pub is: String,
    pub version: u64,
    pub most_at_once: u64,
    pub total_chunks: u64,
    /// The runs of its chunks, in their order.
    pub runs: Vec<String>,
    /// The partitions of its chunks.
    pub partitions: BTreeSet<String>,
    /// A partition that is in two chunks.
    pub doubled: Option<String>,
}

impl Backfill {
    fn has_ended(&self) -> bool {
        matches!(self.is.as_str(), "SUCCEEDED" | "FAILED" | "CANCELLED")
    }
}

/// Everything that requests runs by itself.
#[derive(Debug, Clone, Default)]
pub struct Automation {
    /// Schedules by their id.
    pub schedules: BTreeMap<String, Schedule>,
    /// Ticks that were made: status and runs.
    pub ticks: BTreeMap<String, (String, Vec<String>)>,
    /// Backfills by their id.
    pub backfills: BTreeMap<String, Backfill>,
}

/// The times of a simulated schedule.
fn times(cron: &str) -> Result<Times, String> {
    let seconds = match cron.split_once(' ').map(|(first, _)| first) {
        Some("0-59/3") => return Ok(Times::Night),
        Some("0") => 60,
        Some(every) => every.strip_prefix("*/").and_then(|every| every.parse().ok()).unwrap_or(0),
        None => 0,
    };
    if seconds > 0 {
        Ok(Times::Every(seconds * 1_000))
    } else {
        Err(format!("no simulated schedule is {cron:?}"))
    }
}

impl Model {
    pub(super) fn schedule_defined(&mut self, event: &Event) -> Judged {
        let id = text(&event.payload, "schedule_id")?.to_owned();
        let version = number(&event.payload, "state_version")?;
        let known = self.automation.schedules.get(&id);
        only_if(known.is_none_or(|known| version > known.version), "duplicate")?;
        let definition = event.payload.get("definition").unwrap_or(&Value::Null);
        let schedule = Schedule {
            version,
            paused: definition.get("enabled") == Some(&Value::Bool(false)),
            removed: false,
            times: times(text(definition, "cron")?)?,
            ticks_after: event.at,
            last: known.and_then(|known| known.last),
        };
        self.automation.schedules.insert(id, schedule);
        Ok(())
    }

    fn schedule(&mut self, event: &Event) -> Result<&mut Schedule, Rejection> {
        let id = text(&event.payload, "schedule_id")?;
        self.automation.schedules.get_mut(id).ok_or(Rejection::Ignored("unknown schedule"))
    }

    pub(super) fn schedule_changed(&mut self, event: &Event, change: impl FnOnce(&mut Schedule)) -> Judged {
        let version = number(&event.payload, "state_version")?;
        let schedule = self.schedule(event)?;
        only_if(version > schedule.version, "duplicate")?;
        schedule.version = version;
        change(schedule);
        Ok(())
    }

    pub(super) fn schedule_resumed(&mut self, event: &Event) -> Judged {
        self.schedule_changed(event, |schedule| {
            schedule.paused = false;
            schedule.ticks_after = event.at;
        })
    }

    pub(super) fn schedule_ticked(&mut self, event: &Event) -> Judged {
        let due = time(&event.payload, "scheduled_for")?;
        let schedule = self.schedule(event)?;
        only_if(schedule.last.is_none_or(|last| due > last), "duplicate")?;
        schedule.last = Some(due);
        schedule.ticks_after = schedule.ticks_after.max(due);
        let runs = list(&event.payload, "runs").iter().map(|run| text(run, "run_id").map(str::to_owned));
        let tick = (text(&event.payload, "status")?.to_owned(), runs.collect::<Result<_, String>>()?);
        self.automation.ticks.insert(text(&event.payload, "tick_id")?.to_owned(), tick);
        Ok(())
    }

    pub(super) fn backfill_created(&mut self, event: &Event) -> Judged {
        let id = text(&event.payload, "backfill_id")?;
        only_if(!self.automation.backfills.contains_key(id), "duplicate")?;
        let backfill = Backfill {
            is: "PENDING".to_owned(),
            version: 1,
            most_at_once: number(&event.payload, "max_concurrent_runs")?,
            total_chunks: number(&event.payload, "total_chunks")?,
            runs: Vec::new(),
            partitions: BTreeSet::new(),
            doubled: None,
        };
        self.automation.backfills.insert(id.to_owned(), backfill);
        Ok(())
    }

    fn backfill(&mut self, event: &Event) -> Result<&mut Backfill, Rejection> {
        let id = text(&event.payload, "backfill_id")?;
        self.automation.backfills.get_mut(id).ok_or(Rejection::Ignored("unknown backfill"))
    }

    pub(super) fn chunk_planned(&mut self, event: &Event) -> Judged {
        let (index, asset) = (number(&event.payload, "chunk_index")?, text(&event.payload, "asset")?);
        let run = text(&event.payload, "run_id")?.to_owned();
        let backfill = self.backfill(event)?;
        let planned = backfill.runs.len() as u64;
        only_if(index >= planned, "duplicate")?;
        only_if(backfill.is == "RUNNING" && index == planned, "not in that state")?;
        backfill.runs.push(run);
        // Static keys are ranges of one key, or of neighbours: the ends tell chunks from each other.
        for range in list(&event.payload, "partition_keys") {
            for end in [range.get("from"), range.get("to")].into_iter().flatten().filter_map(Value::as_str) {
                let partition = format!("{asset} {end}");
                if !backfill.partitions.insert(partition.clone()) {
                    backfill.doubled = Some(partition);
                }
            }
        }
        Ok(())
    }

    pub(super) fn backfill_changed(&mut self, event: &Event) -> Judged {
        let (version, to) = (number(&event.payload, "state_version")?, text(&event.payload, "to_state")?);
        let backfill = self.backfill(event)?;
        only_if(version > backfill.version, "duplicate")?;
        only_if(!backfill.has_ended(), "not in that state")?;
        (backfill.version, backfill.is) = (version, to.to_owned());
        Ok(())
    }

    /// How many of a backfill's chunks are at work, succeeded, and ended otherwise.
    fn chunks(&self, backfill: &Backfill) -> [u64; 3] {
        let mut counts = [0; 3];
        for run in backfill.runs.iter().filter_map(|run| self.run(run)) {
            let place = if !run.is.has_ended() {
                0
            } else if run.is == RunIs::Succeeded {
                1
            } else {
                2
            };
            counts[place] += 1;
        }
        counts
    }

    /// Why there is no tick at the time of a tick.
    pub(super) fn false_tick(&self, event: &Event) -> Option<String> {
        let is_tick = event.kind == "ScheduleTicked";
        let due = time(&event.payload, "scheduled_for").ok().filter(|_| is_tick)?;
        let schedule = self.automation.schedules.get(text(&event.payload, "schedule_id").ok()?)?;
        (!schedule.times.has(due.as_millis())).then(|| format!("nothing ticks at {due}"))
    }

    /// Rules that a tick or a chunk breaks, seen when its batch is over: its runs are in that batch, its places are free, its
    /// partitions are its own.
    pub(super) fn broken_request(&self, event: &Event) -> Option<String> {
        let is_missing = |run: &&str| self.run(run).is_none();
        match event.kind.as_str() {
            "ConditionsEvaluated" => {
                let run = event.payload.get("run").and_then(|run| text(run, "run_id").ok());
                run.filter(is_missing).map(|run| format!("run {run} is not requested with it"))
            }
            "ScheduleTicked" | "SensorEvaluated" if text(&event.payload, "status").ok()? == "TRIGGERED" => {
                let runs = ["runs", "run_requests"].into_iter().flat_map(|name| list(&event.payload, name));
                let runs = runs.filter_map(|run| text(run, "run_id").ok());
                let runs: Vec<&str> = runs.collect();
                if runs.is_empty() {
                    return Some("it requests no run".to_owned());
                }
                runs.iter()
                    .find(|run| is_missing(run))
                    .map(|run| format!("run {run} is not requested with it"))
            }
            "BackfillChunkPlanned" => {
                let run = text(&event.payload, "run_id").ok()?;
                let backfill = self.automation.backfills.get(text(&event.payload, "backfill_id").ok()?)?;
                let [at_work, ..] = self.chunks(backfill);
                if is_missing(&run) {
                    Some(format!("run {run} is not requested with it"))
                } else if at_work > backfill.most_at_once {
                    Some(format!("{at_work} chunks are at work, {} may be", backfill.most_at_once))
                } else if backfill.runs.len() as u64 > backfill.total_chunks {
                    Some(format!("there are only {} chunks", backfill.total_chunks))
                } else {
                    backfill.doubled.as_ref().map(|partition| format!("{partition} is in two chunks"))
                }
            }
            _ => None,
        }
    }

    /// Backfills that have not ended.
    pub fn open_backfills(&self) -> impl Iterator<Item = String> {
        let open = self.automation.backfills.iter().filter(|(_, backfill)| !backfill.has_ended());
        open.map(|(id, backfill)| format!("backfill {id} has not ended: it is {}", backfill.is))
    }

    pub(super) fn compare_automation(&self, found: &mut Differences, rows: &HotRows) {
        let known = rows.schedule_state.iter().map(|row| row.schedule_id.to_string()).collect();
        found.same_keys("schedules", &known, &self.automation.schedules.keys().cloned().collect());
        let removed: BTreeMap<String, bool> = rows
            .schedule_definitions
            .iter()
            .map(|row| (row.schedule_id.to_string(), row.removed_at.is_some()))
            .collect();
        for row in &rows.schedule_state {
            let Some(schedule) = self.automation.schedules.get(&row.schedule_id.to_string()) else {
                continue;
            };
            let about = || format!("schedule {}", row.schedule_id);
            found.compare(&about, "its version", row.state_version, schedule.version);
            found.compare(&about, "whether it is paused", row.paused, schedule.paused);
            let is_removed = removed.get(&row.schedule_id.to_string()).copied();
            found.compare(&about, "whether it was removed", is_removed, Some(schedule.removed));
            found.compare(&about, "its last tick", row.last_scheduled_for, schedule.last);
            found.compare(&about, "its next tick", row.next_tick_at, Some(schedule.next()));
        }
        let ticks = rows.schedule_ticks.iter().map(|row| {
            let runs = row.runs.0.iter().map(|run| run.run_id.to_string()).collect();
            (row.tick_id.clone(), (row.status.name().to_owned(), runs))
        });
        let expected = self.automation.ticks.iter().map(|(id, tick)| (id.clone(), tick.clone()));
        found.same_keys("ticks", &ticks.collect(), &expected.collect());
        let known = rows.backfills.iter().map(|row| row.backfill_id.to_string()).collect();
        found.same_keys("backfills", &known, &self.automation.backfills.keys().cloned().collect());
        for row in &rows.backfills {
            let Some(backfill) = self.automation.backfills.get(&row.backfill_id.to_string()) else {
                continue;
            };
            let about = || format!("backfill {}", row.backfill_id);
            let [_, succeeded, failed] = self.chunks(backfill);
            found.compare(&about, "its state", row.state.name(), &backfill.is);
            found.compare(&about, "its version", row.state_version, backfill.version);
            found.compare(&about, "planned chunks", row.planned_chunks as usize, backfill.runs.len());
            found.compare(&about, "completed chunks", u64::from(row.completed_chunks), succeeded);
            found.compare(&about, "failed chunks", u64::from(row.failed_chunks), failed);
        }
    }

    /// Places that backfills hold are those of chunks at work.
    pub(super) fn compare_places(&self, state: &State) -> Vec<String> {
        let mut wrong = Vec::new();
        for known in state.backfills() {
            let Some(backfill) = self.automation.backfills.get(&known.id.to_string()) else { continue };
            let ([at_work, ..], held) = (self.chunks(backfill), known.active.len() as u64);
            if at_work != held {
                wrong
                    .push(format!("backfill {} holds {held} places, {at_work} chunks are at work", known.id));
            }
        }
        wrong
    }
}
