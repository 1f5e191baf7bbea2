//! Ended runs and tasks never change, and remembered keys stay remembered.

use super::{Violation, ensure, same};
use crate::lifecycle::RunState;
use crate::state::{ANSWER_WINDOW, Deadline, Run, State, Task};

/// Checks that `after` preserves the final facts of `before`, an earlier state of the same workspace.
///
/// Ended runs and tasks are as they were, unless their run was aged out of memory; attempts, failures and satisfied
/// edges never go down; requests are remembered for as long as the settings say.
pub fn absorbs(before: &State, after: &State) -> Result<(), Violation> {
    let (old, new) = (before.head(), after.head());
    ensure(new.seq >= old.seq && new.last_event >= old.last_event, "the fold goes forward", || {
        format!("from batch {} ({}) to {} ({})", old.seq, old.last_event, new.seq, new.last_event)
    })?;
    for run in before.runs() {
        match after.run(run.id) {
            // A key that was forgotten may name another run.
            Some(later) if later.requested != run.requested => aged_out(run, after)?,
            Some(later) => run_absorbs(run, later)?,
            None => aged_out(run, after)?,
        }
    }
    remembers(before, after)
}

fn run_absorbs(before: &Run, after: &Run) -> Result<(), Violation> {
    let about = || before.id.to_string();
    if before.state.is_terminal() {
        let end = |run: &Run| (run.state, run.reason, run.finished_at, run.finished_event, run.counts);
        same("an ended run stays as it ended", about, end(after), end(before))?;
    }
    let stops = |state: RunState| state.is_terminal() || state == RunState::Cancelling;
    ensure(before.cancel.is_none() || stops(after.state), "a cancelled run stays cancelled", || {
        format!("{} is {}", before.id, after.state)
    })?;
    ensure(
        before.plan.is_none() || (after.plan == before.plan && after.tasks.len() == before.tasks.len()),
        "a run keeps its plan",
        about,
    )?;
    for (old, new) in before.tasks.iter().zip(&after.tasks) {
        task_absorbs(before, old, new)?;
    }
    for (old, new) in before.edges.iter().zip(&after.edges) {
        ensure(
            old.resolution.is_none() || old.resolution == new.resolution,
            "an edge is resolved once",
            || format!("{} {} -> {}", before.id, old.upstream, old.downstream),
        )?;
    }
    Ok(())
}

fn task_absorbs(run: &Run, before: &Task, after: &Task) -> Result<(), Violation> {
    let about = || format!("{} {}", run.id, before.key);
    if before.state.is_terminal() {
        let end = |task: &Task| {
            (task.state, task.reason, task.attempt, task.attempt_id, task.failures, task.materialization)
        };
        same("an ended task stays as it ended", about, end(after), end(before))?;
    }
    let counters = |task: &Task| [task.attempt, task.failures, task.deps_satisfied];
    let is_growing = counters(before).iter().zip(counters(after)).all(|(old, new)| *old <= new);
    ensure(is_growing, "attempts, failures and satisfied edges never go down", || {
        format!("{}: {:?} after {:?}", about(), counters(after), counters(before))
    })
}

/// A run that is gone has ended, and before those that are not.
fn aged_out(run: &Run, after: &State) -> Result<(), Violation> {
    let oldest = after.recent.keys().next().map(|(ended, _)| *ended);
    let is_awaited = || after.index.deadlines.iter().any(|(_, about)| *about == Deadline::Run(run.id));
    let is_older = match oldest {
        Some(oldest) => run.finished_event.is_none_or(|ended| ended < oldest),
        // The last to end was larger than all that may stay.
        None => !is_awaited(),
    };
    ensure(is_older, "only the oldest ended runs leave memory", || {
        format!("{} ({}) is gone", run.id, run.state)
    })
}

fn remembers(before: &State, after: &State) -> Result<(), Violation> {
    let settings = after.settings();
    let oldest = after.head().elapsed.get().saturating_sub(settings.dedup_window.get());
    let is_full = |known: usize| known >= settings.dedup_entries;
    for entry in before.run_keys.entries() {
        let is_known = after.run_keys.get(entry.run_id) == Some(entry.fingerprint());
        ensure(
            is_known || entry.requested <= after.run_keys.in_files(),
            "the key of a run stays known, in memory or in files",
            || format!("{} of {}", entry.run_id, entry.requested),
        )?;
    }
    for entry in before.answers.entries() {
        let is_old = after.head().elapsed.get() > entry.elapsed.get() + ANSWER_WINDOW.get();
        ensure(
            is_old
                || is_full(after.answers.entries().len())
                || after.answers.get(entry.key_hash, after.head().elapsed) == Some(&entry),
            "an answer is given again for a day",
            || format!("{:x} of {}", entry.key_hash, entry.elapsed),
        )?;
    }
    let keys = after.idempotency.entries().len();
    for entry in before.idempotency.entries() {
        ensure(
            entry.elapsed.get() < oldest || is_full(keys) || after.idempotency.contains(entry.key_hash),
            "a request stays known",
            || format!("{:x} of {}, window {}", entry.key_hash, entry.elapsed, settings.dedup_window),
        )?;
    }
    Ok(())
}
