//! `servo worker`: runs tasks of a server on this machine; `servo worker list` shows who does.

mod list;
mod listening;
mod membership;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use servo_api::WorkerEndpoint;
use servo_api::client::{Client, ClientError};
use servo_core::Backoff;
use servo_queue::{Callbacks, PushInbox, TaskSource};
use servo_runtime::{SystemClock, ThreadSpawner};
use servo_store::{DataRoot, Layout};
use servo_worker::project::{ScanError, Scanned, StartError};
use servo_worker::{DataLocations, Evaluator, Executor, LogSink, RunnerSettings, Runners};
use tokio::signal::unix::{SignalKind, signal};

use crate::dev::parse_worker_key;
use crate::exit::Exit;
use crate::keys_file::KeysFile;
use crate::location::Location;
use crate::login;
use crate::materialize::default_slots;
use crate::output::Format;
use crate::session;
use crate::target::{Target, connect};
use membership::Membership;

/// Options of `servo worker`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Address of the server [default: that of --context or SERVO_URL, or the context in use].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Key that the server requires of workers [default: --key or that of the context, or that of the directory of state].
    #[arg(long, env = "SERVO_WORKER_KEY", hide_env_values = true, value_name = "KEY", value_parser = parse_worker_key)]
    worker_key: Option<String>,
    /// Queue to take tasks from; may be given several times.
    #[arg(long, default_value = "default")]
    queue: Vec<String>,
    /// Tasks at once [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: Option<u16>,
    /// Name of this worker [default: from the machine and the process].
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    listening: listening::ListenOptions,
    /// Seconds that tasks may continue after SIGTERM before they are interrupted.
    #[arg(long, default_value_t = 10)]
    drain: u64,
}

/// Questions about workers.
#[derive(clap::Subcommand)]
enum Command {
    /// Show workers: their queues, slots and code, and when they were last heard of.
    #[command(after_help = "Examples:\n  servo worker list\n  servo worker list --all --json")]
    List(list::Options),
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    match &options.command {
        Some(Command::List(options)) => list::run(location, options, format).await,
        None => serve(location, options).await,
    }
}

async fn serve(location: &Location, options: &Options) -> anyhow::Result<Exit> {
    let mut target = match &options.server {
        Some(server) => Target::named(location, server, "--server")?,
        None => Target::of(location)?.context("--server says which server to ask for tasks")?,
    };
    login::renew(&mut target).await?;
    let listening = options.listening.listen().await?;
    let server = target.url.as_str();
    let project = location.project.find()?;
    let slots = options.slots.map_or_else(default_slots, usize::from);
    let layout = Layout::new(location.tenant.clone(), location.workspace.clone());
    let data = match project.storage() {
        Some(place) => DataRoot::open(&place, &layout).context("storage in servo.toml")?,
        None => DataRoot::directory(&location.dir(), &layout)?,
    };
    let key = match options.worker_key.as_ref().or(target.key.as_ref()) {
        Some(key) => key.clone(),
        None => KeysFile::worker_key_of(location)?.with_context(|| {
            format!(
                "{} has no key for workers; make a key with servo admin api-keys create NAME --role worker, and give it to this worker as SERVO_KEY",
                location.tenant_dir().display()
            )
        })?,
    };
    let client = location.addressed(connect(server)?).with_worker_key(key.as_str());
    // That is asked of the server: whoever may not know of a workspace is not told by it.
    let version = until_it_answers(&connect(server)?).await?;
    let name = options.name.clone().unwrap_or_else(|| format!("{}-{}", session::host(), std::process::id()));
    let clock = Arc::new(SystemClock);
    let settings = RunnerSettings { slots, ..RunnerSettings::default() };
    let by_url = client.by_callback_urls();
    let logs: Arc<dyn LogSink> = match &listening {
        Some(_) => Arc::new(by_url.clone()),
        None => Arc::new(client.log_sink()),
    };
    let root = project.root().to_owned();
    let locations = DataLocations::new(data.clone(), layout.clone());
    let workspace = (layout.tenant().clone(), layout.workspace().clone());
    let runners = Runners::new(project, locations, logs, clock.clone(), settings);
    let scanned = until_it_starts(&runners).await?;
    let mut membership =
        Membership::new(client.clone(), &name, &options.queue, slots, listening.is_some(), data, layout)?;
    membership.has_code(&scanned);
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        joined = membership.join(&runners, &root) => joined?,
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            return Ok(Exit::Done);
        }
        _ = terminated.recv() => return Ok(Exit::Done),
    }
    let worker = membership.worker_id().to_owned();
    let queues: Vec<Arc<str>> = options.queue.iter().map(|queue| queue.as_str().into()).collect();
    let keys = servo_api::worker_keyring(&key);
    let called = listening.map(|listening| {
        let inbox = PushInbox::new(slots);
        let endpoint =
            WorkerEndpoint::new(inbox.clone(), keys.clone(), workspace, queues.clone(), clock.clone());
        (listening.serve(endpoint), inbox)
    });
    let (source, callbacks): (Arc<dyn TaskSource>, Arc<dyn Callbacks>) = match &called {
        Some((_, inbox)) => (inbox.clone(), Arc::new(by_url)),
        None => (Arc::new(client.tasks_for(worker.as_str())), Arc::new(client.clone())),
    };
    let working = Executor {
        source,
        queues,
        callbacks,
        keys,
        clock,
        worker: worker.as_str().into(),
        slots,
        function: Arc::new(runners.clone()),
        spawner: Arc::new(ThreadSpawner::default()),
        seed: getrandom::u64().unwrap_or_default(),
    }
    .start();
    let evaluator = Evaluator::start(Arc::new(client.clone()), runners.clone());
    eprintln!("{worker}: {slots} slots for {} (servo {version})", client.server());
    if let Some((serving, _)) = &called {
        eprintln!("{worker}: queues {} call {}", options.queue.join(", "), serving.url());
    }
    tokio::select! {
        never = membership.keep_up(&runners, &root) => match never {},
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminated.recv() => {}
    }
    eprintln!("stopping: tasks have {} s to end", options.drain);
    evaluator.stop().await;
    membership.leave(true).await;
    if let Some((serving, _)) = called {
        serving.stop().await;
    }
    tokio::select! {
        () = working.shutdown(Duration::from_secs(options.drain)) => {}
        never = membership.stay() => match never {},
    }
    membership.leave(false).await;
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

/// Starts the interpreters until they all run, and reads what the project declares: an interpreter that dies while it
/// imports the project may not the next time.
async fn until_it_starts(runners: &Runners) -> anyhow::Result<Scanned> {
    let mut waiting = Waiting::default();
    loop {
        let started = match runners.warm().await {
            Ok(()) => runners.scan().await,
            Err(error) => Err(error.into()),
        };
        match started {
            Ok(scanned) => return Ok(scanned),
            Err(ScanError::Start(error @ (StartError::Crashed(_) | StartError::Spawn { .. }))) => {
                waiting.again(&error).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Something that is tried until it works.
struct Waiting {
    backoff: Backoff,
    told: String,
}

impl Default for Waiting {
    fn default() -> Self {
        let seed = std::process::id().into();
        let backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5), seed);
        Self { backoff, told: String::new() }
    }
}

impl Waiting {
    /// Says why, once for each reason, and waits before the next try.
    async fn again(&mut self, error: &impl std::fmt::Display) {
        let reason = error.to_string();
        if self.told != reason {
            eprintln!("{reason}; it is tried again until it works");
            self.told = reason;
        }
        tokio::time::sleep(self.backoff.next_delay()).await;
    }
}
