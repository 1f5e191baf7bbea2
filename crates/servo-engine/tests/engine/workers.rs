//! Workers register, are lost and leave; capacity follows from those that are there (ADR-110, ADR-111).

use servo_core::{Millis, Timestamp};
use servo_engine::testing::invariants;
use servo_engine::{
    Caller, Change, Deploy, EventData, Input, Refusal, RegisterWorker, Reply, Report, Settings, State,
    TaskOptions, TaskState, TransitionReason, TriggerRun, WaitReason, WorkerLeaves, WorkerState, why,
};

use crate::support;
use crate::support::{World, plan_of, task};

const DIGEST: &str = "sha256:1";

/// A workspace whose workers ask, with a deployment.
fn pulled(settings: Settings) -> World {
    let mut world = World::new(Settings { push_limit: 0, tasks_per_slot: 1, ..settings });
    deploy(&mut world, DIGEST);
    world
}

fn deploy(world: &mut World, digest: &str) {
    let deploy = Deploy {
        digest: digest.into(),
        time_zones: "2025a".into(),
        project: "p".to_owned(),
        assets: Vec::new(),
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
}

fn worker(id: &str, queues: &[&str], slots: u32) -> RegisterWorker {
    RegisterWorker {
        worker_id: id.into(),
        name: id.to_owned(),
        queues: queues.iter().map(|queue| (*queue).into()).collect(),
        slots,
        digest: DIGEST.into(),
        storage: "file:///data".to_owned(),
        host: "vm".to_owned(),
        version: "1".to_owned(),
    }
}

fn register(world: &mut World, id: &str, queues: &[&str], slots: u32) {
    world.ask(Input::RegisterWorker(worker(id, queues, slots))).expect("registered");
}

fn leave(world: &mut World, id: &str, draining: bool) -> Reply {
    world.ask(Input::WorkerLeaves(WorkerLeaves { worker_id: id.into(), draining })).expect("heard")
}

/// Triggers a run of tasks `{name}0`, `{name}1`, … of a queue.
fn trigger(world: &mut World, name: &str, queue: &str, count: usize) {
    let options = TaskOptions { worker_queue: Some(queue.into()), ..TaskOptions::default() };
    let tasks = (0..count).map(|n| task(&format!("{name}{n}"), &[], options.clone())).collect();
    world.trigger(TriggerRun::new(name, plan_of(tasks), "me"));
}

fn open(world: &World) -> usize {
    world.state().outstanding() as usize
}

fn state_of(world: &World, id: &str) -> WorkerState {
    world.state().worker(id).expect("it is known").state
}

fn sound(world: &World) {
    invariants::check(world.state()).expect("sound");
    let rows = world.state().rows();
    let restored = State::from_rows(support::tenant(), support::workspace(), rows.clone()).expect("rows fit");
    assert_eq!(restored.rows(), rows);
}

#[test]
fn nothing_is_dispatched_until_a_worker_is_there_and_then_as_much_as_it_has_room_for() {
    let mut world = pulled(Settings::default());
    trigger(&mut world, "a", "default", 5);
    assert_eq!((open(&world), world.state().waiting()), (0, 5));
    let batches = world.log.len();
    world.wait(10_000);
    world.step(&[Input::Sweep]);
    assert_eq!(world.log.iter().skip(batches).map(Vec::len).sum::<usize>(), 0, "no event while nobody asks");
    register(&mut world, "w-1", &["default"], 2);
    assert_eq!(open(&world), 2);
    register(&mut world, "w-2", &["default"], 1);
    assert_eq!(open(&world), 3);
    sound(&world);
}

#[test]
fn tasks_of_a_queue_without_a_worker_hold_no_slot_of_another_and_say_why_they_wait() {
    let mut world = pulled(Settings { max_concurrent_tasks: 2, ..Settings::default() });
    register(&mut world, "w-1", &["default"], 4);
    trigger(&mut world, "g", "gpu", 3);
    let gpu = world.run;
    trigger(&mut world, "a", "default", 2);
    assert_eq!(open(&world), 2, "those of the default queue");
    let found = why(world.state(), gpu).expect("a run");
    let reasons: Vec<String> = found.tasks[0].waits.iter().map(|wait| wait.reason.text()).collect();
    // Since when is said beside each reason; a notice stands alone.
    let expected = "no worker serves queue gpu; 3 tasks wait".to_owned();
    assert!(reasons.contains(&expected), "{reasons:?}");
    assert_eq!(why::notices(world.state(), gpu), [format!("{expected} since 00:00 UTC")]);
    assert_eq!(why::notices(world.state(), world.run), [""; 0]);
    sound(&world);
}

#[test]
fn a_worker_of_several_queues_is_not_given_more_than_it_has_room_for() {
    let mut world = pulled(Settings::default());
    register(&mut world, "w-1", &["default", "gpu"], 2);
    trigger(&mut world, "g", "gpu", 2);
    trigger(&mut world, "a", "default", 2);
    assert_eq!(open(&world), 2);
    register(&mut world, "w-2", &["default"], 1);
    assert_eq!(open(&world), 3);
    sound(&world);
}

#[test]
fn a_worker_with_other_code_is_refused_and_given_nothing_until_it_has_taken_up_what_is_deployed() {
    let mut world = pulled(Settings::default());
    let other = RegisterWorker { digest: "sha256:2".into(), ..worker("w-1", &["default"], 2) };
    let refused = world.ask(Input::RegisterWorker(other.clone())).expect_err("other code");
    assert!(matches!(refused, Refusal::OtherCode { deployment: 1, .. }), "{refused}");
    register(&mut world, "w-1", &["default"], 2);
    deploy(&mut world, "sha256:2");
    trigger(&mut world, "a", "default", 3);
    assert_eq!(open(&world), 0, "its code is outdated");
    let found = why(world.state(), world.run).expect("a run").tasks.remove(0).waits.remove(0).reason;
    assert!(matches!(found, WaitReason::NoWorker { outdated: 1, .. }), "{found:?}");
    assert!(found.text().contains("1 has other code"), "{}", found.text());
    world.ask(Input::RegisterWorker(other)).expect("registered");
    assert_eq!((open(&world), world.state().worker("w-1").map(|row| row.deployment)), (2, Some(2)));
    sound(&world);
}

#[test]
fn without_a_deployment_nobody_is_registered() {
    let mut world = World::new(Settings { push_limit: 0, ..Settings::default() });
    let refused =
        world.ask(Input::RegisterWorker(worker("w-1", &["default"], 1))).expect_err("nothing deployed");
    assert!(matches!(refused, Refusal::NothingDeployed { .. }), "{refused}");
    assert_eq!(world.state().workers().count(), 0);
}

#[test]
fn the_same_registration_again_changes_nothing_and_another_one_replaces_it() {
    let mut world = pulled(Settings::default());
    register(&mut world, "w-1", &["gpu", "default", "gpu"], 2);
    let again = world.ask(Input::RegisterWorker(worker("w-1", &["default", "gpu"], 2)));
    assert_eq!(again, Ok(Reply::Change(Change::Duplicate)));
    register(&mut world, "w-1", &["default"], 3);
    let row = world.state().worker("w-1").expect("a row");
    assert_eq!((row.slots, row.queues.len(), row.change_number), (3, 1, 2));
}

#[test]
fn only_a_registered_worker_begins_and_only_one_of_two_with_the_same_name() {
    let mut world = pulled(Settings::default());
    register(&mut world, "w-1111", &["default"], 1);
    register(&mut world, "w-2222", &["default"], 1);
    trigger(&mut world, "a", "default", 1);
    let attempt = world.attempt("a0");
    let start = |worker: &str| Input::Started(attempt.clone(), worker.into());
    let stranger = world.ask(start("stranger")).expect_err("not registered");
    assert!(matches!(stranger, Refusal::UnknownWorker { .. }), "{stranger}");
    assert_eq!(world.task_state("a0"), TaskState::Ready);
    world.ask(start("w-1111")).expect("begins");
    let other = world.ask(start("w-2222")).expect_err("taken");
    assert!(matches!(other, Refusal::AlreadyStarted { .. }), "{other}");
}

#[test]
fn a_worker_that_falls_silent_is_lost_and_what_nobody_began_waits_for_another() {
    let mut world = pulled(Settings { heartbeat_timeout: Millis::from_hours(1), ..Settings::default() });
    register(&mut world, "w-1", &["default"], 2);
    trigger(&mut world, "a", "default", 3);
    let attempt = world.attempt("a0");
    world.ask(Input::Started(attempt, "w-1".into())).expect("begins");
    assert_eq!(open(&world), 2);
    world.wait(60);
    world.engine.liveness_mut().heard("w-1".into(), world.now);
    world.wait(60);
    world.step(&[]);
    assert_eq!(state_of(&world, "w-1"), WorkerState::Active, "heard of a minute ago");
    let deadline = world.engine.next_deadline(world.now);
    assert!(deadline.is_some_and(|at| at <= world.now.saturating_add(Millis::from_secs(30))), "{deadline:?}");
    world.wait(31);
    world.step(&[]);
    assert_eq!(state_of(&world, "w-1"), WorkerState::Lost);
    assert_eq!((world.task_state("a0"), world.task_state("a1")), (TaskState::Running, TaskState::Ready));
    let waits = world.state().task(world.run, &support::key("a1")).expect("a task");
    assert_eq!(waits.reason, TransitionReason::WorkersGone);
    assert_eq!(open(&world), 1, "the one that may still report");
    register(&mut world, "w-2", &["default"], 2);
    assert_eq!(open(&world), 3, "what runs on a lost worker takes no slot of others");
    sound(&world);
}

#[test]
fn workers_of_this_process_are_not_waited_for_and_end_with_it() {
    let mut world = pulled(Settings::default());
    world.engine.liveness_mut().set_local("local-".into());
    register(&mut world, "local-7-ab", &["default"], 1);
    trigger(&mut world, "a", "default", 1);
    world.wait(1_000);
    world.step(&[]);
    assert_eq!(state_of(&world, "local-7-ab"), WorkerState::Active);
    world.ask(Input::WorkersLost("local-".into())).expect("lost");
    assert_eq!((state_of(&world, "local-7-ab"), open(&world)), (WorkerState::Lost, 0));
    sound(&world);
}

#[test]
fn a_worker_that_drains_is_given_nothing_more_and_ends_what_it_has_begun() {
    let mut world = pulled(Settings::default());
    register(&mut world, "w-1", &["default"], 1);
    trigger(&mut world, "a", "default", 2);
    let first = world.attempt("a0");
    world.ask(Input::Started(first.clone(), "w-1".into())).expect("begins");
    leave(&mut world, "w-1", true);
    assert_eq!(leave(&mut world, "w-1", true), Reply::Change(Change::Duplicate));
    world.ask(Input::Finished(first, Report::succeeded())).expect("ends");
    assert_eq!((open(&world), world.task_state("a1")), (0, TaskState::Ready));
    leave(&mut world, "w-1", false);
    assert_eq!(leave(&mut world, "w-1", false), Reply::Change(Change::Duplicate));
    assert_eq!(state_of(&world, "w-1"), WorkerState::Left);
    sound(&world);
}

#[test]
fn a_cancelled_run_ends_when_the_last_worker_of_its_queue_is_gone() {
    let mut world = pulled(Settings::default());
    register(&mut world, "w-1", &["default"], 2);
    trigger(&mut world, "a", "default", 2);
    world.enqueue("a0").expect("enqueued");
    world.enqueue("a1").expect("enqueued");
    world.cancel(false).expect("cancelled");
    leave(&mut world, "w-1", false);
    assert!(world.run_state().is_terminal(), "{}", world.run_state());
    assert_eq!(open(&world), 0);
}

#[test]
fn a_queue_that_calls_its_workers_has_a_limit_of_its_own() {
    let mut world = pulled(Settings { push_limits: [("cloud".to_owned(), 2)].into(), ..Settings::default() });
    trigger(&mut world, "c", "cloud", 5);
    assert_eq!(open(&world), 2);
    let reason = why(world.state(), world.run).expect("a run").tasks.remove(4).waits.remove(0).reason;
    assert_eq!(reason, WaitReason::PushLimit { queue: "cloud".to_owned(), limit: 2 });
    let attempt = world.attempt("c0");
    world.ask(Input::Started(attempt, "whoever".into())).expect("it was called");
    sound(&world);
}

#[test]
fn of_workers_that_are_gone_the_newest_hundred_are_remembered() {
    let mut world = pulled(Settings::default());
    for n in 0..120 {
        register(&mut world, &format!("w-{n:03}"), &["default"], 1);
        leave(&mut world, &format!("w-{n:03}"), false);
    }
    let known: Vec<&str> = world.state().workers().map(|row| row.worker_id.as_str()).collect();
    assert_eq!((known.len(), known[0]), (100, "w-020"));
    let delta = world.engine.state_mut().take_delta();
    assert_eq!((delta.workers.len(), delta.gone.workers.len()), (100, 20));
    sound(&world);
}

#[test]
fn folding_the_events_of_workers_again_changes_nothing() {
    let mut world = pulled(Settings::default());
    register(&mut world, "w-1", &["default"], 2);
    trigger(&mut world, "a", "default", 1);
    leave(&mut world, "w-1", true);
    leave(&mut world, "w-1", false);
    let mut state = world.state().clone();
    let events: Vec<_> = world.log.iter().flatten().cloned().collect();
    let of_workers = |data: &EventData| {
        matches!(
            data,
            EventData::WorkerRegistered(_) | EventData::WorkerChanged(_) | EventData::WorkerLeft(_)
        )
    };
    for event in events.iter().filter(|event| of_workers(&event.data)) {
        assert!(matches!(state.apply(event), servo_engine::Applied::No(_)), "{event:?}");
    }
    assert_eq!(state.rows().workers, world.state().rows().workers);
    assert!(world.now > Timestamp::EPOCH);
}
