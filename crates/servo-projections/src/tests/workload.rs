//! A real engine whose batches go to a real log.

use std::collections::VecDeque;
use std::sync::Arc;

use servo_core::{AssetKey, MaterializationId, Millis, TaskKey, Timestamp};
use servo_engine::definitions::{AssetDef, CheckKind, Severity};
use servo_engine::event::encode_batch;
use servo_engine::outputs::{CheckReport, OutputReport, Usage};
use servo_engine::{
    Attempt, Caller, ChangePartitions, DataFormat, Deploy, Dispatch, Effect, Engine, ErrorCode, Input,
    OutputState, Plan, Report, RetryPolicy, Review, SettingOrigin, Settings, StartWith, State, TaskError,
    TaskOptions, TaskRequest, TimerState, TriggerRun, Verdict,
};
use servo_store::{CountingPutIds, Log, MemoryLog, PutIds, Record};

use super::support::{layout, now};

/// Few runs stay in memory, so that history fills quickly.
fn settings() -> Settings {
    Settings {
        recent_runs: 3,
        recent_run_keys: 4,
        dedup_window: Millis::from_minutes(10),
        ..Settings::default()
    }
}

pub(super) struct Workload {
    pub(super) engine: Engine,
    pub(super) log: Arc<MemoryLog>,
    put_ids: CountingPutIds,
    pub(super) clock: Timestamp,
    released: Vec<Input>,
}

impl Workload {
    pub(super) async fn new() -> Self {
        let state = State::new(layout().tenant().clone(), layout().workspace().clone());
        let mut workload = Self {
            engine: Engine::new(state, *b"secret"),
            log: Arc::new(MemoryLog::new()),
            put_ids: CountingPutIds::new(77),
            clock: now(),
            released: Vec::new(),
        };
        workload.step(&[Input::StartWith(StartWith::differing(&settings(), SettingOrigin::Flag))]).await;
        workload
    }

    pub(super) async fn append(&self, payload: Vec<u8>) {
        let seq = self.log.next_seq().await.unwrap();
        let record = Record { seq, epoch: 1, put_id: self.put_ids.next(), payload: payload.into() };
        self.log.append(record).await.unwrap();
    }

    async fn step(&mut self, inputs: &[Input]) -> Vec<Dispatch> {
        self.clock = self.clock.saturating_add(Millis::new(700));
        let step = self.engine.step(inputs, self.clock);
        if !step.events.is_empty() {
            let mut payload = Vec::new();
            encode_batch(&step.events, &mut payload);
            self.append(payload).await;
            assert_eq!(self.engine.state().head().seq + 1, self.log.next_seq().await.unwrap());
        }
        let dispatches = step.effects.iter().filter_map(Effect::dispatch).cloned().collect();
        let releases = step.effects.into_iter().filter_map(|effect| match effect {
            Effect::Release(release) => Some(Input::Released(release)),
            Effect::Move(moved) => Some(Input::Moved(moved)),
            Effect::Enqueue(_)
            | Effect::Promote(_)
            | Effect::Discard(_)
            | Effect::ClearStaging(_)
            | Effect::Evaluate(_)
            | Effect::Notify(_)
            | Effect::Expire(_)
            | Effect::ExpireLogs(_) => None,
        });
        self.released.extend(releases);
        dispatches
    }

    /// A run of three tasks in a row; the second fails for good in every fifth run, and in some runs at first.
    pub(super) async fn run(&mut self, n: u64) {
        let mut waiting = self.start(n).await;
        loop {
            match waiting.pop_front() {
                Some(dispatch) => waiting.extend(self.carry_out(dispatch, n).await),
                None if self.retries() => {
                    self.clock = self.clock.max(self.engine.state().next_deadline().unwrap());
                    waiting.extend(self.step(&[]).await);
                }
                None => return,
            }
        }
    }

    /// As far as its second task's first attempt.
    pub(super) async fn start(&mut self, n: u64) -> VecDeque<Dispatch> {
        let key = |name: &str| key(name, n);
        let retry = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
        let task = |name: &str, upstream: Vec<TaskKey>| TaskRequest {
            key: key(name),
            upstream,
            options: TaskOptions {
                retry: Some(retry.clone()),
                outputs: vec![AssetKey::parse("demo.also").unwrap()],
                ..TaskOptions::default()
            },
        };
        let tasks = vec![task("a", vec![]), task("b", vec![key("a")]), task("c", vec![key("b")])];
        let plan = Plan::build(layout().tenant(), layout().workspace(), tasks, 100).unwrap();
        let trigger = Input::Trigger(TriggerRun::new(format!("run-{n}"), plan, "test"));
        // Keys come and go with the runs; some of both at once.
        let customer = |n: u64| format!("customer {}", n % 7);
        let change = Input::ChangePartitions(ChangePartitions {
            name: "customers".to_owned(),
            add: vec![customer(n * 3), customer(n)],
            remove: vec![customer(n * 3 + 1)],
            caller: Caller::user("test"),
        });
        // Each asset is there in most deployments, in one of three versions.
        let declared = |name: &str, at: u64| AssetDef {
            key: format!("demo/{name}"),
            code_version: Some(((n + at) % 3).to_string()),
            ..AssetDef::default()
        };
        let assets = ["a", "b", "c"].into_iter().zip(0..).filter(|(_, at)| !(n + at).is_multiple_of(4));
        let deploy = Input::Deploy(Deploy {
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            time_zones: "2026e".into(),
            digest: format!("sha256:{n}").into(),
            project: "demo".to_owned(),
            assets: assets.map(|(name, at)| Arc::new(declared(name, at))).collect(),
            caller: Caller::user("test"),
        });
        // What was approved is released with the next run.
        let mut inputs = std::mem::take(&mut self.released);
        inputs.extend([deploy, change, trigger]);
        let mut waiting: VecDeque<Dispatch> = self.step(&inputs).await.into();
        for _ in 0..2 {
            if let Some(dispatch) = waiting.pop_front() {
                waiting.extend(self.carry_out(dispatch, n).await);
            }
        }
        waiting
    }

    async fn carry_out(&mut self, dispatch: Dispatch, n: u64) -> Vec<Dispatch> {
        let attempt = dispatch.attempt;
        let mut effects = self.step(&[Input::Enqueued(attempt.clone())]).await;
        effects.extend(self.step(&[Input::Started(attempt.clone(), "worker/1".into())]).await);
        let at_first = n.is_multiple_of(7) && attempt.attempt == 1;
        let report = if attempt.task_key == key("b", n) && (n.is_multiple_of(5) || at_first) {
            let failed = Report::failed(TaskError::new(ErrorCode::CheckFailed, "böse"));
            Report { outputs: outputs(&attempt, OutputState::Quarantined), ..failed }
        } else if n.is_multiple_of(4) {
            let materialization_id = Some(MaterializationId::from_parts(n, 7));
            Report { materialization_id, ..Report::succeeded() }
        } else {
            let (outputs, usage) = (outputs(&attempt, OutputState::Committed), Some(Usage::default()));
            Report { outputs, usage, ..Report::succeeded() }
        };
        let is_second = attempt.attempt == 2;
        effects.extend(self.step(&[Input::Finished(attempt, report)]).await);
        if is_second {
            effects.extend(self.review(n).await);
        }
        effects
    }

    /// Approves some quarantined materializations, rejects some, and leaves the rest.
    async fn review(&mut self, n: u64) -> Vec<Dispatch> {
        let verdict = match n % 3 {
            0 => Verdict::Approve,
            1 => Verdict::Reject,
            _ => return Vec::new(),
        };
        let Some(row) = self.engine.state().quarantine().next().cloned() else { return Vec::new() };
        let review = Review {
            asset: row.asset_key,
            materialization_id: row.materialization_id,
            verdict,
            caller: Caller::user("test"),
            reason: String::new(),
        };
        self.step(&[Input::Review(review)]).await
    }

    fn retries(&self) -> bool {
        self.engine.state().rows().timers.iter().any(|timer| timer.state == TimerState::Scheduled)
    }
}

/// The asset of the task, in this state, and the one that every task makes besides.
fn outputs(attempt: &Attempt, state: OutputState) -> Arc<[OutputReport]> {
    let check = CheckReport {
        name: "some rows".to_owned(),
        kind: CheckKind::RowCount,
        passed: state == OutputState::Committed,
        severity: Severity::Critical,
        blocking: None,
        message: Some("böse".to_owned()),
        metadata: [("rows".to_owned(), "3".to_owned())].into(),
        error: None,
        duration_ms: 5,
    };
    let own = OutputReport {
        format: Some(DataFormat::Parquet),
        row_count: Some(3),
        checks: vec![check],
        ..OutputReport::new(attempt.task_key.asset(), state)
    };
    let also = OutputReport::new(AssetKey::parse("demo.also").unwrap(), OutputState::Committed);
    [own, also].into()
}

fn key(name: &str, n: u64) -> TaskKey {
    TaskKey::parse(&format!("demo/{name}[n=i:{}]:materialize", n % 11)).unwrap()
}
