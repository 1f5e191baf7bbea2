//! One run: its counts, its edges, and what each task owes to the tasks before it.

use super::{Violation, ensure, same};
use crate::fold::is_blocked;
use crate::lifecycle::{Resolution, TaskState};
use crate::state::{Counts, Run, RunSet, Task};

pub(super) fn check(run: &Run) -> Result<(), Violation> {
    let about = || run.id.to_string();
    let mut counts = Counts::default();
    run.tasks.iter().for_each(|task| counts.add(task.state));
    same("the ends of tasks are counted right", about, run.counts, counts)?;
    let ended = run.state.is_terminal();
    same("an ended run has a time at which it ended", about, run.finished_at.is_some(), ended)?;
    same("an ended run has an event that ended it", about, run.finished_event.is_some(), ended)?;
    let mut satisfied = vec![0; run.tasks.len()];
    let mut edges_in = vec![0; run.tasks.len()];
    for edge in &run.edges {
        let (upstream, downstream) =
            (&run.tasks[edge.upstream as usize], &run.tasks[edge.downstream as usize]);
        let about = || format!("{} {} -> {}", run.id, upstream.key, downstream.key);
        same(
            "an edge is resolved as its upstream ended",
            about,
            edge.resolution,
            resolution(upstream, downstream),
        )?;
        edges_in[edge.downstream as usize] += 1;
        let is_satisfied = matches!(edge.resolution, Some(Resolution::Success | Resolution::Previous));
        satisfied[edge.downstream as usize] += u32::from(is_satisfied);
    }
    for set in &run.sets {
        check_set(run, set)?;
        let edges = set.set.upstream.len() as u32;
        for downstream in set.set.downstream.iter() {
            edges_in[downstream as usize] += edges;
            satisfied[downstream as usize] += if set.is_complete() { edges } else { 0 };
        }
    }
    let causes = causes(run);
    for (position, task) in run.tasks.iter().enumerate() {
        let about = || format!("{} {}", run.id, task.key);
        same("every edge into a task is a dependency", about, task.deps_total, edges_in[position])?;
        same("each satisfied edge counts once", about, task.deps_satisfied, satisfied[position])?;
        same("a skipped task names the first failure before it", about, task.caused_by, causes[position])?;
        check_task(task, &about)?;
    }
    Ok(())
}

/// A set is what its tasks say.
fn check_set(run: &Run, set: &RunSet) -> Result<(), Violation> {
    let about = || format!("{} {:?}", run.id, set.set);
    let mut alone = run.clone();
    alone.sets = vec![RunSet::new(set.set.clone(), set.version)];
    alone.recount_sets();
    same("a set follows from its tasks", about, set, &alone.sets[0])?;
    let Some(first) = set.set.downstream.iter().next() else { return Ok(()) };
    let previous = |task: u32| &run.tasks[task as usize].options.previous;
    let is_alike = set.set.downstream.iter().all(|task| previous(task) == previous(first));
    ensure(is_alike, "tasks of a set read what was there before a block all alike", about)
}

fn check_task(task: &Task, about: &impl Fn() -> String) -> Result<(), Violation> {
    let has_begun = task.attempt > 0 || task.state == TaskState::Ready;
    ensure(
        !has_begun || task.deps_satisfied == task.deps_total,
        "no task begins before its dependencies",
        || format!("{} is {} with {}/{}", about(), task.state, task.deps_satisfied, task.deps_total),
    )?;
    let is_skipped = task.state == TaskState::Skipped;
    same("a task with a cause is skipped", about, is_skipped, task.caused_by.is_some())?;
    let ended = task.state.is_terminal();
    same("an ended task has a time at which it ended", about, task.finished_at.is_some(), ended)?;
    let waits = task.state == TaskState::RetryWait;
    same("a task waits for a retry with a time", about, task.retry_at.is_some(), waits)?;
    same("an attempt has a token", about, task.attempt_id.is_some(), task.attempt > 0)?;
    ensure(
        task.materialization.is_none() || task.state == TaskState::Succeeded,
        "only what succeeded has made something",
        || format!("{} is {} with {:?}", about(), task.state, task.materialization),
    )?;
    let past = task.past_attempts.iter().map(|past| past.attempt);
    let is_in_order =
        past.clone().is_sorted_by(|a, b| a < b) && past.clone().all(|past| past <= task.attempt);
    ensure(is_in_order, "past attempts are in order, and none is newer than the newest", || {
        format!("{} at attempt {}: {:?}", about(), task.attempt, past.collect::<Vec<_>>())
    })
}

fn resolution(upstream: &Task, downstream: &Task) -> Option<Resolution> {
    let reads_before = upstream.assets().any(|asset| downstream.options.previous.contains(&asset));
    match upstream.state {
        TaskState::Succeeded => Some(Resolution::Success),
        TaskState::Failed if reads_before && is_blocked(upstream) => Some(Resolution::Previous),
        TaskState::Failed => Some(Resolution::Failed),
        TaskState::Skipped => Some(Resolution::Skipped),
        TaskState::Cancelled => Some(Resolution::Cancelled),
        TaskState::Planned
        | TaskState::Blocked
        | TaskState::Ready
        | TaskState::Dispatched
        | TaskState::Running
        | TaskState::RetryWait => None,
    }
}

/// For each task the failed task before it, near or far, whose event was the first.
fn causes(run: &Run) -> Vec<Option<u32>> {
    let mut causes = vec![None; run.tasks.len()];
    let mut done = vec![false; run.sets.len()];
    let mut failures: Vec<u32> = (0u32..)
        .zip(&run.tasks)
        .filter(|(_, task)| task.state == TaskState::Failed)
        .map(|(at, _)| at)
        .collect();
    failures.sort_by_key(|failed| run.tasks[*failed as usize].finished_event);
    for failed in failures {
        let mut todo = vec![failed];
        while let Some(next) = todo.pop() {
            let paired = run.edges_out(next).map(|position| &run.edges[position]);
            let mut behind: Vec<u32> = paired
                .filter(|edge| edge.resolution != Some(Resolution::Previous))
                .map(|edge| edge.downstream)
                .collect();
            for (number, set) in run.sets.iter().enumerate() {
                let Some(first) = set.set.downstream.iter().next() else { continue };
                let previous = &run.tasks[first as usize].options.previous;
                let passes =
                    Resolution::of(&run.tasks[next as usize], previous) == Some(Resolution::Previous);
                if set.set.upstream.contains(next) && !passes && !std::mem::replace(&mut done[number], true) {
                    behind.extend(set.set.downstream.iter());
                }
            }
            for downstream in behind {
                // Failures come in order, so that whoever has a cause has the first.
                let cause = &mut causes[downstream as usize];
                if cause.is_none() {
                    *cause = Some(failed);
                    todo.push(downstream);
                }
            }
        }
    }
    causes
}
