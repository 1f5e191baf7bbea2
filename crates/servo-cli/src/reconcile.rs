//! `servo reconcile --once`: the controllers without a server.

use std::sync::Arc;

use servo_runtime::{SystemClock, catch_up, reconcile_once};
use servo_store::SystemPutIds;

use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::owner::{self, Kind};

/// Options of `servo reconcile`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Reconcile once and exit. The only mode: a server reconciles continuously.
    #[arg(long, required = true)]
    once: bool,
    /// First bring the tables up to the end of the log, as the compactor of a server does all the time.
    #[arg(long)]
    catch_up: bool,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    location.must_exist()?;
    let (mut stores, _ownership) = owner::own(location, Kind::Command).await?;
    location.use_storage(&mut stores)?;
    let secret = location.secret()?;
    let put_ids = Arc::new(SystemPutIds::default());
    if options.catch_up {
        let batches = catch_up(&stores, &SystemClock, put_ids.clone()).await?;
        if batches > 0 {
            eprintln!("wrote {batches} batches of the log to the tables");
        }
    }
    let done = reconcile_once(&stores, secret, &SystemClock, put_ids).await?;
    if format == Format::Json {
        output::json(&serde_json::json!({
            "projected_seq": done.projected_seq,
            "lag_batches": done.lag,
            "events": done.events,
            "dispatches": done.dispatches.iter().map(|dispatch| serde_json::json!({
                "run_id": dispatch.attempt.run_id.to_string(),
                "task_key": dispatch.attempt.task_key.to_string(),
                "attempt": dispatch.attempt.attempt,
                "queue": &*dispatch.queue,
            })).collect::<Vec<_>>(),
        }))?;
    } else if done.lag == 0 {
        output::line(format_args!("{} events appended after batch {}", done.events, done.projected_seq));
        for dispatch in &done.dispatches {
            let attempt = &dispatch.attempt;
            output::line(format_args!(
                "to queue {}: {} attempt {}",
                dispatch.queue, attempt.task_key, attempt.attempt
            ));
        }
    }
    if done.lag > 0 {
        eprintln!(
            "the tables lag {} batches behind the log, so nothing was decided; add --catch-up, or let the server that \
             writes them do it",
            done.lag
        );
        return Ok(Exit::Lagging);
    }
    Ok(Exit::Done)
}
