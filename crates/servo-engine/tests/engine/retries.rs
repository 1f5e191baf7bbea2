//! Retries, ADR-037 and ADR-038: what is tried again, when, how often, and what does not count.

use std::sync::Arc;

use servo_core::{Millis, Timestamp};
use servo_engine::event::TimerKind;
use servo_engine::{
    ErrorCode, EventData, EventKind, Input, Outcome, Report, RetryPolicy, RunState, Settings, TaskError,
    TaskOptions, TaskState, TimerState, TransitionReason, TriggerRun,
};

use crate::support;
use crate::support::{World, crash, ended_as, key, plan, plan_of, task, user_error};

/// A task whose policy is exact to the millisecond.
fn steady(max_attempts: u32) -> TaskOptions {
    let retry = RetryPolicy { max_attempts, jitter_ppm: 0, ..RetryPolicy::default() };
    TaskOptions { retry: Some(retry), ..TaskOptions::default() }
}

fn with_options(options: TaskOptions) -> World {
    World::with(plan_of(vec![task("a", &[], options)]))
}

fn raised(error_type: &str) -> Report {
    let error = TaskError::new(ErrorCode::UserCodeException, "boom");
    Report::failed(TaskError { error_type: Some(error_type.to_owned()), ..error })
}

fn with_policy(change: impl FnOnce(&mut RetryPolicy)) -> World {
    let mut policy = RetryPolicy { jitter_ppm: 0, ..RetryPolicy::default() };
    change(&mut policy);
    with_options(TaskOptions { retry: Some(policy), ..TaskOptions::default() })
}

#[test]
fn the_wait_doubles_from_failure_to_failure() {
    let mut world = with_options(steady(9));
    for seconds in [2, 4, 8, 16, 32, 64, 128, 256] {
        world.play("a", user_error());
        assert_eq!(world.task_state("a"), TaskState::RetryWait);
        let due = world.now.saturating_add(Millis::from_secs(seconds));
        assert_eq!(world.task("a").retry_at, Some(due));
        world.pass(seconds - 1);
        assert_eq!(world.task_state("a"), TaskState::RetryWait, "a second too soon");
        world.pass(1);
        assert_eq!(world.task_state("a"), TaskState::Ready, "and on its way at once");
        assert_eq!(world.task("a").retry_at, None);
    }
    world.play("a", user_error());
    assert_eq!(world.task_state("a"), TaskState::Failed, "nine attempts, the first included");
    assert_eq!((world.task("a").attempt, world.task("a").failures), (9, 9));
    assert_eq!(world.run_state(), RunState::Failed);
}

#[test]
fn jitter_follows_from_the_attempt_so_a_replay_waits_as_long() {
    let retry = RetryPolicy { jitter_ppm: 500_000, ..RetryPolicy::default() };
    let mut world = with_options(TaskOptions { retry: Some(retry.clone()), ..TaskOptions::default() });
    let attempt = world.attempt("a");
    world.play("a", user_error());
    let wait = retry.delay(1, attempt.attempt_id);
    assert!((Millis::from_secs(1)..=Millis::from_secs(2)).contains(&wait));
    assert_eq!(world.task("a").retry_at, Some(world.now.saturating_add(wait)));
    let replayed = support::fold(&Settings::default(), &world.events());
    assert_eq!(replayed.task(world.run, &key("a")).and_then(|t| t.retry_at), world.task("a").retry_at);
}

#[test]
fn a_retry_is_a_timer_row_from_request_to_fire() {
    let mut world = with_options(steady(3));
    world.play("a", user_error());
    let due: Timestamp = world.now.saturating_add(Millis::from_secs(2));
    let row = world.state().rows().timers.remove(0);
    assert_eq!((*row.timer_type, row.attempt, row.fire_at), (TimerKind::Retry, 1, due));
    assert_eq!(row.state, TimerState::Scheduled);
    assert!(row.timer_id.starts_with("timer:retry:run_") && row.cloud_task_id.starts_with("t_"));
    let requested = world.events().last().expect("an event").clone();
    assert_eq!(requested.data.kind(), EventKind::TimerRequested);
    assert_eq!(requested.idempotency_key, row.timer_id);
    assert_eq!(world.state().next_deadline(), Some(due));

    // An external service says that it has it.
    let EventData::TimerRequested(timer) = requested.data else { panic!("a timer") };
    let armed = servo_engine::event::TimerEnqueued {
        timer_type: timer.timer_type,
        run_id: timer.run_id,
        task_key: timer.task_key,
        attempt: timer.attempt,
        fire_at: timer.fire_at,
    };
    let mut state = world.state().clone();
    state.apply(&support::event(EventData::TimerEnqueued(armed), world.now, 1));
    assert_eq!(state.rows().timers[0].state, TimerState::Enqueued);

    let step = world.pass(2);
    let kinds: Vec<_> = step.events.iter().map(|e| e.data.kind().name()).collect();
    assert_eq!(kinds, ["TimerFired", "DispatchRequested"], "one step");
    assert!(world.state().rows().timers.is_empty(), "the row goes with the attempt it was for");
    assert_eq!(world.task("a").reason, TransitionReason::RetryTimerExpired);
}

#[test]
fn a_wait_of_nothing_is_tried_again_in_the_same_step() {
    let mut world = with_policy(|p| p.initial_delay_ms = Millis::ZERO);
    world.play("a", user_error());
    assert_eq!((world.task_state("a"), world.task("a").attempt), (TaskState::Ready, 2));
}

#[test]
fn without_a_policy_user_errors_fail_at_once() {
    for code in [ErrorCode::UserCodeException, ErrorCode::MissingInput, ErrorCode::InvalidDefinition] {
        let mut world = World::with(plan(&[("a", &[])]));
        world.play("a", Report::failed(TaskError::new(code, "boom")));
        assert_eq!(world.task_state("a"), TaskState::Failed, "{code:?}");
    }
    let mut world = World::with(plan(&[("a", &[])]));
    world.play("a", ended_as(Outcome::Failed));
    assert_eq!(world.task_state("a"), TaskState::Failed, "a failure that says nothing is the user's");
}

#[test]
fn without_a_policy_infrastructure_and_timeouts_get_three_attempts() {
    let lost = || Report::failed(TaskError::new(ErrorCode::NetworkError, "reset"));
    for report in [crash as fn() -> Report, lost, || ended_as(Outcome::TimedOut)] {
        let mut world = World::with(plan(&[("a", &[])]));
        for _ in 0..2 {
            world.play("a", report());
            assert_eq!(world.task_state("a"), TaskState::RetryWait);
            world.pass(3_600);
        }
        world.play("a", report());
        assert_eq!((world.task_state("a"), world.task("a").failures), (TaskState::Failed, 3));
    }
}

#[test]
fn a_policy_retries_user_errors_too() {
    let mut world = with_options(steady(2));
    world.play("a", user_error());
    assert_eq!(world.task_state("a"), TaskState::RetryWait);
    let mut once = with_options(steady(1));
    once.play("a", crash());
    assert_eq!(once.task_state("a"), TaskState::Failed, "one attempt is one attempt");
}

#[test]
fn retry_on_narrows_user_errors_to_the_types_it_names() {
    for (report, expected) in [
        (raised("Flaky"), TaskState::RetryWait),
        (raised("ValueError"), TaskState::Failed),
        (user_error(), TaskState::Failed),
        (crash(), TaskState::RetryWait),
    ] {
        let mut world = with_policy(|p| p.retry_on = vec!["Flaky".to_owned()]);
        world.play("a", report);
        assert_eq!(world.task_state("a"), expected);
    }
}

#[test]
fn no_retry_on_takes_types_out() {
    let fatal_crash = {
        let error = TaskError::new(ErrorCode::WorkerCrash, "gone");
        Report::failed(TaskError { error_type: Some("Fatal".to_owned()), ..error })
    };
    for (report, expected) in [
        (raised("Fatal"), TaskState::Failed),
        (fatal_crash, TaskState::Failed),
        (raised("ValueError"), TaskState::RetryWait),
    ] {
        let mut world = with_policy(|p| p.no_retry_on = vec!["Fatal".to_owned()]);
        world.play("a", report);
        assert_eq!(world.task_state("a"), expected);
    }
}

#[test]
fn a_worker_that_stops_without_being_asked_to_has_failed_the_task_for_good() {
    let mut world = with_options(steady(5));
    world.play("a", ended_as(Outcome::Cancelled));
    assert_eq!(world.task_state("a"), TaskState::Failed);
    assert_eq!(world.task("a").error.as_ref().map(|e| e.code), Some(ErrorCode::Cancelled));
}

#[test]
fn silence_fails_the_attempt_and_the_task_is_tried_again() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    world.pass(60);
    world.beat("a").expect("beats");
    world.pass(89);
    assert_eq!(world.task_state("a"), TaskState::Running, "sixty seconds and thirty of grace");
    world.pass(1);
    let task = world.task("a");
    assert_eq!((task.state, task.reason), (TaskState::RetryWait, TransitionReason::RetryScheduled));
    assert_eq!(task.past_attempts[0].reason, TransitionReason::HeartbeatTimeout);
    assert_eq!(task.failures, 1, "it counts");
    let error = task.error.clone().expect("it says why");
    assert_eq!(error.code, ErrorCode::HeartbeatLost);
    assert_eq!(error.message, "no heartbeat from worker w1 for 1m30s");
    assert_eq!(world.state().outstanding(), 0, "its slot is free");
}

#[test]
fn a_task_may_ask_for_a_longer_silence() {
    let options =
        TaskOptions { heartbeat_timeout_ms: Some(Millis::from_minutes(10)), ..TaskOptions::default() };
    let mut world = with_options(options);
    world.start("a").expect("starts");
    world.pass(629);
    assert_eq!(world.task_state("a"), TaskState::Running);
    world.pass(1);
    assert_eq!(world.task_state("a"), TaskState::RetryWait);
}

#[test]
fn interruptions_use_up_no_attempt() {
    let mut world = with_options(steady(2));
    for lost in 1..=10 {
        world.play("a", ended_as(Outcome::Interrupted));
        let task = world.task("a");
        assert_eq!((task.state, task.failures, task.interruptions), (TaskState::Ready, 0, lost));
        assert_eq!(task.attempt, lost + 1, "dispatched again at once");
    }
    world.play("a", user_error());
    assert_eq!(world.task_state("a"), TaskState::RetryWait, "the first failure of two");
    assert_eq!(world.task("a").interruptions, 0, "and the row of losses is broken");
}

#[test]
fn interruptions_in_a_row_are_bounded() {
    let mut world = World::new(Settings { max_interruptions: 3, ..Settings::default() });
    world.trigger(TriggerRun::new("k", plan(&[("a", &[]), ("b", &["a"])]), "me"));
    for _ in 0..3 {
        world.play("a", ended_as(Outcome::Interrupted));
    }
    assert_eq!(world.task_state("a"), TaskState::Ready);
    world.play("a", ended_as(Outcome::Interrupted));
    assert_eq!(world.task_state("a"), TaskState::Failed);
    let error = world.task("a").error.clone().expect("it says why");
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::Interrupted, "lost 4 times in a row before it could end")
    );
    assert_eq!(world.task_state("b"), TaskState::Skipped);
}

#[test]
fn a_lost_worker_interrupts_what_it_ran_and_nothing_else() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[]), ("c", &[])]));
    for (name, worker) in [("a", "host-1/0"), ("b", "host-1/1"), ("c", "host-2/0")] {
        let started = Input::Started(world.attempt(name), Arc::from(worker));
        world.ask(started).expect("starts");
    }
    world.ask(Input::WorkersLost(Arc::from("host-1/"))).expect("noted");
    for name in ["a", "b"] {
        assert_eq!((world.task_state(name), world.task(name).attempt), (TaskState::Ready, 2));
        assert_eq!((world.task(name).reason, world.task(name).failures), (TransitionReason::Interrupted, 0));
    }
    assert_eq!((world.task_state("c"), world.task("c").attempt), (TaskState::Running, 1));
}

#[test]
fn a_dispatch_that_nobody_takes_is_repeated_for_as_long_as_it_takes() {
    let mut world = World::new(Settings { max_interruptions: 2, ..Settings::default() });
    world.trigger(TriggerRun::new("k", plan(&[("a", &[])]), "me"));
    for lost in 1..=20 {
        world.enqueue("a").expect("enqueued");
        world.pass(29);
        assert_eq!(world.task_state("a"), TaskState::Dispatched);
        world.pass(1);
        let task = world.task("a");
        assert_eq!((task.attempt, task.failures, task.interruptions), (lost + 1, 0, 0));
        assert_eq!(task.reason, TransitionReason::DispatchAckTimeout);
    }
}

#[test]
fn an_outbox_row_that_no_queue_takes_is_handed_out_as_a_new_attempt() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.pass(299);
    assert_eq!(world.task("a").attempt, 1);
    let step = world.pass(1);
    assert_eq!(world.task("a").attempt, 2);
    assert_eq!(step.effects.len(), 1);
}

#[test]
fn each_attempt_has_its_own_token_and_dispatch() {
    let mut world = World::with(plan(&[("a", &[])]));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let attempt = world.attempt("a");
        assert!(seen.insert((attempt.attempt, attempt.attempt_id)));
        assert_eq!(world.state().rows().outbox.len(), 1, "only the newest is in the outbox");
        world.play("a", ended_as(Outcome::Interrupted));
    }
}

#[test]
fn a_new_attempt_starts_from_a_clean_row_and_keeps_the_last_error() {
    let mut world = with_options(steady(3));
    world.start("a").expect("starts");
    let progress = Some(servo_engine::Progress { ppm: 500_000, message: "half".to_owned() });
    world.wait(1);
    let beat = Input::Heartbeat(world.attempt("a"), world.now, progress.clone());
    world.ask(beat).expect("beats");
    assert_eq!(world.task("a").execution.as_ref().unwrap().progress, progress);
    world.finish("a", user_error()).expect("fails");
    world.pass(60);
    let task = world.task("a");
    assert_eq!((task.attempt, task.state), (2, TaskState::Ready));
    assert!(task.execution.is_none() && task.dispatched_at.is_none());
    assert_eq!(task.error.as_ref().map(|e| e.message.as_str()), Some("boom"));
}
