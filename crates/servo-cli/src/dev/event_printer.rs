//! Prints events of a workspace: runs that begin and end, tasks that fail.

use servo_core::RunId;
use servo_engine::{EventData, Outcome, RunState};
use servo_runtime::Workspace;
use tokio::sync::broadcast::error::RecvError;

use crate::output;
use crate::style::{Paint, Style, harmless};

/// Prints the events of a workspace until it ends.
pub(super) async fn print_events(workspace: Workspace) {
    let paint = Paint::for_stderr();
    let mut events = workspace.subscribe();
    loop {
        let batch = match events.recv().await {
            Ok(batch) => batch,
            // Too much to tell: the tables have it.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        for event in batch.iter() {
            if let EventData::RunTriggered(triggered) = &event.data {
                let run = triggered.run_id;
                eprintln!("{} {run} started", paint.with(Style::Busy, "●"));
                tokio::spawn(print_outcome(workspace.clone(), run, paint));
            }
            if let EventData::TaskFinished(finished) = &event.data
                && !matches!(finished.outcome, Outcome::Succeeded | Outcome::Cancelled)
            {
                let why = finished
                    .error
                    .as_ref()
                    .map(|error| format!(": {}", harmless(first_line(&error.message))));
                let (task, attempt) = (finished.task_key.subject(), finished.attempt);
                let why = why.unwrap_or_default();
                eprintln!("{} {task} attempt {attempt}{why}", paint.with(Style::Bad, "✗"));
            }
        }
    }
}

async fn print_outcome(workspace: Workspace, run: RunId, paint: Paint) {
    let Ok(Some(row)) = workspace.wait(run).await else { return };
    let (symbol, style) = match row.state {
        RunState::Succeeded => ("✓", Style::Good),
        RunState::Failed | RunState::TimedOut => ("✗", Style::Bad),
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::Cancelling
        | RunState::Cancelled => ("-", Style::Dim),
    };
    let took = output::span(row.started_at, row.finished_at);
    let tasks = if row.tasks_total == 1 { "task" } else { "tasks" };
    eprintln!("{} {run} {} in {took}, {} {tasks}", paint.with(style, symbol), row.state, row.tasks_total);
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
