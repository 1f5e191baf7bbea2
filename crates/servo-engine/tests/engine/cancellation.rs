//! Cancellation, ADR-052: the table, late results, force, timeouts, and asking twice.

use std::sync::Arc;

use servo_core::{MaterializationId, Millis};
use servo_engine::{
    Attempt, Caller, CancelCause, Change, EventKind, Finish, HeartbeatReply, Input, OutboxStatus, Outcome,
    Refusal, RefusalKind, Reply, Report, RunRequest, RunState, RunTransitionReason, Settings, TaskState,
    TimerState, TransitionReason, TriggerRun,
};

use crate::support::{World, crash, ended_as, fold, key, plan};

fn one_task() -> World {
    World::with(plan(&[("a", &[])]))
}

fn running() -> World {
    let mut world = one_task();
    world.start("a").expect("starts");
    world
}

#[test]
fn the_table_of_section_19_holds() {
    // BLOCKED and READY (in the outbox): CANCELLED at once, and the run with them.
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"])]));
    world.cancel(false).expect("cancelled");
    assert_eq!(world.task_state("a"), TaskState::Cancelled);
    assert_eq!(world.task("a").outbox_status(), Some(OutboxStatus::Failed), "taken back from the outbox");
    assert_eq!(world.task_state("b"), TaskState::Cancelled);
    assert_eq!(world.run_state(), RunState::Cancelled);
    assert_eq!(world.state().outstanding(), 0);

    // READY without a slot.
    let mut world = World::new(Settings { max_concurrent_tasks: 1, ..Settings::default() });
    world.trigger(TriggerRun::new("k", plan(&[("a", &[]), ("b", &[])]), "me"));
    world.start("a").expect("starts");
    assert_eq!((world.task_state("b"), world.state().waiting()), (TaskState::Ready, 1));
    world.cancel(false).expect("cancelled");
    assert_eq!((world.task_state("b"), world.state().waiting()), (TaskState::Cancelled, 0));

    // RETRY_WAIT: at once, and its timer is no longer wanted.
    let mut world = one_task();
    world.play("a", crash());
    world.cancel(false).expect("cancelled");
    assert_eq!(world.task_state("a"), TaskState::Cancelled);
    assert_eq!(world.task("a").retry_timer().map(|t| t.state), Some(TimerState::Cancelled));
    assert_eq!(world.state().next_deadline(), None);

    // DISPATCHED and RUNNING: through the worker.
    let mut world = one_task();
    world.enqueue("a").expect("enqueued");
    world.cancel(false).expect("cancelled");
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Dispatched, RunState::Cancelling));
    let mut world = running();
    world.cancel(false).expect("cancelled");
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Running, RunState::Cancelling));
    assert_eq!(world.beat("a"), Ok(Reply::Heartbeat(HeartbeatReply { should_cancel: true })));
    world.finish("a", ended_as(Outcome::Cancelled)).expect("stops");
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Cancelled, RunState::Cancelled));
    assert_eq!(world.task("a").reason, TransitionReason::RunCancelled);
}

#[test]
fn who_cancelled_and_why_is_kept() {
    let mut world = running();
    world.cancel(false).expect("cancelled");
    let cancel = world.run().cancel.clone().expect("it is being cancelled");
    assert_eq!((cancel.principal.subject(), cancel.reason.as_str(), cancel.at), ("me", "enough", world.now));
    assert_eq!(cancel.cause, CancelCause::User);
    assert_eq!(world.run().reason, RunTransitionReason::UserCancelled);
}

#[test]
fn a_task_that_is_cancelled_before_a_worker_starts_it_is_refused_and_ends() {
    let mut world = one_task();
    world.enqueue("a").expect("enqueued");
    world.cancel(false).expect("cancelled");
    let refused = world.start("a").expect_err("it must not run");
    assert_eq!(refused, Refusal::Cancelled { task_key: key("a") });
    assert_eq!(refused.kind(), RefusalKind::Conflict);
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Cancelled, RunState::Cancelled));
    assert_eq!(world.task("a").late_outcome, None, "nothing was late: it never ran");
    let written = world.events().len();
    assert_eq!(world.start("a"), Err(refused), "asking again gives the same answer");
    assert_eq!(world.events().len(), written);
}

#[test]
fn a_worker_that_starts_a_task_cancelled_in_the_outbox_is_refused() {
    let mut world = one_task();
    let attempt = world.attempt("a");
    world.cancel(false).expect("cancelled");
    let reply = world.ask(Input::Started(attempt, "w1".into()));
    assert_eq!(reply, Err(Refusal::Cancelled { task_key: key("a") }));
}

#[test]
fn a_dispatched_task_that_nobody_starts_ends_by_its_acknowledgement_timeout() {
    let mut world = one_task();
    world.enqueue("a").expect("enqueued");
    world.cancel(false).expect("cancelled");
    world.pass(29);
    assert_eq!(world.run_state(), RunState::Cancelling);
    world.pass(1);
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Cancelled, RunState::Cancelled));
}

#[test]
fn a_running_task_whose_worker_falls_silent_ends_by_its_heartbeat_timeout() {
    let mut world = running();
    world.cancel(false).expect("cancelled");
    world.pass(90);
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Cancelled, RunState::Cancelled));
    assert_eq!(world.task("a").failures, 0, "a cancelled attempt is nobody's failure");
}

#[test]
fn a_result_in_a_cancelling_run_is_late_and_never_promoted() {
    let materialization = Some(MaterializationId::from_parts(1, 2));
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Interrupted] {
        let mut world = running();
        world.cancel(false).expect("cancelled");
        let report = Report { materialization_id: materialization, ..Report::new(outcome) };
        assert_eq!(world.finish("a", report.clone()), Ok(Reply::Finish(Finish::Late)));
        let task = world.task("a");
        assert_eq!(task.state, TaskState::Cancelled);
        assert_eq!(task.late_outcome, Some(outcome), "recorded");
        assert_eq!(task.materialization, None, "not promoted");
        assert_eq!(world.run().counts.cancelled, 1);
        assert_eq!(
            world.finish("a", report),
            Ok(Reply::Finish(Finish::Duplicate)),
            "a second copy is no news"
        );
    }
}

#[test]
fn a_result_for_a_task_that_was_cancelled_already_is_recorded_once() {
    let mut world = one_task();
    let attempt = world.attempt("a");
    world.cancel(false).expect("cancelled before the queue took it");
    assert_eq!(world.run_state(), RunState::Cancelled);
    world.wait(10);
    // A worker had taken it all the same.
    let run = world.run().clone();
    let report = |outcome| Input::Finished(attempt.clone(), ended_as(outcome));
    assert_eq!(world.ask(report(Outcome::Succeeded)), Ok(Reply::Finish(Finish::Late)));
    assert_eq!(
        world.ask(report(Outcome::Failed)),
        Ok(Reply::Finish(Finish::Duplicate)),
        "the first one stands"
    );
    assert_eq!(world.task("a").late_outcome, Some(Outcome::Succeeded));
    assert_eq!(world.task("a").finished_at, run.tasks[0].finished_at);
    assert_eq!((world.run().state, world.run().version), (run.state, run.version), "the run does not change");
}

#[test]
fn force_is_refused_while_workers_are_heard_of() {
    let mut world = running();
    let refused = world.cancel(true).expect_err("too soon");
    assert_eq!(refused, Refusal::ForceTooSoon { run_id: world.run, after: Millis::from_minutes(5) });
    assert_eq!(refused.kind(), RefusalKind::Conflict);
    assert_eq!(world.run_state(), RunState::Running, "a refusal leaves no trace");
    // Heartbeats keep the answer the same for as long as they come.
    world.cancel(false).expect("cancelled");
    for _ in 0..10 {
        world.wait(60);
        world.beat("a").expect("beats");
        assert!(world.cancel(true).is_err());
    }
}

/// A worker may be silent for longer than force waits only if its heartbeat timeout is longer still.
fn patient() -> World {
    let mut world = World::new(Settings { heartbeat_timeout: Millis::from_hours(1), ..Settings::default() });
    world.trigger(TriggerRun::new("k", plan(&[("a", &[]), ("b", &[]), ("c", &["a"])]), "me"));
    world
}

#[test]
fn force_cancels_what_a_silent_worker_holds_and_leaves_the_others_to_their_workers() {
    let mut world = patient();
    world.start("a").expect("starts");
    world.start("b").expect("starts");
    world.wait(299);
    world.beat("b").expect("beats");
    assert!(world.cancel(true).is_err(), "a second too soon");
    world.wait(1);
    world.cancel(true).expect("a has been silent for five minutes");
    assert_eq!(world.task_state("a"), TaskState::Cancelled);
    assert_eq!(world.task("a").reason, TransitionReason::ForceCancelled);
    assert_eq!(world.task_state("b"), TaskState::Running, "its worker is alive");
    assert_eq!(world.task_state("c"), TaskState::Cancelled);
    assert_eq!(world.run_state(), RunState::Cancelling);
    assert_eq!(world.state().outstanding(), 1, "the slot of a is free again");
    // The worker was only slow: it hears that it must stop, and its result is late.
    let attempt = world.attempt("a");
    let gone = world.ask(Input::Heartbeat(attempt.clone(), world.now, None)).expect_err("stop now");
    assert_eq!(gone.kind(), RefusalKind::Gone);
    assert_eq!(world.ask(Input::Finished(attempt, Report::succeeded())), Ok(Reply::Finish(Finish::Late)));
    world.wait(300);
    world.cancel(true).expect("now b has been silent as well");
    assert_eq!((world.task_state("b"), world.run_state()), (TaskState::Cancelled, RunState::Cancelled));
    let events = world.events();
    let forced = events.iter().filter(|event| event.data.kind() == EventKind::RunCancelRequested);
    let keys: std::collections::BTreeSet<_> = forced.map(|event| &event.idempotency_key).collect();
    assert_eq!(keys.len(), 2, "each has a key of its own: {keys:?}");
    let eager = Settings { force_cancel_after: Millis::from_secs(1), ..world.state().settings().clone() };
    let read = fold(&eager, &events[..events.len() - 1]);
    let b = read.task(world.run, &key("b")).expect("in memory");
    assert_eq!(b.state, TaskState::Running, "a reader that would have been less patient reads the same");
}

#[test]
fn force_does_not_wait_for_a_queue_once_an_ordinary_cancel_was_tried() {
    let mut world = one_task();
    world.enqueue("a").expect("enqueued");
    assert!(world.cancel(true).is_err(), "an ordinary cancel first");
    world.cancel(false).expect("cancelled");
    world.cancel(true).expect("forced");
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Cancelled, RunState::Cancelled));
}

#[test]
fn cancelling_twice_is_a_duplicate_and_the_first_reason_stands() {
    let mut world = running();
    world.cancel(false).expect("cancelled");
    let (written, first) = (world.events().len(), world.run().cancel.clone());
    world.wait(5);
    assert_eq!(world.cancel(false), Ok(Reply::Change(Change::Duplicate)));
    assert_eq!((world.events().len(), &world.run().cancel), (written, &first));
    // In one batch, too.
    let mut world = running();
    let cancel = || {
        Input::Cancel(servo_engine::CancelRun {
            run_id: world.run,
            caller: Caller::user("me"),
            reason: String::new(),
            force: false,
        })
    };
    let inputs = [cancel(), cancel()];
    let step = world.step(&inputs);
    assert!(matches!(step.replies[0], Ok(Reply::Change(Change::Accepted { .. }))));
    assert_eq!(step.replies[1], Ok(Reply::Change(Change::Duplicate)));
}

#[test]
fn a_run_that_has_ended_cannot_be_cancelled() {
    let mut world = one_task();
    world.succeed("a");
    for force in [false, true] {
        let refused = world.cancel(force).expect_err("it is over");
        assert_eq!(refused, Refusal::RunEnded { run_id: world.run, state: RunState::Succeeded });
    }
    let elsewhere = servo_core::RunId::from_u128(1);
    world.run = elsewhere;
    let unknown = world.cancel(false).expect_err("no such run");
    assert_eq!(unknown.kind(), RefusalKind::NotFound);
}

#[test]
fn a_run_that_takes_too_long_is_stopped_and_ends_as_timed_out() {
    let mut world = World::new(Settings::default());
    let limit = Some(Millis::from_secs(100));
    let tasks = plan(&[("a", &[]), ("b", &["a"])]);
    let labels = std::collections::BTreeMap::new();
    world.trigger(TriggerRun::of_tasks(
        "k",
        tasks,
        RunRequest { labels, timeout: limit, caller: Caller::user("me"), ..RunRequest::default() },
    ));
    world.start("a").expect("starts");
    world.wait(60);
    world.beat("a").expect("beats");
    world.pass(39);
    assert_eq!(world.run_state(), RunState::Running);
    world.pass(1);
    assert_eq!(world.run_state(), RunState::Cancelling);
    assert_eq!(world.run().reason, RunTransitionReason::TimedOut);
    assert_eq!(
        world.run().cancel.as_ref().map(|c| c.reason.as_str()),
        Some("the run took longer than 1m40s")
    );
    assert_eq!(
        (world.task_state("b"), world.task("b").reason),
        (TaskState::Cancelled, TransitionReason::RunTimedOut)
    );
    assert_eq!(world.beat("a"), Ok(Reply::Heartbeat(HeartbeatReply { should_cancel: true })));
    assert_eq!(world.finish("a", Report::succeeded()), Ok(Reply::Finish(Finish::Late)));
    assert_eq!(world.task("a").reason, TransitionReason::RunTimedOut);
    assert_eq!(world.run_state(), RunState::TimedOut);
}

#[test]
fn no_run_outlives_the_limit_of_the_workspace() {
    let settings = Settings { max_run_duration: Millis::from_secs(10), ..Settings::default() };
    let mut world = World::new(settings);
    let labels = std::collections::BTreeMap::new();
    let limit = Some(Millis::from_hours(9));
    world.trigger(TriggerRun::of_tasks(
        "k",
        plan(&[("a", &[])]),
        RunRequest { labels, timeout: limit, caller: Caller::user("me"), ..RunRequest::default() },
    ));
    world.pass(10);
    assert_eq!(world.run_state(), RunState::TimedOut);
}

#[test]
fn a_cancelling_run_is_not_timed_out_as_well() {
    let mut world = World::new(Settings { heartbeat_timeout: Millis::from_hours(99), ..Settings::default() });
    world.trigger(TriggerRun::new("k", plan(&[("a", &[])]), "me"));
    world.start("a").expect("starts");
    world.cancel(false).expect("cancelled");
    world.pass(25 * 3_600);
    assert_eq!(world.run_state(), RunState::Cancelling, "it waits for its worker");
    world.finish("a", ended_as(Outcome::Cancelled)).expect("stops");
    assert_eq!(world.run_state(), RunState::Cancelled);
}

#[test]
fn a_cancel_and_a_result_in_one_batch_are_judged_in_order() {
    let cancel = |world: &World| {
        Input::Cancel(servo_engine::CancelRun {
            run_id: world.run,
            caller: Caller::user("me"),
            reason: String::new(),
            force: false,
        })
    };
    let done = |world: &World| Input::Finished(world.attempt("a"), Report::succeeded());
    let mut result_first = running();
    let inputs = [done(&result_first), cancel(&result_first)];
    let step = result_first.step(&inputs);
    assert!(matches!(step.replies[1], Err(Refusal::RunEnded { state: RunState::Succeeded, .. })));
    let mut cancel_first = running();
    let inputs = [cancel(&cancel_first), done(&cancel_first)];
    let step = cancel_first.step(&inputs);
    assert_eq!(step.replies[1], Ok(Reply::Finish(Finish::Late)));
    assert_eq!(cancel_first.run_state(), RunState::Cancelled);
}

#[test]
fn a_lost_worker_ends_what_it_held_in_a_cancelling_run() {
    let mut world = running();
    world.cancel(false).expect("cancelled");
    world.ask(Input::WorkersLost(Arc::from("w1"))).expect("noted");
    assert_eq!((world.task_state("a"), world.run_state()), (TaskState::Cancelled, RunState::Cancelled));
    assert_eq!(world.task("a").attempt, 1, "and it is not tried again");
}

#[test]
fn a_cancelled_attempt_is_not_handed_out_again() {
    let mut world = one_task();
    let attempt: Attempt = world.attempt("a");
    world.cancel(false).expect("cancelled");
    let out = servo_engine::effect::outstanding(world.state());
    assert!(out.iter().all(|dispatch| dispatch.attempt != attempt));
}
