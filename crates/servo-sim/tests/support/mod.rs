//! Random histories: an engine, and everything that may happen to it.

use std::sync::Arc;

use proptest::prelude::*;
use servo_core::{AssetKey, MaterializationId, Millis, RunId, TaskKey, TenantId, Timestamp, WorkspaceId};
use servo_engine::definitions::AssetDef;
use servo_engine::event::encode_batch;
use servo_engine::outputs::OutputReport;
use servo_engine::{
    Attempt, Caller, CancelRun, ChangePartitions, Delta, Deploy, Effect, Engine, ErrorCode, Event, Input,
    Outcome, OutputState, Pause, Plan, RegisterWorker, Reply, Report, RetryPolicy, Review, RunReply,
    RunRequest, SettingOrigin, Settings, StartWith, State, TaskError, TaskOptions, TaskRequest, TriggerRun,
    Verdict, WorkerLeaves,
};
use servo_sim::model::Log;

/// An action: its kind, its target, its variant.
pub(crate) type Action = (u8, u16, u8);

#[derive(Debug, Clone)]
pub(crate) struct History {
    acts: Vec<Action>,
    slots: u32,
    recent_runs: usize,
    dedup_entries: usize,
}

pub(crate) fn stories() -> impl Strategy<Value = History> {
    let acts = prop::collection::vec((any::<u8>(), any::<u16>(), any::<u8>()), 0..400);
    let dedup_entries = prop_oneof![Just(2_usize), Just(1_000)];
    (acts, 1..5u32, 0..4usize, dedup_entries).prop_map(|(acts, slots, recent_runs, dedup_entries)| History {
        acts,
        slots,
        recent_runs,
        dedup_entries,
    })
}

pub(crate) fn owner() -> (TenantId, WorkspaceId) {
    (TenantId::parse("acme").expect("a tenant"), WorkspaceId::parse("prod").expect("a workspace"))
}

pub(crate) fn empty() -> State {
    let (tenant, workspace) = owner();
    State::new(tenant, workspace)
}

/// A graph of up to eight tasks in the bits of a number; names run against its order.
fn plan(graph: u16) -> Plan {
    let key = |i: u16| {
        let partition = if i % 3 == 1 { format!("[p=i:{i}]") } else { String::new() };
        let operation = if i == 5 { "check" } else { "materialize" };
        TaskKey::parse(&format!("t/n{:02}{partition}:{operation}", 20 - i)).expect("a task key")
    };
    let tasks = (0..1 + graph % 8).map(|i| TaskRequest {
        key: key(i),
        upstream: (0..i).filter(|j| (graph.rotate_left(u32::from(3 * i)) >> j) & 1 == 1).map(key).collect(),
        options: TaskOptions {
            priority: i32::from(graph >> i & 1),
            retry: (i % 3 > 0).then(|| RetryPolicy { max_attempts: u32::from(i), ..RetryPolicy::default() }),
            heartbeat_timeout_ms: (i % 2 == 0).then_some(Millis::from_secs(20)),
            outputs: (i == 4).then(|| AssetKey::new("t", "also").expect("an asset")).into_iter().collect(),
            ..TaskOptions::default()
        },
    });
    let (tenant, workspace) = owner();
    Plan::build(&tenant, &workspace, tasks.collect(), 100).expect("a plan")
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) log: Vec<Vec<Event>>,
    pub(crate) deltas: Vec<Delta>,
    now: Timestamp,
    runs: Vec<RunId>,
    attempts: Vec<Attempt>,
    sent: Vec<Input>,
}

impl World {
    pub(crate) fn play(story: &History) -> Self {
        let settings = Settings {
            max_concurrent_tasks: story.slots,
            max_concurrent_runs: 4,
            max_queued_runs: 1,
            max_interruptions: 2,
            recent_runs: story.recent_runs,
            recent_tasks: 20,
            dedup_entries: story.dedup_entries,
            max_run_duration: Millis::from_hours(4),
            ..Settings::default()
        };
        let mut world = Self {
            engine: Engine::new(empty(), *b"secret"),
            log: Vec::new(),
            deltas: Vec::new(),
            now: Timestamp::from_millis(1_736_899_200_000),
            runs: Vec::new(),
            attempts: Vec::new(),
            sent: Vec::new(),
        };
        world.step(&[Input::StartWith(StartWith::differing(&settings, SettingOrigin::Flag))]);
        for act in &story.acts {
            let input = world.act(*act);
            world.sent.extend(input.clone());
            world.step(input.as_slice());
        }
        world
    }

    /// The log as read from bytes.
    pub(crate) fn log(&self) -> Log {
        log_of(&self.log)
    }

    fn step(&mut self, inputs: &[Input]) {
        let step = self.engine.step(inputs, self.now);
        let attempts =
            step.effects.iter().filter_map(Effect::dispatch).map(|dispatch| dispatch.attempt.clone());
        self.attempts.extend(attempts);
        let releases = step.effects.iter().filter_map(|effect| match effect {
            Effect::Release(release) => Some(Input::Released(release.clone())),
            Effect::Move(moved) => Some(Input::Moved(moved.clone())),
            Effect::Enqueue(_)
            | Effect::Promote(_)
            | Effect::Discard(_)
            | Effect::ClearStaging(_)
            | Effect::Evaluate(_)
            | Effect::Notify(_)
            | Effect::Expire(_)
            | Effect::ExpireLogs(_) => None,
        });
        let releases: Vec<Input> = releases.collect();
        self.runs.extend(step.replies.iter().filter_map(|reply| match reply {
            Ok(Reply::Run(RunReply { run_id, .. })) => Some(*run_id),
            _ => None,
        }));
        if !step.events.is_empty() {
            self.log.push(step.events);
        }
        if !releases.is_empty() {
            self.step(&releases);
        }
    }

    fn act(&mut self, (what, whom, how): Action) -> Option<Input> {
        // Mostly the newest attempts; now and then one of long ago.
        let among = if how.is_multiple_of(16) { self.attempts.len() } else { self.attempts.len().min(6) };
        let attempt = self.attempts.iter().rev().nth(usize::from(whom) % among.max(1)).cloned();
        let worker = || Arc::from(format!("w{}/x", how % 3));
        match what % 20 {
            0..=2 => Some(trigger(whom, how)),
            3 => attempt.map(Input::Enqueued),
            4..=7 => attempt.map(|attempt| Input::Started(attempt, worker())),
            8..=11 => attempt.map(|attempt| Input::Finished(attempt.clone(), self.report(&attempt, how))),
            12 => attempt.map(|attempt| Input::Heartbeat(attempt, self.now, None)),
            // A clock tells a step once.
            13 => self
                .sent
                .get(usize::from(whom) % self.sent.len().max(1))
                .filter(|input| !matches!(input, Input::ClockStepped { .. }))
                .cloned(),
            14 if how.is_multiple_of(3) => self.cancel(whom, how.is_multiple_of(2)),
            14 => self.review(whom, how),
            15 => self.wait([1, 10, 31, 61, 91, 301, 3_600, 691_200][usize::from(how) % 8]),
            16 if how.is_multiple_of(8) => {
                self.now = self.now.saturating_sub(Millis::from_secs(u64::from(whom % 300)));
                None
            }
            16 if how % 8 == 1 => {
                let (expected, by_ms) = (self.now, (i64::from(whom) - 32_768) * 1_000);
                self.now = servo_core::Timestamp::from_millis(expected.as_millis() + by_ms);
                Some(Input::ClockStepped { expected, by_ms })
            }
            16 if how % 8 == 2 => Some(pause(whom)),
            16 if how % 8 == 3 => Some(self.worker(whom)),
            16 if how % 8 == 4 => {
                let worker_id = format!("w{}/x", whom % 3).into();
                Some(Input::WorkerLeaves(WorkerLeaves { worker_id, draining: whom & 4 == 0 }))
            }
            16 => self.wait(u64::from(how % 64)),
            17 => Some(deploy(whom)),
            18 if how.is_multiple_of(2) => Some(partitions(whom)),
            18 if how.is_multiple_of(3) => Some(Input::WorkersLost(format!("w{}/", whom % 3).into())),
            18 => Some(Input::Sweep),
            _ => {
                self.restart();
                None
            }
        }
    }

    /// A worker that registers with the code that is deployed.
    fn worker(&self, whom: u16) -> Input {
        let deployed = self.engine.state().deployment().map(|deployment| deployment.digest.clone());
        let id = format!("w{}/x", whom % 3);
        Input::RegisterWorker(RegisterWorker {
            worker_id: id.as_str().into(),
            name: id,
            queues: vec!["default".into()],
            slots: 1 + u32::from(whom & 1),
            digest: deployed.unwrap_or_default(),
            storage: String::new(),
            host: String::new(),
            version: String::new(),
        })
    }

    fn wait(&mut self, seconds: u64) -> Option<Input> {
        self.now = self.now.saturating_add(Millis::from_secs(seconds));
        None
    }

    /// The process ends, and another continues from the rows.
    fn restart(&mut self) {
        let (tenant, workspace) = owner();
        self.deltas.push(self.engine.state_mut().take_delta());
        let rows = self.engine.state().rows();
        let restored = State::from_rows(tenant, workspace, rows).expect("its own rows fit");
        self.engine = Engine::new(restored, *b"secret");
    }

    fn cancel(&self, whom: u16, force: bool) -> Option<Input> {
        let run_id = *self.runs.iter().rev().nth(usize::from(whom) % 3)?;
        Some(Input::Cancel(CancelRun { run_id, caller: Caller::user("me"), reason: String::new(), force }))
    }

    fn review(&self, whom: u16, how: u8) -> Option<Input> {
        let waiting: Vec<_> = self.engine.state().quarantine().collect();
        let row = waiting.get(usize::from(whom) % waiting.len().max(1))?;
        let (asset, materialization_id) = (row.asset_key.clone(), row.materialization_id);
        let verdict = if how.is_multiple_of(2) { Verdict::Approve } else { Verdict::Reject };
        Some(Input::Review(Review {
            asset,
            materialization_id,
            verdict,
            caller: Caller::user("me"),
            reason: String::new(),
        }))
    }

    fn report(&self, attempt: &Attempt, how: u8) -> Report {
        let failed = |code| Report::failed(TaskError::new(code, "boom"));
        let outputs: Arc<[OutputReport]> =
            [attempt.task_key.asset(), AssetKey::new("t", "also").expect("an asset")]
                .into_iter()
                .zip([how / 9, how / 3])
                .map(|(asset, pick)| {
                    let states = [OutputState::Committed, OutputState::Quarantined, OutputState::Discarded];
                    OutputReport::new(asset, states[usize::from(pick) % 3])
                })
                .collect();
        match how % 9 {
            0 => Report {
                materialization_id: Some(MaterializationId::from_parts(7, how.into())),
                ..Report::succeeded()
            },
            1..=2 => Report { outputs, ..Report::succeeded() },
            3 => Report::succeeded(),
            4 => Report { outputs, ..failed(ErrorCode::CheckFailed) },
            5 => failed(ErrorCode::WorkerCrash),
            6 => Report::new(Outcome::TimedOut),
            7 => Report::new(Outcome::Interrupted),
            _ => Report::new(Outcome::Cancelled),
        }
    }
}

pub(crate) fn log_of(batches: &[Vec<Event>]) -> Log {
    let bytes = batches.iter().map(|batch| {
        let mut bytes = Vec::new();
        encode_batch(batch, &mut bytes);
        bytes
    });
    let bytes: Vec<Vec<u8>> = bytes.collect();
    Log::read((1..).zip(&bytes).map(|(seq, bytes)| (seq, 1, bytes.as_slice()))).expect("a log")
}

fn trigger(whom: u16, how: u8) -> Input {
    let graph = whom & 0xfff;
    let (priority, timeout) =
        (i32::from(how.is_multiple_of(8)), how.is_multiple_of(4).then_some(Millis::from_minutes(30)));
    let key = format!("key {}", graph % 7);
    let plan = plan(if how.is_multiple_of(16) { graph } else { graph % 7 * 571 });
    Input::Trigger(TriggerRun::of_tasks(
        key,
        plan,
        RunRequest { priority, timeout, caller: Caller::user("me"), ..RunRequest::default() },
    ))
}

fn deploy(whom: u16) -> Input {
    let asset = |i: u16| AssetDef { key: format!("t/n{:02}", 20 - i), ..AssetDef::default() };
    let assets = (0..4).filter(|i| whom >> i & 1 == 1).map(|i| Arc::new(asset(i))).collect();
    let digest = format!("sha256:{}", whom % 16).into();
    Input::Deploy(Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        time_zones: "2026e".into(),
        digest,
        project: "sim".to_owned(),
        assets,
        caller: Caller::user("me"),
    })
}

fn partitions(whom: u16) -> Input {
    let keys = |bits: u16| (0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| format!("k{bit}")).collect();
    let (add, remove) = (keys(whom & !(whom >> 4)), keys(whom >> 4));
    Input::ChangePartitions(ChangePartitions {
        name: "set".to_owned(),
        add,
        remove,
        caller: Caller::user("me"),
    })
}

/// Pauses everything or a queue now and then, and resumes it more often.
fn pause(whom: u16) -> Input {
    let scope = ["all", "queue:default"][usize::from(whom / 4) % 2].parse().expect("a scope");
    let (paused, caller) = (whom.is_multiple_of(4), Caller::user("me"));
    Input::Pause(Pause { scope, paused, reason: String::new(), caller })
}
