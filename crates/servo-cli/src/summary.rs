//! What became of a run, for people: failures with their causes, warnings, one line that says it all.

use std::collections::BTreeMap;

use servo_core::TaskKey;
use servo_engine::{RunState, TaskState};
use servo_worker::{LogLine, LogStream};

use crate::output;
use crate::style::{Paint, Style};
use crate::view::{RunView, TaskView};

/// Failures that are told in full.
const FAILURES: usize = 5;
/// Warnings that are told one by one.
const WARNINGS: usize = 10;

/// The last lines that a task has printed, by task.
pub(crate) type Tails = BTreeMap<TaskKey, Vec<LogLine>>;

/// The tasks whose output helps to understand why a run failed.
pub(crate) fn told_in_full(run: &RunView) -> impl Iterator<Item = &TaskView> {
    run.tasks.iter().filter(|task| task.state == TaskState::Failed).take(FAILURES)
}

/// Prints what became of a run.
pub(crate) fn print(run: &RunView, tails: &Tails) {
    let paint = Paint::for_stdout();
    for task in told_in_full(run) {
        failure(task, tails.get(&task.key).map(Vec::as_slice).unwrap_or_default(), paint);
    }
    let failed = run.count(TaskState::Failed);
    if failed > FAILURES {
        output::line(format_args!("and {} more failed; servo run show {}\n", failed - FAILURES, run.run_id));
    }
    warnings(run, paint);
    output::line(line(run, paint));
    if run.state != RunState::Succeeded {
        let id = run.run_id;
        output::line(format_args!("try again what did not succeed: servo run retry {id} --from-failure"));
    }
}

fn failure(task: &TaskView, tail: &[LogLine], paint: Paint) {
    let attempts = match task.attempt {
        0 | 1 => String::new(),
        attempts => format!(" after {attempts} attempts"),
    };
    output::line(format_args!(
        "{} {} failed{attempts}",
        paint.with(Style::Bad, "✗"),
        paint.with(Style::Bold, &task.name())
    ));
    if let Some(error) = &task.error {
        let kind = error.error_type.as_deref().map(|kind| format!(" {kind}")).unwrap_or_default();
        output::line(format_args!("  {}{kind}: {}", error.code.name(), indented(&error.message)));
        if let Some(traceback) = &error.traceback {
            output::line(format_args!("\n  {}\n", indented(traceback.trim_end())));
        }
    }
    if !tail.is_empty() {
        output::line("  it had printed:");
        for line in tail {
            let mark = match line.stream {
                LogStream::Stderr => "2│",
                LogStream::Stdout => " │",
                LogStream::Log | LogStream::Servo => "·│",
            };
            output::line(format_args!("  {} {}", paint.with(Style::Dim, mark), line.text));
        }
    }
    output::line("");
}

fn warnings(run: &RunView, paint: Paint) {
    let found: Vec<_> = run.warnings().collect();
    for (place, check) in found.iter().take(WARNINGS) {
        output::line(format_args!(
            "{} {place}: check {} did not pass{}",
            paint.with(Style::Warn, "!"),
            check.name,
            check.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default()
        ));
    }
    if found.len() > WARNINGS {
        let rest = found.len() - WARNINGS;
        output::line(format_args!(
            "and {rest} more; servo sql \"select * from check_results where not passed\""
        ));
    }
    if !found.is_empty() {
        output::line("");
    }
}

/// `run_… SUCCEEDED in 3.2s: 128 tasks; 160 checks, 1 did not pass`.
fn line(run: &RunView, paint: Paint) -> String {
    let style = match run.state {
        RunState::Succeeded => Style::Good,
        RunState::Failed | RunState::TimedOut => Style::Bad,
        RunState::Cancelled | RunState::Cancelling | RunState::Pending | RunState::Running => Style::Warn,
    };
    let total = run.tasks.len();
    let mut parts = vec![format!("{total} task{}", if total == 1 { "" } else { "s" })];
    for (state, word) in
        [(TaskState::Failed, "failed"), (TaskState::Skipped, "skipped"), (TaskState::Cancelled, "cancelled")]
    {
        if let count @ 1.. = run.count(state) {
            parts.push(format!("{count} {word}"));
        }
    }
    let (checks, passed) = run.checks();
    if checks > 0 {
        let wrong = match checks - passed {
            0 => "all passed".to_owned(),
            wrong => format!("{wrong} did not pass"),
        };
        parts.push(format!("{checks} check{}, {wrong}", if checks == 1 { "" } else { "s" }));
    }
    format!(
        "{} {} in {}: {}",
        run.run_id,
        paint.with(style, run.state.name()),
        output::span(run.started_at, run.finished_at),
        parts.join("; ")
    )
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}
