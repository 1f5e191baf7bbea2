//! How far a run is, how fast it goes, and when it may be done.

use std::fmt;

use servo_api::views::RunWithTasks;
use servo_core::{Millis, Timestamp};
use servo_engine::TaskState;

use super::rounded;

/// Tasks that must have ended before their pace says something about the rest.
const FEWEST: usize = 3;

/// Figures of a run that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    total: usize,
    done: usize,
    running: usize,
    failed: usize,
    waiting_to_retry: usize,
    /// Skipped and cancelled: nobody waits for them.
    left_out: usize,
    /// By the clock on the wall.
    elapsed: Millis,
}

impl Pace {
    /// The figures of a run now.
    pub(crate) fn of(seen: &RunWithTasks, now: Timestamp) -> Self {
        let elapsed = seen.run.started_at.map_or(Millis::ZERO, |from| now.since(from));
        let total = seen.tasks.len();
        let mut pace =
            Self { total, done: 0, running: 0, failed: 0, waiting_to_retry: 0, left_out: 0, elapsed };
        for task in &seen.tasks {
            match task.state {
                TaskState::Succeeded => pace.done += 1,
                TaskState::Running => pace.running += 1,
                TaskState::Failed => pace.failed += 1,
                TaskState::RetryWait => pace.waiting_to_retry += 1,
                TaskState::Skipped | TaskState::Cancelled => pace.left_out += 1,
                TaskState::Planned | TaskState::Blocked | TaskState::Ready | TaskState::Dispatched => {}
            }
        }
        pace
    }

    /// Ended tasks per thousand seconds; none before there are enough of them.
    fn rate(&self) -> Option<u64> {
        let ended = (self.done + self.failed) as u64;
        let is_known = self.done + self.failed >= FEWEST && self.elapsed.get() >= 1_000;
        is_known.then(|| ended * 1_000_000 / self.elapsed.get())
    }

    /// How long the rest takes at this pace.
    fn rest(&self) -> Option<Millis> {
        let left = self.total - self.done - self.failed - self.left_out - self.waiting_to_retry;
        let rate = self.rate().filter(|rate| *rate > 0 && left > 0)?;
        let rest = Millis::new(left as u64 * 1_000_000 / rate);
        // The last ones take as long as they take.
        (rest.get() >= 1_000).then_some(rest)
    }
}

/// `12/365 done, 2 running, 1 failed, 3.4/s, about 1m40s left, 3.5s so far`.
impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} done", self.done, self.total)?;
        for (count, what) in [
            (self.running, "running"),
            (self.failed, "failed"),
            (self.left_out, "skipped or cancelled"),
            (self.waiting_to_retry, "waiting to retry"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if let Some(rate) = self.rate() {
            match rate {
                slow @ 0..17 => write!(f, ", {}/h", slow * 3_600 / 1_000)?,
                middling @ 17..1_000 => write!(f, ", {}/min", middling * 60 / 1_000)?,
                fast => write!(f, ", {}.{}/s", fast / 1_000, fast % 1_000 / 100)?,
            }
        }
        if let Some(rest) = self.rest() {
            write!(f, ", about {} left", rounded(rest))?;
        }
        write!(f, ", {} so far", rounded(self.elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_told_by_the_clock_on_the_wall() {
        let pace = Pace {
            total: 100,
            done: 39,
            running: 2,
            failed: 1,
            waiting_to_retry: 1,
            left_out: 10,
            elapsed: Millis::from_secs(20),
        };
        assert_eq!(
            pace.to_string(),
            "39/100 done, 2 running, 1 failed, 10 skipped or cancelled, 1 waiting to retry, 2.0/s, about 24s left, \
             20s so far"
        );
        let slow = Pace { done: 4, failed: 0, left_out: 0, elapsed: Millis::from_minutes(8), ..pace };
        assert_eq!(
            slow.to_string(),
            "4/100 done, 2 running, 1 waiting to retry, 28/h, about 3h17m55s left, 8m so far"
        );
        let new = Pace { done: 2, failed: 0, left_out: 0, ..pace };
        assert_eq!(new.to_string(), "2/100 done, 2 running, 1 waiting to retry, 20s so far");
    }
}
