//! Checks the indexes of slots, waiting tasks and deadlines against the rows.

use super::{Violation, ensure, same};
use crate::lifecycle::{RunState, TaskState};
use crate::state::{Run, State};

/// Slots and counts alone. Looks at the tasks of active runs, and once at each ended run; allocates nothing.
pub fn check_totals(state: &State) -> Result<(), Violation> {
    let (mut outstanding, mut waiting, mut active) = (0, 0, 0);
    // A limit that was lowered holds for what came after that.
    let limited_by = |name: &str| state.changed_settings.row(name).map(|row| row.row_version);
    let (tasks_limited_by, runs_limited_by) =
        (limited_by("max_concurrent_tasks"), limited_by("max_concurrent_runs"));
    let (mut new_attempts, mut new_runs, mut queued) = (0, 0, 0);
    for run in state.runs() {
        check_counts(run)?;
        if run.state.is_terminal() {
            continue;
        }
        active += 1;
        queued += usize::from(run.state == RunState::Queued);
        new_runs += usize::from(run.started_at.is_some() && Some(run.requested) > runs_limited_by);
        for task in &run.tasks {
            let open = task.has_open_attempt();
            outstanding += u32::from(open);
            new_attempts += u32::from(open && task.inputs_as_of > tasks_limited_by);
            waiting += usize::from(task.state == TaskState::Ready && !open);
        }
    }
    let limit = state.settings().max_concurrent_tasks;
    let workspace = || state.workspace().as_str().to_owned();
    same("runs at work are counted right", workspace, state.active_runs(), active)?;
    let runs = state.settings().max_concurrent_runs;
    ensure(new_runs <= runs as usize, "runs at work stay within the limit", || {
        format!("{active} of {runs}")
    })?;
    same(
        "a slot is held by an open attempt, and by nothing else",
        workspace,
        state.outstanding(),
        outstanding,
    )?;
    ensure(new_attempts <= limit, "open attempts stay within the limit", || {
        format!("{outstanding} of {limit}")
    })?;
    same("what waits for a slot is ready without an open attempt", workspace, state.waiting(), waiting)?;
    same("queued runs are counted right", workspace, state.queued_runs(), queued)?;
    let mut fresh = state.clone();
    fresh.follow_making();
    let making = (state.conditions.all_making(), fresh.conditions.all_making());
    same("what is being made follows from the runs", workspace, making.0, making.1)?;
    no_wait_without_reason(state)
}

/// Whatever waits for a slot or a place has a reason to (ADR-097): none stays free, and none leaks.
fn no_wait_without_reason(state: &State) -> Result<(), Violation> {
    let index = state.fresh_index();
    for run in state.runs().filter(|run| !run.state.is_terminal()) {
        let why = crate::why::why_with(state, &index, run);
        let is_stuck = run.state == RunState::Queued && why.waits.is_empty();
        ensure(!is_stuck, "no place stays free while a run waits for one", || run.id.to_string())?;
        for task in why.tasks {
            let about = || format!("{} of {}", task.task_key, run.id);
            ensure(!task.waits.is_empty(), "no slot stays free while a task waits for one", about)?;
        }
    }
    Ok(())
}

/// A run has ended when, and only when, it counts all its tasks as ended.
fn check_counts(run: &Run) -> Result<(), Violation> {
    let ended = run.counts.ended() as usize;
    let about = || format!("{} is {} with {ended} of {} tasks ended", run.id, run.state, run.tasks.len());
    ensure(ended <= run.tasks.len(), "a task is counted once", about)?;
    // A run without tasks ends by being stopped, so that nothing follows from its counts.
    let all = ended == run.tasks.len();
    ensure(
        run.state.is_terminal() == all || run.tasks.is_empty(),
        "a run ends when, and only when, its tasks have",
        about,
    )
}

/// A workspace that has nothing to do holds what it keeps, and nothing else: memory is back at its floor.
pub fn check_at_rest(state: &State) -> Result<(), Violation> {
    let index = &state.index;
    let workspace = || state.workspace().as_str().to_owned();
    let left = (state.active_runs(), index.outstanding, index.waiting, index.unarmed.len());
    same("work that has ended leaves nothing to do", workspace, left, (0, 0, 0, 0))?;
    same("work that has ended leaves no deadline", workspace, index.deadlines.len(), 0)?;
    let (runs, tasks) = (state.runs.len(), state.runs.values().map(|run| run.tasks.len()).sum());
    same("tasks of kept runs are counted right", workspace, state.recent_tasks, tasks)?;
    let settings = state.settings();
    let within = runs <= settings.recent_runs && tasks <= settings.recent_tasks;
    ensure(runs <= 1 || within, "ended runs leave memory", || {
        format!("{runs} runs of {tasks} tasks are kept")
    })
}

/// The next deadline is the first of all there are.
pub(super) fn check_deadlines(state: &State) -> Result<(), Violation> {
    let settings = state.settings();
    let of_runs = state.runs().filter_map(|run| run.deadline(settings));
    let tasks = state.runs().flat_map(|run| &run.tasks);
    let of_tasks = tasks.filter_map(|task| task.deadline(settings).map(|(at, _)| at));
    let first = of_runs.chain(of_tasks).min();
    let workspace = || state.workspace().as_str().to_owned();
    same("the next deadline is the first of all", workspace, state.next_deadline(), first)
}
