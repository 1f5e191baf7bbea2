//! A project in Python, runners of it, and envelopes of its functions.

#![allow(unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use servo_core::{AssetKey, AttemptId, Millis, PartitionKey, RunId, TaskKey, Timestamp};
use servo_engine::definitions::{Isolation, SecretDef};
use servo_engine::outputs::materialization_of;
use servo_engine::work::{Work, WorkInput, WorkOutput, WorkPartition, WorkPiece};
use servo_engine::{Progress, Report};
use servo_queue::Envelope;
use servo_runtime::SystemClock;
use servo_store::{DataRoot, Layout};
use servo_worker::project::Project;
use servo_worker::{
    DataLocations, LogFiles, LogLine, LogName, LogStream, RunnerSettings, Runners, TaskFunction,
};
use tokio::sync::watch;

/// Longest that anything in these tests may take before they fail.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A project with code, and runners of it.
pub struct Harness {
    pub root: tempfile::TempDir,
    pub runners: Runners,
    pub logs: Arc<LogFiles>,
}

pub fn layout() -> Layout {
    Layout::new("acme".parse().unwrap(), "main".parse().unwrap())
}

impl Harness {
    pub fn new(code: &str) -> Self {
        Self::with(code, RunnerSettings::default())
    }

    pub fn with(code: &str, settings: RunnerSettings) -> Self {
        let root = tempfile::tempdir().unwrap();
        Self::at(root, code, settings)
    }

    fn at(root: tempfile::TempDir, code: &str, settings: RunnerSettings) -> Self {
        write_project(root.path(), code);
        let (runners, logs) = runners(root.path(), settings);
        Self { root, runners, logs }
    }

    pub fn project(&self) -> Project {
        Project::open(self.root.path()).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A file of the workspace.
    pub fn state(&self, name: &str) -> PathBuf {
        self.path(".servo").join(layout().prefix()).join(name)
    }

    pub async fn run(&self, envelope: &Envelope) -> Report {
        let progress = watch::Sender::new(None);
        within(self.runners.run(envelope, &progress)).await
    }

    /// Runs a function once.
    pub async fn call(&self, function: &str) -> Report {
        self.run(&envelope(function)).await
    }

    /// The log of an attempt.
    pub async fn log(&self, envelope: &Envelope) -> Vec<LogLine> {
        self.logs.read(&log_name(envelope), 0, usize::MAX >> 1).await.unwrap().lines().collect()
    }

    /// The texts of one stream.
    pub async fn printed(&self, envelope: &Envelope, stream: LogStream) -> Vec<String> {
        let lines = self.log(envelope).await.into_iter();
        lines.filter(|line| line.stream == stream).map(|line| line.text).collect()
    }

    pub fn assert_nothing_is_staged(&self) {
        assert!(!self.state("staging").read_dir().is_ok_and(|mut left| left.next().is_some()));
    }
}

pub fn write_project(root: &Path, code: &str) {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker/support/python");
    let settings = format!("[project]\npython = \"{}\"\nmodules = [\"code\"]\n", python.display());
    std::fs::write(root.join("servo.toml"), settings.replace("\"code\"", "\"my_code\"")).unwrap();
    std::fs::write(root.join("my_code.py"), format!("import servo\n{code}")).unwrap();
}

pub fn runners(root: &Path, settings: RunnerSettings) -> (Runners, Arc<LogFiles>) {
    let state = root.join(".servo");
    let logs = Arc::new(LogFiles::new(&state, layout()));
    let data = DataLocations::new(DataRoot::directory(&state, &layout()).unwrap(), layout());
    let project = Project::open(root).unwrap();
    (Runners::new(project, data, logs.clone(), Arc::new(SystemClock), settings), logs)
}

pub fn asset(name: &str) -> AssetKey {
    AssetKey::new("t", name).unwrap()
}

pub fn log_name(envelope: &Envelope) -> LogName {
    LogName { run_id: envelope.run_id, task_key: envelope.task_key.clone(), attempt: envelope.attempt }
}

/// A new attempt at making the asset `t/{function}` with the function of the same name.
pub fn envelope(function: &str) -> Envelope {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let attempt_id = AttemptId::from_parts(1_700_000_000_000, NEXT.fetch_add(1, Ordering::Relaxed).into());
    let output = WorkOutput {
        asset: asset(function),
        materialization_id: materialization_of(attempt_id),
        io: None,
        quarantine: false,
        checks: Arc::default(),
        previous: None,
        checked: None,
    };
    let work = Work {
        single_call: false,
        function: format!("my_code:{function}"),
        partition: None,
        inputs: Vec::new(),
        outputs: vec![output],
        config: BTreeMap::new(),
        secrets: Vec::new(),
        isolation: Isolation::Shared,
        compute: None,
    };
    Envelope {
        followers: Vec::new(),
        work_ref: None,
        callbacks: None,
        envelope_version: 1,
        tenant_id: layout().tenant().clone(),
        workspace_id: layout().workspace().clone(),
        run_id: RunId::from_u128(attempt_id.to_u128()),
        task_key: TaskKey::parse(&format!("t/{function}:materialize")).unwrap(),
        attempt: 1,
        attempt_id,
        dispatch_id: format!("dispatch:{attempt_id}"),
        work: Some(Arc::new(work)),
        timeout_ms: None,
        heartbeat_interval_ms: Millis::from_secs(10),
        task_token: "a token".to_owned(),
        expires_at: Timestamp::MAX,
        nonce: attempt_id.to_string(),
    }
}

/// The same attempt with other work.
pub fn with_work(mut envelope: Envelope, change: impl FnOnce(&mut Work)) -> Envelope {
    change(Arc::make_mut(envelope.work.as_mut().unwrap()));
    envelope
}

/// An attempt that reads what another has made, if it has.
pub fn reading(envelope: Envelope, parameter: &str, made: Option<&Envelope>) -> Envelope {
    let piece = WorkPiece {
        partition: None,
        materialization_id: made.map(|made| materialization_of(made.attempt_id)),
        format: None,
    };
    let input = WorkInput {
        parameter: parameter.to_owned(),
        asset: asset(parameter),
        io: None,
        external: false,
        single: true,
        pieces: vec![piece],
        missing: 0,
    };
    with_work(envelope, |work| work.inputs.push(input))
}

pub fn for_day(envelope: Envelope, day: &str) -> Envelope {
    let key = PartitionKey::parse(&format!("date=d:{day}")).unwrap();
    let start: Timestamp = format!("{day}T00:00:00Z").parse().unwrap();
    let window = Some((start, start.saturating_add(Millis::from_hours(24))));
    with_work(envelope, |work| work.partition = Some(WorkPartition { key, window }))
}

pub fn with_secret(envelope: Envelope, name: &str, file: &str) -> Envelope {
    let secret = SecretDef { name: name.to_owned(), provider: "file".to_owned(), path: file.to_owned() };
    with_work(envelope, |work| work.secrets.push(secret))
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Waits until something holds.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// Whether a process is there and has not ended.
pub fn is_running(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

/// The number that code under test has written to a file.
pub async fn process_in(file: &Path) -> u32 {
    let mut found = None;
    eventually("code has told its process", || {
        found = std::fs::read_to_string(file).ok().and_then(|text| text.trim_end_matches('\n').parse().ok());
        found.is_some()
    })
    .await;
    found.unwrap()
}

pub fn last_progress(progress: &watch::Sender<Option<Progress>>) -> Option<Progress> {
    progress.borrow().clone()
}
