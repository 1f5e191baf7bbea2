//! Live view of a run: a tree of assets that is redrawn on a terminal, lines elsewhere.

mod shape;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use servo_api::views::Task;
use servo_core::{Millis, TaskKey, Timestamp};
use servo_engine::TaskState;

use crate::style::{Paint, Style, harmless};
use crate::summary::name;
pub(crate) use shape::Shape;

/// Assets beyond this many get no line of their own while nothing happens to them.
const MAX_LINES: usize = 200;
/// Tasks beyond this many are not listed one by one where lines cannot be redrawn.
const MAX_TOLD: usize = 100;

/// Live view of a run. It goes to stderr; results are for stdout.
pub(crate) struct Live {
    shape: Shape,
    paint: Paint,
    /// Whether lines can be drawn over.
    draws: bool,
    drawn: usize,
    told: BTreeSet<TaskKey>,
    /// Sentences about the run that are shown below it.
    notices: Vec<String>,
}

impl Live {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            paint: Paint::for_stderr(),
            draws: Self::draws(),
            drawn: 0,
            told: BTreeSet::new(),
            notices: Vec::new(),
        }
    }

    /// Whether lines can be drawn over here.
    pub(crate) fn draws() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Shows the current state of the run.
    pub(crate) fn show(&mut self, tasks: &[Task], now: Timestamp) {
        if self.draws { self.draw(tasks, now, false) } else { self.tell(tasks) }
    }

    /// Shows sentences about the run: below it on a terminal, once elsewhere.
    pub(crate) fn notice(&mut self, notices: Vec<String>) {
        if !self.draws {
            let new = notices.iter().filter(|notice| !self.notices.contains(notice));
            new.for_each(|notice| eprintln!("{} {notice}", self.paint.with(Style::Warn, "!")));
        }
        self.notices = notices;
    }

    /// Shows the run as it ended.
    pub(crate) fn finish(&mut self, tasks: &[Task], now: Timestamp) {
        if self.draws { self.draw(tasks, now, true) } else { self.tell(tasks) }
    }

    fn draw(&mut self, tasks: &[Task], now: Timestamp, is_last: bool) {
        let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
        let mut lines = self.lines(tasks, now);
        let room = usize::from(height).saturating_sub(2).max(4);
        if !is_last && lines.len() > room {
            let rest = lines.len() - room + 1;
            lines.sort_by_key(|line| line.rank);
            lines.truncate(room - 1);
            lines.push(Line { rank: 9, text: format!("… and {rest} more assets") });
        }
        if !is_last {
            let notice =
                |notice: &String| format!("{} {}", self.paint.with(Style::Warn, "!"), harmless(notice));
            lines.extend(self.notices.iter().map(|text| Line { rank: 9, text: notice(text) }));
        }
        let mut text = String::new();
        if self.drawn > 0 {
            let _infallible = write!(text, "\x1b[{}A", self.drawn);
        }
        for line in &lines {
            let _infallible = writeln!(text, "\x1b[2K{}", cut(&line.text, usize::from(width)));
        }
        text.push_str("\x1b[0J");
        self.drawn = lines.len();
        let _closed = std::io::stderr().write_all(text.as_bytes());
    }

    fn lines(&self, tasks: &[Task], now: Timestamp) -> Vec<Line> {
        let mut groups: Vec<Group<'_>> = self.shape.assets().iter().map(|_| Group::default()).collect();
        for task in tasks {
            if let Some(at) = self.shape.position(&task.task_key) {
                groups[at].add(task, now);
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

    fn tell(&mut self, tasks: &[Task]) {
        let few = tasks.len() <= MAX_TOLD;
        let mut ended: Vec<&Task> = tasks.iter().collect();
        ended.sort_by_key(|task| task.finished_at);
        for task in ended {
            let worth = few || matches!(task.state, TaskState::Failed | TaskState::RetryWait);
            if !worth || !task.state.is_terminal() || self.told.contains(&task.task_key) {
                continue;
            }
            self.told.insert(task.task_key.clone());
            let (symbol, style) = symbol(task.state);
            let took = took(task, Timestamp::EPOCH).map(|took| format!("  {took}")).unwrap_or_default();
            eprintln!("{} {}{took}", self.paint.with(style, symbol), name(&task.task_key));
        }
    }
}

struct Line {
    /// Order of importance: lower ranks are shown first.
    rank: u8,
    text: String,
}

/// The tasks of one asset.
#[derive(Default)]
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
    took_ms: u64,
}

impl<'a> Group<'a> {
    fn add(&mut self, task: &'a Task, now: Timestamp) {
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
            TaskState::RetryWait => self.waiting_to_retry += 1,
            TaskState::Planned | TaskState::Blocked | TaskState::Ready | TaskState::Dispatched => {}
        }
        self.warned |= task.checks_failed > 0;
        self.took_ms += took(task, now).map_or(0, |took| took.get());
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
        if self.took_ms > 0 {
            parts.push(Millis::new(self.took_ms).to_string());
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
        if let Some(progress) = self.busiest.and_then(|task| task.progress.as_ref()) {
            parts.push(
                format!("{} % {}", progress.ppm / 10_000, harmless(&progress.message)).trim_end().to_owned(),
            );
        }
        parts.join("  ")
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
        TaskState::Running | TaskState::RetryWait => ("●", Style::Busy),
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
