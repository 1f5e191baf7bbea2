//! Live view of a run: a tree of assets that is redrawn on a terminal, lines elsewhere.

mod pace;
mod shape;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use servo_api::views::{RunWithTasks, Task};
use servo_core::{Millis, TaskKey, Timestamp};
use servo_engine::TaskState;

use crate::runs::told;
use crate::style::{Paint, Style, harmless};
use crate::summary::shown_in_full;
use pace::Pace;
pub(crate) use shape::Shape;

/// Assets beyond this many get no line of their own while nothing happens to them.
const MAX_LINES: usize = 200;
/// Tasks beyond this many are not listed one by one where lines cannot be redrawn.
const MAX_TOLD: usize = 100;
/// How often progress is told of where lines cannot be redrawn.
const TELL_EVERY: Millis = Millis::from_secs(10);

/// Live view of a run. It goes to stderr; results are for stdout.
pub(crate) struct Live {
    shape: Shape,
    paint: Paint,
    /// Whether lines can be drawn over.
    draws: bool,
    drawn: usize,
    /// Whether tasks are told of one by one where lines cannot be drawn over.
    tells_all: bool,
    /// Attempts that were told of, with what became of them.
    told: BTreeSet<(TaskKey, u32, TaskState)>,
    /// Lines that wait to be shown above the picture.
    news: Vec<News>,
    /// When progress was told of last.
    told_at: Option<Timestamp>,
    /// Sentences about the run that are shown below it.
    notices: Vec<String>,
}

impl Live {
    /// A view of so many tasks of these assets.
    pub(crate) fn new(shape: Shape, tasks: usize) -> Self {
        Self {
            shape,
            paint: Paint::for_stderr(),
            draws: Self::draws(),
            drawn: 0,
            tells_all: tasks <= MAX_TOLD,
            told: BTreeSet::new(),
            news: Vec::new(),
            told_at: None,
            notices: Vec::new(),
        }
    }

    /// Whether lines can be drawn over here.
    pub(crate) fn draws() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Takes note of a task that has changed.
    pub(crate) fn heard(&mut self, task: &Task, now: Timestamp) {
        let is_bad = matches!(task.state, TaskState::Failed | TaskState::RetryWait);
        let is_worth = is_bad || (task.state.is_terminal() && self.tells_all && !self.draws);
        if !is_worth || !self.told.insert((task.task_key.clone(), task.attempt, task.state)) {
            return;
        }
        let (symbol, style) = symbol(task.state);
        let name = task.task_key.subject();
        let line = match task.state {
            TaskState::RetryWait => {
                let soon = task.retry_at.map(|at| at.since(now)).unwrap_or(Millis::ZERO);
                let next = task.attempt + 1;
                format!(
                    "{name} attempt {} failed: {}; attempt {next} in {}",
                    task.attempt,
                    error(task),
                    rounded(soon)
                )
            }
            TaskState::Failed => {
                format!(
                    "{name}{}  {}",
                    took(task, now).map(|it| format!("  {it}")).unwrap_or_default(),
                    error(task)
                )
            }
            TaskState::Planned
            | TaskState::Blocked
            | TaskState::Ready
            | TaskState::Dispatched
            | TaskState::Running
            | TaskState::Skipped
            | TaskState::Cancelled
            | TaskState::Succeeded => {
                format!("{name}{}", took(task, now).map(|it| format!("  {it}")).unwrap_or_default())
            }
        };
        let line = format!("{} {line}", self.paint.with(style, symbol));
        let failed = (task.state == TaskState::Failed).then(|| task.task_key.clone());
        self.news.push(News { line, failed });
    }

    /// Says something once, above the picture if there is one.
    pub(crate) fn say(&mut self, line: &str, seen: &RunWithTasks, now: Timestamp) {
        self.news.push(News { line: line.to_owned(), failed: None });
        self.show(seen, now);
    }

    /// Shows the current state of the run.
    pub(crate) fn show(&mut self, seen: &RunWithTasks, now: Timestamp) {
        if self.draws {
            self.draw(seen, now, false);
        } else if seen.tasks.iter().any(|task| !task.state.is_terminal()) {
            self.tell(seen, now);
        }
    }

    /// Shows the run as it ended. The summary that follows tells of the errors with which it did.
    pub(crate) fn finish(&mut self, seen: &RunWithTasks, now: Timestamp) {
        if self.draws {
            self.news.clear();
            self.draw(seen, now, true);
        } else {
            let in_summary: Vec<&TaskKey> = shown_in_full(&seen.tasks).map(|task| &task.task_key).collect();
            self.news.retain(|news| news.failed.as_ref().is_none_or(|task| !in_summary.contains(&task)));
            self.told_at = Some(now);
            self.tell(seen, now);
        }
    }

    /// Shows sentences about the run: below it on a terminal, once elsewhere.
    pub(crate) fn notice(&mut self, notices: Vec<String>) {
        if !self.draws {
            let new = notices.iter().filter(|notice| !self.notices.contains(notice));
            new.for_each(|notice| eprintln!("{} {notice}", self.paint.with(Style::Warn, "!")));
        }
        self.notices = notices;
    }

    fn draw(&mut self, seen: &RunWithTasks, now: Timestamp, is_last: bool) {
        let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
        let mut lines = self.lines(&seen.tasks, now);
        let room = usize::from(height).saturating_sub(3).max(4);
        if !is_last && lines.len() > room {
            let rest = lines.len() - room + 1;
            lines.sort_by_key(|line| line.rank);
            lines.truncate(room - 1);
            lines.push(Line { rank: 9, text: format!("… and {rest} more assets") });
        }
        if !is_last {
            let text = format!("{}: {}", told::short_id(&seen.run), Pace::of(seen, now));
            let text = self.paint.with(Style::Dim, &text);
            lines.push(Line { rank: 9, text });
        }
        if !is_last {
            let notice =
                |notice: &String| format!("{} {}", self.paint.with(Style::Warn, "!"), harmless(notice));
            lines.extend(self.notices.iter().map(|text| Line { rank: 9, text: notice(text) }));
        }
        // What was typed meanwhile is shown by the terminal where the cursor is.
        let mut text = "\r".to_owned();
        if self.drawn > 0 {
            let _infallible = write!(text, "\x1b[{}A", self.drawn);
        }
        for News { line, .. } in self.news.drain(..) {
            let _infallible = writeln!(text, "\x1b[2K{line}");
        }
        for line in &lines {
            let _infallible = writeln!(text, "\x1b[2K{}", cut(&line.text, usize::from(width)));
        }
        text.push_str("\x1b[0J");
        self.drawn = lines.len();
        let _closed = std::io::stderr().write_all(text.as_bytes());
    }

    fn lines(&self, tasks: &[Task], now: Timestamp) -> Vec<Line> {
        let mut groups: Vec<Group<'_>> = self.shape.assets().iter().map(|_| Group::new(now)).collect();
        for task in tasks {
            if let Some(at) = self.shape.position(&task.task_key) {
                groups[at].add(task);
            }
        }
        let width = self.shape.assets().iter().map(|asset| asset.label_width()).max().unwrap_or(0);
        let mut lines = Vec::new();
        for (asset, group) in self.shape.assets().iter().zip(&groups) {
            if lines.len() > MAX_LINES && group.rank() > 1 {
                continue;
            }
            let (symbol, style) = group.symbol();
            let mut text = format!(
                "{}{} {:<pad$}",
                self.paint.with(Style::Dim, &asset.guide),
                self.paint.with(style, symbol),
                asset.name,
                pad = width.saturating_sub(asset.guide.chars().count()),
            );
            let _infallible = write!(text, "  {}", group.describe());
            lines.push(Line { rank: group.rank(), text: text.trim_end().to_owned() });
        }
        lines
    }

    /// Tells what is new, and how far the run is if it takes long.
    fn tell(&mut self, seen: &RunWithTasks, now: Timestamp) {
        for News { line, .. } in self.news.drain(..) {
            eprintln!("{line}");
        }
        let since = *self.told_at.get_or_insert(now);
        if now.since(since) >= TELL_EVERY {
            self.told_at = Some(now);
            eprintln!("… {}", Pace::of(seen, now));
        }
    }
}

/// A line that is shown once.
struct News {
    line: String,
    /// The task whose failure it tells of.
    failed: Option<TaskKey>,
}

struct Line {
    /// Order of importance: lower ranks are shown first.
    rank: u8,
    text: String,
}

/// The tasks of one asset.
struct Group<'a> {
    total: usize,
    done: usize,
    failed: usize,
    skipped: usize,
    cancelled: usize,
    running: usize,
    waiting_to_retry: usize,
    warned: bool,
    busiest: Option<&'a Task>,
    /// The task that is tried again first.
    retried: Option<&'a Task>,
    /// From the first start to the last end, or until now.
    span: Option<(Timestamp, Timestamp)>,
    now: Timestamp,
}

impl<'a> Group<'a> {
    fn new(now: Timestamp) -> Self {
        Self {
            total: 0,
            done: 0,
            failed: 0,
            skipped: 0,
            cancelled: 0,
            running: 0,
            waiting_to_retry: 0,
            warned: false,
            busiest: None,
            retried: None,
            span: None,
            now,
        }
    }

    fn add(&mut self, task: &'a Task) {
        let now = self.now;
        self.total += 1;
        match task.state {
            TaskState::Succeeded => self.done += 1,
            TaskState::Failed => self.failed += 1,
            TaskState::Skipped => self.skipped += 1,
            TaskState::Cancelled => self.cancelled += 1,
            TaskState::Running => {
                self.running += 1;
                self.busiest = Some(task);
            }
            TaskState::RetryWait => {
                self.waiting_to_retry += 1;
                let is_sooner = |known: &Task| task.retry_at < known.retry_at;
                if self.retried.is_none_or(is_sooner) {
                    self.retried = Some(task);
                }
            }
            TaskState::Planned | TaskState::Blocked | TaskState::Ready | TaskState::Dispatched => {}
        }
        self.warned |= task.checks_failed > 0;
        if let Some(from) = task.started_at {
            let until = if task.state.is_terminal() { task.finished_at.unwrap_or(now) } else { now };
            let (first, last) = self.span.unwrap_or((from, until));
            self.span = Some((first.min(from), last.max(until)));
        }
    }

    fn rank(&self) -> u8 {
        match () {
            () if self.failed > 0 => 0,
            () if self.running > 0 || self.waiting_to_retry > 0 => 1,
            () if self.done < self.total => 2,
            () => 3,
        }
    }

    fn symbol(&self) -> (&'static str, Style) {
        match () {
            () if self.failed > 0 => ("✗", Style::Bad),
            () if self.running > 0 || self.waiting_to_retry > 0 => ("●", Style::Busy),
            () if self.total > 0 && self.done == self.total && self.warned => ("!", Style::Warn),
            () if self.total > 0 && self.done == self.total => ("✓", Style::Good),
            () if self.skipped + self.cancelled > 0 => ("-", Style::Dim),
            () => ("○", Style::Dim),
        }
    }

    fn describe(&self) -> String {
        let mut parts = Vec::new();
        if self.total > 1 {
            parts.push(format!("{}/{}", self.done, self.total));
        }
        if let Some((from, until)) = self.span.filter(|(from, until)| until > from) {
            let length = until.since(from);
            parts.push(if length.get() < 1_000 { length.to_string() } else { rounded(length) });
        }
        for (count, what) in [
            (if self.total > 1 { self.running } else { 0 }, "running"),
            (self.waiting_to_retry, "waiting to retry"),
            (self.failed, "failed"),
            (self.skipped, "skipped"),
            (self.cancelled, "cancelled"),
        ] {
            if count > 0 {
                parts.push(if self.total > 1 { format!("{count} {what}") } else { what.to_owned() });
            }
        }
        if let Some(task) = self.retried {
            let soon = task.retry_at.map(|at| at.since(self.now)).unwrap_or(Millis::ZERO);
            parts.push(format!("attempt {} in {}, now with Ctrl-R", task.attempt + 1, rounded(soon)));
        }
        if let Some(progress) = self.busiest.and_then(|task| task.progress.as_ref()) {
            parts.push(
                format!("{} % {}", progress.ppm / 10_000, harmless(&progress.message)).trim_end().to_owned(),
            );
        }
        parts.join("  ")
    }
}

/// The error of a task in a line.
fn error(task: &Task) -> String {
    let Some(error) = &task.error else { return "without an error".to_owned() };
    let kind = error.error_type.as_deref().map(|kind| format!(" {kind}")).unwrap_or_default();
    let mut lines = error.message.lines();
    let first = lines.next().unwrap_or_default();
    // A heading says nothing without what is below it.
    let rest = lines.next().filter(|_| first.ends_with(':')).map(str::trim).unwrap_or_default();
    format!("{}{kind}: {}", error.code.name(), harmless(format!("{first} {rest}").trim_end()))
}

/// A length of time without what nobody reads: tenths below ten seconds, else seconds.
fn rounded(length: Millis) -> String {
    match length.get() {
        ms @ 0..10_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        ms => Millis::new(ms / 1_000 * 1_000).to_string(),
    }
}

/// How long the newest attempt took, or has taken until now.
fn took(task: &Task, now: Timestamp) -> Option<Millis> {
    let until = if task.state.is_terminal() { task.finished_at? } else { now };
    task.started_at.map(|from| until.since(from))
}

/// How a task of a state is shown.
fn symbol(state: TaskState) -> (&'static str, Style) {
    match state {
        TaskState::Succeeded => ("✓", Style::Good),
        TaskState::Failed => ("✗", Style::Bad),
        TaskState::Running => ("●", Style::Busy),
        TaskState::RetryWait => ("↻", Style::Warn),
        TaskState::Skipped | TaskState::Cancelled => ("-", Style::Dim),
        TaskState::Planned | TaskState::Blocked | TaskState::Ready | TaskState::Dispatched => {
            ("○", Style::Dim)
        }
    }
}

/// A line that fits the terminal. Colours take no room.
fn cut(text: &str, width: usize) -> String {
    let (mut seen, mut in_colour, mut kept) = (0, false, String::new());
    for c in text.chars() {
        match (in_colour, c) {
            (false, '\x1b') => in_colour = true,
            (true, 'm') => in_colour = false,
            (true, _) => {}
            (false, _) => {
                seen += 1;
                if seen >= width {
                    kept.push('…');
                    kept.push_str("\x1b[0m");
                    return kept;
                }
            }
        }
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_and_colours_do_not_count() {
        assert_eq!(cut("\x1b[32mabcdef\x1b[0m", 10), "\x1b[32mabcdef\x1b[0m");
        assert_eq!(cut("\x1b[32mabcdef\x1b[0m", 4), "\x1b[32mabc…\x1b[0m");
    }
}
