//! Runs at work: followed, cancelled, tried again, by a server or in this process.

use std::process::ExitCode;

use anyhow::bail;
use servo_api::client::Client;
use servo_api::views::RetryBody;
use servo_core::RunId;
use servo_engine::{CancelRun, RunState};
use servo_projections::Projection;
use servo_runtime::RetryRequest;

use crate::control::Control;
use crate::location::Location;
use crate::materialize::default_slots;
use crate::output::{self, Format};
use crate::session::{Reach, Session, tails};
use crate::view::RunView;
use crate::{remote, server, summary};

pub(super) async fn watch(location: &Location, run: RunId, format: Format) -> anyhow::Result<ExitCode> {
    if let Some(client) = server::find(location).await? {
        return end_of(&client, run, format).await;
    }
    let stores = location.look()?;
    let projection = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await?;
    let found = super::find(projection.as_ref(), run).await?;
    if let Some((row, tasks)) = found.filter(|(row, _)| row.state.is_terminal()) {
        match format {
            Format::Json => super::show(&row, &tasks, format),
            Format::Table => {
                let view = RunView::new(&row, &tasks);
                summary::print(&view, &tails(&location.logs(), &view));
            }
        }
        return Ok(code(row.state));
    }
    drop(stores);
    let mut session =
        Session::open(location, location.project.find()?, default_slots(), Reach::Alone).await?;
    let outcome = async {
        if !session.unfinished().await?.contains(&run) {
            bail!("there is no run {run} at work; `servo run list` shows what there is");
        }
        session.deploy(location.caller()).await?;
        session.tell_end(run, format).await
    }
    .await;
    session.close().await?;
    outcome
}

pub(super) async fn retry(
    location: &Location,
    run: RunId,
    from_failure: bool,
    format: Format,
) -> anyhow::Result<ExitCode> {
    if let Some(client) = server::find(location).await? {
        let asked = client.retry(run, &RetryBody { from_failure, ..RetryBody::default() }).await?;
        return end_of(&client, asked.run_id, format).await;
    }
    let mut session =
        Session::open(location, location.project.find()?, default_slots(), Reach::Alone).await?;
    let outcome = async {
        session.deploy(location.caller()).await?;
        let request = RetryRequest { from_failure, caller: location.caller(), run_key: None };
        let launched = session.workspace.retry(run, request).await?;
        session.tell_end(launched.run_id, format).await
    }
    .await;
    session.close().await?;
    outcome
}

pub(super) async fn cancel(
    location: &Location,
    run: RunId,
    reason: &str,
    force: bool,
    format: Format,
) -> anyhow::Result<ExitCode> {
    let caller = location.caller();
    let cancel = CancelRun { run_id: run, caller, reason: reason.to_owned(), force };
    Control::find(location).await?.cancel(cancel).await?;
    match format {
        Format::Json => output::json(&serde_json::json!({ "run_id": run.to_string(), "cancelled": true })),
        Format::Table => output::line(format_args!("{run} is being cancelled")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows a run on a server and tells how it ended.
pub(crate) async fn end_of(client: &Client, run: RunId, format: Format) -> anyhow::Result<ExitCode> {
    let told = remote::follow(client, run, format == Format::Table).await?;
    match format {
        Format::Json => output::json(&told.json()),
        Format::Table => {
            let (view, tails) = remote::in_full(client, &told).await?;
            summary::print(&view, &tails);
        }
    }
    Ok(code(told.run.state))
}

/// Whether a run did what it was asked to.
pub(crate) fn code(state: RunState) -> ExitCode {
    if state == RunState::Succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
