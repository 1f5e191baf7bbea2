//! Attempts: handed to queues, begun, heard of, ended (ADR-037). Only the newest attempt counts, and only while it is
//! open.

use serde_json::Value;
use servo_core::Timestamp;

use super::data::name_of;
use super::dispatched::refused;
use super::follow::{Judged, Rejection, only_if};
use super::log::{number, text, time};
use super::retry::{Failure, wait};
use super::{Event, Model, Task, TaskIs};

/// How an attempt ends.
enum End<'a> {
    Succeeded(Option<String>),
    Failed(Failure<'a>),
    /// Its worker was lost.
    Lost,
    /// No worker took it.
    Untaken,
}

/// The attempt that an event is about.
fn attempt(payload: &Value) -> Result<(u64, &str), String> {
    Ok((number(payload, "attempt")?, text(payload, "attempt_id")?))
}

/// The start and the due time of a timer, if the event has them.
pub(super) fn timer_times(payload: &Value) -> Result<Option<(Timestamp, Timestamp)>, String> {
    if payload.get("since").is_none() {
        return Ok(None);
    }
    Ok(Some((time(payload, "since")?, time(payload, "fire_at")?)))
}

impl Model {
    /// The run index and position of an event's task.
    fn subject(&self, payload: &Value) -> Result<(usize, usize), Rejection> {
        let (run, key) = (self.held_run(payload)?, text(payload, "task_key")?);
        let position = self.runs[run].tasks.iter().position(|task| task.key.as_str() == key);
        position.map(|position| (run, position)).ok_or(Rejection::Ignored("unknown task"))
    }

    fn task(&mut self, (run, position): (usize, usize)) -> &mut Task {
        &mut self.runs[run].tasks[position]
    }

    pub(super) fn dispatch_requested(&mut self, event: &Event) -> Judged {
        let (subject, (number, id)) = (self.subject(&event.payload)?, attempt(&event.payload)?);
        let task = &self.runs[subject.0].tasks[subject.1];
        only_if(!task.is_newest(number, id), "duplicate")?;
        only_if(number > task.attempt, "stale attempt")?;
        only_if(task.is == TaskIs::Ready && !task.is_open(), "not in that state")?;
        let dispatched = self.provenance(event, task);
        let leader = event.payload.get("provenance").and_then(|it| it["call"].as_str()).map(str::to_owned);
        let task = self.task(subject);
        task.dispatched = dispatched;
        task.led_by = leader;
        task.voided.clear();
        task.attempt = number;
        id.clone_into(&mut task.attempt_id);
        task.pending_since = Some(event.at);
        (task.dispatched_at, task.started_at, task.heard_at, task.timer) = (None, None, None, None);
        task.worker = None;
        Ok(())
    }

    pub(super) fn dispatch_enqueued(&mut self, event: &Event) -> Judged {
        let (subject, (number, id)) = (self.subject(&event.payload)?, attempt(&event.payload)?);
        let task = self.task(subject);
        only_if(task.is_newest(number, id), "stale attempt")?;
        only_if(task.dispatched_at.is_none(), "duplicate")?;
        task.dispatched_at = Some(event.at);
        if task.is == TaskIs::Ready && task.is_open() {
            task.becomes(TaskIs::Dispatched, event);
        }
        Ok(())
    }

    pub(super) fn task_started(&mut self, event: &Event) -> Judged {
        let (subject, (number, id)) = (self.subject(&event.payload)?, attempt(&event.payload)?);
        let worker = text(&event.payload, "worker_id")?;
        let task = self.task(subject);
        only_if(task.is_newest(number, id), "stale attempt")?;
        only_if(task.started_at.is_none(), "duplicate")?;
        only_if(task.is_open(), "not in that state")?;
        (task.started_at, task.heard_at) = (Some(event.at), Some(event.at));
        task.worker = Some(worker.to_owned());
        task.becomes(TaskIs::Running, event);
        Ok(())
    }

    pub(super) fn task_heartbeat(&mut self, event: &Event) -> Judged {
        let (subject, (number, id)) = (self.subject(&event.payload)?, attempt(&event.payload)?);
        let task = self.task(subject);
        only_if(task.is_newest(number, id), "stale attempt")?;
        only_if(task.is == TaskIs::Running, "not in that state")?;
        only_if(task.heard_at < Some(event.at), "duplicate")?;
        task.heard_at = Some(event.at);
        Ok(())
    }

    pub(super) fn timer_requested(&mut self, event: &Event) -> Judged {
        let (subject, number) = (self.subject(&event.payload)?, number(&event.payload, "attempt")?);
        let task = self.task(subject);
        only_if(task.attempt == number, "stale attempt")?;
        only_if(task.timer.is_none(), "duplicate")?;
        only_if(task.is == TaskIs::RetryWait, "not in that state")?;
        task.timer = Some(false);
        Ok(())
    }

    pub(super) fn timer_enqueued(&mut self, event: &Event) -> Judged {
        let (subject, number) = (self.subject(&event.payload)?, number(&event.payload, "attempt")?);
        let task = self.task(subject);
        only_if(task.attempt == number, "stale attempt")?;
        only_if(task.timer.is_some(), "not in that state")?;
        only_if(task.timer == Some(false) && task.is == TaskIs::RetryWait, "duplicate")?;
        task.timer = Some(true);
        Ok(())
    }

    pub(super) fn timer_fired(&mut self, event: &Event) -> Judged {
        let kind = text(&event.payload, "timer_type")?;
        match (event.payload.get("task_key").is_some(), kind == "RUN_TIMEOUT") {
            (false, true) => return self.run_timed_out(event),
            (true, true) | (false, false) => return Err(Rejection::Ignored("unknown task")),
            (true, false) => {}
        }
        let (subject, number) = (self.subject(&event.payload)?, number(&event.payload, "attempt")?);
        let due = self.runs[subject.0].tasks[subject.1].due(&self.rules);
        let task = self.task(subject);
        only_if(task.attempt == number, "stale attempt")?;
        let Some((due, wanted)) = due else { return Err(Rejection::Ignored("not in that state")) };
        only_if(kind == wanted, "not in that state")?;
        // How patient the writer was, the event says; that nothing was heard meanwhile, the task says.
        let told = timer_times(&event.payload)?;
        let is_silent = told.is_none_or(|(since, _)| task.waits_since() <= Some(since));
        only_if(event.at >= told.map_or(due, |(_, due)| due) && is_silent, "not due")?;
        match wanted {
            "RETRY" => task.becomes(TaskIs::Ready, event),
            "HEARTBEAT_CHECK" => self.end(subject, event, End::Failed(Failure::code("HEARTBEAT_LOST"))),
            _ => self.end(subject, event, End::Untaken),
        }
        Ok(())
    }

    pub(super) fn task_finished(&mut self, event: &Event) -> Judged {
        let (subject, (number, id)) = (self.subject(&event.payload)?, attempt(&event.payload)?);
        let outcome = text(&event.payload, "outcome")?;
        let is_known = self.memory.knows(&event.key);
        let is_stopping = self.runs[subject.0].stopped.is_some();
        let task = self.task(subject);
        if !task.is_newest(number, id) {
            self.memory.remember(&event.key, self.elapsed, &self.rules);
            return Err(Rejection::Ignored("stale attempt"));
        }
        if !task.is_open() {
            let is_news = task.is == TaskIs::Cancelled && task.late.is_none() && outcome != "CANCELLED";
            only_if(is_news && !is_known, "duplicate")?;
            task.late = Some(outcome.to_owned());
            return Err(Rejection::Late);
        }
        let (key, assets) = (task.key.clone(), task.assets.clone());
        let (refused, dispatched) = (refused(&event.payload, task), task.dispatched.clone());
        if !is_stopping {
            let run = self.runs[subject.0].id.clone();
            self.data.set_aside(event, &run, &key, &assets, &dispatched);
            self.assets.checked(event, &assets);
        } else if outcome != "CANCELLED" {
            task.late = Some(outcome.to_owned());
        }
        let error = event.payload.get("error");
        let end = match outcome {
            "SUCCEEDED" => match refused {
                None => End::Succeeded(name_of(&event.payload, &key, &assets)),
                Some(code) => End::Failed(Failure::code(code)),
            },
            "FAILED" => End::Failed(Failure::reported(error)),
            "TIMED_OUT" if error.is_none() => End::Failed(Failure::code("TIMEOUT")),
            "TIMED_OUT" => End::Failed(Failure::reported(error)),
            "CANCELLED" => End::Failed(Failure::code("CANCELLED")),
            "INTERRUPTED" => End::Lost,
            other => return Err(Rejection::Unreadable(format!("an attempt ends as {other}"))),
        };
        self.end(subject, event, end);
        if !self.task(subject).is.has_ended() {
            self.memory.remember(&event.key, self.elapsed, &self.rules);
        }
        Ok(())
    }

    /// Attempts that nobody began end: their tasks wait for a worker again.
    pub(super) fn withdraw(&mut self, event: &Event) {
        let unstarted = |task: &Task| task.is_open() && task.is != TaskIs::Running;
        let subjects: Vec<(usize, usize)> = (0..self.runs.len())
            .filter(|run| !self.runs[*run].is.has_ended())
            .flat_map(|run| (0..self.runs[run].tasks.len()).map(move |task| (run, task)))
            .filter(|(run, task)| unstarted(&self.runs[*run].tasks[*task]))
            .collect();
        for subject in subjects {
            self.end(subject, event, End::Untaken);
        }
    }

    /// Ends an open attempt. In a run that was stopped every end is a cancellation.
    fn end(&mut self, subject: (usize, usize), event: &Event, end: End<'_>) {
        self.charge(subject, event);
        let is_stopping = self.runs[subject.0].stopped.is_some();
        let max_interruptions = self.rules.max_interruptions;
        let task = self.task(subject);
        if is_stopping {
            task.becomes(TaskIs::Cancelled, event);
            return self.settle(subject.0, event);
        }
        let mut failed = false;
        match end {
            End::Succeeded(materialization) => {
                let counts = task.assets.iter().any(|asset| !task.voided.contains(asset));
                task.materialization = materialization.filter(|_| counts);
                task.becomes(TaskIs::Succeeded, event);
            }
            End::Failed(failure) => {
                failed = true;
                task.failures += 1;
                task.interruptions = 0;
                failure.code.clone_into(&mut task.failed_with);
                match wait(task.retry.as_ref(), failure, task.failures, &task.attempt_id) {
                    Some(delay) => {
                        task.becomes(TaskIs::RetryWait, event);
                        task.retry_at = Some(event.at.saturating_add(delay));
                    }
                    None => task.becomes(TaskIs::Failed, event),
                }
            }
            End::Lost => {
                task.interruptions += 1;
                let is_too_often = task.interruptions > max_interruptions;
                failed = is_too_often;
                "INTERRUPTED".clone_into(&mut task.failed_with);
                task.becomes(if is_too_often { TaskIs::Failed } else { TaskIs::Ready }, event);
            }
            End::Untaken => task.becomes(TaskIs::Ready, event),
        }
        let run = &self.runs[subject.0];
        let task = &run.tasks[subject.1];
        if failed || task.is == TaskIs::Succeeded {
            self.data.attempt_ended(event, &run.id, task);
        }
        if task.is.has_ended() {
            self.assets.ended(event, task);
            self.settle(subject.0, event);
        }
    }
}
