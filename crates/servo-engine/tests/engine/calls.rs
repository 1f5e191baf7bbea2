//! Calls: partitions of an asset that are handed out together, in one message, and end each by itself (ADR-210).

use servo_core::Millis;
use servo_engine::{
    Dispatch, Effect, Input, MAX_CALL, Outcome, Report, RetryPolicy, RunState, Settings, State, Step,
    TaskOptions, TaskRequest, TaskState, TriggerRun, WaitReason, effect, why,
};

use crate::support::{self, World, ended_as, fold, plan_of, task, user_error};

const DAYS: [&str; 3] = ["2025-01-01", "2025-01-02", "2025-01-03"];

fn day(day: &str) -> String {
    format!("days[date=d:{day}]")
}

fn options() -> TaskOptions {
    TaskOptions { single_call: true, ..TaskOptions::default() }
}

fn days(options: &TaskOptions) -> Vec<TaskRequest> {
    DAYS.iter().map(|each| task(&day(each), &[], options.clone())).collect()
}

fn triggered(settings: Settings, tasks: Vec<TaskRequest>) -> (World, Step) {
    let mut world = World::new(settings);
    let step = world.step(&[Input::Trigger(TriggerRun::new("k", plan_of(tasks), "me"))]);
    let run = world.state().runs().next().expect("a run").id;
    world.run = run;
    (world, step)
}

fn messages(step: &Step) -> Vec<Vec<String>> {
    step.effects.iter().filter_map(Effect::dispatch).map(partitions).collect()
}

fn partitions(dispatch: &Dispatch) -> Vec<String> {
    dispatch.attempts().map(|attempt| attempt.task_key.partition().expect("a day").to_string()).collect()
}

fn retried() -> TaskOptions {
    let initial_delay_ms = Millis::from_secs(10);
    let retry =
        RetryPolicy { max_attempts: 3, initial_delay_ms, jitter_ppm: 500_000, ..RetryPolicy::default() };
    TaskOptions { retry: Some(retry), ..options() }
}

#[test]
fn all_partitions_are_in_one_message_and_take_one_slot() {
    let settings = Settings { max_concurrent_tasks: 1, ..Settings::default() };
    let mut tasks = days(&options());
    tasks.push(task("zz", &[], TaskOptions::default()));
    let (mut world, step) = triggered(settings, tasks);
    assert_eq!(messages(&step), [DAYS.map(str::to_owned).to_vec()]);
    assert_eq!(world.task_state("zz"), TaskState::Ready, "the call has the only slot");
    for each in DAYS {
        world.start(&day(each)).expect("begins");
    }
    // The leader holds the slot; the others end when they end.
    world.finish(&day(DAYS[1]), Report::new(Outcome::Succeeded)).expect("ends");
    assert!(!world.task("zz").has_open_attempt());
    world.finish(&day(DAYS[0]), Report::new(Outcome::Succeeded)).expect("ends");
    assert!(world.task("zz").has_open_attempt());
    world.finish(&day(DAYS[2]), Report::new(Outcome::Succeeded)).expect("ends");
    world.succeed("zz");
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn very_many_partitions_are_several_calls() {
    let tasks = (0..=MAX_CALL).map(|number| task(&format!("n[n=i:{number}]"), &[], options())).collect();
    let (_, step) = triggered(Settings::default(), tasks);
    let sizes: Vec<usize> = messages(&step).iter().map(Vec::len).collect();
    assert_eq!(sizes, [MAX_CALL, 1]);
}

#[test]
fn a_call_waits_until_each_of_its_partitions_is_ready_or_has_ended() {
    let names = DAYS.map(day);
    let mut tasks: Vec<TaskRequest> =
        names.iter().zip(["a", "b", "c"]).map(|(name, up)| task(name, &[up], options())).collect();
    tasks.extend(["a", "b", "c"].map(|up| task(up, &[], TaskOptions::default())));
    let (mut world, _) = triggered(Settings::default(), tasks);
    world.succeed("a");
    assert_eq!(world.task_state(&names[0]), TaskState::Ready);
    let waits = why(world.state(), world.run).expect("a run").tasks;
    let first = waits.iter().find(|waits| waits.task_key == support::key(&names[0])).expect("it waits");
    let call = first.waits.iter().find_map(|wait| {
        let WaitReason::Call { count, .. } = &wait.reason else { return None };
        Some((*count, wait.reason.text()))
    });
    let (count, text) = call.expect("it waits for the others");
    assert_eq!(count, 2);
    assert!(text.contains("2025-01-02") && text.ends_with("which the same call is to make"), "{text}");
    // What fails before takes its partition out of the call, and no other.
    world.play("b", user_error());
    assert_eq!(world.task_state(&names[1]), TaskState::Skipped);
    assert!(!world.task(&names[0]).has_open_attempt());
    world.start("c").expect("begins");
    let attempt = world.attempt("c");
    let step = world.step(&[Input::Finished(attempt, Report::new(Outcome::Succeeded))]);
    assert_eq!(messages(&step), [vec![DAYS[0].to_owned(), DAYS[2].to_owned()]]);
}

#[test]
fn partitions_that_failed_are_tried_again_together_and_alone() {
    let (mut world, _) = triggered(Settings::default(), days(&retried()));
    let names = DAYS.map(day);
    for name in &names {
        world.start(name).expect("begins");
    }
    world.finish(&names[1], Report::new(Outcome::Succeeded)).expect("ends");
    world.finish(&names[0], user_error()).expect("fails");
    world.finish(&names[2], user_error()).expect("fails");
    let mut found = Vec::new();
    for _ in 0..40 {
        found.extend(messages(&world.pass(1)));
    }
    // Their delays differ; the first to be ready waits for the other.
    assert_eq!(found, [vec![DAYS[0].to_owned(), DAYS[2].to_owned()]]);
    assert_eq!(world.task(&names[1]).attempt, 1);
    for name in [&names[0], &names[2]] {
        world.start(name).expect("begins");
        world.finish(name, Report::new(Outcome::Succeeded)).expect("ends");
    }
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn a_call_that_a_queue_may_have_lost_is_handed_out_again_as_it_was() {
    let (world, step) = triggered(Settings::default(), days(&options()));
    let first: Vec<Dispatch> = step.effects.iter().filter_map(Effect::dispatch).cloned().collect();
    assert_eq!(effect::outstanding(world.state()), first);
    let restored = State::from_rows(support::tenant(), support::workspace(), world.state().rows());
    assert_eq!(effect::outstanding(&restored.expect("rows fit")), first);
    assert_eq!(effect::outstanding(&fold(&Settings::default(), &world.events())), first);
}

#[test]
fn a_worker_that_is_lost_before_it_began_all_of_them_lets_all_be_made_again_in_one_call() {
    let (mut world, _) = triggered(Settings::default(), days(&options()));
    let names = DAYS.map(day);
    for name in &names {
        world.enqueue(name).expect("enqueued");
    }
    world.start(&names[0]).expect("begins");
    let worker = world.task(&names[0]).worker().expect("a worker").clone();
    let step = world.step(&[Input::WorkersLost(worker)]);
    assert_eq!(
        messages(&step),
        [DAYS.map(str::to_owned).to_vec()],
        "followers without a leader are not left"
    );
    for name in &names {
        assert_eq!(world.task(name).attempt, 2, "{name}");
    }
    for name in &names {
        world.play(name, Report::new(Outcome::Succeeded));
    }
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn a_cancelled_run_ends_every_partition_of_a_call() {
    let (mut world, _) = triggered(Settings::default(), days(&options()));
    let names = DAYS.map(day);
    world.start(&names[0]).expect("begins");
    world.start(&names[1]).expect("begins");
    world.cancel(false).expect("cancelled");
    assert!(world.start(&names[2]).is_err());
    world.finish(&names[0], ended_as(Outcome::Cancelled)).expect("ends");
    world.finish(&names[1], ended_as(Outcome::Cancelled)).expect("ends");
    assert_eq!(world.run_state(), RunState::Cancelled);
}
