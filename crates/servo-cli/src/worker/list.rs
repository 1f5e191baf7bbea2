//! `servo worker list`.

use servo_api::views::Worker;
use servo_core::{Clock, Timestamp};
use servo_engine::WorkerState;
use servo_runtime::SystemClock;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::style::harmless;

/// Options of `servo worker list`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Workers that are gone, too.
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let mut workers = through(location, Need::Read, async |client| Ok(client.workers().await?)).await?;
    workers.items.retain(|worker| options.all || !worker.state.is_gone());
    if format == Format::Json {
        output::json(&workers)?;
        return Ok(Exit::Done);
    }
    if workers.items.is_empty() {
        output::line("no worker is there: servo dev and servo materialize bring one, servo worker is one");
        return Ok(Exit::Done);
    }
    let now = SystemClock.now();
    output::table(
        &["worker", "state", "queues", "slots", "running", "code", "heard", "host", "storage"],
        &[3, 4],
        workers.items.iter().map(|worker| row(worker, now)).collect(),
    );
    Ok(Exit::Done)
}

fn row(worker: &Worker, now: Timestamp) -> Vec<String> {
    let code = match (worker.state, worker.is_current) {
        (WorkerState::Active | WorkerState::Draining, false) => {
            format!("deployment {}, outdated", worker.deployment)
        }
        (_, _) => format!("deployment {}", worker.deployment),
    };
    vec![
        harmless(&worker.worker_id).into_owned(),
        worker.state.to_string(),
        harmless(&worker.queues.join(",")).into_owned(),
        worker.slots.to_string(),
        worker.running.to_string(),
        code,
        format!("{} ago", now.since(worker.heard_at)),
        harmless(&worker.host).into_owned(),
        harmless(&worker.storage).into_owned(),
    ]
}
