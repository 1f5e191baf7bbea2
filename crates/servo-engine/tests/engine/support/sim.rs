//! A small world in which everything fails: random graphs, outcomes, lost answers, lost workers, cancellations and time
//! that passes (or is set back) drive one engine. What must hold after every step is checked after every step.

mod inputs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use servo_core::{AssetKey, MaterializationId, Millis, PartitionKey, RunId, TaskKey, Timestamp};
use servo_engine::controllers::notifications::Notifying;
use servo_engine::definitions::{CheckKind, Severity};
use servo_engine::event::KeyList;
use servo_engine::outputs::{CheckReport, OutputReport, Usage};
use servo_engine::requests::PlanBasis;
use servo_engine::rows::Delta;
use servo_engine::testing::invariants;
use servo_engine::{
    Attempt, AttemptOutcome, Caller, CancelRun, Change, ChangeSettings, DataFormat, Effect, Engine,
    ErrorCode, Event, EventData, Input, MarkPartitions, Outcome, OutputState, Plan, RegisterWorker, Reply,
    Report, RestorePartitions, RetryPolicy, Review, RunReply, RunRequest, RunSource, SettingOrigin, Settings,
    StartWith, State, TaskError, TaskOptions, TaskRequest, TriggerRun, Verdict, WipePartitions, WorkerLeaves,
    effect,
};

use crate::support::{SECRET, START, key, plan_of, tenant, workspace};
use inputs::{change_partitions, deploy, evaluated, new_pause, new_settings, notified, sensed};

/// A random graph: for each task a mask of the earlier tasks it waits for, and a pick of options.
pub(crate) type Graph = Vec<(u16, u8)>;

/// One thing that happens: what, to whom, how much.
pub(crate) type Action = (u8, u16, u8);

#[derive(Debug, Clone)]
pub(crate) struct History {
    graphs: Vec<Graph>,
    acts: Vec<Action>,
    slots: u32,
    pub(crate) recent_runs: usize,
}

pub(crate) fn stories() -> impl Strategy<Value = History> {
    let graph = prop::collection::vec((any::<u16>(), any::<u8>()), 1..=12);
    (
        prop::collection::vec(graph, 1..=4),
        prop::collection::vec((any::<u8>(), any::<u16>(), any::<u8>()), 0..500),
        1..6u32,
        0..3usize,
    )
        .prop_map(|(graphs, acts, slots, recent_runs)| History { graphs, acts, slots, recent_runs })
}

pub(crate) fn plan_for(graph: &Graph) -> Plan {
    // Names run against the order of the graph, so that "smallest key" and "first in the graph" differ.
    let name = |i: usize| format!("n{:02}", 20 - i);
    let retry = |pick: u8| match pick % 4 {
        0 => None,
        n => Some(RetryPolicy { max_attempts: u32::from(n), ..RetryPolicy::default() }),
    };
    // Graphs share their assets, so that runs meet in the status of partitions.
    let task_key = |i: usize| match i % 3 {
        1 => TaskKey::parse(&format!("t/{}[p=i:{i}]:materialize", name(i))).expect("a task key"),
        2 => TaskKey::parse(&format!("t/{}:check", name(i))).expect("a task key"),
        _ => key(&name(i)),
    };
    let tasks = graph.iter().enumerate().map(|(i, (mask, pick))| TaskRequest {
        key: task_key(i),
        upstream: (0..i).filter(|j| mask >> j & 1 == 1).map(task_key).collect(),
        options: TaskOptions {
            priority: i32::from(pick % 3),
            retry: retry(pick / 3),
            timeout_ms: None,
            compute: None,
            heartbeat_timeout_ms: (pick % 7 == 0).then_some(Millis::from_secs(20)),
            worker_queue: (pick % 5 == 0).then(|| Arc::from("big")),
            pool: (pick % 4 == 1).then(|| Arc::from("warehouse")),
            single_call: false,
            outputs: (0..pick % 3)
                .map(|n| AssetKey::new("t", &format!("also_{n}")).expect("a key"))
                .collect(),
            previous: Vec::new(),
            config: BTreeMap::new(),
        },
    });
    plan_of(tasks.collect())
}

/// The engine, the queue, the workers and the network, all of them unreliable.
pub(crate) struct Sim {
    pub(crate) engine: Engine,
    pub(crate) now: Timestamp,
    plans: Vec<Plan>,
    pub(crate) runs: Vec<RunId>,
    /// Messages in the queues, including delivered ones: they may be delivered again.
    queue: Vec<Attempt>,
    /// Attempts that workers believe they run.
    running: Vec<Attempt>,
    /// All inputs sent so far: any of them may be sent again.
    sent: Vec<Input>,
    waiting: Vec<Input>,
    pub(crate) log: Vec<Vec<Event>>,
    pub(crate) deltas: Vec<Delta>,
    /// On files, in order.
    pub(crate) effects: Vec<Effect>,
    /// The state as it was some steps ago.
    before: State,
    /// Names of the cases covered so far.
    pub(crate) seen: BTreeSet<String>,
}

impl Sim {
    pub(crate) fn new(story: &History) -> Self {
        let settings = Settings {
            max_concurrent_tasks: story.slots,
            max_concurrent_runs: 3,
            max_queued_runs: u32::from(story.slots.is_multiple_of(3)),
            pools: (story.slots.is_multiple_of(3)).then(|| ("warehouse".to_owned(), 1)).into_iter().collect(),
            runs_per: (story.recent_runs % 4 == 3).then(|| ("customer".to_owned(), 1)).into_iter().collect(),
            max_interruptions: 3,
            force_cancel_after: Millis::from_secs(10),
            recent_runs: story.recent_runs,
            max_run_duration: Millis::from_hours(4),
            max_partition_changes: 6,
            max_dynamic_partitions: 3,
            ..Settings::default()
        };
        let mut sim = Self {
            engine: Engine::new(State::new(tenant(), workspace()), SECRET),
            before: State::new(tenant(), workspace()),
            now: START,
            plans: story.graphs.iter().map(plan_for).collect(),
            runs: Vec::new(),
            queue: Vec::new(),
            running: Vec::new(),
            sent: Vec::new(),
            waiting: Vec::new(),
            log: Vec::new(),
            deltas: Vec::new(),
            effects: Vec::new(),
            seen: BTreeSet::new(),
        };
        sim.engine.set_notifying(Notifying::Everything);
        sim.waiting.push(Input::StartWith(StartWith::differing(&settings, SettingOrigin::Flag)));
        sim.flush();
        sim
    }

    /// Plays the history, then continues without faults until nothing is left to do.
    pub(crate) fn play(story: &History) -> Self {
        let mut sim = Self::new(story);
        for act in &story.acts {
            sim.act(*act);
        }
        sim.flush();
        sim
    }

    fn act(&mut self, (what, whom, how): Action) {
        let pick = |len: usize| (len > 0).then(|| usize::from(whom) % len);
        let input = match what % 32 {
            0..=2 => pick(self.plans.len()).map(|i| self.request(i, how)),
            3..=6 => pick(self.queue.len()).map(|i| Input::Enqueued(self.queue[i].clone())),
            7..=13 => pick(self.queue.len()).map(|i| {
                let attempt = self.queue[i].clone();
                if how % 8 != 0 {
                    self.queue.remove(i);
                }
                Input::Started(attempt, format!("w{}/x", how % 3).into())
            }),
            14..=15 => pick(self.running.len()).map(|i| {
                let progress = servo_engine::Progress { ppm: u32::from(how), message: String::new() };
                Input::Heartbeat(self.running[i].clone(), self.now, (how % 2 == 0).then_some(progress))
            }),
            16..=22 => pick(self.running.len()).map(|i| {
                let attempt = self.running[i].clone();
                if how % 8 != 0 {
                    self.running.remove(i);
                }
                let report = self.report(&attempt, how);
                Input::Finished(attempt, report)
            }),
            // A report without a start: the start was lost on the way.
            23 => pick(self.queue.len()).map(|i| {
                let attempt = self.queue[i].clone();
                let report = self.report(&attempt, how);
                Input::Finished(attempt, report)
            }),
            // The same message once more.
            24..=25 => pick(self.sent.len()).map(|i| self.sent[i].clone()),
            26 if how % 6 == 0 => pick(self.runs.len()).map(|i| {
                Input::Cancel(CancelRun {
                    run_id: self.runs[i],
                    caller: Caller::user("me"),
                    reason: String::new(),
                    force: how % 4 == 0,
                })
            }),
            26 if how % 6 == 1 => self.review(whom, how),
            27 if how % 4 == 0 => Some(Input::WorkersLost(format!("w{}/", how % 3).into())),
            27 if how % 4 == 1 => Some(deploy(whom)),
            27 if how % 4 == 2 => Some(change_partitions(whom, how >> 2 | (whom >> 2) as u8 & 0xc0)),
            27 => self.review(whom, how),
            28 => Some(Input::Sweep),
            29 => {
                self.queue.clear();
                self.hand_out();
                None
            }
            30 => {
                let seconds = [1, 10, 31, 45, 91, 301, 3_600][usize::from(how) % 7];
                self.now = self.now.saturating_add(Millis::from_secs(seconds));
                None
            }
            31 if how % 32 == 1 => {
                let by_ms = (i64::from(whom) - 32_768) * 1_000;
                let expected = self.now;
                self.flush();
                self.now = Timestamp::from_millis(expected.as_millis() + by_ms);
                Some(Input::ClockStepped { expected, by_ms })
            }
            31 if how % 32 == 2 => Some(Input::ChangeSettings(new_settings(whom))),
            31 if how % 32 == 3 => Some(Input::Pause(new_pause(whom))),
            31 if how % 32 == 4 || how % 32 == 5 => Some(self.worker(whom)),
            31 if how % 32 == 6 => {
                let worker_id = format!("w{}/x", whom % 3).into();
                Some(Input::WorkerLeaves(WorkerLeaves { worker_id, draining: whom & 4 == 0 }))
            }
            31 if how % 32 < 12 => Some(sensed(whom)),
            31 if how % 32 < 20 => self.life(whom, how),
            _ => {
                // Clocks are set back now and then; nothing may depend on their going forward (P7).
                let step = Millis::new(u64::from(how) * 50);
                self.now =
                    if how % 8 == 0 { self.now.saturating_sub(step) } else { self.now.saturating_add(step) };
                None
            }
        };
        if let Some(input) = input {
            self.sent.push(input.clone());
            self.waiting.push(input);
        }
        if !whom.is_multiple_of(3) {
            self.flush();
        }
    }

    /// A worker that registers with the code that is deployed; now and then with other code.
    fn worker(&self, whom: u16) -> Input {
        let deployed = self.engine.state().deployment().map(|deployment| deployment.digest.clone());
        let digest = deployed.filter(|_| whom & 8 == 0).unwrap_or_else(|| "other".into());
        let id = format!("w{}/x", whom % 3);
        Input::RegisterWorker(RegisterWorker {
            worker_id: id.as_str().into(),
            name: id,
            queues: vec!["default".into()],
            slots: 1,
            digest,
            storage: String::new(),
            host: String::new(),
            version: String::new(),
        })
    }

    fn request(&self, i: usize, how: u8) -> Input {
        // Now and then the same key with another priority: a conflict, unless it comes first.
        let priority = i32::from(how.is_multiple_of(4));
        let timeout = (i % 2 == 1).then_some(Millis::from_minutes(90));
        let backfill = RunSource::Backfill { id: "b".into(), chunk: format!("b:{i}").into() };
        Input::Trigger(TriggerRun::of_tasks(
            format!("key-{i}"),
            self.plans[i].clone(),
            RunRequest {
                priority,
                timeout,
                labels: [("customer".to_owned(), format!("c{}", i % 2))].into(),
                source: if i % 3 == 2 { backfill } else { RunSource::Manual },
                caller: Caller::user("me"),
                ..RunRequest::default()
            },
        ))
    }

    /// Approves or rejects a quarantined materialization; now and then one that is not in quarantine.
    fn review(&self, whom: u16, how: u8) -> Option<Input> {
        let waiting: Vec<_> = self.engine.state().quarantine().collect();
        let row = waiting.get(usize::from(whom) % waiting.len().max(1))?;
        let stranger = how.is_multiple_of(16).then_some(MaterializationId::from_parts(1, 1));
        Some(Input::Review(Review {
            asset: row.asset_key.clone(),
            materialization_id: stranger.unwrap_or(row.materialization_id),
            verdict: if how & 32 == 0 { Verdict::Approve } else { Verdict::Reject },
            caller: Caller::user("me"),
            reason: String::new(),
        }))
    }

    /// Wipes or marks partitions, or undoes that, whatever is at work.
    fn life(&self, whom: u16, how: u8) -> Option<Input> {
        let state = self.engine.state();
        let assets: Vec<AssetKey> = state
            .attempted_assets()
            .map(|(asset, _)| asset.clone())
            .chain([AssetKey::new("t", "n20").expect("a key")])
            .collect();
        let asset = assets[usize::from(whom >> 3) % assets.len()].clone();
        let caller = Caller::user("me");
        let known =
            state.partition_statuses(&asset).map(|(text, _)| text).chain([None, Some("p=i:1".into())]);
        let partitions: Vec<Option<PartitionKey>> = known
            .enumerate()
            .filter(|(i, _)| whom >> (i % 8) & 1 == 1)
            .map(|(_, text)| text.map(|text| PartitionKey::parse(&text).expect("a partition")))
            .collect();
        Some(match whom % 6 {
            0..=2 => Input::WipePartitions(WipePartitions {
                asset,
                partitions,
                keep_data: !whom.is_multiple_of(3),
                force: how & 32 == 0,
                reason: String::new(),
                caller,
            }),
            3..=4 => Input::MarkPartitions(MarkPartitions {
                asset,
                partitions: KeyList::new(partitions.into_iter().flatten().collect()),
                outcome: if how & 64 == 0 { AttemptOutcome::Succeeded } else { AttemptOutcome::Failed },
                reason: String::new(),
                basis: PlanBasis::default(),
                caller,
            }),
            _ => Input::RestorePartitions(RestorePartitions { asset, change: None, caller }),
        })
    }

    /// How an attempt ends: well or not, with or without a word about its outputs.
    fn report(&self, attempt: &Attempt, how: u8) -> Report {
        let failed = |code| Report::failed(TaskError::new(code, "boom"));
        let named = MaterializationId::from_parts(u64::from(how), 7);
        let report = match how % 11 {
            0 => Report { materialization_id: Some(named), ..Report::succeeded() },
            1..=3 => Report { outputs: self.outputs(attempt, how / 11), ..Report::succeeded() },
            4 => Report::succeeded(),
            5 => failed(ErrorCode::UserCodeException),
            6 => Report { outputs: self.outputs(attempt, how / 11), ..failed(ErrorCode::CheckFailed) },
            7 => failed(ErrorCode::WorkerCrash),
            8 => Report::new(Outcome::TimedOut),
            9 => Report::new(Outcome::Interrupted),
            _ => Report::new(Outcome::Cancelled),
        };
        let usage = Usage { cpu_ms: u64::from(how), ..Usage::default() };
        Report { usage: (!how.is_multiple_of(3)).then_some(usage), ..report }
    }

    /// An output for each asset of the task, now and then for one more or one less, in any state.
    fn outputs(&self, attempt: &Attempt, pick: u8) -> Arc<[OutputReport]> {
        let task = self.engine.state().task(attempt.run_id, &attempt.task_key);
        let others = task.map_or(&[][..], |task| &task.options.outputs);
        let stranger = pick.is_multiple_of(5).then(|| AssetKey::new("t", "stranger").expect("a key"));
        let assets = std::iter::once(attempt.task_key.asset()).chain(others.iter().cloned()).chain(stranger);
        let left_out = usize::from(pick.is_multiple_of(7));
        assets
            .skip(left_out)
            .zip(pick..)
            .map(|(asset, pick)| {
                let state = OutputState::ALL[usize::from(pick) % OutputState::ALL.len()];
                let check = |passed| CheckReport {
                    name: format!("check {pick}"),
                    kind: CheckKind::Unique,
                    passed,
                    severity: Severity::Error,
                    blocking: None,
                    message: None,
                    error: None,
                    metadata: BTreeMap::new(),
                    duration_ms: u64::from(pick),
                };
                OutputReport {
                    format: pick.is_multiple_of(2).then_some(DataFormat::Parquet),
                    row_count: Some(u64::from(pick)),
                    checks: (0..pick % 3).map(|n| check(n == 0)).collect(),
                    ..OutputReport::new(asset, state)
                }
            })
            .collect()
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Enqueue(dispatch) => self.queue.push(dispatch.attempt),
                Effect::Release(release) => self.waiting.push(Input::Released(release)),
                Effect::Move(moved) => self.waiting.push(Input::Moved(moved)),
                Effect::Evaluate(evaluation) => self.waiting.push(evaluated(&evaluation)),
                Effect::Notify(delivery) => self.waiting.push(notified(&delivery)),
                Effect::Promote(_)
                | Effect::Discard(_)
                | Effect::ClearStaging(_)
                | Effect::Expire(_)
                | Effect::ExpireLogs(_) => self.effects.push(effect),
            }
        }
    }

    fn hand_out(&mut self) {
        let effects = effect::unfinished(self.engine.state());
        self.carry_out(effects);
    }

    pub(crate) fn flush(&mut self) {
        let inputs = std::mem::take(&mut self.waiting);
        let step = self.engine.step(&inputs, self.now);
        assert_eq!(step.replies.len(), inputs.len());
        for (input, reply) in inputs.iter().zip(&step.replies) {
            match (input, reply) {
                (Input::Trigger(_), Ok(Reply::Run(RunReply { run_id, accepted: Some(_) }))) => {
                    self.runs.push(*run_id)
                }
                (Input::Started(attempt, _), Ok(Reply::Change(Change::Accepted { .. }))) => {
                    self.running.push(attempt.clone());
                }
                _ => {}
            }
        }
        self.note(&step);
        self.carry_out(step.effects);
        if !step.events.is_empty() {
            self.log.push(step.events);
        }
        let state = self.engine.state();
        invariants::check(state).unwrap_or_else(|violation| panic!("{violation}"));
        if self.log.len().is_multiple_of(3) {
            invariants::absorbs(&self.before, state).unwrap_or_else(|violation| panic!("{violation}"));
            self.before = state.clone();
            self.take_delta();
        }
    }

    fn note(&mut self, step: &servo_engine::Step) {
        for event in &step.events {
            self.seen.insert(event.data.kind().name().to_owned());
            if let EventData::TimerFired(timer) = &event.data {
                self.seen.insert(format!("fired {}", timer.timer_type.id_part()));
            }
        }
        for reply in &step.replies {
            self.seen.insert(match reply {
                Ok(Reply::Run(_)) => "Run".to_owned(),
                Ok(Reply::Heartbeat(_)) => "Heartbeat".to_owned(),
                Ok(reply) => format!("{reply:?}").split([' ', ')']).next().unwrap_or_default().to_owned(),
                Err(refusal) => {
                    format!("{refusal:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
                }
            });
        }
        let state = self.engine.state();
        for (_, status) in state.attempted_assets().flat_map(|(asset, _)| state.partition_statuses(asset)) {
            self.seen.insert(format!("data {} {}", status.status(), status.last_attempt().outcome));
        }
        for run in self.engine.state().runs() {
            self.seen.insert(format!("run {}", run.state));
            for task in &run.tasks {
                self.seen.insert(format!("task {} {}", task.state, task.reason));
                if let Some(late) = task.late_outcome {
                    self.seen.insert(format!("late {late:?}"));
                }
                self.seen.extend(task.usage.map(|_| "usage".to_owned()));
                let outputs = task.outputs.iter();
                self.seen.extend(outputs.map(|out| format!("output {} {}", out.state, task.state)));
                let past = task.past_attempts.iter();
                self.seen.extend(past.map(|past| format!("past {}", past.reason)));
            }
        }
    }

    pub(crate) fn take_delta(&mut self) {
        let delta = self.engine.state_mut().take_delta();
        self.deltas.push(delta);
    }

    /// Faults are over: queues hold what they should, workers answer, time passes. Everything must end.
    pub(crate) fn run_to_rest(&mut self) {
        // What is paused or limited to nothing would wait for ever.
        for scope in 0..5 {
            self.waiting.push(Input::Pause(new_pause(2 * scope + 1)));
        }
        self.waiting.push(Input::ChangeSettings(ChangeSettings {
            set: BTreeMap::new(),
            unset: vec!["pool.warehouse".to_owned(), "runs_per.customer".to_owned()],
            origin: SettingOrigin::Api,
            caller: Caller::user("me"),
        }));
        self.flush();
        for _ in 0..600 {
            if self.engine.state().active_runs() == 0 {
                self.flush();
                // A sensor may have asked for one more run.
                if self.engine.state().active_runs() == 0 && self.waiting.is_empty() {
                    return;
                }
            }
            self.queue.clear();
            self.hand_out();
            for attempt in std::mem::take(&mut self.queue) {
                self.waiting.push(Input::Started(attempt, "w9/x".into()));
            }
            self.flush();
            for attempt in std::mem::take(&mut self.running) {
                self.waiting.push(Input::Finished(attempt, Report::succeeded()));
            }
            self.flush();
            let due = self.engine.state().next_deadline().unwrap_or(self.now);
            self.now = self.now.max(due).saturating_add(Millis::new(1));
        }
        panic!("still at work: {:#?}", self.engine.state().rows());
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.log.iter().flatten().cloned().collect()
    }
}
