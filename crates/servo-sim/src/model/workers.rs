//! Workers as the log tells of them: who is there, and what there is room for. Every task is of one queue here.

use super::follow::{Judged, only_if};
use super::log::{number, text};
use super::{Event, Model, Task, TaskIs};

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Worker {
    pub number: u64,
    pub is: &'static str,
    pub slots: u64,
    pub digest: String,
}

impl Worker {
    fn is_gone(&self) -> bool {
        matches!(self.is, "LEFT" | "LOST")
    }
}

impl Model {
    pub(super) fn worker_registered(&mut self, event: &Event) -> Judged {
        let (id, change) = (text(&event.payload, "worker_id")?, number(&event.payload, "number")?);
        only_if(self.workers.get(id).is_none_or(|known| change > known.number), "duplicate")?;
        let slots = number(&event.payload, "slots")?;
        let digest = text(&event.payload, "digest")?.to_owned();
        self.workers.insert(id.to_owned(), Worker { number: change, is: "ACTIVE", slots, digest });
        Ok(())
    }

    pub(super) fn worker_changed(&mut self, event: &Event) -> Judged {
        let draining = event.payload.get("draining").and_then(serde_json::Value::as_bool) == Some(true);
        let digest = text(&event.payload, "digest")?.to_owned();
        let worker = self.next_of_worker(event)?;
        (worker.is, worker.digest) = (if draining { "DRAINING" } else { "ACTIVE" }, digest);
        self.without_workers(event);
        Ok(())
    }

    pub(super) fn worker_gone(&mut self, event: &Event, is: &'static str) -> Judged {
        self.next_of_worker(event)?.is = is;
        self.without_workers(event);
        Ok(())
    }

    fn next_of_worker(&mut self, event: &Event) -> Result<&mut Worker, super::follow::Rejection> {
        let (id, change) = (text(&event.payload, "worker_id")?, number(&event.payload, "number")?);
        let known = self.workers.get_mut(id);
        let worker = known.ok_or(super::follow::Rejection::Ignored("not in that state"))?;
        only_if(change > worker.number, "duplicate")?;
        only_if(!worker.is_gone(), "not in that state")?;
        worker.number = change;
        Ok(worker)
    }

    /// When nobody is left to take them, what was handed out waits again.
    fn without_workers(&mut self, event: &Event) {
        if self.rules.push_limit == 0 && !self.workers.values().any(|worker| worker.is == "ACTIVE") {
            self.withdraw(event);
        }
    }

    /// How many more attempts the workers have room for; none if queues call their workers.
    pub fn room(&self) -> Option<u64> {
        if self.rules.push_limit > 0 {
            return None;
        }
        let at_work = || self.runs.iter().filter(|run| !run.is.has_ended()).flat_map(|run| &run.tasks);
        let digest = self.deployed.as_ref().map(|deployed| deployed.digest.as_str());
        let room = |(id, worker): (&String, &Worker)| {
            let holds = |task: &&Task| task.is == TaskIs::Running && task.worker.as_ref() == Some(id);
            let held = at_work().filter(holds).count() as u64;
            (worker.slots * self.rules.tasks_per_slot).saturating_sub(held)
        };
        let is_given = |(_, worker): &(&String, &Worker)| {
            worker.is == "ACTIVE" && Some(worker.digest.as_str()) == digest
        };
        let all: u64 = self.workers.iter().filter(is_given).map(room).sum();
        let unstarted = at_work().filter(|task| task.is_open() && task.is != TaskIs::Running).count();
        Some(all.saturating_sub(unstarted as u64))
    }
}
