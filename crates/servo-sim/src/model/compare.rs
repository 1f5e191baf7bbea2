//! Compares states and tables with the model and describes the differences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use servo_engine::rows::{PartitionStatusRow, RunRow, TaskRow};
use servo_engine::{AttemptOutcome, DataStatus, HotRows, State};

use super::{Made, Model, Run, Status, Tables, Task, TaskIs};

/// Differences found so far.
#[derive(Default)]
pub(super) struct Differences(Vec<String>);

impl Differences {
    pub(super) fn compare<T: PartialEq + Debug>(
        &mut self,
        about: &dyn Fn() -> String,
        what: &str,
        found: T,
        expected: T,
    ) {
        if found != expected {
            self.0.push(format!("{}: {what} is {found:?}, should be {expected:?}", about()));
        }
    }

    /// Both sides have the same keys.
    pub(super) fn same_keys<T: Ord + Debug>(
        &mut self,
        what: &str,
        found: &BTreeSet<T>,
        expected: &BTreeSet<T>,
    ) {
        self.0.extend(expected.difference(found).map(|key| format!("{what}: {key:?} is missing")));
        self.0.extend(found.difference(expected).map(|key| format!("{what}: {key:?} should not be there")));
    }
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

impl Model {
    /// The differences of a state.
    pub fn compare_state(&self, state: &State) -> Vec<String> {
        let mut found = self.compare_rows(&state.rows());
        let (open, counted) = (self.open_attempts(), state.outstanding() as usize);
        if open != counted {
            found.push(format!("{counted} slots are held, {open} attempts are open"));
        }
        found.extend(self.compare_places(state));
        found.extend(self.compare_limits(state));
        found
    }

    /// The differences of tables: hot ones and history.
    pub fn compare_tables(&self, tables: &Tables) -> Vec<String> {
        let mut found = Differences(self.compare_rows(&tables.hot));
        let names = |run: &Run| (run.requested, run.id.clone());
        let mut settled = BTreeSet::new();
        for (row, tasks) in &tables.history {
            let name = (row.requested_event_id, row.run_id.to_string());
            match self.runs.iter().find(|run| names(run) == name && !run.is_in_memory) {
                Some(run) => self.compare_run(&mut found, run, row, &tasks.iter().collect::<Vec<_>>()),
                None => found.0.push(format!("{} in history should not be there", row.run_id)),
            }
            settled.insert(name);
        }
        // Of runs with the same id, history shows the newest.
        let left = self.newest.values().map(|index| &self.runs[*index]).filter(|run| !run.is_in_memory);
        let left: BTreeSet<_> = left.map(names).filter(|name| !settled.contains(name)).collect();
        found.0.extend(left.iter().map(|(_, run)| format!("{run} is not in history")));
        let promoted = self.data.promotions.iter().map(|promotion| {
            let (asset, partition) = &promotion.place;
            (promotion.made.event, asset.clone(), partition.clone(), promotion.made.id.clone())
        });
        let materialized = tables.materializations.iter().map(|row| {
            let partition = row.partition_key.as_ref().map(|key| key.canonical().to_owned());
            (
                row.row_version,
                row.asset_key.canonical().to_owned(),
                partition,
                row.materialization_id.to_string(),
            )
        });
        found.same_keys("materializations", &materialized.collect(), &promoted.collect());
        let acts = tables.audit.iter().map(|row| {
            let outcome = row.outcome.name().to_owned();
            (row.event_id, [row.principal.to_string(), row.action.clone(), row.subject.clone(), outcome])
        });
        let expected = self.acts.iter().map(|(event, act)| (*event, act.clone()));
        found.same_keys("audit", &acts.collect(), &expected.collect());
        self.compare_costs(&mut found, &tables.costs);
        let removed = tables.removals.iter();
        let removed =
            removed.map(|row| (row.asset_key.canonical().to_owned(), row.materialization_id.to_string()));
        found.same_keys("removals", &removed.collect(), &self.data.removed);
        found.0
    }

    /// The differences of hot rows.
    pub fn compare_rows(&self, rows: &HotRows) -> Vec<String> {
        let mut found = Differences::default();
        let head = || "the head".to_owned();
        found.compare(&head, "the last batch", rows.head.seq, self.last_seq);
        found.compare(&head, "the last event", rows.head.last_event, self.last_event);
        found.compare(&head, "its time", rows.head.last_event_at, self.last_event_at);
        found.compare(&head, "events skipped", rows.head.unknown_events, self.unknown_events);
        self.compare_runs(&mut found, rows);
        self.compare_data(&mut found, rows);
        self.assets.compare(&mut found, &rows.asset_states);
        self.compare_definitions(&mut found, rows);
        self.compare_automation(&mut found, rows);
        self.compare_sensors(&mut found, rows);
        self.compare_conditions(&mut found, rows);
        self.compare_freshness(&mut found, rows);
        self.compare_notifications(&mut found, rows);
        self.compare_renames(&mut found, rows);
        found.compare(&head, "elapsed time", rows.head.elapsed, self.elapsed);
        let known = rows.settings.iter();
        let known = known.map(|row| (row.name.clone(), (row.value, row.origin.to_string()))).collect();
        found.compare(&|| "the settings".to_owned(), "their values", known, self.settings.clone());
        let known = rows.pauses.iter();
        let known = known.map(|row| (row.scope.clone(), (row.change_number, row.paused))).collect();
        found.compare(&|| "the pauses".to_owned(), "their numbers", known, self.pauses.clone());
        let known = rows.workers.iter().map(|row| {
            let worker = super::Worker {
                number: row.change_number,
                is: row.state.name(),
                slots: u64::from(row.slots),
                digest: row.digest.clone(),
            };
            (row.worker_id.clone(), worker)
        });
        found.compare(&|| "the workers".to_owned(), "who is there", known.collect(), self.workers.clone());
        let known = rows.run_keys.iter().map(|row| format!("{:032x}", row.run_id.to_u128()));
        let expected = self.memory.order.iter().rev().take(self.rules.recent_run_keys).cloned();
        found.same_keys("known runs", &known.collect(), &expected.collect());
        let known = rows.idempotency.iter().map(|row| format!("{:032x}", row.key_hash));
        let expected = self.memory.requests.all().map(|(key, _)| key.to_owned());
        found.same_keys("known requests", &known.collect(), &expected.collect());
        let known = rows.answers.iter().map(|row| {
            let answer = [text(row.run_id), text(row.event_id)].map(serde_json::Value::from);
            (format!("{:032x}", row.key_hash), serde_json::Value::from(answer.to_vec()).to_string())
        });
        let expected = self.memory.answers.all().map(|(key, answer)| (key.to_owned(), answer.to_owned()));
        found.same_keys("known answers", &known.collect(), &expected.collect());
        found.0
    }

    fn compare_runs(&self, found: &mut Differences, rows: &HotRows) {
        let mut tasks: BTreeMap<_, Vec<&TaskRow>> = BTreeMap::new();
        for row in &rows.tasks {
            tasks.entry(row.run_id).or_default().push(row);
        }
        let held = self.runs.iter().filter(|run| run.is_in_memory).map(|run| run.id.clone()).collect();
        found.same_keys("runs", &rows.runs.iter().map(|row| row.run_id.to_string()).collect(), &held);
        for row in &rows.runs {
            if let Some(run) = self.run(&row.run_id.to_string()).filter(|run| run.is_in_memory) {
                self.compare_run(found, run, row, tasks.get(&row.run_id).map_or(&[], Vec::as_slice));
            }
        }
    }

    fn compare_run(&self, found: &mut Differences, run: &Run, row: &RunRow, tasks: &[&TaskRow]) {
        let about = || run.id.clone();
        let count = |is| run.tasks.iter().filter(|task| task.is == is).count() as u32;
        found.compare(&about, "its state", row.state.name(), run.is.name());
        found.compare(&about, "its key", row.run_key.as_str(), &run.key);
        found.compare(&about, "its request", row.requested_event_id, run.requested);
        found.compare(&about, "who asked", row.requested_by.to_string(), run.asked_by.clone());
        found.compare(&about, "its fingerprint", row.request_fingerprint.as_str(), &run.fingerprint);
        let asked = |name: &str, otherwise: &str| {
            let otherwise = || serde_json::from_str(otherwise).unwrap_or_default();
            run.asked.get(name).cloned().unwrap_or_else(otherwise)
        };
        let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
        found.compare(&about, "its source", json(row.source.to_text()), asked("source", "null"));
        found.compare(&about, "its selection", row.selection.as_str().into(), asked("selection", "\"\""));
        found.compare(
            &about,
            "its operation",
            row.operation.clone().into(),
            asked("operation", "\"materialize\""),
        );
        found.compare(&about, "its partitions", json(row.partitions.to_text()), asked("partitions", "{}"));
        let mut config = asked("config", "{}");
        for value in config.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
            *value = json(value.as_str().unwrap_or_default().to_owned());
        }
        found.compare(&about, "its configuration", json(row.config.to_text()), config);
        found.compare(&about, "its labels", json(row.labels.to_text()), asked("labels", "{}"));
        found.compare(&about, "its request id", row.request_id.clone().into(), asked("request_id", "null"));
        found.compare(&about, "its plan", text(row.plan_id), run.plan.clone());
        found.compare(&about, "its start", row.started_at, run.started_at);
        found.compare(&about, "its end", row.finished_at, run.finished_at);
        found.compare(&about, "the event that ended it", row.finished_event_id, run.ended_by);
        let is_stopped = row.cancel_requested_at.is_some();
        found.compare(&about, "whether it was stopped", is_stopped, run.stopped.is_some());
        found.compare(&about, "succeeded tasks", row.tasks_succeeded, count(TaskIs::Succeeded));
        found.compare(&about, "failed tasks", row.tasks_failed, count(TaskIs::Failed));
        found.compare(&about, "skipped tasks", row.tasks_skipped, count(TaskIs::Skipped));
        found.compare(&about, "cancelled tasks", row.tasks_cancelled, count(TaskIs::Cancelled));
        let cost = row.cost_micro_usd.map_or(0, |cost| cost.get());
        found.compare(&about, "what it cost", cost, run.cost);
        let keys = |tasks: &mut dyn Iterator<Item = &str>| tasks.map(str::to_owned).collect::<Vec<_>>();
        let rows = keys(&mut tasks.iter().map(|row| row.task_key.as_str()));
        found.compare(&about, "its tasks", rows, keys(&mut run.tasks.iter().map(|task| task.key.as_str())));
        for (row, task) in tasks.iter().zip(&run.tasks) {
            compare_task(found, run, task, row);
        }
    }

    fn compare_data(&self, found: &mut Differences, rows: &HotRows) {
        let place = |row: &PartitionStatusRow| {
            let partition = row.partition_key.as_ref().map(|key| key.canonical().to_owned());
            (row.asset_key.canonical().to_owned(), partition)
        };
        let known = rows.partition_status.iter().map(place).collect();
        found.same_keys("partitions", &known, &self.data.statuses.keys().cloned().collect());
        for row in &rows.partition_status {
            if let Some(status) = self.data.statuses.get(&place(row)) {
                compare_status(found, row, status);
            }
        }
        let waiting = rows.quarantine.iter().map(|row| {
            let partition = row.partition_key.as_ref().map(|key| key.canonical().to_owned());
            let (asset, id) = (row.asset_key.canonical().to_owned(), row.materialization_id.to_string());
            (asset, partition, id, row.run_id.to_string(), row.row_version)
        });
        let expected = self.data.quarantine.iter().map(|((asset, partition), waiting)| {
            (asset.clone(), partition.clone(), waiting.id.clone(), waiting.run.clone(), waiting.event)
        });
        let approved = self.data.approved.iter().map(|((asset, id), approved)| {
            let partition = approved.place.1.clone();
            (asset.clone(), partition, id.clone(), approved.run.clone(), approved.event)
        });
        found.same_keys("quarantine", &waiting.collect(), &expected.chain(approved).collect());
    }

    fn compare_definitions(&self, found: &mut Differences, rows: &HotRows) {
        let deployed =
            rows.deployments.iter().map(|row| (row.number, row.digest.clone(), row.assets as usize));
        let expected = self.deployed.iter().map(|it| (it.number, it.digest.clone(), it.live.len()));
        found.same_keys("deployments", &deployed.collect(), &expected.collect());
        let live = rows.asset_definitions.iter().filter(|row| row.removed_at.is_none());
        let live = live.map(|row| (row.asset_key.canonical().to_owned(), row.asset_id.to_string()));
        let expected = self.deployed.iter().flat_map(|deployed| deployed.live.clone());
        found.same_keys("assets", &live.collect(), &expected.collect());
        let keys = rows.dynamic_partitions.iter().map(|row| (row.name.clone(), row.partition.clone()));
        let expected = self
            .dynamic
            .iter()
            .flat_map(|(name, (_, keys))| keys.iter().map(|key| (name.clone(), key.clone())));
        found.same_keys("dynamic partitions", &keys.collect(), &expected.collect());
        let sets =
            rows.partition_sets.iter().map(|row| (row.name.clone(), row.change_number, row.partitions));
        let expected =
            self.dynamic.iter().map(|(name, (change, keys))| (name.clone(), *change, keys.len() as u64));
        found.same_keys("changes of dynamic partitions", &sets.collect(), &expected.collect());
    }
}

fn compare_task(found: &mut Differences, run: &Run, task: &Task, row: &TaskRow) {
    let about = || format!("{} {}", run.id, task.key);
    let cause = task.caused_by.map(|position| run.tasks[position].key.as_str());
    let has_succeeded = |up: &usize| run.tasks[*up].is == TaskIs::Succeeded;
    let paired = task.upstream[..task.paired].iter().filter(|up| has_succeeded(up)).count();
    // Edges of a set count when all of them are satisfied.
    let sets = task.sets.iter().filter(|set| task.upstream[(*set).clone()].iter().all(has_succeeded));
    let satisfied = paired + sets.map(|set| set.len()).sum::<usize>();
    found.compare(&about, "its state", row.state.name(), task.is.name());
    found.compare(&about, "its attempt", u64::from(row.attempt), task.attempt);
    let token = Some(task.attempt_id.clone()).filter(|id| !id.is_empty());
    found.compare(&about, "the token of its attempt", text(row.attempt_id), token);
    found.compare(&about, "its failures", u64::from(row.failures), task.failures);
    found.compare(&about, "its interruptions", u64::from(row.interruptions), task.interruptions);
    found.compare(&about, "what it made", text(row.materialization_id), task.materialization.clone());
    found.compare(&about, "its cause", row.caused_by.as_ref().map(|key| key.as_str()), cause);
    found.compare(&about, "satisfied edges", row.deps_satisfied_count as usize, satisfied);
    found.compare(
        &about,
        "its late outcome",
        row.late_outcome.map(|outcome| outcome.to_text()),
        task.late.clone(),
    );
    found.compare(&about, "when a queue took it", row.dispatched_at, task.dispatched_at);
    found.compare(&about, "its start", row.started_at, task.started_at);
    found.compare(&about, "its last sign of life", row.last_heartbeat_at, task.heard_at);
    found.compare(&about, "its next try", row.retry_at, task.retry_at);
    found.compare(&about, "its end", row.finished_at, task.finished_at);
}

fn compare_status(found: &mut Differences, row: &PartitionStatusRow, status: &Status) {
    let about = || format!("{} {:?}", row.asset_key.canonical(), row.partition_key);
    let latest = status.latest.as_ref();
    let made = latest.map(|made| made.id.clone());
    found.compare(&about, "its latest materialization", text(row.last_materialization_id), made);
    let made = latest.map(|made| made.run.clone());
    found.compare(&about, "the run that made it", text(row.last_materialization_run_id), made);
    let made = latest.map(|made| made.event);
    found.compare(&about, "the event that reported it", row.last_materialization_event_id, made);
    let made = latest.map(|made| made.at);
    found.compare(&about, "when it was made", row.last_materialization_at, made);
    let made = latest.and_then(|made| made.origin.code.clone());
    found.compare(&about, "the code that made it", row.last_materialization_code_version.clone(), made);
    let made = latest.and_then(|made| made.origin.as_of);
    found.compare(&about, "what it read", row.last_materialization_inputs_as_of, made);
    let made = latest.map(|made| made.since);
    found.compare(&about, "since when it has its content", row.last_materialization_content_since, made);
    let made = latest.map(Made::data_as_of);
    found.compare(&about, "the time of its data", row.last_materialization_data_as_of, made);
    let is_expired = row.status == DataStatus::Expired;
    found.compare(&about, "whether it has expired", is_expired, status.expired);
    let succeeded = row.last_attempt_outcome == AttemptOutcome::Succeeded;
    found.compare(&about, "whether its last attempt succeeded", succeeded, status.last.succeeded);
    found.compare(
        &about,
        "the run of its last attempt",
        row.last_attempt_run_id.to_string(),
        status.last.run.clone(),
    );
    found.compare(&about, "the time of its last attempt", row.last_attempt_at, status.last.at);
    found.compare(&about, "the event of its last attempt", row.row_version, status.last.event);
}
