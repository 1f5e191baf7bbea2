//! Runs are asked for, planned, started, stopped, and end when their tasks have.

use std::collections::BTreeMap;

use serde_json::Value;
use servo_core::{Millis, Timestamp};

use super::follow::{Judged, Rejection, only_if};
use super::log::{list, text, time};
use super::memory::Memory;
use super::tasks::timer_times;
use super::{Event, Model, Run, RunIs, Task, TaskIs};

impl Model {
    /// The index of an event's run, if it is held in memory.
    pub(super) fn held_run(&self, payload: &Value) -> Result<usize, Rejection> {
        let found = self.newest.get(text(payload, "run_id")?).copied();
        found.filter(|index| self.runs[*index].is_in_memory).ok_or(Rejection::Ignored("unknown run"))
    }

    pub(super) fn run_requested(&mut self, event: &Event) -> Judged {
        let (id, fingerprint) =
            (text(&event.payload, "run_id")?, text(&event.payload, "request_fingerprint")?);
        let bits = Memory::bits(id)?;
        let held = self.run(id).filter(|run| run.is_in_memory).map(|run| run.fingerprint.as_str());
        if let Some(known) = self.memory.runs.get(&bits).map(String::as_str).or(held) {
            only_if(known != fingerprint, "duplicate")?;
            return self.run_key_conflicted(event);
        }
        self.memory.runs.insert(bits.clone(), fingerprint.to_owned());
        self.memory.order.push(bits);
        self.newest.insert(id.to_owned(), self.runs.len());
        self.runs.push(Run {
            id: id.to_owned(),
            key: text(&event.payload, "run_key")?.to_owned(),
            fingerprint: fingerprint.to_owned(),
            asked: event.payload.clone(),
            asked_by: event.principal.clone().unwrap_or_else(|| "system".to_owned()),
            requested: event.id,
            plan: None,
            is: RunIs::Pending,
            started_at: None,
            cost: 0,
            finished_at: None,
            ended_by: None,
            timeout: event.payload.get("timeout_ms").and_then(Value::as_u64).map(Millis::new),
            labels: labels(&event.payload),
            stopped: None,
            tasks: Vec::new(),
            is_in_memory: true,
        });
        Ok(())
    }

    /// The first request for a run stays the one that counts.
    pub(super) fn run_key_conflicted(&mut self, event: &Event) -> Judged {
        only_if(!self.memory.knows(&event.key), "duplicate")?;
        self.memory.remember(&event.key, self.elapsed, &self.rules);
        if let Ok(existing) = text(&event.payload, "existing_fingerprint") {
            let bits = Memory::bits(text(&event.payload, "run_id")?)?;
            only_if(self.memory.runs.get(&bits).is_some_and(|known| known == existing), "no such conflict")?;
        }
        Err(Rejection::Ignored("run key conflict"))
    }

    pub(super) fn plan_created(&mut self, event: &Event) -> Judged {
        let (index, plan) = (self.held_run(&event.payload)?, text(&event.payload, "plan_id")?);
        let run = &mut self.runs[index];
        only_if(run.plan.as_deref() != Some(plan), "duplicate")?;
        only_if(run.plan.is_none() && run.is == RunIs::Pending, "not in that state")?;
        let tasks = list(&event.payload, "tasks").iter().map(|spec| Task::planned(spec, event.at));
        run.tasks = tasks.collect::<Result<_, String>>()?;
        for set in list(&event.payload, "sets") {
            let upstream = positions(&set["upstream"]);
            for position in positions(&set["downstream"]) {
                let task = &mut run.tasks[position];
                let from = task.upstream.len();
                task.upstream.extend(&upstream);
                task.sets.push(from..task.upstream.len());
            }
        }
        run.plan = Some(plan.to_owned());
        run.is = RunIs::Queued;
        Ok(())
    }

    pub(super) fn run_triggered(&mut self, event: &Event) -> Judged {
        let (index, plan) = (self.held_run(&event.payload)?, text(&event.payload, "plan_id")?);
        let run = &mut self.runs[index];
        only_if(run.started_at.is_none(), "duplicate")?;
        only_if(run.is == RunIs::Queued && run.plan.as_deref() == Some(plan), "not in that state")?;
        run.is = RunIs::Running;
        run.started_at = Some(event.at);
        run.timeout = event.payload.get("timeout_ms").and_then(Value::as_u64).map(Millis::new);
        for task in &mut run.tasks {
            let first = if task.upstream.is_empty() { TaskIs::Ready } else { TaskIs::Blocked };
            task.becomes(first, event);
        }
        Ok(())
    }

    pub(super) fn cancel_requested(&mut self, event: &Event) -> Judged {
        let index = self.held_run(&event.payload)?;
        let is_forced = event.payload.get("force").and_then(Value::as_bool).unwrap_or(false);
        let silent_since = match event.payload.get("silent_since") {
            Some(_) => time(&event.payload, "silent_since")?,
            None => event.at.saturating_sub(self.rules.force_cancel_after),
        };
        only_if(!self.runs[index].is.has_ended(), "not in that state")?;
        only_if(self.runs[index].stopped.is_none() || is_forced, "duplicate")?;
        self.stop(index, event, false, is_forced.then_some(silent_since));
        Ok(())
    }

    pub(super) fn run_timed_out(&mut self, event: &Event) -> Judged {
        let index = self.held_run(&event.payload)?;
        let run = &self.runs[index];
        only_if(!run.is.has_ended() && run.stopped.is_none(), "not in that state")?;
        let Some(started) = run.started_at else { return Err(Rejection::Ignored("not in that state")) };
        let limit = run.timeout.unwrap_or(self.rules.max_run_duration).min(self.rules.max_run_duration);
        let due = timer_times(&event.payload)?.map_or(started.saturating_add(limit), |(_, due)| due);
        only_if(event.at >= due, "not due")?;
        self.stop(index, event, true, None);
        Ok(())
    }

    /// Cancels tasks that no worker holds at once, and held ones only if forced and silent (ADR-052).
    fn stop(&mut self, index: usize, event: &Event, timed_out: bool, silent_since: Option<Timestamp>) {
        let run = &mut self.runs[index];
        run.is = RunIs::Cancelling;
        run.stopped = run.stopped.or(Some((event.id, timed_out)));
        let mut abandoned = Vec::new();
        for (position, task) in run.tasks.iter_mut().enumerate() {
            let ends = match task.is {
                TaskIs::Planned | TaskIs::Blocked | TaskIs::Ready | TaskIs::RetryWait => true,
                TaskIs::Dispatched => silent_since.is_some(),
                TaskIs::Running => silent_since.is_some_and(|since| task.heard() <= since),
                TaskIs::Skipped | TaskIs::Cancelled | TaskIs::Failed | TaskIs::Succeeded => false,
            };
            if ends {
                abandoned.extend((task.is == TaskIs::Running).then_some(position));
                task.becomes(TaskIs::Cancelled, event);
            }
        }
        abandoned.into_iter().for_each(|position| self.charge((index, position), event));
        self.settle(index, event);
    }

    /// Applies the end of a task to the other tasks, and to the run.
    pub(super) fn settle(&mut self, index: usize, event: &Event) {
        let run = &mut self.runs[index];
        run.spread(event);
        if run.is.has_ended() || !run.tasks.iter().all(|task| task.is.has_ended()) {
            return;
        }
        run.is = match run.stopped {
            Some((_, true)) => RunIs::TimedOut,
            Some((_, false)) => RunIs::Cancelled,
            None if run.tasks.iter().all(|task| task.is == TaskIs::Succeeded) => RunIs::Succeeded,
            None => RunIs::Failed,
        };
        run.finished_at = run.tasks.iter().filter_map(|task| task.finished_at).max().or(Some(event.at));
        run.ended_by = Some(event.id);
        let tasks = run.tasks.len();
        for gone in self.memory.run_ended(index, tasks, &self.rules) {
            self.runs[gone].is_in_memory = false;
        }
    }
}

impl Run {
    /// Re-evaluates every task until nothing changes: downstream of a failure tasks are skipped, downstream of a
    /// success they become ready (ADR-022, ADR-042).
    fn spread(&mut self, event: &Event) {
        loop {
            let mut changed = false;
            for position in 0..self.tasks.len() {
                let task = &self.tasks[position];
                let before = || task.upstream.iter().map(|up| &self.tasks[*up]);
                if task.is.waits() {
                    let any = |is| before().any(|task| task.is == is);
                    let next = if any(TaskIs::Failed) || any(TaskIs::Skipped) {
                        TaskIs::Skipped
                    } else if any(TaskIs::Cancelled) {
                        TaskIs::Cancelled
                    } else if task.is == TaskIs::Blocked && before().all(|task| task.is == TaskIs::Succeeded)
                    {
                        TaskIs::Ready
                    } else {
                        continue;
                    };
                    self.tasks[position].becomes(next, event);
                    changed = true;
                } else if task.is == TaskIs::Skipped && task.caused_by.is_none() {
                    // Its cause is the first failure before it: what fails later changes nothing.
                    let failed =
                        task.upstream.iter().copied().find(|up| self.tasks[*up].is == TaskIs::Failed);
                    let cause = failed.or_else(|| before().find_map(|task| task.caused_by));
                    changed |= cause.is_some();
                    self.tasks[position].caused_by = cause;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// Positions that are written as ranges.
fn positions(ranges: &Value) -> Vec<usize> {
    let number =
        |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
    let ranges = ranges.as_array().into_iter().flatten();
    ranges.flat_map(|range| number(&range[0])..number(&range[1])).collect()
}

fn labels(payload: &Value) -> BTreeMap<String, String> {
    let labels = payload.get("labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
