//! `servo worker`: runs tasks of a server on this machine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use servo_api::client::{Client, ClientError};
use servo_core::Backoff;
use servo_runtime::SystemClock;
use servo_store::{DataRoot, Layout};
use servo_worker::project::StartError;
use servo_worker::{DataLocations, Evaluator, Executor, RunnerSettings, Runners};
use tokio::signal::unix::{SignalKind, signal};

use crate::dev::parse_worker_key;
use crate::exit::Exit;
use crate::keys_file::KeysFile;
use crate::location::Location;
use crate::materialize::default_slots;

/// Options of `servo worker`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Address of the server.
    #[arg(long, env = "SERVO_URL", value_name = "URL")]
    server: String,
    /// Key that the server requires of workers [default: that of the directory of state].
    #[arg(long, env = "SERVO_WORKER_KEY", hide_env_values = true, value_name = "KEY", value_parser = parse_worker_key)]
    key: Option<String>,
    /// Queue to take tasks from.
    #[arg(long, default_value = "default")]
    queue: String,
    /// Tasks at once [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: Option<u16>,
    /// Name of this worker [default: from the machine and the process].
    #[arg(long)]
    name: Option<String>,
    /// Seconds that tasks may continue after SIGTERM before they are interrupted.
    #[arg(long, default_value_t = 10)]
    drain: u64,
}

pub(crate) async fn run(location: &Location, options: &Options) -> anyhow::Result<Exit> {
    let project = location.project.find()?;
    let slots = options.slots.map_or_else(default_slots, usize::from);
    let layout = Layout::new(location.tenant.clone(), location.workspace.clone());
    let data = match project.storage() {
        Some(place) => DataRoot::open(&place, &layout).context("storage in servo.toml")?,
        None => DataRoot::directory(&location.dir(), &layout)?,
    };
    let key = match &options.key {
        Some(key) => key.clone(),
        None => KeysFile::worker_key_of(location)?.with_context(|| {
            format!(
                "{} has no key for workers; give the server and this worker the same --worker-key and --key",
                location.tenant_dir().display()
            )
        })?,
    };
    let client = Client::new(&options.server)?.with_worker_key(key.as_str());
    let version = until_it_answers(&client).await?;
    let name = options.name.clone().unwrap_or_else(|| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        format!("{host}-{}", std::process::id())
    });
    let clock = Arc::new(SystemClock);
    let settings = RunnerSettings { slots, ..RunnerSettings::default() };
    let logs = Arc::new(client.log_sink());
    let runners = Runners::new(project, DataLocations::new(data, layout), logs, clock.clone(), settings);
    until_it_starts(&runners).await?;
    let working = Executor {
        source: Arc::new(client.tasks_for(name.as_str())),
        queues: vec![options.queue.as_str().into()],
        callbacks: Arc::new(client.clone()),
        keys: servo_api::worker_keyring(&key),
        clock,
        worker: name.as_str().into(),
        slots,
        function: Arc::new(runners.clone()),
    }
    .start();
    let evaluator = Evaluator::start(Arc::new(client.clone()), runners.clone());
    eprintln!("{name}: {slots} slots for {} (servo {version})", client.server());
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminated.recv() => {}
    }
    eprintln!("stopping: tasks have {} s to end", options.drain);
    evaluator.stop().await;
    working.shutdown(Duration::from_secs(options.drain)).await;
    runners.shutdown().await;
    Ok(Exit::Done)
}

/// Asks a server for its version until it answers: a worker may be started before it.
async fn until_it_answers(client: &Client) -> anyhow::Result<String> {
    let mut waiting = Waiting::default();
    loop {
        match client.version().await {
            Ok(version) => return Ok(version.version.to_string()),
            Err(error @ ClientError::Unreachable { .. }) => waiting.again(&error).await,
            Err(error) => return Err(error).context("the server does not answer"),
        }
    }
}

/// Starts the interpreters until they all run: one that dies while it imports the project may not the next time.
async fn until_it_starts(runners: &Runners) -> anyhow::Result<()> {
    let mut waiting = Waiting::default();
    loop {
        match runners.warm().await {
            Ok(()) => return Ok(()),
            Err(error @ (StartError::Crashed(_) | StartError::Spawn { .. })) => waiting.again(&error).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Something that is tried until it works.
struct Waiting {
    backoff: Backoff,
    is_told: bool,
}

impl Default for Waiting {
    fn default() -> Self {
        let seed = std::process::id().into();
        let backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5), seed);
        Self { backoff, is_told: false }
    }
}

impl Waiting {
    /// Says once why, and waits before the next try.
    async fn again(&mut self, error: &impl std::fmt::Display) {
        if !std::mem::replace(&mut self.is_told, true) {
            eprintln!("{error}; it is tried again until it works");
        }
        tokio::time::sleep(self.backoff.next_delay()).await;
    }
}
