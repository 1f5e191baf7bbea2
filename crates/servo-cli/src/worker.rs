//! `servo worker`: runs tasks of a server on this machine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use servo_api::client::Client;
use servo_runtime::SystemClock;
use servo_store::{DataRoot, Layout};
use servo_worker::{DataLocations, Executor, RunnerSettings, Runners};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::location::Location;
use crate::materialize::default_slots;

/// Options of `servo worker`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Address of the server.
    #[arg(long, env = "SERVO_URL", value_name = "URL")]
    server: String,
    /// Key that the server requires of workers.
    #[arg(long, env = "SERVO_WORKER_KEY", hide_env_values = true, value_name = "KEY")]
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
    let mut client = Client::new(&options.server)?;
    if let Some(key) = &options.key {
        client = client.with_worker_key(key.as_str());
    }
    let version = client.version().await.context("the server does not answer")?;
    let name = options.name.clone().unwrap_or_else(|| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        format!("{host}-{}", std::process::id())
    });
    let clock = Arc::new(SystemClock);
    let settings = RunnerSettings { slots, ..RunnerSettings::default() };
    let logs = Arc::new(client.log_sink());
    let runners = Runners::new(project, DataLocations::new(data, layout), logs, clock.clone(), settings);
    runners.warm().await?;
    let working = Executor {
        source: Arc::new(client.tasks_for(name.as_str())),
        queues: vec![options.queue.as_str().into()],
        callbacks: Arc::new(client.clone()),
        keys: servo_api::worker_keyring(options.key.as_deref()),
        clock,
        worker: name.as_str().into(),
        slots,
        function: Arc::new(runners.clone()),
    }
    .start();
    eprintln!("{name}: {slots} slots for {} (servo {})", client.server(), version.version);
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminated.recv() => {}
    }
    eprintln!("stopping: tasks have {} s to end", options.drain);
    working.shutdown(Duration::from_secs(options.drain)).await;
    runners.shutdown().await;
    Ok(Exit::Done)
}
