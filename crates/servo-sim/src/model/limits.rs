//! Pools of tasks and labels of runs: how many are at work, and how many may be.

use std::collections::BTreeMap;

use servo_engine::State;

use super::log::text;
use super::{Event, Model, Run, RunIs, Task, TaskIs};

impl Model {
    fn limit(&self, name: &str) -> Option<u64> {
        self.settings.get(name).and_then(|(value, _)| *value)
    }

    /// The tasks of a pool that have a slot of it.
    fn in_pool(&self, pool: &str) -> u64 {
        let at_work = self.runs.iter().filter(|run| !run.is.has_ended()).flat_map(|run| &run.tasks);
        at_work.filter(|task| task.is_open() && task.pool.as_deref() == Some(pool)).count() as u64
    }

    /// The pool of a task, if as many of its tasks are at work as may be.
    fn full_pool<'t>(&self, task: &'t Task) -> Option<&'t str> {
        let pool = task.pool.as_deref()?;
        let limit = self.limit(&format!("pool.{pool}"))?;
        (self.in_pool(pool) >= limit).then_some(pool)
    }

    /// The runs at work with a label.
    fn at_work_with(&self, name: &str, value: &str) -> u64 {
        let at_work = self.runs.iter().filter(|run| run.started_at.is_some() && !run.is.has_ended());
        at_work.filter(|run| run.labels.get(name).is_some_and(|own| own == value)).count() as u64
    }

    /// A label of a run of which as many runs are at work as may be.
    fn full_label(&self, run: &Run) -> Option<String> {
        let is_full = |(name, value): &(&String, &String)| {
            let limits =
                [self.limit(&format!("runs_per.{name}")), self.limit(&format!("runs_with.{name}={value}"))];
            limits.into_iter().flatten().any(|limit| self.at_work_with(name, value) >= limit)
        };
        run.labels.iter().find(is_full).map(|(name, value)| format!("{name}={value}"))
    }

    /// Why a task or a run must not begin now, if a limit forbids it.
    pub(super) fn beyond_limit(&self, event: &Event) -> Option<String> {
        let run = self.run(text(&event.payload, "run_id").ok()?)?;
        match event.kind.as_str() {
            "DispatchRequested" => {
                let key = text(&event.payload, "task_key").ok()?;
                let task = run.tasks.iter().find(|task| task.key.as_str() == key)?;
                Some(format!("it is dispatched, and pool {} is full", self.full_pool(task)?))
            }
            "RunTriggered" => Some(format!(
                "it starts, and as many runs with {} are at work as may be",
                self.full_label(run)?
            )),
            _ => None,
        }
    }

    /// Queued runs that no limit of a label holds back.
    pub(super) fn queued_without_reason(&self) -> usize {
        let queued = self.runs.iter().filter(|run| run.is == RunIs::Queued);
        queued.filter(|run| self.full_label(run).is_none()).count()
    }

    /// A task of a pool that waits although there is room for it everywhere.
    pub(super) fn held_back(&self) -> Option<String> {
        if self.is_paused() || self.open_attempts() >= self.slots() || self.room() == Some(0) {
            return None;
        }
        let at_work = self.runs.iter().filter(|run| run.is == RunIs::Running && run.stopped.is_none());
        let ready =
            at_work.flat_map(|run| &run.tasks).filter(|task| task.is == TaskIs::Ready && !task.is_open());
        let mut free = ready.filter(|task| {
            task.pool.is_some()
                && self.full_pool(task).is_none()
                && self.begins_while_moving(&task.assets).is_none()
        });
        let task = free.next()?;
        Some(format!("{} waits, and there is room in its pool", task.key))
    }

    /// The differences of what a state counts by pool and by label.
    pub(super) fn compare_limits(&self, state: &State) -> Vec<String> {
        let mut found = Vec::new();
        let mut pools: BTreeMap<String, u64> = BTreeMap::new();
        let mut labels: BTreeMap<(String, String), u64> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| !run.is.has_ended()) {
            for pool in run.tasks.iter().filter(|task| task.is_open()).filter_map(|task| task.pool.clone()) {
                *pools.entry(pool).or_default() += 1;
            }
            if run.started_at.is_some() {
                run.labels.clone().into_iter().for_each(|label| *labels.entry(label).or_default() += 1);
            }
        }
        let counted = state.slots_by_pool();
        if counted != pools {
            found.push(format!("slots of pools are {counted:?}, should be {pools:?}"));
        }
        let counted = state.runs_by_label();
        if counted != labels {
            found.push(format!("runs by label are {counted:?}, should be {labels:?}"));
        }
        found
    }
}
