//! Output for GitHub Actions: a group around a run, an error per failed task, and a summary of the step.

use std::io::Write;

use servo_api::views::RunWithTasks;
use servo_core::RunId;
use servo_engine::{RunState, TaskState};

use crate::output;
use crate::style::harmless;
use crate::summary;

/// Rows of the table in the summary.
const ROWS: usize = 200;

/// Whether this process is a step of a workflow.
fn is_step() -> bool {
    std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true")
}

/// Folds what follows, until it is dropped.
pub(crate) struct Group(());

impl Group {
    pub(crate) fn begin(run: RunId) -> Option<Self> {
        is_step().then(|| {
            eprintln!("::group::{run}");
            Self(())
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        eprintln!("::endgroup::");
    }
}

/// Tells of what failed, and writes the summary of the step.
pub(crate) fn tell(run: &RunWithTasks) {
    if !is_step() {
        return;
    }
    for task in summary::shown_in_full(&run.tasks) {
        let message = task.error.as_ref().map_or("failed", |error| error.message.as_str());
        let title = property(&format!("{} failed", task.task_key.subject()));
        eprintln!("::error title={title}::{}", data(message));
    }
    if run.run.state != RunState::Succeeded {
        eprintln!("::error title={}::{} ended {}", property("servo"), run.run.run_id, run.run.state);
    }
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(markdown(run).as_bytes()));
    if let Err(error) = written {
        eprintln!("::warning::the summary of the step cannot be written: {}", data(&error.to_string()));
    }
}

/// A table of the tasks.
fn markdown(run: &RunWithTasks) -> String {
    let cell =
        |text: &str| harmless(text).replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;");
    let mark = if run.run.state == RunState::Succeeded { "✅" } else { "❌" };
    let took = output::span(run.run.started_at, run.run.finished_at);
    let mut text = format!(
        "### {mark} {} {} in {took}\n\n| task | state | attempts | took | error |\n|---|---|---|---|---|\n",
        run.run.run_id, run.run.state
    );
    // Those that need attention come first.
    let is_good = |state: TaskState| state == TaskState::Succeeded;
    let bad = run.tasks.iter().filter(|task| !is_good(task.state));
    let good = run.tasks.iter().filter(|task| is_good(task.state));
    for task in bad.chain(good).take(ROWS) {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            cell(&task.task_key.subject()),
            task.state,
            task.attempt,
            output::span(task.started_at, task.finished_at),
            cell(task.error.as_ref().map_or("", |error| error.message.as_str())),
        ));
    }
    if run.tasks.len() > ROWS {
        text.push_str(&format!("\nand {} more tasks\n", run.tasks.len() - ROWS));
    }
    text.push('\n');
    text
}

/// The text of a workflow command: what would end it is escaped.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of one.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_message_is_taken_for_a_command() {
        assert_eq!(data("100%\n::error::x\r"), "100%25%0A::error::x%0D");
        assert_eq!(property("a: b, c"), "a%3A b%2C c");
    }
}
