//! Ready-dispatch: slots go to the highest run priority, then the oldest run, then the highest task priority.

use servo_engine::controllers::ready_dispatch;
use servo_engine::{
    Caller, Effect, EventData, Input, Outcome, Plan, Report, RunRequest, Settings, State, TaskOptions,
    TaskState, TriggerRun,
};

use crate::support;
use crate::support::{World, ended_as, fold, plan, plan_of, task};

/// A world whose one slot is held by task `t/held`, so that what is triggered next waits.
fn saturated() -> World {
    let mut world = World::new(Settings { max_concurrent_tasks: 1, ..Settings::default() });
    let top = TaskOptions { priority: 100, ..TaskOptions::default() };
    world.trigger(request("held", 100, plan_of(vec![task("held", &[], top)])));
    world.start("held").expect("starts");
    world
}

fn request(run_key: &str, priority: i32, plan: Plan) -> TriggerRun {
    TriggerRun::of_tasks(
        run_key,
        plan,
        RunRequest { priority, caller: Caller::user("me"), ..RunRequest::default() },
    )
}

/// The same rows under more slots: what would be dispatched if there was room.
fn with_slots(state: &State, slots: u32) -> State {
    let settings = Settings { max_concurrent_tasks: slots, ..state.settings().clone() };
    let restored = State::from_rows(support::tenant(), support::workspace(), state.rows()).expect("rows fit");
    restored.with_settings(&settings)
}

fn dispatched(events: &[EventData]) -> Vec<String> {
    let name = |e: &servo_engine::event::DispatchRequested| {
        e.task_key.asset_str().trim_start_matches("t/").to_owned()
    };
    events.iter().filter_map(support::dispatch).map(name).collect()
}

#[test]
fn nothing_is_wanted_when_nothing_waits() {
    let world = World::new(Settings::default());
    assert!(ready_dispatch::reconcile(world.state(), world.now).is_empty());
    let world = World::with(plan(&[("a", &[]), ("b", &["a"])]));
    assert!(
        ready_dispatch::reconcile(world.state(), world.now).is_empty(),
        "a has its outbox row, b waits for a"
    );
}

#[test]
fn no_more_tasks_than_slots_are_dispatched() {
    let mut world = World::new(Settings { max_concurrent_tasks: 3, ..Settings::default() });
    let names: Vec<String> = (0..10).map(|i| format!("n{i}")).collect();
    let tasks = names.iter().map(|name| task(name, &[], TaskOptions::default())).collect();
    let step = world.step(&[Input::Trigger(TriggerRun::new("k", plan_of(tasks), "me"))]);
    assert_eq!(step.effects.len(), 3);
    assert_eq!((world.state().outstanding(), world.state().waiting()), (3, 7));
}

#[test]
fn a_slot_that_becomes_free_is_given_away_by_the_same_step() {
    let mut world = saturated();
    let waiting = world.run;
    world.trigger(request("later", 0, plan(&[("a", &[])])));
    assert_eq!((world.task_state("a"), world.state().waiting()), (TaskState::Ready, 1));
    let later = std::mem::replace(&mut world.run, waiting);
    let report = Input::Finished(world.attempt("held"), Report::succeeded());
    let step = world.step(&[report]);
    assert_eq!(step.effects.iter().filter_map(Effect::dispatch).count(), 1);
    world.run = later;
    assert_eq!(world.task("a").attempt, 1);
}

#[test]
fn runs_of_higher_priority_go_first_then_older_runs_then_tasks_of_higher_priority_then_keys() {
    let mut world = saturated();
    let urgent = |priority| TaskOptions { priority, ..TaskOptions::default() };
    world.trigger(request(
        "old",
        0,
        plan_of(vec![
            task("old_low", &[], urgent(0)),
            task("old_high", &[], urgent(5)),
            task("old_also_low", &[], urgent(0)),
        ]),
    ));
    world.wait(10);
    world.trigger(request("new", 0, plan_of(vec![task("new_highest", &[], urgent(99))])));
    world.wait(10);
    world.trigger(request("important", 7, plan(&[("first", &[])])));
    let state = with_slots(world.state(), 100);
    let order = dispatched(&ready_dispatch::reconcile(&state, world.now));
    assert_eq!(order, ["first", "old_high", "old_also_low", "old_low", "new_highest"]);
}

#[test]
fn a_task_that_comes_back_keeps_the_place_of_its_run() {
    let mut world = World::new(Settings { max_concurrent_tasks: 1, ..Settings::default() });
    world.trigger(request("old", 0, plan(&[("a", &[])])));
    let old = world.run;
    world.wait(60);
    world.trigger(request("new", 0, plan(&[("b", &[])])));
    world.run = old;
    world.play("a", ended_as(Outcome::Interrupted));
    assert_eq!(world.task("a").attempt, 2, "the older run is first again");
}

#[test]
fn the_same_state_wants_the_same_keys_twice() {
    let mut world = saturated();
    world.trigger(request("more", 0, plan(&[("a", &[]), ("b", &[]), ("c", &[])])));
    let state = with_slots(world.state(), 3);
    let keys = |state: &State| -> Vec<String> {
        ready_dispatch::reconcile(state, world.now).iter().map(EventData::idempotency_key).collect()
    };
    assert_eq!(keys(&state).len(), 2);
    assert_eq!(keys(&state), keys(&state));
    let replayed = with_slots(&fold(world.state().settings(), &world.events()), 3);
    assert_eq!(keys(&replayed), keys(&state), "on another node too");
}
