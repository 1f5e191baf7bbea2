//! The course of a simulated attempt: how long it takes, how it ends, and what it stores.

use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use servo_core::AssetKey;
use servo_engine::definitions::{CheckDef, Severity};
use servo_engine::outputs::{CheckReport, OutputReport, Usage};
use servo_engine::{DataFormat, ErrorCode, Outcome, OutputState, Report, TaskError};
use servo_queue::Envelope;

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::scenario::SECOND;

/// The planned course of an attempt.
pub(super) struct Attempt {
    /// How long its function takes.
    pub(super) length: u64,
    end: u64,
    /// Whether it stops when it is told to.
    pub(super) obeys: bool,
}

impl Attempt {
    /// Draws the course of an attempt.
    pub(super) fn draw(cluster: &Cluster, envelope: &Envelope) -> Self {
        let mut attempt = cluster.world.roll(cluster.domain, |rng| {
            let length = match rng.below(8) {
                0 => rng.within(0..1_000),
                7 => rng.within(20 * SECOND..100 * SECOND),
                _ => rng.within(10_000..8 * SECOND),
            };
            Self { length, end: rng.within(0..100), obeys: rng.chance(850) }
        });
        if let Some(limit) = envelope.timeout_ms.map(|limit| limit.get() * 1_000)
            && attempt.length > limit
        {
            (attempt.length, attempt.end) = (limit, 100);
        }
        if cluster.faults.is_healed() {
            // Everything must end some day.
            attempt.end = attempt.end.min(90);
        }
        attempt
    }

    /// Whether it runs into its timeout.
    pub(super) fn takes_too_long(&self) -> bool {
        self.end == 100
    }

    /// Stores its outputs, and gives its report.
    pub(super) async fn end(&self, cluster: &Cluster, envelope: &Envelope) -> Report {
        let failed = |code| Report::failed(TaskError::new(code, "boom"));
        let usage = Some(Usage { cpu_ms: self.length / 1_000, ..Usage::default() });
        let report = match self.end {
            0..=79 => match store(cluster, envelope, OutputState::Committed).await {
                Some(outputs) => Report { outputs: outputs.into(), ..Report::succeeded() },
                None => failed(ErrorCode::DiskFull),
            },
            80..=85 => match store(cluster, envelope, OutputState::Quarantined).await {
                Some(outputs) => Report { outputs: outputs.into(), ..failed(ErrorCode::CheckFailed) },
                None => failed(ErrorCode::DiskFull),
            },
            86..=90 => failed(ErrorCode::UserCodeException),
            91..=94 => failed(ErrorCode::WorkerCrash),
            95..=97 => Report::new(Outcome::Interrupted),
            98..=99 => failed(ErrorCode::NetworkError),
            _ => Report::new(Outcome::TimedOut),
        };
        let report = Report { usage, ..report };
        if cluster.faults.injects(cluster.domain, Fault::Poison, 30) { nonsense(report) } else { report }
    }
}

/// A malformed report: it repeats an output with another state, and names foreign assets.
fn nonsense(report: Report) -> Report {
    let again = report.outputs.iter().map(|output| OutputReport {
        row_count: Some(u64::MAX),
        ..OutputReport::new(output.asset.clone(), OutputState::Discarded)
    });
    let stranger = AssetKey::new("t", "somebody_elses").expect("a key");
    let stranger = OutputReport::new(stranger, OutputState::Committed);
    let outputs = report.outputs.iter().cloned().chain(again).chain([stranger]).collect();
    let error = Some(Arc::new(TaskError::new(ErrorCode::InternalError, "\u{0}\n{}[]\"")));
    Report { outputs, error: report.error.or(error), ..report }
}

/// A false report of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Nothing was stored.
    NoMarker,
    /// A check did not pass.
    FailedCheck,
    /// A check was not run.
    NoCheck,
}

impl Lie {
    fn draw(cluster: &Cluster) -> Option<Self> {
        if !cluster.faults.injects(cluster.domain, Fault::Poison, 40) {
            return None;
        }
        let lies = [Self::NoMarker, Self::FailedCheck, Self::NoCheck];
        Some(lies[cluster.world.roll(cluster.domain, |rng| rng.below(lies.len()))])
    }
}

fn results(checks: &[CheckDef], state: OutputState, lie: Option<Lie>) -> Vec<CheckReport> {
    if lie == Some(Lie::NoCheck) {
        return Vec::new();
    }
    let passed = state == OutputState::Committed && lie != Some(Lie::FailedCheck);
    let result = |check: &CheckDef| CheckReport {
        name: check.name.clone(),
        kind: check.kind,
        passed,
        // How bad it is, the control plane knows.
        severity: Severity::Info,
        blocking: None,
        message: None,
        metadata: [].into(),
        error: None,
        duration_ms: 1,
    };
    checks.iter().map(result).collect()
}

/// The hash of an output, which may be that of the one before; where nothing asks for it, nobody says it.
fn content(cluster: &Cluster) -> Option<String> {
    let is_told = cluster.scenario.declared.conditions;
    is_told.then(|| format!("sha256:{}", cluster.world.roll(cluster.domain, |rng| rng.below(3))))
}

/// Writes the outputs of an attempt: the data, and last the commit marker.
async fn store(cluster: &Cluster, envelope: &Envelope, state: OutputState) -> Option<Vec<OutputReport>> {
    let mut reports = Vec::new();
    let Some(work) = &envelope.work else { return Some(reports) };
    let (client, partition) =
        (cluster.bucket.client(cluster.domain, &cluster.faults), envelope.task_key.partition());
    let lie = Lie::draw(cluster);
    for output in &work.outputs {
        if output.checked.is_some() {
            // Nothing is made, whatever is said of it.
            reports.push(OutputReport {
                checks: results(&output.checks, state, lie),
                ..OutputReport::new(output.asset.clone(), state)
            });
            continue;
        }
        let (dir, marker) = match state {
            OutputState::Quarantined => (
                cluster.layout.quarantine(&output.asset, partition.as_ref(), output.materialization_id),
                "_reason.json",
            ),
            OutputState::Committed | OutputState::Discarded | OutputState::Missing => (
                cluster.layout.materialization(&output.asset, partition.as_ref(), output.materialization_id),
                "_commit.json",
            ),
        };
        let path = Path::from(format!("{}/{dir}/{marker}", cluster.prefix()));
        let mut tries = 0;
        let mut backoff = cluster.backoff(2 * SECOND, 128 * SECOND);
        let is_stored = lie != Some(Lie::NoMarker) || state != OutputState::Committed;
        while is_stored && client.put(&path, PutPayload::from(Bytes::from_static(b"{}"))).await.is_err() {
            tries += 1;
            if tries == 8 {
                return None;
            }
            cluster.world.pause(cluster.domain, backoff.next_delay()).await;
        }
        reports.push(OutputReport {
            format: Some(DataFormat::Parquet),
            row_count: Some(1),
            content_hash: content(cluster),
            checks: results(&output.checks, state, lie),
            ..OutputReport::new(output.asset.clone(), state)
        });
    }
    Some(reports)
}
