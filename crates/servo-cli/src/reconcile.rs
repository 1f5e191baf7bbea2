//! `servo reconcile --once`: the controllers without a server.

use std::sync::Arc;

use anyhow::Context;
use servo_engine::notification::{Delivery, Notified};
use servo_runtime::{
    Reconciled, Stores, SystemClock, answer_evaluations, answer_notifications, catch_up, reconcile_once,
};
use servo_store::{DataRoot, SystemPutIds};
use servo_worker::{DataLocations, RunnerSettings, Runners};
use tokio::task::JoinSet;

use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::owner::{self, Kind};
use crate::session;

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
    let mut done = reconcile_once(&stores, secret.clone(), &SystemClock, put_ids.clone()).await?;
    let mut evaluated = 0;
    let runners = if done.evaluations.is_empty() { None } else { runners(location, &stores)? };
    while let Some(runners) = runners.as_ref().filter(|_| !done.evaluations.is_empty()) {
        let calls = std::mem::take(&mut done.evaluations);
        evaluated += calls.len();
        let mut called = JoinSet::new();
        for evaluation in calls {
            let runners = runners.clone();
            called.spawn(async move {
                let report = runners.evaluate(&evaluation).await;
                (evaluation, report)
            });
        }
        let answers = called.join_all().await;
        let next =
            answer_evaluations(&stores, secret.clone(), &SystemClock, put_ids.clone(), answers).await?;
        done = Reconciled { projected_seq: done.projected_seq, events: done.events + next.events, ..next };
    }
    if let Some(runners) = runners {
        runners.shutdown().await;
    }
    let mut notified = 0;
    if !done.notifications.is_empty() {
        let sent = send(location, std::mem::take(&mut done.notifications)).await?;
        notified = sent.iter().filter(|answer| answer.failure.is_none()).count();
        let next = answer_notifications(&stores, secret.clone(), &SystemClock, put_ids.clone(), sent).await?;
        done = Reconciled { projected_seq: done.projected_seq, events: done.events + next.events, ..next };
    }
    if format == Format::Json {
        output::json(&serde_json::json!({
            "projected_seq": done.projected_seq,
            "lag_batches": done.lag,
            "events": done.events,
            "evaluations": evaluated,
            "notifications": notified,
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

/// Sends notifications, all at once; what came of each.
async fn send(location: &Location, deliveries: Vec<Delivery>) -> anyhow::Result<Vec<Notified>> {
    let senders = session::senders(location, None)?;
    let mut sent = JoinSet::new();
    for delivery in deliveries {
        let senders = senders.clone();
        sent.spawn(async move {
            let failure = senders.send(&delivery).await.err();
            Notified { notification_id: delivery.notification_id, attempt: delivery.attempt, failure }
        });
    }
    Ok(sent.join_all().await)
}

/// Interpreters of the project that call functions of schedules and sensors; none where there is no project.
fn runners(location: &Location, stores: &Stores) -> anyhow::Result<Option<Runners>> {
    let project = match location.project.find() {
        Ok(project) => project,
        Err(error) => {
            eprintln!("functions of schedules and sensors are not called: {error}");
            return Ok(None);
        }
    };
    let data = match (project.storage(), &stores.data) {
        (Some(place), _) => DataRoot::open(&place, &stores.layout).context("storage in servo.toml")?,
        (None, Some(data)) => data.clone(),
        (None, None) => return Ok(None),
    };
    let locations = DataLocations::new(data, stores.layout.clone());
    let (logs, clock) = (Arc::new(location.logs()), Arc::new(SystemClock));
    Ok(Some(Runners::new(project, locations, logs, clock, RunnerSettings::default())))
}
