//! `servo automation play`: plays a story against the conditions of a manifest, with an engine in memory and workers
//! that do what the story says. For `servo.testing.Story`.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use servo_core::{
    MaterializationId, Millis, TenantId, Timestamp, WorkspaceId, sha256_hex, to_canonical_string,
};
use servo_engine::definitions::{Definitions, Manifest};
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{self, RunRequest};
use servo_engine::{
    Attempt, Caller, ChangePartitions, Deploy, Engine, ErrorCode, EventData, Input, Report, State, TaskError,
};

/// A story: what is declared, when it begins, and what happens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    start: Timestamp,
    steps: Vec<Happening>,
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Happening {
    /// A project is deployed.
    Deploy { manifest: Box<Manifest> },
    /// Somebody makes a partition, or tries to.
    Materialize {
        asset: String,
        #[serde(default)]
        partition: Option<String>,
        #[serde(default)]
        fails: bool,
    },
    /// Time passes.
    Advance { ms: Millis },
    /// Keys of dynamic partitions are added.
    AddPartitions { name: String, keys: Vec<String> },
    /// Attempts at these assets fail from now on.
    Failing { assets: BTreeSet<String> },
}

/// Targets that conditions requested.
#[derive(Serialize)]
struct Requested {
    asset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    /// Which of the runs of the step it is in.
    run: usize,
}

/// Reads a story, and prints what conditions requested in each of its steps.
pub(super) fn play() -> anyhow::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("the story cannot be read")?;
    let story: Story = serde_json::from_str(&text).context("the story makes no sense")?;
    let mut player = Player::new(story.start)?;
    let mut found = Vec::with_capacity(story.steps.len());
    for step in story.steps {
        found.push(player.happens(step)?);
    }
    crate::output::json(&found)
}

struct Player {
    engine: Engine,
    now: Timestamp,
    runs: u64,
    failing: BTreeSet<String>,
    requested: Vec<Requested>,
    evaluations: usize,
}

const SECRET: &[u8] = b"a story";
/// Attempts of one step: more are a condition that never rests.
const MOST_ATTEMPTS: usize = 100_000;

impl Player {
    fn new(now: Timestamp) -> anyhow::Result<Self> {
        let state = State::new(TenantId::parse("test")?, WorkspaceId::parse("story")?);
        let engine = Engine::new(state, SECRET);
        Ok(Self { engine, now, runs: 0, failing: BTreeSet::new(), requested: Vec::new(), evaluations: 0 })
    }

    fn happens(&mut self, step: Happening) -> anyhow::Result<Vec<Requested>> {
        (self.requested, self.evaluations) = (Vec::new(), 0);
        match step {
            Happening::Deploy { manifest } => self.deploy(*manifest)?,
            Happening::Materialize { asset, partition, fails } => {
                let was = self.failing.clone();
                if fails {
                    self.failing.insert(asset.clone());
                }
                self.materialize(&asset, partition)?;
                self.work()?;
                self.failing = was;
            }
            Happening::Advance { ms } => self.advance(ms)?,
            Happening::AddPartitions { name, keys } => {
                let change =
                    ChangePartitions { name, add: keys, remove: Vec::new(), caller: Caller::user("story") };
                self.ask(Input::ChangePartitions(change))?;
            }
            Happening::Failing { assets } => self.failing = assets,
        }
        self.work()?;
        Ok(std::mem::take(&mut self.requested))
    }

    fn deploy(&mut self, mut manifest: Manifest) -> anyhow::Result<()> {
        // What fails fails: nobody waits for retries in a story.
        manifest.assets.iter_mut().for_each(|asset| asset.retry = None);
        let digest = sha256_hex(to_canonical_string(&manifest)?);
        let checked = Definitions::check(manifest)?;
        let assets = checked.assets().iter().map(|asset| asset.def.clone()).collect();
        self.ask(Input::Deploy(Deploy {
            time_zones: "story".into(),
            digest: digest.into(),
            project: checked.project().to_owned(),
            assets,
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            caller: Caller::user("story"),
        }))
    }

    fn materialize(&mut self, asset: &str, partition: Option<String>) -> anyhow::Result<()> {
        let request = RunRequest {
            selection: asset.to_owned(),
            partitions: PartitionChoice {
                keys: partition.into_iter().collect(),
                ..PartitionChoice::default()
            },
            caller: Caller::user("story"),
            ..RunRequest::default()
        };
        self.runs += 1;
        let run_key = format!("story-{}", self.runs).into();
        let command = requests::prepare(self.engine.state(), SECRET, run_key, request, self.now)?;
        self.ask(Input::Trigger(command))
    }

    /// Steps from one deadline to the next, as a server would.
    fn advance(&mut self, length: Millis) -> anyhow::Result<()> {
        let end = self.now.saturating_add(length);
        while let Some(at) = self.engine.next_deadline(self.now).filter(|at| *at <= end) {
            self.now = self.now.saturating_add(Millis::new(1)).max(at);
            self.step(&[])?;
            self.work()?;
        }
        self.now = self.now.max(end);
        self.step(&[])
    }

    /// Ends every attempt that waits for a worker, and those that follow.
    fn work(&mut self) -> anyhow::Result<()> {
        for _ in 0..MOST_ATTEMPTS {
            let Some(attempt) = self.open() else { return Ok(()) };
            let asset = attempt.task_key.asset().to_string();
            let failed = || Report::failed(TaskError::new(ErrorCode::UserCodeException, "as the story says"));
            let made = Some(MaterializationId::from_u128(attempt.attempt_id.to_u128()));
            let succeeded = || Report { materialization_id: made, ..Report::succeeded() };
            let report = if self.failing.contains(&asset) { failed() } else { succeeded() };
            self.ask(Input::Started(attempt.clone(), Arc::from("story")))?;
            self.ask(Input::Finished(attempt, report))?;
        }
        anyhow::bail!("after {MOST_ATTEMPTS} attempts there is still something to do")
    }

    fn open(&self) -> Option<Attempt> {
        let runs = self.engine.state().runs().filter(|run| !run.state.is_terminal());
        let mut tasks = runs.flat_map(|run| {
            let open = run.tasks.iter().filter(|task| task.has_open_attempt());
            open.filter_map(|task| {
                let (run_id, task_key, attempt) = (run.id, task.key.clone(), task.attempt);
                Some(Attempt { run_id, task_key, attempt, attempt_id: task.attempt_id? })
            })
        });
        tasks.next()
    }

    fn ask(&mut self, input: Input) -> anyhow::Result<()> {
        self.step(&[input])
    }

    fn step(&mut self, inputs: &[Input]) -> anyhow::Result<()> {
        self.now = self.now.saturating_add(Millis::new(1));
        let step = self.engine.step(inputs, self.now);
        for reply in step.replies {
            reply?;
        }
        for event in step.events {
            let EventData::ConditionsEvaluated(evaluated) = event.data else { continue };
            if let Some(problem) = evaluated.problem {
                anyhow::bail!("conditions became true, and no run can be requested: {problem}");
            }
            let run = self.evaluations;
            self.evaluations += 1;
            for of in evaluated.requested {
                let asset = of.asset.to_string();
                if of.partitions.is_empty() {
                    self.requested.push(Requested { asset: asset.clone(), partition: None, run });
                }
                let partitions = of.partitions.iter();
                self.requested.extend(partitions.map(|key| Requested {
                    asset: asset.clone(),
                    partition: Some(key.to_string()),
                    run,
                }));
            }
        }
        Ok(())
    }
}
