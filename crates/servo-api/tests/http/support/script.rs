//! Scripted tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use servo_core::Clock;
use servo_engine::definitions::{CheckKind, Severity};
use servo_engine::outputs::{CheckReport, OutputReport, Usage};
use servo_engine::{ErrorCode, OutputState, Progress, Report, TaskError};
use servo_queue::Envelope;
use servo_runtime::SystemClock;
use servo_worker::{LogFiles, LogLine, LogName, LogStream, TaskFunction};
use tokio::sync::{Semaphore, watch};

/// The behaviour of a task when it runs. A task that is not mentioned succeeds.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Fails this many times, then succeeds.
    Fail(u32),
    /// Ends when there is a permit.
    Gate(Arc<Semaphore>),
    /// Prints a line for every permit, and ends when the semaphore is closed.
    Print(Arc<Semaphore>),
    /// Makes something, and uses so much.
    Use(Usage),
    /// Makes something that a check blocks.
    Quarantine,
    /// Makes something, with the results of checks by name: whether they passed.
    Checks(Vec<(&'static str, bool)>),
}

#[derive(Debug, Default)]
pub struct Script {
    behaviours: Mutex<BTreeMap<String, Behaviour>>,
    runs: Mutex<BTreeMap<String, u32>>,
}

impl Script {
    pub fn let_asset(&self, asset: &str, behaviour: Behaviour) {
        self.behaviours.lock().unwrap().insert(asset.to_owned(), behaviour);
    }

    /// How often a task of this asset ran.
    pub fn count(&self, asset: &str) -> u32 {
        self.runs.lock().unwrap().get(asset).copied().unwrap_or_default()
    }
}

pub struct Actor {
    pub script: Arc<Script>,
    pub logs: Arc<LogFiles>,
}

#[async_trait]
impl TaskFunction for Actor {
    async fn run(&self, task: &Envelope, progress: &watch::Sender<Option<Progress>>) -> Report {
        let asset = task.task_key.asset_str().to_owned();
        let times = {
            let mut runs = self.script.runs.lock().unwrap();
            let times = runs.entry(asset.clone()).or_default();
            *times += 1;
            *times
        };
        let behaviour = self.script.behaviours.lock().unwrap().get(&asset).cloned();
        match behaviour {
            Some(Behaviour::Fail(failures)) if times <= failures => {
                let mut error = TaskError::new(ErrorCode::UserCodeException, format!("{asset} said no"));
                error.traceback = Some("Traceback (most recent call last): …".to_owned());
                return Report::failed(error);
            }
            Some(Behaviour::Gate(gate)) => {
                a_moment_later().await;
                progress.send_replace(Some(Progress { ppm: 400_000, message: "at the gate".to_owned() }));
                gate.acquire().await.unwrap().forget();
            }
            Some(Behaviour::Print(permits)) => {
                let name = log_name(task);
                let mut number = 0;
                while let Ok(permit) = permits.acquire().await {
                    permit.forget();
                    number += 1;
                    self.logs.append(&name, vec![line(&format!("line {number}"))]).await.unwrap();
                }
                self.logs.end(&name);
            }
            Some(Behaviour::Quarantine) => {
                let output = OutputReport::new(task.task_key.asset(), OutputState::Quarantined);
                let mut report =
                    Report::failed(TaskError::new(ErrorCode::CheckFailed, "a check did not pass"));
                report.outputs = Arc::from([output]);
                return report;
            }
            Some(Behaviour::Checks(results)) => {
                let mut report = materialized(task);
                let mut outputs = report.outputs.to_vec();
                for output in &mut outputs {
                    output.checks = results.iter().map(|(name, passed)| check(name, *passed)).collect();
                }
                report.outputs = outputs.into();
                return report;
            }
            Some(Behaviour::Use(usage)) => return Report { usage: Some(usage), ..materialized(task) },
            Some(Behaviour::Fail(_)) | None => {}
        }
        materialized(task)
    }
}

fn check(name: &str, passed: bool) -> CheckReport {
    CheckReport {
        name: name.to_owned(),
        kind: CheckKind::RowCount,
        passed,
        severity: Severity::Warning,
        blocking: None,
        message: Some(format!("{name} was looked at")),
        error: None,
        metadata: [("rows".to_owned(), "3".to_owned())].into(),
        duration_ms: 1,
    }
}

/// Success, with everything that it was to make.
fn materialized(task: &Envelope) -> Report {
    let work = task.work.as_ref();
    let outputs = work.iter().flat_map(|work| &work.outputs);
    let outputs: Vec<OutputReport> =
        outputs.map(|output| OutputReport::new(output.asset.clone(), OutputState::Committed)).collect();
    Report { outputs: outputs.into(), ..Report::succeeded() }
}

pub fn log_name(task: &Envelope) -> LogName {
    LogName { run_id: task.run_id, task_key: task.task_key.clone(), attempt: task.attempt }
}

pub fn line(text: &str) -> LogLine {
    LogLine::new(SystemClock.now(), LogStream::Stdout, text)
}

/// Waits until the clock has moved: reports of a task within the same millisecond count as duplicates.
pub async fn a_moment_later() {
    let now = SystemClock.now();
    while SystemClock.now() <= now {
        tokio::task::yield_now().await;
    }
}
