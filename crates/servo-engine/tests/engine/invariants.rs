//! INV-1 … INV-10 of the correctness matrix, each by its name.

use servo_core::{Millis, TaskKey, Timestamp, dispatch_id};
use servo_engine::controllers::{self, Freshness, anti_entropy, ready_dispatch, timers};
use servo_engine::event::{TimerFired, TimerKind};
use servo_engine::{
    Applied, Change, Effect, Event, EventData, EventKind, Finish, Ignored, Input, Outcome, Progress, Reply,
    Report, Resolution, RetryPolicy, RunState, Settings, State, TaskOptions, TaskState, TriggerRun,
};

use crate::support;
use crate::support::{
    World, crash, ended_as, event, fold, key, plan, plan_of, task, tenant, user_error, workspace,
};

type Pure = fn(&State, Timestamp) -> Vec<EventData>;
type PureIfFresh = fn(&State, Timestamp, Freshness) -> Vec<EventData>;

/// Splits a log before the events that `moves` names, and folds them in every order after the rest.
fn rows_in_every_order(world: &World, moves: impl Fn(&Event) -> bool) -> Vec<servo_engine::HotRows> {
    let (moved, fixed): (Vec<Event>, Vec<Event>) = world.events().into_iter().partition(moves);
    assert!(moved.len() > 1, "something to reorder");
    let mut orders = vec![Vec::new()];
    for event in moved {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<Event>| {
                (0..=order.len()).map(|at| {
                    let mut longer = order.clone();
                    longer.insert(at, event.clone());
                    longer
                })
            })
            .collect();
    }
    orders
        .into_iter()
        .map(|order| fold(&Settings::default(), &[fixed.clone(), order].concat()).rows())
        .collect()
}

fn all_the_same(rows: &[servo_engine::HotRows]) {
    for other in &rows[1..] {
        assert_eq!(&rows[0], other);
    }
}

fn is_finish(event: &Event) -> bool {
    event.data.kind() == EventKind::TaskFinished
}

#[test]
fn inv_1_order_of_concurrent_facts_does_not_matter() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[]), ("c", &[]), ("join", &["a", "b", "c"])]));
    for name in ["a", "b", "c"] {
        world.start(name).expect("starts");
    }
    for (name, report) in [("a", Report::succeeded()), ("b", crash()), ("c", ended_as(Outcome::TimedOut))] {
        world.wait(1);
        world.finish(name, report).expect("finishes");
    }
    all_the_same(&rows_in_every_order(&world, is_finish));
}

#[test]
fn inv_1_the_answer_of_the_queue_may_come_before_or_after_the_worker() {
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Interrupted] {
        let mut world = World::new(Settings::default());
        world.trigger(TriggerRun::new("k", plan(&[("a", &[])]), "me"));
        let attempt = world.attempt("a");
        // One event per step, and the queue's answer last of all.
        let mut events = world.events();
        world.wait(1);
        world.start("a").expect("starts");
        let started = world.events().split_off(events.len());
        world.wait(1);
        world.finish("a", ended_as(outcome)).expect("finishes");
        let finished: Vec<Event> = world.events().split_off(events.len() + started.len());
        let enqueued = EventData::DispatchEnqueued(servo_engine::event::DispatchEnqueued {
            run_id: attempt.run_id,
            task_key: attempt.task_key,
            attempt: attempt.attempt,
            attempt_id: attempt.attempt_id,
        });
        let enqueued = event(enqueued, world.now, 9);
        events.extend(started);
        let (prefix, report) = (events.len(), finished[0].clone());
        events.push(report);
        let folded: Vec<_> = (prefix - 1..=prefix + 1)
            .map(|at| {
                let mut order = events.clone();
                order.insert(at, enqueued.clone());
                fold(&Settings::default(), &order).rows()
            })
            .collect();
        all_the_same(&folded);
    }
}

#[test]
fn inv_2_a_duplicate_of_any_event_changes_nothing() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]));
    world.enqueue("a").expect("enqueued");
    world.play("a", crash());
    world.pass(120);
    world.start("a").expect("starts");
    world.pass(10);
    world.beat("a").expect("beats");
    world.finish("a", Report::succeeded()).expect("finishes");
    world.play("b", ended_as(Outcome::Interrupted));
    world.play("b", user_error());
    let events = world.events();
    let rows = world.state().rows();
    for (i, event) in events.iter().enumerate() {
        let mut state = fold(&Settings::default(), &events[..=i]);
        let once = state.rows();
        state.apply(event);
        assert_eq!(state.rows(), once, "{} again at once", event.data.kind().name());
        let mut late = world.state().clone();
        late.apply(event);
        assert_eq!(late.rows(), rows, "{} again at the end", event.data.kind().name());
    }
}

#[test]
fn inv_2_the_end_of_a_superseded_attempt_is_no_news_the_second_time() {
    let mut world = World::with(plan(&[("a", &[])]));
    let first = world.attempt("a");
    world.play("a", ended_as(Outcome::Interrupted));
    assert_eq!(world.task("a").attempt, 2, "dispatched again by the same step");
    let before = (world.state().rows(), world.events().len());
    let again = world.ask(Input::Finished(first, ended_as(Outcome::Interrupted)));
    assert!(again.is_err(), "the worker is told that it is stale");
    assert_eq!(
        before,
        (world.state().rows(), world.events().len()),
        "nothing is written or remembered twice"
    );
}

#[test]
fn inv_2_a_failure_reported_twice_is_not_a_late_result_of_the_cancelled_task() {
    let policy = TaskOptions { retry: Some(RetryPolicy::default()), ..TaskOptions::default() };
    let mut world = World::with(plan_of(vec![task("a", &[], policy)]));
    let attempt = world.attempt("a");
    world.play("a", user_error());
    assert_eq!(world.task_state("a"), TaskState::RetryWait);
    world.cancel(false).expect("cancelled");
    // The worker's first answer was lost; it sends its report again.
    let reply = world.ask(Input::Finished(attempt, user_error()));
    assert_eq!(reply, Ok(Reply::Finish(Finish::Duplicate)));
    assert_eq!(world.task("a").late_outcome, None);
}

#[test]
fn inv_3_controllers_run_twice_want_the_same_with_the_same_keys() {
    let settings = Settings { max_concurrent_tasks: 2, ..Settings::default() };
    let mut world = World::new(settings.clone());
    world.trigger(TriggerRun::new("k", plan(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])]), "me"));
    world.play("a", crash());
    world.start("b").expect("starts");
    // What the log holds, without what the controllers already made of it.
    let facts: Vec<Event> =
        world.events().into_iter().filter(|event| event.data.kind() != EventKind::TimerRequested).collect();
    let state = fold(&settings, &facts);
    let later = world.now.saturating_add(Millis::from_hours(1));
    let controllers: [(&str, Pure); 4] = [
        ("ready_dispatch", |state, now| ready_dispatch::reconcile(state, now)),
        ("timers", |state, now| timers::reconcile(state, now, Freshness::Current)),
        ("anti_entropy", |state, now| anti_entropy::reconcile(state, now, Freshness::Current)),
        ("all", |state, now| controllers::reconcile(state, now, Freshness::Current)),
    ];
    for (name, controller) in controllers {
        let keys = |at| controller(&state, at).iter().map(EventData::idempotency_key).collect::<Vec<_>>();
        assert!(name == "ready_dispatch" || !keys(later).is_empty(), "{name} has something to do");
        assert_eq!(controller(&state, later), controller(&state, later), "{name}");
        let elsewhere = later.saturating_add(Millis::new(250));
        assert_eq!(keys(later), keys(elsewhere), "{name} on another node, a moment later");
    }
}

#[test]
fn inv_4_a_dispatch_that_is_handed_out_again_has_the_same_id() {
    let mut world = World::new(Settings::default());
    let step = world.step(&[Input::Trigger(TriggerRun::new("k", plan(&[("a", &[])]), "me"))]);
    let [Effect::Enqueue(first)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    // The process died before it could tell the queue. The next one reads the rows and hands out what is pending.
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("rows fit");
    let again = servo_engine::effect::outstanding(&restored);
    assert_eq!(again, std::slice::from_ref(first));
    let id =
        |d: &servo_engine::Dispatch| dispatch_id(d.attempt.run_id, &d.attempt.task_key, d.attempt.attempt);
    assert_eq!(id(&again[0]), id(first), "so the queue takes it once");
    let emitted = world.events().into_iter().find(|e| e.data.kind() == EventKind::DispatchRequested);
    assert_eq!(emitted.expect("dispatched").idempotency_key, id(first), "and so does the log");
}

#[test]
fn inv_4_the_intent_of_another_node_for_the_same_attempt_is_ignored() {
    let world = World::with(plan(&[("a", &[])]));
    let mut state = world.state().clone();
    let EventData::DispatchRequested(mut twin) = world.events()[3].data.clone() else { panic!("a dispatch") };
    twin.attempt_id = servo_core::AttemptId::from_parts(1, 1);
    let applied = state.apply(&event(EventData::DispatchRequested(twin), world.now, 1));
    assert_eq!(applied, Applied::No(Ignored::StaleAttempt));
    assert_eq!(state.task(world.run, &key("a")), world.state().task(world.run, &key("a")));
}

#[test]
fn inv_5_a_sweep_dispatches_a_ready_task_that_lost_its_outbox_row() {
    let world = World::with(plan(&[("a", &[])]));
    // The batch without its dispatch: what a projection would show if that part was lost.
    let facts: Vec<Event> = world
        .events()
        .into_iter()
        .filter(|event| event.data.kind() != EventKind::DispatchRequested)
        .collect();
    let state = fold(&Settings::default(), &facts);
    let repairs = anti_entropy::reconcile(&state, world.now, Freshness::Current);
    assert_eq!(support::kinds(&repairs), ["DispatchRequested"]);
    let mut engine = servo_engine::Engine::new(state, support::SECRET);
    let step = engine.step(&[Input::Sweep], world.now);
    assert_eq!(step.effects.len(), 1, "and hands it to the queue");
    assert!(engine.step(&[Input::Sweep], world.now).events.is_empty(), "once");
}

#[test]
fn inv_5_every_task_that_nobody_reports_about_is_taken_up_again() {
    for how_far in ["READY", "DISPATCHED", "RUNNING", "RETRY_WAIT"] {
        let mut world = World::with(plan(&[("a", &[])]));
        match how_far {
            "READY" => {}
            "DISPATCHED" => {
                world.enqueue("a").expect("enqueued");
            }
            "RUNNING" => {
                world.start("a").expect("started");
            }
            _ => world.play("a", crash()),
        }
        let before = world.task("a").attempt;
        // Nothing but time and the engine looking at it.
        for _ in 0..20 {
            world.pass(30);
        }
        assert!(world.task("a").attempt > before, "a task left {how_far} was tried again");
    }
}

#[test]
fn inv_6_no_task_runs_before_what_it_depends_on() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]));
    assert_eq!(world.task_state("b"), TaskState::Blocked);
    assert_eq!(world.task("b").attempt, 0, "not dispatched");
    world.succeed("a");
    assert_eq!(world.task_state("b"), TaskState::Ready);
    assert_eq!(world.task_state("c"), TaskState::Blocked);
    world.succeed("b");
    assert_eq!(world.task_state("c"), TaskState::Ready);
}

#[test]
fn inv_6_an_intent_to_dispatch_a_blocked_task_is_ignored() {
    let world = World::with(plan(&[("a", &[]), ("b", &["a"])]));
    let EventData::DispatchRequested(dispatch) = world.events()[3].data.clone() else { panic!("a dispatch") };
    let early = servo_engine::event::DispatchRequested { task_key: key("b"), ..dispatch };
    let mut state = world.state().clone();
    let applied = state.apply(&event(EventData::DispatchRequested(early), world.now, 1));
    assert_eq!(applied, Applied::No(Ignored::NotInThatState));
}

#[test]
fn inv_6_a_retried_upstream_satisfies_its_edge_once() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"])]));
    world.play("a", crash());
    world.pass(60);
    world.succeed("a");
    assert_eq!((world.task("b").deps_satisfied, world.task("b").deps_total), (1, 1));
    assert_eq!(world.run().edges[0].attempt, Some(2), "the edge names the attempt that satisfied it");
}

#[test]
fn inv_7_controllers_take_a_state_and_nothing_else() {
    // There is no log in their signatures to read; the runtime's test counts reads of the real one.
    let _: [Pure; 1] = [ready_dispatch::reconcile];
    let _: [PureIfFresh; 3] = [timers::reconcile, anti_entropy::reconcile, controllers::reconcile];
}

#[test]
fn inv_8_a_late_result_of_a_superseded_attempt_is_ignored() {
    let mut world = World::with(plan(&[("a", &[])]));
    let first = world.attempt("a");
    world.start("a").expect("starts");
    // The worker falls silent; attempt 2 is waited for, dispatched and started.
    world.pass(91);
    world.pass(60);
    world.start("a").expect("starts again");
    let second = world.attempt("a");
    assert_eq!(second.attempt, 2);
    let (before, written) = (world.task("a").clone(), world.events().len());
    for outcome in [Outcome::Failed, Outcome::Succeeded] {
        let reply = world.ask(Input::Finished(first.clone(), ended_as(outcome)));
        assert!(matches!(reply, Err(servo_engine::Refusal::StaleAttempt { attempt: 1, .. })), "{reply:?}");
    }
    assert_eq!(world.task("a"), &before, "attempt 2 still runs");
    assert_eq!(world.events().len(), written + 1, "recorded, and only once");
    world.finish("a", Report::succeeded()).expect("attempt 2 counts");
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn inv_8_the_right_number_with_a_wrong_token_is_stale_too() {
    let mut world = World::with(plan(&[("a", &[])]));
    let forged =
        servo_engine::Attempt { attempt_id: servo_core::AttemptId::from_parts(1, 1), ..world.attempt("a") };
    world.start("a").expect("starts");
    for input in [
        Input::Started(forged.clone(), "w1".into()),
        Input::Heartbeat(forged.clone(), world.now, None),
        Input::Finished(forged.clone(), Report::succeeded()),
    ] {
        assert!(world.ask(input).is_err());
    }
    assert_eq!(world.ask(Input::Enqueued(forged)), Ok(Reply::Change(Change::Duplicate)));
    assert_eq!(world.task_state("a"), TaskState::Running);
}

#[test]
fn inv_3_heartbeats_of_one_moment_have_one_effect() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    world.wait(1);
    let beat = |ppm| Some(Progress { ppm, message: String::new() });
    let (attempt, sent_at) = (world.attempt("a"), world.now);
    let first = world.step(&[Input::Heartbeat(attempt.clone(), sent_at, beat(1))]);
    assert_eq!(first.events.len(), 1);
    // They came in together and are decided one after the other: the clock has gone on.
    world.wait(1);
    let second = world.step(&[Input::Heartbeat(attempt.clone(), sent_at, beat(2))]);
    assert_eq!((second.events.len(), &second.replies), (0, &first.replies), "answered, and not written");
    let third = world.step(&[Input::Heartbeat(attempt, world.now, beat(2))]);
    assert_eq!(third.events.len(), 1, "the next one is");
}

#[test]
fn inv_9_timers_wait_while_the_state_lags() {
    let mut waiting = World::with(plan(&[("a", &[])]));
    waiting.play("a", crash());
    let mut running = World::with(plan(&[("a", &[])]));
    running.start("a").expect("starts");
    let mut dispatched = World::with(plan(&[("a", &[])]));
    dispatched.enqueue("a").expect("enqueued");
    for (what, world) in [("retry", waiting), ("heartbeat", running), ("dispatch_ack", dispatched)] {
        // A day and an hour on, the run itself is overdue as well.
        let later = world.now.saturating_add(Millis::from_hours(25));
        let fired = |freshness| {
            let mut events = timers::reconcile(world.state(), later, freshness);
            events.extend(anti_entropy::reconcile(world.state(), later, freshness));
            events.iter().filter(|e| e.kind() == EventKind::TimerFired).count()
        };
        assert_eq!(fired(Freshness::Lagging), 0, "{what} waits");
        let heard = if what == "heartbeat" { 2 } else { 4 };
        assert_eq!(
            fired(Freshness::HeartbeatsUnreliable),
            heard,
            "{what}, seen by a node that could not hear the workers"
        );
        assert_eq!(fired(Freshness::Current), 4, "{what} and the run's limit fire, seen by both controllers");
    }
}

#[test]
fn inv_9_a_timer_older_than_the_row_is_ignored() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    let (deadline, _) = world.task("a").deadline(world.state().settings()).expect("it has one");
    let timer = TimerFired {
        timer_type: TimerKind::HeartbeatCheck,
        run_id: world.run,
        task_key: Some(key("a")),
        attempt: 1,
        fire_at: deadline,
        since: world.task("a").started_at(),
    };
    let of_before = TimerFired { since: None, ..timer.clone() };
    // Decided on an old picture; meanwhile the worker was heard of.
    world.wait(80);
    world.beat("a").expect("beats");
    for timer in [timer, of_before] {
        let mut state = world.state().clone();
        let applied = state.apply(&event(EventData::TimerFired(timer), deadline, 1));
        assert_eq!(applied, Applied::No(Ignored::NotDue));
        assert_eq!(state.task(world.run, &key("a")), world.state().task(world.run, &key("a")));
    }
}

#[test]
fn p1_a_log_means_the_same_to_a_reader_with_more_patience() {
    let hasty = Settings {
        heartbeat_timeout: Millis::from_secs(2),
        heartbeat_grace: Millis::from_secs(1),
        outbox_retry_after: Millis::from_secs(2),
        max_run_duration: Millis::from_secs(20),
        ..Settings::default()
    };
    let mut world = World::new(hasty);
    world.trigger(TriggerRun::new("first", plan(&[("a", &[]), ("b", &[])]), "me"));
    world.start("a").expect("starts");
    // Nobody takes b, the worker of a falls silent, and at last the run has taken too long.
    for seconds in [2, 3, 25] {
        world.wait(seconds);
        world.step(&[]);
        let patient = fold(&Settings::default(), &world.events());
        for name in ["a", "b"] {
            assert_eq!(patient.task(world.run, &key(name)), Some(world.task(name)), "{seconds} s");
        }
    }
    assert_eq!(world.task("a").failures, 1);
    assert!(world.task("b").attempt > 1);
    assert!(world.state().run(world.run).is_some_and(|run| run.cancel.is_some()));
}

#[test]
fn inv_9_a_retry_timer_of_an_attempt_that_was_replaced_is_ignored() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.play("a", crash());
    world.pass(60);
    assert_eq!(world.task("a").attempt, 2);
    let fired = world.events().into_iter().find(|e| e.data.kind() == EventKind::TimerFired).expect("fired");
    let mut state = world.state().clone();
    let late = event(fired.data, world.now.saturating_add(Millis::from_hours(1)), 1);
    assert_eq!(state.apply(&late), Applied::No(Ignored::StaleAttempt));
}

#[test]
fn inv_10_a_failure_skips_everything_behind_it_and_names_the_task_that_failed() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("free", &[])]));
    world.play("a", user_error());
    assert_eq!(world.task_state("a"), TaskState::Failed);
    let run = world.run();
    for name in ["b", "c"] {
        let task = world.task(name);
        assert_eq!(task.state, TaskState::Skipped);
        assert_eq!(
            task.caused_by.map(|i| &run.tasks[i as usize].key),
            Some(&key("a")),
            "not {name}'s neighbour"
        );
    }
    let edges: Vec<_> = run.edges.iter().map(|e| e.resolution).collect();
    assert_eq!(edges, [Some(Resolution::Failed), Some(Resolution::Skipped)]);
    assert_eq!(world.run_state(), RunState::Running, "what does not depend on it goes on");
    world.succeed("free");
    assert_eq!(world.run_state(), RunState::Failed);
}

/// `a` and `b` are the only tasks that run; what is behind them is skipped.
fn racing(tasks: &[(&str, &[&str])], failures: [&str; 2]) -> World {
    let mut world = World::with(plan(tasks));
    for name in failures {
        world.start(name).expect("starts");
    }
    for name in failures {
        world.wait(5);
        world.finish(name, user_error()).expect("fails");
    }
    world
}

fn cause(rows: &servo_engine::HotRows, name: &str) -> TaskKey {
    let row = rows.tasks.iter().find(|row| row.task_key == key(name)).expect("the row");
    row.caused_by.clone().expect("skipped for a reason")
}

#[test]
fn inv_10_two_failures_above_a_diamond_leave_the_same_state_in_either_order() {
    let diamond: &[(&str, &[&str])] = &[
        ("a", &[]),
        ("b", &[]),
        ("left", &["a", "b"]),
        ("right", &["b"]),
        ("end", &["left", "right"]),
        ("after", &["end"]),
    ];
    // The one that is first in the log wins, in whichever order they are folded.
    for failures in [["a", "b"], ["b", "a"]] {
        let world = racing(diamond, failures);
        let rows = rows_in_every_order(&world, is_finish);
        all_the_same(&rows);
        assert_eq!(cause(&rows[0], "left"), key(failures[0]));
        assert_eq!(cause(&rows[0], "right"), key("b"), "`a` is not before it");
        assert_eq!(cause(&rows[0], "end"), key(failures[0]));
        assert_eq!(cause(&rows[0], "after"), key(failures[0]));
        let after = rows[0].tasks.iter().find(|row| row.task_key == key("after")).expect("the row");
        assert_eq!(after.finished_at, Some(support::after(5)), "skipped when the first of them failed");
    }
}

#[test]
fn inv_10_three_failures_at_different_depths_leave_the_same_state_in_any_order() {
    let tasks: &[(&str, &[&str])] = &[
        ("z", &[]),
        ("y", &[]),
        ("x", &[]),
        ("one", &["z"]),
        ("two", &["one", "y"]),
        ("three", &["two", "x"]),
        ("four", &["three", "one"]),
    ];
    let mut world = World::with(plan(tasks));
    for name in ["x", "y", "z"] {
        world.start(name).expect("starts");
    }
    for name in ["z", "x", "y"] {
        world.wait(5);
        world.finish(name, user_error()).expect("fails");
    }
    let rows = rows_in_every_order(&world, is_finish);
    assert_eq!(rows.len(), 6);
    all_the_same(&rows);
    for name in ["one", "two", "three", "four"] {
        assert_eq!(cause(&rows[0], name), key("z"), "the first in the log: {name}");
    }
}

#[test]
fn inv_10_a_success_and_a_failure_that_race_skip_the_task_behind_both() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &[]), ("c", &["a", "b"]), ("d", &["c"])]));
    world.start("a").expect("starts");
    world.start("b").expect("starts");
    world.wait(1);
    world.finish("a", Report::succeeded()).expect("succeeds");
    world.wait(1);
    world.finish("b", user_error()).expect("fails");
    all_the_same(&rows_in_every_order(&world, is_finish));
    assert_eq!(world.task_state("c"), TaskState::Skipped);
    assert_eq!(world.task("c").deps_satisfied, 1);
}

#[test]
fn inv_10_a_cancelled_upstream_cancels_what_waits_for_it() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]));
    world.start("a").expect("starts");
    world.cancel(false).expect("cancelled");
    world.finish("a", ended_as(Outcome::Cancelled)).expect("stops");
    for name in ["a", "b", "c"] {
        assert_eq!(world.task_state(name), TaskState::Cancelled);
    }
    assert!(world.run().edges.iter().all(|e| e.resolution == Some(Resolution::Cancelled)));
    assert_eq!(world.run_state(), RunState::Cancelled);
}

#[test]
fn inv_10_a_skipped_task_stays_skipped_when_the_run_is_cancelled() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"]), ("free", &[])]));
    world.play("a", user_error());
    world.start("free").expect("starts");
    world.cancel(false).expect("cancelled");
    world.finish("free", ended_as(Outcome::Cancelled)).expect("stops");
    assert_eq!(world.task_state("b"), TaskState::Skipped);
    assert_eq!(world.task_state("a"), TaskState::Failed);
    assert_eq!(world.run_state(), RunState::Cancelled);
}
