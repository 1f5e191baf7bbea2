//! How long it takes from one change among 10,000 assets with eager conditions to the decision what to make.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use servo_core::{MaterializationId, Millis, TenantId, Timestamp, WorkspaceId};
use servo_engine::definitions::{AssetDef, Condition, DepDef};
use servo_engine::requests::{self, RunRequest};
use servo_engine::{Attempt, Caller, Deploy, Engine, EventData, Input, Report, State, Step};

use crate::results::{Better, Results};

const CHAINS: usize = 1_000;
const LENGTH: usize = 10;
const ROUNDS: usize = 21;
const SECRET: &[u8] = b"bench";

/// Measures decisions of conditions.
pub(crate) fn measure(results: &mut Results) -> anyhow::Result<()> {
    let mut bench = Bench::new()?;
    let mut times: Vec<Duration> =
        (0..ROUNDS).map(|round| bench.change(round)).collect::<anyhow::Result<_>>()?;
    times.sort();
    let took = times[times.len() / 2].as_secs_f64() * 1_000.0;
    let what = "one upstream change in 10,000 assets with eager conditions to the decision";
    results.add("conditions", what, (took, "ms"), Better::Lower, 20.0);
    let idle = bench.idle();
    results.note(
        "conditions",
        "a step in which nothing changed",
        (idle.as_secs_f64() * 1e6, "µs"),
        Better::Lower,
    );
    Ok(())
}

struct Bench {
    engine: Engine,
    now: Timestamp,
}

impl Bench {
    fn new() -> anyhow::Result<Self> {
        let state = State::new(TenantId::parse("bench")?, WorkspaceId::parse("conditions")?);
        let start = Timestamp::from_millis(1_736_899_200_000);
        let mut bench = Self { engine: Engine::new(state, SECRET), now: start };
        bench.step(&[Input::Deploy(Deploy {
            time_zones: "bench".into(),
            digest: "d1".into(),
            project: "bench".to_owned(),
            assets: (0..CHAINS).flat_map(chain).map(Arc::new).collect(),
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            caller: Caller::user("bench"),
        })])?;
        Ok(bench)
    }

    fn step(&mut self, inputs: &[Input]) -> anyhow::Result<Step> {
        self.now = self.now.saturating_add(Millis::new(1));
        let mut step = self.engine.step(inputs, self.now);
        for reply in step.replies.drain(..) {
            reply?;
        }
        Ok(step)
    }

    /// Makes the first asset of a chain, and gives how long the engine took to decide what follows.
    fn change(&mut self, round: usize) -> anyhow::Result<Duration> {
        let request = RunRequest {
            selection: format!("bench.c{}_0", round % CHAINS),
            caller: Caller::user("bench"),
            ..RunRequest::default()
        };
        let run_key = format!("bench-{round}").into();
        let command = requests::prepare(self.engine.state(), SECRET, run_key, request, self.now)?;
        self.step(&[Input::Trigger(command)])?;
        let attempt = self.open().context("the first asset is dispatched")?;
        self.step(&[Input::Started(attempt.clone(), Arc::from("bench"))])?;
        let began = Instant::now();
        let step = self.step(&[finished(attempt)])?;
        let took = began.elapsed();
        let requested = step.events.iter().find_map(|event| {
            let EventData::ConditionsEvaluated(evaluated) = &event.data else { return None };
            Some(evaluated.requested.len())
        });
        anyhow::ensure!(requested == Some(LENGTH - 1), "requested {requested:?}");
        while let Some(attempt) = self.open() {
            self.step(&[Input::Started(attempt.clone(), Arc::from("bench"))])?;
            self.step(&[finished(attempt)])?;
        }
        Ok(took)
    }

    fn idle(&mut self) -> Duration {
        let began = Instant::now();
        self.engine.step(&[], self.now);
        began.elapsed()
    }

    fn open(&self) -> Option<Attempt> {
        let runs = self.engine.state().runs().filter(|run| !run.state.is_terminal());
        let mut tasks = runs.flat_map(|run| {
            run.tasks.iter().filter(|task| task.has_open_attempt()).filter_map(|task| {
                let (run_id, task_key, attempt) = (run.id, task.key.clone(), task.attempt);
                Some(Attempt { run_id, task_key, attempt, attempt_id: task.attempt_id? })
            })
        });
        tasks.next()
    }
}

/// A success that has made something.
fn finished(attempt: Attempt) -> Input {
    let made = MaterializationId::from_u128(attempt.attempt_id.to_u128());
    let report = Report { materialization_id: Some(made), ..Report::succeeded() };
    Input::Finished(attempt, report)
}

/// Assets of which each reads the one before, eager but for the first.
fn chain(number: usize) -> Vec<AssetDef> {
    let asset = |link: usize| AssetDef {
        key: format!("bench/c{number}_{link}"),
        code_version: Some("1".to_owned()),
        deps: (link > 0)
            .then(|| DepDef { asset: Some(format!("bench/c{number}_{}", link - 1)), ..DepDef::default() })
            .into_iter()
            .collect(),
        automation: (link > 0).then(|| Arc::new(eager())),
        ..AssetDef::default()
    };
    (0..LENGTH).map(asset).collect()
}

/// As the SDK writes it.
fn eager() -> Condition {
    let upstream =
        |of: Condition| Condition::AnyUpstream { of: of.into(), only: Vec::new(), ignore: Vec::new() };
    let not = |of: Condition| Condition::Not { of: of.into() };
    Condition::And {
        of: vec![
            Condition::Or { of: vec![Condition::NewPartition, upstream(Condition::Updated)] },
            not(upstream(Condition::Missing)),
            not(upstream(Condition::InProgress)),
            not(Condition::InProgress),
        ],
    }
}
