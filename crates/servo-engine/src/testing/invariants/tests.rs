//! Invariants of runs notice what they are for: a good state is broken by hand, one thing at a time.

use servo_core::{EventId, Millis, TaskKey, TenantId, Timestamp, WorkspaceId};

use super::{absorbs, check, check_at_rest, check_totals};
use crate::lifecycle::{Resolution, RunState, TransitionReason};
use crate::state::{Rest, State};
use crate::{
    Attempt, Engine, ErrorCode, Input, Plan, Report, Settings, TaskError, TaskOptions, TaskRequest,
    TriggerRun,
};

const NOW: Timestamp = Timestamp::from_millis(1_736_899_200_000);

fn key(name: &str) -> TaskKey {
    TaskKey::parse(&format!("t/{name}:materialize")).unwrap()
}

/// `a` has succeeded, `b` behind it runs, `c` has failed, `d` behind it is skipped, `e` and `f` share the second slot.
fn engine() -> Engine {
    let (tenant, workspace) = (TenantId::parse("acme").unwrap(), WorkspaceId::parse("prod").unwrap());
    let task = |name: &str, upstream: &[&str]| TaskRequest {
        key: key(name),
        upstream: upstream.iter().map(|up| key(up)).collect(),
        options: TaskOptions::default(),
    };
    let tasks = vec![
        task("a", &[]),
        task("b", &["a"]),
        task("c", &[]),
        task("d", &["c"]),
        task("e", &[]),
        task("f", &[]),
    ];
    let plan = Plan::build(&tenant, &workspace, tasks, 10).unwrap();
    let settings = Settings { max_concurrent_tasks: 2, ..Settings::default() };
    let mut engine = Engine::new(State::new(tenant, workspace).with_settings(&settings), *b"secret");
    engine.step(&[Input::Trigger(TriggerRun::new("k", plan, "me"))], NOW);
    let boom = || Report::failed(TaskError::new(ErrorCode::UserCodeException, "boom"));
    for (name, report) in [("a", Report::succeeded()), ("c", boom())] {
        let attempt = attempt(engine.state(), name);
        engine.step(&[Input::Started(attempt.clone(), "w".into()), Input::Finished(attempt, report)], NOW);
    }
    check(engine.state()).expect("what an engine does is right");
    engine
}

fn attempt(state: &State, name: &str) -> Attempt {
    let run = state.runs().next().unwrap();
    let task = state.task(run.id, &key(name)).unwrap();
    Attempt {
        run_id: run.id,
        task_key: task.key.clone(),
        attempt: task.attempt,
        attempt_id: task.attempt_id.unwrap(),
    }
}

fn settings(state: &mut State) -> &mut Settings {
    std::sync::Arc::make_mut(&mut state.settings)
}

fn first_run(state: &mut State) -> &mut crate::Run {
    let first = state.runs.keys().next().copied().unwrap();
    state.runs.get_mut(&first).map(std::sync::Arc::make_mut).unwrap()
}

#[test]
fn a_broken_state_is_noticed() {
    type Break = fn(&mut State);
    let breaks: [(&str, Break); 12] = [
        ("runs at work stay within the limit", |state| settings(state).max_concurrent_runs = 0),
        ("a slot is held by an open attempt", |state| state.index.outstanding += 1),
        ("open attempts stay within the limit", |state| settings(state).max_concurrent_tasks = 1),
        ("no slot stays free", |state| settings(state).max_concurrent_tasks = 3),
        ("what waits for a slot is ready", |state| state.index.waiting = 0),
        ("the next deadline is the first of all", |state| state.index.deadlines.clear()),
        ("a run ends when, and only when", |state| first_run(state).state = RunState::Failed),
        ("a task is counted once", |state| first_run(state).counts.failed += 6),
        ("the ends of tasks are counted right", |state| {
            first_run(state).counts.failed -= 1;
            first_run(state).counts.cancelled += 1;
        }),
        ("an edge is resolved as its upstream ended", |state| {
            first_run(state).edges[0].resolution = Some(Resolution::Failed);
        }),
        ("each satisfied edge counts once", |state| first_run(state).tasks[1].deps_satisfied += 1),
        ("a skipped task names the first failure", |state| first_run(state).tasks[3].caused_by = Some(0)),
    ];
    for (invariant, break_it) in breaks {
        let mut state = engine().state().clone();
        break_it(&mut state);
        let violation = check(&state).expect_err(invariant);
        assert!(violation.invariant.starts_with(invariant), "{violation}");
    }
}

#[test]
fn a_leaked_slot_is_noticed_by_the_totals_alone() {
    let mut state = engine().state().clone();
    check_totals(&state).expect("it is right");
    state.index.outstanding += 1;
    check_totals(&state).expect_err("a slot too many");
}

#[test]
fn what_is_left_after_work_is_noticed() {
    let mut engine = engine();
    let violation = check_at_rest(engine.state()).expect_err("there is work");
    assert!(violation.invariant.starts_with("work that has ended leaves nothing to do"), "{violation}");
    for name in ["b", "e", "f"] {
        let attempt = attempt(engine.state(), name);
        engine.step(
            &[Input::Started(attempt.clone(), "w".into()), Input::Finished(attempt, Report::succeeded())],
            NOW,
        );
    }
    check_at_rest(engine.state()).expect("all has ended");
    type Break = fn(&mut State);
    let breaks: [(&str, Break); 4] = [
        ("work that has ended leaves nothing to do", |state| state.index.outstanding += 1),
        ("work that has ended leaves no deadline", |state| {
            let run = state.runs.keys().next().copied().unwrap();
            state.index.deadlines.insert((NOW, crate::state::Deadline::Run(run)));
        }),
        ("tasks of kept runs are counted right", |state| state.recent_tasks += 1),
        ("ended runs leave memory", |state| {
            let mut twin = first_run(state).clone();
            twin.id = servo_core::RunId::from_u128(1);
            state.recent_tasks += twin.tasks.len();
            state.recent.insert((twin.version, twin.id), ());
            state.runs.insert(twin.id, twin.into());
            settings(state).recent_runs = 1;
        }),
    ];
    for (invariant, break_it) in breaks {
        let mut state = engine.state().clone();
        break_it(&mut state);
        let violation = check_at_rest(&state).expect_err(invariant);
        assert!(violation.invariant.starts_with(invariant), "{violation}");
    }
}

#[test]
fn a_task_that_begins_before_its_dependencies_is_noticed() {
    let mut state = engine().state().clone();
    let run = first_run(&mut state);
    run.tasks[3].enter(Rest::Ready, TransitionReason::DependenciesSatisfied, NOW);
    run.tasks[3].caused_by = None;
    assert!(super::runs::check(run).is_err());
}

#[test]
fn what_has_ended_and_is_remembered_stays_so() {
    let mut engine = engine();
    let before = engine.state().clone();
    let attempt = attempt(engine.state(), "b");
    let later = NOW.saturating_add(Millis::from_secs(1));
    engine.step(
        &[Input::Started(attempt.clone(), "w".into()), Input::Finished(attempt, Report::succeeded())],
        later,
    );
    let after = engine.state().clone();
    absorbs(&before, &after).expect("the engine absorbs");
    type Break = fn(&mut State);
    let breaks: [(&str, Break); 6] = [
        ("the fold goes forward", |state| state.head.last_event = EventId::NIL),
        ("an ended task stays as it ended", |state| first_run(state).tasks[0].failures += 1),
        ("attempts, failures and satisfied edges", |state| first_run(state).tasks[1].attempt = 0),
        ("an edge is resolved once", |state| first_run(state).edges[0].resolution = None),
        ("only the oldest ended runs leave memory", |state| state.runs = Default::default()),
        ("the key of a run stays known", |state| state.run_keys = crate::state::RunKeyIndex::default()),
    ];
    for (invariant, break_it) in breaks {
        let mut broken = after.clone();
        break_it(&mut broken);
        let violation = absorbs(&before, &broken).expect_err(invariant);
        assert!(violation.invariant.starts_with(invariant), "{violation}");
    }
}
