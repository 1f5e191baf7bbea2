//! Summary of a run for people: failures with their causes, warnings, and a final line.

use std::collections::BTreeMap;

use servo_api::views::{LogLine, Run, RunWithTasks, Task, TaskDetail};
use servo_core::TaskKey;
use servo_engine::{RunState, TaskState};
use servo_worker::LogStream;

use crate::output;
use crate::runs::told;
use crate::style::{Paint, Style, harmless};

/// Failures shown in full.
const FAILURES: usize = 5;
/// Warnings listed one by one.
const WARNINGS: usize = 10;

/// Checks, error and log lines of a task.
pub(crate) struct Detail {
    pub(crate) task: TaskDetail,
    /// The last lines that it has printed.
    pub(crate) printed: Vec<LogLine>,
}

/// Details by task.
pub(crate) type Details = BTreeMap<TaskKey, Detail>;

/// The tasks whose errors and output help to understand why a run failed.
pub(crate) fn shown_in_full(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    tasks.iter().filter(|task| task.state == TaskState::Failed).take(FAILURES)
}

/// The tasks whose checks did not pass without stopping anything.
pub(crate) fn warned(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    with_warnings(tasks).take(WARNINGS)
}

fn with_warnings(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    tasks.iter().filter(|task| task.state == TaskState::Succeeded && task.checks_failed > 0)
}

/// Prints the summary of a run.
pub(crate) fn print(run: &RunWithTasks, details: &Details) {
    let paint = Paint::for_stdout();
    for task in shown_in_full(&run.tasks) {
        failure(task, details.get(&task.task_key), paint);
    }
    let id = run.run.run_id;
    let failed = count(&run.tasks, TaskState::Failed);
    if failed > FAILURES {
        output::line(format_args!("and {} more failed; servo run show {id}\n", failed - FAILURES));
    }
    warnings(&run.tasks, details, paint);
    output::line(line(&run.run, &run.tasks, paint));
    if run.run.state != RunState::Succeeded {
        output::line(format_args!("try again what did not succeed: servo run retry {id} --from-failure"));
    }
}

fn failure(task: &Task, detail: Option<&Detail>, paint: Paint) {
    let attempts = match task.attempt {
        0 | 1 => String::new(),
        attempts => format!(" after {attempts} attempts"),
    };
    output::line(format_args!(
        "{} {} failed{attempts}",
        paint.with(Style::Bad, "✗"),
        paint.with(Style::Bold, &task.task_key.subject())
    ));
    if let Some(error) = detail.and_then(|detail| detail.task.task.error.as_ref()).or(task.error.as_ref()) {
        let kind = error.error_type.as_deref().map(|kind| format!(" {kind}")).unwrap_or_default();
        output::line(format_args!("  {}{kind}: {}", error.code.name(), indented(&error.message)));
        if let Some(traceback) = &error.traceback {
            output::line(format_args!("\n  {}", indented(traceback.trim_end())));
        }
        if let Some(action) = &error.suggested_action {
            let gap = if error.traceback.is_some() { "\n" } else { "" };
            output::line(format_args!("{gap}  what helps: {}", indented(action)));
        }
    }
    let printed = detail.map(|detail| detail.printed.as_slice()).unwrap_or_default();
    if !printed.is_empty() {
        output::line("\n  it had printed:");
        for line in printed {
            let mark = match line.stream {
                LogStream::Stderr => "2│",
                LogStream::Stdout => " │",
                LogStream::Log | LogStream::Servo => "·│",
            };
            output::line(format_args!("  {} {}", paint.with(Style::Dim, mark), harmless(&line.text)));
        }
    }
    output::line("");
}

fn warnings(tasks: &[Task], details: &Details, paint: Paint) {
    let total: u32 = with_warnings(tasks).map(|task| task.checks_failed).sum();
    let mut told = 0;
    for task in warned(tasks) {
        let outputs = details.get(&task.task_key).map(|detail| detail.task.outputs.as_slice());
        for output in outputs.unwrap_or_default() {
            for check in output.checks.iter().filter(|check| !check.passed).take(WARNINGS - told) {
                told += 1;
                let partition = task.task_key.partition().map(|key| format!(" {key}")).unwrap_or_default();
                let outcome = if check.error.is_some() { "could not run" } else { "did not pass" };
                output::line(format_args!(
                    "{} {}{partition}: check {} {outcome}{}",
                    paint.with(Style::Warn, "!"),
                    output.asset,
                    check.name,
                    check
                        .message
                        .as_deref()
                        .map(|message| format!(": {}", harmless(message)))
                        .unwrap_or_default()
                ));
            }
        }
    }
    let rest = total as usize - told.min(total as usize);
    if rest > 0 {
        output::line(format_args!(
            "and {rest} more; servo sql \"select * from check_results where not passed\""
        ));
    }
    if total > 0 {
        output::line("");
    }
}

/// `run_… SUCCEEDED, 1 check failed in 3.2s: 128 tasks; 160 checks, 1 did not pass`.
fn line(run: &Run, tasks: &[Task], paint: Paint) -> String {
    let style = match run.state {
        RunState::Succeeded => Style::Good,
        RunState::Failed | RunState::TimedOut => Style::Bad,
        RunState::Cancelled
        | RunState::Cancelling
        | RunState::Pending
        | RunState::Queued
        | RunState::Running => Style::Warn,
    };
    let total = tasks.len();
    let mut parts = vec![format!("{total} task{}", if total == 1 { "" } else { "s" })];
    for (state, word) in
        [(TaskState::Failed, "failed"), (TaskState::Skipped, "skipped"), (TaskState::Cancelled, "cancelled")]
    {
        if let count @ 1.. = count(tasks, state) {
            parts.push(format!("{count} {word}"));
        }
    }
    let checks: u32 = tasks.iter().map(|task| task.checks).sum();
    if checks > 0 {
        let wrong = match tasks.iter().map(|task| task.checks_failed).sum() {
            0u32 => "all passed".to_owned(),
            wrong => format!("{wrong} did not pass"),
        };
        parts.push(format!("{checks} check{}, {wrong}", if checks == 1 { "" } else { "s" }));
    }
    format!(
        "{} {} in {}: {}",
        run.run_id,
        paint.with(style, &told::state(run)),
        output::span(run.started_at, run.finished_at),
        parts.join("; ")
    )
}

fn count(tasks: &[Task], state: TaskState) -> usize {
    tasks.iter().filter(|task| task.state == state).count()
}

fn indented(text: &str) -> String {
    harmless(text).replace('\n', "\n  ")
}
